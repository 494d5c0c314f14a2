"""Tile functions of independent Bernoulli arms with Beta beliefs.

A belief holds six rows an arm: a and b, then for each of the two gammas behind a Beta draw the d = a - 1/3 (a + 1 in place of a
where a < 1) and the 1 / sqrt(9 d) of Marsaglia and Tsang's method. ``p`` holds alpha and beta; ``n`` the number of arms.
"""

from __future__ import annotations

import numpy as np

from priorwise.kernels.compiling import DRAW, LANES, LOOK, MEAN, REWARD, SAMPLE, START, UPDATE, inline, tile
from priorwise.kernels.random import (
    GOLDEN,
    THREE,
    TWO,
    WORDS_PER_ATTEMPT,
    ZERO,
    box_muller,
    call_key,
    mix,
    slot_key,
    uniforms,
    unit,
)

ROWS_PER_ARM = 6


@inline
def attempt(shape, x, u):
    """Return log of one attempt at gamma(shape, or shape + 1 below 1) and whether it is accepted."""
    d = (shape + 1.0 if shape < 1.0 else shape) - 1.0 / 3.0
    root = 1.0 + x / np.sqrt(9.0 * d)
    if root <= 0.0:
        return 0.0, False
    log_v = 3.0 * np.log(root)
    accept = np.log(1.0 - u) < 0.5 * x * x + d * (1.0 - root * root * root + log_v)
    return np.log(d) + log_v, accept


@inline
def one_beta(element, a, b):
    """One Beta draw, whatever its parameters: attempts until both gammas are accepted."""
    word = ZERO
    while True:
        at = element + word * GOLDEN
        x, y = box_muller(at)
        log_u, accept_u = attempt(a, x, unit(mix(at + TWO * GOLDEN)))
        log_v, accept_v = attempt(b, y, unit(mix(at + THREE * GOLDEN)))
        if accept_u and accept_v:
            break
        word += WORDS_PER_ATTEMPT
    if a < 1.0:
        log_u += np.log(1.0 - unit(mix(element - GOLDEN))) / a
    if b < 1.0:
        log_v += np.log(1.0 - unit(mix(element - TWO * GOLDEN))) / b
    return 1.0 / (1.0 + np.exp(min(log_v - log_u, 700.0)))


@inline
def prepare(arm, lane):
    """Write d and 1 / sqrt(9 d) of both gammas of an arm, for a lane; NaN marks parameters that need the long way."""
    for k in range(2):
        shape = arm[k, lane]
        d = shape - 1.0 / 3.0
        arm[2 + 2 * k, lane] = d if shape >= 1.0 else np.nan
        arm[3 + 2 * k, lane] = 1.0 / np.sqrt(9.0 * d) if shape >= 1.0 else np.nan


@inline
def beta_row(keys, slot, arm, rejected, out):
    """Draw from an arm's Beta law for a tile: one attempt in lockstep, then the long way where it was not plainly accepted.

    The attempt is accepted here by Marsaglia and Tsang's squeeze, which implies their full test; other lanes start over from the
    same numbers with the full test, so the draw is that of :func:`one_beta` in every lane.
    """
    a, b, d, c, e, f = arm[0], arm[1], arm[2], arm[3], arm[4], arm[5]
    for lane in range(LANES):
        element = keys[lane] + slot
        x, y = box_muller(element)
        u = unit(mix(element + TWO * GOLDEN))
        v = unit(mix(element + THREE * GOLDEN))
        s = 1.0 + c[lane] * x
        t = 1.0 + f[lane] * y
        gamma = d[lane] * (s * s * s)
        delta = e[lane] * (t * t * t)
        x2 = x * x
        y2 = y * y
        # all differences positive and no NaN: accepted
        least = min(s, t, u - 0.0331 * x2 * x2, v - 0.0331 * y2 * y2)
        out[lane] = gamma / (gamma + delta)
        rejected[lane] = least
    for lane in range(LANES):
        if not rejected[lane] > 0.0 or np.isnan(out[lane]):
            out[lane] = one_beta(keys[lane] + slot, a[lane], b[lane])


