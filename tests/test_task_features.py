"""Priors whose mean is linear in features of tasks, against dense densities, generic optimisers and
quadrature; and that effects are found with honest standard errors.

Statistical tests state their false-alarm rate, and have a control that must fail.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import chi2, multivariate_normal

import priorwise as pw
from priorwise.families import (
    FeaturedMarginalLikelihood,
    FeaturedPrior,
    FeaturedStatistics,
    TaskFeatures,
)
from priorwise.meta import log_marginal_likelihood

Numbers = NDArray[np.float64]
FALSE_ALARM = 1e-4
COV = np.array([[0.5, 0.3], [0.3, 0.6]])
EFFECTS = np.array([[0.4, -0.3], [-0.2, 0.5]])  # (arm, number)


def features_of(rng: Any, tasks: int) -> tuple[TaskFeatures, Numbers]:
    """A number and a word, one of two."""
    raw = {"size": rng.normal(5.0, 2.0, tasks), "kind": np.where(rng.random(tasks) < 0.4, "b", "a")}
    features = TaskFeatures.of(raw, range(tasks))
    return features, features.rows(raw)[0]


def real_tasks(
    seed: int, tasks: int, *, alike: bool = False, greedy: bool = True
) -> tuple[FeaturedStatistics, list[list[tuple[int, float]]]]:
    """Two arms; each task pulls both once, then, if ``greedy``, three times the better one, so that
    pulls depend on rewards. Also returns the rewards in their order.
    """
    rng = np.random.default_rng(seed)
    features, x = features_of(rng, tasks)
    slopes = np.array([EFFECTS[0]] * 2) if alike else EFFECTS
    nu = np.array([1.0, 1.0 if alike else 1.5])
    cov = np.array([[0.5, 0.3], [0.3, 0.5]]) if alike else COV
    mu = nu + (x - features.centre) @ slopes.T + rng.multivariate_normal(np.zeros(2), cov, tasks)
    sums = {name: np.zeros((tasks, 2)) for name in ("pulls", "sums", "squares")}
    played = []
    for task in range(tasks):
        pulls: list[tuple[int, float]] = []
        for step in range(5 if greedy else 2):
            arm = step if step < 2 else int(pulls[1][1] > pulls[0][1])
            reward = mu[task, arm] + 0.8 * rng.standard_normal()
            pulls.append((arm, reward))
            for name, each in (("pulls", 1.0), ("sums", reward), ("squares", reward**2)):
                sums[name][task, arm] += each
        played.append(pulls)
    return FeaturedStatistics(pw.GaussianStatistics(**sums), x, features), played


def dense(played: Any, law: Any) -> float:
    """Log density of all rewards, those of a task as one normal vector: law is the mean of each arm
    at each task's features, the covariance and the noise.
    """
    means, cov, noise = law
    arms = np.array([[arm for arm, _ in pulls] for pulls in played])  # (task, pull)
    rewards = np.array([[reward for _, reward in pulls] for pulls in played])
    of = cov[arms[:, :, None], arms[:, None, :]] + noise * np.eye(arms.shape[1])
    off = rewards - np.take_along_axis(means, arms, axis=1)
    squares = (off * np.linalg.solve(of, off[:, :, None])[:, :, 0]).sum()
    logs = np.linalg.slogdet(2.0 * np.pi * of)[1].sum()
    return -0.5 * float(squares + logs)


def unpacked(theta: Numbers, data: FeaturedStatistics, structure: str) -> Any:
    """Law at generic coordinates: means, effects, root of the covariance, logarithm of noise."""
    off = data.x - data.features.centre
    if structure == "exchangeable":
        means = np.repeat((theta[0] + off @ theta[1:3])[:, None], 2, axis=1)
        level, own = np.exp(theta[3:5])
        return means, level * np.ones((2, 2)) + own * np.eye(2), np.exp(theta[5])
    means = theta[:2] + off @ theta[2:6].reshape(2, 2).T
    if structure == "diagonal":
        return means, np.diag(np.exp(theta[6:8])), np.exp(theta[8])
    root = np.array([[theta[6], 0.0], [theta[7], theta[8]]])
    return means, root @ root.T, np.exp(theta[9])


def packed(prior: FeaturedPrior, structure: str) -> Numbers:
    base, slopes = prior.base, prior.slopes
    if structure == "exchangeable":
        parts = base.var * base.correlation, base.var * (1.0 - base.correlation), base.noise_var
        return np.concatenate([[base.mean], slopes, np.log(parts)])
    first = [base.mean, slopes.ravel()]
    if structure == "diagonal":
        return np.concatenate([*first, np.log(np.diag(base.cov)), [np.log(base.noise_var[0])]])
    root = np.linalg.cholesky(base.cov)
    return np.concatenate([*first, root[np.tril_indices(2)], [np.log(base.noise_var[0])]])


def hessian(f: Any, x: Numbers, h: float = 1e-4) -> Numbers:
    steps = h * np.eye(len(x))
    out = [
        [f(x + a + b) - f(x + a - b) - f(x - a + b) + f(x - a - b) for b in steps] for a in steps
    ]
    return np.array(out) / (4.0 * h * h)


@pytest.mark.parametrize("structure", ["full", "diagonal", "exchangeable"])
def test_gaussian_fits_are_the_maximum_of_the_dense_likelihood(structure: Any, seed: int) -> None:
    """With pulls that depend on rewards. Standard errors are those of the observed information."""
    data, played = real_tasks(seed, 60, alike=structure == "exchangeable")
    plain = pw.GaussianMarginalLikelihood(structure, regulariser=0.0, tolerance=1e-12)
    fit = FeaturedMarginalLikelihood(plain).fit(data)
    assert fit.converged

    def log_density(theta: Numbers) -> float:
        return dense(played, unpacked(theta, data, structure))

    at = packed(fit.prior, structure)
    means, cov, noise = unpacked(at, data, structure)
    arms = [arm for arm, _ in played[0]]
    law = multivariate_normal(means[0][arms], cov[np.ix_(arms, arms)] + noise * np.eye(len(arms)))
    rewards = [reward for _, reward in played[0]]
    first = log_marginal_likelihood(fit.prior, data)[0]
    assert first == pytest.approx(law.logpdf(rewards), abs=1e-9)
    assert fit.log_likelihood == pytest.approx(log_density(at), abs=1e-6)
    rng = np.random.default_rng(seed)
    start = at + 0.1 * rng.standard_normal(at.size)
    best = minimize(lambda x: -log_density(x), start, method="BFGS", options={"gtol": 1e-5})
    assert fit.log_likelihood == pytest.approx(-best.fun, abs=1e-6)
    np.testing.assert_allclose(at, best.x, atol=2e-3)
    covariance = np.linalg.inv(-hessian(log_density, at))
    wide = 1 if structure == "exchangeable" else 2
    errors = np.sqrt(np.diag(covariance))
    mean = np.atleast_1d(fit.std_errors["base.mean"])
    np.testing.assert_allclose(mean, errors[:wide], rtol=2e-3)
    names = data.features.labels
    found = np.stack([np.atleast_1d(fit.std_errors[f"effects.{name}"]) for name in names], axis=-1)
    np.testing.assert_allclose(found.ravel(), errors[wide : 3 * wide], rtol=2e-3)
    total = log_marginal_likelihood(fit.prior, data).sum()
    assert total == pytest.approx(fit.log_likelihood, abs=1e-6)
    one = {"size": 7.5, "kind": "b"}
    to = np.kron(np.eye(wide), data.features.rows(one)[0][0] - data.features.centre)
    to = np.hstack([np.eye(wide), to])
    of = covariance[: 3 * wide, : 3 * wide]
    there = np.atleast_1d(fit.for_features(one).std_errors["mean"])
    np.testing.assert_allclose(there, np.sqrt(np.diag(to @ of @ to.T)), rtol=2e-3)


def clicks(seed: int, tasks: int, *, structure: str, pulls: int = 30) -> FeaturedStatistics:
    rng = np.random.default_rng(seed)
    features, x = features_of(rng, tasks)
    alike = structure == "exchangeable"
    slopes = np.array([EFFECTS[0]] * 2) if alike else EFFECTS
    cov = {"exchangeable": [[0.5, 0.3], [0.3, 0.5]], "full": COV}.get(
        structure, np.diag([0.5, 0.6])
    )
    eta = -1.0 + (x - features.centre) @ slopes.T
    eta = eta + rng.multivariate_normal(np.zeros(2), cov, tasks)
    n = rng.integers(1, pulls, (tasks, 2))
    n[::7, 1] = 0  # an arm that a task lacks
    wins = rng.binomial(n, 1.0 / (1.0 + np.exp(-eta)))
    return FeaturedStatistics(pw.BetaStatistics(wins, n), x, features)


def by_quadrature(s: Numbers, n: Numbers, mean: Numbers, cov: Numbers) -> float:
    """Log probability of the rewards of two arms, by 100 x 100 nodes."""
    x, w = np.polynomial.hermite_e.hermegauss(100)
    z = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1)
    eta = mean + z @ np.linalg.cholesky(cov).T
    logs = (s * eta - n * np.logaddexp(0.0, eta)).sum(axis=-1)
    weights = np.outer(w, w) / (2.0 * np.pi)
    return float(np.log((weights * np.exp(logs - logs.max())).sum()) + logs.max())


@pytest.mark.parametrize(
    ("structure", "close"), [("exchangeable", 1e-6), ("full", 5e-3), ("diagonal", 1e-6)]
)
def test_likelihoods_of_clicks_with_features_are_those_of_quadrature(
    structure: str, close: float, seed: int
) -> None:
    """Expectation propagation of correlated arms is an approximation; without the features all are
    off by far more.
    """
    data = clicks(seed, 12, structure=structure)
    cov = np.array([[0.5, 0.3], [0.3, 0.5]]) if structure == "exchangeable" else COV
    cov = np.diag(np.diag(cov)) if structure == "diagonal" else cov
    base: Any = pw.LogitNormalPrior([-1.0, -0.8], cov)
    effects = EFFECTS.T
    if structure == "exchangeable":
        base, effects = pw.ExchangeableLogitNormalPrior(-1.0, 0.5, 0.6), EFFECTS[0]
    prior = FeaturedPrior(base, effects, data.features)
    found = log_marginal_likelihood(prior, data)
    seen: Any = data.seen
    own = prior.of_rows(data.x)
    s, n = seen.successes, seen.pulls
    exact = [by_quadrature(s[t], n[t], own[t].mean, cov) for t in range(12)]
    np.testing.assert_allclose(found, exact, atol=close)
    one = [log_marginal_likelihood(each, seen.take([t]))[0] for t, each in enumerate(own)]
    np.testing.assert_allclose(found, one, atol=1e-9)
    without = log_marginal_likelihood(base, seen)
    assert np.abs(without - np.array(exact)).max() > 20.0 * close


@pytest.mark.parametrize("structure", ["exchangeable", "diagonal", "full"])
def test_fits_of_clicks_are_maxima(structure: Any, seed: int) -> None:
    """No generic step from the fit, in effects, mean or covariance, is likelier."""
    data = clicks(seed, 80, structure=structure)
    estimator = pw.LogitNormalMarginalLikelihood(structure, regulariser=0.0)
    fit = FeaturedMarginalLikelihood(estimator).fit(data)
    assert fit.converged
    prior = fit.prior
    top = log_marginal_likelihood(prior, data).sum()
    if structure != "diagonal":  # which is fitted arm by arm, exactly, and scored jointly
        assert fit.log_likelihood == pytest.approx(top, abs=1e-6)
    rng = np.random.default_rng(seed)
    for size in (0.03, 0.1):
        for _ in range(10):
            step = size * rng.standard_normal(prior.slopes.shape)
            moved = np.moveaxis(prior.slopes + step, -1, 0)
            mean = prior.base.mean + size * rng.standard_normal(np.shape(prior.base.mean))
            scale = np.exp(size * rng.standard_normal())
            names = {"var": prior.base.var * scale} if structure == "exchangeable" else {}
            names = names or {"cov": prior.base.cov * scale}
            other = prior.replaced(
                base=prior.base.replaced(mean=mean, **names), effects=list(moved)
            )
            assert log_marginal_likelihood(other, data).sum() < top + 1e-5


def off_by(fits: list[Any], truth: Numbers) -> tuple[float, int]:
    """Squared distance of effects from the truth, in their covariance, over independent logs."""
    total = 0.0
    for fit in fits:
        gap = fit.prior.slopes.ravel() - truth.ravel()
        total += float(gap @ np.linalg.solve(fit.uncertainty.covariance, gap))
    return total, len(fits) * truth.size


CASES = {  # and how many logs
    "gaussian, greedy pulls": ("gaussian", "full", EFFECTS, 20),
    "gaussian, exchangeable": ("gaussian", "exchangeable", EFFECTS[0], 20),
    "logit-normal, exchangeable": ("logit-normal", "exchangeable", EFFECTS[0], 10),
    "logit-normal, diagonal": ("logit-normal", "diagonal", EFFECTS, 10),
    "logit-normal, full": ("logit-normal", "full", EFFECTS, 4),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_known_effects_are_recovered(case: str, seed: int) -> None:
    """A joint chi-square over all logs, false alarm 1e-4 on either side. The control ignores the
    features: the variance that it finds is far from the truth.
    """
    family, structure, truth, logs = CASES[case]
    real, alike = family == "gaussian", structure == "exchangeable"
    fits, plain = [], []
    for log in range(logs):
        own = 1000 * seed + log
        data = (
            real_tasks(own, 200, alike=alike)[0] if real else clicks(own, 200, structure=structure)
        )
        make: Any = pw.GaussianMarginalLikelihood if real else pw.LogitNormalMarginalLikelihood
        estimator = make(structure)
        fits.append(FeaturedMarginalLikelihood(estimator).fit(data))
        plain.append(estimator.fit(data.seen))
    total, freedom = off_by(fits, truth)
    assert FALSE_ALARM < chi2.sf(total, freedom) < 1.0 - FALSE_ALARM

    def of_variance(found: list[Any], prefix: str) -> float:
        score = 0.0
        for fit in found:
            prior = fit.prior.base if prefix else fit.prior
            name, value = ("var", prior.var) if alike else ("cov", np.diag(prior.cov))
            error = fit.std_errors[prefix + name]
            error = error if alike else np.diag(error)
            gap = (value - (0.5 if alike else np.array([0.5, 0.6]))) / error
            score += float(np.sum(gap**2))
        return float(chi2.sf(score, len(found) * (1 if alike else 2)))

    assert of_variance(fits, "base.") > FALSE_ALARM
    assert of_variance(plain, "") < 1e-9
