"""Numbers as people write them: decimal points or commas, thousands separators, yes and no.

How a column is written is decided by all of its texts. Expressions run on the engine of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.logs.checking import MISSING, fetch, option_of
from priorwise.logs.columns import Columns
from priorwise.logs.naming import UnsureError
from priorwise.logs.options import Decimal

GAPS: Final = (" ", "\u00a0", "\u202f", "'", "\u2019")
"""Thousands separators beside points and commas."""
YES: Final = ("yes", "true")
NO: Final = ("no", "false")
SAMPLE: Final = 10_000
"""Rows that may show at once that a column has decimal points."""


@final
@dataclass(frozen=True)
class Style:
    """How the numbers of a column are written."""

    decimal: Decimal = "."
    notes: tuple[str, ...] = ()


def _pattern(decimal: Decimal) -> str:
    """Numbers with one decimal sign; the other one may separate thousands."""
    point, comma = ("[.]", ",") if decimal == "." else (",", "[.]")
    thousands = "|".join(f"[1-9][0-9]{{0,2}}({gap}[0-9]{{3}})+" for gap in (comma, f"[{_GAPS}]"))
    return f"^[+-]?([0-9]+|{thousands})?({point}[0-9]*)?$"


_GAPS: Final = "".join(GAPS)


def _bare(column: Any) -> Any:
    """A text without what may stand around its number."""
    return column.strip().replace("%", "").strip()


def numbers_of(
    table: Any, columns: Columns, where: str, decimal: Decimal | None
) -> tuple[Any, dict[str, str], tuple[str, ...]]:
    """Columns by role, numbers as doubles, the roles whose column is text, and how these texts are
    read. Texts stand beside the numbers, as ``text_reward``. Columns that cannot be read as numbers
    or names raise an error.
    """
    picked: dict[str, Any] = {}
    for role, name in (("task", columns.task), ("action", columns.action)):
        column = table[name]
        if column.type().is_nested() or column.type().is_json():
            raise ArgumentError(
                role,
                f"has {column.type()}, and neither words, numbers nor dates, in the column "
                f"{name!r} of {where}",
            )
        picked[role] = column
    if columns.time is not None:
        column, kind = table[columns.time], table[columns.time].type()
        if not (kind.is_temporal() or kind.is_numeric()) or kind.is_time():
            content = "texts" if kind.is_string() else kind
            raise ArgumentError(
                "time",
                f"has {content}, and neither times, dates nor numbers, in the column "
                f"{columns.time!r} of {where}",
            )
        picked["time"] = column
    asked = {"reward": columns.reward, "pulls": columns.pulls, "squares": columns.squares}
    asked["propensity"] = columns.propensity
    wanted = {role: given for role, given in asked.items() if given is not None}
    wanted |= {f"x{i}": name for i, name in enumerate(columns.context)}
    for i, name in enumerate(columns.task_features):
        if table[name].type().is_string():  # words, that are no numbers
            picked[f"f{i}"] = table[name]
        else:
            wanted[f"f{i}"] = name
    texts = {role: given for role, given in wanted.items() if table[given].type().is_string()}
    styles = styles_of(table, texts, columns, where, decimal)
    for role, given in wanted.items():
        column, kind = table[given], table[given].type()
        if role in texts:
            percent = role == "reward" and columns.rate is not None
            picked[f"text_{role}"] = column
            picked[role] = number_of(column, styles[role], percent=percent)
        elif kind.is_boolean():
            picked[role] = column.cast("int8").cast("float64")  # text of a CSV casts in two steps
        elif kind.is_numeric() or kind.is_null():
            picked[role] = column.cast("float64")
        else:
            raise ArgumentError(
                option_of(role),
                f"has {kind} and not numbers{' or words' if role[0] == 'f' else ''} in the column "
                f"{given!r} of {where}",
            )
    notes = tuple(note for style in styles.values() for note in style.notes)
    return table.select(**picked), texts, notes


def number_of(column: Any, style: Style, *, percent: bool = False) -> Any:
    """The number that a text says; null if it says none in this style."""
    text = _bare(column) if percent else column.strip()
    tidy = text
    for gap in (*GAPS, "," if style.decimal == "." else "."):
        tidy = tidy.replace(gap, "")
    # not of the column itself: DuckDB would read the file as numbers, and fail
    number = tidy.replace(",", ".").try_cast("float64")
    found = text.re_search(_pattern(style.decimal)).ifelse(number, None)
    if style.decimal == ".":
        found = text.try_cast("float64").coalesce(found)  # 1e-3, inf
    word = text.lower()
    return found.coalesce(word.isin(YES).ifelse(1.0, word.isin(NO).ifelse(0.0, None)))


def styles_of(
    table: Any, texts: Mapping[str, str], columns: Columns, where: str, decimal: Decimal | None
) -> dict[str, Style]:
    """How the columns of these roles are written, all of which are text."""
    if decimal is not None:
        validation.one_of("decimal", decimal, Decimal)
    facts = _facts(table, texts)
    signs: dict[str, Decimal | None] = {
        role: decimal or _sign(facts[role], whole=role == "pulls") for role in texts
    }
    usual: set[Decimal] = {sign for sign in signs.values() if sign is not None}
    styles = {}
    for role, name in texts.items():
        fact, sign = facts[role], signs[role]
        if sign is None and fact["commas"] + fact["points"] > 0:
            sign = _unclear(fact, usual, name, columns, where)
        styles[role] = Style(sign or ".", tuple(_notes(fact, sign or ".", name)))
    return styles


def _facts(table: Any, texts: Mapping[str, str]) -> dict[str, dict[str, int]]:
    """How many texts of each column look like what."""
    sums: dict[str, Any] = {}
    for role, name in texts.items():
        text = _bare(table[name])
        point, comma = text.re_search(_pattern(".")), text.re_search(_pattern(","))
        known = text.notnull() & ~text.lower().isin(MISSING)
        tests = {
            "points_only": point & ~comma,
            "commas_only": comma & ~point,
            "either_comma": comma & point & text.contains(","),
            "either_point": comma & point & text.contains("."),
            "small": text.re_search("^[1-9][0-9]{0,2}$"),
            "commas": comma & text.contains(",") | point & text.contains(","),
            "points": comma & text.contains(".") | point & text.contains("."),
            "gaps": (comma | point) & text.re_search(f"[{_GAPS}]"),
            "words": text.lower().isin((*YES, *NO)),
            "percents": table[name].contains("%"),
        }
        sums |= {f"{role}__{key}": (known & each).sum() for key, each in tests.items()}
    found = fetch(table.aggregate(**sums)) if sums else {}
    facts: dict[str, dict[str, int]] = {role: {} for role in texts}
    for key, values in found.items():
        role, _, fact = key.rpartition("__")
        facts[role][fact] = int(np.nan_to_num(np.float64(values[0] or 0)))
    return facts


def _sign(fact: Mapping[str, int], *, whole: bool) -> Decimal | None:
    """The decimal sign of a column, if its own texts show it; more of them decide, and the others
    are errors. Thousands of whole numbers cannot be anything else.
    """
    if fact["points_only"] or fact["commas_only"]:
        return "." if fact["points_only"] >= fact["commas_only"] else ","
    if whole and bool(fact["either_comma"]) != bool(fact["either_point"]):
        return "." if fact["either_comma"] else ","
    return None


def _unclear(
    fact: Mapping[str, int], usual: set[Decimal], name: str, columns: Columns, where: str
) -> Decimal:
    """The decimal sign of a column with texts such as 1,234 only: that of the columns beside it.
    Numbers below 1,000 without decimals beside them show that commas separate thousands.
    """
    if len(usual) == 1:
        return next(iter(usual))
    mixed = fact["either_comma"] and fact["either_point"]
    if not usual and not mixed and (fact["either_point"] or fact["small"]):
        return "."
    raise UnsureError(
        "log",
        f"has signs in numbers of the column {name!r} of {where} that may be decimal signs or "
        "thousands separators",
        {**columns.arguments, "decimal": "."},
    )


def _notes(fact: Mapping[str, int], sign: Decimal, name: str) -> Iterable[str]:
    """What was decided, where it is not the usual way to write numbers."""
    column = f"the column {name!r}"
    if fact["commas"]:
        meaning = "thousands separators" if sign == "." else "decimal commas"
        yield f"the commas in {column} are read as {meaning}"
    if fact["points"] and (sign == "," or (fact["either_point"] and not fact["points_only"])):
        meaning = "thousands separators" if sign == "," else "decimal points"
        yield f"the points in {column} are read as {meaning}"
    if fact["gaps"]:
        yield f"the spaces or apostrophes in {column} are read as thousands separators"
    if fact["words"]:
        yield f"yes and no in {column} are read as 1 and 0"
    if fact["percents"]:
        yield f"the numbers in {column} are percentages"


def clearly_points(table: Any, names: Iterable[str]) -> set[str]:
    """Columns of texts whose first rows show decimal points that are nothing else."""
    texts = {f"c{i}": name for i, name in enumerate(names)}
    facts = _facts(table.limit(SAMPLE), texts)
    return {name for role, name in texts.items() if facts[role]["points_only"]}
