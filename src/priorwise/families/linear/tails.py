"""What is known of the diameter of arms with features: given any contexts, or of a pool of them."""

import numpy as np

from priorwise.families.linear.contexts import SphereContexts
from priorwise.families.linear.prior import LinearGaussianPrior
from priorwise.families.normal import tails
from priorwise.theory.conditions import SubGaussian, TailCondition


def tail_conditions(prior: LinearGaussianPrior) -> tuple[TailCondition, ...]:
    """Worst case over the contexts: the pool's, or ``|x'm| <= |m|`` and ``x'Sx <= lambda_max`` on
    the sphere.
    """
    if not isinstance(prior.contexts, SphereContexts):
        return tails.tail_conditions(prior)
    length = float(np.linalg.norm(prior.mean))
    ends = np.zeros(prior.arms)
    ends[0], ends[-1] = length, -length if prior.arms > 1 else length
    largest = max(float(np.linalg.eigvalsh(prior.cov)[-1]), 0.0)
    return (SubGaussian(ends, largest * (1.0 + tails.EQUAL * prior.dim)),)


def largest_diameter(prior: LinearGaussianPrior) -> float | None:
    """Essential supremum of the diameter, where it is known."""
    if isinstance(prior.contexts, SphereContexts) and prior.cov.any():
        return np.inf if prior.arms > 1 else 0.0
    return tails.largest_diameter(prior)
