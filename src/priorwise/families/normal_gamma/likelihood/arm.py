"""Marginal likelihood of one arm with a normal-gamma prior; its maximum, and how sure that is.

With n rewards of mean y and squared deviations W from it in a task, ``v = rate / shape``, ``c =
shape + n / 2`` and

    B = shape v + (W + k n / (k + n) (y - m)^2) / 2,      k = pulls, m = mean,

a task has, but for ``(2 pi)^(-n/2)``, the density

    sqrt(k / (k + n)) Gamma(c) / Gamma(shape) (shape v)^shape / B^c,

whichever way the pulls were chosen. The coordinates are m and the logarithms of k, shape and v, in
units in which all rewards together have mean 0 and variance 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from priorwise.core.errors import ArgumentError
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.gaussian.statistics import GaussianStatistics
from priorwise.families.normal_gamma.exchangeable import ExchangeableNormalGammaPrior
from priorwise.families.normal_gamma.prior import NormalGammaPrior, given
from priorwise.fitting.newton import Climb, Spot, climb

PULLS: Final = (1e-4, 1e6)
SHAPES: Final = (0.11, 1e6)
"""Ranges of pulls and shape: at the upper ends the means, or the variances, are the same in all
tasks to 3 digits.
"""
FAR: Final = 30.0
"""How far the logarithm of v may be from 0."""
LOW: Final = np.array([-1e3, *np.log([PULLS[0], SHAPES[0]]), -FAR])
HIGH: Final = np.array([1e3, *np.log([PULLS[1], SHAPES[1]]), FAR])
MANY: Final = 50.0
"""Shapes from which series have more digits than differences of gamma functions."""


def rises(a: float, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """``log Gamma``, ``psi`` and ``psi'`` at ``a + x`` minus those at a."""
    from scipy.special import digamma, gammaln, polygamma

    if a < MANY:
        return (
            gammaln(a + x) - gammaln(a),
            digamma(a + x) - digamma(a),
            polygamma(1, a + x) - polygamma(1, a),
        )
    b = a + x
    one, two, three, four = (b**-k - a**-k for k in (1.0, 2.0, 3.0, 4.0))
    ratio = np.log1p(x / a)
    log_gamma = (a - 0.5) * ratio + x * np.log(b) - x + one / 12.0 - three / 360.0
    psi = ratio - one / 2.0 - two / 12.0 + four / 120.0
    return log_gamma, psi, one + two / 2.0 + three / 6.0 - (b**-5.0 - a**-5.0) / 30.0


@final
@dataclass(frozen=True, eq=False)
class ArmData:
    """What the likelihood of one arm reads, ``(task,)`` each; only tasks that pulled it."""

    n: FloatArray
    y: FloatArray  # (mean reward - centre) / unit
    within: FloatArray  # in units, too
    counts: FloatArray  # distinct n
    place: IntArray  # of each task's n among them
    centre: float
    unit: float

    @classmethod
    def of(cls, pulls: FloatArray, sums: FloatArray, squares: FloatArray) -> ArmData:
        """Leave out tasks without a pull; what is squared is first shifted by the mean of all."""
        pulled = pulls > 0
        n, s, q = pulls[pulled], sums[pulled], squares[pulled]
        total = max(float(n.sum()), 1.0)
        centre = float(s.sum()) / total
        s, q = s - centre * n, q - 2.0 * centre * s + centre**2 * n
        within = np.where(n > 1, np.maximum(q - s * s / n, 0.0), 0.0)
        square = float((within + s * s / n).sum())
        unit = np.sqrt(square / total) if square > 0.0 else 1.0
        counts, place = np.unique(n, return_inverse=True)
        return cls(n, s / n / unit, within / unit**2, counts, place.ravel(), centre, unit)

    def to_units(self, at: FloatArray) -> FloatArray:
        """Coordinates in these units, of those in units of rewards."""
        return np.array([(at[0] - self.centre) / self.unit, *at[1:3], at[3] - self._log_square])

    def from_units(self, at: FloatArray) -> FloatArray:
        """And back."""
        return np.array([at[0] * self.unit + self.centre, *at[1:3], at[3] + self._log_square])

    @property
    def _log_square(self) -> float:
        return 2.0 * float(np.log(self.unit))

    def start(self) -> FloatArray:
        """Moments: the mean, and the variances between and within tasks."""
        if not self.n.size:
            return np.zeros(4)
        free = (self.n - 1.0).sum()
        noise = self.within.sum() / free if free > 0.0 else 0.0
        noise = noise if noise > 1e-10 else 0.5
        between = max(float((self.y**2 - noise / self.n).mean()), 0.0)
        pulls = np.clip(noise / max(between, 1e-300), 0.05, 50.0)
        return np.array([0.0, np.log(pulls), np.log(3.0), np.log(noise)])

    def why_boundary(self) -> str | None:
        """Why the likelihood has no maximum in the interior, if that is known beforehand."""
        if not self.n.size:
            return "was never pulled"
        if self.n.max() < 2.0:
            return "was never pulled twice in a task, which leaves its variance open"
        if self.within.sum() <= 1e-13 * self.n.sum():
            return "earned the same at every pull of a task, so that its variance looks like 0"
        return None


