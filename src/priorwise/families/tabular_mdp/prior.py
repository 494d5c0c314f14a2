"""Tabular Bayesian MDPs: ``P(. | s, a) ~ Dirichlet(transitions[s, a])``, independent over states
and actions; rewards known, Bernoulli or normal.

A task is one MDP that is met for several rounds. Each round starts in a state drawn from ``start``;
after ``round_steps`` steps comes a reset, a transition that depends on the step alone. By default
the last move of a round is hidden and teaches nothing; ``last_move="shown"`` shows it. This is the
paper's Bayesian MDP: the environment is drawn once, states are shown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import argument_checks, validation
from priorwise.core.rewards import RewardLaw
from priorwise.core.serial import Serializable
from priorwise.core.streams import Stream
from priorwise.core.tiles import FamilyTiles
from priorwise.core.types import BoolArray, FloatArray, IntArray
from priorwise.families.registry import seen_by
from priorwise.families.tabular_mdp.environment import LastMove, MdpEnvironment, Present, Rounds
from priorwise.families.tabular_mdp.rewards import (
    KnownRewards,
    NormalRewardPrior,
    RewardModel,
    model_of,
)

SMALLEST: Final = 1e-6
LARGEST: Final = 1e12


@final
@dataclass(frozen=True, eq=False, init=False)
class DirichletMdpPrior(Serializable):
    """Dirichlet priors over the transitions of an MDP, in tasks of several rounds.

    Parameters
    ----------
    transitions
        Parameters of the Dirichlet law of the next state, ``(state, action, next state)``; 0 for a
        move that is impossible. A row with one positive entry is a certain move, one without any an
        action that the state does not have.
    rewards
        Known rewards ``(state, action)``, or what is believed of them: a
        :class:`~priorwise.families.BernoulliRewardPrior` or
        :class:`~priorwise.families.NormalRewardPrior`.
    round_steps
        Steps of a round, after which the state is drawn from ``start`` again; None: no resets.
    last_move
        ``"hidden"``: the last step of a round shows the first state of the next one alone.
        ``"shown"``: also where its move led. The signal of a reset is then ``state + states (1 +
        arrived)``, and ``prior.contexts.now(seen.signal)`` is the state.
    start
        The first state of a round, or its law ``(state,)``.
    names
        Names of the actions.

    Examples
    --------
    >>> prior = DirichletMdpPrior(
    ...     transitions=[[[1, 0], [1, 1]], [[0, 1], [2, 1]]],
    ...     rewards=[[0, 0], [1, 1]],
    ...     round_steps=5,
    ... )
    >>> prior.states, prior.arms
    (2, 2)

    """

    family: ClassVar[str] = "dirichlet-mdp"

    transitions: FloatArray
    rewards: Any
    round_steps: int | None
    last_move: LastMove
    start: FloatArray
    names: tuple[str, ...] | None = field(repr=False)

    def __init__(
        self,
        transitions: ArrayLike,
        rewards: Any,
        *,
        round_steps: int | None = None,
        last_move: LastMove = "hidden",
        start: int | ArrayLike = 0,
        names: Any = None,
    ) -> None:
        """Check and freeze the parameters."""
        alpha = validation.matrix("transitions", transitions, (None, None, None))
        states, arms, after = alpha.shape
        if after != states:
            raise ValueError(
                "transitions must be (state, action, next state) with as many next states as "
                f"states, got {alpha.shape}"
            )
        some = alpha[alpha != 0.0]
        if some.size and not (some.min() >= SMALLEST and some.max() <= LARGEST):
            wrong = some.min() if some.min() < SMALLEST else some.max()
            raise ValueError(
                f"transitions must be 0, for an impossible move, or from {SMALLEST:g} to "
                f"{LARGEST:g}, got {wrong:g}"
            )
        stuck = np.flatnonzero(~(alpha > 0.0).any(axis=(1, 2)))
        if stuck.size:
            raise ValueError(
                "transitions must leave an action with a possible move in each state, but state "
                f"{stuck[0]} has none"
            )
        model = model_of(rewards, (states, arms))
        validation.one_of("last_move", last_move, LastMove)
        values = {
            "transitions": alpha,
            "rewards": rewards if isinstance(rewards, Serializable) else model.means,
            "round_steps": None
            if round_steps is None
            else validation.count("round_steps", round_steps),
            "last_move": last_move,
            "start": first_state(start, states),
            "names": validation.names(names, arms),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def arms(self) -> int:
        """Number of actions."""
        return self.transitions.shape[1]

    @property
    def states(self) -> int:
        """Number of states."""
        return self.transitions.shape[0]

    @cached_property
    def _possible(self) -> BoolArray:
        return self.transitions > 0.0

    @property
    def possible(self) -> BoolArray:
        """Which moves are possible, ``(state, action, next state)``."""
        return self._possible

    @cached_property
    def absent(self) -> tuple[tuple[bool, ...], ...] | None:
        """Which actions each state lacks, ``(state, action)``; None where all have all."""
        lacks: list[list[bool]] = np.logical_not(self.possible.any(axis=2)).tolist()
        return tuple(tuple(row) for row in lacks) if any(map(any, lacks)) else None

    @property
    def mean_transitions(self) -> FloatArray:
        """Mean probability of each move, ``(state, action, next state)``; 0 for absent actions."""
        total = self.transitions.sum(axis=2, keepdims=True)
        return np.asarray(self.transitions / np.where(total > 0.0, total, 1.0))

    @cached_property
    def reward_model(self) -> RewardModel:
        """What is believed of the rewards."""
        return model_of(self.rewards, (self.states, self.arms))

    @property
    def reward_law(self) -> RewardLaw:
        """How rewards scatter around their means."""
        return self.reward_model.law()

    @property
    def reward_range(self) -> tuple[float, float]:
        """The least and the largest reward."""
        low, high = self.reward_model.bounds()
        if isinstance(self.reward_model, KnownRewards) and self.absent:
            there = self.rewards[~np.array(self.absent)]
            return float(there.min()), float(there.max())
        return low, high

    @cached_property
    def contexts(self) -> Rounds:
        """What tasks show: states, and when they start anew; priors that are compared share it."""
        return Rounds(self.states, tuple(self.start.tolist()), self.round_steps, self.last_move)

    @cached_property
    def _filled(self) -> BoolArray:
        """Possible moves; absent actions, which nobody plays, stay."""
        there = np.asarray(self.possible.any(axis=2, keepdims=True))
        return self.possible | (~there & np.eye(self.states, dtype=bool)[:, None])

    @cached_property
    def _cells(self) -> IntArray:
        many = self.possible.sum(axis=2, keepdims=True) > 1
        return np.flatnonzero(self.possible & many)

    @property
    def drawn_cells(self) -> IntArray:
        """Places, in the flattened transitions, of moves whose probability is drawn; those of
        certain moves are not.
        """
        return self._cells

    def drawn(
        self, rng: Stream, alpha: FloatArray, pulls: FloatArray, sums: FloatArray, draws: int
    ) -> tuple[FloatArray, FloatArray]:
        """Transitions ``(task, draw, state, action, next state)`` and mean rewards of MDPs drawn at
        Dirichlet parameters ``(task, state, action, next state)`` and reward statistics.

        All gammas come from one request: those of the moves, then those of Bernoulli rewards.
        """
        tasks, cells = len(alpha), self.drawn_cells
        shapes = self.reward_model.gammas(pulls, sums)
        shapes = np.concatenate([alpha.reshape(tasks, -1)[:, cells], shapes], axis=1)
        if shapes.size:
            logs = rng.log_gamma(shapes, draws)
        else:  # all is known; requests after it have the same numbers all the same
            logs = rng.uniform(draws)[:, :, None][:, :, :0]
        flat = np.where(self._filled.ravel(), 0.0, -np.inf)
        table = np.broadcast_to(flat, (tasks, draws, flat.size)).copy()
        table[..., cells] = logs[..., : cells.size]
        table = table.reshape(tasks, draws, *self.transitions.shape)
        weights = np.exp(table - table.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        means = self.reward_model.drawn(rng, logs[..., cells.size :], pulls, sums)
        return weights, means if self.absent is None else np.where(self.absent, -np.inf, means)

    @property
    def coefficients(self) -> Any:
        """Law of the probability of each move that is not certain, ``Beta(alpha_j, alpha_0 -
        alpha_j)``, as if moves were arms: what a figure of the prior shows.
        """
        from priorwise.families.beta.prior import BetaPrior

        rest = self.transitions.sum(axis=2, keepdims=True) - self.transitions
        cells = self.drawn_cells
        return BetaPrior(self.transitions.ravel()[cells], rest.ravel()[cells])

    @property
    def coefficient_names(self) -> tuple[str, ...]:
        """Names of these moves."""
        names = self.names or tuple(f"action {action}" for action in range(self.arms))
        places = np.argwhere(self.possible & (self.possible.sum(axis=2, keepdims=True) > 1))
        return tuple(f"{s}, {names[a]}: to {after}" for s, a, after in places)

    def sample(self, rng: Stream, tasks: int) -> MdpEnvironment:
        """Draw an MDP for each task."""
        shape = (argument_checks.batch(rng, tasks), self.states, self.arms)
        nothing = np.zeros(shape)
        alpha = np.broadcast_to(self.transitions, (*shape, self.states))
        moves, means = self.drawn(rng, alpha, nothing, nothing, 1)
        there = None if self.absent is None else Present(self.absent)
        return MdpEnvironment(moves[:, 0], means[:, 0], self.reward_law, self.contexts, there)

    def belief(self, tasks: int) -> Any:
        """Start at the prior."""
        from priorwise.families.tabular_mdp.belief import MdpBelief

        shape = (argument_checks.tasks_of(tasks), self.states, self.arms)
        return MdpBelief(
            self,
            np.broadcast_to(self.transitions, (*shape, self.states)),
            np.zeros(shape),
            np.zeros(shape),
            np.zeros(tasks, dtype=np.int64),
        )

    def belief_given(self, statistics: Any) -> Any:
        """Return the belief about tasks of which all that was seen is in their statistics."""
        from priorwise.families.tabular_mdp.belief import MdpBelief

        seen = seen_by(self, statistics)
        if seen.states != self.states:
            raise ValueError(
                f"the prior has {self.states} states, but the statistics have {seen.states}"
            )
        wrong = np.argwhere((seen.moves > 0) & ~self.possible)
        if len(wrong):
            task, state, action, after = wrong[0]
            raise ValueError(
                f"task {task} of the statistics moved from state {state} to {after} by action "
                f"{action}, which the prior deems impossible"
            )
        resets = np.zeros(seen.tasks, dtype=np.int64)
        return MdpBelief(self, self.transitions + seen.moves, seen.pulls, seen.sums, resets)

    def tiles(self, horizon: int, uses: frozenset[str]) -> FamilyTiles | None:
        """Tile functions for the compiled loop; None with normal rewards, absent actions or last
        moves that are shown, which run in NumPy.
        """
        if isinstance(self.reward_model, NormalRewardPrior) or self.absent or self.contexts.shows:
            return None
        from priorwise.families.tabular_mdp.tiles import family_tiles

        return family_tiles(self, horizon)


def first_state(start: Any, states: int) -> FloatArray:
    """Return the law of the first state."""
    if np.ndim(start) == 0:
        state = validation.count("start", start, least=0)
        if state >= states:
            raise ValueError(f"start must be one of the states 0..{states - 1}, got {state}")
        law = np.zeros(states)
        law[state] = 1.0
        law.setflags(write=False)
        return law
    return validation.probabilities("start", start, states)
