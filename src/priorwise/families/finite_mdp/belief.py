"""Beliefs about which of finitely many MDPs it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, final

import numpy as np

from priorwise.core import argument_checks
from priorwise.core.protocols import Imagined
from priorwise.core.seen import Seen, Signal
from priorwise.core.streams import Stream, WorldStreams
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.finite.belief import Candidates
from priorwise.families.tabular_mdp.belief import Over, next_seen
from priorwise.families.tabular_mdp.environment import DrawnMdps, MdpEnvironment
from priorwise.theory.enumeration import Look, Outcomes, expected_outcomes

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
        drawn = rng.choice(self.weights(), argument_checks.drawing(self, rng, draws))
        return np.take_along_axis(self._all(seen), drawn[:, :, None], axis=1)

    @abstractmethod
    def _valued(self, seen: Seen) -> tuple[FloatArray, FloatArray]:
        """Values, and the sizes of the numbers that they are sums of, ``(task, candidate, arm)``
        each; ties are left as they are.
        """

    @abstractmethod
    def rewards_now(self, seen: Seen) -> FloatArray:
        """Mean reward of each action now in each candidate, ``(task, candidate, arm)``."""

    @abstractmethod
    def possible_outcomes(self, seen: Seen) -> Outcomes:
        """For each action what it may show next, with its probability in each candidate given what
        was seen, ``(task, candidate)``.
        """

    @abstractmethod
    def _simulated(
        self, rng: Stream, drawn: IntArray, actions: IntArray, seen: Seen
    ) -> tuple[FloatArray, Signal]:
        """Rewards of actions, and what is shown after them, in one drawn candidate per task."""

    @abstractmethod
    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Condition on a step that is checked first."""

    @abstractmethod
    def _given(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Condition on a step that can have happened."""

    def outcomes(self, seen: Seen) -> Outcomes | None:
        """For each action what it may show next, with its probability, ``(task,)``."""
        return expected_outcomes(self.possible_outcomes(seen), self.probabilities())

    def mean(self, seen: Seen) -> FloatArray:
        """Posterior means of ``Q``, ``(task, arm)``; ties are left as they are."""
        return np.einsum("tc,tca->ta", self.probabilities(), self._valued(seen)[0])

    def mean_size(self, seen: Seen) -> FloatArray:
        """Posterior means of the sizes that values are sums of, ``(task, arm)``."""
        return np.einsum("tc,tca->ta", self.probabilities(), self._valued(seen)[1])

    def sample_mean(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """Mean of ``Q`` over ``draws`` drawn candidates, ``(task, arm)``."""
        return self.sample_mean_and_size(rng, draws, seen)[0]

    def sample_mean_and_size(
        self, rng: Stream, draws: int, seen: Seen
    ) -> tuple[FloatArray, FloatArray]:
        """The same, and the mean of the sizes that these values are sums of."""
        shares = rng.counts(self.weights(), draws) / draws
        values, sizes = (np.einsum("tc,tca->ta", shares, each) for each in self._valued(seen))
        return values, sizes

    def imagine(self, rng: Stream, actions: IntArray, seen: Seen) -> Imagined:
        """Draw a candidate, play an action in it, and condition on all that it shows.

        The value is the mean reward of the step in the drawn candidate. Values after it are ``Q``
        from what is shown then, so a look-ahead with equal weights, ``alpha = 1/2``, looks for the
        largest ``r + Q``. After the last step nothing is left to earn.
        """
        drawn = rng.choice(self.weights())
        value = self.rewards_now(seen)[np.arange(self.tasks), drawn, actions]
        rewards, after = self._simulated(rng, drawn, actions, seen)
        if np.all(seen.step == seen.horizon):
            return Imagined(value, Over(self.tasks, self.arms), seen)
        return Imagined(value, self._given(seen, actions, rewards, after), next_seen(seen, after))

    def looks(self, seen: Seen, arm: int) -> list[Look]:
        """List what an action may show and the candidates that may be drawn after it, for tasks
        that see the same; with a hidden state, for one task.
        """
        actions, none = np.full(self.tasks, arm), np.zeros((self.prior.support, self.arms))
        if np.all(seen.step == seen.horizon):
            return [Look(np.ones_like(self.log_weights), self.probabilities(), none, none)]
        out = []
        for outcome in self.possible_outcomes(seen)[arm]:
            chance = np.broadcast_to(outcome.chance, self.log_weights.shape)
            if not chance.any():
                continue
            rewards = np.broadcast_to(np.asarray(outcome.reward, dtype=np.float64), self.tasks)
            after = np.broadcast_to(outcome.after, self.tasks)
            then = self._given(seen, actions, rewards, after)
            values, sizes = then.take([0])._valued(next_seen(seen, after).take([0]))
            out.append(Look(chance, then.probabilities(), values[0], sizes[0]))
        return out

    def quantile(self, level: float | FloatArray, seen: Seen) -> FloatArray:
        """Posterior quantiles of ``Q``: the least value with at least that much probability at or
        below it.
        """
        level = np.reshape(argument_checks.level(level), (-1, 1, 1))
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

    def possible_outcomes(self, seen: Seen) -> Outcomes:
        """For each action its rewards with the states that may follow, ``(task, candidate)``."""
        return self.prior.outcomes(seen.signal, seen.step)

    def rewards_now(self, seen: Seen) -> FloatArray:
        """Mean rewards in the present state, ``(task, candidate, arm)``."""
        state = self.prior.contexts.state("seen.signal", seen.signal, self.tasks)
        return self.prior.rewards[:, state].transpose(1, 0, 2)

    def _valued(self, seen: Seen) -> tuple[FloatArray, FloatArray]:
        values = self._all(seen)
        return values, np.abs(values)

    def _simulated(
        self, rng: Stream, drawn: IntArray, actions: IntArray, seen: Seen
    ) -> tuple[FloatArray, Signal]:
        prior = self.prior
        tables = (prior.transitions[drawn], prior.rewards[drawn])
        tasks = MdpEnvironment(*tables, prior.reward_law, prior.contexts)
        return tasks.step(seen, actions, WorldStreams(rng, rng))

    def environments(self, points: IntArray, seen: Seen) -> DrawnMdps:
        """Return candidates with their plans to the end of the longest round."""
        prior, rounds = self.prior, self.prior.contexts
        steps = int(np.max(seen.horizon - seen.step + 1))
        steps = steps if rounds.round_steps is None else min(steps, rounds.round_steps)
        plans = prior.planned(steps)
        tables = (prior.transitions[points], prior.rewards[points])
        return DrawnMdps(*tables, rounds, plans[points], points)

    def reward_range(
        self, rng: Stream, draws: int, seen: Seen, actions: IntArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Posterior means of the largest and smallest mean reward of a candidate, and of that of
        the actions now, ``(task,)`` each; nothing is drawn.
        """
        weights, state = self.probabilities(), self.prior.contexts.now(seen.signal)
        high, low = (np.einsum("tc,c->t", weights, each) for each in self.prior.extremes())
        return high, low, np.einsum("tc,ct->t", weights, self.prior.rewards[:, state, actions])

    def _all(self, seen: Seen) -> FloatArray:
        self.prior.contexts.state("seen.signal", seen.signal, self.tasks)
        return self._values(seen)

    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Condition on the reward and, unless a reset followed, on the move; where no candidate is
        left that could have given them, start again from the prior.
        """
        binary = self.prior.noise == "bernoulli"
        actions, rewards = argument_checks.played(self, seen, actions, rewards, binary=binary)
        rounds = self.prior.contexts
        rounds.state("seen.signal", seen.signal, self.tasks)
        rounds.check_after(seen.step, after, self.tasks)
        return self._given(seen, actions, rewards, np.asarray(after))

    def _given(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        rounds = self.prior.contexts
        played = (rounds.now(seen.signal), actions, rewards, *rounds.led(seen.step, after))
        return self._learned(self.prior.log_likelihood(*played))
