"""Compiled quantiles, exact look-ahead and searches of top-two sampling: numbers that can be
checked by themselves, and long runs.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from scipy.special import betaincinv, gammaln, ndtr

import priorwise as pw
from priorwise.experiments import problems
from priorwise.families.beta import tiles_exact as beta
from priorwise.kernels import elementary, normal
from priorwise.kernels.compiling import LANES
from priorwise.kernels.policies_exact import request_of
from priorwise.kernels.simd import WIDTH, load, store
from priorwise.testing.twins import same_run, some_arms

POLICIES: dict[str, Any] = {
    "bayes-ucb": pw.BayesUCB(),
    "exact": pw.ExactKnowledgeGradient(),
    "exact-only": pw.ExactKnowledgeGradient(1.0),
    "top-two": pw.TopTwoThompson(),
}


def agree(prior: Any, policy: Any, **options: Any) -> None:
    """Both engines play alike."""
    same_run(
        *(
            pw.simulate(prior, policy, keep=True, engine=engine, **options)
            for engine in ("compiled", "numpy")
        )
    )


@numba.njit
def _over_lanes(function: Any, x: Any, out: Any) -> None:
    for g in range(0, LANES, WIDTH):
        store(out, g, function(load(x, g)))


def over_lanes(function: Any, x: Any) -> Any:
    """Apply a vector function to LANES numbers."""
    out = np.empty(LANES)
    _over_lanes(function, x, out)
    return out


@pytest.mark.slow
def test_exponentials_and_excesses_have_all_their_digits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = np.concatenate([[0.0, -40.5, -1e-300, 700.0], rng.uniform(-300.0, 300.0, LANES - 4)])
    np.testing.assert_allclose(over_lanes(normal.exp, x), np.exp(x), rtol=1e-15)
    c = np.concatenate([[0.0, normal.REACH, 1e-300], rng.uniform(0.0, normal.REACH, LANES - 3)])
    exact = np.exp(-0.5 * c * c) / np.sqrt(2.0 * np.pi) - c * ndtr(-c)
    np.testing.assert_allclose(over_lanes(normal.expected_excess, c), exact, rtol=0, atol=1e-15)


@pytest.mark.slow
def test_logarithms_and_probabilities_have_all_their_digits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = 10.0 ** rng.uniform(-12.0, 5.0, LANES)
    np.testing.assert_allclose(over_lanes(elementary.log, x), np.log(x), rtol=0, atol=1e-14)
    np.testing.assert_allclose(over_lanes(elementary.log1p, x), np.log1p(x), rtol=1e-15)
    x = np.concatenate([[1.0, 2.0, 8.0, 1e-9], 10.0 ** rng.uniform(-3.0, 5.0, LANES - 4)])
    exact = gammaln(x)
    scale = np.maximum(np.abs(exact), 1.0)
    assert np.max(np.abs(over_lanes(elementary.log_gamma, x) - exact) / scale) < 5e-15
    z = np.concatenate([[0.0, -40.0, 40.0], rng.uniform(-9.0, 9.0, LANES - 3)])
    found = over_lanes(normal.probability_below, z)
    np.testing.assert_allclose(found, ndtr(z), rtol=0, atol=1e-15)


def test_draws_of_a_search_are_numbered_as_numpy_asks_for_them() -> None:
    """Eight, then always as many as were tried before."""
    places, tried, request = [], 0, 0
    while tried < 300:
        draws = max(8, tried)
        places += [(request, place) for place in range(draws)]
        tried, request = tried + draws, request + 1
    assert [request_of.py_func(number) for number in range(300)] == places[:300]


@pytest.mark.slow
def test_kept_quantiles_are_those_of_scipy(seed: int) -> None:
    """Bit for bit, also where there are more of them than room."""
    rng = np.random.default_rng(seed)
    prior = pw.BetaPrior([0.3, 1.0, 40.0], [2.0, 1e-3, 1e5])
    tiles = prior.tiles(3, frozenset({"quantile"}))
    state = np.zeros((tiles.belief_rows, LANES))
    own = state[: 6 * 3].reshape(3, 6, LANES)
    room = state.size // 4 - own.size // 4
    values = np.empty((3, LANES))
    compiled = numba.njit(beta.quantile._function)
    for level in (0.5, 0.9, 1.0 - 1e-9):
        for _ in range(1 + room // LANES):
            own[:, 0] = prior.alpha[:, None] + rng.integers(0, 9, size=(3, LANES))
            own[:, 1] = prior.beta[:, None] + rng.integers(0, 9, size=(3, LANES))
            none = np.empty((0, LANES))
            compiled(tiles.p, tiles.n, level, 0.0, state, none, none, values)
            np.testing.assert_array_equal(values, betaincinv(own[:, 0], own[:, 1], level))


@pytest.mark.slow
@pytest.mark.parametrize("name", POLICIES)
def test_engines_agree_in_long_runs(name: str, seed: int) -> None:
    """On the paper's problems and with many pulls of few arms; two arms of the Gaussian problem
    learn the same and tie.
    """
    policy = POLICIES[name]
    tasks = 500 if name == "top-two" else 4000
    agree(problems.gaussian().prior, policy, horizon=10, tasks=tasks, seed=seed)
    agree(problems.discrete().prior, policy, horizon=10, tasks=300, seed=seed)
    agree(problems.linear().prior, policy, horizon=10, tasks=300, seed=seed)
    agree(pw.BetaPrior([1.0, 2.0], [1.0, 2.0]), policy, horizon=60, tasks=300, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", POLICIES)
def test_engines_agree_with_many_arms_and_masks(name: str, seed: int) -> None:
    """Thirty arms, few pulls: also where Thompson sampling would keep the root as a product."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(30, 3))
    tasks = [
        pw.GaussianPrior(rng.normal(size=30), root @ root.T + 0.1 * np.eye(30)),
        pw.BetaPrior(rng.uniform(0.2, 3.0, 30), 2.0),
        pw.FinitePrior(rng.normal(size=(5, 30)), [0.2] * 5, "gaussian", 0.5),
        pw.FinitePrior(rng.random(size=(5, 30)), [0.2] * 5, "bernoulli"),
        pw.LinearGaussianPrior(np.zeros(2), np.eye(2), contexts=rng.normal(size=(3, 30, 2))),
    ]
    for prior in tasks:
        for available in (None, some_arms(70, 30, seed)):
            agree(prior, POLICIES[name], horizon=4, tasks=70, seed=seed, available=available)


@pytest.mark.parametrize("name", POLICIES)
def test_engines_agree_where_rewards_count_as_shares_of_a_success(name: str, seed: int) -> None:
    """A Beta belief about tasks without noise: its parameters are no whole numbers away from the
    prior's.
    """
    prior = pw.FinitePrior([[0.3, 0.7, 0.123], [0.6, 0.05, 0.456]], [0.5, 0.5])
    believed = pw.BetaPrior([1.0, 1.0, 0.5], 1.0)
    agree(prior, POLICIES[name], believed=believed, horizon=8, tasks=70, seed=seed)


def test_without_the_function_of_scipy_quantiles_run_in_numpy(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    prior = pw.BetaPrior([1.0, 2.0], 1.0)
    options: dict[str, Any] = {"horizon": 3, "tasks": 70, "seed": seed, "keep": True}
    compiled = pw.simulate(prior, pw.BayesUCB(), **options)
    monkeypatch.setattr(beta, "inverse_address", lambda: None)
    literal = pw.simulate(prior, pw.BayesUCB(), **options)
    assert (compiled.engine, literal.engine) == ("compiled", "numpy")
    same_run(compiled, literal)
