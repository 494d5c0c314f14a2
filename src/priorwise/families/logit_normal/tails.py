"""What is known of the diameter of arms whose log odds are normal: rates lie between 0 and 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.families.logit_normal.prior import LogitNormalPrior
from priorwise.families.logit_normal.tilted import rates
from priorwise.theory.conditions import Bounded, TailCondition
from priorwise.theory.diameters import DiameterLaw, FiniteLaw, RangeLaw


def tail_conditions(prior: LogitNormalPrior) -> tuple[TailCondition, ...]:
    """Bounded."""
    return (Bounded(largest_diameter(prior)),)


def diameter(prior: LogitNormalPrior) -> DiameterLaw | None:
    """Law of the diameter where it is known or arms are independent; None, so that it is sampled,
    for arms that move together.
    """
    var = np.diag(prior.cov)
    if not var.any():
        return FiniteLaw(np.array([largest_diameter(prior)]), np.ones(1))
    if var.min() == 0.0 or (prior.cov != np.diag(var)).any():
        return None
    known = largest_diameter(prior), tail_conditions(prior)
    return RangeLaw.of(LogitNormalMarginal, prior.mean, np.sqrt(var), *known)


def largest_diameter(prior: LogitNormalPrior) -> float:
    """Essential supremum of the diameter; a bound of it where arms with different means move as
    one.
    """
    if not prior.cov.any():
        return float(np.ptp(rates(prior.mean)))
    return 1.0 if prior.arms > 1 else 0.0


@final
@dataclass(frozen=True)
class LogitNormalMarginal:
    """Rate with log odds ``N(mean, std^2)``."""

    mean: float
    std: float

    def below(self, x: FloatArray) -> FloatArray:
        """``Phi((logit(x) - mean) / std)``."""
        from scipy.special import logit, ndtr

        return np.asarray(ndtr((logit(np.clip(x, 0.0, 1.0)) - self.mean) / self.std))

    def above(self, x: FloatArray) -> FloatArray:
        """Its complement."""
        from scipy.special import logit, ndtr

        return np.asarray(ndtr((self.mean - logit(np.clip(x, 0.0, 1.0))) / self.std))

    def edges(self) -> list[float]:
        """Where the log odds are so many standard deviations out."""
        steps = np.array([-12.0, -8.0, -5.0, -2.5, -1.0, 0.0, 1.0, 2.5, 5.0, 8.0, 12.0])
        return [0.0, *rates(self.mean + self.std * steps).tolist(), 1.0]
