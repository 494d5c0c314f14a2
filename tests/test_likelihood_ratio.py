"""The likelihood-ratio rung against integrals over every history of two arms.

The exact value is ``sum_h E[sum_a (p_h(a) - L_(h-1) q_h(a))_+ E[diam | tau]]``. Here laws of
actions and diameters come from one grid of SciPy's distribution functions, and rewards from a rule
for their own distribution. The library uses neither.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from raising import raises
from scipy import stats
from scipy.special import betainc, betaln, expit, gammaln, log_expit, ndtr, stdtr

import priorwise as pw
from priorwise.core.protocols import Seen
from priorwise.families.logit_normal import extremes
from priorwise.families.normal import argmax
from priorwise.families.normal.beliefs import NormalBelief
from priorwise.sensitivity.exact.chain import exact_chain
from priorwise.sensitivity.ladder.ladder import COUPLED, LIKELIHOOD
from priorwise.sensitivity.ladder.walk import walk

TS = pw.ThompsonSampling()
Pair = tuple[Any, Any]


def on_a_grid(weights: Any, below: Any, above: Any, density: Any) -> tuple[Any, Any]:
    """``P(arm 0 is best)`` and ``E|X_0 - X_1|`` of each task, from ``(task, arm, node)``."""
    first = (below[:, 1] * density[:, 0] * weights).sum(axis=1)
    both = below[:, 0] * above[:, 1] + below[:, 1] * above[:, 0]
    return first, (both * weights).sum(axis=1)


def far(step: float, reach: float) -> tuple[Any, Any]:
    """Points ``sinh(sinh(v))`` and their weights: trapezoidal in v."""
    v = np.arange(-reach, reach, step)
    return np.sinh(np.sinh(v)), step * np.cosh(np.sinh(v)) * np.cosh(v)


def heavy(belief: Any) -> tuple[Any, Any]:
    """Student means: a trapezoidal rule around either centre, each for the values that are nearer
    to it, by smooth shares.
    """
    m, scale, freedom = belief.m, belief.scale, 2.0 * belief.a[:, :, None]
    top = np.exp(gammaln((freedom + 1.0) / 2.0) - gammaln(freedom / 2.0))
    flat = top / np.sqrt(freedom * np.pi) / scale[:, :, None]
    out, width = np.zeros((2, belief.tasks)), scale.min(axis=1)[:, None]
    points, weights = far(0.04, 6.3)  # out to 1e117
    for k in range(2):
        x = m[:, k : k + 1] + width * points
        own, other = (np.hypot(x - m[:, j : j + 1], width) for j in (k, 1 - k))
        t = (x[:, None, :] - m[:, :, None]) / scale[:, :, None]
        density = flat * np.exp(-0.5 * (freedom + 1.0) * np.log1p(t * t / freedom))
        share = width * weights / (1.0 + (own / other) ** 4)
        out += on_a_grid(share, stdtr(freedom, t), stdtr(freedom, -t), density)
    return out[0], out[1]


def bounded(belief: Any) -> tuple[Any, Any]:
    """Beta means: a trapezoidal rule in the log odds."""
    v = np.arange(-6.1, 6.1, 0.005)
    z = 3.0 * np.sinh(v)  # out to 670
    weights = 3.0 * np.cosh(v) * 0.005 * expit(z) * expit(-z)
    a, b = belief.a[:, :, None], belief.b[:, :, None]
    log_density = (a - 1.0) * log_expit(z) + (b - 1.0) * log_expit(-z) - betaln(a, b)
    above = betainc(b, a, expit(-z))
    below = np.where(z > 0.0, 1.0 - above, betainc(a, b, expit(z)))  # 1 - x keeps its digits
    return on_a_grid(weights, below, above, np.exp(log_density))


def normal(belief: Any) -> tuple[Any, Any]:
    """Jointly normal means: their difference is normal."""
    cov = belief.covariance()
    gap = belief.m[:, 0] - belief.m[:, 1]
    std = np.sqrt(cov[:, 0, 0] + cov[:, 1, 1] - 2.0 * cov[:, 0, 1])
    return stats.norm.cdf(gap / std), stats.foldnorm.mean(np.abs(gap) / std, scale=std)


def student_rewards(prior: Any, arm: int) -> tuple[Any, Any]:
    m, k, a, b = (each[arm] for each in (prior.mean, prior.pulls, prior.shape, prior.rate))
    scale = np.sqrt(b * (k + 1.0) / (a * k))
    points, weights = far(0.01, 5.8)  # out to 1e71
    return m + scale * points, stats.t.pdf(points, 2.0 * a) * weights


def normal_rewards(prior: Any, arm: int) -> tuple[Any, Any]:
    z = np.arange(-9.0, 9.0, 0.01)
    std = np.sqrt(prior.cov[arm, arm] + prior.noise_var[arm])
    return prior.mean[arm] + std * z, stats.norm.pdf(z) * 0.01


def binary_rewards(prior: Any, arm: int) -> tuple[Any, Any]:
    mean = prior.alpha[arm] / (prior.alpha[arm] + prior.beta[arm])
    return np.array([0.0, 1.0]), np.array([1.0 - mean, mean])


FEATURES = np.array([[1.0, 0.3], [-0.4, 1.0]])
U = np.stack([each.ravel() for each in np.meshgrid(*2 * [np.linspace(-7.5, 7.5, 201)])])


def features_of(prior: Any) -> Any:
    """What a linear prior shows, always the same; None for others."""
    return FEATURES[None] if hasattr(prior, "contexts") else None


def linear(belief: Any) -> tuple[Any, Any]:
    """Differences of two arms' values are normal."""
    apart = FEATURES[0] - FEATURES[1]
    gap, root = belief.m @ apart, np.einsum("tij,i->tj", belief.root, apart)
    std = np.sqrt((root**2).sum(axis=1))
    return stats.norm.cdf(gap / std), stats.foldnorm.mean(np.abs(gap) / std, scale=std)


