"""Two normal posteriors of the same histories, one from each prior.

Both priors see the same actions and rewards, so the likelihood drops out of the ratio of their
posterior densities: ``log q(mu | tau) / p(mu | tau) = log q(mu) / p(mu) + log p(tau) / q(tau)``.
The first part is a fixed function of the drawn environment, the second grows by one predictive
density per step. Nothing is inverted along the way.
"""

from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np

from priorwise.core.seen import Seen, Signal
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.normal.distance import GaussianPair, covariance_rank
from priorwise.theory.distance import BothBeliefs


@final
@dataclass(frozen=True, eq=False)
class NormalPosteriors(BothBeliefs):
    """Normal posteriors of the means or of the weights: beliefs with mean m ``(task, dim)`` and
    root of the covariance ``(task, dim, dim)``.

    With one covariance the posteriors have one too, and ``TV = 2 Phi(d / 2) - 1`` with ``d =
    |L'S^-1 (m_q - m_p)|``, L the root of the posterior covariance and S, m of the priors:
    conditioning maps the shift of the means by ``L L' S^-1``.
    """

    ratio: "NormalRatio"
    evidence: FloatArray  # (task,): log p(tau) / q(tau)

    @classmethod
    def start(cls, p: Any, q: Any, tasks: int) -> "NormalPosteriors":
        """Start both beliefs at their priors."""
        return cls(p.belief(tasks), q.belief(tasks), NormalRatio.of(p, q), np.zeros(tasks))

    @property
    def exact(self) -> bool:
        """Closed form for equal covariances, and where the priors exclude each other."""
        return self.ratio.apart or self.ratio.shift is not None

    def total_variation(self, rng: Stream) -> FloatArray:
        """``E |tanh(log(q / p) / 2)|`` under the mixture of both, one draw from each."""
        from scipy.special import erf

        if self.ratio.apart:
            return np.ones(len(self.p.m))
        if self.ratio.shift is not None:
            d = np.linalg.norm(np.einsum("tij,i->tj", self.p.root, self.ratio.shift), axis=1)
            return np.asarray(erf(d / np.sqrt(8.0)))
        z = rng.normal(self.p.m.shape[1])
        drawn = [belief.m + np.einsum("tij,tj->ti", belief.root, z) for belief in (self.p, self.q)]
        apart = (np.abs(np.tanh((self.ratio(each) + self.evidence) / 2.0)) for each in drawn)
        return np.asarray(sum(apart) / 2.0)

    def shared(self, rng: Stream, draws: int) -> FloatArray:
        """``min(1, q / p)`` at the draws."""
        if self.ratio.apart:
            return np.zeros((len(self.p.m), draws))
        z = rng.normal(draws, self.p.m.shape[1])
        drawn = self.p.m[:, None, :] + z @ self.p.root.transpose(0, 2, 1)
        return np.exp(np.minimum(0.0, self.ratio(drawn) + self.evidence[:, None]))

    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Condition both, and add the log ratio of the predictive densities of the rewards."""
        gained = self.evidence
        for belief, sign in ((self.p, 1.0), (self.q, -1.0)):
            f, centre = belief.direction(seen, actions)
            variance = np.einsum("tj,tj->t", f, f) + belief.prior.noise_var[actions]
            gained = gained - sign * (np.log(variance) + (rewards - centre) ** 2 / variance) / 2.0
        return replace(super().update(seen, actions, rewards, after), evidence=gained)


@final
@dataclass(frozen=True, eq=False)
class NormalRatio:
    """``log q(x) / p(x)`` of two normal laws on one affine subspace; ``shift = S^-1 (m_q - m_p)``
    where they share S.
    """

    means: tuple[FloatArray, FloatArray]
    precisions: tuple[FloatArray, FloatArray]
    level: float
    shift: FloatArray | None
    apart: bool

    @classmethod
    def of(cls, p: Any, q: Any) -> "NormalRatio":
        """Invert both covariances in their common range."""
        apart = GaussianPair.of(p, q).singular
        scale = np.sqrt((np.diag(p.cov) + np.diag(q.cov)) / 2.0)
        inverse_p, level_p = _inverse(p.cov, scale)
        inverse_q, level_q = _inverse(q.cov, scale)
        shift = inverse_p @ (q.mean - p.mean) if np.array_equal(p.cov, q.cov) else None
        inverses = inverse_p, inverse_q
        return cls((p.mean, q.mean), inverses, (level_p - level_q) / 2.0, shift, apart)

    def __call__(self, x: FloatArray) -> FloatArray:
        """At points ``(..., dim)``."""
        pairs = zip((x - mean for mean in self.means), self.precisions, strict=True)
        p, q = (np.einsum("...i,ij,...j->...", y, precision, y) for y, precision in pairs)
        return np.asarray(self.level + (p - q) / 2.0)


def _inverse(cov: FloatArray, scale: FloatArray) -> tuple[FloatArray, float]:
    """Inverse of a covariance within its range, and log determinant in coordinates divided by
    ``scale``, the same for both laws.
    """
    unit = np.where(scale > 0.0, scale, 1.0)
    values, vectors = np.linalg.eigh(cov / unit[:, None] / unit)
    rank = covariance_rank(cov)
    kept, largest = vectors[:, len(values) - rank :], values[len(values) - rank :]
    inverse = np.asarray((kept / largest) @ kept.T / unit[:, None] / unit)
    return inverse, float(np.log(largest).sum())
