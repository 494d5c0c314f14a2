"""Hierarchical Thompson sampling (Hong et al. 2022): draw the prior's mean, then the task, anew at
every pull.

The mean is drawn given all tasks, the present ones included; the task given that mean and its own
data. With one task at a time the two draws together have the law of a single one from the task's
posterior under the widened prior ``N(m, task_cov + V)``, so that is what runs, compiled. With
several tasks at a time they teach each other before they end, which no prior fixed at their start
can express; :class:`HierarchicalPrior` does it literally.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self, final

import numpy as np

from priorwise.core import doors, validation
from priorwise.core.protocols import Policy, Seen, Signal
from priorwise.core.rewards import BanditEnvironment
from priorwise.core.runs import Trajectory
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.linear.prior import LinearEnvironment, LinearGaussianPrior
from priorwise.meta.learners.hyper import (
    GaussianHyperPosterior,
    GaussianHyperPrior,
    combine,
    messages,
)
from priorwise.meta.learners.learner import Play, Setting
from priorwise.policies.thompson import ThompsonSampling


@final
@dataclass(frozen=True)
class HierThompson:
    """Draw the prior's mean and the task anew at every pull.

    Parameters
    ----------
    hyper
        What is believed about the prior's mean at the start.
    concurrent
        Tasks played at the same time, pull by pull; at most as many as a block of the NumPy loop
        holds (2,048, fewer where tasks are long).
    policy
        What plays with the draws.

    """

    hyper: GaussianHyperPrior
    concurrent: int = 1
    policy: Policy = field(default_factory=ThompsonSampling)

    def __post_init__(self) -> None:
        """Check the number of tasks, and the parts."""
        validation.count("concurrent", self.concurrent)
        if not isinstance(self.hyper, GaussianHyperPrior):
            raise TypeError(
                f"hyper must be a GaussianHyperPrior, got {validation.shown(self.hyper)}"
            )
        doors.policy("policy", self.policy)

    def init(self, setting: Setting) -> GaussianHyperPosterior:
        """Start at the hyper-prior."""
        return self.hyper.start(setting)

    def plan(self, state: GaussianHyperPosterior, rng: Stream) -> Play:
        """One group of tasks."""
        believed = state.predictive() if self.concurrent == 1 else HierarchicalPrior(state)
        return Play(self.policy, believed, self.concurrent)

    def step(
        self, state: GaussianHyperPosterior, play: Play, played: Trajectory
    ) -> GaussianHyperPosterior:
        """Condition on the group."""
        return state.observe(played)


@final
@dataclass(frozen=True, eq=False)
class HierarchicalPrior:
    """A group of tasks that share an unknown mean: ``nu ~ N(m, V)``, then ``w_i ~ N(nu, task_cov)``
    for each task i of the batch.

    Unlike with other priors the tasks of a batch are not independent, and neither are their
    beliefs.
    """

    above: GaussianHyperPosterior

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.above.blank.arms

    def sample(self, rng: Stream, tasks: int) -> BanditEnvironment | LinearEnvironment:
        """Tasks around one mean; it is drawn with the first task's numbers."""
        shared = self.above.draw(rng)
        return shared.sample(rng, tasks)

    def belief(self, tasks: int) -> HierarchicalBelief:
        """Start with no data on these tasks."""
        dim, tasks = self.above.shift.size, validation.count("tasks", tasks)
        return HierarchicalBelief(self.above, np.zeros((tasks, dim, dim)), np.zeros((tasks, dim)))


@final
@dataclass(frozen=True, eq=False)
class HierarchicalBelief:
    """What each task of the batch has seen, in information form: likelihood ``exp(b'w - w'P w /
    2)``.
    """

    above: GaussianHyperPosterior
    p: FloatArray  # (task, dim, dim)
    b: FloatArray  # (task, dim)

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return self.b.shape[0]

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.above.blank.arms

    def sample(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """``nu`` given all tasks, ``w`` given nu and the own task; values ``(task, draw, arm)``."""
        above, draws = self.above, doors.drawing(self, rng, draws)
        j, h = messages(self.p, self.b, above.hyper.task_cov)
        mean, cov = combine(
            above.hyper, above.precision + j.sum(axis=0), above.shift + h.sum(axis=0)
        )
        # ~ N(m, V), (task, draw, dim)
        nu = mean + rng.normal(draws, mean.size) @ validation.square_root(cov).T
        # w given nu and the task's data: N(nu + S (b - P nu), S), S = (I + C P)^-1 C
        c = above.hyper.task_cov
        s = np.linalg.solve(np.eye(mean.size) + c @ self.p, np.broadcast_to(c, self.p.shape))
        values, vectors = np.linalg.eigh((s + s.transpose(0, 2, 1)) / 2.0)
        root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        surprise = self.b[:, None, :] - nu @ self.p  # P is symmetric
        w = (
            nu
            + surprise @ s.transpose(0, 2, 1)
            + rng.normal(draws, mean.size) @ root.transpose(0, 2, 1)
        )
        return (
            np.asarray(w @ seen.signal.transpose(0, 2, 1))
            if isinstance(above.blank, LinearGaussianPrior)
            else w
        )

    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Condition on ``r ~ N(x_a'w, v_a)``: ``P += x x' / v``, ``b += x r / v``."""
        blank = self.above.blank
        actions, rewards = doors.played(self, seen, actions, rewards)
        linear = isinstance(blank, LinearGaussianPrior)
        x = (
            doors.chosen_features(seen, actions, self.arms, self.b.shape[1])
            if linear
            else np.eye(blank.arms)[actions]
        )
        weighted = x / blank.noise_var[actions][:, None]
        return type(self)(
            self.above,
            self.p + weighted[:, :, None] * x[:, None, :],
            self.b + weighted * rewards[:, None],
        )
