"""Successes and pulls: what estimators of Beta priors read of past tasks, and their histogram."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.core.types import FloatArray, IntArray
from priorwise.fitting.columns import counts
from priorwise.fitting.statistics import PerArm

MOST_PULLS: Final = (1 << 31) - 1
"""Pulls of one arm in one task: pairs of successes and pulls up to this are distinguished by one
integer.
"""


@final
@dataclass(frozen=True, eq=False, init=False, repr=False)
class BetaStatistics(PerArm):
    """Successes and pulls of each arm in each task.

    Parameters
    ----------
    successes, pulls
        Whole numbers ``(task, arm)``; 0 pulls for an arm that a task did not pull or does not have.
    names
        Names of the arms.

    Examples
    --------
    >>> BetaStatistics(successes=[[1, 0], [2, 1]], pulls=[[3, 1], [3, 1]]).tasks
    2

    """

    family: ClassVar[str] = "beta-statistics"

    successes: IntArray
    pulls: IntArray

    def __init__(self, successes: ArrayLike, pulls: ArrayLike, *, names: Any = None) -> None:
        """Check and freeze the arrays."""
        n = counts("pulls", pulls, (None, None), MOST_PULLS)
        s = counts("successes", successes, n.shape, MOST_PULLS)
        if (s > n).any():
            task, arm = np.argwhere(s > n)[0]
            raise ArgumentError(
                "successes",
                f"must not exceed pulls, but task {task} has {s[task, arm]:g} of "
                f"{n[task, arm]:g} on arm {arm}",
            )
        self._set(successes=s.astype(np.int64), pulls=n.astype(np.int64))
        self._set(names=validation.names(names, n.shape[1]))

    @classmethod
    def addends(cls, rewards: FloatArray) -> dict[str, Any]:
        """Successes and pulls; rewards are 0 or 1."""
        if not np.isin(rewards, (0.0, 1.0)).all():
            raise ArgumentError(
                "rewards",
                "must be 0 or 1 for Bernoulli arms",
                cure="GaussianStatistics takes real rewards",
            )
        return {"successes": rewards.astype(np.int64), "pulls": 1}

    def merged(self, other: Any) -> Self:
        """Add what was seen of the same tasks."""
        made = super().merged(other)
        counts("pulls", made.pulls, made.pulls.shape, MOST_PULLS)
        return made

    def grouped(self) -> BetaGroups:
        """Count the tasks with equal successes and pulls, arm by arm, which loses nothing: the arms
        are independent.
        """
        rows = []
        for arm in range(self.arms):
            s, n = self.successes[:, arm], self.pulls[:, arm]
            base = int(n.max()) + 1
            keys, tasks = np.unique(n * base + s, return_counts=True)
            rows.append(np.stack([np.full(len(keys), arm), keys % base, keys // base, tasks]))
        return BetaGroups(*np.concatenate(rows, axis=1))


@final
@dataclass(frozen=True, eq=False, init=False, repr=False)
class BetaGroups:
    """Number of tasks for each arm and each distinct pair of successes and pulls, rows without
    pulls among them; ``a + b`` merges.

    ``arm``, ``successes``, ``pulls`` and ``tasks`` are ``(row,)``, ordered by arm.
    """

    arm: IntArray
    successes: IntArray
    pulls: IntArray
    tasks: IntArray

    def __init__(
        self, arm: ArrayLike, successes: ArrayLike, pulls: ArrayLike, tasks: ArrayLike
    ) -> None:
        """Check and freeze the rows."""
        columns = {"arm": arm, "successes": successes, "pulls": pulls, "tasks": tasks}
        checked = {
            name: counts(name, column, (None,), MOST_PULLS).astype(np.int64)
            for name, column in columns.items()
        }
        if len({len(column) for column in checked.values()}) != 1:
            raise ArgumentError("arm", "must have as many entries as successes, pulls and tasks")
        if (checked["successes"] > checked["pulls"]).any():
            raise ArgumentError("successes", "must not exceed pulls")
        order = np.lexsort([checked["successes"], checked["pulls"], checked["arm"]])
        for name, column in checked.items():
            validation.freeze(self, **{name: column[order]})
        if not np.array_equal(np.unique(self.arm), np.arange(self.arm[-1] + 1)):
            raise ArgumentError(
                "arm",
                "must have a row for each arm from 0 to the largest",
                cure="an arm without pulls has successes=0, pulls=0",
            )
        totals = np.bincount(self.arm, self.tasks)
        if (totals != totals[0]).any():
            wrong = int((totals != totals[0]).argmax())
            raise ArgumentError(
                "tasks",
                f"must add up to the same number for each arm, but arm 0 has {totals[0]:g} and "
                f"arm {wrong} has {totals[wrong]:g}",
                cure=("tasks that did not pull an arm have a row of it with successes=0, pulls=0"),
            )

    @property
    def arms(self) -> int:
        """Number of arms."""
        return int(self.arm[-1]) + 1

    @property
    def total(self) -> int:
        """Number of tasks."""
        return int(self.tasks[self.arm == 0].sum())

    def __repr__(self) -> str:
        """Sizes, not entries."""
        return f"BetaGroups(rows={len(self.arm):,}, tasks={self.total:,}, arms={self.arms})"

    def of_arm(self, arm: int) -> tuple[IntArray, IntArray, IntArray]:
        """Successes, pulls and number of tasks of one arm, ``(row,)`` each."""
        own = self.arm == arm
        return self.successes[own], self.pulls[own], self.tasks[own]

    def __add__(self, other: BetaGroups) -> BetaGroups:
        """Merge: equal rows add their tasks."""
        if not isinstance(other, BetaGroups):
            return NotImplemented
        if self.arms != other.arms:
            raise ArgumentError("other", f"must have {self.arms} arms to be merged", got=other.arms)
        mine, theirs = ((each.arm, each.pulls, each.successes) for each in (self, other))
        rows = np.concatenate([mine, theirs], axis=1)
        distinct, place = np.unique(rows, axis=1, return_inverse=True)
        tasks = np.bincount(place.ravel(), np.concatenate([self.tasks, other.tasks]))
        return BetaGroups(distinct[0], distinct[2], distinct[1], tasks)

    def __radd__(self, other: Any) -> BetaGroups:
        """Let ``sum`` merge many, which starts from 0."""
        return self if type(other) is int and other == 0 else NotImplemented
