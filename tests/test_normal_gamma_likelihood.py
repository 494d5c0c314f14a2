"""Normal-gamma priors by marginal likelihood: derivatives, recovery, standard errors, limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from raising import raises

import priorwise as pw
from priorwise.families import ExchangeableNormalGammaPrior, NormalGammaMarginalLikelihood
from priorwise.families.normal_gamma.likelihood.arm import ArmData, Objective, rises

NG = pw.NormalGammaPrior
TRUE = NG([0.5, 0.0, -1.0], [1.0, 0.5, 3.0], [3.0, 5.0, 2.0], [2.0, 5.0, 1.0])
NAMES = ("mean", "pulls", "shape", "rate")


def statistics(prior: Any, tasks: int, seed: int, policy: Any = None, horizon: int = 12) -> Any:
    policy = pw.Uniform() if policy is None else policy
    run = pw.simulate(prior, policy, horizon=horizon, tasks=tasks, seed=seed, keep=True)
    return pw.GaussianStatistics.from_run(run, arms=prior.arms)


def some_data(seed: int) -> ArmData:
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 8, 50).astype(float)
    sums, within = n * rng.normal(size=50), rng.chisquare(np.maximum(n - 1.0, 1e-9)) * (n > 1)
    return ArmData.of(n, sums, within + sums**2 / n)


@pytest.mark.parametrize("regulariser", [0.0, 1.0])
@pytest.mark.parametrize(
    "at", [(0.3, 0.2, 0.7, 0.1), (-0.3, 2.0, 5.0, 1.0), (0.0, -3.0, -1.0, 0.5)]
)
def test_derivatives(at: tuple[float, ...], regulariser: float, seed: int) -> None:
    objective, x, step = Objective(some_data(seed), regulariser), np.array(at), 1e-5
    gradient, information = objective.slopes(x)
    moves = step * np.eye(4)
    value = [(objective.value(x + e) - objective.value(x - e)) / (2.0 * step) for e in moves]
    slope = [
        -(objective.slopes(x + e)[0] - objective.slopes(x - e)[0]) / (2.0 * step) for e in moves
    ]
    np.testing.assert_allclose(gradient, value, atol=1e-7 * np.abs(gradient).max())
    np.testing.assert_allclose(information, slope, atol=1e-8 * np.abs(information).max())


def test_differences_of_gamma_functions_join_where_they_change() -> None:
    x = np.array([0.0, 0.5, 3.0, 40.0])
    for below, above in zip(rises(50.0 - 1e-9, x), rises(50.0, x), strict=True):
        np.testing.assert_allclose(below, above, rtol=1e-9, atol=1e-12)


def test_log_likelihood_is_that_of_the_evidence(seed: int) -> None:
    """The fit's own sum, in its own units, equals the density of the tasks."""
    data = statistics(TRUE, 200, seed)
    fit = NormalGammaMarginalLikelihood().fit(data)
    evidence = pw.meta.log_marginal_likelihood(fit.prior, data).sum()
    assert fit.log_likelihood == pytest.approx(evidence, rel=1e-11)
    moved = fit.prior.replaced(shape=1.3 * fit.prior.shape, rate=1.3 * fit.prior.rate)
    assert pw.meta.log_marginal_likelihood(moved, data).sum() < evidence


def test_units_of_rewards_do_not_matter(seed: int) -> None:
    data, c, by = statistics(TRUE, 200, seed), 1000.0, 5.0
    sums = c * data.sums + by * data.pulls
    squares = c * c * data.squares + 2.0 * by * c * data.sums + by * by * data.pulls
    one = NormalGammaMarginalLikelihood().fit(data)
    two = NormalGammaMarginalLikelihood().fit(pw.GaussianStatistics(data.pulls, sums, squares))
    np.testing.assert_allclose(two.prior.mean, c * one.prior.mean + by, rtol=1e-7)
    for name, factor in (("pulls", 1.0), ("shape", 1.0), ("rate", c * c)):
        np.testing.assert_allclose(
            getattr(two.prior, name), factor * getattr(one.prior, name), rtol=1e-6
        )
    np.testing.assert_allclose(two.std_errors["mean"], c * one.std_errors["mean"], rtol=1e-6)


def test_it_finds_the_prior_from_adaptive_data(seed: int) -> None:
    """3,000 tasks of Thompson sampling: within 5 standard errors, which exclude other values."""
    fit = NormalGammaMarginalLikelihood().fit(statistics(TRUE, 3000, seed, pw.ThompsonSampling()))
    assert fit.converged
    assert not fit.at_boundary
    for name in NAMES:
        error = np.abs(getattr(fit.prior, name) - getattr(TRUE, name))
        assert np.all(error < 5.0 * fit.std_errors[name]), name
    assert np.all(fit.std_errors["shape"] < 0.2 * TRUE.shape)


