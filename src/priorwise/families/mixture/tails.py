"""What is known of the diameter under a mixture: it is at most the largest of any component."""

import numpy as np

from priorwise.core.conditions import Bounded, TailCondition
from priorwise.core.family import ask, offers
from priorwise.families.mixture.prior import MixturePrior


def tail_conditions(prior: MixturePrior) -> tuple[TailCondition, ...]:
    """Bounded, where all components are."""
    largest = largest_diameter(prior)
    return () if largest is None or largest == np.inf else (Bounded(largest),)


def largest_diameter(prior: MixturePrior) -> float | None:
    """Essential supremum of the diameter; None where some component's is not known."""
    found = []
    for part in (each for each, p in zip(prior.components, prior.probs, strict=True) if p > 0.0):
        if not offers(part, "largest_diameter"):
            return None
        found.append(ask(part, "largest_diameter", "a mixture")(part))
    return None if None in found else float(max(found))
