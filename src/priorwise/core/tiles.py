"""What a family and a policy hand to the compiled loop: numbers, sizes and tile functions.

A tile is :data:`LANES` tasks in lockstep. These are plain values: nothing here imports the
compiler, and priors and policies import their tile functions when they are asked for them.
"""

from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

from priorwise.core.errors import ArgumentTypeError
from priorwise.core.types import FloatArray, IntArray

LANES: Final = 64


class Tile(Protocol):
    """A tile function, compiled or loaded from the cache when its address is first asked for."""

    @property
    def address(self) -> int:
        """Where the loop finds it."""
        ...


class Layout(IntEnum):
    """Names of what the tile functions of a family read, given once for kernels and priors.

    Each name is a place in the integers ``n``. A size stands there itself; for numbers the place
    says where they begin, in ``p`` or, for integers, further on in ``n``. So a kernel reads
    ``n[At.DIM]`` and ``p[n[At.ROOT] + k]``, and :meth:`pack` writes both. The number of arms comes
    first.
    """

    @classmethod
    def pack(cls, **given: Any) -> tuple[FloatArray, IntArray]:
        """Return ``p`` and ``n`` from a value for each name, in lower case: integers for sizes,
        floats and arrays for numbers.
        """
        names = _names(cls)
        if given.keys() != names.keys():
            raise ArgumentTypeError(
                f"{cls.__qualname__}.pack",
                "takes each name once",
                got=sorted(given.keys() ^ names.keys()),
            )
        sizes: list[int] = []
        numbers: list[FloatArray] = []
        integers: list[IntArray] = []
        in_p, in_n = 0, len(names)
        for name in names:
            value = given[name]
            if isinstance(value, float):
                value = np.array([value])
            if not isinstance(value, np.ndarray):
                sizes.append(value)
            elif value.dtype.kind == "f":
                sizes.append(in_p)
                numbers.append(value.ravel())
                in_p += value.size
            else:
                sizes.append(in_n)
                integers.append(value.ravel())
                in_n += value.size
        return np.concatenate(numbers), np.concatenate([np.array(sizes, np.int64), *integers])


@cache
def _names(layout: type[Layout]) -> dict[str, None]:
    return dict.fromkeys(place.name.lower() for place in layout)


@dataclass(frozen=True)
class FamilyTiles:
    """A family's numbers, sizes and tile functions, for one prior."""

    p: FloatArray
    n: IntArray
    arms: int
    environment_rows: int
    signal_rows: int  # 0: no signal; arms * logged, unless actions move it
    belief_rows: int
    scratch_rows: int
    resets_row: int  # row of the belief that counts impossible trajectories, or -1
    sample: Tile
    signal: Tile
    values: Tile
    reward: Tile
    start: Tile
    draw: Tile
    mean: Tile | None
    update: Tile
    look: Tile | None
    certain: Tile
    look_many: Tile | None = None  # ``look``, but faster from so many imagined pulls on
    many_pulls: int = 0
    # sums of the absolute numbers that the means are sums of, if these can cancel
    mean_size: Tile | None = None
    means_tie: bool = True  # whether two means that are sums may be equal but for rounding
    quantile: Tile | None = None
    best_after: Tile | None = None
    best_after_pulls: Tile | None = None  # of several pulls of one arm
    draw_each: Tile | None = None  # ``draw`` with a draw number of its own for each lane
    # imagined pulls of two arms can tie, and their sums cancel: ``look`` writes sizes
    draws_cancel: bool = False
    # ``draw`` again, under another belief, with the normals that it left in scratch
    redraw: Tile | None = None
    # first rows of the belief, (row, task), where every task starts from its own: held, not sampled
    first_rows: FloatArray | None = None
    # ``look`` keeps a key for every four look-ahead draws after each imagined pull
    look_keeps_keys: bool = False
    # ``update`` for a pull whose batch goes on: what follows from the counts may wait
    count: Tile | None = None
    # the next signal, where actions influence it; its first row, the state, is logged
    move: Tile | None = None
    # what mixtures of this family ask: ``sample`` from another of its ``sample_calls`` on, and how
    # likely the next rewards are, or all that the belief has seen
    sample_from: Tile | None = None
    sample_calls: int = 1
    predictive: Tile | None = None
    evidence: Tile | None = None
    draw_calls: int = 1  # requests to the stream that ``draw`` takes, however many draws there are


@dataclass(frozen=True)
class PolicyTiles:
    """A policy's numbers, sizes and tile function."""

    p: FloatArray
    n: IntArray
    act: Tile
    uses: frozenset[str]  # which of the belief's tile functions it calls; others are not compiled
    draws_once: bool = False  # calls ``draw`` once a step, and nothing else that writes to scratch
    # step from which it plays the largest of the scores that it leaves in ``values``, 0 for never;
    # ``p`` has as many for each step
    scored: int = 0

    def in_batches(self, batch: int, horizon: int) -> "PolicyTiles":
        """Return the policy as it decides in batches: a scored one with what ``p`` has for the
        first pull of the batch that is scored.
        """
        if not self.scored or self.p.size < horizon:
            return self
        steps = np.arange(horizon)
        first = np.minimum(np.maximum(steps - steps % batch, self.scored - 1), steps)
        return replace(self, p=self.p.reshape(horizon, -1)[first].ravel())


@runtime_checkable
class CompiledPrior(Protocol):
    """Offers tile functions."""

    def tiles(self, horizon: int, uses: frozenset[str]) -> FamilyTiles | None:
        """Return tile functions for so many pulls, with what those named in ``uses`` need; None if
        this prior has none.
        """
        ...


@runtime_checkable
class CompiledPolicy(Protocol):
    """Offers a tile function."""

    @property
    def uses(self) -> frozenset[str]:
        """Which of a belief's tile functions it calls: names of :class:`FamilyTiles`."""
        ...

    def tiles(self, family: FamilyTiles, horizon: int, masked: bool) -> PolicyTiles | None:
        """Return the tile function for beliefs of a family, or None if this policy has none."""
        ...
