"""How far the likelihood ratio of the two policies has fallen along a history, and what rewards
hang on it.

With tau the history before pull h and ``L_h = prod_(k <= h) q_k(a_k) / p_k(a_k)`` along a run of
alg(theta), the gap is

    R(theta, alg(theta')) - R(theta, alg(theta))  >=  -sum_h E[(1 - L_h)_+ (m_(a_h) - E[min | tau])]
                                                  <=   sum_h E[(1 - L_h)_+ (E[max | tau] - m_(a_h))]

where m, max and min are of the values under the posterior of theta. Proved in docs/sensitivity.md.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final, Self, final

import numpy as np

from priorwise.core.action_laws import ActionLaw
from priorwise.core.protocols import MeanBelief, RangeBelief, RewardRangeBelief, Seen, offers
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray, IntArray

DRAWS: Final = 16
"""Posterior draws for the largest and smallest value, where a belief does not know them. Their mean
has no bias, so what they scatter is part of the standard error over histories.
"""


@final
@dataclass(frozen=True, eq=False)
class Parting:
    """Sums over the steps of each history, ``(history,)`` each."""

    ratio: FloatArray  # L_h so far
    lost: FloatArray  # (1 - L_h)_+ (m_a - E[min])
    gained: FloatArray  # (1 - L_h)_+ (E[max] - m_a)
    off: FloatArray  # how much the errors of the action laws may hide of either

    @classmethod
    def start(cls, tasks: int) -> Parting:
        """Before the first pull."""
        return cls(np.ones(tasks), *np.zeros((3, tasks)))

    @property
    def parted(self) -> FloatArray:
        """``(1 - L)_+``; its mean is the total variation between the laws of trajectories."""
        return np.maximum(1.0 - self.ratio, 0.0)

    def after(self, factor: FloatArray, error: FloatArray, step: Any, rng: Stream) -> Parting:
        """Take a step: ``factor`` is the ratio of the two laws at the action taken, ``error`` twice
        the error of the first law plus that of the second, ``rng`` a stream that decides nothing.
        """
        seen: Seen = step.seen
        high, low, mean = value_range(step.belief.p, seen, step.actions, rng)
        moved = Parting(self.ratio * factor, self.lost, self.gained, self.off)
        left = seen.horizon - seen.step + 1
        return Parting(
            moved.ratio,
            self.lost + moved.parted * (mean - low),
            self.gained + moved.parted * (high - mean),
            self.off + left * error * (high - low),
        )

    def join(self, *others: Self) -> Parting:
        """Return these histories, then others."""
        parts = (self, *others)
        names = (field.name for field in fields(self))
        return Parting(*(np.concatenate([getattr(part, each) for part in parts]) for each in names))


def value_range(
    belief: Any, seen: Seen, actions: IntArray, rng: Stream
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """``E[max]``, ``E[min]`` over the available arms and the mean of the action taken, ``(task,)``
    each: as the belief knows them, otherwise from draws, without bias. In a problem with a state
    they are of the rewards of all states and actions, and of the reward now.
    """
    if offers(belief, RewardRangeBelief):
        return belief.reward_range(rng, DRAWS, seen, actions)
    rows = np.arange(len(actions))
    if offers(belief, RangeBelief):
        return *belief.extremes(seen), belief.mean(seen)[rows, actions]
    drawn = belief.sample(rng, DRAWS, seen)
    mean = belief.mean(seen) if offers(belief, MeanBelief) else drawn.mean(axis=1)
    high = seen.masked(drawn).max(axis=2).mean(axis=1)
    low = -seen.masked(-drawn).max(axis=2).mean(axis=1)
    return high, low, mean[rows, actions]


def law_errors(p: ActionLaw, q: ActionLaw) -> FloatArray:
    """``2 e_p + e_q`` with e the error of each law in total variation, ``(task,)``."""
    first, second = (np.broadcast_to(law.error, law.probs.shape)[:, 0] for law in (p, q))
    return np.asarray(2.0 * first + second)
