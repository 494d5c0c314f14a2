"""The marginal likelihood of a normal prior: exact density and derivatives, published fits,
adaptive data, boundaries.

Statistical tests compare with bands of 4.5 standard errors (false alarm below 1e-5 a number, below
1e-3 for the file).
"""

from __future__ import annotations

import numpy as np
import pytest
from raising import raises
from scipy.stats import multivariate_normal

import priorwise as pw
from priorwise.families.gaussian.likelihood.data import read_arms
from priorwise.families.gaussian.likelihood.estimator import (
    GaussianMarginalLikelihood,
    log_marginal_likelihood,
)
from priorwise.families.gaussian.statistics import GaussianStatistics
from priorwise.families.normal.likelihood.model import Chart, Model
from priorwise.families.normal.likelihood.tasks import NormalTasks, Parameters
from priorwise.fitting.fits import PriorFit
from priorwise.fitting.newton import climb

BAND = 4.5
STRUCTURES = ["full", "diagonal", "exchangeable", "factor"]
COV = np.array([[1.0, 0.7, 0.2], [0.7, 1.5, -0.1], [0.2, -0.1, 0.5]])
TRUE = pw.GaussianPrior([0.5, -0.2, 0.1], COV, noise_var=0.8)

DYESTUFF = np.array(
    [
        [1545, 1440, 1440, 1520, 1580],
        [1540, 1555, 1490, 1560, 1495],
        [1595, 1550, 1605, 1510, 1560],
        [1445, 1440, 1595, 1465, 1545],
        [1595, 1630, 1515, 1635, 1625],
        [1520, 1455, 1450, 1480, 1445],
    ],
    dtype=float,
)
SCHOOLS = ([28, 8, -3, 7, -1, 1, 18, 12], [15, 10, 16, 11, 9, 11, 10, 18])


def played(
    prior: pw.GaussianPrior, policy, tasks: int, seed: int, horizon: int = 8
) -> GaussianStatistics:
    run = pw.simulate(prior, policy, horizon=horizon, tasks=tasks, seed=seed, keep=True)
    return GaussianStatistics.from_run(run, arms=prior.arms)


def model_of(
    tasks: NormalTasks, structure: str, noise: str, known: np.ndarray, log_det: float = 0.0
) -> Model:
    one, each = np.ones((tasks.dim, 1)), np.eye(tasks.dim)
    return Model(
        tasks,
        Chart(structure, tasks.dim),  # type: ignore[arg-type]
        mean_map=one if structure == "exchangeable" else each,
        noise_map={"known": each[:, :0], "shared": one, "per-arm": each}[noise],
        known_noise=known,
        log_det=log_det,
    )


@pytest.fixture
def adaptive(seed: int) -> GaussianStatistics:
    return played(TRUE, pw.ThompsonSampling(), 300, seed)


def assert_same_prior(a: PriorFit, b: PriorFit, atol: float) -> None:
    np.testing.assert_allclose(a.prior.mean, b.prior.mean, atol=atol)
    if isinstance(a.prior, pw.GaussianPrior):
        np.testing.assert_allclose(a.prior.cov, b.prior.cov, atol=atol)
    else:
        assert (a.prior.var, a.prior.correlation) == pytest.approx(
            (b.prior.var, b.prior.correlation), abs=atol
        )


class TestDensity:
    @pytest.mark.parametrize("singular", [False, True])
    def test_it_is_the_density_of_all_rewards(self, seed: int, singular: bool) -> None:
        cov = np.outer([1.0, 0.5, -1.0], [1.0, 0.5, -1.0]) if singular else COV
        prior = pw.GaussianPrior([0.5, -0.2, 0.1], cov, noise_var=[0.8, 1.2, 0.3])
        run = pw.simulate(prior, pw.ThompsonSampling(), horizon=6, tasks=100, seed=seed, keep=True)
        got = log_marginal_likelihood(prior, GaussianStatistics.from_run(run, arms=3))
        for t, (actions, rewards) in enumerate(zip(run.actions, run.rewards, strict=True)):
            S = prior.cov[np.ix_(actions, actions)] + np.diag(prior.noise_var[actions])
            assert got[t] == pytest.approx(
                multivariate_normal(prior.mean[actions], S).logpdf(rewards), abs=1e-9
            )

    def test_without_squares_it_is_that_of_the_mean_rewards(
        self, adaptive: GaussianStatistics
    ) -> None:
        got = log_marginal_likelihood(TRUE, adaptive.without_squares())
        for t in range(50):
            seen = adaptive.pulls[t] > 0
            n = adaptive.pulls[t, seen]
            S = COV[np.ix_(seen, seen)] + np.diag(0.8 / n)
            assert got[t] == pytest.approx(
                multivariate_normal(TRUE.mean[seen], S).logpdf(adaptive.sums[t, seen] / n), abs=1e-9
            )

    def test_exchangeable_priors_and_empty_tasks(self, adaptive: GaussianStatistics) -> None:
        prior = pw.ExchangeableGaussianPrior(0.1, 1.0, 0.3, 0.8)
        empty = GaussianStatistics([[0, 0, 0]], [[0, 0, 0]], [[0, 0, 0]])
        got = log_marginal_likelihood(prior, adaptive[:5] + empty)
        np.testing.assert_allclose(
            got[:5], log_marginal_likelihood(prior.for_arms(3), adaptive[:5])
        )
        assert got[5] == 0.0
        with raises("prior", "3 arms"):
            log_marginal_likelihood(pw.GaussianPrior([0.0], [[1.0]]), adaptive)


