"""Linear-quadratic control where the system is one of finitely many candidates."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self, final

import numpy as np
from attrs import field, frozen

from priorwise.core import argument_checks
from priorwise.core.errors import ArgumentTypeError
from priorwise.core.parameters import Array, Probabilities, arrays
from priorwise.core.seen import RealActions, Seen, Signal
from priorwise.core.serial import Serializable
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.finite.belief import Candidates, log_probs
from priorwise.families.linear_quadratic import riccati
from priorwise.families.linear_quadratic.plant import (
    PLANT,
    DrawnSystems,
    LinearSystems,
    Plant,
    check_system,
    side_by_side,
)
from priorwise.families.linear_quadratic.prior import NO_ARMS
from priorwise.theory.action_laws import RealActionLaw


@final
@frozen(eq=False, slots=False)
class FiniteLinearQuadraticPrior(Serializable):
    """Finitely many possible linear systems with quadratic costs.

    Parameters
    ----------
    transition
        A of each candidate, ``(candidate, state, state)``.
    control
        B of each candidate, ``(candidate, state, control)``.
    probs
        Probabilities of the candidates, ``(candidate,)``.
    plant
        The costs, the noise and the first state. Priors that are compared share it.

    Examples
    --------
    >>> plant = Plant(state_cost=[[1]], action_cost=[[0.1]], noise_var=0.01)
    >>> prior = FiniteLinearQuadraticPrior([[[1]], [[1]]], [[[0.5]], [[-0.5]]], [0.9, 0.1], plant)
    >>> prior.support
    2

    """

    family: ClassVar[str] = "finite-linear-quadratic"
    arms: ClassVar[int] = 0

    transition: FloatArray = field(
        converter=arrays, validator=Array(("candidate", "state", "state"))
    )
    control: FloatArray = field(
        converter=arrays, validator=Array(("candidate", "state", "control"))
    )
    probs: FloatArray = field(converter=arrays, validator=Probabilities())
    plant: Plant = field(repr=False, validator=PLANT)

    def __attrs_post_init__(self) -> None:
        check_system(self.transition, self.control, self.plant)

    @property
    def support(self) -> int:
        """Number of candidates."""
        return len(self.probs)

    @property
    def actions(self) -> RealActions:
        """What may be played."""
        return self.plant.actions

    @property
    def contexts(self) -> Plant:
        """What priors that are compared share."""
        return self.plant

    @cached_property
    def candidates(self) -> FloatArray:
        """Entries of ``[A B]`` of each candidate, ``(candidate, number)``."""
        return side_by_side(self.transition, self.control)

    @cached_property
    def _plans(self) -> list[FloatArray]:
        return []

    def gains(self, left: IntArray) -> FloatArray:
        """``K`` of each candidate with 1, 2, ... steps left, ``(steps left, candidate, control,
        state)``, as far as the longest; worked out once.
        """
        plans, steps = self._plans, int(left.max(initial=1))
        for k in range(len(plans) + 1, steps + 1):
            whole = np.full(self.support, k)
            plans.append(riccati.gains(self.transition, self.control, self.plant, whole))
        return np.stack(plans[:steps])

    def sample(self, rng: Stream, tasks: int) -> LinearSystems:
        """Draw which candidate it is."""
        index = rng.choice(
            np.broadcast_to(self.probs, (argument_checks.batch(rng, tasks), self.support))
        )
        return LinearSystems(self.transition[index], self.control[index], self.plant)

    def belief(self, tasks: int) -> "FiniteLinearQuadraticBelief":
        """Start at the prior."""
        tasks = argument_checks.tasks_of(tasks)
        weights = np.broadcast_to(log_probs(self.probs), (tasks, self.support))
        return FiniteLinearQuadraticBelief(self, weights, np.zeros(tasks, dtype=np.int64))


@final
@dataclass(frozen=True, eq=False)
class DrawnCandidates(DrawnSystems):
    """Candidates drawn from a posterior, whose plans the prior has."""

    prior: FiniteLinearQuadraticPrior
    drawn: IntArray  # (task, draw)

    def _gains(self, left: IntArray) -> FloatArray:
        return self.prior.gains(left)[left - 1, self.drawn]


@final
@dataclass(frozen=True, eq=False)
class FiniteLinearQuadraticBelief(Candidates):
    """Beliefs about which system it is."""

    prior: FiniteLinearQuadraticPrior

    def sample(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """Raise an error: there are no arms whose values could be drawn."""
        raise ArgumentTypeError("arms", NO_ARMS)

    def environments(self, points: IntArray, seen: Seen) -> DrawnCandidates:
        """Return the candidates of these numbers."""
        prior = self.prior
        return DrawnCandidates(
            prior.transition[points], prior.control[points], prior.plant, prior, points
        )

    def best_action_law(self, seen: Seen) -> RealActionLaw:
        """``-K x`` of each candidate, with its posterior probability."""
        shape = (self.tasks, self.prior.support)
        every = self.environments(np.broadcast_to(np.arange(shape[1]), shape), seen)
        return RealActionLaw(every.best_actions(seen), self.probabilities())

    def mean_environment(self, seen: Seen) -> DrawnSystems:
        """Return the system of the posterior means, as if it were one draw."""
        prior, probs = self.prior, self.probabilities()
        a, b = (np.einsum("tc,cij->tij", probs, m) for m in (prior.transition, prior.control))
        return DrawnSystems(a[:, None], b[:, None], prior.plant)

    def update(self, seen: Seen, actions: FloatArray, rewards: FloatArray, after: Signal) -> Self:
        """Weigh each candidate by the density of the next state; not after one that was cut."""
        prior, plant = self.prior, self.prior.plant
        x = plant.state("seen.signal", seen.signal, self.tasks)
        then = plant.state("after", after, self.tasks)
        u = plant.actions.checked("actions", actions, self.tasks)
        expected = np.einsum("cij,tj->tci", prior.transition, x)
        expected = expected + np.einsum("cij,tj->tci", prior.control, u)
        squares = ((then[:, None] - expected) ** 2 / plant.noise_var).sum(axis=2)
        return self._learned(np.where(plant.was_cut(then)[:, None], 0.0, -0.5 * squares))
