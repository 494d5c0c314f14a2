"""A statistical battery for the random streams.

Error budget: every p-value is compared with ``ALARM`` = 1e-4 / 250, and there are fewer than 250 of
them (counted below), so a right generator fails anywhere in this file with probability at most
1e-4. Each kind of check also runs on a generator that is wrong on purpose and must fail it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import types
from raising import raises
from scipy import stats

from priorwise.core.hashing import MASK_64, mix, mix_array, slot_keys, task_keys
from priorwise.core.streams import Purpose, Stream, Streams, streams
from priorwise.families.beta import tiles as beta_kernels
from priorwise.kernels import random as kernels
from priorwise.kernels.compiling import KEYS, LANES, ROWS, F, U, entry

ALARM = 1e-4 / 250
# p-values: axes 7 x 7, balance 1, spacings 2 x 3, avalanche 2, moments 6, tails 3, pairs 4, betas
# 36 + 25, integers 3, choice 1, gammas 12, Dirichlets 11: 159 in all
Table = np.ndarray[Any, Any]


def stream(seed: int, tasks: int, step: int = 1, purpose: Purpose = Purpose.POLICY) -> Stream:
    return Streams(seed, np.arange(tasks, dtype=np.uint64)).at(purpose, step)


def later_call(seed: int, tasks: int, call: int, width: int) -> Table:
    rng = stream(seed, tasks)
    for _ in range(call):
        rng.bits(1)
    return rng.uniform(width)


# Uniforms along one axis of the counter, (place on the axis, replicate), all else equal.
AXES: dict[str, Callable[[int], Table]] = {
    "task": lambda seed: stream(seed, 1 << 14).uniform(32),
    "step": lambda seed: np.stack(
        [stream(seed, 256, step).uniform(8).ravel() for step in range(256)]
    ),
    "call": lambda seed: np.stack([later_call(seed, 256, call, 16).ravel() for call in range(128)]),
    "draw": lambda seed: (
        stream(seed, 64).uniform(1 << 10, 8).transpose(1, 0, 2).reshape(1 << 10, -1)
    ),
    "index": lambda seed: (
        stream(seed, 64).uniform(8, 1 << 10).transpose(2, 0, 1).reshape(1 << 10, -1)
    ),
    "purpose": lambda seed: np.stack(
        [stream(seed, 1 << 14, purpose=purpose).uniform(8).ravel() for purpose in Purpose]
    ),
    "seed": lambda seed: np.stack([stream(seed + k, 256).uniform(8).ravel() for k in range(256)]),
}


def grid_p_value(x: Table, y: Table, cells: int = 16) -> float:
    """Chi-square test that pairs are uniform on the unit square."""
    cell = np.minimum((x * cells).astype(int), cells - 1) * cells + np.minimum(
        (y * cells).astype(int), cells - 1
    )
    return float(stats.chisquare(np.bincount(cell.ravel(), minlength=cells * cells)).pvalue)


def correlation_p_value(x: Table, y: Table) -> float:
    """Normal test of the mean product of two uniforms that have been centred and scaled."""
    z = 12.0 * ((x - 0.5) * (y - 0.5)).mean() * np.sqrt(x.size)
    return float(2 * stats.norm.sf(abs(z)))


def table_p_values(u: Table) -> list[float]:
    """Uniformity, and independence of neighbours along the first axis."""
    flat = u.ravel()
    counts = np.bincount(np.minimum((flat * 1024).astype(int), 1023), minlength=1024)
    fine = np.bincount(((flat * 2**20).astype(int) & 1023), minlength=1024)  # the next ten bits
    return [
        float(stats.chisquare(counts).pvalue),
        float(stats.chisquare(fine).pvalue),
        float(stats.kstest(flat, "uniform").pvalue),
        correlation_p_value(u[1:], u[:-1]),
        correlation_p_value(u[2:], u[:-2]),
        # disjoint pairs, so that cells are independent
        grid_p_value(u[0::2][: len(u) // 2], u[1::2][: len(u) // 2]),
        grid_p_value(u[: len(u) // 2], u[len(u) // 2 :][: len(u) // 2]),
    ]


def test_range(seed: int) -> None:
    u = stream(seed, 1 << 16).uniform(16)
    assert u.min() >= 0.0
    assert u.max() < 1.0


@pytest.mark.parametrize("axis", AXES)
def test_uniform_and_independent_along(axis: str, seed: int) -> None:
    assert min(table_p_values(AXES[axis](seed))) > ALARM


@pytest.mark.parametrize("axis", AXES)
def test_control_neighbours_that_share_numbers(axis: str, seed: int) -> None:
    """One number in ten is copied from its neighbour: the marginal law is right, and the battery
    must notice.
    """
    u = AXES[axis](seed)
    copied = np.random.default_rng(seed).random(u[1:].shape) < 0.1
    u[1:] = np.where(copied, u[:-1], u[1:])
    assert min(table_p_values(u)) < ALARM


def test_control_linear_congruential(seed: int) -> None:
    """Keys that are multiples of a constant and never mixed, which is what a counter needs mixing
    for.
    """
    counter = np.arange(1 << 19, dtype=np.uint64) + np.uint64(seed)
    lcg = ((counter * np.uint64(69069)) & np.uint64(0xFFFFFFFF)).astype(float) / 2**32
    assert min(table_p_values(lcg.reshape(-1, 32))) < ALARM


def test_control_slightly_uneven(seed: int) -> None:
    u = AXES["task"](seed)
    assert min(table_p_values(u**1.02)) < ALARM


# Words


def words(seed: int, step: int) -> Table:
    return stream(seed, 1 << 12, step).bits(64)


def balance_p_value(bits: Table) -> float:
    """Share of ones at each of the 64 places; Bonferroni over the places."""
    flat = bits.ravel()
    ones = np.array(
        [((flat >> np.uint64(place)) & np.uint64(1)).sum() for place in range(64)], dtype=float
    )
    z = np.abs(ones - flat.size / 2) / np.sqrt(flat.size / 4)
    return float(min(1.0, 64 * 2 * stats.norm.sf(z.max())))


def spacings_p_value(days: Table) -> float:
    """Marsaglia's birthday spacings: rows of 4096 birthdays among 2^32 days, repeated spacings are
    Poisson with mean 4 a row.
    """
    gaps = np.sort(np.diff(np.sort(days.astype(np.int64), axis=1), axis=1), axis=1)
    repeats = int((np.diff(gaps, axis=1) == 0).sum())
    mean = 4.0 * len(days)
    return float(
        min(1.0, 2 * min(stats.poisson.cdf(repeats, mean), stats.poisson.sf(repeats - 1, mean)))
    )


def distinct(values: Table) -> bool:
    return bool(np.diff(np.sort(values.ravel())).all())


def test_bits_are_balanced(seed: int) -> None:
    assert balance_p_value(words(seed, 1)) > ALARM
    stuck = words(seed, 2) | (
        (words(seed, 3) & words(seed, 4) & words(seed, 5) & words(seed, 6)) & np.uint64(1 << 17)
    )
    assert balance_p_value(stuck) < ALARM  # control: one bit is set too often


def test_words_do_not_collide(seed: int) -> None:
    """Among 2^21 words of 64 bits two are equal with probability 2^-23."""
    many = np.concatenate([words(seed, step).ravel() for step in range(8)])
    assert distinct(many)
    # control: among 34 bits 128 pairs are expected to collide
    assert not distinct(many >> np.uint64(30))


@pytest.mark.parametrize("part", ["high", "low"])
def test_birthday_spacings(part: str, seed: int) -> None:
    shift = np.uint64(32 if part == "high" else 0)
    low = np.uint64(0xFFFFFFFF)
    by_index = words(seed, 7).T  # rows: index; birthdays: 4096 tasks
    by_task = stream(seed, 64).bits(4096)  # rows: task; birthdays: 4096 indices
    by_draw = stream(seed, 64, 8).bits(4096, 1)[:, :, 0]
    for table in (by_index, by_task, by_draw):
        assert spacings_p_value((table >> shift) & low) > ALARM
    counter = np.arange(64 * 4096, dtype=np.uint64).reshape(64, 4096)
    # control: not mixed
    assert spacings_p_value((counter * np.uint64(6364136223846793005) >> shift) & low) < ALARM


def avalanche_p_value(function: Callable[[Table], Table], inputs: Table) -> float:
    """Each input bit flips each output bit half the time: the worst of 64 x 64 cells,
    Bonferroni.
    """
    out = function(inputs)
    flips = np.empty((64, 64))
    for place in range(64):
        changed = out ^ function(inputs ^ np.uint64(1 << place))
        flips[place] = [((changed >> np.uint64(bit)) & np.uint64(1)).sum() for bit in range(64)]
    z = np.abs(flips - inputs.size / 2) / np.sqrt(inputs.size / 4)
    return float(min(1.0, 64 * 64 * 2 * stats.norm.sf(z.max())))


def test_avalanche(seed: int) -> None:
    inputs = np.random.default_rng(seed).integers(
        0, MASK_64, size=4096, dtype=np.uint64, endpoint=True
    )
    assert avalanche_p_value(mix_array, inputs) > ALARM
    assert avalanche_p_value(mix_array, np.arange(4096, dtype=np.uint64) + np.uint64(seed)) > ALARM

    def one_round(x: Table) -> Table:
        x = x * np.uint64(0xBF58476D1CE4E5B9)
        return x ^ (x >> np.uint64(31))

    assert avalanche_p_value(one_round, inputs) < ALARM  # control: half of the mixing


def test_mix_is_the_same_for_arrays_and_numbers() -> None:
    inputs = [0, 1, 2**32, 2**63, MASK_64, 0x0123456789ABCDEF]
    assert mix_array(np.array(inputs, dtype=np.uint64)).tolist() == [mix(value) for value in inputs]


def test_keys_of_tasks_and_slots_are_distinct(seed: int) -> None:
    tasks = np.arange(1 << 18, dtype=np.uint64)
    keys = np.concatenate([task_keys(seed, purpose, tasks) for purpose in Purpose])
    assert distinct(keys)
    slots = np.concatenate(
        [slot_keys(step, call, 8, 8).ravel() for step in range(64) for call in range(64)]
    )
    assert distinct(slots)


# Normals


def moment_p_values(z: Table) -> list[float]:
    """Moments 1 to 6 against those of the normal law."""
    exact = [stats.norm.moment(k) for k in range(13)]
    return [
        float(
            2
            * stats.norm.sf(
                abs((z**k).mean() - exact[k]) / np.sqrt((exact[2 * k] - exact[k] ** 2) / z.size)
            )
        )
        for k in range(1, 7)
    ]


def tail_p_values(z: Table) -> list[float]:
    return [
        float(
            stats.binomtest(int((np.abs(z) > edge).sum()), z.size, 2 * stats.norm.sf(edge)).pvalue
        )
        for edge in (2, 3, 4)
    ]


def pair_p_values(x: Table, y: Table) -> list[float]:
    """Independence of the two normals of a Box-Muller pair."""
    n = np.sqrt(x.size)
    statistics = [
        (x * y).mean() * n,
        ((x**2 - 1) * (y**2 - 1)).mean() / 2 * n,
        ((x**2 - 1) * y).mean() / np.sqrt(2) * n,
    ]
    return [float(2 * stats.norm.sf(abs(s))) for s in statistics] + [
        grid_p_value(stats.norm.cdf(x), stats.norm.cdf(y))
    ]


def test_normals(seed: int) -> None:
    z = stream(seed, 1 << 17).normal(16)
    assert z.shape == (1 << 17, 16)
    assert min(moment_p_values(z.ravel())) > ALARM
    assert min(tail_p_values(z.ravel())) > ALARM
    assert min(pair_p_values(z[:, 0::2].ravel(), z[:, 1::2].ravel())) > ALARM


@pytest.mark.slow
def test_control_normals(seed: int) -> None:
    rng = stream(seed, 1 << 17)
    u = rng.uniform(8).ravel()
    radius = np.sqrt(-2 * np.log(1 - u))
    # one uniform for both: the classic mistake
    x, y = radius * np.cos(2 * np.pi * u), radius * np.sin(2 * np.pi * u)
    assert min(pair_p_values(x, y)) < ALARM
    # twelve uniforms: right mean and variance, tails too thin
    sums = rng.uniform(8, 12).sum(axis=2).ravel() - 6.0
    assert min(moment_p_values(sums)) < ALARM
    assert min(tail_p_values(sums)) < ALARM


def test_odd_widths_are_prefixes(seed: int) -> None:
    four, three, one = (stream(seed, 10).normal(n) for n in (4, 3, 1))
    np.testing.assert_array_equal(four[:, :3], three)
    np.testing.assert_array_equal(four[:, :1], one)


# Betas

SHAPES = [0.01, 0.3, 1.0, 2.5, 50.0, 1e4]
PAIRS = [(a, b) for a in SHAPES for b in SHAPES]


def beta_p_values(draws: Table, a: float, b: float) -> list[float]:
    """Chi-square on cells below 1 (where tiny parameters round to 1 in floats), and KS where no
    mass rounds.
    """
    law = stats.beta(a, b)
    edges = np.unique(law.ppf(np.linspace(0, 1, 33)[1:-1]))
    edges = edges[(edges > 1e-290) & (edges < 1 - 1e-12)]
    below = np.concatenate([[0.0], law.cdf(edges), [1.0]])
    share = np.diff(below)
    counts = np.bincount(np.searchsorted(edges, draws, side="left"), minlength=len(share))
    p_values = [float(stats.chisquare(counts, share * draws.size).pvalue)] if len(edges) else []
    return p_values + ([float(stats.kstest(draws, law.cdf).pvalue)] if min(a, b) >= 0.3 else [])


def beta_draws(seed: int, a: float, b: float) -> Table:
    tasks = 1 << 12
    return stream(seed, tasks).beta(np.full((tasks, 2), a), np.full((tasks, 2), b), 4).ravel()


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_betas(a: float, b: float, seed: int) -> None:
    draws = beta_draws(seed, a, b)
    assert draws.min() >= 0.0
    assert draws.max() <= 1.0
    p_values = beta_p_values(draws, a, b)
    assert p_values
    assert min(p_values) > ALARM


@pytest.mark.parametrize(
    ("a", "b"), [(0.3, 0.3), (1.0, 2.5), (50.0, 50.0), (1e4, 1e4), (0.01, 0.3)]
)
def test_control_betas(a: float, b: float, seed: int) -> None:
    """Draws of a law whose first parameter, here never the larger, is 15 % too large."""
    assert min(beta_p_values(beta_draws(seed, 1.15 * a, b), a, b)) < ALARM


# Integers and choice


def test_integers(seed: int) -> None:
    for high in (2, 7, 1000):
        drawn = stream(seed, 1 << 14).integers(high, 8)
        assert drawn.min() >= 0
        assert drawn.max() < high
        assert stats.chisquare(np.bincount(drawn.ravel(), minlength=high)).pvalue > ALARM
    assert not stream(seed, 9).integers(1, 3).any()
    with raises("high", "must be at least 1"):
        stream(seed, 3).integers(0)


def test_choice_follows_its_weights(seed: int) -> None:
    weights = np.array([0.0, 3.0, 0.0, 1.0, 2.0, 0.0])
    tasks = 1 << 15
    drawn = stream(seed, tasks).choice(np.broadcast_to(weights, (tasks, 6)), 4)
    assert drawn.shape == (tasks, 4)
    counts = np.bincount(drawn.ravel(), minlength=6)
    assert not counts[weights == 0].any()
    kept = weights > 0
    assert (
        stats.chisquare(counts[kept], weights[kept] / weights.sum() * counts.sum()).pvalue > ALARM
    )
    wrong = np.array([3.0, 1.1, 2.0])
    # control
    assert stats.chisquare(counts[kept], wrong / wrong.sum() * counts.sum()).pvalue < ALARM


def test_choice_never_picks_a_weight_of_zero(seed: int) -> None:
    """Weights of wildly different size, most of them zero, so that running sums round."""
    rng = np.random.default_rng(seed)
    weights = np.where(
        rng.random((1 << 15, 9)) < 0.6, 0.0, 10.0 ** rng.uniform(-300, 0, (1 << 15, 9))
    )
    weights[np.arange(len(weights)), rng.integers(9, size=len(weights))] = 1e-200
    drawn = stream(seed, len(weights)).choice(weights, 16)
    assert (np.take_along_axis(weights, drawn, axis=1) > 0).all()


def test_negative_shapes_are_refused(seed: int) -> None:
    with raises("shape", "negative"):
        stream(seed, 3).uniform(-1)


# The compiled twin


@entry(types.void(KEYS, U, ROWS))
def fill_uniforms(keys, at, out):  # type: ignore[no-untyped-def]
    for row in range(out.shape[0]):
        kernels.uniforms(keys, at, 0, row, out[row])


@entry(types.void(KEYS, U, ROWS))
def fill_normals(keys, at, out):  # type: ignore[no-untyped-def]
    kernels.normals(keys, at, 0, out)


@entry(types.void(KEYS, U, F, F, ROWS))
def fill_betas(keys, at, a, b, out):  # type: ignore[no-untyped-def]
    for row in range(out.shape[0]):
        slot = kernels.slot_key(at, 0, row)
        for lane in range(out.shape[1]):
            out[row, lane] = beta_kernels.one_beta(keys[lane] + slot, a, b)


def compiled_arguments(seed: int, rows: int) -> tuple[Table, np.uint64, Table]:
    keys = task_keys(seed, Purpose.POLICY, np.arange(LANES, dtype=np.uint64))
    return keys, np.uint64(mix((1 << 32) | 0)), np.empty((rows, LANES))


def test_compiled_uniforms_are_the_same(seed: int) -> None:
    keys, at, out = compiled_arguments(seed, 500)
    fill_uniforms(keys, at, out)
    np.testing.assert_array_equal(out.T, stream(seed, LANES).uniform(500))


@pytest.mark.parametrize("width", [1, 2, 7, 1000])
def test_compiled_normals_are_the_same(width: int, seed: int) -> None:
    keys, at, out = compiled_arguments(seed, width)
    fill_normals(keys, at, out)
    np.testing.assert_allclose(out.T, stream(seed, LANES).normal(width), rtol=1e-13, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_compiled_betas_are_the_same(a: float, b: float, seed: int) -> None:
    keys, at, out = compiled_arguments(seed, 100)
    fill_betas(keys, at, a, b, out)
    expected = stream(seed, LANES).beta(np.full((LANES, 100), a), np.full((LANES, 100), b))[:, 0]
    np.testing.assert_allclose(out.T, expected, rtol=1e-12, atol=1e-13)


def test_single_normals_share_no_number_with_other_requests_of_their_pair(seed: int) -> None:
    """A single normal pairs with that of the next step; every other request of either step is
    independent of both.

    About 75 correlations over 100,000 tasks, 5 standard errors each: false-alarm rate 5e-5.
    Control: a radius made from the very number that another request returned.
    """
    tasks = 100_000
    streams = Streams(seed, np.arange(tasks, dtype=np.uint64))
    single = {step: streams.at(Purpose.POLICY, step).normal() for step in (1, 2, 3, 4)}
    others = []
    for step in (1, 2, 3):
        others += list(streams.at(Purpose.POLICY, step).normal(2).T)
        others.append(streams.at(Purpose.POLICY, step).uniform())
    bound = 5 / np.sqrt(tasks)
    for value in single.values():
        for other in others:
            assert abs(np.corrcoef(value, other)[0, 1]) < bound
            assert abs(np.corrcoef(value**2, other)[0, 1]) < 2 * bound
    assert abs(np.corrcoef(single[1], single[2])[0, 1]) < bound
    # control: made from one of the numbers
    radius = np.sqrt(-2 * np.log(1 - streams.at(Purpose.POLICY, 1).uniform()))
    assert np.corrcoef(radius, others[2])[0, 1] > 0.5


# Gammas and Dirichlets


def gamma_p_values(draws: Table, shape: float) -> list[float]:
    """Kolmogorov-Smirnov on the logarithm's scale; what underflows to 0 is left out of both."""
    law, least = stats.gamma(shape), 1e-290
    floor = law.cdf(least)
    large = draws[draws > least]
    p_value = stats.kstest(large, lambda x: (law.cdf(x) - floor) / (1.0 - floor)).pvalue
    return [float(p_value), float(stats.binomtest(len(large), len(draws), 1.0 - floor).pvalue)]


