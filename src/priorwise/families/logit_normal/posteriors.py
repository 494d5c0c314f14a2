"""Two posteriors of the same histories, one from each prior, through their normal approximations.

The total variation of rates is that of log odds, as one is a function of the other. Both
approximations are the prior times normal factors of the counts, so that ``log q / p`` is that of
the priors plus what the factors differ by.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray
from priorwise.families.logit_normal.prior import LogitNormalBelief, LogitNormalPrior
from priorwise.families.normal.posteriors import NormalRatio
from priorwise.theory.distance import BothBeliefs


@final
@dataclass(frozen=True, eq=False)
class LogitNormalPosteriors(BothBeliefs):
    """Normal approximations of both posteriors; their total variation is sampled."""

    ratio: NormalRatio
    exact: bool = False

    @classmethod
    def start(cls, p: LogitNormalPrior, q: LogitNormalPrior, tasks: int) -> LogitNormalPosteriors:
        """Start both beliefs at their priors."""
        return cls(p.belief(tasks), q.belief(tasks), NormalRatio.of(p, q))

    def _log_ratio(self, eta: FloatArray) -> FloatArray:
        """``log q / p`` at log odds ``(task, draw, arm)``."""
        b, t = self.q.shift - self.p.shift, self.q.precision - self.p.precision
        factors = np.einsum("tda,ta->td", eta, b) - 0.5 * np.einsum("tda,ta->td", eta**2, t)
        level = log_mass(self.p) - log_mass(self.q)
        return np.asarray(self.ratio(eta) + factors + level[:, None])

    def total_variation(self, rng: Stream) -> FloatArray:
        """``E |tanh(log(q / p) / 2)|`` under the mixture of both, one draw from each."""
        if self.ratio.apart:
            return np.ones(self.p.tasks)
        z = rng.normal(self.p.arms)
        drawn = []
        for belief in (self.p, self.q):
            m, root = belief.normal
            drawn.append(m + np.einsum("tij,tj->ti", root, z))
        return np.asarray(np.abs(np.tanh(self._log_ratio(np.stack(drawn, 1)) / 2.0)).mean(axis=1))

    def shared(self, rng: Stream, draws: int) -> FloatArray:
        """``min(1, q / p)`` at the draws."""
        if self.ratio.apart:
            return np.zeros((self.p.tasks, draws))
        m, root = self.p.normal
        z = rng.normal(draws, self.p.arms)
        eta = m[:, None, :] + z @ root.transpose(0, 2, 1)
        return np.exp(np.minimum(0.0, self._log_ratio(eta)))


def log_mass(belief: LogitNormalBelief) -> FloatArray:
    """Log of the integral of the prior times the factors, ``(task,)``: ``b'm - m'Tm/2 - log|I +
    L'TL| / 2 + |R'(b - Tm)|^2 / 2`` with R the root of the posterior covariance.
    """
    mean, (_, root) = belief.prior.mean, belief.normal
    t, b = belief.precision, belief.shift
    gain = np.einsum("tij,ti->tj", root, b - t * mean)
    inner = np.einsum("ij,ti,ik->tjk", belief.prior._root, t, belief.prior._root)
    _, log_det = np.linalg.slogdet(inner + np.eye(belief.arms))
    at_mean = b @ mean - 0.5 * t @ mean**2
    return np.asarray(at_mean + 0.5 * (np.einsum("tj,tj->t", gain, gain) - log_det))
