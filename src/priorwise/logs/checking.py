"""What a log may not hold: each row that cannot be is refused by its column and its number.

The tests are Ibis expressions and run where the data are. They use what every engine has:
comparisons, ``abs`` and ``floor``; ``isnan``, ``isinf`` and the remainder of fractions differ
between engines, or are missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from priorwise.core.errors import ArgumentError, option, printable
from priorwise.logs.columns import Columns

LARGEST: Final = 1.7976931348623157e308
MOST_EXACT: Final = 2.0**53
SQUARED: Final = 1e100
"""Size of a reward whose square and sums still are numbers."""
ROUNDING: Final = 1e-9
"""Share of a sum of squares that rounding may hide."""
MISSING: Final = ("", "na", "n/a", "nan", "null", "none", "#div/0!", "#n/a")
"""Words for a number that is missing, where a column is text; case does not matter."""


class EngineError(ArgumentError):
    """The engine of a table could not read it."""


class _Test(NamedTuple):
    role: str
    column: str
    fails: Any
    words: str


def checked(
    table: Any, texts: dict[str, str], columns: Columns, where: str, missing: str
) -> tuple[int, int, Callable[[], str] | None, float]:
    """Count rows and those without a reward, refuse impossible ones by their number, and return
    what says where a reward is not 0 or 1, which takes a pass; None if all are. Last, the share of
    zeros among the rewards, 0 where some are negative.
    """
    reward, lost = table.reward, unknown(table.reward)
    tests = [*_words(table, texts), *_tests(table, columns, missing)]
    # sums of 0s and 1s are whole numbers from 0 to the number of pulls
    most = table.pulls if columns.summed else 1.0
    odd = (reward < 0) | (reward > most) | fraction(reward)
    counts = {f"bad{i}": each.fails.sum() for i, each in enumerate(tests)}
    counts |= {"odd": odd.sum(), "zero": (reward == 0.0).sum(), "below": (reward < 0.0).sum()}
    facts = fetch(table.aggregate(rows=table.count(), lost=lost.sum(), **counts))
    # sums over no rows are null
    count = {name: int(np.nan_to_num(np.float64(values[0] or 0))) for name, values in facts.items()}
    if not count["rows"]:
        raise ArgumentError("log", f"has no rows in {where}")
    for i, each in enumerate(tests):
        if count[f"bad{i}"]:
            place = _first(table, each.fails, count[f"bad{i}"])
            raise ArgumentError(
                each.role, f"has {each.words} in {place} of {where}, in the column {each.column!r}"
            )
    if count["lost"] == count["rows"]:
        raise ArgumentError(
            "reward", f"has no value in any row of {where}, in the column {columns.reward!r}"
        )

    def why() -> str:
        limit = "0 or 1"
        if columns.summed:
            limit = f"a whole number between 0 and {columns.pulls!r}"
        place = _first(table, odd, count["odd"])
        return f"{place} of {where} has a value in {columns.reward!r} that is not {limit}"

    zeros = 0.0 if count["below"] else count["zero"] / (count["rows"] - count["lost"])
    return count["rows"], count["lost"], why if count["odd"] else None, zeros


def _words(table: Any, texts: dict[str, str]) -> list[_Test]:
    """Texts that are no numbers and do not say that one is missing."""
    found = []
    for role, name in texts.items():
        text = table[f"text_{role}"].strip()
        word = table[role].isnull() & text.notnull() & ~text.lower().isin(MISSING)
        comma = word & text.contains(",") & text.replace(",", "").try_cast("float64").notnull()
        words = "a comma that is not where those of the other numbers are,"
        found.append(_Test(option_of(role), name, comma, words))
        found.append(_Test(option_of(role), name, word, "a text that is no number"))
    return found


def _tests(table: Any, columns: Columns, missing: str) -> list[_Test]:
    """Rows that no log may have."""
    reward, found = table.reward, []
    for role, name in (("task", columns.task), ("action", columns.action)):
        column = table[role]
        none = column.isnull()
        if column.type().is_floating():
            none = unknown(column)
        if column.type().is_string():
            none = none | (column.strip() == "")
        found.append(_Test(role, name, none, f"no {role}"))
    if missing == "refuse":
        words = f"no finite reward ({option('missing', 'drop')} leaves rows without one out)"
        found.append(_Test("reward", columns.reward, unknown(reward), words))
    else:
        # an order with NaN above all numbers, and one with NaN above none, both say no here
        infinite = (reward < -LARGEST) | (-reward < -LARGEST)
        found.append(_Test("reward", columns.reward, infinite, "an infinite reward"))
    large = (reward > SQUARED) | (reward < -SQUARED)
    words = f"a reward above {SQUARED:g} in size (take a larger unit)"
    found.append(_Test("reward", columns.reward, large & ~unknown(reward), words))
    if columns.time is not None:
        when = table.time
        none = unknown(when) if when.type().is_floating() else when.isnull()
        found.append(_Test("time", columns.time, none, "no time"))
    if columns.propensity is not None:
        chance = table.propensity
        wrong = unknown(chance) | (chance <= 0.0) | (chance > 1.0)
        words = "no probability above 0 and up to 1"
        found.append(_Test("propensity", columns.propensity, wrong, words))
    for i, name in enumerate(columns.context):
        found.append(_Test("context", name, unknown(table[f"x{i}"]), "no finite number"))
    for i, name in enumerate(columns.task_features):
        column, counts = table[f"f{i}"], ~unknown(reward)
        if column.type().is_string():
            none, words = column.isnull() | (column.strip() == ""), "no value"
        else:
            none, words = unknown(column), "no finite number"
            large = ~none & ((column > SQUARED) | (column < -SQUARED))
            found.append(_Test("task_features", name, large, f"a number above {SQUARED:g} in size"))
        found.append(_Test("task_features", name, none & counts, words))
    return found + (_sums(table, columns) if columns.summed else [])


def _sums(table: Any, columns: Columns) -> list[_Test]:
    """Rows that sum up no pulls, or whose sums contradict each other."""
    reward, n, pulls = table.reward, table.pulls, str(columns.pulls)
    wrong = unknown(n) | (n < 0) | fraction(n)
    found = [
        _Test("pulls", pulls, wrong, "pulls that are no whole number from 0 on"),
        _Test("reward", columns.reward, (n == 0) & (reward != 0), "a reward without a pull"),
    ]
    if columns.squares is not None:
        q, name = table.squares, columns.squares
        # rows without a reward are left out together with their squares
        lacking = unknown(q) & ~unknown(reward)
        small = (n > 0) & (q * n < reward * reward * (1.0 - ROUNDING))
        found += [
            _Test("squares", name, lacking, "no finite number"),
            _Test("squares", name, (n == 0) & (q != 0), "squares without a pull"),
            _Test("squares", name, small, "less than reward^2 / pulls, so no sum of squares,"),
        ]
    return found


def option_of(role: str) -> str:
    """The argument that names the column of a role."""
    return {"x": "context", "f": "task_features"}.get(role[0], role)


def unknown(column: Any) -> Any:
    """Whether a number is missing, no number or infinite."""
    # DuckDB trusts the extremes that Parquet files state, which leave NaN out: it computes neither
    # isnan(x) nor a comparison that they decide, but it does compute 0 x
    return column.isnull() | ~(column.abs() <= LARGEST) | (column * 0.0 != 0.0)


def fraction(column: Any) -> Any:
    """Whether a number is not whole; large ones all are."""
    # floors are integers of 64 bits; see unknown() for the second test
    known = (column.abs() < MOST_EXACT) & (column * 0.0 == 0.0)
    small = known.ifelse(column, 0.0)
    return small.floor() != small


def _first(table: Any, test: Any, count: int) -> str:
    """Name the first row that fails a test, and say how many more do."""
    more = f" (and {count - 1:,} more)" if count > 1 else ""
    try:
        return f"{first_row(table, test)}{more}"
    except EngineError:  # not every engine numbers its rows
        return f"a row{more}"


def first_row(table: Any, test: Any) -> str | None:
    """Name the first row that passes a test; rows count from 1, after the head of a file. None if
    there is none.
    """
    import ibis

    rows = table.mutate(_found=test)
    if "_row" not in table.columns:
        rows = rows.mutate(_row=ibis.row_number())
    (row,) = fetch(rows.filter(rows._found).aggregate(row=rows._row.min()))["row"]
    return None if row is None or row != row else f"row {int(row) + 1:,}"


def fetch(expression: Any) -> dict[str, NDArray[Any]]:
    """Run an expression on the engine of its table; columns by name."""
    table = fetch_table(expression)
    return {name: table[name].to_numpy() for name in table.column_names}


def fetch_table(expression: Any) -> Any:
    """Run an expression on the engine of its table; an Arrow table."""
    try:
        return expression.to_pyarrow()
    except Exception as error:  # each engine has errors of its own
        raise EngineError("log", f"cannot be read by the engine: {reason(error)}") from error


def reason(error: Exception) -> str:
    """What an engine says, without its hints on options of its own."""
    lines = [line.strip().rstrip(".") for line in str(error).strip().splitlines()]
    said = lines[: lines.index("")] if "" in lines else lines
    return printable(". ".join(said[:3]))[:400]
