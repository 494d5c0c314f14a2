"""Choosing the largest of several values: the one rule for ties that every policy shares."""

from __future__ import annotations

from typing import Final

import numpy as np

from priorwise.core.types import BoolArray, FloatArray, IntArray

TIE_TOLERANCE: Final = 1e-12
"""Values this close, relative to the largest, are equal but for the order in which they were summed."""


def ties(values: FloatArray) -> BoolArray:
    """Which values (task, arm) equal the largest of their task."""
    best = values.max(axis=1, keepdims=True)
    if np.isnan(best).any():
        raise ValueError("the value of an arm is NaN; check the belief that returned it")
    return np.asarray(values >= best - TIE_TOLERANCE * np.abs(best))


def pick(values: FloatArray, uniform: FloatArray) -> IntArray:
    """Arm with the largest value (task, arm); where several tie, the one that ``uniform`` (task,) on [0, 1) points at."""
    tied = ties(values)
    count = tied.sum(axis=1)
    rank = np.minimum((uniform * count).astype(np.int64), count - 1)
    return np.argmax(tied & (np.cumsum(tied, axis=1) == rank[:, None] + 1), axis=1).astype(np.int64)
