"""Two laws on finitely many points, matched by value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from priorwise.core.quadrature import exp_excess
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray
from priorwise.families.finite.prior import FinitePrior


@dataclass(frozen=True, eq=False)
class FinitePair:
    """Probabilities of the points of both supports, ``(point,)``."""

    p: FloatArray
    q: FloatArray

    @classmethod
    def of(cls, p: FinitePrior, q: FinitePrior) -> FinitePair:
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
        gap = (
            math.fsum(((self.p - self.q) ** 2 / np.where(roots > 0, roots, 1.0) ** 2).tolist())
            / 2.0
        )
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
        ratio = np.where(
            np.abs(change) < 0.5, np.log1p(np.maximum(change, -0.5)), np.log(q) - np.log(p)
        )
        return math.fsum((p * exp_excess(ratio)).tolist()) + math.fsum(self.q[~both].tolist())

    def reverse_kl(self) -> float:
        """KL(q || p)."""
        return FinitePair(self.q, self.p).kl()

    def log_ratios(self, rng: Stream) -> NoReturn:
        """Never needed: the sum is exact."""
        raise AssertionError("the distance of finite priors is a sum and is never sampled")
