"""Mixtures: tail expectations and laws of actions as sums over components, and total variation,
against quadrature, enumeration and brute force.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from raising import raises
from scipy import integrate, optimize, stats

import priorwise as pw
from priorwise.core.protocols import Seen
from priorwise.families.mixture.tails import MixedTails
from priorwise.policies.laws import known_law
from priorwise.sensitivity import tail_expectation, total_variation
from priorwise.sensitivity.distance import measures
from priorwise.sensitivity.tails.diameter import conditions_of, sample_law


def mixture(parts: Any, probs: Any) -> pw.MixturePrior:
    return pw.MixturePrior(parts, probs)


def betas(probs: Any, *pairs: Any) -> pw.MixturePrior:
    return mixture([pw.BetaPrior(a, b) for a, b in pairs], probs)


def normals(probs: Any, *pairs: Any) -> pw.MixturePrior:
    return mixture([pw.GaussianPrior(m, np.diag(v), 1.0) for m, v in pairs], probs)


def unknown(mean: float, shape: float) -> pw.NormalGammaPrior:
    return pw.NormalGammaPrior([mean], 2.0, shape, 1.5)


ONE = (
    betas([0.3, 0.7], ([2.0], [5.0]), ([6.0], [3.0])),
    betas([0.5, 0.5], ([3.0], [4.0]), ([6.0], [2.5])),
)
TWO = (
    normals([0.6, 0.4], ([0.0, 0.3], [1.0, 0.5]), ([1.0, 0.0], [0.3, 2.0])),
    normals([0.5, 0.5], ([0.2, 0.3], [1.2, 0.5]), ([0.9, -0.4], [0.3, 1.5])),
)
RATES = (
    mixture([pw.BetaPrior([2.0], [5.0]), pw.LogitNormalPrior([0.5], [[0.6]])], [0.4, 0.6]),
    mixture([pw.BetaPrior([2.5], [5.0]), pw.LogitNormalPrior([0.1], [[0.9]])], [0.7, 0.3]),
)
UNKNOWN = (
    mixture([unknown(0.0, 2.0), unknown(1.0, 3.0)], [0.5, 0.5]),
    mixture([unknown(0.2, 2.5), unknown(1.0, 3.0)], [0.3, 0.7]),
)


def by_quadrature(p: Any, q: Any, low: Any, high: Any, density: Any) -> float:
    """``integral |p - q| / 2`` by a fine grid of midpoints."""
    axes = [np.linspace(a, b, 2001) for a, b in zip(low, high, strict=True)]
    middles = [(axis[1:] + axis[:-1]) / 2.0 for axis in axes]
    grid = np.stack([each.ravel() for each in np.meshgrid(*middles, indexing="ij")], axis=1)
    cell = float(np.prod([axis[1] - axis[0] for axis in axes]))
    sums = [
        sum(w * density(part, grid) for part, w in zip(each.components, each.probs, strict=True))
        for each in (p, q)
    ]
    assert sums[0].sum() * cell == pytest.approx(1.0, abs=1e-3)
    return float(np.abs(sums[0] - sums[1]).sum() * cell / 2.0)


def beta_density(part: Any, x: Any) -> Any:
    return np.prod(stats.beta.pdf(x, part.alpha, part.beta), axis=1)


def normal_density(part: Any, x: Any) -> Any:
    return np.prod(stats.norm.pdf(x, part.mean, np.sqrt(np.diag(part.cov))), axis=1)


def rate_density(part: Any, x: Any) -> Any:
    if isinstance(part, pw.BetaPrior):
        return beta_density(part, x)
    logit = np.log(x / (1.0 - x))
    return np.prod(stats.norm.pdf(logit, part.mean, part.cov[0, 0] ** 0.5) / x / (1.0 - x), axis=1)


def unknown_density(part: Any, x: Any) -> Any:
    mu, lam = x.T
    of_mean = stats.norm.pdf(mu, part.mean[0], 1.0 / np.sqrt(part.pulls[0] * lam))
    return of_mean * stats.gamma.pdf(lam, part.shape[0], scale=1.0 / part.rate[0])


@pytest.mark.parametrize(
    ("pair", "low", "high", "density"),
    [
        (ONE, [0.0], [1.0], beta_density),
        (TWO, [-7.0, -9.0], [7.0, 9.0], normal_density),
        (RATES, [0.0], [1.0], rate_density),
        (UNKNOWN, [-8.0, 1e-4], [9.0, 14.0], unknown_density),
    ],
    ids=["beta", "gaussian", "beta and logit-normal", "normal-gamma"],
)
@pytest.mark.slow
def test_total_variation(pair: Any, low: Any, high: Any, density: Any, seed: int) -> None:
    """The estimate is within 5 standard errors of quadrature (false alarms 6e-7) and the bound
    holds; other weights are further off (control).
    """
    p, q = pair
    want = by_quadrature(p, q, low, high, density)
    found = total_variation(p, q, seed=seed, draws=100_000)
    assert found.kind == "estimate"
    assert abs(found.value - want) < 5.0 * found.std_error + 1e-4
    assert want <= found.upper < 1.0
    assert total_variation(p, q, estimate=False) == measures.Distance(
        found.upper, "upper", 0.0, found.upper
    )
    moved = mixture(q.components, [0.95, 0.05])
    other = total_variation(p, moved, seed=seed, draws=100_000)
    assert abs(other.value - want) > 5.0 * other.std_error + 1e-3


def test_the_best_coupling_is_that_of_equal_shares() -> None:
    """Probabilities in quarters: the best assignment of four shares to four."""
    p = betas([0.5, 0.25, 0.25], ([2.0], [5.0]), ([4.0], [4.0]), ([7.0], [2.0]))
    q = betas([0.25, 0.75], ([5.0], [4.0]), ([2.2], [5.0]))
    shares = [[p.components[k] for k in (0, 0, 1, 2)], [q.components[k] for k in (0, 1, 1, 1)]]
    costs = np.array([[total_variation(a, b).value for b in shares[1]] for a in shares[0]])
    rows, columns = optimize.linear_sum_assignment(costs)
    want = costs[rows, columns].mean()
    found = total_variation(p, q, estimate=False)
    assert found.upper == pytest.approx(want, abs=1e-8)
    assert costs.mean() > want + 0.05  # control: independent components


def test_known_distances(seed: int) -> None:
    p = TWO[0]
    assert total_variation(p, mixture(p.components, p.probs)).value == 0.0
    one, two = p.components
    alone = total_variation(mixture([one, two], [1.0, 0.0]), mixture([two, one], [0.0, 1.0]))
    assert alone.kind == "exact"
    assert alone.value == 0.0
    far = normals([0.5, 0.5], ([0.0, 0.0], [1.0, 1.0]), ([90.0, 0.0], [1.0, 1.0]))
    moved = mixture(far.components, [0.2, 0.8])
    assert total_variation(far, moved, estimate=False).value == pytest.approx(0.3, abs=1e-8)
    lines = [pw.GaussianPrior([0.0, m], np.ones((2, 2)), 1.0) for m in (0.0, 1.0)]
    singular = mixture(lines, [0.5, 0.5])
    bound = total_variation(singular, mixture(singular.components, [0.4, 0.6]), seed=seed)
    assert bound.kind == "upper"
    assert bound.value == pytest.approx(0.1, abs=1e-8)
    with raises("seed", "is missing: the total variation between"):
        total_variation(*TWO)


def test_mixtures_of_finite_priors_are_one_prior() -> None:
    means = [[0.1, 0.9], [0.5, 0.4]], [[0.5, 0.4], [0.8, 0.2]]
    first, second = (pw.FinitePrior(each, [0.3, 0.7], noise="bernoulli") for each in means)
    p, q = mixture([first, second], [0.5, 0.5]), mixture([first, second], [0.2, 0.8])
    points = [[0.1, 0.9], [0.5, 0.4], [0.8, 0.2]]
    as_one = [
        pw.FinitePrior(points, [0.3 * w, 0.7 * w + 0.3 * (1 - w), 0.7 * (1 - w)], noise="bernoulli")
        for w in (0.5, 0.2)
    ]
    found = total_variation(p, q)
    assert found.kind == "exact"
    assert found.value == pytest.approx(total_variation(*as_one).value, abs=1e-12)
    for level in (0.0, 0.1, 0.4, 1.0):
        tail = tail_expectation(p, level)
        assert tail.kind == "exact"
        assert tail.value == pytest.approx(tail_expectation(as_one[0], level).value, abs=1e-12)


# Tails


def test_tails_of_two_normal_arms_are_those_of_quadrature() -> None:
    """``min_q q + E(|X| - q)_+ / p`` with X a mixture of two normal differences."""
    prior = TWO[0]
    gaps = [(m.mean[0] - m.mean[1], float(np.sqrt(np.trace(m.cov)))) for m in prior.components]

    def excess(q: float) -> float:
        total = 0.0
        for w, (gap, std) in zip(prior.probs, gaps, strict=True):
            law = stats.norm(gap, std)
            up = integrate.quad(lambda x, law=law: (x - q) * law.pdf(x), q, 40.0)[0]
            down = integrate.quad(lambda x, law=law: (-x - q) * law.pdf(x), -40.0, -q)[0]
            total += w * (up + down)
        return float(total)

    for level in (0.01, 0.2, 0.7, 1.0):
        line = optimize.minimize_scalar(
            lambda q, level=level: q + excess(q) / level, bounds=(0.0, 12.0), method="bounded",
            options={"xatol": 1e-6},
        )  # fmt: skip
        want = excess(0.0) if level == 1.0 else float(line.fun)
        found = tail_expectation(prior, level)
        assert found.kind == "exact"
        assert found.value == pytest.approx(want, abs=1e-7)
        naive = sum(
            w * tail_expectation(part, level).value
            for part, w in zip(prior.components, prior.probs, strict=True)
        )
        assert level == 1.0 or naive < want - 1e-3  # control: one level for all components


@pytest.mark.parametrize(
    "prior",
    [
        betas([0.3, 0.7], ([2.0, 3.0], [5.0, 1.0]), ([6.0, 1.0], [3.0, 1.0])),
        mixture(
            [
                pw.BetaPrior([2.0, 1.0], 5.0),
                pw.FinitePrior([[0.0, 1.0]], [1.0], noise="bernoulli"),
            ],
            [0.8, 0.2],
        ),
        mixture([pw.NormalGammaPrior([m, 0.0], 2.0, 3.0, 1.5) for m in (0.0, 2.0)], [0.5, 0.5]),
    ],
    ids=["beta", "beta and one task", "normal-gamma"],
)
def test_tails_are_those_of_draws(prior: Any, seed: int) -> None:
    """Within 5 standard errors of 200,000 draws (false alarms 6e-7); the bound of the components'
    conditions holds, and the tail of the second component alone is another (control).
    """
    drawn = sample_law(prior, 1, seed=seed, draws=200_000)
    for level in (0.01, 0.1, 0.5, 1.0):
        found, sampled = tail_expectation(prior, level), drawn.tail(level)
        assert found.kind == "exact"
        assert abs(found.value - sampled.value) < 5.0 * sampled.std_error + 1e-4
        for condition in conditions_of(prior):
            assert condition.tail(level) >= found.value - 1e-9
    alone = tail_expectation(prior.components[1], 0.5).value
    assert abs(alone - drawn.tail(0.5).value) > 5.0 * drawn.tail(0.5).std_error


def test_conditions_add_up(seed: int) -> None:
    prior = TWO[0]
    (mixed,) = conditions_of(prior)
    assert isinstance(mixed, MixedTails)
    parts = [tail_expectation(each, 0.0, condition="normal").value for each in prior.components]
    assert mixed.tail(0.0) == max(parts)
    # at level 1 the mean of the means
    ones = [min(c.tail(1.0) for c in conditions_of(each)) for each in prior.components]
    assert mixed.tail(1.0) <= float(prior.probs @ ones) + 1e-12
    assert mixed.tail(1.0) >= tail_expectation(prior, 1.0).value
    one = mixture([prior.components[0]], [1.0])
    for level in (0.05, 0.6):
        exact = tail_expectation(prior.components[0], level).value
        assert tail_expectation(one, level).value == pytest.approx(exact, abs=1e-9)
    assert (
        0.0
        < pw.reward_bound(*TWO, pw.ThompsonSampling(), 5, estimate=True, seed=seed).value
        < np.inf
    )


# Laws of actions


def test_the_law_of_a_draw_is_a_sum_over_components() -> None:
    """Two Beta arms after three pulls: weights from the marginal likelihood, and ``P(x > y)`` by
    quadrature; with the weights of the prior it is another (control).
    """
    prior = betas([0.3, 0.7], ([2.0, 3.0], [5.0, 1.0]), ([6.0, 1.0], [3.0, 1.0]))
    belief, seen = prior.belief(1), Seen(4, 9, 2)
    pulls = [(0, 1.0), (0, 0.0), (1, 1.0)]
    for step, (arm, reward) in enumerate(pulls, start=1):
        belief = belief.update(Seen(step, 9, 2), np.array([arm]), np.array([reward]), None)
    weights, shares = [], []
    for w, part in zip(prior.probs, prior.components, strict=True):
        a, b, likelihood = part.alpha.copy(), part.beta.copy(), w
        for arm, reward in pulls:
            likelihood *= (a if reward else b)[arm] / (a + b)[arm]
            (a if reward else b)[arm] += 1.0
        weights.append(likelihood)
        shares.append(
            integrate.quad(
                lambda x, a=a, b=b: stats.beta.pdf(x, a[0], b[0]) * stats.beta.cdf(x, a[1], b[1]),
                0.0, 1.0, epsabs=1e-12,
            )[0]
        )  # fmt: skip
    first = float(np.dot(weights, shares) / np.sum(weights))
    for policy in (pw.ThompsonSampling(), pw.PosteriorSampling(1, "sum")):
        law = known_law(policy, belief, seen)
        assert law is not None
        assert law.source == "quadrature"
        np.testing.assert_allclose(law.probs, [[first, 1.0 - first]], atol=1e-8)
    assert abs(float(np.dot(prior.probs, shares)) - first) > 1e-3
    assert known_law(pw.KShotThompson(2), belief, seen) is None
    top = known_law(pw.TopTwoThompson(0.5, most_draws=3), belief, seen)
    assert top is not None


def test_the_law_of_a_mixture_of_finite_priors_is_exact() -> None:
    means = [[0.1, 0.9], [0.5, 0.4]], [[0.5, 0.4], [0.8, 0.2]]
    parts = [pw.FinitePrior(each, [0.3, 0.7], noise="bernoulli") for each in means]
    points = [[0.1, 0.9], [0.5, 0.4], [0.8, 0.2]]
    one = pw.FinitePrior(points, [0.12, 0.28 + 0.18, 0.42], noise="bernoulli")
    seen, pull = Seen(1, 3, 2), (np.array([0]), np.array([1.0]), None)
    for policy in (pw.ThompsonSampling(), pw.PosteriorSampling(1, "softmax")):
        beliefs = [mixture(parts, [0.4, 0.6]).belief(1), one.belief(1)]
        mixed, plain = (known_law(policy, each.update(seen, *pull), seen) for each in beliefs)
        assert mixed is not None
        assert plain is not None
        assert mixed.source == "exact"
        np.testing.assert_allclose(mixed.probs, plain.probs, atol=1e-12)
