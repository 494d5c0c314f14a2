"""Tile functions that most bandits share: no signal, values that are the means, a belief that never
collapses.
"""

from dataclasses import fields
from functools import cache
from types import ModuleType
from typing import Any

from priorwise.core.tiles import FamilyTiles
from priorwise.core.types import FloatArray, IntArray
from priorwise.kernels.compiling import CERTAIN, LANES, SIGNAL, VALUES, Tile, tile
from priorwise.kernels.simd import WIDTH, load, store

ARMS = 0  # first in every layout


@tile(CERTAIN)
def never_certain(p, n, state, out):
    """Show that a continuous belief never collapses."""
    out[:] = 0.0


@tile(SIGNAL)
def no_signal(p, n, keys, step, signal):
    """Write nothing: plain bandits show nothing before a pull."""


@tile(VALUES)
def arm_values(p, n, environment, signal, values):
    """Copy the means of the arms: they are the values."""
    for place in range(0, n[ARMS] * LANES, WIDTH):
        store(values, place, load(environment, place))


def bandit_tiles(p: FloatArray, n: IntArray, *modules: ModuleType, **others: Any) -> FamilyTiles:
    """Put together what a bandit hands to the loop: the tile functions that modules define under
    the names of :class:`~priorwise.core.tiles.FamilyTiles`, and others by name.
    """
    arms = int(n[ARMS])
    sizes = {"arms": arms, "environment_rows": arms, "signal_rows": 0, "resets_row": -1}
    parts: dict[str, Any] = sizes | _defined(*modules) | others
    return FamilyTiles(p=p, n=n, **parts)


@cache
def _defined(*modules: ModuleType) -> dict[str, Any]:
    names = {each.name for each in fields(FamilyTiles)}
    given: dict[str, Any] = {"signal": no_signal, "values": arm_values, "certain": never_certain}
    for module in modules:
        found = vars(module).items()
        given |= {name: each for name, each in found if name in names and isinstance(each, Tile)}
    return given
