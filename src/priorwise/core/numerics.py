"""Small linear algebra that families and tools share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from priorwise.core.types import FloatArray

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


def positive_root(precision: FloatArray, least: float = ROUNDING) -> tuple[FloatArray, bool]:
    """Return a root C of the inverse, ``C C' = precision^-1``, and whether all directions were
    determined.

    Directions whose eigenvalue is below ``least`` times the largest, or negative, are not
    determined by the data; they are given the precision ``least`` times the largest.
    """
    even = symmetric(precision)
    if np.diag(even).min() > 1e-300:
        scale = np.sqrt(np.diag(even))
        try:
            root = np.linalg.cholesky(
                even / scale / scale[:, None] - 10.0 * least * np.eye(len(even))
            )
        except np.linalg.LinAlgError:
            pass
        else:
            return np.asarray(np.linalg.inv(root).T / scale[:, None]), True
    values, vectors = np.linalg.eigh(even)
    floor = max(least * float(values[-1]), 1e-300)
    return np.asarray(vectors / np.sqrt(np.maximum(values, floor))), bool(values[0] > floor)
