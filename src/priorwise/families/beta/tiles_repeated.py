"""What several pulls of an arm with a Beta belief teach: the twin of ``repeated``, in lockstep."""

from math import lgamma
from typing import Final

import numpy as np

from priorwise.families.beta import tiles
from priorwise.families.beta.tiles import At
from priorwise.kernels.compiling import BEST_AFTER_PULLS, LANES, inline, tile
from priorwise.kernels.elementary import exp, log_gamma
from priorwise.kernels.simd import (
    WIDTH,
    largest,
    load,
    maximum,
    minimum,
    splat,
    store,
    trunc,
    where_at_least,
)

NEGLIGIBLE: Final = 1e-14  # as in ``repeated``
ROWS_PER_ARM: Final = 5  # of scratch
# the larger of the arm's mean and the best other one c; c, or 1 - c where that is above; a and b,
# then the other way round; - log B(a, b)
TOP, EDGE, OWN, OTHER, LOG_INVERSE = range(ROWS_PER_ARM)


@inline
def prepare(p, n, state, mask, scratch, values, g):
    """Write the means, and what all numbers of pulls share."""
    arms = n[At.ARMS]
    best, second, zero = splat(-np.inf), splat(-np.inf), splat(0.0)
    for arm in range(arms):
        a = load(state, tiles.ROWS_PER_ARM * arm * LANES + g)
        b = load(state, (tiles.ROWS_PER_ARM * arm + 1) * LANES + g)
        mean = a / (a + b) + load(mask, arm * LANES + g)
        second = maximum(second, minimum(best, mean))
        best = maximum(best, mean)
    for arm in range(arms):
        a = load(state, tiles.ROWS_PER_ARM * arm * LANES + g)
        b = load(state, (tiles.ROWS_PER_ARM * arm + 1) * LANES + g)
        mean, first = a / (a + b), ROWS_PER_ARM * arm * LANES + g
        c = maximum(where_at_least(mean, best, second, best), zero)  # 0 where there is no other
        store(values, arm * LANES + g, mean)
        store(scratch, first + TOP * LANES, maximum(mean, c))
        store(scratch, first + EDGE * LANES, where_at_least(mean, c, c, 1.0 - c))
        store(scratch, first + OWN * LANES, where_at_least(mean, c, a, b))
        store(scratch, first + OTHER * LANES, where_at_least(mean, c, b, a))
        log_inverse = log_gamma(a + b) - log_gamma(a) - log_gamma(b)
        store(scratch, first + LOG_INVERSE * LANES, log_inverse)


@inline
def shortfall(a, b, edge, log_inverse, pulls, log_orders):
    """``E (edge - s)^+ / (a + b + m)`` for the beta-binomial s, 0 where the edge is not above 0;
    ``log_orders`` is ``log m!``.
    """
    zero, edge = splat(0.0), maximum(edge, splat(0.0))
    below = trunc(edge)
    s = maximum(where_at_least(below, edge, below - 1.0, below), zero)
    rest = pulls - s
    log_chance = log_inverse + log_gamma(a + s) + log_gamma(b + rest) - log_gamma(a + b + pulls)
    log_chance = log_chance + log_orders - log_gamma(s + 1.0) - log_gamma(rest + 1.0)
    chance = exp(maximum(log_chance, splat(-700.0)))
    out = chance * (edge - s)
    while True:
        chance = chance * (s * (b + rest) / ((rest + 1.0) * maximum(a + s - 1.0, a)))
        s, rest = s - 1.0, rest + 1.0
        term = chance * (edge - s)
        term = where_at_least(out * NEGLIGIBLE, term, zero, term)
        out = out + term
        if not largest(term) > 0.0:
            return out / (a + b + pulls)


@tile(BEST_AFTER_PULLS)
def best_after_pulls(p, n, pulls, state, signal, mask, scratch, values):
    """Average the best posterior mean over the successes of several pulls."""
    m = float(pulls)
    log_orders = lgamma(m + 1.0)
    for g in range(0, LANES, WIDTH):
        if pulls == 0:
            prepare(p, n, state, mask, scratch, values, g)
        else:
            for arm in range(n[At.ARMS]):
                first = ROWS_PER_ARM * arm * LANES + g
                a = load(scratch, first + OWN * LANES)
                b = load(scratch, first + OTHER * LANES)
                edge = load(scratch, first + EDGE * LANES) * (a + b + m) - a
                best = load(scratch, first + TOP * LANES)
                if largest(edge) > 0.0:
                    log_inverse = load(scratch, first + LOG_INVERSE * LANES)
                    best = best + shortfall(a, b, edge, log_inverse, m, log_orders)
                store(values, arm * LANES + g, best)
