"""The lower-bound instances: closed forms against enumeration, simulation against closed forms, and
the theorem's numbers.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from raising import raises

import priorwise as pw
from priorwise.families.finite.instances import noiseless_instance, two_point_instance
from priorwise.sensitivity.bounds.lower import (
    exact_gap,
    improved_gap,
    lower_bound_gap,
    theorem_gap,
    two_point_tv,
)
from priorwise.sensitivity.bounds.lower_simulation import simulated_rewards
from priorwise.sensitivity.exact.evaluation import exact_rewards, exact_trajectory_tv

SIGMAS = 4.6  # false alarms with probability 4e-6


# The (N + 1)-arm instance


def test_instance_is_the_one_of_the_paper() -> None:
    arms, eps, delta = 3, 0.2, 0.06
    case = noiseless_instance(arms, eps, delta)
    expected = {
        (a, b): [1 - delta if i == a else delta for i in range(1, arms + 1)]
        + [1.0 if b else delta * a / (2 * arms)]
        for b in (0, 1)
        for a in range(1, arms + 1)
    }
    found = {
        tuple(row): p
        for row, p in zip(
            case.prior.means.round(12).tolist(), case.prior.probs.tolist(), strict=True
        )
    }
    for (_, b), row in expected.items():
        assert found[tuple(np.round(row, 12))] == pytest.approx((eps if b else 1 - eps) / arms)
    assert pw.total_variation(case.prior, case.other).value == pytest.approx(eps)
    assert case.prior.means.min() >= 0.0
    assert case.prior.means.max() <= 1.0
    assert not case.other.probs[arms:].any()


@pytest.mark.parametrize(
    ("k", "horizon", "arms"),
    [(1, 1, 2), (1, 3, 10), (1, 5, 5), (2, 4, 6), (3, 6, 2), (3, 3, 8), (1, 6, 3), (2, 8, 3)],
)
@pytest.mark.parametrize(("eps", "delta"), [(0.1, 0.05), (1e-3, 0.01), (0.6, 0.3)])
def test_closed_form_is_the_enumeration(
    k: int, horizon: int, arms: int, eps: float, delta: float
) -> None:
    case, policy = noiseless_instance(arms, eps, delta), pw.KShotThompson(k)
    true = exact_rewards(case.prior, policy, horizon).mean_reward
    wrong = exact_rewards(case.prior, policy, horizon, believed=case.other).mean_reward
    assert exact_gap(k, horizon, arms, eps, delta) == pytest.approx(true - wrong, abs=1e-12)


@pytest.mark.parametrize(("k", "horizon", "arms"), [(1, 6, 10), (3, 5, 9), (2, 8, 3)])
def test_simulation_without_tables_is_the_enumeration(
    k: int, horizon: int, arms: int, seed: int
) -> None:
    """Both rewards within 4.6 standard errors; with twice the draws (the control) the difference is
    not.
    """
    eps, delta, tasks = 0.05, 0.05, 60_000
    case, policy = noiseless_instance(arms, eps, delta), pw.KShotThompson(k)
    earned = simulated_rewards(k, horizon, arms, eps, delta, tasks=tasks, seed=seed)
    for totals, held in zip(earned, (case.prior, case.other), strict=True):
        exact = exact_rewards(
            case.prior, policy, horizon, believed=held, most=1_000_000
        ).mean_reward
        assert abs(totals.mean() - exact) < SIGMAS * totals.std() / np.sqrt(tasks)
    gap = earned[0] - earned[1]
    assert abs(
        gap.mean() - exact_gap(2 * k, horizon, arms, eps, delta)
    ) > SIGMAS * gap.std() / np.sqrt(tasks)


def test_simulation_without_tables_has_the_law_of_the_policy(seed: int) -> None:
    """Rewards of the library's own policy on the table, spread over totals; chi-square p-value
    above 1e-5.
    """
    from scipy import stats

    k, horizon, arms, eps, delta, tasks = 2, 6, 12, 0.05, 0.05, 20_000
    case = noiseless_instance(arms, eps, delta)
    run = pw.simulate(
        case.prior, pw.KShotThompson(k), horizon=horizon, tasks=tasks, seed=seed, keep=True
    )
    mine = simulated_rewards(k, horizon, arms, eps, delta, tasks=tasks, seed=seed + 1)[0]
    edges = np.arange(horizon + 2) - 0.5  # totals are near whole numbers of good pulls
    counts = np.array(
        [np.histogram(np.floor(x), edges)[0] for x in (run.rewards.sum(axis=1), mine)]
    )
    counts = counts[:, counts.sum(axis=0) > 40]
    assert stats.chi2_contingency(counts, correction=False).pvalue > 1e-5


def test_acceptance(seed: int) -> None:
    """k = 1, H = 40, N = 2000, eps = 1e-3, delta = 0.01: theorem <= measured <= 2 n H^2 eps; six
    standard errors of room.
    """
    found = lower_bound_gap(1, 40, 2000, 1e-3, 0.01, seed=seed)
    assert found.theorem == pytest.approx(
        1.6 * (0.96**2 * 0.99 * 39 * 38 / 3200 - 40 / 1960 - 0.01)
    )
    assert found.upper == pytest.approx(3.2)
    assert found.theorem <= found.improved <= found.exact <= found.upper
    assert found.exact - found.theorem > 5 * found.std_error
    assert found.theorem <= found.measured <= found.upper
    assert abs(found.measured - found.exact) < SIGMAS * found.std_error
    assert "theorem" in str(found)


@pytest.mark.slow
def test_acceptance_on_the_table(seed: int) -> None:
    """The library's own run on all 4000 tasks of 2001 arms, within 4.6 standard errors of the
    closed form.
    """
    case, policy = noiseless_instance(2000, 1e-3, 0.01), pw.KShotThompson(1)
    runs = {"true": (policy, case.prior), "wrong": (policy, case.other)}
    gap = pw.compare(case.prior, runs, horizon=40, tasks=1024, seed=seed).difference(
        "true", "wrong"
    )
    assert abs(gap.mean - exact_gap(1, 40, 2000, 1e-3, 0.01)) < SIGMAS * gap.std_error


@settings(max_examples=200)
@given(
    st.integers(1, 5),
    st.integers(1, 40),
    st.integers(2, 4000),
    st.floats(1e-6, 1.0),
    st.floats(1e-3, 0.03),
)
def test_theorem_holds_for_the_exact_gap(
    k: int, horizon: int, arms: int, share: float, delta: float
) -> None:
    eps = share / (k * horizon)
    assume(arms > horizon and eps < 1.0)
    exact = exact_gap(k, horizon, arms, eps, delta)
    assert (
        theorem_gap(k, horizon, arms, eps, delta)
        <= improved_gap(k, horizon, arms, eps, delta)
        <= exact + 1e-12
    )
    assert exact <= 2 * k * horizon**2 * eps


def test_bound_approaches_half_of_k_eps_h_squared() -> None:
    k, horizon, eps = 2, 400, 1e-7
    assert theorem_gap(k, horizon, 400_000, eps, 1e-2 / 2) / (
        k * eps * horizon**2
    ) == pytest.approx(0.5, abs=0.02)


def test_simulation_does_not_depend_on_blocks(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = simulated_rewards(2, 5, 20, 0.05, 0.05, tasks=300, seed=seed)
    monkeypatch.setattr("priorwise.sensitivity.bounds.lower_simulation.BLOCK", 64)
    blocks = simulated_rewards(2, 5, 20, 0.05, 0.05, tasks=300, seed=seed)
    fewer = simulated_rewards(2, 5, 20, 0.05, 0.05, tasks=100, seed=seed)
    np.testing.assert_array_equal(whole, blocks)
    np.testing.assert_array_equal(np.array(whole)[:, :100], fewer)


# The two-point instance


@pytest.mark.parametrize(("k", "horizon"), [(1, 1), (1, 10), (2, 6), (3, 5), (5, 3)])
@pytest.mark.parametrize("eps", [1e-4, 0.03, 0.4])
def test_two_point_distance_is_exact(k: int, horizon: int, eps: float) -> None:
    case = two_point_instance(eps)
    assert pw.total_variation(case.prior, case.other).value == pytest.approx(eps, rel=1e-12)
    found = exact_trajectory_tv(case.prior, case.other, pw.KShotThompson(k), horizon).value
    assert found == pytest.approx(1 - (1 - eps) ** (horizon * k), abs=1e-13)
    assert found == pytest.approx(two_point_tv(k, horizon, eps), rel=1e-11)
    if eps <= 1 / (2 * horizon * k):
        assert found >= k * horizon * eps / 2


def test_two_point_distance_is_measured(seed: int) -> None:
    """How often the wrong prior pulls the second arm, within 4.6 standard errors; the true prior
    never does.
    """
    k, horizon, eps, tasks = 2, 8, 0.02, 50_000
    case, policy = two_point_instance(eps), pw.KShotThompson(k)
    true, wrong = (
        pw.simulate(
            case.prior, policy, horizon=horizon, tasks=tasks, seed=seed, believed=held, keep=True
        )
        for held in (case.prior, case.other)
    )
    assert not true.actions.any()
    share, expected = (wrong.actions == 1).any(axis=1).mean(), two_point_tv(k, horizon, eps)
    error = np.sqrt(expected * (1 - expected) / tasks)
    assert abs(share - expected) < SIGMAS * error
    assert abs(share - two_point_tv(k, horizon - 1, eps)) > SIGMAS * error  # the control


def test_bad_parameters_are_named() -> None:
    for call, message in (
        (lambda: two_point_instance(0.0), ("eps", "must lie strictly between 0 and 1")),
        (lambda: noiseless_instance(1, 0.1, 0.1), ("arms", "must be at least 2")),
        (
            lambda: noiseless_instance(10, 0.1, 0.5),
            ("delta", "must lie strictly between 0 and 0.5"),
        ),
        (lambda: noiseless_instance(10, 0.1, 1e-9), ("delta", "must be larger")),
        (lambda: noiseless_instance(10_000, 0.1, 0.01), ("arms", "must be fewer: the table of")),
        (
            lambda: theorem_gap(2, 10, 100, 0.1, 0.01),
            ("eps", "must be at most 1 / (k"),
        ),
        (lambda: theorem_gap(1, 10, 10, 0.01, 0.01), ("arms", "must exceed the horizon 10")),
    ):
        with raises(message):
            call()
