"""Mixtures of priors of arms that are new in every task."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.errors import shown
from priorwise.core.protocols import Environment
from priorwise.core.serial import Serializable
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray
from priorwise.families.mixture.prior import MixtureBelief, MixturePrior
from priorwise.families.registry import belief_for_arms


@final
@dataclass(frozen=True, eq=False, init=False)
class ExchangeableMixturePrior(Serializable):
    """One of several priors of exchangeable arms, drawn once per task: all arms of a task follow
    the same one.

    Parameters
    ----------
    components
        Priors without a fixed number of arms, with the same law of rewards.
    probs
        Their probabilities, summing to 1.

    Examples
    --------
    >>> from priorwise.families.beta.exchangeable import ExchangeableBetaPrior
    >>> parts = [ExchangeableBetaPrior(2, 98), ExchangeableBetaPrior(8, 92)]
    >>> ExchangeableMixturePrior(parts, [0.9, 0.1]).for_arms(3).arms
    3

    """

    family: ClassVar[str] = "exchangeable-mixture"

    components: tuple[Any, ...]
    probs: FloatArray

    def __init__(self, components: Sequence[Any], probs: ArrayLike) -> None:
        """Check and freeze the components."""
        if isinstance(components, str) or not isinstance(components, Sequence):
            wrong = shown(components)
            raise TypeError(f"components must be a list of priors, got {wrong}")
        parts = tuple(components)
        if not parts:
            raise ValueError("components must have at least one prior, got none")
        for place, part in enumerate(parts):
            if isinstance(part, type) or not hasattr(part, "for_arms"):
                raise TypeError(
                    f"components[{place}] must be a prior of exchangeable arms, with for_arms(n), "
                    f"got {shown(part)}; MixturePrior takes others"
                )
        probs = validation.probabilities("probs", probs, len(parts))
        MixturePrior([part.for_arms(1) for part in parts], probs)  # says what does not fit
        validation.freeze(self, components=parts, probs=probs)

    def for_arms(self, arms: int) -> MixturePrior:
        """Return the prior of a task with this many arms."""
        return MixturePrior([part.for_arms(arms) for part in self.components], self.probs)

    def sample(self, rng: Stream, tasks: int, *, arms: int) -> Environment:
        """Environments with this many arms."""
        return self.for_arms(arms).sample(rng, tasks)

    def belief(self, tasks: int, *, arms: int) -> MixtureBelief:
        """Belief about tasks with this many arms."""
        return self.for_arms(arms).belief(tasks)

    def belief_given(self, statistics: Any) -> MixtureBelief:
        """Return the belief about tasks with as many arms as their statistics have."""
        belief: MixtureBelief = belief_for_arms(self, statistics)
        return belief
