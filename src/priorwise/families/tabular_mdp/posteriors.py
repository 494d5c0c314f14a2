"""Two posteriors of tabular MDPs after the same histories, one from each prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray
from priorwise.families.tabular_mdp.prior import DirichletMdpPrior
from priorwise.families.tabular_mdp.rewards import BernoulliRewardPrior, NormalRewardPrior
from priorwise.theory.distance import BothBeliefs

TINY: Final = 1e-300
"""Probabilities that round to 0 count as this."""


@final
@dataclass(frozen=True, eq=False)
class MdpPosteriors(BothBeliefs):
    """Dirichlet rows, and Beta or normal rewards; parameters differ by what those of the priors
    do.
    """

    apart: bool  # different moves are possible: the posteriors exclude each other
    exact: bool = False

    @classmethod
    def start(cls, p: DirichletMdpPrior, q: DirichletMdpPrior, tasks: int) -> MdpPosteriors:
        """Start both beliefs at their priors."""
        apart = not np.array_equal(p.possible, q.possible)
        return cls(p.belief(tasks), q.belief(tasks), apart)

    def _log_ratio(self, moves: FloatArray, means: FloatArray) -> FloatArray:
        """``log q / p`` at MDPs ``(task, draw, state, action, ...)``: ``(task, draw)``."""
        there = self.p.prior.possible
        logs = np.log(np.where(there, np.maximum(moves, TINY), 1.0))
        slopes = self.q.alpha - self.p.alpha
        ratio = np.einsum("tsan,tdsan->td", slopes, logs) + self._levels()[:, None]
        return np.asarray(ratio + self._rewards(means))

    def _levels(self) -> FloatArray:
        """Ratio of what the Dirichlet densities are divided by, ``(task,)``."""
        from scipy.special import gammaln

        there, total = self.p.prior.possible, np.zeros(self.p.tasks)
        for belief, sign in ((self.p, 1.0), (self.q, -1.0)):
            cells = gammaln(np.where(there, belief.alpha, 1.0)).sum(axis=(1, 2, 3))
            known = belief.alpha.sum(axis=3)  # 0 for actions that a state lacks
            rows = gammaln(np.where(known > 0.0, known, 1.0)).sum(axis=(1, 2))
            total += sign * (cells - rows)
        return total

    def _rewards(self, means: FloatArray) -> Any:
        """``log q / p`` of mean rewards ``(task, draw, state, action)``."""
        means = np.where(np.isfinite(means), means, 0.5)  # of absent actions, left out below
        models = [belief.prior.reward_model for belief in (self.p, self.q)]
        if not isinstance(models[0], BernoulliRewardPrior | NormalRewardPrior):
            return 0.0
        (a, b), (c, d) = (
            (each[:, None] for each in model.posterior(belief.pulls, belief.sums))
            for model, belief in zip(models, (self.p, self.q), strict=True)
        )
        if isinstance(models[0], NormalRewardPrior):  # means and variances
            out = 0.5 * (np.log(b / d) + (means - a) ** 2 / b - (means - c) ** 2 / d)
        else:
            from scipy.special import betaln

            inner = np.clip(means, TINY, 1.0 - 1e-16)
            out = betaln(a, b) - betaln(c, d) + (c - a) * np.log(inner) + (d - b) * np.log1p(-inner)
        there = self.p.prior.possible.any(axis=2)
        return np.where(there, out, 0.0).sum(axis=(2, 3))

    def total_variation(self, rng: Stream) -> FloatArray:
        """``E |tanh(log(q / p) / 2)|`` under the mixture of both, one draw from each."""
        if self.apart:
            return np.ones(rng.tasks)
        ratios = [self._log_ratio(*belief.drawn(rng, 1))[:, 0] for belief in (self.p, self.q)]
        return np.asarray(np.abs(np.tanh(np.stack(ratios) / 2.0)).mean(axis=0))

    def shared(self, rng: Stream, draws: int) -> FloatArray:
        """``min(1, q / p)`` at the drawn MDPs."""
        if self.apart:
            return np.zeros((rng.tasks, draws))
        return np.exp(np.minimum(0.0, self._log_ratio(*self.p.drawn(rng, draws))))
