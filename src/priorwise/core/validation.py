"""Checks of what users pass: each error names the argument, what is wrong with it and what to
do.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import sizes
from priorwise.core.errors import SHOWN_PATH as SHOWN_PATH  # noqa: PLC0414 - for serve
from priorwise.core.errors import ArgumentError, ArgumentTypeError, option
from priorwise.core.errors import printable as printable  # noqa: PLC0414 - for serve
from priorwise.core.errors import shown as shown  # noqa: PLC0414 - for serve
from priorwise.core.types import BoolArray, FloatArray, IntArray

T = TypeVar("T")
Shape = tuple[int | None, ...]  # None: any size
Ends = Literal["[]", "()", "(]"]
"""Which ends of a range belong to it."""
SINGULAR: Final = 1e-13
"""Correlations whose smallest eigenvalue is at most this are singular up to rounding."""

WIDE: Final = 1e6
"""Beyond this an end of a range is there for the arithmetic, not for its meaning."""

LARGEST: Final = 1e100
"""Beyond this, squares and products of a few numbers leave the range of floats."""


def freeze(value: Any, **fields: Any) -> None:
    """Set the fields of a frozen value once they are checked; arrays cannot be written to then."""
    for name, each in fields.items():
        if isinstance(each, np.ndarray):
            each.setflags(write=False)
        object.__setattr__(value, name, each)


def vector(name: str, value: ArrayLike, size: int | None = None) -> FloatArray:
    """Return a finite vector, of a given size if one is given; a copy that cannot be written to."""
    return matrix(name, value, (size,))


def matrix(name: str, value: ArrayLike, shape: Shape = (None, None)) -> FloatArray:
    """Return a finite array of a given shape (None: any size)."""
    array = numbers(name, value)
    if not _fits(array, shape):
        sizes = ", ".join("any" if n is None else str(n) for n in shape)
        raise ArgumentError(name, f"must have shape ({sizes})", got=array.shape)
    if array.size == 0:
        raise ArgumentError(name, "must not be empty")
    finite = np.isfinite(array)
    if not finite.all():
        raise ArgumentError(name, "must be finite", got=array[~finite].flat[0])
    if (largest := np.abs(array).max()) > LARGEST:
        cure = "take a larger unit"
        raise ArgumentError(name, f"must not exceed {LARGEST:g} in size", got=largest, cure=cure)
    array.setflags(write=False)
    return array


def per_arm(name: str, value: ArrayLike, arms: int) -> FloatArray:
    """Return one number for all arms or one each, as a vector."""
    array = numbers(name, value)
    if array.ndim == 0:
        sizes.check_memory("arms", arms, 32.0 * sizes.as_float(arms), "lower arms")
        array = np.full(arms, array)
    return matrix(name, array, (arms,))


def positive(name: str, value: FloatArray, smallest: float = 1e-100) -> FloatArray:
    """Check that all entries are positive."""
    if np.any(value < smallest):
        raise ArgumentError(name, f"must be positive (at least {smallest:g})", got=value.min())
    return value


def check_range(
    name: str,
    value: float | FloatArray,
    least: float = -np.inf,
    most: float = np.inf,
    ends: Ends = "[]",
    cure: str = "",
) -> None:
    """Raise an error unless all numbers lie in a range."""
    for number in (float(np.min(value)), float(np.max(value))):
        above = least < number if ends[0] == "(" else least <= number
        below = number < most if ends[1] == ")" else number <= most
        if not (above and below):
            if max(abs(least), abs(most)) > WIDE:  # the violated end is enough
                least, most = (-np.inf, most) if above else (least, np.inf)
            must = _in_range(least, most, ends)
            raise ArgumentError(name, f"must {must}", got=number, cure=cure)


def _in_range(least: float, most: float, ends: Ends) -> str:
    """``not be negative``, ``lie in [0, 1]``, ...; nothing where all numbers are allowed."""
    if np.isfinite(least) and np.isfinite(most):
        if ends == "()":
            return f"lie strictly between {least:g} and {most:g}"
        return f"lie in {ends[0]}{least:g}, {most:g}{ends[1]}"
    if np.isfinite(most):
        return f"{'be below' if ends[1] == ')' else 'not exceed'} {most:g}"
    if least == 0.0:
        return "be positive" if ends[0] == "(" else "not be negative"
    if 0.0 < least < 1.0:
        return f"be positive (at least {least:g})"
    above = "above" if ends[0] == "(" else "at least"
    return f"be {above} {least:g}" if np.isfinite(least) else ""


def number(
    name: str,
    value: Any,
    least: float = -np.inf,
    most: float = np.inf,
    ends: Ends = "[]",
    cure: str = "",
) -> float:
    """Return a finite number from ``least`` to ``most``."""
    if isinstance(value, (bool, np.timedelta64)) or not isinstance(
        value, (int, float, np.integer, np.floating)
    ):
        raise ArgumentTypeError(name, "must be a number", got=value)
    if isinstance(value, int) and abs(value) > LARGEST:
        raise ArgumentError(name, f"must not exceed {LARGEST:g} in size", got=value)
    checked = float(matrix(name, float(value), ()))
    check_range(name, checked, least, most, ends, cure)
    return checked


def not_negative(name: str, value: Any) -> float:
    """Return a number from 0."""
    return number(name, value, 0.0)


def share(name: str, value: Any, most: float = 1.0) -> float:
    """Return a number strictly between 0 and ``most``."""
    return number(name, value, 0.0, most, "()")


def count(name: str, value: Any, least: int = 1) -> int:
    """Return an integer, at least ``least``."""
    if isinstance(value, (bool, np.timedelta64)) or not isinstance(value, (int, np.integer)):
        whole = isinstance(value, float) and value.is_integer()
        cure = f"write {int(value):_}" if whole else ""
        raise ArgumentTypeError(name, "must be an integer", got=value, cure=cure)
    if value < least:
        raise ArgumentError(name, f"must be at least {least}", got=value)
    return int(value)


def batch(value: Any, horizon: int) -> int:
    """Return after how many pulls rewards are seen: at most those of a task."""
    checked = count("batch", value)
    if checked > horizon:
        raise ArgumentError("batch", f"must be at most {option('horizon', horizon)}", got=checked)
    return checked


def counts(name: str, value: Any, size: int, least: int = 1) -> IntArray:
    """Return ``size`` integers, each at least ``least``."""
    what = f"an integer or one for each of {size} tasks"
    array = shaped(name, value, (size,), "iu", what, ArgumentTypeError)
    if array.size and array.min() < least:
        raise ArgumentError(name, f"must be at least {least}", got=array.min())
    return array.astype(np.int64, copy=False)


def counted(name: str, value: Any, size: int, least: int = 1) -> int | IntArray:
    """Return an integer, or an array of one for each of ``size`` tasks."""
    if isinstance(value, np.ndarray):
        return counts(name, value, size, least)
    return count(name, value, least)


def instance(name: str, value: Any, kind: type[T], what: str = "") -> T:
    """Return a value of a class, which ``what`` describes."""
    if isinstance(value, kind):
        return value
    plain = type(value).__module__ == "builtins"
    problem = f"must be {what or f'a {kind.__name__}'}"
    raise ArgumentTypeError(name, problem, got=value if plain else type(value))


def flag(name: str, value: Any) -> bool:
    """Return a truth value: True or False, not something that counts as one."""
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentTypeError(name, "must be True or False", got=value)
    return bool(value)


def text(name: str, value: Any) -> str:
    """Return a string that can be written to a file; it may be empty."""
    string = instance(name, value, str, "a string")
    try:
        string.encode()
    except UnicodeEncodeError:
        raise ArgumentError(name, "must not have half of a character", got=value) from None
    return string


def word(name: str, value: Any) -> str:
    """Return a string that is not empty."""
    string = instance(name, value, str, "a string")
    if not string:
        raise ArgumentError(name, "must not be empty")
    return string


def one_of(name: str, value: Any, words: Any, other: str = "") -> None:
    """Refuse what is none of the words of a ``Literal``; ``other`` says what may be given too."""
    if not any(type(value) is type(word) and value == word for word in get_args(words)):
        known = ", ".join(map(str, get_args(words)))
        raise ArgumentError(name, f"must be one of {known}{other}", got=value)


def names(value: Any, count: int, name: str = "names", what: str = "arm") -> tuple[str, ...] | None:
    """Return the names of arms, or of something else, one for each and all different; None where
    there are none.
    """
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ArgumentTypeError(name, f"must be a list of words, one for each {what}", got=value)
    words = tuple(word(f"a name in {name}", each) for each in value)
    if len(words) != count:
        raise ArgumentError(name, f"must have one entry for each of the {count} {what}s", got=words)
    if len(set(words)) < count:
        twice = next(each for each in words if words.count(each) > 1)
        raise ArgumentError(name, f"must differ, but {shown(twice)} is there twice")
    return words


def seed(value: Any) -> int:
    """Return a seed: an integer from 0 to 2^64 - 1."""
    checked = count("seed", value, least=0)
    if checked >= 1 << 64:
        raise ArgumentError("seed", "must be below 2**64", got=checked)
    return checked


def probabilities(name: str, value: ArrayLike, size: int) -> FloatArray:
    """Return non-negative numbers that sum to 1 up to rounding."""
    array = vector(name, value, size)
    if np.any(array < 0):
        raise ArgumentError(name, "must not be negative", got=array.min())
    if abs(array.sum() - 1.0) > 1e-6:
        cure = "divide weights by their sum"
        raise ArgumentError(name, "must sum to 1", got=array.sum(), cure=cure)
    return array


def covariance(name: str, value: ArrayLike, size: int) -> FloatArray:
    """Return a symmetric positive semi-definite matrix; singular ones are fine."""
    array = numbers(name, value)
    if array.ndim == 1 and array.size == size:
        cure = f"np.diag({name}) makes one of a vector"
        raise ArgumentError(name, f"must be a {size} x {size} matrix", got=array.shape, cure=cure)
    array = matrix(name, array, (size, size))
    largest = float(np.abs(array).max(initial=0.0))
    gap = np.abs(array - array.T)
    if np.any(gap > 1e-8 * largest):
        row, column = np.unravel_index(int(np.argmax(gap)), gap.shape)
        pair = (float(array[row, column]), float(array[column, row]))
        raise ArgumentError(name, f"must be symmetric at ({row}, {column})", got=pair)
    symmetric = (array + array.T) / 2
    if np.any(np.diag(symmetric) < 0):
        lowest = np.diag(symmetric).min()
        raise ArgumentError(name, "must have no negative variance", got=lowest)
    lowest = float(np.linalg.eigvalsh(symmetric).min()) if size else 0.0
    if lowest < -1e-8 * max(largest, 1e-300):
        raise ArgumentError(
            name,
            f"must be positive semi-definite, but has the eigenvalue {lowest:g}",
            cure="project an estimate on the positive semi-definite matrices",
        )
    symmetric.setflags(write=False)
    return symmetric


def square_root(cov: FloatArray) -> FloatArray:
    """Return L with L L' = cov: the Cholesky factor, or for singular correlations their symmetric
    root, scaled.

    Both are continuous in the matrix, so that two covariances that differ by rounding give draws
    that differ by rounding.
    """
    scale = np.sqrt(np.diag(cov))
    divisor = np.where(scale > 0.0, scale, 1.0)
    # of correlations: scales do not matter
    values, vectors = np.linalg.eigh(cov / divisor[:, None] / divisor)
    if values[0] > SINGULAR:
        return np.asarray(np.linalg.cholesky(cov), dtype=np.float64)
    return np.asarray(scale[:, None] * ((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T))


def availability(name: str, value: Any, tasks: int, arms: int) -> BoolArray | None:
    """Return which arms each task may pull: None (all), one row for all tasks or one each; at least
    one arm in every row.
    """
    if value is None:
        return None
    rows = mask(name, value)
    if rows.shape not in ((arms,), (tasks, arms)):
        shapes = f"({arms},) or ({tasks}, {arms})"
        raise ArgumentError(name, f"must have shape {shapes}", got=rows.shape)
    if not rows.any(axis=-1).all():
        raise ArgumentError(name, "must leave each task at least one arm")
    return np.broadcast_to(rows, (tasks, arms))


def mask(name: str, value: Any) -> BoolArray:
    """Return which arms may be pulled, in any shape."""
    array: BoolArray = plain_array(name, value)
    if array.dtype != np.bool_:
        what = "must be boolean (True: the arm may be pulled)"
        raise ArgumentTypeError(name, what, got=array, cure="use np.array(..., dtype=bool)")
    return array


def numbers(name: str, value: ArrayLike) -> FloatArray:
    """Return an array of numbers, of any shape; a copy."""
    array = plain_array(name, value)
    if array.dtype.kind not in "iuf" and array.size:
        raise ArgumentTypeError(name, "must be numbers", got=value)
    return array.astype(np.float64)


def plain_array(name: str, value: Any) -> Any:
    """Return an array in a regular shape, and none whose masked entries would count as numbers."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        what = "has masked entries, which would count as numbers"
        raise ArgumentTypeError(name, what, cure="leave out or fill them")
    try:
        return np.asarray(value)
    except Exception as error:  # also of a user's class that cannot be made an array
        raise ArgumentTypeError(name, f"must be numbers in a regular shape: {error}") from None


def shaped(
    name: str, value: Any, shape: Shape, kinds: str, what: str, error: Any = ArgumentError
) -> Any:
    """Return an array of a shape (None: any size) and of these kinds of numbers; ``what`` says in
    words what it must be.
    """
    array = plain_array(name, value)
    if array.dtype.kind not in kinds or not _fits(array, shape):
        raise error(name, f"must be {what}, not {array.dtype} of shape {array.shape}")
    return array


def _fits(array: Any, shape: Shape) -> bool:
    return array.ndim == len(shape) and all(
        want in (None, got) for want, got in zip(shape, array.shape, strict=True)
    )


def sentences(name: str, value: Any) -> tuple[str, ...]:
    """Return sentences, as a tuple."""
    listed = isinstance(value, Sequence) and not isinstance(value, str)
    if not listed or not all(isinstance(each, str) for each in value):
        raise ArgumentTypeError(name, "must be a list of sentences", got=value)
    return tuple(value)
