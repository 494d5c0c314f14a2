"""What estimators read of past tasks: sufficient statistics, one row a task, that merge exactly.

``GaussianStatistics`` stands in a file of its own and is imported here so that all four are found in one place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self, final

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.types import FloatArray, IntArray
from priorwise.meta.gaussian_groups import GaussianGroups
from priorwise.meta.gaussian_statistics import GaussianStatistics
from priorwise.meta.linear_kernel import impossible
from priorwise.meta.tasks import PerTask, Steps, by_arm, counts, played, table, trajectory
from priorwise.priors.finite import FinitePrior
from priorwise.simulate.results import Run

__all__ = ["BetaGroups", "BetaStatistics", "FiniteStatistics", "GaussianGroups", "GaussianStatistics", "LinearStatistics"]

ROUNDING: Final = 1e-8
"""How far sums may be from those of any features and rewards, relative to their size."""


@final
@dataclass(frozen=True, eq=False, init=False)
class BetaStatistics(PerTask):
    """Successes and pulls of each arm in each task.

    Parameters
    ----------
    successes, pulls
        Whole numbers ``(task, arm)``; 0 pulls for an arm that a task did not pull or does not have.

    Examples
    --------
    >>> BetaStatistics(successes=[[1, 0], [2, 1]], pulls=[[3, 1], [3, 1]]).tasks
    2

    """

    successes: IntArray
    pulls: IntArray

    def __init__(self, successes: ArrayLike, pulls: ArrayLike) -> None:
        """Check and freeze the arrays."""
        n = counts("pulls", pulls, (None, None))
        s = counts("successes", successes, n.shape)
        if (s > n).any():
            task, arm = np.argwhere(s > n)[0]
            raise ValueError(
                f"successes must not exceed pulls, but task {task} has {s[task, arm]:g} of {n[task, arm]:g} on arm {arm}"
            )
        for name, array in (("successes", s), ("pulls", n)):
            whole = array.astype(np.int64)
            whole.setflags(write=False)
            object.__setattr__(self, name, whole)

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.pulls.shape[1]

    @classmethod
    def from_trajectory(cls, actions: ArrayLike, rewards: ArrayLike, *, arms: int) -> Self:
        """Sum up actions and rewards ``(task, step)``; rewards are 0 or 1."""
        chosen, earned = trajectory(actions, rewards, arms)
        if not np.isin(earned, (0.0, 1.0)).all():
            raise ValueError("rewards must be 0 or 1 for Bernoulli arms; GaussianStatistics takes real rewards")
        return cls(by_arm(chosen, earned, arms), by_arm(chosen, None, arms))

    @classmethod
    def from_run(cls, run: Run, *, arms: int, steps: Steps = None) -> Self:
        """Sum up a kept run, or only its first ``steps`` pulls, or a slice of them."""
        actions, rewards, _ = played(run, steps)
        return cls.from_trajectory(actions, rewards, arms=arms)

    @classmethod
    def of(cls, data: Any, *, arms: int | None = None) -> Self:
        """Return statistics as they are, and those of a kept run; without ``arms`` these are the largest action plus 1."""
        if isinstance(data, Run):
            return cls.from_run(data, arms=int(data.actions.max()) + 1 if arms is None else arms)
        if not isinstance(data, cls):
            raise TypeError(f"data must be a kept Run or {cls.__name__}, got {type(data).__name__}")
        if arms is not None and data.arms != arms:
            raise ValueError(f"the statistics have {data.arms} arms, but arms={arms} was asked for")
        return data

    def grouped(self) -> BetaGroups:
        """Count the tasks with equal successes and pulls, arm by arm, which loses nothing: the arms are independent."""
        rows = []
        for arm in range(self.arms):
            base = int(self.pulls[:, arm].max()) + 1
            keys, tasks = np.unique(self.pulls[:, arm] * base + self.successes[:, arm], return_counts=True)
            rows.append(np.stack([np.full(len(keys), arm), keys % base, keys // base, tasks]))
        return BetaGroups(*np.concatenate(rows, axis=1))


@final
@dataclass(frozen=True, eq=False, init=False)
class BetaGroups:
    """Number of tasks for each arm and each distinct pair of successes and pulls, rows without pulls among them; ``a + b`` merges.

    ``arm``, ``successes``, ``pulls`` and ``tasks`` are ``(row,)``, ordered by arm.
    """

    arm: IntArray
    successes: IntArray
    pulls: IntArray
    tasks: IntArray

    def __init__(self, arm: ArrayLike, successes: ArrayLike, pulls: ArrayLike, tasks: ArrayLike) -> None:
        """Check and freeze the rows."""
        columns = {"arm": arm, "successes": successes, "pulls": pulls, "tasks": tasks}
        checked = {name: counts(name, column, (None,)).astype(np.int64) for name, column in columns.items()}
        if len({len(column) for column in checked.values()}) != 1:
            raise ValueError("arm, successes, pulls and tasks must have one entry a row, but their lengths differ")
        if (checked["successes"] > checked["pulls"]).any():
            raise ValueError("successes must not exceed pulls")
        order = np.lexsort([checked["successes"], checked["pulls"], checked["arm"]])
        for name, column in checked.items():
            object.__setattr__(self, name, column[order])
        if not np.array_equal(np.unique(self.arm), np.arange(self.arm[-1] + 1)):
            raise ValueError("each arm from 0 to the largest needs a row; an arm without pulls has successes=0, pulls=0")
        totals = np.bincount(self.arm, self.tasks)
        if (totals != totals[0]).any():
            wrong = int((totals != totals[0]).argmax())
            raise ValueError(
                f"tasks must add up to the same number for each arm, but arm 0 has {totals[0]:g} and arm {wrong} has "
                f"{totals[wrong]:g}; tasks that did not pull an arm have a row of it with successes=0, pulls=0"
            )

    @property
    def arms(self) -> int:
        """Number of arms."""
        return int(self.arm[-1]) + 1

    @property
    def total(self) -> int:
        """Number of tasks."""
        return int(self.tasks[self.arm == 0].sum())

    def of_arm(self, arm: int) -> tuple[IntArray, IntArray, IntArray]:
        """Successes, pulls and number of tasks of one arm, ``(row,)`` each."""
        own = self.arm == arm
        return self.successes[own], self.pulls[own], self.tasks[own]

    def __add__(self, other: BetaGroups) -> BetaGroups:
        """Merge: equal rows add their tasks."""
        if not isinstance(other, BetaGroups):
            return NotImplemented
        if self.arms != other.arms:
            raise ValueError(f"cannot merge {self.arms} arms with {other.arms}")
        names = ("arm", "pulls", "successes")
        rows = np.concatenate([np.stack([getattr(each, name) for name in names], axis=1) for each in (self, other)])
        distinct, place = np.unique(rows, axis=0, return_inverse=True)
        tasks = np.bincount(place.ravel(), np.concatenate([self.tasks, other.tasks]))
        return BetaGroups(distinct[:, 0], distinct[:, 2], distinct[:, 1], tasks)

    def __radd__(self, other: Any) -> BetaGroups:
        """Let ``sum`` merge many, which starts from 0."""
        return self if type(other) is int and other == 0 else NotImplemented


@final
@dataclass(frozen=True, eq=False, init=False)
class LinearStatistics(PerTask):
    """Normal equations of each task of a linear contextual bandit.

    Parameters
    ----------
    gram
        ``X'X`` over the features of the pulled arms, ``(task, dim, dim)``.
    moments
        ``X'r``, ``(task, dim)``.
    squares
        ``r'r``, ``(task,)``.
    pulls
        Number of pulls, ``(task,)``.

    """

    gram: FloatArray
    moments: FloatArray
    squares: FloatArray
    pulls: FloatArray

    def __init__(self, gram: ArrayLike, moments: ArrayLike, squares: ArrayLike, pulls: ArrayLike) -> None:
        """Check and freeze the arrays."""
        m = table("moments", moments, (None, None))
        tasks, dim = m.shape
        g = table("gram", gram, (tasks, dim, dim))
        gap = np.abs(g - g.transpose(0, 2, 1)).max()
        if gap > 1e-8 * np.abs(g).max():
            raise ValueError(f"gram must be symmetric in each task, but entries differ by up to {gap:g}")
        q = table("squares", squares, (tasks,))
        if q.min() < 0:
            raise ValueError(f"squares must not be negative, got {q.min():g}")
        n = counts("pulls", pulls, (tasks,))
        for task in np.flatnonzero(n == 0):
            if g[task].any() or m[task].any() or q[task]:
                raise ValueError(f"gram, moments and squares must be 0 where pulls is 0, but task {task} has some")
        g, m, q = (np.ascontiguousarray(array) for array in (g, m, q))
        if (first := int(impossible(g, m, q, ROUNDING))) >= 0:
            raise ValueError(
                f"no features and rewards have the gram, moments and squares of task {first}: gram must be positive semi-definite, "
                "and squares at least what the regression on the features explains"
            )
        for name, array in (("gram", g), ("moments", m), ("squares", q), ("pulls", n)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @property
    def dim(self) -> int:
        """Number of features."""
        return self.moments.shape[1]

    @classmethod
    def from_trajectory(cls, features: ArrayLike, rewards: ArrayLike) -> Self:
        """Sum up the features of the pulled arms ``(task, step, dim)`` and their rewards ``(task, step)``."""
        x = table("features", features, (None, None, None))
        r = table("rewards", rewards, x.shape[:2])
        gram = x.transpose(0, 2, 1) @ x
        moments = np.einsum("tsj,ts->tj", x, r)
        return cls(gram, moments, np.einsum("ts,ts->t", r, r), np.full(len(r), r.shape[1]))

    @classmethod
    def from_run(cls, run: Run, *, steps: Steps = None) -> Self:
        """Sum up a kept run, or only its first ``steps`` pulls, or a slice of them."""
        _, rewards, chosen = played(run, steps)
        features = None if run.trajectory is None else run.trajectory.log
        if features is None:
            raise ValueError("the run has no features: it must come from a linear contextual bandit")
        return cls.from_trajectory(features[:, chosen], rewards)

    @classmethod
    def of(cls, data: Any) -> Self:
        """Return statistics as they are, and those of a kept run."""
        if isinstance(data, Run):
            return cls.from_run(data)
        if not isinstance(data, cls):
            raise TypeError(f"data must be a kept Run or {cls.__name__}, got {type(data).__name__}")
        return data


@final
@dataclass(frozen=True, eq=False, init=False)
class FiniteStatistics(PerTask):
    """Log likelihood of each candidate task, ``(task, support)``; minus infinity where a candidate is excluded."""

    log_likelihood: FloatArray

    def __init__(self, log_likelihood: ArrayLike) -> None:
        """Check and freeze the table."""
        values = validation.numbers("log_likelihood", log_likelihood)
        excluded = np.isneginf(values)
        checked = table("log_likelihood", np.where(excluded, 0.0, values), (None, None))
        final_values = np.where(excluded, -np.inf, checked)
        final_values.setflags(write=False)
        object.__setattr__(self, "log_likelihood", final_values)

    @property
    def support(self) -> int:
        """Number of candidates."""
        return self.log_likelihood.shape[1]

    @classmethod
    def from_trajectory(cls, actions: ArrayLike, rewards: ArrayLike, candidates: FinitePrior) -> Self:
        """Add up the log densities of actions and rewards ``(task, step)`` under each candidate of a prior's support.

        The prior's probabilities are not used. Densities are exact, normal ones with their constant, so that they can be
        compared with those of other families; noiseless rewards have probability 1 or 0.
        """
        if not isinstance(candidates, FinitePrior):
            raise TypeError(f"candidates must be a FinitePrior, whose support and noise are used, got {type(candidates).__name__}")
        chosen, earned = trajectory(actions, rewards, candidates.arms)
        total = np.zeros((len(chosen), candidates.support))
        for step in range(chosen.shape[1]):
            total += candidates.log_likelihood(chosen[:, step], earned[:, step])
        if candidates.noise_var is not None:
            total -= 0.5 * np.log(2.0 * np.pi * candidates.noise_var)[chosen].sum(axis=1, keepdims=True)
        return cls(total)

    @classmethod
    def from_run(cls, run: Run, candidates: FinitePrior, *, steps: Steps = None) -> Self:
        """Read a kept run, or only its first ``steps`` pulls, or a slice of them."""
        actions, rewards, _ = played(run, steps)
        return cls.from_trajectory(actions, rewards, candidates)
