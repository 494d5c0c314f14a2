"""Look-ahead of arms with a joint normal prior; see ``priorwise.families.gaussian.tiles`` for the
belief.
"""

from __future__ import annotations

import numpy as np

from priorwise.families.gaussian.tiles import At
from priorwise.kernels.compiling import LANES, LOOK, inline, tile
from priorwise.kernels.random import call_key, normals
from priorwise.kernels.simd import WIDTH, fma, load, maximum, splat, sqrt, store


@inline
def ahead_of(state, dim, f, noise_var, shifted, shifted_row, gain_row):
    """Potter's update of the root alone, into ``shifted``, with L f / s in the rows from
    ``gain_row`` on.
    """
    for g in range(0, LANES, WIDTH):
        v = splat(noise_var)
        s = v
        for j in range(dim):
            fj = load(f, j * LANES + g)
            s = fma(fj, fj, s)
        inverse = splat(1.0) / s
        shrink = splat(-1.0) / (s + sqrt(v * s))
        for i in range(dim):
            row = (dim + i * dim) * LANES + g
            k = splat(0.0)
            for j in range(dim):
                k = fma(load(state, row + j * LANES), load(f, j * LANES + g), k)
            store(shifted, (gain_row + i) * LANES + g, k * inverse)
            k = k * shrink
            for j in range(dim):
                target = (shifted_row + i * dim + j) * LANES + g
                store(shifted, target, fma(k, load(f, j * LANES + g), load(state, row + j * LANES)))


@tile(LOOK)
def arm_look(p, n, keys, step, call, k1, k2, state, signal, mask, scratch, now, ahead, sizes):
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
                spread = splat(0.0)
                for j in range(arms):
                    fj = load(state, (f_row + j) * LANES + g)
                    spread = fma(fj, fj, spread)
                deviation = sqrt(spread) * load(pair_rows, g)
                residual = fma(noise_std, load(pair_rows, LANES + g), deviation)
                best = splat(-np.inf)
                for b in range(arms):
                    s = splat(0.0)
                    for j in range(arms):
                        s = fma(
                            load(scratch, (root + b * arms + j) * LANES + g),
                            load(z_rows, j * LANES + g),
                            s,
                        )
                    mean = fma(
                        load(scratch, (gain + b) * LANES + g), residual, load(state, b * LANES + g)
                    )
                    best = maximum(best, fma(s, scale, mean) + load(mask, b * LANES + g))
                place = arm * LANES + g
                store(now, place, load(now, place) + load(state, place) + deviation)
                store(ahead, place, load(ahead, place) + best)
