"""The look-ahead of finite priors keeps its law: V_a against enumeration, in both engines; counts
of draws against the multinomial.

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
from priorwise.core.hashing import HEADS, task_keys
from priorwise.core.protocols import Seen
from priorwise.core.streams import Purpose, Stream, streams
from priorwise.families.finite.belief import FiniteBelief
from priorwise.families.finite.tiles_tables import common_part
from priorwise.kernels.compiling import LANES, LOOK, caller

LEVEL = 1e-6
K1, K2 = 2, 3
UNIT = 10 * K2  # V_a is a whole number of tenths, over K2
MEANS = np.array([[0.2, 1.0, 0.0], [0.2, 0.0, 0.5], [0.7, 0.4, 0.5], [0.7, 0.4, 0.1]])
PROBS = np.array([0.37, 0.4, 0.13, 0.1])
call_look = caller(LOOK)


@numba.njit
def look_at(address, p, n, keys, step, k1, k2, state, rows, mask, now, ahead):  # type: ignore[no-untyped-def]
    call_look(
        address,
        p,
        n,
        keys,
        step,
        1,
        k1,
        k2,
        state,
        rows,
        mask,
        rows,
        now,
        ahead,
        np.zeros((2 * n[0], LANES)),
    )


def compiled_sums(
    prior: pw.FinitePrior,
    seed: int,
    step: int,
    tasks: int,
    k1: int,
    k2: int,
    log_weights: Any = None,
    mask: Any = None,
) -> tuple[Any, Any]:
    """Sums of drawn values and of best means ahead, each ``(task, arm)``, from the tile
    function.
    """
    tiles = prior.tiles(10, frozenset({"look"}))
    many = tiles.look_many if prior.arms * k1 >= tiles.many_pulls else None
    look = many or tiles.look
    keys = task_keys(seed, Purpose.POLICY, np.arange(tasks, dtype=np.uint64))
    logs = prior.belief(tasks).log_weights if log_weights is None else log_weights
    state = np.empty((tiles.belief_rows, LANES))
    unavailable = np.zeros((prior.arms, tasks)) if mask is None else np.where(mask, 0.0, -np.inf).T
    rows = np.zeros((prior.arms, LANES))
    out = np.empty((2, tasks, prior.arms))
    for first in range(0, tasks, LANES):
        lanes = slice(first, first + LANES)
        state[: prior.support] = logs[lanes].T
        state[prior.support : 2 * prior.support] = np.exp(logs[lanes].T)
        now, ahead = np.zeros((2, prior.arms, LANES))
        closed = np.ascontiguousarray(unavailable[:, lanes])
        look_at(
            look.address,
            tiles.p,
            tiles.n,
            keys[lanes],
            step,
            k1,
            k2,
            state,
            rows,
            closed,
            now,
            ahead,
        )
        out[:, lanes] = now.T, ahead.T
    return out[0], out[1]


def numpy_sums(
    prior: pw.FinitePrior,
    seed: int,
    step: int,
    tasks: int,
    k1: int,
    k2: int,
    log_weights: Any = None,
    mask: Any = None,
) -> tuple[Any, Any]:
    """Compute the same from the belief's own methods."""
    rng, seen, belief = (
        streams(seed, tasks)(step),
        Seen(step, 10, prior.arms, mask=mask),
        prior.belief(tasks),
    )
    if log_weights is not None:
        belief = FiniteBelief(prior, log_weights, np.zeros(tasks, dtype=np.int64))
    rng.uniform()  # the call that breaks ties
    now, ahead = np.zeros((2, tasks, prior.arms))
    for arm in range(prior.arms):
        for _ in range(k1):
            imagined: Any = belief.imagine(rng, np.full(tasks, arm), seen)
            now[:, arm] += imagined.value
            ahead[:, arm] += seen.masked(imagined.belief.sample_mean(rng, k2, seen)).max(axis=1)
    return now, ahead


