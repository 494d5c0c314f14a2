"""Tile functions of logit-normal beliefs for policies that look ahead: every imagined reward is
counted, and propagated anew.
"""

import numpy as np

from priorwise.families.gaussian.tiles import At, affine
from priorwise.families.logit_normal.tiles import to_rates, work_rows
from priorwise.families.logit_normal.tiles_propagation import (
    propagate,
    rate_moments,
    softplus_and_rate,
    variance_of,
)
from priorwise.kernels.compiling import BEST_AFTER, LANES, LOOK, inline, tile
from priorwise.kernels.random import call_key, normals, uniforms
from priorwise.kernels.simd import WIDTH, fma, load, maximum, splat, sqrt, store


@inline
def counts_to(state, arms, then):
    """Copy the counts of a belief."""
    for place in range(0, 2 * arms * LANES, WIDTH):
        store(then, place, load(state, place))


@tile(BEST_AFTER)
def best_after(p, n, state, signal, mask, scratch, values):
    """Average the best posterior mean over the two rewards an arm may show, each with a belief of
    its own.
    """
    arms = n[At.ARMS]
    first = work_rows(arms)
    then, now = scratch[first:], first + 5 * arms + arms * arms
    means = scratch[now + arms :]
    for case in range(2 * arms + 1):  # the belief as it is, then success and failure of each arm
        arm, reward = (case - 1) >> 1, float(case & 1)
        counts_to(state, arms, then)
        for g in range(0, LANES, WIDTH):
            if case > 0:
                place = arm * LANES + g
                store(then, place, load(then, place) + reward)
                store(then, place + arms * LANES, load(then, place + arms * LANES) + 1.0)
            propagate(p, n, then, scratch, g)
            rate_moments(p, n, then, scratch, means, means, g)
            best = splat(-np.inf)
            for other in range(arms):
                mean = load(means, other * LANES + g)
                best = maximum(best, mean + load(mask, other * LANES + g))
                if case == 0:
                    store(scratch, (now + other) * LANES + g, mean)
            if case > 0:
                chance, place = load(scratch, (now + arm) * LANES + g), arm * LANES + g
                if reward > 0.0:
                    store(values, place, chance * best)
                else:
                    store(values, place, fma(1.0 - chance, best, load(values, place)))


@tile(LOOK)
def look(p, n, keys, step, call, k1, k2, state, signal, mask, scratch, now, ahead, sizes):
    """Look one step past pulling each arm: draw its rate and its reward, condition on it, and
    average k2 draws of every arm.
    """
    arms = n[At.ARMS]
    first = work_rows(arms)
    then = scratch[first:]
    z = scratch[first + 5 * arms + arms * arms :]
    drawn, total = z[arms:], z[2 * arms :]
    value, uniform = z[3 * arms], z[3 * arms + 1]
    for arm in range(arms):
        for _ in range(k1):
            normals(keys, call_key(step, call), 0, z[:1])
            uniforms(keys, call_key(step, call + 1), 0, 0, uniform)
            at = call_key(step, call + 2)
            call += 3
            counts_to(state, arms, then)
            for g in range(0, LANES, WIDTH):
                std = sqrt(variance_of(state, arms, arm, arm, g))
                eta = fma(std, load(z, g), load(state, (4 * arms + arm) * LANES + g))
                _, rate = softplus_and_rate(eta)
                store(value, g, rate)
            for lane in range(LANES):
                then[arm, lane] += 1.0 if uniform[lane] < value[lane] else 0.0
                then[arms + arm, lane] += 1.0
            for g in range(0, LANES, WIDTH):
                propagate(p, n, then, scratch, g)
            total[:arms] = 0.0
            for j in range(k2):
                normals(keys, at, j, z[:arms])
                affine(then, 4 * arms, then, 5 * arms, z, 1.0, arms, drawn, 0)
                to_rates(drawn, arms)
                for row in range(arms):
                    for lane in range(LANES):
                        total[row, lane] += drawn[row, lane]
            for lane in range(LANES):
                best = -np.inf
                for other in range(arms):
                    best = max(best, total[other, lane] / k2 + mask[other, lane])
                now[arm, lane] += value[lane]
                ahead[arm, lane] += best
