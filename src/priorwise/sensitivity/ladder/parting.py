"""How far the likelihood ratio of the two policies has fallen along a history, and what rewards
hang on it.

With tau the history before pull h and ``L_h = prod_(k <= h) q_k(a_k) / p_k(a_k)`` along a run of
alg(theta), the gap is

    R(theta, alg(theta')) - R(theta, alg(theta))  >=  -sum_h E[(1 - L_h)_+ (m_(a_h) - E[min | tau])]
                                                  <=   sum_h E[(1 - L_h)_+ (E[max | tau] - m_(a_h))]

where m, max and min are of the values under the posterior of theta. Proved in docs/sensitivity.md.
Given tau the law of ``a_h`` is known, so its mean is taken exactly: ``sum_a (p_h(a) - L_(h-1)
q_h(a))_+ (m_a - E[min | tau])``. With one pull nothing is left to chance.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final, Self, final

import numpy as np

from priorwise.core.protocols import MeanBelief, RangeBelief, RewardRangeBelief, offers
from priorwise.core.seen import Seen
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray, IntArray
from priorwise.simulate.steps import Step
from priorwise.theory.action_laws import ActionLaw

Laws = tuple[ActionLaw, ActionLaw]
"""Of the action under theta and under theta'."""
DRAWS: Final = 16
"""Posterior draws for the largest and smallest value, where a belief does not know them. Their mean
has no bias, so what they scatter is part of the standard error over histories.
"""


@final
@dataclass(frozen=True, eq=False)
class Parting:
    """Sums over the steps of each history, ``(history,)`` each."""

    ratio: FloatArray  # L_h so far
    parted: FloatArray  # E(1 - L_h)_+ given tau; its mean is the distance of the trajectories' laws
    lost: FloatArray  # (1 - L_h)_+ (m_a - E[min])
    gained: FloatArray  # (1 - L_h)_+ (E[max] - m_a)
    off: FloatArray  # how much the errors of the action laws may hide of either

    @classmethod
    def start(cls, tasks: int) -> Parting:
        """Before the first pull."""
        return cls(np.ones(tasks), *np.zeros((4, tasks)))

    def after(self, step: Step, rng: Stream, laws: Laws, weight: FloatArray) -> Parting:
        """Take a step whose action laws are known; ``rng`` is a stream that decides nothing.

        ``weight`` is that of each history, 1 unless tasks are drawn by their size.
        """
        p, q = laws
        seen = step.seen
        fallen = weight[:, None] * np.maximum(p.probs - self.ratio[:, None] * q.probs, 0.0)
        ratio = self.ratio * likelihood_ratio(laws, step.actions)
        error = weight * (seen.horizon - seen.step + 1) * law_errors(p, q)
        belief = step.belief.p
        if offers(belief, RewardRangeBelief):  # knows the reward of the action taken alone
            high, low, mean = belief.reward_range(rng, DRAWS, seen, step.actions)
            drawn = weight * np.maximum(1.0 - ratio, 0.0)
            lost, gained = drawn * (mean - low), drawn * (high - mean)
        else:
            high, low, means = _range_of(step, rng)
            means = np.where(fallen > 0.0, means, 0.0)
            total = fallen.sum(axis=1)
            lost = (fallen * means).sum(axis=1) - total * low
            gained = total * high - (fallen * means).sum(axis=1)
        return Parting(
            ratio,
            fallen.sum(axis=1),
            self.lost + lost,
            self.gained + gained,
            self.off + error * (high - low),
        )

    def after_draws(self, step: Step, rng: Stream, kept: FloatArray, weight: FloatArray) -> Parting:
        """Take a step whose posterior draws are coupled: ``kept`` is at most the ratio of the
        draws' laws, so what parts is not less.
        """
        ratio, rows = self.ratio * kept, np.arange(len(kept))
        parted = weight * np.maximum(1.0 - ratio, 0.0)
        belief = step.belief.p
        if offers(belief, RewardRangeBelief):
            high, low, mean = belief.reward_range(rng, DRAWS, step.seen, step.actions)
        else:
            high, low, means = _range_of(step, rng)
            mean = means[rows, step.actions]
        return Parting(
            ratio,
            parted,
            self.lost + parted * (mean - low),
            self.gained + parted * (high - mean),
            self.off,
        )

    def join(self, *others: Self) -> Parting:
        """Return these histories, then others."""
        parts = (self, *others)
        names = (field.name for field in fields(self))
        return Parting(*(np.concatenate([getattr(part, each) for part in parts]) for each in names))


def _range_of(step: Step, rng: Stream) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the value range of a step: that of the posterior, or of the task itself if the belief
    approximates its posterior and knows no extremes. Given the history both have one mean.
    """
    belief, seen, values = step.belief.p, step.seen, step.values
    approximate = getattr(belief, "approximate", False)
    if values is None or not approximate:
        return value_range(belief, seen, rng)
    known = belief.extremes(seen) if offers(belief, RangeBelief) else None
    if known is None:
        known = seen.masked(values).max(axis=1), -seen.masked(-values).max(axis=1)
    return *known, values


def value_range(belief: Any, seen: Seen, rng: Stream) -> tuple[FloatArray, FloatArray, FloatArray]:
    """``E[max]``, ``E[min]`` over the available arms, ``(task,)`` each, and the mean of each arm,
    ``(task, arm)``: as the belief knows them, otherwise from draws, without bias.
    """
    known = belief.extremes(seen) if offers(belief, RangeBelief) else None
    if known is not None:
        return *known, belief.mean(seen)
    drawn = belief.sample(rng, DRAWS, seen)
    mean = belief.mean(seen) if offers(belief, MeanBelief) else drawn.mean(axis=1)
    high = seen.masked(drawn).max(axis=2).mean(axis=1)
    low = -seen.masked(-drawn).max(axis=2).mean(axis=1)
    return high, low, mean


def likelihood_ratio(laws: Laws, actions: IntArray) -> FloatArray:
    """``q(a) / p(a)`` at the actions taken, ``(task,)``."""
    rows, (p, q) = np.arange(len(actions)), laws
    return np.asarray(q.probs[rows, actions] / np.maximum(p.probs[rows, actions], 1e-300))


def law_errors(p: ActionLaw, q: ActionLaw) -> FloatArray:
    """``2 e_p + e_q`` with e the error of each law in total variation, ``(task,)``."""
    first, second = (np.broadcast_to(law.error, law.probs.shape)[:, 0] for law in (p, q))
    return np.asarray(2.0 * first + second)
