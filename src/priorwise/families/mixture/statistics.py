"""What mixtures keep of past tasks: the statistics of each component."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from priorwise.core.family import ask, statistics_of, unseen
from priorwise.core.runs import Trajectory
from priorwise.core.statistics import PerTask
from priorwise.core.types import FloatArray
from priorwise.families.mixture.prior import MixturePrior

TOOL: Final = "a mixture"


@final
@dataclass(frozen=True, eq=False, repr=False)
class MixtureStatistics(PerTask):
    """Statistics of the same tasks, one for each component."""

    family: ClassVar[str] = "mixture-statistics"

    parts: tuple[Any, ...]

    def __post_init__(self) -> None:
        """Freeze the parts."""
        object.__setattr__(self, "parts", tuple(self.parts))

    @classmethod
    def known(cls, prior: Any) -> dict[str, Any]:
        """The components."""
        return {"components": prior.components}

    @classmethod
    def read(cls, played: Trajectory, components: Any = (), **known: Any) -> Self:
        """Let each component read the tasks."""
        return cls(tuple(statistics_of(part, played, TOOL) for part in components))

    @classmethod
    def empty(cls, tasks: int, components: Any = (), **known: Any) -> Self:
        """Return the statistics of tasks before their first pull."""
        return cls(tuple(unseen(part, tasks, TOOL) for part in components))

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return int(self.parts[0].tasks)

    def take(self, index: ArrayLike | slice) -> Self:
        """Return some of the tasks."""
        return type(self)(tuple(part.take(index) for part in self.parts))

    def observe(self, actions: ArrayLike, rewards: ArrayLike, signal: Any = None) -> Self:
        """Return the statistics with one more pull of each task."""
        return type(self)(tuple(part.observe(actions, rewards, signal) for part in self.parts))

    def merged(self, other: Any) -> Self:
        """Add what was seen of the same tasks."""
        pairs = zip(self.parts, other.parts, strict=True)
        return type(self)(tuple(mine.merged(yours) for mine, yours in pairs))

    def __add__(self, other: Any) -> Self:
        """Join two sets of tasks."""
        if type(other) is not type(self):
            return NotImplemented
        pairs = zip(self.parts, other.parts, strict=True)
        return type(self)(tuple(mine + yours for mine, yours in pairs))


def log_marginal(prior: MixturePrior, statistics: MixtureStatistics) -> FloatArray:
    """``log sum_k probs_k p_k``, ``(task,)``."""
    each = [
        ask(part, "log_marginal", TOOL)(part, seen)
        for part, seen in zip(prior.components, statistics.parts, strict=True)
    ]
    with np.errstate(divide="ignore"):
        return np.asarray(logsumexp(np.log(prior.probs) + np.stack(each, axis=1), axis=1))
