"""What mixtures keep of past tasks: the statistics of each component."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from priorwise.core import validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.trajectories import Trajectory
from priorwise.core.types import FloatArray
from priorwise.families.mixture.contexts import OwnContexts, TellingContexts
from priorwise.families.mixture.exchangeable import ExchangeableMixturePrior
from priorwise.families.mixture.prior import MixturePrior
from priorwise.families.registry import family_for, statistics_of, unseen
from priorwise.fitting.columns import chosen_tasks, pulls_of
from priorwise.fitting.statistics import PerTask

TOOL: Final = "a mixture"


@final
@dataclass(frozen=True, eq=False, repr=False)
class MixtureStatistics(PerTask):
    """Statistics of the same tasks, one for each component.

    Parameters
    ----------
    parts
        Statistics of the tasks, one for each component.
    laws
        Laws of contexts, one for each component, where these have their own; None where they share
        one.
    log_contexts
        Log density of all contexts that a task has shown under each law, ``(task, component)``;
        -inf where they are impossible.

    """

    family: ClassVar[str] = "mixture-statistics"

    parts: tuple[Any, ...]
    laws: tuple[Any, ...] | None = field(default=None, kw_only=True)
    log_contexts: FloatArray | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        """Check and freeze the parts."""
        parts = tuple(self.parts) if isinstance(self.parts, (list, tuple)) else ()
        if not parts or not all(isinstance(each, PerTask) for each in parts):
            raise ArgumentTypeError(
                "parts", "must be a list with the statistics of each component", got=self.parts
            )
        if len({each.tasks for each in parts}) > 1:
            raise ArgumentError(
                "parts",
                "must be about the same tasks, but have "
                f"{', '.join(str(each.tasks) for each in parts)} of them",
            )
        self._set(parts=parts)
        if (self.laws is None) != (self.log_contexts is None):
            raise ArgumentError(
                "laws", "and log_contexts belong together", cure="give both or none"
            )
        if self.laws is not None:
            self._check_contexts(self.laws, self.log_contexts)

    def _check_contexts(self, laws: Any, log_contexts: Any) -> None:
        each = tuple(laws) if isinstance(laws, (list, tuple)) else ()
        if len(each) != len(self.parts) or not all(
            isinstance(law, TellingContexts) for law in each
        ):
            raise ArgumentTypeError(
                "laws",
                "must be a list with the law of contexts of each component, with "
                "log_density(features)",
                got=laws,
            )
        shape = (self.tasks, len(each))
        what = f"numbers or -inf, of shape {shape}"
        logs = validation.shaped("log_contexts", log_contexts, shape, "fiu", what)
        if not (logs < np.inf).all():  # NaN is not
            raise ArgumentError("log_contexts", f"must be {what}, but has NaN or infinite entries")
        logs = np.array(logs, dtype=np.float64)
        self._set(laws=each, log_contexts=logs)

    @classmethod
    def known(cls, prior: Any) -> dict[str, Any]:
        """The components, and the laws of contexts where these have their own."""
        own = getattr(prior, "contexts", None)
        return {
            "components": prior.components,
            "own": own if isinstance(own, OwnContexts) else None,
        }

    @classmethod
    def read(
        cls, played: Trajectory, components: Any = (), own: OwnContexts | None = None, **known: Any
    ) -> Self:
        """Let each component read the tasks."""
        if own is None:
            return cls(tuple(statistics_of(part, played, TOOL) for part in components))
        tasks, steps = played.rewards.shape
        if played.log is None or played.log.shape[2] != own.arms * own.dim:
            raise ArgumentError("log", f"must hold {own.arms} x {own.dim} features of each pull")
        shown = played.log.reshape(tasks, steps, own.arms, own.dim)
        at = np.ix_(np.arange(tasks), np.arange(steps))
        chosen = replace(played, log=shown[(*at, played.actions)])
        logs = sum(own.log_densities(shown[:, step]) for step in range(steps))
        parts = tuple(statistics_of(part, chosen, TOOL) for part in components)
        return cls(parts, laws=own.laws, log_contexts=np.asarray(logs))

    @classmethod
    def empty(
        cls, tasks: int, components: Any = (), own: OwnContexts | None = None, **known: Any
    ) -> Self:
        """Return the statistics of tasks before their first pull."""
        parts = tuple(unseen(part, tasks, TOOL) for part in components)
        if own is None:
            return cls(parts)
        return cls(parts, laws=own.laws, log_contexts=np.zeros((tasks, len(parts))))

    @classmethod
    def adopted(cls, data: Any, components: Any = (), own: Any = None, **known: Any) -> Any:
        """Statistics that all components read serve for each of them, unless contexts count."""
        if own is not None:
            return data
        kinds = [family_for(part, TOOL).statistics for part in components]
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
        rows = chosen_tasks(index, self.tasks)
        return self._of((part.take(index) for part in self.parts), lambda logs: logs[rows])

    def observe(self, actions: ArrayLike, rewards: ArrayLike, signal: Any = None) -> Self:
        """Return the statistics with one more pull of each task."""
        parts = [part.observe(actions, rewards, signal) for part in self.parts]
        if self.laws is None:
            return type(self)(tuple(parts))
        pulled = pulls_of(actions, rewards, signal, self.tasks).tasks
        shown = OwnContexts(self.laws, np.shape(signal)[2]).log_densities(np.asarray(signal))

        def added(logs: FloatArray) -> FloatArray:
            out = logs.copy()
            out[pulled] += shown[pulled]
            return out

        return self._of(parts, added)

    def merged(self, other: Any) -> Self:
        """Add what was seen of the same tasks."""
        if type(other) is not type(self):
            raise ArgumentTypeError(
                "other", f"must be {type(self).__name__} of the same tasks", got=type(other)
            )
        self._check_laws(other.laws)
        parts = [mine.merged(yours) for mine, yours in self.beside(other.parts)]
        added: Any = other.log_contexts
        return self._of(parts, lambda logs: np.asarray(logs + added))

    def __add__(self, other: Any) -> Self:
        """Join two sets of tasks."""
        if type(other) is not type(self):
            return NotImplemented
        self._check_laws(other.laws)
        parts = [mine + yours for mine, yours in self.beside(other.parts)]
        return self._of(parts, lambda logs: np.append(logs, np.asarray(other.log_contexts), axis=0))

    def _of(self, parts: Iterable[Any], change: Callable[[FloatArray], FloatArray]) -> Self:
        logs = None if self.log_contexts is None else change(self.log_contexts)
        return type(self)(tuple(parts), laws=self.laws, log_contexts=logs)

    def _check_laws(self, laws: tuple[Any, ...] | None) -> None:
        if laws != self.laws:
            raise ArgumentError(
                "statistics", "must be of components with the same laws of contexts"
            )

    def log_contexts_under(self, own: OwnContexts | None) -> FloatArray:
        """Log density of the contexts under each component, ``(task, component)``; zeros where
        these share a law.
        """
        self._check_laws(None if own is None else own.laws)
        none = np.zeros((self.tasks, len(self.parts)))
        return none if self.log_contexts is None else self.log_contexts

    def beside(self, others: tuple[Any, ...]) -> list[tuple[Any, Any]]:
        """Pair the parts with as many others: components, or parts of other statistics."""
        if len(others) != len(self.parts):
            raise ArgumentError(
                "statistics", f"must have parts for {len(others)} components", got=len(self.parts)
            )
        return list(zip(self.parts, others, strict=True))

    def log_marginals(self, components: tuple[Any, ...]) -> FloatArray:
        """Log marginal likelihood of the tasks under each component, ``(task, component)``."""
        pairs = self.beside(components)
        return np.stack(
            [family_for(part, TOOL).log_marginal(part, own) for own, part in pairs], axis=1
        )


def log_marginal(
    prior: MixturePrior | ExchangeableMixturePrior, statistics: MixtureStatistics
) -> FloatArray:
    """``log sum_k probs_k p_k``, ``(task,)``; p_k is the density of the contexts, too, where
    components have laws of their own.
    """
    own = getattr(prior, "_own", None)
    with np.errstate(divide="ignore"):
        each = np.log(prior.probs) + statistics.log_marginals(prior.components)
    each = each + statistics.log_contexts_under(own)
    return np.asarray(logsumexp(each, axis=1))


def measure(prior: MixturePrior | ExchangeableMixturePrior, statistics: MixtureStatistics) -> str:
    """That of the components, which must have one."""
    pairs = statistics.beside(prior.components)
    found = {family_for(part, TOOL).measure(part, own) for own, part in pairs}
    if len(found) > 1:
        raise ArgumentError("components", "must give values of one kind", got=sorted(found))
    own = "" if statistics.laws is None else ", and of contexts"
    return f"{found.pop()}{own}"
