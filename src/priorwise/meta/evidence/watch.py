"""Has the law of tasks changed? A test that runs along while the held prior is learned, and says
where to start learning again.

An e-detector (Shiryaev 1963, Roberts 1966; Shin, Ramdas and Rinaldo 2024). With the likelihood
ratio of each new task,

    E_t = (E_{t-1} + 1) p_other(task t) / p_held_t(task t),     E_0 = 0.

The held prior may be another one for each task, as long as it was chosen before. While tasks follow
it, ``E_t - t`` is a martingale, so on average at least ``1 / level`` tasks pass before E reaches
``1 / level``. Unlike the evidence of :class:`~priorwise.meta.evidence.alarm.Alarm` it does not sink
while all is well, and so rises as fast after many tasks as after few.
"""

from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np
from attrs import field, frozen

from priorwise.core import argument_checks
from priorwise.core.parameters import Checked, Count, Number
from priorwise.core.protocols import Prior
from priorwise.core.trajectories import Trajectory
from priorwise.meta.evidence.likelihood import log_marginal_likelihood


@final
@frozen(slots=False)
class Watch:
    """Look for a change of the law of tasks, and forget the tasks before it.

    For :class:`~priorwise.meta.learners.empirical_bayes.EmpiricalBayes`. Once E has reached ``1 /
    level`` the learner drops all tasks but those since E was last below 1, and fits to these alone.

    Parameters
    ----------
    other
        What the tasks may follow after the change: a wide prior, an older one, or a
        :class:`~priorwise.families.mixture.prior.MixturePrior` of several. By default the prior
        that the learner starts from. A change is noticed if ``other`` predicts the new tasks better
        than the prior learned on the old ones.
    level
        While tasks follow the held prior, false alarms come at most once in ``1 / level`` tasks on
        average. A fitted prior is not quite the law of the tasks, so that they may come more often
        while it rests on few tasks.
    least
        Look only while the held prior rests on at least so many tasks: with fewer it is too far
        from their law for a test.
    episodes
        Look after at most so many episodes.

    """

    other: Prior | None = field(default=None, validator=Checked(argument_checks.prior))
    level: float = field(default=1e-4, validator=Number(0.0, 1.0, ends="()"))
    least: int = field(default=50, validator=Count())
    episodes: int = field(default=10, validator=Count())


@final
@dataclass(frozen=True)
class Watched:
    """Where the test stands."""

    tasks: int = 0  # watched or passed over
    since: int = 0  # the tasks from this one on speak for a change
    log_evidence: float = -np.inf  # log E
    raised: bool = False

    def observe(self, watch: Watch, held: Any, other: Any, played: Trajectory) -> Self:
        """Add tasks in their order; after the alarm nothing moves."""
        tasks, since, level = self.tasks, self.since, -np.log(watch.level)
        ours, theirs = (log_marginal_likelihood(each, played) for each in (held, other))
        log_evidence, raised = self.log_evidence, self.raised
        for mine, their in zip(ours.tolist(), theirs.tolist(), strict=True):
            tasks += 1
            if raised:
                continue
            log_evidence = float(np.logaddexp(log_evidence, 0.0)) + their - mine
            if mine == -np.inf:  # a change for certain, whatever the other prior says
                log_evidence = np.inf
            raised = log_evidence >= level
            since = tasks if log_evidence < 0.0 else since
        return replace(self, tasks=tasks, since=since, log_evidence=log_evidence, raised=raised)

    def pass_over(self, tasks: int) -> Self:
        """Count tasks without a test."""
        return replace(self, tasks=self.tasks + tasks, since=self.tasks + tasks)
