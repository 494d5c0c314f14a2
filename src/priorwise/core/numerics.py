"""Small linear algebra that families and tools share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from priorwise.core.types import BoolArray, FloatArray

ROUNDING: Final = 1e-12
"""Eigenvalues this small, relative to the largest, are rounding of zero."""


@dataclass(frozen=True, eq=False)
class Projection:
    """A positive semi-definite matrix and whether it took a change to get there."""

    matrix: FloatArray
    clipped: bool


def symmetric(matrix: FloatArray) -> FloatArray:
    """Return the symmetric part, of one matrix or of a stack of them."""
    return np.asarray((matrix + np.swapaxes(matrix, -1, -2)) / 2.0)


def project_psd(matrix: FloatArray, floor: float = 0.0) -> Projection:
    """Nearest symmetric matrix, in the Frobenius norm, whose eigenvalues are at least ``floor``:
    raise the smaller ones to it.

    ``clipped`` tells whether any eigenvalue lay below the floor by more than rounding.
    """
    even = symmetric(matrix)
    values, vectors = np.linalg.eigh(even)
    if values[0] >= floor:
        return Projection(even, clipped=False)
    clipped = bool(values[0] < floor - ROUNDING * np.abs(values).max())
    return Projection(symmetric(vectors * np.maximum(values, floor) @ vectors.T), clipped)


def rescaled(log_weights: FloatArray, instead: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Shift log weights ``(task, possibility)`` to a largest of 0, or take others instead where all
    are impossible; also say where they are, ``(task,)``.
    """
    best = log_weights.max(axis=1, keepdims=True)
    impossible = np.isneginf(best)
    shifted = log_weights - np.where(impossible, 0.0, best)
    return np.where(impossible, instead, shifted), impossible[:, 0]
