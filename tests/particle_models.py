"""Models of one's own, whose functions JSON may name: what tests of particles run over."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special, stats

import priorwise as pw
from priorwise.core.types import FloatArray
from priorwise.families import register_function
from priorwise.testing import base_seed

SEED = base_seed()
MEAN = np.array([0.5, 0.0, 0.1])
COV = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
ROOT = np.linalg.cholesky(COV)
ALPHA, BETA = np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 1.5])
FEATURES = np.array([[[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]], [[1.0, -1.0], [0.2, 0.9], [0.0, 0.0]]])


# -- normal means, as GaussianPrior has them; alone, and with the density of the prior


@register_function
def normal_means(rng: Any) -> FloatArray:
    return MEAN + np.einsum("nj,ij->ni", rng.normal(3), ROOT)


@register_function
def normal_density(mu: FloatArray, arm: int, reward: Any) -> FloatArray:
    return -0.5 * (reward - mu[:, arm]) ** 2 - 0.5 * np.log(2.0 * np.pi)


@register_function
def normal_reward(mu: FloatArray, arm: int, rng: Any) -> FloatArray:
    return mu[:, arm] + rng.normal()


@register_function
def normal_log_prior(mu: FloatArray) -> FloatArray:
    return np.asarray(stats.multivariate_normal.logpdf(mu, MEAN, COV)).reshape(len(mu))


def gaussian(**options: Any) -> Any:
    """The model of ``EXACT_GAUSSIAN``."""
    return pw.ParticlePrior(
        normal_means, normal_density, None, normal_reward, **{"seed": SEED, **options}
    )


EXACT_GAUSSIAN = pw.GaussianPrior(MEAN, COV)


# -- clicks with Beta rates, as BetaPrior has them


@register_function
def beta_rates(rng: Any) -> FloatArray:
    return rng.beta(np.tile(ALPHA, (rng.tasks, 1)), np.tile(BETA, (rng.tasks, 1)))[:, 0]


@register_function
def click_density(rates: FloatArray, arm: int, reward: Any) -> FloatArray:
    p = rates[:, arm]
    return np.log(np.where(reward > 0.5, p, 1.0 - p))


@register_function
def beta_log_prior(rates: FloatArray) -> FloatArray:
    return stats.beta.logpdf(rates, ALPHA, BETA).sum(axis=1)


def clicks(**options: Any) -> Any:
    """The model of ``EXACT_BETA``."""
    return pw.ParticlePrior(
        beta_rates, click_density, **{"seed": SEED, "rewards": [0, 1], "arms": 3, **options}
    )


EXACT_BETA = pw.BetaPrior(ALPHA, BETA)


# -- times until an event, Weibull with unknown scale and shape: no family of the package


@register_function
def weibull_parameters(rng: Any) -> FloatArray:
    return np.exp(np.concatenate([0.3 * rng.normal(2), 0.4 + 0.3 * rng.normal(1)], axis=1))


@register_function
def weibull_density(x: FloatArray, arm: int, reward: Any) -> FloatArray:
    scale, shape = x[:, arm], x[:, 2]
    z = np.log(reward / scale)
    return np.log(shape) - np.log(reward) + shape * z - np.exp(shape * z)


@register_function
def weibull_means(x: FloatArray) -> FloatArray:
    return x[:, :2] * special.gamma(1.0 + 1.0 / x[:, 2:])


@register_function
def weibull_reward(x: FloatArray, arm: int, rng: Any) -> FloatArray:
    return x[:, arm] * (-np.log(1.0 - rng.uniform())) ** (1.0 / x[:, 2])


@register_function
def weibull_log_prior(x: FloatArray) -> FloatArray:
    logs = np.log(x)
    normal = stats.norm.logpdf(logs, [0.0, 0.0, 0.4], 0.3)
    return (normal - logs).sum(axis=1)


def times(**options: Any) -> Any:
    """Rewards are positive times, and particles move."""
    return pw.ParticlePrior(
        weibull_parameters,
        weibull_density,
        weibull_means,
        weibull_reward,
        **{"seed": SEED, "log_prior": weibull_log_prior, "reward_range": (0.0, np.inf), **options},
    )


# -- clicks that depend on features, logistic


@register_function
def logistic_weights(rng: Any) -> FloatArray:
    return 1.5 * rng.normal(2)


@register_function
def logistic_density(w: FloatArray, arm: int, reward: Any, x: FloatArray) -> FloatArray:
    return -np.logaddexp(0.0, (1.0 - 2.0 * reward) * (w @ x[arm]))


@register_function
def logistic_means(w: FloatArray, x: FloatArray) -> FloatArray:
    return special.expit(w @ x.T)


@register_function
def logistic_log_prior(w: FloatArray) -> FloatArray:
    return stats.norm.logpdf(w, 0.0, 1.5).sum(axis=1)


def logistic(**options: Any) -> Any:
    """Three arms with two features each, drawn from a pool of two tables."""
    return pw.ParticlePrior(
        logistic_weights,
        logistic_density,
        logistic_means,
        **{"seed": SEED, "rewards": [0, 1], "contexts": FEATURES, **options},
    )


# -- draws that were made elsewhere

TABLE = [[0.9, 0.1, 0.5], [0.2, 0.8, 0.5], [0.3, 0.3, 0.9], [0.0, 1.0, 0.4]]
SKEW = [0.4, 0.3, 0.2, 0.1]


def given(weights: Any = SKEW, **options: Any) -> Any:
    """Four tables of click rates, as in ``FinitePrior(TABLE, SKEW, noise="bernoulli")``."""
    made = {"weights": weights, "rewards": [0, 1], "arms": 3, **options}
    return pw.ParticlePrior(TABLE, click_density, **made)


def given_normal(weights: Any = SKEW, **options: Any) -> Any:
    """The same tables as means of normal rewards."""
    return pw.ParticlePrior(TABLE, normal_density, None, normal_reward, weights=weights, **options)
