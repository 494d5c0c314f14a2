"""Tile functions of arms with a joint normal prior, and what other normal families share with them.

A belief is the rows of its mean, then the rows of a square root L of its covariance, S = L L'. A
draw is m + L z. An observation of x'w with noise variance v updates L by Potter's formula, which
keeps S positive semi-definite whatever the rounding:

    f = L'x,  s = f'f + v,  m += L f (r - x'm) / s,  L -= L f f' / (s + sqrt(v s)).
"""

import numpy as np

from priorwise.core.tiles import Layout
from priorwise.kernels import compiling as kinds
from priorwise.kernels.compiling import LANES, inline, tile
from priorwise.kernels.random import ONE, call_key, normals, one_normal
from priorwise.kernels.simd import WIDTH, fma, gather, iota, load, splat, sqrt, store


class At(Layout):
    """What the kernels of normal priors read."""

    ARMS = 0
    DIM = 1  # weights; for arms with a joint prior their number
    POOL = 2  # contexts to choose from
    LOWER_ROOT = 3  # whether the prior's root is a lower triangle
    SAME_NOISE = 4  # whether all arms have the same noise
    MEAN = 5  # (dim,)
    ROOT = 6  # (dim, dim)
    NOISE_VAR = 7  # (arm,)
    NOISE_STD = 8  # (arm,)
    CONTEXTS = 9  # (context, arm, dim)
    WORTH = 10  # (arm + 1,), of the best of 0, 1, ... directions on the sphere


@inline
def dot(x, x_row, y, y_row, size, start, g):
    """Return ``start`` plus the inner product of ``size`` rows of both, for a group of lanes."""
    total = start
    for j in range(size):
        total = fma(load(x, (x_row + j) * LANES + g), load(y, (y_row + j) * LANES + g), total)
    return total


@inline
def affine(mean, mean_row, root, root_row, z, scale, dim, out, out_row):
    """Write ``mean + scale * L z`` to the rows of ``out``."""
    factor = splat(scale)
    for g in range(0, LANES, WIDTH):
        i = 0
        while i + 1 < dim:  # two rows at once share the reads of z
            s = splat(0.0)
            t = splat(0.0)
            row = (root_row + i * dim) * LANES + g
            for j in range(dim):
                x = load(z, j * LANES + g)
                s = fma(load(root, row + j * LANES), x, s)
                t = fma(load(root, row + (dim + j) * LANES), x, t)
            centre, place = (mean_row + i) * LANES + g, (out_row + i) * LANES + g
            store(out, place, fma(s, factor, load(mean, centre)))
            store(out, place + LANES, fma(t, factor, load(mean, centre + LANES)))
            i += 2
        if i < dim:
            s = dot(root, root_row + i * dim, z, 0, dim, splat(0.0), g)
            centre = load(mean, (mean_row + i) * LANES + g)
            store(out, (out_row + i) * LANES + g, fma(s, factor, centre))


@inline
def potter(state, dim, f, noise_var, residual):
    """Condition mean and root (rows 0 and on of ``state``) on one observation; ``noise_var`` and
    ``residual`` are used up.

    All square roots and divisions come first: they take long, but overlap.
    """
    for g in range(0, LANES, WIDTH):
        v = load(noise_var, g)
        s = dot(f, 0, f, 0, dim, v, g)
        r = s + sqrt(v * s)
        inverse = splat(1.0) / (s * r)  # one division for both 1 / s and 1 / r
        store(residual, g, load(residual, g) * (inverse * r))
        store(noise_var, g, inverse * s * -1.0)
    for g in range(0, LANES, WIDTH):
        gain = load(residual, g)
        shrink = load(noise_var, g)
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
            k = dot(state, dim + i * dim, f, 0, dim, splat(0.0), g)
            store(state, i * LANES + g, fma(k, gain, load(state, i * LANES + g)))
            k = k * shrink
            for j in range(dim):
                place = (dim + i * dim + j) * LANES + g
                store(state, place, fma(k, load(f, j * LANES + g), load(state, place)))


@inline
def spread(p, n, z, out):
    """Write m0 + L0 z with the prior's mean and root, the same for all lanes; a lower triangle is
    read only so far.
    """
    dim, lower, mean, root = n[At.DIM], n[At.LOWER_ROOT], n[At.MEAN], n[At.ROOT]
    for g in range(0, LANES, WIDTH):
        i = 0
        while i + 1 < dim:
            row = root + i * dim
            s = splat(p[mean + i])
            t = splat(p[mean + i + 1])
            for j in range(i + 2 if lower else dim):
                x = load(z, j * LANES + g)
                s = fma(splat(p[row + j]), x, s)
                t = fma(splat(p[row + dim + j]), x, t)
            store(out, i * LANES + g, s)
            store(out, (i + 1) * LANES + g, t)
            i += 2
        if i < dim:
            s = splat(p[mean + i])
            for j in range(dim):
                s = fma(splat(p[root + i * dim + j]), load(z, j * LANES + g), s)
            store(out, i * LANES + g, s)


