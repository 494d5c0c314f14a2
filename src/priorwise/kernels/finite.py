"""Tile functions of priors on finitely many mean vectors.

A belief holds the log weights of the possible tasks, then their weights, then the count of impossible trajectories. ``p`` holds the
mean vectors, the log weights of the prior, the arms' noise variances and deviations, and the tolerance for equal rewards; ``n`` the
number of arms, of possible tasks, and the kind of noise.
"""

from __future__ import annotations

import numpy as np

from priorwise.kernels.compiling import CERTAIN, DRAW, LANES, LOOK, MEAN, REWARD, SAMPLE, START, UPDATE, inline, tile
from priorwise.kernels.random import PAIRED, ZERO, box_muller, call_key, mix, one_normal, pair_start, slot_key, uniforms, unit
from priorwise.kernels.simd import WIDTH, count_at_least, largest, load, maximum, peek, poke, splat, store, where_at_least, zeros

NONE, BERNOULLI, GAUSSIAN = 0, 1, 2


@inline
def locate(cumulative, count, target):
    """How many running sums are at or below the target, at most count - 1."""
    place = 0
    for k in range(count):
        place += 1 if cumulative[k] <= target else 0
    return min(place, count - 1)


@inline
def log_likelihood(p, n, mean, arm, reward):
    """Log likelihood of a reward under a mean, up to a constant of the reward."""
    if n[2] == GAUSSIAN:
        deviation = reward - mean
        return -0.5 * deviation * deviation / p[n[1] * n[0] + n[1] + arm]
    if n[2] == BERNOULLI:
        return np.log(mean if reward > 0.5 else 1.0 - mean)
    return 0.0 if abs(reward - mean) <= p[n[1] * n[0] + n[1] + 2 * n[0]] else -np.inf


@tile(SAMPLE)
def sample(p, n, keys, environment):
    """Draw which task it is; the environment is its mean vector."""
    arms, support = n[0], n[1]
    cumulative = np.empty(support)
    ids = np.empty(support, np.int64)
    active = 0
    total = 0.0
    for s in range(support):
        weight = np.exp(p[support * arms + s])
        if weight > 0.0:
            total += weight
            cumulative[active] = total
            ids[active] = s
            active += 1
    slot = slot_key(call_key(0, 0), 0, 0)
    for lane in range(LANES):
        s = ids[locate(cumulative, active, unit(mix(keys[lane] + slot)) * total)]
        for arm in range(arms):
            environment[arm, lane] = p[s * arms + arm]


@tile(REWARD)
def reward(p, n, keys, step, chosen, actions, spare, rewards):
    """Reward of the chosen arms: the mean, 0 or 1, or the mean with normal noise; one number a step, whatever the arm."""
    at = call_key(step, 0)
    if n[2] == BERNOULLI:
        uniforms(keys, at, 0, 0, rewards)
        for lane in range(LANES):
            rewards[lane] = 1.0 if rewards[lane] < chosen[lane] else 0.0
    elif n[2] == GAUSSIAN:
        deviations = n[1] * n[0] + n[1] + n[0]
        one_normal(keys, step, spare, rewards)
        for lane in range(LANES):
            rewards[lane] = chosen[lane] + p[deviations + actions[lane]] * rewards[lane]
    else:
        for lane in range(LANES):
            rewards[lane] = chosen[lane]


@inline
def restart(p, n, state, lane):
    """Set a lane to the prior."""
    support = n[1]
    for s in range(support):
        state[s, lane] = p[support * n[0] + s]
        state[support + s, lane] = np.exp(state[s, lane])


@tile(START)
def start(p, n, state):
    """Start the belief at the prior."""
    for lane in range(LANES):
        restart(p, n, state, lane)
        state[2 * n[1], lane] = 0.0


@tile(DRAW)
def draw(p, n, keys, at, draw, state, signal, scratch, values):
    """Return the mean vector of one drawn task: the first whose running weight exceeds a uniform share of the total."""
    arms, support = n[0], n[1]
    slot = slot_key(at, 0, draw)
    chosen = scratch[0]
    one, zero = splat(1.0), splat(0.0)
    for g in range(0, LANES, WIDTH):
        total = zero
        for s in range(support):
            total = total + load(state, (support + s) * LANES + g)
        target = unit(mix(load(keys, g) + slot)) * total
        running, place, last = zero, zero, zero
        for s in range(support):
            weight = load(state, (support + s) * LANES + g)
            running = running + weight
            place = place + where_at_least(target, running, one, zero)
            last = where_at_least(zero, weight, last, splat(float(s)))  # rounding must not pick a weight of 0
        store(chosen, g, where_at_least(place, last, last, place))
    for lane in range(LANES):
        first = np.int64(peek(chosen, lane)) * arms
        for arm in range(arms):
            poke(values, arm * LANES + lane, peek(p, first + arm))


