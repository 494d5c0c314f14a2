"""Linear-quadratic control with an unknown system: rows of ``[A B]`` are normal and independent.

Given states and actions, each coordinate of the next state is a normal linear regression on
``z = (x, u)``: row i has the posterior precision ``S_i^-1 + sum z z' / v_i``. What a task has seen
is summed up by ``sum z z'`` and ``sum x' z'``, whatever the actions were.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self, final

import numpy as np
from attrs import field, frozen

from priorwise.core import argument_checks, validation
from priorwise.core.errors import ArgumentTypeError
from priorwise.core.parameters import Array, Parameter, arrays, number_of
from priorwise.core.seen import RealActions, Seen, Signal
from priorwise.core.separable import SeparableTasks
from priorwise.core.serial import Serializable
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray
from priorwise.families.gaussian.prior import GaussianPrior
from priorwise.families.linear_quadratic.plant import (
    PLANT,
    DrawnSystems,
    LinearSystems,
    Plant,
    check_system,
    side_by_side,
)


@dataclass(frozen=True)
class RowCovariances(Parameter):
    """A covariance of the rows of ``[A B]``, or one for each row."""

    def checked(self, name: str, value: Any, owner: Any) -> FloatArray:
        """Return one matrix or several."""
        states = number_of(owner, "state")
        size = states + number_of(owner, "control")
        given = validation.numbers(name, value)
        if given.ndim != 3:
            return validation.covariance(name, given, size)
        given = validation.matrix(name, given, (states, size, size))
        rows = enumerate(given)
        return np.stack([validation.covariance(f"{name}[{row}]", each, size) for row, each in rows])

    @property
    def values(self) -> str:
        """The shape."""
        return "``(d, d)`` or ``(state, d, d)`` with ``d = states + controls``"


@final
@frozen(eq=False, slots=False)
class LinearQuadraticPrior(Serializable):
    """Normal prior over linear systems with quadratic costs.

    Parameters
    ----------
    transition
        Mean of A, ``(state, state)``.
    control
        Mean of B, ``(state, control)``.
    cov
        Covariance of a row of ``[A B]``, one for all rows, or one each; 0 for what is certain. Rows
        are independent.
    plant
        The costs, the noise and the first state. Priors that are compared share it.

    Examples
    --------
    >>> plant = Plant(state_cost=np.eye(2), action_cost=[[0.1]], noise_var=0.01)
    >>> prior = LinearQuadraticPrior([[1, 0.1], [0, 1]], [[0], [0.1]], 0.01 * np.eye(3), plant)
    >>> prior.actions.size
    1

    """

    family: ClassVar[str] = "linear-quadratic"
    arms: ClassVar[int] = 0

    transition: FloatArray = field(converter=arrays, validator=Array(("state", "state")))
    control: FloatArray = field(converter=arrays, validator=Array(("state", "control")))
    cov: FloatArray = field(converter=arrays, validator=RowCovariances())
    plant: Plant = field(repr=False, validator=PLANT)

    def __attrs_post_init__(self) -> None:
        check_system(self.transition, self.control, self.plant)

    @property
    def actions(self) -> RealActions:
        """What may be played."""
        return self.plant.actions

    @property
    def contexts(self) -> Plant:
        """What priors that are compared share."""
        return self.plant

    @cached_property
    def rows(self) -> FloatArray:
        """Means of the rows of ``[A B]``, ``(state, d)``."""
        return np.concatenate([self.transition, self.control], axis=1)

    @cached_property
    def roots(self) -> FloatArray:
        """``L_i`` with ``L_i L_i'`` the covariance of row i, ``(state, d, d)``."""
        states, size = self.rows.shape
        covs = np.broadcast_to(self.cov, (states, size, size))
        return np.stack([validation.square_root(each) for each in covs])

    @property
    def coefficients(self) -> GaussianPrior:
        """Law of all entries of ``[A B]``, row after row, as a prior whose arms they are."""
        from scipy.linalg import block_diag

        states, size = self.rows.shape
        covs = np.broadcast_to(self.cov, (states, size, size))
        return GaussianPrior(side_by_side(self.transition, self.control), block_diag(*covs))

    def split(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return A and B of ``[A B]``, on the last axes."""
        return rows[..., : self.plant.states], rows[..., self.plant.states :]

    def sample(self, rng: Stream, tasks: int) -> LinearSystems:
        """``[A B]_i ~ N(mean_i, cov_i)`` for each row i."""
        argument_checks.batch(rng, tasks)
        states, size = self.rows.shape
        normals = rng.normal(states * size).reshape(-1, states, size)
        rows = self.rows + np.einsum("ijk,tik->tij", self.roots, normals)
        return LinearSystems(*self.split(rows), self.plant)

    def belief(self, tasks: int) -> "LinearQuadraticBelief":
        """Start at the prior."""
        tasks = argument_checks.tasks_of(tasks)
        states, size = self.rows.shape
        gram, cross = np.zeros((tasks, size, size)), np.zeros((tasks, states, size))
        return LinearQuadraticBelief(self, gram, cross)


@final
@dataclass(frozen=True, eq=False)
class LinearQuadraticBelief(SeparableTasks):
    """Normal posterior of the rows of each task's system, from sums of what was seen."""

    prior: LinearQuadraticPrior
    gram: FloatArray  # sum z z', (task, d, d)
    cross: FloatArray  # sum x' z', (task, state, d)

    arms: ClassVar[int] = 0

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return len(self.gram)

    @cached_property
    def _posterior(self) -> tuple[FloatArray, FloatArray]:
        """Means of the rows, ``(task, state, d)``, and C with ``[A B]_i = mean_i + C_i w`` for
        standard normal w.

        A row is ``mean + L v`` with v ~ N(0, I) before anything is seen, and v has the precision
        ``M = I + L'GL / var`` then, which no singular covariance and no many steps make singular.
        """
        prior = self.prior
        roots, var = prior.roots, prior.plant.noise_var
        reach = np.einsum("iba,tbc,icd->tiad", roots, self.gram, roots) / var[:, None, None]
        precision = np.eye(roots.shape[1]) + (reach + reach.swapaxes(-1, -2)) / 2.0
        missed = self.cross - np.einsum("tbc,ic->tib", self.gram, prior.rows)
        pull = np.einsum("iba,tib->tia", roots, missed) / var[:, None]
        factor = np.linalg.cholesky(precision)  # M = F F', so that v = M^-1 pull + F'^-1 w
        inverse = np.linalg.inv(factor)
        mean = np.einsum("tiba,tibc,tic->tia", inverse, inverse, pull)
        spread = np.einsum("iab,ticb->tiac", roots, inverse)
        return prior.rows + np.einsum("iab,tib->tia", roots, mean), spread

    def mean_rows(self) -> FloatArray:
        """Posterior means of the rows of ``[A B]``, ``(task, state, d)``."""
        return self._posterior[0]

    def covariance(self) -> FloatArray:
        """Posterior covariances of the rows, ``(task, state, d, d)``."""
        spread = self._posterior[1]
        return np.asarray(spread @ spread.swapaxes(-1, -2))

    def sample(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """Raise an error: there are no arms whose values could be drawn."""
        raise ArgumentTypeError("arms", NO_ARMS)

    def sample_environments(self, rng: Stream, draws: int, seen: Seen) -> DrawnSystems:
        """Draw systems from the posterior."""
        draws = argument_checks.drawing(self, rng, draws)
        mean, spread = self._posterior
        states, size = mean.shape[1:]
        normals = rng.normal(draws, states * size).reshape(-1, draws, states, size)
        rows = mean[:, None] + np.einsum("tiab,tdib->tdia", spread, normals)
        return DrawnSystems(*self.prior.split(rows), self.prior.plant)

    def mean_environment(self, seen: Seen) -> DrawnSystems:
        """Return the system of the posterior means, as if it were one draw."""
        rows = self._posterior[0][:, None]
        return DrawnSystems(*self.prior.split(rows), self.prior.plant)

    def update(self, seen: Seen, actions: FloatArray, rewards: FloatArray, after: Signal) -> Self:
        """Add ``z z'`` and ``x' z'`` to the sums; not of a step after which the state was cut."""
        plant = self.prior.plant
        x = plant.state("seen.signal", seen.signal, self.tasks)
        then = plant.state("after", after, self.tasks)
        z = np.concatenate([x, plant.actions.checked("actions", actions, self.tasks)], axis=1)
        z = np.where(plant.was_cut(then)[:, None], 0.0, z)
        return type(self)(
            self.prior,
            self.gram + np.einsum("ta,tb->tab", z, z),
            self.cross + np.einsum("ti,ta->tia", then, z),
        )


NO_ARMS = (
    "actions of a linear-quadratic problem are real numbers, and there are no arms to choose from: "
    "use ThompsonSampling, RoundSampling or CertaintyEquivalence"
)
