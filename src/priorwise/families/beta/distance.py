"""Distances between two products of Beta laws: arm by arm, two arms by nested quadrature, more by
sampling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from priorwise.core.quadrature import NODES, WEIGHTS, integrate
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray
from priorwise.families.beta.distance_arm import BetaArm, BetaLaw
from priorwise.families.beta.prior import BetaPrior

BLOCK: Final = 256
"""Points of the outer integral at a time."""


@dataclass(frozen=True)
class BetaPair:
    """The arms whose laws differ."""

    slow: ClassVar[bool] = True
    """Exact values take a quadrature of a second or so."""

    arms: tuple[BetaArm, ...]

    @classmethod
    def of(cls, p: BetaPrior, q: BetaPrior) -> BetaPair:
        """Leave out arms of equal laws."""
        rows = zip(*(each.tolist() for each in (p.alpha, p.beta, q.alpha, q.beta)), strict=True)
        return cls(
            tuple(BetaArm(BetaLaw(a, b), BetaLaw(c, d)) for a, b, c, d in rows if (a, b) != (c, d))
        )

    def total_variation(self) -> float | None:
        """Value by quadrature where at most two arms differ, None where more do."""
        if len(self.arms) > 2:
            return None
        if len(self.arms) == 2:
            return _two_arms(*self.arms)
        return float(self.parts().sum())

    def parts(self) -> FloatArray:
        """Total variation of each arm."""
        return np.array([arm.total_variation() for arm in self.arms])

    def log_affinity(self) -> float:
        """Log of the integral of sqrt(p q), a sum over arms."""
        with np.errstate(divide="ignore"):
            return float(sum(np.log1p(-arm.squared_hellinger()) for arm in self.arms))

    def kl(self) -> float:
        """KL(p || q), a sum over arms."""
        return float(sum(arm.kl() for arm in self.arms))

    def reverse_kl(self) -> float:
        """KL(q || p)."""
        return BetaPair(tuple(BetaArm(arm.q, arm.p) for arm in self.arms)).kl()

    def log_ratios(self, rng: Stream) -> tuple[FloatArray, FloatArray]:
        """Log q/p at a draw from p and at a draw from q, ``(task,)`` each."""
        under_p, under_q = np.zeros(rng.tasks), np.zeros(rng.tasks)
        for arm in self.arms:
            under_p += arm.log_ratio(arm.p.draw(rng))
            under_q += arm.log_ratio(arm.q.draw(rng))
        return under_p, under_q


def _two_arms(outer: BetaArm, inner: BetaArm) -> float:
    """``integral |p1 p2 - q1 q2| / 2``: for each u1, panels over u2 that end where the densities
    cross.

    In u1 the inner integral bends only where a pair of crossings appears: where log q1/p1 is minus
    the extreme of log q2/p2.
    """

    def over_inner(u: FloatArray) -> FloatArray:
        return np.concatenate(
            [_inner(outer, inner, u[i : i + BLOCK]) for i in range(0, len(u), BLOCK)]
        )

    bends = outer.crossings(-inner.log_ratio(np.array([inner.turn])))
    return min(
        integrate(over_inner, np.unique(np.concatenate([outer.edges, *bends])), tolerance=1e-11),
        1.0,
    )


def _inner(outer: BetaArm, inner: BetaArm, u: FloatArray) -> FloatArray:
    ratio = outer.log_ratio(u)
    ends = np.stack(inner.crossings(-ratio), axis=1)
    edges = np.sort(
        np.concatenate([np.broadcast_to(inner.edges, (len(u), inner.edges.size)), ends], axis=1),
        axis=1,
    )
    half = np.diff(edges, axis=1)[:, :, None] / 2.0
    x = edges[:, :-1, None] + half * (1.0 + NODES)
    whole = ratio[:, None, None] + inner.log_ratio(x)
    log_p = outer.p.log_density(u)[:, None, None] + inner.p.log_density(x)
    term = -np.exp(log_p + np.maximum(whole, 0.0)) * np.expm1(-np.abs(whole)) / 2.0
    return np.asarray(((term @ WEIGHTS) * half[:, :, 0]).sum(axis=1))
