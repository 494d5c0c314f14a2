"""Look-ahead of priors on finitely many mean vectors, imagined pull by imagined pull.

Vectors run along the imagined pulls of one task here, not along the tasks of the tile: pull ``i *
arms + arm`` is the i-th of an arm, so neighbours read neighbouring means. Batches of pulls go
through the same steps together: draw a task and its reward, condition on it, and count how often
each possible task is drawn afterwards (``priorwise.families.finite.tiles_counts``).
"""

import numpy as np

from priorwise.families.finite import tiles_counts as counts
from priorwise.families.finite.tiles import BERNOULLI, GAUSSIAN, NONE, At, possible_tasks
from priorwise.families.finite.tiles_work import BATCH, begin, next_places, work_in
from priorwise.kernels import simd
from priorwise.kernels.compiling import LANES, LOOK, inline, tile
from priorwise.kernels.random import box_muller, mix, pair_start, unit
from priorwise.kernels.simd import WIDTH, gather, load, peek, poke, splat, store, where_at_least
from priorwise.kernels.spans import keep

NO_SIGN = np.uint64(0x7FFFFFFFFFFFFFFF)
I0 = np.int64(0)  # what becomes any integer: a mere 0 has helpers compiled for it as well
DONE = 1.0  # where one task is possible there is nothing to look for


@inline
def settle(p, n, k1, state, mask, number, last, now, ahead):
    """Write how many tasks are possible in each lane, and look ahead as if the last of them were
    the only one: every draw is that task. Return how many lanes have several.
    """
    several = 0
    for g in range(0, LANES, WIDTH):
        count, place = possible_tasks(state, n[At.SUPPORT], g)
        store(number, g, count)
        store(last, g, place)
    for lane in range(LANES):
        several += 1 if number[lane] > 1.0 else 0
    if several == LANES:
        return several
    arms = n[At.ARMS]
    for g in range(0, LANES, WIDTH):
        first = load(last, g) * np.uint64(arms) + np.uint64(n[At.MEANS])
        best = splat(-np.inf)
        for arm in range(arms):
            mean = gather(p, first + np.uint64(arm))
            best = simd.maximum(best, mean + load(mask, arm * LANES + g))
            store(now, arm * LANES + g, mean * float(k1))
        for arm in range(arms):
            store(ahead, arm * LANES + g, best * float(k1))
    return several


@inline
def read_weights(work, state, lane):
    """List the possible tasks of a lane with their weights, log weights and running weights. Return
    their number.
    """
    active, total, support = 0, 0.0, work.support
    for s in range(support):
        weight = peek(state, (support + s) * LANES + lane)
        if weight > 0.0:
            total += weight
            poke(work.ids, active, s)
            poke(work.weights, active, weight)
            poke(work.logs, active, peek(state, s * LANES + lane))
            poke(work.running, active, total)
            active += 1
    return active


@inline
def same_tasks(work, active, mask, lane, known_lane):
    """Whether a lane has the possible tasks listed before, and the available arms of the lane they
    were listed for.
    """
    same = active == work.support or peek(work.known, active) < 0
    for k in range(active):
        same = same and peek(work.known, k) == peek(work.ids, k)
    for arm in range(work.arms):
        same = same and peek(mask, arm * LANES + lane) == peek(mask, arm * LANES + known_lane)
    return same


@inline
def list_entries(work, p, n, mask, lane, active):
    """List the means other than 0 of each available arm, also in parts, and where the counts of the
    task are.

    Return how many arms have any, and 0 if an available arm has none, else -inf.
    """
    listed, entry, least = 0, 0, -np.inf
    inverse = 1.0 / work.part if work.part > 0.0 else 0.0
    pitch = WIDTH if work.part > 0.0 else BATCH
    for arm in range(work.arms):
        if peek(mask, arm * LANES + lane) == 0.0:
            before = entry
            for k in range(active):
                value = peek(p, n[At.MEANS] + peek(work.ids, k) * work.arms + arm)
                poke(work.entry_places, entry, k * pitch)
                poke(work.entry_values, entry, value)
                poke(work.entry_wholes, entry, np.uint64(np.int64(value * inverse + 0.5)))
                entry += 1 if value != 0.0 else 0
            poke(work.entry_ends, listed, entry)
            least = 0.0 if entry == before else least
            listed += 1 if entry > before else 0
    for k in range(work.support):
        poke(work.known, k, peek(work.ids, k) if k < active else -1)
    return listed, least


