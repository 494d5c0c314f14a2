"""Clicks whose log odds are linear in features; wrong priors mistake how much weights vary between
tasks.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from priorwise.experiments.general.case import Case
from priorwise.families.linear.contexts import SphereContexts
from priorwise.families.logistic.prior import LogisticPrior
from priorwise.policies.thompson import ThompsonSampling

MEAN: Final = (1.5, 1.5, 0.0)
COV: Final = 0.5 * np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
CONTEXTS: Final = SphereContexts(arms=3)


def believed(factor: float) -> LogisticPrior:
    """Return the prior under which the covariance of the weights is ``factor`` times the true
    one.
    """
    return LogisticPrior(MEAN, factor * COV, CONTEXTS)


CASE: Final = Case(
    title="Logistic rewards",
    axis="covariance of the weights believed, as a multiple of the true one",
    true=lambda: believed(1.0),
    wrong=believed,
    vague=lambda: LogisticPrior(np.zeros(3), 3.0 * np.eye(3), CONTEXTS),
    grid=(0.1, 0.4, 0.9, 0.99, 0.999, 1.001, 1.01, 1.1, 2.5, 10.0, 30.0),
    named=(30.0, "weights thought 30 times as variable"),
    policy=ThompsonSampling(),
    horizon=15,
    tasks=100,
    note="Three arms, three features on the sphere, 15 pulls, Thompson sampling.",
)
