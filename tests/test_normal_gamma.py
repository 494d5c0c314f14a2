"""Unknown mean and variance: the posterior in fractions, and its laws by quadrature."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from raising import raises
from scipy import stats
from scipy.integrate import quad

import priorwise as pw
from priorwise.core.protocols import Seen
from priorwise.core.streams import Purpose, Streams, streams
from priorwise.families.normal_gamma import student
from priorwise.families.normal_gamma.prior import NormalGammaBelief
from priorwise.families.normal_gamma.student import StandardStudent
from priorwise.testing.calibration import Gullible
from priorwise.testing.playing import play
from priorwise.theory.largest import argmax_probabilities

NG = pw.NormalGammaPrior
TS = pw.ThompsonSampling()
PRIOR = NG([0.5, 0.0, 0.1], [1.0, 2.0, 0.5], [3.0, 0.8, 1.2], [2.0, 1.0, 1.0])
REWARDS = ("1.25", "-0.375", "2.5", "0.6875", "1.9375")
ALARM = 1e-6


def seen(step: int = 1, arms: int = 3, mask: Any = None) -> Seen:
    return Seen(step, 200, arms, mask=mask)


def after(prior: Any, rewards: list[float], arm: int = 0) -> NormalGammaBelief:
    belief = prior.belief(1)
    for step, reward in enumerate(rewards, start=1):
        belief = belief.update(seen(step, prior.arms), np.array([arm]), np.array([reward]), None)
    return belief


def test_posterior_of_a_fixed_data_set_in_fractions() -> None:
    """Five rewards, by the closed form of all of them together, in exact arithmetic."""
    m, k, a, b = Fraction(2, 5), Fraction(2), Fraction(3), Fraction(3, 2)
    r = [Fraction(each) for each in REWARDS]
    n, mean = len(r), sum(r) / len(r)
    within = sum((each - mean) ** 2 for each in r)
    exact = (
        (k * m + n * mean) / (k + n),
        k + n,
        a + Fraction(n, 2),
        b + within / 2 + k * n * (mean - m) ** 2 / (2 * (k + n)),
    )
    prior = NG([0.4], 2.0, 3.0, 1.5)
    one_by_one = after(prior, [float(each) for each in r])
    sums = pw.GaussianStatistics([[n]], [[float(sum(r))]], [[float(sum(e * e for e in r))]])
    for belief in (one_by_one, prior.belief_given(sums)):
        found = (belief.m, belief.k, belief.a, belief.b)
        for value, known in zip(found, exact, strict=True):
            assert abs(value[0, 0] / float(known) - 1.0) < 1e-12


def test_updates_keep_their_digits_under_a_large_offset(seed: int) -> None:
    """Rewards near 1e7: residuals, not squares, are added up."""
    r = np.random.default_rng(seed).normal(size=200)
    plain = after(NG([0.0], 1.0, 2.0, 1.0), r.tolist())
    far = after(NG([1e7], 1.0, 2.0, 1.0), (r + 1e7).tolist())
    np.testing.assert_allclose(far.b, plain.b, rtol=1e-7)
    np.testing.assert_allclose(far.m - 1e7, plain.m, atol=1e-7)


def test_draws_are_students(seed: int) -> None:
    """False alarm 1e-6 a law; a normal law in place of Student's is seen."""
    for freedom in (0.2, 1.0, 6.0, 2e6):
        t = streams(seed, 40_000)(1).student(np.full((40_000, 1), freedom))[:, 0, 0]
        assert stats.kstest(t, stats.t(freedom).cdf).pvalue > ALARM
    t = streams(seed, 40_000)(1).student(np.full((40_000, 1), 6.0))[:, 0, 0]
    assert stats.kstest(t / np.sqrt(1.5), "norm").pvalue < ALARM


def test_draws_of_arms_and_draws_are_independent(seed: int) -> None:
    """Correlations of signs and of sizes; false alarm 1e-6 each, and a control."""
    t = streams(seed, 20_000)(1).student(np.full((20_000, 2), 3.0), 2).reshape(20_000, 4)
    for values in (np.sign(t), np.abs(t) > 1.0):
        correlation = np.corrcoef(values.T.astype(float))[np.triu_indices(4, 1)]
        assert np.abs(correlation).max() < 5.5 / np.sqrt(20_000)
    both = np.abs(np.stack([t[:, 0], t[:, 0] * t[:, 1]])) > 1.0
    assert np.corrcoef(both.astype(float))[0, 1] > 5.5 / np.sqrt(20_000)


def test_precisions_are_calibrated(seed: int) -> None:
    """Given the data, the true precision is Gamma(a, b); a belief that counts pulls twice is
    caught.
    """
    tasks, values = 4096, []
    for wrap in (lambda belief: belief, Gullible):
        played = play(PRIOR, tasks=tasks, pulls=6, seed=seed, wrap=wrap)
        belief = getattr(played.belief, "belief", played.belief)
        precision = played.environment.noise_std**-2.0
        values.append(stats.gamma.cdf(precision * belief.b, belief.a))
    right, wrong = (
        min(stats.kstest(each[:, arm], "uniform").pvalue for arm in range(3)) for each in values
    )
    assert right > ALARM
    assert wrong < ALARM


