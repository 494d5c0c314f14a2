"""Tile functions of independent Bernoulli arms with Beta beliefs.

A belief holds six rows an arm: a and b, then for each of the two gammas behind a Beta draw the d =
a - 1/3 (a + 1 in place of a where a < 1) and the 1 / sqrt(9 d) of Marsaglia and Tsang's method.
"""

import numpy as np

from priorwise.core.tiles import Layout
from priorwise.kernels import compiling as kinds
from priorwise.kernels import random
from priorwise.kernels.compiling import LANES, inline, tile
from priorwise.kernels.gamma import attempt
from priorwise.kernels.random import GOLDEN, THREE, TWO, call_key, mix, slot_key, uniforms, unit
from priorwise.kernels.simd import WIDTH, fma, load, minimum, peek, splat, store

ROWS_PER_ARM = 6


class At(Layout):
    """What the kernels of Beta priors read."""

    ARMS = 0
    ALPHA = 1  # (arm,)
    BETA = 2  # (arm,)
    INVERSE = 3  # address of the quantile of a Beta law, as the bits of a float


@inline
def one_beta(element, a, b):
    """One Beta draw: attempts until both gammas are accepted; NaN for parameters of no Beta law,
    which never would be.
    """
    if not (0.0 < a < np.inf and 0.0 < b < np.inf):
        return np.nan
    word = random.ZERO
    while True:
        at = element + word * GOLDEN
        x, y = random.box_muller(at)
        log_u, accept_u = attempt(a, x, unit(mix(at + TWO * GOLDEN)))
        log_v, accept_v = attempt(b, y, unit(mix(at + THREE * GOLDEN)))
        if accept_u and accept_v:
            break
        word += random.WORDS_PER_ATTEMPT
    if a < 1.0:
        log_u += np.log(1.0 - unit(mix(element - GOLDEN))) / a
    if b < 1.0:
        log_v += np.log(1.0 - unit(mix(element - TWO * GOLDEN))) / b
    return 1.0 / (1.0 + np.exp(min(log_v - log_u, 700.0)))


@inline
def prepare(arm, lane):
    """Write d and 1 / sqrt(9 d) of both gammas of an arm, for a lane; NaN marks parameters that
    need the long way.
    """
    for k in range(2):
        shape = arm[k, lane]
        d = shape - 1.0 / 3.0
        arm[2 + 2 * k, lane] = d if shape >= 1.0 else np.nan
        arm[3 + 2 * k, lane] = 1.0 / np.sqrt(9.0 * d) if shape >= 1.0 else np.nan


@inline
def prior_rows(p, n, arm, rows):
    """Write the rows of an arm at the prior."""
    rows[0, 0] = p[n[At.ALPHA] + arm]
    rows[1, 0] = p[n[At.BETA] + arm]
    prepare(rows, 0)
    for row in range(ROWS_PER_ARM):
        rows[row, :] = rows[row, 0]


@inline
def beta_row(keys, slot, arm, work, out):
    """Draw from an arm's Beta law for a tile: one attempt in lockstep, then the long way where it
    was not plainly accepted.

    The attempt is accepted here by Marsaglia and Tsang's squeeze, which implies their full test;
    other lanes start over from the same numbers with the full test, so the draw is that of
    :func:`one_beta` in every lane. ``work`` is two rows.
    """
    rejected = LANES  # the second row of work is reused for whether the attempt failed
    for g in range(0, LANES, WIDTH):
        store(work, g, random.radius_of(mix(load(keys, g) + slot)))
    for g in range(0, LANES, WIDTH):
        x, y = random.turned(load(work, g), random.second(mix(load(keys, g) + slot)))
        store(work, g, x)
        store(work, LANES + g, y)
    for g in range(0, LANES, WIDTH):
        element = load(keys, g) + slot
        x, y = load(work, g), load(work, LANES + g)
        s = fma(load(arm, 3 * LANES + g), x, splat(1.0))
        t = fma(load(arm, 5 * LANES + g), y, splat(1.0))
        gamma = load(arm, 2 * LANES + g) * (s * s * s)
        delta = load(arm, 4 * LANES + g) * (t * t * t)
        x, y = x * x, y * y
        u = unit(mix(element + TWO * GOLDEN)) - x * x * 0.0331
        v = unit(mix(element + THREE * GOLDEN)) - y * y * 0.0331
        store(out, g, gamma / (gamma + delta))
        store(work, rejected + g, minimum(minimum(s, t), minimum(u, v)))
    for lane in range(LANES):
        value = peek(out, lane)
        # NaN marks parameters that need the long way
        if not peek(work, rejected + lane) > 0.0 or value != value:
            out[lane] = one_beta(keys[lane] + slot, arm[0, lane], arm[1, lane])


