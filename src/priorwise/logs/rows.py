"""What the sums of a log do not tell: when its tasks began, and its single rewards."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from priorwise.core.errors import ArgumentError, option
from priorwise.core.types import BoolArray, FloatArray, IntArray
from priorwise.logs.checking import EngineError, fetch, reason
from priorwise.logs.reducing import Log
from priorwise.logs.times import faded


class Records(NamedTuple):
    """Single rewards of each row of a log, a task and an arm: those of one row after the other,
    sorted within it, as engines differ in the order in which they gather them.
    """

    rewards: FloatArray
    first: IntArray  # (row,): where those of a row begin


class Pulls(NamedTuple):
    """The pulls of a log by task, and within a task in the order in which they were made."""

    task: IntArray  # place in the tasks of the log
    row: IntArray  # its row, a task and an arm
    rewards: FloatArray
    propensity: FloatArray


def task_starts(log: Log) -> NDArray[Any]:
    """Return when each task began, ``(task,)``: its first time, or its first row where the log
    names no column of times.
    """
    table = _numbered(log)
    when = table.row if log.columns.time is None else table.time
    found = fetch(table.group_by("task").aggregate(first=when.min()))
    return np.asarray(found["first"][np.argsort(found["task"], kind="stable")])


def task_clock(log: Log) -> NDArray[Any] | None:
    """Return when each task began, ``(task,)``, or its number in the order of the log, if that
    stands for time. None if the log says neither.
    """
    if log.columns.time is not None:
        return task_starts(log)
    if not log.columns.ordered or log.gram is not None:
        return None
    return np.argsort(np.argsort(task_starts(log)))


def fading(
    log: Log, starts: NDArray[Any] | None, half_life: float, seed: int
) -> tuple[Log, NDArray[Any]]:
    """Let old tasks fade: see :func:`~priorwise.logs.times.faded`. Returns the tasks that are kept,
    and when they began.
    """
    if starts is None:
        raise ArgumentError("half_life", f"needs the column of times, {option('time', ...)}")
    kept = faded(starts, half_life, seed)
    return replace(log.part(kept), left=(*log.left, kept_in_words(kept))), starts[kept]


def kept_in_words(kept: BoolArray) -> str:
    """Say how many tasks did not fade."""
    return (
        f"{kept.sum():,} of {len(kept):,} tasks were kept, the older the fewer "
        f"({option('half_life')})"
    )


def unit_of(log: Log) -> str:
    """Return the unit of a half-life, in words."""
    name = log.columns.time
    if name is None:
        return "tasks"
    return "days" if log.source.time.type().is_temporal() else f"units of {name!r}"


def single_rewards(log: Log) -> Records:
    """Return the recorded rewards of every task and arm, of a log with one row per pull."""
    source = log.source
    lists = source.group_by(["task", "action"]).aggregate(rewards=source.reward.collect())
    try:
        table = lists.to_pyarrow()
    except Exception as error:  # each engine has errors of its own
        raise EngineError("log", f"cannot be gathered by the engine: {reason(error)}") from error
    row = log.rows_of(table["task"].to_numpy(), table["action"].to_numpy())
    listed = table["rewards"].combine_chunks()
    rewards = listed.flatten().to_numpy(zero_copy_only=False)
    owner = np.repeat(row, np.diff(listed.offsets.to_numpy()))
    order = np.lexsort([rewards, owner])
    order = order[np.searchsorted(owner[order], 0) :]  # not those of other tasks
    counts = np.bincount(owner[order], minlength=len(log.task))
    return Records(rewards[order].astype(np.float64), np.cumsum(counts) - counts)


def ordered_pulls(log: Log) -> Pulls:
    """Return the pulls of a log that names a column of propensities."""
    table = _numbered(log)
    found = fetch(table.drop(*(name for name in table.columns if name.startswith("text_"))))
    row = log.rows_of(found["task"], found["action"])
    task = log.task[row]
    keys = [found["row"], *([found["time"]] if "time" in found else []), task]
    order = np.lexsort(keys)
    order = order[row[order] >= 0]
    return Pulls(
        task[order], row[order], found["reward"][order], np.asarray(found["propensity"])[order]
    )


def _numbered(log: Log) -> Any:
    """Rows with their number, in the order of the log."""
    import ibis

    return log.source.mutate(row=ibis.row_number())
