"""Linear systems with quadratic costs: what all tasks share, those that are played, and those that
a belief draws.

A step moves the state, ``x' = A x + B u + w`` with ``w ~ N(0, diag(noise_var))``, and costs
``x'Qx + u'Ru``; the last one also costs ``y'Fy`` for the state y that it leads to. The reward is
minus the cost. The signal is the state, ``(task, state)``, the action ``(task, control)``.
"""

from dataclasses import dataclass
from typing import ClassVar, Final, final

import numpy as np
from attrs import field, frozen

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.core.parameters import Array, Covariance, Instance, Number, arrays
from priorwise.core.seen import RealActions, Seen, Signal
from priorwise.core.serial import Serializable
from priorwise.core.streams import WorldStreams
from priorwise.core.types import BoolArray, FloatArray, IntArray
from priorwise.families.linear_quadratic import riccati

SHORTEST: Final = 1e-100
LONGEST: Final = 1e100
"""Squares and products of states must not overflow."""


@final
@frozen(eq=False, slots=False)
class Plant(Serializable):
    """What is known of a linear system before anything is learned: costs, noise, first state.

    Parameters
    ----------
    state_cost
        Q, the cost of a state, ``(state, state)``.
    action_cost
        R, the cost of an action; positive definite, ``(control, control)``.
    noise_var
        Variance of the noise of each state; without noise two steps would reveal the system,
        ``(state,)``, or one for all states.
    start
        Mean of the first state; 0 by default, ``(state,)``.
    start_cov
        Its covariance; 0 by default, ``(state, state)``.
    final_cost
        F, the cost of the state after the last step; 0 by default, ``(state, state)``.
    limit
        Length of the longest state. A longer one is cut back to it, and nobody learns from that
        step: a loop that explodes then costs much, but not everything.

    Examples
    --------
    >>> Plant(state_cost=np.eye(2), action_cost=[[0.1]], noise_var=0.01).controls
    1

    """

    family: ClassVar[str] = "plant"

    of_environment: ClassVar[bool] = False
    """The first state has the same law in all tasks."""

    state_cost: FloatArray = field(converter=arrays, validator=Covariance(("state", "state")))
    action_cost: FloatArray = field(converter=arrays, validator=Covariance(("control", "control")))
    noise_var: FloatArray = field(converter=arrays, validator=Array(("state",), 1e-100, spread=1))
    start: FloatArray = field(
        default=None, kw_only=True, converter=arrays, validator=Array(("state",), fill=0.0)
    )
    start_cov: FloatArray = field(
        default=None,
        kw_only=True,
        converter=arrays,
        validator=Covariance(("state", "state"), fill=0.0),
    )
    final_cost: FloatArray = field(
        default=None,
        kw_only=True,
        converter=arrays,
        validator=Covariance(("state", "state"), fill=0.0),
    )
    limit: float = field(default=1e6, kw_only=True, validator=Number(SHORTEST, LONGEST))

    def __attrs_post_init__(self) -> None:
        if np.linalg.eigvalsh(self.action_cost)[0] <= 1e-12 * np.abs(self.action_cost).max():
            raise ArgumentError(
                "action_cost",
                "must be positive definite: a free action has no best size",
                cure="give it a small cost",
            )

    @property
    def states(self) -> int:
        """Numbers that make a state."""
        return len(self.state_cost)

    @property
    def controls(self) -> int:
        """Numbers that make an action."""
        return len(self.action_cost)

    @property
    def actions(self) -> RealActions:
        """What may be played."""
        return RealActions(size=self.controls)

    def state(self, name: str, signal: Signal, tasks: int) -> FloatArray:
        """Return the states that a signal shows, ``(task, state)``, if it shows states."""
        shape = (tasks, self.states)
        array = validation.shaped(name, signal, shape, "fiu", f"states of shape {shape}")
        if not np.isfinite(array).all():
            raise ArgumentError(name, "must be finite states, but has NaN or infinite entries")
        return array.astype(np.float64, copy=False)

    def cut(self, states: FloatArray) -> FloatArray:
        """Cut states back that are longer than the limit."""
        length = np.sqrt(np.einsum("...i,...i->...", states, states))
        factor = np.where(length > self.limit, self.limit / np.maximum(length, self.limit), 1.0)
        return np.asarray(states * factor[..., None])

    def was_cut(self, states: FloatArray) -> BoolArray:
        """Whether states are as long as the limit, so that nobody knows how long they were."""
        squares = np.einsum("...i,...i->...", states, states)
        return np.asarray(squares >= self.limit**2 * (1.0 - 1e-9))


PLANT: Final = Instance(Plant, "a Plant(state_cost, action_cost, noise_var)")


def check_system(transition: FloatArray, control: FloatArray, plant: Plant) -> None:
    """Check that a plant has the states and controls of its system."""
    for name, has, needs in (
        ("transition", transition.shape[-1], plant.states),
        ("control", control.shape[-1], plant.controls),
    ):
        if has != needs:
            raise ArgumentError(name, f"must have {needs} columns, as the plant has", got=has)


