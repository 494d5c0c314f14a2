"""``simulate`` and ``compare``: what does not change a result, what a result holds, and what is
refused.
"""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from raising import raises

import priorwise as pw
from priorwise.core.streams import Purpose, Streams
from priorwise.simulate.engine import Engine, choose
from priorwise.simulate.sizes import block_size, entries
from priorwise.simulate.together import run_together

GAUSSIAN = pw.GaussianPrior([0.5, 0.0, 0.1], [[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
BETA = pw.BetaPrior([1.0, 2.0, 0.5], [1.0, 3.0, 1.5])
LINEAR = pw.LinearGaussianPrior(np.ones(2), np.eye(2), contexts=pw.SphereContexts(arms=3))
FINITE = pw.FinitePrior([[1.0, 0.0, 0.3], [0.0, 1.0, 0.3]], [0.7, 0.3])
PRIORS = {"gaussian": GAUSSIAN, "beta": BETA, "linear": LINEAR, "finite": FINITE}
THOMPSON = pw.ThompsonSampling()
IN_NUMPY = pw.PosteriorSampling(1, lambda values, seen: values[:, 0] * 0.0 + 1.0 / seen.arms)
OPTIONS: dict[str, Any] = {"horizon": 5, "tasks": 1500}


def same(first: pw.Run, second: pw.Run) -> None:
    """Bit for bit."""
    assert first.mean_reward == second.mean_reward
    assert first.std_error == second.std_error
    assert first.mean_regret == second.mean_regret
    for name, values in vars(first.by_step).items():
        np.testing.assert_array_equal(values, getattr(second.by_step, name), err_msg=name)


@pytest.mark.parametrize("engine", ["compiled", "numpy"])
@pytest.mark.parametrize("name", PRIORS)
def test_blocks_and_threads_change_nothing(name: str, engine: Any, seed: int) -> None:
    prior = PRIORS[name]
    expected = pw.simulate(prior, THOMPSON, seed=seed, engine=engine, **OPTIONS)
    for changed in (
        {"threads": 1},
        {"threads": 2},
        {"block": 64},
        {"block": 128, "threads": 2},
        {"block": 1000},
    ):
        same(pw.simulate(prior, THOMPSON, seed=seed, engine=engine, **OPTIONS, **changed), expected)


@pytest.mark.parametrize("engine", ["compiled", "numpy"])
@pytest.mark.parametrize("name", PRIORS)
def test_fewer_tasks_are_the_first_of_more(name: str, engine: Any, seed: int) -> None:
    options: dict[str, Any] = {"horizon": 4, "seed": seed, "engine": engine, "keep": True}
    long = pw.simulate(PRIORS[name], THOMPSON, tasks=300, **options)
    for tasks in (1, 63, 64, 65, 200):
        short = pw.simulate(PRIORS[name], THOMPSON, tasks=tasks, **options)
        np.testing.assert_array_equal(short.actions, long.actions[:tasks])
        np.testing.assert_array_equal(short.rewards, long.rewards[:tasks])


def test_other_policies_change_nothing(seed: int) -> None:
    alone = pw.simulate(GAUSSIAN, THOMPSON, seed=seed, **OPTIONS)
    for others in ({}, {"greedy": pw.Greedy()}, {"other blocks": IN_NUMPY}):
        same(pw.compare(GAUSSIAN, {"a": THOMPSON, **others}, seed=seed, **OPTIONS).runs["a"], alone)


HELD: dict[str, list[Any]] = {
    "gaussian": [
        GAUSSIAN,
        pw.GaussianPrior(np.zeros(3), np.eye(3)),
        pw.GaussianPrior([1.0, 0.0, 0.0], np.ones((3, 3))),
    ],
    "beta": [BETA, pw.BetaPrior(np.ones(3), np.ones(3))],
    "linear": [
        LINEAR,
        pw.LinearGaussianPrior(np.zeros(2), np.eye(2), 4.0, contexts=pw.SphereContexts(arms=3)),
    ],
    "finite": [FINITE, pw.FinitePrior(FINITE.means, [0.1, 0.9])],
    "mixed": [GAUSSIAN, pw.BetaPrior(np.ones(3), np.ones(3))],
}
POLICIES = {
    "ts": THOMPSON,
    "3-shot": pw.KShotThompson(3),
    "softmax": pw.PosteriorSampling(1, "softmax"),
    "greedy": pw.Greedy(),
}


@pytest.mark.parametrize("engine", ["auto", "numpy"])
@pytest.mark.parametrize("policy", [*POLICIES, "knowledge-gradient"])
@pytest.mark.parametrize("name", [name for name in HELD if name != "mixed"])
def test_priors_held_together_earn_what_each_earns_alone(
    name: str, policy: str, engine: Engine, seed: int
) -> None:
    prior, held, tasks = PRIORS[name], HELD[name], 300 if engine == "auto" else 70
    played = POLICIES.get(policy) or pw.KnowledgeGradient(3, 3)
    begins = [33, 0, 130][: len(held)] if engine == "auto" else [33, 0, 69][: len(held)]
    options: dict[str, Any] = {"seed": seed, "horizon": 5}
    together = run_together(
        prior, held, played, first=7, tasks=tasks, begins=begins, engine=engine, **options
    )
    for each, begin, totals in zip(held, begins, together, strict=True):
        alone = choose(prior, each, played, 5, masked=False, engine=engine)
        expected = alone.run(
            first=7 + begin, tasks=tasks - begin, available=None, keep=False, **options
        ).totals
        np.testing.assert_array_equal(totals, expected)
        assert len(totals) == tasks - begin


def test_priors_of_two_families_are_held_one_after_the_other(seed: int) -> None:
    bounded = pw.FinitePrior([[0.2, 0.9, 0.4], [0.7, 0.1, 0.4]], [0.5, 0.5], noise="bernoulli")
    options: dict[str, Any] = {"seed": seed, "first": 0, "tasks": 100, "horizon": 5}
    together = run_together(bounded, HELD["mixed"], THOMPSON, begins=[0, 0], **options)
    for each, totals in zip(HELD["mixed"], together, strict=True):
        np.testing.assert_array_equal(
            totals, run_together(bounded, [each], THOMPSON, begins=[0], **options)[0]
        )
    assert not np.array_equal(*together)


def test_bad_calls_of_priors_held_together() -> None:
    options: dict[str, Any] = {"seed": 0, "first": 0, "tasks": 10, "horizon": 2}
    with raises("begins", "must have one entry for each prior"):
        run_together(GAUSSIAN, [GAUSSIAN, GAUSSIAN], THOMPSON, begins=[0], **options)
    with raises("engine", "must be one of"):
        run_together(
            GAUSSIAN, [GAUSSIAN, GAUSSIAN], THOMPSON, begins=[0, 0], **options | {"engine": "fast"}
        )
    assert run_together(GAUSSIAN, [], THOMPSON, begins=[], **options) == []


def test_another_seed_gives_another_run(seed: int) -> None:
    first, second = (pw.simulate(GAUSSIAN, THOMPSON, seed=seed + k, **OPTIONS) for k in (0, 1))
    assert first.mean_reward != second.mean_reward


def test_policies_meet_the_same_environments_and_noise(seed: int) -> None:
    one_arm = pw.GaussianPrior([0.0], [[1.0]])
    runs = [
        pw.simulate(one_arm, p, seed=seed, keep=True, **OPTIONS)
        for p in (THOMPSON, pw.Uniform(), pw.BayesUCB())
    ]
    for run in runs[1:]:
        np.testing.assert_allclose(run.rewards, runs[0].rewards, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("engine", ["compiled", "numpy"])
def test_numbers_are_those_of_the_kept_columns(engine: Any, seed: int) -> None:
    run = pw.simulate(GAUSSIAN, THOMPSON, seed=seed, engine=engine, keep=True, **OPTIONS)
    assert run.actions.shape == run.rewards.shape == (1500, 5)
    assert run.actions.dtype == np.int64
    totals = run.rewards.sum(axis=1)
    assert run.mean_reward == pytest.approx(totals.mean(), rel=1e-12)
    assert run.std_error == pytest.approx(totals.std(ddof=1) / np.sqrt(1500), rel=1e-12)
    np.testing.assert_allclose(run.by_step.reward, run.rewards.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(
        run.by_step.reward_std_error, run.rewards.std(axis=0, ddof=1) / np.sqrt(1500), rtol=1e-12
    )
    assert run.by_step.regret is not None
    assert run.mean_regret == pytest.approx(run.by_step.regret.sum(), rel=1e-12)
    assert (run.tasks, run.horizon, run.seed, run.engine, run.resets) == (1500, 5, seed, engine, 0)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("engine", ["compiled", "numpy"])
def test_curves_by_step_are_those_of_the_drawn_environments(
    engine: Any, masked: bool, seed: int
) -> None:
    tasks = 1500
    available = (
        np.arange(3) != (np.arange(tasks) % 3)[:, None]
        if masked
        else np.ones((tasks, 3), dtype=bool)
    )
    run = pw.simulate(
        BETA, THOMPSON, seed=seed, engine=engine, keep=True, available=available, **OPTIONS
    )
    drawn = BETA.sample(
        Streams(seed, np.arange(tasks, dtype=np.uint64)).at(Purpose.ENVIRONMENT, 0), tasks
    ).means
    chosen = np.take_along_axis(drawn, run.actions, axis=1)
    regrets = np.where(available, drawn, -np.inf).max(axis=1, keepdims=True) - chosen
    steps, cumulative = run.by_step, np.cumsum(regrets, axis=1)
    for name, columns in {
        "expected_reward": chosen,
        "regret": regrets,
        "cumulative_regret": cumulative,
    }.items():
        np.testing.assert_allclose(
            getattr(steps, name), columns.mean(axis=0), rtol=1e-9, err_msg=name
        )
        error = columns.std(axis=0, ddof=1) / np.sqrt(tasks)
        np.testing.assert_allclose(
            getattr(steps, f"{name}_std_error"), error, rtol=1e-9, err_msg=name
        )
    assert run.mean_regret == pytest.approx(cumulative[:, -1].mean(), rel=1e-9)
    independent = np.sqrt(np.cumsum(regrets.var(axis=0, ddof=1)) / tasks)  # pulls of a task are not
    assert steps.cumulative_regret_std_error is not None
    assert steps.cumulative_regret_std_error[-1] > 1.2 * independent[-1]


def test_large_rewards_keep_their_standard_error(seed: int) -> None:
    """A mean far from zero must not cancel the variance."""
    far = pw.GaussianPrior([1e9, 1e9], np.eye(2), 1.0)
    run = pw.simulate(far, pw.Uniform(), horizon=1, tasks=5000, seed=seed, keep=True)
    assert run.std_error == pytest.approx(
        (run.rewards[:, 0] - 1e9).std(ddof=1) / np.sqrt(5000), rel=1e-6
    )


def test_contexts_are_logged(seed: int) -> None:
    for engine in ("compiled", "numpy"):
        run = pw.simulate(
            LINEAR, THOMPSON, horizon=3, tasks=70, seed=seed, keep=True, engine=engine
        )  # type: ignore[arg-type]
        assert run.trajectory is not None
        assert run.trajectory.log is not None
        assert run.trajectory.log.shape == (70, 3, 2)
        np.testing.assert_allclose(np.linalg.norm(run.trajectory.log, axis=2), 1.0, rtol=1e-12)


def test_paired_differences(seed: int) -> None:
    policies = {
        "thompson": THOMPSON,
        "greedy": pw.Greedy(),
        "flat": (THOMPSON, pw.GaussianPrior(np.zeros(3), np.eye(3))),
    }
    comparison = pw.compare(GAUSSIAN, policies, seed=seed, keep=True, **OPTIONS)
    totals = {name: run.rewards.sum(axis=1) for name, run in comparison.runs.items()}
    for a in policies:
        for b in policies:
            gap = totals[a] - totals[b]
            estimate = comparison.difference(a, b)
            assert estimate.mean == pytest.approx(gap.mean(), abs=1e-12)
            assert estimate.std_error == pytest.approx(gap.std(ddof=1) / np.sqrt(1500), abs=1e-12)
            # regrets are known without the noise of single rewards
            lost = comparison.runs[b].mean_regret - comparison.runs[a].mean_regret
            expected = comparison.expected_difference(a, b)
            assert expected.mean == pytest.approx(lost, abs=1e-12)
            off = np.hypot(expected.std_error, estimate.std_error)
            assert abs(expected.mean - estimate.mean) <= 5.0 * off  # one false alarm in 1.7 million
    assert comparison.best == max(totals, key=lambda name: totals[name].mean())
    assert all(name in str(comparison) for name in policies)
    with pytest.raises(KeyError, match="no policy 'other'"):
        comparison.difference("thompson", "other")


def test_believed_is_what_the_policy_holds(seed: int) -> None:
    sure = pw.GaussianPrior([0.0, 0.0, 5.0], 1e-12 * np.eye(3))
    run = pw.simulate(GAUSSIAN, THOMPSON, seed=seed, believed=sure, keep=True, **OPTIONS)
    assert (run.actions == 2).all()
    same(run, pw.compare(GAUSSIAN, {"a": THOMPSON}, believed=sure, seed=seed, **OPTIONS).runs["a"])


@pytest.mark.parametrize("engine", ["compiled", "numpy"])
def test_masks(engine: Any, seed: int) -> None:
    mask = np.random.default_rng(seed).random((1500, 3)) < 0.5
    mask[np.arange(1500), np.arange(1500) % 3] = True
    run = pw.simulate(
        GAUSSIAN, THOMPSON, seed=seed, available=mask, keep=True, engine=engine, **OPTIONS
    )
    assert np.take_along_axis(mask, run.actions, axis=1).all()
    one = pw.simulate(
        GAUSSIAN,
        THOMPSON,
        seed=seed,
        available=[False, True, False],
        keep=True,
        engine=engine,
        **OPTIONS,
    )
    assert (one.actions == 1).all()
    assert one.mean_regret == 0.0  # against the best available arm


@pytest.mark.parametrize("engine", ["compiled", "numpy"])
def test_impossible_trajectories_are_counted(engine: Any, seed: int) -> None:
    """The held prior excludes task 1, which shows itself at every pull."""
    held = pw.FinitePrior([[1.0], [2.0]], [1.0, 0.0])
    true = pw.FinitePrior([[1.0], [2.0]], [0.6, 0.4])
    run = pw.simulate(true, THOMPSON, seed=seed, believed=held, engine=engine, keep=True, **OPTIONS)
    assert run.resets == (run.rewards[:, 0] == 2.0).sum() > 0
    assert pw.simulate(true, THOMPSON, seed=seed, engine=engine, **OPTIONS).resets == 0


def peak(policy: Any, tasks: int, seed: int) -> int:
    tracemalloc.start()
    try:
        pw.simulate(GAUSSIAN, policy, horizon=5, tasks=tasks, seed=seed, threads=1)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("policy", "tasks"), [(THOMPSON, 50_000), (IN_NUMPY, 6_000)], ids=["compiled", "numpy"]
)
def test_memory_does_not_grow_with_tasks(policy: Any, tasks: int, seed: int) -> None:
    peak(policy, 100, seed)  # compile first
    small, large = peak(policy, tasks, seed), peak(policy, 8 * tasks, seed)
    assert large < 1.2 * small + 100_000


# What is refused: each message names the argument and says what to do


def call(**changed: Any) -> Any:
    arguments = {
        "prior": GAUSSIAN,
        "policy": THOMPSON,
        "horizon": 3,
        "tasks": 10,
        "seed": 0,
    } | changed
    return pw.simulate(arguments.pop("prior"), arguments.pop("policy"), **arguments)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"horizon": 0}, ValueError, ("horizon", "must be at least")),
        ({"tasks": 0}, ValueError, ("tasks", "must be at least")),
        ({"tasks": 10.0}, TypeError, ("tasks", "must be an")),
        ({"horizon": True}, TypeError, ("horizon", "must be an")),
        ({"seed": -1}, ValueError, ("seed", "must be at least 0")),
        ({"seed": 2**64}, ValueError, ("seed", "must be below 2")),
        ({"seed": None}, TypeError, ("seed", "must be an integer")),
        ({"threads": 0}, ValueError, ("threads", "must be at least 1")),
        ({"block": 0}, ValueError, ("block", "must be at least 1")),
        ({"engine": "gpu"}, ValueError, ("engine", "must be one of auto, compiled")),
        (
            {"engine": "compiled", "policy": IN_NUMPY},
            ValueError,
            ("engine", "PosteriorSampling"),
        ),
        (
            {"policy": "thompson"},
            TypeError,
            ("policy", "must have a method act(belief, seen, rng)"),
        ),
        (
            {"prior": [0.0, 1.0]},
            TypeError,
            ("prior", "must be a prior with arms, sample"),
        ),
        (
            {"prior": pw.ExchangeableBetaPrior(1, 1)},
            TypeError,
            ("prior", "has no fixed number of arms"),
        ),
        (
            {"believed": pw.ExchangeableGaussianPrior(0, 1, 0.5)},
            TypeError,
            ("believed", "has no fixed number of arms"),
        ),
        (
            {"believed": pw.BetaPrior([1, 1], 1)},
            ValueError,
            ("believed", "has 2 arms, but the tasks have"),
        ),
        ({"believed": BETA}, ValueError, ("believed", "expects rewards between 0 and 1")),
        ({"believed": LINEAR}, ValueError, ("believed", "expects contexts")),
        (
            {"available": [True, True]},
            ValueError,
            ("available", "must have shape (3,) or (10"),
        ),
        ({"available": [1, 1, 0]}, TypeError, ("available", "must be boolean")),
        (
            {"available": np.eye(10, 3, dtype=bool)},
            ValueError,
            ("available", "must leave each task at least"),
        ),
    ],
)
def test_bad_calls(
    changed: dict[str, Any], error: type[Exception], message: str | tuple[str, str]
) -> None:
    with raises(message, kind=error):
        call(**changed)


