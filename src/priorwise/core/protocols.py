"""The four roles of a decision problem, and what a policy may see.

A bandit is a decision problem without a state, a contextual bandit one whose state is drawn afresh,
an MDP one that keeps it. What makes one loop serve them all: ``Belief.sample`` returns the value of
each action *now* in each drawn environment (a mean, ``x'w``, the ``Q`` of a planned model).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Protocol, Self, final, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.streams import Stream, WorldStreams
from priorwise.core.types import BoolArray, FloatArray, IntArray

Signal = Any
"""What the learner is shown before it acts: None, a context, a state, an observation; an array with
the task axis first.
"""


@final
@dataclass(frozen=True)
class RealActions:
    """Actions that are real numbers, one for each task, or ``size`` numbers for each.

    A prior with ``actions = RealActions(...)`` and ``arms = 0`` runs in the loop of all others: its
    policies return floats, ``(task,)`` or ``(task, size)``, its environments take them.
    """

    size: int | None = None
    low: float = -np.inf
    high: float = np.inf

    def checked(self, name: str, actions: Any, tasks: int) -> FloatArray:
        """Refuse what is not such an action for each task."""
        array = validation.plain_array(name, actions)
        shape = (tasks,) if self.size is None else (tasks, self.size)
        if array.shape != shape or array.dtype.kind not in "fiu" or not np.isfinite(array).all():
            raise ValueError(
                f"{name} must be finite numbers of shape {shape}, got {array.dtype} of shape "
                f"{array.shape}"
            )
        if array.min() < self.low or array.max() > self.high:
            raise ValueError(
                f"{name} must lie between {self.low:g} and {self.high:g}, got {array.min():g} to "
                f"{array.max():g}"
            )
        return array.astype(np.float64, copy=False)


@dataclass(frozen=True)
class Seen:
    """What is known when an action is chosen.

    The tasks of a batch may be at different steps, as where each is served when it comes: then
    ``step`` and ``horizon``, one or both, hold one integer for each task, ``(task,)``.
    """

    step: Any  # 1..horizon: an integer, or (task,)
    horizon: Any
    arms: int
    signal: Signal = None
    mask: BoolArray | None = None  # (task, arm): which arms are available; None: all
    actions: RealActions | None = None  # what may be played where there are no arms

    def __post_init__(self) -> None:
        """Check the numbers, and that the mask leaves each task an arm."""
        if isinstance(self.step, np.ndarray) or isinstance(self.horizon, np.ndarray):
            _check_steps(self.step, self.horizon)
        elif validation.count("step", self.step) > validation.count("horizon", self.horizon):
            raise ValueError(f"step must be one of 1..{self.horizon}, the horizon, got {self.step}")
        validation.count("arms", self.arms, least=1 if self.actions is None else 0)
        if self.mask is not None:
            object.__setattr__(self, "mask", _checked_mask(self.mask, self.arms))

    def masked(self, values: FloatArray) -> FloatArray:
        """Put -inf on arms that are not available; ``values`` is ``(task, arm)`` or ``(task, draw,
        arm)``.
        """
        if self.mask is None:
            return values
        if np.ndim(values) not in (2, 3) or (len(values), np.shape(values)[-1]) != self.mask.shape:
            shape = "(task, arm) or (task, draw, arm)"
            raise ValueError(
                f"values must be {shape} with the tasks and arms of mask, {self.mask.shape}, got "
                f"{np.shape(values)}"
            )
        mask = self.mask if np.ndim(values) == 2 else self.mask[:, None, :]
        return np.where(mask, values, -np.inf)

    def take(self, index: Any) -> Seen:
        """Return what is known of some of the tasks, as ``Belief.take`` does."""
        signal = None if self.signal is None else self.signal[index]
        mask = None if self.mask is None else self.mask[index]
        step, horizon = (
            each[index] if isinstance(each, np.ndarray) else each
            for each in (self.step, self.horizon)
        )
        return replace(self, step=step, horizon=horizon, signal=signal, mask=mask)


def _check_steps(step: Any, horizon: Any) -> None:
    tasks = max(np.size(step), np.size(horizon))
    for name, value in (("step", step), ("horizon", horizon)):
        if isinstance(value, np.ndarray):
            validation.counts(name, value, tasks)
        else:
            validation.count(name, value)
    late = np.broadcast_to(step > horizon, tasks)
    if late.any():
        task = int(np.argmax(late))
        of = [np.broadcast_to(each, tasks)[task] for each in (step, horizon)]
        raise ValueError(
            f"step must be one of 1..{of[1]}, the horizon, in each task, got {of[0]} in task {task}"
        )


def _checked_mask(mask: Any, arms: int) -> BoolArray:
    array: BoolArray = validation.plain_array("mask", mask)
    if array.dtype != np.bool_:
        raise TypeError(
            f"mask must be boolean (True: the arm may be pulled), got {array.dtype}; use "
            "np.array(..., dtype=bool)"
        )
    if array.ndim != 2 or array.shape[1] != arms:
        raise ValueError(f"mask must have shape (task, {arms}), got {array.shape}")
    some = np.ascontiguousarray(array.T).any(axis=0)  # ten times as fast as along the short axis
    if not some.all():
        task = int(np.argmin(some))
        raise ValueError(f"mask leaves task {task} without any arm; each task needs at least one")
    return array


def offers(value: Any, role: Any) -> bool:
    """Whether a value has the methods of a role: ``isinstance``, but looked up once per class, for
    what runs at every step.
    """
    kind: type = type(value)
    return _offered(kind, role)


@cache
def _offered(kind: type, role: Any) -> bool:
    return issubclass(kind, role)


class Environment(Protocol):
    """A batch of environments, with their hidden state if there is one."""

    def start(self, rng: WorldStreams) -> Signal:
        """Signal before the first action."""
        ...

    def step(self, seen: Seen, actions: IntArray, rng: WorldStreams) -> tuple[FloatArray, Signal]:
        """Rewards ``(task,)`` of the actions ``(task,)``, and the next signal."""
        ...


class Belief(Protocol):
    """The posterior of a batch of tasks: a value, never changed in place."""

    def sample(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """Value of each action now in ``draws`` environments of the posterior: ``(task, draw,
        arm)``.
        """
        ...

    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Condition on what an action earned; ``seen`` is from before the action, ``after`` the
        next signal.
        """
        ...