def test_imagined_rewards_follow_the_predictive_law(seed: int) -> None:
    """The reward behind an imagined belief; one that ignored the drawn mean would be too narrow."""
    tasks = 20_000
    belief = PRIOR.belief(tasks)
    arms = np.full(tasks, 1)
    imagined = belief.imagine(streams(seed, tasks)(1), arms, seen())
    k, a, b = 2.0, 0.8, 1.0
    reward = (imagined.belief.m[:, 1] - belief.m[:, 1]) * (k + 1.0) + belief.m[:, 1]
    scale = np.sqrt(b * (k + 1.0) / (a * k))
    assert stats.kstest(reward / scale, stats.t(2.0 * a).cdf).pvalue > ALARM
    assert stats.kstest(imagined.value / np.sqrt(b / (a * k)), stats.t(2 * a).cdf).pvalue > ALARM
    assert stats.kstest((reward - imagined.value) / scale, stats.t(2 * a).cdf).pvalue < ALARM


def test_densities_of_rewards_add_up_to_the_marginal_likelihood(seed: int) -> None:
    run = pw.simulate(PRIOR, TS, horizon=9, tasks=50, seed=seed, keep=True)
    belief, total = PRIOR.belief(50), np.zeros(50)
    for step in range(9):
        at, actions, rewards = seen(step + 1), run.actions[:, step], run.rewards[:, step]
        total += belief.log_predictive(at, actions, rewards)
        belief = belief.update(at, actions, rewards, None)
    np.testing.assert_allclose(pw.meta.log_marginal_likelihood(PRIOR, run), total, rtol=1e-10)


def test_marginal_likelihood_is_the_integral_over_mean_and_precision() -> None:
    """Two rewards of one arm, on a fine grid."""
    r, prior = np.array([0.7, -0.4]), NG([0.2], 1.5, 2.5, 1.2)
    u, x = np.linspace(-9.0, 5.0, 281), np.linspace(-12.0, 12.0, 1201)
    lam = np.exp(u)[:, None]
    joint = stats.gamma.pdf(lam, 2.5, scale=1 / 1.2) * lam
    joint = joint * stats.norm.pdf(x, 0.2, 1.0 / np.sqrt(1.5 * lam))
    for each in r:
        joint = joint * stats.norm.pdf(each, x, 1.0 / np.sqrt(lam))
    known = np.log(joint.sum() * (u[1] - u[0]) * (x[1] - x[0]))
    data = pw.GaussianStatistics([[2]], [[r.sum()]], [[(r * r).sum()]])
    assert pw.meta.log_marginal_likelihood(prior, data)[0] == pytest.approx(known, abs=1e-7)


def test_exact_look_ahead_is_the_integral_over_rewards(seed: int) -> None:
    """E max of the posterior means after a pull, reward by reward."""
    rng = np.random.default_rng(seed)
    for _ in range(5):
        prior = NG(rng.normal(size=3), *np.exp(0.5 * rng.normal(size=(3, 3)) + 0.5))
        belief = prior.belief(1)
        best = belief.best_after(seen())[0]
        for arm in range(3):
            k, a, b, m = (each[arm] for each in (prior.pulls, prior.shape, prior.rate, prior.mean))
            others = np.delete(prior.mean, arm).max()
            wide = np.sqrt(b * (k + 1.0) / (a * k)) / (k + 1.0)

            def gain(t: float, m: float, others: float, wide: float, a: float) -> float:
                return max(m + wide * t - others, 0.0) * float(stats.t.pdf(t, 2.0 * a))

            at = (others - m) / wide
            known = others + quad(gain, at, np.inf, args=(m, others, wide, a), limit=200)[0]
            assert best[arm] == pytest.approx(known, rel=1e-6)
    alone = belief.best_after(seen(mask=np.array([[False, True, False]])))
    np.testing.assert_array_equal(alone, [[-np.inf, belief.m[0, 1], -np.inf]])


def test_quantiles_are_students() -> None:
    belief = PRIOR.belief(2)
    for level in (0.5, 0.9, 0.999):
        known = PRIOR.mean + PRIOR.scale * stats.t(PRIOR.freedom).ppf(level)
        np.testing.assert_allclose(belief.quantile(level, seen()), [known, known], rtol=1e-9)


def test_half_ratio_of_gammas() -> None:
    """Against a product that needs no logarithm: Gamma(n + 1/2) / Gamma(n) for whole n."""
    for n in (1, 7, 99, 100, 1000):
        ratio = np.sqrt(np.pi) / 2.0
        for j in range(1, n):
            ratio *= (j + 0.5) / j
        assert student.half_ratio(np.array(float(n))) == pytest.approx(ratio, rel=1e-12)
    assert student.half_ratio(np.array(1e12)) == pytest.approx(1e6, rel=1e-12)


