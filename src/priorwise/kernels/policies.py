"""Tile functions of policies: they see a belief through its draws, its mean or its look-ahead,
never its parameters.
"""

import numpy as np

from priorwise.core.choosing import SMALLEST_SIZE, TIE_TOLERANCE
from priorwise.kernels import compiling as kinds
from priorwise.kernels.compiling import ACT, LANES, caller, inline, tile
from priorwise.kernels.random import call_key, mix, slot_key, uniforms, unit, whole
from priorwise.kernels.simd import WIDTH, largest, load, maximum, splat, store, where_at_least

draw_values, mean_values = caller(kinds.DRAW), caller(kinds.MEAN)
look_ahead, is_certain = caller(kinds.LOOK), caller(kinds.CERTAIN)

MAX, SUM, SOFTMAX = 0, 1, 2
TIES_BY_DRAWS, TIES_RANDOM = 0, 1
MOST_COUNTED = (1 << 16) - 1  # look-ahead draws; finite families count them in 16 bits
# look-ahead draws in all, where their keys are kept (128 MB); more run in NumPy
MOST_KEYED = 1 << 26


@inline
def at_least_smallest(values):
    """Return the absolute values, or the smallest size that ties are judged by."""
    return maximum(maximum(values, 0.0 - values), splat(SMALLEST_SIZE))


@inline
def absolute(values, rows, out):
    """Write the absolute values."""
    for place in range(0, rows * LANES, WIDTH):
        store(out, place, maximum(load(values, place), 0.0 - load(values, place)))


@inline
def least_tie(values, arms, g):
    """Return the least value that ties with the largest, for a group of lanes."""
    best = load(values, g)
    for arm in range(1, arms):
        best = maximum(best, load(values, arm * LANES + g))
    return best - at_least_smallest(best) * TIE_TOLERANCE


@inline
def floor_of_ties(values, arms, floor):
    """Write the least value that ties with the largest."""
    for g in range(0, LANES, WIDTH):
        store(floor, g, least_tie(values, arms, g))


@inline
def level(values, sizes, arms):
    """Set the values that tie with the largest, given the sizes of what they are sums of, to that
    value.
    """
    half, one, zero = TIE_TOLERANCE / 2.0, splat(1.0), splat(0.0)
    for g in range(0, LANES, WIDTH):
        best, size = splat(-np.inf), zero
        for arm in range(arms):
            best = maximum(best, load(values, arm * LANES + g))
            size = maximum(size, load(sizes, arm * LANES + g))
        floor, near = best - maximum(size, at_least_smallest(best)) * (2.0 * TIE_TOLERANCE), zero
        for arm in range(arms):
            near = near + where_at_least(load(values, arm * LANES + g), floor, one, zero)
        if largest(near) <= 1.0:  # nothing comes near the best, whatever its own size
            continue
        least = splat(-np.inf)
        for arm in range(arms):
            value = load(values, arm * LANES + g)
            size = maximum(load(sizes, arm * LANES + g), at_least_smallest(value))
            least = maximum(least, value - size * half)
        for arm in range(arms):
            value = load(values, arm * LANES + g)
            size = maximum(load(sizes, arm * LANES + g), at_least_smallest(value))
            store(values, arm * LANES + g, where_at_least(value + size * half, least, best, value))


@inline
def keep_ties(values, others, arms, floor):
    """Set other values of the arms to -inf where the first ones do not tie with the largest."""
    floor_of_ties(values, arms, floor)
    for arm in range(arms):
        for lane in range(LANES):
            others[arm, lane] = others[arm, lane] if values[arm, lane] >= floor[lane] else -np.inf


@inline
def add_mask(values, mask, arms):
    """Put -inf on arms that are not available."""
    for place in range(0, arms * LANES, WIDTH):
        store(values, place, load(values, place) + load(mask, place))


@inline
def pick(values, arms, keys, at, floor, count, actions):
    """Choose the arm with the largest value; where several tie, one of them at random."""
    pick_slot(values, arms, keys, slot_key(at, 0, 0), floor, count, actions)


