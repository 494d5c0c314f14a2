"""Beta-binomial likelihood of one arm, a function of three histograms; its maximum, or the limit
that it points to, and how sure that is.

With ``s`` successes and ``f`` failures in ``n = s + f`` pulls and ``mu ~ Beta(alpha, beta)``,
whichever way the pulls were chosen,

    log P = log (alpha)_s + log (beta)_f - log (alpha + beta)_n,      (x)_k = x (x + 1) ... (x + k -
    1),

so that the sum over tasks needs only how often each s, each f and each n occurs. The coordinates
are the log odds of the mean ``m = alpha / (alpha + beta)`` and the log of the concentration ``c =
alpha + beta``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from typing import Final, final

import numpy as np

from priorwise.core.errors import ArgumentError
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.beta.exchangeable import ExchangeableBetaPrior
from priorwise.families.beta.likelihood.rising import RisingSums, log_rising
from priorwise.families.beta.prior import BetaPrior
from priorwise.families.beta.statistics import BetaStatistics
from priorwise.fitting.newton import Climb, Spot, climb

SMALLEST: Final = 1e-4
LARGEST: Final = 1e8
"""Range of concentrations: at the ends the arm's mean is 0 or 1, or the same in all tasks to 4
digits.
"""

LEAST: Final = 1e-6  # of alpha and beta, as BetaPrior has it
FURTHEST: Final = 16.0  # log odds
LOW: Final = np.array([-FURTHEST, np.log(SMALLEST)])
HIGH: Final = np.array([FURTHEST, np.log(LARGEST)])


@final
@dataclass(frozen=True, eq=False)
class ArmCounts:
    """What the likelihood of one arm reads of the data."""

    successes: RisingSums
    failures: RisingSums
    pulls: RisingSums
    total_successes: float
    total_failures: float
    mixed: int  # tasks with both a success and a failure

    @classmethod
    def of(cls, s: IntArray, n: IntArray, tasks: IntArray | None = None) -> ArmCounts:
        """Count from successes and pulls, one entry per task or ``tasks`` each."""
        most = int(n.max(initial=0)) + 1
        # many tasks with few pulls: first count the distinct pairs
        if tasks is None and most * most < len(s):
            pairs = np.bincount(n * most + s, minlength=most * most)
            (seen,) = pairs.nonzero()
            n, s, tasks = seen // most, seen % most, pairs[seen]
        f = n - s
        weights = np.ones(len(s)) if tasks is None else tasks
        sums = RisingSums.of(s, tasks), RisingSums.of(f, tasks), RisingSums.of(n, tasks)
        totals = float((s * weights).sum()), float((f * weights).sum())
        return cls(*sums, *totals, int(weights[(s > 0) & (f > 0)].sum()))

    @property
    def mean(self) -> float:
        """Share of successes among all pulls."""
        return self.total_successes / (self.total_successes + self.total_failures)

    @property
    def one_sided(self) -> bool:
        """Whether there are no successes or no failures (or neither)."""
        return self.total_successes == 0 or self.total_failures == 0

    def spread(self) -> float:
        """Moment estimate of the correlation ``1 / (c + 1)`` between two pulls of a task; not above
        0 without over-dispersion.

        ``E[s (s - 1) / m + f (f - 1) / (1 - m)] = n (n - 1) (1 + 1 / (c + 1))``. The same number,
        at the pooled mean, decides whether the likelihood still rises as the concentration goes to
        infinity (Levin and Reeds 1977).
        """
        pairs = self.pulls.pairs()
        if pairs == 0 or self.one_sided:
            return 0.0
        within = self.successes.pairs() / self.mean + self.failures.pairs() / (1.0 - self.mean)
        rounding = 1e-13 * within / pairs
        spread = (within - pairs) / pairs
        return 0.0 if abs(spread) < rounding else spread

    def why_boundary(self) -> str | None:
        """Why the likelihood has no maximum in the interior, if that is known beforehand."""
        if self.total_successes + self.total_failures == 0:
            return "was never pulled"
        if self.one_sided:
            return f"has only {'failures' if self.total_successes == 0 else 'successes'}"
        if self.pulls.pairs() == 0:
            return "was never pulled twice in a task, which leaves its concentration open"
        if self.mixed == 0:
            return "had only successes or only failures in each task: its means look like 0 or 1"
        if self.spread() <= 0:
            return (
                "varies no more between tasks than chance alone would make it, so that its "
                "concentration is infinite"
            )
        return None


@final
@dataclass(frozen=True, eq=False)
class BetaObjective:
    """Log likelihood of one arm plus ``regulariser / 2 * (log m (1 - m) + log rho (1 - rho))`` with
    ``rho = 1 / (c + 1)``.
    """

    counts: ArmCounts
    regulariser: float

    def log_likelihood(self, log_odds: float, log_concentration: float) -> float:
        """Without the regulariser."""
        m, rest, c = _mean(log_odds), _mean(-log_odds), exp(log_concentration)
        counts = self.counts
        total = counts.total_successes * log(m) + counts.total_failures * log(rest)
        total = total + counts.successes.value(c * m) + counts.failures.value(c * rest)
        return float(total - counts.pulls.value(c))

    def value(self, at: FloatArray) -> float:
        """Objective at (log odds, log concentration)."""
        log_odds, log_c = float(at[0]), float(at[1])
        # log m (1 - m) rho (1 - rho)
        weak = log(_mean(log_odds) * _mean(-log_odds) * _mean(log_c) * _mean(-log_c))
        return self.log_likelihood(log_odds, log_c) + 0.5 * self.regulariser * weak

    def slopes(self, at: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient ``(2,)`` and information ``(2, 2)``, by the chain rule through ``log alpha = log
        c + log m`` and so on.
        """
        m, rest, c = _mean(float(at[0])), _mean(-float(at[0])), exp(at[1])
        counts = self.counts
        s1, s2 = counts.successes.slopes(c * m)
        f1, f2 = counts.failures.slopes(c * rest)
        n1, n2 = counts.pulls.slopes(c)
        total_s, total_f = counts.total_successes, counts.total_failures
        rho, half = _mean(-float(at[1])), 0.5 * self.regulariser
        by_mean = (total_s + s1 + half) * rest - (total_f + f1 + half) * m
        by_size = s1 + f1 - n1 + half * (2.0 * rho - 1.0)
        weight = total_s + s1 + total_f + f1 + 2.0 * half
        mean_curve = s2 * rest**2 + f2 * m**2 - m * rest * weight
        across, size_curve = s2 * rest - f2 * m, s2 + f2 - n2 - 2.0 * half * rho * (1.0 - rho)
        hessian = np.array([[mean_curve, across], [across, size_curve]])
        return np.array([by_mean, by_size]), -hessian


