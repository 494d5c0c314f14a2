"""What a step earns: known rewards, or Bernoulli or normal ones whose means have conjugate priors.

All are tables ``(state, action)``. A posterior is a function of how often each pair was played and
of what it earned in all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from attrs import field, frozen
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.core.parameters import Array, Number, arrays
from priorwise.core.rewards import BernoulliRewards, NoiselessRewards, NormalRewards, RewardLaw
from priorwise.core.serial import Serializable
from priorwise.core.types import FloatArray


def _tables(**named: ArrayLike) -> list[FloatArray]:
    """Return tables (state, action) of one shape; a number stands for all entries of the others."""
    arrays = {name: validation.numbers(name, value) for name, value in named.items()}
    tables = [name for name, each in arrays.items() if each.ndim] or list(arrays)[:1]
    shape = validation.matrix(tables[0], arrays[tables[0]]).shape
    return [
        validation.matrix(name, np.full(shape, each) if each.ndim == 0 else each, shape)
        for name, each in arrays.items()
    ]


@final
@dataclass(frozen=True, eq=False)
class KnownRewards:
    """A known reward for each state and action, without noise."""

    means: FloatArray  # (state, action)

    def law(self) -> RewardLaw:
        """How rewards scatter around their means: not at all."""
        return NoiselessRewards()

    def vague(self) -> FloatArray:
        """What is known stays known."""
        return self.means

    def bounds(self) -> tuple[float, float]:
        """The least and the largest reward."""
        return float(self.means.min()), float(self.means.max())

    def gammas(self, pulls: FloatArray, sums: FloatArray) -> FloatArray:
        """Nothing is drawn."""
        return np.empty((len(pulls), 0))

    def drawn(self, rng: Any, logs: FloatArray, pulls: FloatArray, sums: FloatArray) -> FloatArray:
        """Return the known means, ``(task, draw, state, action)``."""
        return np.broadcast_to(self.means, (*logs.shape[:2], *self.means.shape))


@final
@frozen(eq=False, slots=False)
class BernoulliRewardPrior(Serializable):
    """Rewards 0 or 1, with ``mu(s, a) ~ Beta(alpha(s, a), beta(s, a))``, independent.

    Parameters
    ----------
    alpha
        Successes before the first pull, ``(state, action)``.
    beta
        Failures before the first pull, ``(state, action)``.

    """

    family: ClassVar[str] = "bernoulli-reward-prior"

    alpha: FloatArray = field(
        converter=arrays, validator=Array(("state", "action"), 1e-6, spread=2)
    )
    beta: FloatArray = field(converter=arrays, validator=Array(("state", "action"), 1e-6, spread=2))

    @property
    def means(self) -> FloatArray:
        """Prior means, ``(state, action)``."""
        return np.asarray(self.alpha / (self.alpha + self.beta))

    def law(self) -> RewardLaw:
        """Zero or one."""
        return BernoulliRewards()

    def vague(self) -> BernoulliRewardPrior:
        """Beta(1, 1)."""
        return BernoulliRewardPrior(np.ones_like(self.alpha), 1.0)

    def bounds(self) -> tuple[float, float]:
        """The least and the largest reward."""
        return 0.0, 1.0

    def posterior(self, pulls: FloatArray, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Parameters after ``pulls`` rewards that sum to ``sums``, ``(task, state, action)``."""
        return self.alpha + sums, self.beta + (pulls - sums)

    def gammas(self, pulls: FloatArray, sums: FloatArray) -> FloatArray:
        """Shapes of the two gammas behind each Beta draw, ``(task, 2 * state * action)``."""
        return np.stack(self.posterior(pulls, sums), axis=-1).reshape(len(pulls), -1)

    def drawn(self, rng: Any, logs: FloatArray, pulls: FloatArray, sums: FloatArray) -> FloatArray:
        """Ratios of the gammas whose logarithms were drawn, ``(task, draw, state, action)``."""
        pairs = logs.reshape(*logs.shape[:2], *self.alpha.shape, 2)
        gap = np.minimum(pairs[..., 1] - pairs[..., 0], 700.0)
        return np.asarray(1.0 / (1.0 + np.exp(gap)))


@final
@frozen(eq=False, slots=False)
class NormalRewardPrior(Serializable):
    """Rewards with normal noise of known variance and ``mu(s, a) ~ N(mean(s, a), var(s, a))``.

    Parameters
    ----------
    mean
        Prior means, ``(state, action)``.
    var
        Prior variances, ``(state, action)``.
    noise_var
        Variance of a reward around its mean, in all states.

    """

    family: ClassVar[str] = "normal-reward-prior"

    mean: FloatArray = field(converter=arrays, validator=Array(("state", "action"), spread=2))
    var: FloatArray = field(
        converter=arrays, validator=Array(("state", "action"), 1e-100, spread=2)
    )
    noise_var: float = field(default=1.0, validator=Number(1e-100))

    @property
    def means(self) -> FloatArray:
        """Prior means, ``(state, action)``."""
        return self.mean

    def law(self) -> RewardLaw:
        """Normal noise."""
        return NormalRewards((self.noise_var,) * self.mean.shape[1])

    def vague(self) -> NormalRewardPrior:
        """Mean 0, and the variance of the noise."""
        return NormalRewardPrior(np.zeros_like(self.mean), self.noise_var, self.noise_var)

    def bounds(self) -> tuple[float, float]:
        """Rewards may be any numbers."""
        return -np.inf, np.inf

    def posterior(self, pulls: FloatArray, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance after ``pulls`` rewards that sum to ``sums``, ``(task, state,
        action)``.
        """
        share = self.var / (self.noise_var + pulls * self.var)  # posterior variance over noise_var
        return self.mean + share * (sums - pulls * self.mean), share * self.noise_var

    def gammas(self, pulls: FloatArray, sums: FloatArray) -> FloatArray:
        """No gammas are drawn."""
        return np.empty((len(pulls), 0))

    def drawn(self, rng: Any, logs: FloatArray, pulls: FloatArray, sums: FloatArray) -> FloatArray:
        """``N(m, v)``, ``(task, draw, state, action)``."""
        mean, var = self.posterior(pulls, sums)
        z = rng.normal(logs.shape[1], self.mean.size).reshape(*logs.shape[:2], *self.mean.shape)
        return np.asarray(mean[:, None] + np.sqrt(var)[:, None] * z)


RewardModel = KnownRewards | BernoulliRewardPrior | NormalRewardPrior


def known_or_prior(rewards: ArrayLike | RewardModel) -> FloatArray | RewardModel:
    """Let a field take tables and priors; :func:`model_of` checks them."""
    return rewards  # type: ignore[return-value]


def model_of(rewards: Any, shape: tuple[int, int]) -> RewardModel:
    """Return what the argument ``rewards`` means for so many states and actions."""
    if isinstance(rewards, (BernoulliRewardPrior, NormalRewardPrior)):
        model: RewardModel = rewards
    else:
        model = KnownRewards(*_tables(rewards=rewards))
    if model.means.shape != shape:
        raise ArgumentError(
            "rewards",
            f"must have a row for each state and a column for each action, {shape}",
            got=model.means.shape,
        )
    return model
