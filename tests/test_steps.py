"""The generator of steps, the NumPy arithmetic beside it, and that neither needs the compiler."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import priorwise as pw
from priorwise.core.streams import Streams
from priorwise.kernels import tally as compiled
from priorwise.simulate import tally
from priorwise.simulate.steps import environments, steps
from priorwise.testing.playing import Always

PRIOR = pw.GaussianPrior([0.3, 0.0, -0.2], 0.6 * np.eye(3) + 0.4, [1.0, 0.5, 2.0])


def test_steps_are_those_of_simulate_and_the_last_one_learns(seed: int) -> None:
    """Action for action; the belief after the last pull is the posterior given all of them."""
    tasks, horizon = 5, 4
    streams = Streams(seed, np.arange(tasks, dtype=np.uint64))
    environment = environments(PRIOR, streams)
    policy, belief = pw.ThompsonSampling(), PRIOR.belief(tasks)
    done = list(steps(environment, belief, policy, streams, horizon=horizon, arms=3))
    run = pw.simulate(PRIOR, policy, horizon=horizon, tasks=tasks, seed=seed, keep=True)
    np.testing.assert_array_equal(np.stack([s.actions for s in done], axis=1), run.actions)
    assert [s.seen.step for s in done] == [1, 2, 3, 4]
    assert done[0].belief is belief
    # by the normal equations: precision = prior precision + pulls / noise
    last = done[-1].learned()
    for task in range(tasks):
        pulls = np.bincount(run.actions[task], minlength=3)
        sums = np.bincount(run.actions[task], weights=run.rewards[task], minlength=3)
        precision = np.linalg.inv(PRIOR.cov) + np.diag(pulls / PRIOR.noise_var)
        total = np.linalg.solve(PRIOR.cov, PRIOR.mean) + sums / PRIOR.noise_var
        np.testing.assert_allclose(last.m[task], np.linalg.solve(precision, total), rtol=1e-9)  # type: ignore[attr-defined]
        assert not np.allclose(done[-1].belief.m[task], last.m[task])  # type: ignore[attr-defined]


def test_nobody_needs_to_learn(seed: int) -> None:
    streams = Streams(seed, np.arange(3, dtype=np.uint64))
    environment = environments(PRIOR, streams)
    done = list(steps(environment, None, Always(1), streams, horizon=2, arms=3))
    assert [s.belief for s in done] == [None, None]
    assert done[0].values is not None
    np.testing.assert_array_equal(done[0].values, environment.means)  # type: ignore[attr-defined]


@pytest.mark.parametrize("tasks", [1, 63, 64, 65, 300])
def test_tally_is_the_twin_of_the_compiled_one(tasks: int, seed: int) -> None:
    """Up to rounding, far from 0 as well; and the same bits whatever the blocks."""
    columns = 1e3 + np.random.default_rng(seed).normal(size=(4, tasks))
    found = np.zeros((2, 2, 4))
    for each, (mean, square) in zip((tally, compiled), found, strict=True):
        each.tally(columns, 0.0, mean, square)  # type: ignore[attr-defined]
    np.testing.assert_allclose(found[0, 0], found[1, 0], rtol=1e-14)
    np.testing.assert_allclose(found[0, 1], found[1, 1], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found[0, 0], columns.mean(axis=1), rtol=1e-14)
    np.testing.assert_allclose(found[0, 1], columns.var(axis=1) * tasks, rtol=1e-9, atol=1e-9)
    apart = np.zeros((2, 4))
    for first in range(0, tasks, 128):
        tally.tally(columns[:, first : first + 128], float(first), *apart)
    np.testing.assert_array_equal(apart, found[0])


@pytest.mark.slow
def test_numpy_runs_import_no_compiler() -> None:
    """Neither ``import priorwise`` nor a simulation in NumPy; a compiled one does (the control)."""
    program = """
import sys
import priorwise as pw
for prior in (
    pw.GaussianPrior([0, 1], [[1, 0], [0, 1]]),
    pw.BetaPrior([1, 1], [1, 1]),
    pw.FinitePrior([[0, 1], [1, 0]], [0.5, 0.5]),
    pw.LinearGaussianPrior([0, 0], [[1, 0], [0, 1]], contexts=pw.SphereContexts(arms=2)),
):
    for policy in (pw.ThompsonSampling(), pw.KnowledgeGradient(2, 2), pw.Greedy()):
        options = dict(horizon=2, tasks=3, seed=0, progress=False)
        pw.compare(prior, {"a": policy, "b": pw.Uniform()}, engine="numpy", keep=True, **options)
assert not [name for name in sys.modules if name.split(".")[0] in ("numba", "llvmlite")]
assert not [name for name in sys.modules if name.startswith("priorwise.kernels")]
pw.simulate(prior, pw.ThompsonSampling(), engine="compiled", **options)
assert "numba" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
