"""Two normal-gamma posteriors of the same histories, one from each prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray
from priorwise.families.normal_gamma import student
from priorwise.families.normal_gamma.prior import NormalGammaBelief, NormalGammaPrior
from priorwise.theory.distance import BothBeliefs


@final
@dataclass(frozen=True, eq=False)
class NormalGammaPosteriors(BothBeliefs):
    """Independent normal-gamma posteriors of the arms, over means and precisions."""

    exact: bool = False

    @classmethod
    def start(cls, p: NormalGammaPrior, q: NormalGammaPrior, tasks: int) -> NormalGammaPosteriors:
        """Start both beliefs at their priors."""
        return cls(p.belief(tasks), q.belief(tasks))

    def total_variation(self, rng: Stream) -> FloatArray:
        """``E |tanh(log(q / p) / 2)|`` under the mixture of both, one draw from each."""
        ratios = []
        for belief in (self.p, self.q):
            precision = rng.gamma(belief.a)[:, 0] / belief.b
            mean = belief.m + rng.normal(belief.arms) / np.sqrt(belief.k * precision)
            at = [_log_density(each, mean, precision) for each in (self.p, self.q)]
            ratios.append((at[1] - at[0]).sum(axis=1))
        return np.asarray(np.abs(np.tanh(np.stack(ratios) / 2.0)).mean(axis=0))

    def shared(self, rng: Stream, draws: int) -> FloatArray:
        """``min(1, q / p)`` of the means, which are all that is drawn."""
        means = self.p.m[:, None, :] + self.p.scale[:, None, :] * rng.student(2.0 * self.p.a, draws)
        at = []
        for belief in (self.p, self.q):
            scale = belief.scale[:, None, :]
            t = (means - belief.m[:, None, :]) / scale
            at.append(student.log_density(2.0 * belief.a[:, None, :], t) - np.log(scale))
        return np.exp(np.minimum(0.0, (at[1] - at[0]).sum(axis=2)))


def _log_density(belief: NormalGammaBelief, mean: FloatArray, precision: FloatArray) -> FloatArray:
    """Log density of each arm's mean and precision, ``(task, arm)``."""
    from scipy.special import gammaln

    m, k, a, b = belief.m, belief.k, belief.a, belief.b
    gamma = a * np.log(b) - gammaln(a) + (a - 1.0) * np.log(precision) - b * precision
    return np.asarray(gamma + 0.5 * np.log(k * precision) - 0.5 * k * precision * (mean - m) ** 2)
