"""Problems that can be enumerated, and how: outcomes of a few draws, groups of equal states."""

from __future__ import annotations

from itertools import combinations_with_replacement, product
from math import comb
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

from priorwise.core.protocols import MeanBelief, Prior, Seen
from priorwise.core.streams import mix
from priorwise.core.types import BoolArray, FloatArray, IntArray

MOST_OUTCOMES: Final = 20_000
"""Outcomes of the draws that are enumerated at most; beyond, there is no exact law."""


@runtime_checkable
class PlannableBelief(MeanBelief, Protocol):
    """Rewards have finitely many values, and equal beliefs can be found, so that plans can be
    exact.
    """

    def outcomes(self) -> list[list[tuple[float, FloatArray]]] | None:
        """For each action the rewards that it may show next, the same for all tasks, with their
        probabilities ``(task,)``; None where they are too many.
        """
        ...

    def key(self) -> IntArray:
        """Integers that are equal for equal beliefs, ``(task, entry)``."""
        ...


@runtime_checkable
class EnumerableBelief(PlannableBelief, Protocol):
    """A posterior on finitely many environments, called points."""

    def points(self, seen: Seen) -> FloatArray:
        """Value of each action in each possible environment, ``(point, arm)``."""
        ...

    def probabilities(self) -> FloatArray:
        """Posterior probability of each of them, ``(task, point)``."""
        ...

    def likelihoods(self, arm: int) -> list[tuple[float, FloatArray]] | None:
        """Rewards that an action may show, with their probabilities in each possible environment,
        ``(point,)``; None where they are too many.
        """
        ...


@runtime_checkable
class EnumerablePrior(Prior, Protocol):
    """A prior on finitely many mean vectors; its beliefs are enumerable too."""

    means: FloatArray  # (point, arm)
    probs: FloatArray  # (point,)

    @property
    def reward_law(self) -> Any:
        """How rewards scatter around their means."""
        ...

    def likelihoods(self, arm: int) -> list[tuple[float, FloatArray]] | None:
        """As those of its beliefs."""
        ...


def multiset_count(points: int, draws: int) -> int:
    """Number of multisets."""
    return comb(points + draws - 1, draws)


def multisets(points: int, draws: int) -> tuple[IntArray, FloatArray]:
    """Every multiset as sorted indices, ``(outcome, draw)``, and the log number of orders it comes
    in.
    """
    from scipy.special import gammaln

    outcomes = np.array(list(combinations_with_replacement(range(points), draws)), dtype=np.int64)
    place = np.arange(draws)
    new = np.diff(outcomes, axis=1, prepend=-1) != 0
    # 1, 2, ... within a run of one point
    repeats = place - np.maximum.accumulate(np.where(new, place, 0), axis=1) + 1
    return outcomes, gammaln(draws + 1.0) - np.log(repeats).sum(axis=1)


def sequences(points: int, draws: int) -> tuple[IntArray, FloatArray]:
    """Every sequence, ``(outcome, draw)``; each comes in one order."""
    outcomes = np.array(list(product(range(points), repeat=draws)), dtype=np.int64)
    return outcomes, np.zeros(len(outcomes))


def outcome_probabilities(
    weights: FloatArray, outcomes: IntArray, log_orders: FloatArray
) -> FloatArray:
    """``orders * p_1 ... p_k`` of each outcome, ``(task, outcome)``; in logarithms, since the
    orders may exceed all floats.
    """
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)
    total = np.broadcast_to(log_orders, (len(weights), len(outcomes))).copy()
    for points in outcomes.T:
        total += log_weights[:, points]
    return np.exp(total)


def by_mask(seen: Seen, tasks: int) -> list[tuple[BoolArray | None, IntArray]]:
    """Distinct rows of the mask, and the tasks that have each."""
    if seen.mask is None:
        return [(None, np.arange(tasks))]
    masks, place = np.unique(seen.mask, axis=0, return_inverse=True)
    return [(mask, np.flatnonzero(place.reshape(-1) == i)) for i, mask in enumerate(masks)]


def row_groups(rows: IntArray) -> tuple[IntArray, IntArray]:
    """First row of each group of equal rows, in the order of their bytes, and the group of every
    row.
    """
    odd = np.array([mix(place) | 1 for place in range(rows.shape[1])], dtype=np.uint64)
    bits = np.ascontiguousarray(rows).view(np.uint64)
    mixed = (bits ^ (bits >> np.uint64(32))) @ odd
    _, first, group = np.unique(mixed, return_index=True, return_inverse=True)
    if not np.array_equal(rows[first][group], rows):  # two rows with one hash: sort them whole
        _, first, group = np.unique(_bytes(rows), return_index=True, return_inverse=True)
        return first, group.reshape(-1)
    order = np.argsort(_bytes(rows[first]), kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return first[order], place[group.reshape(-1)]


def _bytes(rows: IntArray) -> np.ndarray:
    width = rows.dtype.itemsize * rows.shape[1]
    return np.ascontiguousarray(rows).view(np.dtype((np.void, width))).reshape(-1)


def rounded_logs(values: FloatArray) -> IntArray:
    """Integers that are equal for logarithms that agree to 1e-11; -inf has one of its own."""
    rounded = np.maximum(values, -1e7)
    rounded *= 1e11
    keys = np.rint(rounded, out=rounded).astype(np.int64)
    keys[values == -np.inf] = np.iinfo(np.int64).min
    return keys
