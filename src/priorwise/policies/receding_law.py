"""The exact law of the action of two-step receding-horizon control, by enumeration of everything it
draws.

Of an imagined pull of arm a it keeps two numbers: its share of V_a, and the drawn value, which
breaks ties. Their sums over k1 pulls are independent between arms. With p_a the law of arm a's pair
over the ranks r of all pairs, and F_b(r-) the probability that arm b ranks lower,

    Pr[a] = sum_r p_a(r) sum_j [z^j] prod_{b != a} (F_b(r-) + p_b(r) z) / (1 + j),

where j arms tie with a, and each of them is as likely to be played.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from priorwise.core.action_laws import ActionLaw, tied_law
from priorwise.core.choosing import TIE_TOLERANCE, sizes_of
from priorwise.core.enumeration import (
    MOST_OUTCOMES,
    EnumerableRewards,
    by_sight,
    multiset_count,
    multisets,
    outcome_probabilities,
    row_groups,
)
from priorwise.core.protocols import CollapsingBelief, Seen, offers
from priorwise.core.types import BoolArray, FloatArray, IntArray

BLOCK: Final = 1 << 21  # probabilities held at a time


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Law of what is kept of one arm: ``value`` decides, ``now`` breaks ties."""

    value: FloatArray  # (outcome,)
    now: FloatArray  # (outcome,)
    value_size: FloatArray  # (outcome,): of the numbers that ``value`` is a sum of
    now_size: FloatArray  # (outcome,)
    probability: FloatArray  # (task, outcome)

    def gathered(self) -> _Pairs:
        """Gather outcomes that agree but for rounding."""
        levels = [_levels(self.value, self.value_size), _levels(self.now, self.now_size)]
        first, group = row_groups(np.stack(levels, axis=1))
        total = np.zeros((len(first), len(self.probability)))
        np.add.at(total, group, self.probability.T)
        return _Pairs(
            self.value[first],
            self.now[first],
            self.value_size[first],
            self.now_size[first],
            total.T,
        )


@dataclass(frozen=True)
class Look:
    """What two-step receding-horizon control draws, at one step."""

    k1: int
    k2: int
    alpha: float
    by_draws: bool  # ties are broken by the drawn values
    best_when_certain: bool


def receding_horizon_law(look: Look, belief: Any, seen: Seen) -> ActionLaw | None:
    """Law of the action; None where the posterior or its rewards have too many values."""
    if not offers(belief, EnumerableRewards):
        return None
    points, weights = belief.points(seen), belief.probabilities()
    rewards = [belief.likelihoods(arm) for arm in range(seen.arms)]
    looks = len(points) * multiset_count(len(points), look.k2)
    if any(shown is None for shown in rewards) or looks > MOST_OUTCOMES:
        return None
    out = np.zeros((len(weights), seen.arms))
    for sight, tasks in by_sight(seen, len(weights)):
        there = np.ones(seen.arms, dtype=bool) if sight.mask is None else sight.mask[0]
        arms = np.flatnonzero(there)
        step = max(1, BLOCK // looks)
        for start in range(0, len(tasks), step):
            part = tasks[start : start + step]
            laws = [
                _arm_law(look, points, weights[part], arm, rewards[arm], there)
                for arm in arms.tolist()
            ]
            known = [law for law in laws if law is not None]
            if len(known) < len(laws):
                return None
            out[np.ix_(part, arms)] = _choice(known)
    out /= out.sum(axis=1, keepdims=True)
    if look.best_when_certain and isinstance(belief, CollapsingBelief):
        out = np.where(belief.certain()[:, None], tied_law(seen.masked(belief.mean(seen))), out)
    return ActionLaw(out)


def _arm_law(
    look: Look,
    points: FloatArray,
    weights: FloatArray,
    arm: int,
    rewards: list[tuple[float, FloatArray]],
    there: BoolArray,
) -> _Pairs | None:
    """Law of the sums over k1 imagined pulls of an arm."""
    looks, log_orders = multisets(len(points), look.k2)
    ahead = points[looks][:, :, there]
    winner = ahead.mean(axis=1).argmax(axis=1)[:, None]  # (look, 1)
    # (look,)
    best, best_size = (
        np.take_along_axis(each.mean(axis=1), winner, axis=1)[:, 0]
        for each in (ahead, np.abs(ahead))
    )
    joint = np.zeros((len(weights), len(points), len(looks)))
    for _, likelihood in rewards:
        drawn = weights * likelihood  # the task drawn, with this reward
        total = drawn.sum(axis=1, keepdims=True)
        after = drawn / np.where(total > 0.0, total, 1.0)
        joint += drawn[:, :, None] * outcome_probabilities(after, looks, log_orders)[:, None, :]
    alpha, now = look.alpha, np.repeat(points[:, arm], len(looks))
    value = (1.0 - alpha) * now + alpha * np.tile(best, len(points))
    value_size = (1.0 - alpha) * np.abs(now) + alpha * np.tile(best_size, len(points))
    breaker = now if look.by_draws else np.zeros_like(now)
    one = _Pairs(
        value, breaker, value_size, np.abs(breaker), joint.reshape(len(weights), -1)
    ).gathered()
    if multiset_count(len(one.now), look.k1) > MOST_OUTCOMES:
        return None
    pulls, log_orders = multisets(len(one.now), look.k1)
    probability = outcome_probabilities(one.probability, pulls, log_orders)
    value, now, value_size, now_size = (
        each[pulls].sum(axis=1) for each in (one.value, one.now, one.value_size, one.now_size)
    )
    return _Pairs(value, now, value_size, now_size, probability).gathered()


def _choice(laws: list[_Pairs]) -> FloatArray:
    """Probability that each arm has the largest pair, ``(task, arm)``; ties at random."""
    tasks = len(laws[0].probability)
    value = _levels(
        np.concatenate([law.value for law in laws]),
        np.concatenate([law.value_size for law in laws]),
    )
    now = _levels(
        np.concatenate([law.now for law in laws]), np.concatenate([law.now_size for law in laws])
    )
    _, rank = np.unique(value * (now.max() + 1) + now, return_inverse=True)
    ranks = np.split(rank.reshape(-1), np.cumsum([len(law.now) for law in laws])[:-1])
    at = np.zeros((len(laws), int(rank.max()) + 1, tasks))
    for row, law, places in zip(at, laws, ranks, strict=True):
        np.add.at(row, places, law.probability.T)
    below = np.cumsum(at, axis=1) - at
    out = np.empty((tasks, len(laws)))
    for arm in range(len(laws)):
        ties = np.zeros_like(at)  # (number of arms that tie, rank, task)
        ties[0] = 1.0
        for other in range(len(laws)):
            if other != arm:
                more = ties[:-1] * at[other]
                ties *= below[other]
                ties[1:] += more
        out[:, arm] = np.einsum("rt,jrt,j->t", at[arm], ties, 1.0 / np.arange(1, len(laws) + 1))
    return out


def _levels(values: FloatArray, sizes: FloatArray) -> IntArray:
    """Rank of each value, the same for values that tie, as :func:`priorwise.core.choosing.level`
    judges.
    """
    order = np.argsort(values, kind="stable")
    half = TIE_TOLERANCE / 2.0 * sizes_of(values, sizes)[order]
    rises = np.diff(values[order]) > half[1:] + half[:-1]
    levels = np.empty(len(values), dtype=np.int64)
    levels[order] = np.concatenate([[0], np.cumsum(rises)])
    return levels
