"""The look-ahead of finite priors keeps its law: V_a against enumeration, in both engines; counts of draws against the multinomial.

False-alarm rate: chi-square tests at level 1e-6, 27 in all, below 3e-5.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from typing import Any

import numba
import numpy as np
import pytest
from scipy import stats

import priorwise as pw
from priorwise.core.protocols import Seen
from priorwise.core.streams import HEADS, Purpose, Stream, streams, task_keys
from priorwise.kernels.compiling import LANES, LOOK, caller

LEVEL = 1e-6
K1, K2 = 2, 3
UNIT = 10 * K2  # V_a is a whole number of tenths, over K2
MEANS = np.array([[0.2, 1.0, 0.0], [0.2, 0.0, 0.5], [0.7, 0.4, 0.5], [0.7, 0.4, 0.1]])
PROBS = np.array([0.37, 0.4, 0.13, 0.1])
call_look = caller(LOOK)


@numba.njit
def look_at(address, p, n, keys, step, k1, k2, state, rows, mask, now, ahead):  # type: ignore[no-untyped-def]
    call_look(address, p, n, keys, step, 1, k1, k2, state, rows, mask, rows, now, ahead)


def compiled_sums(prior: pw.FinitePrior, seed: int, step: int, tasks: int, k1: int, k2: int) -> tuple[Any, Any]:
    """Sums of drawn values and of best means ahead, each ``(task, arm)``, from the tile function."""
    tiles = prior.tiles(10, looks_ahead=True)
    keys = task_keys(seed, Purpose.POLICY, np.arange(tasks, dtype=np.uint64))
    state = np.empty((tiles.belief_rows, LANES))
    weights = prior.belief(1).weights()[0]
    state[: prior.support] = prior.belief(1).log_weights[0][:, None]
    state[prior.support : 2 * prior.support] = weights[:, None]
    out = np.empty((2, tasks, prior.arms))
    for first in range(0, tasks, LANES):
        now, ahead = np.zeros((2, prior.arms, LANES))
        mask, rows = np.zeros((2, prior.arms, LANES))
        look_at(tiles.look.address, tiles.p, tiles.n, keys[first : first + LANES], step, k1, k2, state, rows, mask, now, ahead)
        out[:, first : first + LANES] = now.T, ahead.T
    return out[0], out[1]


def numpy_sums(prior: pw.FinitePrior, seed: int, step: int, tasks: int, k1: int, k2: int) -> tuple[Any, Any]:
    """Compute the same from the belief's own methods."""
    rng, seen, belief = streams(seed, tasks)(step), Seen(step, 10, prior.arms), prior.belief(tasks)
    rng.uniform()  # the call that breaks ties
    now, ahead = np.zeros((2, tasks, prior.arms))
    for arm in range(prior.arms):
        for _ in range(k1):
            imagined: Any = belief.imagine(rng, np.full(tasks, arm), seen)
            now[:, arm] += imagined.value
            ahead[:, arm] += imagined.belief.sample_mean(rng, k2, seen).max(axis=1)
    return now, ahead


def law_of_v(arm: int, noise: str, *, conditioned: bool = True) -> dict[float, float]:
    """Law of V_a in units, alpha = 1, by enumerating tasks, rewards and the k2 draws; ``conditioned=False`` is the wrong one."""
    one: dict[float, float] = defaultdict(float)
    column = MEANS[:, arm]
    rewards = sorted(set(column)) if noise == "none" else [0.0, 1.0]
    for reward in rewards:
        likelihood = (column == reward).astype(float) if noise == "none" else np.where(reward, column, 1.0 - column)
        joint = PROBS * likelihood
        posterior = joint / joint.sum() if conditioned else PROBS
        for drawn in product(range(len(PROBS)), repeat=K2):
            one[round(10 * MEANS[list(drawn)].sum(axis=0).max())] += joint.sum() * posterior[list(drawn)].prod()
    law: dict[float, float] = {0.0: 1.0}
    for _ in range(K1):
        longer: dict[float, float] = defaultdict(float)
        for (v, chance), (best, probability) in product(law.items(), one.items()):
            longer[v + best] += chance * probability
        law = longer
    return law


def fits(values: Any, law: dict[float, float]) -> float:
    """Chi-square test of values against a discrete law; rare values share a cell. Returns the p-value."""
    keys = np.array(sorted(law))
    place = np.abs(keys[:, None] - values[None]).argmin(axis=0)
    if np.abs(keys[place] - values).max() > 1e-6:  # a value that the law does not have
        return 0.0
    observed = np.bincount(place, minlength=len(keys)).astype(float)
    expected = np.array([law[key] for key in keys]) * len(values)
    rare = expected < 10.0
    cells = [np.append(each[~rare], each[rare].sum()) for each in (observed, expected)]
    kept = cells[1] > 1e-9
    statistic = (((cells[0] - cells[1]) ** 2)[kept] / cells[1][kept]).sum()
    return float(stats.chi2.sf(statistic, max(int(kept.sum()) - 1, 1)))


