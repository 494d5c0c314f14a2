"""Weights of a mixture with known components: likelihood, maximum and information.

The likelihood ``sum_t log sum_s p_s L_ts`` is concave, so there is one maximum. With M tasks,
maximising it over the simplex is the same as maximising it minus ``M sum_s p_s`` over positive p,
which Newton's method does without a constraint.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final, final

import numpy as np
from scipy.special import logsumexp

from priorwise.core.newton import Spot, climb
from priorwise.core.types import BoolArray, FloatArray
from priorwise.families.finite.prior import FinitePrior
from priorwise.families.finite.statistics import FiniteStatistics

UNKNOWN: Final = 0.25
"""What the data are taken to say, in tasks, where they say nothing: a relative standard error of
2.
"""


@final
@dataclass(frozen=True, eq=False)
class MixtureObjective:
    """``sum_s counts_s log p_s + sum_t log sum_s p_s L_ts``: identified tasks and pseudo-counts
    first, then the others.
    """

    counts: FloatArray  # (support,), identified tasks plus the pseudo-count
    pseudo: float
    likelihoods: FloatArray  # (task, support), each row up to a factor

    @classmethod
    def of(cls, table: FloatArray, pseudo: float) -> MixtureObjective:
        """Count the tasks with one candidate left."""
        identified = np.isfinite(table).sum(axis=1) == 1
        counts = np.isfinite(table[identified]).sum(axis=0) + pseudo
        others = table[~identified]
        return cls(
            counts, pseudo, np.exp(others - others.max(axis=1, initial=-np.inf, keepdims=True))
        )

    @property
    def total(self) -> float:
        """Number of tasks and pseudo-tasks, M."""
        return float(self.counts.sum()) + len(self.likelihoods)

    def value(self, p: FloatArray, extra: float = 0.0) -> float:
        """The objective, minus ``M sum p``, plus ``extra sum log p``."""
        if (p <= 0.0).any():
            return -np.inf
        weights = self.counts + extra
        used = weights > 0
        inside = float(weights[used] @ np.log(p[used]) + np.log(self.likelihoods @ p).sum())
        return inside - (weights.sum() + len(self.likelihoods)) * float(p.sum())

    def slopes(self, p: FloatArray, extra: float = 0.0) -> tuple[FloatArray, FloatArray]:
        """Gradient and information of :meth:`value`."""
        weights = self.counts + extra
        ratio = self.likelihoods / (self.likelihoods @ p)[:, None]
        gradient = weights / p + ratio.sum(axis=0) - (weights.sum() + len(self.likelihoods))
        return gradient, np.diag(weights / p**2) + ratio.T @ ratio

    def maximise(self, start: FloatArray, limit: int = 500) -> tuple[FloatArray, bool, int]:
        """Newton's method with backtracking; where probabilities may be 0, through ever smaller
        pseudo-counts.
        """
        if not len(self.likelihoods):
            return self.counts / self.total, True, 0
        vanishing = bool((self.counts == 0).any())
        p, iterations, converged = start, 0, True
        for extra in np.append(self.total * 10.0 ** -np.arange(2, 13, 2.0), 0.0)[
            0 if vanishing else -1 :
        ]:
            if vanishing and extra == 0.0:
                break
            found = climb(partial(self._at, extra=float(extra)), p, limit=limit)
            p = found.place.x
            converged, iterations = converged and found.converged, iterations + found.iterations
        # p_s times its slack is now the last pseudo-count: the smaller of the two is 0
        if vanishing:
            slack = -self.slopes(p)[0] / self.total
            p = np.where((self.counts == 0) & (p < slack), 0.0, p)
        return p / p.sum(), converged, iterations

    def _at(self, p: FloatArray, extra: float) -> Spot:
        return Spot(p, self.value(p, extra), partial(self.slopes, extra=extra))

    def spreads(self, p: FloatArray) -> tuple[FloatArray, bool]:
        """Covariance of relative errors of unscaled probabilities, ``(support, support)``, and
        whether all of it is known.

        It is the inverse of the information in units of p, ``diag(counts) + sum_t q_t q_t'`` with
        q_t the posterior of a task: over positive p that need not sum to 1, so that identified
        tasks give independent gammas. Eigenvalues count as at least a quarter of a task. Entries of
        probabilities that are 0 are 0.
        """
        kept: BoolArray = p > 0
        posteriors = self.likelihoods[:, kept] * p[kept]
        posteriors /= posteriors.sum(axis=1, keepdims=True)
        values, axes = np.linalg.eigh(np.diag(self.counts[kept]) + posteriors.T @ posteriors)
        out = np.zeros((len(p), len(p)))
        out[np.ix_(kept, kept)] = axes / np.maximum(values, UNKNOWN) @ axes.T
        return out, bool(values[0] > 1e-9 * values[-1])

    def without_each(self, p: FloatArray) -> FloatArray:
        """How much the log likelihood, pseudo-counts aside, gains when a candidate is left out,
        ``(support,)``; 0 if p is 0.
        """
        identified = self.counts - self.pseudo
        rest = 1.0 - p
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = -(identified.sum() + len(self.likelihoods)) * np.log(rest)
            share = self.likelihoods * p / (self.likelihoods @ p)[:, None]
            gain += np.log1p(-np.minimum(share, 1.0)).sum(axis=0)
        return np.where((identified > 0) | (rest <= 0), -np.inf, gain)


def log_marginal_likelihood(prior: FinitePrior, statistics: FiniteStatistics) -> FloatArray:
    """``log sum_s p_s L_ts``, ``(task,)``: exact, whatever chose the arms; minus infinity where no
    candidate fits.
    """
    if prior.support != statistics.support:
        raise ValueError(
            f"the prior has {prior.support} candidates, but the statistics have "
            f"{statistics.support}"
        )
    statistics.check_about(prior)
    weights = np.broadcast_to(prior.probs, statistics.log_likelihood.shape)
    with np.errstate(divide="ignore"):
        return np.asarray(logsumexp(statistics.log_likelihood, axis=1, b=weights))
