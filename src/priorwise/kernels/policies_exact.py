"""Tile functions of policies that read quantiles or exact look-ahead, of top-two sampling, and of
policies that explore first and then hand over to another.
"""

import numpy as np

from priorwise.core.lookahead import ALL_PULLS, RATIO
from priorwise.kernels import compiling as kinds
from priorwise.kernels import policies
from priorwise.kernels.compiling import ACT, LANES, caller, inline, tile
from priorwise.kernels.random import ZERO, call_key, slot_key, uniforms
from priorwise.kernels.simd import WIDTH, gather, load, maximum, splat, store, where_at_least

quantiles, best_after = caller(kinds.QUANTILE), caller(kinds.BEST_AFTER)
best_after_pulls = caller(kinds.BEST_AFTER_PULLS)
draw_each, call_policy = caller(kinds.DRAW_EACH), caller(ACT)

FIRST_DRAWS = 8  # of top-two sampling in one request; then as many as were tried before


@tile(ACT)
def bayes_ucb(pp, pn, keys, step, table, p, n, state, signal, mask, scratch, values, acc, actions):
    """Choose the largest posterior quantile; ``pp`` holds two numbers a step, the level and the
    quantile of a standard normal.
    """
    at, own = pp[2 * step - 2], pp[2 * step - 1]
    quantiles(table[kinds.QUANTILE_AT], p, n, at, own, state, signal, scratch, values)
    policies.pick_score(
        pn, keys, step, table, p, n, state, signal, mask, scratch, values, acc, actions
    )


@inline
def largest_size(sizes, mask, arms, most):
    """Write the size of what the best mean is a sum of, at most."""
    for g in range(0, LANES, WIDTH):
        largest = splat(0.0)
        for arm in range(arms):
            place = arm * LANES + g
            largest = maximum(largest, load(sizes, place) + load(mask, place))
        store(most, g, largest)


@inline
def pick_mean(now, sizes, values, arms, keys, step, most, count, actions):
    """Choose the largest mean, and leave the means in ``values``."""
    policies.level(now, sizes, arms)
    for place in range(0, arms * LANES, WIDTH):
        store(values, place, load(now, place))
    policies.pick(values, arms, keys, call_key(step, 0), most, count, actions)


@tile(ACT)
def exact_knowledge_gradient(
    pp, pn, keys, step, table, p, n, state, signal, mask, scratch, values, acc, actions
):
    """Choose the largest (1 - alpha) E[mu_a] + alpha E[max_a' E[mu_a' given r_a]], then the largest
    mean; ``pp`` holds the alphas.
    """
    arms, masked, alpha = pn[0], pn[3], pp[step - 1]
    now, sizes, total_sizes = acc[:arms], acc[arms : 2 * arms], acc[2 * arms : 3 * arms]
    most, count = acc[3 * arms], acc[3 * arms + 1]
    policies.mean_values(table[kinds.MEAN_AT], p, n, state, signal, scratch, now)
    if table[kinds.MEAN_SIZE_AT] != 0:
        policies.mean_values(table[kinds.MEAN_SIZE_AT], p, n, state, signal, scratch, sizes)
    else:
        policies.absolute(now, arms, sizes)
    if alpha != 0.0:
        best_after(table[kinds.BEST_AFTER_AT], p, n, state, signal, mask, scratch, values)
        largest_size(sizes, mask, arms, most)
        for place in range(0, arms * LANES, WIDTH):
            then = load(values, place)
            size = maximum(load(most, place % LANES), maximum(then, 0.0 - then))
            store(total_sizes, place, load(sizes, place) * (1.0 - alpha) + size * alpha)
            store(values, place, load(now, place) * (1.0 - alpha) + then * alpha)
    if masked:
        policies.add_mask(now, mask, arms)
        policies.add_mask(values, mask, arms)
    if alpha != 0.0:
        policies.level(values, total_sizes, arms)
        policies.keep_ties(values, now, arms, most)
    pick_mean(now, sizes, values, arms, keys, step, most, count, actions)


@tile(ACT)
def best_number_of_pulls(
    pp, pn, keys, step, table, p, n, state, signal, mask, scratch, values, acc, actions
):
    """Choose the largest max_m [m E[mu_a] + (N - m) E[max_b E[mu_b given m rewards of a]]], then
    the largest mean; ``pp`` holds how many pulls N are left.
    """
    arms, masked, left = pn[0], pn[3], pp[step - 1]
    now, sizes, best_sizes = acc[:arms], acc[arms : 2 * arms], acc[2 * arms : 3 * arms]
    ahead, most, count = acc[3 * arms : 4 * arms], acc[4 * arms], acc[4 * arms + 1]
    of_belief, after = (state, signal, mask, scratch), table[kinds.BEST_AFTER_PULLS_AT]
    if table[kinds.MEAN_SIZE_AT] != 0:
        policies.mean_values(table[kinds.MEAN_SIZE_AT], p, n, state, signal, scratch, sizes)
    best_after_pulls(after, p, n, 0, *of_belief, now)
    if table[kinds.MEAN_SIZE_AT] == 0:
        policies.absolute(now, arms, sizes)
    largest_size(sizes, mask, arms, most)
    for place in range(0, arms * LANES, WIDTH):
        store(values, place, load(now, place))  # of committing
        store(best_sizes, place, load(sizes, place))
    pulls = 1
    while pulls < left:
        alpha = (left - pulls) / left
        best_after_pulls(after, p, n, pulls, *of_belief, ahead)
        for place in range(0, arms * LANES, WIDTH):
            then, best = load(ahead, place), load(values, place)
            value = load(now, place) * (1.0 - alpha) + then * alpha
            size = maximum(load(most, place % LANES), maximum(then, 0.0 - then))
            size = load(sizes, place) * (1.0 - alpha) + size * alpha
            store(best_sizes, place, where_at_least(best, value, load(best_sizes, place), size))
            store(values, place, maximum(value, best))
        pulls = pulls + 1 if pulls < ALL_PULLS else int(pulls * RATIO)
    if masked:
        policies.add_mask(now, mask, arms)
        policies.add_mask(values, mask, arms)
    policies.level(values, best_sizes, arms)
    policies.keep_ties(values, now, arms, most)
    pick_mean(now, sizes, values, arms, keys, step, most, count, actions)


