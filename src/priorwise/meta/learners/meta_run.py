"""What a meta-simulation returns: rewards by replicate and episode, averages and paired shortfalls with standard errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, final, runtime_checkable

import numpy as np

from priorwise.core import validation
from priorwise.core.protocols import Policy, Prior
from priorwise.core.types import FloatArray, IntArray
from priorwise.meta.numerics import mean_estimate, std_error
from priorwise.simulate.results import Estimate, Trajectory


@runtime_checkable
class FittedState(Protocol):
    """State of a learner that fits priors."""

    fit: Any  # the last PriorFit, or None before the first


@final
@dataclass(frozen=True, eq=False)
class Held:
    """What a learner held in a stretch of episodes."""

    first: int  # its first episode, from 1
    episodes: int
    policy: Policy
    believed: Prior


@final
@dataclass(frozen=True, eq=False)
class Replicate:
    """What is kept of one replicate."""

    state: Any  # of the learner, at the end
    history: tuple[Held, ...]
    trajectory: Trajectory  # (episode, step)


@final
@dataclass(frozen=True, eq=False)
class MetaRun:
    """Result of a meta-simulation. Episodes are numbered from 1, and standard errors are over replicates.

    ``rewards`` holds the total reward of each episode, ``(replicate, episode)``.
    """

    rewards: FloatArray
    horizon: int
    seed: int
    prior: Prior = field(repr=False)
    kept: tuple[Replicate, ...] | None = field(default=None, repr=False)
    first_replicate: int = 0  # number of the first one

    @property
    def replicates(self) -> int:
        """Number of replicates."""
        return self.rewards.shape[0]

    @property
    def episodes(self) -> int:
        """Number of episodes of each replicate."""
        return self.rewards.shape[1]

    @property
    def mean_reward(self) -> FloatArray:
        """Mean over replicates of each episode's total reward, ``(episode,)``."""
        return np.asarray(self.rewards.mean(axis=0))

    @property
    def std_error(self) -> FloatArray:
        """Standard error of :attr:`mean_reward`; infinite with one replicate."""
        return std_error(self.rewards)

    def running_average(self) -> tuple[FloatArray, FloatArray]:
        """Cumulative average reward per episode up to each episode, and its standard error, ``(episode,)`` each."""
        averages = np.cumsum(self.rewards, axis=1) / np.arange(1, self.episodes + 1)
        return averages.mean(axis=0), std_error(averages)

    def average(self, first: int = 1, last: int | None = None) -> Estimate:
        """Mean reward per episode over the episodes ``first`` to ``last``, both included."""
        return mean_estimate(self._window(first, last).mean(axis=1))

    def shortfall(self, other: MetaRun, first: int = 1, last: int | None = None) -> Estimate:
        """How much more ``other`` (an oracle) earned per episode, over the episodes ``first`` to ``last``.

        The difference is taken replicate by replicate, on the same tasks with the same noise; the two runs must share prior,
        horizon, seed and replicates.
        """
        for name in ("replicates", "first_replicate", "horizon", "seed"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                raise ValueError(f"other must be a run on the same tasks, but its {name} is {theirs} instead of {mine}")
        if other.prior is not self.prior and other.prior != self.prior:
            raise ValueError("other must be a run on the same tasks, but its prior is another one")
        if last is None and other.episodes != self.episodes:
            raise ValueError(f"the runs have {self.episodes} and {other.episodes} episodes: pass last=...")
        return mean_estimate((other._window(first, last) - self._window(first, last)).mean(axis=1))

    @property
    def actions(self) -> IntArray:
        """Actions, ``(replicate, episode, step)``; needs ``keep=True``."""
        return np.stack([each.trajectory.actions for each in self._kept])

    @property
    def history(self) -> tuple[tuple[Held, ...], ...]:
        """What the learner held and when, by replicate; needs ``keep=True``."""
        return tuple(each.history for each in self._kept)

    @property
    def states(self) -> tuple[Any, ...]:
        """The learner's state at the end, by replicate; needs ``keep=True``."""
        return tuple(each.state for each in self._kept)

    @property
    def fits(self) -> tuple[Any, ...]:
        """The last fit of each replicate, None where there is none; needs ``keep=True`` and a learner that fits priors."""
        return tuple(each.fit if isinstance(each, FittedState) else None for each in self.states)

    def __str__(self) -> str:
        """Average reward in one line."""
        size = f"{self.replicates:,} replicates of {self.episodes:,} episodes"
        return f"reward {self.average()} per episode over {size} of {self.horizon} pulls"

    @property
    def _kept(self) -> tuple[Replicate, ...]:
        if self.kept is None:
            raise ValueError("only the rewards were kept: call simulate_meta(..., keep=True)")
        return self.kept

    def _window(self, first: int, last: int | None) -> FloatArray:
        last = self.episodes if last is None else validation.count("last", last)
        if validation.count("first", first) > last or last > self.episodes:
            raise ValueError(f"first and last must satisfy 1 <= first <= last <= {self.episodes}, got {first} and {last}")
        return self.rewards[:, first - 1 : last]