@tile(MEAN)
def mean(p, n, state, signal, scratch, values):
    """Posterior means."""
    arms, support = n[0], n[1]
    total = scratch[0]
    total[:] = 0.0
    values[:arms] = 0.0
    for s in range(support):
        weight = state[support + s]
        for lane in range(LANES):
            total[lane] += weight[lane]
        for arm in range(arms):
            m = p[s * arms + arm]
            row = values[arm]
            for lane in range(LANES):
                row[lane] += weight[lane] * m
    for arm in range(arms):
        for lane in range(LANES):
            values[arm, lane] /= total[lane]


@tile(CERTAIN)
def certain(p, n, state, out):
    """Tell whether one possible task is left."""
    out[:] = 0.0
    for s in range(n[1]):
        for lane in range(LANES):
            out[lane] += 1.0 if state[n[1] + s, lane] > 0.0 else 0.0
    for lane in range(LANES):
        out[lane] = 1.0 if out[lane] == 1.0 else 0.0


@tile(UPDATE)
def update(p, n, state, signal, scratch, actions, rewards):
    """Condition on the chosen arms' rewards; where no task could have given it, start again from the prior and count it."""
    arms, support = n[0], n[1]
    best = scratch[0]
    best[:] = -np.inf
    for s in range(support):
        row = state[s]
        for lane in range(LANES):
            if row[lane] > -np.inf:
                arm = actions[lane]
                row[lane] += log_likelihood(p, n, peek(p, s * arms + arm), arm, rewards[lane])
                best[lane] = max(best[lane], row[lane])
    for lane in range(LANES):
        if best[lane] == -np.inf:
            restart(p, n, state, lane)
            poke(state, 2 * support * LANES + lane, peek(state, 2 * support * LANES + lane) + 1.0)
    noiseless = n[2] == NONE
    for s in range(support):
        row = state[s]
        weight = state[support + s]
        for lane in range(LANES):
            if best[lane] == -np.inf:
                continue
            if row[lane] == -np.inf:
                weight[lane] = 0.0
            elif best[lane] != 0.0 or not noiseless:  # without noise a weight that is left only changes by the common factor
                row[lane] -= best[lane]
                weight[lane] = np.exp(row[lane]) if row[lane] < 0.0 else 1.0


@inline
def best_of(p, first, arms, mask_row):
    """Largest available entry of a mean vector."""
    best = splat(-np.inf)
    for b in range(0, arms, WIDTH):
        best = maximum(best, load(p, first + b) + load(mask_row, b))
    return largest(best)


@inline
def locate_all(key, slots, first, count, running, active, places):
    """Positions of ``count`` uniform shares of the last running sum, WIDTH at a time."""
    for j in range(0, count, WIDTH):
        target = unit(mix(load(slots, first + j) + key)) * running[active - 1]
        place = zeros()
        for k in range(active - 1):
            place = count_at_least(place, target, splat(running[k]))
        store(places, j, place)


@inline
def condition(p, n, state, lane, arm, reward, ids, active, left, left_running, log_weights):
    """Find the tasks left after a reward: the places of their mean vectors and their running weights; returns how many."""
    arms, support = n[0], n[1]
    count = 0
    total = 0.0
    if n[2] == NONE:
        tolerance = p[support * arms + support + 2 * arms]
        for k in range(active):
            if abs(p[ids[k] * arms + arm] - reward) <= tolerance:
                total += peek(state, (support + ids[k]) * LANES + lane)
                left[count] = ids[k] * arms
                left_running[count] = total
                count += 1
        return count
    best = -np.inf
    for k in range(active):
        log_weights[k] = state[ids[k], lane] + log_likelihood(p, n, p[ids[k] * arms + arm], arm, reward)
        best = max(best, log_weights[k])
    for k in range(active):
        weight = np.exp(log_weights[k] - best)
        if weight > 0.0:
            total += weight
            left[count] = ids[k] * arms
            left_running[count] = total
            count += 1
    return count


