"""Probabilities of known tasks by marginal likelihood: counts, EM as a reference, boundaries,
recovery from adaptive data.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike
from raising import raises
from scipy.stats import beta as beta_law
from scipy.stats import chi2, kstest

import priorwise as pw
from priorwise.experiments import problems
from priorwise.families.finite.likelihood.estimator import (
    FiniteMarginalLikelihood,
    MixtureObjective,
    log_marginal_likelihood,
)
from priorwise.families.finite.statistics import FiniteStatistics
from priorwise.fitting.fits import PriorFit

MEANS = np.array([[1.0, 0.0, 0.3], [0.0, 1.0, 0.3], [0.4, 0.4, 0.9], [0.2, 0.7, 0.1]])


def candidates(means: ArrayLike) -> pw.FinitePrior:
    return pw.FinitePrior(
        means, np.full(len(np.asarray(means)), 1.0 / len(np.asarray(means))), "gaussian", 1.0
    )


def estimator(regulariser: float = 0.5, support: int = 4) -> FiniteMarginalLikelihood:
    return FiniteMarginalLikelihood(candidates(MEANS[:support]), regulariser)


def noisy(
    rng: np.random.Generator, tasks: int, support: int = 4, sharpness: float = 1.0
) -> FiniteStatistics:
    return FiniteStatistics(sharpness * rng.normal(size=(tasks, support)))


def identified(counts: list[int]) -> FiniteStatistics:
    table = np.full((sum(counts), len(counts)), -np.inf)
    table[np.arange(len(table)), np.repeat(np.arange(len(counts)), counts)] = 0.0
    return FiniteStatistics(table)


def em(table: np.ndarray, pseudo: float, steps: int = 200_000) -> np.ndarray:
    """Plain expectation maximisation, until it rests."""
    likelihoods = np.exp(table - table.max(axis=1, keepdims=True))
    p = np.full(table.shape[1], 1.0 / table.shape[1])
    for _ in range(steps):
        joint = likelihoods * p
        new = (joint / joint.sum(axis=1, keepdims=True)).sum(axis=0) + pseudo
        new /= new.sum()
        if np.abs(new - p).max() < 1e-15:
            break
        p = new
    return p


@pytest.mark.parametrize(
    ("pseudo", "want"),
    [(0.0, [0.6, 0.3, 0.1, 0.0]), (0.5, [6.5 / 12, 3.5 / 12, 1.5 / 12, 0.5 / 12])],
)
def test_identified_tasks_are_counted(pseudo: float, want: list[float]) -> None:
    fit = estimator(pseudo).fit(identified([6, 3, 1, 0]))
    np.testing.assert_allclose(fit.prior.probs, want, rtol=1e-14)
    assert (fit.iterations, fit.tasks, fit.left_out) == (0, 10, 0)
    assert fit.at_boundary  # the last candidate was not met
    if pseudo == 0:
        p = np.array(want)
        np.testing.assert_allclose(
            fit.std_errors["probs"], np.sqrt(p * (1 - p) / 10), rtol=1e-10, atol=1e-12
        )


@pytest.mark.parametrize("pseudo", [0.0, 0.5])
def test_agrees_with_expectation_maximisation(pseudo: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for sharpness in (0.5, 2.0, 8.0):
        data = noisy(rng, 30, sharpness=sharpness) + identified([3, 0, 1, 0])
        fit = estimator(pseudo).fit(data)
        assert fit.converged
        want = em(data.log_likelihood, pseudo)
        # EM crawls towards 0
        np.testing.assert_allclose(fit.prior.probs, want, atol=2e-5 if pseudo == 0 else 1e-9)
        likelihoods = np.exp(data.log_likelihood)

        def value(p: np.ndarray, likelihoods: np.ndarray = likelihoods) -> float:
            penalty = pseudo * np.log(p).sum() if pseudo else 0.0
            return float(np.log(likelihoods @ p).sum() + penalty)

        assert value(fit.prior.probs) >= value(want / want.sum()) - 1e-8
        assert value(fit.prior.probs) > value(np.full(4, 0.25)) + 1e-3  # not every law would do


def test_optimality(seed: int) -> None:
    """Conditions of the maximum over the simplex: the score of a candidate is the number of tasks,
    or less where p is 0.
    """
    rng = np.random.default_rng(seed)
    zeros = 0
    for _ in range(20):
        data = noisy(rng, 12, sharpness=1.5)
        p = estimator(0.0).fit(data).prior.probs
        likelihoods = np.exp(data.log_likelihood)
        score = (likelihoods / (likelihoods @ p)[:, None]).sum(axis=0)
        np.testing.assert_allclose(score[p > 0], 12.0, atol=1e-4)
        assert (score <= 12.0 + 1e-6).all()
        zeros += int((p == 0).sum())
    assert zeros > 5


def test_derivatives(seed: int) -> None:
    rng = np.random.default_rng(seed)
    objective = MixtureObjective.of((noisy(rng, 20) + identified([1, 2, 0, 0])).log_likelihood, 0.5)
    p, h = rng.dirichlet(np.ones(4)), 1e-6
    gradient, information = objective.slopes(p)
    for i, e in enumerate(np.eye(4) * h):
        assert gradient[i] == pytest.approx(
            (objective.value(p + e) - objective.value(p - e)) / (2 * h), rel=1e-5, abs=1e-5
        )
        change = (objective.slopes(p + e)[0] - objective.slopes(p - e)[0]) / (2 * h)
        np.testing.assert_allclose(information[i], -change, rtol=1e-4, atol=1e-3)


def test_standard_errors_are_those_of_the_curvature(seed: int) -> None:
    """Two candidates: one free number, by second differences."""
    data = noisy(np.random.default_rng(seed), 200, support=2, sharpness=2.0)
    fit = estimator(0.0, support=2).fit(data)

    def value(p: float) -> float:
        return float(np.log(np.exp(data.log_likelihood) @ [p, 1 - p]).sum())

    p, h = fit.prior.probs[0], 1e-4
    error = (-(value(p + h) - 2 * value(p) + value(p - h)) / h**2) ** -0.5
    np.testing.assert_allclose(fit.std_errors["probs"], [error, error], rtol=1e-4)


def test_likelihood_by_hand() -> None:
    prior = pw.FinitePrior(MEANS[:2], [0.25, 0.75], "bernoulli")
    data = FiniteStatistics.from_trajectory([[0, 2], [2, 2]], [[1.0, 1.0], [0.0, 1.0]], prior)
    want = [np.log(0.25 * 0.3), np.log(0.7 * 0.3)]
    np.testing.assert_allclose(log_marginal_likelihood(prior, data), want, rtol=1e-12)


def test_merge_and_warm_start(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = noisy(rng, 50) + identified([2, 2, 0, 1])
    whole, parts = estimator().fit(data), estimator().fit(data[:20] + data[20:])
    np.testing.assert_array_equal(whole.prior.probs, parts.prior.probs)
    for start in (whole, whole.prior):
        warm = estimator().fit(data, start=start)
        assert warm.iterations <= whole.iterations
        np.testing.assert_allclose(warm.prior.probs, whole.prior.probs, rtol=1e-9)


def test_tasks_that_say_nothing_and_impossible_ones_are_left_out() -> None:
    data = (
        identified([3, 1, 0, 0])
        + FiniteStatistics(np.zeros((2, 4)))
        + FiniteStatistics(np.full((1, 4), -np.inf))
    )
    fit = estimator(0.0).fit(data)
    assert (fit.tasks, fit.left_out) == (4, 3)
    assert "1 tasks are impossible" in fit.warnings[0]
    np.testing.assert_allclose(fit.prior.probs, [0.75, 0.25, 0.0, 0.0])
    assert np.isfinite(fit.log_likelihood)


def test_twins_cannot_be_told_apart(seed: int) -> None:
    table = np.zeros((40, 3))
    table[:20, 2] = table[20:, :2] = -3.0
    model = FiniteMarginalLikelihood(candidates([[0.0], [0.0], [1.0]]), 0.0)
    fit = model.fit(FiniteStatistics(table))
    assert any("do not distinguish some candidates" in note for note in fit.warnings)
    assert fit.std_errors["probs"][0] > 0.2
    assert fit.std_errors["probs"][2] < 0.15
    drawn = np.array([prior.probs for prior in fit.draw(np.random.default_rng(seed), 500)])
    assert drawn[:, 0].std() > 1.25 * drawn[:, 2].std()
    assert np.corrcoef(drawn.T)[0, 1] < -0.5


@pytest.mark.parametrize("regulariser", [0.0, 0.5])
def test_no_telling_task_is_a_result(regulariser: float, seed: int) -> None:
    fit = estimator(regulariser).fit(FiniteStatistics([[-1.0] * 4, [-2.0] * 4, [-np.inf] * 4]))
    np.testing.assert_allclose(fit.prior.probs, 0.25)
    assert (fit.tasks, fit.left_out, fit.log_likelihood) == (0, 3, pytest.approx(-3.0))
    assert fit.at_boundary
    assert any("no task distinguishes the candidates" in note for note in fit.warnings)
    assert np.isnan(fit.std_errors["probs"]).all() == (regulariser == 0)
    drawn = np.array([prior.probs for prior in fit.draw(np.random.default_rng(seed), 500)])
    assert drawn.std(axis=0).min() > 0.15


@pytest.mark.parametrize("regulariser", [0.0, 0.5])
def test_one_candidate(regulariser: float, seed: int) -> None:
    fit = FiniteMarginalLikelihood(candidates([[1.0, 2.0]]), regulariser).fit(
        FiniteStatistics(np.zeros((3, 1)))
    )
    assert fit.prior.probs.tolist() == [1.0]
    assert fit.std_errors["probs"].tolist() == [0.0]
    assert fit.warnings == ()
    assert not fit.at_boundary
    assert fit.draw(np.random.default_rng(seed), 2)[0].probs.tolist() == [1.0]


def test_draws_of_identified_tasks_are_dirichlet(seed: int) -> None:
    """Marginals are Beta laws of the counts: false alarm 1e-6 each. Control: one count more."""
    fit = estimator().fit(identified([6, 3, 1, 0]))
    drawn = np.array([prior.probs for prior in fit.draw(np.random.default_rng(seed), 4_000)])
    a = np.array([6.5, 3.5, 1.5, 0.5])
    for s in range(4):
        assert kstest(drawn[:, s], beta_law(a[s], 12 - a[s]).cdf).pvalue > 1e-6
    assert kstest(drawn[:, 0], beta_law(7.5, 5.5).cdf).pvalue < 1e-6
    again = PriorFit.load(fit.to_json())
    assert again == fit
    assert again.draw(np.random.default_rng(seed), 1)[0].probs.tolist() == drawn[0].tolist()


def test_recovery_of_the_discrete_problem(seed: int) -> None:
    """Noiseless, Thompson sampling that stops exploring: false alarm 1e-6. Control: the uniform
    law.
    """
    prior = problems.discrete().prior
    run = pw.simulate(prior, pw.ThompsonSampling(), horizon=10, tasks=4_000, seed=seed, keep=True)
    fit = FiniteMarginalLikelihood(prior).fit(run)

    def misfit(probs: np.ndarray) -> float:
        table = FiniteMarginalLikelihood(prior).statistics(run).log_likelihood
        _, information = MixtureObjective.of(table, 0.5).slopes(fit.prior.probs)
        gap = probs - fit.prior.probs
        return float(gap @ information @ gap)

    limit = chi2.isf(1e-6, 15)
    assert misfit(prior.probs) < limit
    assert misfit(np.full(16, 1 / 16)) > limit


def test_recovery_with_noise(seed: int) -> None:
    """Adaptive pulls, candidates that overlap: each within 5.5 standard errors (false alarm 2e-7 in
    all). Control: reversed.
    """
    truth = pw.FinitePrior(MEANS, [0.4, 0.3, 0.2, 0.1], "gaussian", 1.0)
    run = pw.simulate(truth, pw.ThompsonSampling(), horizon=10, tasks=10_000, seed=seed, keep=True)
    fit = estimator().fit(run)
    errors = fit.std_errors["probs"]
    assert (np.abs(fit.prior.probs - truth.probs) < 5.5 * errors).all()
    assert (np.abs(fit.prior.probs - truth.probs[::-1]) > 5.5 * errors).any()
    drawn = np.array([prior.probs for prior in fit.draw(np.random.default_rng(seed), 3_000)])
    np.testing.assert_allclose(drawn.std(axis=0), errors, rtol=0.12)


def test_bad_arguments() -> None:
    with raises("regulariser", "must not be negative"):
        estimator(-1.0)
    with raises("candidates", "must be a FinitePrior"):
        FiniteMarginalLikelihood(MEANS)  # type: ignore[arg-type]
    with raises("statistics", "candidates"):
        estimator().fit(FiniteStatistics(np.zeros((2, 3))))
    with raises("data", "must be"):
        estimator().fit([[1.0]])
    with raises("start", "must be"):
        estimator().fit(identified([1, 1, 1, 1]), start="here")
    with raises("statistics", "2 candidates"):
        log_marginal_likelihood(pw.FinitePrior(MEANS[:2], [0.5, 0.5]), identified([1, 1, 1, 1]))
