"""Distances between two products of Beta laws: arm by arm, two arms by nested quadrature, more by
sampling; and two Beta posteriors of the same histories, one from each prior.
"""

from dataclasses import dataclass
from typing import ClassVar, Final, final

import numpy as np
from scipy.special import betaln

from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray
from priorwise.families.beta.distance_arm import BetaArm, BetaLaw
from priorwise.families.beta.prior import BetaBelief, BetaPrior
from priorwise.theory.distance import BothBeliefs
from priorwise.theory.numerics import NODES, WEIGHTS, integrate

BLOCK: Final = 256
"""Points of the outer integral at a time."""


@dataclass(frozen=True)
class BetaPair:
    """The arms whose laws differ."""

    slow: ClassVar[bool] = True
    """Exact values take a quadrature of a second or so."""

    arms: tuple[BetaArm, ...]

    @classmethod
    def of(cls, p: BetaPrior, q: BetaPrior) -> "BetaPair":
        """Leave out arms of equal laws."""
        rows = zip(*(each.tolist() for each in (p.alpha, p.beta, q.alpha, q.beta)), strict=True)
        differ = [(BetaLaw(*row[:2]), BetaLaw(*row[2:])) for row in rows if row[:2] != row[2:]]
        return cls(tuple(BetaArm(*laws) for laws in differ))

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
        blocks = (u[i : i + BLOCK] for i in range(0, len(u), BLOCK))
        return np.concatenate([_inner(outer, inner, block) for block in blocks])

    bends = outer.crossings(-inner.log_ratio(np.array([inner.turn])))
    edges = np.unique(np.concatenate([outer.edges, *bends]))
    return min(integrate(over_inner, edges, tolerance=1e-11), 1.0)


def _inner(outer: BetaArm, inner: BetaArm, u: FloatArray) -> FloatArray:
    ratio = outer.log_ratio(u)
    ends = np.stack(inner.crossings(-ratio), axis=1)
    fixed = np.broadcast_to(inner.edges, (len(u), inner.edges.size))
    edges = np.sort(np.concatenate([fixed, ends], axis=1), axis=1)
    half = np.diff(edges, axis=1)[:, :, None] / 2.0
    x = edges[:, :-1, None] + half * (1.0 + NODES)
    whole = ratio[:, None, None] + inner.log_ratio(x)
    log_p = outer.p.log_density(u)[:, None, None] + inner.p.log_density(x)
    term = -np.exp(log_p + np.maximum(whole, 0.0)) * np.expm1(-np.abs(whole)) / 2.0
    return np.asarray(((term @ WEIGHTS) * half[:, :, 0]).sum(axis=1))


@final
@dataclass(frozen=True, eq=False)
class BetaPosteriors(BothBeliefs):
    """Independent Beta posteriors of the arms; their parameters differ by what those of the priors
    do.
    """

    exact: bool = False

    @classmethod
    def start(cls, p: BetaPrior, q: BetaPrior, tasks: int) -> "BetaPosteriors":
        """Start both beliefs at their priors."""
        return cls(p.belief(tasks), q.belief(tasks))

    def _log_ratio(self, log_mean: FloatArray, log_rest: FloatArray) -> FloatArray:
        """``log q / p`` at logarithms of means and of one minus them, ``(task, draw, arm)``."""
        level = (betaln(self.p.a, self.p.b) - betaln(self.q.a, self.q.b)).sum(axis=1)
        to_a, to_b = (self.q.a - self.p.a)[:, None, :], (self.q.b - self.p.b)[:, None, :]
        return np.asarray(level[:, None] + (to_a * log_mean + to_b * log_rest).sum(axis=2))

    def total_variation(self, rng: Stream) -> FloatArray:
        """``E |tanh(log(q / p) / 2)|`` under the mixture of both, one draw from each, in log
        odds.
        """
        odds = np.stack([_log_odds(belief, rng) for belief in (self.p, self.q)], axis=1)
        ratio = self._log_ratio(-np.logaddexp(0.0, -odds), -np.logaddexp(0.0, odds))
        return np.asarray(np.abs(np.tanh(ratio / 2.0)).mean(axis=1))

    def shared(self, rng: Stream, draws: int) -> FloatArray:
        """``min(1, q / p)`` at the draws; those that round to 0 or 1 count as the nearest number
        between.
        """
        drawn = np.clip(rng.beta(self.p.a, self.p.b, draws), 1e-300, 1.0 - 1e-16)
        return np.exp(np.minimum(0.0, self._log_ratio(np.log(drawn), np.log1p(-drawn))))


def _log_odds(belief: BetaBelief, rng: Stream) -> FloatArray:
    """Log odds of a posterior draw, ``(task, arm)``: ``Beta(a, b)`` from ``Beta(a + 1, b + 1)`` and
    two uniforms, no underflow.
    """
    x = np.clip(rng.beta(belief.a + 1.0, belief.b + 1.0)[:, 0], 1e-300, 1.0 - 1e-16)
    u, v = np.moveaxis(rng.uniform(2, belief.a.shape[1]), 1, 0)
    return np.asarray(np.log(x) - np.log1p(-x) + np.log1p(-u) / belief.a - np.log1p(-v) / belief.b)
