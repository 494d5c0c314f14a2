"""Thompson sampling of one task at a time from successes and pulls."""

import numpy as np

from priorwise.families.beta.tiles import At, one_beta
from priorwise.kernels.compiling import entry, inline
from priorwise.kernels.live import DRAWN, MANY, ONE, drawn_from, largest
from priorwise.kernels.random import call_key, slot_key

__all__ = ["At"]

REACH = 8.0  # standard deviations on each side that a grid covers, of log odds
TAIL = 32.0  # and of a tail that falls off as exp(-a t)
NODES_PER_STD = 3.0  # of the narrowest arm
MOST_NODES = 6000


@inline
def chosen(p, n, state, key, step, mask, values):
    """Draw the available arms' rates, and return the arm with the largest."""
    arms, at = n[At.ARMS], call_key(step, 0)
    for arm in range(arms):
        if mask[arm]:
            won, pulls = state[arm], state[arms + arm]
            a, b = p[n[At.ALPHA] + arm] + won, p[n[At.BETA] + arm] + (pulls - won)
            values[arm] = one_beta(key + slot_key(at, 0, arm), a, b)
    return largest(key, step, values, mask)


@entry(ONE)
def one(p, n, state, key, step, mask):
    """Choose the arm of one task."""
    return chosen(p, n, state, key, step, mask, np.empty(n[At.ARMS]))


@entry(MANY)
def many(p, n, states, keys, steps, masks, arms):
    """Choose the arms of several tasks."""
    values = np.empty(n[At.ARMS])
    for task in range(len(keys)):
        arms[task] = chosen(p, n, states[task], keys[task], steps[task], masks[task], values)


@inline
def grid(p, n, state, mask):
    """Return where the grid of :func:`best_law` begins, its spacing and its length, 0 if that
    would be too long.
    """
    arms = n[At.ARMS]
    low, high, width = np.inf, -np.inf, np.inf
    for arm in range(arms):
        if mask[arm]:
            a = p[n[At.ALPHA] + arm] + state[arm]
            b = p[n[At.BETA] + arm] + (state[arms + arm] - state[arm])
            centre, std = np.log(a / b), np.sqrt(1.0 / a + 1.0 / b)
            low = min(low, centre - max(REACH * std, TAIL / a))
            high = max(high, centre + max(REACH * std, TAIL / b))
            width = min(width, std)
    h = width / NODES_PER_STD
    length = (high - low) / h
    return low, h, int(length) + 2 if length <= MOST_NODES else 0


@inline
def best_law(p, n, state, mask, low, h, shapes, g, G, law):
    """Write how likely each available arm has the largest rate; return how far the sum was from 1.

    In log odds t an arm has the density ``g = exp(a log s(t) + b log s(-t))``, s the logistic
    function, which is smooth and falls off to both sides: the trapezoid rule on one grid for all
    arms is as good as exact. Its running sums are corrected by Euler and Maclaurin's ``-h^2 / 12 g'
    + h^4 / 720 g'''`` and make the distribution functions G, and

        P(arm is best) = integral of g_arm prod_{other} G_other.

    """
    arms, count = n[At.ARMS], g.shape[1]
    law[:] = 0.0  # sums of g so far
    for arm in range(arms):
        won, pulls = state[arm], state[arms + arm]
        a, b = p[n[At.ALPHA] + arm] + won, p[n[At.BETA] + arm] + (pulls - won)
        shapes[0, arm], shapes[1, arm] = a, b
        shapes[2, arm] = a * np.log(a / (a + b)) + b * np.log(b / (a + b))  # the largest exponent
    for i in range(count):
        t = low + i * h
        u = np.exp(-abs(t))
        soft = np.log1p(u)
        up, down = min(t, 0.0) - soft, min(-t, 0.0) - soft  # log s(t), log s(-t)
        s = (1.0 if t >= 0.0 else u) / (1.0 + u)
        for arm in range(arms):
            if mask[arm]:
                a, b = shapes[0, arm], shapes[1, arm]
                value = np.exp(a * up + b * down - shapes[2, arm])
                slope = a * (1.0 - s) - b * s
                bend = -(a + b) * s * (1.0 - s)
                third = slope * slope * slope + 3.0 * slope * bend + bend * (1.0 - 2.0 * s)
                near = h / 12.0 * slope - h * h * h / 720.0 * third
                law[arm] += value
                g[arm, i] = value
                G[arm, i] = law[arm] - value * (0.5 + near)
    for arm in range(arms):
        if mask[arm]:
            for i in range(count):
                g[arm, i] /= law[arm]
                G[arm, i] = min(max(G[arm, i] / law[arm], 0.0), 1.0)
    whole = 0.0
    for arm in range(arms):
        law[arm] = 0.0
        if mask[arm]:
            for i in range(count):
                below = g[arm, i]
                for other in range(arms):
                    if other != arm and mask[other]:
                        below *= G[other, i]
                law[arm] += below
            whole += law[arm]
    for arm in range(arms):
        law[arm] /= whole
    return abs(whole - 1.0)


@entry(DRAWN)
def drawn(p, n, state, key, step, mask, promised, left, law):
    """Write the law, ``promised + left * w`` with Thompson sampling's w; draw an arm from it."""
    low, h, count = grid(p, n, state, mask)
    if count == 0:
        return -1.0, -1.0
    g, G = np.empty((n[At.ARMS], count)), np.empty((n[At.ARMS], count))
    shapes = np.empty((3, n[At.ARMS]))
    error = best_law(p, n, state, mask, low, h, shapes, g, G, law)
    return drawn_from(key, step, promised, left, law, error)