def linear_rewards(prior: Any, arm: int) -> tuple[Any, Any]:
    z, x = np.arange(-9.0, 9.0, 0.01), FEATURES[arm]
    std = np.sqrt(x @ prior.cov @ x + prior.noise_var[arm])
    return x @ prior.mean + std * z, stats.norm.pdf(z) * 0.01


def posterior_rates(prior: Any, log_likelihood: Any) -> tuple[Any, Any]:
    """Rates of both arms on a grid, with their exact posterior weights."""
    x = FEATURES if hasattr(prior, "contexts") else np.eye(2)
    eta = x @ (prior.mean[:, None] + np.linalg.cholesky(prior.cov) @ U)
    log_weights = log_likelihood(eta) - 0.5 * (U**2).sum(axis=0)
    weights = np.exp(log_weights - log_weights.max())
    return expit(eta), weights / weights.sum()


def panels(ends: Any, nodes: int) -> tuple[Any, Any]:
    """Gauss-Legendre nodes and weights between ends ``(end, ...)``, ``(node, ...)``."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    half = np.diff(ends, axis=0) / 2.0
    at = (ends[:-1] + half)[:, None] + half[:, None] * x.reshape(-1, *[1] * (ends.ndim - 1))
    weights = half[:, None] * w.reshape(-1, *[1] * (ends.ndim - 1)) + 0.0 * at
    return at.reshape(-1, *ends.shape[1:]), weights.reshape(-1, *ends.shape[1:])


def of_log_odds(m: Any, cov: Any) -> tuple[Any, float]:
    """``P(arm is best)`` and the mean diameter of two or three rates whose log odds are normal: the
    difference of two on either side of 0, then their level, then the third arm in between.
    """
    apart, gap = np.array([1.0, -1.0]), m[0] - m[1]
    var = apart @ cov[:2, :2] @ apart
    ends = np.clip(np.array([-9.0, -4.0, -gap / np.sqrt(var), 4.0, 9.0]), -9.0, 9.0)
    d, weights = panels(np.sort(ends), 30)
    slope = cov[:2, :2] @ apart / np.sqrt(var)
    left = np.sqrt(cov[1, 1] - slope[1] ** 2)
    u = np.arange(-9.0, 9.0, 0.2)
    low = m[1] + slope[1] * d[:, None] + left * u  # (d, u)
    z = np.stack([low + gap + np.sqrt(var) * d[:, None], low])
    weights = (weights * stats.norm.pdf(d))[:, None] * stats.norm.pdf(u) * 0.2
    top, bottom = z.max(axis=0), z.min(axis=0)
    if len(m) == 2:
        first = (weights * (z[0] > z[1])).sum()
        return np.array([first, 1.0 - first]), ((expit(top) - expit(bottom)) * weights).sum()
    gain = np.linalg.solve(cov[:2, :2], cov[:2, 2])
    std = np.sqrt(cov[2, 2] - gain @ cov[:2, 2])
    centre = m[2] + np.tensordot(gain, z - m[:2, None, None], 1)
    between = [np.clip((each - centre) / std, -9.0, 9.0) for each in (bottom, top)]
    ends = np.stack([np.full_like(top, -9.0), *between, np.full_like(top, 9.0)])
    t, inner = panels(ends, 30)
    third = centre + std * t
    diameter = expit(np.maximum(third, top)) - expit(np.minimum(third, bottom))
    below = stats.norm.cdf((top - centre) / std)
    law = np.array(
        [(weights * below * (z[0] > z[1])).sum(), (weights * below * (z[0] < z[1])).sum()]
    )
    mean = (weights * (inner * stats.norm.pdf(t) * diameter).sum(axis=0)).sum()
    return np.append(law, 1.0 - law.sum()), mean


def approximate(belief: Any) -> tuple[Any, Any]:
    """The law that the normal approximation plays, and the diameter under the exact posterior."""
    if not belief.pulls.any():
        x = FEATURES if hasattr(belief.prior, "contexts") else np.eye(2)
        law, diameter = of_log_odds(x @ belief.prior.mean, x @ belief.prior.cov @ x.T)
        return law[:1], np.array([diameter])
    if hasattr(belief.prior, "contexts"):
        first = linear(belief)[0]
    else:
        m, root = belief.normal
        apart = root[:, 0] - root[:, 1]
        first = stats.norm.cdf((m[:, 0] - m[:, 1]) / np.sqrt((apart**2).sum(axis=1)))

    def log_likelihood(eta: Any, task: int) -> Any:
        if hasattr(belief.prior, "contexts"):
            arms = (belief.x[task] @ np.linalg.inv(FEATURES)).round().argmax(axis=1)
            signs = 2.0 * belief.r[task] - 1.0
            return log_expit(signs[:, None] * eta[arms]).sum(axis=0)
        s, n = belief.successes[task][:, None], belief.pulls[task][:, None]
        return (s * log_expit(eta) + (n - s) * log_expit(-eta)).sum(axis=0)

    diameters = []
    for task in range(belief.tasks):
        rates, weights = posterior_rates(belief.prior, lambda eta, t=task: log_likelihood(eta, t))
        diameters.append(np.abs(rates[0] - rates[1]) @ weights)
    return first, np.array(diameters)


def click_rewards(prior: Any, arm: int) -> tuple[Any, Any]:
    rates, weights = posterior_rates(prior, lambda _: 0.0)
    mean = rates[arm] @ weights
    return np.array([0.0, 1.0]), np.array([1.0 - mean, mean])


@dataclass(frozen=True)
class Method:
    """How pairs of priors are drawn, and how their integrals are done by hand."""

    pair: Callable[[np.random.Generator], Pair]
    laws: Callable[[Any], tuple[Any, Any]]
    rewards: Callable[[Any, int], tuple[Any, Any]]


def heavy_pair(rng: np.random.Generator) -> Pair:
    """Shapes from .55 to 1 under both priors; everything else differs, too."""

    def prior() -> Any:
        pulls, rate = np.exp(0.5 * rng.normal(size=(2, 2)))
        return pw.NormalGammaPrior(rng.normal(size=2), pulls, rng.uniform(0.55, 1.0, 2), rate)

    return prior(), prior()


def beta_pair(rng: np.random.Generator) -> Pair:
    return tuple(pw.BetaPrior(*np.exp(rng.normal(size=(2, 2)) + 0.5)) for _ in range(2))  # type: ignore[return-value]


def normal_pair(rng: np.random.Generator) -> Pair:
    def prior() -> Any:
        root = rng.normal(size=(2, 2))
        return pw.GaussianPrior(rng.normal(size=2), root @ root.T + 0.1 * np.eye(2))

    return prior(), prior()


def weights_pair(family: Any, scale: float) -> Callable[[np.random.Generator], Pair]:
    """Priors over two weights or two log odds."""

    def pair(rng: np.random.Generator) -> Pair:
        def prior() -> Any:
            root = rng.normal(size=(2, 2))
            cov = scale * (root @ root.T + 0.1 * np.eye(2))
            more = {} if family is pw.LogitNormalPrior else {"contexts": FEATURES}
            return family(rng.normal(size=2), cov, **more)

        return prior(), prior()

    return pair


METHODS = {
    "normal-gamma": Method(heavy_pair, heavy, student_rewards),
    "beta": Method(beta_pair, bounded, binary_rewards),
    "gaussian": Method(normal_pair, normal, normal_rewards),
    "linear": Method(weights_pair(pw.LinearGaussianPrior, 1.0), linear, linear_rewards),
    "logit-normal": Method(weights_pair(pw.LogitNormalPrior, 4.0), approximate, click_rewards),
    "logistic": Method(weights_pair(pw.LogisticPrior, 4.0), approximate, click_rewards),
}


def both_arms(first: Any) -> Any:
    return np.stack([first, 1.0 - first], axis=1)


def exact(p: Any, q: Any, method: Method) -> tuple[float, float]:
    """The rung with one pull, and with two."""
    (law, diameter), (other, _) = (method.laws(each.belief(1)) for each in (p, q))
    mine, theirs = both_arms(law)[0], both_arms(other)[0]
    one = np.maximum(mine - theirs, 0.0).sum() * diameter[0]
    two = one
    for arm in range(2):
        rewards, weights = method.rewards(p, arm)
        shown = features_of(p)
        shown = None if shown is None else np.repeat(shown, len(rewards), axis=0)
        actions, seen = np.full(len(rewards), arm), Seen(1, 2, 2, signal=shown)
        beliefs = [
            each.belief(len(rewards)).update(seen, actions, rewards, None) for each in (p, q)
        ]
        (law, diameter), (other, _) = map(method.laws, beliefs)
        fallen = np.maximum(mine[arm] * both_arms(law) - theirs[arm] * both_arms(other), 0.0)
        two += (weights * fallen.sum(axis=1) * diameter).sum()
    return float(one), float(two)


def check(name: str, pairs: int, seed: int) -> None:
    """With one pull equal to 1e-6 of itself; with two within 5 standard errors, so one false alarm
    in 1.7 million pairs. Tests below are the controls.
    """
    rng, method = np.random.default_rng(seed), METHODS[name]
    scores = []
    for case in range(pairs):
        p, q = method.pair(rng)
        one, two = exact(p, q, method)
        first = walk(p, q, TS, 1, histories=2, seed=seed).parting
        assert first is not None
        assert (first.lost + first.gained)[0] == pytest.approx(one, rel=1e-6, abs=1e-9)
        found = walk(p, q, TS, 2, histories=600, seed=seed + case).parting
        assert found is not None
        width = found.lost + found.gained
        error = width.std(ddof=1) / np.sqrt(len(width)) + 1e-4 * two
        scores.append((width.mean() - two) / error)
    assert np.abs(scores).max() < 5.0, (name, np.round(scores, 2))
    assert abs(np.mean(scores)) < 5.0 / np.sqrt(pairs)  # and no bias either way


@pytest.mark.parametrize("name", METHODS)
def test_the_rung_is_that_of_all_histories(name: str, seed: int) -> None:
    check(name, 4, seed)


@pytest.mark.validate
@pytest.mark.parametrize("name", METHODS)
def test_the_rung_is_that_of_all_histories_on_200_pairs(name: str, seed: int) -> None:
    check(name, 200, seed)


@pytest.mark.validate
def test_the_rung_of_200_finite_pairs(seed: int) -> None:
    """Walks against enumeration; 5 standard errors, one false alarm in 1.7 million pairs."""
    rng = np.random.default_rng(seed)
    for case in range(200):
        means = rng.uniform(size=(3, 2))
        p, q = (
            pw.FinitePrior(means, each / each.sum(), noise="bernoulli")
            for each in rng.uniform(0.05, 1.0, size=(2, 3))
        )
        chain = exact_chain(p, q, TS, 3)
        found = walk(p, q, TS, 3, histories=600, seed=seed + case).parting
        assert found is not None
        width = found.lost + found.gained
        error = width.std(ddof=1) / np.sqrt(len(width)) + 1e-9
        assert abs(width.mean() - chain.likelihood_ratio) < 5.0 * error
        one = walk(p, q, TS, 1, histories=2, seed=seed).parting
        assert one is not None
        known = exact_chain(p, q, TS, 1).likelihood_ratio
        assert (one.lost + one.gained)[0] == pytest.approx(known, abs=1e-12)


def test_draws_of_a_heavy_tailed_diameter_are_noticed(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """The control: tasks as the prior draws them, and draws of the largest and smallest value."""
    prior = pw.NormalGammaPrior
    belief = type(prior([0.0], 1.0, 1.0, 1.0).belief(1))
    monkeypatch.setattr(prior, "sample_size_biased", prior.sample)
    monkeypatch.setattr(prior, "size_ratio", lambda _, belief: np.ones(belief.tasks))
    monkeypatch.setattr(belief, "extremes", lambda *_: None)
    with pytest.raises(AssertionError):
        check("normal-gamma", 4, seed)


@pytest.mark.parametrize("pulls", [1, 2])
def test_log_odds_taken_for_rates_are_noticed(
    pulls: int, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """The control of the logistic rung: the range of log odds, before or after the first pull."""
    belief = type(METHODS["logistic"].pair(np.random.default_rng(seed))[0].belief(1))
    right = belief.extremes

    def wrong(belief: Any, seen: Seen) -> Any:
        return (NormalBelief.extremes if seen.step >= pulls else right)(belief, seen)

    monkeypatch.setattr(belief, "extremes", wrong)
    with pytest.raises(AssertionError):
        check("logistic", 4, seed)


@pytest.mark.parametrize("family", [pw.LogitNormalPrior, pw.LogisticPrior])
def test_one_pull_of_three_arms(family: Any, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """To 1e-6 of itself, and not if the normal distribution function stands for the logistic one
    (control).
    """
    rng, x = np.random.default_rng(seed), np.eye(3)
    more = {}
    if family is pw.LogisticPrior:
        x = rng.normal(size=(3, 4))
        more["contexts"] = x
    for _ in range(3):
        pair, laws = [], []
        for _ in range(2):
            root, mean = rng.normal(size=(2, x.shape[1], x.shape[1]))
            cov = 2.0 * root @ root.T + 0.2 * np.eye(len(root))
            pair.append(family(mean[0], cov, **more))
            laws.append(of_log_odds(x @ mean[0], x @ cov @ x.T))
        known = np.maximum(laws[0][0] - laws[1][0], 0.0).sum() * laws[0][1]

        def width(pair: Any = pair) -> Any:
            found = walk(*pair, TS, 1, histories=2, seed=seed).parting
            assert found is not None
            return found.lost + found.gained

        assert width() == pytest.approx(np.full(2, known), rel=1e-6, abs=1e-9)
        with monkeypatch.context() as other:
            forget()
            other.setattr(extremes, "rates", lambda eta: stats.norm.cdf(eta / 1.702))
            assert abs(width()[0] / known - 1.0) > 1e-5
        forget()


def of_one_factor(m: Any, v: Any, s: Any, rate: Any) -> tuple[Any, float]:
    """``P(arm is best)`` and the mean diameter of ``rate(m + v f + s z)`` with f and z normal.

    Given f, arms are independent: a trapezoidal rule over f and the value of each arm.
    """
    z = np.arange(-9.0, 9.0, 0.06)
    weights = np.outer(stats.norm.pdf(z), stats.norm.pdf(z)) * 0.06**2
    centre = m[:, None] + v[:, None] * z  # (arm, f)
    law, diameter = np.empty(m.size), 0.0
    for arm in range(m.size):
        x = centre[arm][:, None] + s[arm] * z  # (f, value)
        t = (x - np.delete(centre, arm, axis=0)[:, :, None]) / np.delete(s, arm)[:, None, None]
        below, above = ndtr(t).prod(axis=0), ndtr(-t).prod(axis=0)
        law[arm] = (weights * below).sum()
        diameter += (weights * rate(x) * (below - above)).sum()
    return law, diameter


FAMILIES = {
    "gaussian": pw.GaussianPrior,
    "linear": pw.LinearGaussianPrior,
    "logit-normal": pw.LogitNormalPrior,
    "logistic": pw.LogisticPrior,
}


def one_factor_pair(name: str, arms: int, rng: np.random.Generator) -> tuple[Pair, float]:
    """Two priors of arms that one factor moves, and the rung with one pull."""
    family, pair, laws = FAMILIES[name], [], []
    x, more = np.eye(arms), {}
    if name in ("linear", "logistic"):
        x = np.linalg.qr(rng.normal(size=(arms, arms)))[0] * rng.uniform(0.5, 2.0, (arms, 1))
        more["contexts"] = x
    rate = expit if name.startswith("logi") else np.asarray
    for _ in range(2):
        m, v = rng.normal(size=(2, arms))
        s = rng.uniform(0.3, 1.2, arms)
        back = np.linalg.inv(x)
        cov = back @ (np.diag(s**2) + np.outer(v, v)) @ back.T
        pair.append(family(back @ m, (cov + cov.T) / 2.0, **more))
        laws.append(of_one_factor(m, v, s, rate))
    return (pair[0], pair[1]), np.maximum(laws[0][0] - laws[1][0], 0.0).sum() * laws[0][1]


def forget() -> None:
    """Compute all anew, also after a control."""
    for each in (argmax._first_law, argmax._first_largest, extremes._ends):
        each.cache_clear()


def one_pull(pair: Pair, seed: int) -> Any:
    found = walk(*pair, TS, 1, histories=2, seed=seed).parting
    assert found is not None
    return found.lost + found.gained


@pytest.mark.parametrize("arms", [4, 5, 6])
@pytest.mark.parametrize("name", FAMILIES)
def test_one_pull_of_more_arms(
    name: str, arms: int, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """To 1e-6 of itself, and not if differences of arms are taken for independent (control)."""
    pair, known = one_factor_pair(name, arms, np.random.default_rng([seed, arms]))
    assert one_pull(pair, seed) == pytest.approx(np.full(2, known), rel=1e-6, abs=1e-9)
    with monkeypatch.context() as other:
        forget()
        for module in (argmax, extremes):
            other.setattr(module, "all_below", lambda limits, _: ndtr(limits).prod(axis=1))
        assert abs(one_pull(pair, seed)[0] / known - 1.0) > 1e-4
    forget()


@pytest.mark.validate
@pytest.mark.parametrize("arms", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("name", FAMILIES)
def test_one_pull_of_200_pairs(name: str, arms: int, seed: int) -> None:
    rng = np.random.default_rng([seed, arms])
    for _ in range(200):
        pair, known = one_factor_pair(name, arms, rng)
        assert one_pull(pair, seed) == pytest.approx(np.full(2, known), rel=1e-6, abs=1e-9)


def test_one_pull_of_seven_arms_is_drawn(seed: int) -> None:
    """Beyond six correlated arms the law has an error, and histories scatter."""
    pair, known = one_factor_pair("gaussian", 7, np.random.default_rng(seed))
    found = walk(*pair, TS, 1, histories=400, seed=seed).parting
    assert found is not None
    width = found.lost + found.gained
    error = width.std(ddof=1) / np.sqrt(len(width))
    assert error > 0.0
    assert abs(width.mean() - known) < 5.0 * error + found.off.mean()  # false alarms: 6e-7


def test_one_pull_with_rates_near_the_edge(seed: int) -> None:
    """Log odds with a wide scale, in which the turn of the logistic function is narrow."""
    p = pw.BetaPrior([0.6591462, 0.07375962], [0.15462668, 0.2530316])
    q = pw.BetaPrior([0.78380724, 0.40459402], [4.57471801, 1.64329503])
    for first, second in ((p, q), (q, p)):
        known = exact(first, second, METHODS["beta"])[0]
        found = walk(first, second, TS, 1, histories=2, seed=seed).parting
        assert found is not None
        assert (found.lost + found.gained)[0] == pytest.approx(known, rel=1e-8)


def test_one_pull_with_heavy_tails_leaves_nothing_to_chance(seed: int) -> None:
    p, q = (pw.NormalGammaPrior([0.0, mean], 1.0, 0.6, 1.0) for mean in (1.0, 1.5))
    known = exact(p, q, METHODS["normal-gamma"])[0]
    ladder = pw.sensitivity_ladder(p, q, TS, 1, seed=seed, tasks=1000)
    rung = ladder[LIKELIHOOD]
    assert known == pytest.approx(0.5087, abs=5e-5)
    assert rung.reward == pytest.approx(known, rel=1e-6)
    assert rung.reward_std_error == 0.0
    assert rung.delta == pytest.approx(ladder[COUPLED].delta, rel=1e-9)


@pytest.mark.parametrize("shape", [0.5, 0.51])
def test_a_diameter_without_a_mean_raises_an_error(shape: float, seed: int) -> None:
    p, q = (pw.NormalGammaPrior([0.0, mean], 1.0, shape, 1.0) for mean in (1.0, 1.5))
    with raises("shape", "must be above"):
        pw.sensitivity_ladder(p, q, TS, 1, seed=seed)
    if shape == 0.5:
        assert np.isinf(p.belief(1).extremes(Seen(1, 1, 2))).all()


@pytest.mark.parametrize("shape", [0.6, 1.5])
def test_size_biased_tasks_have_the_density_they_say(shape: float, seed: int) -> None:
    """Means of bounded functions of 200,000 size-biased tasks, weighted back, are those of the
    prior; 5.5 standard errors, false alarms below 1e-7. The control leaves the weights out.
    """
    from priorwise.core.streams import Purpose, Streams

    prior = pw.NormalGammaPrior([0.0, 1.0, 0.5], [1.0, 0.5, 2.0], shape, 1.0)
    tasks = 200_000
    streams = Streams(seed, np.arange(tasks, dtype=np.uint64))
    biased = prior.sample_size_biased(streams.at(Purpose.ENVIRONMENT, 0), tasks)
    constant, deviations = prior._size
    size = constant + np.abs(biased.means - prior.mean).sum(axis=1)
    weight = (constant + deviations.sum()) / size
    near = stats.t(2.0 * shape, prior.mean, prior.scale).cdf
    for values, known in (
        (np.ones(tasks), 1.0),
        (biased.means[:, 0] < 0.3, near(0.3)[0]),
        (biased.means[:, 1] < -1.0, near(-1.0)[1]),
        (biased.noise_std[:, 2] < 1.0, stats.gamma(shape).sf(1.0)),
    ):
        each = weight * values
        error = each.std() / np.sqrt(tasks)
        assert abs(each.mean() - known) < 5.5 * error
        assert known == 1.0 or abs(np.mean(values) - known) > 5.5 * error
    # with every reward seen, a belief is certain of its task
    belief = prior.belief(4)
    assert prior.size_ratio(belief) == pytest.approx(np.ones(4), rel=1e-12)
