"""The diameter of finitely many possible tasks."""

from __future__ import annotations

import numpy as np

from priorwise.core.conditions import Bounded, TailCondition
from priorwise.core.diameters import DiameterLaw, FiniteLaw
from priorwise.families.finite.prior import FinitePrior


def tail_conditions(prior: FinitePrior) -> tuple[TailCondition, ...]:
    """The largest diameter of a possible task."""
    return (Bounded(float(np.ptp(prior.means[prior.probs > 0.0], axis=1).max())),)


def diameter(prior: FinitePrior) -> DiameterLaw:
    """Law of the diameter."""
    return FiniteLaw.of(np.ptp(prior.means, axis=1), prior.probs)
