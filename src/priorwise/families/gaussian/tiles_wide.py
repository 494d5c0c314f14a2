"""Tile functions for many arms and few pulls: the square root of the posterior covariance is kept
as a product.

After h pulls Potter's root is L0 M_1 ... M_h with L0 the prior's root, the same for all tasks, and
M_j = I - c_j f_j f_j' (see ``kernels.gaussian``). Kept so, a pull costs O(arms h) in each task plus
one product with the shared L0, and memory grows with arms times pulls; a root for each task would
cost O(arms^2) in both. The mean is m0 + L0 w. Draws are those of the other form.

A belief holds the rows of w, a row with the number of pulls so far, then for each pull the rows of
f_j and a row of c_j.
"""

import numpy as np

from priorwise.families.gaussian.tiles import At, dot, spread
from priorwise.kernels.compiling import DRAW, LANES, MEAN, START, UPDATE, inline, tile
from priorwise.kernels.random import normals
from priorwise.kernels.simd import WIDTH, fma, load, peek, poke, splat, sqrt, store

FROM_ARMS = 12
"""Arms from which on the product form pays, where there are at least twice as many as pulls."""


@inline
def reflect(state, arms, pull, y, y_row, g):
    """Apply M_pull to a vector y, for a group of lanes."""
    row = arms + 1 + pull * (arms + 1)
    along = dot(state, row, y, y_row, arms, splat(0.0), g)
    along = along * load(state, (row + arms) * LANES + g) * -1.0
    for k in range(arms):
        place = (y_row + k) * LANES + g
        store(y, place, fma(along, load(state, (row + k) * LANES + g), load(y, place)))


@tile(START)
def start(p, n, state):
    """Start the belief at the prior: no pull yet."""
    state[: n[At.ARMS] + 1] = 0.0


@tile(DRAW)
def draw(p, n, keys, at, draw, state, signal, scratch, values):
    """One posterior draw of the means: m0 + L0 (w + M_1 ... M_h z)."""
    arms = n[At.ARMS]
    pulls = np.int64(state[arms, 0])
    normals(keys, at, draw, scratch[:arms])
    for g in range(0, LANES, WIDTH):
        for pull in range(pulls - 1, -1, -1):
            reflect(state, arms, pull, scratch, 0, g)
        for k in range(arms):
            place = k * LANES + g
            store(scratch, place, load(scratch, place) + load(state, place))
    spread(p, n, scratch, values)


@tile(MEAN)
def mean(p, n, state, signal, scratch, values):
    """Posterior means: m0 + L0 w."""
    spread(p, n, state, values)


@tile(UPDATE)
def update(p, n, state, signal, scratch, actions, rewards):
    """Condition on the chosen arms' rewards."""
    arms = n[At.ARMS]
    pulls = np.int64(state[arms, 0])
    first = arms + 1 + pulls * (arms + 1)
    noise_var, residual = scratch[arms], scratch[arms + 1]
    for lane in range(LANES):
        arm = actions[lane]
        row = n[At.ROOT] + arm * arms
        noise_var[lane] = p[n[At.NOISE_VAR] + arm]
        residual[lane] = rewards[lane] - p[n[At.MEAN] + arm]
        for k in range(arms):
            poke(state, (first + k) * LANES + lane, peek(p, row + k))
    for g in range(0, LANES, WIDTH):
        # the mean of the arm above m0: row a of L0 times w
        own = dot(state, first, state, 0, arms, splat(0.0), g)
        for pull in range(pulls):
            reflect(state, arms, pull, state, first, g)
        v = load(noise_var, g)
        s = v
        for k in range(arms):
            f = load(state, (first + k) * LANES + g)
            s = fma(f, f, s)
            store(scratch, k * LANES + g, f)
        for pull in range(pulls - 1, -1, -1):
            reflect(state, arms, pull, scratch, 0, g)
        gain = (load(residual, g) - own) / s
        for k in range(arms):
            place = k * LANES + g
            store(state, place, fma(gain, load(scratch, place), load(state, place)))
        store(state, (first + arms) * LANES + g, splat(1.0) / (s + sqrt(v * s)))
    for lane in range(LANES):
        state[arms, lane] += 1.0


def belief_rows(arms: int, horizon: int) -> int:
    """Rows of a belief that sees all pulls but the last."""
    return (arms + 1) * horizon