@inline
def request_of(number):
    """Return which request of draws, from 0 on, holds a draw, and its place in it."""
    request, first, size = 0, 0, FIRST_DRAWS
    while number >= first + size:
        first += size
        size = first
        request += 1
    return request, number - first


@tile(ACT)
def top_two(pp, pn, keys, step, table, p, n, state, signal, mask, scratch, values, acc, actions):
    """Choose the best arm of a draw, or with probability 1 - share that of the first draw which
    disagrees; ``pp`` holds the share.

    Tasks that search share the lanes: each lane draws for one of them, with the number of the draw
    that is its turn, so that no lane waits for the longest search of the tile.
    """
    arms, most_draws, masked, rows, signals = pn[0], pn[1], pn[3], pn[4], pn[5]
    floor, count, stay = acc[0], acc[1], acc[2]
    at = call_key(step, 1)
    policies.draw_values(table[kinds.DRAW_AT], p, n, keys, at, 0, state, signal, scratch, values)
    if masked:
        policies.add_mask(values, mask, arms)
    policies.pick(values, arms, keys, call_key(step, 2), floor, count, actions)
    uniforms(keys, call_key(step, 0), 0, 0, stay)
    own_state, own_signal = np.empty((rows, LANES)), np.empty((max(signals, 1), LANES))
    words, chosen = np.empty((5, LANES), np.uint64), np.empty(LANES, np.int64)
    own_keys, ats, numbers, places, breakers = words[0], words[1], words[2], words[3], words[4]
    searching, tried = np.empty(LANES, np.int64), np.zeros(LANES, np.int64)
    left = 0
    for lane in range(LANES):
        if stay[lane] >= pp[0]:
            searching[left] = lane
            left += 1
    while left > 0:
        each = LANES // left
        for lane in range(LANES):
            task = searching[min(lane // each, left - 1)]
            number = tried[task] + lane % each
            request, place = request_of(number)
            own_keys[lane] = keys[task]
            places[lane] = np.uint64(task)
            ats[lane] = call_key(step, 3 + 2 * request)
            numbers[lane] = np.uint64(place)
            breakers[lane] = keys[task] + slot_key(call_key(step, 4 + 2 * request), 0, place)
        for row in range(rows):
            for g in range(0, LANES, WIDTH):
                store(own_state, row * LANES + g, gather(state[row], load(places, g)))
        for row in range(signals):
            for g in range(0, LANES, WIDTH):
                store(own_signal, row * LANES + g, gather(signal[row], load(places, g)))
        draw_each(
            table[kinds.DRAW_EACH_AT], p, n, own_keys, ats, numbers, own_state, own_signal, scratch,
            values,
        )  # fmt: skip
        if masked:
            for arm in range(arms):
                for lane in range(LANES):
                    values[arm, lane] += mask[arm, places[lane]]
        policies.pick_slot(values, arms, breakers, ZERO, floor, count, chosen)
        still = 0
        for k in range(left):
            task, first = searching[k], k * each
            found = False
            for lane in range(first, first + min(each, most_draws - tried[task])):
                if not found and chosen[lane] != actions[task]:
                    actions[task] = chosen[lane]
                    found = True
            tried[task] += each
            if not found and tried[task] < most_draws:
                searching[still] = task
                still += 1
        left = still


@tile(ACT)
def first_then(pp, pn, keys, step, table, p, n, state, signal, mask, scratch, values, acc, actions):
    """Rounds of the first policy, addresses of both, how many sizes the first has, all sizes."""
    first = step <= pn[0]
    sizes = pn[4 : 4 + pn[3]] if first else pn[4 + pn[3] :]
    rest = (keys, step, table, p, n, state, signal, mask, scratch, values, acc, actions)
    call_policy(pn[1 if first else 2], pp, sizes, *rest)


@tile(ACT)
def given_arms(pp, pn, keys, step, table, p, n, state, signal, mask, scratch, values, acc, actions):
    """Play the arms in order, the last of them to the end."""
    arm = pn[min(step, len(pn)) - 1]
    for lane in range(LANES):
        actions[lane] = arm
