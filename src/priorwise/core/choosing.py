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
    if np.isneginf(best).any():
        raise ValueError("every value of a task is -inf, so that it has no arm to play; leave each task an available arm")
    return np.asarray(values >= best - TIE_TOLERANCE * np.abs(best))


def pick(values: FloatArray, uniform: FloatArray) -> IntArray:
    """Arm with the largest value (task, arm); where several tie, the one that ``uniform`` (task,) on [0, 1) points at."""
    values, uniform = np.asarray(values), np.asarray(uniform)
    if values.ndim != 2 or not values.shape[1] or values.dtype.kind not in "fiu":
        raise ValueError(f"values must be numbers (task, arm) with at least one arm, got {values.dtype} of shape {values.shape}")
    if uniform.shape != values.shape[:1] or uniform.dtype.kind != "f":
        raise ValueError(
            f"uniform must be one number for each of {len(values)} tasks, got {uniform.dtype} of shape {uniform.shape}"
        )
    if uniform.size and not (uniform.min() >= 0.0 and uniform.max() < 1.0):
        raise ValueError(f"uniform must lie in [0, 1), got {uniform.min():g} to {uniform.max():g}; rng.uniform() does")
    tied = ties(values)
    count = tied.sum(axis=1)
    rank = np.minimum((uniform * count).astype(np.int64), count - 1)
    return np.argmax(tied & (np.cumsum(tied, axis=1) == rank[:, None] + 1), axis=1).astype(np.int64)
