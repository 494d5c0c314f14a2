"""What all per-task statistics share: a task axis that comes first, subsets of tasks, and joining
two sets of them.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import sizes, validation
from priorwise.core.runs import Run
from priorwise.core.types import BoolArray, FloatArray, IntArray

Steps = int | slice | None
"""Which pulls of a task to read: the first so many, a slice of them, or None for all."""

MOST_COUNTED: Final = 1 << 53
"""Counts up to this are exact as floats."""


class PerTask:
    """A frozen dataclass whose array fields all have the task axis first; other fields hold for all
    tasks.

    ``a + b`` has the tasks of both, ``len(a)`` is their number, ``a[i:j]`` and ``a.take(index)``
    are some of them.
    """

    __array_ufunc__ = None  # NumPy arrays do not add themselves to the tasks, one by one

    def __len__(self) -> int:
        """Number of tasks."""
        return self.tasks

    def __repr__(self) -> str:
        """Sizes, not entries: there may be millions."""
        width = next(
            (
                f", {name}={getattr(self, name)}"
                for name in ("arms", "dim", "support")
                if hasattr(self, name)
            ),
            "",
        )
        pulls = getattr(self, "pulls", None)
        total = "" if pulls is None else f", pulls={pulls.sum():,.15g}"
        return f"{type(self).__name__}(tasks={self.tasks:,}{width}{total})"

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return len(next(array for array in self._columns().values() if array is not None))

    def take(self, index: ArrayLike | slice) -> Self:
        """Return some of the tasks: a slice, a mask, or indices, which may repeat (for a
        bootstrap).
        """
        rows = np.atleast_1d(np.arange(self.tasks)[_index(index, self.tasks)])
        if rows.size == 0:
            raise IndexError(
                f"index {validation.shown(index)} leaves none of the {self.tasks} tasks; "
                "statistics need at least one"
            )
        return self._with(
            {
                name: None if array is None else array[rows]
                for name, array in self._columns().items()
            }
        )

    def __getitem__(self, index: ArrayLike | slice) -> Self:
        """Return some of the tasks."""
        if isinstance(index, tuple):
            raise IndexError(
                f"index has one axis, the tasks, got {validation.shown(index)}; a list of numbers "
                "chooses several"
            )
        return self.take(index)

    def __add__(self, other: Self) -> Self:
        """Join two sets of tasks."""
        return self._join(other) if type(other) is type(self) else NotImplemented

    def __radd__(self, other: Any) -> Self:
        """Let ``sum`` join many, which starts from 0."""
        return self if type(other) is int and other == 0 else NotImplemented

    def _join(self, other: Any) -> Self:
        joined: dict[str, Any] = {}
        theirs = other._columns()
        for name, mine in self._columns().items():
            yours = theirs[name]
            if (mine is None) != (yours is None):
                raise ValueError(
                    f"cannot join: one of the two has {name} and the other has not; leave them out "
                    "of both"
                )
            if mine is None or yours is None:
                joined[name] = None
                continue
            if mine.shape[1:] != yours.shape[1:]:
                raise ValueError(
                    f"cannot join: {name} is {mine.shape} here and {yours.shape} there; all but "
                    "the tasks must agree"
                )
            joined[name] = np.concatenate([mine, yours])
        return self._with(joined)

    def _columns(self) -> dict[str, Any]:
        """Fields with a task axis; None where one was not given."""
        return {
            each.name: getattr(self, each.name)
            for each in fields(self)  # type: ignore[arg-type]
            if not each.name.startswith("_")
        }

    def _with(self, columns: dict[str, Any]) -> Self:
        return type(self)(**columns)


def table(name: str, value: ArrayLike, shape: tuple[int | None, ...]) -> FloatArray:
    """Return a finite array with the task axis first, which must hold at least one task."""
    given = validation.plain_array(name, value)
    if given.ndim and len(given) == 0:
        raise ValueError(f"{name} holds no task; statistics need at least one")
    # row by row, as compiled code reads it
    array = np.ascontiguousarray(validation.matrix(name, given, shape))
    array.setflags(write=False)
    return array


def counts(
    name: str, value: ArrayLike, shape: tuple[int | None, ...], most: int = MOST_COUNTED
) -> FloatArray:
    """Return non-negative whole numbers, as floats, with the task axis first."""
    array = table(name, value, shape)
    if array.min() < 0 or not np.array_equal(array, np.rint(array)):
        wrong = array[(array < 0) | (array != np.rint(array))][0]
        raise ValueError(f"{name} must be non-negative whole numbers, got {wrong:g}")
    if array.max() > most:
        raise ValueError(f"{name} must not exceed {most:,}, got {array.max():g}")
    return array


def _index(index: ArrayLike | slice, tasks: int) -> IntArray | BoolArray | slice:
    """Check a slice, a mask or indices of tasks."""
    if isinstance(index, slice):
        _check_slice("index", index)
        return index
    rows: IntArray | BoolArray = validation.plain_array("index", index)
    if rows.dtype == np.bool_ and rows.shape != (tasks,):
        raise IndexError(
            f"index is a mask, which needs one entry for each of the {tasks} tasks, got shape "
            f"{rows.shape}"
        )
    if rows.dtype.kind not in "biu" or rows.ndim > 1:
        raise IndexError(
            f"index must be a slice, a mask or whole numbers, got {rows.dtype} of shape "
            f"{rows.shape}"
        )
    if rows.size and rows.dtype.kind != "b" and not -tasks <= rows.min() <= rows.max() < tasks:
        wrong = rows.min() if rows.min() < -tasks else rows.max()
        raise IndexError(
            f"there are {tasks} tasks, so that an index runs from 0 to {tasks - 1}, got {wrong}"
        )
    return rows


def _check_slice(name: str, value: slice) -> None:
    try:
        value.indices(1)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{name} must be a slice of whole numbers, got {validation.shown(value)}: {error}"
        ) from None


def zero_where_unpulled(name: str, value: FloatArray, pulls: FloatArray) -> FloatArray:
    """Check that an arm that was never pulled in a task has nothing to report."""
    bad = (pulls == 0) & (value != 0)
    if bad.any():
        task, arm = np.argwhere(bad)[0]
        raise ValueError(
            f"{name} must be 0 where pulls is 0, but task {task} has {value[task, arm]:g} on arm "
            f"{arm}"
        )
    return value


def played(run: Run, steps: Steps) -> tuple[IntArray, FloatArray, slice]:
    """Return actions and rewards ``(task, step)`` of a kept run, and the slice of the steps that
    they are.
    """
    if not isinstance(run, Run):
        raise TypeError(f"run must be a Run of simulate(..., keep=True), got {type(run).__name__}")
    if isinstance(steps, slice):
        _check_slice("steps", steps)
    chosen = (
        steps
        if isinstance(steps, slice)
        else slice(None if steps is None else validation.count("steps", steps))
    )
    actions = run.actions[:, chosen]
    if actions.shape[1] == 0:
        raise ValueError(f"steps={steps!r} leaves no pull of the {run.horizon} that each task has")
    return actions, run.rewards[:, chosen], chosen


def trajectory(actions: ArrayLike, rewards: ArrayLike, arms: int) -> tuple[IntArray, FloatArray]:
    """Check actions and rewards ``(task, step)``."""
    arms = validation.count("arms", arms)
    chosen = validation.plain_array("actions", actions)
    if chosen.dtype.kind not in "iu" or chosen.ndim != 2 or chosen.size == 0:
        chosen = counts("actions", actions, (None, None)).astype(np.int64)
    earned = table("rewards", rewards, chosen.shape)
    if chosen.min() < 0 or chosen.max() >= arms:
        wrong = chosen.min() if chosen.min() < 0 else chosen.max()
        raise ValueError(f"actions must lie in 0..{arms - 1} for arms={arms}, got {wrong}")
    cells = sizes.as_float(arms) * len(chosen)
    sizes.check_memory(
        f"arms={sizes.amount(arms)} for {len(chosen):,} tasks",
        8.0 * sizes.ARRAYS * cells,
        "lower arms",
    )
    return chosen, earned


def arms_played(prior: Any, actions: IntArray) -> int:
    """Return the arms of a prior; of one without a fixed number, as many as were seen."""
    arms = getattr(prior, "arms", None)
    return int(actions.max()) + 1 if arms is None else int(arms)


def by_arm(actions: IntArray, weights: FloatArray | None, arms: int) -> FloatArray:
    """Sum weights ``(task, step)`` (None: ones) over the pulls of each arm: ``(task, arm)``."""
    tasks = len(actions)
    cells = (np.arange(tasks)[:, None] * arms + actions).ravel()
    flat = None if weights is None else weights.ravel()
    return (
        np.bincount(cells, flat, minlength=tasks * arms)
        .reshape(tasks, arms)
        .astype(np.float64, copy=False)
    )