def test_seed_is_required() -> None:
    with pytest.raises(TypeError, match="seed"):
        pw.simulate(GAUSSIAN, THOMPSON, horizon=3, tasks=10)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="seed"):
        pw.compare(GAUSSIAN, {"a": THOMPSON}, horizon=3, tasks=10)  # type: ignore[call-arg]


def test_compare_needs_policies(seed: int) -> None:
    with raises("policies", "must be a mapping with at least"):
        pw.compare(GAUSSIAN, {}, horizon=3, tasks=10, seed=seed)


def test_trajectories_that_were_not_kept() -> None:
    with raises("run", "kept no trajectories"):
        _ = call().rewards


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        (
            np.zeros((10, 1), dtype=int),
            ("the return value of Stubborn.act", "one integer for each of 10 tasks"),
        ),
        (
            np.zeros(9, dtype=int),
            ("the return value of Stubborn.act", "one integer for each of 10 tasks"),
        ),
        (np.zeros(10), ("the return value of Stubborn.act", "one integer for each of 10 tasks")),
        (np.full(10, 3), ("Stubborn.act", "must return arms")),
        (np.full(10, -1), ("Stubborn.act", "must return arms")),
        (np.full(10, 1), ("Stubborn.act", "chose an arm that is not available")),
    ],
)
def test_bad_policies(actions: Any, message: str | tuple[str, str]) -> None:
    class Stubborn:
        def act(self, belief: Any, seen: Any, rng: Any) -> Any:
            return actions

    with raises(message):
        call(policy=Stubborn(), available=[True, False, True])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: pw.GaussianPrior([0.0, np.nan], np.eye(2)),
            ValueError,
            ("mean", "must be finite"),
        ),
        (
            lambda: pw.GaussianPrior([0.0, 1.0], np.full((2, 2), np.inf)),
            ValueError,
            ("cov", "must be finite"),
        ),
        (
            lambda: pw.GaussianPrior([0.0, 1.0], np.eye(3)),
            ValueError,
            "cov must have shape (2, 2)",
        ),
        (lambda: pw.GaussianPrior([0.0, 1.0], [1.0, 1.0]), ValueError, ("cov", "must be a 2 x 2")),
        (
            lambda: pw.GaussianPrior([0.0, 1.0], [[1.0, 0.5], [0.4, 1.0]]),
            ValueError,
            ("cov", "must be symmetric"),
        ),
        (
            lambda: pw.GaussianPrior([0.0, 1.0], [[1.0, 2.0], [2.0, 1.0]]),
            ValueError,
            ("cov", "must be positive semi-definite"),
        ),
        (
            lambda: pw.GaussianPrior([0.0], [[-1.0]]),
            ValueError,
            ("cov", "must have no negative variance"),
        ),
        (lambda: pw.GaussianPrior([], []), ValueError, ("mean", "must not be empty")),
        (
            lambda: pw.GaussianPrior([0.0], [[1.0]], 0.0),
            ValueError,
            ("noise_var", "must be positive"),
        ),
        (
            lambda: pw.GaussianPrior([0.0, 0.0], np.eye(2), [1.0] * 3),
            ValueError,
            ("noise_var", "must have shape (2)"),
        ),
        (lambda: pw.GaussianPrior(["a"], [[1.0]]), TypeError, "mean must be numbers"),
        (lambda: pw.BetaPrior([1.0, 0.0], 1.0), ValueError, "alpha must be positive"),
        (lambda: pw.BetaPrior([1.0], 1e13), ValueError, "beta must not exceed"),
        (
            lambda: pw.BetaPrior([1.0, 1.0], [1.0, 1.0, 1.0]),
            ValueError,
            "beta must have shape",
        ),
        (
            lambda: pw.FinitePrior([[1.0], [2.0]], [0.5, 0.6]),
            ValueError,
            ("probs", "must sum to"),
        ),
        (
            lambda: pw.FinitePrior([[1.0], [2.0]], [1.5, -0.5]),
            ValueError,
            ("probs", "must not be negative"),
        ),
        (lambda: pw.FinitePrior([[1.0], [2.0]], [1.0]), ValueError, ("probs", "must have shape")),
        (
            lambda: pw.FinitePrior([[2.0]], [1.0], noise="bernoulli"),
            ValueError,
            ("means", "must lie in [0, 1]"),
        ),
        (
            lambda: pw.FinitePrior([[2.0]], [1.0], noise="gaussian"),
            ValueError,
            "noise_var is the variance of a reward",
        ),
        (
            lambda: pw.FinitePrior([[2.0]], [1.0], noise="poisson"),
            ValueError,
            ("noise", "must be one of"),
        ),  # type: ignore[arg-type]
        (
            lambda: pw.LinearGaussianPrior([0.0], [[1.0]], contexts=np.ones((3, 2))),
            ValueError,
            ("contexts", "have 2 features"),
        ),
        (lambda: pw.SphereContexts(arms=0), ValueError, ("arms", "must be at least 1")),
        (
            lambda: pw.ExchangeableGaussianPrior(0, 1, 2.0),
            ValueError,
            ("correlation", "must lie in [-1, 1]"),
        ),
        (
            lambda: pw.ExchangeableGaussianPrior(0, 1, -0.9).for_arms(3),
            ValueError,
            ("correlation", "3 arms"),
        ),
        (lambda: pw.KShotThompson(0), ValueError, ("k", "must be at least 1")),
        (
            lambda: pw.PosteriorSampling(2, "median"),
            ValueError,
            ("rule", "must be one of max, sum, softmax"),
        ),  # type: ignore[arg-type]
        (lambda: pw.RecedingHorizon(0, 1, 0.5), ValueError, ("k1", "must be at least 1")),
        (lambda: pw.RecedingHorizon(1, 1, 1.5), ValueError, ("alpha", "must lie in [0, 1]")),
        (
            lambda: pw.RecedingHorizon(1, 1, "offline"),
            ValueError,
            ("alpha", "must be a number, 'online' or a"),
        ),  # type: ignore[arg-type]
        (lambda: pw.TopTwoThompson(share=0.0), ValueError, ("share", "must lie in (0, 1]")),
    ],
)
def test_bad_parameters(make: Any, error: type[Exception], message: str | tuple[str, str]) -> None:
    with raises(message, kind=error):
        make()


