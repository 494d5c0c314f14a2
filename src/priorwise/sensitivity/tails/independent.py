"""Exact tail expectation of the diameter of independent arms, of which few laws are distinct.

``(diam - q)_+`` is the length of the set of x with ``min < x`` and ``max > x + q``, so that

    E(diam - q)_+ = integral P(some arm below x, some arm above x + q) dx,

one integral for any number of arms; and ``Psi(p) = min_q q + E(diam - q)_+ / p`` (Rockafellar and
Uryasev 2000). The probability is built up arm by arm from terms that are never negative, so small
ones keep their digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol, final

import numpy as np

from priorwise.core.quadrature import NODES, WEIGHTS, integrate
from priorwise.core.types import FloatArray
from priorwise.families.beta.distance_arm import BetaLaw

MOST_GROUPS: Final = 8
"""Distinct laws beyond which sampling is cheaper."""
SMALLEST: Final = 1e-250
"""Levels below this leave the range of floats on the way."""
TOLERANCE: Final = 1e-11
# of: no arm outside, some below only, some above only, both
Odds = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


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
@dataclass(frozen=True)
class NormalMarginal:
    """N(mean, std^2); a point where std is 0."""

    mean: float
    std: float

    def below(self, x: FloatArray) -> FloatArray:
        """``Phi((x - mean) / std)``."""
        from scipy.special import ndtr

        return np.asarray(
            ndtr((x - self.mean) / self.std)
            if self.std > 0.0
            else (x > self.mean).astype(np.float64)
        )

    def above(self, x: FloatArray) -> FloatArray:
        """``Phi((mean - x) / std)``."""
        from scipy.special import ndtr

        return np.asarray(
            ndtr((self.mean - x) / self.std)
            if self.std > 0.0
            else (x < self.mean).astype(np.float64)
        )

    def edges(self) -> list[float]:
        """Out to where nothing is left in floats."""
        steps = (-38.0, -19.0, -9.0, -4.0, -1.5, 0.0, 1.5, 4.0, 9.0, 19.0, 38.0)
        return [self.mean + self.std * k for k in steps] if self.std > 0.0 else [self.mean]


@final
@dataclass(frozen=True)
class BetaMarginal:
    """Beta(a, b)."""

    a: float
    b: float

    def below(self, x: FloatArray) -> FloatArray:
        """Regularised incomplete beta function."""
        from scipy.special import betainc

        return np.asarray(betainc(self.a, self.b, np.clip(x, 0.0, 1.0)))

    def above(self, x: FloatArray) -> FloatArray:
        """Its complement."""
        from scipy.special import betaincc

        return np.asarray(betaincc(self.a, self.b, np.clip(x, 0.0, 1.0)))

    def edges(self) -> list[float]:
        """Around the bulk, and towards both ends, where the law may be steep."""
        from scipy.special import expit

        # 30, 5, 1 widths on either side of the mode of the log odds
        bulk = np.array(BetaLaw(self.a, self.b).edges())[::2]
        return [0.0, 1e-9, 1e-4, *np.asarray(expit(bulk)).tolist(), 1.0 - 1e-4, 1.0 - 1e-9, 1.0]


@final
@dataclass(frozen=True)
class IndependentRange:
    """Law of the diameter of independent arms, as distinct marginals with their numbers of arms."""

    groups: tuple[tuple[Marginal, int], ...]

    def excess(self, q: float, accuracy: float = 0.0) -> float:
        """``E(diam - q)_+``, to a share TOLERANCE of itself or of ``accuracy``, whichever is
        more.
        """
        inner = np.array([edge for marginal, _ in self.groups for edge in marginal.edges()])
        low, high = float(inner.min()), float(inner.max()) - q
        if high <= low:
            return 0.0
        edges = np.unique(
            np.clip(np.concatenate([inner, inner - q, np.linspace(low, high, 9)]), low, high)
        )
        half = np.diff(edges)[:, None] / 2.0
        rough = float(
            (half * self._both(edges[:-1, None] + half * (1.0 + NODES), q)).sum(axis=0) @ WEIGHTS
        )
        tolerance = TOLERANCE * max(1.0, accuracy / max(rough, 1e-300))
        return integrate(lambda x: self._both(x, q), edges, tolerance=tolerance)

    def tail(self, p: float, largest: float) -> float:
        """``min_q q + E(diam - q)_+ / p``, for a level p above SMALLEST; ``largest`` is any bound
        on the result.
        """
        from scipy.optimize import minimize_scalar

        if p >= 1.0:
            return self.excess(0.0)

        def above(q: float) -> float:
            return q + self.excess(q, p * largest) / p

        step = 1e-7 * largest
        found = minimize_scalar(
            above, bounds=(0.0, largest), method="bounded", options={"xatol": step}
        )
        curved = max(above(max(found.x - step, 0.0)), above(found.x + step)) - found.fun
        if curved > 10.0 * TOLERANCE * largest:  # a narrow law: look closer
            near = {
                "bounds": (max(-10.0 * step, -found.x), 10.0 * step),
                "method": "bounded",
                "options": {"xatol": 1e-6 * step},
            }
            found = minimize_scalar(lambda shift: above(found.x + shift), **near)
        return float(min(found.fun, largest))

    def _both(self, x: FloatArray, q: float) -> FloatArray:
        """``P(some arm below x, some arm above x + q)``."""
        odds: Odds | None = None
        for marginal, arms in self.groups:
            low, high = marginal.below(x), marginal.above(x + q)
            one = (np.maximum(1.0 - low - high, 0.0), low, high, np.zeros_like(low))
            odds = _power(one, arms) if odds is None else _join(odds, _power(one, arms))
        return np.zeros_like(x) if odds is None else odds[3]


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
