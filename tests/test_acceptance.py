"""Known values of the paper's three problems. Tolerance: five combined standard errors, a
false-alarm rate of 6e-7 each.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import priorwise as pw
from priorwise.experiments import problems
from priorwise.fitting.runs import Run


def agrees(run: Run, value: float, known_error: float) -> bool:
    return abs(run.mean_reward - value) < 5 * np.hypot(run.std_error, known_error)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "held", "value", "known_error"),
    [
        (pw.ThompsonSampling(), "prior", 5.380, 0.002),
        (pw.ThompsonSampling(), "misspecified", 3.479, 0.002),
        (pw.Greedy(), "prior", 7.127, 0.005),
    ],
)
def test_gaussian(policy: object, held: str, value: float, known_error: float, seed: int) -> None:
    problem = problems.gaussian()
    run = pw.simulate(
        problem.prior,
        policy,
        horizon=10,
        tasks=1_000_000,
        seed=seed,
        believed=getattr(problem, held),
    )
    assert agrees(run, value, known_error)
    assert not agrees(run, value + 0.1, known_error)
    assert not agrees(run, value - 0.1, known_error)


@pytest.mark.slow
def test_gaussian_exact_knowledge_gradient(seed: int) -> None:
    """Through the paired gain over greedy, whose value is known to 0.005: sharp enough that greedy
    itself (7.127) would fail.
    """
    problem = problems.gaussian()
    policies = {"exact": pw.ExactKnowledgeGradient("online"), "greedy": pw.Greedy()}
    gain = pw.compare(problem.prior, policies, horizon=10, tasks=100_000, seed=seed).difference(
        "exact", "greedy"
    )
    error = np.hypot(gain.std_error, 0.005)
    assert error < 0.012
    assert 7.2 - 3 * error < 7.127 + gain.mean < 7.3 + 3 * error
    assert gain.mean > 5 * gain.std_error


@pytest.mark.slow
def test_gaussian_receding_horizon_rises_with_k(seed: int) -> None:
    """Coupled runs, so the differences are sharp: each at least five standard errors above zero."""
    problem = problems.gaussian()
    ks = (1, 3, 10, 30)
    result = pw.compare(
        problem.prior,
        {"thompson": pw.ThompsonSampling()}
        | {str(k): pw.RecedingHorizon(k, k, "online") for k in ks},
        horizon=10,
        tasks=20_000,
        seed=seed,
    )
    for smaller, larger in pairwise(ks):
        gain = result.difference(str(larger), str(smaller))
        assert gain.mean > 5 * gain.std_error
    gain = result.difference("10", "thompson")
    assert gain.std_error < 0.03
    # "about 5.7", through the paired gain over Thompson sampling (5.380)
    assert abs(5.380 + gain.mean - 5.7) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("held", "value", "known_error"), [("prior", 24.857, 0.012), ("misspecified", 12.403, 0.013)]
)
def test_linear(held: str, value: float, known_error: float, seed: int) -> None:
    problem = problems.linear()
    run = pw.simulate(
        problem.prior,
        pw.ThompsonSampling(),
        horizon=20,
        tasks=500_000,
        seed=seed,
        believed=getattr(problem, held),
    )
    assert agrees(run, value, known_error)
    assert not agrees(run, value + 0.2, known_error)
    assert not agrees(run, value - 0.2, known_error)


@pytest.mark.slow
@pytest.mark.parametrize(("held", "value"), [("prior", 9.04), ("misspecified", 7.67)])
def test_discrete_knowledge_gradient(held: str, value: float, seed: int) -> None:
    """Known to two decimals, so up to 0.003 (the standard deviation of rounding)."""
    problem = problems.discrete()
    policy = pw.KnowledgeGradient(10, 10, ties="random", when_certain="best")
    run = pw.simulate(
        problem.prior, policy, horizon=10, tasks=100_000, seed=seed, believed=getattr(problem, held)
    )
    assert agrees(run, value, 0.003)
    assert not agrees(run, value + 0.05, 0.003)
    assert not agrees(run, value - 0.05, 0.003)
