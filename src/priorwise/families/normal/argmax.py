"""Which of several jointly normal values is the largest: ``P(X_a > X_b for all b)`` with X ~
N(mean, cov), by quadrature.

The differences ``X_b - X_a`` are normal too, and the probability that all are negative is an
integral over the unit cube after separation of variables (Genz 1992). A rank-one lattice with the
baker's transformation integrates it: the integrand is smooth in the parameters too, so that laws of
nearby posteriors have nearly the same error, which drops out of their difference. Every second
point of the lattice is one too: how far the two halves are apart says how large the error is.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

import numpy as np

from priorwise.core.seen import Seen
from priorwise.core.types import BoolArray, FloatArray
from priorwise.families.normal.distance import covariance_rank
from priorwise.families.normal.tails import log_loss
from priorwise.theory.action_laws import ActionLaw
from priorwise.theory.largest import StandardNormal, expected_extremes

POINTS: Final = 128
LINES: Final = 512
RANK: Final = 4
"""Directions beyond the leading one in which values of low rank may move."""
SINGULAR: Final = 1e-11
KNOWN: Final = 1e-9
"""Share of the largest standard deviation that smaller ones are raised to."""
NOUGHT: Final = 1e-150
"""What stands for a limit of 0, by which limits are divided."""
VECTOR: Final = (
    1, 561, 211, 697, 891, 1903, 737, 667, 607, 483, 1549, 1385, 311, 593, 235,
    643, 1705, 1035, 875, 2011, 535, 1253, 375, 709, 1139, 1347, 821, 217, 1671, 545,
)  # fmt: skip
"""Of lattices with 64, 128, ..., 4096 points: built one component at a time, each the one whose
squared error, with weights 1/(5j), is at no size many times that of the best for this size.
"""
ENTRIES: Final = 1 << 21  # numbers in an array of one pass
MOST_ARMS: Final = 30
MOST_ARMS_LOW: Final = 100
"""Arms up to which the law is integrated: in general, and where they move in few directions
only.
"""


def argmax_law(
    mean: FloatArray, cov: FloatArray, start: FloatArray, draws: int, rule: str, seen: Seen
) -> ActionLaw | None:
    """Law of the largest of jointly normal values ``(task, arm)``, or of their mean over several
    draws, which is normal with a share of the covariance.

    None where sampling is cheaper: for many arms, and for the largest of several draws. ``start``
    is the covariance before any reward, whose rank decides between two quadratures.
    """
    if rule == "max" and draws > 1:
        return None
    rank = covariance_rank(start)
    low = rank <= RANK + 1 and rank < seen.arms - 1
    if seen.arms > (MOST_ARMS_LOW if low else MOST_ARMS):
        return None
    return (line_argmax if low else normal_argmax)(mean, cov / draws, seen.mask)


def normal_argmax(
    mean: FloatArray, cov: FloatArray, available: BoolArray | None = None, points: int = POINTS
) -> ActionLaw:
    """Return how likely each value is the largest, for means ``(task, arm)`` and covariances.

    Up to three arms the law is exact to 1e-9. For more, ``points`` is a power of two, and the error
    is about 1e-4 in total variation for six arms in two correlated groups, 1e-3 for six with any
    covariance, and 5e-3 for 25; see :func:`line_argmax` for values of low rank.
    """
    arms = mean.shape[1]
    return _by_parts(_pass, arms * max(points, arms * arms), mean, cov, available, points)


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


def both_below(h: FloatArray, k: FloatArray, rho: FloatArray | float) -> FloatArray:
    """``P(X < h, Y < k)`` of standard normal values with correlation ``rho``, by Owen's T
    function.
    """
    from scipy.special import ndtr, owens_t

    rho = np.where(np.abs(rho) > 1.0 - SINGULAR, np.sign(rho), rho)  # 1 but for rounding
    rest = np.sqrt(np.maximum((1.0 - rho) * (1.0 + rho), SINGULAR**2))
    h, k = (np.where(np.abs(x) < NOUGHT, NOUGHT, x) for x in (h, k))
    with np.errstate(over="ignore"):
        first = owens_t(h, (k - rho * h) / (h * rest))
        second = owens_t(k, (h - rho * k) / (k * rest))
    both = 0.5 * (ndtr(h) + ndtr(k)) - first - second
    return np.maximum(np.where((h > 0.0) == (k > 0.0), both, both - 0.5), 0.0)


def _differences(
    mean: FloatArray, cov: FloatArray, available: BoolArray | None
) -> tuple[FloatArray, FloatArray]:
    """Upper limits and Cholesky factors of the standardised differences from each arm, the most
    binding difference first.
    """
    arms = mean.shape[1]
    others = np.array([[b for b in range(arms) if b != a] for a in range(arms)])  # (arm, other)
    upper = mean[:, :, None] - mean[:, others]
    own = np.diagonal(cov, axis1=1, axis2=2)  # (task, arm)
    # cov(a, b)
    cross = np.take_along_axis(cov, np.broadcast_to(others, (len(cov), arms, arms - 1)), axis=2)
    block = cov[:, others[:, :, None], others[:, None, :]]  # cov(b, c)
    spread = block + own[:, :, None, None] - cross[:, :, :, None] - cross[:, :, None, :]
    variance = np.diagonal(spread, axis1=2, axis2=3)
    rounding = SINGULAR * (own[:, :, None] + own[:, others]) + np.finfo(np.float64).tiny
    scale = np.sqrt(np.maximum(variance, rounding))
    upper = upper / scale
    if available is not None:  # an arm that cannot be played is always beaten
        upper = np.where(available[:, others], upper, 1e3)
    order = np.argsort(upper, axis=2, kind="stable")
    spread = spread / scale[:, :, :, None] / scale[:, :, None, :]
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
    mean: FloatArray, cov: FloatArray, available: BoolArray | None = None
) -> tuple[FloatArray, FloatArray] | None:
    """``E[max]`` and ``E[min]`` of jointly normal values, ``(task,)`` each: a closed form for two
    arms, quadrature for independent ones, None for others.
    """
    arms = mean.shape[1]
    if arms == 2 and available is None:
        variance = cov[:, 0, 0] + cov[:, 1, 1] - 2.0 * cov[:, 0, 1]
        std, gap = np.sqrt(np.maximum(variance, 0.0)), np.abs(mean[:, 0] - mean[:, 1])
        floor = np.maximum(std, np.finfo(np.float64).tiny)
        half = gap / 2.0 + std * np.exp(log_loss(np.minimum(gap / floor, 1e6)))  # E|X_0 - X_1| / 2
        return mean.mean(axis=1) + half, mean.mean(axis=1) - half
    if (cov != cov * np.eye(arms)).any():
        return None
    std = np.sqrt(np.diagonal(cov, axis1=1, axis2=2))
    smallest = np.maximum(KNOWN * std.max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return expected_extremes(mean, np.maximum(std, smallest), StandardNormal(), available)


@lru_cache(maxsize=32)
def _lattice(points: int, dimensions: int) -> FloatArray:
    """Return ``(dimension, point)``: multiples of one vector, shifted by a quarter and folded so
    that the ends meet.
    """
    fractions = (np.outer(VECTOR[:dimensions], np.arange(points)) + 0.25) / points % 1.0
    return np.asarray(np.clip(1.0 - np.abs(2.0 * fractions - 1.0), 1e-12, 1.0 - 1e-12))
