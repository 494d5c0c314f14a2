"""Beliefs that approximate the posterior: which do, where they are too rough to rely on, and what
the exact posterior would do.
"""

from dataclasses import dataclass
from typing import Any, Protocol, final, runtime_checkable

import numpy as np

from priorwise.core.seen import Seen
from priorwise.core.streams import Stream
from priorwise.core.types import BoolArray, FloatArray


@runtime_checkable
class ApproximateBelief(Protocol):
    """Knows how good an approximation it is, task by task; runs count the rough ones and warn."""

    @property
    def rough_because(self) -> str:
        """What is wrong with a rough task, and what to do, as the end of a sentence."""
        ...

    def rough(self, seen: Seen) -> BoolArray:
        """Whether what it says of each task is too rough to rely on, ``(task,)``."""
        ...


@runtime_checkable
class MarkedBelief(Protocol):
    """Says whether its draws may have another distribution than the posterior."""

    approximate: bool


def is_approximate(prior: Any) -> bool:
    """Whether beliefs of a prior approximate the posterior. Beliefs that do not say are exact."""
    if not hasattr(prior, "belief"):
        return False
    belief = prior.belief(1)
    return isinstance(belief, MarkedBelief) and bool(belief.approximate)


@final
@dataclass(frozen=True, eq=False)
class WeightedDraws:
    """Values of all actions in draws of one proposal, with two weights for each draw."""

    values: FloatArray  # (task, draw, arm)
    exact: FloatArray  # (task, draw): those of the posterior; they sum to 1
    used: FloatArray  # (task, draw): those of the approximation that the belief draws from

    @property
    def effective(self) -> FloatArray:
        """Effective number of draws behind the weights of the posterior, ``(task,)``."""
        return np.asarray(1.0 / np.square(self.exact).sum(axis=1))


@runtime_checkable
class ComparableBelief(Protocol):
    """Compares the approximation it draws from with the exact posterior."""

    def weighted_draws(self, rng: Stream, draws: int, seen: Seen) -> WeightedDraws:
        """Draw environments and weigh them by the exact posterior and by the approximation."""
        ...
