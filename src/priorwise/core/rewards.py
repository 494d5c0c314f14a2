"""Reward laws D(mu) and the bandit environments that draw from them.

Two priors can be compared only if they share their reward law, so the law is a value of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Protocol, final

import numpy as np

from priorwise.core.seen import Seen, Signal
from priorwise.core.streams import Stream, WorldStreams
from priorwise.core.types import FloatArray, IntArray


class RewardLaw(Protocol):
    """D(mu): how a reward scatters around its mean.

    It may say ``support``, the least and the largest reward, and ``binary``, whether rewards are 0
    or 1; None, or nothing, where that depends on the means. It may have ``variance(means)``, by
    which a prior is counted in pulls.
    """

    support: ClassVar[tuple[float, float] | None]
    binary: ClassVar[bool | None]

    def draw(self, means: FloatArray, actions: IntArray, rng: Stream) -> FloatArray:
        """Rewards ``(task,)`` for the means ``(task,)`` of the chosen actions ``(task,)``; one
        number of noise a step.
        """
        ...


@final
@dataclass(frozen=True)
class NormalRewards:
    """Normal noise with a variance for each arm."""

    support: ClassVar[tuple[float, float] | None] = (-np.inf, np.inf)
    binary: ClassVar[bool | None] = False

    noise_var: tuple[float, ...]

    def draw(self, means: FloatArray, actions: IntArray, rng: Stream) -> FloatArray:
        """``r ~ N(mu_a, noise_var_a)``."""
        return means + np.sqrt(np.array(self.noise_var))[actions] * rng.normal()

    def variance(self, means: FloatArray) -> FloatArray:
        """``noise_var_a``."""
        return np.broadcast_to(np.array(self.noise_var), means.shape)


@final
@dataclass(frozen=True)
class BernoulliRewards:
    """Zero or one."""

    support: ClassVar[tuple[float, float] | None] = (0.0, 1.0)
    binary: ClassVar[bool | None] = True

    def draw(self, means: FloatArray, actions: IntArray, rng: Stream) -> FloatArray:
        """``r ~ Bernoulli(mu_a)``."""
        return (rng.uniform() < means).astype(np.float64)

    def variance(self, means: FloatArray) -> FloatArray:
        """``mu_a (1 - mu_a)``."""
        return means * (1.0 - means)


@final
@dataclass(frozen=True)
class NoiselessRewards:
    """The mean itself."""

    support: ClassVar[tuple[float, float] | None] = None
    binary: ClassVar[bool | None] = None

    def draw(self, means: FloatArray, actions: IntArray, rng: Stream) -> FloatArray:
        """``r = mu_a``."""
        return means

    def variance(self, means: FloatArray) -> FloatArray:
        """None."""
        return np.zeros_like(means)


@final
@dataclass(frozen=True, eq=False)
class BanditEnvironment:
    """Arms with fixed means: nothing is shown and nothing changes."""

    actions_influence_signals: ClassVar[bool] = False

    means: FloatArray  # (task, arm)
    law: RewardLaw

    def start(self, rng: WorldStreams) -> Signal:
        """Show nothing."""
        return None

    def step(self, seen: Seen, actions: IntArray, rng: WorldStreams) -> tuple[FloatArray, Signal]:
        """Draw the rewards of the chosen arms."""
        chosen = np.take_along_axis(self.means, actions[:, None], axis=1)[:, 0]
        return self.law.draw(chosen, actions, rng.noise), None

    def values(self, signal: Signal) -> FloatArray:
        """Return the means."""
        return self.means

    def reward_variances(self) -> FloatArray | None:
        """Variance of a reward of each arm, ``(task, arm)``; None where its law does not say."""
        known = getattr(self.law, "variance", None)
        return None if known is None else np.asarray(known(self.means))


def mixed(environments: Sequence[Any], index: IntArray) -> Any:
    """Take task t from ``environments[index[t]]``: all of one class, whose arrays have the task
    axis first.
    """
    first, rows, taken = environments[0], np.arange(len(index)), {}
    for name in (each.name for each in fields(first)):
        if isinstance(getattr(first, name), np.ndarray):
            taken[name] = np.stack([getattr(each, name) for each in environments])[index, rows]
    return replace(first, **taken)
