"""Two logistic priors after the same rewards: the normal laws that stand for both posteriors.

In units of its prior, ``w = mean + L u``, a posterior is ``N(c, A^-1)``, and so its log density is
that of the prior where ``|u|^2`` is replaced by ``(u - c)'A (u - c) - log det A``. Singular priors
need nothing special: u lies in the range of L', where the pseudo-inverse finds it.
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray
from priorwise.families.logistic.belief import LogisticBelief
from priorwise.families.logistic.corrected import posterior
from priorwise.families.logistic.prior import LogisticPrior
from priorwise.families.normal.posteriors import NormalRatio
from priorwise.theory.distance import BothBeliefs


@final
@dataclass(frozen=True, eq=False)
class LogisticPosteriors(BothBeliefs):
    """Normal approximations of both posteriors; their total variation is sampled."""

    ratio: NormalRatio
    exact: bool = False

    @classmethod
    def start(cls, p: LogisticPrior, q: LogisticPrior, tasks: int) -> "LogisticPosteriors":
        """Start both beliefs at their priors."""
        return cls(p.belief(tasks), q.belief(tasks), NormalRatio.of(p, q))

    def _log_ratio(self, w: FloatArray) -> FloatArray:
        """``log q / p`` at weights ``(task, draw, dim)``."""
        p, q = (_minus_twice_log(each, w) for each in (self.p, self.q))
        return np.asarray(self.ratio.level + 0.5 * (p - q))

    def total_variation(self, rng: Stream) -> FloatArray:
        """``E |tanh(log(q / p) / 2)|`` under the mixture of both, one draw from each."""
        if self.ratio.apart:
            return np.ones(self.p.tasks)
        z = rng.normal(self.p.m.shape[1])
        drawn = [each.m + np.einsum("tij,tj->ti", each.root, z) for each in (self.p, self.q)]
        return np.asarray(np.abs(np.tanh(self._log_ratio(np.stack(drawn, 1)) / 2.0)).mean(axis=1))

    def shared(self, rng: Stream, draws: int) -> FloatArray:
        """``min(1, q / p)`` at the draws."""
        if self.ratio.apart:
            return np.zeros((self.p.tasks, draws))
        z = rng.normal(draws, self.p.m.shape[1])
        w = self.p.m[:, None, :] + z @ self.p.root.transpose(0, 2, 1)
        return np.exp(np.minimum(0.0, self._log_ratio(w)))


def _minus_twice_log(belief: LogisticBelief, w: FloatArray) -> FloatArray:
    """``(u - c)'A (u - c) - log det A`` at weights ``(task, draw, dim)``."""
    prior = belief.prior
    u = np.einsum("tdj,ij->tdi", w - prior.mean, np.linalg.pinv(prior._root, rcond=1e-10))
    if not belief.x.shape[1]:
        return np.asarray(np.einsum("tdj,tdj->td", u, u))
    law = posterior(prior, belief.x, belief.r, belief.u)
    y = np.linalg.solve(law.spread, (u - law.u[:, None, :]).transpose(0, 2, 1))
    _, log_det = np.linalg.slogdet(law.spread)
    return np.asarray(np.einsum("tjd,tjd->td", y, y) + 2.0 * log_det[:, None])
