"""What a meta-simulation returns: rewards by replicate and episode, averages and paired shortfalls
with standard errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, final, runtime_checkable

import numpy as np

from priorwise.core import validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError, MissingCapability, shown
from priorwise.core.estimates import Estimate, mean_estimate, std_error
from priorwise.core.frames import Table, Tabular, frame
from priorwise.core.protocols import Policy, Prior
from priorwise.core.trajectories import Trajectory
from priorwise.core.types import FloatArray, IntArray
from priorwise.figures.curves import episode_curves
from priorwise.figures.style import Picture

if TYPE_CHECKING:
    from pandas import DataFrame


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
class RunningAverage(Tabular):
    """Average reward per episode up to each episode, ``(episode,)``: mean over replicates, and its
    standard error.
    """

    mean_reward: FloatArray
    std_error: FloatArray

    def table(self) -> Table:
        """Columns by name, one row for each episode."""
        return {
            "episode": np.arange(1, self.mean_reward.size + 1),
            "reward": self.mean_reward,
            "std_error": self.std_error,
        }


@final
@dataclass(frozen=True, eq=False)
class MetaRun(Tabular):
    """Result of a meta-simulation. Episodes are numbered from 1, and standard errors are over
    replicates.

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

    def running_average(self) -> RunningAverage:
        """Average reward per episode up to each episode, with its standard error."""
        averages = _so_far(self.rewards)
        return RunningAverage(averages.mean(axis=0), std_error(averages))

    def average(self, first: int = 1, last: int | None = None) -> Estimate:
        """Mean reward per episode over the episodes ``first`` to ``last``, both included."""
        return mean_estimate(self._window(first, last).mean(axis=1))

    def shortfall(self, other: MetaRun, first: int = 1, last: int | None = None) -> Estimate:
        """How much more ``other`` (an oracle) earned per episode, over the episodes ``first`` to
        ``last``.

        The difference is taken replicate by replicate, on the same tasks with the same noise; the
        two runs must share prior, horizon, seed and replicates.
        """
        self._check_paired(other)
        if last is None and other.episodes != self.episodes:
            raise ArgumentError(
                "last", f"is missing for runs of {self.episodes} and {other.episodes} episodes"
            )
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
        """The last fit of each replicate, None where there is none; needs ``keep=True`` and a
        learner that fits priors.
        """
        return tuple(each.fit if isinstance(each, FittedState) else None for each in self.states)

    def table(self) -> Table:
        """Columns by name, one row for each episode; ``average`` is that of the episodes so far."""
        average = self.running_average()
        return {
            "episode": np.arange(1, self.episodes + 1),
            "reward": self.mean_reward,
            "std_error": self.std_error,
            "average": average.mean_reward,
            "average_std_error": average.std_error,
        }

    def table_by_replicate(self) -> Table:
        """Columns by name, one row for each replicate and episode."""
        number, episode = np.indices(self.rewards.shape).reshape(2, -1)
        return {
            "replicate": self.first_replicate + number,
            "episode": 1 + episode,
            "reward": self.rewards.ravel(),
        }

    def to_frame(self, *, by_replicate: bool = False) -> DataFrame:
        """Return a pandas DataFrame: a row for each episode, or for each replicate and episode."""
        long = validation.flag("by_replicate", by_replicate)
        return frame(self.table_by_replicate() if long else self.table())

    def figure(
        self, title: str = "", *, label: str = "", others: Mapping[str, MetaRun] | None = None
    ) -> Picture:
        """Draw the average reward so far by episode, of this run and of ``others`` on the same
        tasks, such as an oracle.

        A second panel shows how far each is short of the first of the others, replicate by
        replicate.
        """
        if not isinstance(others, Mapping | None):
            raise ArgumentTypeError(
                "others", "must be a dictionary of runs by name", got=type(others)
            )
        own = validation.text("label", label) or ("this learner" if others else "")
        runs: dict[str, MetaRun] = {own: self}
        for name, other in (others or {}).items():
            named = f"others[{shown(validation.text('others', name))}]"
            self._check_paired(other, named)
            if name in runs:
                raise ArgumentError(
                    "others",
                    f"must have names of their own, but {name!r} is this run's label",
                    cure="pass label=...",
                )
            if other.episodes != self.episodes:
                raise ArgumentError(
                    "others",
                    f"must have as many episodes, {self.episodes}, but {name!r} has "
                    f"{other.episodes}",
                )
            runs[name] = other
        reference = next(iter(others), "") if others else ""
        so_far = {name: _so_far(run.rewards) for name, run in runs.items()}
        apart = [name for name in so_far if reference and name != reference]
        short = {name: so_far[reference] - so_far[name] for name in apart}
        size = f"{self.replicates:,} replicates of {self.episodes:,} episodes"
        head = (
            validation.text("title", title) or f"{size} of {self.horizon} pulls, seed {self.seed}"
        )
        return episode_curves(_means(so_far), _means(short), reference, head)

    def __str__(self) -> str:
        """Average reward, and how it went from the first tenth of the episodes to the last."""
        size = f"{self.replicates:,} replicates of {self.episodes:,} episodes"
        text = f"reward {self.average()} per episode over {size} of {self.horizon} pulls"
        tenth = self.episodes // 10
        if not tenth:
            return text
        early, late = self.average(1, tenth), self.average(self.episodes - tenth + 1)
        return f"{text} (first {tenth:,}: {early}, last {tenth:,}: {late})"

    def _check_paired(self, other: MetaRun, named: str = "other") -> None:
        validation.instance(named, other, MetaRun, "a MetaRun on the same tasks")
        for name in ("replicates", "first_replicate", "horizon", "seed"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                raise ArgumentError(named, f"must have {name}={mine}, as this run", got=theirs)
        if other.prior is not self.prior and other.prior != self.prior:
            raise ArgumentError(named, "must have the prior of this run")

    @property
    def _kept(self) -> tuple[Replicate, ...]:
        if self.kept is None:
            raise MissingCapability(
                "run", "kept only the rewards", cure="call simulate_meta(..., keep=True)"
            )
        return self.kept

    def _window(self, first: int, last: int | None) -> FloatArray:
        last = self.episodes if last is None else validation.count("last", last)
        if validation.count("first", first) > last or last > self.episodes:
            raise ArgumentError(
                "first",
                f"and last must satisfy 1 <= first <= last <= {self.episodes}",
                got=(first, last),
            )
        return self.rewards[:, first - 1 : last]


def _so_far(rewards: FloatArray) -> FloatArray:
    """Averages over the episodes up to each, ``(replicate, episode)``."""
    return np.asarray(np.cumsum(rewards, axis=1) / np.arange(1, rewards.shape[1] + 1))


def _means(values: Mapping[str, FloatArray]) -> dict[str, tuple[FloatArray, FloatArray]]:
    return {name: (each.mean(axis=0), std_error(each)) for name, each in values.items()}
