"""Tile functions of Gaussian families: arms with a joint normal prior, and linear rewards in a context.

A belief is the rows of its mean, then the rows of a square root L of its covariance, S = L L'. A draw is m + L z. An observation
of x'w with noise variance v updates L by Potter's formula, which keeps S positive semi-definite whatever the rounding:

    f = L'x,  s = f'f + v,  m += L f (r - x'm) / s,  L -= L f f' / (s + sqrt(v s)).

``p`` holds the mean, the prior's root row by row, the noise variances and deviations of the arms, then the pool of contexts;
``n`` holds the number of arms, of dimensions (the number of arms for arms with a joint prior), of contexts in the pool, and
whether the prior's root is a lower triangle.
"""

from __future__ import annotations

import numpy as np

from priorwise.kernels.compiling import (
    CERTAIN,
    DRAW,
    LANES,
    LOOK,
    MEAN,
    REWARD,
    SAMPLE,
    SIGNAL,
    START,
    UPDATE,
    VALUES,
    inline,
    tile,
)
from priorwise.kernels.random import ONE, call_key, mix, normals, one_normal, slot_key, unit
from priorwise.kernels.simd import WIDTH, fma, gather, iota, load, maximum, splat, sqrt, store


@inline
def affine(mean, mean_row, root, root_row, z, scale, dim, out, out_row):
    """Write ``mean + scale * L z`` to the rows of ``out``."""
    factor = splat(scale)
    for g in range(0, LANES, WIDTH):
        i = 0
        while i + 1 < dim:
            s = splat(0.0)
            t = splat(0.0)
            row = (root_row + i * dim) * LANES + g
            for j in range(dim):
                x = load(z, j * LANES + g)
                s = fma(load(root, row + j * LANES), x, s)
                t = fma(load(root, row + (dim + j) * LANES), x, t)
            store(out, (out_row + i) * LANES + g, fma(s, factor, load(mean, (mean_row + i) * LANES + g)))
            store(out, (out_row + i + 1) * LANES + g, fma(t, factor, load(mean, (mean_row + i + 1) * LANES + g)))
            i += 2
        if i < dim:
            s = splat(0.0)
            row = (root_row + i * dim) * LANES + g
            for j in range(dim):
                s = fma(load(root, row + j * LANES), load(z, j * LANES + g), s)
            store(out, (out_row + i) * LANES + g, fma(s, factor, load(mean, (mean_row + i) * LANES + g)))


@inline
def potter(state, dim, f, noise_var, residual):
    """Condition mean and root (rows 0 and on of ``state``) on one observation."""
    for g in range(0, LANES, WIDTH):
        v = load(noise_var, g)
        s = v
        for j in range(dim):
            fj = load(f, j * LANES + g)
            s = fma(fj, fj, s)
        gain = load(residual, g) / s
        shrink = splat(-1.0) / (s + sqrt(v * s))
        i = 0
        while i + 1 < dim:  # two rows at once share the reads of f
            row = (dim + i * dim) * LANES + g
            other = row + dim * LANES
            k = splat(0.0)
            l = splat(0.0)
            for j in range(dim):
                fj = load(f, j * LANES + g)
                k = fma(load(state, row + j * LANES), fj, k)
                l = fma(load(state, other + j * LANES), fj, l)
            store(state, i * LANES + g, fma(k, gain, load(state, i * LANES + g)))
            store(state, (i + 1) * LANES + g, fma(l, gain, load(state, (i + 1) * LANES + g)))
            k = k * shrink
            l = l * shrink
            for j in range(dim):
                fj = load(f, j * LANES + g)
                store(state, row + j * LANES, fma(k, fj, load(state, row + j * LANES)))
                store(state, other + j * LANES, fma(l, fj, load(state, other + j * LANES)))
            i += 2
        if i < dim:
            row = (dim + i * dim) * LANES + g
            k = splat(0.0)
            for j in range(dim):
                k = fma(load(state, row + j * LANES), load(f, j * LANES + g), k)
            store(state, i * LANES + g, fma(k, gain, load(state, i * LANES + g)))
            k = k * shrink
            for j in range(dim):
                store(state, row + j * LANES, fma(k, load(f, j * LANES + g), load(state, row + j * LANES)))


