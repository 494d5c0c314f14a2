"""k-shot Thompson sampling on the (N + 1)-arm lower-bound instance, simulated without tables of N +
1 arms.

A posterior draw is a pair (a, b), and all that is known of a task is which arms were searched in
vain, which is best once found, and what the last arm showed if it was pulled. So a pull costs O(k +
h), and N may be in the thousands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from priorwise.core.streams import Purpose, Stream, Streams
from priorwise.core.types import FloatArray, IntArray

BLOCK: Final = 1 << 14
UNKNOWN: Final = -1


@dataclass(frozen=True, eq=False)
class _Tasks:
    """Drawn tasks: ``best`` of the first N arms, and whether the last arm beats it."""

    arms: int  # N; the last arm has this number
    delta: float
    best: IntArray  # (task,)
    last_is_best: FloatArray  # (task,), 0 or 1

    def rewards(self, actions: IntArray) -> FloatArray:
        """Noiseless rewards, ``(task,)``."""
        pulled = self.delta * (self.best + 1) / (2 * self.arms)
        ordinary = np.where(actions == self.best, 1.0 - self.delta, self.delta)
        last = np.where(self.last_is_best > 0.0, 1.0, pulled)
        return np.where(actions == self.arms, last, ordinary)


def simulated_rewards(
    k: int, horizon: int, arms: int, eps: float, delta: float, *, tasks: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Total rewards of kTS(theta) and of kTS(theta'), ``(task,)`` each, on the same tasks with the
    same draws.
    """
    totals = np.empty((2, tasks))
    for start in range(0, tasks, BLOCK):
        numbers = np.arange(start, min(start + BLOCK, tasks), dtype=np.uint64)
        streams = Streams(seed, numbers)
        rng = streams.at(Purpose.ENVIRONMENT, 0)
        drawn = _Tasks(arms, delta, rng.integers(arms), (rng.uniform() < eps).astype(np.float64))
        for row, believed in zip(totals, (eps, 0.0), strict=True):
            row[start : start + BLOCK] = _run(drawn, k, horizon, believed, streams)
    return totals[0], totals[1]


def _run(drawn: _Tasks, k: int, horizon: int, believed: float, streams: Streams) -> FloatArray:
    """Total rewards of k-shot Thompson sampling that believes probability ``believed`` for the last
    arm being best.
    """
    tasks, arms = len(drawn.best), drawn.arms
    total = np.zeros(tasks)
    searched = np.full((tasks, horizon), arms)  # arms known to be bad, in order, padded with N
    found = np.full(tasks, UNKNOWN)  # best of the first N arms, once known
    certain = np.full(tasks, UNKNOWN)  # best of all arms, once the last one was pulled
    for step in range(1, horizon + 1):
        rng = streams.at(Purpose.POLICY, step)
        hoped = (rng.uniform(k) < believed).any(axis=1)  # some draw has b = 1
        guess = _guess(rng, k, arms, searched[:, : step - 1])
        searching = np.where(hoped, arms, np.where(found != UNKNOWN, found, guess))
        actions = np.where(certain != UNKNOWN, certain, searching)
        rewards = drawn.rewards(actions)
        total += rewards
        asked = actions == arms
        certain = np.where(asked, np.where(rewards == 1.0, arms, drawn.best), certain)
        found = np.where(actions == drawn.best, drawn.best, found)
        failed = ~asked & (actions != drawn.best)
        searched[:, step - 1] = np.where(failed, actions, arms)
        searched[:, :step].sort(axis=1)
    return total


def _guess(rng: Stream, k: int, arms: int, searched: IntArray) -> IntArray:
    """Any of the distinct arms that k draws from those not yet searched name, as ties between them
    are broken.
    """
    left = arms - (searched < arms).sum(axis=1)
    # rank among those left
    drawn = np.minimum((rng.uniform(k) * left[:, None]).astype(np.int64), left[:, None] - 1)
    for column in searched.T:
        drawn += column[:, None] <= drawn  # a searched arm at or below: the rank moves up
    drawn.sort(axis=1)
    new = np.diff(drawn, axis=1, prepend=-1) > 0
    count = new.sum(axis=1)
    rank = np.minimum((rng.uniform() * count).astype(np.int64), count - 1)
    place = np.argmax(new.cumsum(axis=1) == rank[:, None] + 1, axis=1)
    return drawn[np.arange(len(drawn)), place]
