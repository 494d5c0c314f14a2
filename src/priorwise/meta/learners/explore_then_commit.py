"""Explore, then commit: T0 episodes collect data, a prior is fitted to them once, and the policy
holds it ever after.

The meta-learner of Simchowitz et al. (2021). Exploration that ignores rewards makes moment
estimators unbiased, and costs most of what the exploration episodes could have earned;
:class:`~priorwise.meta.learners.empirical_bayes.EmpiricalBayes` does without.
"""

from dataclasses import dataclass, replace
from typing import Any, Protocol, final, runtime_checkable

from attrs import field, frozen

from priorwise.core import argument_checks
from priorwise.core.errors import ArgumentError
from priorwise.core.parameters import Checked, Count
from priorwise.core.protocols import Policy, Prior, for_arms
from priorwise.core.streams import Stream
from priorwise.core.trajectories import Trajectory, joined
from priorwise.families.registry import family_for, has_part
from priorwise.fitting.fits import Estimator, PriorFit
from priorwise.fitting.runs import as_run
from priorwise.fitting.task_facts import KnownTasks, adapted
from priorwise.meta.exploration import Exploration, Segment, segments
from priorwise.meta.learners.learner import FOREVER, Play, Setting
from priorwise.policies.thompson import ThompsonSampling
from priorwise.policies.uniform import Uniform


@runtime_checkable
class Exploring(Protocol):
    """What an exploration holds where that changes as it goes, such as
    :class:`~priorwise.families.gaussian.running_mean.RunningMean`.
    """

    def for_tasks(self, known: KnownTasks) -> Any:
        """Return it for these tasks, with what it left open taken from them."""
        ...

    def exploring(self, explored: Trajectory | None) -> Prior:
        """Return what to hold next, after the episodes explored so far (None: none)."""
        ...


@final
@dataclass(frozen=True, eq=False)
class Explored:
    """Where an explore-then-commit learner stands."""

    arms: int
    estimator: Estimator  # for these tasks
    held: Prior | Exploring  # while exploring
    left: tuple[Segment, ...]  # exploration still to be played
    played: tuple[Trajectory, ...]
    fit: PriorFit | None  # once there is nothing left to explore


def check_exploring(name: str, value: Prior | Exploring) -> None:
    """Check for a prior, or for what makes one from the tasks so far."""
    if not isinstance(value, Exploring):
        argument_checks.prior(name, value)


@final
@frozen(slots=False)
class ExploreThenCommit:
    """Explore for a number of episodes, fit once, and hold the fitted prior.

    Parameters
    ----------
    episodes
        T0, the number of exploration episodes.
    estimator
        Fits the prior to them; it must suit the exploration. A noise that it leaves open is taken
        from the tasks.
    policy
        What plays afterwards.
    exploring_with
        The prior that the exploration holds, if it looks at one;
        :class:`~priorwise.families.gaussian.running_mean.RunningMean` for the mean of the first
        pulls so far. By default the prior that knows nothing of the law of tasks
        (:attr:`~priorwise.meta.learners.learner.Setting.blank`).

    Examples
    --------
    The paper's MetaTS:no-cov, which draws only its first pull uniformly and learns only the mean:

    >>> import numpy as np
    >>> from priorwise.policies.uniform_then import UniformThen
    >>> from priorwise.families.gaussian.moments import GaussianMoments
    >>> from priorwise.families.gaussian.running_mean import RunningMean
    >>> estimator = GaussianMoments("no-cov", cov=np.eye(6))
    >>> learner = ExploreThenCommit(
    ...     200,
    ...     estimator,
    ...     UniformThen(1, ThompsonSampling()),
    ...     exploring_with=RunningMean(np.eye(6)),
    ... )

    """

    episodes: int = field(validator=Count())
    estimator: Estimator = field(validator=Checked(argument_checks.estimator))
    exploration: Policy | Exploration = field(factory=Uniform)
    policy: Policy = field(factory=ThompsonSampling, validator=Checked(argument_checks.player))
    exploring_with: Prior | Exploring | None = field(
        default=None, validator=Checked(check_exploring)
    )

    def __attrs_post_init__(self) -> None:
        segments(self.exploration, self.episodes, seed=0)

    def init(self, setting: Setting) -> Explored:
        """Everything is left to explore."""
        made_for = getattr(self.exploration, "arms", setting.arms)
        if isinstance(made_for, int) and made_for != setting.arms:
            raise ArgumentError(
                "exploration",
                f"must be made for the {setting.arms} arms of the tasks, but has arms={made_for}",
            )
        held = setting.blank if self.exploring_with is None else self.exploring_with
        known = KnownTasks.of(setting.truth, held=held)
        held = held.for_tasks(known) if isinstance(held, Exploring) else held
        estimator = adapted(self.estimator, known)
        # then the fitted prior is of the tasks' family
        truth: Any = setting.truth
        reads = getattr(estimator, "reads", None)
        if (
            has_part(truth, "statistics")
            and reads is family_for(truth, "ExploreThenCommit").statistics
        ):
            argument_checks.playing(self.policy, truth, memory=True)
        plan = tuple(segments(self.exploration, self.episodes, seed=setting.seed))
        return Explored(setting.arms, estimator, held, plan, (), None)

    def plan(self, state: Explored, rng: Stream) -> Play:
        """Explore the next segment, or hold the fitted prior."""
        if state.fit is not None:
            return Play(self.policy, for_arms(state.fit.prior, state.arms), FOREVER)
        policy, episodes = state.left[0]
        held = state.held
        if isinstance(held, Exploring):
            held = held.exploring(joined(state.played) if state.played else None)
        return Play(policy, held, episodes)

    def step(self, state: Explored, play: Play, played: Trajectory) -> Explored:
        """Put the episodes aside; after the last one, fit."""
        if state.fit is not None:
            return state
        policy, episodes = state.left[0]
        rest = episodes - len(played.rewards)
        left = ((policy, rest), *state.left[1:]) if rest else state.left[1:]
        data = (*state.played, played)
        if left:
            return replace(state, left=left, played=data)
        fit = state.estimator.fit(as_run(joined(data)))
        return replace(state, left=(), played=(), fit=fit)
