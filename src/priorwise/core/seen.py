"""What is known when an action is chosen."""

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.core.types import BoolArray, FloatArray

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

    def __post_init__(self) -> None:
        if self.size is not None:
            validation.count("size", self.size)
        if not self.low <= self.high:  # NaN is neither
            raise ArgumentError("low", "must not exceed high", got=(self.low, self.high))

    def checked(self, name: str, actions: Any, tasks: int) -> FloatArray:
        """Refuse what is not such an action for each task."""
        shape = (tasks,) if self.size is None else (tasks, self.size)
        what = f"finite numbers of shape {shape}"
        array = validation.shaped(name, actions, shape, "fiu", what)
        if not np.isfinite(array).all():
            raise ArgumentError(name, f"must be {what}, but has NaN or infinite entries")
        worst = array.min() if array.min() < self.low else array.max()
        if not self.low <= worst <= self.high:
            raise ArgumentError(name, f"must lie between {self.low:g} and {self.high:g}", got=worst)
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
            raise ArgumentError(
                "step", f"must be one of 1..{self.horizon}, the horizon", got=self.step
            )
        validation.count("arms", self.arms, least=1 if self.actions is None else 0)
        if self.mask is None:
            return
        mask = validation.mask("mask", self.mask)
        if mask.ndim != 2 or mask.shape[1] != self.arms:
            raise ArgumentError("mask", f"must have shape (task, {self.arms})", got=mask.shape)
        # ten times as fast as along the short axis
        some = np.ascontiguousarray(mask.T).any(axis=0)
        if not some.all():
            raise ArgumentError(
                "mask", f"leaves task {np.argmin(some)} without any arm", cure="each needs one"
            )
        object.__setattr__(self, "mask", mask)

    def masked(self, values: FloatArray) -> FloatArray:
        """Put -inf on arms that are not available; ``values`` is ``(task, arm)`` or ``(task, draw,
        arm)``.
        """
        if self.mask is None:
            return values
        if np.ndim(values) not in (2, 3) or (len(values), np.shape(values)[-1]) != self.mask.shape:
            raise ArgumentError(
                "values",
                "must be (task, arm) or (task, draw, arm), of the tasks and arms of mask, "
                f"{self.mask.shape}",
                got=np.shape(values),
            )
        mask = self.mask if np.ndim(values) == 2 else self.mask[:, None, :]
        return np.where(mask, values, -np.inf)

    def take(self, index: Any) -> "Seen":
        """Return what is known of some of the tasks, as ``Belief.take`` does."""
        kept = {name: getattr(self, name) for name in ("step", "horizon", "mask")}
        taken = {name: each[index] for name, each in kept.items() if isinstance(each, np.ndarray)}
        signal = None if self.signal is None else self.signal[index]
        return replace(self, signal=signal, **taken)


def _check_steps(step: Any, horizon: Any) -> None:
    tasks = max(np.size(step), np.size(horizon))
    for name, value in (("step", step), ("horizon", horizon)):
        validation.counted(name, value, tasks)
    late = np.broadcast_to(step > horizon, tasks)
    if late.any():
        task = int(np.argmax(late))
        of = [np.broadcast_to(each, tasks)[task] for each in (step, horizon)]
        raise ArgumentError(
            "step", f"must be one of 1..{of[1]}, the horizon, in each task (task {task})", got=of[0]
        )
