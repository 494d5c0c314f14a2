"""The statistical contracts raise false alarms as seldom as they say, and no less often than a test
that sees nothing would.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from registry import PRIORS
from scipy import stats

import priorwise as pw
from priorwise.testing import PolicyContract, calibration

pytestmark = pytest.mark.validate

SEEDS, LEVEL, FALSE_ALARM = 400, 0.1, 1e-6
"""A test at level 0.1 on 400 seeds: 40 alarms if p-values are uniform, and no more than 70 (false
alarm 1e-6).
"""
MOST = int(stats.binom.isf(FALSE_ALARM, SEEDS, LEVEL))
FEWEST = 10
"""A p-value after Bonferroni may be too large, since what it is over is dependent: 40 alarms or
fewer, but not almost none.
"""


def alarms(p_value: Any, seed: int) -> int:
    return sum(p_value(SEEDS * seed + number) < LEVEL for number in range(SEEDS))


@pytest.mark.parametrize(
    "name",
    [
        "gaussian",
        "gaussian-singular",
        "beta",
        "finite-bernoulli",
        "linear-pool",
        "exchangeable-gaussian",
    ],
)
def test_calibration(name: str, seed: int) -> None:
    prior = PRIORS[name][0]
    found = alarms(lambda each: calibration(prior, tasks=512, pulls=3, seed=each), seed)
    assert FEWEST <= found <= MOST


def test_calibration_sees_a_small_error(seed: int) -> None:
    """The control: a standard deviation that is 5 % too large, which one test of 512 tasks sees
    seldom and 400 cannot miss.
    """
    true, held = (pw.GaussianPrior(np.zeros(3), scale * np.eye(3)) for scale in (1.0, 1.05**2))
    wrong = alarms(
        lambda each: calibration(
            true, tasks=4096, pulls=1, seed=each, wrap=lambda _: held.belief(4096)
        ),
        seed,
    )
    assert wrong > MOST


@pytest.mark.parametrize(
    "policy",
    [pw.ThompsonSampling(), pw.KShotThompson(3), pw.Greedy()],
    ids=["thompson", "k-shot", "greedy"],
)
def test_relabelling(policy: Any, seed: int) -> None:
    contract = PolicyContract()
    found = alarms(lambda each: contract._relabelling(policy, 2 * each), seed)
    assert FEWEST <= found <= MOST
