"""Logit-normal beliefs against dense quadrature, down to no clicks at all; their laws and edges."""

from __future__ import annotations

from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from raising import raises
from scipy import stats
from scipy.special import expit, log_expit

import priorwise as pw
from priorwise.core.protocols import Seen
from priorwise.core.streams import streams
from priorwise.families.logit_normal.likelihood.story import evaluated
from priorwise.families.logit_normal.posteriors import LogitNormalPosteriors
from priorwise.families.logit_normal.prior import LogitNormalBelief
from priorwise.families.logit_normal.propagation import TOLERANCE, propagated
from priorwise.families.logit_normal.tilted import tilted
from priorwise.testing import PriorContract, calibration

COUNTS = [(0, 0), (0, 10), (0, 200), (1, 200), (5, 200), (150, 200), (0, 2000), (20, 2000)]
LAWS = list(product([-4.0, 0.0], [0.45, 1.0], [0.0, 0.5, 0.9]))
RARE = pw.ExchangeableLogitNormalPrior(-4.0, 1.0, 0.9)
MOST = 2**31 - 1
WITHIN = 0.02
"""Relative error of means and variances of rates that is allowed."""


def seen(arms: int, mask: Any = None) -> Seen:
    return Seen(1, 10, arms, mask=mask)


def after(prior: Any, successes: Any, pulls: Any) -> LogitNormalBelief:
    given: LogitNormalBelief = prior.belief_given(pw.BetaStatistics(successes, pulls))
    return given


def on_a_grid(prior: Any, s: Any, n: Any, belief: Any) -> tuple[Any, Any, float]:
    """Mean and variance of two arms' rates and the log likelihood, on a grid of log odds; the
    belief only says where and how wide it is.
    """
    (m,), (root,) = belief.normal
    z = np.linspace(-9.0, 9.0, 161)
    both = np.stack(np.meshgrid(z, z, indexing="ij"), axis=-1)
    eta = m + 1.5 * both @ root.T
    log_p = stats.multivariate_normal(prior.mean, prior.cov).logpdf(eta)
    log_p = log_p + (s * log_expit(eta) + (n - s) * log_expit(-eta)).sum(axis=-1)
    top = log_p.max()
    p = np.exp(log_p - top)
    assert max(p[0].max(), p[-1].max(), p[:, 0].max(), p[:, -1].max()) < 1e-9
    cell = (z[1] - z[0]) ** 2 * abs(np.linalg.det(1.5 * root))
    total = p.sum()
    rates = expit(eta)
    mean = (p[:, :, None] * rates).sum(axis=(0, 1)) / total
    var = (p[:, :, None] * (rates - mean) ** 2).sum(axis=(0, 1)) / total
    return mean, var, float(top + np.log(total * cell))


@pytest.mark.slow
@pytest.mark.parametrize(("mean", "std", "correlation"), LAWS)
def test_two_arms_against_a_grid(mean: float, std: float, correlation: float) -> None:
    prior = pw.ExchangeableLogitNormalPrior(mean, std**2, correlation).for_arms(2)
    for pair in combinations_with_replacement(COUNTS, 2):
        s, n = (np.array(each) for each in zip(*pair, strict=True))
        belief = after(prior, [s], [n])
        exact_mean, exact_var, exact_log = on_a_grid(prior, s, n, belief)
        np.testing.assert_allclose(belief.mean(seen(2))[0], exact_mean, rtol=1e-3)
        np.testing.assert_allclose(belief.variance()[0], exact_var, rtol=WITHIN)
        found = pw.meta.log_marginal_likelihood(prior, pw.BetaStatistics([s], [n]))[0]
        assert found == pytest.approx(exact_log, abs=0.005)


def test_the_normal_approximation_alone_would_not_do() -> None:
    """Control: with no click of the other arm the variance of a rate is off by more than is
    allowed.
    """
    prior = RARE.for_arms(2)
    belief = after(prior, [[0, 0]], [[0, 200]])
    _, var, _ = on_a_grid(prior, np.array([0, 0]), np.array([0, 200]), belief)
    z, w = np.polynomial.hermite_e.hermegauss(60)
    rate, w = expit(belief.normal[0][0, 0] + belief.std()[0, 0] * z), w / w.sum()
    assert abs((w @ rate**2 - (w @ rate) ** 2) / var[0] - 1.0) > 3.0 * WITHIN
    assert abs(belief.variance()[0, 0] / var[0] - 1.0) < 0.1 * WITHIN


