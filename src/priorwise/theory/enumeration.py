"""Problems that can be enumerated, and how: outcomes of a few draws, groups of equal states."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations_with_replacement, product
from math import comb
from typing import Any, Final, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np

from priorwise.core.hashing import mix
from priorwise.core.protocols import DrawnEnvironments, MeanBelief, Prior
from priorwise.core.seen import Seen
from priorwise.core.types import BoolArray, FloatArray, IntArray

MOST_OUTCOMES: Final = 20_000
"""Outcomes of the draws that are enumerated at most; beyond, there is no exact law."""


class Outcome(NamedTuple):
    """What an action may show next: one for all tasks, or for each task its own, ``(task,)``.

    ``chance`` is its probability: given a posterior ``(task,)``; in each possible environment
    ``(point,)``, or where it depends on the state ``(task, point)``.
    """

    reward: Any
    after: Any  # the next signal; None where there is none
    chance: FloatArray


Outcomes = list[list[Outcome]]  # for each action all that it may show


class Look(NamedTuple):
    """What an action may show some tasks that see the same, and what may be drawn after it."""

    chance: FloatArray  # (task, point): its probability in each possible environment
    weights: FloatArray  # (task, point): posterior probabilities after it
    values: FloatArray  # (point, arm): value of each action after it
    sizes: FloatArray  # (point, arm): sizes of the numbers that these values are sums of


@runtime_checkable
class PlannableBelief(MeanBelief, Protocol):
    """Rewards and signals have finitely many values, and equal beliefs can be found, so that plans
    can be exact.
    """

    def outcomes(self, seen: Seen) -> Outcomes | None:
        """For each action what it may show next, given the posterior; None where that is too
        much.
        """
        ...

    def key(self) -> IntArray:
        """Integers that are equal for equal beliefs, ``(task, entry)``."""
        ...


@runtime_checkable
class EnumerableBelief(PlannableBelief, Protocol):
    """A posterior on finitely many environments, called points."""

    def points(self, seen: Seen) -> FloatArray:
        """Value of each action in each possible environment, ``(point, arm)``; ``seen`` is of tasks
        that see the same.
        """
        ...

    def probabilities(self) -> FloatArray:
        """Posterior probability of each of them, ``(task, point)``."""
        ...


@runtime_checkable
class PointsBelief(Protocol):
    """A posterior on finitely many environments that it can hand over."""

    def environments(self, points: IntArray, seen: Seen) -> DrawnEnvironments:
        """Return the possible environments of these numbers, ``(task, draw)``, as if drawn."""
        ...


@runtime_checkable
class EnumerableEnvironments(EnumerableBelief, PointsBelief, Protocol):
    """The same where it also knows all that actions may show."""


@runtime_checkable
class HiddenStateBelief(EnumerableBelief, Protocol):
    """The same where environments hide a state: what an action is worth, and what it may show,
    depends on all that was seen. A signal says nothing that the belief does not hold already.
    """

    def point_values(self, seen: Seen) -> FloatArray:
        """Value of each action now in each possible environment, ``(task, point, arm)``."""
        ...

    def possible_outcomes(self, seen: Seen) -> Outcomes | None:
        """For each action what it may show next, in each possible environment given what was seen,
        ``(task, point)``; None where that is too much.
        """
        ...


@runtime_checkable
class EnumerableRewards(EnumerableBelief, Protocol):
    """The same without a state: what an action shows is its reward."""

    def likelihoods(self, arm: int) -> list[tuple[float, FloatArray]] | None:
        """Rewards that an action may show, with their probabilities in each possible environment,
        ``(point,)``; None where they are too many.
        """
        ...


@runtime_checkable
class LookingBelief(EnumerableBelief, Protocol):
    """The same with a state: it can list what a look-ahead may draw."""

    def rewards_now(self, seen: Seen) -> FloatArray:
        """Mean reward of each action now in each possible environment, ``(task, point, arm)``."""
        ...

    def looks(self, seen: Seen, arm: int) -> list[Look]:
        """List what an action may show and what may be drawn after it, for tasks that see the same;
        where environments hide a state, for one task.
        """
        ...


@runtime_checkable
class StartingPrior(Prior, Protocol):
    """Knows how its tasks start; those of other priors show nothing."""

    def first_signals(self) -> tuple[Any, FloatArray]:
        """Signals that may be shown first, ``(signal,)``, and their probabilities; without signals
        None and ``[1.0]``.
        """
        ...


@runtime_checkable
class EnumerablePrior(StartingPrior, Protocol):
    """A prior on finitely many environments; its beliefs are enumerable too."""

    probs: FloatArray  # (point,)

    @property
    def reward_law(self) -> Any:
        """How rewards scatter around their means."""
        ...

    @property
    def candidates(self) -> FloatArray:
        """Numbers that tell the possible environments apart, ``(point, entry)``."""
        ...

    def pooled(self, others: Sequence[Any], kept: BoolArray) -> Self:
        """Return a prior on the environments of this one and of others, of which those that are
        ``kept``, ``(point,)``.
        """
        ...

    def extremes(self) -> tuple[FloatArray, FloatArray]:
        """Largest and smallest expected reward of a step in each possible environment, whatever
        the state and the action, ``(point,)`` each.
        """
        ...

    def outcomes(self, signal: Any, step: int) -> Outcomes | None:
        """For each action what it may show next, in each possible environment, to tasks that see
        ``signal``; None where that is too much.
        """
        ...


def expected_outcomes(possible: Outcomes | None, weights: FloatArray) -> Outcomes | None:
    """Average what may be shown over posterior weights ``(task, point)``."""
    if possible is None:
        return None
    return [
        [each._replace(chance=average(weights, each.chance)) for each in shown]
        for shown in possible
    ]


def average(weights: FloatArray, chance: FloatArray) -> FloatArray:
    """``sum_s w_s p_s`` for weights ``(task, point)``: ``(task,)``."""
    return np.einsum("ts,s->t" if chance.ndim == 1 else "ts,ts->t", weights, chance)


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


def by_sight(seen: Seen, tasks: int) -> list[tuple[Seen, IntArray]]:
    """Tasks that see the same (mask, and where there is a state, state and step): what one of them
    sees, and which they are.
    """
    if seen.mask is None and seen.signal is None:
        return [(seen, np.arange(tasks))]
    columns = [] if seen.mask is None else [seen.mask]
    if seen.signal is not None:
        shown = (seen.signal, seen.step, seen.horizon)
        columns += [np.broadcast_to(each, tasks)[:, None] for each in shown]
    rows = np.concatenate(columns, axis=1)
    _, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    sights = []
    for task in first.tolist():
        one = seen.take([task])
        if seen.signal is not None:
            one = replace(one, step=int(rows[task, -2]), horizon=int(rows[task, -1]))
        sights.append(one)
    return [(one, np.flatnonzero(place.reshape(-1) == i)) for i, one in enumerate(sights)]


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
