"""Meta-learners: conjugate updates against brute force, explore-then-commit by hand, empirical
Bayes, baselines, robustness.

Statistical tests compare estimates at five standard errors or p-values at 1e-6, so that each is a
false alarm with probability below 1e-5; each has a control that must fail.
"""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from raising import raises
from scipy import stats

import priorwise as pw
from priorwise.core.errors import ArgumentError
from priorwise.core.hashing import mix
from priorwise.core.streams import Purpose, Streams
from priorwise.core.trajectories import Trajectory, joined
from priorwise.experiments import problems
from priorwise.families.beta.likelihood.estimator import BetaMarginalLikelihood
from priorwise.families.beta.moments import BetaMoments
from priorwise.families.finite.counts import FiniteCounts
from priorwise.families.finite.likelihood.estimator import FiniteMarginalLikelihood
from priorwise.families.gaussian.likelihood.estimator import GaussianMarginalLikelihood
from priorwise.families.gaussian.moments import GaussianMoments
from priorwise.families.gaussian.running_mean import RunningMean
from priorwise.families.gaussian.statistics import GaussianStatistics
from priorwise.families.linear.likelihood.estimator import LinearMarginalLikelihood
from priorwise.families.linear.moments import LinearMoments
from priorwise.families.mixture.prior import MixturePrior
from priorwise.families.normal.hyper import (
    GaussianHyperPrior,
    HierarchicalPrior,
    mean_covariance,
)
from priorwise.families.registry import family_for, statistics_of
from priorwise.fitting.fits import PriorFit
from priorwise.fitting.runs import as_run
from priorwise.meta.evidence.alarm import Alarm
from priorwise.meta.evidence.likelihood import log_marginal_likelihood as log_marginal
from priorwise.meta.evidence.watch import Watch, Watched
from priorwise.meta.exploration import OneArmBlocks
from priorwise.meta.learners.empirical_bayes import EmpiricalBayes, Every, Geometric
from priorwise.meta.learners.explore_then_commit import ExploreThenCommit
from priorwise.meta.learners.hyper import CandidatePriors
from priorwise.meta.learners.learner import FixedPrior, Setting
from priorwise.meta.learners.rules import AsFitted, Drawn, Mixed, Widened
from priorwise.meta.learners.simulate_meta import simulate_meta
from priorwise.meta.learners.thompson import AdaThompson, HierThompson, MetaThompson
from priorwise.policies.uniform_then import UniformThen
from priorwise.simulate.engine import choose
from priorwise.simulate.together import run_together
from priorwise.testing import PriorContract

THOMPSON = pw.ThompsonSampling()
GAUSSIAN = pw.GaussianPrior(
    [0.5, 0.0, 0.1], [[1.0, 0.9, 0.0], [0.9, 1.0, 0.2], [0.0, 0.2, 0.5]], noise_var=[1.0, 2.0, 0.5]
)
WIDE = pw.GaussianPrior([0.0, 0.3, 0.0], 4.0 * np.eye(3), noise_var=[1.0, 2.0, 0.5])
BETA = pw.BetaPrior([1.0, 2.0, 0.5], [1.0, 3.0, 1.5])
LINEAR = pw.LinearGaussianPrior(
    [1.0, -0.5],
    [[1.0, 0.3], [0.3, 0.5]],
    noise_var=[1.0, 2.0, 0.5],
    contexts=pw.SphereContexts(arms=3),
)
FINITE = pw.FinitePrior([[0.9, 0.1, 0.3], [0.2, 0.8, 0.3]], [0.7, 0.3], noise="bernoulli")
NOISY = pw.FinitePrior(
    [[0.9, 0.1, 0.3], [0.2, 0.8, 0.3]], [0.7, 0.3], noise="gaussian", noise_var=[1.0, 2.0, 0.5]
)
MIXED = MixturePrior([GAUSSIAN, WIDE], [0.6, 0.4])
PRIORS = {
    "gaussian": GAUSSIAN,
    "beta": BETA,
    "linear": LINEAR,
    "finite": FINITE,
    "noisy": NOISY,
    "mixture": MIXED,
}


def played(
    prior: Any, seed: int, *, tasks: int, horizon: int, policy: Any = THOMPSON, believed: Any = None
) -> Trajectory:
    """Episodes of a policy."""
    run = pw.simulate(
        prior, policy, horizon=horizon, tasks=tasks, seed=seed, believed=believed, keep=True
    )
    assert run.trajectory is not None
    return run.trajectory


def features(prior: Any, data: Trajectory) -> np.ndarray:
    """Features of the chosen arms, (task, step, dim)."""
    return data.log if data.log is not None else np.eye(prior.arms)[data.actions]


# --- evidence
# -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRIORS)
def test_marginal_likelihood_is_the_product_of_predictions(name: str, seed: int) -> None:
    prior = PRIORS[name]
    tasks, horizon = 50, 6
    streams = Streams(seed, np.arange(tasks, dtype=np.uint64))
    environment = prior.sample(streams.at(Purpose.ENVIRONMENT, 0), tasks)
    belief, signal = prior.belief(tasks), environment.start(streams.world(0))
    total, columns = np.zeros(tasks), []
    for step in range(1, horizon + 1):
        seen = pw.core.Seen(step, horizon, prior.arms, signal)
        actions = THOMPSON.act(belief, seen, streams.at(Purpose.POLICY, step))
        rewards, after = environment.step(seen, actions, streams.world(step))
        total += belief.log_predictive(seen, actions, rewards)
        columns.append(
            (actions, rewards, None if signal is None else signal[np.arange(tasks), actions])
        )
        belief, signal = belief.update(seen, actions, rewards, after), after
    actions, rewards, log = (list(each) for each in zip(*columns, strict=True))
    data = Trajectory(
        np.stack(actions, 1), np.stack(rewards, 1), None if log[0] is None else np.stack(log, 1)
    )
    np.testing.assert_allclose(log_marginal(prior, data), total, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("prior", [GAUSSIAN, LINEAR], ids=["gaussian", "linear"])
def test_normal_marginal_likelihood_is_a_density(prior: Any, seed: int) -> None:
    data = played(prior, seed, tasks=20, horizon=5)
    x = features(prior, data)
    for t in range(20):
        cov = x[t] @ prior.cov @ x[t].T + np.diag(prior.noise_var[data.actions[t]])
        law = stats.multivariate_normal(x[t] @ prior.mean, cov)
        assert log_marginal(prior, data)[t] == pytest.approx(law.logpdf(data.rewards[t]))


def test_unknown_families_are_refused() -> None:
    with raises("prior", "register"):
        log_marginal(
            RunningMean(np.eye(3), 1.0).exploring(None), played(GAUSSIAN, 0, tasks=2, horizon=2)
        )


class TestMixturePrior(PriorContract):
    """Calibration, shapes, values, independence of tasks."""

    @pytest.fixture
    def prior(self) -> MixturePrior:
        return MIXED

    @pytest.fixture
    def believed(self) -> MixturePrior:
        return MixturePrior([GAUSSIAN, WIDE], [0.1, 0.9])


class TestLinearMixturePrior(PriorContract):
    @pytest.fixture
    def prior(self) -> MixturePrior:
        return MixturePrior(
            [
                LINEAR,
                pw.LinearGaussianPrior([0.0, 0.0], np.eye(2), LINEAR.noise_var, LINEAR.contexts),
            ],
            [0.5, 0.5],
        )

    @pytest.fixture
    def believed(self) -> MixturePrior:
        return MixturePrior([LINEAR], [1.0])


# --- hyper-priors
# -------------------------------------------------------------------------------------------------

HYPER = {
    "gaussian": GaussianHyperPrior(
        [0.2, -0.1, 0.0], [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 0.3]], GAUSSIAN.cov
    ),
    "linear": GaussianHyperPrior([0.2, -0.1], [[1.0, 0.5], [0.5, 1.0]], LINEAR.cov),
    "singular": GaussianHyperPrior([0.2, -0.1, 0.0], np.ones((3, 3)), np.diag([1.0, 0.0, 0.5])),
}


