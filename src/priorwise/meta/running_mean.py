"""MetaTS:no-cov: the prior's mean from the first pulls alone, its covariance given (Simchowitz et al. 2021).

The first pull of each exploration episode is uniform. Episode t then goes on with the prior ``N(nu_t, cov)``,

    nu_1 = 0,    nu_t = A / (t - 1) sum_{i < t} r_{i,1} e_{a_{i,1}},

and after T0 episodes the mean over all of them is held. First pulls do not depend on the running mean, so a whole stretch of
episodes is run at once: :class:`RunningMeanPrior` looks at the first pulls of the episodes before, and at nothing else of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, final

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.protocols import Environment, Seen, Signal
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray, IntArray
from priorwise.priors.gaussian import GaussianBelief, GaussianPrior
from priorwise.simulate.results import Trajectory


@final
@dataclass(frozen=True, eq=False, init=False)
class RunningMean:
    """Explore with the running mean of the first pulls, which must be uniform.

    For :class:`~priorwise.meta.explore_then_commit.ExploreThenCommit` with ``UniformThen(1, policy)`` as exploration; the variant
    ``"no-cov"`` of :class:`~priorwise.meta.moments_gaussian.GaussianMoments` is the estimator that belongs to it.

    Parameters
    ----------
    cov
        The covariance that is held and never estimated, ``(arm, arm)``.
    noise_var
        Variance of a reward.

    """

    cov: FloatArray
    noise_var: FloatArray

    def __init__(self, cov: ArrayLike, noise_var: ArrayLike = 1.0) -> None:
        """Check and freeze the parameters."""
        arms = validation.matrix("cov", cov).shape[0]
        object.__setattr__(self, "cov", validation.covariance("cov", cov, arms))
        object.__setattr__(self, "noise_var", validation.per_arm("noise_var", noise_var, arms))

    def exploring(self, explored: Trajectory | None) -> RunningMeanPrior:
        """Return what to hold in the next episodes of exploration, after those explored so far (None: none)."""
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
    """Held in consecutive episodes whose prior mean runs along; the tasks of a batch are those episodes, in order."""

    law: RunningMean
    total: FloatArray  # (arm,): sum of A r e_a over the first pulls of earlier episodes
    episodes: int  # their number

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.total.size

    def sample(self, rng: Stream, tasks: int) -> Environment:
        """Refuse: this is not a law of tasks."""
        raise TypeError("RunningMeanPrior can be held but not sampled from: the mean of a task depends on the tasks before it")

    def belief(self, tasks: int) -> RunningMeanBelief:
        """Start before the first pulls."""
        return RunningMeanBelief(self, None)


@final
@dataclass(frozen=True, eq=False)
class RunningMeanBelief:
    """Nothing before the first pull, which must not look; from then on the posterior under each task's own prior mean."""

    prior: RunningMeanPrior
    inner: GaussianBelief | None

    def sample(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """``mu ~ N(m, S)``, ``(task, draw, arm)``."""
        return self._posterior.sample(rng, draws, seen)

    def mean(self, seen: Seen) -> FloatArray:
        """Posterior means."""
        return self._posterior.m

    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Condition on the reward; the first one also sets the prior mean of the episodes after."""
        inner = self._start(actions, rewards) if self.inner is None else self.inner
        return type(self)(self.prior, inner.update(seen, actions, rewards, after))

    def _start(self, actions: IntArray, rewards: FloatArray) -> GaussianBelief:
        """``nu_t`` for each task of the batch, from what came before it."""
        prior = self.prior
        own = prior.law._first_pulls(actions, rewards)
        before = prior.total + np.cumsum(own, axis=0) - own
        count = prior.episodes + np.arange(len(own))
        held = GaussianPrior(np.zeros(prior.arms), prior.law.cov, prior.law.noise_var).belief(len(own))
        return GaussianBelief(held.prior, before / np.maximum(count, 1)[:, None], held.root)

    @property
    def _posterior(self) -> GaussianBelief:
        if self.inner is None:
            raise ValueError("the first pull must not look at a running mean: explore with UniformThen(1, policy)")
        return self.inner
