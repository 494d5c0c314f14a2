"""Informative contexts: rewards ``v_a'L x`` with a matrix L and a covariance of contexts
that both depend on the kind of task; wrong priors mistake how likely each kind is.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from priorwise.core.protocols import Policy
from priorwise.experiments.general.case import Case, Limit
from priorwise.experiments.judging import NOISE
from priorwise.families.linear.bilinear import NormalContexts, matrix_normal
from priorwise.families.linear.prior import LinearGaussianPrior
from priorwise.families.mixture.prior import MixturePrior
from priorwise.policies.thompson import ThompsonSampling
from priorwise.sensitivity.bounds.bandits import reward_bound

ARMS: Final = np.array([[1.0, 0.0], [0.0, 1.0], [-0.7, -0.7]])
MATRICES: Final = (np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[-1.0, 0.0], [0.0, -1.0]]))
COVARIANCES: Final = (np.diag([1.0, 0.25]), np.diag([0.25, 1.0]))
SPREAD: Final = 0.1  # variance of an entry of L within a kind
DRAWS: Final = 20_000  # from which tails are estimated


def believed(factor: float) -> MixturePrior:
    """Return the prior under which the odds of the second kind are ``factor`` times the true ones,
    which are even.
    """
    parts = [
        LinearGaussianPrior(
            *matrix_normal(centre, SPREAD * np.eye(2), np.eye(2)), 1.0, NormalContexts(ARMS, cov)
        )
        for centre, cov in zip(MATRICES, COVARIANCES, strict=True)
    ]
    return MixturePrior(parts, np.array([1.0, factor]) / (1.0 + factor))


def vague() -> LinearGaussianPrior:
    """Any matrix, whatever the contexts."""
    law = matrix_normal(np.zeros((2, 2)), 4.0 * np.eye(2), np.eye(2))
    return LinearGaussianPrior(*law, 1.0, NormalContexts(ARMS, np.eye(2)))


def limit(true: Any, believed: Any, policy: Policy, horizon: int, seed: int) -> Limit:
    """Theorem on bandits with the exact distance, and with tails of the diameter estimated over
    tasks and their own contexts, and allowed for some standard errors.
    """
    how: Any = {"estimate": True, "seed": seed, "draws": DRAWS}
    bound = reward_bound(true, believed, policy, horizon, **how)
    return Limit(bound.tv.upper, bound.value + NOISE * bound.std_error, bound.trivial)


CASE: Final = Case(
    title="Informative contexts",
    axis="odds of the second kind believed, as a multiple of the true ones",
    true=lambda: believed(1.0),
    wrong=believed,
    vague=vague,
    grid=(0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 1.001, 1.01, 1.1, 2.0, 10.0, 100.0, 1000.0),
    named=(1000.0, "the second kind thought 1,000 times as likely"),
    policy=ThompsonSampling(),
    horizon=8,
    tasks=400,
    note="Three arms, bilinear rewards, 8 pulls, Thompson sampling.",
    limit=limit,
)
