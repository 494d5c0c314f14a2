"""How far two laws of actions are apart: where they are known, and from repeated decisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from priorwise.core.action_laws import ActionLaw
from priorwise.core.protocols import Belief, Policy, Seen
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray


@final
@dataclass(frozen=True, eq=False)
class ActionDistance:
    """Total variation of two action laws, ``(task,)`` each: known, or from decisions repeated with
    common random numbers.

    The distance of two sampled frequencies is too large on average. ``value`` takes the jackknife's
    first correction; ``low <= TV <= high`` hold on average: ``high`` is the distance of the
    frequencies, ``low`` applies the signs that one half of the decisions shows to the frequencies
    of the other.
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def zero(cls, tasks: int) -> ActionDistance:
        """Start of a sum."""
        return cls(np.zeros(tasks), np.zeros(tasks), np.zeros(tasks))

    @classmethod
    def known(cls, p: ActionLaw, q: ActionLaw) -> ActionDistance:
        """``sum |p - q| / 2`` of two known laws: nothing is left to bound."""
        apart = p.distance(q)
        return cls(apart, apart, apart)

    def __add__(self, other: ActionDistance) -> ActionDistance:
        """Add up over steps."""
        return ActionDistance(
            self.value + other.value, self.low + other.low, self.high + other.high
        )


def sampled_distance(
    policy: Policy, p: Belief, q: Belief, seen: Seen, streams: tuple[Stream, Stream], draws: int
) -> ActionDistance:
    """Let both beliefs decide ``draws`` times; the two streams are equal, one for each belief."""
    tasks = streams[0].tasks
    halves = np.zeros((2, tasks, seen.arms))
    rows = np.arange(tasks)
    for index in range(draws):
        for belief, stream, sign in zip((p, q), streams, (1.0, -1.0), strict=True):
            halves[index % 2, rows, policy.act(belief, seen, stream)] += sign
    halves /= draws / 2
    whole = halves.mean(axis=0)
    high = np.abs(whole).sum(axis=1) / 2.0
    half = np.abs(halves).sum(axis=2).mean(axis=0) / 2.0
    crossed = (np.sign(halves[0]) * halves[1] + np.sign(halves[1]) * halves[0]).sum(axis=1) / 4.0
    return ActionDistance(2.0 * high - half, crossed, high)
