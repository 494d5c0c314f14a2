"""Laws that answer with their tail expectation at any level: finite, sampled, two normal arms,
independent arms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, Protocol, final

import numpy as np

from priorwise.core.conditions import TailCondition, is_printed, level, variants
from priorwise.core.types import FloatArray
from priorwise.families.normal.tails import NormalDifferences
from priorwise.sensitivity.tails.independent import SMALLEST, IndependentRange

FEWEST: Final = 20
"""Draws in the tail below which neither the estimate nor its standard error can be trusted."""


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


@final
@dataclass(frozen=True, eq=False)
class FiniteLaw:
    """Values with probabilities, largest first."""

    values: FloatArray
    probs: FloatArray

    @classmethod
    def of(cls, values: FloatArray, probs: FloatArray) -> FiniteLaw:
        """Sort, and leave out what has probability 0."""
        order = np.argsort(-values, kind="stable")
        order = order[probs[order] > 0.0]
        return cls(values[order], probs[order] / math.fsum(probs[order].tolist()))

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
        terms = [
            *(self.values[:whole] * self.probs[:whole]).tolist(),
            rest * float(self.values[whole]),
        ]
        return Tail(math.fsum(terms) / p, 0.0, "exact")


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
    ) -> SampleLaw:
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
            return (
                Tail(upper, 0.0, "upper")
                if upper < math.inf
                else Tail(float(self.values[0]), math.inf, "estimate")
            )
        count = min(max(math.ceil(p * draws), 1), draws)
        q = float(self.values[count - 1])
        above = np.maximum(self.values - q, 0.0)
        error = float(above.std(ddof=1)) / (p * math.sqrt(draws)) if draws > 1 else math.inf
        return Tail(q + float(above.mean()) / p, error, "estimate")


@final
@dataclass(frozen=True, eq=False)
class PairLaw:
    """Two arms that are jointly normal: the absolute value of a normal difference."""

    pair: NormalDifferences

    def tail(self, p: float) -> Tail:
        """Folded normal law, in closed form at its quantile."""
        return Tail(self.pair.tail(p), 0.0, "exact")


@final
@dataclass(frozen=True, eq=False)
class RangeLaw:
    """Independent arms, by quadrature to 1e-10; a certified bound at levels that floats do not
    reach.
    """

    law: IndependentRange
    largest: float  # essential supremum
    conditions: tuple[TailCondition, ...]

    def tail(self, p: float) -> Tail:
        """``min_q q + E(diam - q)_+ / p``."""
        p = level(p)
        if p == 0.0:
            return Tail(self.largest, 0.0, "exact")
        upper = min(smallest(self.conditions, p)[0], self.largest)
        return (
            Tail(upper, 0.0, "upper")
            if p < SMALLEST
            else Tail(self.law.tail(p, upper), 0.0, "exact")
        )


def smallest(conditions: tuple[TailCondition, ...], p: float) -> tuple[float, str]:
    """Return the smallest certified bound at a level, and its assumption; infinite where there is
    none.
    """
    bounds = [
        (form.tail(p), form.assumption)
        for each in conditions
        for form in variants(each)
        if not is_printed(form)
    ]
    return min(bounds, default=(math.inf, "nothing known of the tails"))
