"""What is known of the diameter of independent arms with Beta means."""

from dataclasses import dataclass
from typing import Final, final

import numpy as np
from scipy.special import betainc, betaincc, expit

from priorwise.core.types import FloatArray
from priorwise.families.beta.distance_arm import BetaLaw
from priorwise.families.beta.prior import BetaPrior
from priorwise.theory.conditions import Bounded, SubGaussian, TailCondition
from priorwise.theory.diameters import DiameterLaw, RangeLaw

MOST_CERTAIN: Final = 1e10
"""Sum of the parameters of a Beta law beyond which its distribution function has too few digits for
quadrature.
"""


def tail_conditions(prior: BetaPrior) -> tuple[TailCondition, ...]:
    """Beta(a, b) is 1 / (4 (a + b + 1))-sub-Gaussian (Marchal and Arbel 2017)."""
    total = prior.alpha + prior.beta
    spread = SubGaussian(prior.alpha / total, float((0.25 / (total + 1.0)).max()))
    return Bounded(largest_diameter(prior)), spread


def diameter(prior: BetaPrior) -> DiameterLaw | None:
    """Law of the diameter, where few arms have laws of their own."""
    if (prior.alpha + prior.beta).max() > MOST_CERTAIN:
        return None
    known = largest_diameter(prior), tail_conditions(prior)
    return RangeLaw.of(BetaMarginal, prior.alpha, prior.beta, *known)


def largest_diameter(prior: BetaPrior) -> float:
    """Essential supremum of the diameter."""
    return 1.0 if prior.arms > 1 else 0.0


@final
@dataclass(frozen=True)
class BetaMarginal:
    """Beta(a, b)."""

    a: float
    b: float

    def below(self, x: FloatArray) -> FloatArray:
        """Regularised incomplete beta function."""
        return np.asarray(betainc(self.a, self.b, np.clip(x, 0.0, 1.0)))

    def above(self, x: FloatArray) -> FloatArray:
        """Its complement."""
        return np.asarray(betaincc(self.a, self.b, np.clip(x, 0.0, 1.0)))

    def edges(self) -> list[float]:
        """Around the bulk, and towards both ends, where the law may be steep."""
        # 30, 5, 1 widths on either side of the mode of the log odds
        bulk = np.array(BetaLaw(self.a, self.b).edges())[::2]
        return [0.0, 1e-9, 1e-4, *np.asarray(expit(bulk)).tolist(), 1.0 - 1e-4, 1.0 - 1e-9, 1.0]
