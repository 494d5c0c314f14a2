"""Tile functions of linear rewards in a context: the value of arm a is x_a'w, with a normal belief
about the weights w.

The belief, ``p`` and ``n`` are those of ``priorwise.families.gaussian.tiles`` with weights in place
of arms; the signal is the rows of the arms' features, one arm after the other.
"""

import numpy as np

from priorwise.families.gaussian.tiles import At, affine, dot, potter
from priorwise.families.gaussian.tiles_exact import ahead_of, drawn_ahead, gains_of
from priorwise.kernels import compiling as kinds
from priorwise.kernels.compiling import LANES, inline, tile
from priorwise.kernels.elementary import exp
from priorwise.kernels.normal import REACH, expected_maximum, normals_by_lane
from priorwise.kernels.random import call_key, mix, normals, slot_key, unit
from priorwise.kernels.simd import WIDTH, fma, load, maximum, minimum, splat, sqrt, store

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
NODES, WEIGHTS = ((_NODES + 1.0) / 2.0) ** 3, _WEIGHTS / 2.0 * 3.0 * ((_NODES + 1.0) / 2.0) ** 2
"""Nodes and weights of an integral over [0, 1] that crowd at 0."""


@inline
def contexts(p, n, keys, at, out):
    """Draw a context for each arm: uniform on the sphere, or one entry of the pool."""
    arms, dim, pool = n[At.ARMS], n[At.DIM], n[At.POOL]
    if pool == 0:
        for arm in range(arms):
            x = out[arm * dim : (arm + 1) * dim]
            normals(keys, at, arm, x)
            for g in range(0, LANES, WIDTH):
                inverse = splat(1.0) / sqrt(dot(x, 0, x, 0, dim, splat(0.0), g))
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
            store(values, arm * LANES + g, dot(x, arm * dim, w, 0, dim, splat(0.0), g))


@inline
def direction(state, dim, x, f):
    """Write f = L'x."""
    for j in range(dim):
        for g in range(0, LANES, WIDTH):
            s = splat(0.0)
            for i in range(dim):
                s = fma(load(state, (dim + i * dim + j) * LANES + g), load(x, i * LANES + g), s)
            store(f, j * LANES + g, s)


@tile(kinds.SIGNAL)
def signal(p, n, keys, step, signal):
    """Show fresh contexts; those of pull h are drawn after pull h - 1."""
    contexts(p, n, keys, call_key(step - 1, 0), signal)


@tile(kinds.VALUES)
def values(p, n, environment, signal, values):
    """Values of the arms under the true weights."""
    project(signal, environment, n[At.ARMS], n[At.DIM], values)


@tile(kinds.DRAW)
def draw(p, n, keys, at, draw, state, signal, scratch, values):
    """Values of the arms under one posterior draw of the weights."""
    dim = n[At.DIM]
    normals(keys, at, draw, scratch[:dim])
    affine(state, 0, state, dim, scratch, 1.0, dim, scratch, dim)
    project(signal, scratch[dim:], n[At.ARMS], dim, values)


@tile(kinds.DRAW)
def redraw(p, n, keys, at, draw, state, signal, scratch, values):
    """Values under one posterior draw with the normals that the draw of another belief left."""
    dim = n[At.DIM]
    affine(state, 0, state, dim, scratch, 1.0, dim, scratch, dim)
    project(signal, scratch[dim:], n[At.ARMS], dim, values)


@tile(kinds.MEAN)
def mean(p, n, state, signal, scratch, values):
    """Posterior means of the arms' values."""
    project(signal, state, n[At.ARMS], n[At.DIM], values)


@tile(kinds.UPDATE)
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


@tile(kinds.LOOK)
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
                mean_now = dot(x, 0, state, 0, dim, splat(0.0), g)
                spread = sqrt(dot(f_rows, 0, f_rows, 0, dim, splat(0.0), g))
                deviation = spread * load(pair_rows, g)
                residual = fma(noise_std, load(pair_rows, LANES + g), deviation)
                for a in range(dim):
                    drawn = drawn_ahead(
                        state, dim, scratch, root, gain, residual, z_rows, scale, a, g
                    )
                    store(scratch, (weights + a) * LANES + g, drawn)
                best = splat(-np.inf)
                for b in range(arms):
                    away = load(mask, b * LANES + g)
                    best = maximum(best, dot(fresh_rows, b * dim, scratch, weights, dim, away, g))
                place = arm * LANES + g
                store(now, place, load(now, place) + mean_now + deviation)
                store(ahead, place, load(ahead, place) + best)


@tile(kinds.QUANTILE)
def quantile(p, n, level, normal, state, signal, scratch, values):
    """Posterior quantiles of the arms' values."""
    arms, dim = n[At.ARMS], n[At.DIM]
    f = scratch[:dim]
    project(signal, state, arms, dim, values)
    for arm in range(arms):
        direction(state, dim, signal[arm * dim : (arm + 1) * dim], f)
        for g in range(0, LANES, WIDTH):
            deviation = sqrt(dot(f, 0, f, 0, dim, splat(0.0), g))
            place = arm * LANES + g
            store(values, place, fma(deviation, splat(normal), load(values, place)))


@tile(kinds.DRAW_EACH)
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
    mm = dot(state, 0, state, 0, dim, splat(0.0), g)
    gg = dot(gains, 0, gains, 0, dim, splat(0.0), g)
    mg = dot(state, 0, gains, 0, dim, splat(0.0), g)
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


@tile(kinds.BEST_AFTER)
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


def scratch_rows(arms: int, dim: int, uses: frozenset[str]) -> int:
    """Rows of scratch that linear rewards need."""
    look = dim * dim + 4 * dim + arms * dim + 2 if "look" in uses else 2 * dim + 2
    return max(look, 2 * dim + 2 * arms + arms * dim if "best_after" in uses else 0)