@pytest.mark.parametrize("noise", ["known", "shared", "per-arm"])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_derivatives_equal_differences(
    structure, noise, adaptive: GaussianStatistics, seed: int
) -> None:
    data = read_arms(adaptive[:60].grouped(), None)
    model = model_of(data.tasks, structure, noise, np.full(3, 0.5), log_det=0.3)
    x = model.coordinates(Parameters(np.zeros(3), np.eye(3) * 0.6 + 0.1, np.full(3, 0.5)))
    x = x + 0.1 * np.random.default_rng(seed).standard_normal(x.size)
    place = model.at(x)
    assert x.size == model.size

    h = 1e-5
    there, back = ([model.at(x + sign * h * e) for e in np.eye(x.size)] for sign in (1, -1))
    gradient = [(a.value - b.value) / (2 * h) for a, b in zip(there, back, strict=True)]
    hessian = [(a.gradient - b.gradient) / (2 * h) for a, b in zip(there, back, strict=True)]
    np.testing.assert_allclose(place.gradient, gradient, rtol=1e-6, atol=1e-5)
    np.testing.assert_allclose(place.information(), -np.array(hessian), rtol=1e-5, atol=1e-4)
    assert np.linalg.eigvalsh(place.information(expected=True))[0] > -1e-9


def test_charts_reproduce_the_covariances_they_hold() -> None:
    loadings = np.array([1.0, 0.5, -0.7])
    cases = {
        "full": COV,
        "diagonal": np.diag([1.0, 2.0, 0.0]),
        "exchangeable": 0.4 * np.eye(3) + 0.6,
    }
    tasks = read_arms(GaussianStatistics(np.ones((2, 3)), np.zeros((2, 3))), 3).tasks

    def root_of(structure: str, cov: np.ndarray) -> np.ndarray:
        model = model_of(tasks, structure, "known", np.ones(3))
        x = model.coordinates(Parameters(np.zeros(3), cov, np.ones(3)))
        return model.chart.root(x[slice(*model.cuts)])

    for structure, cov in cases.items():
        root = root_of(structure, cov)
        np.testing.assert_allclose(root @ root.T, cov, atol=1e-12)
    singular = np.outer(loadings, loadings)
    root = root_of("full", singular)
    np.testing.assert_allclose(root @ root.T, singular, atol=1e-12)
    assert not np.triu(root, 1).any()


class TestPublished:
    def test_dyestuff(self) -> None:
        """lme4, ML: standard deviations 37.26 (batch) and 49.51 (residual), mean 1527.5, deviance
        327.33.
        """
        stats = GaussianStatistics.from_trajectory(np.zeros_like(DYESTUFF), DYESTUFF, arms=1)
        for structure in STRUCTURES[:3]:
            fit = GaussianMarginalLikelihood(
                structure, noise_var=None, regulariser=0, tolerance=1e-9
            ).fit(stats)
            var = fit.prior.var if structure == "exchangeable" else fit.prior.cov[0, 0]
            assert np.sqrt(var) == pytest.approx(37.26, abs=0.005)
            assert np.sqrt(np.ravel(fit.prior.noise_var)[0]) == pytest.approx(49.51, abs=0.005)
            assert np.ravel(fit.prior.mean)[0] == pytest.approx(1527.5)
            assert -2 * fit.log_likelihood == pytest.approx(327.327, abs=1e-3)
            assert np.ravel(fit.std_errors["mean"])[0] == pytest.approx(17.69, abs=0.005)
            assert fit.converged
            assert not fit.at_boundary

    @pytest.mark.parametrize("structure", STRUCTURES[:3])
    def test_eight_schools(self, structure) -> None:
        """No spread between the schools, and the weighted mean 7.69 with standard error 4.07."""
        stats = GaussianStatistics.from_estimates(*SCHOOLS)
        fit = GaussianMarginalLikelihood(structure, regulariser=0).fit(stats)
        var = fit.prior.var if structure == "exchangeable" else fit.prior.cov[0, 0]
        assert var == 0.0
        assert fit.at_boundary
        assert fit.converged
        assert np.ravel(fit.prior.mean)[0] == pytest.approx(7.69, abs=0.005)
        assert np.ravel(fit.std_errors["mean"])[0] == pytest.approx(4.07, abs=0.005)
        assert np.isnan(
            np.ravel(fit.std_errors["var" if structure == "exchangeable" else "cov"])[0]
        )

    def test_eight_schools_leave_a_spread_plausible(self, seed: int) -> None:
        fit = GaussianMarginalLikelihood("exchangeable", regulariser=0).fit(
            GaussianStatistics.from_estimates(*SCHOOLS)
        )
        spreads = np.sqrt([prior.var for prior in fit.draw(np.random.default_rng(seed), 200)])
        assert 2.0 < np.median(spreads) < 12.0

    def test_the_unit_of_precision_does_not_matter(self) -> None:
        one = GaussianMarginalLikelihood("exchangeable").fit(
            GaussianStatistics.from_estimates(*SCHOOLS)
        )
        other = GaussianStatistics.from_estimates(*SCHOOLS, noise_var=100.0)
        assert_same_prior(
            one, GaussianMarginalLikelihood("exchangeable", noise_var=100.0).fit(other), 1e-4
        )


