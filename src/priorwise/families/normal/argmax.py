"""Which of several jointly normal values is the largest: ``P(X_a > X_b for all b)`` with X ~
N(mean, cov), and the mean of the largest.

The differences ``X_b - X_a`` are normal too. The probability that all are negative is exact to
about 1e-9 (:mod:`~priorwise.families.normal.below`) for up to :data:`MOST_EXACT` arms, and for up
to :data:`MOST_FIRST` at the first pull, whose law tasks share. Otherwise it is an integral over the
unit cube after separation of variables (Genz 1992). A rank-one lattice with the baker's
transformation integrates it: the integrand is smooth in the parameters too, so that laws of nearby
posteriors have nearly the same error, which drops out of their difference. Every second point of
the lattice is one too: how far the two halves are apart says how large the error is.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import numpy as np

from priorwise.core.choosing import TIE_TOLERANCE
from priorwise.core.seen import Seen
from priorwise.core.types import BoolArray, FloatArray, IntArray
from priorwise.families.normal.below import FAR, MOST_VALUES, SINGULAR, all_below, both_below
from priorwise.families.normal.distance import covariance_rank
from priorwise.families.normal.tails import log_loss
from priorwise.theory.action_laws import ActionLaw
from priorwise.theory.largest import StandardNormal, expected_extremes

POINTS: Final = 128
LINES: Final = 512
RANK: Final = 4
"""Directions beyond the leading one in which values of low rank may move."""
ROUNDING: Final = 1e-14
"""Variance of a difference, as a share of those of its arms, that is rounding of 0."""
KNOWN: Final = 1e-9
"""Share of the largest standard deviation that smaller ones are raised to."""
VECTOR: Final = (
    1, 561, 211, 697, 891, 1903, 737, 667, 607, 483, 1549, 1385, 311, 593, 235,
    643, 1705, 1035, 875, 2011, 535, 1253, 375, 709, 1139, 1347, 821, 217, 1671, 545,
)  # fmt: skip
"""Of lattices with 64, 128, ..., 4096 points: built one component at a time, each the one whose
squared error, with weights 1/(5j), is at no size many times that of the best for this size.
"""
ENTRIES: Final = 1 << 21  # numbers in an array of one pass
MOST_EXACT: Final = 4
MOST_FIRST: Final = MOST_VALUES + 1
"""Arms up to which laws and extremes are exact: at any pull, and at the first, where that takes
milliseconds.
"""
MOST_ARMS: Final = 30
MOST_ARMS_LOW: Final = 100
"""Arms up to which the law is integrated: in general, and where they move in few directions
only.
"""


def argmax_law(
    mean: FloatArray,
    cov: FloatArray,
    start: FloatArray,
    draws: int,
    rule: str,
    seen: Seen,
    common: bool = True,
) -> ActionLaw | None:
    """Law of the largest of jointly normal values ``(task, arm)``, or of their mean over several
    draws, which is normal with a share of the covariance.

    None where sampling is cheaper: for many arms, and for the largest of several draws. ``start``
    is the covariance before any reward, whose rank decides between two quadratures. ``common`` says
    whether tasks have the same few laws at their first pull.
    """
    if rule == "max" and draws > 1:
        return None
    rank = covariance_rank(start)
    low = rank <= RANK + 1 and rank < seen.arms - 1 and seen.arms > MOST_EXACT
    if seen.arms > (MOST_ARMS_LOW if low else MOST_ARMS):
        return None
    cov, law = cov / draws, line_argmax if low else normal_argmax
    first = np.flatnonzero(at_first(seen, len(mean), common))
    if seen.arms <= MOST_EXACT or not first.size:
        return law(mean, cov, seen.mask)
    rest = np.setdiff1d(np.arange(len(mean)), first)
    parts = [_first_law(row) for row in law_rows(mean[first], cov[first], seen.take(first).mask)]
    if rest.size:
        parts.append(law(mean[rest], cov[rest], seen.take(rest).mask))
    return parts[0].join(*parts[1:]).take(np.argsort(np.concatenate([first, rest])))


def at_first(seen: Seen, tasks: int, common: bool) -> BoolArray:
    """Which tasks are at their first pull, ``(task,)``, where that makes their laws exact."""
    exact = common and seen.arms <= MOST_FIRST
    return np.broadcast_to(np.asarray(seen.step) == 1, tasks) & exact


def law_rows(mean: FloatArray, cov: FloatArray, available: BoolArray | None) -> list[bytes]:
    """What decides about the law of each task, ``(task,)``."""
    mask = np.broadcast_to(1.0 if available is None else available, mean.shape)
    return [row.tobytes() for row in np.hstack([mask, mean, cov.reshape(len(cov), -1)])]


def read_row(row: bytes) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Mean, covariance and mask of a batch of one task."""
    numbers = np.frombuffer(row)
    arms = math.isqrt(numbers.size + 1) - 1  # 2 arms + arms^2 numbers
    mask, mean, cov = np.split(numbers[None], [arms, 2 * arms], axis=1)
    return mean, cov.reshape(1, arms, arms), mask > 0.0


