"""A cart whose place is seen through noise, and whose engine may be reversed or strong; wrong
priors mistake how likely a reversed one is.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from priorwise.core.protocols import Policy
from priorwise.experiments.general.case import Case, Limit
from priorwise.experiments.judging import NOISE
from priorwise.families.linear_quadratic.hidden import FiniteLqgPrior, HiddenPlant
from priorwise.policies.thompson import ThompsonSampling
from priorwise.sensitivity.bounds.pomdp import pomdp_reward_bound, reward_tails

PLANT: Final = HiddenPlant(
    [[1.0, 0.0]], [[1.0]], [[0.5]], noise_var=[0.01, 0.04], output_var=0.1,
    start=[1.0, 0.0], start_cov=0.1 * np.eye(2),
)  # fmt: skip
TRANSITION: Final = np.array([[1.0, 0.3], [0.0, 0.9]])  # place and speed
PUSHES: Final = (0.5, 1.0, -0.5)
PROBS: Final = (0.5, 0.3, 0.2)
TAILS: Final = 10_000  # tasks that tails are taken from


def prior(probs: Any) -> FiniteLqgPrior:
    """Return the prior with these probabilities of the engines."""
    control = [[[0.0], [push]] for push in PUSHES]
    return FiniteLqgPrior([TRANSITION] * len(PUSHES), control, probs, PLANT)


def believed(factor: float) -> FiniteLqgPrior:
    """Return the prior under which the odds of a reversed engine are ``factor`` times the true
    ones.
    """
    weights = np.array(PROBS) * (1.0, 1.0, factor)
    return prior(weights / weights.sum())


def limit(true: Any, believed: Any, policy: Policy, horizon: int, seed: int) -> Limit:
    """Theorem on general decision problems with the exact distance, and with tails from simulated
    runs, allowed for some standard errors.
    """
    tails = reward_tails(true, believed, policy, horizon=horizon, tasks=TAILS, seed=seed)
    bound = pomdp_reward_bound((true, believed), policy, horizon, tails=tails, estimate=True)
    return Limit(bound.tv.upper, bound.value + NOISE * bound.std_error, bound.trivial)


CASE: Final = Case(
    title="Hidden linear state",
    axis="odds of a reversed engine believed, as a multiple of the true ones",
    true=lambda: believed(1.0),
    wrong=believed,
    vague=lambda: prior([1 / 3, 1 / 3, 1 / 3]),
    grid=(0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 1.001, 1.01, 1.1, 2.0, 10.0, 100.0),
    named=(100.0, "a reversed engine thought 100 times as likely"),
    policy=ThompsonSampling(),
    horizon=10,
    tasks=200,
    note="A cart seen through noise, 10 steps, Thompson sampling.",
    limit=limit,
)