class TestRecovery:
    @pytest.mark.parametrize(
        "policy", [pw.Uniform(), pw.ThompsonSampling()], ids=["uniform", "adaptive"]
    )
    def test_full_covariance(self, policy, seed: int) -> None:
        stats = played(TRUE, policy, 20_000, seed)
        fit = GaussianMarginalLikelihood(noise_var=0.8).fit(stats)
        assert np.all(np.abs(fit.prior.mean - TRUE.mean) < BAND * fit.std_errors["mean"])
        assert np.all(np.abs(fit.prior.cov - COV) < BAND * fit.std_errors["cov"])
        assert fit.std_errors["cov"].max() < 0.1

    def test_means_of_adaptive_data_are_biased(self, seed: int) -> None:
        """The control: what an average over tasks says of adaptive data is wrong by far more than
        its standard error.
        """
        stats = played(TRUE, pw.ThompsonSampling(), 20_000, seed)
        for arm in range(3):
            y = (
                stats.sums[:, arm][stats.pulls[:, arm] > 0]
                / stats.pulls[:, arm][stats.pulls[:, arm] > 0]
            )
            assert TRUE.mean[arm] - y.mean() > BAND * y.std() / np.sqrt(len(y))

    def test_noise(self, seed: int) -> None:
        prior = pw.GaussianPrior(TRUE.mean, COV, noise_var=[0.5, 1.0, 2.0])
        stats = played(prior, pw.ThompsonSampling(), 5000, seed)
        each = GaussianMarginalLikelihood(noise_var="per-arm").fit(stats)
        assert np.all(
            np.abs(each.prior.noise_var - prior.noise_var) < BAND * each.std_errors["noise_var"]
        )
        assert np.all(np.abs(each.prior.cov - COV) < BAND * each.std_errors["cov"])
        shared = GaussianMarginalLikelihood(noise_var=None).fit(stats)
        assert np.ptp(shared.prior.noise_var) == 0.0
        assert shared.log_likelihood < each.log_likelihood - 100

    def test_structures(self, seed: int) -> None:
        arms = 5
        loadings = np.array([1.0, 0.8, 0.6, -0.5, 0.3])
        truths = {
            "diagonal": np.diag([1.0, 0.5, 2.0, 0.2, 1.0]),
            "exchangeable": 0.3 * np.eye(arms) + 0.6,
            "factor": np.outer(loadings, loadings) + np.diag([0.3, 0.2, 0.5, 0.4, 0.3]),
        }
        for structure, cov in truths.items():
            mean = (
                np.full(arms, 0.3) if structure == "exchangeable" else np.linspace(-0.5, 0.5, arms)
            )
            stats = played(
                pw.GaussianPrior(mean, cov), pw.ThompsonSampling(), 4000, seed, horizon=12
            )
            fit = GaussianMarginalLikelihood(structure).fit(stats)
            wide = GaussianMarginalLikelihood("full").fit(stats)
            assert fit.converged
            assert wide.converged
            # at most 18 parameters more
            assert fit.log_likelihood < wide.log_likelihood < fit.log_likelihood + 30
            if structure == "exchangeable":
                assert abs(fit.prior.mean - 0.3) < BAND * fit.std_errors["mean"]
                assert abs(fit.prior.var - 0.9) < BAND * fit.std_errors["var"]
                assert abs(fit.prior.correlation - 2 / 3) < BAND * fit.std_errors["correlation"]
            else:
                assert np.all(np.abs(fit.prior.cov - cov) <= BAND * fit.std_errors["cov"] + 1e-12)
                assert np.all(fit.std_errors["cov"] <= wide.std_errors["cov"] * 1.1 + 1e-12)

    def test_standard_errors_are_those_of_repetition(self, seed: int) -> None:
        """200 fits to 200 tasks: their spread is known to 5 %, so that 25 % is five standard
        errors.
        """
        stats = played(TRUE, pw.ThompsonSampling(), 200 * 200, seed)
        fits = [
            GaussianMarginalLikelihood(noise_var=0.8, regulariser=0).fit(
                stats[200 * i : 200 * (i + 1)]
            )
            for i in range(200)
        ]
        for name in ("mean", "cov"):
            spread = np.std([getattr(fit.prior, name) for fit in fits], axis=0)
            claimed = np.sqrt(
                np.mean([fit.std_errors[name] ** 2 for fit in fits if not fit.at_boundary], axis=0)
            )
            np.testing.assert_allclose(claimed, spread, rtol=0.3)


