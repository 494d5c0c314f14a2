"""Tile functions of normal-gamma beliefs for policies that read quantiles, exact look-ahead, or
many draws of few tasks.

Student's law is SciPy's own, called by its address. Its quantiles depend on the shape and the level
alone, of which tasks meet few: they are kept from tile to tile in the rows of the belief after its
own, four numbers each: shape, level, quantile and one that is not used.
"""

from __future__ import annotations

import math

import numpy as np

from priorwise.families.normal_gamma.student import LARGE
from priorwise.families.normal_gamma.tiles import ROWS_PER_ARM, At, draw_row
from priorwise.kernels.compiling import (
    BEST_AFTER,
    BEST_AFTER_PULLS,
    DRAW_EACH,
    LANES,
    QUANTILE,
    inline,
    tile,
)
from priorwise.kernels.random import S32, ZERO, mix
from priorwise.kernels.simd import WIDTH, bits_of, load, peek, poke, store
from priorwise.kernels.special import FOUR, address_of_special, call_special


def addresses() -> tuple[int | None, int | None]:
    """Addresses of the quantile and the distribution function of Student's law."""
    return address_of_special("stdtrit", 2), address_of_special("stdtr", 2)


@tile(QUANTILE)
def quantile(p, n, level, normal, state, signal, scratch, values):
    """Posterior quantiles; Student's are kept by (shape, level)."""
    arms, address = n[At.ARMS], bits_of(p[n[At.INVERSE]])
    kept = state[ROWS_PER_ARM * arms :].reshape(-1)
    last, salt = np.uint64(len(kept) // 4 - 1), mix(bits_of(level))
    for arm in range(arms):
        rows = state[ROWS_PER_ARM * arm : ROWS_PER_ARM * (arm + 1)]
        for lane in range(LANES):
            a = rows[2, lane]
            at = np.int64((mix(bits_of(a) + salt) & last) * FOUR)
            if peek(kept, at) != a or peek(kept, at + 1) != level:
                poke(kept, at, a)
                poke(kept, at + 1, level)
                poke(kept, at + 2, call_special(address, 2.0 * a, level))
            scale = math.sqrt(rows[3, lane] / (a * rows[1, lane]))
            values[arm, lane] = rows[0, lane] + scale * peek(kept, at + 2)


@inline
def half_ratio(a):
    """``Gamma(a + 1/2) / Gamma(a)``."""
    if a < LARGE:
        return math.exp(math.lgamma(a + 0.5) - math.lgamma(a))
    x = 1.0 / a
    return math.sqrt(a) * (1.0 - x * (1 / 8 - x * (1 / 128 + x * (5 / 1024 - x * 21 / 32768))))


@inline
def expected_excess(address, freedom, c):
    """``E (T - c)^+`` for c from 0 on."""
    peak = half_ratio(freedom / 2.0) / math.sqrt(freedom * math.pi) * freedom / (freedom - 1.0)
    fall = math.exp(-0.5 * (freedom - 1.0) * math.log1p(c * c / freedom))
    return max(peak * fall - c * call_special(address, freedom, -c), 0.0)


@inline
def write_best_after(p, n, pulls, state, mask, values):
    """Write ``E max(c, m + sqrt(b / (a k)) / sqrt(k / pulls + 1) T)`` for each pulled arm, c the
    best mean of the others.
    """
    arms, address = n[At.ARMS], bits_of(p[n[At.CUMULATIVE]])
    for lane in range(LANES):
        for arm in range(arms):
            rows = state[ROWS_PER_ARM * arm : ROWS_PER_ARM * (arm + 1)]
            others = -np.inf
            for other in range(arms):
                if other != arm:
                    others = max(others, state[ROWS_PER_ARM * other, lane] + mask[other, lane])
            m, k, a, b = rows[0, lane], rows[1, lane], rows[2, lane], rows[3, lane]
            best = m
            if others > -np.inf:
                scale = math.sqrt(b / (a * k)) / math.sqrt(k / pulls + 1.0)
                best = max(others, m)
                best += scale * expected_excess(address, 2.0 * a, abs(others - m) / scale)
            values[arm, lane] = best


@tile(BEST_AFTER)
def best_after(p, n, state, signal, mask, scratch, values):
    """Write the best posterior mean after one pull of each arm."""
    write_best_after(p, n, 1.0, state, mask, values)


@tile(BEST_AFTER_PULLS)
def best_after_pulls(p, n, pulls, state, signal, mask, scratch, values):
    """Write the same after several pulls; after none, the means."""
    if pulls == 0:
        for arm in range(n[At.ARMS]):
            for lane in range(LANES):
                values[arm, lane] = state[ROWS_PER_ARM * arm, lane]
        return
    write_best_after(p, n, float(pulls), state, mask, values)


@tile(DRAW_EACH)
def draw_each(p, n, keys, ats, numbers, state, signal, scratch, values):
    """One posterior draw of the means, with a draw number of its own for each lane."""
    elements = np.empty(LANES, np.uint64)
    for arm in range(n[At.ARMS]):
        for g in range(0, LANES, WIDTH):
            slot = mix(load(ats, g) + ((load(numbers, g) << S32) | np.uint64(arm)))
            store(elements, g, load(keys, g) + slot)
        draw_row(
            elements,
            ZERO,
            state[ROWS_PER_ARM * arm : ROWS_PER_ARM * (arm + 1)],
            scratch[0],
            values[arm],
        )