def maximise(objective: BetaObjective, start: FloatArray, limit: int = 200) -> Climb[Spot]:
    """Climb within the range of log odds and concentrations."""

    def spot(at: FloatArray) -> Spot:
        return Spot(at, objective.value(at), objective.slopes)

    return climb(spot, start, limit=limit, longest=3.0, low=LOW, high=HIGH)


def _mean(log_odds: float) -> float:
    return 1.0 / (1.0 + exp(-log_odds)) if log_odds > 0 else exp(log_odds) / (1.0 + exp(log_odds))


def alpha_beta(at: FloatArray) -> tuple[float, float]:
    """Alpha and beta."""
    c = float(np.clip(np.exp(np.clip(at[1], -50.0, 50.0)), SMALLEST, LARGEST))
    m, rest = np.exp(-np.logaddexp(0.0, -at[0])), np.exp(-np.logaddexp(0.0, at[0]))
    return max(c * float(m), LEAST), max(c * float(rest), LEAST)


@final
@dataclass(frozen=True, eq=False)
class ArmFit:
    """What is known of one arm after its fit."""

    at: FloatArray  # (log odds, log concentration)
    information: FloatArray | None  # None where the fit is a limit
    centre: FloatArray
    covariance: FloatArray
    reason: str | None
    converged: bool
    iterations: int


