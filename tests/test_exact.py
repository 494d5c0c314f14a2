"""Formulas against independent computations: direct algebra, enumeration, quadrature, brute-force
simulation.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import integrate, stats

import priorwise as pw
from priorwise.core.protocols import Seen
from priorwise.core.streams import Purpose, Streams
from priorwise.experiments import problems
from priorwise.families.linear.contexts import _best_direction
from priorwise.families.normal.arithmetic import expected_maximum
from priorwise.policies.play_arms import PlayArms
from priorwise.testing import base_seed


def seen_of(
    arms: int, step: int = 1, horizon: int = 5, signal: object = None, mask: object = None
) -> Seen:
    return Seen(step, horizon, arms, signal, mask)


def policy_stream(seed: int, tasks: int, step: int = 1) -> object:
    return Streams(seed, np.arange(tasks, dtype=np.uint64)).at(Purpose.POLICY, step)


def random_covariance(rng: np.random.Generator, size: int) -> np.ndarray:
    root = rng.normal(size=(size, size + 2))
    return root @ root.T / size


# Posteriors


@pytest.mark.parametrize("noise_var", [1.0, 1e-6, 1e6])
def test_gaussian_posterior_equals_the_inverse_formula(noise_var: float, seed: int) -> None:
    rng = np.random.default_rng(seed + 1)
    arms, pulls = 4, 7
    mean, cov = rng.normal(size=arms), random_covariance(rng, arms)
    variances = noise_var * np.array([1.0, 2.0, 0.5, 1.5])
    prior = pw.GaussianPrior(mean, cov, variances)
    actions, rewards = rng.integers(arms, size=pulls), rng.normal(size=pulls)
    belief = prior.belief(1)
    for action, reward in zip(actions, rewards, strict=True):
        belief = belief.update(seen_of(arms), np.array([action]), np.array([reward]), None)
    design = np.eye(arms)[actions]
    precision = np.linalg.inv(cov) + design.T @ (design / variances[actions][:, None])
    expected_cov = np.linalg.inv(precision)
    expected_mean = expected_cov @ (
        np.linalg.inv(cov) @ mean + design.T @ (rewards / variances[actions])
    )
    assert belief.mean(seen_of(arms))[0] == pytest.approx(expected_mean, rel=1e-6, abs=1e-8)
    assert belief.covariance()[0] == pytest.approx(expected_cov, rel=1e-6, abs=1e-9)


def test_linear_posterior_equals_the_inverse_formula(seed: int) -> None:
    rng = np.random.default_rng(seed + 2)
    arms, dim, pulls = 3, 4, 6
    mean, cov = rng.normal(size=dim), random_covariance(rng, dim)
    prior = pw.LinearGaussianPrior(mean, cov, 0.7, contexts=pw.SphereContexts(arms))
    belief, rows, rewards = prior.belief(1), [], rng.normal(size=pulls)
    for reward in rewards:
        features, action = rng.normal(size=(1, arms, dim)), int(rng.integers(arms))
        belief = belief.update(
            seen_of(arms, signal=features), np.array([action]), np.array([reward]), None
        )
        rows.append(features[0, action])
    design = np.array(rows)
    expected_cov = np.linalg.inv(np.linalg.inv(cov) + design.T @ design / 0.7)
    expected_mean = expected_cov @ (np.linalg.inv(cov) @ mean + design.T @ rewards / 0.7)
    assert belief.m[0] == pytest.approx(expected_mean, abs=1e-10)
    assert belief.covariance()[0] == pytest.approx(expected_cov, abs=1e-10)


@pytest.mark.parametrize(
    ("noise", "noise_var", "likelihood"),
    [
        ("none", None, lambda r, m: float(abs(r - m) < 1e-9)),
        ("bernoulli", None, lambda r, m: m if r else 1 - m),
        ("gaussian", 0.3, lambda r, m: stats.norm.pdf(r, m, np.sqrt(0.3))),
    ],
)
def test_finite_posterior_equals_bayes_rule(
    noise: str, noise_var: float | None, likelihood: object
) -> None:
    means = np.array([[0.1, 0.5, 0.9], [0.1, 0.7, 0.2], [0.4, 0.5, 0.6]])
    probs = np.array([0.5, 0.3, 0.2])
    prior = pw.FinitePrior(means, probs, noise, noise_var)
    history = [(0, 0.1), (1, 0.5)] if noise == "none" else [(0, 1.0), (1, 0.0), (1, 1.0), (2, 1.0)]
    belief, weights = prior.belief(1), probs.copy()
    for action, reward in history:
        belief = belief.update(seen_of(3), np.array([action]), np.array([reward]), None)
        weights = weights * [likelihood(reward, m) for m in means[:, action]]
    assert belief.probabilities()[0] == pytest.approx(weights / weights.sum(), abs=1e-12)


def test_impossible_trajectories_reset_to_the_prior() -> None:
    prior = pw.FinitePrior([[1.0, 0.0], [0.0, 1.0]], [0.9, 0.1])
    belief = prior.belief(2)
    for reward in ([1.0, 1.0], [1.0, 0.5]):
        belief = belief.update(seen_of(2), np.array([0, 0]), np.array(reward), None)
    assert belief.probabilities().tolist() == [[1.0, 0.0], [pytest.approx(0.9), pytest.approx(0.1)]]
    assert belief.resets.tolist() == [0, 1]


# What one more pull is worth


@settings(max_examples=60)
@given(
    arrays(np.float64, 4, elements=st.floats(-3, 3)),
    arrays(np.float64, 4, elements=st.floats(-2, 2)),
)
def test_expected_maximum_of_lines_equals_quadrature(
    intercepts: np.ndarray, slopes: np.ndarray
) -> None:
    crossings = [
        (intercepts[j] - intercepts[i]) / (slopes[i] - slopes[j])
        for i in range(4)
        for j in range(i)
        if abs(slopes[i] - slopes[j]) > 1e-9
    ]
    edges = np.unique(np.clip([-12.0, *crossings, 12.0], -12, 12))
    total = sum(
        integrate.quad(lambda z: (intercepts + slopes * z).max() * stats.norm.pdf(z), a, b)[0]
        for a, b in pairwise(edges)
    )
    assert expected_maximum(intercepts, slopes) == pytest.approx(total, abs=1e-7)


def brute_best_after(
    prior: object, belief: object, arm: int, seen: Seen, draws: int
) -> tuple[float, float]:
    """E[max E[mu given r_arm]] by drawing rewards from the posterior predictive, for the single
    task of ``belief``.
    """
    rng = policy_stream(5, draws)
    wide = type(belief)(
        **{
            k: np.repeat(v, draws, 0) if isinstance(v, np.ndarray) else v
            for k, v in vars(belief).items()
        }
    )
    signal = None if seen.signal is None else np.repeat(seen.signal, draws, 0)
    mask = None if seen.mask is None else np.repeat(seen.mask, draws, 0)
    imagined = wide.imagine(
        rng, np.full(draws, arm), Seen(seen.step, seen.horizon, seen.arms, signal, mask)
    )
    best = imagined.seen.masked(imagined.belief.mean(imagined.seen)).max(axis=1)
    return best.mean(), best.std() / np.sqrt(draws)


FAMILIES = {
    "gaussian": lambda: problems.gaussian().prior,
    "gaussian-singular": lambda: pw.GaussianPrior(
        [0.0, 0.1, 0.0], np.ones((3, 3)), [0.5, 1.0, 2.0]
    ),
    "beta": lambda: pw.BetaPrior([1.0, 2.0, 0.5], [2.0, 3.0, 0.6]),
    "finite-none": lambda: pw.FinitePrior(
        [[0.1, 0.5, 0.9], [0.1, 0.7, 0.2], [0.4, 0.5, 0.6]], [0.5, 0.3, 0.2]
    ),
    "finite-bernoulli": lambda: pw.FinitePrior(
        [[0.1, 0.5, 0.9], [0.1, 0.7, 0.2], [0.4, 0.5, 0.6]], [0.5, 0.3, 0.2], "bernoulli"
    ),
    "finite-gaussian": lambda: pw.FinitePrior(
        [[0.1, 0.5, 0.9], [0.1, 0.7, 0.2], [0.4, 0.5, 0.6]], [0.5, 0.3, 0.2], "gaussian", 0.3
    ),
    "linear-sphere": lambda: problems.linear().prior,
    "linear-given": lambda: pw.LinearGaussianPrior(
        [0.2, -0.1],
        [[1.0, 0.3], [0.3, 0.5]],
        0.5,
        contexts=np.random.default_rng(base_seed() + 3).normal(size=(5, 3, 2)),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("masked", [False, True])
def test_best_after_equals_simulation(name: str, masked: bool, seed: int) -> None:
    """False-alarm rate: 5 standard errors, about 50 comparisons, below 1e-4 in all."""
    prior = FAMILIES[name]()
    features = np.random.default_rng(seed + 4).normal(
        size=(1, prior.arms, 6 if name == "linear-sphere" else 2)
    )
    signal = features if "linear" in name else None
    mask = np.array([[True] * (prior.arms - 1) + [False]]) if masked else None
    seen = seen_of(prior.arms, signal=signal, mask=mask)
    belief = prior.belief(1).update(
        seen, np.array([0]), np.array([0.1 if name == "finite-none" else 1.0]), signal
    )
    exact = belief.best_after(seen)[0]
    for arm in range(min(prior.arms - masked, 3)):
        mean, error = brute_best_after(prior, belief, arm, seen, 200_000)
        assert abs(exact[arm] - mean) < 5 * error + 1e-9
        if signal is None:  # information never hurts, where the next decision is the same
            assert exact[arm] >= seen.masked(belief.mean(seen)).max() - 1e-12


@pytest.mark.parametrize(("arms", "dim"), [(1, 3), (6, 6), (3, 1), (4, 2)])
def test_best_of_random_directions(arms: int, dim: int, seed: int) -> None:
    """5 standard errors: false-alarm rate 3e-6 for all four."""
    x = np.random.default_rng(seed).normal(size=(200_000, arms, dim))
    best = (x / np.linalg.norm(x, axis=2, keepdims=True))[:, :, 0].max(axis=1)
    assert abs(_best_direction(arms, dim) - best.mean()) < 5 * best.std() / np.sqrt(len(best))


# Shortcuts that keep the law exact


@pytest.mark.parametrize("name", ["gaussian", "linear-sphere"])
def test_mean_of_draws_shortcut_has_the_law_of_the_mean(name: str, seed: int) -> None:
    """Kolmogorov-Smirnov on each arm against means of real draws; level 1e-5 over at most 12
    comparisons. Control: k + 1 draws.
    """
    prior, tasks, k = FAMILIES[name](), 40_000, 3
    signal = (
        np.repeat(np.random.default_rng(seed + 4).normal(size=(1, prior.arms, 6)), tasks, 0)
        if "linear" in name
        else None
    )
    seen = seen_of(prior.arms, signal=signal)
    belief = prior.belief(tasks).update(
        seen, np.zeros(tasks, dtype=np.int64), np.ones(tasks), signal
    )
    shortcut = belief.sample_mean(policy_stream(1, tasks), k, seen)
    literal = belief.sample(policy_stream(2, tasks), k, seen).mean(axis=1)
    wrong = belief.sample_mean(policy_stream(3, tasks), 2 * k, seen)
    for arm in range(prior.arms):
        assert stats.ks_2samp(shortcut[:, arm], literal[:, arm]).pvalue > 1e-5
        assert stats.ks_2samp(wrong[:, arm], literal[:, arm]).pvalue < 1e-5
    assert np.cov(shortcut.T) == pytest.approx(np.cov(literal.T), abs=0.05)


def test_receding_horizon_tends_to_the_exact_look_ahead(seed: int) -> None:
    """With many draws V_a / k1 estimates what ExactKnowledgeGradient computes, so both choose alike
    where the best arm is clear.
    """
    prior = pw.GaussianPrior([0.5, 0.0, 0.3], [[0.1, 0, 0], [0, 4.0, 0], [0, 0, 0.1]], 1.0)
    run = {
        name: pw.simulate(prior, policy, horizon=2, tasks=64, seed=seed, keep=True).actions[:, 0]
        for name, policy in {
            "exact": pw.ExactKnowledgeGradient(1.0),
            "sampled": pw.RecedingHorizon(2000, 2000, 1.0),
            "greedy": pw.RecedingHorizon(2000, 1, 0.0),
        }.items()
    }
    assert set(run["exact"]) == set(run["sampled"]) == {1}  # the arm worth learning about
    assert set(run["greedy"]) == {0}  # control: without look-ahead the best mean


def test_online_alpha_counts_the_pulls_left() -> None:
    """(1 - alpha) m_a + alpha E[best] with alpha = (H - h) / (H - h + 1) ranks arms like m_a + (H -
    h) E[best].
    """
    prior = problems.gaussian().prior
    belief = prior.belief(1)
    for step in (1, 4, 10):
        seen = seen_of(6, step=step, horizon=10)
        mean, after, left = belief.mean(seen)[0], belief.best_after(seen)[0], 10 - step
        choice = pw.ExactKnowledgeGradient("online").act(belief, seen, policy_stream(0, 1, step))
        assert choice[0] == np.argmax(mean + left * after)


# Exact values of whole runs


def thompson_value(
    means: np.ndarray, truth: np.ndarray, believed: np.ndarray, horizon: int
) -> float:
    """Exact expected reward of Thompson sampling where the best arm of a task earns 1 in it and 0
    in every other.

    A pull either finds the task or rules one out. Tasks of one probability are alike, so what is
    left is two counts.
    """
    assert (means[:, means.argmax(axis=1)] == np.eye(len(means))).all()
    likely = truth == truth.max()

    @cache
    def value(is_likely: bool, others: tuple[int, int], pulls: int) -> float:
        if pulls == 0:
            return 0.0
        weights = (believed[likely][0], believed[~likely][0])
        own = weights[0] if is_likely else weights[1]
        total = own + others[0] * weights[0] + others[1] * weights[1]
        out = own / total * pulls
        for kind in (0, 1):
            if others[kind]:
                left = (others[0] - (kind == 0), others[1] - (kind == 1))
                out += others[kind] * weights[kind] / total * value(is_likely, left, pulls - 1)
        return out

    counts = (int(likely.sum()), int((~likely).sum()))
    return truth[likely].sum() * value(True, (counts[0] - 1, counts[1]), horizon) + truth[
        ~likely
    ].sum() * value(False, (counts[0], counts[1] - 1), horizon)


@pytest.mark.parametrize(("which", "known"), [("prior", 7.4536), ("misspecified", 55 / 16)])
def test_discrete_thompson_sampling_equals_enumeration(which: str, known: float, seed: int) -> None:
    """5 standard errors: false-alarm rate 1e-6. The other prior's value is the control."""
    problem = problems.discrete()
    held = getattr(problem, which)
    exact = thompson_value(problem.prior.means, problem.prior.probs, held.probs, problem.horizon)
    assert exact == pytest.approx(known, abs=6e-5)
    run = pw.simulate(
        problem.prior,
        pw.ThompsonSampling(),
        horizon=10,
        tasks=200_000,
        seed=seed + 3,
        believed=held,
    )
    assert abs(run.mean_reward - exact) < 5 * run.std_error
    assert abs(run.mean_reward - 5.0) > 50 * run.std_error


