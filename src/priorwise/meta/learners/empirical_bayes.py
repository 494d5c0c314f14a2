"""Empirical Bayes without an exploration phase: always learning, always earning.

Every task is played by the policy itself, with a prior fitted to all tasks before it. That is sound
for estimators that do not care how actions were chosen, as the marginal likelihood does not: the
policy's choices depend on what it saw and not on the parameters. Moment estimators assume uniform
pulls and must not be used here.
"""

from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, final

from attrs import evolve, field, frozen

from priorwise.core import argument_checks
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.parameters import Checked, Count, Instance, Number, Role
from priorwise.core.protocols import Policy, Prior, for_arms
from priorwise.core.streams import Stream
from priorwise.core.trajectories import Trajectory
from priorwise.families.registry import family_for, family_of, statistics_of
from priorwise.fitting.fits import Estimator, PriorFit
from priorwise.fitting.task_facts import KnownTasks, adapted
from priorwise.meta.evidence.watch import Watch, Watched
from priorwise.meta.learners.learner import Play, Setting
from priorwise.meta.learners.rules import AsFitted, PriorRule, Widened
from priorwise.policies.posterior_sampling import SamplingPolicy
from priorwise.policies.thompson import ThompsonSampling
from priorwise.policies.uniform import Uniform

PATIENCE: Final = 50
"""With fewer tasks, an estimator that raises a ValueError is taken to have too little data, and the
start prior is held.
"""


class Schedule(Protocol):
    """When to fit again; frozen."""

    def after(self, episodes: int) -> int:
        """Number of episodes after which to fit next, given that of the last fit (0: none)."""
        ...


@final
@frozen(slots=False)
class Geometric:
    """Fit again whenever the number of tasks has grown by a ratio: 1, 2, 3, ..., then ever more
    rarely.

    Parameters
    ----------
    ratio
        The fits of n episodes cost about ``1 / (ratio - 1)`` times as much as one fit of n tasks.

    """

    ratio: float = field(default=1.2, validator=Number(1.0, ends="()"))

    def after(self, episodes: int) -> int:
        """``max(n + 1, floor(ratio n))``."""
        return max(episodes + 1, int(self.ratio * episodes))


@final
@frozen(slots=False)
class Every:
    """Fit again after each so many episodes."""

    episodes: int = field(validator=Count())

    def after(self, episodes: int) -> int:
        """``n + episodes``."""
        return episodes + self.episodes


@final
@dataclass(frozen=True, eq=False)
class Learned:
    """Where an empirical Bayes learner stands."""

    start: Prior
    estimator: Estimator  # for these tasks
    arms: int
    refit_at: int
    stop_at: int  # the next fit or the next look
    statistics: Any = None  # of all episodes, or of those since a change; None before the first
    episodes: int = 0  # their number
    fit: PriorFit | None = None
    held: Play | None = None  # what is being played; None right after a fit
    watched: Watched = Watched()  # noqa: RUF009 - a frozen value
    restarts: int = 0  # changes of the law of tasks that were noticed
    problem: str | None = None  # what the estimator said when it last could not fit


