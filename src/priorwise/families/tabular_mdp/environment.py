"""Markov decision processes with a known table each: those that are played, and those that a belief
draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

import numpy as np

from priorwise.core.errors import ArgumentError
from priorwise.core.rewards import RewardLaw
from priorwise.core.seen import Seen, Signal
from priorwise.core.streams import WorldStreams
from priorwise.core.types import BoolArray, FloatArray, IntArray
from priorwise.families.tabular_mdp import planning
from priorwise.families.tabular_mdp.planning import optimal_value, q_values, steps_left

LastMove = Literal["hidden", "shown"]


@final
@dataclass(frozen=True)
class Rounds:
    """What all tasks share: the number of states, the law of the first state of a round, after how
    many steps a reset comes (None: never), and whether the last move of a round is shown.

    A signal is the state. After a reset that shows the last move it is ``state + states (1 +
    arrived)``, with the state to which the last move led.
    """

    of_environment: ClassVar[bool] = False
    """The first state has the same law in all tasks."""

    states: int
    start: tuple[float, ...]
    round_steps: int | None
    last_move: LastMove = "hidden"

    @property
    def shows(self) -> bool:
        """Whether resets show the last move."""
        return self.round_steps is not None and self.last_move == "shown"

    def now(self, signal: Signal) -> IntArray:
        """Return the present state that a signal shows, ``(task,)``."""
        return np.asarray(signal) % self.states if self.shows else np.asarray(signal)

    def arrived(self, signal: Signal) -> IntArray:
        """Return where the last move of the round before led, ``(task,)``; -1 if that is not
        shown.
        """
        return np.asarray(signal) // self.states - 1

    def reset(self, state: Any, arrived: Any) -> Any:
        """Return the signal of a reset that shows the last move: numbers, or ``(task,)``."""
        return state + self.states * (1 + arrived)

    def led(self, step: int | IntArray, after: Signal) -> tuple[IntArray, BoolArray]:
        """Return where a step led, ``(task,)``, and whether that is known, from the next signal."""
        then = self.now(after)
        ends = np.broadcast_to(self.ends(step), then.shape)
        if not self.shows:
            return then, ~ends
        return np.where(ends, self.arrived(after), then), np.ones(then.shape, dtype=bool)

    def check_after(self, step: int | IntArray, after: Signal, tasks: int) -> None:
        """Raise an error for a next signal that does not show what it must."""
        self.state("after", after, tasks)
        if not self.shows:
            return
        ends = np.broadcast_to(self.ends(step), tasks)
        if (wrong := (self.arrived(after) >= 0) != ends).any():
            task = int(np.argmax(wrong))
            raise ArgumentError(
                "after",
                "must be a state, or state + states (1 + arrived) at the end of a round (task "
                f"{task})",
                got=after[task],
            )

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
            raise ArgumentError(
                name,
                f"must be the state of each task, integers ({tasks},)",
                got="None" if signal is None else f"{array.dtype} of shape {array.shape}",
            )
        most = self.states * (self.states + 1) if self.shows else self.states
        if array.size and not 0 <= array.min() <= array.max() < most:
            wrong = array.min() if array.min() < 0 else array.max()
            raise ArgumentError(name, f"must be states 0..{most - 1}", got=wrong)
        return self.now(array.astype(np.int64, copy=False))


@final
@dataclass(frozen=True)
class Present:
    """Which actions there are in the present state, where states lack some."""

    absent: tuple[tuple[bool, ...], ...]  # (state, action)

    def __call__(self, signal: Signal) -> BoolArray:
        """Return which may be played, ``(task, arm)``."""
        return ~np.array(self.absent)[np.asarray(signal) % len(self.absent)]


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
        rows, rounds = np.arange(len(actions)), self.rounds
        state = rounds.now(seen.signal)
        rewards = self.law.draw(self.means[rows, state, actions], actions, rng.noise)
        weights = self.transitions[rows, state, actions]
        ends = np.broadcast_to(rounds.ends(seen.step), len(actions))
        if rounds.shows:
            then = rng.world.choice(weights)
            first = rng.world.choice(np.broadcast_to(rounds.start, weights.shape))
            return rewards, np.where(ends, rounds.reset(first, then), then)
        return rewards, rng.world.choice(np.where(ends[:, None], rounds.start, weights))

    def log(self, signal: Signal, actions: IntArray) -> FloatArray:
        """Log the state, ``(task, 1)``; if the last moves of rounds are shown, also where these
        led, or -1, ``(task, 2)``.
        """
        columns = [self.rounds.now(signal)]
        columns += [self.rounds.arrived(signal)] if self.rounds.shows else []
        return np.stack(columns, axis=1).astype(np.float64)

    def planned(self, seen: Seen) -> FloatArray:
        """What each action earns to the end of the round if all later ones are the best,
        ``(task, arm)``.
        """
        q = q_values(self.transitions, self.means, self.rounds.left(seen))
        return np.asarray(q[np.arange(len(q)), self.rounds.now(seen.signal)])

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
    points: IntArray | None = None  # (task, draw): which candidate; None without candidates

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
            raise ArgumentError(
                "seen.step",
                "must not be before the step of the draw: these MDPs were planned for "
                f"{self.plans.shape[2]} steps, but {left.max()} are left",
            )
        rows = np.arange(len(self.plans))
        return np.asarray(self.plans[rows, :, left - 1, self.rounds.now(seen.signal)])
