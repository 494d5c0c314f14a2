"""Student's t with ``nu`` degrees of freedom: the law of an arm's mean, and of its next reward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self, final

import numpy as np

from priorwise.core.types import FloatArray

TAIL: Final = 1e-12
"""Share of a distribution that quadratures leave out at either end."""
LARGE: Final = 100.0
"""Shapes from which a series has more digits than two logarithms of gamma functions."""


def half_ratio(a: FloatArray) -> FloatArray:
    """``Gamma(a + 1/2) / Gamma(a)``, to 1e-13 of itself."""
    from scipy.special import gammaln

    small, x = np.minimum(a, LARGE), 1.0 / np.maximum(a, LARGE)
    series = 1.0 - x * (1 / 8 - x * (1 / 128 + x * (5 / 1024 - x * 21 / 32768)))
    near = np.exp(gammaln(small + 0.5) - gammaln(small))
    return np.asarray(np.where(a < LARGE, near, np.sqrt(a) * series))


def log_density(freedom: FloatArray, t: FloatArray) -> FloatArray:
    """Log density at t."""
    a = freedom / 2.0
    top = np.log(half_ratio(a)) - 0.5 * np.log(freedom * np.pi)
    return np.asarray(top - (a + 0.5) * np.log1p(t * t / freedom))


def below(freedom: FloatArray, t: FloatArray) -> FloatArray:
    """``P(T < t)``."""
    from scipy.special import stdtr

    return np.asarray(stdtr(freedom, t))


def quantile(freedom: FloatArray, level: float | FloatArray) -> FloatArray:
    """Inverse of :func:`below`."""
    from scipy.special import stdtrit

    return np.asarray(stdtrit(freedom, level))


def expected_excess(freedom: FloatArray, c: FloatArray) -> FloatArray:
    """``E (T - c)^+`` for c from 0 on: ``f(c) (nu + c^2) / (nu - 1) - c P(T > c)``; nu above
    1.
    """
    return np.asarray(np.maximum(beyond(freedom, c) - c * below(freedom, -c), 0.0))


def beyond(freedom: FloatArray, t: FloatArray) -> FloatArray:
    """``E[T; T > t] = f(t) (nu + t^2) / (nu - 1)``; infinite for nu up to 1."""
    mean = freedom > 1.0
    left = np.where(mean, freedom - 1.0, 1.0)
    peak = half_ratio(freedom / 2.0) / np.sqrt(freedom * np.pi) * freedom / left
    fall = np.exp(-0.5 * left * np.log1p(t * t / freedom))
    return np.asarray(np.where(mean, peak * fall, np.inf))


@final
@dataclass(frozen=True, eq=False)
class StandardStudent:
    """Student's t of each arm, for :mod:`priorwise.theory.largest`."""

    freedom: FloatArray  # (task, arm)

    def below(self, t: FloatArray) -> FloatArray:
        """``P(T < t)``."""
        return below(self.freedom[:, :, None], t)

    def log_density(self, t: FloatArray) -> FloatArray:
        """Log density at t."""
        return log_density(self.freedom[:, :, None], t)

    def beyond(self, t: FloatArray) -> FloatArray:
        """``E[T; T > t] = f(t) (nu + t^2) / (nu - 1)``; infinite up to one degree of freedom."""
        return beyond(self.freedom[:, :, None], t)

    def reach(self) -> FloatArray:
        """Where a share TAIL is left."""
        return -quantile(self.freedom, TAIL)

    def width(self) -> FloatArray:
        """Below one degree of freedom the centre is narrower than the scale."""
        return np.asarray(np.minimum(1.0, np.sqrt(self.freedom)))

    def take(self, part: slice) -> Self:
        """Return the distributions of some tasks."""
        return type(self)(self.freedom[part])
