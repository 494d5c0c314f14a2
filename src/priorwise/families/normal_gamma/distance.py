"""Distances between two products of normal-gamma laws over (mean, precision), arm by arm.

Given the precision ``lambda`` the means are normal, so that ``q > p`` holds between or beyond the
two roots of a quadratic, and the total variation of an arm is one integral over ``log lambda``.
That of several arms is sampled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Final

import numpy as np

from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray
from priorwise.families.normal_gamma.prior import NormalGammaPrior
from priorwise.theory.numerics import NODES, WEIGHTS, exp_excess, integrate

LOWEST: Final = -60.0
"""Log density of log lambda, relative to its peak, at which the tails are cut."""


@dataclass(frozen=True)
class NormalGammaLaw:
    """One arm: ``lambda ~ Gamma(a, b)``, ``mu given lambda ~ N(m, 1 / (k lambda))``."""

    m: float
    k: float
    a: float
    b: float

    @property
    def centre(self) -> float:
        """Mode of the log precision."""
        return float(np.log(self.a) - np.log(self.b))

    def edges(self) -> list[float]:
        """Where to begin with panels over the log precision: at its own width, to its tails."""
        width = 1.0 / np.sqrt(self.a)
        # where a (e^u - 1 - u) has reached -LOWEST
        low, high = (
            LOWEST / self.a - 11.0 * width,
            min(11.0 * width, np.log1p(-LOWEST / self.a) + 2.0),
        )
        inner = [width * step for step in (-8.0, -5.0, -2.5, -1.0, 0.0, 1.0, 2.5, 5.0, 8.0)]
        return [self.centre + each for each in (low, *inner, high) if low <= each <= high]

    def log_density(self, u: FloatArray) -> FloatArray:
        """Log density of the log precision, from its peak, which keeps its digits."""
        return np.asarray(log_peak(self.a) - self.a * exp_excess(u - self.centre))

    def draw(self, rng: Stream) -> tuple[FloatArray, FloatArray]:
        """Means and precisions, ``(task,)`` each."""
        precision = rng.gamma(np.full((rng.tasks, 1), self.a))[:, 0, 0] / self.b
        return self.m + rng.normal(1)[:, 0] / np.sqrt(self.k * precision), precision


@dataclass(frozen=True)
class NormalGammaArm:
    """One arm under two laws that differ."""

    p: NormalGammaLaw
    q: NormalGammaLaw

    @cached_property
    def _level(self) -> float:
        """``log b2^a2 / Gamma(a2) - log b1^a1 / Gamma(a1)``, with differences of close numbers
        taken first.
        """
        p, q = self.p, self.q
        rise = log_gamma_rise(p.a, q.a)  # log Gamma(q.a) - log Gamma(p.a)
        return float(q.a * np.log(q.b / p.b) + (q.a - p.a) * np.log(p.b) - rise)

    def gamma_ratio(self, log_precision: FloatArray) -> FloatArray:
        """Log q/p of the precision."""
        return np.asarray(
            self._level
            + (self.q.a - self.p.a) * log_precision
            - (self.q.b - self.p.b) * np.exp(log_precision)
        )

    def log_ratio(self, mean: FloatArray, precision: FloatArray) -> FloatArray:
        """Log q/p of mean and precision."""
        p, q = self.p, self.q
        apart = q.k * (mean - q.m) ** 2 - p.k * (mean - p.m) ** 2
        normal = 0.5 * np.log(q.k / p.k) - 0.5 * precision * apart
        return self.gamma_ratio(np.log(precision)) + normal

    def total_variation(self) -> float:
        """``integral (q - p)^+``, given each precision in closed form."""

        def term(u: FloatArray) -> FloatArray:
            log_p, ratio = self.p.log_density(u), self.gamma_ratio(u)
            log_q = np.where(np.abs(ratio) < 1.0, log_p + ratio, self.q.log_density(u))
            more_p, more_q = self._more(np.exp(u), ratio)
            return np.maximum(np.exp(log_q) * more_q - np.exp(log_p) * more_p, 0.0)

        return min(integrate(term, self.edges), 1.0)

    def _more(self, precision: FloatArray, ratio: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Probability, under p and under q given each precision, of the means at which q is above
        p: ``q.k (t - shift)^2 - p.k t^2 < level`` with ``t = mean - p.m``.
        """
        from scipy.special import ndtr

        p, q = self.p, self.q
        shift, wider = q.m - p.m, q.k - p.k
        level = 2.0 * (ratio + 0.5 * np.log(q.k / p.k)) / precision
        of_p, of_q = np.sqrt(p.k * precision), np.sqrt(q.k * precision)
        if wider == 0.0 and shift == 0.0:
            everywhere = np.where(level > 0.0, 1.0, 0.0)
            return everywhere, everywhere
        if wider == 0.0:
            at, side = (shift - level / (q.k * shift)) / 2.0, -np.sign(shift)
            return ndtr(side * at * of_p), ndtr(side * (at - shift) * of_q)
        root = np.sqrt(np.maximum(p.k * q.k * shift * shift + wider * level, 0.0))
        w = q.k * shift + np.copysign(root, shift)
        none = root == 0.0
        ends = np.sort([w / wider, (q.k * shift * shift - level) / np.where(none, 1.0, w)], axis=0)
        low_p, high_p, low_q, high_q = (
            (each - at) * scale for at, scale in ((0.0, of_p), (shift, of_q)) for each in ends
        )
        if wider > 0.0:  # q is narrower: above p between the roots, if there are any
            inside = ndtr(high_p) - ndtr(low_p), ndtr(high_q) - ndtr(low_q)
            return np.where(none, 0.0, inside[0]), np.where(none, 0.0, inside[1])
        outside = ndtr(low_p) + ndtr(-high_p), ndtr(low_q) + ndtr(-high_q)
        return np.where(none, 1.0, outside[0]), np.where(none, 1.0, outside[1])

    @cached_property
    def edges(self) -> FloatArray:
        """Panels over the log precision, with edges where the quadratic gets roots or loses them,
        and where the laws of the precision cross.
        """
        ends = [*self.p.edges(), *self.q.edges()]
        low, high = min(ends), max(ends)
        p, q = self.p, self.q
        wider, apart = q.k - p.k, p.k * q.k * (q.m - p.m) ** 2

        def discriminant(u: FloatArray) -> FloatArray:
            level = self.gamma_ratio(u) + 0.5 * np.log(q.k / p.k)
            return np.asarray(apart * np.exp(u) + 2.0 * wider * level)

        grid = np.linspace(low, high, 400)
        return np.unique([*ends, *_roots(self.gamma_ratio, grid), *_roots(discriminant, grid)])

    def log_affinity(self) -> float:
        """``log integral sqrt(p q)``."""
        p, q = self.p, self.q
        a, b, step = (p.a + q.a) / 2.0, (p.b + q.b) / 2.0, (q.a - p.a) / 2.0
        apart = 0.25 * p.k * q.k / (p.k + q.k) * (q.m - p.m) ** 2
        ratio = float(np.log(q.b / p.b))
        gammas = _second_difference(a, step)
        return float(
            -0.5 * _log_cosh(0.5 * float(np.log(q.k / p.k)))
            - a * _log_cosh(0.5 * ratio)
            + 0.5 * step * ratio
            - 0.5 * gammas
            - a * np.log1p(apart / b)
        )

    def kl(self) -> float:
        """``KL(p || q)``: that of the precisions, and of the means given them."""
        p, q = self.p, self.q
        ratio, step = float(np.log(q.b / p.b)), q.a - p.a
        narrower = float(exp_excess(np.array(np.log(q.k / p.k))))
        normal = 0.5 * narrower + 0.5 * q.k * p.a / p.b * (q.m - p.m) ** 2
        return float(
            normal + p.a * exp_excess(np.array(ratio)) - step * ratio + _bregman(p.a, step)
        )


