"""Linear-quadratic-Gaussian control: the state is hidden, and the system is one of finitely many.

A step moves the state, ``x' = A x + B u + w``, and shows ``y = C x + v`` with ``w ~ N(0,
diag(noise_var))`` and ``v ~ N(0, diag(output_var))``. It costs ``y'Qy + u'Ru``: what is shown and
what is done, so that the reward shows no more than the signal. Given a candidate, the state has the
normal law of the Kalman filter, and the best action is ``-K E[x]`` with the gain of the known state
(separation of estimation and control).
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from attrs import field, frozen

from priorwise.core import argument_checks, validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.parameters import Array, Covariance, Instance, Number, Probabilities, arrays
from priorwise.core.seen import RealActions, Seen, Signal
from priorwise.core.serial import Serializable
from priorwise.core.streams import Stream, WorldStreams
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.finite.belief import Candidates, log_probs
from priorwise.families.linear_quadratic import riccati
from priorwise.families.linear_quadratic.plant import (
    LONGEST,
    SHORTEST,
    Plant,
    check_system,
    side_by_side,
)
from priorwise.families.linear_quadratic.prior import NO_ARMS
from priorwise.theory.action_laws import RealActionLaw
from priorwise.theory.numerics import rescaled, symmetric

LARGEST: Final = 1e150
"""Of a variance of the hidden state, which grows where nothing is shown of what explodes."""


@final
@frozen(eq=False, slots=False)
class HiddenPlant(Serializable):
    """What is known of a linear system whose state is hidden: what it shows, costs, noise, first
    state.

    Parameters
    ----------
    observation
        C, what a state shows, ``(output, state)``.
    output_cost
        Q, the cost of an output, ``(output, output)``.
    action_cost
        R, the cost of an action; positive definite, ``(control, control)``.
    noise_var
        Variance of the noise of each state, ``(state,)``, or one for all states.
    output_var
        Variance of the noise of each output, ``(output,)``, or one for all outputs.
    start
        Mean of the first state; 0 by default, ``(state,)``.
    start_cov
        Its covariance; 0 by default, ``(state, state)``.
    limit
        Length of the longest state. A longer one is cut back to it, unseen: the filter is exact as
        long as nothing is cut.

    Examples
    --------
    >>> HiddenPlant([[1.0, 0.0]], [[1.0]], [[0.1]], noise_var=0.01, output_var=0.1).outputs
    1

    """

    family: ClassVar[str] = "hidden-plant"

    observation: FloatArray = field(converter=arrays, validator=Array(("output", "state")))
    output_cost: FloatArray = field(converter=arrays, validator=Covariance(("output", "output")))
    action_cost: FloatArray = field(converter=arrays, validator=Covariance(("control", "control")))
    noise_var: FloatArray = field(converter=arrays, validator=Array(("state",), 1e-100, spread=1))
    output_var: FloatArray = field(converter=arrays, validator=Array(("output",), 1e-100, spread=1))
    start: FloatArray = field(
        default=None, kw_only=True, converter=arrays, validator=Array(("state",), fill=0.0)
    )
    start_cov: FloatArray = field(
        default=None,
        kw_only=True,
        converter=arrays,
        validator=Covariance(("state", "state"), fill=0.0),
    )
    limit: float = field(default=1e6, kw_only=True, validator=Number(SHORTEST, LONGEST))

    def __attrs_post_init__(self) -> None:
        self.plant  # noqa: B018 - checks the rest

    @cached_property
    def plant(self) -> Plant:
        """The same plant with a state that is shown, and that costs what it shows on average."""
        shown = self.observation.T @ self.output_cost @ self.observation
        return Plant(
            (shown + shown.T) / 2.0,
            self.action_cost,
            self.noise_var,
            start=self.start,
            start_cov=self.start_cov,
            limit=self.limit,
        )

    """The same plant with a state that is shown, and that costs what it shows on average."""

    @property
    def outputs(self) -> int:
        """Numbers that are shown."""
        return len(self.observation)

    def shown(self, name: str, signal: Signal, tasks: int) -> FloatArray:
        """Return what a signal shows, ``(task, output)``, if it does."""
        shape = (tasks, self.outputs)
        array = validation.shaped(name, signal, shape, "fiu", f"outputs of shape {shape}")
        if not np.isfinite(array).all():
            raise ArgumentError(name, "must be finite outputs, but has NaN or infinite entries")
        return array.astype(np.float64, copy=False)


@final
@frozen(eq=False, slots=False)
class FiniteLqgPrior(Serializable):
    """Finitely many possible linear systems with a hidden state and quadratic costs.

    Parameters
    ----------
    transition
        A of each candidate, ``(candidate, state, state)``.
    control
        B of each candidate, ``(candidate, state, control)``.
    probs
        Probabilities of the candidates, ``(candidate,)``.
    plant
        The costs, the noise, the first state and what is shown. Priors that are compared share it.

    Examples
    --------
    >>> plant = HiddenPlant([[1]], [[1]], [[0.1]], noise_var=0.01, output_var=0.1)
    >>> FiniteLqgPrior([[[1]], [[1]]], [[[0.5]], [[-0.5]]], [0.9, 0.1], plant).support
    2

    """

    family: ClassVar[str] = "finite-lqg"
    arms: ClassVar[int] = 0

    transition: FloatArray = field(
        converter=arrays, validator=Array(("candidate", "state", "state"))
    )
    control: FloatArray = field(
        converter=arrays, validator=Array(("candidate", "state", "control"))
    )
    probs: FloatArray = field(converter=arrays, validator=Probabilities())
    plant: HiddenPlant = field(
        repr=False,
        validator=Instance(
            HiddenPlant,
            "a HiddenPlant(observation, output_cost, action_cost, noise_var, output_var)",
        ),
    )

    def __attrs_post_init__(self) -> None:
        check_system(self.transition, self.control, self.plant.plant)

    @property
    def support(self) -> int:
        """Number of candidates."""
        return len(self.probs)

    @property
    def actions(self) -> RealActions:
        """What may be played."""
        return self.plant.plant.actions

    @property
    def contexts(self) -> HiddenPlant:
        """What priors that are compared share."""
        return self.plant

    @cached_property
    def candidates(self) -> FloatArray:
        """Entries of ``[A B]`` of each candidate, ``(candidate, number)``."""
        return side_by_side(self.transition, self.control)

    @cached_property
    def _plans(self) -> dict[int, FloatArray]:
        return {}

    def gains(self, left: IntArray) -> FloatArray:
        """``K`` of each candidate with 1, 2, ... steps left, ``(steps left, candidate, control,
        state)``, as far as the longest; worked out once.
        """
        plans, steps = self._plans, int(left.max(initial=1))
        for k in range(len(plans) + 1, steps + 1):
            whole = np.full(self.support, k)
            plans[k] = riccati.gains(self.transition, self.control, self.plant.plant, whole)
        return np.stack([plans[k] for k in range(1, steps + 1)])

    def sample(self, rng: Stream, tasks: int) -> "LqgSystems":
        """Draw which candidate it is."""
        index = rng.choice(
            np.broadcast_to(self.probs, (argument_checks.batch(rng, tasks), self.support))
        )
        return LqgSystems(self, index)

    def belief(self, tasks: int) -> "LqgBelief":
        """Start at the prior."""
        tasks, plant = argument_checks.tasks_of(tasks), self.plant
        shape = (tasks, self.support, len(plant.start))
        return LqgBelief(
            self,
            np.broadcast_to(log_probs(self.probs), shape[:2]),
            np.zeros(tasks, dtype=np.int64),
            np.broadcast_to(plant.start, shape),
            np.broadcast_to(plant.start_cov, (*shape, shape[2])),
        )


@final
@dataclass(eq=False)
class LqgSystems:
    """Tasks that each keep one candidate, and hide its state."""

    actions_influence_signals: ClassVar[bool] = True

    prior: FiniteLqgPrior
    index: IntArray  # (task,): which candidate it is
    state: Any = None  # (task, state): hidden

    @property
    def parameters(self) -> FloatArray:
        """Entries of ``[A B]``, ``(task, number)``."""
        return self.prior.candidates[self.index]

    def start(self, rng: WorldStreams) -> Signal:
        """Draw the first state, and show its output."""
        plant = self.prior.plant
        root = validation.square_root(plant.start_cov)
        z = rng.world.normal(len(plant.start) + plant.outputs)
        self.state = plant.start + np.einsum("tj,ij->ti", z[:, : len(plant.start)], root)
        return self._shown(z[:, len(plant.start) :])

    def step(self, seen: Seen, actions: FloatArray, rng: WorldStreams) -> tuple[FloatArray, Signal]:
        """Charge what is shown and what is done, and move."""
        prior, plant, y = self.prior, self.prior.plant, seen.signal
        cost = _squares(plant.output_cost, y) + _squares(plant.action_cost, actions)
        z = rng.world.normal(len(plant.start) + plant.outputs)
        moved = np.einsum("tij,tj->ti", prior.transition[self.index], self.state)
        moved = moved + np.einsum("tij,tj->ti", prior.control[self.index], actions)
        self.state = plant.plant.cut(moved + np.sqrt(plant.noise_var) * z[:, : len(plant.start)])
        return -cost, self._shown(z[:, len(plant.start) :])

    def _shown(self, z: FloatArray) -> FloatArray:
        plant = self.prior.plant
        shown = np.einsum("ij,tj->ti", plant.observation, self.state)
        return np.asarray(shown + np.sqrt(plant.output_var) * z)

    def log(self, signal: Signal, actions: FloatArray) -> FloatArray:
        """Log what is shown, ``(task, output)``."""
        return np.asarray(signal, dtype=np.float64)

    def optimal(self, horizon: int) -> FloatArray:
        """Expected total reward of the best controller that knows the system, ``(task,)``.

        It is ``-(E[x_1'P_H x_1] + sum_k tr(P_k W) + sum_t tr(K'(R + B'PB)K S_t) + H tr(Q V))`` with
        P_k of the Riccati recursion, and S_t the covariance of the state given what was shown.
        """
        prior, plant = self.prior, self.prior.plant
        horizon, a, b = validation.count("horizon", horizon), prior.transition, prior.control
        values = riccati.values(a, b, plant.plant, horizon)
        gains = prior.gains(np.array([horizon]))
        spread = np.broadcast_to(plant.start_cov, a.shape)
        first = np.outer(plant.start, plant.start) + plant.start_cov
        total = np.einsum("cij,ij->c", values[-1], first)
        total = total + horizon * float(np.diag(plant.output_cost) @ plant.output_var)
        for left in range(horizon, 0, -1):
            seen, _ = _corrected(plant, spread)
            weight = plant.action_cost + b.swapaxes(1, 2) @ values[left - 1] @ b
            gain = gains[left - 1]
            total = total + np.einsum("cia,cij,cjb,cab->c", gain, weight, gain, seen)
            if left > 1:
                total = total + np.einsum("cii,i->c", values[left - 1], plant.noise_var)
            spread = _moved(a, seen, plant)
        return np.asarray(-total)[self.index]


@final
@dataclass(frozen=True, eq=False)
class DrawnLqg:
    """Candidates drawn from a posterior, with what each makes of the hidden state."""

    prior: FiniteLqgPrior
    drawn: IntArray  # (task, draw)
    mean: FloatArray  # E[x], (task, draw, state)
    spread: FloatArray  # its covariance
    step: Any

    @property
    def parameters(self) -> FloatArray:
        """Entries of ``[A B]``, ``(task, draw, number)``."""
        return self.prior.candidates[self.drawn]

    def best_actions(self, seen: Seen) -> FloatArray:
        """``-K E[x]``: what the best controller of each does now, ``(task, draw, control)``."""
        if np.any(seen.step != self.step):
            raise ArgumentTypeError(
                "draws",
                "of a system with a hidden state serve one step, as they know the state at "
                "that step only",
                cure="use ThompsonSampling",
            )
        left = np.broadcast_to(np.asarray(seen.horizon - seen.step + 1), len(self.drawn))
        gain = self.prior.gains(left)[left[:, None] - 1, self.drawn]
        return -np.einsum("tdij,tdj->tdi", gain, self.mean)


@final
@dataclass(frozen=True, eq=False)
class LqgBelief(Candidates):
    """Posterior weights of the candidates, and each one's normal law of the state at the next step
    before that shows anything.
    """

    prior: FiniteLqgPrior
    mean: FloatArray  # (task, candidate, state)
    spread: FloatArray  # (task, candidate, state, state)

    def sample(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """Raise an error: there are no arms whose values could be drawn."""
        raise ArgumentTypeError("arms", NO_ARMS)

    def given(self, seen: Seen) -> Self:
        """Condition on what is shown now: weights times ``N(y; C m, C P C' + V)``, and the Kalman
        filter for each candidate.
        """
        prior, plant = self.prior, self.prior.plant
        y = plant.shown("seen.signal", seen.signal, self.tasks)
        seen_spread, gain = _corrected(plant, self.spread)
        missed = y[:, None] - np.einsum("ij,tcj->tci", plant.observation, self.mean)
        var = _output_cov(plant, self.spread)
        with np.errstate(over="ignore", invalid="ignore"):
            fit = np.einsum("tci,tci->tc", missed, np.linalg.solve(var, missed[..., None])[..., 0])
            log_density = -0.5 * (fit + np.linalg.slogdet(var)[1])
        log_density = np.where(np.isfinite(log_density), log_density, -np.inf)
        weights, lost = rescaled(self.log_weights + log_density, log_probs(prior.probs))
        mean = self.mean + np.einsum("tcij,tcj->tci", gain, missed)
        return replace(
            self,
            log_weights=weights,
            resets=self.resets + lost,
            mean=plant.plant.cut(mean),
            spread=seen_spread,
        )

    def sample_environments(self, rng: Stream, draws: int, seen: Seen) -> DrawnLqg:
        """Draw candidates, given all that was shown and what is shown now."""
        draws, now = argument_checks.drawing(self, rng, draws), self.given(seen)
        return now._environments(rng.choice(now.weights(), draws), seen)

    def environments(self, points: IntArray, seen: Seen) -> DrawnLqg:
        """Return the candidates of these numbers, given also what is shown now."""
        return self.given(seen)._environments(points, seen)

    def _environments(self, points: IntArray, seen: Seen) -> DrawnLqg:
        task = np.arange(self.tasks)[:, None]
        return DrawnLqg(
            self.prior, points, self.mean[task, points], self.spread[task, points], seen.step
        )

    def best_action_law(self, seen: Seen) -> RealActionLaw:
        """``-K E[x]`` of each candidate, with its probability given what is shown now."""
        now, shape = self.given(seen), (self.tasks, self.prior.support)
        every = now._environments(np.broadcast_to(np.arange(shape[1]), shape), seen)
        return RealActionLaw(every.best_actions(seen), now.probabilities())

    def update(self, seen: Seen, actions: FloatArray, rewards: FloatArray, after: Signal) -> Self:
        """Condition on what was shown before the action, and move: ``A m + B u``, ``A P A' + W``.
        The next signal counts where it is seen.
        """
        prior, plant, now = self.prior, self.prior.plant, self.given(seen)
        u = prior.actions.checked("actions", actions, self.tasks)
        plant.shown("after", after, self.tasks)
        mean = np.einsum("cij,tcj->tci", prior.transition, now.mean)
        mean = mean + np.einsum("cij,tj->tci", prior.control, u)
        spread = _moved(prior.transition, now.spread, plant)
        return replace(now, mean=plant.plant.cut(mean), spread=spread)


def _output_cov(plant: HiddenPlant, spread: FloatArray) -> FloatArray:
    """``C P C' + V``."""
    c = plant.observation
    return np.asarray(c @ spread @ c.T + np.diag(plant.output_var))


def _corrected(plant: HiddenPlant, spread: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Covariance of the state once its output is shown, and the gain ``P C'(C P C' + V)^-1``; as a
    sum of squares, which rounding cannot make indefinite.
    """
    c = plant.observation
    solved = np.linalg.solve(_output_cov(plant, spread), c @ spread)
    gain = np.asarray(solved.swapaxes(-1, -2), dtype=np.float64)
    left = np.eye(c.shape[1]) - gain @ c
    noise = (gain * plant.output_var) @ gain.swapaxes(-1, -2)
    return symmetric(left @ spread @ left.swapaxes(-1, -2) + noise), gain


def _moved(transition: FloatArray, spread: FloatArray, plant: HiddenPlant) -> FloatArray:
    """``A P A' + W``."""
    then = transition @ spread @ transition.swapaxes(-1, -2) + np.diag(plant.noise_var)
    return np.clip(symmetric(then), -LARGEST, LARGEST)


def _squares(cost: FloatArray, vectors: FloatArray) -> FloatArray:
    return np.einsum("ti,ij,tj->t", vectors, cost, vectors)
