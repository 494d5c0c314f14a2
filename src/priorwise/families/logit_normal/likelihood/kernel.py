"""Compiled marginal likelihood of exchangeable arms with its derivatives, eight tasks in lockstep.

The log odds of an arm are ``mean + shared z + own z_a`` with standard normal z, the same for all
arms of a task, and z_a. Given z the arms are independent, so that

    P(task) = E_z prod_a g_a(mean + shared z),  g_a(x) = E exp(s eta - n log(1 + e^eta)),

with ``eta = x + own z_a``:

two nested integrals, each by Gauss-Hermite nodes around the mode, at the width of its curvature.
Derivatives are expectations under the same weights of ``d_a = s - n p``: of ``sum d_a`` in the
mean, ``z sum d_a`` in ``shared``, ``sum z_a d_a`` in ``own``.

An arm that a task lacks has neither pulls nor successes, and its integral is 1. Tasks that have
come to rest stay as they are while others of their group go on, so that a task does not depend on
those beside it.
"""

from __future__ import annotations

import numpy as np
from numba import types

from priorwise.core.types import FloatArray
from priorwise.families.logit_normal.tiles_propagation import softplus_and_rate
from priorwise.kernels.compiling import ROW, ROWS, F, entry, inline
from priorwise.kernels.elementary import exp, log
from priorwise.kernels.simd import (
    WIDTH,
    fma,
    largest,
    load,
    maximum,
    minimum,
    splat,
    sqrt,
    store,
    where_at_least,
)

NEWTON = 60
CLOSE = 1e-4
NEAR = 1e-3
CUBE = types.Array(F, 3, "C")


@inline
def _mode_of_arm(s, n, x, own, z):
    """Where ``z = own (s - n p(x + own z))``: Newton's method in a bracket."""
    zero = splat(0.0)
    _, p = softplus_and_rate(x)
    first = (s - n * p) * own
    low, high = minimum(zero, first), maximum(zero, first)
    z = minimum(maximum(z, low), high)
    last = high - low
    for _ in range(NEWTON):
        _, p = softplus_and_rate(x + z * own)
        slope, curve = (s - n * p) * own - z, n * p * (1.0 - p) * (own * own) + 1.0
        excess = slope * slope - curve * CLOSE
        if not largest(excess) > 0.0:
            break
        low = where_at_least(slope, zero, z, low)
        high = where_at_least(slope, zero, high, z)
        step, half = slope / curve, (low + high) * 0.5 - z
        inside = where_at_least(high, z + step, step, half)
        inside = where_at_least(z + step, low, inside, half)
        step = where_at_least(last * 0.5, maximum(step, step * -1.0), inside, half)
        last = maximum(step, step * -1.0)
        z = where_at_least(zero, excess, z, z + step)
    return z


@inline
def _integral_of_arm(s, n, x, own, centre, nodes, weights):
    """``log g_a(x)``, and the expectations of ``d_a`` and ``z_a d_a``."""
    level, p = softplus_and_rate(x + centre * own)
    narrow = 1.0 / sqrt(n * p * (1.0 - p) * (own * own) + 1.0)
    top = s * (x + centre * own) - n * level - centre * centre * 0.5
    mass, first, second = splat(0.0), splat(0.0), splat(0.0)
    for j in range(len(nodes)):
        z = fma(narrow, splat(nodes[j]), centre)
        eta = x + z * own
        soft, p = softplus_and_rate(eta)
        rise = s * eta - n * soft - z * z * 0.5 - top
        w = exp(minimum(maximum(rise, splat(-700.0)), splat(700.0))) * weights[j]
        mass = mass + w
        w = w * (s - n * p)
        first = first + w
        second = fma(w, z, second)
    return top + log(mass * narrow), first / mass, second / mass


