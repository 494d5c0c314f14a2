"""A prior whose particles are all possible tasks, to tools that enumerate them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from priorwise.core.seen import Signal
from priorwise.core.types import BoolArray, FloatArray
from priorwise.theory.enumeration import Outcome, Outcomes


class Enumerated:
    """Adds what exact evaluation asks of a prior; nothing can be enumerated (``outcomes`` is None)
    unless draws are given and rewards have few values.
    """

    @property
    def candidates(self: Any) -> FloatArray:
        """Parameters of the possible tasks, ``(particle, d)``."""
        found: FloatArray = self.parameters
        return found

    def pooled(self: Any, others: Sequence[Any], kept: BoolArray) -> Any:
        """Return a prior on the tasks of this one and of others, of which those that are kept."""
        rows = np.concatenate([each.parameters for each in (self, *others)])[kept]
        return self.replaced(sample=rows, weights=None)

    def extremes(self: Any) -> tuple[FloatArray, FloatArray]:
        """Largest and smallest mean reward of each task."""
        return self.values.max(axis=0), self.values.min(axis=0)

    def first_signals(self) -> tuple[None, FloatArray]:
        """Nothing is shown."""
        return None, np.ones(1)

    def likelihoods(self: Any, arm: int) -> list[tuple[float, FloatArray]]:
        """Rewards that an arm may show, with their probabilities in each task, ``(particle,)``."""
        chances = self.reward_law.chances(self.parameters, arm)
        return list(zip(self.reward_law.rewards, chances, strict=True))

    def outcomes(self: Any, signal: Signal, step: int) -> Outcomes | None:
        """For each arm the rewards that it may show; None where that cannot be enumerated."""
        if not self.given or self.reward_law.rewards is None or self.contexts is not None:
            return None
        return [
            [Outcome(reward, None, chance) for reward, chance in self.likelihoods(arm)]
            for arm in range(self.arms)
        ]