@lru_cache(maxsize=512)
def _first_law(row: bytes) -> ActionLaw:
    """Law of one task."""
    return exact_argmax(*read_row(row))


def normal_argmax(
    mean: FloatArray, cov: FloatArray, available: BoolArray | None = None, points: int = POINTS
) -> ActionLaw:
    """Return how likely each value is the largest, for means ``(task, arm)`` and covariances.

    Up to :data:`MOST_EXACT` arms the law is exact to about 1e-9. For more, ``points`` is a power of
    two, and the error is about 1e-4 in total variation for six arms in two correlated groups, 1e-3
    for six with any covariance, and 5e-3 for 25; see :func:`line_argmax` for values of low rank.
    """
    arms = mean.shape[1]
    if 3 < arms <= MOST_EXACT:
        there = np.ones(mean.shape, dtype=bool) if available is None else available
        return exact_argmax(mean, cov, there)
    return _by_parts(_pass, arms * max(points, arms * arms), mean, cov, available, points)


def exact_argmax(mean: FloatArray, cov: FloatArray, available: BoolArray) -> ActionLaw:
    """Return the same for three to :data:`MOST_FIRST` arms, exact to about 1e-9; that the
    probabilities add up to 1 is not used, but says how large the error is.
    """
    arms = mean.shape[1]
    first, equal = equal_arms(mean, cov, available)
    limits, correlations, _ = _differences_of(mean, cov, available & (first == np.arange(arms)))
    law = all_below(limits.reshape(-1, arms - 1), correlations.reshape(-1, arms - 1, arms - 1))
    law = np.take_along_axis(law.reshape(mean.shape), first, axis=1) / equal
    law = np.where(available, law, 0.0)
    total = law.sum(axis=1, keepdims=True)
    return ActionLaw(law / total, "quadrature", np.maximum(np.abs(total - 1.0), 1e-9))


