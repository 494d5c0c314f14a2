"""One arm whose log odds are normal before its counts: ``N(centre, var)`` times ``exp(s eta - n
log(1 + e^eta))``, its moments by quadrature.

The log density is concave. From a point near its mode it is followed to both sides until it has
fallen by ``DROP``, and Gauss-Legendre nodes fill the two stretches: they crowd around the mode, so
that a side may be many times as long as the other. Moments are right to about 1e-10.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from priorwise.core.types import FloatArray

DROP: Final = 30.0
"""Fall of the log density beyond which nothing is left."""
MASS_DROP: Final = 14.0
"""The same for a log mass, in which the tails of ``e^-14`` do not count."""
NEWTON: Final = 100  # steps towards the mode at most; from a good guess it takes two
CLOSE: Final = 0.01
"""Squared distance from the mode, in variances, that is close enough."""
STRETCHES: Final = 40  # steps towards the ends at most
AIM: Final = 1.1
"""Fall that a stretch aims at, in units of the fall that ends it; up to 1.3 is close enough."""


def _nodes(size: int) -> FloatArray:
    x, w = np.polynomial.legendre.leggauss(size)
    return np.stack([(x + 1.0) / 2.0, w / 2.0])


FINE: Final = _nodes(20)
"""Nodes of a side, from 0 to 1, and their weights."""
MIDDLE: Final = _nodes(12)
"""Where 1e-5 is enough: for the factors, which are an approximation anyway."""
COARSE: Final = _nodes(10)
"""Where 1e-4 is enough."""
MASS: Final = _nodes(6)
"""For a log mass, between the ends of :data:`MASS_DROP`."""


@final
@dataclass(frozen=True, eq=False)
class Span:
    """Where the density lives: a point near its mode and how far it reaches to both sides, with
    the slope of the log density at that point. Arrays of one shape.
    """

    s: FloatArray
    n: FloatArray
    centre: FloatArray
    precision: FloatArray
    at: FloatArray
    slope: FloatArray
    left: FloatArray
    right: FloatArray

    @classmethod
    def of(
        cls,
        s: FloatArray,
        n: FloatArray,
        centre: FloatArray,
        var: FloatArray,
        near: FloatArray,
        drop: float = DROP,
    ) -> Span:
        """Follow the log density from its mode, which is near ``near``, until it falls by
        ``drop``.
        """
        precision = 1.0 / np.maximum(var, 1e-300)
        at = _mode(s, n, centre, var, precision, near)
        p = rates(at)
        slope, curve = s - n * p - (at - centre) * precision, n * p * (1.0 - p) + precision
        left, right = (
            _reach(side, n, precision, at, slope, curve, softplus(at), drop) for side in (-1.0, 1.0)
        )
        return cls(s, n, centre, precision, at, slope, left, right)

    def steps(self, unit: FloatArray) -> FloatArray:
        """Steps to the left, the nearest first, then to the right, ``(..., 2 unit)``."""
        left, right = self.left[..., None], self.right[..., None]
        return np.concatenate([-left * unit, right * unit], axis=-1)

    def law(self, nodes: FloatArray) -> Tilted:
        """Integrate the density with these nodes on each side."""
        at, steps = self.at[..., None], self.steps(nodes[0])
        width = np.abs(self.steps(nodes[1]))
        eta = at + steps
        n, precision, slope = self.n[..., None], self.precision[..., None], self.slope[..., None]
        density = np.exp(_rise(steps, n, precision, at, slope, eta)) * width
        mass = density.sum(axis=-1)
        gap = self.at - self.centre
        top = self.s * self.at - self.n * softplus(self.at) - 0.5 * gap**2 * self.precision
        log_mass = top + np.log(mass) + 0.5 * np.log(self.precision / (2.0 * np.pi))
        return Tilted(eta, density / mass[..., None], log_mass)


@final
@dataclass(frozen=True, eq=False)
class Tilted:
    """Nodes of the tilted law and their normalised weights, ``(..., node)``; its log mass."""

    eta: FloatArray
    weight: FloatArray
    log_mass: FloatArray

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the log odds."""
        return _moments(self.eta, self.weight)

    def rate_moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the rate ``1 / (1 + e^-eta)``."""
        return _moments(rates(self.eta), self.weight)


def _moments(x: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    mean = (x * weight).sum(axis=-1)
    return mean, ((x - mean[..., None]) ** 2 * weight).sum(axis=-1)


def rates(eta: FloatArray) -> FloatArray:
    """``1 / (1 + e^-eta)``."""
    small = np.exp(-np.abs(eta))
    return np.asarray(np.where(eta >= 0.0, 1.0, small) / (1.0 + small))


def tilted(
    s: FloatArray,
    n: FloatArray,
    centre: FloatArray,
    var: FloatArray,
    near: FloatArray,
    nodes: FloatArray = FINE,
) -> Tilted:
    """Place the nodes for successes s, pulls n and the normal law before them, arrays of one shape;
    ``near`` is a guess of the mode.
    """
    return Span.of(s, n, centre, var, near).law(nodes)


def softplus(eta: FloatArray) -> FloatArray:
    """``log(1 + e^eta)``."""
    return np.asarray(np.maximum(eta, 0.0) + np.log1p(np.exp(-np.abs(eta))))


def _mode(
    s: FloatArray,
    n: FloatArray,
    centre: FloatArray,
    var: FloatArray,
    precision: FloatArray,
    near: FloatArray,
) -> FloatArray:
    """Newton's method until it is within a share of a standard deviation, in the bracket of the
    centre and of its first step without the curvature of the likelihood, which is halved where
    steps leave it or do not shrink.
    """
    other = centre + var * (s - n * rates(centre))
    low, high = np.minimum(centre, other), np.maximum(centre, other)
    at = np.minimum(np.maximum(near, low), high)
    last = high - low
    for _ in range(NEWTON):
        p = rates(at)
        slope, curve = s - n * p - (at - centre) * precision, n * p * (1.0 - p) + precision
        far = slope * slope > CLOSE * curve
        if not far.any():
            break
        low, high = np.where(slope >= 0.0, at, low), np.where(slope < 0.0, at, high)
        step = slope / curve
        good = (np.abs(step) <= 0.5 * last) & (at + step >= low) & (at + step <= high)
        step = np.where(good, step, 0.5 * (low + high) - at)
        last = np.abs(step)
        at = np.where(far, at + step, at)
    return at


def _rise(
    step: FloatArray,
    n: FloatArray,
    precision: FloatArray,
    at: FloatArray,
    slope: FloatArray,
    eta: FloatArray,
) -> FloatArray:
    """Log density at ``at + step`` minus that at ``at``: linear part, curvature of the normal law,
    and of the likelihood.
    """
    bend = softplus(eta) - softplus(at) - step * rates(at)
    return np.asarray(slope * step - 0.5 * precision * step * step - n * np.maximum(bend, 0.0))


def _reach(
    side: float,
    n: FloatArray,
    precision: FloatArray,
    at: FloatArray,
    slope: FloatArray,
    curve: FloatArray,
    level: FloatArray,
    drop: float,
) -> FloatArray:
    """How far it is to where the log density has fallen by ``drop`` or somewhat more: Newton's
    method for the square root of the fall, in a bracket.
    """
    p0 = rates(at)
    aim = AIM * drop
    far = np.sqrt(2.0 * aim / curve)
    low, high = np.zeros_like(far), np.full_like(far, np.inf)
    for _ in range(STRETCHES):
        eta = at + side * far
        bend = np.maximum(softplus(eta) - level - side * far * p0, 0.0)
        fall = 0.5 * precision * far * far + n * bend - side * slope * far
        off = (fall < drop) | (fall > 1.3 * drop)
        if not off.any():
            break
        fall = np.maximum(fall, 1e-3)
        low, high = np.where(fall < aim, far, low), np.where(fall < aim, high, far)
        steep = precision * far + side * (n * (rates(eta) - p0) - slope)
        there = far - 2.0 * (fall - np.sqrt(aim * fall)) / np.maximum(steep, 1e-300)
        middle = np.where(high < np.inf, np.sqrt(np.maximum(low, 0.01 * high) * high), 4.0 * far)
        there = np.where((there > low) & (there < high), there, middle)
        far = np.where(off, there, far)
    return np.asarray(far)
