"""What is known of the diameter under each family: conditions on its tails, and its exact law where
there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from priorwise.core import doors
from priorwise.core.conditions import Bounded, ConditionedPrior, SubGaussian, TailCondition
from priorwise.core.types import FloatArray
from priorwise.families.beta.exchangeable import ExchangeableBetaPrior
from priorwise.families.beta.prior import BetaPrior
from priorwise.families.finite.prior import FinitePrior
from priorwise.families.gaussian.exchangeable import ExchangeableGaussianPrior
from priorwise.families.gaussian.prior import GaussianPrior
from priorwise.families.linear.contexts import GivenContexts, SphereContexts
from priorwise.families.linear.prior import LinearGaussianPrior
from priorwise.families.normal.tails import NormalDifferences
from priorwise.sensitivity.tails.independent import (
    MOST_GROUPS,
    BetaMarginal,
    IndependentRange,
    NormalMarginal,
)

MOST_CERTAIN: Final = 1e10
"""Sum of the parameters of a Beta law beyond which its distribution function has too few digits for
quadrature.
"""

EQUAL: Final = 1e-14
"""Covariances this close, relative to the variances, are equal up to rounding."""


def check_prior(prior: Any) -> None:
    """Refuse what has no diameter."""
    doors.role("prior", prior, "a prior")
    if isinstance(prior, (ExchangeableGaussianPrior, ExchangeableBetaPrior)):
        raise TypeError(
            f"the diameter under an {type(prior).__name__} depends on the number of arms: pass "
            "prior.for_arms(n)"
        )
    doors.role("prior", prior, "a prior", "arms")


def conditions_of(prior: Any) -> tuple[TailCondition, ...]:
    """Return the conditions that hold for a prior; none for a stranger that states none.

    In a contextual problem they hold given any contexts. They bound the tail of one step's
    diameter, and so that of the average over steps: tail expectations are subadditive, and all
    steps have the same law.
    """
    check_prior(prior)
    if isinstance(prior, ConditionedPrior):
        return tuple(prior.tail_conditions())
    return _CONDITIONS.get(type(prior), lambda _: ())(prior)


def _finite(prior: FinitePrior) -> tuple[TailCondition, ...]:
    return (Bounded(float(np.ptp(prior.means[prior.probs > 0.0], axis=1).max())),)


def _beta(prior: BetaPrior) -> tuple[TailCondition, ...]:
    """Beta(a, b) is 1 / (4 (a + b + 1))-sub-Gaussian (Marchal and Arbel 2017)."""
    total = prior.alpha + prior.beta
    return Bounded(1.0 if prior.arms > 1 else 0.0), SubGaussian(
        prior.alpha / total, float((0.25 / (total + 1.0)).max())
    )


def _gaussian(prior: GaussianPrior) -> tuple[TailCondition, ...]:
    return _normal(prior.mean[None], prior.cov[None])


def _linear(prior: LinearGaussianPrior) -> tuple[TailCondition, ...]:
    """Worst case over the contexts: the pool's, or ``|x'm| <= |m|`` and ``x'Sx <= lambda_max`` on
    the sphere.
    """
    if isinstance(prior.contexts, GivenContexts):
        return _normal(*_pool(prior, prior.contexts))
    if isinstance(prior.contexts, SphereContexts):
        length = float(np.linalg.norm(prior.mean))
        ends = np.zeros(prior.arms)
        ends[0], ends[-1] = length, -length if prior.arms > 1 else length
        largest = max(float(np.linalg.eigvalsh(prior.cov)[-1]), 0.0)
        return (SubGaussian(ends, largest * (1.0 + EQUAL * prior.dim)),)
    return ()


def _normal(means: FloatArray, covs: FloatArray) -> tuple[TailCondition, ...]:
    """Arms ``N(mean, cov)`` given a context: ``(context, arm)`` and ``(context, arm, arm)``."""
    worst = int(np.ptp(means, axis=1).argmax())
    variance = float(np.maximum(np.diagonal(covs, axis1=1, axis2=2), 0.0).max())
    pairs = NormalDifferences.of(means, covs)
    plain = SubGaussian(means[worst], variance)
    return (plain,) if pairs is None else (plain, pairs)


def _pool(prior: LinearGaussianPrior, contexts: GivenContexts) -> tuple[FloatArray, FloatArray]:
    x = contexts.features
    return x @ prior.mean, x @ prior.cov @ x.transpose(0, 2, 1)


_CONDITIONS: Final[dict[type, Callable[[Any], tuple[TailCondition, ...]]]] = {
    FinitePrior: _finite,
    BetaPrior: _beta,
    GaussianPrior: _gaussian,
    LinearGaussianPrior: _linear,
}


def largest_diameter(prior: Any) -> float | None:
    """Return the essential supremum of the diameter, where it is known."""
    if isinstance(prior, BetaPrior):
        return 1.0 if prior.arms > 1 else 0.0
    if isinstance(prior, GaussianPrior):
        return _largest_normal(prior.mean[None], prior.cov[None])
    if isinstance(prior, LinearGaussianPrior) and isinstance(prior.contexts, GivenContexts):
        means, covs = _pool(prior, prior.contexts)
        infinite = _largest_normal(means, covs) == np.inf
        return np.inf if infinite else float(np.ptp(means, axis=1).max())
    if (
        isinstance(prior, LinearGaussianPrior)
        and isinstance(prior.contexts, SphereContexts)
        and prior.cov.any()
    ):
        return np.inf if prior.arms > 1 else 0.0
    return None


def _largest_normal(means: FloatArray, covs: FloatArray) -> float:
    """Infinite unless all arms move together: ``P S P = 0`` with P the projection off the constant
    vector.
    """
    centered = covs - covs.mean(axis=1, keepdims=True)
    centered = centered - centered.mean(axis=2, keepdims=True)
    moves = np.abs(centered).max() > 64 * EQUAL * max(float(np.abs(covs).max()), 1e-300)
    return np.inf if moves else float(np.ptp(means, axis=1).max())


def normal_arms(prior: Any) -> tuple[FloatArray, FloatArray] | None:
    """Return the mean and covariance of the arms, where they are jointly normal with the same law
    at each step.
    """
    if isinstance(prior, GaussianPrior):
        return prior.mean, prior.cov
    if (
        isinstance(prior, LinearGaussianPrior)
        and isinstance(prior.contexts, GivenContexts)
        and len(prior.contexts.features) == 1
    ):
        means, covs = _pool(prior, prior.contexts)
        return means[0], covs[0]
    return None


def independent_arms(prior: Any) -> IndependentRange | None:
    """Return the law of the diameter where it is that of independent arms with few distinct
    laws.
    """
    if isinstance(prior, BetaPrior):
        if (prior.alpha + prior.beta).max() > MOST_CERTAIN:
            return None
        rows, counts = np.unique(
            np.stack([prior.alpha, prior.beta], axis=1), axis=0, return_counts=True
        )
        if len(rows) > MOST_GROUPS:
            return None
        return IndependentRange(
            tuple(
                (BetaMarginal(a, b), n)
                for (a, b), n in zip(rows.tolist(), counts.tolist(), strict=True)
            )
        )
    arms = normal_arms(prior)
    return None if arms is None else _independent_normal(*arms)


def _independent_normal(mean: FloatArray, cov: FloatArray) -> IndependentRange | None:
    """With one covariance c between all arms, differences are those of independent arms of
    variances ``S_aa - c``.
    """
    off = cov[~np.eye(mean.size, dtype=bool)]
    if off.size == 0:
        return None
    shared, variances = float(off.mean()), np.diag(cov)
    scale = float(variances.max())
    if (
        np.abs(off - shared).max() > EQUAL * scale
        or (variances - shared).min() < -EQUAL * scale
        or scale == 0.0
    ):
        return None
    std = np.sqrt(np.maximum(variances - shared, 0.0))
    rows, counts = np.unique(np.stack([mean, std], axis=1), axis=0, return_counts=True)
    if len(rows) > MOST_GROUPS:
        return None
    return IndependentRange(
        tuple(
            (NormalMarginal(m, s), n)
            for (m, s), n in zip(rows.tolist(), counts.tolist(), strict=True)
        )
    )
