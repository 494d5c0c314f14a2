"""Bernoulli arms that are new in every task: exchangeable, so that a prior learned on past arms
speaks about new ones.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, final

import numpy as np
from attrs import field, frozen

from priorwise.core import sizes, validation
from priorwise.core.parameters import Number
from priorwise.core.rewards import BanditEnvironment
from priorwise.core.serial import Serializable
from priorwise.core.streams import Stream
from priorwise.families.beta.prior import RANGE, BetaBelief, BetaPrior
from priorwise.families.registry import belief_for_arms


@final
@frozen(eq=False, slots=False)
class ExchangeableBetaPrior(Serializable):
    """Independent Bernoulli arms with one Beta law for all.

    Parameters
    ----------
    alpha
        Successes of every arm before the first pull.
    beta
        Failures of every arm before the first pull.

    Examples
    --------
    >>> ExchangeableBetaPrior(2, 8).for_arms(3).alpha.tolist()
    [2.0, 2.0, 2.0]

    """

    family: ClassVar[str] = "exchangeable-beta"

    alpha: float = field(validator=Number(*RANGE))
    beta: float = field(validator=Number(*RANGE))

    @property
    def mean(self) -> float:
        """Mean of every arm's success probability."""
        return self.alpha / (self.alpha + self.beta)

    @property
    def concentration(self) -> float:
        """``alpha + beta``: how many pulls the prior is worth."""
        return self.alpha + self.beta

    def in_words(self, std_errors: Mapping[str, Any]) -> list[str]:
        """Say what this family leaves out."""
        independent = "arms of one task are taken as independent"
        return [f"{independent}: a shared task effect is counted as variation between arms"]

    def for_arms(self, arms: int) -> BetaPrior:
        """Return the prior of a task with this many arms."""
        arms = validation.count("arms", arms)
        sizes.check_memory("arms", arms, 64.0 * sizes.as_float(arms), "lower arms")
        return BetaPrior(np.full(arms, self.alpha), np.full(arms, self.beta))

    def sample(self, rng: Stream, tasks: int, *, arms: int) -> BanditEnvironment:
        """Environments with this many arms."""
        return self.for_arms(arms).sample(rng, tasks)

    def belief(self, tasks: int, *, arms: int) -> BetaBelief:
        """Belief about tasks with this many arms."""
        return self.for_arms(arms).belief(tasks)

    def belief_given(self, statistics: Any) -> BetaBelief:
        """Return the belief about tasks with as many arms as their statistics have."""
        belief: BetaBelief = belief_for_arms(self, statistics)
        return belief
