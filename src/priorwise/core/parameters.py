"""Declarations of parameters: what a parameter may be is written once, and everybody reads it.

A declaration is the validator of an attrs field. It knows the shape and the range, checks the value
and replaces it by the checked one; the docstring of the class says what it means::

    alpha: FloatArray = field(converter=arrays, validator=Array(("arm",), 1e-6, spread=1))

Dimensions have names. The first field with a dimension gives it its size; ``size_of`` finds it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import attrs
import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import argument_checks, validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.sizes import as_float, check_memory
from priorwise.core.types import FloatArray


@dataclass(frozen=True)
class Parameter:
    """What a parameter may be. None is allowed if it is the default."""

    def __call__(self, owner: Any, attribute: "attrs.Attribute[Any]", value: Any) -> None:
        """Check the value of a new object, and keep the checked one."""
        if value is None and attribute.default is None:
            kept = self.without(owner)
        else:
            kept = self.checked(attribute.name, value, owner)
        if isinstance(kept, np.ndarray):
            kept.setflags(write=False)
        object.__setattr__(owner, attribute.name, kept)

    def checked(self, name: str, value: Any, owner: Any) -> Any:
        """Return the value that is kept."""
        return value

    def without(self, owner: Any) -> Any:
        """Return what is kept for None."""
        return None


@dataclass(frozen=True)
class Number(Parameter):
    """A finite number from ``least`` to ``most``; ``ends`` says which of them is allowed."""

    least: float = -np.inf
    most: float = np.inf
    cure: str = ""
    ends: validation.Ends = "[]"

    def checked(self, name: str, value: Any, owner: Any) -> float:
        """Return a float."""
        return validation.number(name, value, self.least, self.most, self.ends, self.cure)


@dataclass(frozen=True)
class Count(Parameter):
    """An integer of at least ``least``."""

    least: int = 1

    def checked(self, name: str, value: Any, owner: Any) -> int:
        """Return an integer."""
        return validation.count(name, value, self.least)


@dataclass(frozen=True)
class Seed(Parameter):
    """A seed of random numbers."""

    def checked(self, name: str, value: Any, owner: Any) -> int:
        """Return an integer."""
        return validation.seed(value)


@dataclass(frozen=True)
class Choice(Parameter):
    """One of the words of a ``Literal``."""

    words: Any = None

    def checked(self, name: str, value: Any, owner: Any) -> Any:
        """Return the word."""
        validation.one_of(name, value, self.words)
        return value


@dataclass(frozen=True)
class Array(Parameter):
    """A finite array of dimensions with names or given sizes, entries from ``least`` to ``most``.

    A value without the first ``spread`` dimensions stands for all their entries. With ``fill`` None
    stands for an array of this number. With ``size`` the first dimension has the size of that
    attribute of the owner.
    """

    dims: tuple[str | int, ...] = ("arm",)
    least: float = -np.inf
    most: float = np.inf
    spread: int = 0
    fill: float | None = None
    size: str = ""

    def checked(self, name: str, value: Any, owner: Any) -> FloatArray:
        """Return an array that cannot be written to."""
        array = self._of_all(name, validation.numbers(name, value), owner)
        array = validation.matrix(name, array, (None,) * len(self.dims))
        validation.check_range(name, array, self.least, self.most)
        return array

    def _of_all(self, name: str, array: FloatArray, owner: Any) -> FloatArray:
        """Spread a value that stands for several, and compare its shape with other arrays."""
        sizes, source = self._sizes(owner)
        if (
            self.spread
            and array.ndim == len(sizes) - self.spread
            and (self.spread == 1 or all(sizes))
        ):
            first = tuple(size or 1 for size in sizes[: self.spread])
            numbers = 32.0 * as_float(math.prod(first)) * array.size
            check_memory(f"{self.dims[0]}s", first[0], numbers, f"lower {self.dims[0]}s")
            array = np.broadcast_to(array, first + array.shape).copy()
        wrong = [
            size is not None and size != n for size, n in zip(sizes, array.shape, strict=False)
        ]
        if array.ndim == len(sizes) and any(wrong):
            shape = ", ".join("any" if size is None else str(size) for size in sizes)
            like = f", as {source} has" if source not in ("", name) else ""
            raise ArgumentError(name, f"must have shape ({shape}){like}", got=array.shape)
        return array

    def _sizes(self, owner: Any) -> tuple[tuple[int | None, ...], str]:
        """Return the size of each dimension, and the first other parameter that has one of them."""
        if self.size:
            return (getattr(owner, self.size),), ""
        found = [size_of(owner, dim) for dim in self.dims]
        return tuple(size for size, _ in found), next((name for _, name in found if name), "")

    def without(self, owner: Any) -> FloatArray | None:
        """Return an array of one number, if there is one for it."""
        if self.fill is None:
            return None
        return np.full([size or 1 for size in self._sizes(owner)[0]], self.fill)


@dataclass(frozen=True)
class Covariance(Array):
    """A symmetric positive semi-definite matrix."""

    dims: tuple[str | int, ...] = ("arm", "arm")

    def checked(self, name: str, value: Any, owner: Any) -> FloatArray:
        """Return a symmetric matrix; rounding is mended."""
        array = self._of_all(name, validation.numbers(name, value), owner)
        size = size_of(owner, self.dims[0])[0]
        return validation.covariance(
            name, array, len(np.atleast_1d(array)) if size is None else size
        )


@dataclass(frozen=True)
class Probabilities(Array):
    """Numbers that are not negative and sum to 1."""

    dims: tuple[str | int, ...] = ("candidate",)

    def checked(self, name: str, value: Any, owner: Any) -> FloatArray:
        """Return a vector."""
        array = self._of_all(name, validation.numbers(name, value), owner)
        return validation.probabilities(name, array, array.size)


@dataclass(frozen=True)
class Names(Parameter):
    """Different words, one for each entry of a dimension."""

    dim: str = "arm"

    def checked(self, name: str, value: Any, owner: Any) -> tuple[str, ...] | None:
        """Return a tuple of words."""
        return validation.names(value, number_of(owner, self.dim), name, self.dim)


@dataclass(frozen=True)
class Instance(Parameter):
    """A value of a class; ``cure`` shows how to make one."""

    kind: type = object
    cure: str = ""

    def checked(self, name: str, value: Any, owner: Any) -> Any:
        """Return the value."""
        if not isinstance(value, self.kind):
            raise ArgumentTypeError(name, f"must be {self.cure or self.kind.__name__}", got=value)
        return value


@dataclass(frozen=True)
class Role(Parameter):
    """A value with the methods of a role; ``what`` names the role."""

    what: str = ""
    methods: tuple[str, ...] = ()

    def checked(self, name: str, value: Any, owner: Any) -> Any:
        """Return the value."""
        argument_checks.role(name, value, self.what, *self.methods)
        return value


@dataclass(frozen=True)
class Checked(Parameter):
    """A value that a function ``check(name, value)`` allows, or turns into another."""

    check: Callable[[str, Any], Any] = lambda name, value: value
    dims: tuple[str, ...] = ()

    def checked(self, name: str, value: Any, owner: Any) -> Any:
        """Return what the function returns; the value if it returns nothing."""
        kept = self.check(name, value)
        return value if kept is None else kept


def arrays(value: ArrayLike) -> FloatArray:
    """Let a field take whatever makes an array; its declaration makes the array."""
    return value  # type: ignore[return-value]


def optional_arrays(value: ArrayLike | None) -> FloatArray | None:
    """Let a field take None too."""
    return value  # type: ignore[return-value]


def entries(value: Sequence[Any]) -> tuple[Any, ...]:
    """Let a field take any sequence."""
    return value  # type: ignore[return-value]


def words(value: Sequence[str] | None) -> tuple[str, ...] | None:
    """Let a field take any sequence of words; its declaration makes the tuple."""
    return value  # type: ignore[return-value]


def parameters(cls: type) -> dict[str, Parameter]:
    """Return what a class declares, by name, in the order of its constructor."""
    if not attrs.has(cls):
        return {}
    fields = {field.name: field.validator for field in attrs.fields(cls)}
    return {name: found for name, found in fields.items() if isinstance(found, Parameter)}


def size_of(owner: Any, dim: str | int) -> tuple[int | None, str]:
    """Return the size of a dimension and the name of the first array that has it."""
    if isinstance(dim, int):
        return dim, ""
    for name, parameter in parameters(type(owner)).items():
        dims, spread = getattr(parameter, "dims", ()), getattr(parameter, "spread", 0)
        if dim in dims and not getattr(parameter, "size", ""):
            shape = _shape(getattr(owner, name))
            if len(shape) == len(dims) - spread:
                dims = dims[spread:]
            if len(shape) == len(dims) and dim in dims:
                return shape[dims.index(dim)], name
    return None, ""


def number_of(owner: Any, dim: str) -> int:
    """Return the size of a dimension: that of an array, the owner's attribute, or 1."""
    size = size_of(owner, dim)[0]
    return int(getattr(owner, f"{dim}s", 1)) if size is None else size


def _shape(value: Any) -> tuple[int, ...]:
    try:
        return np.shape(value)
    except Exception:  # ragged, or a user's class that makes no array: the check says so
        return ()