@final
@dataclass(frozen=True, eq=False)
class LinearSystems:
    """Tasks that each keep one linear system."""

    actions_influence_signals: ClassVar[bool] = True

    transition: FloatArray  # A, (task, state, state)
    control: FloatArray  # B, (task, state, control)
    plant: Plant

    @property
    def parameters(self) -> FloatArray:
        """``A`` and ``B`` side by side, row after row, ``(task, number)``."""
        return side_by_side(self.transition, self.control)

    def start(self, rng: WorldStreams) -> Signal:
        """Draw the first state."""
        plant = self.plant
        root = validation.square_root(plant.start_cov)
        return plant.cut(plant.start + np.einsum("tj,ij->ti", rng.world.normal(plant.states), root))

    def step(self, seen: Seen, actions: FloatArray, rng: WorldStreams) -> tuple[FloatArray, Signal]:
        """Charge state and action, and move."""
        plant, x = self.plant, seen.signal
        noise = np.sqrt(plant.noise_var) * rng.world.normal(plant.states)
        after = plant.cut(self.expected(x, actions) + noise)
        cost = _squares(plant.state_cost, x) + _squares(plant.action_cost, actions)
        last = np.broadcast_to(seen.step == seen.horizon, len(x))
        return -(cost + np.where(last, _squares(plant.final_cost, after), 0.0)), after

    def expected(self, signal: Signal, actions: FloatArray) -> FloatArray:
        """``A x + B u``, ``(task, state)``."""
        moved = np.einsum("tij,tj->ti", self.transition, signal)
        return moved + np.einsum("tij,tj->ti", self.control, actions)

    def log(self, signal: Signal, actions: FloatArray) -> FloatArray:
        """Log the state, ``(task, state)``."""
        return np.asarray(signal, dtype=np.float64)

    def optimal(self, horizon: int) -> FloatArray:
        """Expected total reward of the best controller that knows the system, ``(task,)``, by the
        Riccati recursion; exact where no state reaches the limit.
        """
        plant = self.plant
        horizon = validation.count("horizon", horizon)
        values = riccati.values(self.transition, self.control, plant, horizon)
        noise = sum(np.einsum("tii,i->t", each, plant.noise_var) for each in values[:-1])
        first = np.outer(plant.start, plant.start) + plant.start_cov
        total = np.einsum("tij,ij->t", values[-1], first) + noise
        return np.where(np.isfinite(total), -total, -np.inf)

    def closed_loop_radius(self, horizon: int) -> FloatArray:
        """Spectral radius of ``A - B K`` for the first step of so many, ``(task,)``: at 1 and above
        even the best controller does not bring the state back.
        """
        left = np.full(len(self.transition), validation.count("horizon", horizon))
        gain = riccati.gains(self.transition, self.control, self.plant, left)
        return np.abs(np.linalg.eigvals(self.transition - self.control @ gain)).max(axis=1)


@dataclass(frozen=True, eq=False)
class DrawnSystems:
    """Linear systems drawn from a posterior."""

    transition: FloatArray  # A, (task, draw, state, state)
    control: FloatArray  # B, (task, draw, state, control)
    plant: Plant

    @property
    def parameters(self) -> FloatArray:
        """``A`` and ``B`` side by side, row after row, ``(task, draw, number)``."""
        return side_by_side(self.transition, self.control)

    def best_actions(self, seen: Seen) -> FloatArray:
        """``-K x``: what the best controller of each system does now, ``(task, draw, control)``."""
        tasks, draws = self.transition.shape[:2]
        x = self.plant.state("seen.signal", seen.signal, tasks)
        left = np.broadcast_to(np.asarray(seen.horizon - seen.step + 1), tasks)
        return -np.einsum("tdij,tj->tdi", self._gains(np.repeat(left[:, None], draws, axis=1)), x)

    def _gains(self, left: IntArray) -> FloatArray:
        """``K`` with so many steps left, ``(task, draw)``."""
        a, b = (m.reshape(-1, *m.shape[2:]) for m in (self.transition, self.control))
        gain = riccati.gains(a, b, self.plant, left.ravel())
        return gain.reshape(*left.shape, *gain.shape[1:])

    def expected(self, signal: Signal, actions: FloatArray) -> FloatArray:
        """``A x + B u`` in each of them, ``(task, draw, state)``."""
        moved = np.einsum("tdij,tj->tdi", self.transition, signal)
        return moved + np.einsum("tdij,tj->tdi", self.control, actions)


def side_by_side(transition: FloatArray, control: FloatArray) -> FloatArray:
    """Write the rows of ``[A B]`` one after the other, on the last axis."""
    both = np.concatenate([transition, control], axis=-1)
    return both.reshape(*both.shape[:-2], -1)


def _squares(cost: FloatArray, vectors: FloatArray) -> FloatArray:
    return np.einsum("ti,ij,tj->t", vectors, cost, vectors)
