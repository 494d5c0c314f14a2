"""What mixtures keep of past tasks: the statistics of each component."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from priorwise.core import validation
from priorwise.core.family import ask, statistics_of, unseen
from priorwise.core.runs import Trajectory
from priorwise.core.statistics import PerTask
from priorwise.core.types import FloatArray
from priorwise.families.mixture.exchangeable import ExchangeableMixturePrior
from priorwise.families.mixture.prior import MixturePrior

TOOL: Final = "a mixture"


@final
@dataclass(frozen=True, eq=False, repr=False)
class MixtureStatistics(PerTask):
    """Statistics of the same tasks, one for each component."""

    family: ClassVar[str] = "mixture-statistics"

    parts: tuple[Any, ...]

    def __post_init__(self) -> None:
        """Check and freeze the parts."""
        parts = tuple(self.parts) if isinstance(self.parts, (list, tuple)) else ()
        if not parts or not all(isinstance(each, PerTask) for each in parts):
            raise TypeError(
                "parts must be a list with the statistics of each component, got "
                f"{validation.shown(self.parts)}"
            )
        if len({each.tasks for each in parts}) > 1:
            raise ValueError(
                "parts must be about the same tasks, but have "
                f"{', '.join(str(each.tasks) for each in parts)} of them"
            )
        self._set(parts=parts)

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

    @classmethod
    def adopted(cls, data: Any, components: Any = (), **known: Any) -> Any:
        """Statistics that all components read serve for each of them."""
        kinds = [ask(part, "statistics", TOOL) for part in components]
        fits = bool(kinds) and all(isinstance(data, kind) for kind in kinds)
        return cls((data,) * len(kinds)) if fits else data

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return int(self.parts[0].tasks)

    @property
    def arms(self) -> int:
        """Number of arms."""
        return int(self.parts[0].arms)

    def take(self, index: ArrayLike | slice) -> Self:
        """Return some of the tasks."""
        return type(self)(tuple(part.take(index) for part in self.parts))

    def observe(self, actions: ArrayLike, rewards: ArrayLike, signal: Any = None) -> Self:
        """Return the statistics with one more pull of each task."""
        return type(self)(tuple(part.observe(actions, rewards, signal) for part in self.parts))

    def merged(self, other: Any) -> Self:
        """Add what was seen of the same tasks."""
        if type(other) is not type(self):
            raise TypeError(
                f"other must be {type(self).__name__} of the same tasks, got {type(other).__name__}"
            )
        return type(self)(tuple(mine.merged(yours) for mine, yours in self.beside(other.parts)))

    def __add__(self, other: Any) -> Self:
        """Join two sets of tasks."""
        if type(other) is not type(self):
            return NotImplemented
        return type(self)(tuple(mine + yours for mine, yours in self.beside(other.parts)))

    def beside(self, others: tuple[Any, ...]) -> list[tuple[Any, Any]]:
        """Pair the parts with as many others: components, or parts of other statistics."""
        if len(others) != len(self.parts):
            raise ValueError(
                f"these statistics have parts for {len(self.parts)} components, but there are "
                f"{len(others)}"
            )
        return list(zip(self.parts, others, strict=True))

    def log_marginals(self, components: tuple[Any, ...]) -> FloatArray:
        """Log marginal likelihood of the tasks under each component, ``(task, component)``."""
        pairs = self.beside(components)
        return np.stack([ask(part, "log_marginal", TOOL)(part, own) for own, part in pairs], axis=1)


def log_marginal(
    prior: MixturePrior | ExchangeableMixturePrior, statistics: MixtureStatistics
) -> FloatArray:
    """``log sum_k probs_k p_k``, ``(task,)``."""
    with np.errstate(divide="ignore"):
        each = np.log(prior.probs) + statistics.log_marginals(prior.components)
    return np.asarray(logsumexp(each, axis=1))


def measure(prior: MixturePrior | ExchangeableMixturePrior, statistics: MixtureStatistics) -> str:
    """That of the components, which must have one."""
    pairs = statistics.beside(prior.components)
    found = {ask(part, "measure", TOOL)(part, own) for own, part in pairs}
    if len(found) > 1:
        raise ValueError(
            f"the components give {' and '.join(sorted(found))}: take those of one kind"
        )
    return str(found.pop())