@pytest.mark.parametrize("k", [1, 3])
def test_law_of_the_largest_draw_by_adaptive_quadrature(k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for heavy in (0.6, 3.0, 50.0):
        m, scale = rng.normal(size=(1, 3)), np.exp(rng.normal(size=(1, 3)))
        freedom = heavy * np.exp(0.3 * rng.normal(size=(1, 3)))
        law = argmax_probabilities(m, scale, StandardStudent(freedom), k)[0]
        arms = [stats.t(f, at, s) for f, at, s in zip(freedom[0], m[0], scale[0], strict=True)]

        def below(u: float, arms: Any = arms) -> float:  # over the first arm's own quantiles
            x = arms[0].ppf(u)
            return float(k * u ** (k - 1) * np.prod([each.cdf(x) ** k for each in arms[1:]]))

        points = sorted({float(arms[0].cdf(at)) for at in m[0]})
        known = quad(below, 0.0, 1.0, points=points, limit=400, epsabs=1e-10)[0]
        assert law[0] == pytest.approx(known, abs=2e-8)
        assert law.sum() == pytest.approx(1.0, abs=1e-12)


def test_law_of_the_largest_draw_under_a_mask_and_far_apart() -> None:
    m, one = np.array([[0.0, 1e4, 0.0], [0.0, 0.0, 0.0]]), np.ones((2, 3))
    mask = np.array([[True, True, True], [True, False, True]])
    law = argmax_probabilities(m, one, StandardStudent(8.0 * one), 1, mask)
    np.testing.assert_allclose(law, [[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]], atol=1e-12)


def test_the_law_of_thompson_sampling_is_that_of_its_actions(seed: int) -> None:
    """200,000 decisions; each share within 5.5 standard errors (false alarm 1e-7)."""
    tasks = 200_000
    law = TS.probabilities(PRIOR.belief(1), seen())
    assert law is not None
    actions = TS.act(PRIOR.belief(tasks), seen(), streams(seed, tasks)(1))
    shares = np.bincount(actions, minlength=3) / tasks
    assert np.all(np.abs(shares - law.probs[0]) < 5.5 * np.sqrt(shares * (1 - shares) / tasks))


def test_environments_are_drawn_from_the_prior(seed: int) -> None:
    tasks = 20_000
    drawn = PRIOR.sample(
        Streams(seed, np.arange(tasks, dtype=np.uint64)).at(Purpose.ENVIRONMENT, 0), tasks
    )
    for arm in range(3):
        precision = drawn.noise_std[:, arm] ** -2.0
        gamma = stats.gamma(PRIOR.shape[arm], scale=1.0 / PRIOR.rate[arm])
        assert stats.kstest(precision, gamma.cdf).pvalue > ALARM
        z = (drawn.means[:, arm] - PRIOR.mean[arm]) * np.sqrt(PRIOR.pulls[arm] * precision)
        assert stats.kstest(z, "norm").pvalue > ALARM
        assert stats.kstest(z * np.sqrt(1.5), "norm").pvalue < ALARM


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pulls": 0.0}, ("pulls", "must be positive")),
        ({"shape": 0.05}, ("shape", "must be positive")),
        ({"rate": -1.0}, ("rate", "must be positive")),
        ({"rate": 1e60}, ("rate", "must not exceed")),
        ({"mean": [0.0, np.nan]}, "mean"),
        ({"pulls": [1.0, 1.0, 1.0]}, "pulls must have shape"),
        ({"names": ["a"]}, "names"),
    ],
)
def test_bad_parameters_are_named(change: dict[str, Any], words: str | tuple[str, str]) -> None:
    good: dict[str, Any] = {"mean": [0.0, 1.0], "pulls": 1.0, "shape": 2.0, "rate": 1.0}
    with raises(words):
        NG(**good | change)


def test_what_has_no_mean_is_refused_and_nothing_else(seed: int) -> None:
    """With shape 0.4 Thompson sampling runs; exact look-ahead and bounds say why they do not."""
    heavy = NG([0.0, 0.5], 1.0, 0.4, 1.0)
    other = NG([0.1, 0.5], 1.0, 0.4, 1.0)
    assert np.isfinite(pw.simulate(heavy, TS, horizon=5, tasks=200, seed=seed).mean_reward)
    for engine in ("numpy", "compiled"):
        with raises("shape", "exact look-ahead"):
            pw.simulate(
                heavy, pw.ExactKnowledgeGradient(), horizon=3, tasks=5, seed=seed, engine=engine
            )
    for call in (
        lambda: pw.tail_expectation(heavy, 0.1),
        lambda: pw.tail_expectation(heavy, 0.1, seed=seed),
        lambda: pw.reward_bound(heavy, other, TS, 3),
        lambda: pw.sensitivity_ladder(heavy, other, TS, 2, seed=seed, tasks=100),
    ):
        with raises("shape", "expected diameter"):
            call()
    assert pw.trajectory_bound(heavy, other, TS, 3).value < 1.0


def test_statistics_without_squares_are_refused() -> None:
    with raises("statistics", "squares"):
        NG([0.0], 1.0, 2.0, 1.0).belief_given(pw.GaussianStatistics([[1]], [[1.0]]))
    with raises("squares", "are missing, without which the variance"):
        pw.families.NormalGammaMarginalLikelihood().fit(pw.GaussianStatistics([[1]], [[1.0]]))