@pytest.mark.slow
def test_standard_errors_are_those_of_replicates(seed: int) -> None:
    """150 fits of 300 tasks: the spread of logarithms over the mean standard error lies in 0.8 to
    1.25 (five standard errors of that ratio are 0.29).
    """
    prior = NG([0.5], 1.0, 3.0, 2.0)
    estimator = NormalGammaMarginalLikelihood(regulariser=0.0)
    whole = statistics(prior, 150 * 300, seed, horizon=8)
    found, errors = [], []
    for k in range(150):
        fit = estimator.fit(whole.take(slice(300 * k, 300 * k + 300)))
        found.append([float(getattr(fit.prior, name)[0]) for name in NAMES])
        errors.append([float(fit.std_errors[name][0]) for name in NAMES])
    values, sizes = np.array(found), np.array(errors)
    values[:, 1:], sizes[:, 1:] = np.log(values[:, 1:]), sizes[:, 1:] / values[:, 1:]
    ratio = values.std(axis=0, ddof=1) / np.sqrt((sizes**2).mean(axis=0))
    assert np.all((ratio > 0.75) & (ratio < 1.3)), ratio


def test_exchangeable_arms_are_one_law_for_all(seed: int) -> None:
    prior = ExchangeableNormalGammaPrior(0.3, 0.8, 2.5, 1.5)
    data = statistics(prior.for_arms(5), 400, seed)
    fit = NormalGammaMarginalLikelihood("exchangeable").fit(data)
    assert isinstance(fit.prior, ExchangeableNormalGammaPrior)
    for name in NAMES:
        assert abs(getattr(fit.prior, name) - getattr(prior, name)) < 5 * fit.std_errors[name]
    column = pw.GaussianStatistics(
        *(e.reshape(-1, 1) for e in (data.pulls, data.sums, data.squares))
    )
    alone = NormalGammaMarginalLikelihood().fit(column)
    assert fit.prior.shape == pytest.approx(float(alone.prior.shape[0]), rel=1e-9)
    assert "independent" in str(fit)


@pytest.mark.parametrize("regulariser", [0.0, 1.0])
def test_limits_are_results(regulariser: float, seed: int) -> None:
    """Arms never pulled, never twice, without noise, without spread, with one variance for all."""
    rng = np.random.default_rng(seed)
    estimator = NormalGammaMarginalLikelihood(regulariser=regulariser)
    tasks, means = 40, rng.normal(size=40)
    pulls = np.tile([12.0, 0.0, 1.0, 3.0, 3.0, 30.0], (tasks, 1))
    draws = [[rng.normal(size=int(n)) for n in row] for row in pulls]
    for task, row in enumerate(draws):
        row[0] = row[0] * np.exp(rng.normal()) + means[task]
        row[3] *= 0.0
        row[3] += means[task]  # the same at every pull
        row[4] = rng.permutation([-1.0, 0.0, 1.0])  # no spread of the means at all
        row[5] = row[5] / row[5].std() + means[task]  # one variance for all
    sums = [[each.sum() for each in row] for row in draws]
    squares = [[(each**2).sum() for each in row] for row in draws]
    fit = estimator.fit(pw.GaussianStatistics(pulls, sums, squares))
    assert fit.at_boundary
    said = " ".join(fit.warnings)
    for words in (
        "arm 1 was never pulled:",
        "arm 2 was never pulled twice",
        "arm 3 earned the same",
        "arm 4 varies no more between tasks",
        "arm 5 is as noisy in one task",
    ):
        assert words in said
    assert "arm 0" not in said
    assert fit.prior.arms == 6  # usable
    assert np.isfinite(
        pw.simulate(fit.prior, pw.ThompsonSampling(), horizon=3, tasks=9, seed=seed).mean_reward
    )
    assert len(fit.draw(np.random.default_rng(seed), 3)) == 3
    assert np.isnan(fit.std_errors["mean"][1])
    if regulariser == 0.0:
        assert fit.prior.pulls[4] == pytest.approx(1e6)
        assert fit.prior.shape[5] == pytest.approx(1e6)
        assert np.isnan(fit.std_errors["shape"][5])
    else:
        assert fit.prior.pulls[4] < 1e4
        assert fit.prior.shape[5] < 1e5