def gamma_draws(seed: int, shape: float) -> Table:
    tasks = 1 << 12
    return stream(seed, tasks).gamma(np.full((tasks, 2), shape), 4).ravel()


@pytest.mark.parametrize("shape", SHAPES)
def test_gammas(shape: float, seed: int) -> None:
    assert min(gamma_p_values(gamma_draws(seed, shape), shape)) > ALARM


@pytest.mark.parametrize("shape", SHAPES[1:])
def test_control_gammas(shape: float, seed: int) -> None:
    """A shape that is wrong by 10 %, 2 % where the draws tell more, and 0.2 % for a large one."""
    wrong = shape * (1.1 if shape < 50 else 1.02 if shape < 1e4 else 1.002)
    assert min(gamma_p_values(gamma_draws(seed, wrong), shape)) < ALARM


ALPHA = np.array([0.02, 0.3, 1.0, 4.0])


def dirichlet_p_values(draws: Table, alpha: Table) -> list[float]:
    """Marginals and sums of two are Betas: the law of a share of a share fixes the dependence."""
    total, p_values = alpha.sum(), []
    for picked in ([1], [2], [3], [1, 2], [0, 3]):
        a = alpha[picked].sum()
        share = draws[:, picked].sum(axis=1)
        p_values += beta_p_values(share, a, total - a)
    return p_values


