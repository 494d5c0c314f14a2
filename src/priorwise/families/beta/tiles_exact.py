"""Tile functions of Beta beliefs for policies that read quantiles, exact look-ahead, or many draws
of few tasks.

Quantiles are SciPy's own function, called by its address. A task
meets few pairs of a and b, and many tasks meet the same: so quantiles are kept from tile to tile in
the rows of the belief after its own, four numbers each: a, b, the level and the quantile.
"""

import numpy as np

from priorwise.families.beta.tiles import ROWS_PER_ARM, At, beta_row
from priorwise.kernels import simd
from priorwise.kernels.compiling import BEST_AFTER, DRAW_EACH, LANES, QUANTILE, tile
from priorwise.kernels.random import S32, ZERO, mix
from priorwise.kernels.simd import WIDTH, bits_of, load, maximum, minimum, peek, poke, splat, store
from priorwise.kernels.special import FOUR, address_of_special, call_special


def inverse_address() -> int | None:
    """Address of SciPy's quantile of a Beta law; None where it has none."""
    return address_of_special("betaincinv", 3)


@tile(QUANTILE)
def quantile(p, n, level, normal, state, signal, scratch, values):
    """Posterior quantiles, kept by (a, b, level)."""
    arms, address = n[At.ARMS], bits_of(p[n[At.INVERSE]])
    kept = state[ROWS_PER_ARM * arms :].reshape(-1)
    last, salt = np.uint64(len(kept) // 4 - 1), mix(bits_of(level))
    places = np.empty(LANES, np.uint64)
    for arm in range(arms):
        first = ROWS_PER_ARM * arm * LANES
        for g in range(0, LANES, WIDTH):
            code = mix(bits_of(load(state, first + g)) + salt)
            code = mix(bits_of(load(state, first + LANES + g)) + code)
            store(places, g, (code & last) * FOUR)
        for lane in range(LANES):
            a, b = peek(state, first + lane), peek(state, first + LANES + lane)
            at = np.int64(peek(places, lane))
            if peek(kept, at) != a or peek(kept, at + 1) != b or peek(kept, at + 2) != level:
                poke(kept, at, a)
                poke(kept, at + 1, b)
                poke(kept, at + 2, level)
                poke(kept, at + 3, call_special(address, a, b, level))
            poke(values, arm * LANES + lane, peek(kept, at + 3))


@tile(BEST_AFTER)
def best_after(p, n, state, signal, mask, scratch, values):
    """Average the best posterior mean over the two rewards an arm may show."""
    arms = n[At.ARMS]
    for g in range(0, LANES, WIDTH):
        best, second = splat(-np.inf), splat(-np.inf)
        for arm in range(arms):
            a = load(state, ROWS_PER_ARM * arm * LANES + g)
            b = load(state, (ROWS_PER_ARM * arm + 1) * LANES + g)
            mean = a / (a + b) + load(mask, arm * LANES + g)
            second = maximum(second, minimum(best, mean))
            best = maximum(best, mean)
        for arm in range(arms):
            a = load(state, ROWS_PER_ARM * arm * LANES + g)
            b = load(state, (ROWS_PER_ARM * arm + 1) * LANES + g)
            mean, more = a / (a + b), a + b + 1.0
            others = simd.where_at_least(mean, best, second, best)
            success, failure = maximum(others, (a + 1.0) / more), maximum(others, a / more)
            store(values, arm * LANES + g, mean * success + (1.0 - mean) * failure)


@tile(DRAW_EACH)
def draw_each(p, n, keys, ats, numbers, state, signal, scratch, values):
    """One posterior draw of the means, with a draw number of its own for each lane."""
    elements = np.empty(LANES, np.uint64)
    for arm in range(n[At.ARMS]):
        for g in range(0, LANES, WIDTH):
            slot = mix(load(ats, g) + ((load(numbers, g) << S32) | np.uint64(arm)))
            store(elements, g, load(keys, g) + slot)
        rows = state[ROWS_PER_ARM * arm : ROWS_PER_ARM * (arm + 1)]
        beta_row(elements, ZERO, rows, scratch[:2], values[arm])
