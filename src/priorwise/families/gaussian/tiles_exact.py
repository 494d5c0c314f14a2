"""Tile functions of normal beliefs for policies that read quantiles, exact look-ahead, or many
draws of few tasks; see ``priorwise.families.gaussian.tiles`` for the belief.
"""

from __future__ import annotations

from priorwise.families.gaussian.tiles import At, affine
from priorwise.kernels.compiling import BEST_AFTER, DRAW_EACH, LANES, QUANTILE, inline, tile
from priorwise.kernels.normal import expected_maximum, normals_by_lane
from priorwise.kernels.simd import WIDTH, fma, load, splat, sqrt, store


@inline
def length_squared(f, row, dim, start, g):
    """Return ``start`` plus the sum of squares of ``dim`` rows, for a group of lanes."""
    square = start
    for j in range(dim):
        fj = load(f, (row + j) * LANES + g)
        square = fma(fj, fj, square)
    return square


@inline
def gains_of(state, dim, f, f_row, noise_var, gains):
    """Write S x / sqrt(x'S x + v) given f = L'x: the slope of the posterior mean in the
    standardised reward.
    """
    for g in range(0, LANES, WIDTH):
        scale = splat(1.0) / sqrt(length_squared(f, f_row, dim, splat(noise_var), g))
        for i in range(dim):
            k = splat(0.0)
            for j in range(dim):
                k = fma(
                    load(state, (dim + i * dim + j) * LANES + g),
                    load(f, (f_row + j) * LANES + g),
                    k,
                )
            store(gains, i * LANES + g, k * scale)


@tile(QUANTILE)
def arm_quantile(p, n, level, normal, state, signal, scratch, values):
    """Posterior quantiles: the mean plus so many deviations."""
    arms = n[At.ARMS]
    for arm in range(arms):
        for g in range(0, LANES, WIDTH):
            deviation = sqrt(length_squared(state, arms + arm * arms, arms, splat(0.0), g))
            store(
                values, arm * LANES + g, fma(deviation, splat(normal), load(state, arm * LANES + g))
            )


@tile(BEST_AFTER)
def arm_best_after(p, n, state, signal, mask, scratch, values):
    """Write E[max_b m_b + g_b Z] for each pulled arm; f = L'x is a row of L."""
    arms = n[At.ARMS]
    for arm in range(arms):
        gains_of(state, arms, state, arms + arm * arms, p[n[At.NOISE_VAR] + arm], scratch)
        for g in range(0, LANES, WIDTH):
            store(values, arm * LANES + g, expected_maximum(state, scratch, mask, arms, g))


@tile(DRAW_EACH)
def arm_draw_each(p, n, keys, ats, numbers, state, signal, scratch, values):
    """One posterior draw of the means, with a draw number of its own for each lane."""
    arms = n[At.ARMS]
    normals_by_lane(keys, ats, numbers, scratch[:arms])
    affine(state, 0, state, arms, scratch, 1.0, arms, values, 0)
