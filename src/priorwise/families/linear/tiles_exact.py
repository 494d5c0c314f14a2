"""Tile functions of linear rewards for policies that read quantiles, exact look-ahead, or many
draws of few tasks.
"""

from __future__ import annotations

import numpy as np

from priorwise.families.gaussian.tiles import At, affine
from priorwise.families.gaussian.tiles_exact import gains_of, length_squared
from priorwise.families.linear.tiles import direction, project
from priorwise.kernels.compiling import BEST_AFTER, DRAW_EACH, LANES, QUANTILE, inline, tile
from priorwise.kernels.normal import REACH, exp, expected_maximum, normals_by_lane
from priorwise.kernels.simd import (
    WIDTH,
    fma,
    load,
    maximum,
    minimum,
    splat,
    sqrt,
    store,
)

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
NODES, WEIGHTS = ((_NODES + 1.0) / 2.0) ** 3, _WEIGHTS / 2.0 * 3.0 * ((_NODES + 1.0) / 2.0) ** 2
"""Nodes and weights of an integral over [0, 1] that crowd at 0."""


@tile(QUANTILE)
def quantile(p, n, level, normal, state, signal, scratch, values):
    """Posterior quantiles of the arms' values."""
    arms, dim = n[At.ARMS], n[At.DIM]
    f = scratch[:dim]
    project(signal, state, arms, dim, values)
    for arm in range(arms):
        direction(state, dim, signal[arm * dim : (arm + 1) * dim], f)
        for g in range(0, LANES, WIDTH):
            deviation = sqrt(length_squared(f, 0, dim, splat(0.0), g))
            place = arm * LANES + g
            store(values, place, fma(deviation, splat(normal), load(values, place)))


@tile(DRAW_EACH)
def draw_each(p, n, keys, ats, numbers, state, signal, scratch, values):
    """Values of the arms under one posterior draw of the weights, with a draw number of its own for
    each lane.
    """
    dim = n[At.DIM]
    normals_by_lane(keys, ats, numbers, scratch[:dim])
    affine(state, 0, state, dim, scratch, 1.0, dim, scratch, dim)
    project(signal, scratch[dim:], n[At.ARMS], dim, values)


@inline
def expected_length(state, gains, dim, g):
    """E|m + g Z| by quadrature on both sides of the Z that comes nearest to 0."""
    mm = length_squared(state, 0, dim, splat(0.0), g)
    gg = length_squared(gains, 0, dim, splat(0.0), g)
    mg = splat(0.0)
    for j in range(dim):
        mg = fma(load(state, j * LANES + g), load(gains, j * LANES + g), mg)
    nearest = (0.0 - mg) / maximum(gg, splat(1e-300))
    nearest = minimum(maximum(nearest, splat(-REACH)), splat(REACH))
    total, zero, mg = splat(0.0), splat(0.0), mg * 2.0
    for side in range(2):
        width = splat(REACH if side else -REACH) - nearest
        part = zero
        for k in range(len(NODES)):
            z = fma(width, splat(NODES[k]), nearest)
            length = sqrt(maximum(fma(z, fma(z, gg, mg), mm), zero))
            part = fma(length * exp(z * z * -0.5), splat(WEIGHTS[k]), part)
        total = fma(part, maximum(width, zero - width), total)
    return total * (1.0 / np.sqrt(2.0 * np.pi))


@tile(BEST_AFTER)
def best_after(p, n, state, signal, mask, scratch, values):
    """Expected best posterior mean over fresh contexts and the reward of each arm."""
    arms, dim, pool = n[At.ARMS], n[At.DIM], n[At.POOL]
    f, gains = scratch[:dim], scratch[dim : 2 * dim]
    levels, slopes = scratch[2 * dim : 2 * dim + arms], scratch[2 * dim + arms : 2 * dim + 2 * arms]
    x = scratch[2 * dim + 2 * arms :]
    features, worth = n[At.CONTEXTS], n[At.WORTH]
    for arm in range(arms):
        direction(state, dim, signal[arm * dim : (arm + 1) * dim], f)
        gains_of(state, dim, f, 0, p[n[At.NOISE_VAR] + arm], gains)
        values[arm] = 0.0
        for entry in range(pool):
            for k in range(arms * dim):
                x[k] = p[features + entry * arms * dim + k]
            project(x, state, arms, dim, levels)
            project(x, gains, arms, dim, slopes)
            for g in range(0, LANES, WIDTH):
                best = expected_maximum(levels, slopes, mask, arms, g)
                store(values, arm * LANES + g, load(values, arm * LANES + g) + best * (1.0 / pool))
        if pool == 0:
            for g in range(0, LANES, WIDTH):
                store(values, arm * LANES + g, expected_length(state, gains, dim, g))
            for lane in range(LANES):
                available = 0
                for other in range(arms):
                    available += 1 if mask[other, lane] == 0.0 else 0
                values[arm, lane] *= p[worth + available]


def scratch_rows(arms: int, dim: int) -> int:
    """Rows of scratch that exact look-ahead needs."""
    return 2 * dim + 2 * arms + arms * dim
