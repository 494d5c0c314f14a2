"""Parameters that problems with tables of states share."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.core.parameters import Array, Parameter, number_of
from priorwise.core.types import FloatArray


@dataclass(frozen=True)
class Transitions(Array):
    """Probabilities over the last dimension, in each row of a table."""

    def checked(self, name: str, value: Any, owner: Any) -> FloatArray:
        """Return the table; rows that nearly sum to 1 do so afterwards."""
        rows = super().checked(name, value, owner)
        if rows.min() < 0.0:
            raise ArgumentError(name, "must not be negative", got=rows.min())
        total = rows.sum(axis=-1, keepdims=True)
        wrong = np.argwhere(np.abs(total[..., 0] - 1.0) > 1e-6)
        if len(wrong):
            entry = ", ".join(map(str, wrong[0]))
            over = f"must sum to 1 over the {self.dims[-1]}s in row ({entry})"
            raise ArgumentError(name, over, got=total[tuple(wrong[0])][0])
        return np.where(np.abs(total - 1.0) > 1e-12, rows / total, rows)


@dataclass(frozen=True)
class FirstState(Parameter):
    """A state, or probabilities of all of them."""

    def checked(self, name: str, value: Any, owner: Any) -> FloatArray:
        """Return probabilities."""
        states = number_of(owner, "state")
        if np.ndim(value) > 0:
            return validation.probabilities(name, value, states)
        state = validation.count(name, value, least=0)
        if state >= states:
            raise ArgumentError(name, f"must be one of the states 0 to {states - 1}", got=state)
        return np.asarray(np.arange(states) == state, dtype=np.float64)


@dataclass(frozen=True)
class FirstStates(FirstState):
    """The same for each candidate."""

    def checked(self, name: str, value: Any, owner: Any) -> FloatArray:
        """Return probabilities of each candidate."""
        support, states = number_of(owner, "candidate"), number_of(owner, "state")
        if np.ndim(value) < 2:
            rows = np.repeat(super().checked(name, value, owner)[None], support, axis=0)
        else:
            table = validation.matrix(name, value, (support, states))
            rows = np.stack([validation.probabilities(name, row, states) for row in table])
        total = rows.sum(axis=1, keepdims=True)
        return np.where(np.abs(total - 1.0) > 1e-12, rows / total, rows)

    def without(self, owner: Any) -> FloatArray:
        """Return equal probabilities."""
        support, states = number_of(owner, "candidate"), number_of(owner, "state")
        return np.full((support, states), 1.0 / states)
