"""Tile functions of priors on finitely many mean vectors.

A belief holds the log weights of the possible tasks, then their weights, then the count of
impossible trajectories.
"""

import numpy as np

from priorwise.core.tiles import Layout
from priorwise.kernels import compiling as kinds
from priorwise.kernels import simd
from priorwise.kernels.compiling import LANES, inline, tile
from priorwise.kernels.random import call_key, mix, one_normal, slot_key, uniforms, unit
from priorwise.kernels.simd import WIDTH, gather, load, peek, poke, splat, store, where_at_least

NONE, BERNOULLI, GAUSSIAN = 0, 1, 2


class At(Layout):
    """What the kernels of finite priors read; from PART on for the look-ahead only.

    A cell is an arm and one of the means it may have: what a noiseless pull shows. Rows that are
    read by vectors which start at any arm are repeated beyond the last.
    """

    ARMS = 0
    SUPPORT = 1  # possible tasks
    NOISE = 2  # NONE, BERNOULLI or GAUSSIAN
    MEANS = 3  # (support, arm)
    LOG_WEIGHTS = 4  # (support,)
    NOISE_VAR = 5  # (arm,)
    NOISE_STD = 6  # (arm,)
    TOLERANCE = 7  # for equal rewards
    ORDER = 8  # (arm, support), integers: tasks from the lowest to the highest mean
    PART = 9  # a number that all means are multiples of
    MULTIPLE = 10  # the largest mean in parts, or 0 if there is no common part
    SIGNED = 11  # whether means may cancel
    ROWS = 12  # (support, arm + WIDTH), means
    ROW_STDS = 13  # (arm + WIDTH,)
    CELLS = 14  # their number
    CELL_VALUES = 15  # (cell,), means that the cells show, in whole batches
    CELL_MEANS = 16  # (support, cell), means of the tasks on the arm of each cell
    RECORD = 17  # words of what is kept about a cell
    RECORDS = 18  # (support, arm + WIDTH), integers: where the record of each mean begins


@tile(kinds.SAMPLE)
def sample(p, n, keys, environment):
    """Draw which task it is; the environment is its mean vector."""
    arms, support = n[At.ARMS], n[At.SUPPORT]
    cumulative = np.empty(support)
    ids = np.empty(support, np.int64)
    active = 0
    total = 0.0
    for s in range(support):
        weight = np.exp(p[n[At.LOG_WEIGHTS] + s])
        if weight > 0.0:
            total += weight
            cumulative[active] = total
            ids[active] = s
            active += 1
    slot = slot_key(call_key(0, 0), 0, 0)
    for lane in range(LANES):
        target, place = unit(mix(keys[lane] + slot)) * total, 0
        for k in range(active):
            place += 1 if cumulative[k] <= target else 0
        s = ids[min(place, active - 1)]
        for arm in range(arms):
            environment[arm, lane] = p[n[At.MEANS] + s * arms + arm]


@tile(kinds.REWARD)
def reward(p, n, keys, step, environment, chosen, actions, spare, rewards):
    """Reward of the chosen arms: the mean, 0 or 1, or the mean with normal noise; one number a
    step, whatever the arm.
    """
    at = call_key(step, 0)
    if n[At.NOISE] == BERNOULLI:
        uniforms(keys, at, 0, 0, rewards)
        for lane in range(LANES):
            rewards[lane] = 1.0 if rewards[lane] < chosen[lane] else 0.0
    elif n[At.NOISE] == GAUSSIAN:
        one_normal(keys, step, spare, rewards)
        for lane in range(LANES):
            rewards[lane] = chosen[lane] + p[n[At.NOISE_STD] + actions[lane]] * rewards[lane]
    else:
        for lane in range(LANES):
            rewards[lane] = chosen[lane]


@inline
def restart(p, n, state, lane):
    """Set a lane to the prior."""
    support, first = n[At.SUPPORT], n[At.LOG_WEIGHTS]
    for s in range(support):
        state[s, lane] = p[first + s]
        state[support + s, lane] = np.exp(state[s, lane])


@tile(kinds.START)
def start(p, n, state):
    """Start the belief at the prior."""
    support, first = n[At.SUPPORT], n[At.LOG_WEIGHTS]
    for s in range(support):
        state[s] = p[first + s]
        state[support + s] = np.exp(p[first + s])
    state[2 * support] = 0.0


@inline
def total_weight(state, support, g):
    """Return the sum of the weights, for a group of lanes."""
    total = splat(0.0)
    for s in range(support):
        total = total + load(state, (support + s) * LANES + g)
    return total


@inline
def mean_vectors(p, n, state, share, values):
    """Write the mean vectors of drawn tasks: the first whose running weight exceeds a share of the
    total; the row of shares is used up.
    """
    arms, support, means = n[At.ARMS], n[At.SUPPORT], n[At.MEANS]
    one, zero = splat(1.0), splat(0.0)
    for g in range(0, LANES, WIDTH):
        target = load(share, g) * total_weight(state, support, g)
        running, place, last = zero, zero, zero
        for s in range(support):
            weight = load(state, (support + s) * LANES + g)
            running = running + weight
            place = place + where_at_least(target, running, one, zero)
            # rounding must not pick a weight of 0
            last = where_at_least(zero, weight, last, splat(float(s)))
        store(share, g, where_at_least(place, last, last, place))
    for lane in range(LANES):
        first = means + np.int64(peek(share, lane)) * arms
        for arm in range(arms):
            poke(values, arm * LANES + lane, peek(p, first + arm))


