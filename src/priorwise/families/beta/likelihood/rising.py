"""Logarithms of rising factorials ``(x)_k = x (x + 1) ... (x + k - 1)``, of which Beta-binomial
likelihoods are made.

The part beyond ``k log x`` is kept apart: it and its derivatives vanish as x grows, and are
computed so that they keep their digits there. A difference of log-gammas would lose them, and with
them the answer to whether a Beta law has any spread.
"""

from dataclasses import dataclass
from typing import Final, final

import numpy as np
from scipy.special import digamma, gammaln, polygamma

from priorwise.core.types import FloatArray, IntArray

TABLE: Final = 1024
"""Up to this k, factors are added up one by one; beyond it, Stirling's series."""

LARGE: Final = 20.0
"""From this x on, Stirling's series: its first term left out is below 1e-16."""


@final
@dataclass(frozen=True, eq=False)
class RisingSums:
    """Sum over tasks of ``log (x)_k - k log x = sum_{j < k} log(1 + j / x)`` as a function of ``log
    x``, for given whole k.
    """

    steps: FloatArray  # j = 1, 2, ... below the largest k of the table
    above: FloatArray  # number of tasks with k > j, those with k beyond the table not among them
    far: FloatArray  # distinct k beyond the table
    far_tasks: FloatArray

    @classmethod
    def of(cls, k: IntArray, tasks: IntArray | None = None) -> "RisingSums":
        """Count how often each k occurs, ``tasks`` times each entry if given."""
        near = k <= TABLE
        far, far_tasks = np.zeros(0), np.zeros(0)
        if not near.all():
            distinct, place = np.unique(k[~near], return_inverse=True)
            far = distinct.astype(np.float64)
            weights = None if tasks is None else tasks[~near]
            far_tasks = np.bincount(place, weights).astype(np.float64)
            k, tasks = k[near], None if tasks is None else tasks[near]
        histogram = np.bincount(k, tasks, minlength=1).astype(np.float64)
        above = histogram[::-1].cumsum()[::-1] - histogram  # k > j, for j = 0, 1, ...
        return cls(np.arange(1.0, len(above)), above[1:], far, far_tasks)

    def pairs(self) -> float:
        """Sum of ``k (k - 1)``: twice the number of pairs."""
        far = self.far_tasks @ (self.far * (self.far - 1.0))
        return float(2.0 * (self.above @ self.steps) + far)

    def value(self, x: float) -> float:
        """Return the sum."""
        near = float(self.above @ np.log1p(self.steps / x))
        return near + float(self.far_tasks @ _excess(x, self.far)) if self.far.size else near

    def slopes(self, x: float) -> tuple[float, float]:
        """First and second derivative of the sum in ``log x``."""
        share = self.steps / (x + self.steps)
        weighted = self.above * share
        first, second = -float(weighted.sum()), float(weighted @ (1.0 - share))
        if self.far.size:
            far_first, far_second = _excess_slopes(x, self.far)
            first += float(self.far_tasks @ far_first)
            second += float(self.far_tasks @ far_second)
        return first, second


def log_rising(x: float, k: IntArray) -> FloatArray:
    """``log (x)_k`` of whole k in an array of any shape."""
    largest = int(k.max(initial=0))
    if largest <= 16 * TABLE:
        return np.concatenate([[0.0], np.log(x + np.arange(largest)).cumsum()])[k]
    return _excess(x, k.astype(np.float64)) + k * np.log(x)


def _excess(x: float, k: FloatArray) -> FloatArray:
    """``log (x)_k - k log x``."""
    if x < LARGE:
        return np.asarray(gammaln(x + k) - gammaln(x) - k * np.log(x))
    return np.asarray((x + k - 0.5) * np.log1p(k / x) - k + _tail(x + k) - _tail(x))


def _excess_slopes(x: float, k: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Derivatives of ``log (x)_k - k log x`` in ``log x``: ``x (psi(x + k) - psi(x)) - k``, and so
    on.
    """
    if x < LARGE:
        first, second = digamma(x + k) - digamma(x), polygamma(1, x + k) - polygamma(1, x)
        return x * first - k, x * first + x * x * second
    y = x + k
    first = x * (np.log1p(k / x) - 0.5 / y + 0.5 / x + _tail_slope(y) - _tail_slope(x)) - k
    # psi' = 1/x + 1/(2 x^2) + 1/(6 x^3) - ...; x psi'(x) = 1 + 1/(2 x) + ..., and the ones cancel
    # against x^2 / y - x = -x k / y
    curve = -x * k / y + 0.5 * (x / y) ** 2 - 0.5 + x * x * (_tail_curve(y) - _tail_curve(x))
    return first, first + k + curve


def _tail(x: FloatArray | float) -> FloatArray | float:
    """Stirling's series of ``log Gamma`` beyond ``(x - 1/2) log x - x + log(2 pi) / 2``."""
    s = 1.0 / (x * x)
    return (1.0 / 12 - s * (1.0 / 360 - s * (1.0 / 1260 - s * (1.0 / 1680 - s / 1188)))) / x


def _tail_slope(x: FloatArray | float) -> FloatArray | float:
    """Its derivative."""
    s = 1.0 / (x * x)
    return -s * (1.0 / 12 - s * (1.0 / 120 - s * (1.0 / 252 - s * (1.0 / 240 - s / 132))))


def _tail_curve(x: FloatArray | float) -> FloatArray | float:
    """Its second derivative."""
    s = 1.0 / (x * x)
    return s / x * (1.0 / 6 - s * (1.0 / 30 - s * (1.0 / 42 - s * (1.0 / 30 - s * 5.0 / 66))))