@tile(SAMPLE)
def sample(p, n, keys, environment):
    """Draw each arm's success probability from the prior."""
    arms = n[0]
    at = call_key(0, 0)
    for arm in range(arms):
        slot = slot_key(at, 0, arm)
        for lane in range(LANES):
            environment[arm, lane] = one_beta(keys[lane] + slot, p[arm], p[arms + arm])


@tile(REWARD)
def reward(p, n, keys, step, chosen, actions, rewards):
    """Reward 1 with the arm's probability: one uniform number a step, whatever the arm."""
    uniforms(keys, call_key(step, 0), 0, 0, rewards)
    for lane in range(LANES):
        rewards[lane] = 1.0 if rewards[lane] < chosen[lane] else 0.0


@tile(START)
def start(p, n, state):
    """Start the belief at the prior."""
    arms = n[0]
    for arm in range(arms):
        rows = state[ROWS_PER_ARM * arm : ROWS_PER_ARM * (arm + 1)]
        for lane in range(LANES):
            rows[0, lane] = p[arm]
            rows[1, lane] = p[arms + arm]
            prepare(rows, lane)


@tile(DRAW)
def draw(p, n, keys, at, draw, state, signal, scratch, values):
    """One posterior draw of the means."""
    for arm in range(n[0]):
        rows = state[ROWS_PER_ARM * arm : ROWS_PER_ARM * (arm + 1)]
        beta_row(keys, slot_key(at, draw, arm), rows, scratch[0], values[arm])


@tile(MEAN)
def mean(p, n, state, signal, scratch, values):
    """Posterior means."""
    for arm in range(n[0]):
        for lane in range(LANES):
            a = state[ROWS_PER_ARM * arm, lane]
            values[arm, lane] = a / (a + state[ROWS_PER_ARM * arm + 1, lane])


@tile(UPDATE)
def update(p, n, state, signal, scratch, actions, rewards):
    """Condition on the chosen arms' rewards."""
    for lane in range(LANES):
        first = ROWS_PER_ARM * actions[lane]
        rows = state[first : first + ROWS_PER_ARM]
        rows[0, lane] += rewards[lane]
        rows[1, lane] += 1.0 - rewards[lane]
        prepare(rows, lane)


@tile(LOOK)
def look(p, n, keys, step, call, k1, k2, state, signal, mask, scratch, now, ahead):
    """Look one step past pulling each arm: draw its mean and its reward, condition on it, and average k2 draws of every arm."""
    arms = n[0]
    rejected, value, uniform, one, total = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4 : 4 + arms]
    changed = scratch[4 + arms : 4 + arms + ROWS_PER_ARM]
    for arm in range(arms):
        own = state[ROWS_PER_ARM * arm : ROWS_PER_ARM * (arm + 1)]
        for i in range(k1):
            beta_row(keys, slot_key(call_key(step, call), 0, 0), own, rejected, value)
            uniforms(keys, call_key(step, call + 1), 0, 0, uniform)
            at = call_key(step, call + 2)
            call += 3
            for lane in range(LANES):
                success = 1.0 if uniform[lane] < value[lane] else 0.0
                changed[0, lane] = own[0, lane] + success
                changed[1, lane] = own[1, lane] + (1.0 - success)
                prepare(changed, lane)
            total[:] = 0.0
            for other in range(arms):
                rows = changed if other == arm else state[ROWS_PER_ARM * other : ROWS_PER_ARM * (other + 1)]
                for j in range(k2):
                    beta_row(keys, slot_key(at, j, other), rows, rejected, one)
                    for lane in range(LANES):
                        total[other, lane] += one[lane]
            for lane in range(LANES):
                best = -np.inf
                for other in range(arms):
                    best = max(best, total[other, lane] / k2 + mask[other, lane])
                now[arm, lane] += value[lane]
                ahead[arm, lane] += best


def scratch_rows(arms: int) -> int:
    """Rows of scratch that the family needs."""
    return 4 + arms + ROWS_PER_ARM
