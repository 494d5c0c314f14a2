"""Environments drawn from a posterior, as a rule on environments sees them.

Every drawn batch has ``values(seen)``, the value of each action now, ``(task, draw, arm)``. What
else it has depends on the family: weights, variances, transitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from priorwise.core.protocols import (
    Belief,
    DrawnEnvironments,
    EnvironmentBelief,
    WeighedPrior,
    offers,
)
from priorwise.core.seen import Seen
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray, IntArray


@final
@dataclass(frozen=True, eq=False)
class DrawnValues:
    """Environments of which a rule sees the value of each action at the step of the draw."""

    table: FloatArray  # (task, draw, arm)

    def values(self, seen: Seen) -> FloatArray:
        """Value of each action in each of them, ``(task, draw, arm)``."""
        return self.table


@final
@dataclass(frozen=True, eq=False)
class DrawnPoints:
    """Bandits drawn from finitely many possible ones."""

    points: IntArray  # (task, draw): which of the possible bandits
    means: FloatArray  # (task, draw, arm)

    def values(self, seen: Seen) -> FloatArray:
        """Mean reward of each arm, ``(task, draw, arm)``."""
        return self.means


@final
@dataclass(frozen=True, eq=False)
class DrawnWeights:
    """Environments that weights describe: means of arms, or weights of features."""

    weights: FloatArray  # (task, draw, dim)
    prior: WeighedPrior

    def values(self, seen: Seen) -> FloatArray:
        """Mean reward of each arm with the features that ``seen`` shows, ``(task, draw, arm)``."""
        return self.prior.values(self.weights, seen)


@final
@dataclass(frozen=True, eq=False)
class DrawnComponents:
    """Environments drawn from a mixture: a component, and an environment of that component."""

    components: IntArray  # (task, draw)
    parts: tuple[DrawnEnvironments, ...]  # drawn environments of each component

    def values(self, seen: Seen) -> FloatArray:
        """Value of each action in each of them, ``(task, draw, arm)``."""
        every = np.stack([part.values(seen) for part in self.parts])
        return np.asarray(np.take_along_axis(every, self.components[None, :, :, None], axis=0)[0])


def drawn_environments(belief: Belief, rng: Stream, draws: int, seen: Seen) -> DrawnEnvironments:
    """Draw environments from any belief: if it draws values only, a rule sees these values."""
    if offers(belief, EnvironmentBelief):
        environments: Any = belief
        drawn: DrawnEnvironments = environments.sample_environments(rng, draws, seen)
        return drawn
    return DrawnValues(belief.sample(rng, draws, seen))