class Prior(Protocol):
    """A law over environments, P_theta; frozen."""

    @property
    def arms(self) -> int:
        """Number of actions."""
        ...

    def sample(self, rng: Stream, tasks: int) -> Environment:
        """Environments drawn from the prior, one per task."""
        ...

    def belief(self, tasks: int) -> Belief:
        """Start the posterior of ``tasks`` tasks before any observation."""
        ...


class Policy(Protocol):
    """alg(theta): a rule that turns a belief into actions; frozen."""

    def act(self, belief: Any, seen: Seen, rng: Stream) -> IntArray:
        """Choose an action for each task: ``(task,)``."""
        ...

    def monte_carlo_n(self, arms: int) -> int | None:
        """Monte-Carlo constant with so many arms, or None where none is proved.

        Given any two posteriors, the laws of the action differ by at most n times the total
        variation between them. It is 0 for a policy that does not look at the posterior.
        """
        ...


@runtime_checkable
class MemoryPolicy(Protocol):
    """A policy that remembers from pull to pull what it decided: a plan, a kept draw, a count.

    What rewards teach belongs to the belief. The memory is a value that only the loop keeps, never
    the policy: ``decide`` returns the next one and leaves the old one as it was. Its arrays have
    the task axis first and a task's part depends on that task alone, so that results do not depend
    on blocks.
    """

    def begin(self, tasks: int) -> Any:
        """Memory of each task before its first pull."""
        ...

    def decide(self, belief: Any, seen: Seen, rng: Stream, memory: Any) -> tuple[IntArray, Any]:
        """Choose an action for each task, ``(task,)``, and say what to remember."""
        ...


def monte_carlo_n(policy: Any, arms: int) -> int | None:
    """Monte-Carlo constant of anyone's policy, checked; a policy without the method has none that
    is proved.
    """
    constant = getattr(policy, "monte_carlo_n", None)
    n = None if constant is None else constant(validation.count("arms", arms))
    return (
        None
        if n is None
        else validation.count(f"{type(policy).__name__}.monte_carlo_n(arms)", n, least=0)
    )


@runtime_checkable
class ScoredPolicy(Protocol):
    """Plays the arm with the largest score, any of them where several tie: its law given the belief
    is known.
    """

    def act(self, belief: Any, seen: Seen, rng: Stream) -> IntArray:
        """Choose an action for each task: ``(task,)``."""
        ...

    def scores(self, belief: Any, seen: Seen) -> FloatArray:
        """Score of each action, ``(task, arm)``; -inf for those that are not available."""
        ...


# What some environments and beliefs offer beyond their role. A policy that needs it says so in
# `needs`.


@runtime_checkable
class ValuedEnvironment(Protocol):
    """Offers the expected reward of every action now, so that there is a best one and a regret."""

    def values(self, signal: Signal) -> FloatArray:
        """Expected reward of each action, ``(task, arm)``."""
        ...


@runtime_checkable
class RealValuedEnvironment(Protocol):
    """The same where actions are real numbers."""

    def value_of(self, signal: Signal, actions: FloatArray) -> FloatArray:
        """Expected reward of these actions now, ``(task,)``."""
        ...

    def best_value(self, signal: Signal) -> FloatArray:
        """Expected reward of the best action now, ``(task,)``."""
        ...