def fit_arm(counts: ArmCounts, regulariser: float, start: FloatArray | None) -> ArmFit:
    """Maximise the likelihood of one arm, or find the limit it points to; ``start`` is (log odds,
    log concentration).
    """
    reason = counts.why_boundary()
    rho = min(max(counts.spread(), 1e-3), 0.9)
    odds = np.log((counts.total_successes + 0.5) / (counts.total_failures + 0.5))
    begin = np.array([odds, np.log(1.0 / rho - 1.0)]) if start is None else start
    safe = regulariser > 0 or reason is None
    found = maximise(BetaObjective(counts, regulariser if safe else 1.0), begin)
    place, held = found.place, _held(found)
    if safe and held:
        reason = reason or "has its largest likelihood at an end of the range of concentrations"
    at, information = place.x, place.information() if safe and not held else None
    if reason is not None and regulariser == 0:
        limit = _limit(counts, place.x)
        if limit is not None:
            at = limit.place.x
            information = None if _held(limit) else limit.place.information()
        reason = reason if information is None else None
    centre, known = at, information
    if known is None:
        centre, known = place.x, place.information()
    how = found.converged, found.iterations
    return ArmFit(at, information, centre, _covariance(known), reason, *how)


def _limit(counts: ArmCounts, near: FloatArray) -> Climb[Spot] | None:
    """Best point of the range for plain maximum likelihood, if the data point to any."""
    if counts.one_sided or counts.pulls.pairs() == 0:
        return None
    objective = BetaObjective(counts, 0.0)
    odds = np.log(counts.total_successes / counts.total_failures)
    ends = [np.array([odds, np.log(LARGEST)]), np.array([odds, np.log(SMALLEST)])]
    found = [maximise(objective, begin) for begin in (*ends, near)]
    return max(found, key=lambda each: each.place.value)


def _held(found: Climb[Spot]) -> bool:
    """Whether a climb ended at an end of the range."""
    return bool(((found.place.x <= LOW) | (found.place.x >= HIGH)).any())


def _covariance(information: FloatArray) -> FloatArray:
    """Inverse information with standard deviations of at most pi: that of a log odds under
    Beta(1/2, 1/2).
    """
    values, axes = np.linalg.eigh(information)
    return np.asarray(axes / np.maximum(values, np.pi**-2) @ axes.T)


def std_errors(fit: ArmFit) -> list[float]:
    """Standard errors of alpha, beta, the mean and the concentration, by the delta method; NaN at a
    limit.
    """
    if fit.information is None or np.linalg.eigvalsh(fit.information)[0] <= 0:
        return [np.nan] * 4
    alpha, beta = alpha_beta(fit.at)
    c = alpha + beta
    m, rest = alpha / c, beta / c
    jacobian = np.array([[alpha * rest, alpha], [-beta * m, beta], [m * rest, 0.0], [0.0, c]])
    inverse = np.linalg.inv(fit.information)
    return np.sqrt(np.einsum("ki,ij,kj->k", jacobian, inverse, jacobian)).tolist()


def log_marginal_likelihood(
    prior: BetaPrior | ExchangeableBetaPrior, statistics: BetaStatistics
) -> FloatArray:
    """Log probability of each task's rewards, given which arms were pulled, ``(task,)``: exact,
    whatever chose the arms.

    The rewards are a sequence of zeros and ones, so that there are no binomial coefficients.
    """
    arms = prior.for_arms(statistics.arms) if isinstance(prior, ExchangeableBetaPrior) else prior
    if arms.arms != statistics.arms:
        raise ArgumentError(
            "statistics", f"must have the {arms.arms} arms of the prior", got=statistics.arms
        )
    total = np.zeros(statistics.tasks)
    for arm, (alpha, beta) in enumerate(zip(arms.alpha.tolist(), arms.beta.tolist(), strict=True)):
        s, n = statistics.successes[:, arm], statistics.pulls[:, arm]
        total += log_rising(alpha, s) + log_rising(beta, n - s) - log_rising(alpha + beta, n)
    return total