@inline
def _mode_of_task(s, n, mean, shared, own, arms, group, modes):
    """Where the integrand over z is largest, nearly, and its curvature there; ``modes`` are those
    of the arms.
    """
    zero = splat(0.0)
    z, last, low, high = zero, splat(np.inf), splat(-np.inf), splat(np.inf)
    curve = splat(1.0)
    for _ in range(NEWTON):
        slope, curve = z * -1.0, splat(1.0)
        x = z * shared + mean
        for a in range(arms):
            won, of = load(s, (group + a) * WIDTH), load(n, (group + a) * WIDTH)
            if largest(of) > 0.0:
                mode = _mode_of_arm(won, of, x, own, load(modes, a * WIDTH))
                store(modes, a * WIDTH, mode)
                _, p = softplus_and_rate(x + mode * own)
                h = of * p * (1.0 - p)
                slope = slope + (won - of * p) * shared
                curve = curve + h * (shared * shared) / (h * (own * own) + 1.0)
        excess = slope * slope - curve * NEAR
        if not largest(excess) > 0.0:
            break
        low = where_at_least(slope, zero, z, low)
        high = where_at_least(slope, zero, high, z)
        step, half = slope / curve, (low + high) * 0.5 - z
        half = where_at_least(splat(1e300), high, half, step)  # no bracket yet, no middle
        half = where_at_least(low, splat(-1e300), half, step)
        inside = where_at_least(low, z + step, half, step)
        inside = where_at_least(z + step, high, half, inside)
        step = where_at_least(last * 0.7, maximum(step, step * -1.0), inside, half)
        last = maximum(step, step * -1.0)
        z = where_at_least(zero, excess, z, z + step)
    return z, curve


@entry(types.void(CUBE, CUBE, ROWS, F, F, ROW, ROW, ROW, ROW, ROWS, CUBE))
def evaluate(
    s: FloatArray,  # (group, arm, lane)
    n: FloatArray,  # (group, arm, lane)
    means: FloatArray,  # (group, lane)
    shared: float,
    own: float,
    levels: FloatArray,  # nodes of the integral over z
    level_logs: FloatArray,  # of their weights, times e^(node^2 / 2)
    nodes: FloatArray,  # of the integrals over z_a
    weights: FloatArray,  # times e^(node^2 / 2)
    values: FloatArray,  # out (group, lane)
    scores: FloatArray,  # out (group, 3, lane): derivatives in mean, shared and own
) -> None:
    """Log likelihood of each task and its derivatives."""
    groups, arms = s.shape[:2]
    size = len(levels)
    modes = np.zeros((arms, WIDTH))
    total, slope_of = np.empty((size, WIDTH)), np.empty((size, WIDTH))
    own_of = np.empty((size, WIDTH))
    for t in range(groups):
        modes[:] = 0.0
        mean = load(means, t * WIDTH)
        z, curve = _mode_of_task(s, n, mean, shared, own, arms, t * arms, modes)
        width = 1.0 / sqrt(curve)
        top = splat(-np.inf)
        for k in range(size):
            at = fma(width, splat(levels[k]), z)
            x = at * shared + mean
            log_p, slope, by_own = at * at * -0.5 + level_logs[k], splat(0.0), splat(0.0)
            for a in range(arms):
                place = (t * arms + a) * WIDTH
                won, of = load(s, place), load(n, place)
                if largest(of) > 0.0:
                    mode = _mode_of_arm(won, of, x, own, load(modes, a * WIDTH))
                    more, d, zd = _integral_of_arm(won, of, x, own, mode, nodes, weights)
                    log_p, slope, by_own = log_p + more, slope + d, by_own + zd
            store(total, k * WIDTH, log_p)
            store(slope_of, k * WIDTH, slope)
            store(own_of, k * WIDTH, by_own)
            top = maximum(top, log_p)
        mass, by_mean, by_shared, by_own = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
        for k in range(size):
            w = exp(maximum(load(total, k * WIDTH) - top, splat(-700.0)))
            moved = w * load(slope_of, k * WIDTH)
            mass, by_mean = mass + w, by_mean + moved
            by_shared = fma(moved, fma(width, splat(levels[k]), z), by_shared)
            by_own = fma(w, load(own_of, k * WIDTH), by_own)
        store(values, t * WIDTH, top + log(mass * width))
        store(scores, 3 * t * WIDTH, by_mean / mass)
        store(scores, (3 * t + 1) * WIDTH, by_shared / mass)
        store(scores, (3 * t + 2) * WIDTH, by_own / mass)
