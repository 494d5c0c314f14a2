"""Tails of the diameter of jointly normal means, through the differences of pairs of arms.

``diam(mu)`` is the largest of ``|mu_a - mu_b|`` over pairs. For any threshold q, ``Psi(p) <= q +
E(diam - q)_+ / p`` with equality at the quantile (Rockafellar and Uryasev 2000), and ``(diam -
q)_+`` is at most the sum of ``(|mu_a - mu_b| - q)_+`` over pairs. So the bound is exact for two
arms, and close where the tail is one of a single pair.
"""

import math
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.families.normal.beliefs import NormalPrior
from priorwise.theory.conditions import ROUNDING, SubGaussian, TailCondition, level
from priorwise.theory.diameters import DiameterLaw, FiniteLaw, RangeLaw, Tail

MOST_PAIRS: Final = 200_000
SAME: Final = 1e-15  # variances of differences below this share of the arms' are rounding
EQUAL: Final = 1e-14  # covariances this close, relative to the variances, are equal up to rounding


def tail_conditions(prior: NormalPrior[Any]) -> tuple[TailCondition, ...]:
    """Normal arms given each context, and so sub-Gaussian ones."""
    laws = prior.laws()
    return () if laws is None else _conditions(*laws)


def diameter(prior: NormalPrior[Any]) -> DiameterLaw | None:
    """Law of the diameter, where all steps have the same contexts and its tail expectations can be
    computed.
    """
    laws = prior.laws()
    if laws is None or len(laws[0]) > 1:
        return None
    largest, (mean,), (cov,) = _largest(*laws), *laws
    if largest < math.inf:
        return FiniteLaw(np.array([largest]), np.ones(1))
    if mean.size == 2:
        pair = NormalDifferences.of(mean, cov)
        return None if pair is None else PairLaw(pair)
    std, known = _independent(mean, cov), (largest, _conditions(*laws))
    return None if std is None else RangeLaw.of(NormalMarginal, mean, std, *known)


def largest_diameter(prior: NormalPrior[Any]) -> float | None:
    """Essential supremum of the diameter, where it is known."""
    laws = prior.laws()
    return None if laws is None else _largest(*laws)


def _conditions(means: FloatArray, covs: FloatArray) -> tuple[TailCondition, ...]:
    worst = int(np.ptp(means, axis=1).argmax())
    variance = float(np.maximum(np.diagonal(covs, axis1=1, axis2=2), 0.0).max())
    pairs = NormalDifferences.of(means, covs)
    plain = SubGaussian(means[worst], variance)
    return (plain,) if pairs is None else (plain, pairs)


def _largest(means: FloatArray, covs: FloatArray) -> float:
    """Infinite unless all arms move together: ``P S P = 0`` with P the projection off the constant
    vector.
    """
    centered = covs - covs.mean(axis=1, keepdims=True)
    centered = centered - centered.mean(axis=2, keepdims=True)
    moves = np.abs(centered).max() > 64 * EQUAL * max(float(np.abs(covs).max()), 1e-300)
    return np.inf if moves else float(np.ptp(means, axis=1).max())


def _independent(mean: FloatArray, cov: FloatArray) -> FloatArray | None:
    """With one covariance c between all arms, differences are those of independent arms of
    variances ``S_aa - c``.
    """
    off = cov[~np.eye(mean.size, dtype=bool)]
    if off.size == 0:
        return None
    shared, variances = float(off.mean()), np.diag(cov)
    scale = float(variances.max())
    apart = max(float(np.abs(off - shared).max()), -float((variances - shared).min()))
    if apart > EQUAL * scale or scale == 0.0:
        return None
    return np.sqrt(np.maximum(variances - shared, 0.0))


@final
@dataclass(frozen=True, eq=False)
class PairLaw:
    """Two arms that are jointly normal: the absolute value of a normal difference."""

    pair: "NormalDifferences"

    def excess(self, q: float, accuracy: float = 0.0) -> float:
        """``E(|N(gap, std^2)| - q)_+``."""
        gap, std = self.pair.gap, self.pair.std
        ends = np.concatenate([(q - gap) / std, (q + gap) / std])
        return float(std[0] * np.exp(log_loss(ends)).sum())

    def tail(self, p: float) -> Tail:
        """Folded normal law, in closed form at its quantile."""
        return Tail(self.pair.tail(p), 0.0, "exact")


@final
@dataclass(frozen=True)
class NormalMarginal:
    """N(mean, std^2); a point where std is 0."""

    mean: float
    std: float

    def below(self, x: FloatArray) -> FloatArray:
        """``Phi((x - mean) / std)``."""
        return self._share(x - self.mean)

    def above(self, x: FloatArray) -> FloatArray:
        """``Phi((mean - x) / std)``."""
        return self._share(self.mean - x)

    def _share(self, gap: FloatArray) -> FloatArray:
        from scipy.special import ndtr

        return np.asarray(ndtr(gap / self.std) if self.std > 0.0 else (gap > 0.0).astype(float))

    def edges(self) -> list[float]:
        """Out to where nothing is left in floats."""
        steps = (-38.0, -19.0, -9.0, -4.0, -1.5, 0.0, 1.5, 4.0, 9.0, 19.0, 38.0)
        return [self.mean + self.std * k for k in steps] if self.std > 0.0 else [self.mean]


