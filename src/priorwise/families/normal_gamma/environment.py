"""Arms with normal rewards whose variance differs between tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from priorwise.core.seen import Seen, Signal
from priorwise.core.streams import WorldStreams
from priorwise.core.types import FloatArray, IntArray


@final
@dataclass(frozen=True)
class NormalRewardsOfUnknownVariance:
    """Normal noise; its variance is drawn with the task."""

    support: ClassVar[tuple[float, float] | None] = (-np.inf, np.inf)
    binary: ClassVar[bool | None] = False


@final
@dataclass(frozen=True, eq=False)
class NormalGammaEnvironment:
    """Arms with fixed means and variances: nothing is shown and nothing changes."""

    actions_influence_signals: ClassVar[bool] = False

    means: FloatArray  # (task, arm)
    noise_std: FloatArray  # (task, arm)

    def start(self, rng: WorldStreams) -> Signal:
        """Show nothing."""
        return None

    def step(self, seen: Seen, actions: IntArray, rng: WorldStreams) -> tuple[FloatArray, Signal]:
        """``r ~ N(mu_a, noise_std_a^2)``: one number of noise a step, whatever the arm."""
        rows = np.arange(len(actions))
        noise = self.noise_std[rows, actions] * rng.noise.normal()
        return self.means[rows, actions] + noise, None

    def values(self, signal: Signal) -> FloatArray:
        """Return the means."""
        return self.means

    def reward_variances(self) -> FloatArray:
        """Variances of rewards, ``(task, arm)``."""
        return self.noise_std**2


@final
@dataclass(frozen=True, eq=False)
class DrawnNormalGamma:
    """Means and variances drawn from a posterior, as a rule on environments sees them."""

    means: FloatArray  # (task, draw, arm)
    variances: FloatArray  # (task, draw, arm): of a reward

    def values(self, seen: Seen) -> FloatArray:
        """Return the means."""
        return self.means
