"""Log density of normal tasks, as a family's part ``density``."""

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any, Final

import numpy as np

from priorwise.core.types import FloatArray

LEAST: Final = 1e-12
"""Smallest share of its variance that a direction keeps given the others; below it, a density would
be rounding.
"""


def normal_density(
    mean: FloatArray, cov: FloatArray, read: Callable[[Any], FloatArray]
) -> Callable[[Any], FloatArray] | None:
    """``log N(x; mean, cov)`` at what ``read`` takes from environments, ``(task, dim)``; None for a
    singular covariance, which has no density.
    """
    try:
        root = np.linalg.cholesky(cov)
    except np.linalg.LinAlgError:
        return None
    pivots, variances = np.diag(root), np.diag(cov)
    if (pivots**2 < LEAST * variances).any():
        return None
    constant = np.log(pivots).sum() + 0.5 * mean.size * np.log(2.0 * np.pi)

    def log_density(environment: Any) -> FloatArray:
        from scipy.linalg import solve_triangular

        z = solve_triangular(root, (read(environment) - mean).T, lower=True)
        return np.asarray(-0.5 * (z * z).sum(axis=0) - constant)

    return log_density


def of_arms(prior: Any) -> Callable[[Any], FloatArray] | None:
    """Log density of the means of arms."""
    return normal_density(prior.mean, prior.cov, attrgetter("means"))


def of_weights(prior: Any) -> Callable[[Any], FloatArray] | None:
    """Log density of the weights of features."""
    return normal_density(prior.mean, prior.cov, attrgetter("weights"))


def inside(rates: FloatArray) -> FloatArray:
    """Keep drawn rates off 0 and 1, where log densities are infinite."""
    return np.clip(rates, 1e-300, 1.0 - 1e-16)


def of_rates(prior: Any) -> Callable[[Any], FloatArray] | None:
    """Log density of rates whose log odds are normal: ``log N(logit r) - sum log(r (1 - r))``."""
    normal = normal_density(prior.mean, prior.cov, _log_odds)
    return None if normal is None else partial(_rates_density, normal)


def _log_odds(environment: Any) -> FloatArray:
    from scipy.special import logit

    return np.asarray(logit(inside(environment.means)))


def _rates_density(normal: Callable[[Any], FloatArray], environment: Any) -> FloatArray:
    rates = inside(environment.means)
    return normal(environment) - (np.log(rates) + np.log1p(-rates)).sum(axis=1)
