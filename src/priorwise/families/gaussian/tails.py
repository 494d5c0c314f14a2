"""What is known of the diameter of arms with a joint normal prior."""

from __future__ import annotations

from priorwise.core.conditions import TailCondition
from priorwise.core.diameters import DiameterLaw
from priorwise.families.gaussian.prior import GaussianPrior
from priorwise.families.normal import tails


def tail_conditions(prior: GaussianPrior) -> tuple[TailCondition, ...]:
    """Normal arms, and so sub-Gaussian ones."""
    return tails.normal_conditions(prior.mean[None], prior.cov[None])


def diameter(prior: GaussianPrior) -> DiameterLaw | None:
    """Law of the diameter, where its tail expectations can be computed."""
    return tails.normal_diameter(prior.mean, prior.cov)


def largest_diameter(prior: GaussianPrior) -> float:
    """Essential supremum of the diameter."""
    return tails.largest_normal(prior.mean[None], prior.cov[None])
