"""What is kept of tasks with features: their statistics, and the features as they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.types import FloatArray
from priorwise.families.featured.features import TaskFeatures
from priorwise.families.featured.prior import FeaturedPrior
from priorwise.families.registry import family_for
from priorwise.fitting.statistics import PerTask

TOOL: Final = "a prior with features"


@final
@dataclass(frozen=True, eq=False, repr=False)
class FeaturedStatistics(PerTask):
    """Statistics of tasks, and their features ``x`` ``(task, number)``, as ``features`` reads
    them.
    """

    family: ClassVar[str] = "featured-statistics"

    seen: Any
    x: FloatArray
    features: TaskFeatures

    def __post_init__(self) -> None:
        """Check and freeze."""
        if not isinstance(self.seen, PerTask) or not isinstance(self.features, TaskFeatures):
            raise ArgumentTypeError(
                "seen", "must be statistics of tasks, and features TaskFeatures"
            )
        x = validation.matrix("x", self.x)
        if x.shape != (self.seen.tasks, len(self.features.labels)):
            raise ArgumentError(
                "x",
                f"must be (task, number), {(self.seen.tasks, len(self.features.labels))}",
                got=x.shape,
            )
        self._set(x=x)

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return int(self.seen.tasks)

    @property
    def arms(self) -> int:
        """Number of arms."""
        return int(self.seen.arms)

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the arms."""
        return getattr(self.seen, "names", None)

    @property
    def z(self) -> FloatArray:
        """Features in units of their spread."""
        return self.features.standard(self.x)

    def take(self, index: ArrayLike | slice) -> Self:
        """Return some of the tasks."""
        rows = index if isinstance(index, slice) else np.asarray(index)
        return type(self)(self.seen.take(index), self.x[rows], self.features)

    def __add__(self, other: Any) -> Self:
        """Join two sets of tasks."""
        if type(other) is not type(self):
            return NotImplemented
        if self.features != other.features:
            raise ArgumentError("other", "must read features as these tasks do")
        return type(self)(self.seen + other.seen, np.vstack([self.x, other.x]), self.features)


def log_marginal(prior: FeaturedPrior, statistics: FeaturedStatistics) -> FloatArray:
    """Log density of each task's rewards under the prior of its features, ``(task,)``."""
    density = family_for(prior.base, TOOL).log_marginal
    return np.asarray(density(prior.base, statistics.seen, prior.offsets(statistics.x)))


def measure(prior: FeaturedPrior, statistics: FeaturedStatistics) -> str:
    """What the densities are of."""
    return str(family_for(prior.base, TOOL).measure(prior.base, statistics.seen))
