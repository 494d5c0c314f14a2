"""Laws of a task's diameter that answer with their tail expectation at any level: finite, sampled,
and the range of independent arms, of which few laws are distinct.

With independent arms ``(diam - q)_+`` is the length of the set of x with ``min < x`` and ``max > x
+ q``, so that

    E(diam - q)_+ = integral P(some arm below x, some arm above x + q) dx,

one integral for any number of arms; and ``Psi(p) = min_q q + E(diam - q)_+ / p`` (Rockafellar and
Uryasev 2000). The probability is built up arm by arm from terms that are never negative, so small
ones keep their digits.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, final, runtime_checkable

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.theory.conditions import TailCondition, level, smallest
from priorwise.theory.numerics import NODES, WEIGHTS, integrate

FEWEST: Final = 20
"""Draws in the tail below which neither the estimate nor its standard error can be trusted."""
MOST_GROUPS: Final = 8  # distinct laws beyond which sampling is cheaper
SMALLEST: Final = 1e-250  # levels below this leave the range of floats on the way
TOLERANCE: Final = 1e-11
# of: no arm outside, some below only, some above only, both
Odds = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True)
class Tail:
    """A tail expectation: exact, an estimate with its standard error, or an upper bound where
    neither can be had.
    """

    value: float
    std_error: float
    kind: Literal["exact", "estimate", "upper"]


class DiameterLaw(Protocol):
    """A law that answers at any level."""

    def tail(self, p: float) -> Tail:
        """Tail expectation at level p: 0 is the essential supremum, 1 and more the mean."""
        ...


@runtime_checkable
class ExcessLaw(DiameterLaw, Protocol):
    """A law of which mixtures can be made: it knows how far the diameter exceeds a number."""

    def excess(self, q: float, accuracy: float = 0.0) -> float:
        """``E(diam - q)_+`` for q from 0, exact to a share of itself or of ``accuracy``."""
        ...


@final
@dataclass(frozen=True, eq=False)
class FiniteLaw:
    """Values with probabilities, largest first."""

    values: FloatArray
    probs: FloatArray

    @classmethod
    def of(cls, values: FloatArray, probs: FloatArray) -> "FiniteLaw":
        """Sort, and leave out what has probability 0."""
        order = np.argsort(-values, kind="stable")
        order = order[probs[order] > 0.0]
        return cls(values[order], probs[order] / math.fsum(probs[order].tolist()))

    def excess(self, q: float, accuracy: float = 0.0) -> float:
        """``E(diam - q)_+``."""
        return math.fsum((np.maximum(self.values - q, 0.0) * self.probs).tolist())

    def tail(self, p: float) -> Tail:
        """``(1/p) (sum of values above q times their probabilities + q (p - P[X > q]))``, q the
        quantile at p.
        """
        p = level(p)
        if p <= self.probs[0]:
            return Tail(float(self.values[0]), 0.0, "exact")
        if p == 1.0:
            return Tail(math.fsum((self.values * self.probs).tolist()), 0.0, "exact")
        cumulative = np.cumsum(self.probs)
        # values that count in full
        whole = min(int(np.searchsorted(cumulative, p)), len(cumulative) - 1)
        rest = max(p - float(cumulative[whole - 1]), 0.0)
        terms = (self.values[:whole] * self.probs[:whole]).tolist()
        return Tail(math.fsum([*terms, rest * float(self.values[whole])]) / p, 0.0, "exact")


@final
@dataclass(frozen=True, eq=False)
class SampleLaw:
    """Independent draws, largest first."""

    values: FloatArray
    conditions: tuple[TailCondition, ...] = ()
    largest: float | None = None  # essential supremum, where known

    @classmethod
    def of(
        cls,
        values: FloatArray,
        conditions: tuple[TailCondition, ...] = (),
        largest: float | None = None,
    ) -> "SampleLaw":
        """Sort the draws."""
        return cls(np.sort(values)[::-1], conditions, largest)

    def tail(self, p: float) -> Tail:
        """Mean of the largest share p of the draws, the last one in part.

        The estimate is ``min_q q + mean(X - q)_+ / p``, so to first order in q nothing is lost by
        estimating the quantile q, and its variance is that of ``(X - q)_+ / p`` over the number of
        draws. With fewer than 20 draws in the tail the smallest certified bound is returned
        instead, or if there is none the largest draw with an infinite standard error.
        """
        p = level(p)
        draws = len(self.values)
        if p == 0.0 and self.largest is not None:
            return Tail(self.largest, 0.0, "exact")
        if p < 1.0 and p * draws < FEWEST:
            upper = smallest(self.conditions, p)[0]
            if upper < math.inf:
                return Tail(upper, 0.0, "upper")
            return Tail(float(self.values[0]), math.inf, "estimate")
        count = min(max(math.ceil(p * draws), 1), draws)
        q = float(self.values[count - 1])
        above = np.maximum(self.values - q, 0.0)
        error = float(above.std(ddof=1)) / (p * math.sqrt(draws)) if draws > 1 else math.inf
        return Tail(q + float(above.mean()) / p, error, "estimate")


class Marginal(Protocol):
    """Law of one arm's mean."""

    def below(self, x: FloatArray) -> FloatArray:
        """``P(mu < x)``."""
        ...

    def above(self, x: FloatArray) -> FloatArray:
        """``P(mu > x)``."""
        ...

    def edges(self) -> list[float]:
        """Where to begin with panels; nothing lies beyond the first and the last."""
        ...