def test_dirichlets(seed: int) -> None:
    """Shares of four; they sum to 1, and independent of the sum of gammas they come from."""
    tasks = 1 << 14
    draws = stream(seed, tasks).dirichlet(np.tile(ALPHA, (tasks, 1)))[:, 0]
    np.testing.assert_allclose(draws.sum(axis=1), 1.0, rtol=1e-14)
    assert min(dirichlet_p_values(draws, ALPHA)) > ALARM
    assert min(dirichlet_p_values(draws, ALPHA * 1.1)) < ALARM  # control


def test_tiny_dirichlets_are_corners(seed: int) -> None:
    """Where every gamma underflows, the shares are still numbers, and nearly one corner each."""
    draws = stream(seed, 1000).dirichlet(np.full((1000, 3), 1e-4))[:, 0]
    np.testing.assert_allclose(draws.sum(axis=1), 1.0, rtol=1e-14)
    assert (draws.max(axis=1) > 0.99).mean() > 0.98
    corners = np.bincount(draws.argmax(axis=1), minlength=3)
    assert stats.chisquare(corners).pvalue > ALARM


def test_gammas_do_not_depend_on_the_batch(seed: int) -> None:
    shape = np.random.default_rng(seed).uniform(0.1, 3.0, size=(70, 3))
    whole = stream(seed, 70).gamma(shape, 2)
    some = np.array([3, 69, 11], dtype=np.uint64)
    np.testing.assert_array_equal(
        Streams(seed, some).at(Purpose.POLICY, 1).gamma(shape[some.astype(int)], 2), whole[some]
    )


