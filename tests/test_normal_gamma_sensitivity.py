"""Distances and tails of normal-gamma priors, and the inequalities of the theory on small problems
with every integral done.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from raising import raises
from scipy import stats
from scipy.integrate import quad

import priorwise as pw
from priorwise.core.protocols import Seen
from priorwise.core.streams import Purpose, Streams
from priorwise.families.normal_gamma.distance import NormalGammaPair
from priorwise.families.normal_gamma.posteriors import NormalGammaPosteriors
from priorwise.sensitivity.distance.measures import _estimate
from priorwise.sensitivity.tails.diameter import sample_law

NG = pw.NormalGammaPrior
TS = pw.ThompsonSampling()


def one_arm(rng: np.random.Generator, spread: float = 0.5) -> tuple[float, ...]:
    return (rng.normal(), *np.exp(spread * rng.normal(size=3) + 0.7))


def prior_of(*rows: tuple[float, ...]) -> Any:
    return NG(*np.array(rows).T)


def on_a_grid(p: tuple[float, ...], q: tuple[float, ...]) -> tuple[float, float, float]:
    """Total variation, log affinity and KL of one arm, by a sum over a grid."""
    u, s = np.linspace(-24.0, 6.0, 1501), np.linspace(-16.0, 16.0, 3201)
    x, weight = 0.05 * np.sinh(s), 0.05 * np.cosh(s) * (s[1] - s[0]) * (u[1] - u[0])
    lam = np.exp(u)[:, None]

    def density(m: float, k: float, a: float, b: float) -> Any:
        gamma = stats.gamma.pdf(lam, a, scale=1.0 / b) * lam
        return gamma * stats.norm.pdf(x, m, 1.0 / np.sqrt(k * lam))

    f, g = density(*p), density(*q)
    logs = np.log(np.maximum(f, 1e-300)) - np.log(np.maximum(g, 1e-300))
    return (
        float((np.abs(f - g) * weight).sum() / 2.0),
        float(np.log((np.sqrt(f * g) * weight).sum())),
        float((f * logs * weight).sum()),
    )


@pytest.mark.slow
def test_distances_of_one_arm_on_a_grid(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for case in range(6):
        p = one_arm(rng)
        m, k, a, b = p
        q = (one_arm(rng), (m, k, 1.5 * a, b), (m + 0.4, k, a, 2.0 * b), (m + 0.4, k, a, b),
             (m, 3.0 * k, a, b), (m - 0.2, 0.5 * k, a, b))[case]  # fmt: skip
        pair = NormalGammaPair.of(prior_of(p), prior_of(q))
        tv, affinity, kl = on_a_grid(p, q)
        assert pair.total_variation() == pytest.approx(tv, abs=2e-4)
        assert pair.log_affinity() == pytest.approx(affinity, abs=2e-4)
        assert pair.kl() == pytest.approx(kl, abs=2e-3)
        back = NormalGammaPair.of(prior_of(q), prior_of(p))
        assert back.total_variation() == pytest.approx(pair.total_variation(), abs=1e-12)
        assert back.kl() == pytest.approx(pair.reverse_kl(), abs=1e-12)


def test_total_variation_that_is_known_otherwise() -> None:
    """Equal precisions: a mixture of normal distances over them; equal means: that of Gammas."""
    p, q = NG([0.0], 2.0, 3.0, 1.5), NG([0.6], 2.0, 3.0, 1.5)
    gamma = stats.gamma(3.0, scale=1 / 1.5)
    known = quad(
        lambda x: (2.0 * stats.norm.cdf(0.3 * np.sqrt(2.0 * x)) - 1.0) * gamma.pdf(x), 0.0, 60.0
    )[0]
    assert pw.total_variation(p, q).value == pytest.approx(known, abs=1e-9)
    other = stats.gamma(3.0, scale=1 / 2.5)
    cross = 3.0 * np.log(2.5 / 1.5)  # x at which the densities cross
    known = other.cdf(cross) - gamma.cdf(cross)
    found = pw.total_variation(p, NG([0.0], 2.0, 3.0, 2.5))
    assert (found.kind, found.value) == ("exact", pytest.approx(known, abs=1e-10))


def test_distances_of_laws_that_nearly_agree_or_exclude_each_other() -> None:
    p = NG([0.3], 1.0, 3.0, 2.0)
    shares = []
    for step in (1e-3, 1e-6, 1e-9):
        q = NG([0.3 + step], 1.0 + step, 3.0 - step, 2.0 + step)
        pair = NormalGammaPair.of(p, q)
        tv = pair.total_variation()
        assert tv is not None
        shares.append((tv / step, pair.kl() / step**2, pair.log_affinity() / step**2))
    np.testing.assert_allclose(shares[1], shares[0], rtol=1e-3)
    np.testing.assert_allclose(shares[2], shares[1], rtol=1e-5)
    far = NG([300.0], 1.0, 3e3, 2e-8)
    assert pw.total_variation(p, far).value == pytest.approx(1.0, abs=1e-9)
    assert pw.total_variation(p, p).value == 0.0


def test_bounds_and_estimate_enclose_the_exact_distance(seed: int) -> None:
    """One arm, whose distance is exact; the estimate is within 5.5 standard errors (1e-7)."""
    rng = np.random.default_rng(seed)
    for _ in range(10):
        p, q = prior_of(one_arm(rng)), prior_of(one_arm(rng))
        pair = NormalGammaPair.of(p, q)
        exact = pair.total_variation()
        assert exact is not None
        assert -np.expm1(pair.log_affinity()) <= exact + 1e-12
        assert exact <= np.sqrt(-np.expm1(2.0 * pair.log_affinity())) + 1e-12
        assert exact <= np.sqrt(min(pair.kl(), pair.reverse_kl()) / 2.0) + 1e-12
        mean, error = _estimate(pair, seed, 20_000)
        assert abs(mean - exact) < 5.5 * error


def test_several_arms_are_estimated_within_certified_bounds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [one_arm(rng) for _ in range(3)]
    p, q = prior_of(*rows), prior_of(*((m + 0.2, 1.1 * k, a, b) for m, k, a, b in rows))
    found = pw.total_variation(p, q, seed=seed, draws=20_000)
    assert found.kind == "estimate"
    assert found.value <= found.upper
    assert pw.total_variation(p, q, estimate=False).value == found.upper
    parts = NormalGammaPair.of(p, q).parts()
    assert parts.max() - 5.0 * found.std_error <= found.value


def test_posteriors_of_a_history_are_compared_as_priors_are(seed: int) -> None:
    """One task, many draws: the mean of the ladder's unbiased estimate is the exact distance of the
    posteriors, to 5.5 standard errors (1e-7); and what a shared draw of the means leaves is theirs.
    """
    tasks = 20_000
    p, q = NG([0.0, 0.3], 1.0, 2.0, 1.0), NG([0.5, 0.3], 1.0, 2.0, 1.0)
    pair = NormalGammaPosteriors.start(p, q, tasks)
    rewards = np.full(tasks, 0.8)
    for step in (1, 2):
        pair = pair.update(Seen(step, 5, 2), np.zeros(tasks, np.int64), rewards, None)
    rng = Streams(seed, np.arange(tasks, dtype=np.uint64)).at(Purpose.POLICY, 1)
    values = pair.total_variation(rng)
    one, two = (
        NG(*(getattr(each, name)[0] for name in ("m", "k", "a", "b"))) for each in (pair.p, pair.q)
    )
    exact = pw.total_variation(one, two).value
    assert abs(values.mean() - exact) < 5.5 * values.std() / np.sqrt(tasks)
    shared = pair.shared(rng, 1)[:, 0]
    first, second = (
        stats.t(2.0 * each.a[0, 0], each.m[0, 0], each.scale[0, 0]) for each in (pair.p, pair.q)
    )
    means = quad(lambda x: abs(first.pdf(x) - second.pdf(x)) / 2.0, -40.0, 40.0, limit=400)[0]
    assert abs(1.0 - shared.mean() - means) < 5.5 * shared.std() / np.sqrt(tasks) + 1e-6
    assert means < exact  # less is seen of the means alone


def test_expected_diameter_of_two_arms_by_quadrature() -> None:
    """E|mu_1 - mu_2| = integral of F (1 - G) + G (1 - F)."""
    prior = NG([0.0, 0.4], [1.0, 2.0], [2.0, 1.1], [1.0, 3.0])
    one, two = (
        stats.t(f, m, s) for f, m, s in zip(prior.freedom, prior.mean, prior.scale, strict=True)
    )
    known = sum(
        quad(lambda x: one.cdf(x) * two.sf(x) + two.cdf(x) * one.sf(x), *ends, limit=500)[0]
        for ends in ((-np.inf, 0.0), (0.0, np.inf))
    )
    assert pw.tail_expectation(prior, 1.0).value == pytest.approx(known, rel=1e-7)


@pytest.mark.slow
def test_tail_expectations_against_draws(seed: int) -> None:
    """200,000 diameters; within 5.5 standard errors where the variance is finite (1e-7)."""
    for shape in (1.5, 4.0, 1e5):
        prior = NG([0.0, 0.5, 0.2], [1.0, 2.0, 0.5], shape, shape)
        drawn = sample_law(prior, 1, seed=seed, draws=200_000)
        last = 0.0
        for p in (1.0, 0.3, 0.02):
            found, sampled = pw.tail_expectation(prior, p), drawn.tail(p)
            assert found.kind == "exact"
            assert abs(found.value - sampled.value) < 5.5 * sampled.std_error
            assert last < found.value <= pw.tail_expectation(prior, p, condition="student").value
            last = found.value


def test_only_the_general_condition_holds() -> None:
    prior = NG([0.0, 0.5], 1.0, 3.0, 1.0)
    for condition in ("subgaussian", "subgamma", "bounded", "normal"):
        with raises("condition", "not known to hold"):
            pw.tail_expectation(prior, 0.1, condition=condition)
    assert pw.tail_expectation(prior, 0.0).value == np.inf
    assert pw.tail_expectation(NG([0.3], 1.0, 0.4, 1.0), 0.1).value == 0.0  # one arm


NODES, WEIGHTS = np.polynomial.legendre.leggauss(120)


def two_pulls(true: Any, held: Any, other: Any) -> tuple[float, float, float, float]:
    """Expected reward of two pulls under Thompson sampling that holds ``held``, the same with
    ``other``, the total variation of the two trajectories, and its first-step part; the first
    reward integrated over the quantiles of its law.
    """
    arms = true.arms
    u = (NODES + 1.0) / 2.0
    nodes, weights = 3.0 * u**2 - 2.0 * u**3, WEIGHTS / 2.0 * 6.0 * u * (1.0 - u)
    start = Seen(1, 2, arms)
    laws = [TS.probabilities(each.belief(1), start).probs[0] for each in (held, other)]  # type: ignore[union-attr]
    rewards = [float(law @ true.mean) for law in laws]
    apart = 0.0
    for arm in range(arms):
        k, a, b = true.pulls[arm], true.shape[arm], true.rate[arm]
        r = true.mean[arm] + np.sqrt(b * (k + 1.0) / (a * k)) * stats.t(2.0 * a).ppf(nodes)
        beliefs = [
            each.belief(len(r)).update(start, np.full(len(r), arm), r, None)
            for each in (true, held, other)
        ]
        seconds = [TS.probabilities(each, Seen(2, 2, arms)).probs for each in beliefs[1:]]
        for index, (law, second) in enumerate(zip(laws, seconds, strict=True)):
            rewards[index] += law[arm] * float(weights @ (second * beliefs[0].m).sum(axis=1))
        moved = np.abs(laws[0][arm] * seconds[0] - laws[1][arm] * seconds[1]).sum(axis=1) / 2.0
        apart += float(weights @ moved)
    return rewards[0], rewards[1], apart, float(np.abs(laws[0] - laws[1]).sum() / 2.0)


@pytest.mark.slow
def test_bounds_hold_on_random_problems_of_two_pulls(seed: int) -> None:
    """Rewards and trajectories of two pulls with every integral done, against the theorem; a bound
    with a constant 8 times too small is caught.
    """
    rng = np.random.default_rng(seed)
    caught = 0
    for case in range(30):
        rows = [one_arm(rng, 0.4) for _ in range(2 + case % 2)]
        true = prior_of(*rows)
        m, k, a, b = rows[0]
        step = (0.01, 0.1, 0.5, 2.0)[case % 4]
        rows[0] = ((m + step, k, a, b), (m, k * np.exp(step), a, b), (m, k, a, b * np.exp(step)))[
            case % 3
        ]
        held = prior_of(*rows)
        own, wrong, apart, first = two_pulls(true, true, held)
        bound, far = pw.reward_bound(true, held, TS, 2), pw.trajectory_bound(true, held, TS, 2)
        eps = pw.total_variation(true, held).value
        assert first <= eps + 1e-7
        assert apart <= min(1.0, 4.0 * eps) + 1e-7
        assert apart <= far.value + 1e-7
        assert abs(own - wrong) <= bound.value + 1e-7
        caught += apart > 4.0 * eps / 8.0
    assert caught > 2


@pytest.mark.slow
def test_the_simulated_ladder_contains_the_exact_numbers(seed: int) -> None:
    """Two arms, two pulls: gap and coupled trajectories by quadrature lie within 5 standard
    errors.
    """
    true, held = NG([0.2, 0.0], 1.0, 2.0, 1.0), NG([0.7, 0.0], 1.0, 2.0, 1.0)
    own, wrong, apart, _ = two_pulls(true, true, held)
    ladder = pw.sensitivity_ladder(true, held, TS, 2, seed=seed, tasks=100_000, histories=400)
    assert ladder.in_order, ladder.disorders
    assert abs(ladder.gap.mean - (wrong - own)) < 5.0 * ladder.gap.std_error
    coupled = ladder["coupled trajectories"]
    assert apart <= coupled.delta + 5.0 * coupled.std_error


def test_a_named_wrong_prior_loses(seed: int) -> None:
    """Rewards thought 7.4 times as variable as they are: more than 5 paired standard errors."""
    true, wrong = (NG([0.5, 0.0, 0.0, 0.1, 0.0, 0.0], 1.0, 3.0, 3.0 * f) for f in (1.0, 7.4))
    runs = [
        pw.simulate(true, TS, horizon=10, tasks=2000, seed=seed, believed=each, keep=True)
        for each in (true, wrong)
    ]
    lost = (runs[0].rewards - runs[1].rewards).sum(axis=1)
    assert lost.mean() > 5.0 * lost.std() / np.sqrt(len(lost))
