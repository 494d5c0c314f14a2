"""Beliefs about which of finitely many POMDPs it is, and in which state.

The joint filter: with w the probability of candidate c and b_c its belief about the state,

    b_c(s') <- sum_s b_c(s) D_c(r | s, a) P_c(s' | s, a) O_c(y | s', a) / p_c,    w_c <- w_c p_c,

where p_c, the probability of reward and observation, is the sum over s' of what it divides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, final

import numpy as np

from priorwise.core import argument_checks
from priorwise.core.errors import ArgumentError
from priorwise.core.seen import Seen, Signal
from priorwise.core.streams import Stream, WorldStreams
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.finite.belief import log_probs
from priorwise.families.finite_mdp.belief import PlannedCandidates
from priorwise.families.finite_pomdp.environment import (
    NOTHING,
    DrawnPomdps,
    PomdpEnvironment,
)
from priorwise.families.finite_pomdp.planning import settled
from priorwise.theory.enumeration import Outcome, Outcomes, rounded_logs
from priorwise.theory.numerics import rescaled

if TYPE_CHECKING:
    from priorwise.families.finite_pomdp.prior import FinitePomdpPrior


@final
@dataclass(frozen=True, eq=False)
class FinitePomdpBelief(PlannedCandidates):
    """Beliefs about candidates and, under each, about the hidden state.

    The value of an action now is ``Q`` of the drawn candidate at its belief about the state: what
    the action earns to the end of the round, or of the task, with the plan for that candidate.
    Of actions whose values tie in a candidate, by the rule that all policies share, the first is
    best: the others are taken to be worth less by 8e-12 of what the value is a sum of.
    """

    prior: FinitePomdpPrior
    states: FloatArray  # (task, candidate, state): the belief about the state under each candidate
    age: IntArray  # (task,): steps since that was the law of the first state

    def joint(self) -> FloatArray:
        """Posterior probability of candidate and state, ``(task, candidate, state)``."""
        return np.asarray(self.probabilities()[:, :, None] * self.states)

    def key(self) -> IntArray:
        """Logarithms of all probabilities, rounded, and the age."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.states).reshape(self.tasks, self.prior.start.size)
        return np.concatenate([super().key(), rounded_logs(logs), self.age[:, None]], axis=1)

    def point_values(self, seen: Seen) -> FloatArray:
        """``Q`` of each action in each candidate, at its belief about the state, ``(task,
        candidate, arm)``.
        """
        return settled(*self._valued(seen))

    def _valued(self, seen: Seen) -> tuple[FloatArray, FloatArray]:
        """Values, and the sizes of their addends, ``(task, candidate, arm)`` each."""
        self.prior.contexts.observed("seen.signal", seen.signal, self.tasks)
        left = np.broadcast_to(self.prior.contexts.left(seen), self.tasks)
        out = np.empty((2, self.tasks, self.prior.support, self.arms))
        # with one step left a plan is a reward, whatever came before
        age = np.where(left == 1, 0, self.age)
        for start, steps in sorted(set(zip(age.tolist(), left.tolist(), strict=True))):
            rows = np.flatnonzero((age == start) & (left == steps))
            for candidate, plan in enumerate(self.prior.plans(start + steps)):
                vectors = plan.depths[start]
                out[:, rows, candidate] = vectors.best(self.states[rows, candidate])
        return out[0], out[1]

    def _all(self, seen: Seen) -> FloatArray:
        return self.point_values(seen)

    def points(self, seen: Seen) -> FloatArray:
        """``Q`` of each action in each candidate for the first task, ``(candidate, arm)``."""
        return self.take([0]).point_values(seen.take([0]))[0]

    def environments(self, points: IntArray, seen: Seen) -> DrawnPomdps:
        """Return candidates, with the belief about the state under each."""
        prior = self.prior
        return DrawnPomdps(
            points,
            prior.transitions[points],
            prior.observations[points],
            prior.rewards[points],
            self.states[np.arange(self.tasks)[:, None], points],
            self,
            seen.step,
        )

    def rewards_now(self, seen: Seen) -> FloatArray:
        """Mean rewards at the belief about the state, ``(task, candidate, arm)``."""
        return np.einsum("tcs,csa->tca", self.states, self.prior.rewards)

    def _simulated(
        self, rng: Stream, drawn: IntArray, actions: IntArray, seen: Seen
    ) -> tuple[FloatArray, Signal]:
        state = rng.choice(self.states[np.arange(self.tasks), drawn])
        tasks = PomdpEnvironment(self.prior, drawn, state)
        return tasks.step(seen, actions, WorldStreams(rng, rng))

    def possible_outcomes(self, seen: Seen) -> Outcomes:
        """For each action its rewards with what may be observed next, and their probabilities in
        each candidate given what was seen, ``(task, candidate)``.
        """
        silent = self.prior.contexts.silent(seen.step, self.tasks)
        least = NOTHING if self.prior.contexts.hides_resets else 0  # as many at every step
        out = []
        for arm in range(self.arms):
            values, chances = self.prior.reward_table(arm)  # (reward,), (candidate, state, reward)
            moves = self.prior.transitions[:, :, arm]
            sights = np.einsum("cst,cty->csy", moves, self.prior.observations[:, :, arm])
            earned = self.states[..., None] * chances  # (task, candidate, state, reward)
            joint = np.einsum("tcsr,csy->tcry", earned, sights)
            shown = []
            for which, reward in enumerate(values.tolist()):
                for y in range(least, self.prior.contexts.observations):
                    chance = earned[..., which].sum(axis=2) if y < 0 else joint[:, :, which, y]
                    chance = np.where(silent[:, None] == (y < 0), chance, 0.0)
                    shown.append(Outcome(reward, np.full(self.tasks, y), chance))
            out.append(shown)
        return out

    def reward_range(
        self, rng: object, draws: int, seen: Seen, actions: IntArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Posterior means of the largest and smallest mean reward of a candidate, and of that of
        the actions now, ``(task,)`` each; nothing is drawn.
        """
        weights = self.probabilities()
        high, low = (np.einsum("tc,c->t", weights, each) for each in self.prior.extremes())
        now = np.einsum("tcs,cst->t", self.joint(), self.prior.rewards[:, :, actions])
        return high, low, now

    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Condition on the reward and on the observation after it; at the end of a round on the
        reward alone, and the state starts anew. Where no candidate is left that could have given
        them, start again from the prior.
        """
        prior, sights = self.prior, self.prior.contexts
        binary = prior.noise == "bernoulli"
        actions, rewards = argument_checks.played(self, seen, actions, rewards, binary=binary)
        observed = sights.observed("after", after, self.tasks)
        silent = sights.silent(seen.step, self.tasks)
        if (wrong := (observed == NOTHING) != silent).any():
            task = int(np.argmax(wrong))
            needs = f"{NOTHING} at the end of a round" if silent[task] else "an observation"
            raise ArgumentError("after", f"must be {needs} (task {task})", got=observed[task])
        return self._given(seen, actions, rewards, observed)

    def _given(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        prior, observed = self.prior, np.asarray(after)
        ends = prior.contexts.ends(seen.step, self.tasks)
        silent = prior.contexts.silent(seen.step, self.tasks)
        earned = self.states * prior.reward_likelihood(actions, rewards)
        then = np.empty_like(earned)
        for arm in np.unique(actions).tolist():
            rows = np.flatnonzero(actions == arm)
            moved = np.einsum("tcs,csu->tcu", earned[rows], prior.transitions[:, :, arm])
            sight = prior.observations[:, :, arm].transpose(2, 0, 1)[observed[rows]]
            then[rows] = np.where(silent[rows, None, None], earned[rows], moved * sight)
        likelihood = then.sum(axis=2)
        with np.errstate(divide="ignore"):
            gained = np.log(likelihood)
        weights, impossible = rescaled(self.log_weights + gained, log_probs(prior.probs))
        anew = (likelihood == 0.0) | (ends | impossible)[:, None]
        scaled = then / np.where(likelihood > 0.0, likelihood, 1.0)[:, :, None]
        return type(self)(
            prior,
            weights,
            self.resets + impossible,
            np.where(anew[:, :, None], prior.start, scaled),
            np.where(ends | impossible, 0, self.age + 1),
        )
