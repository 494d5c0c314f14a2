"""Logit-normal priors by marginal likelihood: derivatives, recovery, limits, and a log of
headlines.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from raising import raises
from scipy import stats
from scipy.special import expit, log_expit

import priorwise as pw
from priorwise.core.serial import Serializable
from priorwise.families.logit_normal.likelihood.joint import (
    JointObjective,
    coordinates,
    propagated_tasks,
)
from priorwise.families.logit_normal.likelihood.objective import StoryObjective
from priorwise.families.logit_normal.likelihood.story import Rows, evaluated
from priorwise.families.logit_normal.propagation import propagated

TRUE = pw.ExchangeableLogitNormalPrior(-2.0, 0.8, 0.6)
FIT = pw.LogitNormalMarginalLikelihood
COV = np.array([[1.0, 0.7, 0.0], [0.7, 1.0, 0.2], [0.0, 0.2, 0.6]])
ALARM = 1e-4


def counts(
    prior: Any, tasks: int, pulls: int, rng: np.random.Generator, arms: int = 4
) -> pw.BetaStatistics:
    """Each arm of each task pulled so often."""
    whole = prior.for_arms(arms) if hasattr(prior, "for_arms") else prior
    eta = rng.multivariate_normal(whole.mean, whole.cov, tasks)
    n = np.full(eta.shape, pulls)
    return pw.BetaStatistics(rng.binomial(n, expit(eta)), n)


def as_floats(data: pw.BetaStatistics) -> tuple[Any, Any]:
    return data.successes.astype(float), data.pulls.astype(float)


def test_nested_integrals_against_a_fine_sum() -> None:
    """Two arms, the level and both deviations summed on grids."""
    s, n = np.array([[0.0, 3.0]]), np.array([[20.0, 25.0]])
    mean, shared, own = -2.0, 0.7, 0.5
    z = np.linspace(-9.0, 9.0, 401)
    density = stats.norm.pdf(z) * (z[1] - z[0])
    total = density.copy()
    for k in range(2):
        eta = mean + shared * z[:, None] + own * z
        like = np.exp(s[0, k] * log_expit(eta) + (n[0, k] - s[0, k]) * log_expit(-eta))
        total *= like @ density
    found = evaluated(s, n, np.array([mean, shared, own]))[0][0]
    assert found == pytest.approx(np.log(total.sum()), abs=1e-7)
    law = pw.ExchangeableLogitNormalPrior(
        mean, shared**2 + own**2, shared**2 / (shared**2 + own**2)
    )
    data = pw.BetaStatistics(s.astype(int), n.astype(int))
    assert pw.meta.log_marginal_likelihood(law, data)[0] == pytest.approx(found, abs=1e-12)
    by_ep = pw.meta.log_marginal_likelihood(law.for_arms(2), data)[0]
    assert by_ep == pytest.approx(found, abs=2e-3)


@pytest.mark.parametrize("regulariser", [0.0, 1.0])
def test_derivatives_of_exchangeable_arms(regulariser: float, seed: int) -> None:
    data = counts(TRUE, 40, 30, np.random.default_rng(seed))
    objective = StoryObjective(Rows.of(data.successes, data.pulls), regulariser)
    x = np.array([-1.8, 0.5, 0.7])
    slopes = [
        (objective.at(x + e).value - objective.at(x - e).value) / 2e-4 for e in 1e-4 * np.eye(3)
    ]
    np.testing.assert_allclose(objective.at(x).gradient, slopes, atol=1e-4)


@pytest.mark.parametrize("regulariser", [0.0, 1.0])
def test_derivatives_of_any_covariance(regulariser: float, seed: int) -> None:
    """Expectation propagation stands still to first order, so that factors count as fixed."""
    data = counts(pw.LogitNormalPrior([-1.0, 0.0, 0.5], COV), 15, 12, np.random.default_rng(seed))
    objective = JointObjective(*as_floats(data), regulariser)
    x = coordinates(np.array([-0.8, 0.1, 0.2]), COV)
    slopes = [
        (objective.at(x + e).value - objective.at(x - e).value) / 2e-4
        for e in 1e-4 * np.eye(x.size)
    ]
    np.testing.assert_allclose(objective.at(x).gradient, slopes, atol=1e-4)


@pytest.mark.parametrize("correlation", [0.7, 1.0])
def test_compiled_propagation_is_that_of_the_belief(correlation: float, seed: int) -> None:
    """Factors, normal laws and log likelihoods; one task more than a tile has, arms without
    pulls.
    """
    prior = pw.ExchangeableLogitNormalPrior(-2.0, 0.8, correlation).for_arms(3)
    rng = np.random.default_rng(seed)
    n = rng.integers(0, 60, (65, 3)) * (rng.random((65, 3)) < 0.8)
    s, n = rng.binomial(n, 0.1).astype(float), n.astype(float)
    found = propagated_tasks(s, n, prior.mean, prior._root)
    sites = propagated(s, n, prior.mean, prior._root)
    values = sites.tilted(s, n, prior.mean, prior._root)[1]
    np.testing.assert_allclose(found.values, values, atol=1e-10)
    np.testing.assert_allclose(found.precision, sites.precision, atol=1e-9)
    np.testing.assert_allclose(found.mean, sites.normal(prior.mean, prior._root)[0], atol=1e-10)


def test_likelihood_of_known_rates() -> None:
    """Log odds without variance are those of the prior, by any way of asking."""
    data = pw.BetaStatistics([[3, 0]], [[9, 0]])
    known = pw.ExchangeableLogitNormalPrior(-1.0, 0.0, 0.0)
    for prior in (known, known.for_arms(2)):
        exact = 3.0 * log_expit(-1.0) + 6.0 * log_expit(1.0)
        assert pw.meta.log_marginal_likelihood(prior, data)[0] == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize(
    ("arms", "asked", "full"), [(8, False, True), (9, False, False), (9, True, True)]
)
def test_many_arms_get_any_covariance_only_when_asked(arms: int, asked: bool, full: bool) -> None:
    """It would take minutes. The cheaper structures, and arms that are new, are always offered."""
    facts = {"binary": True, "arms": arms, "context": 0, "asked": asked}
    models = pw.families.family_of(TRUE).models
    offered = models(new_arms=False, **facts)
    assert ("full" in offered) == full
    assert {"diagonal", "exchangeable"} <= set(offered)
    assert set(models(new_arms=True, **facts)) == {"exchangeable"}


def test_order_of_arms_and_tasks_does_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = counts(TRUE, 60, 5, rng)
    s, n = data.successes, data.pulls
    order = rng.permuted(np.tile(np.arange(4), (60, 1)), axis=1)
    moved = pw.BetaStatistics(*(np.take_along_axis(e, order, axis=1)[::-1] for e in (s, n)))
    wide = pw.BetaStatistics(*(np.pad(each, [(0, 3), (1, 2)]) for each in (s, n)))
    one = FIT().fit(data)
    assert len(Rows.of(s, n).tasks) < 60
    for other in (FIT().fit(moved), FIT().fit(wide)):
        assert other.prior.mean == pytest.approx(one.prior.mean, rel=1e-9)
        assert other.prior.correlation == pytest.approx(one.prior.correlation, rel=1e-9)
        assert other.log_likelihood == pytest.approx(one.log_likelihood, rel=1e-12)
    assert FIT().fit(wide).left_out == 3


def test_likelihood_of_the_fit_is_the_evidence_and_the_largest(seed: int) -> None:
    data = counts(TRUE, 200, 30, np.random.default_rng(seed))
    fit = FIT(regulariser=0.0).fit(data)
    assert fit.log_likelihood == pytest.approx(
        pw.meta.log_marginal_likelihood(fit.prior, data).sum(), abs=1e-9
    )
    for name, step in (("mean", 0.05), ("var", 0.05), ("correlation", 0.05)):
        for side in (-1.0, 1.0):
            moved = fit.prior.replaced(**{name: getattr(fit.prior, name) + side * step})
            assert pw.meta.log_marginal_likelihood(moved, data).sum() < fit.log_likelihood


@pytest.mark.slow
def test_twenty_logs_agree_with_the_truth(seed: int) -> None:
    """Fitted mean, spread and correlation over 20 logs of 300 tests with 200 pulls of each of 4
    arms: joint chi-square of mean and log standard deviations, shared and own, with 60 degrees of
    freedom; false alarm 1e-4. Another mean, a narrower spread and another correlation (controls)
    are caught.
    """
    rng = np.random.default_rng(seed)
    laws = {
        "true": TRUE,
        "higher": TRUE.replaced(mean=-1.9),
        "narrower": TRUE.replaced(var=0.65),
        "less correlated": TRUE.replaced(correlation=0.4),
    }
    total = dict.fromkeys(laws, 0.0)
    for _ in range(20):
        fit = FIT(regulariser=0.0).fit(counts(TRUE, 300, 200, rng))
        assert fit.converged
        law: Any = fit.uncertainty
        for name, prior in laws.items():
            stds = np.sqrt(prior.var * np.array([prior.correlation, 1.0 - prior.correlation]))
            off = law.centre - np.append(prior.mean, np.log(stds))
            total[name] += float(off @ np.linalg.solve(law.covariance, off))
    p_values = {name: stats.chi2.sf(value, 60) for name, value in total.items()}
    assert p_values.pop("true") > ALARM
    assert max(p_values.values()) < ALARM, p_values


@pytest.mark.slow
def test_it_finds_the_prior_from_adaptive_data(seed: int) -> None:
    """Tasks played by Thompson sampling; within 5 standard errors."""
    prior = pw.LogitNormalPrior([-1.0, 0.0, 0.5], COV)
    run = pw.simulate(prior, pw.ThompsonSampling(), horizon=30, tasks=600, seed=seed, keep=True)
    fit = FIT("full").fit(run)
    assert fit.converged
    assert not fit.at_boundary
    assert np.all(np.abs(fit.prior.mean - prior.mean) < 5.0 * fit.std_errors["mean"])
    assert np.all(np.abs(fit.prior.cov - COV) < 5.0 * fit.std_errors["cov"])
    assert fit.std_errors["cov"].max() < 0.6
    plain = FIT("diagonal").fit(run)
    assert np.array_equal(plain.prior.cov, np.diag(np.diag(plain.prior.cov)))
    assert plain.log_likelihood < fit.log_likelihood
    better = pw.compare_models(
        {"full": FIT("full"), "diagonal": FIT("diagonal")}, run, folds=3, seed=seed
    )
    assert better.best == "full"


def test_one_arm_alone_is_the_same_in_all_structures(seed: int) -> None:
    data = counts(pw.LogitNormalPrior([-1.0], [[0.7]]), 300, 20, np.random.default_rng(seed))
    three = [FIT(name).fit(data) for name in ("exchangeable", "diagonal", "full")]
    laws = [three[0].prior.for_arms(1), three[1].prior, three[2].prior]
    values = [[each.mean[0], each.cov[0, 0]] for each in laws]
    np.testing.assert_allclose(values[1], values[0], rtol=1e-6)
    np.testing.assert_allclose(values[2], values[0], rtol=1e-3)
    assert "correlation" in three[0].warnings[0]
    assert np.isnan(three[0].std_errors["correlation"])


@pytest.mark.parametrize(
    ("s", "n", "words"),
    [
        (np.zeros((30, 3), int), np.full((30, 3), 40), "mean"),
        (np.full((30, 3), 4), np.full((30, 3), 40), "0"),
        (np.repeat([[1, 1], [9, 9], [4, 4]], 40, axis=0), np.full((120, 2), 10), "around"),
    ],
    ids=["no clicks", "no spread", "arms alike"],
)
def test_edges_are_said_and_the_prior_is_usable(s: Any, n: Any, words: str, seed: int) -> None:
    for regulariser in (1.0, 0.0):
        fit = FIT(regulariser=regulariser).fit(pw.BetaStatistics(s, n))
        assert fit.at_boundary
        assert words in " ".join(fit.warnings)
        belief = fit.prior.belief_given(pw.BetaStatistics(s, n))
        assert np.isfinite(belief.mean(pw.core.Seen(1, 1, s.shape[1]))).all()
        assert len(fit.draw(np.random.default_rng(seed), 3)) == 3
    alike = FIT(regulariser=0.0).fit(pw.BetaStatistics(s, n)).prior
    assert words != "around" or alike.correlation == 1.0


def test_fits_keep_their_law_in_json(seed: int) -> None:
    data = counts(TRUE, 60, 30, np.random.default_rng(seed), arms=2)
    for structure in ("exchangeable", "diagonal", "full"):
        fit = FIT(structure).fit(data)
        again = Serializable.load(fit.to_json())
        assert again.prior == fit.prior
        one, two = (each.draw(np.random.default_rng(seed), 2)[1] for each in (fit, again))
        assert one == two
        assert one != fit.prior
        assert FIT(structure).fit(data, start=fit).iterations <= fit.iterations


def test_few_tasks_do_not_determine_a_covariance(seed: int) -> None:
    data = counts(TRUE, 5, 20, np.random.default_rng(seed))
    fit = FIT("full").fit(data)
    assert fit.at_boundary
    assert "do not determine" in " ".join(fit.warnings)


def test_what_is_wrong_is_said() -> None:
    empty = pw.BetaStatistics([[0]], [[0]])
    with raises("data", "must have a task with a"):
        FIT().fit(empty)
    with raises("start", "logit-normal arms"):
        FIT().fit(pw.BetaStatistics([[1]], [[2]]), start=pw.BetaPrior([1.0], 1.0))
    with raises("start", "has 2 arms"):
        FIT("full").fit(
            pw.BetaStatistics([[1]], [[2]]), start=pw.LogitNormalPrior([0.0, 0.0], np.eye(2))
        )


@pytest.mark.slow
def test_headlines_are_seen_to_move_together(seed: int) -> None:
    """From the made-up log to its truth, chosen over independent arms, and without a doubt."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("ibis")
    from priorwise.experiments import headlines

    text = headlines.headline_log(seed=seed, tests=1500)
    fit = pw.fit_prior(pandas.read_csv(io.StringIO(text)), seed=seed)
    assert fit.chosen == "logit-normal:exchangeable"
    assert fit.models is not None
    assert fit.models.difference("logit-normal:exchangeable", "beta:exchangeable").mean > 0.3
    truth = {
        "mean": headlines.MEAN,
        "var": headlines.SPREAD**2,
        "correlation": headlines.CORRELATION,
    }
    for name, value in truth.items():
        assert abs(getattr(fit.prior, name) - value) < 4.0 * fit.fit.std_errors[name], name
    assert fit.fit.std_errors["correlation"] < 0.02
    assert fit.check is not None
    assert fit.check.doubts == ()
