"""Tile functions of independent arms with normal-gamma beliefs.

A belief holds six rows an arm: m, k, a, b, then what a draw reads of them: ``2 b / k`` and ``1 / (2
a)``. An environment holds the arms' means, then the standard deviations of their rewards.
"""

from __future__ import annotations

import math

import numpy as np

from priorwise.core.tiles import Layout
from priorwise.kernels.compiling import (
    DRAW,
    LANES,
    LOOK,
    MEAN,
    PREDICTIVE,
    REWARD,
    SAMPLE,
    SAMPLE_FROM,
    START,
    UPDATE,
    inline,
    tile,
)
from priorwise.kernels.gamma import gamma_row
from priorwise.kernels.random import call_key, normals, one_normal, slot_key
from priorwise.kernels.simd import WIDTH, fma, gather, iota, load, splat, sqrt, store
from priorwise.kernels.student import student_row

ROWS_PER_ARM = 6


class At(Layout):
    """What the kernels of normal-gamma priors read."""

    ARMS = 0
    MEAN = 1  # (arm,)
    PULLS = 2  # (arm,)
    SHAPE = 3  # (arm,)
    RATE = 4  # (arm,)
    INVERSE = 5  # address of the quantile of Student's law, as the bits of a float
    CUMULATIVE = 6  # that of its distribution function


@inline
def condition(rows, to, lane, reward):
    """Write what the rows of an arm become by a reward, for a lane."""
    k = rows[1, lane]
    residual = reward - rows[0, lane]
    move = residual / (k + 1.0)
    to[0, lane] = rows[0, lane] + move
    to[1, lane] = k + 1.0
    to[2, lane] = rows[2, lane] + 0.5
    to[3, lane] = rows[3, lane] + 0.5 * k * residual * move
    to[4, lane] = 2.0 * to[3, lane] / to[1, lane]
    to[5, lane] = 0.5 / to[2, lane]


@inline
def draw_row(keys, slot, rows, work, out):
    """Draw the mean of an arm for a tile."""
    student_row(keys, slot, rows[0], rows[4], rows[5], work, out)


@inline
def sampled(p, n, keys, call, work, environment):
    """Draw each arm's precision, then its mean."""
    arms = n[At.ARMS]
    normals(keys, call_key(0, call + 1), 0, environment[:arms])
    for arm in range(arms):
        shape, rate = p[n[At.SHAPE] + arm], p[n[At.RATE] + arm]
        mean, narrower = p[n[At.MEAN] + arm], 1.0 / np.sqrt(p[n[At.PULLS] + arm])
        deviation = environment[arms + arm]
        gamma_row(keys, slot_key(call_key(0, call), 0, arm), shape, work, deviation)
        for g in range(0, LANES, WIDTH):
            own = sqrt(splat(rate) / load(deviation, g))
            z = load(environment, arm * LANES + g)
            store(deviation, g, own)
            store(environment, arm * LANES + g, fma(own * narrower, z, splat(mean)))


@tile(SAMPLE)
def sample(p, n, keys, environment):
    """Draw each arm's precision from the prior, then its mean."""
    sampled(p, n, keys, 0, np.empty(LANES), environment)


@tile(SAMPLE_FROM)
def sample_from(p, n, keys, call, environment):
    """Draw them from another call on."""
    sampled(p, n, keys, call, np.empty(LANES), environment)


@tile(REWARD)
def reward(p, n, keys, step, environment, chosen, actions, spare, rewards):
    """Reward with the task's own normal noise: one number a step, whatever the arm."""
    one_normal(keys, step, spare, rewards)
    first = np.uint64(n[At.ARMS] * LANES)
    for g in range(0, LANES, WIDTH):
        place = load(actions, g) * np.uint64(LANES) + iota() + (first + np.uint64(g))
        store(rewards, g, fma(gather(environment, place), load(rewards, g), load(chosen, g)))


