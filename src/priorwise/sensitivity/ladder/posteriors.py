"""Two posteriors of the same histories, one from each prior: how far apart they are, and how often
a draw can be shared.

Both priors see the same actions and rewards, so the likelihood drops out of the ratio of their
posterior densities: ``log q(mu | tau) / p(mu | tau) = log q(mu) / p(mu) + log p(tau) / q(tau)``.
The first part is a fixed function of the drawn environment, the second grows by one predictive
density per step. Nothing is inverted along the way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, final

import numpy as np

from priorwise.core.protocols import Belief, Seen, Signal
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.beta.prior import BetaBelief, BetaPrior
from priorwise.families.finite.prior import FiniteBelief, FinitePrior
from priorwise.families.gaussian.prior import GaussianBelief, GaussianPrior
from priorwise.families.linear.prior import LinearBelief, LinearGaussianPrior
from priorwise.families.normal.distance import GaussianPair, covariance_rank


class PosteriorPair(Protocol):
    """The beliefs of two priors about the same tasks after the same actions and rewards."""

    @property
    def p(self) -> Belief:
        """Belief that started from the first prior."""
        ...

    @property
    def q(self) -> Belief:
        """Belief that started from the second prior."""
        ...

    @property
    def exact(self) -> bool:
        """Whether ``total_variation`` is exact for each history, or only unbiased."""
        ...

    def total_variation(self, rng: Stream) -> FloatArray:
        """Total variation between the posteriors of each task, ``(task,)``: exact, or an estimate
        without bias.
        """
        ...

    def shared(self, rng: Stream, draws: int) -> FloatArray:
        """``min(1, q / p)`` at each environment that ``p.sample(rng, draws, seen)`` draws, ``(task,
        draw)``.

        A maximal coupling of two draws, given the one from p, lets q keep it with this probability.
        """
        ...

    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Condition both on what an action earned."""
        ...


def posterior_pair(p: Any, q: Any, tasks: int) -> PosteriorPair | None:
    """Start the pair of two comparable priors; None for families whose densities are not known
    here.
    """
    if isinstance(p, FinitePrior):
        return FinitePosteriors.start(p, q, tasks)
    if isinstance(p, (GaussianPrior, LinearGaussianPrior)):
        return NormalPosteriors.start(p, q, tasks)
    if isinstance(p, BetaPrior):
        return BetaPosteriors(p.belief(tasks), q.belief(tasks))
    return None