@final
@dataclass(frozen=True, eq=False)
class NormalDifferences:
    """Differences N(gap, std^2) of the pairs of arms, ``(pair,)``; with random contexts those of
    each, weighted.
    """

    gap: FloatArray
    std: FloatArray
    weight: float = 1.0  # probability of each context

    @classmethod
    def of(cls, mean: FloatArray, cov: FloatArray) -> "NormalDifferences | None":
        """Return the pairs of ``mu ~ N(mean, cov)`` for ``(..., arm)`` and ``(..., arm, arm)``;
        None where they are too many.
        """
        mean, cov = np.atleast_2d(mean), cov.reshape(-1, *cov.shape[-2:])
        arms = mean.shape[1]
        if len(mean) * (arms * (arms - 1) // 2) > MOST_PAIRS:
            return None
        a, b = np.triu_indices(arms, 1)
        both = cov[:, a, a] + cov[:, b, b]
        variance = both - 2.0 * cov[:, a, b]
        variance = np.where(variance > SAME * both, variance, 0.0)
        gap = np.abs(mean[:, a] - mean[:, b]).ravel()
        return cls(gap, np.sqrt(variance).ravel(), 1.0 / len(mean))

    @property
    def name(self) -> str:
        """How the condition is asked for."""
        return "normal"

    @property
    def assumption(self) -> str:
        """The condition in words."""
        return "jointly normal arms (union over pairs)"

    @property
    def largest(self) -> float:
        """Essential supremum of the diameter."""
        return math.inf if np.any(self.std > 0.0) else float(self.gap.max(initial=0.0))

    def tail(self, p: float) -> float:
        """``min_q q + sum E(|N(gap, std^2)| - q)_+ / p``."""
        from scipy.special import ndtri_exp

        p = level(p)
        if p == 0.0 or not np.any(self.std > 0.0):
            return self.largest
        moving = self.std > 0.0
        gap, std = self.gap[moving], self.std[moving]
        log_p = math.log(p) - math.log(self.weight)
        # beyond this many standard deviations all pairs together have less than p left
        reach = max(-float(ndtri_exp(min(log_p - math.log(3.0 * gap.size), -1.0))), 1.0)
        # thresholds are measured from its gap: they may lie within rounding of it
        leader = int((gap + std * reach).argmax())
        origin, fixed = float(gap[leader]), self.gap[~moving]
        tail = _Shifted(gap - origin, gap + origin, std, log_p)
        start = -origin
        if log_p < 0.0:
            start = max(start, -float(ndtri_exp(log_p)) * float(std[leader]))
        thresholds = [
            tail.threshold(start, float((gap - origin + std * reach).max())),
            float(fixed.max(initial=0.0)) - origin,
        ]
        weight = math.exp(min(-log_p, 600.0))
        known = (float(np.maximum(fixed - origin - t, 0.0).sum()) * weight for t in thresholds)
        beyond = min(t + tail.excess(t) + extra for t, extra in zip(thresholds, known, strict=True))
        return origin + beyond + ROUNDING * (origin + abs(beyond))


@dataclass(frozen=True, eq=False)
class _Shifted:
    """Sums over pairs at the threshold ``q = origin + t``, in units of p."""

    ahead: FloatArray  # gap - origin
    behind: FloatArray  # gap + origin
    std: FloatArray
    log_p: float

    def survival(self, t: float) -> float:
        """``log(sum P(|N| > q) / p)``."""
        from scipy.special import log_ndtr, logsumexp

        ends = (self.ahead - t) / self.std, -(self.behind + t) / self.std
        return float(logsumexp(np.logaddexp(*map(log_ndtr, ends)))) - self.log_p

    def excess(self, t: float) -> float:
        """``sum E(|N| - q)_+ / p``."""
        ends = (t - self.ahead) / self.std, (t + self.behind) / self.std
        logs = np.log(self.std) + np.logaddexp(*map(log_loss, ends))
        return float(np.exp(np.minimum(logs - self.log_p, 600.0)).sum())

    def threshold(self, low: float, high: float) -> float:
        """Where the probabilities of the pairs to exceed it add up to p."""
        from scipy.optimize import brentq

        if self.survival(low) <= 0.0:
            return low
        ends, within = (low, high * (1.0 + 1e-12)), {"xtol": 1e-13 * high, "rtol": 1e-13}
        return float(brentq(self.survival, *ends, **within, maxiter=3_000))


def log_loss(z: FloatArray) -> FloatArray:
    """``log E(Z - z)_+`` for a standard normal Z, that is ``log(phi(z) - z (1 - Phi(z)))``, with
    its digits in both tails.
    """
    from scipy.special import erfcx, ndtr

    near = np.clip(z, -30.0, 10.0)
    direct = np.exp(-0.5 * near * near) / math.sqrt(2.0 * math.pi) - near * ndtr(-near)
    # phi(z) (1 - z R(z)) with Mills' ratio R; beyond 50 by its series 1/z^2 - 3/z^4 + 15/z^6 - ...
    far = np.maximum(z, 10.0)
    middle = np.minimum(far, 50.0)
    mills = 1.0 - middle * math.sqrt(math.pi / 2.0) * erfcx(middle / math.sqrt(2.0))
    y = (1.0 / far) ** 2
    series = y * (1.0 - y * (3.0 - y * (15.0 - y * (105.0 - y * 945.0))))
    with np.errstate(over="ignore", divide="ignore"):  # nothing is left that far out
        rest = np.log(np.where(far < 50.0, mills, series))
        tail = -0.5 * far * far - 0.5 * math.log(2.0 * math.pi) + rest
    return np.where(z > 10.0, tail, np.log(np.where(z > -30.0, direct, np.maximum(-z, 1.0))))