def test_beta_thompson_sampling_two_pulls_equals_quadrature(seed: int) -> None:
    """Two arms, two pulls: the probability that an arm is drawn best is a one-dimensional integral.
    5 standard errors.
    """
    a, b = np.array([1.0, 3.0]), np.array([2.0, 2.0])

    def first_best(a: np.ndarray, b: np.ndarray) -> float:
        return integrate.quad(
            lambda x: stats.beta.pdf(x, a[0], b[0]) * stats.beta.cdf(x, a[1], b[1]), 0, 1
        )[0]

    total = 0.0
    mean = a / (a + b)
    first = first_best(a, b)
    for arm, chance in ((0, first), (1, 1 - first)):
        total += chance * mean[arm]
        for reward in (0.0, 1.0):
            probability = mean[arm] if reward else 1 - mean[arm]
            after_a, after_b = a.copy(), b.copy()
            after_a[arm] += reward
            after_b[arm] += 1 - reward
            again, posterior = first_best(after_a, after_b), after_a / (after_a + after_b)
            total += chance * probability * (again * posterior[0] + (1 - again) * posterior[1])
    run = pw.simulate(
        pw.BetaPrior(a, b), pw.ThompsonSampling(), horizon=2, tasks=400_000, seed=seed + 1
    )
    assert abs(run.mean_reward - total) < 5 * run.std_error


