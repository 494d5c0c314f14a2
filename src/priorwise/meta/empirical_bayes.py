"""Empirical Bayes without an exploration phase: always learning, always earning.

Every task is played by the policy itself, with a prior fitted to all tasks before it. That is sound for estimators that do not
care how actions were chosen, as the marginal likelihood does not: the policy's choices depend on what it saw and not on the
parameters. Moment estimators assume uniform pulls and must not be used here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol, final

from priorwise.core import validation
from priorwise.core.protocols import Policy, Prior
from priorwise.core.streams import Stream
from priorwise.meta.fit import Estimator, PriorFit
from priorwise.meta.learner import Play, Setting
from priorwise.meta.robust import AsFitted, PriorRule, Widened
from priorwise.meta.statistics import BetaStatistics, FiniteStatistics, GaussianStatistics, LinearStatistics
from priorwise.policies.sampling import SamplingPolicy, ThompsonSampling
from priorwise.priors.beta import BetaPrior
from priorwise.priors.finite import FinitePrior
from priorwise.priors.gaussian import GaussianPrior
from priorwise.priors.linear import LinearGaussianPrior
from priorwise.simulate.results import Trajectory


class Schedule(Protocol):
    """When to fit again; frozen."""

    def after(self, episodes: int) -> int:
        """Number of episodes after which to fit next, given that of the fit before (0: the start)."""
        ...


@final
@dataclass(frozen=True)
class Geometric:
    """Fit again whenever the number of tasks has grown by a ratio: 1, 2, 3, ..., then ever more rarely.

    Parameters
    ----------
    ratio
        The fits of n episodes cost about ``1 / (ratio - 1)`` times as much as one fit of n tasks.

    """

    ratio: float = 1.2

    def __post_init__(self) -> None:
        """Check the ratio."""
        if validation.number("ratio", self.ratio) <= 1.0:
            raise ValueError(f"ratio must be above 1, got {self.ratio:g}")

    def after(self, episodes: int) -> int:
        """``max(n + 1, floor(ratio n))``."""
        return max(episodes + 1, int(self.ratio * episodes))


@final
@dataclass(frozen=True)
class Every:
    """Fit again after each so many episodes."""

    episodes: int

    def __post_init__(self) -> None:
        """Check the number."""
        validation.count("episodes", self.episodes)

    def after(self, episodes: int) -> int:
        """``n + episodes``."""
        return episodes + self.episodes


@final
@dataclass(frozen=True, eq=False)
class Learned:
    """Where an empirical Bayes learner stands."""

    start: Prior
    statistics: Any  # of all episodes; None before the first
    episodes: int
    refit_at: int
    fit: PriorFit | None
    held: Play | None  # what is being played; None right after a fit


@final
@dataclass(frozen=True)
class EmpiricalBayes:
    """Fit the prior to all past tasks now and then, and play with it in between.

    Parameters
    ----------
    estimator
        Fits the prior, warm-started from the fit before; one that allows for adaptive choices, such as a marginal likelihood.
    policy
        What plays.
    schedule
        When to fit again: :class:`Geometric` or :class:`Every`.
    hold
        How to turn a fit into the prior that is held. By default as fitted; but a normal prior is widened by the uncertainty of its
        mean (:class:`~priorwise.meta.robust.Widened`) for policies that do not choose from posterior draws alone: these do not
        explore by themselves, and would not come back to an arm whose fitted mean is too low by accident.
    start
        The prior held before the first fit, and its warm start; by default the one that knows nothing of the law of tasks
        (:attr:`~priorwise.meta.learner.Setting.blank`: mean 0 and the covariance of the noise, Beta(1, 1), or uniform).

    """

    estimator: Estimator
    policy: Policy = field(default_factory=ThompsonSampling)
    schedule: Schedule = field(default_factory=Geometric)
    hold: PriorRule | None = None
    start: Prior | None = None

    def init(self, setting: Setting) -> Learned:
        """Nothing learned yet."""
        start = setting.blank if self.start is None else self.start
        if type(start) not in _READERS:
            known = ", ".join(each.__name__ for each in _READERS)
            raise TypeError(f"start must be a prior whose statistics are known ({known}), got a {type(start).__name__}")
        return Learned(start, None, 0, self.schedule.after(0), None, None)

    def plan(self, state: Learned, rng: Stream) -> Play:
        """Hold one prior until the next fit."""
        left = state.refit_at - state.episodes
        if state.held is not None:
            return replace(state.held, episodes=left)
        believed = state.start if state.fit is None else self._rule(state.fit).hold(state.fit, rng)
        return Play(self.policy, believed, left)

    def step(self, state: Learned, play: Play, played: Trajectory) -> Learned:
        """Gather; fit when it is time."""
        fresh = _READERS[type(state.start)](state.start, played)
        statistics = fresh if state.statistics is None else state.statistics + fresh
        episodes = state.episodes + len(played.rewards)
        if episodes < state.refit_at:
            return replace(state, statistics=statistics, episodes=episodes, held=play)
        fit = self.estimator.fit(statistics, start=state.start if state.fit is None else state.fit)
        return Learned(state.start, statistics, episodes, self.schedule.after(episodes), fit, None)

    def _rule(self, fit: PriorFit) -> PriorRule:
        if self.hold is not None:
            return self.hold
        normal = isinstance(fit.prior, (GaussianPrior, LinearGaussianPrior))
        return Widened() if normal and not isinstance(self.policy, SamplingPolicy) else AsFitted()


def _linear(prior: LinearGaussianPrior, played: Trajectory) -> LinearStatistics:
    if played.log is None:
        raise ValueError("start is a prior over weights of features, but the tasks show none")
    return LinearStatistics.from_trajectory(played.log, played.rewards)


_READERS: Final[dict[type, Callable[[Any, Trajectory], Any]]] = {
    GaussianPrior: lambda prior, t: GaussianStatistics.from_trajectory(t.actions, t.rewards, arms=prior.arms),
    BetaPrior: lambda prior, t: BetaStatistics.from_trajectory(t.actions, t.rewards, arms=prior.arms),
    LinearGaussianPrior: _linear,
    FinitePrior: lambda prior, t: FiniteStatistics.from_trajectory(t.actions, t.rewards, prior),
}