@final
@frozen(slots=False)
class EmpiricalBayes:
    """Fit the prior to all past tasks now and then, and play with it in between.

    Parameters
    ----------
    estimator
        Fits the prior, warm-started from the fit before; one that allows for adaptive choices, such
        as a marginal likelihood. If it raises a ValueError on fewer than 50 tasks, these are taken
        to be too few, the prior before is held on, and the state's ``problem`` says why. A noise
        that it leaves open is that of the start.
    policy
        What plays.
    schedule
        When to fit again: :class:`Geometric` or :class:`Every`.
    hold
        How to turn a fit into the prior that is held. By default as fitted; but a normal prior is
        widened by the uncertainty of its mean (:class:`~priorwise.meta.learners.rules.Widened`) for
        every policy that is not a :class:`~priorwise.policies.posterior_sampling.SamplingPolicy`:
        those do not choose from posterior draws alone, may not explore by themselves, and would not
        come back to an arm whose fitted mean is too low by accident. Other families are held as
        fitted.
    start
        The prior believed before the first fit, and the place where that fit begins. By default the
        vague prior of the tasks (:attr:`~priorwise.meta.learners.learner.Setting.blank`: mean 0 and
        the covariance of the noise, Beta(1, 1), or uniform); the fit then finds its own place to
        begin.
    watch
        Look for a change of the law of tasks, and start learning again from the tasks after it
        (:class:`~priorwise.meta.evidence.watch.Watch`); by default tasks are taken to follow one
        law for ever.

    """

    estimator: Estimator = field(validator=Checked(argument_checks.estimator))
    policy: Policy = field(factory=ThompsonSampling, validator=Checked(argument_checks.player))
    schedule: Schedule = field(
        factory=Geometric, validator=Role("a schedule such as Every(10)", ("after",))
    )
    hold: PriorRule | None = field(
        default=None, validator=Role("a rule such as Widened()", ("hold",))
    )
    start: Prior | None = field(default=None, validator=Checked(argument_checks.prior))
    watch: Watch | None = field(default=None, validator=Instance(Watch, "a Watch(...) or None"))

    def __attrs_post_init__(self) -> None:
        if not getattr(self.estimator, "adaptive", True) and not isinstance(self.policy, Uniform):
            name = type(self.estimator).__name__
            raise ArgumentError(
                "estimator",
                f"must allow for choices that followed rewards, unlike {name}",
                cure="use a marginal likelihood, or explore first: ExploreThenCommit",
            )

    def init(self, setting: Setting) -> Learned:
        """Nothing learned yet."""
        start = setting.blank if self.start is None else self.start
        estimator = adapted(self.estimator, KnownTasks.of(setting.truth, held=start, start=start))
        _check_reads(estimator, start)
        first = self.schedule.after(0)
        stop = self._stop(0, first)
        return Learned(start, estimator, setting.arms, refit_at=first, stop_at=stop)

    def plan(self, state: Learned, rng: Stream) -> Play:
        """Hold one prior until the next fit."""
        left = state.stop_at - state.episodes
        if state.held is not None:
            return evolve(state.held, episodes=left)
        believed = state.start
        if state.fit is not None:
            believed = for_arms(self._rule(state.fit).hold(state.fit, rng), state.arms)
        return Play(self.policy, believed, left)

    def step(self, state: Learned, play: Play, played: Trajectory) -> Learned:
        """Gather; fit when it is time, or when tasks no longer follow what was learned."""
        fresh = statistics_of(state.start, played, "EmpiricalBayes")
        gathered = fresh if state.statistics is None else state.statistics + fresh
        episodes = state.episodes + len(played.rewards)
        watched = self._observe(state, play, played)
        state = replace(state, statistics=gathered, episodes=episodes, held=play, watched=watched)
        if episodes < state.stop_at:
            return state
        if state.watched.raised:
            recent = gathered[state.watched.since :]
            count = len(recent)
            state = replace(state, statistics=recent, episodes=count, watched=Watched(count, count))
            return self._refit(replace(state, fit=None, restarts=state.restarts + 1))
        if episodes < state.refit_at:
            return replace(state, stop_at=self._stop(episodes, state.refit_at))
        return self._refit(state)

    def _observe(self, state: Learned, play: Play, played: Trajectory) -> Watched:
        """Test against what is held, once that was learned from enough tasks."""
        if self.watch is None or state.fit is None or state.fit.tasks < self.watch.least:
            return state.watched.pass_over(len(played.rewards))
        other = state.start if self.watch.other is None else self.watch.other
        return state.watched.observe(self.watch, play.believed, other, played)

    def _refit(self, state: Learned) -> Learned:
        """Fit what was gathered, from the fit before or from the user's start."""
        refit_at = self.schedule.after(state.episodes)
        fit, problem = state.fit, None
        try:
            # the default start may be of another family, where no fit can begin
            fit = state.estimator.fit(state.statistics, start=self.start if fit is None else fit)
        except ValueError as error:
            if state.episodes >= PATIENCE:
                raise
            problem = str(error)
        if fit is not None and fit.statistics is None:
            fit = replace(fit, statistics=state.statistics)
        state = replace(state, refit_at=refit_at, stop_at=self._stop(state.episodes, refit_at))
        return replace(state, fit=fit, held=None, problem=problem)

    def _stop(self, episodes: int, refit_at: int) -> int:
        return refit_at if self.watch is None else min(refit_at, episodes + self.watch.episodes)

    def _rule(self, fit: PriorFit) -> PriorRule:
        if self.hold is not None:
            return self.hold
        family = family_of(fit.prior)
        cautious = family is not None and family.cautious
        return Widened() if cautious and not isinstance(self.policy, SamplingPolicy) else AsFitted()


def _check_reads(estimator: Any, start: Any) -> None:
    """Raise an error for an estimator that reads other statistics than those of the prior that a
    learner starts from.
    """
    kind = family_for(start, "EmpiricalBayes", "start").statistics
    reads = getattr(estimator, "reads", None)
    if reads is not None and reads is not kind:
        raise ArgumentTypeError(
            "estimator",
            f"must read {kind.__name__}, which a learner that starts from a "
            f"{type(start).__name__} gathers",
            got=reads,
            cure="take an estimator for that prior, or pass a start for the estimator",
        )