def assert_same_sums(
    prior: pw.FinitePrior, seed: int, k1: int, k2: int, log_weights: Any = None, mask: Any = None
) -> None:
    """Both engines: every sum, at odd and even steps, in one tile."""
    for step in (1, 2):
        given = prior, seed, step, LANES, k1, k2, log_weights, mask
        for ours, theirs in zip(compiled_sums(*given), numpy_sums(*given), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


def mixed_beliefs(prior: pw.FinitePrior, rng: np.random.Generator, kinds: int) -> Any:
    """Log weights ``(lane, support)``: each lane has one of a few sets of possible tasks, from one
    task to all.
    """
    possible = rng.random((kinds, prior.support)) < rng.random((kinds, 1))
    possible[np.arange(kinds), rng.integers(prior.support, size=kinds)] = True
    logs = np.where(possible, prior.belief(1).log_weights, -np.inf)
    return (logs - logs.max(axis=1, keepdims=True))[rng.integers(kinds, size=LANES)]


def law_of_v(arm: int, noise: str, *, conditioned: bool = True) -> dict[float, float]:
    """Law of V_a in units, alpha = 1, by enumerating tasks, rewards and the k2 draws;
    ``conditioned=False`` is the wrong one.
    """
    one: dict[float, float] = defaultdict(float)
    column = MEANS[:, arm]
    rewards = sorted(set(column)) if noise == "none" else [0.0, 1.0]
    for reward in rewards:
        likelihood = (
            (column == reward).astype(float)
            if noise == "none"
            else np.where(reward, column, 1.0 - column)
        )
        joint = PROBS * likelihood
        posterior = joint / joint.sum() if conditioned else PROBS
        for drawn in product(range(len(PROBS)), repeat=K2):
            one[round(10 * MEANS[list(drawn)].sum(axis=0).max())] += (
                joint.sum() * posterior[list(drawn)].prod()
            )
    law: dict[float, float] = {0.0: 1.0}
    for _ in range(K1):
        longer: dict[float, float] = defaultdict(float)
        for (v, chance), (best, probability) in product(law.items(), one.items()):
            longer[v + best] += chance * probability
        law = longer
    return law


def fits(values: Any, law: dict[float, float]) -> float:
    """Chi-square test of values against a discrete law; rare values share a cell. Returns the
    p-value.
    """
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


NOISES = ["none", "bernoulli", "gaussian"]
SIZES = [
    (1, 2, 1, 1),
    (3, 5, 7, 4),
    (20, 16, 10, 10),
    (40, 3, 2, 300),
    (9, 17, 5, 6),
    (2, 200, 60, 3),
    (5, 1, 3, 2),
    (4, 300, 2, 2),
]


def some_prior(
    rng: np.random.Generator, arms: int, support: int, noise: Any, parts: float
) -> pw.FinitePrior:
    """Draw a prior with means that are whole numbers of a part, or of nothing if there are no
    parts.
    """
    means = (
        rng.integers(0, 5, (support, arms)) / parts
        if parts > 0.0
        else rng.random((support, arms)).round(1 if arms == 9 else 16)
    )
    return pw.FinitePrior(
        means, rng.dirichlet(np.ones(support)), noise, 0.1 if noise == "gaussian" else None
    )


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("parts", [4.0, 7.0, 0.0], ids=["quarters", "sevenths", "any"])
@pytest.mark.parametrize(("arms", "support", "k1", "k2"), SIZES)
def test_engines_compute_the_same_values(
    noise: Any, parts: float, arms: int, support: int, k1: int, k2: int, seed: int
) -> None:
    """Not only the same actions: every sum, with vectors of pulls that start at any arm and batches
    that are part empty.
    """
    prior = some_prior(np.random.default_rng(seed), arms, support, noise, parts)
    assert_same_sums(prior, seed, k1, k2)


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("parts", [4.0, 0.0], ids=["quarters", "any"])
@pytest.mark.parametrize(("arms", "support", "k1", "k2"), SIZES[1:])
def test_engines_agree_on_mixed_beliefs_and_masks(
    noise: Any, parts: float, arms: int, support: int, k1: int, k2: int, seed: int
) -> None:
    """Lanes with one of a few beliefs and masks in turn, some with one possible task, some that
    hide the best arm.
    """
    rng = np.random.default_rng(seed)
    prior = some_prior(rng, arms, support, noise, parts)
    for kinds in (2, 9):
        mask = rng.random((kinds, arms)) < 0.6
        mask[np.arange(kinds), rng.integers(arms, size=kinds)] = True
        logs = mixed_beliefs(prior, rng, kinds)
        assert_same_sums(prior, seed, k1, k2, logs)
        assert_same_sums(prior, seed, k1, k2, logs, mask[rng.integers(kinds, size=LANES)])


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["none", "gaussian"])
@pytest.mark.parametrize(
    "means",
    [
        [[0.0, 0.0], [0.0, 0.0]],
        [[-1.0, -2.0], [-1.0, -0.5], [-3.0, -0.5]],
        [[-0.5, 0.25], [0.5, -0.25], [0.0, 0.0]],
        [[1e-5, 1.0], [1.0, 0.0], [0.5, 1e-5]],  # a hundred thousand parts: too many for 16 bits
        # rewards that are the same as their neighbours only
        [[0.5, 1.0], [0.5 + 3e-10, 0.0], [0.5 + 6e-10, 0.0]],
        [[1e9, 3e9], [2e9, 0.0], [2e9, 5e9]],
    ],
    ids=["zero", "negative", "both signs", "fine", "nearly the same", "large"],
)
def test_engines_agree_on_unusual_means(noise: Any, means: list[list[float]], seed: int) -> None:
    probs = np.arange(1.0, len(means) + 1) / np.arange(1.0, len(means) + 1).sum()
    prior = pw.FinitePrior(means, probs, noise, 0.5 if noise == "gaussian" else None)
    for k2 in (1, 10, 9000):
        assert_same_sums(prior, seed, 4, k2)
    mask = np.ones((LANES, 2), dtype=bool)
    mask[np.arange(LANES), np.arange(LANES) % 2] = False
    assert_same_sums(prior, seed, 4, 10, None, mask)


