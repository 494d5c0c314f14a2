"""Six arms whose means and variances are unknown; wrong priors mistake how noisy rewards are."""

from __future__ import annotations

from typing import Final

from priorwise.experiments.general.case import Case
from priorwise.families.normal_gamma.prior import NormalGammaPrior
from priorwise.policies.thompson import ThompsonSampling

MEAN: Final = (0.5, 0.0, 0.0, 0.1, 0.0, 0.0)  # as in the paper's Gaussian problem


def believed(factor: float) -> NormalGammaPrior:
    """Return the prior under which variances are ``factor`` times the true ones."""
    return NormalGammaPrior(MEAN, pulls=1.0, shape=3.0, rate=3.0 * factor)


CASE: Final = Case(
    title="Unknown mean and variance",
    axis="variance believed, as a multiple of the true one",
    true=lambda: believed(1.0),
    wrong=believed,
    vague=lambda: NormalGammaPrior([0.0] * len(MEAN), pulls=1.0, shape=1.0, rate=1.0),
    grid=(
        0.05,
        0.14,
        0.37,
        0.74,
        0.9,
        0.97,
        0.99,
        0.999,
        1.001,
        1.01,
        1.03,
        1.1,
        1.35,
        2.7,
        7.4,
        20.0,
    ),
    named=(7.4, "rewards thought 7.4 times as variable"),
    policy=ThompsonSampling(),
    horizon=10,
    tasks=2000,
    note="Six arms, 10 pulls, Thompson sampling; precisions ~ Gamma(3, 3).",
)