def test_monte_carlo_constants() -> None:
    assert pw.ThompsonSampling().monte_carlo_n(6) == 1
    assert pw.KShotThompson(5).monte_carlo_n(6) == 5
    assert pw.PosteriorSampling(8, "sum").monte_carlo_n(6) == 8
    assert pw.RecedingHorizon(10, 7, "online").monte_carlo_n(6) == 6 * 10 * (2 * 7 + 3)
    assert pw.KnowledgeGradient(10, 10).monte_carlo_n(20) == 20 * 10 * 23
    assert pw.RecedingHorizon(10, 7, 0.0).monte_carlo_n(6) == 60
    assert pw.TopTwoThompson().monte_carlo_n(6) == 1 + 256 // 2
    # 1 + 10 / 4, rounded up
    assert pw.TopTwoThompson(share=0.75, most_draws=10).monte_carlo_n(6) == 4
    assert pw.TopTwoThompson(share=1.0).monte_carlo_n(6) == 1
    assert pw.Uniform().monte_carlo_n(6) == PlayArms((0, 1)).monte_carlo_n(6) == 0
    for play in (lambda then: pw.UniformThen(2, then), lambda then: PlayArms((1,), then)):
        for then in (pw.KShotThompson(5), pw.Greedy(), pw.Uniform()):
            assert play(then).monte_carlo_n(6) == then.monte_carlo_n(6)
    baselines = [
        pw.Greedy(),
        pw.BayesUCB(),
        pw.ExactKnowledgeGradient(),
        pw.sensitivity.BayesOptimalPolicy(),
    ]
    for policy in [*baselines, pw.KnowledgeGradient(3, 3, ties="random", when_certain="best")]:
        assert policy.monte_carlo_n(6) is None
    # chance alone does not see the posterior
    assert pw.KnowledgeGradient(3, 3, ties="random").monte_carlo_n(2) == 2 * 3 * 9


def test_a_collapsed_posterior_plays_its_best_arm(seed: int) -> None:
    """alpha = 1 ties every arm once the task is known: the draws' own values decide, or chance if
    asked to.
    """
    prior = pw.FinitePrior([[0.0, 0.2, 1.0, 0.5]], [1.0])
    by_draws = pw.simulate(
        prior, pw.KnowledgeGradient(3, 3), horizon=2, tasks=500, seed=seed, keep=True
    )
    by_chance = pw.simulate(
        prior, pw.KnowledgeGradient(3, 3, ties="random"), horizon=2, tasks=500, seed=seed, keep=True
    )
    by_rule = pw.simulate(
        prior,
        pw.KnowledgeGradient(3, 3, ties="random", when_certain="best"),
        horizon=2,
        tasks=500,
        seed=seed,
        keep=True,
    )
    assert (by_draws.actions == 2).all()
    assert (by_rule.actions == 2).all()
    assert set(np.unique(by_chance.actions)) == {0, 1, 2, 3}