@tile(LOOK)
def look(p, n, keys, step, call, k1, k2, state, signal, mask, scratch, now, ahead):
    """Look one step past pulling each arm: draw a task and its reward, condition on it, and average k2 drawn mean vectors.

    Where one task is left after the reward, those k2 draws are that task and nothing is drawn. The tasks left depend only on the
    reward, so they are found once for each distinct one. Vectors run along draws and along arms here; mean vectors are read past
    their end, where ``mask_row`` is -inf.
    """
    arms, support, noise = n[0], n[1], n[2]
    calls = 2 if noise == NONE else 3
    noise_step = pair_start(step) if noise == GAUSSIAN else step
    wide1 = (k1 + WIDTH - 1) // WIDTH * WIDTH
    wide2 = (k2 + WIDTH - 1) // WIDTH * WIDTH
    task_slots = np.zeros(arms * wide1, np.uint64)
    noise_slots = np.zeros(arms * k1, np.uint64)
    slots = np.zeros(arms * k1 * wide2, np.uint64)
    for arm in range(arms):
        for i in range(k1):
            first = call + calls * (arm * k1 + i)
            task_slots[arm * wide1 + i] = slot_key(call_key(step, first), 0, 0)
            noise_slots[arm * k1 + i] = slot_key(call_key(noise_step, first + 1), PAIRED if noise == GAUSSIAN else ZERO, 0)
            at = call_key(step, first + calls - 1)
            for j in range(k2):
                slots[(arm * k1 + i) * wide2 + j] = slot_key(at, 0, j)
    ids = np.empty(support, np.int64)
    running = np.empty(support)
    left = np.empty(support, np.int64)
    left_running = np.empty(support)
    log_weights = np.empty(support)
    rows = np.empty(k2, np.int64)
    rewards = np.empty(k1)
    tasks_drawn = np.empty(wide1, np.int64)
    drawn = np.empty(wide2, np.int64)
    mask_row = np.full((arms + WIDTH - 1) // WIDTH * WIDTH, -np.inf)
    share = splat(float(k2))
    for lane in range(LANES):
        active = 0
        total = 0.0
        for s in range(support):
            weight = peek(state, (support + s) * LANES + lane)
            if weight > 0.0:
                total += weight
                ids[active] = s
                running[active] = total
                active += 1
        for b in range(arms):
            mask_row[b] = peek(mask, b * LANES + lane)
        if active == 1:
            best = best_of(p, ids[0] * arms, arms, mask_row)
            for arm in range(arms):
                poke(now, arm * LANES + lane, k1 * p[ids[0] * arms + arm])
                poke(ahead, arm * LANES + lane, k1 * best)
            continue
        key = keys[lane]
        for arm in range(arms):
            locate_all(key, task_slots, arm * wide1, k1, running, active, tasks_drawn)
            sum_now = 0.0
            sum_ahead = 0.0
            for i in range(k1):
                value = peek(p, peek(ids, peek(tasks_drawn, i)) * arms + arm)
                sum_now += value
                reward = value
                if noise == BERNOULLI:
                    reward = 1.0 if unit(mix(key + noise_slots[arm * k1 + i])) < value else 0.0
                elif noise == GAUSSIAN:
                    deviation = p[support * arms + support + arms + arm]
                    pair = box_muller(key + noise_slots[arm * k1 + i])
                    reward = value + deviation * (pair[0] if step == noise_step else pair[1])
                poke(rewards, i, reward)
            for first in range(k1):
                reward = peek(rewards, first)
                if reward != reward:  # NaN: seen to with an earlier one
                    continue
                alone = condition(p, n, state, lane, arm, reward, ids, active, left, left_running, log_weights)
                left_best = best_of(p, left[0], arms, mask_row) if alone == 1 else 0.0
                for i in range(first, k1):
                    if peek(rewards, i) != reward:
                        continue
                    poke(rewards, i, np.nan)
                    if alone == 1:
                        sum_ahead += left_best
                        continue
                    locate_all(key, slots, (arm * k1 + i) * wide2, k2, left_running, alone, drawn)
                    for j in range(k2):
                        poke(rows, j, peek(left, peek(drawn, j)))
                    best_average = splat(-np.inf)
                    for b in range(0, arms, WIDTH):
                        average = splat(0.0)
                        for j in range(k2):
                            average = average + load(p, peek(rows, j) + b)
                        best_average = maximum(best_average, average / share + load(mask_row, b))
                    sum_ahead += largest(best_average)
            poke(now, arm * LANES + lane, sum_now)
            poke(ahead, arm * LANES + lane, sum_ahead)