@inline
def draw_tasks(work, table, active, out, at):
    """Draw a task for each pull of a batch, by inversion, and write what its row has for the arm:
    its mean, or a record.
    """
    total = peek(work.running, active - 1)
    for v in range(0, 4, 2):
        a_bits = mix(load(work.task_slots, peek(work.places, v)) + peek(work.keys, v))
        b_bits = mix(load(work.task_slots, peek(work.places, v + 1)) + peek(work.keys, v + 1))
        a_target, b_target = unit(a_bits) * total, unit(b_bits) * total
        a_start, b_start, row = peek(work.starts, v), peek(work.starts, v + 1), peek(work.rows, 0)
        a, b = load(table, row + a_start), load(table, row + b_start)
        for k in range(1, active):
            end, row = splat(peek(work.running, k - 1)), peek(work.rows, k)
            a = where_at_least(a_target, end, load(table, row + a_start), a)
            b = where_at_least(b_target, end, load(table, row + b_start), b)
        store(out, at + v * WIDTH, a)
        store(out, at + (v + 1) * WIDTH, b)


@inline
def draw_rewards(work, p, n, step, at):
    """Draw the rewards of a batch."""
    one, zero = splat(1.0), splat(0.0)
    noise, odd = n[At.NOISE], step == pair_start(step)
    for v in range(4):
        reward = load(work.values, at + v * WIDTH)
        if noise == BERNOULLI:
            bits = mix(load(work.noise_slots, peek(work.places, v)) + peek(work.keys, v))
            reward = where_at_least(unit(bits), reward, zero, one)
        elif noise == GAUSSIAN:
            pair = box_muller(load(work.noise_slots, peek(work.places, v)) + peek(work.keys, v))
            deviations = load(p, n[At.ROW_STDS] + peek(work.starts, v))
            reward = deviations * (pair[0] if odd else pair[1]) + reward
        store(work.rewards, v * WIDTH, reward)


@inline
def rule_out(work, p, starts, shown, at, tolerance, active):
    """Write the weights after noiseless rewards of a batch: of tasks with these means, or 0."""
    zero, limit = splat(0.0), splat(tolerance)
    for k in range(active):
        weight, row = splat(peek(work.weights, k)), peek(work.rows, k)
        for v in range(4):
            mean, reward = load(p, row + peek(starts, v)), load(shown, at + v * WIDTH)
            apart = simd.float_of(simd.bits_of(mean - reward) & NO_SIGN)
            left = where_at_least(limit, apart, weight, zero)
            store(work.after, k * BATCH + v * WIDTH, left)


