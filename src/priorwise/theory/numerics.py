"""Numerics that families and tools share: small linear algebra, differences that keep their digits,
and adaptive quadrature.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from priorwise.core.types import BoolArray, FloatArray

ROUNDING: Final = 1e-12  # eigenvalues this small, relative to the largest, are rounding of zero
NODES, WEIGHTS = np.polynomial.legendre.leggauss(32)
DEEPEST: Final = 40  # how often a panel may be halved
MOST: Final = 500
"""Panels that may be halved at a time; more disagree only where rounding exceeds the tolerance."""


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


def exp_excess(y: FloatArray) -> FloatArray:
    """``exp(y) - 1 - y``, never negative, with all its digits near 0."""
    near = np.where(np.abs(y) < 0.5, y, 0.0)
    series = np.zeros_like(near)
    for k in range(16, 1, -1):  # Horner: y^2/2 (1 + y/3 (1 + y/4 (...)))
        series = near / k * (1.0 + series) if k > 2 else near * near / 2.0 * (1.0 + series)
    with np.errstate(over="ignore"):
        return np.where(np.abs(y) < 0.5, series, np.expm1(y) - y)


def normal_mass(start: float, width: float) -> float:
    """``Phi(start + width) - Phi(start)``, with all its digits for small widths and in both
    tails.
    """
    from scipy.special import ndtr

    if abs(width) < 1.0:
        x = start + width * (NODES + 1.0) / 2.0
        return float(width / 2.0 * (WEIGHTS @ np.exp(-0.5 * x * x)) / np.sqrt(2.0 * np.pi))
    end = start + width
    if start + end > 0.0:
        return float(ndtr(-start) - ndtr(-end))
    return float(ndtr(end) - ndtr(start))


def integrate(
    f: Callable[[FloatArray], FloatArray], edges: FloatArray, tolerance: float = 1e-13
) -> float:
    """Integrate over panels between sorted edges; halve the panels whose two halves disagree with
    the whole.

    ``f`` maps ``(n,)`` to ``(n,)``. Gauss-Legendre with 32 nodes a panel; ``tolerance`` is relative
    to the integral of ``|f|``.
    """
    left, right = edges[:-1], edges[1:]
    keep = right > left
    left, right = left[keep], right[keep]
    whole = _panels(f, left, right)
    scale = float(np.abs(whole).sum())
    done: list[float] = []
    for depth in range(DEEPEST + 1):
        middle = (left + right) / 2.0
        lower, upper = _panels(f, left, middle), _panels(f, middle, right)
        scale = max(scale, float(np.abs(lower).sum() + np.abs(upper).sum()))
        rough = np.abs(lower + upper - whole) > tolerance * max(scale, 1e-300)
        if depth == DEEPEST or rough.sum() > MOST:  # only rounding is left
            rough[:] = False
        done.extend((lower + upper)[~rough].tolist())
        if not rough.any():
            break
        halves = (left, middle), (middle, right), (lower, upper)
        left, right, whole = (np.concatenate([a[rough], b[rough]]) for a, b in halves)
    return float(np.sum(done))


def _panels(
    f: Callable[[FloatArray], FloatArray], left: FloatArray, right: FloatArray
) -> FloatArray:
    half = (right - left) / 2.0
    x = (left + half)[:, None] + half[:, None] * NODES
    return np.asarray(half * (f(x.ravel()).reshape(x.shape) @ WEIGHTS))
