"""The means of the largest and of the smallest of a few rates whose log odds are jointly normal.

With log odds ``z ~ N(mean, cov)`` of up to six arms,

    E[max rate] = sum_a E[rate(z_a) P(z_b < z_a for all b | z_a)],

one integral for each arm: given ``z_a`` the others are normal, and the probability is a normal
distribution function of the other arms. Adaptive quadrature makes it exact to 1e-8.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from priorwise.core.seen import Seen
from priorwise.core.types import FloatArray
from priorwise.families.logit_normal.tilted import rates
from priorwise.families.normal.argmax import (
    MOST_EXACT,
    MOST_FIRST,
    equal_arms,
    law_rows,
    read_row,
)
from priorwise.families.normal.below import SINGULAR, all_below
from priorwise.theory.numerics import integrate

MOST_LAWS: Final = 16
"""Distinct distributions among the tasks beyond which draws are cheaper; 1 for more arms than
``MOST_EXACT``, where each takes seconds.
"""
REACH: Final = 9.0
"""Standard deviations beyond which nothing is left."""
TOLERANCE: Final = 1e-12
ROUGH: Final = 1e-8
"""The same where the normal distribution function is no better."""


def rate_extremes(
    mean: FloatArray, cov: FloatArray, seen: Seen
) -> tuple[FloatArray, FloatArray] | None:
    """``E[max]`` and ``E[min]`` of the available arms' rates, ``(task,)`` each, for log odds of
    means ``(task, arm)`` and covariances; None where that takes long: with more than six arms, or
    with many distributions among the tasks.
    """
    arms = mean.shape[1]
    if arms > MOST_FIRST:
        return None
    rows = law_rows(mean, cov, seen.mask)
    if len(set(rows)) > (MOST_LAWS if arms <= MOST_EXACT else 1):
        return None
    high, low = np.array([_ends(row) for row in rows]).T
    return high, low


@lru_cache(maxsize=512)
def _ends(row: bytes) -> tuple[float, float]:
    """Mean of the largest and of the smallest rate of one task."""
    mean, cov, available = read_row(row)
    first, _ = equal_arms(mean, cov, available)
    some = np.flatnonzero(available[0] & (first[0] == np.arange(first.size)))
    law = mean[0, some], cov[0][np.ix_(some, some)]
    return _extreme(*law, 1.0), _extreme(*law, -1.0)


def _extreme(mean: FloatArray, cov: FloatArray, sign: float) -> float:
    """Mean of the largest rate, or with ``sign`` -1 of the smallest, ``(arm,)``, of which no two
    are always equal.
    """
    total, few = 0.0, mean.size < MOST_EXACT
    panels = np.linspace(-REACH, REACH, 13 if few else 5)
    for arm in range(mean.size):
        others = np.delete(np.arange(mean.size), arm)
        std = np.sqrt(cov[arm, arm])
        slope = cov[others, arm] / std if std > 0.0 else np.zeros(others.size)
        spread = cov[np.ix_(others, others)] - np.outer(slope, slope)
        rounding = SINGULAR * (cov[arm, arm] + np.diag(cov)[others]) + np.finfo(np.float64).tiny
        certain = np.diag(spread) < rounding
        scale = np.sqrt(np.maximum(np.diag(spread), rounding))
        ahead = sign * (mean[arm] - mean[others]) / scale
        gain = sign * (std - slope) / scale
        among = np.where(certain | certain[:, None], 0.0, spread / np.outer(scale, scale))
        among = np.clip(among, -1.0, 1.0)

        def inside(t: FloatArray) -> FloatArray:
            limits = ahead + t[:, None] * gain  # noqa: B023
            behind = all_below(limits, np.broadcast_to(among, (t.size, *among.shape)))  # noqa: B023
            density = np.exp(-0.5 * t * t) / np.sqrt(2.0 * np.pi)
            return np.asarray(rates(mean[arm] + std * t) * density * behind)  # noqa: B023

        with np.errstate(divide="ignore", invalid="ignore"):
            level = np.append(-ahead / gain, -mean[arm] / std)
        inner = level[np.abs(level) < REACH]  # where an arm draws level, and a rate is a half
        total += integrate(
            inside, np.unique(np.concatenate([panels, inner])), TOLERANCE if few else ROUGH
        )
    return total