def joint_conditioning(
    hyper: GaussianHyperPrior, prior: Any, data: Trajectory
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of (nu, w_1, ..., w_T) given all rewards, by conditioning the joint
    normal law.
    """
    tasks, dim = len(data.rewards), hyper.mean.size
    ones = np.ones((tasks + 1, tasks + 1))
    own = np.diag([0.0] + [1.0] * tasks)
    cov = np.kron(ones, hyper.cov) + np.kron(own, hyper.task_cov)
    mean = np.tile(hyper.mean, tasks + 1)
    x = features(prior, data)
    rows = []
    for t in range(tasks):
        for step in range(data.rewards.shape[1]):
            row = np.zeros(mean.size)
            row[(t + 1) * dim : (t + 2) * dim] = x[t, step]
            rows.append(row)
    design = np.stack(rows)
    noise = np.diag(prior.noise_var[data.actions].ravel())
    gain = cov @ design.T @ np.linalg.inv(design @ cov @ design.T + noise)
    return mean + gain @ (data.rewards.ravel() - design @ mean), cov - gain @ design @ cov


@pytest.mark.parametrize("name", HYPER)
def test_hyper_posterior_is_joint_conditioning(name: str, seed: int) -> None:
    prior = LINEAR if name == "linear" else GAUSSIAN
    hyper, dim = HYPER[name], HYPER[name].mean.size
    data = played(prior, seed, tasks=7, horizon=4)
    mean, cov = joint_conditioning(hyper, prior, data)
    state = hyper.start(Setting(prior, 4))
    parts = [
        Trajectory(
            data.actions[i:j], data.rewards[i:j], None if data.log is None else data.log[i:j]
        )
        for i, j in ((0, 3), (3, 7))
    ]
    for part in parts:
        state = state.observe(part)
    m, v = state.moments()
    np.testing.assert_allclose(m, mean[:dim], atol=1e-10)
    np.testing.assert_allclose(v, cov[:dim, :dim], atol=1e-10)
    predictive = state.predictive()
    # a new task: the joint law with one without data
    np.testing.assert_allclose(predictive.mean, mean[:dim], atol=1e-10)
    np.testing.assert_allclose(predictive.cov, cov[:dim, :dim] + hyper.task_cov, atol=1e-10)
    assert predictive.reward_law == prior.reward_law


def test_drawn_priors_have_the_law_of_the_hyper_posterior(seed: int) -> None:
    state = (
        HYPER["gaussian"]
        .start(Setting(GAUSSIAN, 4))
        .observe(played(GAUSSIAN, seed, tasks=5, horizon=4))
    )
    mean, cov = state.moments()
    draws = np.stack(
        [
            state.draw(Streams(seed, np.array([k], dtype=np.uint64)).at(Purpose.POLICY, 1)).mean
            for k in range(2000)
        ]
    )
    error = np.sqrt(np.diag(cov) / 2000)
    assert (np.abs(draws.mean(axis=0) - mean) < 5 * error).all()
    assert (np.abs(draws.mean(axis=0) - mean - 0.5) > 5 * error).all()  # control
    whitened = np.linalg.solve(np.linalg.cholesky(cov), (draws - mean).T)
    assert stats.kstest((whitened**2).sum(axis=0), stats.chi2(3).cdf).pvalue > 1e-6


@pytest.mark.parametrize("name", ["gaussian", "linear"])
def test_hierarchical_draws_have_the_joint_posterior_law(name: str, seed: int) -> None:
    """Draws of each of four concurrent tasks, given all four, against conditioning of the joint
    law.
    """
    prior, hyper = (LINEAR, HYPER["linear"]) if name == "linear" else (GAUSSIAN, HYPER["gaussian"])
    dim, draws, tasks = hyper.mean.size, 20_000, 4
    data = played(prior, seed, tasks=tasks, horizon=3)
    # others far from the first
    data = Trajectory(data.actions, data.rewards + 5.0 * (np.arange(tasks) > 0)[:, None], data.log)
    mean, cov = joint_conditioning(hyper, prior, data)
    belief = HierarchicalPrior(hyper.start(Setting(prior, 3))).belief(tasks)
    x = features(prior, data)
    for step in range(3):
        # all arms show the chosen features
        signal = None if data.log is None else np.repeat(x[:, step][:, None, :], 3, axis=1)
        belief = belief.update(
            pw.core.Seen(step + 1, 4, 3, signal), data.actions[:, step], data.rewards[:, step], None
        )
    probe = np.broadcast_to(np.vstack([np.eye(dim), np.ones(dim)])[:3], (tasks, 3, dim))
    stream = Streams(seed, np.arange(tasks, dtype=np.uint64)).at(Purpose.POLICY, 4)
    values = belief.sample(
        stream, draws, pw.core.Seen(4, 4, 3, probe if name == "linear" else None)
    )
    alone = joint_conditioning(
        hyper,
        prior,
        Trajectory(data.actions[:1], data.rewards[:1], None if data.log is None else data.log[:1]),
    )
    for t in range(tasks):
        part = slice((t + 1) * dim, (t + 2) * dim)
        expected = probe[0] @ mean[part] if name == "linear" else mean[part]
        spread = probe[0] @ cov[part, part] @ probe[0].T if name == "linear" else cov[part, part]
        error = np.sqrt(np.diag(spread) / draws)
        assert (np.abs(values[t].mean(axis=0) - expected) < 5 * error).all()
        assert (np.abs(values[t].var(axis=0) / np.diag(spread) - 1) < 5 * np.sqrt(2 / draws)).all()
    ignoring = probe[0] @ alone[0][dim : 2 * dim] if name == "linear" else alone[0][dim : 2 * dim]
    # control: the task on its own
    assert np.abs(values[0].mean(axis=0) - ignoring).max() > 5 * error.max()


def test_candidates_follow_bayes_rule(seed: int) -> None:
    data = played(GAUSSIAN, seed, tasks=3, horizon=4)
    state = CandidatePriors([GAUSSIAN, WIDE], [0.2, 0.8]).start(Setting(GAUSSIAN, 4)).observe(data)
    weights = np.array([0.2, 0.8]) * np.exp(
        [log_marginal(each, data).sum() for each in (GAUSSIAN, WIDE)]
    )
    np.testing.assert_allclose(state.probabilities(), weights / weights.sum())
    np.testing.assert_allclose(state.predictive().probs, weights / weights.sum())
    later = state.observe(played(GAUSSIAN, seed + 1, tasks=3000, horizon=4))
    assert later.predictive() is GAUSSIAN  # the other one is out of question
    noiseless = pw.FinitePrior([[1.0, 0.0], [0.0, 1.0]], [1.0, 0.0])
    other = pw.FinitePrior([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5])
    impossible = Trajectory(np.array([[0], [0]]), np.array([[0.3], [0.0]]), None)
    state = CandidatePriors([noiseless, other]).start(Setting(other, 1)).observe(impossible)
    # 0.3 is passed over, 0 rules out the first
    np.testing.assert_array_equal(state.probabilities(), [0.0, 1.0])


def test_candidates_do_not_depend_on_blocks() -> None:
    """The first task leaves the first candidate, which the second one then does not rule out any
    more.
    """
    sure = [pw.FinitePrior(np.eye(2), probs) for probs in ([1.0, 0.0], [0.0, 1.0])]
    data = Trajectory(np.array([[0], [0], [0]]), np.array([[1.0], [0.0], [0.3]]), None)
    start = CandidatePriors(sure).start(Setting(sure[0], 1))
    one_by_one = start
    for t in range(3):
        one_by_one = one_by_one.observe(
            Trajectory(data.actions[t : t + 1], data.rewards[t : t + 1], None)
        )
    for state in (one_by_one, start.observe(data)):
        np.testing.assert_array_equal(state.probabilities(), [1.0, 0.0])


@pytest.mark.slow
def test_baselines_approach_the_oracle(seed: int) -> None:
    """The order of the papers: learners of the mean beat a prior with a wrong one, and end close to
    the oracle.
    """
    cov = 0.3 * np.eye(4) + 0.1
    truth = pw.GaussianPrior([1.5, 0.0, -0.5, 0.0], cov)
    hyper = GaussianHyperPrior(np.zeros(4), np.eye(4), cov)
    options: dict[str, Any] = {
        "episodes": 60,
        "replicates": 15,
        "horizon": 8,
        "seed": seed,
        "jobs": 1,
    }
    oracle = simulate_meta(truth, FixedPrior(THOMPSON), **options)
    wrong = simulate_meta(
        truth, FixedPrior(THOMPSON, pw.GaussianPrior(np.zeros(4), np.eye(4) + cov)), **options
    )
    lost = wrong.shortfall(oracle, 31, 60)
    assert lost.mean > 5 * lost.std_error
    candidates = CandidatePriors([truth, pw.GaussianPrior(np.zeros(4), np.eye(4) + cov)])
    learners = {
        "meta": MetaThompson(hyper),
        "ada": AdaThompson(hyper),
        "hier": HierThompson(hyper),
        "concurrent": HierThompson(hyper, concurrent=10),
        "candidates": MetaThompson(candidates),
    }
    runs = {name: simulate_meta(truth, learner, **options) for name, learner in learners.items()}
    for name, run in runs.items():
        gain = wrong.shortfall(run, 31, 60)
        late = run.shortfall(oracle, 31, 60)
        assert gain.mean > 5 * gain.std_error, name
        assert late.mean < 0.25 * lost.mean + 5 * late.std_error, name
    # one task at a time: the same law, the same run
    np.testing.assert_array_equal(runs["hier"].rewards, runs["ada"].rewards)


def test_a_mixture_of_candidates_finds_the_right_one(seed: int) -> None:
    truth, wrong = GAUSSIAN, pw.GaussianPrior([-3.0, 3.0, 0.0], 0.1 * np.eye(3), GAUSSIAN.noise_var)
    options: dict[str, Any] = {
        "episodes": 15,
        "replicates": 4,
        "horizon": 5,
        "seed": seed,
        "jobs": 1,
        "keep": True,
    }
    run = simulate_meta(truth, AdaThompson(CandidatePriors([wrong, truth])), **options)
    assert isinstance(run.history[0][0].believed, MixturePrior)
    assert all(state.probabilities()[1] > 0.99 for state in run.states)
    oracle = simulate_meta(truth, FixedPrior(THOMPSON), **options)
    # in the end it is the oracle
    np.testing.assert_allclose(run.rewards[:, -1], oracle.rewards[:, -1])
    lost = simulate_meta(truth, FixedPrior(THOMPSON, wrong), **options)
    assert not np.allclose(lost.rewards[:, -1], oracle.rewards[:, -1])


# --- explore then commit
# -------------------------------------------------------------------------------------------------


def test_explore_then_commit_by_hand(seed: int) -> None:
    problem = problems.gaussian()
    learner = ExploreThenCommit(80, GaussianMoments("full", noise_var=1.0))
    run = simulate_meta(
        problem.prior, learner, episodes=120, replicates=2, horizon=10, seed=seed, jobs=1, keep=True
    )
    explored = pw.simulate(problem.prior, pw.Uniform(), horizon=10, tasks=80, seed=seed, keep=True)
    np.testing.assert_array_equal(run.actions[0, :80], explored.actions)
    fit = GaussianMoments("full", noise_var=1.0).fit(explored)
    assert run.fits[0].prior == fit.prior
    assert [(held.first, held.episodes) for held in run.history[0]] == [(1, 80), (81, 40)]
    held = pw.simulate(
        problem.prior, THOMPSON, horizon=10, tasks=120, seed=seed, believed=fit.prior, keep=True
    )
    np.testing.assert_array_equal(run.actions[0, 80:], held.actions[80:])
    np.testing.assert_allclose(run.rewards[0, 80:], held.rewards[80:].sum(axis=1))
    assert run.fits[1].prior != fit.prior


def test_exploration_in_segments(seed: int) -> None:
    class Recorder:
        def fit(self, data: pw.Run, *, start: Any = None) -> PriorFit:
            return PriorFit(BETA, "recorder", data.tasks, statistics=data.actions)

    learner = ExploreThenCommit(10, Recorder(), OneArmBlocks(3))
    run = simulate_meta(
        BETA, learner, episodes=12, replicates=1, horizon=3, seed=seed, jobs=1, keep=True
    )
    assert run.actions[0, :10, 0].tolist() == [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert run.fits[0].tasks == 10
    np.testing.assert_array_equal(run.fits[0].statistics, run.actions[0, :10])


@pytest.mark.parametrize("largest", [None, 16])
def test_running_mean_by_hand(
    largest: int | None, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Episode by episode: nu_t from the first pulls before it, Thompson sampling with N(nu_t, I)
    after its own first pull.
    """
    from priorwise.meta.learners import simulate_meta as module

    if largest is not None:
        monkeypatch.setattr(module, "block_size", lambda *_: largest)
    problem = problems.gaussian()
    estimator = GaussianMoments("no-cov", noise_var=1.0, cov=np.eye(6))
    learner = ExploreThenCommit(
        40, estimator, UniformThen(1, THOMPSON), exploring_with=RunningMean(np.eye(6))
    )
    run = simulate_meta(
        problem.prior, learner, episodes=50, replicates=1, horizon=5, seed=seed, jobs=1, keep=True
    )
    total = np.zeros(6)
    for t in range(50):
        policy = UniformThen(1, THOMPSON) if t < 40 else THOMPSON
        # nu_1 = 0, and the commitment to all 40
        believed = pw.GaussianPrior(total / min(max(t, 1), 40), np.eye(6))
        alone = pw.simulate(
            problem.prior, policy, horizon=5, tasks=t + 1, seed=seed, believed=believed, keep=True
        )
        np.testing.assert_array_equal(run.actions[0, t], alone.actions[t], err_msg=f"episode {t}")
        assert run.rewards[0, t] == pytest.approx(alone.rewards[t].sum())
        if t < 40:
            total[alone.actions[t, 0]] += 6 * alone.rewards[t, 0]
    np.testing.assert_allclose(run.fits[0].prior.mean, total / 40)


@pytest.mark.parametrize("before", [0, 70])
@pytest.mark.parametrize(
    "cov", [np.eye(6), np.kron(np.eye(2), np.full((3, 3), 0.9) + 0.1 * np.eye(3)), np.ones((6, 6))]
)
def test_the_running_mean_is_the_same_in_both_engines(cov: Any, before: int, seed: int) -> None:
    """In whole and in broken tiles, with and without episodes before."""
    prior = problems.gaussian().prior
    law = RunningMean(cov, noise_var=[1.0, 2.0, 1.0, 0.5, 1.0, 1.0])
    run = pw.simulate(
        prior, UniformThen(1, THOMPSON), horizon=6, tasks=70, seed=seed + 1, keep=True
    )
    held = law.exploring(run.trajectory if before else None)
    options: dict[str, Any] = {
        "seed": seed,
        "first": 5,
        "tasks": 200,
        "horizon": 6,
        "available": None,
        "keep": True,
    }
    policy = UniformThen(1, THOMPSON)
    compiled, literal = (
        choose(prior, held, policy, 6, masked=False, engine=each).run(**options)
        for each in ("compiled", "numpy")
    )
    np.testing.assert_array_equal(compiled.columns.actions, literal.columns.actions)
    np.testing.assert_allclose(
        compiled.columns.rewards, literal.columns.rewards, rtol=1e-12, atol=1e-12
    )


def test_running_means_held_together_do_not_see_each_other(seed: int) -> None:
    prior, policy = problems.gaussian().prior, UniformThen(1, THOMPSON)
    held = [RunningMean(scale * np.eye(6), 1.0).exploring(None) for scale in (1.0, 2.0)]
    options: dict[str, Any] = {"seed": seed, "first": 5, "tasks": 200, "horizon": 6}
    for each, totals in zip(
        held, run_together(prior, held, policy, begins=[0, 0], **options), strict=True
    ):
        alone = choose(prior, each, policy, 6, masked=False, engine="auto").run(
            **options, available=None, keep=False
        )
        np.testing.assert_array_equal(totals, alone.totals)


def test_a_policy_that_reads_a_running_mean_too_early_is_refused(seed: int) -> None:
    prior = problems.gaussian().prior
    held = RunningMean(np.eye(6), 1.0).exploring(None)
    for policy in (THOMPSON, UniformThen(0, THOMPSON), pw.Greedy()):
        for engine in ("auto", "compiled", "numpy"):
            with raises("policy", "must not look at a running"):
                choose(prior, held, policy, 6, masked=False, engine=engine)
    twice = UniformThen(1, UniformThen(0, THOMPSON))
    assert choose(prior, held, twice, 6, masked=False, engine="auto").engine == "compiled"
    with raises("prior", "must be one to sample from"):
        pw.simulate(held, UniformThen(1, THOMPSON), believed=prior, horizon=2, tasks=2, seed=seed)
    # blocks of tasks would each start anew
    with raises("believed", "must not be learned by tasks"):
        pw.simulate(prior, UniformThen(1, THOMPSON), believed=held, horizon=2, tasks=2, seed=seed)


def test_running_mean_needs_a_blind_first_pull(seed: int) -> None:
    learner = ExploreThenCommit(
        5, GaussianMoments("full", noise_var=1.0), THOMPSON, exploring_with=RunningMean(np.eye(6))
    )
    with raises("policy", "must not look at a running"):
        simulate_meta(
            problems.gaussian().prior,
            learner,
            episodes=5,
            replicates=1,
            horizon=3,
            seed=seed,
            jobs=1,
        )


SIX = {
    "gaussian": pw.GaussianPrior(np.zeros(6), np.eye(6)),
    "beta": pw.BetaPrior(np.ones(6), np.ones(6)),
}
FEW: dict[str, Any] = {"episodes": 8, "replicates": 3, "horizon": 3, "jobs": 1, "keep": True}


@pytest.mark.parametrize(
    ("family", "estimator"),
    [
        ("gaussian", GaussianMarginalLikelihood()),
        ("gaussian", GaussianMarginalLikelihood("exchangeable")),
        ("gaussian", GaussianMoments("two-round")),
        ("gaussian", GaussianMoments("no-cov")),
        ("beta", BetaMarginalLikelihood()),
        ("beta", BetaMarginalLikelihood("exchangeable")),
        ("beta", BetaMoments(steps=2)),
    ],
)
def test_arms_that_exploration_missed_are_arms_all_the_same(
    family: str, estimator: Any, seed: int
) -> None:
    """One task of three pulls leaves at least three of six arms out; moments read the pulls that
    they read of a run.
    """
    run = simulate_meta(SIX[family], ExploreThenCommit(1, estimator), seed=seed, **FEW)
    for fit, held in zip(run.fits, run.history, strict=True):
        assert held[-1].believed.arms == fit.statistics.arms == 6
        pulls = {"two-round": 2, "no-cov": 1}.get(
            getattr(estimator, "variant", ""), getattr(estimator, "steps", None) or 3
        )
        assert fit.statistics.pulls.sum() == pulls


@pytest.mark.parametrize(
    "learner",
    [EmpiricalBayes, lambda estimator: ExploreThenCommit(5, estimator)],
    ids=["eb", "etc"],
)
def test_what_is_no_estimator_is_refused(learner: Any) -> None:
    with raises("estimator", "not the class"):
        learner(GaussianMarginalLikelihood)
    with raises("estimator", "an estimator with fit"):
        learner(object())


def test_a_noise_that_the_tasks_do_not_have_is_refused(seed: int) -> None:
    noisy = pw.GaussianPrior(np.zeros(2), np.eye(2), noise_var=4.0)
    linear = pw.LinearGaussianPrior(np.ones(2), np.eye(2), 4.0, pw.SphereContexts(arms=3))
    for truth, learner in (
        (noisy, EmpiricalBayes(GaussianMarginalLikelihood(noise_var=1.0))),
        (noisy, EmpiricalBayes(GaussianMarginalLikelihood(noise_var=[1.0, 2.0]))),
        (noisy, ExploreThenCommit(2, GaussianMoments(noise_var=1.0))),
        (
            noisy,
            ExploreThenCommit(
                2, GaussianMoments("no-cov", noise_var=1.0), exploring_with=RunningMean(np.eye(2))
            ),
        ),
        (linear, EmpiricalBayes(LinearMarginalLikelihood(contexts=linear.contexts, noise_var=1.0))),
        (linear, ExploreThenCommit(2, LinearMoments(linear.contexts, 1.0))),
    ):
        with pytest.raises(ArgumentError) as refused:
            simulate_meta(truth, learner, seed=seed, **{**FEW, "jobs": 2})
        assert refused.value.__cause__ is None  # not a remote traceback
    with raises("noise_var", "the tasks"):
        simulate_meta(
            noisy,
            EmpiricalBayes(GaussianMarginalLikelihood(noise_var=[4.0, 4.0, 4.0])),
            seed=seed,
            **FEW,
        )
    for known in (4.0, [4.0, 4.0]):
        simulate_meta(
            noisy, EmpiricalBayes(GaussianMarginalLikelihood(noise_var=known)), seed=seed, **FEW
        )
    meant = EmpiricalBayes(
        GaussianMarginalLikelihood(noise_var=1.0), start=pw.GaussianPrior(np.zeros(2), np.eye(2))
    )
    simulate_meta(noisy, meant, seed=seed, **FEW)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["compiled", "numpy"])