@inline
def weigh(work, p, n, active):
    """Write the weights after noisy rewards of a batch."""
    one = splat(1.0)
    if n[At.NOISE] == BERNOULLI:
        for k in range(active):
            weight, row = splat(peek(work.weights, k)), peek(work.rows, k)
            for v in range(4):
                mean, reward = load(p, row + peek(work.starts, v)), load(work.rewards, v * WIDTH)
                left = weight * where_at_least(reward, one, mean, 1.0 - mean)
                store(work.after, k * BATCH + v * WIDTH, left)
        return
    for pull in range(BATCH):
        arm = work.starts[pull // WIDTH] + pull % WIDTH
        std = p[n[At.ROW_STDS] + arm]
        best = -np.inf
        for k in range(active):
            deviation = (work.rewards[pull] - p[work.rows[k] + arm]) / std
            work.after[k * BATCH + pull] = work.logs[k] - 0.5 * deviation * deviation
            best = max(best, work.after[k * BATCH + pull])
        for k in range(active):
            work.after[k * BATCH + pull] = np.exp(work.after[k * BATCH + pull] - best)


@inline
def add_up(work, values, place, factor, lane, out, row):
    """Write the sums over the pulls of each arm, times a factor, for one lane."""
    for arm in range(0, work.arms, WIDTH):
        total = load(values, place + arm)
        for i in range(1, work.k1):
            total = total + load(values, place + i * work.arms + arm)
        store(work.sums, arm, total * factor)
    for arm in range(work.arms):
        poke(out, (row + arm) * LANES + lane, peek(work.sums, arm))


@inline
def start_at(work, lane, state, mask, p, n, known_lane, listed, least):
    """Read the belief of a lane. Return the number of possible tasks, and what the entries were
    listed for: the lane, how many arms have any, and the least sum.
    """
    active = read_weights(work, state, lane)
    if not same_tasks(work, active, mask, lane, known_lane):
        listed, least = list_entries(work, p, n, mask, lane, active)
        known_lane = lane
    return active, known_lane, listed, least


@inline
def point_rows(work, active, pitch, first):
    """Write where the rows of the possible tasks begin in a table of all."""
    for k in range(active):
        poke(work.rows, k, peek(work.ids, k) * pitch + first)


@inline
def look_by_pull(work, p, n, keys, step, lanes, active, listed, least):
    """Look ahead from the first of ``lanes``."""
    noise, place = n[At.NOISE], I0
    point_rows(work, active, work.arms + WIDTH, n[At.ROWS])
    for at in range(0, work.pitch, BATCH):
        _, place = next_places(work, keys, lanes, I0, I0, place)
        draw_tasks(work, p, active, work.values, at)
        draw_rewards(work, p, n, step, at)
        if noise == NONE:
            rule_out(work, p, work.starts, work.rewards, 0, p[n[At.TOLERANCE]], active)
        else:
            weigh(work, p, n, active)
        counts.own_heads(work, active)
        counts.draw_heads(work)
        counts.count_draws(work, active)
        if counts.any_short(work):
            counts.draw_remainders(work, active)
        counts.best_sums_of(work, n[At.SIGNED], active, listed, least, at)


@inline
def add_up_pulls(work, place, lane, signed, now, ahead, sizes):
    """Write what the pulls of a lane add up to, arm by arm, and where means may cancel the sums of
    absolute values, shown and ahead.
    """
    add_up(work, work.values, place, 1.0, lane, now, I0)
    add_up(work, work.best, place, 1.0 / work.k2, lane, ahead, I0)
    if signed:
        for arm in range(work.arms):
            total = 0.0
            for i in range(work.k1):
                total += abs(peek(work.values, place + i * work.arms + arm))
            poke(sizes, arm * LANES + lane, total)
        add_up(work, work.best_sizes, place, 1.0 / work.k2, lane, sizes, work.arms)


@tile(LOOK)
def look(p, n, keys, step, call, k1, k2, state, signal, mask, scratch, now, ahead, sizes):
    """Look one step past pulling each arm: draw a task and its reward, condition on it, and average
    k2 drawn mean vectors.
    """
    number, last, lanes = np.empty(LANES), np.empty(LANES, np.uint64), np.zeros(1, np.int64)
    if settle(p, n, k1, state, mask, number, last, now, ahead) == 0:
        return
    taken = np.full(1, WIDTH)
    work_in(taken, p, n, k1, k2, 1)
    memory = np.zeros(taken[0], np.int64)
    memory[0] = WIDTH
    work = work_in(memory, p, n, k1, k2, 1)
    begin(work, n[At.NOISE], step, call)
    known_lane, listed, least = I0, I0, 0.0
    for lane in range(LANES):
        if number[lane] == DONE:
            continue
        active, known_lane, listed, least = start_at(
            work, lane, state, mask, p, n, known_lane, listed, least
        )
        lanes[0] = lane
        look_by_pull(work, p, n, keys, step, lanes, active, listed, least)
        add_up_pulls(work, I0, lane, n[At.SIGNED], now, ahead, sizes)
    keep(memory)