class TestExactness:
    @pytest.mark.parametrize("structure", STRUCTURES)
    def test_groups_merging_and_warm_starts_change_nothing(
        self, structure, adaptive: GaussianStatistics
    ) -> None:
        estimator = GaussianMarginalLikelihood(structure, noise_var=None, tolerance=1e-9)
        whole = estimator.fit(adaptive)
        assert_same_prior(whole, estimator.fit(adaptive.grouped()), 1e-5)
        assert_same_prior(
            whole, estimator.fit(adaptive[:100].grouped() + adaptive[100:].grouped()), 1e-5
        )
        assert_same_prior(whole, estimator.fit(adaptive, start=estimator.fit(adaptive[:50])), 1e-4)
        # whose coordinates are not found from a covariance in closed form
        if structure != "factor":
            assert estimator.fit(adaptive, start=whole.prior).iterations <= 1
        many = GaussianStatistics(
            *(np.tile(each, (5, 1)) for each in (adaptive.pulls, adaptive.sums, adaptive.squares))
        )
        assert GaussianMarginalLikelihood(structure, noise_var=None, regulariser=0).fit(
            many
        ).log_likelihood == pytest.approx(
            5
            * GaussianMarginalLikelihood(structure, noise_var=None, regulariser=0)
            .fit(adaptive)
            .log_likelihood,
            abs=1e-3,
        )

    @pytest.mark.parametrize("structure", STRUCTURES)
    def test_reported_likelihood_is_that_of_the_prior(
        self, structure, adaptive: GaussianStatistics
    ) -> None:
        for stats, noise in ((adaptive, None), (adaptive.without_squares(), 0.8)):
            fit = GaussianMarginalLikelihood(structure, noise_var=noise).fit(stats)
            assert fit.log_likelihood == pytest.approx(
                log_marginal_likelihood(fit.prior, stats).sum(), abs=1e-6
            )
            if structure == "full":
                assert (
                    fit.log_likelihood
                    <= GaussianMarginalLikelihood(noise_var=noise, regulariser=0)
                    .fit(stats)
                    .log_likelihood
                )

    @pytest.mark.parametrize("structure", STRUCTURES)
    def test_it_never_falls(self, structure, seed: int) -> None:
        for tasks in (3, 20, 200):
            data = read_arms(played(TRUE, pw.ThompsonSampling(), tasks, seed), None)
            model = model_of(data.tasks, structure, "known", np.full(3, 0.8 / data.units.reward**2))
            start = model.coordinates(Parameters(np.full(3, 5.0), 9.0 * np.eye(3), np.full(3, 1.0)))
            climbed = climb(model.at, start, tolerance=1e-6, limit=100)
            assert climbed.converged
            assert np.all(np.diff(climbed.values) >= 0.0)

    def test_nothing_beats_the_maximum(self, adaptive: GaussianStatistics, seed: int) -> None:
        fit = GaussianMarginalLikelihood(noise_var=0.8, regulariser=0).fit(adaptive)
        rng = np.random.default_rng(seed)
        root = np.linalg.cholesky(fit.prior.cov)
        for size in (0.01, 0.1):
            for _ in range(20):
                near = root + size * rng.standard_normal((3, 3))
                other = pw.GaussianPrior(
                    fit.prior.mean + size * rng.standard_normal(3), near @ near.T, 0.8
                )
                assert log_marginal_likelihood(other, adaptive).sum() < fit.log_likelihood

    def test_rewards_in_another_unit_give_the_prior_in_that_unit(
        self, adaptive: GaussianStatistics
    ) -> None:
        """Also the regulariser follows: 1000 r + 10^6."""
        n, s, q = adaptive.pulls, adaptive.sums, adaptive.squares
        moved = GaussianStatistics(n, 1e3 * s + 1e6 * n, 1e6 * q + 2e9 * s + 1e12 * n)
        a, b = (
            GaussianMarginalLikelihood(noise_var=v).fit(each)
            for v, each in ((0.8, adaptive[:40]), (0.8e6, moved[:40]))
        )
        np.testing.assert_allclose(b.prior.mean, 1e3 * a.prior.mean + 1e6, atol=1e-2)
        np.testing.assert_allclose(b.prior.cov, 1e6 * a.prior.cov, rtol=1e-3, atol=10)

    def test_many_arms(self, seed: int) -> None:
        """Beyond the arms for which second derivatives are formed, a quasi-Newton method finds the
        same kind of fit.
        """
        prior = pw.ExchangeableGaussianPrior(0.2, 1.0, 0.5).for_arms(45)
        stats = played(prior, pw.Uniform(), 300, seed, horizon=60)
        fit = GaussianMarginalLikelihood("exchangeable").fit(stats)
        assert fit.converged
        assert abs(fit.prior.mean - 0.2) < BAND * fit.std_errors["mean"]
        assert abs(fit.prior.correlation - 0.5) < BAND * fit.std_errors["correlation"]
        fewer = GaussianMarginalLikelihood("exchangeable").fit(stats.take(np.arange(40)))
        assert fewer.std_errors["mean"] > fit.std_errors["mean"]