def test_a_noise_left_open_is_that_of_the_tasks(engine: Any, seed: int) -> None:
    """The same rewards, to the last bit, as with the noise passed; and others than with a wrong
    one.
    """
    arms = pw.GaussianPrior([0.5, 0.0], np.eye(2), noise_var=[0.25, 2.0])
    alike = pw.GaussianPrior([0.5, 0.0], np.eye(2), noise_var=0.25)
    linear = pw.LinearGaussianPrior(np.ones(2), np.eye(2), 0.25, pw.SphereContexts(arms=3))
    first, uniform = UniformThen(1, THOMPSON), pw.Uniform()
    cases: list[tuple[Any, Any]] = [
        (arms, lambda **noise: EmpiricalBayes(GaussianMarginalLikelihood(**noise))),
        (
            alike,
            lambda **noise: EmpiricalBayes(GaussianMarginalLikelihood("exchangeable", **noise)),
        ),
        (arms, lambda **noise: ExploreThenCommit(3, GaussianMoments(**noise))),
        (
            arms,
            lambda **noise: ExploreThenCommit(
                3,
                GaussianMoments("no-cov", **noise),
                first,
                exploring_with=RunningMean(np.eye(2), **noise),
            ),
        ),
        (
            linear,
            lambda **noise: EmpiricalBayes(
                LinearMarginalLikelihood(linear.contexts, **noise), THOMPSON
            ),
        ),
        (
            linear,
            lambda **noise: ExploreThenCommit(3, LinearMoments(linear.contexts, **noise), uniform),
        ),
    ]
    for truth, learner in cases:
        noise = truth.noise_var if truth is arms else float(truth.noise_var[0])
        options = {**FEW, "seed": seed, "engine": engine}
        got, known = (
            simulate_meta(truth, learner(**each), **options) for each in ({}, {"noise_var": noise})
        )
        np.testing.assert_array_equal(got.rewards, known.rewards)
        assert all(
            (held.believed.noise_var == truth.noise_var).all()
            for held in got.history[0]
            if hasattr(held.believed, "noise_var")
        )