@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, np.nan])
def test_impossible_shapes_are_refused(value: float, seed: int) -> None:
    with raises("shape", "must be positive and finite"):
        stream(seed, 2).gamma(np.array([[1.0], [value]]))
    with raises("alpha", "must be positive and finite"):
        stream(seed, 2).dirichlet(np.array([[1.0], [value]]))


# Streams at other steps, and at several at once

REQUESTS: dict[str, Callable[[Stream], Table]] = {
    "bits": lambda rng: rng.bits(3),
    "normal": lambda rng: rng.normal(2, 3),
    "single normal": lambda rng: rng.normal(),
    "second call": lambda rng: (rng.uniform(2), rng.normal())[1],
    "counts": lambda rng: rng.counts(np.tile([0.2, 0.3, 0.5], (rng.tasks, 1)), 9),
    "beta": lambda rng: rng.beta(np.full((rng.tasks, 2), 0.4), np.full((rng.tasks, 2), 3.0), 2),
    "gamma": lambda rng: rng.gamma(np.full((rng.tasks, 2), 0.4), 2),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_tasks_at_different_steps_draw_what_each_draws_alone(name: str, seed: int) -> None:
    steps, tasks = np.array([0, 5, 1, 2, 5]), np.array([9, 4, 2, 7, 1], dtype=np.uint64)
    together = REQUESTS[name](Streams(seed, tasks).at(Purpose.POLICY, steps))
    for place, (task, step) in enumerate(zip(tasks, steps, strict=True)):
        alone = Streams(seed, np.array([task])).at(Purpose.POLICY, int(step))
        np.testing.assert_array_equal(together[place], REQUESTS[name](alone)[0])


def test_a_stream_at_another_step(seed: int) -> None:
    """``at`` starts afresh, whatever was asked before; step 0 is the same from every step."""
    first, third = stream(seed, 4, 1), stream(seed, 4, 3)
    kept = first.normal(2)
    third.uniform(5)
    np.testing.assert_array_equal(third.at(1).normal(2), kept)
    np.testing.assert_array_equal(first.at(0).uniform(3), third.at(0).uniform(3))
    assert not np.isin(third.at(0).bits(3), [stream(seed, 4, h).bits(3) for h in range(1, 9)]).any()


@pytest.mark.parametrize("steps", [[1, 2, 3], [1.0, 2.0], [[1, 2]], [1, -1]])
def test_wrong_steps_are_refused(steps: Any, seed: int) -> None:
    with raises("step", "must be"):
        stream(seed, 2).at(np.array(steps))


def test_a_stream_is_moved_to_steps_that_have_numbers_only() -> None:
    rng = streams(0, tasks=2)(1)
    for step in (2**32, np.array([1, 2**32])):  # would be step 0 again
        with raises("step", "must be below 2**32"):
            rng.at(step)
    assert rng.at(2**32 - 1).tasks == 2
