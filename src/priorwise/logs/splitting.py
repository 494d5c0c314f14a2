"""Earlier and later tasks of a log, and what had been recorded when the first later one began."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from priorwise.core.errors import ArgumentError
from priorwise.core.types import BoolArray
from priorwise.logs.checking import fetch_table
from priorwise.logs.features import constant_in_tasks
from priorwise.logs.reducing import Log, places_in, reduced, sums_of
from priorwise.logs.rows import task_starts
from priorwise.logs.times import earlier_by


def split(log: Log, share: float, window: float | None = None) -> tuple[Log, Log]:
    """Return the log of a share of the tasks, the earliest, and that of the others.

    Tasks are ordered by their first time, where those that began at one time stay together, or by
    their first row. With times the first log has only what had been recorded, and was no younger
    than ``window``, when the first later task began: an earlier task may have gone on for longer.
    """
    starts = task_starts(log)
    earlier, cut = _earlier(log, starts, share)
    first, later = log.part(earlier), log.part(~earlier)
    if log.columns.time is None:
        return first, later
    moment = _moment(cut, log.source.time.type())
    known = _before(log, moment if window is None else earlier_by(moment, window))
    inside = np.isin(known.tasks, first.tasks)
    if inside.sum() < 2:
        raise ArgumentError(
            "time",
            f"leaves {inside.sum()} tasks with rewards known when the first later task began, at "
            f"{moment}",
            cure="a prior is learned from several",
        )
    known = known.part(np.asarray(inside))
    late = float(first.pulls.sum() - known.pulls.sum())
    if late:
        said = (
            f"{late:,.0f} pulls of earlier tasks were made, or their rewards came, after the first "
            f"later task had begun at {moment}: the prior is learned without them"
        )
        known = replace(known, left=(*known.left, said))
    return known, later


def _earlier(log: Log, starts: NDArray[Any], share: float) -> tuple[BoolArray, Any]:
    """Return which tasks are earlier, and when the first later one began."""
    if len(log.tasks) < 4:
        count = "1 task" if len(log.tasks) == 1 else f"{len(log.tasks)} tasks"
        raise ArgumentError(
            "task",
            f"must have 4 or more tasks in the column {log.columns.task!r}, but has {count}",
        )
    order = np.argsort(starts, kind="stable")
    wanted = min(max(round(share * len(order)), 2), len(order) - 2)
    begins = np.flatnonzero(starts[order][1:] != starts[order][:-1]) + 1  # where a later time is
    begins = begins[(begins >= 2) & (begins <= len(order) - 2)]
    if not begins.size:
        raise ArgumentError(
            "time",
            f"is the same first time in {log.columns.time!r} for nearly all tasks",
            cure="leave time out to split them by the order of the log",
        )
    cut = starts[order][begins[np.abs(begins - wanted).argmin()]]
    return np.asarray(starts < cut), cut


def _before(log: Log, time: Any) -> Log:
    """Return the log as it was before a time; arms keep their places, and tasks that had not begun
    are left out.
    """
    import ibis

    when = log.source.time
    known = log.source.filter(when < ibis.literal(time, type=when.type()))
    found = fetch_table(reduced(known, log.columns))
    tasks, task = places_in(found["task"])
    arms, place = places_in(found["action"])
    arm = np.searchsorted(log.arms, arms)[place]
    order = np.lexsort([arm, task])
    sums = {**sums_of(found, log.columns), "task": task, "arm": arm}
    features = constant_in_tasks(found, log.columns.task_features, tasks, task)
    kept: Any = {name: None if each is None else each[order] for name, each in sums.items()}
    rows = int(len(order) if log.columns.summed else kept["pulls"].sum())
    return replace(log, tasks=tasks, rows=rows, features=features, **kept)


def _moment(cut: Any, kind: Any) -> Any:
    """Return a time of an array as the type of its column has it."""
    if not np.issubdtype(np.asarray(cut).dtype, np.datetime64):
        return cut.item() if isinstance(cut, np.generic) else cut
    if kind.is_date():
        return cut.astype("datetime64[D]").item()
    found: datetime = cut.astype("datetime64[us]").item()
    return found if kind.timezone is None else found.replace(tzinfo=UTC)