@tile(START)
def start(p, n, state):
    """Start the belief at the prior."""
    for arm in range(n[At.ARMS]):
        k, a, b = p[n[At.PULLS] + arm], p[n[At.SHAPE] + arm], p[n[At.RATE] + arm]
        numbers = (p[n[At.MEAN] + arm], k, a, b, 2.0 * b / k, 0.5 / a)
        for row in range(ROWS_PER_ARM):
            for g in range(0, LANES, WIDTH):
                store(state, (ROWS_PER_ARM * arm + row) * LANES + g, splat(numbers[row]))


@tile(DRAW)
def draw(p, n, keys, at, draw, state, signal, scratch, values):
    """One posterior draw of the means."""
    for arm in range(n[At.ARMS]):
        draw_row(
            keys,
            slot_key(at, draw, arm),
            state[ROWS_PER_ARM * arm : ROWS_PER_ARM * (arm + 1)],
            scratch[0],
            values[arm],
        )


@tile(MEAN)
def mean(p, n, state, signal, scratch, values):
    """Posterior means."""
    for arm in range(n[At.ARMS]):
        for g in range(0, LANES, WIDTH):
            store(values, arm * LANES + g, load(state, ROWS_PER_ARM * arm * LANES + g))


@tile(PREDICTIVE)
def predictive(p, n, state, scratch, actions, rewards, out):
    """Log density of the rewards: ``m + sqrt(b (k + 1) / (a k)) T_(2a)``."""
    for lane in range(LANES):
        rows = state[ROWS_PER_ARM * actions[lane] : ROWS_PER_ARM * (actions[lane] + 1)]
        k, a, b = rows[1, lane], rows[2, lane], rows[3, lane]
        apart, spread = rewards[lane] - rows[0, lane], 2.0 * b * (k + 1.0) / k
        top = math.lgamma(a + 0.5) - math.lgamma(a) - 0.5 * np.log(np.pi * spread)
        out[lane] = top - (a + 0.5) * np.log1p(apart * apart / spread)


@tile(UPDATE)
def update(p, n, state, signal, scratch, actions, rewards):
    """Condition on the chosen arms' rewards."""
    for lane in range(LANES):
        rows = state[ROWS_PER_ARM * actions[lane] : ROWS_PER_ARM * (actions[lane] + 1)]
        condition(rows, rows, lane, rewards[lane])


@tile(LOOK)
def look(p, n, keys, step, call, k1, k2, state, signal, mask, scratch, now, ahead, sizes):
    """Look one step past pulling each arm: draw its mean and its reward, condition on it, and
    average k2 draws of every arm.
    """
    arms = n[At.ARMS]
    work, value, earned, one = scratch[0], scratch[1], scratch[2], scratch[3]
    total, changed = scratch[4 : 4 + arms], scratch[4 + arms : 4 + arms + ROWS_PER_ARM]
    for arm in range(arms):
        own = state[ROWS_PER_ARM * arm : ROWS_PER_ARM * (arm + 1)]
        for _ in range(k1):
            at, then = call_key(step, call), call_key(step, call + 1)
            call += 2
            draw_row(keys, slot_key(at, 0, 0), own, work, value)
            for g in range(0, LANES, WIDTH):
                apart = load(value, g) - load(own, g)
                spread = load(own, 3 * LANES + g) * 2.0 + load(own, LANES + g) * apart * apart
                store(changed, 4 * LANES + g, spread)
                store(changed, 5 * LANES + g, splat(0.5) / (load(own, 2 * LANES + g) + 0.5))
            student_row(keys, slot_key(at, 0, 1), value, changed[4], changed[5], work, earned)
            for lane in range(LANES):
                condition(own, changed, lane, earned[lane])
            total[:] = 0.0
            for other in range(arms):
                rows = (
                    changed
                    if other == arm
                    else state[ROWS_PER_ARM * other : ROWS_PER_ARM * (other + 1)]
                )
                for j in range(k2):
                    draw_row(keys, slot_key(then, j, other), rows, work, one)
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
