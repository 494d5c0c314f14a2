"""Tile functions of priors on finitely many mean vectors.

A belief holds the log weights of the possible tasks, then their weights, then the count of impossible trajectories. ``p`` holds the
mean vectors, the log weights of the prior, the arms' noise variances and deviations, and the tolerance for equal rewards; ``n`` the
number of arms, of possible tasks, and the kind of noise.
"""

from __future__ import annotations

import numpy as np

from priorwise.kernels.compiling import CERTAIN, DRAW, LANES, LOOK, MEAN, REWARD, SAMPLE, START, UPDATE, inline, tile
from priorwise.kernels.random import box_muller, call_key, mix, one_normal, slot_key, uniforms, unit

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
def reward(p, n, keys, step, chosen, actions, rewards):
    """Reward of the chosen arms: the mean, 0 or 1, or the mean with normal noise; one number a step, whatever the arm."""
    at = call_key(step, 0)
    if n[2] == BERNOULLI:
        uniforms(keys, at, 0, 0, rewards)
        for lane in range(LANES):
            rewards[lane] = 1.0 if rewards[lane] < chosen[lane] else 0.0
    elif n[2] == GAUSSIAN:
        deviations = n[1] * n[0] + n[1] + n[0]
        one_normal(keys, at, rewards)
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
    """Return the mean vector of one drawn task."""
    arms, support = n[0], n[1]
    slot = slot_key(at, 0, draw)
    total = scratch[0]
    total[:] = 0.0
    for s in range(support):
        for lane in range(LANES):
            total[lane] += state[support + s, lane]
    for lane in range(LANES):
        target = unit(mix(keys[lane] + slot)) * total[lane]
        running = 0.0
        chosen = 0
        for s in range(support):
            weight = state[support + s, lane]
            running += weight
            if weight > 0.0:
                chosen = s
                if running > target:
                    break
        for arm in range(arms):
            values[arm, lane] = p[chosen * arms + arm]


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
    for lane in range(LANES):
        arm = actions[lane]
        best = -np.inf
        for s in range(support):
            if state[s, lane] > -np.inf:
                state[s, lane] += log_likelihood(p, n, p[s * arms + arm], arm, rewards[lane])
                best = max(best, state[s, lane])
        if best == -np.inf:
            restart(p, n, state, lane)
            state[2 * support, lane] += 1.0
        else:
            for s in range(support):
                if state[s, lane] > -np.inf:
                    state[s, lane] -= best
                    state[support + s, lane] = np.exp(state[s, lane]) if state[s, lane] < 0.0 else 1.0
                else:
                    state[support + s, lane] = 0.0


@inline
def best_of(p, arms, s, mask, lane):
    """Largest available mean of a possible task."""
    best = -np.inf
    for arm in range(arms):
        best = max(best, p[s * arms + arm] + mask[arm, lane])
    return best


@tile(LOOK)
def look(p, n, keys, step, call, arm, k1, k2, state, signal, mask, scratch, now, ahead):
    """Look one step past pulling ``arm``: draw a task and its reward, condition on it, and average k2 drawn mean vectors.

    Where one task is left after the reward, those k2 draws are that task and nothing is drawn. Without noise the tasks left
    depend only on the reward, so they are found once for each distinct reward.
    """
    arms, support, noise = n[0], n[1], n[2]
    calls = 2 if noise == NONE else 3
    slots = np.empty((k1, k2 + 2), np.uint64)
    for i in range(k1):
        first = call + calls * i
        slots[i, 0] = slot_key(call_key(step, first), 0, 0)
        slots[i, 1] = slot_key(call_key(step, first + 1), 0, 0)
        at = call_key(step, first + calls - 1)
        for j in range(k2):
            slots[i, 2 + j] = slot_key(at, 0, j)
    ids = np.empty(support, np.int64)
    running = np.empty(support)
    left = np.empty(support, np.int64)
    left_running = np.empty(support)
    counts = np.empty(support)
    average = np.empty(arms)
    for lane in range(LANES):
        active = 0
        total = 0.0
        for s in range(support):
            weight = state[support + s, lane]
            if weight > 0.0:
                total += weight
                ids[active] = s
                running[active] = total
                active += 1
        if active == 1:
            now[lane] += k1 * p[ids[0] * arms + arm]
            ahead[lane] += k1 * best_of(p, arms, ids[0], mask, lane)
            continue
        key = keys[lane]
        known = np.nan  # the reward that `left` stands for
        alone = 0
        left_best = 0.0
        for i in range(k1):
            s = ids[locate(running, active, unit(mix(key + slots[i, 0])) * total)]
            value = p[s * arms + arm]
            now[lane] += value
            if noise == NONE:
                reward = value
            elif noise == BERNOULLI:
                reward = 1.0 if unit(mix(key + slots[i, 1])) < value else 0.0
            else:
                reward = value + p[support * arms + support + arms + arm] * box_muller(key + slots[i, 1])[0]
            if reward != known:
                known = reward
                best = -np.inf
                for k in range(active):
                    counts[k] = state[ids[k], lane] + log_likelihood(p, n, p[ids[k] * arms + arm], arm, reward)
                    best = max(best, counts[k])
                alone = 0
                sum_left = 0.0
                for k in range(active):
                    weight = np.exp(counts[k] - best)
                    if weight > 0.0:
                        sum_left += weight
                        left[alone] = ids[k]
                        left_running[alone] = sum_left
                        alone += 1
                if alone == 1:
                    left_best = best_of(p, arms, left[0], mask, lane)
            if alone == 1:
                ahead[lane] += left_best
                continue
            for k in range(alone):
                counts[k] = 0.0
            for j in range(k2):
                counts[locate(left_running, alone, unit(mix(key + slots[i, 2 + j])) * left_running[alone - 1])] += 1.0
            for b in range(arms):
                average[b] = 0.0
            for k in range(alone):
                if counts[k] > 0.0:
                    row = p[left[k] * arms : (left[k] + 1) * arms]
                    for b in range(arms):
                        average[b] += counts[k] * row[b]
            best = -np.inf
            for b in range(arms):
                best = max(best, average[b] / k2 + mask[b, lane])
            ahead[lane] += best