class TestOffsets:
    """Arms that differ in their means, and rewards far from zero."""

    @pytest.mark.parametrize("offset", [10.0, 100.0])
    def test_the_regulariser_does_not_take_offsets_for_variance(
        self, offset: float, seed: int
    ) -> None:
        stats = played(
            pw.GaussianPrior([0.0, offset], np.eye(2)), pw.Uniform(), 100, seed, horizon=10
        )
        fit, plain = (
            GaussianMarginalLikelihood(regulariser=each).fit(stats) for each in (2.0, 0.0)
        )
        assert np.all(np.abs(fit.prior.cov - plain.prior.cov) < 0.25 * plain.std_errors["cov"])
        assert np.all(np.abs(fit.prior.mean - plain.prior.mean) < 0.25 * plain.std_errors["mean"])

    def test_what_few_tasks_lean_on_does_not_move_with_the_arms(self, seed: int) -> None:
        """Two tasks, with one arm's rewards raised by 1000: the variances stay, within what
        shrinking the means changes.
        """
        stats = played(TRUE, pw.Uniform(), 2, seed, horizon=12)
        raised = GaussianStatistics(stats.pulls, stats.sums + stats.pulls * [0.0, 0.0, 1e3])
        a, b = (
            GaussianMarginalLikelihood(noise_var=0.8).fit(each.without_squares())
            for each in (stats, raised)
        )
        assert np.all(np.diag(b.prior.cov) < 5.0 * np.diag(a.prior.cov).max())

    @pytest.mark.parametrize("grouped", [False, True])
    def test_far_from_zero(self, grouped: bool, seed: int) -> None:
        near = played(pw.GaussianPrior([0.0, 0.0], np.eye(2)), pw.Uniform(), 1500, seed)
        for offsets, lossy in (([0.0, 1e6], False), ([0.0, 1e8], True), ([1e8, 1e8], True)):
            n, s, h = near.pulls, near.sums, np.array(offsets)
            far = GaussianStatistics(n, s + h * n, near.squares + 2.0 * h * s + h**2 * n)
            fit = GaussianMarginalLikelihood(noise_var=None).fit(far.grouped() if grouped else far)
            assert any("rounding" in warning for warning in fit.warnings) == lossy
            if not lossy:
                known = GaussianMarginalLikelihood(noise_var=None).fit(near)
                np.testing.assert_allclose(fit.prior.noise_var, known.prior.noise_var, rtol=0.02)
                np.testing.assert_allclose(fit.prior.cov, known.prior.cov, atol=0.05)

    def test_ones_alone_are_not_far_from_zero(self) -> None:
        stats = GaussianStatistics(
            [[1, 3], [2, 2]], [[1.0, 1.0], [2.0, 0.0]], [[1.0, 1.0], [2.0, 0.0]]
        )
        assert not any(
            "rounding" in warning for warning in GaussianMarginalLikelihood().fit(stats).warnings
        )


class TestNoise:
    @pytest.mark.parametrize("structure", STRUCTURES)
    def test_known_noise_comes_back_to_the_last_bit(self, structure, seed: int) -> None:
        for i, noise in enumerate((1.0, 0.1, 0.7, 1 / 3, *[1.0] * 12)):
            stats = played(
                pw.GaussianPrior(TRUE.mean, COV, noise), pw.ThompsonSampling(), 10 + i, seed + i
            )
            fit = GaussianMarginalLikelihood(structure, noise_var=noise).fit(stats)
            for prior in (
                fit.prior,
                PriorFit.load(fit.to_json()).prior,
                *fit.draw(np.random.default_rng(seed), 3),
            ):
                assert np.all(prior.noise_var == noise)

    def test_noise_of_a_start_is_held_until_it_can_be_told(self, seed: int) -> None:
        once = GaussianStatistics([[1, 1], [1, 0]], [[1.0, 2.0], [0.5, 0]], [[1.0, 4.0], [0.25, 0]])
        start = pw.GaussianPrior([0.0, 0.0], np.eye(2), [0.5, 0.7])
        for noise in (None, "per-arm"):
            fit = GaussianMarginalLikelihood(noise_var=noise).fit(once, start=start)
            assert fit.prior.noise_var.tolist() == [0.5, 0.7]
            assert any("that of the start was held" in warning for warning in fit.warnings)
            assert np.isnan(fit.std_errors["noise_var"]).all()
            assert fit.draw(np.random.default_rng(seed), 1)[0].noise_var.tolist() == [0.5, 0.7]
        never = GaussianStatistics([[2], [2]], [[2.0], [4.0]], [[2.0], [8.0]])
        assert (
            GaussianMarginalLikelihood(noise_var=None)
            .fit(never, start=pw.GaussianPrior([0.0], [[1.0]]))
            .at_boundary
        )

    def test_an_arm_without_repeats_takes_the_noise_of_all(
        self, adaptive: GaussianStatistics
    ) -> None:
        n, s, q = (np.array(each) for each in (adaptive.pulls, adaptive.sums, adaptive.squares))
        many = n[:, 2] > 1
        n[many, 2] = s[many, 2] = q[many, 2] = 0
        fit = GaussianMarginalLikelihood(noise_var="per-arm").fit(GaussianStatistics(n, s, q))
        assert any("noise of arm 2" in warning for warning in fit.warnings)
        assert np.isnan(fit.std_errors["noise_var"]).tolist() == [False, False, True]
        assert fit.prior.noise_var[2] == pytest.approx(0.8, rel=0.2)
        assert fit.log_likelihood == pytest.approx(
            log_marginal_likelihood(fit.prior, fit.statistics).sum(), abs=1e-6
        )

    @pytest.mark.parametrize("noise", [None, "shared", "per-arm"])
    def test_learners_play_from_the_first_task(self, noise, seed: int) -> None:
        learner = pw.EmpiricalBayes(
            GaussianMarginalLikelihood(noise_var=noise), pw.ThompsonSampling()
        )
        run = pw.simulate_meta(
            TRUE, learner, episodes=12, replicates=5, horizon=3, seed=seed, jobs=1, keep=True
        )
        for history in run.history:
            assert [held.first for held in history] == [*range(1, 12), 12][: len(history)]
            assert all(
                (held.believed.noise_var > 0.0).all() and np.isfinite(held.believed.noise_var).all()
                for held in history
            )

    def test_estimates_are_read_with_their_own_unit(self) -> None:
        stats = GaussianStatistics.from_estimates(*SCHOOLS, noise_var=4.0)
        for data in (stats, stats.grouped()):
            with raises("noise_var", "the estimator"):
                GaussianMarginalLikelihood(noise_var=1.0).fit(data)
            assert GaussianMarginalLikelihood().fit(data).prior.noise_var.tolist() == [4.0]
        with raises("noise_var", "the prior"):
            log_marginal_likelihood(pw.GaussianPrior([0.0], [[1.0]]), stats)
        assert np.isfinite(
            log_marginal_likelihood(pw.GaussianPrior([0.0], [[1.0]], 4.0), stats)
        ).all()


