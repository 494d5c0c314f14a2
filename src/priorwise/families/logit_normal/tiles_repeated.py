"""What several pulls of an arm with a logit-normal belief teach: the twin of ``repeated``, in
lockstep.
"""

from typing import Final

import numpy as np

from priorwise.families.gaussian.tiles import At
from priorwise.families.logit_normal.tiles import work_rows
from priorwise.families.logit_normal.tiles_propagation import rate_moments, variance_of
from priorwise.kernels.compiling import BEST_AFTER_PULLS, LANES, inline, tile
from priorwise.kernels.elementary import log, log1p
from priorwise.kernels.normal import probability_below
from priorwise.kernels.simd import (
    WIDTH,
    largest,
    load,
    maximum,
    minimum,
    splat,
    sqrt,
    store,
    where_at_least,
)

REACH: Final = 16.0
"""Beyond so many deviations nothing counts: 9, and as many as a curve may be steep."""
SMALLEST: Final = 1e-300


@inline
def prepare(p, n, state, scratch, kept, g):
    """Write means, their logs, squared coefficients of variation and the belief's worth in pulls,
    a row each, then by how much log means move with that of the pulled arm, (pulled, arm).
    """
    arms = n[At.ARMS]
    rate_moments(p, n, state, scratch, kept, kept[2 * arms :], g)
    for a in range(arms):
        mean, var = load(kept, a * LANES + g), load(kept, (2 * arms + a) * LANES + g)
        worth = mean * (1.0 - mean) / maximum(var, splat(SMALLEST)) - 1.0
        store(kept, (arms + a) * LANES + g, log(mean))
        store(kept, (2 * arms + a) * LANES + g, var / (mean * mean))
        store(kept, (3 * arms + a) * LANES + g, maximum(worth, splat(0.0)))
    for a in range(arms):
        own = log1p(load(kept, (2 * arms + a) * LANES + g))
        var = variance_of(state, arms, a, a, g)
        for b in range(arms):
            other = log1p(load(kept, (2 * arms + b) * LANES + g))
            share = sqrt(other / maximum(own, splat(SMALLEST)))
            both = sqrt(var * variance_of(state, arms, b, b, g))
            correlation = variance_of(state, arms, a, b, g) / maximum(both, splat(SMALLEST))
            store(kept, (4 * arms + a * arms + b) * LANES + g, correlation * share)


@inline
def expected_largest(means, levels, slopes, mask, arms, g):
    """``E max_b exp(level_b + slope_b Z)`` for standard normal Z and ``level_b = log mean_b -
    slope_b^2 / 2``; a mask of -inf takes a curve away.

    From the left to the right, a curve that ends at z gives ``mean Phi(z - slope)``, and the next
    one takes as much away of its own.
    """
    never, zero, end = splat(np.inf), splat(0.0), splat(REACH)
    height, level, slope, mean = splat(-np.inf), zero, zero, zero
    for b in range(arms):
        own = load(levels, b * LANES + g) + load(mask, b * LANES + g)
        rise = load(slopes, b * LANES + g)
        at_start = own - rise * REACH
        level = where_at_least(at_start, height, own, level)
        slope = where_at_least(at_start, height, rise, slope)
        mean = where_at_least(at_start, height, load(means, b * LANES + g), mean)
        height = maximum(at_start, height)
    total = zero
    for _ in range(arms):
        place, next_level, next_slope, next_mean = end, level, slope, mean
        for b in range(arms):
            own = load(levels, b * LANES + g) + load(mask, b * LANES + g)
            rise = load(slopes, b * LANES + g)
            steeper = rise - slope
            crossing = where_at_least(zero, steeper, never, (level - own) / steeper)
            next_level = where_at_least(crossing, place, next_level, own)
            next_slope = where_at_least(crossing, place, next_slope, rise)
            next_mean = where_at_least(crossing, place, next_mean, load(means, b * LANES + g))
            place = minimum(crossing, place)
        if largest(end - place) <= 0.0:
            break
        place = maximum(place, splat(-REACH))
        # where no other follows, as much is taken as given
        total = total + mean * probability_below(place - slope)
        total = total - next_mean * probability_below(place - next_slope)
        level, slope, mean = next_level, next_slope, next_mean
    return total + mean


@tile(BEST_AFTER_PULLS)
def best_after_pulls(p, n, pulls, state, signal, mask, scratch, values):
    """Best posterior mean after several pulls of an arm, by the lognormal approximation."""
    arms = n[At.ARMS]
    kept = scratch[work_rows(arms) :]
    m, levels, slopes = float(pulls), scratch[:arms], scratch[arms : 2 * arms]
    for g in range(0, LANES, WIDTH):
        if pulls == 0:
            prepare(p, n, state, scratch, kept, g)
            for arm in range(arms):
                store(values, arm * LANES + g, load(kept, arm * LANES + g))
        else:
            for arm in range(arms):
                worth = load(kept, (3 * arms + arm) * LANES + g)
                square = log1p(load(kept, (2 * arms + arm) * LANES + g) * (m / (worth + m)))
                moved = sqrt(square)
                for b in range(arms):
                    slope = load(kept, (4 * arms + arm * arms + b) * LANES + g) * moved
                    level = load(kept, (arms + b) * LANES + g) - slope * slope * 0.5
                    store(slopes, b * LANES + g, slope)
                    store(levels, b * LANES + g, level)
                best = expected_largest(kept, levels, slopes, mask, arms, g)
                store(values, arm * LANES + g, best)