@final
@dataclass(frozen=True, eq=False)
class FinitePosteriors:
    """Probabilities of the points of both supports."""

    p: FiniteBelief
    q: FiniteBelief
    places: tuple[IntArray, IntArray]  # where the points of each support stand in their union
    points: int
    exact: bool = True

    @classmethod
    def start(cls, p: FinitePrior, q: FinitePrior, tasks: int) -> FinitePosteriors:
        """Match points that are equal bit for bit."""
        index: dict[tuple[float, ...], int] = {}
        places = [
            [index.setdefault(tuple(point), len(index)) for point in (prior.means + 0.0).tolist()]
            for prior in (p, q)
        ]
        return cls(
            p.belief(tasks), q.belief(tasks), (np.array(places[0]), np.array(places[1])), len(index)
        )

    def _laws(self) -> tuple[FloatArray, FloatArray]:
        """Both posteriors on the union of the supports, ``(task, point)``."""
        first, second = (
            np.stack(
                [
                    np.bincount(place, row, self.points).astype(np.float64)
                    for row in belief.probabilities()
                ]
            )
            for place, belief in zip(self.places, (self.p, self.q), strict=True)
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

    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Condition both."""
        return replace(
            self,
            p=self.p.update(seen, actions, rewards, after),
            q=self.q.update(seen, actions, rewards, after),
        )


@final
@dataclass(frozen=True, eq=False)
class NormalPosteriors:
    """Normal posteriors of the means or of the weights.

    With one covariance the posteriors have one too, and ``TV = 2 Phi(d / 2) - 1`` with ``d =
    |L'S^-1 (m_q - m_p)|``, L the root of the posterior covariance and S, m of the priors:
    conditioning maps the shift of the means by ``L L' S^-1``.
    """

    p: GaussianBelief | LinearBelief
    q: GaussianBelief | LinearBelief
    ratio: _NormalRatio
    evidence: FloatArray  # (task,): log p(tau) / q(tau)

    @classmethod
    def start(cls, p: Any, q: Any, tasks: int) -> NormalPosteriors:
        """Start both beliefs at their priors."""
        return cls(p.belief(tasks), q.belief(tasks), _NormalRatio.of(p, q), np.zeros(tasks))

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
        return np.asarray(
            sum(np.abs(np.tanh((self.ratio(each) + self.evidence) / 2.0)) for each in drawn) / 2.0
        )

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
            rows = np.arange(len(actions))
            x = None if seen.signal is None else seen.signal[rows, actions]
            f = belief.root[rows, actions] if x is None else np.einsum("tij,ti->tj", belief.root, x)
            centre = belief.m[rows, actions] if x is None else np.einsum("tj,tj->t", x, belief.m)
            variance = np.einsum("tj,tj->t", f, f) + belief.prior.noise_var[actions]
            gained = gained - sign * (np.log(variance) + (rewards - centre) ** 2 / variance) / 2.0
        return replace(
            self,
            p=self.p.update(seen, actions, rewards, after),
            q=self.q.update(seen, actions, rewards, after),
            evidence=gained,
        )


@final
@dataclass(frozen=True, eq=False)
class _NormalRatio:
    """``log q(x) / p(x)`` of two normal laws on one affine subspace; ``shift = S^-1 (m_q - m_p)``
    where they share S.
    """

    means: tuple[FloatArray, FloatArray]
    precisions: tuple[FloatArray, FloatArray]
    level: float
    shift: FloatArray | None
    apart: bool

    @classmethod
    def of(cls, p: Any, q: Any) -> _NormalRatio:
        """Invert both covariances in their common range."""
        apart = GaussianPair.of(p.mean, p.cov, q.mean, q.cov).singular
        scale = np.sqrt((np.diag(p.cov) + np.diag(q.cov)) / 2.0)
        inverse_p, level_p = _inverse(p.cov, scale)
        inverse_q, level_q = _inverse(q.cov, scale)
        shift = inverse_p @ (q.mean - p.mean) if np.array_equal(p.cov, q.cov) else None
        return cls(
            (p.mean, q.mean), (inverse_p, inverse_q), (level_p - level_q) / 2.0, shift, apart
        )

    def __call__(self, x: FloatArray) -> FloatArray:
        """At points ``(..., dim)``."""
        forms = [
            np.einsum("...i,ij,...j->...", x - mean, precision, x - mean)
            for mean, precision in zip(self.means, self.precisions, strict=True)
        ]
        return np.asarray(self.level + (forms[0] - forms[1]) / 2.0)


def _inverse(cov: FloatArray, scale: FloatArray) -> tuple[FloatArray, float]:
    """Inverse of a covariance within its range, and log determinant in coordinates divided by
    ``scale``, the same for both laws.
    """
    unit = np.where(scale > 0.0, scale, 1.0)
    values, vectors = np.linalg.eigh(cov / unit[:, None] / unit)
    rank = covariance_rank(cov)
    kept, largest = vectors[:, len(values) - rank :], values[len(values) - rank :]
    return np.asarray((kept / largest) @ kept.T / unit[:, None] / unit), float(
        np.log(largest).sum()
    )


@final
@dataclass(frozen=True, eq=False)
class BetaPosteriors:
    """Independent Beta posteriors of the arms; their parameters differ by what those of the priors
    do.
    """

    p: BetaBelief
    q: BetaBelief
    exact: bool = False

    def _log_ratio(self, log_mean: FloatArray, log_rest: FloatArray) -> FloatArray:
        """``log q / p`` at logarithms of means and of one minus them, ``(task, draw, arm)``."""
        from scipy.special import betaln

        level = (betaln(self.p.a, self.p.b) - betaln(self.q.a, self.q.b)).sum(axis=1)
        slopes = (self.q.a - self.p.a)[:, None, :] * log_mean + (self.q.b - self.p.b)[
            :, None, :
        ] * log_rest
        return np.asarray(level[:, None] + slopes.sum(axis=2))

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

    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Condition both."""
        return replace(
            self,
            p=self.p.update(seen, actions, rewards, after),
            q=self.q.update(seen, actions, rewards, after),
        )


def _log_odds(belief: BetaBelief, rng: Stream) -> FloatArray:
    """Log odds of a posterior draw, ``(task, arm)``: ``Beta(a, b)`` from ``Beta(a + 1, b + 1)`` and
    two uniforms, no underflow.
    """
    x = np.clip(rng.beta(belief.a + 1.0, belief.b + 1.0)[:, 0], 1e-300, 1.0 - 1e-16)
    u, v = np.moveaxis(rng.uniform(2, belief.a.shape[1]), 1, 0)
    return np.asarray(np.log(x) - np.log1p(-x) + np.log1p(-u) / belief.a - np.log1p(-v) / belief.b)
