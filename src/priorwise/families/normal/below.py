"""Probability that a few jointly normal values are all below their limits, exact to about 1e-9."""

from functools import lru_cache
from typing import Final

import numpy as np

from priorwise.core.types import FloatArray

MOST_VALUES: Final = 5
SINGULAR: Final = 1e-11
NOUGHT: Final = 1e-150
"""What stands for a limit of 0, by which limits are divided."""
FAR: Final = 40.0
"""Standard deviations beyond which a limit does not count."""
NODES: Final = (16, 24, 40, 64, 96, 160)
"""Of finer and finer rules, until two agree."""
AGREED: Final = 1e-8
"""Two rules this close: the finer one is about the square of that from the truth."""


def all_below(limits: FloatArray, correlations: FloatArray) -> FloatArray:
    """``P(X_k < h_k for all k)`` of up to :data:`MOST_VALUES` standard normal values, for limits
    ``(row, n)`` and correlations ``(row, n, n)``; what is on their diagonal is not read.
    """
    from scipy.special import ndtr

    n = limits.shape[1]
    if n < 2:
        return np.asarray(ndtr(limits).prod(axis=1))
    if n == 2:
        return both_below(limits[:, 0], limits[:, 1], correlations[:, 0, 1])
    from priorwise.families.normal.plackett import orthants

    h, c = (np.ascontiguousarray(each) for each in (np.clip(limits, -FAR, FAR), correlations))
    side = np.where(c[:, 0] < 0.0, -1.0, 1.0)  # of values on a line: X_k = side Z
    side[:, 0] = 1.0
    on_a_line = (np.abs(c - side[:, :, None] * side[:, None, :]) < SINGULAR) | np.eye(n, dtype=bool)
    top = np.where(side > 0.0, h, FAR).min(axis=1)
    bottom = np.where(side < 0.0, -h, -FAR).max(axis=1)
    found = np.where(on_a_line.all(axis=(1, 2)), ndtr(top) - ndtr(bottom), np.nan)
    rough = np.flatnonzero(np.isnan(found))
    for nodes in NODES:
        finer = np.empty(rough.size)
        orthants(h[rough], c[rough], _rule(nodes), finer)
        agreed = np.abs(finer - found[rough]) < AGREED
        found[rough] = finer
        rough = rough[~agreed]
    return np.clip(found, 0.0, 1.0)


@lru_cache(maxsize=len(NODES))
def _rule(nodes: int) -> FloatArray:
    """Gauss-Legendre nodes in s with ``1 - t = s^4``: t, ``1 - t`` and weights."""
    x, weights = np.polynomial.legendre.leggauss(nodes)
    s = (x + 1.0) / 2.0
    return np.stack([1.0 - s**4, s**4, 2.0 * s**3 * weights])


def both_below(h: FloatArray, k: FloatArray, rho: FloatArray | float) -> FloatArray:
    """``P(X < h, Y < k)`` of standard normal values with correlation ``rho``, by Owen's T
    function.
    """
    from scipy.special import ndtr, owens_t

    rho = np.where(np.abs(rho) > 1.0 - SINGULAR, np.sign(rho), rho)  # 1 but for rounding
    rest = np.sqrt(np.maximum((1.0 - rho) * (1.0 + rho), SINGULAR**2))
    h, k = (np.where(np.abs(x) < NOUGHT, NOUGHT, x) for x in (h, k))
    with np.errstate(over="ignore"):
        first = owens_t(h, (k - rho * h) / (h * rest))
        second = owens_t(k, (h - rho * k) / (k * rest))
    both = 0.5 * (ndtr(h) + ndtr(k)) - first - second
    return np.maximum(np.where((h > 0.0) == (k > 0.0), both, both - 0.5), 0.0)
