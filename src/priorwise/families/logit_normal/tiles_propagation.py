"""Expectation propagation for a group of tasks in lockstep: the twin of ``tilted``, ``propagation``
and ``marginals``.

A belief is the rows of successes, pulls, precisions and shifts of the factors, then mean and root
of the normal approximation. Tasks that have come to rest stay as they are while others of their
group go on, so that a task does not depend on those beside it.
"""

from typing import Final

import numpy as np

from priorwise.families.gaussian.tiles import At
from priorwise.families.logit_normal import marginals, propagation, tilted
from priorwise.kernels.compiling import LANES, inline
from priorwise.kernels.elementary import ATANH, exp, log, polynomial
from priorwise.kernels.simd import (
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

DROP, MASS_DROP, AIM, CLOSE = tilted.DROP, tilted.MASS_DROP, tilted.AIM, tilted.CLOSE
NEWTON, STRETCHES = tilted.NEWTON, tilted.STRETCHES
TOLERANCE, MOST_ROUNDS, GROWTH = (
    propagation.TOLERANCE,
    propagation.MOST_ROUNDS,
    propagation.GROWTH,
)
FINE_UNIT, FINE_WEIGHT = (np.ascontiguousarray(each) for each in tilted.FINE)
UNIT, WEIGHT = (np.ascontiguousarray(each) for each in tilted.MIDDLE)
FEW_UNIT, FEW_WEIGHT = (np.ascontiguousarray(each) for each in tilted.COARSE)
MASS_UNIT, MASS_WEIGHT = (np.ascontiguousarray(each) for each in tilted.MASS)
FEW: Final = 2 * len(FEW_UNIT)
KNOTS, BETWEEN = marginals.KNOTS, np.ascontiguousarray(marginals.BETWEEN)
""":data:`~priorwise.families.logit_normal.marginals.KNOTS` of a side, and their polynomial."""
SIDE: Final = len(KNOTS)
CORRECTIONS: Final = 3 * FEW
"""Row of scratch from which corrections at the knots stand: of the left side, then the right."""
MOMENT_ROWS: Final = CORRECTIONS + 2 * SIDE
"""Rows of scratch that :func:`rate_moments` needs."""


@inline
def softplus_and_rate(eta):
    """``log(1 + e^eta)`` and ``1 / (1 + e^-eta)``."""
    size = minimum(maximum(eta, eta * -1.0), splat(700.0))
    u = exp(size * -1.0)
    v = u / (u + 2.0)
    rate = where_at_least(eta, splat(0.0), splat(1.0), u) / (u + 1.0)
    return maximum(eta, splat(0.0)) + v * polynomial(ATANH, v * v), rate


@inline
def mode_of(s, n, centre, var, precision, near):
    """Twin of ``tilted._mode``."""
    zero = splat(0.0)
    _, p = softplus_and_rate(centre)
    other = centre + var * (s - n * p)
    low, high = minimum(centre, other), maximum(centre, other)
    at = minimum(maximum(near, low), high)
    last = high - low
    for _ in range(NEWTON):
        _, p = softplus_and_rate(at)
        slope = s - n * p - (at - centre) * precision
        curve = n * p * (1.0 - p) + precision
        excess = slope * slope - curve * CLOSE
        if not largest(excess) > 0.0:
            break
        low = where_at_least(slope, zero, at, low)
        high = where_at_least(slope, zero, high, at)
        step = slope / curve
        half = (low + high) * 0.5 - at
        inside = where_at_least(high, at + step, step, half)
        inside = where_at_least(at + step, low, inside, half)
        size = maximum(step, step * -1.0)
        step = where_at_least(last * 0.5, size, inside, half)
        last = maximum(step, step * -1.0)
        at = where_at_least(zero, excess, at, at + step)
    return at


@inline
def reach(side, n, precision, at, slope, curve, level, p0, drop):
    """Twin of ``tilted._reach``."""
    aim = AIM * drop
    far = sqrt(splat(2.0 * aim) / curve)
    low, high = splat(0.0), splat(np.inf)
    for _ in range(STRETCHES):
        soft, p = softplus_and_rate(at + far * side)
        bend = maximum(soft - level - far * p0 * side, splat(0.0))
        fall = precision * far * far * 0.5 + n * bend - slope * far * side
        miss = maximum(splat(drop) - fall, fall - 1.3 * drop)
        if not largest(miss) > 0.0:
            break
        fall = maximum(fall, splat(1e-3))
        low = where_at_least(fall, splat(aim), low, far)
        high = where_at_least(fall, splat(aim), far, high)
        steep = maximum(precision * far + (n * (p - p0) - slope) * side, splat(1e-300))
        there = far - (fall - sqrt(fall * aim)) * 2.0 / steep
        middle = sqrt(maximum(low, high * 0.01) * high)
        middle = where_at_least(high, splat(np.inf), far * 4.0, middle)
        there = where_at_least(there, high, middle, there)
        there = where_at_least(low, there, middle, there)
        far = where_at_least(splat(0.0), miss, far, there)
    return far


@inline
def tilt(s, n, centre, var, near, unit, weight, drop):
    """Mean and variance of the tilted law; then what its log mass is made of: the log density at
    the point that it is measured from, and the integral from there.
    """
    precision = 1.0 / maximum(var, splat(1e-300))
    at = mode_of(s, n, centre, var, precision, near)
    level, p = softplus_and_rate(at)
    slope, curve = s - n * p - (at - centre) * precision, n * p * (1.0 - p) + precision
    left = reach(-1.0, n, precision, at, slope, curve, level, p, drop)
    right = reach(1.0, n, precision, at, slope, curve, level, p, drop)
    mass, first, second = splat(0.0), splat(0.0), splat(0.0)
    for k in range(2 * len(unit)):
        j = k >> 1
        side = 1.0 if k & 1 else -1.0
        far = right if k & 1 else left
        step = far * (side * unit[j])
        soft, _ = softplus_and_rate(at + step)
        bend = maximum(soft - level - step * p, splat(0.0))
        rise = slope * step - precision * step * step * 0.5 - n * bend
        w = exp(maximum(rise, splat(-700.0))) * far * weight[j]
        mass = mass + w
        first = fma(w, step, first)
        second = fma(w * step, step, second)
    first = first / mass
    gap = at - centre
    top = s * at - n * level - gap * gap * precision * 0.5
    return at + first, second / mass - first * first, top, mass


@inline
def combine(p, n, state, chol, g):
    """Write mean and root of prior and factors; ``chol`` is arms^2 rows of scratch."""
    arms, mean, root = n[At.ARMS], n[At.MEAN], n[At.ROOT]
    T, B, M, R = 2 * arms, 3 * arms, 4 * arms, 5 * arms
    for j in range(arms):
        for k in range(j + 1):
            total = splat(1.0 if j == k else 0.0)
            for i in range(arms):
                both = splat(p[root + i * arms + j] * p[root + i * arms + k])
                total = fma(load(state, (T + i) * LANES + g), both, total)
            for i in range(k):
                total = total - load(chol, (j * arms + i) * LANES + g) * load(
                    chol, (k * arms + i) * LANES + g
                )
            # the diagonal is kept inverted
            scale = 1.0 / sqrt(total) if j == k else total * load(chol, k * (arms + 1) * LANES + g)
            store(chol, (j * arms + k) * LANES + g, scale)
    for i in range(arms):
        for j in range(arms):
            total = splat(p[root + i * arms + j])
            for k in range(j):
                total = total - load(chol, (j * arms + k) * LANES + g) * load(
                    state, (R + i * arms + k) * LANES + g
                )
            total = total * load(chol, j * (arms + 1) * LANES + g)
            store(state, (R + i * arms + j) * LANES + g, total)
        store(state, (M + i) * LANES + g, splat(p[mean + i]))
    for j in range(arms):
        gain = splat(0.0)
        for i in range(arms):
            t, b = load(state, (T + i) * LANES + g), load(state, (B + i) * LANES + g)
            gain = fma(load(state, (R + i * arms + j) * LANES + g), b - t * p[mean + i], gain)
        for i in range(arms):
            m = load(state, (M + i) * LANES + g)
            m = fma(load(state, (R + i * arms + j) * LANES + g), gain, m)
            store(state, (M + i) * LANES + g, m)


@inline
def variance_of(state, arms, a, b, g):
    """Covariance of two arms' log odds."""
    total, R = splat(0.0), 5 * arms
    for j in range(arms):
        total = fma(
            load(state, (R + a * arms + j) * LANES + g),
            load(state, (R + b * arms + j) * LANES + g),
            total,
        )
    return total


@inline
def propagate(p, n, state, scratch, g):
    """Find the factors of a group of tasks from its counts, and what follows from them.

    ``scratch`` is arms^2 rows for the root, then means, variances and wanted factors, arms each.
    """
    arms = n[At.ARMS]
    S, N, T, B, M = 0, arms, 2 * arms, 3 * arms, 4 * arms
    was, spread = arms * arms, arms * arms + arms
    to_t, to_b = spread + arms, spread + 2 * arms
    zero = splat(0.0)
    for a in range(arms):
        s, pulls = load(state, (S + a) * LANES + g), load(state, (N + a) * LANES + g)
        share = (s + 0.5) / (pulls + 1.0)
        t = where_at_least(zero, pulls, zero, pulls * share * (1.0 - share))
        store(state, (T + a) * LANES + g, t)
        store(state, (B + a) * LANES + g, t * log(share / (1.0 - share)))
    combine(p, n, state, scratch, g)
    step, last, active = splat(1.0), splat(np.inf), splat(1.0)
    for _ in range(MOST_ROUNDS):
        for a in range(arms):
            s, pulls = load(state, (S + a) * LANES + g), load(state, (N + a) * LANES + g)
            t, b = load(state, (T + a) * LANES + g), load(state, (B + a) * LANES + g)
            m, var = load(state, (M + a) * LANES + g), variance_of(state, arms, a, a, g)
            store(scratch, (was + a) * LANES + g, m)
            store(scratch, (spread + a) * LANES + g, var)
            share = maximum(1.0 - t * var, splat(1e-12))
            wide, centre = var / share, (m - var * b) / share
            mean, narrow, _, _ = tilt(s, pulls, centre, wide, m, UNIT, WEIGHT, DROP)
            new_t = maximum(1.0 / narrow - 1.0 / wide, zero)
            new_b = mean / narrow - centre / wide
            new_t = where_at_least(zero, pulls, zero, where_at_least(zero, wide, zero, new_t))
            new_b = where_at_least(zero, pulls, zero, where_at_least(zero, wide, zero, new_b))
            store(scratch, (to_t + a) * LANES + g, new_t)
            store(scratch, (to_b + a) * LANES + g, new_b)
        for a in range(arms):
            t, b = load(state, (T + a) * LANES + g), load(state, (B + a) * LANES + g)
            new_t = t + step * (load(scratch, (to_t + a) * LANES + g) - t)
            new_b = b + step * (load(scratch, (to_b + a) * LANES + g) - b)
            store(state, (T + a) * LANES + g, where_at_least(zero, active, t, new_t))
            store(state, (B + a) * LANES + g, where_at_least(zero, active, b, new_b))
        combine(p, n, state, scratch, g)
        off = zero
        for a in range(arms):
            var = variance_of(state, arms, a, a, g)
            known = where_at_least(zero, var, splat(1.0), var)
            far = load(state, (M + a) * LANES + g) - load(scratch, (was + a) * LANES + g)
            far = far / sqrt(known)
            wider = load(scratch, (spread + a) * LANES + g) / known - 1.0
            far = maximum(maximum(far, far * -1.0), maximum(wider, wider * -1.0))
            off = maximum(off, where_at_least(zero, var, zero, far))
        off = off / step
        worse = maximum(step * 0.5, splat(0.05))
        # off > GROWTH * last
        step = where_at_least(last * GROWTH, off, step, worse)
        last = off
        active = where_at_least(splat(TOLERANCE), off, zero, active)
        if not largest(active) > 0.0:
            break


@inline
def log_evidence(p, n, state, inner, g):
    """Log probability of the counts: the twin of ``propagation.Sites.tilted``. ``inner`` is arms^2
    rows of scratch, for the Cholesky factor of ``I + L'TL``.
    """
    arms, mean, root = n[At.ARMS], n[At.MEAN], n[At.ROOT]
    N, T, B, M = arms, 2 * arms, 3 * arms, 4 * arms
    zero, total = splat(0.0), splat(0.0)
    for j in range(arms):
        for k in range(j + 1):
            entry = splat(1.0 if j == k else 0.0)
            for i in range(arms):
                both = splat(p[root + i * arms + j] * p[root + i * arms + k])
                entry = fma(load(state, (T + i) * LANES + g), both, entry)
            for i in range(k):
                entry = entry - load(inner, (j * arms + i) * LANES + g) * load(
                    inner, (k * arms + i) * LANES + g
                )
            if j == k:
                total = total - log(entry) * 0.5
                scale = 1.0 / sqrt(entry)
            else:
                scale = entry * load(inner, k * (arms + 1) * LANES + g)
            store(inner, (j * arms + k) * LANES + g, scale)
    for a in range(arms):
        s, pulls = load(state, a * LANES + g), load(state, (N + a) * LANES + g)
        t, b = load(state, (T + a) * LANES + g), load(state, (B + a) * LANES + g)
        m, var = load(state, (M + a) * LANES + g), variance_of(state, arms, a, a, g)
        share = maximum(1.0 - t * var, splat(1e-12))
        wide, centre = var / share, (m - var * b) / share
        precision = 1.0 / maximum(wide, splat(1e-300))
        _, _, top, mass = tilt(s, pulls, centre, wide, m, FINE_UNIT, FINE_WEIGHT, DROP)
        tilted_mass = top + log(mass * sqrt(precision * (0.5 / np.pi)))
        soft, _ = softplus_and_rate(m)
        own = where_at_least(zero, wide, s * m - pulls * soft, tilted_mass)
        total = total + where_at_least(zero, pulls, zero, own)
        y = b / where_at_least(zero, t, splat(1.0), t)
        factor = t * wide + 1.0
        apart, gap = y - centre, y - p[mean + a]
        alone = (log(factor) + apart * apart * t / factor) * -0.5
        total = total - where_at_least(zero, t, zero, alone + t * gap * (y - m) * 0.5)
    return total


@inline
def rate_moments(p, n, state, scratch, means, variances, g):
    """Write means and variances of the rates, from the corrected laws of single arms: the twin of
    ``marginals``. Means go over variances where both have the same place.

    ``scratch`` is a row for each node: where it lies, its weight, and the log of its correction;
    then a row for each knot.
    """
    arms = n[At.ARMS]
    N, T, B, M = arms, 2 * arms, 3 * arms, 4 * arms
    zero = splat(0.0)
    for a in range(arms):
        s, pulls = load(state, a * LANES + g), load(state, (N + a) * LANES + g)
        m, var = load(state, (M + a) * LANES + g), variance_of(state, arms, a, a, g)
        t, b = load(state, (T + a) * LANES + g), load(state, (B + a) * LANES + g)
        share = maximum(1.0 - t * var, splat(1e-12))
        wide, centre = var / share, (m - var * b) / share
        precision = 1.0 / maximum(wide, splat(1e-300))
        at = mode_of(s, pulls, centre, wide, precision, m)
        level, p0 = softplus_and_rate(at)
        slope = s - pulls * p0 - (at - centre) * precision
        curve = pulls * p0 * (1.0 - p0) + precision
        left = reach(-1.0, pulls, precision, at, slope, curve, level, p0, DROP)
        right = reach(1.0, pulls, precision, at, slope, curve, level, p0, DROP)
        for k in range(FEW):
            far = right if k & 1 else left
            step = far * (FEW_UNIT[k >> 1] if k & 1 else -FEW_UNIT[k >> 1])
            soft, _ = softplus_and_rate(at + step)
            bend = maximum(soft - level - step * p0, zero)
            rise = slope * step - precision * step * step * 0.5 - pulls * bend
            w = exp(maximum(rise, splat(-700.0))) * far * FEW_WEIGHT[k >> 1]
            store(scratch, k * LANES + g, at + step)
            store(scratch, (FEW + k) * LANES + g, w)
        for k in range(2 * SIDE):
            store(scratch, (CORRECTIONS + k) * LANES + g, zero)
        for other in range(arms):
            of = load(state, (N + other) * LANES + g)
            if other != a and largest(of) > 0.0:
                own = variance_of(state, arms, other, other, g)
                both = variance_of(state, arms, a, other, g)
                slant = both / maximum(var, splat(1e-300))
                rest = maximum(own - slant * both, zero)
                t, b = load(state, (T + other) * LANES + g), load(state, (B + other) * LANES + g)
                share = maximum(1.0 - t * rest, splat(1e-12))
                wide = rest / share
                factor = t * wide + 1.0
                shown = where_at_least(zero, t, zero, b / where_at_least(zero, t, splat(1.0), t))
                scale = sqrt(factor / maximum(wide, splat(1e-300)))
                won = load(state, other * LANES + g)
                # both sides begin with the knot in the middle
                for k in range(1, 2 * SIDE):
                    knot = KNOTS[k - SIDE] if k >= SIDE else -KNOTS[k]
                    step = (right if k >= SIDE else left) * knot
                    near = fma(slant, at + step - m, load(state, (M + other) * LANES + g))
                    centre = (near - rest * b) / share
                    _, _, top, mass = tilt(
                        won, of, centre, wide, near, MASS_UNIT, MASS_WEIGHT, MASS_DROP
                    )
                    gap = shown - centre
                    more = top + log(mass * scale) + gap * gap * t / factor * 0.5
                    more = where_at_least(zero, of, zero, more)
                    place = (CORRECTIONS + k) * LANES + g
                    store(scratch, place, load(scratch, place) + more)
        store(scratch, CORRECTIONS * LANES + g, load(scratch, (CORRECTIONS + SIDE) * LANES + g))
        highest = splat(-np.inf)
        for k in range(FEW):
            start = CORRECTIONS + SIDE * (k & 1)
            more = zero
            for i in range(SIDE):
                more = fma(load(scratch, (start + i) * LANES + g), splat(BETWEEN[k >> 1, i]), more)
            store(scratch, (2 * FEW + k) * LANES + g, more)
            highest = maximum(highest, more)
        total, first, second = zero, zero, zero
        for k in range(FEW):
            more = load(scratch, (2 * FEW + k) * LANES + g) - highest
            w = load(scratch, (FEW + k) * LANES + g) * exp(maximum(more, splat(-700.0)))
            _, rate = softplus_and_rate(load(scratch, k * LANES + g))
            total = total + w
            rate = rate - p0  # so that nothing cancels
            first = fma(w, rate, first)
            second = fma(w * rate, rate, second)
        first = first / total
        store(variances, a * LANES + g, second / total - first * first)
        store(means, a * LANES + g, p0 + first)
