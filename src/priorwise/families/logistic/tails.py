"""What is known of the diameter of arms with logistic rewards: success probabilities lie between 0
and 1.
"""

import numpy as np

from priorwise.families.linear.contexts import GivenContexts
from priorwise.families.logistic.prior import LogisticPrior
from priorwise.families.logit_normal.tilted import rates
from priorwise.theory.conditions import Bounded, TailCondition


def tail_conditions(prior: LogisticPrior) -> tuple[TailCondition, ...]:
    """Bounded."""
    return (Bounded(largest_diameter(prior)),)


def largest_diameter(prior: LogisticPrior) -> float:
    """Essential supremum of the diameter, or a bound of it: 1 unless the weights are known."""
    if prior.arms == 1:
        return 0.0
    if prior.cov.any() or not isinstance(prior.contexts, GivenContexts):
        return 1.0
    return float(np.ptp(rates(prior.contexts.features @ prior.mean), axis=1).max())
