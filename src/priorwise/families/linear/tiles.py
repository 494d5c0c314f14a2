"""Tile functions of linear rewards in a context: the value of arm a is x_a'w, with a normal belief
about the weights w.

The belief, ``p`` and ``n`` are those of ``priorwise.families.gaussian.tiles`` with weights in place
of arms; the signal is the rows of the arms' features, one arm after the other.
"""

from __future__ import annotations

import numpy as np

from priorwise.families.gaussian.tiles import At, affine, potter
from priorwise.families.gaussian.tiles_look import ahead_of
from priorwise.kernels.compiling import (
    DRAW,
    LANES,
    LOOK,
    MEAN,
    SIGNAL,
    UPDATE,
    VALUES,
    inline,
    tile,
)
from priorwise.kernels.random import call_key, mix, normals, slot_key, unit
from priorwise.kernels.simd import WIDTH, fma, load, maximum, splat, sqrt, store


@inline
def contexts(p, n, keys, at, out):
    """Draw a context for each arm: uniform on the sphere, or one entry of the pool."""
    arms, dim, pool = n[At.ARMS], n[At.DIM], n[At.POOL]
    if pool == 0:
        for arm in range(arms):
            x = out[arm * dim : (arm + 1) * dim]
            normals(keys, at, arm, x)
            for g in range(0, LANES, WIDTH):
                square = splat(0.0)
                for j in range(dim):
                    xj = load(x, j * LANES + g)
                    square = fma(xj, xj, square)
                inverse = splat(1.0) / sqrt(square)
                for j in range(dim):
                    store(x, j * LANES + g, load(x, j * LANES + g) * inverse)
    else:
        slot = slot_key(at, 0, 0)
        for lane in range(LANES):
            entry = min(np.int64(unit(mix(keys[lane] + slot)) * pool), pool - 1)
            for k in range(arms * dim):
                out[k, lane] = p[n[At.CONTEXTS] + entry * arms * dim + k]


@inline
def project(x, w, arms, dim, values):
    """Write x_a'w for each arm."""
    for arm in range(arms):
        for g in range(0, LANES, WIDTH):
            s = splat(0.0)
            for j in range(dim):
                s = fma(load(x, (arm * dim + j) * LANES + g), load(w, j * LANES + g), s)
            store(values, arm * LANES + g, s)


@inline
def direction(state, dim, x, f):
    """Write f = L'x."""
    for j in range(dim):
        for g in range(0, LANES, WIDTH):
            s = splat(0.0)
            for i in range(dim):
                s = fma(load(state, (dim + i * dim + j) * LANES + g), load(x, i * LANES + g), s)
            store(f, j * LANES + g, s)


@tile(SIGNAL)
def signal(p, n, keys, step, signal):
    """Show fresh contexts; those of pull h are drawn after pull h - 1."""
    contexts(p, n, keys, call_key(step - 1, 0), signal)


@tile(VALUES)
def values(p, n, environment, signal, values):
    """Values of the arms under the true weights."""
    project(signal, environment, n[At.ARMS], n[At.DIM], values)


@tile(DRAW)
def draw(p, n, keys, at, draw, state, signal, scratch, values):
    """Values of the arms under one posterior draw of the weights."""
    dim = n[At.DIM]
    normals(keys, at, draw, scratch[:dim])
    affine(state, 0, state, dim, scratch, 1.0, dim, scratch, dim)
    project(signal, scratch[dim:], n[At.ARMS], dim, values)


@tile(DRAW)
def redraw(p, n, keys, at, draw, state, signal, scratch, values):
    """Values under one posterior draw with the normals that the draw of another belief left."""
    dim = n[At.DIM]
    affine(state, 0, state, dim, scratch, 1.0, dim, scratch, dim)
    project(signal, scratch[dim:], n[At.ARMS], dim, values)


