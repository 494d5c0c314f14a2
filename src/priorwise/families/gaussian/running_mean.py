"""MetaTS:no-cov: the prior's mean from the first pulls alone, its covariance given (Simchowitz et
al. 2021).

The first pull of each exploration episode is uniform. Episode t then goes on with the prior
``N(nu_t, cov)``,

    nu_1 = 0,    nu_t = A / (t - 1) sum_{i < t} r_{i,1} e_{a_{i,1}},

and after T0 episodes the mean over all of them is held. First pulls do not depend on the running
mean, so a whole stretch of episodes is run at once: :class:`RunningMeanPrior` looks at the first
pulls of the episodes before, and at nothing else of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import doors, validation
from priorwise.core.known import KnownTasks
from priorwise.core.protocols import Environment, Seen, Signal
from priorwise.core.runs import Trajectory
from priorwise.core.streams import Stream
from priorwise.core.tiles import FamilyTiles
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.gaussian import tiles as gaussian
from priorwise.families.gaussian.prior import GaussianBelief, GaussianPrior
from priorwise.kernels.compiling import LANES, START, UPDATE, tile


@tile(START)
def _start(p, n, state):  # type: ignore[no-untyped-def]  # Numba infers the types
    """Start before the first pulls."""
    gaussian.at_prior(p, n, state)
    state[n[0] + n[0] * n[0]] = 0.0


@tile(UPDATE)
def _update(p, n, state, signal, scratch, actions, rewards):  # type: ignore[no-untyped-def]  # Numba infers the types
    """Condition on the rewards; the first of an episode gives it its prior mean, from the first
    pulls of the episodes before.

    After the rows of mean and root: whether the first pulls are over, then the episodes and the
    total so far, kept in lane 0.
    """
    arms = n[0]
    over = arms + arms * arms
    given = over + 2 * arms  # in p: the total before, and its episodes
    if state[over, 0] == 0.0:
        state[over] = 1.0
        if state[over + 1, 0] == 0.0:
            for arm in range(arms):
                state[over + 2 + arm, 0] = p[given + arm]
        for lane in range(LANES):
            episodes = max(p[given + arms] + state[over + 1, 0], 1.0)
            for arm in range(arms):
                state[arm, lane] = state[over + 2 + arm, 0] / episodes
            state[over + 2 + actions[lane], 0] += arms * rewards[lane]
            state[over + 1, 0] += 1.0
    gaussian.observe(p, n, state, scratch, actions, rewards)


@final
@dataclass(frozen=True, eq=False, init=False)
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

    cov: FloatArray
    noise_var: FloatArray | None

    def __init__(self, cov: ArrayLike, noise_var: ArrayLike | None = None) -> None:
        """Check and freeze the parameters."""
        arms = validation.matrix("cov", cov).shape[0]
        object.__setattr__(self, "cov", validation.covariance("cov", cov, arms))
        noise = (
            None
            if noise_var is None
            else validation.positive("noise_var", validation.per_arm("noise_var", noise_var, arms))
        )
        object.__setattr__(self, "noise_var", noise)

    def for_tasks(self, known: KnownTasks) -> RunningMean:
        """Take the noise from the tasks if it was left open."""
        known.check_arms(self, cov=len(self.cov))
        return RunningMean(self.cov, known.noise_var if self.noise_var is None else self.noise_var)

    @cached_property
    def held(self) -> GaussianPrior:
        """The prior of an episode less its mean."""
        if self.noise_var is None:
            raise ValueError(
                "noise_var of RunningMean is open: pass noise_var=..., the variance of a reward"
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
            raise ValueError(f"cov has {arms} arms, but arm {actions.max()} was pulled")
        return arms * rewards[:, None] * np.eye(arms)[actions]


@final
@dataclass(frozen=True, eq=False)
class RunningMeanPrior:
    """Held in consecutive episodes whose prior mean runs along; the tasks of a batch are those
    episodes, in order.
    """

    in_order: ClassVar[bool] = True
    """What a task is played with depends on the tasks before it."""

    law: RunningMean
    total: FloatArray  # (arm,): sum of A r e_a over the first pulls of earlier episodes
    episodes: int  # their number

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.total.size

    def sample(self, rng: Stream, tasks: int) -> Environment:
        """Refuse: this is not a law of tasks."""
        raise TypeError(
            "RunningMeanPrior can be held but not sampled from: the mean of a task depends on the "
            "tasks before it"
        )

    def belief(self, tasks: int) -> RunningMeanBelief:
        """Start before the first pulls."""
        return RunningMeanBelief(self, None, validation.count("tasks", tasks))

    def tiles(self, horizon: int, uses: frozenset[str]) -> FamilyTiles | None:
        """Tile functions for the compiled loop, which runs the tiles in the order of the episodes;
        None to look ahead.
        """
        if "look" in uses:
            return None
        held = self.law.held.tiles(horizon, uses)
        own = np.concatenate([self.total, [self.episodes]])
        return replace(
            held,
            p=np.concatenate([held.p, own]),
            belief_rows=self.arms**2 + 2 * self.arms + 2,
            scratch_rows=gaussian.arm_scratch_rows(self.arms, False),
            sample=None,
            start=_start,
            draw=gaussian.arm_draw,
            mean=gaussian.arm_mean,
            update=_update,
            redraw=None,
            hidden_pulls=1,
        )


@final
@dataclass(frozen=True, eq=False)
class RunningMeanBelief:
    """Nothing before the first pull, which must not look; from then on the posterior under each
    task's own prior mean.
    """

    prior: RunningMeanPrior
    inner: GaussianBelief | None
    tasks: int

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.prior.arms

    def sample(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """``mu ~ N(m, S)``, ``(task, draw, arm)``."""
        return self._posterior.sample(rng, draws, seen)

    def mean(self, seen: Seen) -> FloatArray:
        """Posterior means."""
        return self._posterior.m

    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Condition on the reward; the first one also sets the prior mean of the episodes after."""
        actions, rewards = doors.played(self, seen, actions, rewards)
        inner = self._start(actions, rewards) if self.inner is None else self.inner
        return type(self)(self.prior, inner.update(seen, actions, rewards, after), self.tasks)

    def _start(self, actions: IntArray, rewards: FloatArray) -> GaussianBelief:
        """``nu_t`` for each task of the batch, from what came before it."""
        prior = self.prior
        own = prior.law._first_pulls(actions, rewards)
        before = np.cumsum(np.concatenate([prior.total[None], own[:-1]]), axis=0)
        count = prior.episodes + np.arange(len(own))
        held = prior.law.held.belief(len(own))
        return GaussianBelief(held.prior, before / np.maximum(count, 1)[:, None], held.root)

    @property
    def _posterior(self) -> GaussianBelief:
        if self.inner is None:
            raise ValueError(
                "the first pull must not look at a running mean: explore with UniformThen(1, "
                "policy)"
            )
        return self.inner
