"""A model that no family has: orders of four shops. A visit brings an order with an unknown chance,
and an order is worth a log-normal amount of unknown scale; wrong priors mistake how much shops
differ in the latter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np

from priorwise.core.protocols import Policy
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray
from priorwise.experiments.general.case import Case, Limit
from priorwise.experiments.judging import NOISE
from priorwise.families.particle.prior import ParticlePrior
from priorwise.policies.thompson import ThompsonSampling
from priorwise.sensitivity.bounds.bandits import reward_bound
from priorwise.sensitivity.distance.measures import total_variation

ARMS: Final = 4
SPREAD: Final = 0.3  # standard deviation of the logarithm of an order
SCALE: Final = 0.6  # of shops, in the same logarithm
PARTICLES: Final = 512
DRAWS: Final = 20_000  # from which distances and tails are estimated


@dataclass(frozen=True)
class Orders:
    """``p_a ~ Beta(shape, shape)``, ``m_a ~ N(0, scale^2)``: parameters are the chances, then the
    means of the logarithm of an order.
    """

    scale: float
    shape: float = 4.0

    def sample(self, rng: Stream) -> FloatArray:
        """Draw parameters."""
        shape = np.full((rng.tasks, ARMS), self.shape)
        return np.concatenate([rng.beta(shape, shape)[:, 0], self.scale * rng.normal(ARMS)], axis=1)

    def log_density(self, x: FloatArray) -> FloatArray:
        """Log density of the prior."""
        from scipy.special import betaln

        a, p, z = self.shape, x[:, :ARMS], x[:, ARMS:] / self.scale
        chances = (a - 1.0) * (np.log(p) + np.log1p(-p)) - betaln(a, a)
        orders = -0.5 * z * z - np.log(self.scale * np.sqrt(2.0 * np.pi))
        return np.asarray((chances + orders).sum(axis=1))


def log_density(x: FloatArray, arm: int, reward: FloatArray) -> FloatArray:
    """No order with probability 1 - p, or one with a log-normal density."""
    p, m = x[:, arm], x[:, ARMS + arm]
    z = (np.log(np.where(reward > 0.0, reward, 1.0)) - m) / SPREAD
    order = np.log(p) - 0.5 * z * z - np.log(SPREAD * np.sqrt(2.0 * np.pi))
    return np.asarray(
        np.where(reward > 0.0, order - np.log(np.maximum(reward, 1e-300)), np.log1p(-p))
    )


def mean_reward(x: FloatArray) -> FloatArray:
    """``p exp(m + spread^2 / 2)``."""
    return np.asarray(x[:, :ARMS] * np.exp(x[:, ARMS:] + 0.5 * SPREAD**2))


def sample_reward(x: FloatArray, arm: int, rng: Stream) -> FloatArray:
    """Draw whether there is an order, and what it is worth."""
    order = rng.uniform() < x[:, arm]
    return np.where(order, np.exp(x[:, ARMS + arm] + SPREAD * rng.normal()), 0.0)


@cache
def believed(law: Orders) -> ParticlePrior:
    """Return the prior with this law of parameters."""
    return ParticlePrior(
        law.sample,
        log_density,
        mean_reward,
        sample_reward,
        particles=PARTICLES,
        seed=0,
        log_prior=law.log_density,
        moves=0,
    )


def limit(true: Any, believed: Any, policy: Policy, horizon: int, seed: int) -> Limit:
    """Theorem on bandits, with the distance of the priors and the tails estimated, and allowed for
    some standard errors.
    """
    tv = total_variation(true, believed, seed=seed, draws=DRAWS)
    how: Any = {"tv": tv, "estimate": True, "seed": seed, "draws": DRAWS}
    bound = reward_bound(true, believed, policy, horizon, **how)
    return Limit(
        tv.value + NOISE * tv.std_error, bound.value + NOISE * bound.std_error, bound.trivial
    )


CASE: Final = Case(
    title="A model of your own",
    axis="spread of shops believed, as a multiple of the true one",
    true=lambda: believed(Orders(SCALE)),
    wrong=lambda factor: believed(Orders(SCALE * factor)),
    vague=lambda: believed(Orders(10.0, 0.5)),
    grid=(0.03, 0.1, 0.3, 0.99, 0.999, 1.01, 3.0, 10.0),
    named=(0.03, "shops thought alike"),
    policy=ThompsonSampling(),
    horizon=10,
    tasks=96,
    note=f"{ARMS} shops, 10 visits, Thompson sampling; {PARTICLES} particles.",
    limit=limit,
)
