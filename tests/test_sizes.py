"""Absurd sizes are refused by name, with an estimate, before anything starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from raising import raises

import priorwise as pw
from priorwise.core import sizes
from priorwise.testing.seeds import base_seed

SEED = base_seed()
BETA = pw.BetaPrior([1.0, 2.0, 3.0], [4.0, 3.0, 2.0])
NORMAL = pw.GaussianPrior([0.0, 0.1], np.eye(2))
LINEAR = pw.LinearGaussianPrior([0.0, 1.0], np.eye(2), contexts=pw.SphereContexts(3))
TS = pw.ThompsonSampling()
FIT = pw.BetaMoments().fit(pw.BetaStatistics([[1, 2, 1], [0, 3, 2], [1, 1, 3]], [[5, 5, 5]] * 3))


def run(prior: Any = NORMAL, policy: Any = TS, **options: Any) -> Any:
    return pw.simulate(prior, policy, **{"horizon": 10, "tasks": 10, "seed": SEED, **options})


def meta(**options: Any) -> Any:
    values = {"episodes": 10, "replicates": 2, "horizon": 5, "seed": SEED, "jobs": 1, **options}
    return pw.simulate_meta(NORMAL, pw.FixedPrior(TS), **values)


CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "tasks": (
        lambda: run(tasks=2**63),
        ("tasks", "takes about 9.2e+19 posterior draws"),
    ),
    "tasks of 30 digits": (
        lambda: run(tasks=10**30),
        ("tasks", "years or more on one processor; a"),
    ),
    "tasks of 400 digits": (
        lambda: run(tasks=10**400),
        ("tasks", "years or more on one processor; a"),
    ),
    "tasks in NumPy": (
        lambda: run(tasks=10**20, engine="numpy"),
        ("tasks", "years or more on one processor; a"),
    ),
    "kept": (
        lambda: run(tasks=10**11, keep=True),
        ("tasks", "of 100,000,000,000 with 10 pulls, kept"),
    ),
    "kept comparison": (
        lambda: pw.compare(
            NORMAL, {"a": TS, "b": TS}, horizon=10, tasks=10**11, seed=SEED, keep=True
        ),
        ("tasks", "of 100,000,000,000 with 10 pulls, kept"),
    ),
    "horizon": (lambda: run(horizon=2**31), ("horizon", "of 2,147,483,648 needs 137 GB, and")),
    "horizon of 30 digits": (lambda: run(horizon=10**30), ("horizon", "must be below 2**32")),
    "horizon, looking ahead": (
        lambda: run(BETA, pw.RecedingHorizon(2, 2, "online"), horizon=2**31),
        ("horizon", "of 2,147,483,648 needs 137 GB, and"),
    ),
    "block in NumPy": (
        lambda: run(engine="numpy", tasks=10**10, block=10**10),
        ("block", "of 10,000,000,000 for 2 arms and"),
    ),
    "k": (lambda: pw.KShotThompson(10**12), ("k", "must be below 2**32")),
    "k, any rule": (lambda: pw.PosteriorSampling(2**32), ("k", "must be below 2**32")),
    "k in NumPy": (
        lambda: run(policy=pw.PosteriorSampling(10**9, "sum"), tasks=1000, engine="numpy"),
        ("block", "PosteriorSampling(k=1000000000, rule='sum')"),
    ),
    "k by hand": (
        lambda: pw.PosteriorSampling(2**31).act(
            NORMAL.belief(99),
            pw.core.Seen(1, 2, 2),
            pw.core.Stream(np.arange(99, dtype=np.uint64), 1),
        ),
        ("shape", "(2147483648, 1) for each of 99 tasks"),
    ),
    "k, many tasks": (
        lambda: run(policy=pw.KShotThompson(10**9), tasks=10**6),
        ("tasks", "KShotThompson(k=1000000000) takes"),
    ),
    "k1 and k2": (
        lambda: pw.RecedingHorizon(10**6, 10**6, 1.0),
        ("k1 * k2", "must be below 2**32"),
    ),
    "k1": (lambda: pw.KnowledgeGradient(10**12, 1), ("k1 * k2", "must be below")),
    "look-ahead": (
        lambda: run(policy=pw.KnowledgeGradient(10**4, 10**4), tasks=10**7),
        ("tasks", "RecedingHorizon"),
    ),
    "most_draws": (
        lambda: pw.TopTwoThompson(most_draws=10**15),
        ("most_draws", "must be below 2**32"),
    ),
    "threads": (lambda: run(threads=10**9), ("threads", "must be at most 4,096")),
    "arms": (
        lambda: pw.ExchangeableBetaPrior(1, 1).for_arms(10**12),
        ("arms", "GB, and this machine has"),
    ),
    "arms, correlated": (
        lambda: pw.ExchangeableGaussianPrior(0, 1, 0.5).for_arms(10**12),
        ("arms", "GB, and this machine has"),
    ),
    "arms of contexts": (
        lambda: pw.LinearGaussianPrior([0.0], [[1.0]], contexts=pw.SphereContexts(10**12)),
        ("arms", "GB, and this machine has"),
    ),
    "replicates": (
        lambda: meta(replicates=10**9),
        ("replicates", "takes about"),
    ),
    "episodes": (
        lambda: meta(episodes=10**9, replicates=10**3),
        ("replicates", "of 1,000 of 1,000,000,000 episodes needs"),
    ),
    "episodes and replicates": (
        lambda: meta(episodes=2**31, replicates=10**5),
        ("replicates", "takes about"),
    ),
    "kept episodes": (
        lambda: meta(episodes=10**8, replicates=10**2, keep=True),
        ("replicates", "of 100 of 100,000,000 episodes, kept"),
    ),
    "draws of a distance": (
        lambda: pw.total_variation(
            NORMAL, pw.GaussianPrior([0.0, 0.0], 2 * np.eye(2)), seed=SEED, draws=10**12
        ),
        ("draws", "GB, and this machine has"),
    ),
    "draws of a diameter": (
        lambda: pw.tail_expectation(LINEAR, 0.1, seed=SEED, draws=10**12),
        ("draws", "GB, and this machine has"),
    ),
    "horizon of a diameter": (
        lambda: pw.tail_expectation(LINEAR, 0.1, seed=SEED, horizon=10**12),
        ("draws", "of 200,000 of 1.0e+12 pulls takes"),
    ),
    "ladder": (
        lambda: pw.sensitivity_ladder(
            NORMAL, pw.GaussianPrior([0.5, 0.0], np.eye(2)), TS, 10, seed=SEED, tasks=10**20
        ),
        ("tasks", "takes about"),
    ),
    "long ladder": (
        lambda: pw.sensitivity_ladder(
            NORMAL, pw.GaussianPrior([0.5, 0.0], np.eye(2)), TS, 2**31, seed=SEED
        ),
        ("tasks", "takes about"),
    ),
    "sample complexity": (
        lambda: pw.sample_complexity(BETA, 0.1, 0.1, horizon=5, seed=SEED, most=10**12),
        ("replicates", "takes about"),
    ),
    "replicates of sample complexity": (
        lambda: pw.sample_complexity(BETA, 0.1, 0.1, horizon=5, seed=SEED, replicates=10**9),
        ("replicates", "takes about"),
    ),
    "draws of sample complexity": (
        lambda: pw.sample_complexity(BETA, 0.1, 0.1, horizon=5, seed=SEED, draws=10**12),
        ("draws", "GB, and this machine has"),
    ),
    "plausible priors": (
        lambda: pw.compare_policies(
            FIT, {"ts": TS}, horizon=10, tasks=10**6, draws=10**9, seed=SEED
        ),
        ("draws", "takes about"),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_absurd_sizes_are_refused_by_name(case: tuple[Callable[[], Any], str]) -> None:
    with raises(case[1]):
        case[0]()


def test_limits_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIORWISE_MEMORY_GB", "0.001")
    with raises("tasks", "needs 0.0 GB"):
        run(tasks=100_000, keep=True)
    monkeypatch.setenv("PRIORWISE_MEMORY_GB", "1")
    assert run(tasks=1000, keep=True).rewards.shape == (1000, 10)
    monkeypatch.setenv("PRIORWISE_MOST_DRAWS", "99")
    with raises("tasks", "takes about 100 posterior draws, 0.0 hours"):
        run()
    monkeypatch.setenv("PRIORWISE_MOST_DRAWS", "100")
    assert run().tasks == 10


@pytest.mark.parametrize("text", ["many", "-1", "0", "nan"])
def test_limits_must_be_numbers(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    for name in ("PRIORWISE_MEMORY_GB", "PRIORWISE_MOST_DRAWS"):
        monkeypatch.setenv(name, text)
        with raises(name, "must be a positive number"):
            run()
        monkeypatch.delenv(name)


def test_policies_say_what_a_pull_takes() -> None:
    found = {
        str(policy): (sizes.draws_per_pull(policy, 3), sizes.drawn_at_once(policy))
        for policy in (
            TS,
            pw.Greedy(),
            pw.KShotThompson(4),
            pw.RecedingHorizon(2, 5, 1.0),
            pw.UniformThen(1, pw.KShotThompson(4)),
        )
    }
    assert list(found.values()) == [(1, 1), (1, 1), (4, 4), (36, 5), (4, 4)]
    assert sizes.draws_per_pull(pw.TopTwoThompson(), 3) == 257


def test_sensible_sizes_pass() -> None:
    """The control: a million tasks of the README are far from every limit."""
    assert sizes.memory() > 1e8
    sizes.check_memory("tasks", "a million with 10 pulls", 28e7, "")
    sizes.check_work("tasks", "a million with 1000 pulls of 100 draws", 1e11, "")