@inline
def noise_of(p, n, first, arm):
    """Noise of the chosen arms, from the table that begins at ``first``; often it is the same for
    all.
    """
    return splat(p[first]) if n[At.SAME_NOISE] else gather(p, arm + np.uint64(first))


@inline
def sampled(p, n, keys, call, z, environment):
    """Draw m + L z from the prior."""
    normals(keys, call_key(0, call), 0, z)
    spread(p, n, z, environment)


@tile(kinds.SAMPLE)
def sample(p, n, keys, environment):
    """Draw mean vectors (or weight vectors) from the prior: m + L z."""
    sampled(p, n, keys, 0, np.empty((n[At.DIM], LANES)), environment)


@tile(kinds.SAMPLE_FROM)
def sample_from(p, n, keys, call, environment):
    """Draw them from another call on."""
    sampled(p, n, keys, call, np.empty((n[At.DIM], LANES)), environment)


@tile(kinds.START)
def start(p, n, state):
    """Start the belief at the prior: write its mean and root."""
    dim, mean, root = n[At.DIM], n[At.MEAN], n[At.ROOT]
    for row in range(dim + dim * dim):
        value = splat(p[mean + row if row < dim else root + row - dim])
        for g in range(0, LANES, WIDTH):
            store(state, row * LANES + g, value)


@tile(kinds.REWARD)
def reward(p, n, keys, step, environment, chosen, actions, spare, rewards):
    """Reward with normal noise: one number a step, whatever the arm."""
    one_normal(keys, step, spare, rewards)
    for g in range(0, LANES, WIDTH):
        deviation = noise_of(p, n, n[At.NOISE_STD], load(actions, g))
        store(rewards, g, fma(deviation, load(rewards, g), load(chosen, g)))


@tile(kinds.DRAW)
def draw(p, n, keys, at, draw, state, signal, scratch, values):
    """One posterior draw of the means."""
    arms = n[At.ARMS]
    normals(keys, at, draw, scratch[:arms])
    affine(state, 0, state, arms, scratch, 1.0, arms, values, 0)


@tile(kinds.DRAW)
def redraw(p, n, keys, at, draw, state, signal, scratch, values):
    """One posterior draw with the normals that the draw of another belief left."""
    affine(state, 0, state, n[At.ARMS], scratch, 1.0, n[At.ARMS], values, 0)


@tile(kinds.MEAN)
def mean(p, n, state, signal, scratch, values):
    """Posterior means."""
    for arm in range(n[At.ARMS]):
        for g in range(0, LANES, WIDTH):
            store(values, arm * LANES + g, load(state, arm * LANES + g))


@tile(kinds.MEAN)
def mean_size(p, n, state, signal, scratch, values):
    """Write what the posterior means are sums of, but for the observations: the prior's mean, and a
    row of its root.
    """
    arms = n[At.ARMS]
    for arm in range(arms):
        size = abs(p[n[At.MEAN] + arm])
        for j in range(arms):
            size += abs(p[n[At.ROOT] + arm * arms + j])
        for g in range(0, LANES, WIDTH):
            store(values, arm * LANES + g, splat(size))


@tile(kinds.PREDICTIVE)
def predictive(p, n, state, scratch, actions, rewards, out):
    """Log density of the rewards: that of N(m_a, S_aa + noise)."""
    arms = n[At.ARMS]
    for lane in range(LANES):
        arm = actions[lane]
        variance = p[n[At.NOISE_VAR] + (0 if n[At.SAME_NOISE] else arm)]
        for j in range(arms):
            variance += state[arms + arm * arms + j, lane] ** 2
        apart = rewards[lane] - state[arm, lane]
        out[lane] = -0.5 * (apart * apart / variance + np.log(2.0 * np.pi * variance))


@tile(kinds.UPDATE)
def update(p, n, state, signal, scratch, actions, rewards):
    """Condition on the chosen arms' rewards; the direction x is the arm's unit vector, so f is a
    row of L.
    """
    arms = n[At.ARMS]
    noise_var, residual = scratch[arms], scratch[arms + 1]
    for g in range(0, LANES, WIDTH):
        arm = load(actions, g)
        lane = iota() + np.uint64(g)
        store(noise_var, g, noise_of(p, n, n[At.NOISE_VAR], arm))
        store(residual, g, load(rewards, g) - gather(state, arm * np.uint64(LANES) + lane))
        row = (arm + ONE) * np.uint64(arms * LANES) + lane
        for j in range(arms):
            store(scratch, j * LANES + g, gather(state, row + np.uint64(j * LANES)))
    potter(state, arms, scratch, noise_var, residual)
