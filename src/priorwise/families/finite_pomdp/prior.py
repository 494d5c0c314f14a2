"""A prior on finitely many POMDPs: candidate c with probability probs[c], whose state is hidden.

All that there is to know of every candidate is known, so that a task is learned by telling the
candidates apart and by filtering the state under each of them. A history that the held prior rules
out makes the belief start again from that prior, and counts that it did.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
from attrs import field, frozen

from priorwise.core import argument_checks, validation
from priorwise.core.errors import ArgumentError
from priorwise.core.parameters import (
    Array,
    Choice,
    Count,
    Names,
    Probabilities,
    arrays,
    words,
)
from priorwise.core.rewards import BernoulliRewards, NoiselessRewards, RewardLaw
from priorwise.core.seen import Seen, Signal
from priorwise.core.serial import Serializable
from priorwise.core.streams import Stream
from priorwise.core.types import BoolArray, FloatArray, IntArray
from priorwise.families.finite.belief import log_probs
from priorwise.families.finite.prior import check_bernoulli
from priorwise.families.finite_mdp.prior import Noise
from priorwise.families.finite_pomdp.belief import FinitePomdpBelief
from priorwise.families.finite_pomdp.environment import NOTHING, PomdpEnvironment, Sights
from priorwise.families.finite_pomdp.planner import Alike, Planner, planned
from priorwise.families.finite_pomdp.planning import Model, Policy
from priorwise.families.finite_pomdp.tables import reward_tables, tolerance
from priorwise.families.tabular_mdp.environment import LastMove
from priorwise.families.tabular_mdp.parameters import FirstStates, Transitions
from priorwise.theory.enumeration import Outcomes

if TYPE_CHECKING:
    from priorwise.families.finite_pomdp.plan import PomdpPlan


@final
@frozen(eq=False, slots=False)
class FinitePomdpPrior(Serializable):
    """Finitely many possible POMDPs.

    What all candidates share may be given without its first axis.

    Parameters
    ----------
    transitions
        Probability of each move, ``(candidate, state, action, state)``.
    observations
        Probability of an observation after an action that led to a state, ``(candidate, state,
        action, observation)``.
    rewards
        Mean reward, ``(candidate, state, action)``. Rewards are seen, and inform about state and
        candidate.
    probs
        Probabilities of the candidates, ``(candidate,)``.
    noise
        ``'none'``: a step earns the mean; ``'bernoulli'``: 0 or 1 with that mean.
    start
        The first state of a round, or its probabilities, ``(state,)`` or ``(candidate, state)``; by
        default all are equal. Nothing is observed before the first action.
    round_steps
        Steps of a round, after which the state is drawn from ``start`` again; None: no resets.
    last_move
        What the last step of a round shows: its reward alone, or also the observation after its
        move.
    planner
        How a drawn candidate is planned: exactly, which fails if too many beliefs about the state
        can be reached; as if the state were shown from the next step on; exactly where possible.
    names
        Names of the actions.
    observation_names
        Names of the observations.

    Examples
    --------
    >>> moves = np.repeat(np.eye(2)[:, None], 2, axis=1)  # the state stays
    >>> sharp, blunt = (np.full((2, 2, 2), 1 - p) + (2 * p - 1) * moves for p in (0.9, 0.6))
    >>> prior = FinitePomdpPrior(moves, [sharp, blunt], [[1, 0], [0, 1]], probs=[0.5, 0.5])
    >>> prior.support, prior.states, prior.arms, prior.contexts.observations
    (2, 2, 2, 2)

    """

    family: ClassVar[str] = "finite-pomdp"

    transitions: FloatArray = field(
        converter=arrays, validator=Transitions(("candidate", "state", "action", "state"), spread=1)
    )
    observations: FloatArray = field(
        converter=arrays,
        validator=Transitions(("candidate", "state", "action", "observation"), spread=1),
    )
    rewards: FloatArray = field(
        converter=arrays, validator=Array(("candidate", "state", "action"), spread=1)
    )
    probs: FloatArray = field(converter=arrays, validator=Probabilities())
    noise: Noise = field(default="none", validator=Choice(Noise))
    start: FloatArray = field(default=None, kw_only=True, converter=arrays, validator=FirstStates())
    round_steps: int | None = field(default=None, kw_only=True, validator=Count())
    last_move: LastMove = field(default="hidden", kw_only=True, validator=Choice(LastMove))
    planner: Planner = field(default="auto", kw_only=True, validator=Choice(Planner))
    names: tuple[str, ...] | None = field(
        default=None, kw_only=True, repr=False, converter=words, validator=Names("action")
    )
    observation_names: tuple[str, ...] | None = field(
        default=None, kw_only=True, repr=False, converter=words, validator=Names("observation")
    )

    def __attrs_post_init__(self) -> None:
        check_bernoulli("rewards", self.rewards, self.noise)

    @property
    def support(self) -> int:
        """Number of candidates."""
        return self.transitions.shape[0]

    @property
    def states(self) -> int:
        """Number of states."""
        return self.transitions.shape[1]

    @property
    def arms(self) -> int:
        """Number of actions."""
        return self.transitions.shape[2]

    @property
    def reward_law(self) -> RewardLaw:
        """How rewards scatter around their means."""
        return NoiselessRewards() if self.noise == "none" else BernoulliRewards()

    @property
    def reward_range(self) -> tuple[float, float]:
        """Least and largest reward."""
        if self.noise == "bernoulli":
            return 0.0, 1.0
        return float(self.rewards.min()), float(self.rewards.max())

    @property
    def mean_range(self) -> tuple[float, float]:
        """Least and largest mean reward of the candidates that are possible."""
        means = self.rewards[self.probs > 0.0]
        return float(means.min()), float(means.max())

    @cached_property
    def contexts(self) -> Sights:
        """What tasks show, and when they start anew; priors that are compared share it."""
        return Sights(self.observations.shape[3], self.round_steps, self.last_move)

    @cached_property
    def _tables(self) -> list[tuple[FloatArray, FloatArray]]:
        return reward_tables(self.rewards, self.noise)

    def reward_table(self, arm: int) -> tuple[FloatArray, FloatArray]:
        """Distinct rewards of an action, ``(reward,)``, and their probabilities, ``(candidate,
        state, reward)``.
        """
        return self._tables[arm]

    def reward_likelihood(self, actions: IntArray, rewards: FloatArray) -> FloatArray:
        """Probability of the rewards of actions, ``(task,)`` each, in each candidate and state,
        ``(task, candidate, state)``.
        """
        means = self.rewards[:, :, actions].transpose(2, 0, 1)
        r = rewards[:, None, None]
        if self.noise == "bernoulli":
            return np.where(r > 0.5, means, 1.0 - means)
        return np.asarray(np.abs(r - means) <= tolerance(self.rewards), dtype=np.float64)

    @cached_property
    def models(self) -> list[Model]:
        """Candidates as the planner reads them."""
        return [
            Model.of(
                self.start[c],
                self.rewards[c],
                self.transitions[c],
                self.observations[c],
                [(values, chances[c]) for values, chances in self._tables],
            )
            for c in range(self.support)
        ]

    @cached_property
    def _alike(self) -> Alike:
        """What plans depend on: they are shared by priors that differ in ``probs`` alone."""
        tables = self.candidates.tobytes()
        return Alike((tables, self.candidates.shape, self.states, self.noise, self.planner), self)

    def plans(self, steps: int) -> list[Policy]:
        """Return the plan of each candidate for so many steps from its start, worked out once."""
        return planned(self._alike, steps)

    def plan(self, horizon: int, candidate: int = 0) -> PomdpPlan:
        """Return what to do in one candidate for so many steps, at most a round, to be printed."""
        from priorwise.families.finite_pomdp.plan import plan_of

        steps = validation.count("horizon", horizon)
        which = validation.count("candidate", candidate, least=0)
        if which >= self.support:
            raise ArgumentError("candidate", f"must be one of 0..{self.support - 1}", got=which)
        return plan_of(self, min(steps, self.round_steps or steps), which)

    @property
    def candidates(self) -> FloatArray:
        """All that distinguishes the candidates, ``(candidate, entry)``."""
        parts = (self.transitions, self.observations, self.rewards, self.start)
        return np.concatenate([each.reshape(self.support, -1) for each in parts], axis=1)

    def pooled(self, others: Sequence[FinitePomdpPrior], kept: BoolArray) -> FinitePomdpPrior:
        """Return a prior on the candidates of this one and of others, of which those that are
        kept.
        """
        for other in others:
            if other.contexts != self.contexts or other.states != self.states:
                raise ArgumentError(
                    "q", "must have the states, observations and round_steps of the other prior"
                )
        every = (self, *others)
        names = ("transitions", "observations", "rewards", "start")
        tables = {
            name: np.concatenate([getattr(each, name) for each in every])[kept] for name in names
        }
        return self.replaced(**tables, probs=np.full(kept.sum(), 1.0 / kept.sum()))

    def extremes(self) -> tuple[FloatArray, FloatArray]:
        """Largest and smallest mean reward of each candidate."""
        return self.rewards.max(axis=(1, 2)), self.rewards.min(axis=(1, 2))

    def first_signals(self) -> tuple[IntArray, FloatArray]:
        """Nothing is observed at first."""
        return np.array([NOTHING]), np.ones(1)

    def outcomes(self, signal: Signal, step: int) -> Outcomes:
        """For each action its rewards with what may be observed next, at the first step of a round;
        later it depends on the history, and beliefs know it.
        """
        return self.belief(len(signal)).possible_outcomes(Seen(step, step, self.arms, signal))

    def sample(self, rng: Stream, tasks: int) -> PomdpEnvironment:
        """Draw which candidate it is."""
        index = rng.choice(
            np.broadcast_to(self.probs, (argument_checks.batch(rng, tasks), self.support))
        )
        return PomdpEnvironment(self, index)

    def belief(self, tasks: int) -> FinitePomdpBelief:
        """Start at the prior."""
        tasks = argument_checks.tasks_of(tasks)
        zeros = np.zeros(tasks, dtype=np.int64)
        return FinitePomdpBelief(
            self,
            np.broadcast_to(log_probs(self.probs), (tasks, self.support)),
            zeros,
            np.broadcast_to(self.start, (tasks, *self.start.shape)),
            zeros,
        )
