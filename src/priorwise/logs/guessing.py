"""Which column of a log says when its rows were, if nobody names one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from priorwise.core.errors import option
from priorwise.logs.checking import EngineError, fetch
from priorwise.logs.columns import Columns
from priorwise.logs.spreadsheets import SPELLED

NONE: Final = "none"
"""In place of the name of a column: take nothing for time, not even the order of the log."""
LEAST: Final = 4
"""Different times at which tasks begin: with fewer, earlier and later tasks cannot be split."""


def without_time(time: str | None, names: Iterable[str]) -> bool:
    """Whether the caller wants no time at all."""
    return time == NONE and NONE not in names


def parsed_times(table: Any, name: str) -> Any:
    """Return the table with texts of a column as times, if all of them are."""
    if not table[name].type().is_string():
        return table
    # strip() because DuckDB would read the column of a file as times, and fail
    text = table[name].strip()
    when = text.try_cast("timestamp")
    wrong = (text.notnull() & (text != "") & when.isnull()).sum()
    try:
        facts = fetch(table.aggregate(wrong=wrong, right=when.count()))
    except EngineError:  # not every engine tries to read texts
        return table
    readable = not facts["wrong"][0] and facts["right"][0]
    return table.mutate(**{name: when}) if readable else table


def with_guessed_time(table: Any, columns: Columns) -> tuple[Any, Columns]:
    """Take the one column of times that is named as such, and say so; none if there are several."""
    taken = {columns.task, columns.action, columns.reward, columns.pulls, columns.squares}
    taken |= {columns.propensity, columns.rate, *columns.context, *columns.task_features}
    likely = [name for name in table.columns if name not in taken and _plain(name) in _NAMES]
    times = []
    for name in likely:
        table = parsed_times(table, name)
        kind = table[name].type()
        if kind.is_date() or kind.is_timestamp():
            times.append(name)
        elif kind.is_string():
            said = (
                f"the column {name!r} has texts that are no times, and is not taken for "
                f"{option('time')}"
            )
            columns = replace(columns, said=(*columns.said, said))
    if not times:
        return table, columns
    if len(times) > 1:
        both = " and ".join(map(repr, times))
        said = (
            f"the columns {both} may be {option('time')}, and none of them is taken: name one "
            f"with {option('time')}"
        )
        return table, replace(columns, said=(*columns.said, said))
    (name,) = times
    lost = table[name].isnull()
    for role in (columns.task, columns.action):
        if table[role].type().is_string():  # rows of totals are left out later
            lost = lost & ~table[role].isin(SPELLED).fill_null(False)
    tasks = table.group_by(table[columns.task].name("task")).aggregate(
        first=table[name].min(), lost=lost.sum()
    )
    facts = fetch(tasks.aggregate(begins=tasks["first"].nunique(), lost=tasks.lost.sum()))
    if facts["lost"][0]:
        said = f"the column {name!r} has rows without a time and is not taken for {option('time')}"
        return table, replace(columns, said=(*columns.said, said))
    if facts["begins"][0] < LEAST:
        return table, columns
    said = (
        f"the column {name!r} is taken for {option('time')}; {option('time', 'none')} takes "
        "nothing for it"
    )
    return table, replace(columns, time=name, said=(*columns.said, said))


_NAMES: Final = frozenset(
    (
        *("time", "timestamp", "date", "datetime", "day", "when"),
        *("start", "starts", "started", "start_date", "start_time", "start_day", "started_at"),
        *("begin", "begins", "began", "created", "created_at", "created_on", "creation_date"),
    )
)


def _plain(name: str) -> str:
    """Write a name in lower case, with one sign between its words."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
