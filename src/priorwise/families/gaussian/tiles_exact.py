"""Tile functions of normal beliefs for policies that read quantiles, look ahead, or take many draws
of few tasks; see ``priorwise.families.gaussian.tiles`` for the belief.
"""

import numpy as np

from priorwise.families.gaussian.tiles import At, affine, dot
from priorwise.kernels.compiling import (
    BEST_AFTER,
    BEST_AFTER_PULLS,
    DRAW_EACH,
    LANES,
    LOOK,
    QUANTILE,
    inline,
    tile,
)
from priorwise.kernels.normal import expected_maximum, normals_by_lane
from priorwise.kernels.random import call_key, normals
from priorwise.kernels.simd import WIDTH, fma, load, maximum, splat, sqrt, store


@inline
def gains_of(state, dim, f, f_row, noise_var, gains):
    """Write S x / sqrt(x'S x + v) given f = L'x: the slope of the posterior mean in the
    standardised reward.
    """
    for g in range(0, LANES, WIDTH):
        scale = splat(1.0) / sqrt(dot(f, f_row, f, f_row, dim, splat(noise_var), g))
        for i in range(dim):
            k = dot(state, dim + i * dim, f, f_row, dim, splat(0.0), g)
            store(gains, i * LANES + g, k * scale)


@tile(QUANTILE)
def quantile(p, n, level, normal, state, signal, scratch, values):
    """Posterior quantiles: the mean plus so many deviations."""
    arms = n[At.ARMS]
    for arm in range(arms):
        for g in range(0, LANES, WIDTH):
            row, place = arms + arm * arms, arm * LANES + g
            deviation = sqrt(dot(state, row, state, row, arms, splat(0.0), g))
            store(values, place, fma(deviation, splat(normal), load(state, place)))


@tile(BEST_AFTER)
def best_after(p, n, state, signal, mask, scratch, values):
    """Write E[max_b m_b + g_b Z] for each pulled arm; f = L'x is a row of L."""
    arms = n[At.ARMS]
    for arm in range(arms):
        gains_of(state, arms, state, arms + arm * arms, p[n[At.NOISE_VAR] + arm], scratch)
        for g in range(0, LANES, WIDTH):
            store(values, arm * LANES + g, expected_maximum(state, scratch, mask, arms, g))


@tile(BEST_AFTER_PULLS)
def best_after_pulls(p, n, pulls, state, signal, mask, scratch, values):
    """Write the same for the mean of several rewards, whose noise has the variance v_a / pulls;
    scratch keeps the covariance, then has the slopes.
    """
    arms = n[At.ARMS]
    if pulls == 0:
        for place in range(0, arms * LANES, WIDTH):
            store(values, place, load(state, place))
        for a in range(arms):
            for b in range(arms):
                for g in range(0, LANES, WIDTH):
                    both = dot(state, arms + a * arms, state, arms + b * arms, arms, splat(0.0), g)
                    store(scratch, (a * arms + b) * LANES + g, both)
        return
    slopes = scratch[arms * arms :]
    for arm in range(arms):
        noise = p[n[At.NOISE_VAR] + arm] / pulls
        for g in range(0, LANES, WIDTH):
            scale = splat(1.0) / sqrt(load(scratch, arm * (arms + 1) * LANES + g) + noise)
            for b in range(arms):
                both = load(scratch, (arm * arms + b) * LANES + g)
                store(slopes, b * LANES + g, both * scale)
            store(values, arm * LANES + g, expected_maximum(state, slopes, mask, arms, g))


@tile(DRAW_EACH)
def draw_each(p, n, keys, ats, numbers, state, signal, scratch, values):
    """One posterior draw of the means, with a draw number of its own for each lane."""
    arms = n[At.ARMS]
    normals_by_lane(keys, ats, numbers, scratch[:arms])
    affine(state, 0, state, arms, scratch, 1.0, arms, values, 0)


@inline
def ahead_of(state, dim, f, noise_var, shifted, shifted_row, gain_row):
    """Potter's update of the root alone, into ``shifted``, with L f / s in the rows from
    ``gain_row`` on.
    """
    for g in range(0, LANES, WIDTH):
        v = splat(noise_var)
        s = dot(f, 0, f, 0, dim, v, g)
        inverse = splat(1.0) / s
        shrink = splat(-1.0) / (s + sqrt(v * s))
        for i in range(dim):
            row = (dim + i * dim) * LANES + g
            k = dot(state, dim + i * dim, f, 0, dim, splat(0.0), g)
            store(shifted, (gain_row + i) * LANES + g, k * inverse)
            k = k * shrink
            for j in range(dim):
                target = (shifted_row + i * dim + j) * LANES + g
                store(shifted, target, fma(k, load(f, j * LANES + g), load(state, row + j * LANES)))


@inline
def drawn_ahead(state, dim, shifted, shifted_row, gain_row, residual, z, scale, i, g):
    """Weight i of a draw after Potter's update: its mean moves by the gain times the residual."""
    s = dot(shifted, shifted_row + i * dim, z, 0, dim, splat(0.0), g)
    gain = load(shifted, (gain_row + i) * LANES + g)
    return fma(s, scale, fma(gain, residual, load(state, i * LANES + g)))


@tile(LOOK)
def look(p, n, keys, step, call, k1, k2, state, signal, mask, scratch, now, ahead, sizes):
    """Look one step past pulling each arm: the mean of k2 look-ahead draws is one draw with
    covariance S / k2 (exact in law).
    """
    arms = n[At.ARMS]
    root, gain, z, pair = 0, arms * arms, arms * arms + arms, arms * arms + 2 * arms
    scale = splat(1.0 / np.sqrt(k2))
    z_rows = scratch[z : z + arms]
    pair_rows = scratch[pair : pair + 2]
    for arm in range(arms):
        f_row = arms + arm * arms  # f = L'x is a row of L
        noise_std = splat(p[n[At.NOISE_STD] + arm])
        ahead_of(state, arms, state[f_row:], p[n[At.NOISE_VAR] + arm], scratch, root, gain)
        for _ in range(k1):
            normals(keys, call_key(step, call), 0, pair_rows)
            normals(keys, call_key(step, call + 1), 0, z_rows)
            call += 2
            for g in range(0, LANES, WIDTH):
                spread = sqrt(dot(state, f_row, state, f_row, arms, splat(0.0), g))
                deviation = spread * load(pair_rows, g)
                residual = fma(noise_std, load(pair_rows, LANES + g), deviation)
                best = splat(-np.inf)
                for b in range(arms):
                    drawn = drawn_ahead(
                        state, arms, scratch, root, gain, residual, z_rows, scale, b, g
                    )
                    best = maximum(best, drawn + load(mask, b * LANES + g))
                place = arm * LANES + g
                store(now, place, load(now, place) + load(state, place) + deviation)
                store(ahead, place, load(ahead, place) + best)
