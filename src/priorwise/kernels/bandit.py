"""Tile functions that most bandits share: no signal, values that are the means, a belief that never
collapses.
"""

from __future__ import annotations

from priorwise.kernels.compiling import CERTAIN, LANES, SIGNAL, VALUES, tile
from priorwise.kernels.simd import WIDTH, load, store

ARMS = 0  # first in every layout


@tile(CERTAIN)
def never_certain(p, n, state, out):
    """Tell that a continuous belief never collapses."""
    out[:] = 0.0


@tile(SIGNAL)
def no_signal(p, n, keys, step, signal):
    """Write nothing: plain bandits show nothing before a pull."""


@tile(VALUES)
def arm_values(p, n, environment, signal, values):
    """Copy the means of the arms: they are the values."""
    for arm in range(n[ARMS]):
        for g in range(0, LANES, WIDTH):
            store(values, arm * LANES + g, load(environment, arm * LANES + g))
