"""Numerics that distances share: differences that keep their digits, and adaptive quadrature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from priorwise.core.types import FloatArray

NODES, WEIGHTS = np.polynomial.legendre.leggauss(32)
DEEPEST: Final = 40
"""How often a panel may be halved."""
MOST: Final = 500
"""Panels that may be halved at a time; more disagree only where rounding exceeds the tolerance."""


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
        left, right = (
            np.concatenate([left[rough], middle[rough]]),
            np.concatenate([middle[rough], right[rough]]),
        )
        whole = np.concatenate([lower[rough], upper[rough]])
    return float(np.sum(done))


def _panels(
    f: Callable[[FloatArray], FloatArray], left: FloatArray, right: FloatArray
) -> FloatArray:
    half = (right - left) / 2.0
    x = (left + half)[:, None] + half[:, None] * NODES
    return np.asarray(half * (f(x.ravel()).reshape(x.shape) @ WEIGHTS))
