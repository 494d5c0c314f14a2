"""Tasks with parameters of their own, whose rewards the user's functions draw."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np

from priorwise.core.seen import Seen, Signal
from priorwise.core.streams import WorldStreams
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.particle.model import Model


@dataclass(frozen=True, eq=False)
class ParticleEnvironment:
    """True parameters of each task."""

    actions_influence_signals: ClassVar[bool] = False

    parameters: FloatArray  # (task, d)
    model: Model

    def start(self, rng: WorldStreams) -> Signal:
        """Show nothing."""
        return None

    def step(self, seen: Seen, actions: IntArray, rng: WorldStreams) -> tuple[FloatArray, Signal]:
        """Draw the rewards of the chosen arms."""
        return self.model.draw(self.parameters, actions, rng.noise, seen.signal), None

    def values(self, signal: Signal) -> FloatArray:
        """Mean rewards of the arms, ``(task, arm)``."""
        return self._means

    @cached_property
    def _means(self) -> FloatArray:
        return self.model.means(self.parameters)


@final
@dataclass(frozen=True, eq=False)
class ContextualEnvironment(ParticleEnvironment):
    """The signal is the features of the arms, ``(task, arm, dim)``, drawn afresh at each pull."""

    def start(self, rng: WorldStreams) -> Signal:
        """Show the first features."""
        contexts: Any = self.model.contexts
        return contexts.draw(rng.world, self.model.dim)

    def step(self, seen: Seen, actions: IntArray, rng: WorldStreams) -> tuple[FloatArray, Signal]:
        """Draw the rewards of the chosen arms, and the next features."""
        rewards, _ = super().step(seen, actions, rng)
        return rewards, self.start(rng) if np.any(seen.step < seen.horizon) else seen.signal

    def values(self, signal: Signal) -> FloatArray:
        """Mean rewards of the arms given their features."""
        own = self.parameters[:, None]
        each = [self.model.means(row, x) for row, x in zip(own, signal, strict=True)]
        return np.concatenate(each)

    def log(self, signal: Signal, actions: IntArray) -> FloatArray:
        """All features that were shown, ``(task, arm x dim)``."""
        return np.asarray(signal, dtype=np.float64).reshape(len(actions), -1)


@final
@dataclass(frozen=True, eq=False)
class DrawnParticles:
    """Parameters drawn from a posterior, as a rule on environments sees them."""

    parameters: FloatArray  # (task, draw, d)
    model: Model

    def values(self, seen: Seen) -> FloatArray:
        """Mean reward of each arm in each of them, ``(task, draw, arm)``."""
        tasks, draws, size = self.parameters.shape
        if self.model.contexts is None:
            means = self.model.means(self.parameters.reshape(-1, size))
            return np.asarray(means).reshape(tasks, draws, -1)
        pairs = zip(self.parameters, seen.signal, strict=True)
        return np.stack([self.model.means(rows, x) for rows, x in pairs])
