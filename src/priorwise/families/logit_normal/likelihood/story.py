"""Likelihood of exchangeable arms: a level of the task and a deviation of the arm, by nested
quadrature, as a function of the mean and the two standard deviations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, final

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.families.beta.statistics import BetaStatistics

NODES: Final = 13
"""Of each of the two integrals: log likelihoods of tasks are right to about 1e-6 for
standard deviations up to 1, and 1e-3 at 3.
"""


@lru_cache(maxsize=4)
def _hermite(size: int) -> tuple[FloatArray, FloatArray]:
    x, w = np.polynomial.hermite_e.hermegauss(size)
    return x, np.log(w) + 0.5 * x * x - 0.5 * np.log(2.0 * np.pi)


def evaluated(
    s: FloatArray,
    n: FloatArray,
    at: FloatArray,
    nodes: int = NODES,
    offsets: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Log likelihood of each task ``(task,)`` and its derivatives ``(task, 3)``, at mean, standard
    deviation of the level and of the deviations. ``offsets`` ``(task,)`` are added to the mean.
    """
    from priorwise.families.logit_normal.likelihood.kernel import evaluate

    mean, shared, own = (float(each) for each in at)
    x, logs = _hermite(nodes)
    # without a level there is nothing to integrate
    levels = (x, logs) if shared else (np.zeros(1), np.zeros(1))
    won, of = _lanes(s), _lanes(n)
    groups, _, lanes = won.shape
    means = np.full((groups, lanes), mean)
    if offsets is not None:
        means.ravel()[: len(s)] += offsets
    values, scores = np.empty((groups, lanes)), np.empty((groups, 3, lanes))
    evaluate(won, of, means, shared, own, *levels, x, np.exp(logs), values, scores)
    return values.ravel()[: len(s)], scores.transpose(0, 2, 1).reshape(-1, 3)[: len(s)]


def _lanes(counts: FloatArray) -> FloatArray:
    """Groups of tasks that are evaluated together, ``(group, arm, lane)``."""
    from priorwise.kernels.simd import WIDTH

    more = -len(counts) % WIDTH
    padded = np.pad(counts, [(0, more), (0, 0)]).reshape(-1, WIDTH, counts.shape[1])
    return np.ascontiguousarray(padded.transpose(0, 2, 1))


@final
@dataclass(frozen=True, eq=False)
class Rows:
    """Distinct tasks up to the order of their arms, and how many there are of each; or, where they
    have features z, single tasks.
    """

    s: FloatArray  # (row, arm)
    n: FloatArray  # (row, arm)
    tasks: FloatArray  # (row,)
    z: FloatArray | None = None  # (row, feature)

    @property
    def features(self) -> int:
        """Number of features."""
        return 0 if self.z is None else self.z.shape[1]

    @classmethod
    def of(cls, successes: Any, pulls: Any, z: FloatArray | None = None) -> Rows:
        """Sort the arms of each task, and gather equal tasks; arms without pulls come first."""
        if z is not None:
            seen = pulls.any(axis=1)
            s, n = (each[seen].astype(np.float64) for each in (successes, pulls))
            return cls(s, n, np.ones(len(s)), z[seen])
        codes = np.sort(pulls * (1 << 31) + successes, axis=1)
        codes = codes[:, codes.any(axis=0)] if codes.any() else codes[:, :1]
        rows, counts = np.unique(codes, axis=0, return_counts=True)
        kept = rows.any(axis=1)
        rows, counts = rows[kept], counts[kept]
        return cls(
            np.ascontiguousarray(rows % (1 << 31)).astype(np.float64),
            np.ascontiguousarray(rows >> 31).astype(np.float64),
            counts.astype(np.float64),
        )


def log_marginal(
    mean: float,
    var: float,
    correlation: float,
    data: BetaStatistics,
    offsets: FloatArray | None = None,
) -> FloatArray:
    """Log probability of each task's rewards, ``(task,)``; for correlations from 0. ``offsets``
    ``(task,)`` are added to the mean.
    """
    return scored(mean, var, correlation, data, offsets)[0]


def scored(
    mean: float,
    var: float,
    correlation: float,
    data: BetaStatistics,
    offsets: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return the same, and its derivatives in the mean and the standard deviations of level and
    deviation, ``(task, 3)``.
    """
    at = np.array([mean, np.sqrt(var * correlation), np.sqrt(var * (1.0 - correlation))])
    s, n = (np.ascontiguousarray(each.astype(np.float64)) for each in (data.successes, data.pulls))
    return evaluated(s, n, at, offsets=offsets)
