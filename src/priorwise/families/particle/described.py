"""A value that functions are part of: equal if they are the same ones, in JSON by their names."""

from typing import Any, Final, Self

import numpy as np

from priorwise.core.errors import shown
from priorwise.core.serial import Serializable
from priorwise.families.particle.functions import function_named, name_of

FUNCTIONS: Final = ("sample", "log_density", "mean_reward", "sample_reward", "log_prior")


class Described(Serializable):
    """Is described by the arguments that it was made from, some of which are functions."""

    def _fields(self) -> dict[str, Any]:
        """With the names of functions, which have to be registered."""
        held = self._arguments()
        named = {each: name_of(each, held[each]) for each in FUNCTIONS if callable(held[each])}
        return self._written(held | named)

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Self:
        """Take functions by their names; nothing is imported to find them."""
        named = {
            each: function_named(each, fields[each])
            for each in FUNCTIONS
            if fields.get(each) is not None and not isinstance(fields[each], list)
        }
        return cls(**fields | named)

    def __eq__(self, other: object) -> bool:
        """Equal if all arguments are."""
        if not isinstance(other, Described) or type(other) is not type(self):
            return False
        theirs = other._arguments()
        return all(_same(value, theirs[name]) for name, value in self._arguments().items())

    def __hash__(self) -> int:
        """Hash of the numbers among the arguments."""
        held = self._arguments().items()
        return hash(tuple((name, each) for name, each in held if isinstance(each, (int, float))))

    def __repr__(self) -> str:
        """Names of the functions, and numbers."""
        said = [
            f"{name}={_name(value)}"
            for name, value in self._arguments().items()
            if value is not None
        ]
        return f"{type(self).__name__}({', '.join(said)})"


def _same(mine: Any, yours: Any) -> bool:
    if isinstance(mine, np.ndarray) or isinstance(yours, np.ndarray):
        return type(mine) is type(yours) and np.array_equal(mine, yours)
    return bool(mine is yours or mine == yours)


def _name(value: Any) -> str:
    """Name of a function, of a method with its object, or a value."""
    if (owner := getattr(value, "__self__", None)) is not None:
        return f"{shown(owner)}.{value.__name__}"
    return getattr(value, "__qualname__", None) or shown(value)