@dataclass(frozen=True)
class Untouched:
    """An estimator that must be refused before it fits."""

    inner: Any

    def for_tasks(self, known: Any) -> Any:
        """Ask the estimator inside."""
        return Untouched(self.inner.for_tasks(known))

    def fit(self, data: Any, *, start: Any = None) -> PriorFit:
        """Work that must not begin."""
        raise AssertionError("a fit began")


NORMAL2 = pw.GaussianPrior(np.zeros(2), np.eye(2))
CLICKS2 = pw.BetaPrior([1.0, 1.0], [1.0, 1.0])
LINEAR2 = pw.LinearGaussianPrior(np.ones(2), np.eye(2), 1.0, pw.SphereContexts(arms=3))
CODES2 = pw.FinitePrior([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5])


@pytest.mark.parametrize(
    ("truth", "estimator", "says"),
    [
        (
            NORMAL2,
            BetaMarginalLikelihood(),
            ("estimator", "reads rewards that are 0 or 1"),
        ),
        (NORMAL2, BetaMoments(), ("estimator", "reads rewards that are 0 or 1")),
        (LINEAR2, BetaMarginalLikelihood(), ("estimator", "LinearGaussianPrior")),
        (pw.FinitePrior([[3.0, 0.0]], [1.0]), BetaMoments(), ("estimator", "FinitePrior")),
        (
            NORMAL2,
            LinearMarginalLikelihood(np.eye(2)),
            ("estimator", "reads features"),
        ),
        (CLICKS2, LinearMoments(np.eye(2)), ("estimator", "reads features")),
        (
            LINEAR2,
            LinearMoments(np.eye(2)),
            ("contexts", "must be those of the tasks"),
        ),
        (
            LINEAR2,
            LinearMarginalLikelihood(pw.SphereContexts(arms=4)),
            ("contexts", "must be those of the tasks"),
        ),
        (
            NORMAL2,
            FiniteCounts(CODES2),
            ("FiniteCounts", "has candidates with noise='none'"),
        ),
        (
            NORMAL2,
            GaussianMarginalLikelihood(arms=3),
            ("arms", "GaussianMarginalLikelihood"),
        ),
        (
            NORMAL2,
            GaussianMoments("no-cov", cov=np.eye(3)),
            ("cov", "GaussianMoments"),
        ),
        (CLICKS2, BetaMarginalLikelihood(arms=3), ("arms", "BetaMarginalLikelihood")),
        (
            CODES2,
            FiniteMarginalLikelihood(pw.FinitePrior(np.eye(3), np.full(3, 1 / 3))),
            ("candidates", "FiniteMarginalLikelihood"),
        ),
    ],
)
def test_an_estimator_for_other_tasks_is_refused_before_any_work(
    truth: Any, estimator: Any, says: str | tuple[str, str], seed: int
) -> None:
    moments = isinstance(estimator, (GaussianMoments, BetaMoments, LinearMoments, FiniteCounts))
    learners = [ExploreThenCommit(2, Untouched(estimator))]
    learners += [] if moments else [EmpiricalBayes(Untouched(estimator))]  # type: ignore[list-item]
    for learner in learners:
        with raises(says) as refused:
            simulate_meta(truth, learner, seed=seed, **{**FEW, "jobs": 2})
        assert refused.value.__cause__ is None  # not a remote traceback


