"""Beliefs about which of finitely many MDPs it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, final

import numpy as np

from priorwise.core import doors
from priorwise.core.enumeration import Outcomes, expected_outcomes
from priorwise.core.protocols import Seen, Signal
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.finite.belief import Candidates
from priorwise.families.tabular_mdp.environment import DrawnMdps

if TYPE_CHECKING:
    from priorwise.families.finite_mdp.prior import FiniteMdpPrior


@dataclass(frozen=True, eq=False)
class PlannedCandidates(Candidates, ABC):
    """Posterior weights of finitely many candidates; actions have planned values in each."""

    @abstractmethod
    def _all(self, seen: Seen) -> FloatArray:
        """Value of each action now in each candidate, ``(task, candidate, arm)``."""

    def sample(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """``Q`` of drawn candidates now, ``(task, draw, arm)``."""
        drawn = rng.choice(self.weights(), doors.drawing(self, rng, draws))
        return np.take_along_axis(self._all(seen), drawn[:, :, None], axis=1)

    def mean(self, seen: Seen) -> FloatArray:
        """Posterior means of ``Q``, ``(task, arm)``."""
        return np.einsum("tc,tca->ta", self.probabilities(), self._all(seen))

    def mean_size(self, seen: Seen) -> FloatArray:
        """Posterior means of its size, ``(task, arm)``."""
        return np.einsum("tc,tca->ta", self.probabilities(), np.abs(self._all(seen)))

    def quantile(self, level: float | FloatArray, seen: Seen) -> FloatArray:
        """Posterior quantiles of ``Q``: the least value with at least that much probability at or
        below it.
        """
        level = np.reshape(doors.level(level), (-1, 1, 1))
        values = self._all(seen)
        order = np.argsort(values, axis=1, kind="stable")
        weights = np.broadcast_to(self.probabilities()[:, :, None], values.shape)
        cumulative = np.cumsum(np.take_along_axis(weights, order, axis=1), axis=1)
        place = np.minimum((cumulative < level - 1e-12).sum(axis=1), values.shape[1] - 1)
        chosen = np.take_along_axis(order, place[:, None, :], axis=1)
        return np.take_along_axis(values, chosen, axis=1)[:, 0]


@final
@dataclass(frozen=True, eq=False)
class FiniteMdpBelief(PlannedCandidates):
    """Beliefs about which MDP it is.

    The value of an action now is ``Q``: what it earns to the end of the round, or of the task, if
    all later actions are the best for the drawn candidate.
    """

    prior: FiniteMdpPrior

    def _values(self, seen: Seen) -> FloatArray:
        """``Q`` of each action in the present state, ``(task, candidate, arm)``."""
        state = self.prior.contexts.state("seen.signal", seen.signal, np.size(seen.signal))
        left = np.broadcast_to(self.prior.contexts.left(seen), len(state))
        plans = self.prior.planned(int(left.max(initial=1)))
        return plans[:, left - 1, state].transpose(1, 0, 2)

    def points(self, seen: Seen) -> FloatArray:
        """``Q`` of each action in the state that tasks see, ``(candidate, arm)``."""
        return self._values(seen.take([0]))[0]

    def outcomes(self, seen: Seen) -> Outcomes | None:
        """For each action its rewards with the states that may follow, ``(task,)``."""
        return expected_outcomes(self.prior.outcomes(seen.signal, seen.step), self.probabilities())

    def sample_environments(self, rng: Stream, draws: int, seen: Seen) -> DrawnMdps:
        """Draw candidates, with their plans to the end of the longest round; the draws of
        :meth:`sample`.
        """
        prior, rounds = self.prior, self.prior.contexts
        drawn = rng.choice(self.weights(), doors.drawing(self, rng, draws))
        steps = int(np.max(seen.horizon - seen.step + 1))
        steps = steps if rounds.round_steps is None else min(steps, rounds.round_steps)
        plans = prior.planned(steps)
        return DrawnMdps(prior.transitions[drawn], prior.rewards[drawn], rounds, plans[drawn])

    def reward_range(
        self, rng: Stream, draws: int, seen: Seen, actions: IntArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Posterior means of the largest and smallest mean reward of a candidate, and of that of
        the actions now, ``(task,)`` each; nothing is drawn.
        """
        weights, state = self.probabilities(), np.asarray(seen.signal)
        high, low = (np.einsum("tc,c->t", weights, each) for each in self.prior.extremes())
        return high, low, np.einsum("tc,ct->t", weights, self.prior.rewards[:, state, actions])

    def _all(self, seen: Seen) -> FloatArray:
        self.prior.contexts.state("seen.signal", seen.signal, self.tasks)
        return self._values(seen)

    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Condition on the reward and, unless a reset followed, on the move; where no candidate is
        left that could have given them, start again from the prior.
        """
        rounds = self.prior.contexts
        binary = self.prior.noise == "bernoulli"
        actions, rewards = doors.played(self, seen, actions, rewards, binary=binary)
        state = rounds.state("seen.signal", seen.signal, self.tasks)
        then = rounds.state("after", after, self.tasks)
        moved = ~np.broadcast_to(rounds.ends(seen.step), self.tasks)
        return self._learned(self.prior.log_likelihood(state, actions, rewards, then, moved))
