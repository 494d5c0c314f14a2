"""Coordinates of normal laws: means, logarithms of standard deviations, and what makes arms move
together.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.fitting.coordinates import Coordinates

FAR: Final = 3.0
"""A long way for logarithms and log odds: a factor of 20."""
MEANS: Final = 10.0
"""The same for means, in standard deviations."""
LOGS: Final = 30.0
"""Largest logarithm of a standard deviation, either way."""
LEAST: Final = 1e-9
"""Standard deviation of a law without spread, relative to its size."""


def joint(
    mean: FloatArray, cov: FloatArray, make: Callable[[FloatArray, FloatArray], Any]
) -> Coordinates:
    """Mean and covariance ``L L'``: the mean, the logarithms of L's diagonal, and what is below it;
    that is left out where arms are independent.
    """
    arms, sizes = len(mean), np.sqrt(np.diag(cov))
    spread = np.maximum(sizes, max(LEAST * float(np.abs(mean).max()), sizes.max() * 1e-6, 1e-12))
    below = np.tril_indices(arms, -1)
    joined = bool(np.abs(cov[below]).any())
    root = np.diag(spread)
    if joined:
        root = np.linalg.cholesky(cov + np.diag(1e-9 * spread**2))
    parts = [mean, np.log(np.diag(root))]
    widths = [MEANS * spread, np.full(arms, FAR)]
    if joined:
        parts.append(root[below])
        widths.append(FAR * spread[below[0]])

    def made(x: FloatArray) -> Any:
        L = np.diag(np.exp(np.clip(x[arms : 2 * arms], -LOGS, LOGS)))
        if joined:
            L[below] = x[2 * arms :]
        return make(x[:arms], L @ L.T)

    return Coordinates(np.concatenate(parts), np.concatenate(widths), made, ("mean", "cov"))


def alike(
    mean: float,
    var: float,
    correlation: float,
    make: Callable[[float, float, float], Any],
    *,
    least: float,
) -> Coordinates:
    """Mean, logarithm of the standard deviation, and ``log (c - least) / (1 - c)`` of the
    correlation c.
    """
    spread = max(np.sqrt(var), LEAST * abs(mean), 1e-12)
    share = float(np.clip((correlation - least) / (1.0 - least), 1e-6, 1.0 - 1e-6))
    x = np.array([mean, np.log(spread), np.log(share / (1.0 - share))])

    def made(x: FloatArray) -> Any:
        own = 1.0 / (1.0 + np.exp(-np.clip(x[2], -LOGS, LOGS)))
        var = float(np.exp(2.0 * np.clip(x[1], -LOGS, LOGS)))
        return make(float(x[0]), var, float(least + (1.0 - least) * own))

    width = np.array([MEANS * spread, FAR, FAR])
    return Coordinates(x, width, made, ("mean", "var", "correlation"))
