"""Normal equations: what estimators of priors over weights read of past tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self, final

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core.runs import Run, Trajectory
from priorwise.core.statistics import PerTask, Steps, counts, played, table
from priorwise.core.types import FloatArray
from priorwise.families.linear.statistics_check import impossible

ROUNDING: Final = 1e-8
"""How far sums may be from those of any features and rewards, relative to their size."""


@final
@dataclass(frozen=True, eq=False, init=False, repr=False)
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

    def __init__(
        self, gram: ArrayLike, moments: ArrayLike, squares: ArrayLike, pulls: ArrayLike
    ) -> None:
        """Check and freeze the arrays."""
        m = table("moments", moments, (None, None))
        tasks, dim = m.shape
        g = table("gram", gram, (tasks, dim, dim))
        gap = np.abs(g - g.transpose(0, 2, 1)).max()
        if gap > 1e-8 * np.abs(g).max():
            raise ValueError(
                f"gram must be symmetric in each task, but entries differ by up to {gap:g}"
            )
        q = table("squares", squares, (tasks,))
        if q.min() < 0:
            raise ValueError(f"squares must not be negative, got {q.min():g}")
        n = counts("pulls", pulls, (tasks,))
        for task in np.flatnonzero(n == 0):
            if g[task].any() or m[task].any() or q[task]:
                raise ValueError(
                    f"gram, moments and squares must be 0 where pulls is 0, but task {task} has "
                    "some"
                )
        g, m, q = (np.ascontiguousarray(array) for array in (g, m, q))
        if (first := int(impossible(g, m, q, ROUNDING))) >= 0:
            raise ValueError(
                f"no features and rewards have the gram, moments and squares of task {first}: gram "
                "must be positive semi-definite, "
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
        """Sum up the features of the pulled arms ``(task, step, dim)`` and their rewards ``(task,
        step)``.
        """
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
            raise ValueError(
                "the run has no features: it must come from a linear contextual bandit"
            )
        return cls.from_trajectory(features[:, chosen], rewards)

    @classmethod
    def of(cls, data: Any) -> Self:
        """Return statistics as they are, and those of a kept run."""
        if isinstance(data, Run):
            return cls.from_run(data)
        if not isinstance(data, cls):
            raise TypeError(f"data must be a kept Run or {cls.__name__}, got {type(data).__name__}")
        return data


def read(prior: Any, played: Trajectory) -> LinearStatistics:
    """Sum up the features of played tasks, and their rewards."""
    if played.log is None:
        raise ValueError(
            "these tasks have no features: they do not come from a linear contextual bandit"
        )
    return LinearStatistics.from_trajectory(played.log, played.rewards)
