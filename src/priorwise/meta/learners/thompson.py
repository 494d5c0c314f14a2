"""Thompson sampling over priors: hold a prior drawn from its posterior, or the average of all, or
draw anew at every pull.

All fail where the covariance within tasks (or the list of candidates) is wrong: it is taken as
known.
"""

from abc import ABC
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

from priorwise.core import argument_checks, validation
from priorwise.core.protocols import Policy
from priorwise.core.streams import Stream
from priorwise.core.trajectories import Trajectory
from priorwise.meta.learners.hyper import HyperPosterior, HyperPrior
from priorwise.meta.learners.learner import Play, Setting
from priorwise.policies.thompson import ThompsonSampling


class _OverPriors(ABC):
    """A learner whose state is a posterior over priors."""

    wanted: ClassVar[tuple[str, ...]] = ("start",)

    hyper: HyperPrior
    policy: Policy

    def __post_init__(self) -> None:
        what = "what is believed about the prior, such as GaussianHyperPrior(...),"
        argument_checks.role("hyper", self.hyper, what, *self.wanted)
        argument_checks.policy("policy", self.policy, memory=True)

    def init(self, setting: Setting) -> HyperPosterior:
        """Start at the hyper-prior."""
        return self.hyper.start(setting)

    def step(self, state: HyperPosterior, play: Play, played: Trajectory) -> HyperPosterior:
        """``Q_{t+1}(P) ~ Q_t(P) P(rewards given actions)``."""
        return state.observe(played)


@final
@dataclass(frozen=True)
class MetaThompson(_OverPriors):
    """Draw the prior of each episode from the posterior over priors (Kveton et al. 2021).

    Each task costs one draw of the prior; with many tasks behind it the draws agree with the true
    prior.

    Parameters
    ----------
    hyper
        What is believed about the prior at the start: a
        :class:`~priorwise.families.normal.hyper.GaussianHyperPrior` over its mean, or
        :class:`~priorwise.meta.learners.hyper.CandidatePriors`.
    policy
        What plays with the drawn prior.

    """

    hyper: HyperPrior
    policy: Policy = field(default_factory=ThompsonSampling)

    def plan(self, state: HyperPosterior, rng: Stream) -> Play:
        """``P ~ Q_t``, for one episode."""
        return Play(self.policy, state.draw(rng))


@final
@dataclass(frozen=True)
class AdaThompson(_OverPriors):
    """Hold the prior of the next task with all that is uncertain about it integrated out (AdaTS,
    Basu et al. 2021).

    For a normal prior with an unknown mean it is normal again, widened by what is not yet known
    about the mean. It explores as much as the uncertainty asks for, and less erratically than a
    drawn prior (:class:`MetaThompson`).

    Parameters
    ----------
    hyper
        As in :class:`MetaThompson`. With candidates the held prior is their mixture, which runs in
        the NumPy loop and serves policies that ask for draws or means.
    policy
        What plays with it.

    """

    hyper: HyperPrior
    policy: Policy = field(default_factory=ThompsonSampling)

    def plan(self, state: HyperPosterior, rng: Stream) -> Play:
        """``integral P dQ_t(P)``, for one episode; ``N(m_t, task_cov + V_t)`` if P is normal."""
        return Play(self.policy, state.predictive())


@final
@dataclass(frozen=True)
class HierThompson(_OverPriors):
    """Draw the prior's mean and the task anew at every pull (Hong et al. 2022).

    The mean is drawn given all tasks, the present ones included; the task given that mean and its
    own data. With one task at a time the two draws together have the law of a single one from the
    task's posterior under the widened prior ``N(m, task_cov + V)``, so that is what runs, compiled.
    With several tasks at a time they teach each other before they end, which no prior fixed at
    their start can express: :class:`~priorwise.families.normal.hyper.HierarchicalPrior` does it
    literally.

    Parameters
    ----------
    hyper
        What is believed about the prior's mean at the start: a
        :class:`~priorwise.families.normal.hyper.GaussianHyperPrior`.
    concurrent
        Tasks played at the same time, pull by pull; at most as many as a block of the NumPy loop
        holds (2,048, fewer where tasks are long).
    policy
        What plays with the draws.

    """

    wanted: ClassVar[tuple[str, ...]] = ("start", "task_cov")

    hyper: Any
    concurrent: int = 1
    policy: Policy = field(default_factory=ThompsonSampling)

    def __post_init__(self) -> None:
        validation.count("concurrent", self.concurrent)
        super().__post_init__()

    def plan(self, state: Any, rng: Stream) -> Play:
        """One group of tasks."""
        believed = state.predictive() if self.concurrent == 1 else state.together()
        return Play(self.policy, believed, self.concurrent)
