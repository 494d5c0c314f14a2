"""Two laws on finitely many points, matched by value: priors, and posteriors of the same histories;
and the diameter of finitely many possible tasks.
"""

import math
from dataclasses import dataclass
from typing import NoReturn, final

import numpy as np

from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.finite.prior import FinitePrior
from priorwise.theory.conditions import Bounded, TailCondition
from priorwise.theory.diameters import DiameterLaw, FiniteLaw
from priorwise.theory.distance import BothBeliefs
from priorwise.theory.numerics import exp_excess


@dataclass(frozen=True, eq=False)
class FinitePair:
    """Probabilities of the points of both supports, ``(point,)``."""

    p: FloatArray
    q: FloatArray

    @classmethod
    def of(cls, p: FinitePrior, q: FinitePrior) -> "FinitePair":
        """Match points that are equal bit for bit, adding up those that appear several times."""
        mass: dict[tuple[float, ...], list[list[float]]] = {}
        for side, prior in enumerate((p, q)):
            probs = prior.probs / math.fsum(prior.probs.tolist())
            for point, prob in zip((prior.candidates + 0.0).tolist(), probs.tolist(), strict=True):
                mass.setdefault(tuple(point), [[], []])[side].append(prob)
        laws = (np.array([math.fsum(sides[side]) for sides in mass.values()]) for side in (0, 1))
        return cls(*laws)

    def total_variation(self) -> float:
        """``sum |p - q| / 2``."""
        return min(math.fsum(np.abs(self.p - self.q).tolist()) / 2.0, 1.0)

    def parts(self) -> FloatArray:
        """There is one part."""
        return np.array([self.total_variation()])

    def log_affinity(self) -> float:
        """``log sum sqrt(p q)``, from ``sum (sqrt(p) - sqrt(q))^2 / 2`` so that it keeps its digits
        near 0.
        """
        roots = np.sqrt(self.p) + np.sqrt(self.q)
        squares = (self.p - self.q) ** 2 / np.where(roots > 0, roots, 1.0) ** 2
        gap = math.fsum(squares.tolist()) / 2.0
        if gap < 0.5:
            return math.log1p(-gap)
        affinity = math.fsum(np.sqrt(self.p * self.q).tolist())
        return math.log(affinity) if affinity > 0.0 else -math.inf

    def kl(self) -> float:
        """``sum p log(p / q)``, infinite where q lacks a point of p; terms ``p log(p/q) - p + q``
        are never negative.
        """
        both = (self.p > 0) & (self.q > 0)
        if np.any((self.p > 0) & ~both):
            return math.inf
        p, q = self.p[both], self.q[both]
        change = (q - p) / p
        near = np.log1p(np.maximum(change, -0.5))
        ratio = np.where(np.abs(change) < 0.5, near, np.log(q) - np.log(p))
        return math.fsum((p * exp_excess(ratio)).tolist()) + math.fsum(self.q[~both].tolist())

    def reverse_kl(self) -> float:
        """KL(q || p)."""
        return FinitePair(self.q, self.p).kl()

    def log_ratios(self, rng: Stream) -> NoReturn:
        """Never needed: the sum is exact."""
        raise AssertionError("the distance of finite priors is a sum and is never sampled")


@final
@dataclass(frozen=True, eq=False)
class FinitePosteriors(BothBeliefs):
    """Probabilities of the points of both supports."""

    places: tuple[IntArray, IntArray]  # where the points of each support stand in their union
    points: int
    exact: bool = True

    @classmethod
    def start(cls, p: FinitePrior, q: FinitePrior, tasks: int) -> "FinitePosteriors":
        """Match points that are equal bit for bit."""
        index: dict[tuple[float, ...], int] = {}
        rows = ((prior.candidates + 0.0).tolist() for prior in (p, q))
        mine, theirs = (
            np.array([index.setdefault(tuple(point), len(index)) for point in points])
            for points in rows
        )
        return cls(p.belief(tasks), q.belief(tasks), (mine, theirs), len(index))

    def _laws(self) -> tuple[FloatArray, FloatArray]:
        """Both posteriors on the union of the supports, ``(task, point)``."""
        laws = self.p.probabilities(), self.q.probabilities()
        first, second = (
            np.stack([np.bincount(place, row, self.points) for row in law], dtype=np.float64)
            for place, law in zip(self.places, laws, strict=True)
        )
        return first, second

    def total_variation(self, rng: Stream) -> FloatArray:
        """``sum |p - q| / 2``."""
        first, second = self._laws()
        return np.asarray(np.abs(first - second).sum(axis=1) / 2.0)

    def shared(self, rng: Stream, draws: int) -> FloatArray:
        """``min(1, q / p)`` at the drawn points."""
        first, second = self._laws()
        drawn = self.places[0][rng.choice(self.p.weights(), draws)]
        rows = np.arange(len(drawn))[:, None]
        return np.minimum(1.0, second[rows, drawn] / first[rows, drawn])


def tail_conditions(prior: FinitePrior) -> tuple[TailCondition, ...]:
    """The largest diameter of a possible task."""
    return (Bounded(float(np.ptp(prior.means[prior.probs > 0.0], axis=1).max())),)


def diameter(prior: FinitePrior) -> DiameterLaw:
    """Law of the diameter."""
    return FiniteLaw.of(np.ptp(prior.means, axis=1), prior.probs)
