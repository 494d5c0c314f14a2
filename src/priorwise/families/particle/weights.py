"""Weighted particles: how many draws they are worth, draws, quantiles and errors.

Weights are ``(task, particle)``; what is weighed is ``(arm, particle)``. Sums run over the last
axis, task by task, so that a task's numbers do not depend on how many tasks stand beside it.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from priorwise.core.hashing import invert
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray, IntArray

CHUNK: Final = 1 << 17
"""Numbers that are worked on at once: they stay in the cache of a processor."""
COMPARED: Final = 1 << 13  # numbers that are compared faster than searched
FEWEST: Final = 100
"""Effective particles below which a belief is called rough: means are off by a tenth of the
posterior standard deviation.
"""


def chunks(tasks: IntArray, particles: int) -> Iterator[IntArray]:
    """Split tasks into parts that a processor's cache holds."""
    most = max(1, CHUNK // particles)
    for start in range(0, len(tasks), most):
        yield tasks[start : start + most]


def normalised(log_weights: FloatArray) -> FloatArray:
    """Probabilities from logarithms whose largest is 0."""
    weights = np.exp(log_weights)
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights


def kish(weights: FloatArray) -> FloatArray:
    """``1 / sum w^2`` of probabilities, ``(task,)``: how many equal weights scatter as much (Kish
    1965).
    """
    return np.asarray(1.0 / np.square(weights).sum(axis=-1))


def average(probs: FloatArray, values: FloatArray) -> FloatArray:
    """``sum_i w_i x_i`` of each arm, ``(task, arm)``."""
    return np.stack([(probs * each).sum(axis=-1) for each in values], axis=-1)


def drawn(rng: Stream, log_weights: FloatArray, draws: int) -> IntArray:
    """Return indices ``(task, draw)`` in proportion to weights: those of ``rng.choice(weights,
    draws)``, by a search task by task where there are many to compare with.
    """
    uniform, particles = rng.uniform(draws), log_weights.shape[1]
    out = np.empty(uniform.shape, dtype=np.int64)
    for rows in chunks(np.arange(len(uniform)), particles):
        weights = np.exp(log_weights[rows])
        if draws * particles <= COMPARED:
            out[rows] = invert(weights, uniform[rows])
            continue
        for task, own, sums in zip(rows.tolist(), weights, np.cumsum(weights, axis=1), strict=True):
            index = np.searchsorted(sums, uniform[task] * sums[-1], side="right")
            if index.max() >= len(own):  # rounding must not pick a weight of 0
                index = np.minimum(index, np.flatnonzero(own)[-1])
            out[task] = index
    return out


def quantile(
    probs: FloatArray, values: FloatArray, orders: IntArray, level: float | FloatArray
) -> FloatArray:
    """Least value with at least that much weight at or below it, ``(task, arm)``; ``orders`` sort
    the values of each arm.
    """
    level = np.broadcast_to(np.reshape(level, (-1, 1)), (len(probs), 1)) - 1e-12
    out = np.empty((len(probs), len(values)))
    for arm, (each, order) in enumerate(zip(values, orders, strict=True)):
        below = (np.cumsum(probs[:, order], axis=1) < level).sum(axis=1)
        out[:, arm] = each[order[np.minimum(below, len(each) - 1)]]
    return out


def errors(
    probs: FloatArray, values: FloatArray, starts: IntArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Posterior variance, and squared standard error of the posterior mean m, ``(task, arm)`` each.

    The error is ``sum_e (sum_(i in e) w_i (x_i - m))^2 / (1 - W_e)^2`` over families e of
    particles, with W_e their weight: what leaving out one family after the other changes. Weighted
    draws are families of one. Of particles that were resampled and moved a family are those with
    one ancestor two generations ago (Chan and Lai 2013; Olsson and Douc 2019); ``starts`` are the
    places where the families of one task begin.
    """
    mean, weight = average(probs, values), probs
    if starts is not None:
        weight = np.add.reduceat(probs, starts, axis=-1)
    with np.errstate(divide="ignore"):
        outside = 1.0 / np.square(1.0 - weight)
    spread, error = np.empty(mean.shape), np.empty(mean.shape)
    for arm, each in enumerate(values):
        apart = each - mean[:, arm, None]
        pulls = probs * apart
        spread[:, arm] = (pulls * apart).sum(axis=-1)
        if starts is not None:
            pulls = np.add.reduceat(pulls, starts, axis=-1)
        error[:, arm] = (np.square(pulls) * np.minimum(outside, 1e300)).sum(axis=-1)
    error[(weight >= 1.0).any(axis=-1)] = np.inf
    return spread, error


def systematic(probs: FloatArray, uniform: float) -> IntArray:
    """Indices ``(particle,)`` of as many equal particles, in order: a comb with equal gaps, placed
    by one uniform number, over the running sum of one task's weights.
    """
    running = np.cumsum(probs)
    comb = (np.arange(len(probs)) + uniform) / len(probs) * running[-1]
    index = np.searchsorted(running, comb, side="right")
    return np.minimum(index, np.flatnonzero(probs)[-1])


def portion(log_weights: FloatArray, gained: FloatArray, most: float, least: float) -> float:
    """Return the largest share up to ``most`` of log likelihoods ``gained`` that weights may take
    in with ``least`` particles left, by bisection; all of it where that leaves as many.
    """

    def left(share: float) -> float:
        with np.errstate(invalid="ignore"):
            moved = log_weights + share * gained
        return float(kish(normalised(moved - moved.max())))

    if left(most) >= least:
        return most
    low, high = 0.0, most
    # where some particles are impossible no share leaves more than the others
    least = min(least, 0.9 * left(1e-12 * most))
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if left(middle) >= least else (low, middle)
        if high - low <= 1e-6 * high:
            break
    return low if low > 0.0 else high
