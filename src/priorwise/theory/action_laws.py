"""The law of a policy's action given its belief, how sure it is, and who knows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, final, runtime_checkable

import numpy as np

from priorwise.core.choosing import ties
from priorwise.core.protocols import Belief
from priorwise.core.seen import Seen
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray, IntArray

Source = Literal["exact", "quadrature", "sampling"]
ROUNDING: Final = 1e-12
"""Real-valued actions this close, relative to the largest, are equal."""
WORDS: Final = {"exact": "exact", "quadrature": "by quadrature", "sampling": "sampled"}
"""How results say where a law comes from; the surest first."""


@final
@dataclass(frozen=True, eq=False)
class ActionLaw:
    """Probability of each arm, with its error.

    ``source`` is ``"exact"`` (up to rounding), ``"quadrature"`` or ``"sampling"``. ``error`` is 0
    for the first, about the total variation from the true law for the second, a number or ``(task,
    1)``, and the standard error of each probability for the third, ``(task, arm)``.
    """

    probs: FloatArray  # (task, arm)
    source: Source = "exact"
    error: float | FloatArray = 0.0

    def take(self, index: IntArray) -> ActionLaw:
        """Return the laws of some tasks."""
        error = self.error if np.ndim(self.error) == 0 else np.asarray(self.error)[index]
        return ActionLaw(self.probs[index], self.source, error)

    def join(self, *others: ActionLaw) -> ActionLaw:
        """Return these laws, then others; the least sure of them says where they come from."""
        laws = (self, *others)
        source: Source = max((law.source for law in laws), key=list(WORDS).index)
        error = [np.broadcast_to(law.error, law.probs.shape) for law in laws]
        return ActionLaw(np.concatenate([law.probs for law in laws]), source, np.concatenate(error))

    def distance(self, other: ActionLaw) -> FloatArray:
        """Total variation between two laws, ``(task,)``."""
        return np.asarray(np.abs(self.probs - other.probs).sum(axis=1) / 2.0)


@runtime_checkable
class ArgmaxBelief(Belief, Protocol):
    """Knows how likely each action is to be the best one in posterior draws."""

    def argmax_law(self, draws: int, rule: Literal["max", "mean"], seen: Seen) -> ActionLaw | None:
        """Law of the action with the largest value over ``draws`` draws, or with the largest mean
        over them; None where it has to be sampled.
        """
        ...


@runtime_checkable
class MixedBelief(Belief, Protocol):
    """Draws from one of several beliefs."""

    def mixed(self, seen: Seen) -> list[tuple[FloatArray, Any]]:
        """Return these beliefs, each with its posterior probability, ``(task,)``."""
        ...


@runtime_checkable
class ProbablePolicy(Protocol):
    """Knows the law of its action."""

    def act(self, belief: Any, seen: Seen, rng: Stream) -> IntArray:
        """Choose an action for each task: ``(task,)``."""
        ...

    def probabilities(self, belief: Any, seen: Seen) -> ActionLaw | None:
        """Law of the action given the belief; None where it has to be sampled."""
        ...


@final
@dataclass(frozen=True, eq=False)
class RealActionLaw:
    """Law of a real-valued action with finitely many values."""

    actions: FloatArray  # (task, choice, size)
    probs: FloatArray  # (task, choice)

    def beside(
        self, other: RealActionLaw, taken: FloatArray
    ) -> tuple[ActionLaw, ActionLaw, IntArray]:
        """Both laws on one list of different actions, and where the actions taken ``(task, size)``
        stand in it.
        """
        every = np.concatenate([self.actions, other.actions], axis=1)
        scale = np.abs(every).max(axis=(1, 2), keepdims=True)
        apart = np.abs(every[:, :, None] - every[:, None, :]).max(axis=3)
        first = (apart <= ROUNDING * scale).argmax(
            axis=2
        )  # of equal actions the first stands for all
        split = self.actions.shape[1]
        rows = np.arange(len(every))[:, None]
        laws = []
        for probs, index in ((self.probs, first[:, :split]), (other.probs, first[:, split:])):
            law = np.zeros(every.shape[:2])
            np.add.at(law, (rows, index), probs)
            laws.append(ActionLaw(law))
        nearest = np.abs(every - taken[:, None]).max(axis=2).argmin(axis=1)
        return laws[0], laws[1], first[rows[:, 0], nearest]


@runtime_checkable
class RealActionPolicy(Protocol):
    """Knows the law of its real-valued action where that has finitely many values."""

    def real_action_law(self, belief: Any, seen: Seen) -> RealActionLaw | None:
        """Law of the action given the belief; None if it is not finite or not known."""
        ...


@runtime_checkable
class BestActionBelief(Belief, Protocol):
    """Knows the best action in each of finitely many environments."""

    def best_action_law(self, seen: Seen) -> RealActionLaw:
        """Best action now in each environment, with its posterior probability."""
        ...


def tied_law(values: FloatArray) -> FloatArray:
    """Uniform law on the arms that tie for the largest value, ``(task, arm)``, as
    :func:`priorwise.core.choosing.pick` draws.

    Values that are sums have to be made :func:`~priorwise.core.choosing.level` first.
    """
    tied = ties(values)
    return np.asarray(tied / tied.sum(axis=1, keepdims=True))