def test_statistics_of_another_family_than_the_start_are_refused(seed: int) -> None:
    for truth, estimator, start, says in (
        (
            CLICKS2,
            GaussianMarginalLikelihood(),
            None,
            ("estimator", "a BetaPrior"),
        ),
        (
            CODES2,
            BetaMarginalLikelihood(),
            None,
            ("estimator", "a FinitePrior"),
        ),
    ):
        with raises(says):
            simulate_meta(truth, EmpiricalBayes(estimator, start=start), seed=seed, **FEW)
    clicks = EmpiricalBayes(
        GaussianMarginalLikelihood(), start=pw.GaussianPrior([0.5, 0.5], np.eye(2), 0.25)
    )
    # a normal model of clicks is wrong, and may be meant
    simulate_meta(CLICKS2, clicks, seed=seed, **FEW)
    other = EmpiricalBayes(
        FiniteMarginalLikelihood(pw.FinitePrior([[2.0, 0.0], [0.0, 1.0]], [0.5, 0.5]))
    )
    with raises("FiniteMarginalLikelihood", "other candidates than the prior that the"):
        simulate_meta(CODES2, other, seed=seed, **FEW)


# --- empirical Bayes
# -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stub:
    """Remembers what it was given, in the fit it returns."""

    def fit(self, data: Any, *, start: Any = None) -> PriorFit:
        return PriorFit(
            GAUSSIAN, "stub", data.tasks, warnings=(f"{type(start).__name__}",), statistics=data
        )


def test_schedules() -> None:
    times = [0]
    while times[-1] < 40:
        times.append(Geometric(1.2).after(times[-1]))
    assert times == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 19, 22, 26, 31, 37, 44]
    assert Every(25).after(50) == 75
    with raises("ratio", "above 1"):
        Geometric(1.0)


def test_empirical_bayes_fits_all_data_on_schedule(seed: int) -> None:
    learner = EmpiricalBayes(Stub(), THOMPSON, Every(8))
    run = simulate_meta(
        GAUSSIAN, learner, episodes=20, replicates=2, horizon=4, seed=seed, jobs=1, keep=True
    )
    assert [(held.first, held.episodes) for held in run.history[0]] == [(1, 8), (9, 8), (17, 4)]
    assert run.history[0][0].believed == Setting(GAUSSIAN, 4).blank
    assert run.history[0][1].believed is GAUSSIAN
    fit = run.fits[1]
    assert fit.tasks == 16
    assert fit.warnings == ("PriorFit",)  # warm start
    kept = run.kept[1].trajectory
    expected = GaussianStatistics.from_trajectory(kept.actions[:16], kept.rewards[:16], arms=3)
    np.testing.assert_array_equal(fit.statistics.sums, expected.sums)
    assert run.states[1].statistics.tasks == 20


@dataclass(frozen=True)
class TakesArmsForTheirNeighbours:
    """A wrong estimator, to check the check: the right fit with its arms moved by one."""

    def fit(self, data: Any, *, start: Any = None) -> PriorFit:
        prior = GaussianMarginalLikelihood(noise_var=1.0).fit(data).prior
        order = np.roll(np.arange(prior.arms), 1)
        return PriorFit(
            pw.GaussianPrior(prior.mean[order], prior.cov[np.ix_(order, order)]),
            "mistaken",
            data.tasks,
        )