@runtime_checkable
class MaskingEnvironment(Protocol):
    """Says which arms are there now: in this state, for this context."""

    def available(self, signal: Signal) -> BoolArray:
        """Which arms may be pulled, ``(task, arm)``; each task needs at least one."""
        ...


@runtime_checkable
class OutspokenEnvironment(Protocol):
    """Says whether what is played changes later signals, or later rewards through a state that is
    not shown.

    Regret and the bounds for bandits hold only where it does not. An environment that shows signals
    has to say; one that shows none (None) and says nothing is taken for a bandit.
    """

    actions_influence_signals: bool


@runtime_checkable
class LoggedEnvironment(Protocol):
    """Offers what a log of the step should hold besides the action and its reward."""

    def log(self, signal: Signal, actions: IntArray) -> FloatArray:
        """Numbers to log, ``(task, entry)``: the features of the chosen action, a state."""
        ...


@runtime_checkable
class SeparableBelief(Belief, Protocol):
    """Its tasks do not depend on each other: some can be taken out, and others joined.

    :class:`~priorwise.core.separable.SeparableTasks` gives both to a dataclass. A belief that
    couples its tasks (one that learns from all of them, say) has neither.
    """

    def take(self, index: ArrayLike | slice) -> Self:
        """Return the tasks at some places, in that order: integers, or True for those wanted."""
        ...

    def join(self, *others: Self) -> Self:
        """Return these tasks, then those of the others; what all tasks share has to be equal."""
        ...


@runtime_checkable
class MeanBelief(Protocol):
    """Knows its exact posterior mean."""

    def mean(self, seen: Seen) -> FloatArray:
        """Posterior mean of each action's value, ``(task, arm)``."""
        ...


@runtime_checkable
class SizedMeanBelief(MeanBelief, Protocol):
    """Says how large the numbers are that its means are sums of, by which
    :mod:`priorwise.core.choosing` judges ties.

    A belief needs this if its means can both tie and cancel.
    """

    def mean_size(self, seen: Seen) -> FloatArray:
        """Sum of the absolute numbers that each posterior mean is a sum of, ``(task, arm)``, or
        ``(1, arm)`` for all tasks.
        """
        ...


@runtime_checkable
class SizedDrawsBelief(Protocol):
    """The same for means of draws; draws of continuous values do not tie and need none."""

    def sample_mean_and_size(
        self, rng: Stream, draws: int, seen: Seen
    ) -> tuple[FloatArray, FloatArray]:
        """Return ``sample_mean``, and the mean of the absolute values of the same draws, ``(task,
        arm)`` both.
        """
        ...


@runtime_checkable
class QuantileBelief(Protocol):
    """Knows exact posterior quantiles."""

    def quantile(self, level: float | FloatArray, seen: Seen) -> FloatArray:
        """Posterior quantile of each action's value, ``(task, arm)``, at one level or one for each
        task ``(task,)``.
        """
        ...


@runtime_checkable
class PredictiveBelief(Protocol):
    """Knows the law of the next reward."""

    def log_predictive(self, seen: Seen, actions: IntArray, rewards: FloatArray) -> FloatArray:
        """Log density of ``rewards`` ``(task,)`` for ``actions`` ``(task,)``, with its constant,
        ``(task,)``.
        """
        ...


@dataclass(frozen=True)
class Imagined:
    """One imagined pull: a drawn value of the action, the belief conditioned on its drawn reward,
    and what would be seen next.
    """

    value: FloatArray  # (task,)
    belief: ImaginingBelief
    seen: Seen


@runtime_checkable
class ImaginingBelief(Belief, Protocol):
    """Can imagine a pull and go on from there, which look-ahead policies do."""

    def imagine(self, rng: Stream, actions: IntArray, seen: Seen) -> Imagined:
        """Draw an environment, its reward for ``actions`` ``(task,)``, and condition on it."""
        ...

    def sample_mean(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """Mean over ``draws`` posterior draws of each action's value, ``(task, arm)``; any way that
        has this law.
        """
        ...


@runtime_checkable
class LookaheadBelief(MeanBelief, Protocol):
    """Knows exactly what one more pull is worth."""

    def best_after(self, seen: Seen) -> FloatArray:
        """E[max_a' E[value of a' given the reward of a]] for each action a, ``(task, arm)``."""
        ...


@runtime_checkable
class CollapsingBelief(MeanBelief, Protocol):
    """May become certain."""

    def certain(self) -> BoolArray:
        """Whether the posterior of each task is a single environment, ``(task,)``."""
        ...


@runtime_checkable
class ResettingBelief(Protocol):
    """Starts again from its prior when it observes what that prior deems impossible."""

    @property
    def resets(self) -> IntArray:
        """How often each task did so, ``(task,)``."""
        ...
