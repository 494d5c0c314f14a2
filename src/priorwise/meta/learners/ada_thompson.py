"""AdaTS (Basu et al. 2021): hold the posterior average of the priors, which is the exact law of the
next task.

For a normal prior with an unknown mean it is normal again, widened by what is not yet known about
the mean. It explores as much as the uncertainty asks for, and less erratically than a drawn prior
(:class:`~priorwise.meta.learners.meta_thompson.MetaThompson`).
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
class AdaThompson:
    """Hold the prior of the next task with all that is uncertain about it integrated out.

    Parameters
    ----------
    hyper
        As in :class:`~priorwise.meta.learners.meta_thompson.MetaThompson`. With candidates the held
        prior is their mixture, which runs in the NumPy loop and serves policies that ask for draws
        or means.
    policy
        What plays with it.

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
        """``integral P dQ_t(P)``, for one episode; ``N(m_t, task_cov + V_t)`` for a normal
        prior.
        """
        return Play(self.policy, state.predictive())

    def step(self, state: HyperPosterior, play: Play, played: Trajectory) -> HyperPosterior:
        """Condition on the episode."""
        return state.observe(played)