@pytest.mark.parametrize(("mean", "std", "correlation"), LAWS)
def test_three_arms_against_nested_integrals(mean: float, std: float, correlation: float) -> None:
    """Moments of a rate are ratios of likelihoods with one and two successes more, which nested
    integrals give to ten digits.
    """
    prior = pw.ExchangeableLogitNormalPrior(mean, std**2, correlation).for_arms(3)
    at = np.array([mean, std * np.sqrt(correlation), std * np.sqrt(1.0 - correlation)])
    counts = np.array(list(combinations_with_replacement(COUNTS, 3)))[::3]
    s, n = (np.ascontiguousarray(counts[:, :, k], dtype=float) for k in (0, 1))
    belief = after(prior, s.astype(int), n.astype(int))
    log_p = evaluated(s, n, at, nodes=61)[0]
    for arm, one in enumerate(np.eye(3)):
        first, second = (
            np.exp(evaluated(s + k * one, n + k * one, at, nodes=61)[0] - log_p) for k in (1, 2)
        )
        np.testing.assert_allclose(belief.mean(seen(3))[:, arm], first, rtol=0.005)
        np.testing.assert_allclose(belief.variance()[:, arm], second - first**2, rtol=WITHIN)


def test_tilted_moments_against_a_fine_sum() -> None:
    """One arm of any counts, also where the prior lies far from them."""
    for s, n in [(0, 0), (0, 10), (1, 200), (0, 2000), (2000, 2000), (1, 1), (7, 10**9)]:
        for centre, var in product([-10.0, 0.0], [0.01, 1.0, 10.0]):
            law = tilted(*(np.array([float(each)]) for each in (s, n, centre, var, centre)))
            low, high = law.eta.min(), law.eta.max()
            x = np.linspace(low - 0.1 * (high - low), high + 0.1 * (high - low), 8_001)
            log_p = s * log_expit(x) + (n - s) * log_expit(-x) - (x - centre) ** 2 / (2 * var)
            p = np.exp(log_p - log_p.max())
            assert max(p[0], p[-1]) < 1e-12
            p /= p.sum()
            mean = p @ x
            found = law.moments()
            assert abs(found[0][0] - mean) < 1e-5 * np.sqrt(p @ (x - mean) ** 2)
            assert found[1][0] == pytest.approx(p @ (x - mean) ** 2, rel=1e-4)


def test_belief_is_a_function_of_the_counts(seed: int) -> None:
    """Pulls one by one, in another order, and all at once: the same bits."""
    prior, rng = RARE.for_arms(3), np.random.default_rng(seed)
    actions = rng.integers(0, 3, (12, 5))
    rewards = (rng.random((12, 5)) < 0.3).astype(float)
    beliefs = []
    for order in (range(12), reversed(range(12))):
        belief = prior.belief(5)
        for step in order:
            belief = belief.update(seen(3), actions[step], rewards[step], None)
        beliefs.append(belief)
    chosen = actions[:, :, None] == np.arange(3)
    s, n = (chosen * rewards[:, :, None]).sum(axis=0), chosen.sum(axis=0)
    beliefs.append(after(prior, s.astype(int), n))
    for other in beliefs[1:]:
        np.testing.assert_array_equal(beliefs[0].precision, other.precision)
        np.testing.assert_array_equal(beliefs[0].mean(seen(3)), other.mean(seen(3)))
    assert np.ptp(beliefs[0].mean(seen(3))[:, 0]) > 0.0


def test_tasks_do_not_see_each_other() -> None:
    prior = RARE.for_arms(4)
    s = np.array([[0, 0, 1, 3], [5, 0, 0, 0], [0, 0, 0, 0], [90, 2, 30, 1]])
    n = np.array([[200, 10, 50, 9], [5, 0, 0, 0], [0, 0, 0, 0], [100, 2, 2000, 100]])
    whole = after(prior, s, n)
    for task in range(4):
        alone = after(prior, s[[task]], n[[task]])
        np.testing.assert_allclose(alone.mean(seen(4)), whole.mean(seen(4))[[task]], rtol=1e-13)
        np.testing.assert_allclose(alone.normal[0], whole.take([task]).normal[0], rtol=1e-13)


def test_equal_arms_tie() -> None:
    """Arms of equal counts have equal means but for rounding, so that ties are broken fairly."""
    means = after(RARE.for_arms(4), [[1, 0, 1, 0]], [[30, 9, 30, 9]]).mean(seen(4))[0]
    assert means[0] == pytest.approx(means[2], rel=1e-13)
    assert means[1] == pytest.approx(means[3], rel=1e-13)


def test_one_arm_teaches_the_others() -> None:
    """Clicks of one headline raise the others of its story, by more where they move together."""
    rise = []
    for correlation in (0.0, 0.5, 0.9):
        prior = pw.ExchangeableLogitNormalPrior(-4.0, 0.2, correlation).for_arms(2)
        belief = after(prior, [[30, 0]], [[300, 0]])
        rise.append(belief.mean(seen(2))[0, 1] / prior.belief(1).mean(seen(2))[0, 1])
    assert rise[0] == pytest.approx(1.0, rel=1e-6)
    assert 1.2 < rise[1] < rise[2]


