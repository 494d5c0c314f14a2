"""Beliefs that approximate the posterior, and say where they are too rough to rely on."""

from typing import Protocol, runtime_checkable

from priorwise.core.protocols import Seen
from priorwise.core.types import BoolArray


@runtime_checkable
class ApproximateBelief(Protocol):
    """Knows how good an approximation it is, task by task; runs count the rough ones and warn."""

    @property
    def rough_because(self) -> str:
        """What is wrong with a rough task, and what to do, as the end of a sentence."""

    def rough(self, seen: Seen) -> BoolArray:
        """Whether what it says of each task is too rough to rely on, ``(task,)``."""
