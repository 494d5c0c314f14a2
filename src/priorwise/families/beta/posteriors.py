"""Two Beta posteriors of the same histories, one from each prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from priorwise.core.distance import BothBeliefs
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray
from priorwise.families.beta.prior import BetaBelief, BetaPrior


@final
@dataclass(frozen=True, eq=False)
class BetaPosteriors(BothBeliefs):
    """Independent Beta posteriors of the arms; their parameters differ by what those of the priors
    do.
    """

    exact: bool = False

    @classmethod
    def start(cls, p: BetaPrior, q: BetaPrior, tasks: int) -> BetaPosteriors:
        """Start both beliefs at their priors."""
        return cls(p.belief(tasks), q.belief(tasks))

    def _log_ratio(self, log_mean: FloatArray, log_rest: FloatArray) -> FloatArray:
        """``log q / p`` at logarithms of means and of one minus them, ``(task, draw, arm)``."""
        from scipy.special import betaln

        level = (betaln(self.p.a, self.p.b) - betaln(self.q.a, self.q.b)).sum(axis=1)
        slopes = (self.q.a - self.p.a)[:, None, :] * log_mean + (self.q.b - self.p.b)[
            :, None, :
        ] * log_rest
        return np.asarray(level[:, None] + slopes.sum(axis=2))

    def total_variation(self, rng: Stream) -> FloatArray:
        """``E |tanh(log(q / p) / 2)|`` under the mixture of both, one draw from each, in log
        odds.
        """
        odds = np.stack([_log_odds(belief, rng) for belief in (self.p, self.q)], axis=1)
        ratio = self._log_ratio(-np.logaddexp(0.0, -odds), -np.logaddexp(0.0, odds))
        return np.asarray(np.abs(np.tanh(ratio / 2.0)).mean(axis=1))

    def shared(self, rng: Stream, draws: int) -> FloatArray:
        """``min(1, q / p)`` at the draws; those that round to 0 or 1 count as the nearest number
        between.
        """
        drawn = np.clip(rng.beta(self.p.a, self.p.b, draws), 1e-300, 1.0 - 1e-16)
        return np.exp(np.minimum(0.0, self._log_ratio(np.log(drawn), np.log1p(-drawn))))


def _log_odds(belief: BetaBelief, rng: Stream) -> FloatArray:
    """Log odds of a posterior draw, ``(task, arm)``: ``Beta(a, b)`` from ``Beta(a + 1, b + 1)`` and
    two uniforms, no underflow.
    """
    x = np.clip(rng.beta(belief.a + 1.0, belief.b + 1.0)[:, 0], 1e-300, 1.0 - 1e-16)
    u, v = np.moveaxis(rng.uniform(2, belief.a.shape[1]), 1, 0)
    return np.asarray(np.log(x) - np.log1p(-x) + np.log1p(-u) / belief.a - np.log1p(-v) / belief.b)