def _by_parts(
    halves: Callable[..., FloatArray],
    entries: int,
    mean: FloatArray,
    cov: FloatArray,
    available: BoolArray | None,
    points: int,
) -> ActionLaw:
    """Join the two halves of a lattice, some tasks at a time; the error is their distance from the
    whole.
    """
    tasks, arms = mean.shape
    if arms == 1:
        return ActionLaw(np.ones((tasks, 1)))
    both = np.empty((2, tasks, arms))
    size = max(1, ENTRIES // entries)
    for first in range(0, tasks, size):
        part = slice(first, first + size)
        there = None if available is None else available[part]
        both[:, part] = halves(mean[part], cov[part], there, points)
    if available is not None:
        both = np.where(available, both, 0.0)
    law = both.sum(axis=0)
    law /= law.sum(axis=1, keepdims=True)
    half = both[0] / both[0].sum(axis=1, keepdims=True)
    error = np.abs(half - law).sum(axis=1, keepdims=True) / 2.0
    return ActionLaw(law, "quadrature", np.maximum(error, 1e-9))


def _pass(
    mean: FloatArray, cov: FloatArray, available: BoolArray | None, points: int
) -> FloatArray:
    # (task, arm, arm - 1), (task, arm, arm - 1, arm - 1)
    upper, root = _differences(mean, cov, available)
    n = upper.shape[2]
    if n == 1:
        from scipy.special import ndtr

        law = np.asarray(ndtr(upper[:, :, 0] / root[:, :, 0, 0]))
        return np.stack([law, law])
    if n == 2:
        law = both_below(upper[..., 0], upper[..., 1], root[..., 1, 0])
        return np.stack([law, law])
    from priorwise.families.normal.orthant import all_below

    limits, roots = upper.reshape(-1, n), root.reshape(-1, n, n)
    both = np.empty((2, *mean.shape))
    weights, nodes = np.full(points // 2, 2.0 / points), _lattice(points, n - 1)
    for half, law in enumerate(both):
        all_below(limits, roots, nodes[:, half::2].copy(), weights, law.reshape(-1))
    return both


def _others(arms: int) -> IntArray:
    """Return the other arms of each, ``(arm, other)``."""
    return np.array([[b for b in range(arms) if b != a] for a in range(arms)])


def equal_arms(
    mean: FloatArray, cov: FloatArray, available: BoolArray
) -> tuple[IntArray, IntArray]:
    """Which is the first available arm that always has the same value, and how many arms have it,
    ``(task, arm)`` each.
    """
    own, size = np.diagonal(cov, axis1=1, axis2=2), np.abs(mean)
    both = own[:, :, None] + own[:, None, :]
    same = np.abs(both - 2.0 * cov) <= ROUNDING * both
    sizes = size[:, :, None] + size[:, None, :]
    same &= np.abs(mean[:, :, None] - mean[:, None, :]) <= TIE_TOLERANCE / 2.0 * sizes
    same &= available[:, None, :]
    return same.argmax(axis=2), np.maximum(same.sum(axis=2), 1)


def _differences_of(
    mean: FloatArray, cov: FloatArray, available: BoolArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Limits ``(task, arm, other)`` of the standardised differences from each arm, their
    correlations, and their standard deviations. A difference that is certain, and an arm that
    cannot be played, is correlated with no other.
    """
    upper, spread, scale = _standardised(mean, cov, ROUNDING)
    there = available[:, _others(mean.shape[1])]
    certain = ~there | (np.diagonal(spread, axis1=2, axis2=3) < 1.0 - TIE_TOLERANCE)
    upper = np.where(certain, np.where(there, np.copysign(FAR, upper), FAR), upper)
    alone = certain[:, :, :, None] | certain[:, :, None, :]
    correlations = np.clip(np.where(alone, 0.0, spread), -1.0, 1.0)
    return np.clip(upper, -FAR, FAR), correlations, np.where(certain, 0.0, scale)


def _standardised(
    mean: FloatArray, cov: FloatArray, least: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Limits of the differences from each arm, and their covariances, in units of their standard
    deviations, and these: variances below a share ``least`` of the arms' are raised to it.
    """
    arms = mean.shape[1]
    others = _others(arms)
    upper = mean[:, :, None] - mean[:, others]
    own = np.diagonal(cov, axis1=1, axis2=2)  # (task, arm)
    # cov(a, b)
    cross = np.take_along_axis(cov, np.broadcast_to(others, (len(cov), arms, arms - 1)), axis=2)
    block = cov[:, others[:, :, None], others[:, None, :]]  # cov(b, c)
    spread = block + own[:, :, None, None] - cross[:, :, :, None] - cross[:, :, None, :]
    variance = np.diagonal(spread, axis1=2, axis2=3)
    rounding = least * (own[:, :, None] + own[:, others]) + np.finfo(np.float64).tiny
    scale = np.sqrt(np.maximum(variance, rounding))
    return upper / scale, spread / scale[:, :, :, None] / scale[:, :, None, :], scale


def _differences(
    mean: FloatArray, cov: FloatArray, available: BoolArray | None
) -> tuple[FloatArray, FloatArray]:
    """Upper limits and Cholesky factors of the standardised differences from each arm, the most
    binding difference first.
    """
    upper, spread, _ = _standardised(mean, cov, SINGULAR)
    if available is not None:  # an arm that cannot be played is always beaten
        upper = np.where(available[:, _others(mean.shape[1])], upper, 1e3)
    order = np.argsort(upper, axis=2, kind="stable")
    spread = np.take_along_axis(spread, order[:, :, :, None], axis=2)
    spread = np.take_along_axis(spread, order[:, :, None, :], axis=3)
    return np.take_along_axis(upper, order, axis=2), _factor(spread)


def _factor(spread: FloatArray) -> FloatArray:
    """Lower Cholesky factors of ``(..., n, n)`` correlations; a difference that others determine
    gets a tiny spread of its own.
    """
    n = spread.shape[-1]
    root = np.zeros_like(spread)
    for j in range(n):
        pivot = spread[..., j, j] - np.einsum("...i,...i->...", root[..., j, :j], root[..., j, :j])
        free = pivot > SINGULAR
        root[..., j, j] = np.sqrt(np.where(free, pivot, SINGULAR))
        rest = spread[..., j + 1 :, j] - np.einsum(
            "...bi,...i->...b", root[..., j + 1 :, :j], root[..., j, :j]
        )
        root[..., j + 1 :, j] = np.where(free[..., None], rest / root[..., j, j, None], 0.0)
    return root


def line_argmax(
    mean: FloatArray, cov: FloatArray, available: BoolArray | None = None, points: int = LINES
) -> ActionLaw:
    """Return the same for covariances of low rank: exact along the leading direction, a lattice
    over the few others.

    Within about 0.005 in total variation for values that move in two directions, 0.02 in five.
    Along a line the largest of several linear functions changes at finitely many points, and
    between them it is the same arm.
    """
    return _by_parts(_lines, mean.shape[1] * points, mean, cov, available, points)


def _lines(
    mean: FloatArray, cov: FloatArray, available: BoolArray | None, points: int
) -> FloatArray:
    from scipy.special import ndtr, ndtri

    # a shift of all arms alike changes nothing
    rows, columns, all_of = (cov.mean(axis=axis, keepdims=True) for axis in (1, 2, (1, 2)))
    values, vectors = np.linalg.eigh(cov - rows - columns + all_of)
    # leading direction first
    root = (vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])[:, :, ::-1]
    slope, rest = root[:, :, 0], root[:, :, 1 : 1 + RANK]
    nodes = ndtri(_lattice(points, rest.shape[2]))
    level = mean[:, :, None] + np.einsum("taj,jm->tam", rest, nodes)
    if available is not None:
        level = np.where(available[:, :, None], level, -np.inf)
    low, high = np.full(level.shape, -np.inf), np.full(level.shape, np.inf)
    flat = 1e-12 * np.abs(slope).max(axis=1)[:, None, None]
    for other in range(mean.shape[1]):
        steeper = (slope - slope[:, other, None])[:, :, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            # the arm is ahead where steeper * z >= behind
            behind = level[:, other, None, :] - level
            crossing = behind / steeper
        low = np.where((steeper > flat) & (crossing > low), crossing, low)
        high = np.where((steeper < -flat) & (crossing < high), crossing, high)
        high = np.where((np.abs(steeper) <= flat) & (behind > 0.0), -np.inf, high)
    there = np.maximum(ndtr(high) - ndtr(low), 0.0)
    return np.stack([there[:, :, half::2].mean(axis=2) for half in (0, 1)])


def normal_extremes(
    mean: FloatArray, cov: FloatArray, seen: Seen, common: bool = True
) -> tuple[FloatArray, FloatArray] | None:
    """``E[max]`` and ``E[min]`` of jointly normal values, ``(task,)`` each: a closed form for two
    arms, quadrature for independent ones and where laws are exact, None for others.
    """
    arms, available = mean.shape[1], seen.mask
    if arms == 2 and available is None:
        variance = cov[:, 0, 0] + cov[:, 1, 1] - 2.0 * cov[:, 0, 1]
        std, gap = np.sqrt(np.maximum(variance, 0.0)), np.abs(mean[:, 0] - mean[:, 1])
        floor = np.maximum(std, np.finfo(np.float64).tiny)
        half = gap / 2.0 + std * np.exp(log_loss(np.minimum(gap / floor, 1e6)))  # E|X_0 - X_1| / 2
        return mean.mean(axis=1) + half, mean.mean(axis=1) - half
    if not (cov != cov * np.eye(arms)).any():
        std = np.sqrt(np.diagonal(cov, axis1=1, axis2=2))
        smallest = np.maximum(KNOWN * std.max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        return expected_extremes(mean, np.maximum(std, smallest), StandardNormal(), available)
    if arms <= MOST_EXACT:
        there = np.ones(mean.shape, dtype=bool) if available is None else available
        return _expected_largest(mean, cov, there), -_expected_largest(-mean, cov, there)
    if not at_first(seen, len(mean), common).all():
        return None
    ends = [[_first_largest(row) for row in law_rows(m, cov, available)] for m in (mean, -mean)]
    return np.array(ends[0]), -np.array(ends[1])


@lru_cache(maxsize=512)
def _first_largest(row: bytes) -> float:
    """Mean of the largest value of one task."""
    return float(_expected_largest(*read_row(row))[0])


def _expected_largest(mean: FloatArray, cov: FloatArray, available: BoolArray) -> FloatArray:
    """Mean of the largest value (Afonja 1972, Journal of the Royal Statistical Society B 34).

    ``sum_a m_a P(a is largest) + sum_(a<b) s_ab phi(d_ab) P(no other is larger | X_a = X_b)`` with
    ``s_ab`` the standard deviation of ``X_a - X_b`` and ``d_ab`` its mean in units of that.
    """
    arms = mean.shape[1]
    first, _ = equal_arms(mean, cov, available)
    there = available & (first == np.arange(arms))
    limits, correlations, std = _differences_of(mean, cov, there)
    centre = np.where(there, mean, -np.inf).max(axis=1)
    law = exact_argmax(mean, cov, available).probs
    total = centre + (law * (mean - centre[:, None])).sum(axis=1)
    for a in range(arms - 1):
        for other in range(a, arms - 1):  # arm b = other + 1
            d, rest = limits[:, a, other], np.delete(np.arange(arms - 1), other)
            apart = std[:, a, other] * np.exp(-0.5 * d * d) / np.sqrt(2.0 * np.pi)
            some = np.flatnonzero(there[:, a] & there[:, other + 1] & (apart > 0.0))
            tied = _given_tie(limits[some, a], correlations[some, a], std[some, a], other, rest)
            total[some] += apart[some] * all_below(*tied)
    return np.asarray(total)


def _given_tie(
    limits: FloatArray, correlations: FloatArray, std: FloatArray, tied: int, rest: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Limits ``(task, other)`` and correlations of the ``rest`` of the differences from an arm,
    given that the ``tied`` one is 0.

    Where that leaves a difference no freedom and it is 0 too, the arm lies on a line through the
    two: between them it is never the largest alone, beyond them it hides their tie.
    """
    slope, d = correlations[:, rest, tied], limits[:, tied, None]
    among = correlations[:, rest[:, None], rest] - slope[:, :, None] * slope[:, None, :]
    variance, ahead = (1.0 - slope) * (1.0 + slope), limits[:, rest] - slope * d
    certain = (variance < SINGULAR) & (slope != 0.0)
    level = certain & (np.abs(ahead) <= np.sqrt(SINGULAR) * (1.0 + np.abs(d)))
    between = (slope > 0.0) & (std[:, rest] < std[:, tied, None])
    ahead = np.where(level, np.where(between, FAR, -FAR), ahead)
    free = np.sqrt(np.where(certain, 1.0, variance))
    ahead = np.where(certain, np.copysign(FAR, ahead), ahead / free)
    among = among / free[:, :, None] / free[:, None, :]
    alone = certain[:, :, None] | certain[:, None, :]
    return ahead, np.clip(np.where(alone, 0.0, among), -1.0, 1.0)


@lru_cache(maxsize=32)
def _lattice(points: int, dimensions: int) -> FloatArray:
    """Return ``(dimension, point)``: multiples of one vector, shifted by a quarter and folded so
    that the ends meet.
    """
    fractions = (np.outer(VECTOR[:dimensions], np.arange(points)) + 0.25) / points % 1.0
    return np.asarray(np.clip(1.0 - np.abs(2.0 * fractions - 1.0), 1e-12, 1.0 - 1e-12))
