"""What beliefs offer to policies that look ahead over several pulls of one arm."""

from typing import Protocol, runtime_checkable

from priorwise.core.protocols import MeanBelief, Seen
from priorwise.core.types import FloatArray


@runtime_checkable
class RepeatedLookaheadBelief(MeanBelief, Protocol):
    """Knows what several more pulls of one arm are worth."""

    def best_after_pulls(self, seen: Seen, pulls: int) -> FloatArray:
        """E[max_a' E[value of a' given so many rewards of a]] for each action a, ``(task, arm)``;
        for problems in which every pull shows the same.
        """