def test_exact_look_ahead_averages_over_the_next_reward() -> None:
    prior = RARE.for_arms(3)
    s, n = np.array([[1, 0, 2]]), np.array([[40, 0, 30]])
    belief, mask = after(prior, s, n), np.array([[True, False, True]])
    mean, best = belief.mean(seen(3))[0], belief.best_after(seen(3))[0]
    masked = belief.best_after(seen(3, mask))[0]
    for arm in range(3):
        one = np.eye(3, dtype=int)[arm]
        up = after(prior, s + one, n + one).mean(seen(3))[0]
        down = after(prior, s, n + one).mean(seen(3))[0]
        value = mean[arm] * up.max() + (1.0 - mean[arm]) * down.max()
        assert best[arm] == pytest.approx(value, rel=1e-12)
        if arm != 1:
            value = mean[arm] * up[[0, 2]].max() + (1.0 - mean[arm]) * down[[0, 2]].max()
            assert masked[arm] == pytest.approx(value, rel=1e-12)
    assert masked[1] == -np.inf
    assert best.min() > mean.max() * (1.0 - 1e-3)


def test_outcomes_and_predictions_agree_with_the_mean() -> None:
    belief = after(RARE.for_arms(2), [[1, 0], [0, 0]], [[40, 3], [0, 0]])
    mean, actions = belief.mean(seen(2)), np.array([0, 1])
    logs = belief.log_predictive(seen(2), actions, np.array([1.0, 0.0]))
    np.testing.assert_allclose(np.exp(logs), [mean[0, 0], 1.0 - mean[1, 1]])
    for arm, (up, down) in enumerate(belief.outcomes(seen(2))):
        np.testing.assert_allclose(up.chance, mean[:, arm])
        np.testing.assert_allclose(up.chance + down.chance, 1.0)
    assert not np.array_equal(*belief.key())


def test_law_of_the_best_arm_is_that_of_draws(seed: int) -> None:
    """False alarm below 1e-6: 4,000 draws of 50 tasks, five standard errors."""
    prior = pw.LogitNormalPrior([-1.0, 0.0, 0.2], [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0, 0, 0.5]])
    belief = after(prior, [[3, 4, 5]], [[9, 9, 12]])
    law = belief.argmax_law(1, "max", seen(3))
    assert law is not None
    drawn = belief.sample(streams(seed, 1)(1), 20_000, seen(3))[0].argmax(axis=1)
    share = np.bincount(drawn, minlength=3) / 20_000
    np.testing.assert_allclose(law.probs[0], share, atol=5.0 * 0.5 / np.sqrt(20_000))
    assert belief.argmax_law(2, "mean", seen(3)) is None


def test_quantiles_are_those_of_draws(seed: int) -> None:
    belief = after(RARE.for_arms(2), [[1, 0]], [[40, 3]])
    drawn = belief.sample(streams(seed, 1)(1), 20_000, seen(2))[0]
    below = (drawn <= belief.quantile(0.8, seen(2))[0]).mean(axis=0)
    np.testing.assert_allclose(below, 0.8, atol=5.0 * 0.4 / np.sqrt(20_000))


@pytest.mark.parametrize(
    ("prior", "s", "n"),
    [
        (pw.ExchangeableLogitNormalPrior(-4.0, 1.0, 0.99).for_arms(20), 0, 200),
        (pw.ExchangeableLogitNormalPrior(-4.0, 9.0, 1.0).for_arms(3), [0, 1, 2], 10),
        (pw.ExchangeableLogitNormalPrior(-4.0, 0.0, 0.0).for_arms(2), 1, 2),
        (
            pw.ExchangeableLogitNormalPrior(0.0, 100.0, 0.5).for_arms(3),
            [0, 5, 2**31 - 1],
            2**31 - 1,
        ),
        (pw.ExchangeableLogitNormalPrior(-40.0, 1e-8, 0.5).for_arms(2), 10**6, 10**6),
        (pw.LogitNormalPrior([3.0, -3.0], [[1.0, -0.99], [-0.99, 1.0]]), [0, 500], 500),
    ],
    ids=["many", "one", "known", "wide", "far", "apart"],
)
def test_it_comes_to_rest_at_the_edges(prior: Any, s: Any, n: Any) -> None:
    """Without warnings, which are errors here, and with numbers that make sense."""
    shape = (1, prior.arms)
    s, n = (np.broadcast_to(np.array(each), shape) for each in (s, n))
    sites = propagated(s.astype(float), n.astype(float), prior.mean, prior._root)
    assert sites.moved.max() < (1e-5 if n.max() == MOST else TOLERANCE)
    belief = after(prior, s, n)
    mean, var = belief.mean(seen(prior.arms)), belief.variance()
    assert ((mean >= 0.0) & (mean <= 1.0) & (var >= 0.0) & (var <= 0.25)).all()
    np.testing.assert_array_less(-1e-12, belief.std())


