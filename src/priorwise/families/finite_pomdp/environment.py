"""POMDPs that are played: what they show, and the state that they hide."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, final

import numpy as np

from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.seen import Seen, Signal
from priorwise.core.streams import WorldStreams
from priorwise.core.types import BoolArray, FloatArray, IntArray
from priorwise.families.tabular_mdp.environment import LastMove
from priorwise.families.tabular_mdp.planning import steps_left

if TYPE_CHECKING:
    from priorwise.families.finite_pomdp.belief import FinitePomdpBelief
    from priorwise.families.finite_pomdp.prior import FinitePomdpPrior

NOTHING: Final = -1
"""The signal before the first action of a round, when nothing has been observed."""


@final
@dataclass(frozen=True)
class Sights:
    """What all tasks share: the number of observations, after how many steps a round ends (None:
    never), and whether its last step shows an observation.
    """

    observations: int
    round_steps: int | None
    last_move: LastMove = "hidden"

    @property
    def hides_resets(self) -> bool:
        """Whether the last step of a round shows no observation."""
        return self.round_steps is not None and self.last_move == "hidden"

    def silent(self, step: int | IntArray, tasks: int) -> BoolArray:
        """Whether a step shows no observation, ``(task,)``."""
        return self.ends(step, tasks) & self.hides_resets

    def left(self, seen: Seen) -> int | IntArray:
        """Steps to the end of the round, this one among them."""
        left: int | IntArray = steps_left(seen.step, seen.horizon, self.round_steps)
        return left

    def ends(self, step: int | IntArray, tasks: int) -> BoolArray:
        """Whether a reset follows a step, ``(task,)``."""
        ended = False if self.round_steps is None else np.asarray(step) % self.round_steps == 0
        return np.broadcast_to(ended, tasks)

    def observed(self, name: str, signal: Signal, tasks: int) -> IntArray:
        """Return what a signal shows, ``(task,)``: an observation, or -1 for nothing."""
        array = np.asarray(signal)
        if array.shape != (tasks,) or array.dtype.kind not in "iu":
            raise ArgumentError(
                name,
                f"must be the observation of each task, integers ({tasks},)",
                got="None" if signal is None else f"{array.dtype} of shape {array.shape}",
            )
        if array.size and not NOTHING <= array.min() <= array.max() < self.observations:
            wrong = array.min() if array.min() < NOTHING else array.max()
            raise ArgumentError(
                name,
                f"must be observations 0..{self.observations - 1}, or {NOTHING} for none",
                got=wrong,
            )
        return array.astype(np.int64, copy=False)


@final
@dataclass(eq=False)
class PomdpEnvironment:
    """Tasks that each keep one POMDP; the signal is the last observation, ``(task,)``, or -1 before
    the first of a round.
    """

    actions_influence_signals: ClassVar[bool] = True

    prior: FinitePomdpPrior
    index: IntArray  # (task,): which candidate it is
    state: IntArray | None = None  # (task,): hidden
    played: list[tuple[Any, ...]] = field(default_factory=list)  # what a belief is updated with

    def start(self, rng: WorldStreams) -> Signal:
        """Draw the first state, and show nothing."""
        self.state = rng.world.choice(self.prior.start[self.index])
        self.played.clear()
        return np.full(len(self.index), NOTHING)

    def step(self, seen: Seen, actions: IntArray, rng: WorldStreams) -> tuple[FloatArray, Signal]:
        """``r ~ D(mu(s, a))``, ``s' ~ P(. | s, a)``, ``y ~ O(. | s', a)``; after the last step of a
        round, the first state of the next one, and nothing is shown.
        """
        prior, index = self.prior, self.index
        means = prior.rewards[index, self.state, actions]
        rewards = prior.reward_law.draw(means, actions, rng.noise)
        ends = prior.contexts.ends(seen.step, len(actions))
        moves = prior.transitions[index, self.state, actions]
        shows = prior.last_move == "shown"
        hidden = ends[:, None] & (not shows)
        then = rng.world.choice(np.where(hidden, prior.start[index], moves))
        observed = rng.world.choice(prior.observations[index, then, actions])
        after = np.where(prior.contexts.silent(seen.step, len(actions)), NOTHING, observed)
        if shows:
            then = np.where(ends, rng.world.choice(prior.start[index]), then)
        self.state = then
        self.played.append((seen, actions, rewards, after))
        return rewards, after

    def values(self, signal: Signal) -> FloatArray:
        """``E[r | s, a]`` of each action in the hidden state, ``(task, arm)``."""
        return np.asarray(self.prior.rewards[self.index, self.state])

    def log(self, signal: Signal, actions: IntArray) -> FloatArray:
        """Log the last observation, ``(task, 1)``."""
        return np.asarray(signal, dtype=np.float64)[:, None]

    def planned(self, seen: Seen) -> FloatArray:
        """What each action earns to the end of the round by the plan for the true candidate, whose
        state is not known but by what was played and seen up to now, ``(task, arm)``.
        """
        belief = self.prior.belief(len(self.index))
        for step in self.played:
            belief = belief.update(*step)
        return belief.point_values(seen)[np.arange(len(self.index)), self.index]


@final
@dataclass(frozen=True, eq=False)
class DrawnPomdps:
    """POMDPs drawn from a posterior, as a rule on environments sees them."""

    points: IntArray  # (task, draw): which candidate
    transitions: FloatArray  # (task, draw, state, action, next state)
    observations: FloatArray  # (task, draw, next state, action, observation)
    rewards: FloatArray  # (task, draw, state, action)
    states: FloatArray  # (task, draw, state): belief about the state if it is this candidate
    belief: FinitePomdpBelief
    step: Any  # of the draw

    def values(self, seen: Seen) -> FloatArray:
        """``Q`` of each action in each of them at its belief about the state, ``(task, draw,
        arm)``.
        """
        if np.any(seen.step != self.step):
            raise ArgumentTypeError(
                "drawn",
                "POMDPs serve one step, because they know the belief about the hidden state at "
                "that step only",
                cure="use ThompsonSampling or EnvironmentSampling, which draw anew",
            )
        every = self.belief.point_values(seen)
        return np.take_along_axis(every, self.points[:, :, None], axis=1)
