"""Thompson sampling of one task at a time from successes and pulls of arms that move together."""

import numpy as np

from priorwise.families.gaussian.tiles import At
from priorwise.families.logit_normal.tiles_propagation import propagate
from priorwise.kernels.compiling import LANES, entry, inline
from priorwise.kernels.live import MANY, ONE, largest, normal_draws
from priorwise.kernels.simd import WIDTH


@inline
def rows_of(arms):
    """Rows of a belief, and of its scratch."""
    return 5 * arms + arms * arms, arms * arms + 4 * arms


@inline
def chosen(n, belief, lane, key, step, mask, values, z):
    """Draw the log odds of a lane, and return the arm with the largest."""
    arms = n[At.ARMS]
    normal_draws(key, step, z)
    for arm in range(arms):
        total = belief[4 * arms + arm, lane]
        for j in range(arms):
            total += belief[5 * arms + arm * arms + j, lane] * z[j]
        values[arm] = total
    return largest(key, step, values, mask)


@entry(ONE)
def one(p, n, state, key, step, mask):
    """Choose the arm of one task."""
    arms = n[At.ARMS]
    rows, more = rows_of(arms)
    belief, scratch = np.empty((rows, LANES)), np.empty((more, LANES))
    for row in range(2 * arms):
        belief[row, :WIDTH] = state[row]
    propagate(p, n, belief, scratch, 0)
    return chosen(n, belief, 0, key, step, mask, np.empty(arms), np.empty(arms))


@entry(MANY)
def many(p, n, states, keys, steps, masks, arms):
    """Choose the arms of several tasks, a group in lockstep."""
    size, tasks = n[At.ARMS], len(keys)
    rows, more = rows_of(size)
    belief, scratch = np.empty((rows, LANES)), np.empty((more, LANES))
    values, z = np.empty(size), np.empty(size)
    for first in range(0, tasks, WIDTH):
        count = min(WIDTH, tasks - first)
        for lane in range(WIDTH):
            task = first + min(lane, count - 1)
            for row in range(2 * size):
                belief[row, lane] = states[task, row]
        propagate(p, n, belief, scratch, 0)
        for lane in range(count):
            task = first + lane
            arms[task] = chosen(n, belief, lane, keys[task], steps[task], masks[task], values, z)
