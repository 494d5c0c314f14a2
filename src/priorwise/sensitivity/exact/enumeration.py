"""What finite problems are enumerated with: outcomes of a few draws, rewards that an arm may show,
groups of equal states.
"""

from __future__ import annotations

from itertools import combinations_with_replacement, product
from math import comb
from typing import Final

import numpy as np

from priorwise.core.choosing import ties
from priorwise.core.protocols import Seen
from priorwise.core.types import BoolArray, FloatArray, IntArray
from priorwise.families.finite.prior import FinitePrior

MOST_OUTCOMES: Final = 20_000
"""Outcomes of the draws that are enumerated at most; beyond, there is no exact law."""


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


def tied_law(values: FloatArray) -> FloatArray:
    """Uniform law on the arms that tie for the largest value, ``(task, arm)``, as
    :func:`priorwise.core.choosing.pick` draws.

    Values that are sums have to be made :func:`~priorwise.core.choosing.level` first.
    """
    tied = ties(values)
    return np.asarray(tied / tied.sum(axis=1, keepdims=True))


def by_mask(seen: Seen, tasks: int) -> list[tuple[BoolArray | None, IntArray]]:
    """Distinct rows of the mask, and the tasks that have each."""
    if seen.mask is None:
        return [(None, np.arange(tasks))]
    masks, place = np.unique(seen.mask, axis=0, return_inverse=True)
    return [(mask, np.flatnonzero(place.reshape(-1) == i)) for i, mask in enumerate(masks)]


def reward_likelihoods(prior: FinitePrior, arm: int) -> list[tuple[float, FloatArray]]:
    """Each reward an arm may show, with its probability in each possible task, ``(support,)``;
    noiseless or Bernoulli.
    """
    column = prior.means[:, arm]
    if prior.noise == "bernoulli":
        return [(1.0, column), (0.0, 1.0 - column)]
    if prior.noise == "none":
        values = np.sort(column)
        starts = [float(values[0])]
        for value in values[1:]:
            if value - starts[-1] > prior.tolerance:
                starts.append(float(value))
        group = np.searchsorted(starts, column, side="right") - 1
        return [(start, (group == i).astype(np.float64)) for i, start in enumerate(starts)]
    raise ValueError(
        "prior must have noise='none' or 'bernoulli': normal rewards have no finite number of "
        "values to enumerate"
    )


def row_groups(rows: IntArray) -> tuple[IntArray, IntArray]:
    """First row of each group of equal rows, and the group of every row."""
    bytes_ = (
        np.ascontiguousarray(rows)
        .view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))
        .reshape(-1)
    )
    _, first, group = np.unique(bytes_, return_index=True, return_inverse=True)
    return first, group.reshape(-1)


def rounded_logs(values: FloatArray) -> IntArray:
    """Integers that are equal for logarithms that agree to 1e-11; -inf has one of its own."""
    return np.where(
        np.isneginf(values), np.iinfo(np.int64).min, np.round(np.maximum(values, -1e7) * 1e11)
    ).astype(np.int64)
