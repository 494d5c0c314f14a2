"""Markov decision processes with a known table each: those that are played, and those that a belief
draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from priorwise.core.protocols import Seen, Signal
from priorwise.core.rewards import RewardLaw
from priorwise.core.streams import WorldStreams
from priorwise.core.types import BoolArray, FloatArray, IntArray
from priorwise.families.tabular_mdp import planning
from priorwise.families.tabular_mdp.planning import optimal_value, q_values, steps_left


@final
@dataclass(frozen=True)
class Rounds:
    """What all tasks share: the number of states, the law of the first state of a round, and after
    how many steps a reset comes (None: never).
    """

    of_environment: ClassVar[bool] = False
    """The first state has the same law in all tasks."""

    states: int
    start: tuple[float, ...]
    round_steps: int | None

    def left(self, seen: Seen) -> int | IntArray:
        """Steps to the end of the round, this one among them."""
        left: int | IntArray = steps_left(seen.step, seen.horizon, self.round_steps)
        return left

    def ends(self, step: int | IntArray) -> bool | IntArray:
        """Whether a reset follows a step."""
        return False if self.round_steps is None else step % self.round_steps == 0

    def state(self, name: str, signal: Signal, tasks: int) -> IntArray:
        """Return the states that a signal shows, ``(task,)``, if it shows states."""
        array = np.asarray(signal)
        if array.shape != (tasks,) or array.dtype.kind not in "iu":
            raise ValueError(
                f"{name} must be the state of each task, integers ({tasks},), got "
                f"{'None' if signal is None else f'{array.dtype} of shape {array.shape}'}"
            )
        if array.size and not 0 <= array.min() <= array.max() < self.states:
            wrong = array.min() if array.min() < 0 else array.max()
            raise ValueError(f"{name} must be states 0..{self.states - 1}, got {wrong}")
        return array.astype(np.int64, copy=False)


@final
@dataclass(frozen=True)
class Present:
    """Which actions there are in the present state, where states lack some."""

    absent: tuple[tuple[bool, ...], ...]  # (state, action)

    def __call__(self, signal: Signal) -> BoolArray:
        """Return which may be played, ``(task, arm)``."""
        return ~np.array(self.absent)[signal]


@final
@dataclass(frozen=True, eq=False)
class MdpEnvironment:
    """Tasks that each keep one MDP for several rounds; the signal is the state, ``(task,)``."""

    actions_influence_signals: ClassVar[bool] = True

    transitions: FloatArray  # (task, state, action, next state)
    means: FloatArray  # (task, state, action); -inf for actions that a state lacks
    law: RewardLaw
    rounds: Rounds
    available: Present | None = None  # None: all actions in all states

    def start(self, rng: WorldStreams) -> Signal:
        """Draw the first state."""
        return rng.world.choice(np.broadcast_to(self.rounds.start, self.means.shape[:2]))

    def step(self, seen: Seen, actions: IntArray, rng: WorldStreams) -> tuple[FloatArray, Signal]:
        """``r ~ D(mu(s, a))``, ``s' ~ P(. | s, a)``; after the last step of a round, the first
        state of the next one.
        """
        rows = np.arange(len(actions))
        rewards = self.law.draw(self.means[rows, seen.signal, actions], actions, rng.noise)
        weights = self.transitions[rows, seen.signal, actions]
        ends = np.broadcast_to(self.rounds.ends(seen.step), len(actions))
        weights = np.where(ends[:, None], self.rounds.start, weights)
        return rewards, rng.world.choice(weights)

    def log(self, signal: Signal, actions: IntArray) -> FloatArray:
        """Log the state, ``(task, 1)``."""
        return np.asarray(signal, dtype=np.float64)[:, None]

    def planned(self, seen: Seen) -> FloatArray:
        """What each action earns to the end of the round if all later ones are the best,
        ``(task, arm)``.
        """
        q = q_values(self.transitions, self.means, self.rounds.left(seen))
        return np.asarray(q[np.arange(len(q)), seen.signal])

    def optimal(self, horizon: int) -> FloatArray:
        """Expected total reward of the best policy in each task, ``(task,)``, by dynamic
        programming.
        """
        start = np.array(self.rounds.start)
        value = optimal_value(self.transitions, self.means, start, horizon, self.rounds.round_steps)
        return np.asarray(value)


@final
@dataclass(frozen=True, eq=False)
class DrawnMdps:
    """MDPs drawn from a posterior: what a rule on environments sees, and what can be kept for a
    round.
    """

    transitions: FloatArray  # (task, draw, state, action, next state)
    rewards: FloatArray  # (task, draw, state, action)
    rounds: Rounds
    plans: FloatArray  # (task, draw, step, state, action): Q with 1, 2, ... steps left

    def __eq__(self, other: object) -> bool:
        """Equal if all their numbers are."""
        return isinstance(other, DrawnMdps) and all(
            np.array_equal(mine, theirs)
            for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True)
        )

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def planned(
        cls, transitions: FloatArray, rewards: FloatArray, rounds: Rounds, seen: Seen
    ) -> DrawnMdps:
        """Plan for the longest time that a round may have left from now on."""
        steps = int(np.max(seen.horizon - seen.step + 1))
        steps = steps if rounds.round_steps is None else min(steps, rounds.round_steps)
        return cls(
            transitions, rewards, rounds, planning.backward_values(transitions, rewards, steps)
        )

    def values(self, seen: Seen) -> FloatArray:
        """Value of each action now in each of them, ``(task, draw, arm)``."""
        left = np.asarray(self.rounds.left(seen))
        if left.max() > self.plans.shape[2]:
            raise ValueError(
                f"these MDPs were planned for {self.plans.shape[2]} steps, but {left.max()} are "
                "left: seen.step is before the step of the draw"
            )
        rows = np.arange(len(self.plans))
        return np.asarray(self.plans[rows, :, left - 1, seen.signal])
