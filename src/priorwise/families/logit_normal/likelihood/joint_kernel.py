"""Compiled expectation propagation of many tasks: their factors, what these make of the prior, and
the log likelihoods. It is the twin of ``propagated`` and of ``Sites.tilted``.
"""

from __future__ import annotations

import numpy as np
from numba import types

from priorwise.core.types import FloatArray, IntArray
from priorwise.families.gaussian.tiles import At
from priorwise.families.logit_normal import tilted
from priorwise.families.logit_normal.tiles import work_rows
from priorwise.families.logit_normal.tiles_propagation import (
    DROP,
    propagate,
    softplus_and_rate,
    tilt,
    variance_of,
)
from priorwise.kernels.compiling import INTS, LANES, ROW, ROWS, F, entry, inline
from priorwise.kernels.elementary import log
from priorwise.kernels.simd import WIDTH, load, maximum, splat, store, where_at_least

UNIT, WEIGHT = (np.ascontiguousarray(each) for each in tilted.FINE)
HALF_LOG_TWO_PI = 0.5 * float(np.log(2.0 * np.pi))
CUBE = types.Array(F, 3, "C")


@inline
def _log_mass(p, n, state, chol, g):
    """Log likelihood of a group of tasks; ``chol`` is what ``combine`` left."""
    arms, mean = n[At.ARMS], n[At.MEAN]
    zero, one = splat(0.0), splat(1.0)
    total = zero
    for a in range(arms):
        total = total + log(load(chol, a * (arms + 1) * LANES + g))  # of the inverse diagonal
        s, pulls = load(state, a * LANES + g), load(state, (arms + a) * LANES + g)
        t, b = load(state, (2 * arms + a) * LANES + g), load(state, (3 * arms + a) * LANES + g)
        m, var = load(state, (4 * arms + a) * LANES + g), variance_of(state, arms, a, a, g)
        share = maximum(1.0 - t * var, splat(1e-12))
        wide, centre = var / share, (m - var * b) / share
        _, _, top, mass = tilt(s, pulls, centre, wide, m, UNIT, WEIGHT, DROP)
        y = b / where_at_least(zero, t, one, t)
        scale = t * wide + 1.0
        gap, off = y - centre, (y - p[mean + a]) * (y - m)
        # log mass of the arm, minus that of its factor, plus the fit of the joint mean
        own = top + log(mass) + log(scale / maximum(wide, splat(1e-300))) * 0.5
        own = own - HALF_LOG_TWO_PI + gap * gap * t / scale * 0.5 - t * off * 0.5
        soft, _ = softplus_and_rate(m)
        own = where_at_least(zero, wide, s * m - pulls * soft, own)  # log odds that are known
        total = total + where_at_least(zero, pulls, zero, own)
    return total


@entry(types.void(ROW, INTS, ROWS, ROWS, ROWS, ROWS, ROWS, ROWS, CUBE, ROW))
def propagate_tasks(
    p: FloatArray,  # numbers of the prior; its mean is overwritten where there are offsets
    n: IntArray,  # and their places
    offsets: FloatArray,  # (task, arm), added to the mean; no task for none
    s: FloatArray,  # (task, arm)
    pulls: FloatArray,  # (task, arm)
    precision: FloatArray,  # out (task, arm), of the factors
    shift: FloatArray,  # out (task, arm)
    mean: FloatArray,  # out (task, arm), of the log odds
    root: FloatArray,  # out (task, arm, arm), of their covariance
    values: FloatArray,  # out (task,), log likelihoods
) -> None:
    """Find the factors of each task, and what follows from them.

    Tasks with offsets have means of their own, so that each stands alone in its group of lanes.
    """
    tasks, arms = s.shape
    apart = WIDTH if len(offsets) else 1
    centre = p[n[At.MEAN] : n[At.MEAN] + arms].copy()
    state = np.zeros((5 * arms + arms * arms, LANES))
    scratch = np.zeros((work_rows(arms), LANES))
    own = np.empty((1, LANES))
    for first in range(0, tasks, LANES // apart):
        size = min(LANES // apart, tasks - first)
        state[: 2 * arms] = 0.0
        for k in range(size):
            for a in range(arms):
                state[a, k * apart] = s[first + k, a]
                state[arms + a, k * apart] = pulls[first + k, a]
        for g in range(0, size * apart, WIDTH):
            for a in range(arms if apart > 1 else 0):
                p[n[At.MEAN] + a] = centre[a] + offsets[first + g // WIDTH, a]
            propagate(p, n, state, scratch, g)
            store(own, g, _log_mass(p, n, state, scratch, g))
        for k in range(size):
            lane = k * apart
            values[first + k] = own[0, lane]
            for a in range(arms):
                precision[first + k, a] = state[2 * arms + a, lane]
                shift[first + k, a] = state[3 * arms + a, lane]
                mean[first + k, a] = state[4 * arms + a, lane]
                for b in range(arms):
                    root[first + k, a, b] = state[5 * arms + a * arms + b, lane]
