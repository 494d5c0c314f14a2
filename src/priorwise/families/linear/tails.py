"""What is known of the diameter of arms with features: given any contexts, or of a pool of them."""

from __future__ import annotations

import numpy as np

from priorwise.core.conditions import SubGaussian, TailCondition
from priorwise.core.diameters import DiameterLaw
from priorwise.core.types import FloatArray
from priorwise.families.linear.contexts import GivenContexts, SphereContexts
from priorwise.families.linear.prior import LinearGaussianPrior
from priorwise.families.normal.tails import (
    EQUAL,
    largest_normal,
    normal_conditions,
    normal_diameter,
)


def tail_conditions(prior: LinearGaussianPrior) -> tuple[TailCondition, ...]:
    """Worst case over the contexts: the pool's, or ``|x'm| <= |m|`` and ``x'Sx <= lambda_max`` on
    the sphere.
    """
    if isinstance(prior.contexts, GivenContexts):
        return normal_conditions(*_pool(prior, prior.contexts))
    if isinstance(prior.contexts, SphereContexts):
        length = float(np.linalg.norm(prior.mean))
        ends = np.zeros(prior.arms)
        ends[0], ends[-1] = length, -length if prior.arms > 1 else length
        largest = max(float(np.linalg.eigvalsh(prior.cov)[-1]), 0.0)
        return (SubGaussian(ends, largest * (1.0 + EQUAL * prior.dim)),)
    return ()


def diameter(prior: LinearGaussianPrior) -> DiameterLaw | None:
    """Law of the diameter, where all steps have the same contexts."""
    if not isinstance(prior.contexts, GivenContexts) or len(prior.contexts.features) > 1:
        return None
    means, covs = _pool(prior, prior.contexts)
    return normal_diameter(means[0], covs[0])


def largest_diameter(prior: LinearGaussianPrior) -> float | None:
    """Essential supremum of the diameter, where it is known."""
    if isinstance(prior.contexts, GivenContexts):
        return largest_normal(*_pool(prior, prior.contexts))
    if isinstance(prior.contexts, SphereContexts) and prior.cov.any():
        return np.inf if prior.arms > 1 else 0.0
    return None


def _pool(prior: LinearGaussianPrior, contexts: GivenContexts) -> tuple[FloatArray, FloatArray]:
    x = contexts.features
    return x @ prior.mean, x @ prior.cov @ x.transpose(0, 2, 1)
