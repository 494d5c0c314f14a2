"""Choosing the largest of several values: the one rule for ties that every policy shares.

Sums taken in another order differ by rounding, which is relative to the numbers that are summed,
not to the sum: where means of both signs cancel, the sum may be 0 but for rounding. So two values
tie if they differ by at most ``TIE_TOLERANCE`` times the mean of their sizes. The size of a sum is
the sum of the absolute addends; that of a single draw is its absolute value.
"""

from typing import Final

import numpy as np

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.core.types import BoolArray, FloatArray, IntArray

TIE_TOLERANCE: Final = 1e-12
"""Values this close, relative to their sizes, are equal but for the order in which they were
summed.
"""

SMALLEST_SIZE: Final = 1e-306
"""Sizes are taken for at least this: what is left of smaller numbers is rounded to multiples of
5e-324.
"""


def level(values: FloatArray, sizes: FloatArray | None = None) -> FloatArray:
    """Set the values (task, arm) that tie with the largest of their task to that value.

    ``sizes``, (task, arm) or (1, arm), are sums of the absolute numbers that the values are sums
    of; those below the value itself, as for None, are taken for the value. -inf marks arms that are
    not available.
    """
    by_arm = _by_arm(values)
    best = by_arm.max(axis=0)
    largest = 0.0 if sizes is None else float(sizes.max(initial=0.0, where=np.isfinite(sizes)))
    if np.count_nonzero(
        by_arm >= best - 2.0 * TIE_TOLERANCE * np.maximum(sizes_of(best), largest)
    ) == len(values):
        return values  # nothing comes near the best, whatever its own size
    half = TIE_TOLERANCE / 2.0 * sizes_of(by_arm, None if sizes is None else sizes.T)
    least = (by_arm - half).max(axis=0)
    return np.asarray(np.where(by_arm + half >= least, best, by_arm).T)


def sizes_of(values: FloatArray, sizes: FloatArray | None = None) -> FloatArray:
    """Sizes that ties of ``values`` are judged by; any shape."""
    finite = np.where(np.isfinite(values), np.abs(values), 0.0)
    if sizes is not None:
        finite = np.maximum(finite, np.where(np.isfinite(sizes), sizes, 0.0))
    return np.maximum(finite, SMALLEST_SIZE)


def ties(values: FloatArray) -> BoolArray:
    """Which values (task, arm) equal the largest of their task; sums have to be made :func:`level`
    first.
    """
    by_arm = _by_arm(values)
    best = by_arm.max(axis=0)
    if np.isnan(best).any():
        raise ArgumentError(
            "values",
            "must be numbers, but that of an arm is NaN",
            cure="check the belief that returned it",
        )
    if np.isneginf(best).any():
        raise ArgumentError(
            "values", "are -inf for every arm of a task", cure="leave each task an arm"
        )
    return np.asarray((by_arm >= best - TIE_TOLERANCE * np.maximum(np.abs(best), SMALLEST_SIZE)).T)


def pick(values: FloatArray, uniform: FloatArray) -> IntArray:
    """Arm with the largest value (task, arm); where several tie, the one that ``uniform`` (task,)
    on [0, 1) points at.
    """
    what = "numbers (task, arm) with at least one arm"
    values = validation.shaped("values", values, (None, None), "fiu", what)
    if not values.shape[1]:
        raise ArgumentError("values", f"must be {what}", got=values.shape)
    what = f"one number for each of {len(values)} tasks"
    uniform = validation.shaped("uniform", uniform, (len(values),), "f", what)
    if uniform.size and not (uniform.min() >= 0.0 and uniform.max() < 1.0):
        raise ArgumentError(
            "uniform",
            "must lie in [0, 1), as rng.uniform() does",
            got=(uniform.min(), uniform.max()),
        )
    tied = ties(values).T  # (arm, task)
    count = tied.sum(axis=0)
    rank = np.minimum((uniform * count).astype(np.int64), count - 1)
    return np.argmax(tied & (np.cumsum(tied, axis=0) == rank + 1), axis=0).astype(np.int64)


def _by_arm(values: FloatArray) -> FloatArray:
    """Transpose ``(task, arm)``: NumPy reduces along a long axis ten times as fast as along a short
    one.
    """
    return np.ascontiguousarray(values.T)
