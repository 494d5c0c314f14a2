"""Distances between two Dirichlet MDP priors: independent rows, one for each state and action, and
independent rewards.

A row with two outcomes is a Beta law, exact as those are. Of rows with more, the affinity and the
divergences have closed forms, and the total variation is bounded by them:

    BC = B((a + b) / 2) / sqrt(B(a) B(b)),
    KL = log B(b) - log B(a) + sum_j (a_j - b_j) (psi(a_j) - psi(a_0)),    a_0 = a_1 + a_2 + ...
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from scipy.special import digamma, gammaln

from priorwise.core.errors import ArgumentError
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray
from priorwise.families.beta.distance import BetaPair
from priorwise.families.beta.distance_arm import BetaArm, BetaLaw
from priorwise.families.tabular_mdp.prior import DirichletMdpPrior
from priorwise.families.tabular_mdp.rewards import BernoulliRewardPrior, NormalRewardPrior


@final
@dataclass(frozen=True, eq=False)
class DirichletRows:
    """Two Dirichlet laws of one row with three outcomes or more."""

    p: FloatArray
    q: FloatArray

    def squared_hellinger(self) -> float:
        """One minus the affinity."""
        middle = _log_beta((self.p + self.q) / 2.0)
        return float(-np.expm1(min(middle - (_log_beta(self.p) + _log_beta(self.q)) / 2.0, 0.0)))

    def kl(self) -> float:
        """KL(p || q)."""
        slopes = digamma(self.p) - digamma(self.p.sum())
        value = _log_beta(self.q) - _log_beta(self.p) + (self.p - self.q) @ slopes
        return max(float(value), 0.0)

    def log_ratio(self, rng: Stream, under: FloatArray) -> FloatArray:
        """Log q/p at a draw from a law, ``(task,)``."""
        logs = rng.log_gamma(np.broadcast_to(under, (rng.tasks, under.size)))[:, 0]
        logs = logs - np.logaddexp.reduce(logs, axis=1)[:, None]
        return np.asarray(_log_beta(self.p) - _log_beta(self.q) + logs @ (self.q - self.p))


@final
@dataclass(frozen=True)
class NormalMeans:
    """Two normal laws of one mean."""

    p: tuple[float, float]  # mean and variance
    q: tuple[float, float]

    def squared_hellinger(self) -> float:
        """One minus the affinity."""
        (m, v), (k, w) = self.p, self.q
        log = 0.25 * np.log(v * w) - 0.5 * np.log((v + w) / 2.0) - 0.25 * (m - k) ** 2 / (v + w)
        return float(-np.expm1(min(log, 0.0)))

    def kl(self) -> float:
        """KL(p || q)."""
        (m, v), (k, w) = self.p, self.q
        return float(0.5 * (v / w - 1.0 - np.log(v / w) + (m - k) ** 2 / w))

    def log_ratio(self, rng: Stream, under: tuple[float, float]) -> FloatArray:
        """Log q/p at a draw from a law, ``(task,)``."""
        x = under[0] + np.sqrt(under[1]) * rng.normal(1)[:, 0]
        (m, v), (k, w) = self.p, self.q
        return np.asarray(0.5 * (np.log(v / w) + (x - m) ** 2 / v - (x - k) ** 2 / w))


@final
@dataclass(frozen=True, eq=False)
class MdpPair:
    """The laws that differ: two-outcome rows and Bernoulli rewards as Beta laws, others by
    themselves.
    """

    slow: ClassVar[bool] = True
    """Exact values may take a quadrature of a second or so."""

    betas: BetaPair
    others: tuple[Any, ...]
    apart: bool  # different moves are possible: the priors exclude each other

    @classmethod
    def of(cls, p: DirichletMdpPrior, q: DirichletMdpPrior) -> MdpPair:
        """Leave out laws that are equal; raise an error for priors that disagree on what is
        known.
        """
        arms: list[BetaArm] = []
        others: list[Any] = []
        for one, two in zip(_rows(p), _rows(q), strict=True):
            places = np.flatnonzero(one)
            if np.array_equal(one, two) or places.size < 2:
                continue
            if places.size == 2:
                arms.append(_beta(*one[places], *two[places]))
            else:
                others.append(DirichletRows(one[places], two[places]))
        mine, yours = p.reward_model, q.reward_model
        if isinstance(mine, BernoulliRewardPrior) and isinstance(yours, BernoulliRewardPrior):
            rows = zip(*(x.ravel() for m in (mine, yours) for x in (m.alpha, m.beta)), strict=True)
            arms += [_beta(*row) for row in rows if tuple(row[:2]) != tuple(row[2:])]
        elif isinstance(mine, NormalRewardPrior) and isinstance(yours, NormalRewardPrior):
            laws = [
                list(zip(m.mean.ravel().tolist(), m.var.ravel().tolist(), strict=True))
                for m in (mine, yours)
            ]
            others += [NormalMeans(a, b) for a, b in zip(*laws, strict=True) if a != b]
        elif not np.array_equal(mine.means, yours.means):
            raise ArgumentError("q", "must have the known rewards of the other prior")
        apart = not np.array_equal(p.possible, q.possible)
        return cls(BetaPair(() if apart else tuple(arms)), () if apart else tuple(others), apart)

    def total_variation(self) -> float | None:
        """Value where at most two laws differ and both are Beta laws; 1 where the possible moves
        differ; None otherwise.
        """
        if self.apart:
            return 1.0
        return None if self.others else self.betas.total_variation()

    def parts(self) -> FloatArray:
        """Total variation of each Beta law, and an upper bound of each other one's."""
        bounds = []
        for each in self.others:
            affinity = 1.0 - each.squared_hellinger()
            least = min(each.kl(), type(each)(each.q, each.p).kl()) / 2.0
            bounds.append(min(np.sqrt(max(1.0 - affinity**2, 0.0)), np.sqrt(least), 1.0))
        return np.concatenate([self.betas.parts(), bounds])

    def log_affinity(self) -> float:
        """Log of the integral of sqrt(p q), a sum over the laws."""
        with np.errstate(divide="ignore"):
            own = sum(np.log1p(-each.squared_hellinger()) for each in self.others)
        return float(self.betas.log_affinity() + own)

    def kl(self) -> float:
        """KL(p || q), a sum over the laws."""
        return float(self.betas.kl() + sum(each.kl() for each in self.others))

    def reverse_kl(self) -> float:
        """KL(q || p)."""
        own = sum(type(each)(each.q, each.p).kl() for each in self.others)
        return float(self.betas.reverse_kl() + own)

    def log_ratios(self, rng: Stream) -> tuple[FloatArray, FloatArray]:
        """Log q/p at a draw from p and at a draw from q, ``(task,)`` each."""
        under_p, under_q = self.betas.log_ratios(rng)
        for each in self.others:
            under_p = under_p + each.log_ratio(rng, each.p)
            under_q = under_q + each.log_ratio(rng, each.q)
        return under_p, under_q


def _rows(prior: DirichletMdpPrior) -> FloatArray:
    return prior.transitions.reshape(-1, prior.states)


def _beta(a: float, b: float, c: float, d: float) -> BetaArm:
    return BetaArm(BetaLaw(float(a), float(b)), BetaLaw(float(c), float(d)))


def _log_beta(a: FloatArray) -> float:
    return float(gammaln(a).sum() - gammaln(a.sum()))
