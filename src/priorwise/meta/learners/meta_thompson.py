"""Meta-Thompson sampling (Kveton et al. 2021): draw a prior from its posterior for each task, and
hold it there.

Fails where the covariance within tasks (or the list of candidates) is wrong: it is taken as known.
Each task costs one draw of the prior; with many tasks behind it the draws agree with the true
prior.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from priorwise.core import doors
from priorwise.core.protocols import Policy
from priorwise.core.runs import Trajectory
from priorwise.core.streams import Stream
from priorwise.meta.learners.hyper import HyperPosterior, HyperPrior
from priorwise.meta.learners.learner import Play, Setting
from priorwise.policies.thompson import ThompsonSampling


@final
@dataclass(frozen=True)
class MetaThompson:
    """Draw the prior of each episode from the posterior over priors.

    Parameters
    ----------
    hyper
        What is believed about the prior at the start: a
        :class:`~priorwise.meta.learners.hyper.GaussianHyperPrior` over its mean, or
        :class:`~priorwise.meta.learners.hyper.CandidatePriors`.
    policy
        What plays with the drawn prior.

    """

    hyper: HyperPrior
    policy: Policy = field(default_factory=ThompsonSampling)

    def __post_init__(self) -> None:
        """Check the parts."""
        doors.role(
            "hyper",
            self.hyper,
            "what is believed about the prior, such as GaussianHyperPrior(...),",
            "start",
        )
        doors.policy("policy", self.policy)

    def init(self, setting: Setting) -> HyperPosterior:
        """Start at the hyper-prior."""
        return self.hyper.start(setting)

    def plan(self, state: HyperPosterior, rng: Stream) -> Play:
        """``P ~ Q_t``, for one episode."""
        return Play(self.policy, state.draw(rng))

    def step(self, state: HyperPosterior, play: Play, played: Trajectory) -> HyperPosterior:
        """``Q_{t+1}(P) ~ Q_t(P) P(rewards given actions)``."""
        return state.observe(played)