def changed_json(**changed: Any) -> str:
    content = json.loads(BETA.to_json()) | changed
    return json.dumps({key: value for key, value in content.items() if value is not None})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{not json", ("text", "is not valid JSON")),
        ("{}", ("text", "is not a priorwise file")),
        (changed_json(priorwise=99), ("version", "must be 1")),
        (changed_json(family="cauchy"), ("family", "must be one of")),
        (changed_json(family=["beta"]), "family"),
        (changed_json(alpha=None), ("beta", "needs the field 'alpha'")),
        (changed_json(gamma=1.0), ("beta", "has no field 'gamma'")),
        (changed_json(alpha=[-1.0, 1.0, 1.0]), ("beta.alpha", "must be positive")),
        (changed_json(alpha=[float("nan"), 1.0, 1.0]), ("beta.alpha", "must be finite")),
    ],
)
def test_bad_json(text: str, message: str | tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "prior.json"
    path.write_text(text)
    with raises(message):
        pw.load_prior(text)
    name, problem = (message, "") if isinstance(message, str) else message
    with raises(f"{path}: {name}", problem):
        pw.load_prior(path)


def test_missing_and_foreign_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.json.*not JSON text either"):
        pw.load_prior(tmp_path / "none.json")
    path = tmp_path / "list.json"
    path.write_text("[1, 2]")
    with raises(
        f"{path}: text",
        "not a priorwise file",
    ):
        pw.load_prior(path)
    with raises("text", "must hold a GaussianPrior"):
        pw.GaussianPrior.load(BETA.to_json())


@pytest.mark.parametrize("engine", ["compiled", "numpy"])
@pytest.mark.parametrize("means", [[[5.0, 0.0], [0.0, 5.0]], [[-0.5, 0.0], [0.0, 0.5]]])
def test_noiseless_rewards_beyond_one_are_refused_by_a_beta_belief(
    engine: str, means: list[list[float]], seed: int
) -> None:
    prior = pw.FinitePrior(means, [0.5, 0.5])
    with raises("believed", "expects rewards between 0 and 1"):
        pw.simulate(
            prior,
            pw.ThompsonSampling(),
            horizon=3,
            tasks=10,
            seed=seed,
            believed=pw.BetaPrior([1, 1], 1),
            engine=engine,
        )


def test_beta_with_huge_parameters_is_the_same_in_both_engines(seed: int) -> None:
    """The test of acceptance keeps its digits there; written plainly it would not, and the engines
    would part.
    """
    prior = pw.BetaPrior([1e12] * 3, [1e12] * 3)
    runs = [
        pw.simulate(
            prior,
            pw.ThompsonSampling(),
            horizon=5,
            tasks=20_000,
            seed=seed + 1,
            keep=True,
            engine=engine,
        )
        for engine in ("compiled", "numpy")
    ]
    np.testing.assert_array_equal(runs[0].actions, runs[1].actions)


@pytest.mark.parametrize("contexts", [None, 6, "sphere", pw.SphereContexts, {"arms": 3}])
def test_contexts_that_are_none_are_refused(contexts: Any) -> None:
    with raises("contexts", "must say where the features come from"):
        pw.LinearGaussianPrior([0.0], [[1.0]], contexts=contexts)


@pytest.mark.parametrize(
    "policies", [[pw.Greedy()], pw.Greedy(), {}, {"a": (pw.Greedy(),)}, {1: pw.Greedy()}]
)
def test_compare_takes_a_mapping(policies: Any, seed: int) -> None:
    with raises("policies", "must"):
        pw.compare(pw.BetaPrior([1, 1], 1), policies, horizon=1, tasks=1, seed=seed)


def test_numpy_blocks_shrink_with_the_belief() -> None:
    wide = pw.LinearGaussianPrior(np.zeros(300), np.eye(300), contexts=pw.SphereContexts(arms=2))
    assert block_size(3, entries(wide, wide.belief(1)), {"numpy"}) * 300**2 < 10_000_000
    beta = pw.BetaPrior([1, 1], 1)
    assert block_size(3, entries(beta, beta.belief(1)), {"numpy"}) == 2048


def test_a_single_task_has_an_infinite_standard_error(seed: int) -> None:
    run = pw.simulate(pw.BetaPrior([1, 1], 1), pw.Greedy(), horizon=1, tasks=1, seed=seed)
    assert np.isinf(run.std_error)
    assert not np.isnan(run.mean_reward)


@dataclass(frozen=True, eq=False)
class Broken:
    """A prior whose belief returns NaN, or whose environment does."""

    where: str
    arms: int = 2

    def sample(self, rng: Any, tasks: int) -> Broken:
        return self

    def belief(self, tasks: int) -> Broken:
        return self

    def start(self, rng: Any) -> None:
        return None

    def step(self, seen: Any, actions: Any, rng: Any) -> tuple[Any, None]:
        return np.full(len(actions), np.nan if self.where == "reward" else 0.0), None

    def update(self, *arguments: Any) -> Broken:
        return self

    def sample_values(self, rng: Any, draws: int) -> Any:
        return np.full((rng.tasks, draws, 2), np.nan if self.where == "value" else 0.0)


class BrokenBelief(Broken):
    def sample(self, rng: Any, draws: int, seen: Any = None) -> Any:  # type: ignore[override]
        return self.sample_values(rng, draws)


class BrokenPrior(Broken):
    def belief(self, tasks: int) -> Broken:
        return BrokenBelief(self.where)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("value", ("values", "of an arm is NaN")),
        ("reward", ("BrokenPrior.step", "must return one reward")),
    ],
)
def test_nan_is_an_error_not_a_number(
    where: str, message: str | tuple[str, str], seed: int
) -> None:
    with raises(message):
        pw.simulate(BrokenPrior(where), pw.ThompsonSampling(), horizon=2, tasks=3, seed=seed)


def test_an_error_shows_the_numbers_of_a_covariance_plainly():
    with raises("cov", "must be symmetric at (0, 1)") as error:
        pw.GaussianPrior([0.0, 1.0], [[1.0, 0.5], [0.4, 1.0]])
    assert error.value.got == "(0.5, 0.4)"
    with raises("cov", "must be positive semi-definite") as error:
        pw.GaussianPrior([0.0, 1.0], [[1.0, 2.0], [2.0, 1.0]])
    assert error.value.cure.startswith("project")
    with raises("noise_var", "must have shape (2)") as error:
        pw.GaussianPrior([0.0, 1.0], np.eye(2), [1.0])
    assert error.value.problem == "must have shape (2)"