@inline
def sampled(p, n, keys, call, rows, work, environment):
    """Draw each arm's success probability."""
    at = call_key(0, call)
    for arm in range(n[At.ARMS]):
        prior_rows(p, n, arm, rows)
        beta_row(keys, slot_key(at, 0, arm), rows, work, environment[arm])


@tile(kinds.SAMPLE)
def sample(p, n, keys, environment):
    """Draw each arm's success probability from the prior."""
    rows, work = np.empty((ROWS_PER_ARM, LANES)), np.empty((2, LANES))
    sampled(p, n, keys, 0, rows, work, environment)


@tile(kinds.SAMPLE_FROM)
def sample_from(p, n, keys, call, environment):
    """Draw them from another call on."""
    rows, work = np.empty((ROWS_PER_ARM, LANES)), np.empty((2, LANES))
    sampled(p, n, keys, call, rows, work, environment)


@tile(kinds.REWARD)
def reward(p, n, keys, step, environment, chosen, actions, spare, rewards):
    """Reward 1 with the arm's probability: one uniform number a step, whatever the arm."""
    uniforms(keys, call_key(step, 0), 0, 0, rewards)
    for lane in range(LANES):
        rewards[lane] = 1.0 if rewards[lane] < chosen[lane] else 0.0


@tile(kinds.START)
def start(p, n, state):
    """Start the belief at the prior."""
    for arm in range(n[At.ARMS]):
        prior_rows(p, n, arm, state[ROWS_PER_ARM * arm : ROWS_PER_ARM * (arm + 1)])


@tile(kinds.DRAW)
def draw(p, n, keys, at, draw, state, signal, scratch, values):
    """One posterior draw of the means."""
    for arm in range(n[At.ARMS]):
        rows = state[ROWS_PER_ARM * arm : ROWS_PER_ARM * (arm + 1)]
        beta_row(keys, slot_key(at, draw, arm), rows, scratch[:2], values[arm])


@tile(kinds.MEAN)
def mean(p, n, state, signal, scratch, values):
    """Posterior means."""
    for arm in range(n[At.ARMS]):
        for lane in range(LANES):
            a = state[ROWS_PER_ARM * arm, lane]
            values[arm, lane] = a / (a + state[ROWS_PER_ARM * arm + 1, lane])


@tile(kinds.PREDICTIVE)
def predictive(p, n, state, scratch, actions, rewards, out):
    """Log probability of the rewards."""
    for lane in range(LANES):
        first = ROWS_PER_ARM * actions[lane]
        value = state[first, lane] / (state[first, lane] + state[first + 1, lane])
        out[lane] = rewards[lane] * np.log(value) + (1.0 - rewards[lane]) * np.log1p(-value)


@tile(kinds.UPDATE)
def update(p, n, state, signal, scratch, actions, rewards):
    """Condition on the chosen arms' rewards."""
    for lane in range(LANES):
        first = ROWS_PER_ARM * actions[lane]
        rows = state[first : first + ROWS_PER_ARM]
        rows[0, lane] += rewards[lane]
        rows[1, lane] += 1.0 - rewards[lane]
        prepare(rows, lane)


@tile(kinds.LOOK)
def look(p, n, keys, step, call, k1, k2, state, signal, mask, scratch, now, ahead, sizes):
    """Look one step past pulling each arm: draw its mean and its reward, condition on it, and
    average k2 draws of every arm.
    """
    arms = n[At.ARMS]
    work, value, uniform, one = scratch[:2], scratch[2], scratch[3], scratch[4]
    total = scratch[5 : 5 + arms]
    changed = scratch[5 + arms : 5 + arms + ROWS_PER_ARM]
    for arm in range(arms):
        own = state[ROWS_PER_ARM * arm : ROWS_PER_ARM * (arm + 1)]
        for _ in range(k1):
            beta_row(keys, slot_key(call_key(step, call), 0, 0), own, work, value)
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
                rows = state[ROWS_PER_ARM * other : ROWS_PER_ARM * (other + 1)]
                rows = changed if other == arm else rows
                for j in range(k2):
                    beta_row(keys, slot_key(at, j, other), rows, work, one)
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
    return 5 + arms + ROWS_PER_ARM
