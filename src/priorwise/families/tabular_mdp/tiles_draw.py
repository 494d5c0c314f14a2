"""Drawing MDPs in tile functions: a gamma for each possible move, in lockstep."""

from __future__ import annotations

import numpy as np

from priorwise.core.tiles import Layout
from priorwise.kernels.compiling import LANES, inline
from priorwise.kernels.gamma import one_log_gamma
from priorwise.kernels.random import (
    GOLDEN,
    TWO,
    mix,
    radius_of,
    second,
    slot_key,
    turned,
    unit,
)
from priorwise.kernels.simd import WIDTH, fma, load, minimum, peek, splat, sqrt, store

SMALL = 0.1  # gammas of smaller shapes may be too small for floats: their logarithms are kept
BELOW_ONE = 1.0 - 2.0**-53


class At(Layout):
    """What the kernels of Dirichlet MDPs read."""

    ARMS = 0
    STATES = 1
    HORIZON = 2
    ROUND = 3  # steps of a round
    CELLS = 4  # possible moves
    BERNOULLI = 5  # whether rewards are 0 or 1, with unknown means
    FIRST = 6  # (state * action + 1,): first cell of each row
    NEXT = 7  # (cell,): next state
    FIRSTS = 8  # (state,): law of the first state of a round
    ALPHA = 9  # (cell,)
    MEANS = 10  # (state * action,): known rewards
    BETAS = 11  # (state * action, 2): parameters of the rewards' Beta laws


@inline
def gammas(keys, slot, shapes, work, out):
    """Gammas of each lane's own shape; ``work`` is a row.

    An attempt is accepted here by the squeeze, which implies the full test; other lanes start over
    from the same numbers, so that the draw is that of :func:`one_log_gamma` in every lane whose
    shape is not small.
    """
    for g in range(0, LANES, WIDTH):
        store(out, g, radius_of(mix(load(keys, g) + slot)))
    for g in range(0, LANES, WIDTH):
        element = load(keys, g) + slot
        x, _ = turned(load(out, g), second(mix(element)))
        d = load(shapes, g) - 1.0 / 3.0
        root = fma(x, splat(1.0) / sqrt(d * 9.0), splat(1.0))
        x = x * x
        squeeze = unit(mix(element + TWO * GOLDEN)) - x * x * 0.0331
        # NaN where the shape is below 1/3, and below 0 where it is below 1
        store(work, g, minimum(minimum(root, squeeze), load(shapes, g) - BELOW_ONE))
        store(out, g, root * root * root * d)
    for lane in range(LANES):
        if not peek(work, lane) > 0.0 and shapes[lane] >= SMALL:
            out[lane] = np.exp(one_log_gamma(keys[lane] + slot, shapes[lane]))


@inline
def shares_by_logs(keys, at, draw, index, state, begin, end, lane, table):
    """Write the shares of a row with small shapes, and return their sum."""
    most = -np.inf
    for cell in range(begin, end):
        slot = slot_key(at, draw, index + cell - begin)
        table[cell, lane] = one_log_gamma(keys[lane] + slot, state[cell, lane])
        most = max(most, table[cell, lane])
    total = 0.0
    for cell in range(begin, end):
        table[cell, lane] = np.exp(table[cell, lane] - most)
        total += table[cell, lane]
    return total


@inline
def drawn(n, keys, at, draw, state, work, table):
    """Draw an MDP for a tile: probabilities of the cells, then mean rewards, a row each; ``work``
    is a row.
    """
    pairs, cells, index = n[At.ARMS] * n[At.STATES], n[At.CELLS], 0
    for pair in range(pairs):
        begin, end = n[n[At.FIRST] + pair], n[n[At.FIRST] + pair + 1]
        if end - begin == 1:
            table[begin, :] = 1.0
            continue
        for cell in range(begin, end):
            slot = slot_key(at, draw, index + cell - begin)
            gammas(keys, slot, state[cell], work, table[cell])
        for g in range(0, LANES, WIDTH):
            total = load(table, begin * LANES + g)
            for cell in range(begin + 1, end):
                total = total + load(table, cell * LANES + g)
            store(work, g, total)
        for lane in range(LANES):
            least = peek(state, begin * LANES + lane)
            for cell in range(begin + 1, end):
                least = min(least, peek(state, cell * LANES + lane))
            if least < SMALL:
                work[lane] = shares_by_logs(keys, at, draw, index, state, begin, end, lane, table)
        for cell in range(begin, end):
            for g in range(0, LANES, WIDTH):
                store(table, cell * LANES + g, load(table, cell * LANES + g) / load(work, g))
        index += end - begin
    if n[At.BERNOULLI]:
        for pair in range(pairs):
            success, failure = slot_key(at, draw, index), slot_key(at, draw, index + 1)
            index += 2
            row = cells + 2 * pair
            for lane in range(LANES):
                u = one_log_gamma(keys[lane] + success, state[row, lane])
                v = one_log_gamma(keys[lane] + failure, state[row + 1, lane])
                table[cells + pair, lane] = 1.0 / (1.0 + np.exp(min(v - u, 700.0)))
