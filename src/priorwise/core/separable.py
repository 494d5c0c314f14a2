"""Tasks that do not depend on each other: taken out of a belief, joined, served at their steps."""

from collections.abc import Callable
from dataclasses import fields, replace
from functools import wraps
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError, MissingCapability
from priorwise.core.types import IntArray


class SeparableTasks:
    """Gives ``take`` and ``join`` to a dataclass whose arrays all have the task axis first.

    Its other fields (a prior, say) are shared by all tasks, but for beliefs that have ``take``
    themselves and tuples of them, which go along.
    """

    def take(self, index: ArrayLike | slice) -> Self:
        """Return the tasks at some places, in that order: integers, or True for those wanted."""
        at = index if isinstance(index, slice) else places(index, self.tasks)  # type: ignore[attr-defined]
        changes = {each.name: _taken(getattr(self, each.name), at) for each in fields(self)}  # type: ignore[arg-type]
        return replace(self, **changes)  # type: ignore[type-var]

    def join(self, *others: Self) -> Self:
        """Return these tasks, then those of the others; what all tasks share has to be equal."""
        for other in others:
            if type(other) is not type(self):
                raise ArgumentTypeError(
                    "others", f"must be beliefs of a class, {type(self).__name__}", got=type(other)
                )
        changes = {
            each.name: _joined(each.name, [getattr(part, each.name) for part in (self, *others)])
            for each in fields(self)  # type: ignore[arg-type]
        }
        return replace(self, **changes)  # type: ignore[type-var]


Method = TypeVar("Method", bound=Callable[..., Any])


def by_step(method: Method) -> Method:
    """Let a policy's ``act(belief, seen, rng)``, ``scores(belief, seen)`` or
    ``probabilities(belief, seen)`` that is written for one step serve tasks at different steps:
    those of each step by themselves.

    The belief needs ``take`` then.
    """

    @wraps(method)
    def served(policy: Any, belief: Any, seen: Any, *rng: Any) -> Any:
        given = getattr(seen, "step", 1), getattr(seen, "horizon", 1)  # the method refuses others
        if not any(isinstance(each, np.ndarray) for each in given):
            return method(policy, belief, seen, *rng)
        if not hasattr(belief, "take"):
            raise MissingCapability(
                "belief",
                "needs take for tasks at different steps",
                got=type(belief),
                cure="derive it from SeparableTasks",
            )
        pairs = np.stack(np.broadcast_arrays(*given), axis=1)
        groups, which = np.unique(pairs, axis=0, return_inverse=True)
        places, parts = [], []
        for group, (step, horizon) in enumerate(groups.tolist()):
            index = np.flatnonzero(which.ravel() == group)
            some = replace(seen.take(index), step=step, horizon=horizon)
            parts.append(
                method(policy, belief.take(index), some, *(each.take(index) for each in rng))
            )
            places.append(index)
        order = np.argsort(np.concatenate(places))
        if any(part is None for part in parts):
            return None
        if isinstance(parts[0], np.ndarray):
            return np.concatenate(parts)[order]
        return parts[0].join(*parts[1:]).take(order)

    return served  # type: ignore[return-value]


def places(index: ArrayLike, tasks: int) -> IntArray:
    """Return the tasks that an index names, as integers ``(place,)``."""
    array = validation.plain_array("index", index)
    if array.dtype == np.bool_ and array.shape == (tasks,):
        return np.flatnonzero(array)
    if array.size == 0 and array.ndim == 1:
        return array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ArgumentTypeError(
            "index",
            f"must be a row of task numbers, or True or False for each of {tasks} tasks",
            got=array,
        )
    if array.min() < 0 or array.max() >= tasks:
        wrong = array.min() if array.min() < 0 else array.max()
        raise IndexError(f"index must name tasks 0..{tasks - 1}, got {wrong}")
    return array.astype(np.int64, copy=False)


def _taken(value: Any, index: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value[index]
    if isinstance(value, tuple):
        return tuple(_taken(each, index) for each in value)
    return value.take(index) if isinstance(value, SeparableTasks) else value


def _joined(name: str, values: list[Any]) -> Any:
    first = values[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(values)
    if isinstance(first, tuple):
        return tuple(_joined(name, list(each)) for each in zip(*values, strict=True))
    if isinstance(first, SeparableTasks):
        return first.join(*values[1:])
    if any(each is not first and each != first for each in values[1:]):
        raise ArgumentError("beliefs", f"that are joined must share their {name}, and they do not")
    return first