def log_gamma_rise(a: float, to: float) -> float:
    """``log Gamma(to) - log Gamma(a)``, with all its digits where the two are close."""
    from scipy.special import digamma, gammaln

    if not 0.5 < to / a < 2.0:
        return float(gammaln(to) - gammaln(a))
    x = a + (to - a) * (NODES + 1.0) / 2.0
    return float((to - a) / 2.0 * (WEIGHTS @ digamma(x)))


def log_peak(a: float) -> float:
    """Log density of log gamma(a) at its mode ``log a``."""
    from scipy.special import gammaln

    if a < 1e3:
        return float(a * np.log(a) - a - gammaln(a))
    return float(0.5 * np.log(a / (2.0 * np.pi)) - 1.0 / (12.0 * a) + 1.0 / (360.0 * a**3))


def _bregman(a: float, step: float) -> float:
    """``log Gamma(a + step) - log Gamma(a) - step psi(a)``, never negative."""
    from scipy.special import digamma, polygamma

    if abs(step) < 0.5 * a:
        s = (NODES + 1.0) / 2.0
        curve = polygamma(1, a + step * s)
        return float(step * step / 2.0 * (WEIGHTS @ ((1.0 - s) * curve)))
    return max(log_gamma_rise(a, a + step) - step * float(digamma(a)), 0.0)