@inline
def spread(p, n, z, out):
    """Write m0 + L0 z with the prior's mean and root, the same for all lanes; a lower triangle is read only so far."""
    dim, lower = n[1], n[3]
    for g in range(0, LANES, WIDTH):
        i = 0
        while i + 1 < dim:
            row = dim + i * dim
            s = splat(p[i])
            t = splat(p[i + 1])
            for j in range(i + 2 if lower else dim):
                x = load(z, j * LANES + g)
                s = fma(splat(p[row + j]), x, s)
                t = fma(splat(p[row + dim + j]), x, t)
            store(out, i * LANES + g, s)
            store(out, (i + 1) * LANES + g, t)
            i += 2
        if i < dim:
            s = splat(p[i])
            for j in range(dim):
                s = fma(splat(p[dim + i * dim + j]), load(z, j * LANES + g), s)
            store(out, i * LANES + g, s)


@tile(SAMPLE)
def sample(p, n, keys, environment):
    """Draw mean vectors (or weight vectors) from the prior: m + L z."""
    z = np.empty((n[1], LANES))
    normals(keys, call_key(0, 0), 0, z)
    spread(p, n, z, environment)


@tile(START)
def start(p, n, state):
    """Start the belief at the prior."""
    for row in range(n[1] + n[1] * n[1]):
        value = splat(p[row])
        for g in range(0, LANES, WIDTH):
            store(state, row * LANES + g, value)


@tile(CERTAIN)
def never_certain(p, n, state, out):
    """Tell that a continuous belief never collapses."""
    out[:] = 0.0


@tile(REWARD)
def reward(p, n, keys, step, chosen, actions, spare, rewards):
    """Reward with normal noise: one number a step, whatever the arm."""
    arms, dim = n[0], n[1]
    one_normal(keys, step, spare, rewards)
    deviations = dim + dim * dim + arms
    for g in range(0, LANES, WIDTH):
        deviation = gather(p, load(actions, g) + np.uint64(deviations))
        store(rewards, g, fma(deviation, load(rewards, g), load(chosen, g)))


# Arms with a joint normal prior


@tile(SIGNAL)
def no_signal(p, n, keys, step, signal):
    """Write nothing: plain bandits show nothing before a pull."""


@tile(VALUES)
def arm_values(p, n, environment, signal, values):
    """Copy the means of the arms: they are the values."""
    for arm in range(n[0]):
        for g in range(0, LANES, WIDTH):
            store(values, arm * LANES + g, load(environment, arm * LANES + g))


@tile(DRAW)
def arm_draw(p, n, keys, at, draw, state, signal, scratch, values):
    """One posterior draw of the means."""
    arms = n[0]
    normals(keys, at, draw, scratch[:arms])
    affine(state, 0, state, arms, scratch, 1.0, arms, values, 0)


@tile(MEAN)
def arm_mean(p, n, state, signal, scratch, values):
    """Posterior means."""
    for arm in range(n[0]):
        for g in range(0, LANES, WIDTH):
            store(values, arm * LANES + g, load(state, arm * LANES + g))


@tile(UPDATE)
def arm_update(p, n, state, signal, scratch, actions, rewards):
    """Condition on the chosen arms' rewards; the direction x is the arm's unit vector, so f is a row of L."""
    arms = n[0]
    noise_var, residual = scratch[arms], scratch[arms + 1]
    for g in range(0, LANES, WIDTH):
        arm = load(actions, g)
        lane = iota() + np.uint64(g)
        store(noise_var, g, gather(p, arm + np.uint64(arms + arms * arms)))
        store(residual, g, load(rewards, g) - gather(state, arm * np.uint64(LANES) + lane))
        row = (arm + ONE) * np.uint64(arms * LANES) + lane
        for j in range(arms):
            store(scratch, j * LANES + g, gather(state, row + np.uint64(j * LANES)))
    potter(state, arms, scratch, noise_var, residual)


@inline
def ahead_of(state, dim, f, noise_var, shifted, shifted_row, gain_row):
    """Potter's update of the root alone, into ``shifted``, with L f / s in the rows from ``gain_row`` on."""
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
def arm_look(p, n, keys, step, call, k1, k2, state, signal, mask, scratch, now, ahead):
    """Look one step past pulling each arm: the mean of k2 look-ahead draws is one draw with covariance S / k2 (exact in law)."""
    arms = n[0]
    root, gain, z, pair = 0, arms * arms, arms * arms + arms, arms * arms + 2 * arms
    scale = splat(1.0 / np.sqrt(k2))
    z_rows = scratch[z : z + arms]
    pair_rows = scratch[pair : pair + 2]
    for arm in range(arms):
        f_row = arms + arm * arms  # f = L'x is a row of L
        noise_std = splat(p[2 * arms + arms * arms + arm])
        ahead_of(state, arms, state[f_row:], p[arms + arms * arms + arm], scratch, root, gain)
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
                        s = fma(load(scratch, (root + b * arms + j) * LANES + g), load(z_rows, j * LANES + g), s)
                    mean = fma(load(scratch, (gain + b) * LANES + g), residual, load(state, b * LANES + g))
                    best = maximum(best, fma(s, scale, mean) + load(mask, b * LANES + g))
                place = arm * LANES + g
                store(now, place, load(now, place) + load(state, place) + deviation)
                store(ahead, place, load(ahead, place) + best)


