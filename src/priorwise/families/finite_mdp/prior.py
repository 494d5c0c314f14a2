"""A prior on finitely many MDPs: candidate c with probability probs[c], met for several rounds.

Transitions and mean rewards of every candidate are known, so that a task is learned by telling the
candidates apart. A history that the held prior rules out makes the belief start again from that
prior, and counts that it did.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, Final, Literal, final

import numpy as np
from attrs import field, frozen

from priorwise.core import argument_checks, sizes
from priorwise.core.errors import ArgumentError
from priorwise.core.parameters import Array, Choice, Count, Names, Probabilities, arrays, words
from priorwise.core.rewards import BernoulliRewards, NoiselessRewards, RewardLaw
from priorwise.core.seen import Signal
from priorwise.core.serial import Serializable
from priorwise.core.streams import Stream
from priorwise.core.types import BoolArray, FloatArray, IntArray
from priorwise.families.finite.belief import log_probs
from priorwise.families.finite.prior import check_bernoulli
from priorwise.families.finite_mdp.belief import FiniteMdpBelief
from priorwise.families.registry import seen_by
from priorwise.families.tabular_mdp.environment import LastMove, MdpEnvironment, Rounds
from priorwise.families.tabular_mdp.parameters import FirstState, Transitions
from priorwise.families.tabular_mdp.planning import backed_up
from priorwise.theory.enumeration import Outcome, Outcomes

Noise = Literal["none", "bernoulli"]

SAME_REWARD: Final = 1e-9
"""Noiseless rewards this close, relative to the largest mean, are the same."""


@final
@frozen(eq=False, slots=False)
class FiniteMdpPrior(Serializable):
    """Finitely many possible MDPs.

    Parameters
    ----------
    transitions
        Probability of each move in each candidate, ``(candidate, state, action, state)``.
    rewards
        Mean reward, ``(candidate, state, action)``.
    probs
        Probabilities of the candidates, ``(candidate,)``.
    noise
        ``'none'``: a step earns the mean; ``'bernoulli'``: 0 or 1 with that mean.
    start
        The first state of a round, or the probabilities ``(state,)`` of each.
    round_steps
        Steps of a round, after which the state is drawn from ``start`` again; None: no resets.
    last_move
        With ``'hidden'`` the last step of a round shows the first state of the next one alone. With
        ``'shown'`` it also shows where its move led: the signal of a reset is ``state + states (1 +
        arrived)``, and ``prior.contexts.now(seen.signal)`` is the state.
    names
        Names of the actions.

    Examples
    --------
    >>> stay, swap = np.eye(2), 1.0 - np.eye(2)
    >>> first, second = (np.stack(each, axis=1) for each in ((stay, swap), (swap, stay)))
    >>> prior = FiniteMdpPrior([first, second], [[0, 0], [1, 1]], probs=[0.5, 0.5])
    >>> prior.support, prior.states, prior.arms
    (2, 2, 2)

    """

    family: ClassVar[str] = "finite-mdp"

    transitions: FloatArray = field(
        converter=arrays, validator=Transitions(("candidate", "state", "action", "state"))
    )
    rewards: FloatArray = field(
        converter=arrays, validator=Array(("candidate", "state", "action"), spread=1)
    )
    probs: FloatArray = field(converter=arrays, validator=Probabilities())
    noise: Noise = field(default="none", validator=Choice(Noise))
    start: FloatArray = field(default=0, kw_only=True, converter=arrays, validator=FirstState())
    round_steps: int | None = field(default=None, kw_only=True, validator=Count())
    last_move: LastMove = field(default="hidden", kw_only=True, validator=Choice(LastMove))
    names: tuple[str, ...] | None = field(
        default=None, kw_only=True, repr=False, converter=words, validator=Names("action")
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
    def contexts(self) -> Rounds:
        """What tasks show: states, and when they start anew; priors that are compared share it."""
        return Rounds(self.states, tuple(self.start.tolist()), self.round_steps, self.last_move)

    @property
    def tolerance(self) -> float:
        """How close two noiseless rewards must be to count as the same."""
        return SAME_REWARD * float(np.abs(self.rewards).max())

    @cached_property
    def _plans(self) -> list[FloatArray]:
        return [self.rewards]

    def planned(self, steps: int) -> FloatArray:
        """``Q`` of every candidate with 1, 2, ... steps left, ``(candidate, steps left, state,
        action)``, by value iteration; worked out once.
        """
        plans = self._plans
        sizes.check_memory(
            "horizon",
            f"{sizes.amount(steps)} planned steps",
            8.0 * self.rewards.size * sizes.as_float(steps),
            "lower the horizon, or set round_steps",
        )
        while len(plans) < steps:
            plans.append(backed_up(self.transitions, self.rewards, plans[-1]))
        return np.stack(plans[:steps], axis=1)

    def log_likelihood(
        self,
        states: IntArray,
        actions: IntArray,
        rewards: FloatArray,
        after: IntArray,
        moved: BoolArray,
    ) -> FloatArray:
        """Log likelihood of each candidate, ``(task, candidate)``, given a step of each task; where
        a reset followed, given its reward alone.
        """
        means = self.rewards[:, states, actions].T
        moves = self.transitions[:, states, actions, after].T
        r = rewards[:, None]
        with np.errstate(divide="ignore"):
            if self.noise == "bernoulli":
                out = np.log(np.where(r > 0.5, means, 1.0 - means))
            else:
                out = np.where(np.abs(r - means) <= self.tolerance, 0.0, -np.inf)
            return np.asarray(out + np.where(moved[:, None], np.log(moves), 0.0))

    @property
    def candidates(self) -> FloatArray:
        """Transitions and rewards, ``(candidate, entry)``."""
        parts = (self.transitions, self.rewards)
        return np.concatenate([each.reshape(self.support, -1) for each in parts], axis=1)

    def pooled(self, others: Sequence[FiniteMdpPrior], kept: BoolArray) -> FiniteMdpPrior:
        """Return a prior on the candidates of this one and of others, of which those that are
        kept.
        """
        for other in others:
            if other.contexts != self.contexts:
                raise ArgumentError(
                    "q", "must have the states, start and round_steps of the other prior"
                )
        every = (self, *others)
        return self.replaced(
            transitions=np.concatenate([each.transitions for each in every])[kept],
            rewards=np.concatenate([each.rewards for each in every])[kept],
            probs=np.full(kept.sum(), 1.0 / kept.sum()),
        )

    def extremes(self) -> tuple[FloatArray, FloatArray]:
        """Largest and smallest mean reward of each candidate."""
        return self.rewards.max(axis=(1, 2)), self.rewards.min(axis=(1, 2))

    def first_signals(self) -> tuple[IntArray, FloatArray]:
        """States in which a task may start, and their probabilities."""
        states = np.flatnonzero(self.start)
        return states, self.start[states] / self.start.sum()

    def outcomes(self, signal: Signal, step: int) -> Outcomes:
        """For each action its rewards with the signals that may follow, in each candidate."""
        states = self.contexts.state("signal", signal, len(signal))
        rounds, count = self.contexts, self.states
        reset = self.start / self.start.sum() if rounds.ends(step) else None
        signals = np.arange(count * (count + 1) if rounds.shows else count)  # at every step
        state, arrived = rounds.now(signals), rounds.arrived(signals)
        out = []
        for arm in range(self.arms):
            moves = self.transitions[:, states, arm].transpose(1, 0, 2)  # (task, candidate, next)
            if not rounds.shows:
                after = moves if reset is None else np.broadcast_to(reset, moves.shape)
            elif reset is None:
                after = np.where(arrived < 0, moves[:, :, state], 0.0)
            else:
                after = np.where(arrived < 0, 0.0, moves[:, :, arrived] * reset[state])
            shown = []
            for reward, chance in self._rewards_shown(states, arm):
                for each in signals.tolist():
                    to = np.full(len(states), each)
                    shown.append(Outcome(reward, to, chance * after[:, :, each]))
            out.append(shown)
        return out

    def _rewards_shown(self, states: IntArray, arm: int) -> list[tuple[Any, FloatArray]]:
        """Rewards of an action, for all tasks or ``(task,)``, with their probabilities ``(task,
        candidate)``.
        """
        if self.noise == "bernoulli":
            means = self.rewards[:, states, arm].T
            return [(1.0, means), (0.0, 1.0 - means)]
        values, group = self._distinct
        return [
            (values[states, arm, k], np.equal(group[:, states, arm].T, k).astype(np.float64))
            for k in range(values.shape[2])
        ]

    @cached_property
    def _distinct(self) -> tuple[FloatArray, IntArray]:
        """Distinct noiseless rewards ``(state, action, number)``, filled up with the last one, and
        the number of each candidate's, ``(candidate, state, action)``.
        """
        group = np.zeros(self.rewards.shape, dtype=np.int64)
        starts: dict[tuple[int, int], list[float]] = {}
        for state, arm in np.ndindex(self.states, self.arms):
            column, found = self.rewards[:, state, arm], starts.setdefault((state, arm), [])
            for value in np.sort(column).tolist():
                if not found or value - found[-1] > self.tolerance:
                    found.append(value)
            group[:, state, arm] = np.searchsorted(found, column, side="right") - 1
        most = max(map(len, starts.values()))
        values = [each + each[-1:] * (most - len(each)) for each in starts.values()]
        return np.array(values).reshape(self.states, self.arms, most), group

    def sample(self, rng: Stream, tasks: int) -> MdpEnvironment:
        """Draw which candidate it is."""
        index = rng.choice(
            np.broadcast_to(self.probs, (argument_checks.batch(rng, tasks), self.support))
        )
        return MdpEnvironment(
            self.transitions[index], self.rewards[index], self.reward_law, self.contexts
        )

    def belief(self, tasks: int) -> FiniteMdpBelief:
        """Start at the prior."""
        tasks = argument_checks.tasks_of(tasks)
        weights = np.broadcast_to(log_probs(self.probs), (tasks, self.support))
        return FiniteMdpBelief(self, weights, np.zeros(tasks, dtype=np.int64))

    def belief_given(self, statistics: Any) -> FiniteMdpBelief:
        """Return the belief about tasks of which all that was seen is in their statistics.

        It equals that of one update per step, but for rounding. A task that the prior rules out
        starts again from the prior, and forgets all that was seen of it.
        """
        from priorwise.families.finite_mdp.evidence import likelihood_of

        likelihood = likelihood_of(self, seen_by(self, statistics))
        return self.belief(len(likelihood))._learned(likelihood)
