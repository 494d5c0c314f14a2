"""Which of several jointly normal values is the largest: ``P(X_a > X_b for all b)`` with X ~
N(mean, cov), by quadrature.

The differences ``X_b - X_a`` are normal too, and the probability that all are negative is an
integral over the unit cube after separation of variables (Genz 1992). A rank-one lattice with the
baker's transformation integrates it: the integrand is smooth in the parameters too, so that laws of
nearby posteriors have nearly the same error, which drops out of their difference.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from priorwise.core.action_laws import ActionLaw
from priorwise.core.protocols import Seen
from priorwise.core.types import BoolArray, FloatArray
from priorwise.families.normal.distance import covariance_rank

POINTS: Final = 127
LINES: Final = 512
RANK: Final = 4
"""Directions beyond the leading one in which values of low rank may move."""
SINGULAR: Final = 1e-11
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
    is the covariance before any reward, whose rank decides between two quadratures. The error is
    nearly the same for nearby posteriors.
    """
    if rule == "max" and draws > 1:
        return None
    rank = covariance_rank(start)
    low = rank <= RANK + 1 and rank < seen.arms - 1
    if seen.arms > (MOST_ARMS_LOW if low else MOST_ARMS):
        return None
    if low:
        error = 0.005 if rank <= 2 else 0.02
        return ActionLaw(line_argmax(mean, cov / draws, seen.mask), "quadrature", error)
    error = 1e-9 if seen.arms <= 2 else 0.01 if seen.arms < 10 else 0.03
    return ActionLaw(normal_argmax(mean, cov / draws, seen.mask), "quadrature", error)


def normal_argmax(
    mean: FloatArray, cov: FloatArray, available: BoolArray | None = None, points: int = POINTS
) -> FloatArray:
    """Return the probability that each value is the largest, ``(task, arm)``, for means ``(task,
    arm)`` and covariances.

    Within about 0.01 in total variation for six arms and 0.03 for twenty; see :func:`line_argmax`
    for values of low rank.
    """
    tasks, arms = mean.shape
    if arms == 1:
        return np.ones((tasks, 1))
    out = np.empty((tasks, arms))
    size = max(1, ENTRIES // (arms * max(points, arms * arms)))
    for first in range(0, tasks, size):
        part = slice(first, first + size)
        out[part] = _pass(
            mean[part], cov[part], None if available is None else available[part], points
        )
    return out


def _pass(
    mean: FloatArray, cov: FloatArray, available: BoolArray | None, points: int
) -> FloatArray:
    # (task, arm, arm - 1), (task, arm, arm - 1, arm - 1)
    upper, root = _differences(mean, cov, available)
    n = upper.shape[2]
    if n == 1:
        from scipy.special import ndtr

        law = np.asarray(ndtr(upper[:, :, 0] / root[:, :, 0, 0]))
    else:
        from priorwise.families.normal.orthant import all_below
        from priorwise.kernels.simd import WIDTH

        extra = -points % WIDTH  # points without weight, to fill up
        nodes = np.pad(_lattice(points, n - 1), ((0, 0), (0, extra)), constant_values=0.5)
        weights = np.pad(np.full(points, 1.0 / points), (0, extra))
        law = np.empty(mean.shape)
        limits, roots = upper.reshape(-1, n), root.reshape(-1, n, n)
        all_below(limits, roots, nodes, weights, law.reshape(-1))
    if available is not None:
        law = np.where(available, law, 0.0)
    return np.asarray(law / law.sum(axis=1, keepdims=True))


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
    spread = np.take_along_axis(
        np.take_along_axis(spread, order[:, :, :, None], axis=2), order[:, :, None, :], axis=3
    )
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
) -> FloatArray:
    """Return the same for covariances of low rank: exact along the leading direction, a lattice
    over the few others.

    Within about 0.005 in total variation for values that move in two directions, 0.02 in five.
    Along a line the largest of several linear functions changes at finitely many points, and
    between them it is the same arm.
    """
    out = np.empty(mean.shape)
    size = max(1, ENTRIES // (mean.shape[1] * points))
    for first in range(0, len(mean), size):
        part = slice(first, first + size)
        out[part] = _lines(
            mean[part], cov[part], None if available is None else available[part], points
        )
    return out


def _lines(
    mean: FloatArray, cov: FloatArray, available: BoolArray | None, points: int
) -> FloatArray:
    from scipy.special import ndtr, ndtri

    # a shift of all arms alike changes nothing
    centred = (
        cov
        - cov.mean(axis=1, keepdims=True)
        - cov.mean(axis=2, keepdims=True)
        + cov.mean(axis=(1, 2), keepdims=True)
    )
    values, vectors = np.linalg.eigh(centred)
    # leading direction first
    root = (vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])[:, :, ::-1]
    slope, rest = root[:, :, 0], root[:, :, 1 : 1 + RANK]
    level = mean[:, :, None] + np.einsum(
        "taj,jm->tam", rest, ndtri(_lattice(points, rest.shape[2]))
    )
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
    law = np.maximum(ndtr(high) - ndtr(low), 0.0).mean(axis=2)
    if available is not None:
        law = np.where(available, law, 0.0)
    return np.asarray(law / law.sum(axis=1, keepdims=True))


@lru_cache(maxsize=32)
def _lattice(points: int, dimensions: int) -> FloatArray:
    """Return ``(dimension, point)``: multiples of square roots of primes (Richtmyer), folded so
    that the ends meet.
    """
    primes: list[int] = []
    candidate = 2
    while len(primes) < dimensions:
        if all(candidate % prime for prime in primes):
            primes.append(candidate)
        candidate += 1
    fractions = np.outer(np.sqrt(primes), np.arange(1, points + 1)) % 1.0
    return np.asarray(np.clip(1.0 - np.abs(2.0 * fractions - 1.0), 1e-12, 1.0 - 1e-12))