def _second_difference(a: float, step: float) -> float:
    """``log Gamma(a + step) + log Gamma(a - step) - 2 log Gamma(a)``, never negative."""
    return _bregman(a, step) + _bregman(a, -step)


def _log_cosh(x: float) -> float:
    return float(np.log1p(2.0 * np.sinh(x / 2.0) ** 2)) if abs(x) < 20.0 else abs(x) - np.log(2.0)


def _roots(f: Callable[[FloatArray], FloatArray], grid: FloatArray) -> list[float]:
    """Where a function changes sign between the points of a grid, by bisection."""
    above = f(grid) > 0.0
    at = np.flatnonzero(above[1:] != above[:-1])
    low, high, side = grid[at], grid[at + 1], above[at]
    for _ in range(60):
        middle = (low + high) / 2.0
        same = (f(middle) > 0.0) == side
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return [float(each) for each in (low + high) / 2.0]


@dataclass(frozen=True)
class NormalGammaPair:
    """The arms whose laws differ."""

    slow: ClassVar[bool] = True
    """Exact values take a quadrature."""

    arms: tuple[NormalGammaArm, ...]

    @classmethod
    def of(cls, p: NormalGammaPrior, q: NormalGammaPrior) -> NormalGammaPair:
        """Leave out arms of equal laws."""
        laws = [
            [
                NormalGammaLaw(*row)
                for row in np.stack([each.mean, each.pulls, each.shape, each.rate], axis=1).tolist()
            ]
            for each in (p, q)
        ]
        pairs = zip(*laws, strict=True)
        return cls(tuple(NormalGammaArm(one, two) for one, two in pairs if one != two))

    def total_variation(self) -> float | None:
        """Value by quadrature where at most one arm differs, None where more do."""
        return None if len(self.arms) > 1 else float(self.parts().sum())

    def parts(self) -> FloatArray:
        """Total variation of each arm."""
        return np.array([arm.total_variation() for arm in self.arms])

    def log_affinity(self) -> float:
        """Log of the integral of sqrt(p q), a sum over arms."""
        return float(sum(arm.log_affinity() for arm in self.arms))

    def kl(self) -> float:
        """KL(p || q), a sum over arms."""
        return float(sum(arm.kl() for arm in self.arms))

    def reverse_kl(self) -> float:
        """KL(q || p)."""
        return NormalGammaPair(tuple(NormalGammaArm(arm.q, arm.p) for arm in self.arms)).kl()

    def log_ratios(self, rng: Stream) -> tuple[FloatArray, FloatArray]:
        """Log q/p at a draw from p and at a draw from q, ``(task,)`` each."""
        under_p, under_q = np.zeros(rng.tasks), np.zeros(rng.tasks)
        for arm in self.arms:
            under_p += arm.log_ratio(*arm.p.draw(rng))
            under_q += arm.log_ratio(*arm.q.draw(rng))
        return under_p, under_q
