"""What beliefs offer to policies that look ahead over several pulls of one arm, and which numbers
of pulls these try.
"""

from typing import Final, Protocol, runtime_checkable

from priorwise.core.protocols import MeanBelief
from priorwise.core.seen import Seen
from priorwise.core.types import FloatArray

ALL_PULLS: Final = 32
"""Up to so many pulls every number of them is tried."""
RATIO: Final = 1.2
"""Between numbers of pulls that are tried beyond."""


@runtime_checkable
class RepeatedLookaheadBelief(MeanBelief, Protocol):
    """Knows what several more pulls of one arm are worth."""

    def best_after_pulls(self, seen: Seen, pulls: int) -> FloatArray:
        """E[max_a' E[value of a' given so many rewards of a]] for each action a, ``(task, arm)``;
        for problems in which every pull shows the same.
        """
        ...


def numbers_of_pulls(left: int) -> list[int]:
    """Numbers of pulls that are tried with so many left: all up to ALL_PULLS, then each RATIO times
    the one before, and all that are left.
    """
    tried = list(range(1, min(left, ALL_PULLS) + 1))
    while tried[-1] < left:
        tried.append(min(left, int(tried[-1] * RATIO)))
    return tried
