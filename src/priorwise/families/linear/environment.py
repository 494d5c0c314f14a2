"""Tasks whose arms have features, drawn afresh at each pull."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from priorwise.core.rewards import RewardLaw
from priorwise.core.seen import Seen, Signal
from priorwise.core.streams import WorldStreams
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.linear.contexts import Contexts


@dataclass(frozen=True, eq=False)
class FeatureEnvironment:
    """True weights; the signal is the features of the arms, ``(task, arm, dim)``."""

    actions_influence_signals: ClassVar[bool] = False

    weights: FloatArray  # (task, dim)
    contexts: Contexts
    law: RewardLaw

    def expected(self, scores: FloatArray) -> FloatArray:
        """Expected rewards of arms with the scores ``x_a'w``."""
        raise NotImplementedError

    def start(self, rng: WorldStreams) -> Signal:
        """Show the first features."""
        return self.contexts.draw(rng.world, self.weights.shape[1])

    def step(self, seen: Seen, actions: IntArray, rng: WorldStreams) -> tuple[FloatArray, Signal]:
        """Draw the rewards of the chosen arms, and the next features."""
        scores = np.einsum("tj,tj->t", self.log(seen.signal, actions), self.weights)
        after = self.start(rng) if np.any(seen.step < seen.horizon) else seen.signal
        return self.law.draw(self.expected(scores), actions, rng.noise), after

    def values(self, signal: Signal) -> FloatArray:
        """Expected rewards of the arms."""
        return self.expected(np.einsum("taj,tj->ta", signal, self.weights))

    def log(self, signal: Signal, actions: IntArray) -> FloatArray:
        """Features of the chosen arms, ``(task, dim)``."""
        return np.asarray(signal[np.arange(len(actions)), actions])


@final
@dataclass(frozen=True, eq=False)
class LinearEnvironment(FeatureEnvironment):
    """Expected rewards are the scores themselves."""

    def expected(self, scores: FloatArray) -> FloatArray:
        """``x_a'w``."""
        return scores
