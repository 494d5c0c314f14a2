"""Which rows of a log count: those since a day, and not those whose rewards may still come; and
what of a reward counts, where most are zero and the others amounts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final, Literal, final

import numpy as np

from priorwise.core import validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError, option
from priorwise.core.types import BoolArray, FloatArray
from priorwise.logs.checking import fetch, fetch_table, unknown
from priorwise.logs.columns import Columns
from priorwise.logs.options import RewardAs

ZONE: Final = {
    True: "has times with a zone, so that this needs one, such as 2024-01-31T00:00+00:00",
    False: "has times without a zone, so that this must not have one either",
}


@final
@dataclass(frozen=True)
class Period:
    """Rows from ``since`` until ``until``, without those younger than ``window`` at its end."""

    since: Any = None
    until: Any = None
    window: float | None = None

    @property
    def asked(self) -> str | None:
        """Name of the first option that was given."""
        return next((name for name, value in vars(self).items() if value is not None), None)

    def cut(self, table: Any, columns: Columns, where: str) -> tuple[Any, tuple[str, ...]]:
        """Leave out the rows that do not count, and say how many and why."""
        if self.asked is None:
            return table, ()
        if columns.time is None:
            raise ArgumentError(self.asked, f"needs the column of times, {option('time', ...)}")
        import ibis

        when, kind = table.time, table.time.type()
        begin, end = (moment(name, getattr(self, name), columns.time, kind) for name in ENDS)
        if self.window is not None and end is None:
            end = fetch_table(table.aggregate(end=when.max()))["end"][0].as_py()
        outside = young = when.isnull() & False
        last = None
        if begin is not None:
            outside = when < ibis.literal(begin, type=kind)
        if self.until is not None:
            outside = outside | (when > ibis.literal(end, type=kind))
        if self.window is not None and end is not None:
            last = earlier_by(end, self.window)
            young = ~outside & (when > ibis.literal(last, type=kind))
        facts = fetch(table.aggregate(rows=table.count(), out=outside.sum(), young=young.sum()))
        rows, out, late = (int(np.nan_to_num(np.float64(each[0] or 0))) for each in facts.values())
        if rows and rows == out + late:
            raise ArgumentError(
                self.asked,
                f"leaves no row of {where}",
                cure=(
                    f"its times in {columns.time!r} lie outside, or rewards may still come "
                    "for all of them"
                ),
            )
        said = []
        if out:
            ends = [f"{name}={getattr(self, name)}" for name in ENDS if getattr(self, name)]
            said.append(f"{out:,} rows outside {' and '.join(ends)} are left out")
        if self.window is not None:
            unit = "days" if kind.is_temporal() else f"units of {columns.time!r}"
            said.append(
                f"rewards come within {self.window:g} {unit}: {late:,} rows younger than that at "
                f"{end} are left out, with a reward or without"
            )
        # rows keep their numbers; those without a time stay, and are refused
        if "_row" not in table.columns:
            table = table.mutate(_row=ibis.row_number())
        table = table.mutate(_out=(outside | young).fill_null(False))
        none = unknown(table.time) if kind.is_floating() else table.time.isnull()
        return table.filter(none | ~table._out), tuple(said)


ENDS: Final = ("since", "until")


def moment(name: str, value: Any, column: str, kind: Any) -> Any:
    """Read a time as the column has them: a number, a day, or a day with a time."""
    if value is None:
        return None
    if kind.is_numeric():
        try:
            return validation.number(name, float(value) if isinstance(value, str) else value)
        except ValueError as error:
            raise ArgumentError(
                name, f"must be a number, as the column {column!r} has", got=value
            ) from error
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError as error:
        raise ArgumentError(
            name, "must be a day or a time, such as 2024-01-31 or 2024-01-31T12:00", got=value
        ) from error
    if not isinstance(found, date):
        raise ArgumentTypeError(name, "must be a day or a time", got=type(value))
    if kind.is_date():
        return found.date() if isinstance(found, datetime) else found
    if not isinstance(found, datetime):
        found = datetime(found.year, found.month, found.day)
    zoned = kind.timezone is not None
    if zoned != (found.tzinfo is not None):
        raise ArgumentError(name, f"must be like the column {column!r}, which {ZONE[zoned]}")
    return found


def earlier_by(end: Any, window: float) -> Any:
    """Return the time so many days, or units of a column of numbers, before another."""
    if isinstance(end, datetime):
        return end - timedelta(days=window)
    if isinstance(end, date):
        return end - timedelta(days=math.ceil(window))
    return end - window


def positive_or_none(name: str, value: Any) -> float | None:
    """Return a positive number, such as a length of time; None where none is given."""
    if value is None:
        return None
    found = validation.number(name, value)
    if not found > 0.0:
        raise ArgumentError(name, "must be positive", got=found)
    return found


def half_life_or_none(value: Any) -> float | Literal["auto"] | None:
    """Return a half-life, also of a text; ``"auto"`` if it is chosen later, None for no fading."""
    if not isinstance(value, str):
        return positive_or_none("half_life", value)
    if value == "auto":
        return "auto"
    if value == "none":
        return None
    try:
        return positive_or_none("half_life", float(value))
    except ValueError as error:
        raise ArgumentError(
            "half_life", "must be a positive number, 'auto' or 'none'", got=value
        ) from error


def as_asked(table: Any, reward_as: RewardAs, columns: Columns) -> Any:
    """Take of a reward whether there was one, or how much where there was one."""
    if reward_as == "reward":
        return table
    if columns.summed:
        raise ArgumentError(
            "reward_as", "needs one row per pull, as sums do not tell single rewards"
        )
    import ibis

    reward, lost = table.reward, unknown(table.reward)
    if reward_as == "converted":
        return table.mutate(reward=lost.ifelse(reward, (reward > 0.0).ifelse(1.0, 0.0)))
    if "_row" not in table.columns:
        table = table.mutate(_row=ibis.row_number())
    return table.filter(unknown(table.reward) | (table.reward != 0.0))


def faded(starts: Any, half_life: float, seed: int) -> BoolArray:
    """Whether each task is kept, with probability ``2^(-age / half_life)``: tasks then weigh by
    their age on average, and what is left is a plain log, with honest standard errors.
    """
    chances = 0.5 ** (lengths(starts.max() - starts) / half_life)
    kept: BoolArray = np.random.default_rng(seed).random(len(chances)) < chances
    return kept


def lengths(differences: Any) -> FloatArray:
    """Return differences of times as numbers: in days, or in the unit of a column of numbers."""
    differences = np.asarray(differences)
    if np.issubdtype(differences.dtype, np.timedelta64):
        differences = differences / np.timedelta64(1, "D")
    return differences.astype(np.float64)
