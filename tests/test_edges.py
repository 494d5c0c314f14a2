"""Problems at the edge: one of everything, many arms, singular covariances, almost no noise and
almost nothing else.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from raising import raises

import priorwise as pw
from priorwise.testing.playing import play
from priorwise.testing.twins import same_run

POLICIES = {
    "thompson": pw.ThompsonSampling(),
    "greedy": pw.Greedy(),
    "receding-horizon": pw.RecedingHorizon(2, 2, "online"),
    "exact-knowledge-gradient": pw.ExactKnowledgeGradient(),
    "bayes-ucb": pw.BayesUCB(),
    "top-two": pw.TopTwoThompson(),
}
CORRELATED = 0.5 + 0.5 * np.eye(3)
COVARIANCES = {
    "full": CORRELATED,
    "rank-one": np.outer([1.0, 2.0, -1.0], [1.0, 2.0, -1.0]),
    "zero": np.zeros((3, 3)),
    "one-known-arm": np.diag([1.0, 0.0, 2.0]),
    "near-singular": np.full((3, 3), 1.0) + 1e-13 * np.eye(3),
    "scales-apart": np.diag([1e-20, 1.0, 1e20]),
}
MEAN = np.array([0.1, 0.0, -0.1])


def check_runs(
    prior: Any, name: str, seed: int, *, horizon: int = 5, tasks: int = 70, policy: Any = None
) -> None:
    """Runs are finite and the same in both engines."""
    policy = POLICIES[name] if policy is None else policy
    options: dict[str, Any] = {"horizon": horizon, "tasks": tasks, "seed": seed, "keep": True}
    done = [pw.simulate(prior, policy, **options, engine=e) for e in ("numpy", "compiled")]
    for run in done:
        assert np.isfinite(run.rewards).all()
        assert np.isfinite(run.mean_reward)
        assert run.mean_regret is not None
        assert run.mean_regret >= 0.0
        assert tasks == 1 or np.isfinite(run.std_error)
    same_run(*done)


def direct_posterior(prior: pw.GaussianPrior, actions: Any, rewards: Any) -> tuple[Any, Any]:
    """Posterior of one task from the averages of the pulled arms: m + S H'(H S H' + V)^-1 (y - H
    m).
    """
    arms = np.unique(actions)
    y = np.array([rewards[actions == arm].mean() for arm in arms])
    v = np.array([prior.noise_var[arm] / (actions == arm).sum() for arm in arms])
    inner = prior.cov[np.ix_(arms, arms)] + np.diag(v)
    gain = np.linalg.solve(inner, prior.cov[arms]).T
    return prior.mean + gain @ (y - prior.mean[arms]), prior.cov - gain @ prior.cov[arms]


def check_posterior(prior: pw.GaussianPrior, seed: int, tolerance: float) -> None:
    played = play(prior, tasks=20, pulls=6, seed=seed)
    belief: Any = played.belief
    scale = max(np.abs(prior.cov).max(), 1e-300)
    for task in range(20):
        actions = np.array([pull.actions[task] for pull in played.pulls])
        rewards = np.array([pull.rewards[task] for pull in played.pulls])
        mean, cov = direct_posterior(prior, actions, rewards)
        np.testing.assert_allclose(
            belief.m[task], mean, rtol=0, atol=tolerance * (1 + np.abs(rewards).max())
        )
        np.testing.assert_allclose(belief.covariance()[task], cov, rtol=0, atol=tolerance * scale)


@pytest.mark.slow
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("arms", [1, 3])
def test_one_pull_one_task_one_arm(name: str, arms: int, seed: int) -> None:
    contexts = pw.SphereContexts(arms=arms)
    priors = [
        pw.GaussianPrior(np.zeros(arms), np.eye(arms)),
        pw.BetaPrior(np.ones(arms), 1.0),
        pw.FinitePrior(np.eye(2, arms), [0.5, 0.5]),
        pw.LinearGaussianPrior(np.zeros(1), np.eye(1), contexts=contexts),
    ]
    for prior in priors:
        for horizon, tasks in ((1, 1), (1, 65), (4, 1)):
            check_runs(prior, name, seed, horizon=horizon, tasks=tasks)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("shape", COVARIANCES)
def test_singular_covariances(shape: str, name: str, seed: int) -> None:
    check_runs(pw.GaussianPrior(MEAN, COVARIANCES[shape]), name, seed)


@pytest.mark.parametrize("shape", ["full", "rank-one", "zero", "one-known-arm", "near-singular"])
def test_singular_posteriors_are_right(shape: str, seed: int) -> None:
    check_posterior(pw.GaussianPrior(MEAN, COVARIANCES[shape]), seed, tolerance=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("noise_var", [1e-12, 1e12])
def test_extreme_noise(noise_var: float, name: str, seed: int) -> None:
    contexts = pw.SphereContexts(arms=3)
    finite = pw.FinitePrior(
        [[1.0, 0.0, 0.3], [0.0, 1.0, 0.3]], [0.5, 0.5], noise="gaussian", noise_var=noise_var
    )
    for prior in (
        pw.GaussianPrior(MEAN, CORRELATED, noise_var),
        pw.LinearGaussianPrior(np.zeros(2), np.eye(2), noise_var, contexts=contexts),
        finite,
    ):
        check_runs(prior, name, seed)


@pytest.mark.parametrize("noise_var", [1e-12, 1.0, 1e12])
def test_extreme_noise_posteriors_are_right(noise_var: float, seed: int) -> None:
    check_posterior(pw.GaussianPrior(MEAN, CORRELATED, noise_var), seed, tolerance=1e-9)


def test_almost_no_noise_reveals_the_arm(seed: int) -> None:
    """One pull of each arm, then greedy is as good as knowing."""
    prior = pw.GaussianPrior(MEAN, np.eye(3), 1e-12)
    played = play(prior, tasks=50, pulls=12, seed=seed)
    environment: Any = played.environment
    belief: Any = played.belief
    pulled = (
        np.stack([[(pull.actions == arm) for arm in range(3)] for pull in played.pulls])
        .any(axis=0)
        .T
    )
    np.testing.assert_allclose(belief.m[pulled], environment.means[pulled], atol=1e-5)


def test_overwhelming_noise_teaches_nothing(seed: int) -> None:
    prior = pw.GaussianPrior(MEAN, CORRELATED, 1e12)
    belief: Any = play(prior, tasks=50, pulls=12, seed=seed).belief
    np.testing.assert_allclose(belief.m, np.broadcast_to(MEAN, (50, 3)), atol=1e-3)
    np.testing.assert_allclose(
        belief.covariance(), np.broadcast_to(CORRELATED, (50, 3, 3)), atol=1e-9
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["thompson", "greedy", "receding-horizon", "bayes-ucb", "top-two"])
def test_five_hundred_arms(name: str, seed: int) -> None:
    beta = pw.BetaPrior(np.ones(500), np.linspace(1.0, 5.0, 500))
    policy = pw.RecedingHorizon(1, 1, "online") if name == "receding-horizon" else POLICIES[name]
    check_runs(beta, name, seed, horizon=2, tasks=2, policy=policy)
    gaussian = pw.GaussianPrior(np.linspace(0, 1, 500), 0.5 + 0.5 * np.eye(500))
    if name in ("thompson", "greedy"):
        check_runs(gaussian, name, seed, horizon=3, tasks=2, policy=policy)
    else:
        run = pw.simulate(
            gaussian, policy, horizon=2, tasks=1, seed=seed, engine="numpy", keep=True
        )
        assert np.isfinite(run.mean_reward)
        if name == "bayes-ucb":
            assert run.actions[0, 0] == 499, "the first pull compares medians"


@pytest.mark.slow
def test_five_hundred_arms_exact_knowledge_gradient(seed: int) -> None:
    gaussian = pw.GaussianPrior(np.linspace(0, 1, 500), 0.5 + 0.5 * np.eye(500))
    run = pw.simulate(
        gaussian, pw.ExactKnowledgeGradient(), horizon=2, tasks=1, seed=seed, keep=True
    )
    mean, _ = direct_posterior(gaussian, run.actions[0, :1], run.rewards[0, :1])
    assert run.actions[0, 1] == mean.argmax(), "the last pull looks no further"


def test_tiny_and_huge_beta_parameters(seed: int) -> None:
    prior = pw.BetaPrior([1e-6, 1e-3, 1e12, 1.0], [1e-6, 1e3, 1e12, 1e-6])
    for name in POLICIES:
        check_runs(prior, name, seed)


@pytest.mark.slow
def test_without_a_place_for_compiled_code_it_is_compiled_anew(tmp_path: Path) -> None:
    """As in a container: the package belongs to another user, and there is no home."""
    script = """if True:
        from numba.core import caching
        def nowhere(cls, py_func, py_file):
            return None
        for locator in caching.FunctionCache._impl_class._locator_classes:
            locator.from_function = classmethod(nowhere)
        import priorwise as pw
        prior = pw.GaussianPrior([0.0], [[1.0]])
        print(pw.simulate(prior, pw.Uniform(), horizon=1, tasks=1, seed=0).engine)
    """
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.stdout.split() == ["compiled"], done.stderr
    assert done.stderr.count("compiled code cannot be kept") == 1
    assert "NUMBA_CACHE_DIR" in done.stderr


def test_functions_with_other_arguments_raise_an_error_when_a_policy_is_made():
    with raises("rule", "must be a function of (values"):
        pw.PosteriorSampling(2, lambda values: values)
    with raises("alpha", "must be a function of (step"):
        pw.RecedingHorizon(1, 1, lambda step: 0.5)
    pw.PosteriorSampling(2, lambda values, seen, power=2.0: values[:, 0] ** power)
    pw.RecedingHorizon(1, 1, lambda *where: 0.5)


def test_estimates_of_no_task_raise_an_error():
    with raises("estimates", "must have at least one task"):
        pw.GaussianStatistics.from_estimates([], [])


def test_finite_bernoulli_beliefs_take_only_zeros_and_ones():
    prior = pw.FinitePrior([[0.2, 0.8], [0.6, 0.3]], [0.5, 0.5], noise="bernoulli")
    belief, seen = prior.belief(1), pw.core.Seen(1, 3, 2)
    with raises("rewards", "must be 0 or 1 for"):
        belief.update(seen, np.array([0]), np.array([0.3]), None)
    kept = belief.update(seen, np.array([0]), np.array([1.0]), None)
    np.testing.assert_allclose(kept.probabilities(), [[0.25, 0.75]])


def test_a_plan_that_is_too_large_raises_an_error_before_it_is_made(monkeypatch, seed):
    """The number of beliefs is foreseen: 2 arms and 500 pulls stop after a few layers."""
    from priorwise.sensitivity.exact import bayes_optimal as module

    grown = []
    grow = module._Tree.grow
    monkeypatch.setattr(module._Tree, "grow", lambda tree: (grown.append(1), grow(tree))[1])
    prior = pw.BetaPrior([1.0, 1.0], [1.0, 1.0])
    with raises("horizon", "must be shorter"):
        pw.sensitivity.bayes_optimal(prior, 500)
    assert len(grown) < 40
    policy = pw.sensitivity.BayesOptimalPolicy()
    with raises("horizon", "must be shorter"):
        pw.simulate(prior, policy, horizon=400, tasks=2, seed=seed, progress=False)
    # the bound on the number of beliefs is no larger than the number itself
    exact = pw.sensitivity.bayes_optimal(prior, 12)
    assert pw.sensitivity.bayes_optimal(prior, 12, most=exact.states).value == exact.value