def test_normal_tasks_of_one_variance_are_told_by_the_evidence(seed: int) -> None:
    """On tasks of known noise both models predict alike; where variances differ only one does."""
    models = {"normal-gamma": NormalGammaMarginalLikelihood(), "normal": _NORMAL}
    same = pw.compare_models(models, statistics(_plain(), 200, seed, horizon=20), seed=seed)
    gap = same.scores["normal-gamma"] - same.scores["normal"]
    assert abs(gap.mean()) < 0.1
    wide = NG([0.0, 0.0], 1.0, 1.0, 1.0)
    told = pw.compare_models(models, statistics(wide, 200, seed, horizon=20), seed=seed)
    assert told.best == "normal-gamma"


_NORMAL = pw.GaussianMarginalLikelihood("diagonal")


def _plain() -> Any:
    return pw.GaussianPrior([0.0, 0.0], np.eye(2))


def test_start_and_json(seed: int) -> None:
    data = statistics(TRUE, 100, seed)
    estimator = NormalGammaMarginalLikelihood()
    fit = estimator.fit(data)
    again = estimator.fit(data, start=fit)
    assert again.iterations <= fit.iterations
    np.testing.assert_allclose(again.prior.shape, fit.prior.shape, rtol=1e-4)
    back = pw.PriorFit.load(fit.to_json())
    assert back.prior == fit.prior
    drawn = [each.draw(np.random.default_rng(seed), 2) for each in (fit, back)]
    assert drawn[0] == drawn[1]
    for wrong, words in (
        (pw.BetaPrior([1.0], 1.0), ("start", "normal-gamma")),
        (NG([0.0] * 2, 1, 1, 1), ("start", "has 2 arms, but the data")),
    ):
        with raises(words):
            estimator.fit(data, start=wrong)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"structure": "full"}, "structure"),
        ({"arms": 0}, "arms"),
        ({"regulariser": -1.0}, "regulariser"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], words: str | tuple[str, str]) -> None:
    with raises(words):
        NormalGammaMarginalLikelihood(**options)


def test_tasks_with_features_are_refused(seed: int) -> None:
    prior = pw.LinearGaussianPrior([0.0], [[1.0]], contexts=pw.SphereContexts(2))
    learner = pw.EmpiricalBayes(NormalGammaMarginalLikelihood())
    with raises("estimator", "features"):
        pw.simulate_meta(prior, learner, episodes=2, replicates=1, horizon=2, seed=seed, jobs=1)


@pytest.mark.slow
def test_learning_while_playing_beats_the_vague_prior(seed: int) -> None:
    """Empirical Bayes against the vague prior it starts from, on the same tasks: more than 5 paired
    standard errors over replicates, and no further than that from the oracle.
    """
    options: dict[str, Any] = {
        "episodes": 200, "replicates": 10, "horizon": 12, "seed": seed, "jobs": 1
    }  # fmt: skip
    vague = NG(np.zeros(3), 1.0, 1.0, 1.0)
    learners = (
        pw.EmpiricalBayes(NormalGammaMarginalLikelihood()),
        pw.FixedPrior(pw.ThompsonSampling(), vague),
        pw.FixedPrior(pw.ThompsonSampling()),
    )
    learned, start, oracle = (
        pw.simulate_meta(TRUE, each, **options).rewards[:, 50:].mean(axis=1) for each in learners
    )
    for gap in (learned - start, oracle - start):
        assert gap.mean() > 5.0 * gap.std(ddof=1) / np.sqrt(len(gap))
    short = oracle - learned
    assert short.mean() < 0.2 * (oracle - start).mean()


def test_a_log_is_fitted_where_the_family_is_asked_for(seed: int) -> None:
    """From rows of a log to the prior; what the prior is worth in pulls is what it says."""
    pd = pytest.importorskip("pandas")
    prior = NG([0.5, 0.0], [4.0, 4.0], [6.0, 6.0], [5.0, 5.0])
    run = pw.simulate(prior, pw.Uniform(), horizon=12, tasks=400, seed=seed, keep=True)
    task = np.repeat(np.arange(400), 12)
    rows = {"task": task, "action": run.actions.ravel(), "reward": run.rewards.ravel()}
    found = pw.fit_prior(pd.DataFrame(rows), family="normal-gamma:separate", seed=seed)
    known = NormalGammaMarginalLikelihood().fit(run)
    np.testing.assert_allclose(found.prior.shape, known.prior.shape, rtol=1e-5)
    assert found.worth is not None
    np.testing.assert_allclose(found.worth, found.prior.pulls, rtol=0.15)
