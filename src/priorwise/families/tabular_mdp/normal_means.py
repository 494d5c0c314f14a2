"""Normal priors of mean rewards by maximum marginal likelihood, one pair of state and action at a
time: ``ybar ~ N(mean, var + noise_var / n)``.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from priorwise.core.types import BoolArray, FloatArray
from priorwise.fitting.newton import Spot, climb

EDGE: Final = 1e-6
"""Variance, relative to the noise, below which means are the same in all tasks."""


def fit_means(
    pulls: FloatArray, sums: FloatArray, noise_var: float
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Means and variances, ``(state, action)``, from pulls and sums ``(task, state, action)``, and
    where the likelihood alone would rather have no variance.

    Half of ``log rho (1 - rho)``, with rho the share of the variance in a reward, is added to the
    likelihood, so that a pair never played has the variance of the noise, and mean 0.
    """
    shape = pulls.shape[1:]
    mean, var, edge = np.zeros(shape), np.full(shape, noise_var), np.zeros(shape, dtype=bool)
    for place in np.ndindex(*shape):
        n, total = pulls[(slice(None), *place)], sums[(slice(None), *place)]
        seen = n > 0
        if not seen.any():
            edge[place] = True
            continue
        y, s = total[seen] / n[seen], noise_var / n[seen]

        def value(at: FloatArray, y: FloatArray = y, s: FloatArray = s) -> float:
            v = np.exp(at[1])
            weak = np.log(v) - 2.0 * np.log1p(v / noise_var)
            return float(-0.5 * (np.log(v + s) + (y - at[0]) ** 2 / (v + s)).sum() + 0.5 * weak)

        def slopes(
            at: FloatArray, y: FloatArray = y, s: FloatArray = s
        ) -> tuple[FloatArray, FloatArray]:
            v, gap = np.exp(at[1]), y - at[0]
            w, rho = 1.0 / (v + s), v / (v + noise_var)
            gradient = np.array([(w * gap).sum(), 0.5 * v * (w**2 * gap**2 - w).sum() + 0.5 - rho])
            # expected, which is never negative
            curve = 0.5 * v**2 * (w**2).sum() + rho * (1.0 - rho)
            return gradient, np.diag([w.sum(), curve])

        begin = np.array([np.average(y, weights=1.0 / (s + noise_var)), np.log(noise_var)])
        low = np.array([-np.inf, np.log(EDGE * noise_var)])
        at = climb(lambda x: Spot(x, value(x), slopes), begin, low=low, longest=3.0).place.x
        mean[place], var[place] = at[0], np.exp(at[1])
        w = 1.0 / s
        centre = (w * y).sum() / w.sum()
        edge[place] = (w**2 * (y - centre) ** 2 - w).sum() <= 0.0  # falls from no variance on
    return mean, var, edge
