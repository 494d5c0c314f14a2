"""Losses under many plausible truths: measured by coupled simulation, and read without the noise of
it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, final

import numpy as np

from priorwise.core.types import FloatArray

LEVEL: Final = 0.95


@final
@dataclass(frozen=True, eq=False)
class Losses:
    """What was measured under each plausible truth, ``(truth,)``, all in reward of a task.

    ``losses`` is what the policy earns with the truth for its prior, less what it earns with the
    fitted one, on the same tasks with the same noise; negative where the fitted prior earns more.
    ``vague`` is the same for a vague prior, NaN where the family has none. ``rewards`` is earned
    with the fitted prior; ``uniform`` is how much more than by uniform play, with the truth.
    """

    truths: Sequence[Any] = field(repr=False)
    losses: FloatArray
    std_errors: FloatArray
    vague: FloatArray
    vague_std_errors: FloatArray
    rewards: FloatArray
    reward_std_errors: FloatArray
    uniform: FloatArray

    @property
    def columns(self) -> tuple[FloatArray, ...]:
        """All numbers, in the order above."""
        return tuple(each for each in vars(self).values() if isinstance(each, np.ndarray))

    @property
    def clear(self) -> FloatArray:
        """The losses without the spread that is noise of the simulation."""
        return without_noise(self.losses, self.std_errors)


def without_noise(values: FloatArray, std_errors: FloatArray) -> FloatArray:
    """Draw measured values ``x_i = t_i + e_i`` together until they spread as much as the ``t_i``.

    ``Var(t) = Var(x) - mean(s_i^2)``. How well that is known is known too: at least ``Var(x)
    sqrt(2 / (n - 1))``, the standard error of ``Var(x)``, is kept, so that noise never hides a
    spread that is there.
    """
    size, mean, spread = len(values), float(values.mean()), float(values.var(ddof=1))
    if not spread > 0.0:
        return values
    least = math.sqrt(2.0 / (size - 1))
    kept = 1.0 - float(np.mean(std_errors**2)) / spread
    return np.asarray(mean + math.sqrt(min(1.0, max(kept, least))) * (values - mean))


def upper(values: FloatArray) -> float:
    """The ``ceil(0.95 (n + 1))``-th smallest of n values: one more of the same kind exceeds it with
    probability at most 5 %.
    """
    rank = min(math.ceil(LEVEL * (len(values) + 1)), len(values))
    return float(np.sort(values)[rank - 1])


def upper_error(values: FloatArray) -> float:
    """Standard error of :func:`upper`: half the distance between the values whose ranks are one
    standard deviation of a binomial count above and below.
    """
    off = math.sqrt(LEVEL * (1.0 - LEVEL) / len(values))
    low, high = np.quantile(values, [LEVEL - off, min(LEVEL + off, 1.0)])
    return float(high - low) / 2.0


def rule_of_three(tasks: int) -> str:
    """What follows if none of n tasks differs: the share that does is at most 3 / n with 95 %
    confidence, because ``(1 - 3 / n)^n`` is about 0.05.
    """
    return f"at most 3 tasks in {tasks:,} differ, with 95 % confidence (rule of three)"