@final
@dataclass(frozen=True, eq=False)
class Objective:
    """Log likelihood of one arm plus ``regulariser / 2 * (log s (1 - s) + log t (1 - t))`` with
    ``s = 1 / (1 + pulls)`` and ``t = 1 / (1 + shape)``.
    """

    data: ArmData
    regulariser: float

    def value(self, at: FloatArray) -> float:
        """Objective at (mean, log pulls, log shape, log v)."""
        weak = -np.logaddexp(0.0, at[1:3]).sum() - np.logaddexp(0.0, -at[1:3]).sum()
        return self.log_likelihood(at) + 0.5 * self.regulariser * float(weak)

    def log_likelihood(self, at: FloatArray) -> float:
        """Without the regulariser."""
        data, (k, a, v) = self.data, np.exp(at[1:])
        rise = rises(float(a), data.counts / 2.0)[0][data.place]
        beyond = self._beyond(at[0], k)
        terms = 0.5 * np.log(k / (k + data.n)) + rise - a * np.log1p(beyond / (a * v))
        terms -= 0.5 * data.n * np.log(2.0 * np.pi * (a * v + beyond))
        return float(terms.sum())

    def _beyond(self, m: float, k: float) -> FloatArray:
        """``B - shape v``."""
        data = self.data
        return np.asarray(0.5 * (data.within + k * data.n / (k + data.n) * (data.y - m) ** 2))

    def slopes(self, at: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient ``(4,)`` and information ``(4, 4)``."""
        data, m, (k, a, v) = self.data, at[0], np.exp(at[1:])
        n, d, e = data.n, data.y - m, self._beyond(at[0], k)
        _, psi, psi1 = (each[data.place] for each in rises(float(a), data.counts / 2.0))
        c, b = a + n / 2.0, a * v + e
        q, qk, qkk = k * n / (k + n), (n / (k + n)) ** 2, -2.0 * n**2 / (k + n) ** 3
        rest, short = e / b, (e - n * v / 2.0) / b  # 1 - a v / B, 1 - c v / B
        grow = 0.5 * qk * d * d  # slope of B in k
        first = np.array(
            [
                (c * q * d / b).sum(),
                (n / (2.0 * k * (k + n)) - c * grow / b).sum(),
                (psi - np.log1p(e / (a * v)) + short).sum(),
                (a * rest - n / 2.0 * (1.0 - rest)).sum() / v,
            ]
        )
        second = np.empty((4, 4))
        second[0, 0] = (-c * (q / b - (q * d / b) ** 2)).sum()
        second[0, 1] = (c * (qk * d / b - q * d * grow / b**2)).sum()
        second[0, 2] = (q * d / b * short).sum()
        second[0, 3] = (-c * q * d * a / b**2).sum()
        second[1, 1] = (
            -0.5 * (k**-2.0 - (k + n) ** -2.0) - c * (0.5 * qkk * d * d / b - (grow / b) ** 2)
        ).sum()
        second[1, 2] = (-grow / b * short).sum()
        second[1, 3] = (c * grow * a / b**2).sum()
        second[2, 2] = (psi1 + rest**2 / a + n / 2.0 * (v / b) ** 2).sum()
        second[2, 3] = ((rest - c * (1.0 - a * v / b) / b * v) / v).sum()
        second[3, 3] = (-a / v**2 + c * (a / b) ** 2).sum()
        second = np.triu(second) + np.triu(second, 1).T
        scale = np.array([1.0, k, a, v])  # to logarithms
        second = second * scale * scale[:, None] + np.diag([0.0, *(first * scale)[1:]])
        share = 1.0 / (1.0 + np.array([k, a]))
        first = first * scale
        first[1:3] += 0.5 * self.regulariser * (2.0 * share - 1.0)
        second[[1, 2], [1, 2]] -= self.regulariser * share * (1.0 - share)
        return first, -second

    def climb(self, start: FloatArray) -> Climb[Spot]:
        """Climb within the ranges."""
        return climb(
            lambda at: Spot(at, self.value(at), self.slopes),
            start,
            limit=200,
            longest=3.0,
            low=LOW,
            high=HIGH,
        )


def ends(at: FloatArray) -> FloatArray:
    """Which coordinates are at the end of their range: -1 the lower, 1 the upper, 0 neither."""
    return np.where(at <= LOW, -1.0, 0.0) + np.where(at >= HIGH, 1.0, 0.0)


@final
@dataclass(frozen=True, eq=False)
class ArmFit:
    """What is known of one arm after its fit."""

    at: FloatArray  # (mean, log pulls, log shape, log v)
    covariance: FloatArray  # of that, NaN where it is held at an end of its range
    centre: FloatArray  # of plausible priors, and how far these are spread
    plausible: FloatArray
    reason: str | None
    log_likelihood: float
    converged: bool
    iterations: int


def fit_arm(data: ArmData, regulariser: float, start: FloatArray | None) -> ArmFit:
    """Maximise the likelihood of one arm, or find the limit it points to; ``start`` in units of
    rewards.
    """
    reason = data.why_boundary()
    begin = data.start() if start is None else data.to_units(start)
    open_ = reason is not None  # plain maximum likelihood would leave the variance anywhere
    own = Objective(data, regulariser if regulariser > 0.0 or not open_ else 1.0)
    found = own.climb(begin)
    plain = Objective(data, 0.0)
    if not open_:
        reason = _reason(
            ends((found if regulariser == 0.0 else plain.climb(found.place.x)).place.x)
        )
    weak = found if own.regulariser > 0.0 or reason is None else Objective(data, 1.0).climb(begin)
    at, units = found.place.x, np.array([data.unit, 1.0, 1.0, 1.0])
    covariance, free = np.full((4, 4), np.nan), ends(at) == 0.0
    if data.n.size and not (open_ and regulariser == 0.0):
        inner = np.ix_(free, free)
        information = found.place.information()[inner]
        if np.linalg.eigvalsh(information)[0] > 1e-12:
            covariance[inner] = np.linalg.inv(information)
    values, axes = np.linalg.eigh(weak.place.information())
    # standard deviations of at most pi, those of Jeffreys' rule without any data
    plausible = axes / np.maximum(values, np.pi**-2) @ axes.T
    scale = np.outer(units, units)
    return ArmFit(
        data.from_units(at),
        covariance * scale,
        data.from_units(weak.place.x),
        plausible * scale,
        reason,
        plain.log_likelihood(at) - float(data.n.sum()) * float(np.log(data.unit)),
        found.converged or not data.n.size,
        found.iterations,
    )


def _reason(held: FloatArray) -> str | None:
    if held[1] > 0.0:
        return (
            "varies no more between tasks than chance alone would make it, so that pulls is "
            "infinite"
        )
    if held[2] > 0.0:
        return "is as noisy in one task as in another, so that shape is infinite"
    if held.any():
        return "has its largest likelihood at an end of the range of its parameters"
    return None


def parameters(at: FloatArray) -> FloatArray:
    """Mean, pulls, shape and rate."""
    k, a, v = np.exp(at[1:])
    return np.array([at[0], k, a, a * v])


def std_errors(fit: ArmFit) -> FloatArray:
    """Standard errors of mean, pulls, shape and rate, by the delta method; NaN at a limit."""
    _, k, a, b = parameters(fit.at)
    jacobian = np.array([[1.0, 0, 0, 0], [0, k, 0, 0], [0, 0, a, 0], [0, 0, b, b]])
    covariance = fit.covariance
    out = np.empty(4)
    for row, slopes in enumerate(jacobian):
        (used,) = slopes.nonzero()
        own = slopes[used] @ covariance[np.ix_(used, used)] @ slopes[used]
        out[row] = np.sqrt(own) if own >= 0.0 else np.nan
    return out


def log_marginal_likelihood(
    prior: NormalGammaPrior | ExchangeableNormalGammaPrior, statistics: GaussianStatistics
) -> FloatArray:
    """Log density of each task's rewards, given which arms were pulled, ``(task,)``."""
    arms: Any = prior
    if isinstance(prior, ExchangeableNormalGammaPrior):
        arms = prior.for_arms(statistics.arms)
    if arms.arms != statistics.arms:
        raise ArgumentError(
            "statistics", f"must have the {arms.arms} arms of the prior", got=statistics.arms
        )
    _, pulls, _, rate = given(arms, statistics)
    n, total = statistics.pulls, np.zeros(statistics.tasks)
    for arm, a in enumerate(arms.shape.tolist()):
        half, b, beyond = n[:, arm] / 2.0, arms.rate[arm], rate[:, arm] - arms.rate[arm]
        total += rises(a, half)[0] + 0.5 * np.log(arms.pulls[arm] / pulls[:, arm])
        total -= a * np.log1p(beyond / b) + half * np.log(2.0 * np.pi * rate[:, arm])
    return total