@pytest.mark.slow
def test_empirical_bayes_recovers_the_prior(seed: int) -> None:
    """Thompson sampling learns a normal prior from its own choices: false alarm below 1e-6 (5
    standard errors of 30 replicates).

    Control: a learner that fits as well and then takes each arm for its neighbour.
    """
    problem = problems.gaussian()
    options: dict[str, Any] = {
        "episodes": 150,
        "replicates": 30,
        "horizon": 10,
        "seed": seed,
        "jobs": 1,
    }
    oracle = simulate_meta(problem.prior, FixedPrior(THOMPSON), **options)
    learned = simulate_meta(
        problem.prior,
        EmpiricalBayes(GaussianMarginalLikelihood(), schedule=Geometric(1.5)),
        **options,
    )
    never = simulate_meta(
        problem.prior, FixedPrior(THOMPSON, Setting(problem.prior, 10).blank), **options
    )
    gained, lost = never.shortfall(learned, 101, 150), never.shortfall(oracle, 101, 150)
    assert gained.mean > 0.6 * lost.mean + 5 * gained.std_error
    mistaken = simulate_meta(
        problem.prior, EmpiricalBayes(TakesArmsForTheirNeighbours(), schedule=Every(75)), **options
    )
    control = never.shortfall(mistaken, 101, 150)
    assert not control.mean > 0.6 * lost.mean + 5 * control.std_error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "estimator", "policy", "episodes"),
    [
        ("linear", LinearMarginalLikelihood(contexts=pw.SphereContexts(arms=6)), THOMPSON, 60),
        ("finite", None, pw.KnowledgeGradient(10, 10), 100),
        ("beta", BetaMarginalLikelihood(), THOMPSON, 100),
    ],
)
def test_empirical_bayes_learns_in_every_family(
    problem: str, estimator: Any, policy: Any, episodes: int, seed: int
) -> None:
    truth: Any = pw.BetaPrior([30.0, 4.0, 8.0, 8.0], [10.0, 16.0, 12.0, 12.0])
    if problem == "linear":
        truth = problems.linear().prior
    elif problem == "finite":
        truth = problems.discrete().prior
        estimator = FiniteMarginalLikelihood(truth)
    options: dict[str, Any] = {
        "episodes": episodes,
        "replicates": 20,
        "horizon": 10,
        "seed": seed,
        "jobs": 1,
    }
    oracle = simulate_meta(truth, FixedPrior(policy), **options)
    learned = simulate_meta(truth, EmpiricalBayes(estimator, policy, Geometric(2.0)), **options)
    never = simulate_meta(truth, FixedPrior(policy, Setting(truth, 10).blank), **options)
    half = episodes // 2
    gained, lost = never.shortfall(learned, half, episodes), never.shortfall(oracle, half, episodes)
    assert gained.mean > 5 * gained.std_error
    assert gained.mean > 0.6 * lost.mean - 5 * (gained.std_error + lost.std_error)


@dataclass(frozen=True)
class Picky:
    """Fits nothing below so many tasks."""

    least: int

    def fit(self, data: Any, *, start: Any = None) -> PriorFit:
        if data.tasks < self.least:
            raise ValueError("too few tasks")
        return PriorFit(GAUSSIAN, "picky", data.tasks)


def test_too_little_data_for_a_fit_are_no_end(seed: int) -> None:
    options: dict[str, Any] = {"replicates": 1, "horizon": 3, "seed": seed, "jobs": 1, "keep": True}
    run = simulate_meta(
        GAUSSIAN, EmpiricalBayes(Picky(7), THOMPSON, Every(3)), episodes=12, **options
    )
    blank = Setting(GAUSSIAN, 3).blank
    assert [held.believed == blank for held in run.history[0]] == [True, True, True, False]
    assert run.states[0].problem is None
    early = simulate_meta(
        GAUSSIAN, EmpiricalBayes(Picky(7), THOMPSON, Every(3)), episodes=6, **options
    )
    assert early.states[0].problem == "too few tasks"
    with pytest.raises(ValueError, match="too few tasks"):  # more data would not help
        simulate_meta(
            GAUSSIAN, EmpiricalBayes(Picky(1000), THOMPSON, Every(10)), episodes=60, **options
        )


@pytest.mark.parametrize(
    ("noise", "truth"), [("shared", [4.0, 4.0, 4.0]), ("per-arm", [0.25, 4.0, 0.25])]
)
def test_an_unknown_noise_is_learned_from_the_first_task_on(
    noise: Any, truth: list[float], seed: int
) -> None:
    """Within 6 standard errors, of some 7 % (false alarm below 1e-6); control: the variance 1 is as
    many away.
    """
    prior = pw.GaussianPrior([0.5, 0.0, 0.2], 0.5 + 0.5 * np.eye(3), truth)
    learner = EmpiricalBayes(GaussianMarginalLikelihood(noise_var=noise), schedule=Geometric(2.0))
    run = simulate_meta(
        prior, learner, episodes=1030, replicates=2, horizon=8, seed=seed, jobs=1, keep=True
    )
    for fit, history in zip(run.fits, run.history, strict=True):
        fits = [held.believed for held in history]
        assert [held.first for held in history[:3]] == [1, 2, 3]
        assert fits[1] != fits[0], "one task is enough to fit to"
        error = fit.std_errors["noise_var"]
        assert (np.abs(fit.prior.noise_var - truth) < 6 * error).all()
        assert (np.abs(fit.prior.noise_var - 1.0) > 6 * error).all()


def test_own_estimators_need_not_hand_on_the_statistics(seed: int) -> None:
    run = simulate_meta(GAUSSIAN, EmpiricalBayes(Picky(1), pw.Greedy(), Every(4)), seed=seed, **FEW)
    assert run.fits[0].statistics.tasks == 8
    assert run.history[0][-1].believed != GAUSSIAN  # widened


def test_moments_are_not_for_choices_that_followed_rewards() -> None:
    for estimator in (GaussianMoments(), BetaMoments()):
        with raises("estimator", "must allow for choices that followed"):
            EmpiricalBayes(estimator)
        EmpiricalBayes(estimator, pw.Uniform())


@pytest.mark.parametrize(
    "hold", [None, Drawn(), Widened(), Mixed(pw.GaussianPrior(np.zeros(6), 4.0 * np.eye(6)))]
)
def test_priors_of_exchangeable_arms_are_held_for_the_arms_of_the_tasks(
    hold: Any, seed: int
) -> None:
    learner = EmpiricalBayes(GaussianMarginalLikelihood("exchangeable"), hold=hold)
    run = simulate_meta(SIX["gaussian"], learner, seed=seed, **FEW)
    assert all(held.believed.arms == 6 for held in run.history[0])
    if not isinstance(hold, Mixed):
        beta = EmpiricalBayes(BetaMarginalLikelihood("exchangeable"), hold=hold)
        believed = simulate_meta(SIX["beta"], beta, seed=seed, **FEW).history[0][-1].believed
        assert np.ptp(believed.alpha) == pytest.approx(0.0, abs=1e-12)


def test_a_start_prior_without_statistics_is_refused(seed: int) -> None:
    with raises("start", "must be a prior of a"):
        simulate_meta(
            GAUSSIAN,
            EmpiricalBayes(Stub(), start=RunningMean(np.eye(3), 1.0).exploring(None)),
            episodes=2,
            replicates=1,
            horizon=2,
            seed=seed,
            jobs=1,
        )


# --- robustness
# -------------------------------------------------------------------------------------------------


def rng(seed: int) -> Any:
    return Streams(seed, np.zeros(1, dtype=np.uint64)).at(Purpose.POLICY, 1)


def test_mean_covariance_is_that_of_generalised_least_squares(seed: int) -> None:
    """``(sum_t X_t' C_t^-1 X_t + K^-1)^-1`` over the tasks' full covariances; also from groups."""
    for prior in (GAUSSIAN, LINEAR):
        data = played(prior, seed, tasks=9, horizon=4)
        noise = prior.noise_var if prior is GAUSSIAN else np.ones(3)
        held = (
            pw.GaussianPrior(prior.mean, prior.cov, noise)
            if prior is GAUSSIAN
            else pw.LinearGaussianPrior(prior.mean, prior.cov, 1.0, prior.contexts)
        )
        reading = EmpiricalBayes(Stub(), start=held)
        state = reading.step(
            reading.init(Setting(held, 4)),
            reading.plan(reading.init(Setting(held, 4)), rng(0)),
            data,
        )
        x = features(prior, data)
        precision = np.eye(prior.mean.size) / np.mean(noise)
        for t in range(9):
            precision += x[t].T @ np.linalg.solve(
                x[t] @ held.cov @ x[t].T + np.diag(noise[data.actions[t]]), x[t]
            )
        fit = PriorFit(held, "by hand", 9, statistics=state.statistics)
        np.testing.assert_allclose(mean_covariance(fit), np.linalg.inv(precision), atol=1e-12)
        wide = Widened(2.0, raised=0.0).hold(fit, rng(seed))
        np.testing.assert_allclose(wide.cov, held.cov + 2.0 * np.linalg.inv(precision), atol=1e-12)
        np.testing.assert_array_equal(wide.mean, held.mean)
    grouped = PriorFit(
        GAUSSIAN,
        "by hand",
        9,
        statistics=GaussianStatistics.from_trajectory(data.actions, data.rewards, arms=3).grouped(),
    )
    single = PriorFit(
        GAUSSIAN,
        "by hand",
        9,
        statistics=GaussianStatistics.from_trajectory(data.actions, data.rewards, arms=3),
    )
    np.testing.assert_allclose(mean_covariance(grouped), mean_covariance(single))
    raised = Widened(0.0, raised=2.0).hold(single, rng(seed))
    np.testing.assert_allclose(
        raised.mean, GAUSSIAN.mean + 2.0 * np.sqrt(np.diag(mean_covariance(single)))
    )
    with raises("fit", "holds no statistics of normal rewards"):
        mean_covariance(PriorFit(GAUSSIAN, "loaded", 9))
    with raises("widened", "negative"):
        Widened(-1.0)