@inline
def pick_slot(values, arms, keys, slot, floor, count, actions):
    """Choose as :func:`pick`, given the key of the place of the random number."""
    one, zero = splat(1.0), splat(0.0)
    many = zero
    for g in range(0, LANES, WIDTH):
        least = least_tie(values, arms, g)
        index, hits = zero, zero
        for arm in range(arms):
            value = load(values, arm * LANES + g)
            index = where_at_least(value, least, splat(float(arm)), index)
            hits = hits + where_at_least(value, least, one, zero)
        many = maximum(many, hits)
        store(count, g, hits)
        store(actions, g, whole(index))
    if largest(many) <= 1.0:
        return
    floor_of_ties(values, arms, floor)
    for lane in range(LANES):
        if count[lane] > 1.0:
            rank = min(unit(mix(keys[lane] + slot)) * count[lane] // 1.0, count[lane] - 1.0)
            for arm in range(arms):
                if values[arm, lane] >= floor[lane]:
                    if rank == 0.0:
                        actions[lane] = arm
                    rank -= 1.0


@inline
def weighted(values, arms, keys, at, actions):
    """Choose an arm with probability proportional to the exponential of its value."""
    slot = slot_key(at, 0, 0)
    for lane in range(LANES):
        best = -np.inf
        for arm in range(arms):
            best = max(best, values[arm, lane])
        total = 0.0
        for arm in range(arms):
            total += np.exp(values[arm, lane] - best)
        target = unit(mix(keys[lane] + slot)) * total
        running = 0.0
        chosen = 0
        last = 0
        for arm in range(arms):
            weight = np.exp(values[arm, lane] - best)
            running += weight
            if running <= target:
                chosen = arm + 1
            if weight > 0.0:
                last = arm
        actions[lane] = min(chosen, last)


@tile(ACT)
def posterior_sampling(
    pp, pn, keys, step, table, p, n, state, signal, mask, scratch, values, acc, actions
):
    """(k, f)-posterior sampling: f is a maximum, a sum or a softmax of the sum over the k draws."""
    arms, k, rule, masked = pn[0], pn[1], pn[2], pn[3]
    at = call_key(step, 0)
    draw_values(table[kinds.DRAW_AT], p, n, keys, at, 0, state, signal, scratch, values)
    sizes = acc[arms : 2 * arms]
    sized = rule == SUM and k > 1
    if sized:
        absolute(values, arms, sizes)
    for i in range(1, k):
        draw_values(table[kinds.DRAW_AT], p, n, keys, at, i, state, signal, scratch, acc)
        for place in range(0, arms * LANES, WIDTH):
            value = load(acc, place)
            if rule == MAX:
                store(values, place, maximum(load(values, place), value))
            else:
                store(values, place, load(values, place) + value)
                if sized:
                    store(sizes, place, load(sizes, place) + maximum(value, 0.0 - value))
    if masked:
        add_mask(values, mask, arms)
    at = call_key(step, pn[4])
    if rule == SOFTMAX:
        weighted(values, arms, keys, at, actions)
    else:
        if sized:
            level(values, sizes, arms)
        pick(values, arms, keys, at, acc[0], acc[1], actions)


@inline
def pick_score(pn, keys, step, table, p, n, state, signal, mask, scratch, values, acc, actions):
    """Choose the largest of values as large as the posterior means."""
    if pn[3]:
        add_mask(values, mask, pn[0])
    if table[kinds.MEAN_SIZE_AT] != 0:
        mean_values(table[kinds.MEAN_SIZE_AT], p, n, state, signal, scratch, acc)
        level(values, acc, pn[0])
    pick(values, pn[0], keys, call_key(step, 0), acc[0], acc[1], actions)


@tile(ACT)
def greedy(pp, pn, keys, step, table, p, n, state, signal, mask, scratch, values, acc, actions):
    """Choose the largest posterior mean."""
    mean_values(table[kinds.MEAN_AT], p, n, state, signal, scratch, values)
    pick_score(pn, keys, step, table, p, n, state, signal, mask, scratch, values, acc, actions)


@tile(ACT)
def uniform(pp, pn, keys, step, table, p, n, state, signal, mask, scratch, values, acc, actions):
    """Choose any available arm."""
    if not pn[3]:
        uniforms(keys, call_key(step, 0), 0, 0, acc[0])
        for lane in range(LANES):
            actions[lane] = min(np.int64(acc[0, lane] * pn[0]), pn[0] - 1)
        return
    for place in range(0, pn[0] * LANES, WIDTH):
        store(values, place, load(mask, place))
    pick(values, pn[0], keys, call_key(step, 0), acc[0], acc[1], actions)


@tile(ACT)
def receding_horizon(
    pp, pn, keys, step, table, p, n, state, signal, mask, scratch, values, acc, actions
):
    """2-RHC: V_a = sum over i of (1 - alpha) mu_a + alpha max_a' of the mean of k2 look-ahead
    draws; ``pp`` holds the alphas.
    """
    arms, k1, k2, masked, ties, certain_best = pn[0], pn[1], pn[2], pn[3], pn[4], pn[5]
    alpha, at = pp[step - 1], call_key(step, 0)
    ahead, floor, count = acc[arms : 2 * arms], acc[2 * arms], acc[2 * arms + 1]
    known = acc[2 * arms + 2]
    sizes = acc[2 * arms + 3 :]  # of what the sums now are sums of, then of those ahead
    known[:] = 0.0
    if certain_best:
        is_certain(table[kinds.CERTAIN_AT], p, n, state, known)
        uncertain = False
        for lane in range(LANES):
            uncertain = uncertain or known[lane] == 0.0
        if not uncertain:
            mean_values(table[kinds.MEAN_AT], p, n, state, signal, scratch, values)
            if masked:
                add_mask(values, mask, arms)
            pick(values, arms, keys, at, floor, count, actions)
            return
    acc[: 2 * arms] = 0.0
    sized = pn[6] != 0
    if sized:
        sizes[:] = 0.0
    look_ahead(
        table[kinds.LOOK_AT], p, n, keys, step, 1, k1, k2, state, signal, mask, scratch, acc, ahead,
        sizes,
    )  # fmt: skip
    for place in range(0, arms * LANES, WIDTH):
        now, then = load(acc, place), load(ahead, place)
        total = now * (1.0 - alpha) + then * alpha
        if sized:
            now_size = maximum(load(sizes, place), at_least_smallest(now))
            then_size = maximum(load(sizes, arms * LANES + place), at_least_smallest(then))
            store(sizes, place, now_size)
            store(sizes, arms * LANES + place, now_size * (1.0 - alpha) + then_size * alpha)
        # a certain belief draws its mean
        store(values, place, where_at_least(load(known, place % LANES), splat(1.0), now, total))
    if masked:
        add_mask(values, mask, arms)
    if sized:
        level(values, sizes[arms:], arms)
    if ties == TIES_BY_DRAWS:
        keep_ties(values, acc, arms, floor)
        if sized:
            level(acc, sizes, arms)
        pick(acc, arms, keys, at, floor, count, actions)
    else:
        pick(values, arms, keys, at, floor, count, actions)
