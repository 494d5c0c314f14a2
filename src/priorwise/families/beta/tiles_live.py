"""Thompson sampling of one task at a time from successes and pulls."""

import numpy as np

from priorwise.families.beta.tiles import At, one_beta
from priorwise.kernels.compiling import entry, inline
from priorwise.kernels.live import MANY, ONE, largest
from priorwise.kernels.random import call_key, slot_key

__all__ = ["At"]


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
