"""MetaTS:no-cov: the prior's mean from the first pulls alone, its covariance given (Simchowitz et
al. 2021).

The first pull of each exploration episode is uniform. Episode t then goes on with the prior
``N(nu_t, cov)``,

    nu_1 = 0,    nu_t = A / (t - 1) sum_{i < t} r_{i,1} e_{a_{i,1}},

and after T0 episodes the mean over all of them is held. First pulls do not depend on the running
mean, so those of a whole stretch of episodes are played first; then every episode has its mean, and
all of them run at once with a :class:`TaskMeansPrior`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, final

import numpy as np
from attrs import field, frozen
from numba import types

from priorwise.core import validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.parameters import (
    Array,
    Covariance,
    arrays,
    optional_arrays,
)
from priorwise.core.protocols import Environment
from priorwise.core.rewards import BanditEnvironment
from priorwise.core.seen import Seen, Signal
from priorwise.core.streams import Stream
from priorwise.core.tiles import FamilyTiles
from priorwise.core.trajectories import Trajectory
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.gaussian.prior import GaussianBelief, GaussianPrior
from priorwise.fitting.task_facts import KnownTasks
from priorwise.kernels.compiling import INTS, ROW, ROWS, F, entry


@final
@frozen(eq=False, slots=False)
class RunningMean:
    """Explore with the running mean of the first pulls, which must be uniform.

    For :class:`~priorwise.meta.learners.explore_then_commit.ExploreThenCommit` with
    ``UniformThen(1, policy)`` as exploration; the variant ``"no-cov"`` of
    :class:`~priorwise.families.gaussian.moments.GaussianMoments` is the estimator that belongs to
    it.

    Parameters
    ----------
    cov
        The covariance that is held and never estimated, ``(arm, arm)``.
    noise_var
        Variance of a reward, one for all arms or ``(arm,)``; by default that of the tasks.

    """

    cov: FloatArray = field(converter=arrays, validator=Covariance())
    noise_var: FloatArray | None = field(
        default=None, converter=optional_arrays, validator=Array(("arm",), 1e-100, spread=1)
    )

    def for_tasks(self, known: KnownTasks) -> RunningMean:
        """Take the noise from the tasks if it was left open."""
        known.check_arms(self, cov=len(self.cov))
        return RunningMean(self.cov, known.noise_var if self.noise_var is None else self.noise_var)

    @cached_property
    def held(self) -> GaussianPrior:
        """The prior of an episode less its mean."""
        if self.noise_var is None:
            raise ArgumentError(
                "noise_var",
                "of RunningMean is open",
                cure="pass noise_var=..., the variance of a reward",
            )
        return GaussianPrior(np.zeros(len(self.cov)), self.cov, self.noise_var)

    def exploring(self, explored: Trajectory | None) -> RunningMeanPrior:
        """Return what to hold in the next episodes of exploration, after those explored so far
        (None: none).
        """
        if explored is None:
            return RunningMeanPrior(self, np.zeros(len(self.cov)), 0)
        first = self._first_pulls(explored.actions[:, 0], explored.rewards[:, 0])
        return RunningMeanPrior(self, first.sum(axis=0), len(first))

    def _first_pulls(self, actions: IntArray, rewards: FloatArray) -> FloatArray:
        """``A r e_a`` of each task, ``(task, arm)``."""
        arms = len(self.cov)
        if actions.max() >= arms:
            raise ArgumentError("cov", f"has {arms} arms, but arm {actions.max()} was pulled")
        return arms * rewards[:, None] * np.eye(arms)[actions]


@final
@dataclass(frozen=True, eq=False)
class RunningMeanPrior:
    """Held in consecutive episodes whose prior mean runs along: it follows from their first
    pulls.
    """

    law: RunningMean
    total: FloatArray  # (arm,): sum of A r e_a over the first pulls of earlier episodes
    episodes: int  # their number

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.total.size

    @property
    def before(self) -> GaussianPrior:
        """What first pulls, which do not read it, are played with."""
        return self.law.held

    def sample(self, rng: Stream, tasks: int) -> Environment:
        """Raise an error: this is not a law of tasks."""
        raise ArgumentTypeError(
            "prior",
            "must be one to sample from, unlike a RunningMeanPrior",
            cure="use it as the believed prior",
        )

    def belief(self, tasks: int) -> RunningMeanBelief:
        """Nothing that could be read before the first pulls."""
        return RunningMeanBelief(self.arms, validation.count("tasks", tasks))

    def given_first_pulls(self, actions: IntArray, rewards: FloatArray) -> TaskMeansPrior:
        """``nu_t`` for each task of a batch, from what came before it."""
        means = np.empty((len(actions), self.arms))
        pulls = actions.astype(np.int64), np.ascontiguousarray(rewards)
        running_means(*pulls, self.total.copy(), float(self.episodes), means)
        return TaskMeansPrior(self.law.held, means)


@final
@dataclass(frozen=True, eq=False)
class RunningMeanBelief:
    """What is known before the first pull, which must not look."""

    arms: int
    tasks: int

    def mean(self, seen: Seen) -> FloatArray:
        """Raise an error."""
        raise self._unreadable()

    def sample(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """Raise an error."""
        raise self._unreadable()

    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Raise an error."""
        raise self._unreadable()

    def _unreadable(self) -> ArgumentError:
        return ArgumentError(
            "policy",
            "must not look at a running mean at the first pull",
            cure="explore with UniformThen(1, policy)",
        )


@final
@dataclass(frozen=True, eq=False)
class TaskMeansPrior:
    """A normal prior whose mean every task has its own of."""

    prior: GaussianPrior  # the rest
    means: FloatArray  # (task, arm)

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.prior.arms

    def sample(self, rng: Stream, tasks: int) -> BanditEnvironment:
        """``mu_t ~ N(mean_t, cov)``."""
        drawn = self.prior.sample(rng, self._all(tasks))
        return BanditEnvironment(drawn.means + self.means - self.prior.mean, drawn.law)

    def belief(self, tasks: int) -> GaussianBelief:
        """Start at the prior of each task."""
        return replace(self.prior.belief(self._all(tasks)), m=self.means)

    def tiles(self, horizon: int, uses: frozenset[str]) -> FamilyTiles:
        """Tile functions for the compiled loop."""
        return replace(self.prior.tiles(horizon, uses, roots=True), first_rows=self.means.T)

    def _all(self, tasks: int) -> int:
        if tasks != len(self.means):
            raise ArgumentError("tasks", f"must be {len(self.means)}, one for each mean", got=tasks)
        return tasks


def _running_means(
    actions: IntArray, rewards: FloatArray, total: FloatArray, episodes: float, means: FloatArray
) -> None:
    """Write the mean for each task, (task, arm), from the total of ``A r e_a`` over the episodes
    before it.
    """
    arms = total.size
    for task in range(actions.size):
        for arm in range(arms):
            means[task, arm] = total[arm] / max(episodes, 1.0)
        total[actions[task]] += arms * rewards[task]
        episodes += 1.0


running_means: Any = entry(types.void(INTS, ROW, ROW, F, ROWS))(_running_means)
