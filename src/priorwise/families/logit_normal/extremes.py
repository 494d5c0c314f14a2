"""The means of the largest and of the smallest of a few rates whose log odds are jointly normal.

With log odds ``z ~ N(mean, cov)`` of one to three arms,

    E[max rate] = sum_a E[rate(z_a) P(z_b < z_a for all b | z_a)],

one integral for each arm: given ``z_a`` the others are normal, and the probability is a normal
distribution function of at most two variables. Adaptive quadrature makes it exact to 1e-9.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from priorwise.core.seen import Seen
from priorwise.core.types import FloatArray
from priorwise.families.logit_normal.tilted import rates
from priorwise.families.normal.argmax import SINGULAR, both_below
from priorwise.theory.numerics import integrate

MOST_ARMS: Final = 3
MOST_LAWS: Final = 16
"""Distinct distributions among the tasks beyond which draws are cheaper."""
EDGES: Final = np.linspace(-9.0, 9.0, 13)
"""Ends of panels, in standard deviations."""
TOLERANCE: Final = 1e-12


def rate_extremes(
    mean: FloatArray, cov: FloatArray, seen: Seen
) -> tuple[FloatArray, FloatArray] | None:
    """``E[max]`` and ``E[min]`` of the available arms' rates, ``(task,)`` each, for log odds of
    means ``(task, arm)`` and covariances; None where that takes long: with more than three arms, or
    with many distributions among the tasks.
    """
    tasks, arms = mean.shape
    if arms > MOST_ARMS:
        return None
    mask = np.ones((tasks, arms)) if seen.mask is None else np.broadcast_to(seen.mask, mean.shape)
    rows = np.concatenate([mask, mean, cov.reshape(tasks, -1)], axis=1)
    distinct, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    if len(distinct) > MOST_LAWS:
        return None
    ends = np.empty((2, len(distinct)))
    for column, task in enumerate(first):
        some = np.flatnonzero(mask[task])
        law = mean[task, some], cov[task][np.ix_(some, some)]
        ends[:, column] = [_extreme(*law, sign) for sign in (1.0, -1.0)]
    high, low = ends[:, place.reshape(-1)]
    return high, low


def _extreme(mean: FloatArray, cov: FloatArray, sign: float) -> float:
    """Mean of the largest rate, or with ``sign`` -1 of the smallest, ``(arm,)``."""
    total, mass = 0.0, 0.0
    for arm in range(mean.size):
        others = np.delete(np.arange(mean.size), arm)
        std = np.sqrt(cov[arm, arm])
        slope = cov[others, arm] / std if std > 0.0 else np.zeros(others.size)
        spread = cov[np.ix_(others, others)] - np.outer(slope, slope)
        rounding = SINGULAR * (cov[arm, arm] + np.diag(cov)[others]) + np.finfo(np.float64).tiny
        scale = np.sqrt(np.maximum(np.diag(spread), rounding))
        ahead = sign * (mean[arm] - mean[others]) / scale
        gain = sign * (std - slope) / scale
        spread = spread / np.outer(scale, scale)

        def density(t: FloatArray) -> FloatArray:
            behind = _all_below(ahead[:, None] + gain[:, None] * t, spread)  # noqa: B023
            return np.asarray(np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi) * behind)

        def rate(t: FloatArray) -> FloatArray:
            return rates(mean[arm] + std * t) * density(t)  # noqa: B023

        with np.errstate(divide="ignore", invalid="ignore"):
            level = np.append(-ahead / gain, -mean[arm] / std)
        inner = level[np.abs(level) < EDGES[-1]]  # where an arm draws level, and a rate is a half
        edges = np.unique(np.concatenate([EDGES, inner]))
        total += integrate(rate, edges, TOLERANCE)
        mass += integrate(density, edges, TOLERANCE)
    return total / mass  # equal arms share what none of them wins


def _all_below(limit: FloatArray, spread: FloatArray) -> FloatArray:
    """``P(all values below their limits)`` for limits ``(value, node)`` and correlations."""
    from scipy.special import ndtr

    if len(limit) < 2:
        return np.asarray(ndtr(limit).prod(axis=0))
    return both_below(limit[0], limit[1], float(spread[0, 1]))