def test_distance_is_that_of_the_log_odds(seed: int) -> None:
    p = pw.LogitNormalPrior([-1.0, 0.0], [[1.0, 0.5], [0.5, 2.0]])
    q = p.replaced(mean=[-1.0, 0.3])
    normal = [pw.GaussianPrior(each.mean, each.cov) for each in (p, q)]
    assert pw.total_variation(p, q).value == pw.total_variation(*normal).value
    tasks = 20_000
    pair = LogitNormalPosteriors.start(p, q, tasks)
    found = pair.total_variation(streams(seed, tasks)(1))
    error = found.std() / np.sqrt(tasks)
    assert abs(found.mean() - pw.total_variation(p, q).value) < 5.0 * error
    same = LogitNormalPosteriors.start(p, p, 10)
    pull = np.zeros(10, dtype=np.int64), np.ones(10)
    same = same.update(seen(2), *pull, None)
    np.testing.assert_allclose(same.total_variation(streams(seed, 10)(1)), 0.0, atol=1e-12)
    np.testing.assert_allclose(same.shared(streams(seed, 10)(1), 3), 1.0)


def test_posteriors_come_closer_as_both_learn(seed: int) -> None:
    p, q = RARE.for_arms(2), pw.ExchangeableLogitNormalPrior(-3.0, 1.0, 0.5).for_arms(2)
    pair = LogitNormalPosteriors.start(p, q, 400)
    found = [pair.total_variation(streams(seed, 400)(1)).mean()]
    for pulls in (6, 60):
        counts = np.full((400, 2), pulls / 2.0), np.full((400, 2), float(pulls))
        both = (LogitNormalBelief.of(each, *counts) for each in (p, q))
        learned = LogitNormalPosteriors(*both, pair.ratio)
        found.append(learned.total_variation(streams(seed, 400)(1)).mean())
    assert found[0] > 1.2 * found[1] > 1.5 * found[2]


@pytest.mark.slow
def test_sensitivity_tools_take_it(seed: int) -> None:
    p = pw.ExchangeableLogitNormalPrior(-1.0, 1.0, 0.8).for_arms(3)
    q = p.replaced(mean=[-1.0, -1.0, -0.9])
    ts = pw.ThompsonSampling()
    assert pw.reward_bound(p, q, ts, horizon=3, seed=seed).value <= 3.0
    assert 0.0 < pw.tail_expectation(p, 0.1, seed=seed).value < 1.0
    ladder = pw.sensitivity_ladder(p, q, ts, horizon=3, tasks=200, seed=seed)
    assert len(ladder.rungs) >= 5
    assert ladder.disorders == ()
    apart = pw.LogitNormalPrior(p.mean, np.eye(3))
    assert pw.tail_expectation(apart, 0.1).kind == "exact"
    value = pw.tail_expectation(apart, 0.1).value
    drawn = np.ptp(apart.sample(streams(seed, 40_000)(0), 40_000).means, axis=1)
    top = np.sort(drawn)[-4000:]
    assert value == pytest.approx(top.mean(), abs=6.0 * drawn.std() / np.sqrt(4000))


def test_what_is_wrong_is_said() -> None:
    with raises("mean", "is in log odds"):
        pw.LogitNormalPrior([200.0], [[1.0]])
    with raises("var", "is of log odds"):
        pw.ExchangeableLogitNormalPrior(0.0, 1e3, 0.0)
    with raises("correlation", "3 arms"):
        pw.ExchangeableLogitNormalPrior(0.0, 1.0, -0.9).for_arms(3)
    with raises("cov", "symmetric"):
        pw.LogitNormalPrior([0.0, 0.0], [[1.0, 0.5], [0.0, 1.0]])
    belief = pw.LogitNormalPrior([0.0], [[1.0]]).belief(1)
    with raises("rewards", "must lie between 0 and 1"):
        belief.update(seen(1), np.array([0]), np.array([2.0]), None)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [{"mean": -1.1}, {"var": 0.7}, {"correlation": 0.2}],
    ids=lambda each: next(iter(each)),
)
def test_calibration_rejects_another_prior(change: dict[str, float], seed: int) -> None:
    """The belief is calibrated, false alarm 1e-4, and with tasks of one prior and the belief of
    another (control) it is not, whichever parameter differs.
    """
    law = pw.ExchangeableLogitNormalPrior(-1.5, 1.5, 0.8)
    true, held = (each.for_arms(3) for each in (law, law.replaced(**change)))
    size: Any = {"tasks": 4096, "pulls": 4, "seed": seed}
    assert calibration(true, **size) > PriorContract.false_alarm
    wrong = calibration(true, **size, wrap=lambda _: held.belief(4096))
    assert wrong < PriorContract.false_alarm
