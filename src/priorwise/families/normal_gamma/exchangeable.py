"""Arms of unknown mean and variance that are new in every task: exchangeable, so that a prior
learned on past arms speaks about new ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, final

import numpy as np
from attrs import field, frozen

from priorwise.core import sizes, validation
from priorwise.core.parameters import Number
from priorwise.core.serial import Serializable
from priorwise.core.streams import Stream
from priorwise.families.normal_gamma.environment import NormalGammaEnvironment
from priorwise.families.normal_gamma.prior import LIMITS, NormalGammaBelief, NormalGammaPrior
from priorwise.families.registry import belief_for_arms


@final
@frozen(eq=False, slots=False)
class ExchangeableNormalGammaPrior(Serializable):
    """Independent arms with one normal-gamma law for all.

    Parameters
    ----------
    mean
        Center of each arm's mean: its mean if ``shape > 1/2``, its median always.
    pulls
        How many pulls the mean is known by: given the precision ``lambda`` of a reward, it has
        variance ``1 / (pulls lambda)``.
    shape
        Shape of the Gamma distribution of the precision, which is as well known as after ``2
        shape`` pulls.
    rate
        Its rate: the variance of a reward is about ``rate / shape``.

    Examples
    --------
    >>> ExchangeableNormalGammaPrior(0.0, 1.0, 3.0, 2.0).for_arms(3).rate.tolist()
    [2.0, 2.0, 2.0]

    """

    family: ClassVar[str] = "exchangeable-normal-gamma"

    mean: float = field(validator=Number())
    pulls: float = field(validator=Number(*LIMITS["pulls"]))
    shape: float = field(validator=Number(*LIMITS["shape"]))
    rate: float = field(validator=Number(*LIMITS["rate"]))

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
        sizes.check_memory("arms", arms, 128.0 * sizes.as_float(arms), "lower arms")
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
