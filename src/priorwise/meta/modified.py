"""A prior with one part changed, and all else as it is."""

from __future__ import annotations

from typing import Any

from priorwise.core.types import FloatArray
from priorwise.priors.exchangeable import ExchangeableBetaPrior, ExchangeableGaussianPrior
from priorwise.priors.gaussian import GaussianPrior
from priorwise.priors.linear import LinearGaussianPrior


def with_moments(prior: Any, mean: FloatArray, cov: FloatArray) -> Any:
    """Return the prior with another mean and covariance."""
    if isinstance(prior, LinearGaussianPrior):
        return LinearGaussianPrior(mean, cov, prior.noise_var, prior.contexts)
    return GaussianPrior(mean, cov, prior.noise_var)


def with_noise_of(other: Any, prior: Any) -> Any:
    """Return the prior with the noise of another one of its family."""
    if isinstance(prior, LinearGaussianPrior):
        return LinearGaussianPrior(prior.mean, prior.cov, other.noise_var, prior.contexts)
    return GaussianPrior(prior.mean, prior.cov, other.noise_var)


def with_arms(prior: Any, arms: int) -> Any:
    """Return a prior of exchangeable arms for this many of them, others as they are."""
    return (
        prior.for_arms(arms)
        if isinstance(prior, (ExchangeableBetaPrior, ExchangeableGaussianPrior))
        else prior
    )