@pytest.mark.parametrize("noise", ["none", "bernoulli"])
@pytest.mark.parametrize("engine", ["compiled", "numpy"])
def test_values_have_the_law_of_the_enumeration(noise: Any, engine: str, seed: int) -> None:
    """All arms. Control: the law without conditioning on the imagined reward must be rejected."""
    prior = pw.FinitePrior(MEANS, PROBS, noise)
    sums = compiled_sums if engine == "compiled" else numpy_sums
    _, ahead = sums(prior, seed, 1, 20_032, K1, K2)
    for arm in range(3):
        assert fits(UNIT * ahead[:, arm], law_of_v(arm, noise)) > LEVEL
        assert fits(UNIT * ahead[:, arm], law_of_v(arm, noise, conditioned=False)) < LEVEL


@pytest.mark.parametrize("noise", ["none", "bernoulli", "gaussian"])
@pytest.mark.parametrize(("arms", "support", "k1", "k2"), [(1, 2, 1, 1), (3, 5, 7, 4), (20, 16, 10, 10), (40, 3, 2, 300)])
def test_engines_compute_the_same_values(noise: Any, arms: int, support: int, k1: int, k2: int, seed: int) -> None:
    """Not only the same actions: every sum, at odd and even steps, with batches that start at any arm."""
    rng = np.random.default_rng(seed)
    means = rng.integers(0, 4, (support, arms)) / 4
    prior = pw.FinitePrior(means, rng.dirichlet(np.ones(support)), noise, 0.1 if noise == "gaussian" else None)
    for step in (1, 2):
        ours, theirs = (sums(prior, seed, step, 64, k1, k2) for sums in (compiled_sums, numpy_sums))
        np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-12, atol=1e-12)


def test_counts_follow_their_weights(seed: int) -> None:
    """So many indices that much is drawn from remainders of heads. Control: what whole numbers of heads alone would give."""
    shares = np.repeat([0.3, 1.9, 5.5, 40.0], [4000, 3000, 2000, 1000])
    shares *= HEADS / shares.sum()
    calls, tasks, draws = 30, 2, 1000
    rng = streams(seed, tasks)(1)
    counts = sum(rng.counts(np.broadcast_to(shares, (tasks, len(shares))), draws).sum(axis=0) for _ in range(calls))
    kinds = np.cumsum([4000, 3000, 2000, 1000])[:-1]
    observed = [part.sum() for part in np.split(counts, kinds)]
    assert sum(observed) == calls * tasks * draws
    right = np.array([part.sum() for part in np.split(shares, kinds)])
    whole = np.array([part.sum() + 1e-9 for part in np.split(np.floor(shares), kinds)])
    for law, holds in ((right, True), (whole, False)):
        expected = law / law.sum() * sum(observed)
        assert (stats.chisquare(observed, expected).pvalue > LEVEL) == holds


def test_counts_are_multinomial(seed: int) -> None:
    """Every outcome of 5 draws from 3 weights. Control: draws that are copies of each other."""
    weights, draws, tasks = np.array([0.5, 0.3, 0.2]), 5, 40_000
    counts = streams(seed, tasks)(1).counts(np.broadcast_to(3.7 * weights, (tasks, 3)), draws)
    copies = draws * streams(seed, tasks)(2).counts(np.broadcast_to(weights, (tasks, 3)), 1)
    outcomes = [(a, b, draws - a - b) for a in range(draws + 1) for b in range(draws + 1 - a)]
    law = {float(a + 10 * b): float(stats.multinomial.pmf((a, b, c), draws, weights)) for a, b, c in outcomes}
    assert fits(counts[:, 0] + 10.0 * counts[:, 1], law) > LEVEL
    assert fits(copies[:, 0] + 10.0 * copies[:, 1], law) < LEVEL


def test_counts_never_pick_a_weight_of_zero(seed: int) -> None:
    weights = np.zeros((2000, 5))
    weights[np.arange(2000), np.arange(2000) % 5] = 0.1
    weights[:, 2] += 1e-300
    counts = Stream(np.arange(2000, dtype=np.uint64), seed % 1000).counts(weights, 50)
    assert (counts.sum(axis=1) == 50).all()
    assert (counts[np.broadcast_to(weights == 0.0, counts.shape)] == 0).all()


def test_more_draws_than_can_be_counted_run_in_numpy():
    prior = pw.FinitePrior([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5], noise="bernoulli")
    runs = [pw.simulate(prior, pw.RecedingHorizon(1, k, 0.5), horizon=2, tasks=2, seed=0) for k in (65_535, 65_536)]
    assert [run.engine for run in runs] == ["compiled", "numpy"]
