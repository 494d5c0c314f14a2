"""Contexts whose law is a part of the unknown task: the general contextual bandit of the paper,
``x_h ~ P_context(. | phi)``.

The environment ``phi`` is a component k, which fixes the law of contexts, and what the component
draws (weights). By Bayes' rule the features x_1, ..., x_h that a task has shown weigh a component
by ``prod_i p_k(x_i)`` beside what it makes of the rewards; with the same laws everywhere this
cancels. So contexts predict a task's rewards before the first one is earned.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, final, runtime_checkable

import numpy as np

from priorwise.core.errors import ArgumentError
from priorwise.core.seen import Seen, Signal
from priorwise.core.streams import Stream, WorldStreams
from priorwise.core.types import FloatArray, IntArray


@runtime_checkable
class TellingContexts(Protocol):
    """Contexts whose law has a density, so that features show which of several laws they follow."""

    @property
    def measure(self) -> Any:
        """What the density is relative to: laws are distinguished only where these are equal."""
        ...

    def draw(self, rng: Stream, dim: int) -> FloatArray:
        """Features of each arm, ``(task, arm, dim)``."""
        ...

    def log_density(self, features: FloatArray) -> FloatArray:
        """Log density of features ``(task, arm, dim)``, ``(task,)``; -inf where they are
        impossible.
        """
        ...


@final
@dataclass(frozen=True)
class OwnContexts:
    """A law of contexts for each component."""

    of_environment: ClassVar[bool] = True
    """The law is not known to the learner, and so need not be the one that a prior believes."""

    laws: tuple[Any, ...]
    dim: int

    @property
    def arms(self) -> int:
        """Number of arms."""
        return int(self.laws[0].arms)

    def log_densities(self, features: FloatArray) -> FloatArray:
        """Log density of features ``(task, arm, dim)`` under each law, ``(task, component)``."""
        return np.stack([law.log_density(features) for law in self.laws], axis=1)


def own_contexts(components: Sequence[Any]) -> OwnContexts | None:
    """Return the laws of contexts of components that do not share one; None where they do.

    Raises an error for laws that features cannot distinguish: without a density, or with densities
    relative to different measures.
    """
    laws: tuple[Any, ...] = tuple(getattr(part, "contexts", None) for part in components)
    if any(isinstance(law, OwnContexts) for law in laws):
        raise ArgumentError(
            "components",
            "must not be mixtures whose components have contexts of their own",
            cure="write those in one list, with the products of probabilities",
        )
    if all(law is laws[0] or law == laws[0] for law in laws):
        return None
    for place, law in enumerate(laws):
        if not isinstance(law, TellingContexts):
            kind = "none" if law is None else type(law).__name__
            raise ArgumentError(
                "components",
                "must share the law of contexts, or have laws with log_density(features) and "
                "measure, as NormalContexts and GivenContexts are",
                cure=f"components[{place}] has {kind}",
            )
    if any(law.measure != laws[0].measure for law in laws[1:]):
        raise ArgumentError(
            "components",
            "have contexts whose densities cannot be compared",
            cure="take laws of one kind, and the same arm_features for all",
        )
    return OwnContexts(laws, int(components[0].dim))


@final
@dataclass(frozen=True, eq=False)
class OwnContextsEnvironment:
    """Tasks that show contexts of the law of their component."""

    actions_influence_signals: ClassVar[bool] = False

    tasks: Any  # environments of the components, which say what arms with features earn
    contexts: OwnContexts
    component: IntArray  # (task,)

    def start(self, rng: WorldStreams) -> Signal:
        """Show the first features."""
        shown = np.stack([law.draw(rng.world, self.contexts.dim) for law in self.contexts.laws])
        return shown[self.component, np.arange(len(self.component))]

    def step(self, seen: Seen, actions: IntArray, rng: WorldStreams) -> tuple[FloatArray, Signal]:
        """Draw the rewards of the chosen arms, and the next features."""
        rewards, _ = self.tasks.step(seen, actions, rng)
        return rewards, self.start(rng) if np.any(seen.step < seen.horizon) else seen.signal

    def values(self, signal: Signal) -> FloatArray:
        """Expected rewards of the arms."""
        return np.asarray(self.tasks.values(signal))

    def log(self, signal: Signal, actions: IntArray) -> FloatArray:
        """All features that were shown, ``(task, arm x dim)``: those of all arms show the law."""
        return np.asarray(signal, dtype=np.float64).reshape(len(actions), -1)