@tile(kinds.DRAW)
def draw(p, n, keys, at, draw, state, signal, scratch, values):
    """Return the mean vector of one drawn task."""
    uniforms(keys, at, 0, draw, scratch[0])
    mean_vectors(p, n, state, scratch[0], values)


@inline
def averages(p, n, state, values, absolute):
    """Write the posterior means of the arms' means, or of their absolute values."""
    arms, support, means = n[At.ARMS], n[At.SUPPORT], n[At.MEANS]
    for g in range(0, LANES, WIDTH):
        total = total_weight(state, support, g)
        for arm in range(arms):
            value = splat(0.0)
            for s in range(support):
                each = peek(p, means + s * arms + arm)
                each = splat(abs(each) if absolute else each)
                value = simd.fma(load(state, (support + s) * LANES + g), each, value)
            store(values, arm * LANES + g, value / total)


@tile(kinds.MEAN)
def mean(p, n, state, signal, scratch, values):
    """Posterior means."""
    averages(p, n, state, values, False)


@tile(kinds.MEAN)
def mean_size(p, n, state, signal, scratch, values):
    """Posterior means of the absolute means."""
    averages(p, n, state, values, True)


@inline
def possible_tasks(state, support, g):
    """Return how many tasks are possible, and the last of them, for a group of lanes."""
    zero, one = splat(0.0), splat(1.0)
    count, last = zero, simd.zeros()
    for s in range(support):
        weight = load(state, (support + s) * LANES + g)
        count = count + where_at_least(zero, weight, zero, one)
        last = where_at_least(zero, weight, last, simd.zeros() + np.uint64(s))
    return count, last


@tile(kinds.CERTAIN)
def certain(p, n, state, out):
    """Show whether one possible task is left."""
    one, zero = splat(1.0), splat(0.0)
    for g in range(0, LANES, WIDTH):
        count, _ = possible_tasks(state, n[At.SUPPORT], g)
        store(out, g, where_at_least(one, count, count, zero))


@inline
def rule_out(p, n, state, actions, rewards, best):
    """Without noise: rule out the tasks whose mean is not the reward, and write the best log weight
    that is left.

    Where one task is possible it is left as it is, or nothing is.
    """
    arms, support = n[At.ARMS], n[At.SUPPORT]
    zero, never, tolerance = splat(0.0), splat(-np.inf), splat(p[n[At.TOLERANCE]])
    for g in range(0, LANES, WIDTH):
        reward, most = load(rewards, g), never
        place = load(actions, g) + np.uint64(n[At.MEANS])
        count, last = possible_tasks(state, support, g)
        if simd.largest(count) <= 1.0:
            apart = gather(p, last * np.uint64(arms) + place) - reward
            own = gather(state, last * np.uint64(LANES) + simd.iota() + np.uint64(g))
            store(best, g, where_at_least(tolerance, simd.maximum(apart, 0.0 - apart), own, never))
            continue
        for s in range(support):
            apart = gather(p, place + np.uint64(s * arms)) - reward
            apart = simd.maximum(apart, 0.0 - apart)
            row = where_at_least(tolerance, apart, load(state, s * LANES + g), never)
            store(state, s * LANES + g, row)
            weight = (support + s) * LANES + g
            store(state, weight, where_at_least(tolerance, apart, load(state, weight), zero))
            most = simd.maximum(most, row)
        store(best, g, most)


@inline
def add_log_likelihoods(p, n, state, actions, rewards, best):
    """Add the log likelihoods of noisy rewards, up to a constant of each, and write the best log
    weight.
    """
    arms, means = n[At.ARMS], n[At.MEANS]
    best[:] = -np.inf
    for s in range(n[At.SUPPORT]):
        row = state[s]
        for lane in range(LANES):
            if row[lane] > -np.inf:
                arm = actions[lane]
                mean, reward = peek(p, means + s * arms + arm), rewards[lane]
                if n[At.NOISE] == BERNOULLI:
                    row[lane] += np.log(mean if reward > 0.5 else 1.0 - mean)
                else:
                    gap = reward - mean
                    row[lane] += -0.5 * gap * gap / p[n[At.NOISE_VAR] + arm]
                best[lane] = max(best[lane], row[lane])


@inline
def rescale(state, support, best, lane):
    """Shift the log weights of a lane to a largest of 0, and write the weights."""
    for s in range(support):
        shifted = peek(state, s * LANES + lane) - best
        poke(state, s * LANES + lane, shifted)
        weight = 0.0 if shifted == -np.inf else np.exp(shifted) if shifted < 0.0 else 1.0
        poke(state, (support + s) * LANES + lane, weight)


@tile(kinds.UPDATE)
def update(p, n, state, signal, scratch, actions, rewards):
    """Condition on the chosen arms' rewards; where no task could have given it, start again from
    the prior and count it.
    """
    support, best = n[At.SUPPORT], scratch[0]
    if n[At.NOISE] == NONE:
        rule_out(p, n, state, actions, rewards, best)
    else:
        add_log_likelihoods(p, n, state, actions, rewards, best)
    for lane in range(LANES):
        if best[lane] == -np.inf:
            restart(p, n, state, lane)
            poke(state, 2 * support * LANES + lane, peek(state, 2 * support * LANES + lane) + 1.0)
        # without noise a weight that is left only changes by the common factor
        elif best[lane] != 0.0 or n[At.NOISE] != NONE:
            rescale(state, support, best[lane], lane)
