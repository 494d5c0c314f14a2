"""Laws of actions and distances of posteriors, against enumeration, closed forms and brute
force.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import priorwise as pw
from priorwise.core.protocols import Seen
from priorwise.core.streams import streams
from priorwise.families.beta.argmax import beta_argmax
from priorwise.families.normal.argmax import (
    exact_argmax,
    line_argmax,
    normal_argmax,
    normal_extremes,
)
from priorwise.families.normal.below import all_below as exactly_below
from priorwise.families.normal.orthant import all_below
from priorwise.policies.laws import action_law, known_law
from priorwise.policies.play_arms import PlayArms
from priorwise.sensitivity.distance.measures import total_variation
from priorwise.sensitivity.ladder.walk import posterior_pair, sampled_distance


def test_two_normal_values_compare_in_closed_form():
    mean, cov = np.array([[0.3, -0.1]]), np.array([[[1.0, 0.4], [0.4, 2.0]]])
    first = stats.norm.cdf(0.4 / np.sqrt(1.0 + 2.0 - 0.8))
    np.testing.assert_allclose(normal_argmax(mean, cov).probs, [[first, 1.0 - first]], rtol=1e-12)


@pytest.mark.parametrize("rank", [2, 3])
def test_three_normal_values_are_exact(rank, seed):
    """Against SciPy's distribution of the two differences to 1e-9, with equal means in every second
    case; without their correlation it is another law (control).
    """
    rng, apart = np.random.default_rng([seed, rank]), 0.0
    for case in range(20):
        root = rng.normal(size=(3, rank)) * np.exp(rng.normal(size=3))[:, None]
        mean, cov = rng.normal(size=3) * (case % 2), root @ root.T
        exact, wrong = np.zeros(3), np.zeros(3)
        for a in range(3):
            to = np.delete(np.eye(3), a, axis=0) - np.eye(3)[a]
            spread, limits = to @ cov @ to.T, -to @ mean
            accuracy = {"allow_singular": True, "abseps": 1e-12, "releps": 1e-12}
            exact[a] = stats.multivariate_normal.cdf(limits, np.zeros(2), spread, **accuracy)
            alone = np.diag(np.diag(spread))
            wrong[a] = stats.multivariate_normal.cdf(limits, np.zeros(2), alone, **accuracy)
        law = normal_argmax(mean[None], cov[None])
        np.testing.assert_allclose(law.probs[0], exact, rtol=0.0, atol=1e-9)
        apart = max(apart, np.abs(wrong - exact).max())
    assert apart > 0.01
    line = np.sort(rng.normal(size=3))  # of values on a line through 0 the middle one never wins
    law = normal_argmax(np.zeros((1, 3)), np.outer(line, line)[None])
    np.testing.assert_allclose(law.probs[0], [0.5, 0.0, 0.5], atol=1e-9)


def some_correlations(rng, n, kind):
    root = rng.normal(size=(n, {"line": 1, "plane": 2, "full": n, "close": n}[kind]))
    if kind == "close":
        root = rng.choice([-1.0, 1.0], size=(n, 1)) * (np.ones(n) + 0.1 * root)
    root /= np.linalg.norm(root, axis=1, keepdims=True)
    return root @ root.T


@pytest.mark.parametrize("kind", ["line", "plane", "full", "close"])
@pytest.mark.parametrize("n", [3, 4, 5])
def test_values_below_their_limits_match_a_lattice(n, kind, seed):
    """Within SciPy's own error, at most 2e-5, and on a line that of many quantiles; without their
    correlation it is another number (control).
    """
    rng = np.random.default_rng([seed, n])
    limits = 1.5 * rng.normal(size=(10, n)) + 0.5
    limits[0] = 0.0
    correlations = np.stack([some_correlations(rng, n, kind) for _ in limits])
    if kind == "line":
        z = stats.norm.ppf((np.arange(200_000) + 0.5) / 200_000)
        known = [
            (c[0][:, None] * z < h[:, None]).all(axis=0).mean()
            for h, c in zip(limits, correlations, strict=True)
        ]
    else:
        known = [
            stats.multivariate_normal.cdf(
                h, cov=c, allow_singular=True, abseps=1e-6, maxpts=400_000, rng=rng
            )
            for h, c in zip(limits, correlations, strict=True)
        ]
    np.testing.assert_allclose(exactly_below(limits, correlations), known, rtol=0.0, atol=2e-5)
    alone = np.broadcast_to(np.eye(n), correlations.shape)
    assert np.abs(exactly_below(limits, alone) - known).max() > 1e-3


@pytest.mark.parametrize("n", [3, 4, 5])
def test_values_below_0_by_their_angles(n):
    """Orthants in closed form: equally correlated values, by halves and by a third variable."""
    for rho, known in ((0.5, 1.0 / (n + 1)), (0.0, 0.5**n), (1.0, 0.5)):
        c = np.full((1, n, n), rho)
        assert exactly_below(np.zeros((1, n)), c)[0] == pytest.approx(known, abs=1e-9)
    if n == 3:
        c = np.array([[[1.0, 0.3, -0.6], [0.3, 1.0, 0.2], [-0.6, 0.2, 1.0]]])
        angles = np.arcsin(c[0][np.triu_indices(3, 1)])
        known = 0.125 + angles.sum() / (4.0 * np.pi)  # Sheppard 1899
        assert exactly_below(np.zeros((1, 3)), c)[0] == pytest.approx(known, abs=1e-9)


@pytest.mark.parametrize("arms", [4, 5, 6])
@pytest.mark.parametrize("rank", [1, 2, 3, 6])
def test_few_normal_values_have_an_exact_law(arms, rank, seed):
    """Probabilities add up to 1 although each is an integral of its own, and match a million draws:
    5.5 standard errors, false alarms below 1e-6. The law of other means does not (control).
    """
    rng = np.random.default_rng([seed, arms, rank])
    root, draws = rng.normal(size=(arms, rank)), 1_000_000
    mean = rng.normal(size=arms) * (rng.random(arms) < 0.7)
    mask = np.ones((1, arms), dtype=bool)
    mask[0, 1] = rank != 2
    law = exact_argmax(mean[None], (root @ root.T)[None], mask)
    assert np.max(law.error) < 1e-7
    values = np.where(mask, mean + rng.normal(size=(draws, rank)) @ root.T, -np.inf)
    count = np.bincount(values.argmax(axis=1), minlength=arms)

    def score(p):
        return np.max(np.abs(count - draws * p) / np.sqrt(draws * np.maximum(p * (1.0 - p), 1e-4)))

    assert score(law.probs[0]) < 5.5
    other = exact_argmax(mean[None] + 0.3 * np.arange(arms), (root @ root.T)[None], mask)
    assert score(other.probs[0]) > 5.5


def test_arms_that_are_always_equal_share_what_they_win():
    """Also where one stands between two others, so that it never wins alone."""
    line = np.array([1.0, 0.0, 0.0, 0.0, -2.0, -0.5])
    law = exact_argmax(np.zeros((1, 6)), np.outer(line, line)[None], np.ones((1, 6), dtype=bool))
    np.testing.assert_allclose(law.probs[0], [0.5, 0.0, 0.0, 0.0, 0.5, 0.0], atol=1e-9)
    x = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    law = exact_argmax(np.zeros((1, 4)), (x @ x.T)[None], np.ones((1, 4), dtype=bool))
    np.testing.assert_allclose(law.probs[0], [1 / 6, 1 / 6, 1 / 6, 1 / 2], atol=1e-9)
    law = exact_argmax(np.zeros((1, 5)), np.ones((1, 5, 5)), np.ones((1, 5), dtype=bool))
    np.testing.assert_allclose(law.probs[0], np.full(5, 0.2), atol=1e-12)


@pytest.mark.parametrize("arms", [3, 4, 5, 6])
@pytest.mark.parametrize("kind", ["full", "plane", "line", "equal"])
def test_the_mean_of_the_largest_normal_value(arms, kind, seed):
    """Against a million draws: 5.5 standard errors, false alarms below 1e-7; not with a variance a
    fifth larger (control). Zero means let many arms draw level at once.
    """
    rng = np.random.default_rng([seed, arms])
    root = rng.normal(size=(arms, {"full": arms, "plane": 2, "line": 1, "equal": arms}[kind]))
    if kind == "equal":
        root[-1] = root[0]
    mean = rng.normal(size=arms) if kind == "full" else np.zeros(arms)
    cov, seen = (root @ root.T)[None], Seen(1, 1, arms)
    ends = normal_extremes(mean[None], cov, seen)
    wrong = normal_extremes(mean[None], 1.2 * cov, seen)
    assert ends is not None
    assert wrong is not None
    values = mean + rng.normal(size=(1_000_000, root.shape[1])) @ root.T
    for end, other, drawn in zip(
        ends, wrong, (values.max(axis=1), values.min(axis=1)), strict=True
    ):
        error = drawn.std() / 1e3
        assert abs(end[0] - drawn.mean()) < 5.5 * error
        assert abs(other[0] - drawn.mean()) > 5.5 * error


def test_independent_normal_values_match_one_dimensional_quadrature():
    mean, std = np.array([0.2, 0.0, -0.5, 0.1]), np.array([1.0, 0.5, 2.0, 0.3])
    grid = np.linspace(-15.0, 15.0, 200_001)
    cdf = stats.norm.cdf(grid[:, None], mean, std)
    pdf = stats.norm.pdf(grid[:, None], mean, std)
    exact = [
        np.trapezoid(pdf[:, a] * np.delete(cdf, a, axis=1).prod(axis=1), grid) for a in range(4)
    ]
    law = normal_argmax(mean[None], np.diag(std**2)[None]).probs
    np.testing.assert_allclose(law[0], exact, atol=1e-9)


def test_correlated_normal_values_match_frequencies(seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(6, 6))
    mean, cov = rng.normal(size=6), root @ root.T
    best = rng.multivariate_normal(mean, cov, size=400_000).argmax(axis=1)
    counts = np.bincount(best, minlength=6)
    law = normal_argmax(mean[None], cov[None], points=4096).probs[0]
    assert stats.chisquare(counts, law * 400_000).pvalue > 1e-5  # false alarms: 1e-5
    # control: correlations left out
    wrong = normal_argmax(mean[None], np.diag(np.diag(cov))[None], points=4096).probs[0]
    assert stats.chisquare(counts, wrong * 400_000).pvalue < 1e-5


@pytest.mark.parametrize(("arms", "rank"), [(10, 2), (12, 3), (8, 1), (20, 10), (15, 14)])
def test_values_of_low_rank_match_frequencies(arms, rank, seed):
    rng = np.random.default_rng([seed, arms, rank])
    root, mean = rng.normal(size=(arms, rank)), 0.3 * rng.normal(size=arms)
    best = (mean + rng.normal(size=(200_000, rank)) @ root.T).argmax(axis=1)
    frequencies = np.bincount(best, minlength=arms) / len(best)
    argmax, most = (
        (line_argmax, {1: 0.006, 2: 0.01, 3: 0.03}[rank]) if rank <= 5 else (normal_argmax, 0.06)
    )
    law = argmax(mean[None], (root @ root.T)[None]).probs[0]
    assert np.abs(law - frequencies).sum() / 2.0 < most


@pytest.mark.parametrize("arms", [6, 9])
@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_the_halves_of_a_lattice_say_how_large_its_error_is(arms, correlation, seed):
    """On average over posteriors the stated error covers the true one, and not by orders of
    magnitude; a fifth of it would not cover it.
    """
    rng = np.random.default_rng([seed, arms])
    root, mean = rng.normal(size=(200, arms, arms)), 0.7 * rng.normal(size=(200, arms))
    cov = (1.0 - correlation) * root @ root.transpose(0, 2, 1) / arms + correlation
    law, exact = normal_argmax(mean, cov), normal_argmax(mean, cov, points=4096)
    true, stated = law.distance(exact).mean(), np.mean(law.error)
    assert 0.1 * stated < true + 1e-5 < 1.5 * stated
    assert stated < 0.01


def test_compiled_functions_are_those_of_the_normal_law():
    """With independent values the first factor of the product is the probability of the first, and
    the quantile of the second is not needed: Phi; with one that follows another, Phi^-1 too.
    """
    from scipy.integrate import quad

    x = np.concatenate([np.linspace(-8.9, 8.9, 357), [0.0, -1e-9, 1e-9, 40.0]])
    nodes, weights = np.full((1, 8), 0.5), np.full(8, 0.125)
    limits, out = np.column_stack([x, np.full(x.size, 50.0)]), np.empty(x.size)
    all_below(limits, np.broadcast_to(np.eye(2), (x.size, 2, 2)).copy(), nodes, weights, out)
    np.testing.assert_allclose(out, stats.norm.cdf(x), rtol=1e-12)
    # P(Z1 <= 0.3, r Z1 + s Z2 <= -0.2) along one lattice that is fine enough to be exact
    points = 1 << 14
    nodes = (np.arange(points)[None] + 0.5) / points
    root = np.array([[[1.0, 0.0], [0.6, 0.8]]])
    all_below(np.array([[0.3, -0.2]]), root, nodes, np.full(points, 1 / points), out[:1])
    exact, _ = quad(
        lambda z: stats.norm.pdf(z) * stats.norm.cdf((-0.2 - 0.6 * z) / 0.8), -12.0, 0.3
    )
    assert out[0] == pytest.approx(exact, abs=1e-8)
    # control: a wrong correlation
    root[0, 1] = [0.8, 0.6]
    all_below(np.array([[0.3, -0.2]]), root, nodes, np.full(points, 1 / points), out[:1])
    assert out[0] != pytest.approx(exact, abs=1e-3)


def test_arms_of_very_different_scales():
    law = normal_argmax(np.zeros((1, 5)), np.diag([1e12, 1e-6, 1e-6, 1e-6, 1e-6])[None]).probs
    np.testing.assert_allclose(law, [[0.5, 0.125, 0.125, 0.125, 0.125]], atol=2e-3)


@pytest.mark.parametrize(
    "cov",
    [
        np.zeros((3, 3)),
        np.ones((3, 3)),
        np.diag([1.0, 0.0, 0.0]),
        1e-20 * np.eye(3),
        1e20 * np.eye(3),
    ],
)
def test_degenerate_normal_values_have_a_law(cov):
    law = normal_argmax(np.array([[0.0, 0.3, 0.1]]), cov[None]).probs
    assert np.isfinite(law).all()
    assert law.sum() == pytest.approx(1.0)
    if not np.diff(cov).any():  # all values move together, so the largest mean wins
        np.testing.assert_allclose(law, [[0.0, 1.0, 0.0]], atol=1e-12)


def test_arms_that_are_not_available_are_never_the_largest():
    mask = np.array([[True, False, True]])
    law = normal_argmax(np.array([[0.0, 9.0, 0.5]]), np.eye(3)[None], mask).probs
    first = stats.norm.cdf(-0.5 / np.sqrt(2.0))
    np.testing.assert_allclose(law, [[first, 0.0, 1.0 - first]], atol=1e-12)
    a, b = np.array([[1.0, 50.0, 1.0]]), np.array([[1.0, 1.0, 1.0]])
    np.testing.assert_allclose(beta_argmax(a, b, 1, mask), [[0.5, 0.0, 0.5]], atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2.0, 3.0, 1.0), (1.0, 2.0, 3.0)),
        ((0.05, 1.0, 1e4), (0.05, 1.0, 1e4)),
        ((1.0, 1.0), (1.0, 1.0)),
    ],
)
def test_beta_values_match_adaptive_quadrature(a, b, k):
    from scipy.integrate import quad

    exact = []
    for arm in range(len(a)):
        # over the quantiles of the arm's best draw
        def integrand(u: float, arm: int = arm) -> float:
            x = stats.beta.ppf(u ** (1.0 / k), a[arm], b[arm])
            return float(
                np.prod([stats.beta.cdf(x, a[c], b[c]) ** k for c in range(len(a)) if c != arm])
            )

        exact.append(
            quad(
                integrand,
                0.0,
                1.0,
                limit=400,
                points=[0.5] if len(a) < 3 else [0.4, 0.5, 0.6],
                epsabs=1e-9,
            )[0]
        )
    np.testing.assert_allclose(beta_argmax(np.array([a]), np.array([b]), k)[0], exact, atol=2e-7)


@pytest.mark.parametrize(
    "policy", [pw.ThompsonSampling(), pw.PosteriorSampling(3, "sum"), pw.Greedy(), pw.Uniform()]
)
@pytest.mark.parametrize(
    "prior",
    [
        pw.GaussianPrior([0.2, 0.0, 0.1], [[1.0, 0.5, 0.2], [0.5, 1.0, 0.3], [0.2, 0.3, 0.6]]),
        pw.LinearGaussianPrior(
            [0.5, -0.2], [[0.6, 0.1], [0.1, 0.4]], contexts=pw.SphereContexts(arms=3)
        ),
    ],
)
def test_laws_match_what_policies_do(prior, policy, seed):
    tasks = 40_000
    rng = streams(seed, tasks)(1)
    one = (
        prior.contexts.draw(streams(seed, 1)(1), prior.dim)
        if isinstance(prior, pw.LinearGaussianPrior)
        else None
    )
    signal = None if one is None else np.broadcast_to(one, (tasks, *one.shape[1:]))
    actions = policy.act(prior.belief(tasks), Seen(1, 10, 3, signal), rng)
    law = known_law(policy, prior.belief(1), Seen(1, 10, 3, one))
    assert law is not None
    counts = np.bincount(actions, minlength=3)
    expected = law.probs[0] * tasks
    assert (counts[expected == 0.0] == 0).all()
    # false alarms below 2e-6
    assert np.abs(counts - expected).max() <= 5.0 * np.sqrt(tasks) / 2.0 + 2e-3 * tasks


def test_k_shot_play_on_beta_posteriors_has_an_exact_law(seed):
    prior, policy, tasks = pw.BetaPrior([1.0, 2.0], [3.0, 2.0]), pw.KShotThompson(3), 40_000
    actions = policy.act(prior.belief(tasks), Seen(1, 10, 2), streams(seed, tasks)(1))
    law = known_law(policy, prior.belief(1), Seen(1, 10, 2))
    assert law is not None
    assert np.abs(
        np.bincount(actions, minlength=2) / tasks - law.probs[0]
    ).max() < 5.0 * 0.5 / np.sqrt(tasks)
    once = known_law(pw.ThompsonSampling(), prior.belief(1), Seen(1, 10, 2))
    assert once is not None
    # control
    assert np.abs(
        np.bincount(actions, minlength=2) / tasks - once.probs[0]
    ).max() > 5.0 * 0.5 / np.sqrt(tasks)


def test_laws_of_anyone_are_sampled_with_their_error(seed):
    """Six standard errors: false alarms below 1e-8."""

    class OnlyActs:
        def act(self, belief, seen, rng):
            return pw.ThompsonSampling().act(belief, seen, rng)

    belief, seen = pw.BetaPrior([1.0, 2.0, 1.0], [3.0, 2.0, 9.0]).belief(3), Seen(1, 10, 3)
    exact = pw.ThompsonSampling().probabilities(belief, seen)
    law = action_law(OnlyActs(), belief, seen, streams(seed, 3)(1), draws=3000)
    assert (exact.source, law.source) == ("quadrature", "sampling")
    assert np.abs(law.probs.sum(axis=1) - 1.0).max() < 1e-12
    assert (np.abs(law.probs - exact.probs) <= 6.0 * law.error).all()
    other = pw.KShotThompson(3).probabilities(belief, seen)  # control
    assert (np.abs(law.probs - other.probs) > 6.0 * law.error).any()
    assert action_law(pw.Greedy(), belief, seen, streams(seed, 3)(1)).source == "exact"


def test_laws_of_tasks_at_different_steps():
    """Each task has the law that it has alone, and the least sure source is that of all."""
    belief = pw.GaussianPrior([0.2, 0.0], np.eye(2)).belief(3)
    steps = np.array([1, 4, 1])
    for policy in (
        pw.UniformThen(2, pw.ThompsonSampling()),
        PlayArms((1, 0), pw.ThompsonSampling()),
        pw.ExactKnowledgeGradient(),
        pw.TopTwoThompson(),
    ):
        law = policy.probabilities(belief, Seen(steps, 5, 2))
        for task, step in enumerate(steps.tolist()):
            alone = policy.probabilities(belief.take([task]), Seen(step, 5, 2))
            np.testing.assert_array_equal(law.probs[task], alone.probs[0])
        exact = isinstance(policy, pw.ExactKnowledgeGradient)
        assert law.source == ("exact" if exact else "quadrature")


def test_unknown_laws_are_not_made_up():
    prior = pw.GaussianPrior([0.0, 0.0], np.eye(2))
    assert known_law(pw.KShotThompson(2), prior.belief(1), Seen(1, 10, 2)) is None
    assert known_law(pw.RecedingHorizon(2, 2, "online"), prior.belief(1), Seen(1, 10, 2)) is None


def test_sampled_distances_enclose_the_true_one(seed):
    p, q, tasks = (
        pw.BetaPrior([2.0, 2.0, 2.0], [2.0, 2.0, 2.0]),
        pw.BetaPrior([5.0, 2.0, 2.0], [5.0, 2.0, 2.0]),
        4000,
    )
    seen, policy = Seen(1, 10, 3), pw.ThompsonSampling()
    laws = [known_law(policy, prior.belief(1), seen) for prior in (p, q)]
    assert laws[0] is not None
    assert laws[1] is not None
    exact = np.abs(laws[0].probs - laws[1].probs).sum() / 2.0
    twins = (streams(seed, tasks)(1), streams(seed, tasks)(1))
    found = sampled_distance(policy, p.belief(tasks), q.belief(tasks), seen, twins, 32)
    slack = 5.0 * found.high.std() / np.sqrt(tasks)  # false alarms: 6e-7 each
    assert found.low.mean() <= exact + slack
    assert found.high.mean() >= exact - slack
    assert found.high.mean() > exact + slack, (
        "control: the plain distance of frequencies is too large"
    )
    assert abs(found.value.mean() - exact) < abs(found.high.mean() - exact)


PAIRS = {
    "equal covariances": (
        pw.GaussianPrior([0.0, 0.1], [[1.0, 0.3], [0.3, 0.5]]),
        pw.GaussianPrior([0.4, 0.0], [[1.0, 0.3], [0.3, 0.5]]),
    ),
    "other covariances": (
        pw.GaussianPrior([0.0, 0.1], [[1.0, 0.3], [0.3, 0.5]]),
        pw.GaussianPrior([0.3, 0.0], [[0.7, 0.1], [0.1, 0.9]]),
    ),
    "singular": (
        pw.GaussianPrior([0.0, 0.0], [[1.0, 1.0], [1.0, 1.0]]),
        pw.GaussianPrior([0.5, 0.5], [[2.0, 2.0], [2.0, 2.0]]),
    ),
    "beta": (pw.BetaPrior([2.0, 1.0], [1.0, 3.0]), pw.BetaPrior([2.5, 1.0], [1.0, 2.0])),
    "scales apart": (
        pw.GaussianPrior([0.0, 0.0], np.diag([1e8, 1e-7]), [1.0, 1e-7]),
        pw.GaussianPrior([0.0, 0.0], np.diag([1e8, 9e-7]), [1.0, 1e-7]),
    ),
    "singular scales": (
        pw.GaussianPrior([0.0, 0.0], [[1e6, 1.0], [1.0, 1e-6]]),
        pw.GaussianPrior([1e3, 1e-3], [[4e6, 4.0], [4.0, 4e-6]]),
    ),
    "finite": (
        pw.FinitePrior([[0.2, 0.8], [0.7, 0.1]], [0.5, 0.5], noise="bernoulli"),
        pw.FinitePrior([[0.7, 0.1], [0.2, 0.8], [0.4, 0.4]], [0.3, 0.5, 0.2], noise="bernoulli"),
    ),
}


def _posterior(belief):
    """Posterior of one task as a prior of its family."""
    if hasattr(belief, "a"):
        return pw.BetaPrior(belief.a[0], belief.b[0])
    if hasattr(belief, "log_weights"):
        return pw.FinitePrior(belief.prior.means, belief.probabilities()[0], belief.prior.noise)
    return pw.GaussianPrior(belief.m[0], belief.covariance()[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_distances_of_posteriors_match_those_of_priors(name, seed):
    """After the same history, against total_variation of the posteriors; both estimates within 5
    standard errors.
    """
    p, q = PAIRS[name]
    tasks = 20_000
    pair = posterior_pair(p, q, tasks)
    assert pair is not None
    for step, (action, reward) in enumerate([(0, 1.0), (1, 0.0), (0, 1.0)], start=1):
        history = np.full(tasks, action), np.full(tasks, reward)
        pair = pair.update(Seen(step, 4, p.arms), *history, None)
    found = pair.total_variation(streams(seed, tasks)(1))
    exact = total_variation(_posterior(pair.p), _posterior(pair.q), seed=seed)
    if pair.exact:
        np.testing.assert_allclose(found, exact.value, rtol=1e-9)
    else:
        assert (
            abs(found.mean() - exact.value)
            <= 5.0 * np.hypot(found.std() / np.sqrt(tasks), exact.std_error) + 1e-9
        )
        # control: the distance of the priors is another number
        before = total_variation(p, q, seed=seed)
        assert abs(found.mean() - before.value) > 5.0 * found.std() / np.sqrt(tasks)
    shared = pair.shared(streams(seed, tasks)(1), 1)
    assert (
        abs(1.0 - shared.mean() - exact.value)
        <= 5.0 * np.hypot(shared.std() / np.sqrt(tasks), exact.std_error) + 1e-9
    )


@pytest.mark.parametrize(
    ("alpha", "beta"),
    [((5.0, 5.0), (0.01, 0.03)), ((1e-3, 2e-3), (1.0, 1.0)), ((5.0, 5.0), (1e-3, 2e-3))],
)
def test_draws_of_small_beta_parameters_do_not_underflow(alpha, beta, seed):
    """Before the first pull the posteriors are the priors; 5 standard errors, so false alarms below
    1e-6.
    """
    p, q = (pw.BetaPrior([a, 1.0], [b, 1.0]) for a, b in zip(alpha, beta, strict=True))
    pair = posterior_pair(p, q, 40_000)
    assert pair is not None
    found = pair.total_variation(streams(seed, 40_000)(1))
    assert (
        abs(found.mean() - total_variation(p, q).value)
        <= 5.0 * found.std() / np.sqrt(len(found)) + 1e-9
    )


def test_priors_that_exclude_each_other_stay_apart():
    p, q = (
        pw.GaussianPrior([0.0, 0.0], [[1.0, 1.0], [1.0, 1.0]]),
        pw.GaussianPrior([0.0, 0.0], np.eye(2)),
    )
    pair = posterior_pair(p, q, 3)
    assert pair is not None
    np.testing.assert_array_equal(pair.total_variation(streams(0, 3)(1)), 1.0)
    np.testing.assert_array_equal(pair.shared(streams(0, 3)(1), 2), 0.0)


def test_linear_posteriors(seed):
    contexts = pw.SphereContexts(arms=3)
    p = pw.LinearGaussianPrior([0.5, 0.0], [[0.5, 0.1], [0.1, 0.4]], contexts=contexts)
    q = pw.LinearGaussianPrior([0.2, 0.3], [[0.9, 0.0], [0.0, 0.4]], contexts=contexts)
    tasks = 20_000
    pair = posterior_pair(p, q, tasks)
    assert pair is not None
    signal = np.broadcast_to(contexts.draw(streams(seed, 1)(1), 2), (tasks, 3, 2))
    pair = pair.update(Seen(1, 4, 3, signal), np.full(tasks, 2), np.full(tasks, 0.7), None)
    found = pair.total_variation(streams(seed, tasks)(2))
    ends = [pw.GaussianPrior(belief.m[0], belief.covariance()[0]) for belief in (pair.p, pair.q)]
    exact = total_variation(*ends, seed=seed)
    assert abs(found.mean() - exact.value) <= 5.0 * np.hypot(
        found.std() / np.sqrt(tasks), exact.std_error
    )
