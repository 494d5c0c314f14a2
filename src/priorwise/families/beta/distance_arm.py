"""Two Beta laws of one arm, in its log odds ``u``.

There the densities are log-concave with exponential tails for all parameters, and log q/p is a
smooth function with at most one turning point, so the densities cross at most twice. All of one
arm's distances are integrals of terms that are never negative: closed forms through log Beta
functions lose their digits where the laws are close or the parameters large.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from scipy.special import digamma, gammaln

from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray
from priorwise.theory.numerics import NODES, WEIGHTS, exp_excess, integrate

LOWEST: Final = -60.0
"""Log density in u at which the tails are cut."""


@dataclass(frozen=True)
class BetaLaw:
    """Beta(a, b) as a law of the log odds."""

    a: float
    b: float

    @property
    def center(self) -> float:
        """Mode of the log odds."""
        return float(np.log(self.a) - np.log(self.b))

    def log_density(self, u: FloatArray) -> FloatArray:
        """``a log x + b log(1 - x) - log B(a, b)``, as its value at the mode minus ``(a + b)
        KL(mode || x)``.
        """
        a, b = self.a, self.b
        v = u - self.center
        small = np.where(np.abs(v) < 1.0, v, 0.0)
        log_x0, log_y0 = -np.log1p(b / a), -np.log1p(a / b)
        down, up = np.exp(log_y0) * np.expm1(-small), np.exp(log_x0) * np.expm1(small)
        fall = a * np.log1p(down) + b * np.log1p(up)
        far = a * np.logaddexp(log_x0, log_y0 - v) + b * np.logaddexp(log_y0, log_x0 + v)
        top = 0.5 * np.log(a / (2.0 * np.pi) * (b / (a + b)))
        top = top - _stirling(a) - _stirling(b) + _stirling(a + b)
        return np.asarray(top - np.where(np.abs(v) < 1.0, fall, far))

    def reach(self) -> tuple[float, float]:
        """Log odds beyond which the density is below exp(LOWEST), on both sides."""
        ends = []
        for side in (-1.0, 1.0):
            step = 1.0
            while float(self.log_density(np.array([self.center + side * step]))[0]) > LOWEST:
                step *= 2.0
            ends.append(self.center + side * step)
        return ends[0], ends[1]

    def edges(self) -> list[float]:
        """Where to begin with panels: around the mode, at its own width."""
        width = np.sqrt(1.0 / self.a + 1.0 / self.b)
        widths = (-30.0, -10.0, -5.0, -2.5, -1.0, 0.0, 1.0, 2.5, 5.0, 10.0, 30.0)
        return [self.center + width * k for k in widths]

    def draw(self, rng: Stream) -> FloatArray:
        """Log odds, ``(task,)``: log gamma(a) - log gamma(b) with gamma(a) = gamma(a + 1) U^(1/a),
        which never underflows.
        """
        low, high = sorted((self.a, self.b))
        shape = (rng.tasks, 1)
        x = rng.beta(np.full(shape, low + 1.0), np.full(shape, high + 1.0))[:, 0, 0]
        odds = np.log(x) - np.log1p(-np.minimum(x, 1.0 - 1e-16))
        odds, u = odds if self.a <= self.b else -odds, rng.uniform(2)
        return np.asarray(odds + np.log1p(-u[:, 0]) / self.a - np.log1p(-u[:, 1]) / self.b)


@dataclass(frozen=True)
class BetaArm:
    """One arm under two Beta laws that differ."""

    p: BetaLaw
    q: BetaLaw

    @cached_property
    def reach(self) -> tuple[float, float]:
        """Where either law has mass."""
        one, two = self.p.reach(), self.q.reach()
        return min(one[0], two[0]), max(one[1], two[1])

    @cached_property
    def _rates(self) -> tuple[float, float] | None:
        """Averages of psi(a) - psi(a + b) and psi(b) - psi(a + b) from p to q: log B(q) - log B(p)
        is their sum, weighted.
        """
        p, q = self.p, self.q
        if not (0.5 < q.a / p.a < 2.0 and 0.5 < q.b / p.b < 2.0):
            return None
        s = (NODES + 1.0) / 2.0
        a, b = p.a + s * (q.a - p.a), p.b + s * (q.b - p.b)
        by_a, by_b = digamma(a) - digamma(a + b), digamma(b) - digamma(a + b)
        return float(WEIGHTS @ by_a / 2.0), float(WEIGHTS @ by_b / 2.0)

    def log_ratio(self, u: FloatArray) -> FloatArray:
        """Log q/p."""
        if self._rates is None:
            return self.q.log_density(u) - self.p.log_density(u)
        to_a, to_b = self.q.a - self.p.a, self.q.b - self.p.b
        by_a, by_b = -np.logaddexp(0.0, -u) - self._rates[0], -np.logaddexp(0.0, u) - self._rates[1]
        return np.asarray(to_a * by_a + to_b * by_b)

    @cached_property
    def turn(self) -> float:
        """Log odds at which log q/p turns; an end of the reach if it never does."""
        to_a, to_b = self.q.a - self.p.a, self.q.b - self.p.b
        if to_a * to_b <= 0.0:
            return self.reach[1]
        return float(np.clip(np.log(to_a / to_b), *self.reach))

    def crossings(self, level: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Where log q/p crosses each level before and after its turn; the far end of a branch that
        lies on one side.
        """
        low, high = self.reach
        return self._branch(level, low, self.turn), self._branch(level, high, self.turn)

    def _branch(self, level: FloatArray, end: float, turn: float) -> FloatArray:
        """Bisect between the end of the reach and the turn; the turn itself if only the end's side
        of the level is met.
        """
        outer, inner = np.full(level.shape, end), np.full(level.shape, turn)
        side = self.log_ratio(outer) < level
        for _ in range(90):
            middle = (outer + inner) / 2.0
            beyond = (self.log_ratio(middle) < level) == side
            outer, inner = np.where(beyond, middle, outer), np.where(beyond, inner, middle)
        return np.asarray((outer + inner) / 2.0)

    @cached_property
    def edges(self) -> FloatArray:
        """Panels for quadrature, with edges at the crossings of the densities."""
        low, high = self.reach
        inner = [0.0, -5.0, 5.0, -40.0, 40.0, self.turn, *self.p.edges(), *self.q.edges()]
        inner += [float(x[0]) for x in self.crossings(np.zeros(1))]
        return np.unique(np.clip([low, high, *inner], low, high))

    def _larger(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The larger of both densities, and ``|log q/p|``."""
        ratio = self.log_ratio(u)
        return np.exp(self.p.log_density(u) + np.maximum(ratio, 0.0)), np.abs(ratio)

    def total_variation(self) -> float:
        """``integral |p - q| / 2``."""

        def term(u: FloatArray) -> FloatArray:
            larger, apart = self._larger(u)
            return np.asarray(-larger * np.expm1(-apart) / 2.0)

        return min(integrate(term, self.edges), 1.0)

    def squared_hellinger(self) -> float:
        """``integral (sqrt(p) - sqrt(q))^2 / 2``."""

        def term(u: FloatArray) -> FloatArray:
            larger, apart = self._larger(u)
            return np.asarray(larger * np.expm1(-apart / 2.0) ** 2 / 2.0)

        return min(integrate(term, self.edges), 1.0)

    def kl(self) -> float:
        """``integral p (q/p - 1 - log q/p)``."""

        def term(u: FloatArray) -> FloatArray:
            ratio, log_p = self.log_ratio(u), self.p.log_density(u)
            near = np.exp(log_p) * exp_excess(np.minimum(ratio, 1.0))
            far = np.exp(log_p + ratio) - np.exp(log_p) * (1.0 + ratio)
            return np.where(ratio < 1.0, near, far)

        return integrate(term, self.edges)


def _stirling(x: float) -> float:
    """Log Gamma(x) minus Stirling's ``(x - 1/2) log x - x + log(2 pi) / 2``."""
    if x < 10.0:
        return float(gammaln(x) - (x - 0.5) * np.log(x) + x - 0.5 * np.log(2.0 * np.pi))
    y = 1.0 / (x * x)
    later = 1 / 1260 - y * (1 / 1680 - y * (1 / 1188 - y * (691 / 360360 - y / 156)))
    return (1 / 12 - y * (1 / 360 - y * later)) / x