@final
@dataclass(frozen=True, eq=False)
class RangeLaw:
    """Law of the diameter of independent arms, as distinct marginals with their numbers of arms:
    by quadrature to 1e-10; a certified bound at levels that floats do not reach.
    """

    groups: tuple[tuple[Marginal, int], ...]
    largest: float  # essential supremum
    conditions: tuple[TailCondition, ...]

    @classmethod
    def of(
        cls,
        marginal: Callable[[float, float], Marginal],
        first: FloatArray,
        second: FloatArray,
        largest: float,
        conditions: tuple[TailCondition, ...],
    ) -> "RangeLaw | None":
        """Gather arms of equal parameters, ``(arm,)`` each; None where too many laws are
        distinct.
        """
        rows, counts = np.unique(np.stack([first, second], axis=1), axis=0, return_counts=True)
        if len(rows) > MOST_GROUPS:
            return None
        laws = [marginal(*row) for row in rows.tolist()]
        return cls(tuple(zip(laws, counts.tolist(), strict=True)), largest, conditions)

    def excess(self, q: float, accuracy: float = 0.0) -> float:
        """``E(diam - q)_+``, to a share TOLERANCE of itself or of ``accuracy``, whichever is
        more.
        """
        inner = np.array([edge for marginal, _ in self.groups for edge in marginal.edges()])
        low, high = float(inner.min()), float(inner.max()) - q
        if high <= low:
            return 0.0
        edges = np.concatenate([inner, inner - q, np.linspace(low, high, 9)])
        edges = np.unique(np.clip(edges, low, high))
        half = np.diff(edges)[:, None] / 2.0
        odds = self._both(edges[:-1, None] + half * (1.0 + NODES), q)
        rough = float((half * odds).sum(axis=0) @ WEIGHTS)
        tolerance = TOLERANCE * max(1.0, accuracy / max(rough, 1e-300))
        return integrate(lambda x: self._both(x, q), edges, tolerance=tolerance)

    def tail(self, p: float) -> Tail:
        """``min_q q + E(diam - q)_+ / p``."""
        return _tail(self, p)

    def _both(self, x: FloatArray, q: float) -> FloatArray:
        """``P(some arm below x, some arm above x + q)``."""
        odds: Odds | None = None
        for marginal, arms in self.groups:
            low, high = marginal.below(x), marginal.above(x + q)
            one = (np.maximum(1.0 - low - high, 0.0), low, high, np.zeros_like(low))
            odds = _power(one, arms) if odds is None else _join(odds, _power(one, arms))
        return np.zeros_like(x) if odds is None else odds[3]


@final
@dataclass(frozen=True, eq=False)
class MixedLaw:
    """One of several laws, drawn once per task."""

    parts: tuple[ExcessLaw, ...]
    probs: tuple[float, ...]
    largest: float  # essential supremum
    conditions: tuple[TailCondition, ...]

    def excess(self, q: float, accuracy: float = 0.0) -> float:
        """``sum_k probs_k E_k(diam - q)_+``."""
        each = (part.excess(q, accuracy) for part in self.parts)
        return math.fsum(p * part for p, part in zip(self.probs, each, strict=True))

    def tail(self, p: float) -> Tail:
        """``min_q q + sum_k probs_k E_k(diam - q)_+ / p``."""
        return _tail(self, p)


def _tail(law: Any, p: float) -> Tail:
    """``min_q q + E(diam - q)_+ / p`` of a law with ``excess``, ``largest`` and ``conditions``."""
    p = level(p)
    if p == 0.0:
        return Tail(law.largest, 0.0, "exact")
    largest = min(smallest(law.conditions, p)[0], law.largest)
    if p < SMALLEST or largest == math.inf:
        return Tail(largest, 0.0, "upper")
    if p >= 1.0:
        return Tail(law.excess(0.0), 0.0, "exact")

    def above(q: float) -> float:
        return q + law.excess(q, p * largest) / p

    step = 1e-7 * largest
    found = _lowest(above, 0.0, largest, step)
    curved = max(above(max(found.x - step, 0.0)), above(found.x + step)) - found.fun
    if curved > 10.0 * TOLERANCE * largest:  # a narrow law: look closer
        start, low = found.x, max(-10.0 * step, -found.x)
        found = _lowest(lambda shift: above(start + shift), low, 10.0 * step, 1e-6 * step)
    return Tail(float(min(found.fun, largest)), 0.0, "exact")


def _lowest(f: Callable[[float], float], low: float, high: float, tolerance: float) -> Any:
    from scipy.optimize import minimize_scalar

    return minimize_scalar(f, bounds=(low, high), method="bounded", options={"xatol": tolerance})


def _join(one: Odds, two: Odds) -> Odds:
    """Odds of two independent sets of arms together."""
    (n1, l1, u1, b1), (n2, l2, u2, b2) = one, two
    both = b1 * (n2 + l2 + u2 + b2) + (n1 + l1 + u1) * b2 + l1 * u2 + u1 * l2
    return n1 * n2, l1 * (n2 + l2) + n1 * l2, u1 * (n2 + u2) + n1 * u2, both


def _power(one: Odds, arms: int) -> Odds:
    """Odds of so many arms alike, by squaring."""
    result: Odds | None = None
    while arms:
        if arms & 1:
            result = one if result is None else _join(result, one)
        arms >>= 1
        if arms:
            one = _join(one, one)
    assert result is not None
    return result
