"""Mixtures of priors of arms that are new in every task."""

from typing import Any, ClassVar, final

from attrs import field, frozen

from priorwise.core.errors import ArgumentTypeError
from priorwise.core.parameters import Checked, Probabilities, arrays, entries
from priorwise.core.protocols import Environment
from priorwise.core.serial import Serializable
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray
from priorwise.families.mixture.prior import MixtureBelief, MixturePrior, list_of_priors
from priorwise.families.registry import belief_for_arms


def check_open(name: str, value: Any) -> tuple[Any, ...]:
    """Return priors that have no fixed number of arms."""
    parts = list_of_priors(name, value)
    for index, part in enumerate(parts):
        if isinstance(part, type) or not hasattr(part, "for_arms"):
            must = "must be a prior of exchangeable arms, with for_arms(n)"
            raise ArgumentTypeError(
                f"{name}[{index}]", must, got=part, cure="MixturePrior takes others"
            )
    return parts


@final
@frozen(eq=False, slots=False)
class ExchangeableMixturePrior(Serializable):
    """One of several priors of exchangeable arms, drawn once per task: all arms of a task follow
    the same one.

    Parameters
    ----------
    components
        Priors without a fixed number of arms, with the same law of rewards.
    probs
        Their probabilities, ``(component,)``.

    Examples
    --------
    >>> from priorwise.families.beta.exchangeable import ExchangeableBetaPrior
    >>> parts = [ExchangeableBetaPrior(2, 98), ExchangeableBetaPrior(8, 92)]
    >>> ExchangeableMixturePrior(parts, [0.9, 0.1]).for_arms(3).arms
    3

    """

    family: ClassVar[str] = "exchangeable-mixture"

    components: tuple[Any, ...] = field(
        converter=entries, validator=Checked(check_open, ("component",))
    )
    probs: FloatArray = field(converter=arrays, validator=Probabilities(("component",)))

    def __attrs_post_init__(self) -> None:
        MixturePrior([part.for_arms(1) for part in self.components], self.probs)  # checks the rest

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