def test_widening_needs_little_memory(seed: int) -> None:
    """Twenty thousand tasks of ten arms: an array of a matrix each is 16 MB."""
    run = played(
        pw.GaussianPrior(np.zeros(10), np.eye(10)),
        seed,
        tasks=20_000,
        horizon=5,
        policy=pw.Uniform(),
    )
    prior = pw.GaussianPrior(np.zeros(10), np.eye(10))
    fit = PriorFit(
        prior,
        "by hand",
        9,
        statistics=GaussianStatistics.from_trajectory(run.actions, run.rewards, arms=10),
    )
    tracemalloc.start()
    mean_covariance(fit)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12e6


def test_rules_turn_fits_into_priors(seed: int) -> None:
    beta = BetaMarginalLikelihood().fit(
        as_run(played(BETA, seed, tasks=60, horizon=8, policy=pw.Uniform()))
    )
    finite = FiniteMarginalLikelihood(FINITE).fit(
        pw.simulate(FINITE, pw.Uniform(), horizon=8, tasks=60, seed=seed, keep=True)
    )
    for fit in (beta, finite):
        assert AsFitted().hold(fit, rng(seed)) is fit.prior
        assert Drawn().hold(fit, rng(seed)) != fit.prior
        assert Drawn().hold(fit, rng(seed)) == Drawn().hold(fit, rng(seed))
        assert type(Widened().hold(fit, rng(seed))) is type(fit.prior)
    wide = Widened().hold(beta, rng(seed))
    strength, mean = wide.alpha + wide.beta, wide.alpha / (wide.alpha + wide.beta)
    many = beta.draw(np.random.default_rng(seed), 4000)
    np.testing.assert_allclose(
        mean, np.mean([p.alpha / (p.alpha + p.beta) for p in many], axis=0), atol=0.05
    )
    assert (strength > 0).all()
    mixed = Mixed(WIDE, 0.25).hold(PriorFit(GAUSSIAN, "by hand", 9), rng(seed))
    assert isinstance(mixed, MixturePrior)
    assert mixed.probs.tolist() == [0.75, 0.25]
    with raises("share", "must lie strictly between 0 and 1"):
        Mixed(WIDE, 1.0)
    with raises("components", "must share"):
        MixturePrior([GAUSSIAN, BETA], [0.5, 0.5])
    elsewhere = pw.LinearGaussianPrior(LINEAR.mean, LINEAR.cov, LINEAR.noise_var, np.eye(3)[:, :2])
    with raises("components", "contexts"):
        MixturePrior([LINEAR, elsewhere], [0.5, 0.5])


@pytest.mark.parametrize("noise", [1.0, None])
def test_empirical_bayes_with_a_mixture(noise: float | None, seed: int) -> None:
    """End to end: the vague part takes the noise of the fit, known or estimated, and the mixture is
    what is held.
    """
    truth, vague = problems.gaussian().prior, pw.GaussianPrior(np.zeros(6), 4.0 * np.eye(6))
    learner = EmpiricalBayes(
        GaussianMarginalLikelihood(noise_var=noise), schedule=Geometric(2.0), hold=Mixed(vague, 0.1)
    )
    run = simulate_meta(
        truth, learner, episodes=40, replicates=2, horizon=10, seed=seed, jobs=1, keep=True
    )
    for fit, history in zip(run.fits, run.history, strict=True):
        held = history[-1].believed
        assert isinstance(held, MixturePrior)
        assert held.components[0] == fit.prior
        np.testing.assert_array_equal(held.components[1].noise_var, fit.prior.noise_var)
        np.testing.assert_array_equal(held.components[1].cov, vague.cov)
    if noise is not None:
        assert run.fits[0].prior.reward_law == truth.reward_law


def test_a_mixture_forgives_what_the_learned_prior_does_not(seed: int) -> None:
    """Tasks from a law that the learned prior nearly excludes: a small vague share recovers most of
    the loss.
    """
    learned = pw.GaussianPrior([2.0, 0.0, 0.0], 0.01 * np.eye(3))
    vague = pw.GaussianPrior(np.zeros(3), 4.0 * np.eye(3))
    truth = pw.GaussianPrior([-1.0, 0.0, 1.0], 0.25 * np.eye(3))
    options: dict[str, Any] = {"horizon": 15, "tasks": 1500, "seed": seed}
    policies = {
        "learned": (THOMPSON, learned),
        "mixed": (THOMPSON, MixturePrior([learned, vague], [0.95, 0.05])),
        "vague": (THOMPSON, vague),
    }
    result = pw.compare(truth, policies, **options)
    gain, possible = result.difference("mixed", "learned"), result.difference("vague", "learned")
    assert gain.mean > 0.7 * possible.mean > 5 * possible.std_error
    # and costs little where the learned prior is right
    calm = pw.compare(learned, policies, **options)
    loss = calm.difference("learned", "mixed")
    assert loss.mean < 0.1 * calm.difference("learned", "vague").mean + 5 * loss.std_error


def test_alarm_has_its_false_alarm_rate_and_power(seed: int) -> None:
    """600 sequences of 40 tasks, Thompson sampling: at level 0.1 more than 98 alarms have
    probability below 1e-6.
    """
    other = MixturePrior(
        [WIDE, pw.GaussianPrior(GAUSSIAN.mean - 0.8, GAUSSIAN.cov, GAUSSIAN.noise_var)], [0.5, 0.5]
    )
    shifted = pw.GaussianPrior(GAUSSIAN.mean - 1.0, GAUSSIAN.cov, GAUSSIAN.noise_var)

    def alarms(truth: Any) -> int:
        data = played(truth, seed, tasks=600 * 40, horizon=5, believed=GAUSSIAN)
        count = 0
        for k in range(600):
            part = slice(40 * k, 40 * (k + 1))
            count += (
                Alarm(GAUSSIAN, other, 0.1)
                .observe(Trajectory(data.actions[part], data.rewards[part], None))
                .raised
            )
        return count

    assert stats.binom.sf(98, 600, 0.1) < 1e-6
    assert alarms(GAUSSIAN) <= 98
    assert alarms(shifted) > 590