def test_memory_order_does_not_matter(adaptive: GaussianStatistics) -> None:
    columns = GaussianStatistics(
        *(np.asfortranarray(each) for each in (adaptive.pulls, adaptive.sums, adaptive.squares))
    )
    prior = pw.GaussianPrior(TRUE.mean, np.asfortranarray(COV), 0.8)
    np.testing.assert_array_equal(
        log_marginal_likelihood(prior, columns), log_marginal_likelihood(TRUE, adaptive)
    )
    assert_same_prior(
        *(GaussianMarginalLikelihood(noise_var=0.8).fit(each) for each in (columns, adaptive)), 0.0
    )
    assert_same_prior(
        *(
            GaussianMarginalLikelihood(noise_var=0.8).fit(each.grouped())
            for each in (columns, adaptive)
        ),
        0.0,
    )


class TestEdges:
    def test_boundary_is_what_the_data_alone_want(self, seed: int) -> None:
        few, many = played(TRUE, pw.Uniform(), 4, seed), played(TRUE, pw.Uniform(), 1000, seed)
        for regulariser in (0.0, 2.0):
            estimator = GaussianMarginalLikelihood(noise_var=0.8, regulariser=regulariser)
            assert estimator.fit(few).at_boundary
            assert not estimator.fit(many).at_boundary

    def test_arms_missing_in_tasks(self, adaptive: GaussianStatistics, seed: int) -> None:
        gone = np.random.default_rng(seed).random(adaptive.pulls.shape) < 0.3
        n, s = (np.where(gone, 0.0, each) for each in (adaptive.pulls, adaptive.sums))
        n, s = np.vstack([n, np.zeros((4, 3))]), np.vstack([s, np.zeros((4, 3))])
        empty = int((n.sum(axis=1) == 0).sum())
        fit = GaussianMarginalLikelihood(noise_var=0.8).fit(GaussianStatistics(n, s))
        assert (fit.left_out, fit.tasks) == (empty, len(n) - empty)
        assert fit.log_likelihood == pytest.approx(
            log_marginal_likelihood(fit.prior, GaussianStatistics(n, s)).sum()
        )
        assert fit.statistics.tasks == len(n)

    @pytest.mark.parametrize("regulariser", [0.0, 2.0])
    @pytest.mark.parametrize("structure", ["full", "diagonal", "factor"])
    def test_an_arm_never_pulled(
        self, structure, regulariser: float, adaptive: GaussianStatistics, seed: int
    ) -> None:
        n, s = (np.hstack([each, np.zeros((300, 1))]) for each in (adaptive.pulls, adaptive.sums))
        estimator = GaussianMarginalLikelihood(structure, noise_var=0.8, regulariser=regulariser)
        fit = estimator.fit(GaussianStatistics(n, s))
        assert "arm 3 was never pulled" in fit.warnings[0]
        known = estimator.fit(adaptive.without_squares())
        np.testing.assert_allclose(fit.prior.mean[:3], known.prior.mean, atol=0.1)
        assert known.prior.mean.min() <= fit.prior.mean[3] <= known.prior.mean.max()
        assert 0.3 < fit.prior.cov[3, 3] < 3.0
        np.testing.assert_allclose(fit.prior.cov[3, :3], 0.0, atol=0.05)
        assert len(fit.draw(np.random.default_rng(seed), 2)) == 2
        assert np.isnan(fit.std_errors["mean"]).tolist() == [False, False, False, True]

    @pytest.mark.parametrize("structure", STRUCTURES)
    @pytest.mark.parametrize("tasks", [1, 2, 5])
    def test_few_tasks_give_a_usable_prior(self, structure, tasks: int, seed: int) -> None:
        stats = played(TRUE, pw.ThompsonSampling(), tasks, seed)
        fit = GaussianMarginalLikelihood(structure).fit(stats)
        prior = fit.prior.for_arms(3) if structure == "exchangeable" else fit.prior
        assert fit.converged
        assert np.linalg.eigvalsh(prior.cov)[0] > 1e-3
        assert np.abs(prior.mean).max() < 10
        assert np.diag(prior.cov).max() < 100
        if structure == "full":
            assert any("few" in warning for warning in fit.warnings)

    def test_maximum_likelihood_of_few_tasks_is_singular(self, seed: int) -> None:
        """The control of the regulariser: without it, few tasks give a prior that excludes what it
        has not seen.
        """
        stats = played(TRUE, pw.Uniform(), 4, seed)
        fit = GaussianMarginalLikelihood(noise_var=0.8, regulariser=0).fit(stats)
        assert fit.at_boundary
        assert np.linalg.eigvalsh(fit.prior.cov)[0] < 1e-9

    def test_one_pull_tells_the_mean(self) -> None:
        fit = GaussianMarginalLikelihood(noise_var=1.0).fit(
            GaussianStatistics([[1, 0]], [[3.0, 0.0]])
        )
        np.testing.assert_allclose(fit.prior.mean, 3.0)
        assert np.all(np.diag(fit.prior.cov) > 0.1)

    def test_singular_priors_are_found(self, seed: int) -> None:
        loadings = np.array([1.0, 0.5, -0.8])
        prior = pw.GaussianPrior([0.0, 0.1, 0.2], np.outer(loadings, loadings), noise_var=0.5)
        fit = GaussianMarginalLikelihood(noise_var=0.5, regulariser=0).fit(
            played(prior, pw.Uniform(), 3000, seed, horizon=30)
        )
        np.testing.assert_allclose(fit.prior.cov, prior.cov, atol=0.15)
        warm = GaussianMarginalLikelihood(noise_var=0.5, regulariser=0).fit(
            fit.statistics, start=pw.GaussianPrior(np.zeros(3), np.zeros((3, 3)))
        )
        assert warm.log_likelihood == pytest.approx(fit.log_likelihood, abs=1e-2)

    def test_what_cannot_be_fitted_says_why(self, adaptive: GaussianStatistics) -> None:
        once = GaussianStatistics([[1, 1], [1, 0]], [[1.0, 2.0], [0.5, 0]], [[1.0, 4.0], [0.25, 0]])
        for estimator, data, message in (
            (GaussianMarginalLikelihood(), once, ("noise_var", "pulled twice")),
            (
                GaussianMarginalLikelihood(),
                adaptive.without_squares(),
                "squares",
            ),
            (
                GaussianMarginalLikelihood(noise_var="shared"),
                GaussianStatistics.from_estimates(*SCHOOLS),
                ("estimates", "standard errors"),
            ),
            (
                GaussianMarginalLikelihood(noise_var=None),
                GaussianStatistics([[2], [2]], [[2.0], [4.0]], [[2.0], [8.0]]),
                ("noise_var", "never differ"),
            ),
            (GaussianMarginalLikelihood("factor", factors=3), adaptive, "factors"),
            (GaussianMarginalLikelihood(arms=4), adaptive, "data"),
            (
                GaussianMarginalLikelihood(),
                GaussianStatistics([[0]], [[0.0]]),
                ("data", "must have a task with a pull"),
            ),
        ):
            with raises(message):
                estimator.fit(data)
        with raises("data", "kept Run or GaussianStatistics"):
            GaussianMarginalLikelihood().fit([[1.0]])
        with raises("start", "must be"):
            GaussianMarginalLikelihood().fit(adaptive, start=pw.GaussianPrior([0.0], [[1.0]]))

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"structure": "banded"}, ("structure", "must be one of")),
            ({"noise_var": -1.0}, ("noise_var", "must be positive")),
            ({"noise_var": "each"}, ("noise_var", "must be a variance")),
            ({"regulariser": -1.0}, ("regulariser", "must not be negative")),
            (
                {"structure": "exchangeable", "noise_var": "per-arm"},
                ("noise_var", "must be one"),
            ),
            (
                {"structure": "exchangeable", "noise_var": [1.0, 2.0]},
                ("noise_var", "must be one"),
            ),
        ],
    )
    def test_bad_options_are_named(self, options: dict, message: str | tuple[str, str]) -> None:
        with raises(message):
            GaussianMarginalLikelihood(**options)


