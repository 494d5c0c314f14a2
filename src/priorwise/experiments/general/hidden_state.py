"""A tiger behind one of two doors, and ears of unknown accuracy; wrong priors mistake how likely
sharp ears are.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from priorwise.core.protocols import Policy
from priorwise.experiments.general.case import Case, Limit
from priorwise.families.finite_pomdp.prior import FinitePomdpPrior
from priorwise.families.finite_pomdp.problems import tiger
from priorwise.policies.thompson import ThompsonSampling
from priorwise.sensitivity.bounds.pomdp import pomdp_reward_bound
from priorwise.sensitivity.exact.evaluation import exact_reward_tails

ACCURACY: Final = (0.6, 0.75, 0.9)
PROBS: Final = (0.5, 0.3, 0.2)
STEPS: Final = 8


def believed(factor: float) -> FinitePomdpPrior:
    """Return the prior under which the odds of the sharpest ears are ``factor`` times the true
    ones.
    """
    weights = np.array(PROBS) * (1.0, 1.0, factor)
    return tiger(ACCURACY, weights / weights.sum())


def limit(true: Any, believed: Any, policy: Policy, horizon: int, seed: int) -> Limit:
    """Theorem on general decision problems, with exact tails by enumeration of all histories."""
    low, high = true.mean_range
    tails = exact_reward_tails(true, believed, policy, horizon, centre=(low + high) / 2.0)
    bound = pomdp_reward_bound((true, believed), policy, horizon, tails=tails)
    return Limit(bound.tv.upper, bound.value, bound.trivial)


CASE: Final = Case(
    title="Hidden state",
    axis="odds of sharp ears believed, as a multiple of the true ones",
    true=lambda: believed(1.0),
    wrong=believed,
    vague=lambda: tiger(np.linspace(0.5, 1.0, 6)),
    grid=(0.01, 0.1, 0.3, 0.6, 0.9, 0.99, 0.999, 1.001, 1.01, 1.1, 2.0, 5.0, 20.0, 100.0),
    named=(20.0, "sharp ears thought 20 times as likely"),
    policy=ThompsonSampling(),
    horizon=STEPS,
    tasks=500,
    note=f"The tiger with ears of unknown accuracy, {STEPS} steps, Thompson sampling.",
    limit=limit,
)
