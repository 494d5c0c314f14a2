"""Tabular Bayesian MDPs: ``P(. | s, a) ~ Dirichlet(transitions[s, a])``, independent over states
and actions; rewards known, Bernoulli or normal.

A task is one MDP that is met for several rounds. Each round starts in a state drawn from ``start``;
after ``round_steps`` steps comes a reset, a transition that depends on the step alone. By default
the last move of a round is hidden and teaches nothing; ``last_move="shown"`` shows it. This is the
paper's Bayesian MDP: the environment is drawn once, states are shown.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, Final, final

import numpy as np
from attrs import field, frozen

from priorwise.core import argument_checks, validation
from priorwise.core.errors import ArgumentError
from priorwise.core.parameters import Array, Choice, Count, Names, arrays, words
from priorwise.core.rewards import RewardLaw
from priorwise.core.serial import Serializable
from priorwise.core.streams import Stream
from priorwise.core.tiles import FamilyTiles
from priorwise.core.types import BoolArray, FloatArray, IntArray
from priorwise.families.registry import seen_by
from priorwise.families.tabular_mdp.environment import LastMove, MdpEnvironment, Present, Rounds
from priorwise.families.tabular_mdp.parameters import FirstState
from priorwise.families.tabular_mdp.rewards import (
    KnownRewards,
    NormalRewardPrior,
    RewardModel,
    known_or_prior,
    model_of,
)

SMALLEST: Final = 1e-6
LARGEST: Final = 1e12


@final
@frozen(eq=False, slots=False)
class DirichletMdpPrior(Serializable):
    """Dirichlet priors over the transitions of an MDP, in tasks of several rounds.

    Parameters
    ----------
    transitions
        Parameters of the Dirichlet distribution of the next state; 0 for an impossible move,
        ``(state, action, state)``. A row with one positive entry is a certain move, an empty one an
        action that the state lacks.
    rewards
        Known rewards ``(state, action)``, or a prior of them: a `BernoulliRewardPrior` or a
        `NormalRewardPrior`.
    round_steps
        Steps of a round, after which the state is drawn from ``start`` again; None: no resets.
    last_move
        With ``'hidden'`` the last step of a round shows the first state of the next one alone. With
        ``'shown'`` it also shows where its move led: the signal of a reset is ``state + states (1 +
        arrived)``, and ``prior.contexts.now(seen.signal)`` is the state.
    start
        The first state of a round, or the probabilities ``(state,)`` of each.
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

    transitions: FloatArray = field(
        converter=arrays, validator=Array(("state", "action", "state"), 0.0, LARGEST)
    )
    rewards: FloatArray | RewardModel = field(converter=known_or_prior)
    round_steps: int | None = field(default=None, kw_only=True, validator=Count())
    last_move: LastMove = field(default="hidden", kw_only=True, validator=Choice(LastMove))
    start: FloatArray = field(default=0, kw_only=True, converter=arrays, validator=FirstState())
    names: tuple[str, ...] | None = field(
        default=None, kw_only=True, repr=False, converter=words, validator=Names("action")
    )

    def __attrs_post_init__(self) -> None:
        possible = self.transitions > 0.0
        least = self.transitions.min(where=possible, initial=np.inf)
        if least < SMALLEST:
            raise ArgumentError("transitions", f"must be 0 or at least {SMALLEST:g}", got=least)
        stuck = np.flatnonzero(~possible.any(axis=(1, 2)))
        if stuck.size:
            raise ArgumentError(
                "transitions", f"must leave state {stuck[0]} an action with a possible move"
            )
        model = model_of(self.rewards, self.transitions.shape[:2])
        if isinstance(model, KnownRewards):
            validation.freeze(self, rewards=model.means)

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
        if isinstance(self.rewards, np.ndarray) and self.absent:
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
        else:  # all is known; requests after it have the same numbers anyway
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
            raise ArgumentError(
                "statistics", f"must have the {self.states} states of the prior", got=seen.states
            )
        wrong = np.argwhere((seen.moves > 0) & ~self.possible)
        if len(wrong):
            task, state, action, after = wrong[0]
            raise ArgumentError(
                "statistics",
                f"must be possible under the prior, but task {task} moved from state {state} to "
                f"{after} by action {action}",
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