def test_a_task_as_good_as_impossible_spoils_no_other(seed: int) -> None:
    """Weights of 1e-305 and 0 beside others: what follows their rewards is never asked for."""
    prior = pw.FinitePrior(
        [[0.1, 1.0, 0.0], [0.2, 0.0, 1.0], [0.3, 0.5, 0.5], [0.4, 0.0, 0.9]],
        [0.6, 0.4, 1e-305, 0.0],
    )
    assert_same_sums(prior, seed, 10, 10)


def test_runs_agree_where_some_tasks_are_certain(seed: int) -> None:
    """Certain tasks play the best arm beside others that look ahead, also with masks, ties and a
    prior that is wrong.
    """
    rng = np.random.default_rng(seed)
    prior = some_prior(rng, 6, 5, "none", 4.0)
    believed = pw.FinitePrior(prior.means, [0.0, 0.4, 0.3, 0.2, 0.1])
    mask = rng.random((200, 6)) < 0.7
    mask[:, 2] = True
    for policy in (
        pw.KnowledgeGradient(3, 2, ties="random", when_certain="best"),
        pw.RecedingHorizon(2, 3, "online", when_certain="best"),
        pw.RecedingHorizon(2, 3, 0.5),
    ):
        for available in (None, mask):
            ours, theirs = (
                pw.simulate(
                    prior,
                    policy,
                    horizon=6,
                    tasks=200,
                    seed=seed,
                    believed=believed,
                    available=available,
                    keep=True,
                    engine=engine,
                )
                for engine in ("compiled", "numpy")
            )
            np.testing.assert_array_equal(ours.actions, theirs.actions)
            assert ours.resets == theirs.resets


@pytest.mark.parametrize(
    ("means", "grid", "multiple"),
    [
        ([[0.1, 0.2], [0.30000000000000004, 1.0]], 0.1, 10),
        ([[0.4, 0.6], [1.0, 0.0]], 0.2, 5),
        ([[1 / 3, 1 / 7], [0.0, 0.0]], 1 / 21, 7),
        ([[0.0, 0.0]], 0.0, 0),
        ([[-1.0, 1.0]], 0.0, 0),
        ([[0.1, 0.1 + 1e-12]], 0.0, 0),
        ([[np.pi, np.e]], 0.0, 0),
        ([[1e300, 1e-300]], 0.0, 0),
    ],
)
def test_the_common_part_of_means(means: list[list[float]], grid: float, multiple: int) -> None:
    found = common_part(np.array(means))
    assert found == (pytest.approx(grid, rel=1e-14), multiple)


@pytest.mark.slow
def test_counts_follow_their_weights(seed: int) -> None:
    """So many indices that much is drawn from remainders of heads. Control: what whole numbers of
    heads alone would give.
    """
    shares = np.repeat([0.3, 1.9, 5.5, 40.0], [4000, 3000, 2000, 1000])
    shares *= HEADS / shares.sum()
    calls, tasks, draws = 30, 2, 1000
    rng = streams(seed, tasks)(1)
    counts = sum(
        rng.counts(np.broadcast_to(shares, (tasks, len(shares))), draws).sum(axis=0)
        for _ in range(calls)
    )
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
    law = {
        float(a + 10 * b): float(stats.multinomial.pmf((a, b, c), draws, weights))
        for a, b, c in outcomes
    }
    assert fits(counts[:, 0] + 10.0 * counts[:, 1], law) > LEVEL
    assert fits(copies[:, 0] + 10.0 * copies[:, 1], law) < LEVEL


def test_counts_never_pick_a_weight_of_zero(seed: int) -> None:
    weights = np.zeros((2000, 5))
    weights[np.arange(2000), np.arange(2000) % 5] = 0.1
    weights[:, 2] += 1e-300
    counts = Stream(np.arange(2000, dtype=np.uint64), seed % 1000).counts(weights, 50)
    assert (counts.sum(axis=1) == 50).all()
    assert (counts[np.broadcast_to(weights == 0.0, counts.shape)] == 0).all()


def test_more_draws_than_can_be_counted_run_in_numpy(seed: int):
    prior = pw.FinitePrior([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5], noise="bernoulli")
    runs = [
        pw.simulate(prior, pw.RecedingHorizon(1, k, 0.5), horizon=2, tasks=2, seed=seed)
        for k in (65_535, 65_536)
    ]
    assert [run.engine for run in runs] == ["compiled", "numpy"]


def test_more_draws_than_have_room_run_in_numpy():
    """A tile cannot report a failed allocation: the run would go on with whatever is in memory."""
    prior = pw.FinitePrior([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5], noise="bernoulli")
    family = prior.tiles(2, frozenset({"look"}))
    policies = [pw.RecedingHorizon(k1, 1 << 15, 0.5) for k1 in (1 << 10, (1 << 10) + 1)]
    assert [policy.tiles(family, 2, masked=False) is None for policy in policies] == [False, True]
    other = pw.GaussianPrior([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]]).tiles(2, frozenset({"look"}))
    assert policies[1].tiles(other, 2, masked=False) is not None  # it draws a mean as one number
