"""The exact law of a policy's action where the posterior has finitely many points.

A rule that does not look at the order of its k draws sees only which points were drawn how often, a
multiset with multinomial probability

    Pr[m_1, ..., m_S] = k! / (m_1! ... m_S!) p_1^m_1 ... p_S^m_S.

What it plays on a multiset does not depend on the posterior, so it is worked out once for all
tasks. A rule of the user's may look at the order, and is asked about every sequence of k points.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

from priorwise.core.choosing import level
from priorwise.core.protocols import ScoredPolicy, Seen
from priorwise.core.types import FloatArray
from priorwise.families.finite.prior import FiniteBelief
from priorwise.policies.posterior_sampling import PosteriorSampling
from priorwise.policies.receding_horizon import RecedingHorizon
from priorwise.policies.thompson import KShotThompson, ThompsonSampling
from priorwise.policies.uniform import Uniform
from priorwise.sensitivity.exact.enumeration import (
    MOST_OUTCOMES,
    by_mask,
    multiset_count,
    multisets,
    outcome_probabilities,
    sequences,
    tied_law,
)
from priorwise.sensitivity.exact.receding_law import receding_horizon_law

BLOCK: Final = 1 << 22  # probabilities held at a time

DrawnRule = Callable[[FloatArray, Seen], FloatArray]
"""Probability of each arm, ``(outcome, arm)``, for drawn values ``(outcome, draw, arm)``."""


@runtime_checkable
class KnownActionLaw(Protocol):
    """A policy that knows the law of its action itself."""

    def action_law(self, belief: Any, seen: Seen) -> FloatArray | None:
        """Probability of each arm, ``(task, arm)``; None where it is not known for this belief."""
        ...


def finite_action_law(policy: Any, belief: Any, seen: Seen) -> FloatArray | None:
    """Exact probability of each arm, ``(task, arm)``, for a posterior on finitely many points.

    Known for :class:`ThompsonSampling`, :class:`KShotThompson`, :class:`PosteriorSampling` with any
    rule, :class:`Uniform`, policies that play the largest of known scores (greedy, Bayes-UCB, exact
    knowledge gradient), a :class:`RecedingHorizon` with few draws, and every policy with a method
    ``action_law(belief, seen)`` (:func:`drawn_law` writes one for any rule on posterior draws).
    Ties are broken uniformly, and masks are honoured, as when the policy acts.

    Returns None for other policies, for beliefs that are not a :class:`FiniteBelief`, and where
    more than ``MOST_OUTCOMES`` outcomes of the draws would have to be enumerated.

    Examples
    --------
    >>> from priorwise.families.finite.prior import FinitePrior
    >>> prior = FinitePrior(means=[[1.0, 0.0], [0.0, 1.0]], probs=[0.9, 0.1])
    >>> seen = Seen(step=1, horizon=1, arms=2)
    >>> finite_action_law(KShotThompson(2), prior.belief(1), seen).round(3)
    array([[0.9, 0.1]])

    """
    if isinstance(policy, KnownActionLaw):
        return policy.action_law(belief, seen)
    if not isinstance(belief, FiniteBelief):
        return None
    if isinstance(policy, Uniform):
        return tied_law(seen.masked(np.zeros((len(belief.log_weights), seen.arms))))
    if isinstance(policy, ScoredPolicy):
        return tied_law(policy.scores(belief, seen))
    if isinstance(policy, RecedingHorizon):
        return receding_horizon_law(policy, belief, seen)
    if isinstance(policy, PosteriorSampling):
        if callable(policy.rule):
            return drawn_law(policy.rule, policy.draws, belief, seen, ordered=True)
        return drawn_law(
            {"max": _max, "sum": _sum, "softmax": _softmax}[policy.rule], policy.draws, belief, seen
        )
    if isinstance(policy, (ThompsonSampling, KShotThompson)):
        return drawn_law(_max, policy.draws, belief, seen)
    return None


def drawn_law(
    rule: DrawnRule, draws: int, belief: FiniteBelief, seen: Seen, *, ordered: bool = False
) -> FloatArray | None:
    """Law of the action of any rule on ``draws`` posterior draws, ``(task, arm)``, or None if the
    outcomes are too many.

    ``rule`` maps values ``(outcome, draw, arm)``, with -inf for arms that are not available, and
    ``seen`` to the probability of each arm, ``(outcome, arm)``. A rule that looks at the order of
    the draws must be called with ``ordered=True``.
    """
    means, weights = belief.prior.means, belief.probabilities()
    count = len(means) ** draws if ordered else multiset_count(len(means), draws)
    if count > MOST_OUTCOMES:
        return None
    outcomes, log_orders = sequences(len(means), draws) if ordered else multisets(len(means), draws)
    out = np.empty((len(weights), seen.arms))
    for mask, tasks in by_mask(seen, len(weights)):
        there = None if mask is None else np.broadcast_to(mask, (count, seen.arms))
        asked = Seen(seen.step, seen.horizon, seen.arms, seen.signal, there)
        # (outcome, arm)
        played = np.asarray(rule(asked.masked(means[outcomes]), asked), dtype=np.float64)
        _check(played, count, seen)
        played = played / played.sum(axis=1, keepdims=True)
        step = max(1, BLOCK // count)
        for start in range(0, len(tasks), step):
            part = tasks[start : start + step]
            out[part] = np.einsum(
                "to,oa->ta", outcome_probabilities(weights[part], outcomes, log_orders), played
            )
    return np.asarray(out / out.sum(axis=1, keepdims=True))  # the sum is 1 but for rounding


def _check(played: FloatArray, count: int, seen: Seen) -> None:
    if played.shape != (count, seen.arms):
        raise ValueError(
            f"rule must return one probability for each task and arm, shape {(count, seen.arms)}, "
            f"got {played.shape}"
        )
    if (
        not np.isfinite(played).all()
        or played.min() < 0.0
        or np.abs(played.sum(axis=1) - 1.0).max() > 1e-6
    ):
        raise ValueError(
            "rule must return probabilities that sum to 1 for each task, and did not at step "
            f"{seen.step}"
        )


def _max(values: FloatArray, seen: Seen) -> FloatArray:
    return tied_law(values.max(axis=1))


def _sum(values: FloatArray, seen: Seen) -> FloatArray:
    return tied_law(level(values.sum(axis=1), np.abs(values).sum(axis=1)))


def _softmax(values: FloatArray, seen: Seen) -> FloatArray:
    total = values.sum(axis=1)
    weights = np.exp(total - total.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
