"""What spreadsheets have beside plain rows: rows of totals, and rates in place of clicks."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from priorwise.core.errors import ArgumentError, option
from priorwise.core.types import FloatArray
from priorwise.logs.checking import fetch, first_row, unknown
from priorwise.logs.columns import Columns
from priorwise.logs.naming import is_share

TOTALS: Final = ("total", "totals", "grand total", "subtotal", "sum", "summe", "gesamt")
NAMES: Final = ("all", "overall")
"""Words that may be totals, or names of arms."""
SPELLED: Final = tuple(
    f"{case}{end}"
    for word in (*TOTALS, *NAMES)
    for case in dict.fromkeys((word, word.upper(), word.title(), word.capitalize()))
    for end in ("", " ", ":")
)
"""The same as they are written: to compare whole texts is faster than to change them."""
EXACT: Final = 1e-9
"""Share of a sum of numbers that rounding may hide."""
DIGITS: Final = 10
"""Decimals from which a rate was not rounded."""


def without_totals(table: Any, columns: Columns, where: str) -> tuple[Any, tuple[str, ...]]:
    """Leave out rows that are named as totals and are the sums of the others, and say so. Rows with
    such names that are no sums raise an error, unless they can be an arm.
    """
    import ibis

    named = {
        role: table[role].isin(SPELLED)
        for role in ("task", "action")
        if table[role].type().is_string()
    }
    if not named:
        return table, ()
    no, of_task = table.reward.isnull() & False, table.task.isnull()
    if table.task.type().is_string():
        of_task = of_task | (table.task == "")
    action = named.get("action", no).fill_null(False)
    whole = named.get("task", no).fill_null(False) | (action & of_task)
    rows = table.mutate(_whole=whole, _part=action & ~whole)
    counts = fetch(rows.aggregate(whole=rows._whole.sum(), part=rows._part.sum()))
    if not any(int(np.nan_to_num(np.float64(each[0] or 0))) for each in counts.values()):
        return table, ()
    if "_row" not in rows.columns:
        rows = rows.mutate(_row=ibis.row_number())
    plain = rows.filter(~rows._whole & ~rows._part)
    said: list[str] = []
    for flag in ("_whole", "_part"):
        found = fetch(rows.filter(rows[flag]).drop(*(n for n in rows.columns if n[:5] == "text_")))
        if len(found["_row"]) and _are_sums(found, plain, columns, where, flag == "_part", said):
            rows = rows.filter(~rows[flag])
    return rows.drop("_whole", "_part"), tuple(said)


def _are_sums(
    found: dict[str, NDArray[Any]],
    plain: Any,
    columns: Columns,
    where: str,
    part: bool,
    said: list[str],
) -> bool:
    """Whether rows with names of totals are sums; an error if only some are, or their name says so.
    Totals of a task (``part``) sum its rows; others sum all rows, or those of their arm.
    """
    labels, role = found["task"], "task"
    of_action = np.array([not _is_total(each) for each in labels])
    if part or of_action.all():
        labels, role = found["action"], "action"
    column = columns.action if role == "action" else columns.task
    column_of = {"pulls": columns.pulls, "reward": columns.reward}
    roles = ["pulls"] if columns.rate is not None else ["reward", *(["pulls"] * columns.summed)]
    sums = {name: plain[name].sum() for name in roles}
    scale = {f"{name}_size": plain[name].abs().sum() for name in roles}
    if part:
        expected = _looked_up(plain, "task", {**sums, **scale}, found["task"])
    else:
        expected = _looked_up(plain, "action", {**sums, **scale}, found["action"])
        every = fetch(plain.aggregate(**sums, **scale))
        for name, values in expected.items():
            values[np.isnan(values)] = float(every[name][0] or 0.0)
    right, stated = np.ones(len(labels), bool), np.zeros(len(labels), bool)
    wrong = {}
    for name in roles:
        given = found[name].astype(float)
        slack = EXACT * expected[f"{name}_size"] + EXACT
        wrong[name] = ~np.isnan(given) & ~(np.abs(given - expected[name]) <= slack)
        stated |= ~np.isnan(given)
        right &= ~wrong[name]
    right &= stated
    first = int(np.argmin(right))
    title = f"{str(labels[0]).strip()!r} in the column {column!r}"
    of = "those of its task" if part else "the others"
    if right.all():
        row = found["_row"][0] + 1
        which = f"row {row:,} is" if len(labels) == 1 else f"{len(labels):,} rows are"
        said.append(f"{which} left out: a total, named {title}, the sum of {of}")
        return True
    _, several = np.unique(found["task"].astype(str), return_counts=True)
    arm = role == "action" and part
    soft = all(str(each).strip(" :").lower() in NAMES for each in labels)
    if arm and ((soft and not right.any()) or (not columns.summed and several.max() > 1)):
        said.append(f"{title} is an arm: its numbers are not the sums of the other rows")
        return False
    row = f"row {found['_row'][first] + 1:,} of {where}"
    off = [name for name in roles if wrong[name][first]]
    numbers = " and ".join(
        f"{column_of[name]!r} is {found[name][first]:,.10g}, and {of} add up to "
        f"{expected[name][first]:,.10g}"
        for name in off
    )
    raise ArgumentError(
        role,
        f"has {row} named {str(labels[first]).strip()!r} in the column {column!r}, as a total is, "
        f"but it is not one: {numbers or 'it has no numbers'}",
        cure=("correct or delete the row, or give it another name if it is a row like the others"),
    )


def _is_total(name: Any) -> bool:
    return str(name) in SPELLED


def _looked_up(
    plain: Any, by: str, sums: dict[str, Any], keys: NDArray[Any]
) -> dict[str, FloatArray]:
    """Sums of the rows with each key; NaN if there are none."""
    wanted = [each for each in dict.fromkeys(keys.tolist()) if each is not None]
    few = plain.filter(plain[by].isin(wanted)) if len(wanted) < 100 else plain
    found = fetch(few.group_by(by).aggregate(**sums))
    place = {key: i for i, key in enumerate(found[by].tolist())}
    index = np.array([place.get(key, -1) for key in keys.tolist()])
    return {
        name: np.where(index < 0, np.nan, np.append(found[name].astype(float), np.nan)[index])
        for name in sums
    }


def with_clicks(table: Any, columns: Columns, where: str) -> tuple[Any, tuple[str, ...]]:
    """Put clicks in place of rates of pulls: the whole numbers that give the rates as written. An
    error if there are none, or if the rates have too few digits.
    """
    if columns.rate is None:
        return table, ()
    rate, pulls = table.reward, table.pulls
    known = ~unknown(rate) & ~unknown(pulls)
    marked = known & (table.text_reward.contains("%") if "text_reward" in table.columns else False)
    facts = {f"d{d}": (known & ~_whole(rate.abs() * 10.0**d)).sum() for d in range(DIGITS + 1)}
    facts |= {"marked": marked.sum(), "bare": (known & ~marked & (rate != 0.0)).sum()}
    found = fetch(table.aggregate(**facts, most=known.ifelse(rate, 0.0).max()))
    percent = bool(found["marked"][0])
    if percent and found["bare"][0]:
        raise ArgumentError(
            "rate",
            f"must have % in all rows of the column {columns.rate!r} or in none, unlike "
            f"{first_row(table, known & ~marked & (rate != 0.0))} of {where}",
            cure="write all of them alike",
        )
    digits = next((d for d in range(DIGITS) if not found[f"d{d}"][0]), DIGITS)
    units = [0.01] if percent else [0.01, 1.0] if is_share(columns.rate) else [1.0, 0.01]
    if float(found["most"][0] or 0.0) > 1.0:
        units = [0.01]
    tried = []
    for unit in units:
        exact = rate * unit * pulls
        clicks = (exact + 0.5).floor()
        slack = pulls * (0.5 * unit * 10.0**-digits * (1.0 + 1e-6)) + 1e-6
        apart = (exact - clicks).abs() > slack
        rough = (slack > 0.5 + 1e-5) & (slack > 0.25 * (clicks.abs() + 1.0).sqrt())
        wrong, vague = known & (apart | (clicks > pulls)), known & rough
        counts = {"wrong": wrong.sum(), "vague": vague.sum()}
        counts["slack"] = known.ifelse(slack, 0.0).max()
        numbers = fetch(table.aggregate(**counts))
        tried.append((wrong, vague, exact))
        if not numbers["wrong"][0] and not numbers["vague"][0]:
            none = (pulls == 0.0).fill_null(False) & unknown(rate)
            table = table.mutate(reward=none.ifelse(0.0, clicks))
            off = float(numbers["slack"][0] or 0.0)
            about = f", give or take {off:,.0f}" if off >= 1.0 else ""
            how = "a percentage" if unit < 1.0 else "a share"
            note = (
                f"the rewards are whole numbers: the rate {columns.rate!r}, {how}, times "
                f"{columns.pulls!r}, up to the rounding of the rate{about}"
            )
            return table, (note,)
        if numbers["wrong"][0] and unit is not units[-1]:
            continue
        break
    wrong, vague, _ = tried[0]
    largest = float(found["most"][0] or 0.0)
    read = f", read as percentages because the largest is {largest:g}," if largest > 1.0 else ""
    row = first_row(table, wrong)
    cure = f"name the column of clicks with {option('reward', ...)}"
    if row is None:
        raise ArgumentError(
            "rate",
            f"has too few digits in {first_row(table, vague)} of {where}, in the column "
            f"{columns.rate!r}, to show the number of clicks of its {columns.pulls!r}",
            cure=f"{cure}, or write the rates with more digits",
        )
    raise ArgumentError(
        "rate",
        f"gives no whole number of clicks between 0 and its {columns.pulls!r} in {row} of {where}, "
        f"in the column {columns.rate!r}{read}",
        cure=cure,
    )


def _whole(number: Any) -> Any:
    return (number - (number + 0.5).floor()).abs() <= 1e-6