@tile(MEAN)
def mean(p, n, state, signal, scratch, values):
    """Posterior means of the arms' values."""
    project(signal, state, n[At.ARMS], n[At.DIM], values)


@tile(UPDATE)
def update(p, n, state, signal, scratch, actions, rewards):
    """Condition on the chosen arms' rewards."""
    dim = n[At.DIM]
    f, x = scratch[:dim], scratch[dim : 2 * dim]
    noise_var, residual = scratch[2 * dim], scratch[2 * dim + 1]
    for lane in range(LANES):
        noise_var[lane] = p[n[At.NOISE_VAR] + actions[lane]]
        residual[lane] = rewards[lane]
    for j in range(dim):
        row = x[j]
        for lane in range(LANES):
            row[lane] = signal[actions[lane] * dim + j, lane]
            residual[lane] -= row[lane] * state[j, lane]
    direction(state, dim, x, f)
    potter(state, dim, f, noise_var, residual)


@tile(LOOK)
def look(p, n, keys, step, call, k1, k2, state, signal, mask, scratch, now, ahead, sizes):
    """Look one step past pulling each arm, to fresh contexts; the mean of k2 draws of the weights
    is one draw (exact in law).
    """
    arms, dim = n[At.ARMS], n[At.DIM]
    root, gain, z, pair = 0, dim * dim, dim * dim + dim, dim * dim + 2 * dim
    f, fresh, weights = pair + 2, pair + 2 + dim, pair + 2 + dim + arms * dim
    scale = splat(1.0 / np.sqrt(k2))
    z_rows = scratch[z : z + dim]
    pair_rows = scratch[pair : pair + 2]
    f_rows = scratch[f : f + dim]
    fresh_rows = scratch[fresh : fresh + arms * dim]
    for arm in range(arms):
        x = signal[arm * dim : (arm + 1) * dim]
        direction(state, dim, x, f_rows)
        noise_std = splat(p[n[At.NOISE_STD] + arm])
        ahead_of(state, dim, f_rows, p[n[At.NOISE_VAR] + arm], scratch, root, gain)
        for _ in range(k1):
            normals(keys, call_key(step, call), 0, pair_rows)
            contexts(p, n, keys, call_key(step, call + 1), fresh_rows)
            normals(keys, call_key(step, call + 2), 0, z_rows)
            call += 3
            for g in range(0, LANES, WIDTH):
                spread = splat(0.0)
                mean_now = splat(0.0)
                for j in range(dim):
                    fj = load(f_rows, j * LANES + g)
                    spread = fma(fj, fj, spread)
                    mean_now = fma(load(x, j * LANES + g), load(state, j * LANES + g), mean_now)
                deviation = sqrt(spread) * load(pair_rows, g)
                residual = fma(noise_std, load(pair_rows, LANES + g), deviation)
                for a in range(dim):
                    s = splat(0.0)
                    for j in range(dim):
                        s = fma(
                            load(scratch, (root + a * dim + j) * LANES + g),
                            load(z_rows, j * LANES + g),
                            s,
                        )
                    mean = fma(
                        load(scratch, (gain + a) * LANES + g), residual, load(state, a * LANES + g)
                    )
                    store(scratch, (weights + a) * LANES + g, fma(s, scale, mean))
                best = splat(-np.inf)
                for b in range(arms):
                    s = load(mask, b * LANES + g)
                    for j in range(dim):
                        s = fma(
                            load(fresh_rows, (b * dim + j) * LANES + g),
                            load(scratch, (weights + j) * LANES + g),
                            s,
                        )
                    best = maximum(best, s)
                place = arm * LANES + g
                store(now, place, load(now, place) + mean_now + deviation)
                store(ahead, place, load(ahead, place) + best)


def scratch_rows(arms: int, dim: int, looks_ahead: bool) -> int:
    """Rows of scratch that linear rewards need."""
    return dim * dim + 4 * dim + arms * dim + 2 if looks_ahead else 2 * dim + 2
