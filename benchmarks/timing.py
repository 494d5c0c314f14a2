"""Interleaved timing: every contender once a round, so that noise of the machine meets all
alike.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

TILE = 64  # tasks the compiled loop runs at once; fewer waste lanes


class Spent(NamedTuple):
    """Nanoseconds per unit of one run: on the clock, and of processor time, which does not count
    waiting for a processor.
    """

    clock: float
    processor: float


@dataclass(frozen=True)
class Timing:
    """Nanoseconds per unit over the rounds."""

    rounds: tuple[Spent, ...]

    @property
    def best(self) -> float:
        """Least of the rounds on the clock: what the code needs when nothing else runs."""
        return min(spent.clock for spent in self.rounds)

    @property
    def processor(self) -> float:
        """Least of the rounds in processor time; on a quiet machine, of one thread, the same as
        ``best``.
        """
        return min(spent.processor for spent in self.rounds)

    def per(self, share: float) -> Timing:
        """Per another unit, of which there are ``share`` to each of these."""
        return Timing(
            tuple(Spent(spent.clock / share, spent.processor / share) for spent in self.rounds)
        )

    @property
    def noise(self) -> float:
        """How far the median lies above the best, as a share."""
        return statistics.median(spent.clock for spent in self.rounds) / self.best - 1.0


def timed(run: Callable[[], object], units: int) -> Callable[[], Spent]:
    """Return a contender: a call that runs once and tells what a unit took."""

    def contender() -> Spent:
        clock, processor = time.perf_counter_ns(), time.process_time_ns()
        run()
        return Spent(
            (time.perf_counter_ns() - clock) / units, (time.process_time_ns() - processor) / units
        )

    return contender


def interleaved(contenders: Mapping[str, Callable[[], Spent]], rounds: int) -> dict[str, Timing]:
    """A, B, C, then B, C, A, ...: each contender tells what a unit took. Warm them up before."""
    names = list(contenders)
    spent: dict[str, list[Spent]] = {name: [] for name in names}
    gc.collect()
    gc.disable()
    try:
        for turn in range(rounds):
            shift = turn % len(names)
            for name in names[shift:] + names[:shift]:
                spent[name].append(contenders[name]())
    finally:
        gc.enable()
    return {name: Timing(tuple(each)) for name, each in spent.items()}


def sized(
    run: Callable[[int], object], seconds: float, *, least: int = TILE, most: int = 1 << 22
) -> int:
    """Tasks that take about so long, in whole tiles: contenders whose runs last alike catch quiet
    moments alike. Warms up.
    """
    tasks = least
    run(tasks)
    while True:
        once = timed(lambda tasks=tasks: run(tasks), 10**9)
        # one disturbed run must not end the search at a size too small
        spent = min(once().clock for _ in range(3))
        if spent >= seconds / 3 or tasks >= most:
            return max(least, min(most, int(tasks * seconds / spent)) // TILE * TILE)
        tasks *= 4
