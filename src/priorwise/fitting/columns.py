"""Arrays with the task axis first, checked: what statistics are made of."""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import sizes, validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.trajectories import Trajectory
from priorwise.core.types import BoolArray, FloatArray, IntArray
from priorwise.core.validation import Shape

Steps = int | slice | None
"""Which pulls of a task to read: the first so many, a slice of them, or None for all."""

MOST_COUNTED: Final = 1 << 53  # counts up to this are exact as floats


def table(name: str, value: ArrayLike, shape: Shape) -> FloatArray:
    """Return a finite array with the task axis first, which must hold at least one task."""
    given = validation.plain_array(name, value)
    if given.ndim and len(given) == 0:
        raise ArgumentError(name, "holds no task", cure="statistics need at least one")
    # row by row, as compiled code reads it
    array = np.ascontiguousarray(validation.matrix(name, given, shape))
    array.setflags(write=False)
    return array


def counts(name: str, value: ArrayLike, shape: Shape, most: int = MOST_COUNTED) -> FloatArray:
    """Return non-negative whole numbers, as floats, with the task axis first."""
    array = table(name, value, shape)
    if array.min() < 0 or not np.array_equal(array, np.rint(array)):
        wrong = array[(array < 0) | (array != np.rint(array))][0]
        raise ArgumentError(name, "must be non-negative whole numbers", got=wrong)
    if array.max() > most:
        raise ArgumentError(name, f"must not exceed {most:,}", got=array.max())
    return array


def chosen_tasks(index: ArrayLike | slice, tasks: int) -> IntArray | BoolArray | slice:
    """Check a slice, a mask or indices of tasks."""
    if isinstance(index, slice):
        _check_slice("index", index)
        return index
    rows: IntArray | BoolArray = validation.plain_array("index", index)
    if rows.shape == (0,):
        rows = rows.astype(np.int64)  # an empty list has no type
    if rows.dtype == np.bool_ and rows.shape != (tasks,):
        raise IndexError(
            f"index is a mask, which needs one entry for each of {tasks} tasks, got {rows.shape}"
        )
    if rows.dtype.kind not in "biu" or rows.ndim > 1:
        raise IndexError(
            f"index must be a slice, a mask or whole numbers, got {rows.dtype} {rows.shape}"
        )
    if rows.size and rows.dtype.kind != "b" and not -tasks <= rows.min() <= rows.max() < tasks:
        wrong = rows.min() if rows.min() < -tasks else rows.max()
        raise IndexError(f"of {tasks} tasks an index runs from 0 to {tasks - 1}, got {wrong}")
    return rows


def _check_slice(name: str, value: slice) -> None:
    try:
        value.indices(1)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(
            name, f"must be a slice of whole numbers: {error}", got=value
        ) from None


def zero_where_unpulled(name: str, value: FloatArray, pulls: FloatArray) -> FloatArray:
    """Check that an arm that was never pulled in a task has nothing to report."""
    bad = (pulls == 0) & (value != 0)
    if bad.any():
        task, arm = np.argwhere(bad)[0]
        raise ArgumentError(
            name,
            f"must be 0 where pulls is 0, but task {task} has {value[task, arm]:g} on arm {arm}",
        )
    return value


def some_pulls(played: Trajectory, steps: Steps) -> Trajectory:
    """Return only the first ``steps`` pulls of each task, or a slice of them."""
    if isinstance(steps, slice):
        _check_slice("steps", steps)
        chosen = steps
    else:
        chosen = slice(None if steps is None else validation.count("steps", steps))
    actions = played.actions[:, chosen]
    if actions.shape[1] == 0:
        raise ArgumentError(
            "steps", f"leaves no pull of {played.actions.shape[1]} in a task", got=steps
        )
    log = None if played.log is None else played.log[:, chosen]
    return Trajectory(actions, played.rewards[:, chosen], log)


def trajectory(actions: ArrayLike, rewards: ArrayLike, arms: int) -> tuple[IntArray, FloatArray]:
    """Check actions and rewards ``(task, step)``."""
    arms = validation.count("arms", arms)
    chosen = validation.plain_array("actions", actions)
    if chosen.dtype.kind not in "iu" or chosen.ndim != 2 or chosen.size == 0:
        chosen = counts("actions", actions, (None, None)).astype(np.int64)
    earned = table("rewards", rewards, chosen.shape)
    if chosen.min() < 0 or chosen.max() >= arms:
        wrong = chosen.min() if chosen.min() < 0 else chosen.max()
        raise ArgumentError("actions", f"must lie in 0..{arms - 1} for arms={arms}", got=wrong)
    size = f"{sizes.amount(arms)} for {len(chosen):,} tasks"
    cells = sizes.as_float(arms) * len(chosen)
    sizes.check_memory("arms", size, 8.0 * sizes.ARRAYS * cells, "lower arms")
    return chosen, earned


def by_arm(actions: IntArray, weights: FloatArray | None, arms: int) -> FloatArray:
    """Sum weights ``(task, step)`` (None: ones) over the pulls of each arm: ``(task, arm)``."""
    tasks = len(actions)
    cells = (np.arange(tasks)[:, None] * arms + actions).ravel()
    flat = None if weights is None else weights.ravel()
    sums = np.bincount(cells, flat, minlength=tasks * arms).reshape(tasks, arms)
    return sums.astype(np.float64, copy=False)


class Pulls(NamedTuple):
    """At most one pull of each task."""

    tasks: IntArray  # those that pulled
    actions: IntArray
    rewards: FloatArray
    signal: Any  # of all tasks

    def check(self, arms: int) -> None:
        """Refuse arms that there are none of."""
        if (most := self.actions.max(initial=-1)) >= arms:
            raise ArgumentError("actions", f"must lie in 0..{arms - 1} for arms={arms}", got=most)


def pulls_of(actions: ArrayLike, rewards: ArrayLike, signal: Any, tasks: int) -> Pulls:
    """Check what each task pulled, if it did."""
    what = f"whole numbers, one for each of the {tasks} tasks (-1 for none)"
    chosen = validation.shaped("actions", actions, (tasks,), "iu", what)
    if (chosen < -1).any():
        raise ArgumentError("actions", f"must be {what}", got=chosen.min())
    earned = validation.numbers("rewards", rewards)
    if earned.shape != (tasks,):
        raise ArgumentError(
            "rewards", f"must have one entry for each of the {tasks} tasks", got=earned.shape
        )
    rows = np.flatnonzero(chosen >= 0)
    known = validation.vector("rewards", earned[rows], rows.size) if rows.size else earned[rows]
    return Pulls(rows, chosen[rows].astype(np.int64), known, signal)
