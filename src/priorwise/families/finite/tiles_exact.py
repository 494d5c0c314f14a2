"""Tile functions of finite priors for policies that read quantiles, exact look-ahead, or many draws
of few tasks.
"""

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from priorwise.families.finite.tiles import BERNOULLI, NONE, At, mean_vectors, total_weight
from priorwise.kernels.compiling import BEST_AFTER, DRAW_EACH, LANES, QUANTILE, inline, tile
from priorwise.kernels.random import mix, unit
from priorwise.kernels.simd import WIDTH, fma, load, maximum, peek, splat, store, where_at_least

NODES, WEIGHTS = hermegauss(64)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
SLACK = 1e-12
"""A probability at or below a value this little short of the level reaches it."""


@tile(DRAW_EACH)
def draw_each(p, n, keys, ats, numbers, state, signal, scratch, values):
    """Return the mean vector of one drawn task, with a draw number of its own for each lane."""
    for g in range(0, LANES, WIDTH):
        store(scratch, g, unit(mix(load(keys, g) + mix(load(ats, g) + load(numbers, g)))))
    mean_vectors(p, n, state, scratch[0], values)


@tile(QUANTILE)
def quantile(p, n, level, normal, state, signal, scratch, values):
    """Write for each arm the least mean with at least that much probability at or below it."""
    arms, support, means = n[At.ARMS], n[At.SUPPORT], n[At.MEANS]
    for g in range(0, LANES, WIDTH):
        target = total_weight(state, support, g) * (level - SLACK)
        for arm in range(arms):
            order = n[At.ORDER] + arm * support
            below, value = splat(0.0), splat(0.0)
            for k in range(support):
                task = peek(n, order + k)
                mean = splat(peek(p, means + task * arms + arm))
                value = mean if k == 0 else where_at_least(below, target, value, mean)
                below = below + load(state, (support + task) * LANES + g)
            store(values, arm * LANES + g, value)


@inline
def add_best(p, n, state, mask, members, chances, count, drawn, share, scratch, values):
    """Add to ``values`` the best mean of an arm given that the task is one of the members and that
    its chance came true, times the probability of that.

    With a drawn task, ``drawn >= 0``, it is times a share of that task's probability instead.
    """
    arms, support, means = n[At.ARMS], n[At.SUPPORT], n[At.MEANS]
    for g in range(0, LANES, WIDTH):
        total = splat(0.0)
        for k in range(count):
            weight = load(state, (support + members[k]) * LANES + g) * chances[k]
            store(scratch, k * LANES + g, weight)
            total = total + weight
        best = splat(-np.inf)
        for b in range(arms):
            value = load(mask, b * LANES + g)
            for k in range(count):
                mean = splat(peek(p, means + members[k] * arms + b))
                value = fma(load(scratch, k * LANES + g), mean, value)
            best = maximum(best, value)
        if drawn >= 0:
            weight = load(state, (support + drawn) * LANES + g) * share
            best = best * weight / where_at_least(splat(0.0), total, splat(1.0), total)
        store(values, g, load(values, g) + best)


@inline
def likelihoods(p, n, arm, drawn, node, chances):
    """Likelihood of each task given a normal reward around the drawn one's mean, the largest of
    them 1.
    """
    arms, support, means = n[At.ARMS], n[At.SUPPORT], n[At.MEANS]
    std = p[n[At.NOISE_STD] + arm]
    most = np.inf
    for s in range(support):
        chances[s] = (p[means + drawn * arms + arm] - p[means + s * arms + arm]) / std + node
        most = min(most, chances[s] * chances[s])
    for s in range(support):
        chances[s] = np.exp(-0.5 * (chances[s] * chances[s] - most))


@tile(BEST_AFTER)
def best_after(p, n, state, signal, mask, scratch, values):
    """Average the best posterior mean over the rewards an arm may show: those that tasks show
    without noise, 0 and 1, or Gauss-Hermite nodes around each mean.
    """
    arms, support, noise, means = n[At.ARMS], n[At.SUPPORT], n[At.NOISE], n[At.MEANS]
    tolerance = p[n[At.TOLERANCE]]
    members, chances = np.arange(support), np.ones(support)
    values[:] = 0.0
    for arm in range(arms):
        own, first = values[arm], means + arm
        if noise == NONE:
            order = n[At.ORDER] + arm * support
            for k in range(support):
                members[k] = n[order + k]
            low, shown = 0, 0
            while shown < support:
                reward = p[first + members[shown] * arms]
                while reward - p[first + members[low] * arms] > tolerance:
                    low += 1
                while shown < support and p[first + members[shown] * arms] - reward <= tolerance:
                    shown += 1
                rest = (members[low:], chances, shown - low, -1, 1.0, scratch, own)
                add_best(p, n, state, mask, *rest)
        elif noise == BERNOULLI:
            for success in range(2):
                for s in range(support):
                    mean = p[first + s * arms]
                    chances[s] = mean if success else 1.0 - mean
                add_best(p, n, state, mask, members, chances, support, -1, 1.0, scratch, own)
        else:
            for drawn in range(support):
                for k in range(len(NODES)):
                    likelihoods(p, n, arm, drawn, NODES[k], chances)
                    rest = (members, chances, support, drawn, WEIGHTS[k], scratch, own)
                    add_best(p, n, state, mask, *rest)
    for g in range(0, LANES, WIDTH):
        total = total_weight(state, support, g)
        for arm in range(arms):
            store(values, arm * LANES + g, load(values, arm * LANES + g) / total)