def test_alarm_adds_up_and_meets_the_impossible(seed: int) -> None:
    data = played(GAUSSIAN, seed, tasks=30, horizon=4)
    whole = Alarm(GAUSSIAN, WIDE).observe(data)
    parts = Alarm(GAUSSIAN, WIDE)
    for t in range(30):
        parts = parts.observe(Trajectory(data.actions[t : t + 1], data.rewards[t : t + 1], None))
    assert parts.log_evidence == pytest.approx(whole.log_evidence)
    assert parts.largest == pytest.approx(whole.largest)
    assert whole.p_value == pytest.approx(min(1.0, np.exp(-whole.largest)))
    held = pw.FinitePrior([[1.0, 0.0], [0.0, 1.0]], [1.0, 0.0])
    other = pw.FinitePrior([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5])
    alarm = Alarm(held, other).observe(Trajectory(np.array([[0]]), np.array([[0.0]]), None))
    assert alarm.raised
    assert alarm.p_value == 0.0
    gone = Alarm(other, held).observe(Trajectory(np.array([[0]]), np.array([[0.0]]), None))
    assert gone.log_evidence == -np.inf
    assert not gone.raised
    # neither a task that only the prior excludes nor one that both do brings NaN
    for task in (0.0, 0.3):
        later = gone.observe(Trajectory(np.array([[1], [0]]), np.array([[0.0], [task]]), None))
        assert not np.isnan(later.log_evidence)
    certain = gone.observe(Trajectory(np.array([[0]]), np.array([[0.3]]), None))
    assert certain.raised is True
    assert (
        certain.observe(Trajectory(np.array([[0]]), np.array([[1.0]]), None)).log_evidence == np.inf
    )
    for other, message in (
        (pw.GaussianPrior([0.0], [[1.0]]), ("prior and other", "must have the same")),
        (BETA, ("prior and other", "kind of rewards")),
    ):
        with raises(message):
            Alarm(GAUSSIAN, other)
    with raises("other", "has no fixed number of arms"):
        Alarm(BETA, pw.ExchangeableBetaPrior(1, 1))  # type: ignore[arg-type]
    with raises("level", "must lie"):
        Alarm(GAUSSIAN, WIDE, level=0.0)
    statistics = statistics_of(GAUSSIAN, data, "a test")
    assert family_for(GAUSSIAN, "a test").information(GAUSSIAN, statistics)[0].shape == (30, 3, 3)


def test_policies_that_do_not_explore_hold_a_widened_prior(seed: int) -> None:
    options: dict[str, Any] = {
        "episodes": 9,
        "replicates": 1,
        "horizon": 4,
        "seed": seed,
        "jobs": 1,
        "keep": True,
    }
    estimator = GaussianMarginalLikelihood(noise_var=GAUSSIAN.noise_var)
    for policy, wider in (
        (THOMPSON, False),
        (pw.Greedy(), True),
        (pw.ExactKnowledgeGradient(), True),
    ):
        run = simulate_meta(GAUSSIAN, EmpiricalBayes(estimator, policy, Every(8)), **options)
        gap = run.history[0][-1].believed.cov - run.fits[0].prior.cov
        assert (np.linalg.eigvalsh(gap).min() > 1e-3) == wider


# --- a change of the law of tasks
# ---------------------------------------------------------------------------------------------


def drive(
    learner: EmpiricalBayes,
    laws: list[tuple[Any, int]],
    *,
    horizon: int,
    seed: int,
    cut: int = 1000,
) -> tuple[Any, Any]:
    """Play tasks of one law after those of another, at most ``cut`` at a time: rewards (episode,)
    and the last state.
    """
    state, rewards, number = learner.init(Setting(laws[0][0], horizon)), [], 0
    for prior, episodes in laws:
        last = number + episodes
        while number < last:
            play = learner.plan(state, rng(seed))
            count = min(play.episodes, last - number, cut)
            blocks = [
                played(
                    prior,
                    mix(mix(seed) ^ (number + k)),
                    tasks=1,
                    horizon=horizon,
                    believed=play.believed,
                )
                for k in range(count)
            ]
            data = joined(blocks)
            state = learner.step(state, play, data)
            rewards.append(data.rewards.sum(axis=1))
            number += count
    return np.concatenate(rewards), state


@pytest.mark.slow
def test_a_watching_learner_starts_again_after_a_change(seed: int) -> None:
    """The best arm becomes the worst after 80 tasks: with a watch the learner is soon as good as
    before, without it is not.
    """
    old, new = (
        pw.GaussianPrior(mean, 0.2 * np.eye(4))
        for mean in ([1.5, 0.0, 0.0, -0.5], [-1.0, 0.0, 0.0, 1.0])
    )
    estimator, schedule = GaussianMarginalLikelihood(), Geometric(1.5)
    watching = EmpiricalBayes(estimator, THOMPSON, schedule, watch=Watch(level=1e-4))
    gains = []
    for k in range(4):
        earned, state = drive(watching, [(old, 80), (new, 60)], horizon=8, seed=mix(seed) + k)
        plain, blind = drive(
            EmpiricalBayes(estimator, THOMPSON, schedule),
            [(old, 80), (new, 60)],
            horizon=8,
            seed=mix(seed) + k,
        )
        np.testing.assert_array_equal(earned[:80], plain[:80])  # a watch changes nothing before
        assert state.restarts >= 1
        assert state.statistics.tasks < 75 < blind.statistics.tasks == 140
        assert blind.restarts == 0
        gains.append(earned[100:].mean() - plain[100:].mean())
    assert min(gains) > 2.0  # about 8, with a standard error of 1


def test_a_watching_learner_does_not_depend_on_blocks(seed: int) -> None:
    old, new = (pw.GaussianPrior([mean, 0.0], 0.2 * np.eye(2)) for mean in (1.5, -1.5))
    learner = EmpiricalBayes(
        GaussianMarginalLikelihood(), THOMPSON, Geometric(1.5), watch=Watch(least=10, episodes=6)
    )
    runs = [
        drive(learner, [(old, 30), (new, 20)], horizon=5, seed=seed, cut=cut) for cut in (1000, 4)
    ]
    np.testing.assert_array_equal(runs[0][0], runs[1][0])
    assert runs[0][1].restarts == runs[1][1].restarts >= 1


def test_watching_has_its_rate_of_false_alarms(seed: int) -> None:
    """At level 0.05 at least 20 tasks pass on average while tasks follow the held prior, and far
    fewer after a change.

    Cut at 100 tasks the mean of 40 times is about 60 with a standard error of 6, and 4 with one of
    0.5 after a change.
    """

    def times(truth: Any) -> np.ndarray:
        data = played(truth, seed, tasks=40 * 100, horizon=3, believed=GAUSSIAN)
        out = []
        for first in range(0, 40 * 100, 100):
            state = Watched()
            while not state.raised and state.tasks < 100:
                part = slice(first + state.tasks, first + state.tasks + 1)
                state = state.observe(
                    Watch(level=0.05),
                    GAUSSIAN,
                    WIDE,
                    Trajectory(data.actions[part], data.rewards[part], None),
                )
            out.append(state.tasks)
        return np.array(out)

    calm, changed = times(GAUSSIAN), times(WIDE)
    assert calm.mean() > 20
    assert changed.mean() < 20  # the control


def test_bad_watches_are_refused() -> None:
    for wrong in ({"level": 1.0}, {"episodes": 0}, {"least": 0}):
        with raises(next(iter(wrong))):
            Watch(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("prior", "estimator"),
    [
        (pw.BetaPrior([1.0, 2.0], [1.0, 1.0]), pw.LogitNormalMarginalLikelihood()),
        (pw.LogitNormalPrior([0.0, 0.5], np.eye(2)), pw.BetaMarginalLikelihood()),
        (
            pw.GaussianPrior([0.0, 1.0], np.eye(2)),
            pw.families.NormalGammaMarginalLikelihood(),
        ),
    ],
    ids=["logit-normal for beta", "beta for logit-normal", "normal-gamma for gaussian"],
)
def test_tasks_of_one_family_may_be_fitted_with_another(
    prior: Any, estimator: Any, seed: int
) -> None:
    run = pw.simulate_meta(
        prior, pw.EmpiricalBayes(estimator), episodes=80, replicates=1, horizon=4,
        seed=seed, progress=False, keep=True,
    )  # fmt: skip
    state = run.states[0]
    assert state.fit is not None
    assert type(state.fit.prior) is not type(prior)
