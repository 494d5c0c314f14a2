"""Normal priors over weights by marginal likelihood: a published fit, brute force, boundaries,
recovery from adaptive data.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from counting import calls
from raising import raises
from scipy.stats import chi2, multivariate_normal

import priorwise as pw
from priorwise.experiments import problems
from priorwise.families.linear.likelihood.estimator import (
    FEW,
    LinearMarginalLikelihood,
    log_marginal_likelihood,
)
from priorwise.families.linear.statistics import LinearStatistics
from priorwise.families.normal.likelihood.model import Chart, Model
from priorwise.families.normal.likelihood.tasks import NormalTasks, Parameters
from priorwise.fitting.fits import PriorFit
from priorwise.fitting.newton import climb, positive_root
from priorwise.testing import base_seed

# Reaction times (ms) of 18 subjects over 10 days of little sleep: Belenky et al. 2003, Journal of
# Sleep Research 12.
SLEEP = """
249.5600 258.7047 250.8006 321.4398 356.8519 414.6901 382.2038 290.1486 430.5853 466.3535
222.7339 205.2658 202.9778 204.7070 207.7161 215.9618 213.6303 217.7272 224.2957 237.3142
199.0539 194.3322 234.3200 232.8416 229.3074 220.4579 235.4208 255.7511 261.0125 247.5153
321.5426 300.4002 283.8565 285.1330 285.7973 297.5855 280.2396 318.2613 305.3495 354.0487
287.6079 285.0000 301.8206 320.1153 316.2773 293.3187 290.0750 334.8177 293.7469 371.5811
234.8606 242.8118 272.9613 309.7688 317.4629 309.9976 454.1619 346.8311 330.3003 253.8644
283.8424 289.5550 276.7693 299.8097 297.1710 338.1665 332.0265 348.8399 333.3600 362.0428
265.4731 276.2012 243.3647 254.6723 279.0244 284.1912 305.5248 331.5229 335.7469 377.2990
241.6083 273.9472 254.4907 270.8021 251.4519 254.6362 245.4523 235.3110 235.7541 237.2466
312.3666 313.8058 291.6112 346.1222 365.7324 391.8385 404.2601 416.6923 455.8643 458.9167
236.1032 230.3167 238.9256 254.9220 250.7103 269.7744 281.5648 308.1020 336.2806 351.6451
256.2968 243.4543 256.2046 255.5271 268.9165 329.7247 379.4445 362.9184 394.4872 389.0527
250.5265 300.0576 269.8939 280.5891 271.8274 304.6336 287.7466 266.5955 321.5418 347.5655
221.6771 298.1939 326.8785 346.8555 348.7402 352.8287 354.4266 360.4326 375.6406 388.5417
271.9235 268.4369 257.2424 277.6566 314.8222 317.2135 298.1353 348.1229 340.2800 366.5131
225.2640 234.5235 238.9008 240.4730 267.5373 344.1937 281.1481 347.5855 365.1630 372.2288
269.8804 272.4428 277.8989 281.7895 279.1705 284.5120 259.2658 304.6306 350.7807 369.4692
269.4117 273.4740 297.5968 310.6316 287.1726 329.6076 334.4818 343.2199 369.1417 364.1236
"""


def sleep() -> LinearStatistics:
    rewards = np.array([[float(x) for x in line.split()] for line in SLEEP.strip().splitlines()])
    days = np.broadcast_to(np.arange(10.0), rewards.shape)
    return LinearStatistics.from_trajectory(np.stack([np.ones_like(days), days], axis=2), rewards)


def estimator(dim: int = 3, **options: object) -> LinearMarginalLikelihood:
    return LinearMarginalLikelihood(contexts=np.eye(dim), **{"noise_var": 1.0, **options})  # type: ignore[arg-type]


def random_tasks(rng: np.random.Generator, tasks: int, dim: int, pulls: int) -> LinearStatistics:
    root = np.eye(dim) + np.tril(rng.uniform(-0.5, 0.5, size=(dim, dim)))
    x = rng.normal(size=(tasks, pulls, dim))
    w = rng.normal(size=dim) + rng.normal(size=(tasks, dim)) @ root.T
    return LinearStatistics.from_trajectory(
        x, np.einsum("tsj,tj->ts", x, w) + rng.normal(size=(tasks, pulls))
    )


def model_of(
    data: LinearStatistics, structure: str = "full", regulariser: float = 0.0, noise: bool = True
) -> Model:
    return Model(
        NormalTasks.of_features(data.gram, data.moments, data.squares, data.pulls),
        Chart(structure, data.dim),  # type: ignore[arg-type]
        mean_map=np.eye(data.dim),
        noise_map=np.ones((1, int(noise))),
        known_noise=np.ones(1),
        log_det=0.5 * regulariser,
        trace=0.05 * regulariser,
    )


# -- published
# -------------------------------------------------------------------------------------------------


def test_sleep_study() -> None:
    """The fit by maximum likelihood of this textbook example: 23.78, 5.717, 0.081, 25.59; mean
    251.405, 10.467.
    """
    fit = LinearMarginalLikelihood(contexts=[[1.0, 0.0]], noise_var=None, regulariser=0.0).fit(
        sleep()
    )
    std = np.sqrt(np.diag(fit.prior.cov))
    np.testing.assert_allclose(std, [23.78, 5.717], rtol=2e-4)
    assert fit.prior.cov[0, 1] / std.prod() == pytest.approx(0.081, abs=5e-4)
    assert np.sqrt(fit.prior.noise_var[0]) == pytest.approx(25.59, rel=2e-4)
    np.testing.assert_allclose(fit.prior.mean, [251.405, 10.467], atol=6e-4)
    np.testing.assert_allclose(fit.std_errors["mean"], [6.632, 1.502], rtol=2e-4)
    assert fit.log_likelihood == pytest.approx(-875.97, abs=5e-3)
    assert fit.converged
    assert not fit.at_boundary
    assert (fit.tasks, fit.left_out) == (18, 0)


# -- the likelihood
# -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("singular", [False, True])
def test_likelihood_is_the_normal_density(singular: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(3, 3))
    if singular:
        root[:, 1:] = 0.0
    prior = pw.LinearGaussianPrior(rng.normal(size=3), root @ root.T, 0.7, np.eye(3))
    x, r = rng.normal(size=(4, 5, 3)), rng.normal(size=(4, 5))
    got = log_marginal_likelihood(prior, LinearStatistics.from_trajectory(x, r))
    for task in range(4):
        law = multivariate_normal(
            x[task] @ prior.mean, x[task] @ prior.cov @ x[task].T + 0.7 * np.eye(5)
        )
        assert got[task] == pytest.approx(law.logpdf(r[task]), rel=1e-10)


@pytest.mark.parametrize("structure", ["full", "diagonal"])
@pytest.mark.parametrize("regulariser", [0.0, 1.0])
def test_derivatives(structure: str, regulariser: float, seed: int) -> None:
    """Gradient and information of (mean, root, log noise), against differences; also with tasks
    that see less than all features.
    """
    rng = np.random.default_rng(seed)
    model = model_of(
        random_tasks(rng, 30, 3, 5) + random_tasks(rng, 10, 3, 2), structure, regulariser
    )
    x = model.coordinates(Parameters(rng.normal(size=3), np.eye(3), np.array([0.8])))
    x[3:] += rng.normal(0.0, 0.2, len(x) - 3)
    place, h = model.at(x), 1e-5
    there, back = ([model.at(x + sign * h * e) for e in np.eye(x.size)] for sign in (1, -1))
    gradient = [(a.value - b.value) / (2 * h) for a, b in zip(there, back, strict=True)]
    hessian = [(a.gradient - b.gradient) / (2 * h) for a, b in zip(there, back, strict=True)]
    np.testing.assert_allclose(place.gradient, gradient, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(place.information(), -np.array(hessian), rtol=1e-5, atol=1e-4)


def test_the_best_mean_is_least_squares(seed: int) -> None:
    """Given covariance and noise, ``(sum P)^-1 sum g`` from a mean of 0 is the best mean."""
    rng = np.random.default_rng(seed)
    model = model_of(random_tasks(rng, 10, 2, 3))
    at = Parameters(np.zeros(2), np.eye(2), np.ones(1))
    sums = model.tasks.sums(at)
    best = np.linalg.solve(sums.precision, sums.mean)
    value = model.tasks.sums(Parameters(best, at.cov, at.noise)).value
    for _ in range(20):
        other = Parameters(best + rng.normal(0.0, 0.1, 2), at.cov, at.noise)
        assert model.tasks.sums(other).value < value


# -- the maximum
# -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("structure", ["full", "diagonal"])
@pytest.mark.parametrize("noise_var", [1.0, None])
def test_no_prior_nearby_is_more_likely(structure: str, noise_var: float | None, seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = random_tasks(rng, 40, 3, 6)
    fit = estimator(structure=structure, noise_var=noise_var, regulariser=0.0).fit(data)
    assert fit.log_likelihood == pytest.approx(
        log_marginal_likelihood(fit.prior, data).sum(), rel=1e-10
    )
    root = np.linalg.cholesky(fit.prior.cov + 1e-12 * np.eye(3))
    for size in (1e-3, 0.03, 0.3):
        for _ in range(30):
            step = rng.normal(size=(3, 3)) * size
            other = root + (np.diag(np.diag(step)) if structure == "diagonal" else step)
            noise = (
                fit.prior.noise_var
                if noise_var
                else fit.prior.noise_var * np.exp(size * rng.normal())
            )
            prior = pw.LinearGaussianPrior(
                fit.prior.mean + size * rng.normal(size=3), other @ other.T, noise, np.eye(3)
            )
            assert log_marginal_likelihood(prior, data).sum() <= fit.log_likelihood + 1e-7


def test_every_step_goes_up(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = random_tasks(rng, 25, 3, 4)
    for regulariser in (0.0, 1.0):
        model = model_of(data, regulariser=regulariser)
        start = model.coordinates(Parameters(np.zeros(3), np.eye(3), np.array([10.0])))
        start[3:9] = rng.normal(0.0, 3.0, 6)
        values = [climb(model.at, start, limit=limit).place.value for limit in range(1, 15)]
        assert all(b >= a - 1e-9 for a, b in pairwise(values))


def test_units_do_not_matter(seed: int) -> None:
    """Rescaled features and rewards give the rescaled prior, with the regulariser on."""
    rng = np.random.default_rng(seed)
    x, r = rng.normal(size=(30, 5, 2)), rng.normal(size=(30, 5))
    r += np.einsum("tsj,tj->ts", x, rng.normal(size=(30, 2)))
    scale, unit = np.array([100.0, 0.01]), 50.0
    model = estimator(2, noise_var=None)
    plain = model.fit(LinearStatistics.from_trajectory(x, r))
    other = model.fit(LinearStatistics.from_trajectory(x * scale, r * unit))
    np.testing.assert_allclose(other.prior.mean, plain.prior.mean * unit / scale, rtol=1e-6)
    np.testing.assert_allclose(
        other.prior.cov, plain.prior.cov * unit**2 / np.outer(scale, scale), rtol=1e-6
    )
    np.testing.assert_allclose(
        other.std_errors["cov"],
        plain.std_errors["cov"] * unit**2 / np.outer(scale, scale),
        rtol=1e-5,
    )
    assert other.log_likelihood == pytest.approx(
        plain.log_likelihood - 150 * np.log(unit), rel=1e-9
    )


def test_tasks_seen_exactly(seed: int) -> None:
    """With hardly any noise: the sample covariance, over T for plain likelihood and over T - 1 with
    the regulariser, nearly.
    """
    rng = np.random.default_rng(seed)
    w = rng.normal(size=(40, 2)) @ np.array([[1.0, 0.5], [0.0, 1.0]])
    x = np.broadcast_to(np.eye(2), (40, 2, 2))
    data = LinearStatistics.from_trajectory(x, w)
    for regulariser, count in ((0.0, 40), (1.0, 39)):
        fit = estimator(2, noise_var=1e-7, regulariser=regulariser).fit(data)
        centred = w - w.mean(axis=0)
        np.testing.assert_allclose(fit.prior.mean, w.mean(axis=0), atol=1e-5)
        np.testing.assert_allclose(
            fit.prior.cov, centred.T @ centred / count, rtol=0.004 if regulariser else 1e-5
        )


def test_merged_data_warm_starts_and_left_out_tasks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = random_tasks(rng, 50, 3, 6)
    empty = LinearStatistics(np.zeros((2, 3, 3)), np.zeros((2, 3)), np.zeros(2), np.zeros(2))
    model = estimator(noise_var=None)
    whole, parts = model.fit(data), model.fit(data[:20] + empty + data[20:])
    assert (parts.tasks, parts.left_out) == (50, 2)
    np.testing.assert_allclose(parts.prior.cov, whole.prior.cov, rtol=1e-7)
    assert parts.log_likelihood == pytest.approx(whole.log_likelihood, rel=1e-10)
    for start in (whole, whole.prior):
        warm = model.fit(data, start=start)
        assert warm.iterations <= 2
        np.testing.assert_allclose(warm.prior.cov, whole.prior.cov, rtol=1e-6)


# -- boundaries
# -------------------------------------------------------------------------------------------------


def test_a_variance_of_zero(seed: int) -> None:
    """Least squares finds the same weights in each task: plain likelihood has no covariance at all,
    the regulariser a small one.
    """
    rng = np.random.default_rng(seed)
    x, noise = rng.normal(size=(60, 6, 3)), rng.normal(size=(60, 6))
    noise -= np.stack([a @ np.linalg.lstsq(a, e)[0] for a, e in zip(x, noise, strict=True)])
    data = LinearStatistics.from_trajectory(x, x @ np.ones(3) + noise)
    plain, weak = estimator(regulariser=0.0).fit(data), estimator().fit(data)
    assert plain.at_boundary
    assert plain.converged
    assert weak.at_boundary
    assert np.isnan(plain.std_errors["cov"]).all()
    assert np.isfinite(plain.std_errors["mean"]).all()
    assert np.isfinite(weak.std_errors["cov"]).all()
    low = np.linalg.eigvalsh(weak.prior.cov)
    assert 1e-4 < low[0] < low[-1] < 0.3
    assert plain.prior.cov.max() < 1e-6
    assert plain.log_likelihood > weak.log_likelihood


EDGES = {
    "one task": ([[[1.0, 0.0], [0.0, 1.0]]], [[1.0, 2.0]]),
    "one pull": ([[[1.0, 0.5]]], [[1.0]]),
    "a feature never seen": (
        np.stack([np.ones((5, 3)), np.zeros((5, 3))], axis=2),
        np.arange(15.0).reshape(5, 3),
    ),
    "all rewards zero": (np.ones((4, 3, 2)), np.zeros((4, 3))),
    "all rewards equal": (np.ones((4, 3, 2)), np.ones((4, 3))),
    "huge": (
        np.random.default_rng(base_seed()).normal(size=(9, 4, 2)) * 1e8,
        np.random.default_rng(base_seed() + 1).normal(size=(9, 4)) * 1e-8,
    ),
}


@pytest.mark.parametrize("case", EDGES.values(), ids=EDGES)
@pytest.mark.parametrize("noise_var", [1.0, None])
@pytest.mark.parametrize("regulariser", [0.0, 1.0])
def test_edges_give_usable_priors(
    case: tuple[object, object], noise_var: float | None, regulariser: float, seed: int
) -> None:
    fit = estimator(2, noise_var=noise_var, regulariser=regulariser).fit(
        LinearStatistics.from_trajectory(*case)
    )
    assert np.isfinite(fit.log_likelihood)
    for prior in (fit.prior, *fit.draw(np.random.default_rng(seed), 5)):
        assert np.isfinite(prior.cov).all()
        assert np.isfinite(
            pw.simulate(prior, pw.ThompsonSampling(), horizon=3, tasks=5, seed=seed).mean_reward
        )
    assert PriorFit.load(fit.to_json()).prior == fit.prior


@pytest.mark.parametrize("structure", ["full", "diagonal"])
def test_a_feature_never_seen_is_said(structure: str) -> None:
    """Plain likelihood says nothing about it; then it is the default regulariser's, wherever the
    climb began.
    """
    data = LinearStatistics.from_trajectory(*EDGES["a feature never seen"])
    weak, plain = (estimator(2, structure=structure, regulariser=r).fit(data) for r in (1.0, 0.0))
    for fit, note in (
        (weak, "the prior there is the regulariser's"),
        (plain, "the prior there is the default regulariser's"),
    ):
        assert fit.at_boundary
        assert any(note in each for each in fit.warnings)
    assert plain.prior.cov[1, 1] == pytest.approx(weak.prior.cov[1, 1], rel=1e-6)
    assert (plain.prior.cov[0, 1], plain.prior.mean[1]) == (0.0, 0.0)
    far = pw.LinearGaussianPrior([3.0, 3.0], [[2.0, 0.3], [0.3, 50.0]], 1.0, np.eye(2))
    again = estimator(2, structure=structure, regulariser=0.0).fit(data, start=far)
    np.testing.assert_allclose(again.prior.cov, plain.prior.cov, rtol=1e-6)
    seen = estimator(1, structure=structure, regulariser=0.0).fit(
        LinearStatistics(data.gram[:, :1, :1], data.moments[:, :1], data.squares, data.pulls)
    )
    assert plain.prior.cov[0, 0] == pytest.approx(seen.prior.cov[0, 0], rel=1e-6)
    assert plain.log_likelihood == pytest.approx(seen.log_likelihood, rel=1e-9)


def test_a_known_noise_stays_what_it_is(seed: int) -> None:
    """Through the fit's units and back it would not; and bounds between priors refuse different
    rewards.
    """
    rng = np.random.default_rng(seed)
    for noise in (1.0, 0.3, *rng.uniform(0.1, 3.0, 30)):
        fit = estimator(2, noise_var=noise).fit(random_tasks(rng, 8, 2, 3))
        for prior in (fit.prior, *fit.draw(rng, 2)):
            assert (prior.noise_var == noise).all()


def test_many_tasks_begin_with_some_of_them(seed: int) -> None:
    data = random_tasks(np.random.default_rng(seed), 3 * FEW, 2, 4)
    cold = estimator(2, noise_var=None).fit(data)
    other = estimator(2, noise_var=None).fit(
        data, start=pw.LinearGaussianPrior([0, 0], np.eye(2), 1.0, np.eye(2))
    )
    assert cold.converged
    assert cold.iterations <= other.iterations
    np.testing.assert_allclose(cold.prior.cov, other.prior.cov, rtol=1e-7)
    assert cold.log_likelihood == pytest.approx(other.log_likelihood, rel=1e-12)


def test_a_far_common_mean_costs_no_digits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(50, 6, 2))
    r = np.einsum("tsj,tj->ts", x, rng.normal(size=(50, 2))) + rng.normal(size=(50, 6))
    near, far = (
        estimator(2).fit(LinearStatistics.from_trajectory(x, r + x @ [m, -m])) for m in (0.0, 1e4)
    )
    np.testing.assert_allclose(far.prior.cov, near.prior.cov, rtol=1e-5)
    np.testing.assert_allclose(far.prior.mean - [1e4, -1e4], near.prior.mean, atol=1e-6)


def test_impossible_statistics_are_refused(seed: int) -> None:
    gram, moments, squares, pulls = (
        np.array([[[2.0, 1.0], [1.0, 3.0]]] * 2),
        np.ones((2, 2)),
        np.full(2, 5.0),
        [3, 3],
    )
    LinearStatistics(gram, moments, squares, pulls)
    bad = gram.copy()
    bad[1] = [[1.0, 2.0], [2.0, 1.0]]
    for wrong in (
        (bad, moments, squares),
        (-gram, moments, squares),
        (gram, 3.0 * moments, [50.0, 5.0]),
        (0.0 * gram, moments, squares),
    ):
        with raises("gram", "features"):
            LinearStatistics(*wrong, pulls)
    with raises("gram", "task 1"):
        LinearStatistics(bad, moments, squares, pulls)
    with raises("gram", "0 where pulls is"):
        LinearStatistics(gram, moments, squares, [3, 0])
    # more features than pulls, no noise
    x = np.random.default_rng(seed).normal(size=(20, 3, 6)) * 10.0 ** np.arange(-9, 9, 3)
    LinearStatistics.from_trajectory(x, x @ np.ones(6))


def test_bad_arguments(seed: int) -> None:
    with raises("structure", "must be one of"):
        estimator(structure="round")
    with raises("noise_var", "must be positive"):
        estimator(noise_var=0.0)
    with raises("regulariser", "must not be negative"):
        estimator(regulariser=-1.0)
    with raises("contexts", "must say"):
        LinearMarginalLikelihood(contexts=3)  # type: ignore[arg-type]
    data = random_tasks(np.random.default_rng(seed), 5, 3, 4)
    with raises("start", "has 2 features"):
        estimator().fit(data, start=pw.LinearGaussianPrior([0, 0], np.eye(2), 1.0, np.eye(2)))
    with raises("start", "must be"):
        estimator().fit(data, start=1.0)
    with raises("data", "a pull"):
        estimator().fit(LinearStatistics(np.zeros((1, 3, 3)), np.zeros((1, 3)), [0.0], [0]))
    with raises("noise_var", "must be the same for all"):
        log_marginal_likelihood(
            pw.LinearGaussianPrior(np.zeros(3), np.eye(3), [1, 2, 3], np.eye(3)), data
        )


# -- recovery
# -------------------------------------------------------------------------------------------------


def misfit(fit: PriorFit, truth: pw.LinearGaussianPrior) -> float:
    """Squared distance of (mean, E, log noise) in the metric of the information: chi-square with as
    many degrees of freedom.
    """
    law = fit.uncertainty
    values, axes = np.linalg.eigh(fit.prior.cov)
    white = (axes / np.sqrt(values)).T
    half = np.einsum("ia,acz,jb,bc->ijz", white, law.root_moves, white, law.root)
    moves = np.concatenate(
        [
            law.mean_moves,
            (half + half.transpose(1, 0, 2))[np.tril_indices(truth.dim)],
            law.noise_moves,
        ]
    )
    values, axes = np.linalg.eigh(white @ truth.cov @ white.T)
    gap = np.concatenate(
        [
            truth.mean - fit.prior.mean,
            (axes * np.log(values) @ axes.T)[np.tril_indices(truth.dim)],
            np.log(truth.noise_var[:1] / fit.prior.noise_var[:1]),
        ]
    )
    return float((np.linalg.solve(moves, gap) ** 2).sum())


def test_recovery_from_adaptive_tasks(seed: int) -> None:
    """Thompson sampling chooses the features: false alarm 1e-6. Controls: a covariance off by a
    fifth, a mean off by 0.1.
    """
    contexts = pw.SphereContexts(arms=4)
    cov = np.array([[1.0, 0.5, 0.0], [0.5, 0.8, -0.2], [0.0, -0.2, 0.5]])
    truth = pw.LinearGaussianPrior([0.5, 0.0, -0.5], cov, 0.5, contexts)
    run = pw.simulate(truth, pw.ThompsonSampling(), horizon=12, tasks=3_000, seed=seed, keep=True)
    fit = LinearMarginalLikelihood(contexts, noise_var=None).fit(run)
    limit = chi2.isf(1e-6, 10)
    assert misfit(fit, truth) < limit
    assert misfit(fit, pw.LinearGaussianPrior(truth.mean, 1.2 * cov, 0.5, contexts)) > limit
    assert misfit(fit, pw.LinearGaussianPrior(truth.mean + 0.1, cov, 0.5, contexts)) > limit


def test_draws_spread_like_the_standard_errors(seed: int) -> None:
    data = random_tasks(np.random.default_rng(seed + 1), 2_000, 2, 6)
    fit = estimator(2, noise_var=None).fit(data)
    drawn = fit.draw(np.random.default_rng(seed), 3_000)
    for name in ("mean", "cov"):
        np.testing.assert_allclose(
            np.std([getattr(p, name) for p in drawn], axis=0), fit.std_errors[name], rtol=0.15
        )
    assert np.std([p.noise_var[0] for p in drawn]) == pytest.approx(
        float(fit.std_errors["noise_var"]), rel=0.15
    )
    again = PriorFit.load(fit.to_json())
    assert again == fit
    assert again.draw(np.random.default_rng(seed), 3) == drawn[:3]


def test_draws_have_the_fit_as_their_mean_in_any_order(seed: int) -> None:
    """Few tasks of Thompson sampling: averages within 5 of their standard errors plus 5 % for the
    normaliser; false alarm 1e-5.

    Control: normal laws of the entries of a triangular root, whose draws are too large, and the
    more so the later the feature.
    """
    prior = problems.linear().prior
    run = pw.simulate(prior, pw.ThompsonSampling(), horizon=10, tasks=50, seed=seed, keep=True)
    data = LinearStatistics.from_run(run)
    turned = LinearStatistics(
        data.gram[:, ::-1, ::-1], data.moments[:, ::-1], data.squares, data.pulls
    )
    spreads = []
    for each, order in ((data, 1), (turned, -1)):
        fit = LinearMarginalLikelihood(prior.contexts).fit(each)
        draws = np.array([p.cov for p in fit.draw(np.random.default_rng(seed), 2_000)])
        error = draws.std(axis=0) / np.sqrt(len(draws))
        own = np.diag(fit.prior.cov)
        assert (
            np.abs(draws.mean(axis=0) - fit.prior.cov)
            < 5 * error + 0.05 * np.sqrt(np.outer(own, own))
        ).all()
        spread = np.diag(draws.std(axis=0) / fit.std_errors["cov"])
        assert ((spread > 0.5) & (spread < 2.0)).all()
        spreads.append(spread[::order])
    np.testing.assert_allclose(spreads[0], spreads[1], rtol=0.35)
    model = model_of(data, regulariser=1.0, noise=False)
    begin = model.coordinates(Parameters(np.zeros(prior.dim), np.eye(prior.dim), np.ones(1)))
    top = climb(model.at, begin).place
    change = positive_root(top.information())[0][prior.dim :]
    roots = [
        top.root + model.chart.root(change @ z)
        for z in np.random.default_rng(seed).normal(size=(2_000, len(change.T)))
    ]
    late = np.mean([(root @ root.T)[-1, -1] for root in roots]) / top.at.cov[-1, -1]
    assert late > 1.15


def test_many_tasks_take_few_more_calls(seed: int) -> None:
    """A hundred times the tasks cost a few times the calls, for iterations: the loops over tasks
    are compiled.
    """
    data = random_tasks(np.random.default_rng(seed), 20_000, 6, 8)
    model = LinearMarginalLikelihood(np.eye(6))
    assert model.fit(data).iterations <= 30
    assert calls(lambda: model.fit(data)) < 10 * calls(lambda: model.fit(data[:200]))


def test_refits_start_where_the_former_fit_ended(seed: int) -> None:
    """100 tasks in 6 dimensions, 99 of which the former fit has seen: fewer iterations than from
    nothing, and the same prior.
    """
    prior = problems.linear().prior
    run = pw.simulate(prior, pw.ThompsonSampling(), horizon=20, tasks=100, seed=seed, keep=True)
    data = LinearStatistics.from_run(run)
    model = LinearMarginalLikelihood(prior.contexts)
    cold, warm = model.fit(data), model.fit(data, start=model.fit(data[:99]))
    assert warm.iterations < cold.iterations
    np.testing.assert_allclose(warm.prior.cov, cold.prior.cov, atol=1e-4)
