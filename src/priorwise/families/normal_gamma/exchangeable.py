"""Arms of unknown mean and variance that are new in every task: exchangeable, so that a prior
learned on past arms speaks about new ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from priorwise.core import sizes, validation
from priorwise.core.serial import Serializable
from priorwise.core.streams import Stream
from priorwise.families.normal_gamma.environment import NormalGammaEnvironment
from priorwise.families.normal_gamma.prior import NormalGammaBelief, NormalGammaPrior
from priorwise.families.registry import belief_for_arms


@final
@dataclass(frozen=True, eq=False, init=False)
class ExchangeableNormalGammaPrior(Serializable):
    """Independent arms with one normal-gamma law for all.

    Examples
    --------
    >>> ExchangeableNormalGammaPrior(0.0, 1.0, 3.0, 2.0).for_arms(3).rate.tolist()
    [2.0, 2.0, 2.0]

    """

    family: ClassVar[str] = "exchangeable-normal-gamma"

    mean: float
    pulls: float
    shape: float
    rate: float

    def __init__(self, mean: float, pulls: float, shape: float, rate: float) -> None:
        """Check and freeze the parameters."""
        given = {"mean": mean, "pulls": pulls, "shape": shape, "rate": rate}
        one = NormalGammaPrior(
            **{name: [validation.number(name, value)] for name, value in given.items()}
        )
        for name in given:
            object.__setattr__(self, name, float(getattr(one, name)[0]))

    def in_words(self, std_errors: Mapping[str, Any]) -> list[str]:
        """Say what this family leaves out."""
        return [
            (
                "arms of one task are taken as independent: what they share counts as difference "
                "between arms"
            )
        ]

    def for_arms(self, arms: int) -> NormalGammaPrior:
        """Return the prior of a task with this many arms."""
        arms = validation.count("arms", arms)
        sizes.check_memory(f"arms={sizes.amount(arms)}", 128.0 * sizes.as_float(arms), "lower arms")
        return NormalGammaPrior(np.full(arms, self.mean), self.pulls, self.shape, self.rate)

    def sample(self, rng: Stream, tasks: int, *, arms: int) -> NormalGammaEnvironment:
        """Environments with this many arms."""
        return self.for_arms(arms).sample(rng, tasks)

    def belief(self, tasks: int, *, arms: int) -> NormalGammaBelief:
        """Belief about tasks with this many arms."""
        return self.for_arms(arms).belief(tasks)

    def belief_given(self, statistics: Any) -> NormalGammaBelief:
        """Return the belief about tasks with as many arms as their statistics have."""
        belief: NormalGammaBelief = belief_for_arms(self, statistics)
        return belief