# Linear rewards: the value of arm a is x_a'w


@inline
def contexts(p, n, keys, at, out):
    """Draw a context for each arm: uniform on the sphere, or one entry of the pool."""
    arms, dim, pool = n[0], n[1], n[2]
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
        first = dim + dim * dim + 2 * arms
        slot = slot_key(at, 0, 0)
        for lane in range(LANES):
            entry = min(np.int64(unit(mix(keys[lane] + slot)) * pool), pool - 1)
            for k in range(arms * dim):
                out[k, lane] = p[first + entry * arms * dim + k]


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
def linear_signal(p, n, keys, step, signal):
    """Show fresh contexts; those of pull h are drawn after pull h - 1."""
    contexts(p, n, keys, call_key(step - 1, 0), signal)


@tile(VALUES)
def linear_values(p, n, environment, signal, values):
    """Values of the arms under the true weights."""
    project(signal, environment, n[0], n[1], values)


@tile(DRAW)
def linear_draw(p, n, keys, at, draw, state, signal, scratch, values):
    """Values of the arms under one posterior draw of the weights."""
    dim = n[1]
    normals(keys, at, draw, scratch[:dim])
    affine(state, 0, state, dim, scratch, 1.0, dim, scratch, dim)
    project(signal, scratch[dim:], n[0], dim, values)


@tile(MEAN)
def linear_mean(p, n, state, signal, scratch, values):
    """Posterior means of the arms' values."""
    project(signal, state, n[0], n[1], values)


@tile(UPDATE)
def linear_update(p, n, state, signal, scratch, actions, rewards):
    """Condition on the chosen arms' rewards."""
    dim = n[1]
    f, x = scratch[:dim], scratch[dim : 2 * dim]
    noise_var, residual = scratch[2 * dim], scratch[2 * dim + 1]
    variances = dim + dim * dim
    for lane in range(LANES):
        noise_var[lane] = p[variances + actions[lane]]
        residual[lane] = rewards[lane]
    for j in range(dim):
        row = x[j]
        for lane in range(LANES):
            row[lane] = signal[actions[lane] * dim + j, lane]
            residual[lane] -= row[lane] * state[j, lane]
    direction(state, dim, x, f)
    potter(state, dim, f, noise_var, residual)


@tile(LOOK)
def linear_look(p, n, keys, step, call, k1, k2, state, signal, mask, scratch, now, ahead):
    """Look one step past pulling each arm, to fresh contexts; the mean of k2 draws of the weights is one draw (exact in law)."""
    arms, dim = n[0], n[1]
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
        noise_std = splat(p[dim + dim * dim + arms + arm])
        ahead_of(state, dim, f_rows, p[dim + dim * dim + arm], scratch, root, gain)
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
                        s = fma(load(scratch, (root + a * dim + j) * LANES + g), load(z_rows, j * LANES + g), s)
                    mean = fma(load(scratch, (gain + a) * LANES + g), residual, load(state, a * LANES + g))
                    store(scratch, (weights + a) * LANES + g, fma(s, scale, mean))
                best = splat(-np.inf)
                for b in range(arms):
                    s = load(mask, b * LANES + g)
                    for j in range(dim):
                        s = fma(load(fresh_rows, (b * dim + j) * LANES + g), load(scratch, (weights + j) * LANES + g), s)
                    best = maximum(best, s)
                place = arm * LANES + g
                store(now, place, load(now, place) + mean_now + deviation)
                store(ahead, place, load(ahead, place) + best)


def arm_scratch_rows(arms: int, looks_ahead: bool) -> int:
    """Rows of scratch that arms with a joint prior need."""
    return arms * arms + 2 * arms + 2 if looks_ahead else arms + 2


def linear_scratch_rows(arms: int, dim: int, looks_ahead: bool) -> int:
    """Rows of scratch that linear rewards need."""
    return dim * dim + 4 * dim + arms * dim + 2 if looks_ahead else 2 * dim + 2