class TestCertainty:
    @pytest.mark.parametrize("structure", STRUCTURES)
    def test_fits_round_trip(self, structure, adaptive: GaussianStatistics, seed: int) -> None:
        fit = GaussianMarginalLikelihood(structure, noise_var=None).fit(adaptive)
        again = PriorFit.load(fit.to_json())
        assert again == fit
        assert again.draw(np.random.default_rng(seed), 3) == fit.draw(
            np.random.default_rng(seed), 3
        )

    @pytest.mark.slow
    def test_draws_have_the_fit_as_their_mean_in_any_order_of_the_arms(self, seed: int) -> None:
        """Of 4000 draws a mean is known to 0.02 standard deviations, here at most 1.2 variances:
        0.1 is four of them.
        """
        prior = pw.GaussianPrior(np.linspace(1.0, -0.5, 6), 0.3 * np.eye(6) + 0.7)
        stats = played(prior, pw.ThompsonSampling(), 50, seed)
        backwards = GaussianStatistics(stats.pulls[:, ::-1], stats.sums[:, ::-1])
        spreads = []
        for data, order in ((stats, 1), (backwards, -1)):
            fit = GaussianMarginalLikelihood(noise_var=1.0).fit(data)
            drawn = np.array([each.cov for each in fit.draw(np.random.default_rng(seed), 4000)])
            size = np.sqrt(np.diag(fit.prior.cov))
            active = data.pulls.any(axis=0)
            np.testing.assert_allclose(
                np.diag(drawn.mean(axis=0))[active], np.diag(fit.prior.cov)[active], rtol=0.1
            )
            assert np.abs((drawn.mean(axis=0) - fit.prior.cov) / size / size[:, None]).max() < 0.3
            ratio = (
                drawn.std(axis=0)[np.ix_(active, active)]
                / fit.std_errors["cov"][np.ix_(active, active)]
            )
            assert 0.3 < ratio.min() <= ratio.max() < 2.5
            spreads.append(drawn.std(axis=0)[::order, ::order])
        np.testing.assert_allclose(*spreads, rtol=0.3)

    @pytest.mark.slow
    @pytest.mark.parametrize("regulariser", [0.0, 2.0])
    @pytest.mark.parametrize("structure", STRUCTURES)
    @pytest.mark.parametrize("tasks", [2, 6, 40])
    def test_draws_do_not_widen(self, structure, regulariser: float, tasks: int, seed: int) -> None:
        """Mean variances of 1000 draws, of at most chi-squared spread, are known to 5 %; at a
        boundary too, if not zero.
        """
        stats = played(TRUE, pw.Uniform(), tasks, seed)
        fit = GaussianMarginalLikelihood(structure, noise_var=0.8, regulariser=regulariser).fit(
            stats
        )
        draws = fit.draw(np.random.default_rng(seed), 1000)
        if structure == "exchangeable":
            fitted, drawn = np.array([fit.prior.var]), np.array([[each.var] for each in draws])
        else:
            fitted, drawn = np.diag(fit.prior.cov), np.array([np.diag(each.cov) for each in draws])
        assert np.isfinite(drawn).all()
        some = fitted > 1e-6
        np.testing.assert_allclose(drawn.mean(axis=0)[some], fitted[some], rtol=0.25)

    def test_draws_scatter_like_the_standard_errors(
        self, adaptive: GaussianStatistics, seed: int
    ) -> None:
        fit = GaussianMarginalLikelihood(noise_var=0.8).fit(adaptive)
        draws = fit.draw(np.random.default_rng(seed), 2000)
        for name in ("mean", "cov"):
            spread = np.std([getattr(prior, name) for prior in draws], axis=0)
            np.testing.assert_allclose(spread, fit.std_errors[name], rtol=0.15)

    def test_intervals_cover(self, seed: int) -> None:
        """90 % intervals of the mean over 200 data sets of 100 tasks: coverage within 5 standard
        deviations, 0.106, of 0.9.
        """
        stats = played(TRUE, pw.ThompsonSampling(), 200 * 100, seed)
        fits = [
            GaussianMarginalLikelihood(noise_var=0.8).fit(stats[100 * i : 100 * (i + 1)])
            for i in range(200)
        ]
        inside = np.mean(
            [np.abs(fit.prior.mean - TRUE.mean) < 1.645 * fit.std_errors["mean"] for fit in fits],
            axis=0,
        )
        assert np.all(np.abs(inside - 0.9) < 0.106)
        narrow = np.mean(
            [np.abs(fit.prior.mean - TRUE.mean) < 0.8 * fit.std_errors["mean"] for fit in fits],
            axis=0,
        )
        # the control: intervals of half that width do not
        assert np.all(np.abs(narrow - 0.9) > 0.106)


def test_a_run_is_read_directly(seed: int) -> None:
    run = pw.simulate(TRUE, pw.ThompsonSampling(), horizon=8, tasks=100, seed=seed, keep=True)
    fit = GaussianMarginalLikelihood(arms=3, noise_var=0.8).fit(run)
    assert_same_prior(
        fit,
        GaussianMarginalLikelihood(noise_var=0.8).fit(GaussianStatistics.from_run(run, arms=3)),
        0.0,
    )
    assert fit.statistics.tasks == 100
