"""Beta priors by maximum marginal likelihood: right however the pulls were chosen, and with arms that tasks lack.

The likelihood of one arm and its maximisation stand in ``beta_counts``. Compound laws of this kind have one maximum along each
ray of fixed mean, which is finite only with over-dispersion (Levin and Reeds 1977, Annals of Statistics 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Final, Literal, final, get_args

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.types import FloatArray
from priorwise.meta.beta_counts import LARGEST, SMALLEST, ArmCounts, BetaObjective, Maximum, maximise
from priorwise.meta.fit import PriorFit, Uncertainty
from priorwise.meta.rising import log_rising
from priorwise.meta.statistics import BetaGroups, BetaStatistics
from priorwise.priors.beta import BetaPrior
from priorwise.priors.exchangeable import ExchangeableBetaPrior

Structure = Literal["separate", "exchangeable"]

LEAST: Final = 1e-6  # of alpha and beta, as BetaPrior has it


@final
@dataclass(frozen=True)
class BetaMarginalLikelihood:
    """Beta prior of Bernoulli arms by maximum marginal likelihood (type II, empirical Bayes).

    Parameters
    ----------
    structure
        ``"separate"``: each arm has its own Beta law, and the fit holds a :class:`BetaPrior`. ``"exchangeable"``: one law for all
        arms of all tasks, as where arms are new in every task, and the fit holds an :class:`ExchangeableBetaPrior`.
    arms
        Number of arms; by default that of the statistics, or the largest action of a run plus 1.
    regulariser
        Weight r of ``r / 2 * (log m (1 - m) + log rho (1 - rho))`` that is added to the log likelihood, with m the mean and
        ``rho = 1 / (alpha + beta + 1)`` the correlation between two pulls of an arm in one task. With the default 1, half a success
        and half a failure are added to each of the two shares (Jeffreys' rule on the log odds), which decides only where the data
        do not: an arm never pulled has Beta(1/2, 1/2), and an arm without over-dispersion a finite concentration, with the
        tail (alpha + beta)^(-1/2) that is customary for it. 0 is plain maximum likelihood.

    Notes
    -----
    Where plain maximum likelihood has no maximum in the interior, the fit says ``at_boundary``, whatever the regulariser, and why.
    Without a regulariser it then holds the limit that the likelihood points to (a concentration of 1e8 or 1e-4); and if
    the data do not even point to one (only successes, only failures, no task with two pulls) what the default regulariser gives.

    Examples
    --------
    >>> data = BetaStatistics(successes=[[3], [0], [1], [4]], pulls=[[5], [5], [5], [5]])
    >>> fit = BetaMarginalLikelihood(regulariser=0.0).fit(data)
    >>> fit.prior.alpha.round(2).tolist(), fit.prior.beta.round(2).tolist(), fit.at_boundary
    ([1.09], [1.7], False)

    """

    structure: Structure = "separate"
    _: KW_ONLY
    arms: int | None = None
    regulariser: float = 1.0

    def __post_init__(self) -> None:
        """Check the options."""
        if self.structure not in get_args(Structure):
            raise ValueError(f"structure must be one of {', '.join(get_args(Structure))}, got {self.structure!r}")
        if self.arms is not None:
            validation.count("arms", self.arms)
        if validation.number("regulariser", self.regulariser) < 0:
            raise ValueError(f"regulariser must not be negative, got {self.regulariser:g}; 0 is plain maximum likelihood")

    def fit(self, data: Any, *, start: Any = None) -> PriorFit:
        """Fit a kept run of Bernoulli arms, :class:`BetaStatistics` or their groups; ``start`` is a fit or prior to begin from."""
        statistics = self._statistics(data)
        counts, tasks, left_out = self._counts(statistics)
        if tasks == 0:
            raise ValueError("no task has a pull, so there is nothing to fit")
        begins = _starts(start, len(counts))
        fits = [_fit_arm(each, self.regulariser, begin) for each, begin in zip(counts, begins, strict=True)]
        parameters = np.array([_parameters(each.at) for each in fits])  # (arm, alpha and beta)
        errors = np.array([_errors(each) for each in fits])
        prior: Any = BetaPrior(parameters[:, 0], parameters[:, 1])
        if self.structure == "exchangeable":
            prior = ExchangeableBetaPrior(*parameters[0].tolist())
            errors = errors[0]
        log_likelihood = sum(BetaObjective(count, 0.0).log_likelihood(*each.at) for count, each in zip(counts, fits, strict=True))
        return PriorFit(
            prior,
            type(self).__name__,
            tasks,
            left_out,
            at_boundary=any(each.reason is not None for each in fits),
            converged=all(each.converged for each in fits),
            std_errors=dict(zip(("alpha", "beta", "mean", "concentration"), np.moveaxis(errors, -1, 0), strict=True)),
            log_likelihood=log_likelihood,
            iterations=max(each.iterations for each in fits),
            warnings=_warnings([each.reason for each in fits], separate=self.structure == "separate"),
            uncertainty=BetaUncertainty([each.centre for each in fits], [each.covariance for each in fits]),
            statistics=statistics,
        )

    def _statistics(self, data: Any) -> BetaStatistics | BetaGroups:
        if not isinstance(data, BetaGroups):
            return BetaStatistics.of(data, arms=self.arms)
        if self.arms is not None and data.arms != self.arms:
            raise ValueError(f"the groups have {data.arms} arms, but arms={self.arms} was asked for")
        return data

    def _counts(self, statistics: BetaStatistics | BetaGroups) -> tuple[list[ArmCounts], int, int]:
        """What each Beta law is fitted to, the number of tasks with a pull and of those without."""
        if isinstance(statistics, BetaGroups):
            left_out = statistics.total if not statistics.pulls.any() else 0  # groups do not say which rows were one task
            if self.structure == "exchangeable":
                return (
                    [ArmCounts.of(statistics.successes, statistics.pulls, statistics.tasks)],
                    statistics.total - left_out,
                    left_out,
                )
            rows = [statistics.of_arm(arm) for arm in range(statistics.arms)]
            return [ArmCounts.of(*row) for row in rows], statistics.total - left_out, left_out
        pulled = int(statistics.pulls.any(axis=1).sum())
        if self.structure == "exchangeable":
            return [ArmCounts.of(statistics.successes.ravel(), statistics.pulls.ravel())], pulled, statistics.tasks - pulled
        columns = zip(np.ascontiguousarray(statistics.successes.T), np.ascontiguousarray(statistics.pulls.T), strict=True)
        return [ArmCounts.of(s, n) for s, n in columns], pulled, statistics.tasks - pulled


def log_marginal_likelihood(prior: BetaPrior | ExchangeableBetaPrior, statistics: BetaStatistics) -> FloatArray:
    """Log probability of each task's rewards, given which arms were pulled, ``(task,)``: exact, whatever chose the arms.

    The rewards are a sequence of zeros and ones, so that there are no binomial coefficients.
    """
    arms = prior.for_arms(statistics.arms) if isinstance(prior, ExchangeableBetaPrior) else prior
    if arms.arms != statistics.arms:
        raise ValueError(f"the prior has {arms.arms} arms, but the statistics have {statistics.arms}")
    total = np.zeros(statistics.tasks)
    for arm, (alpha, beta) in enumerate(zip(arms.alpha.tolist(), arms.beta.tolist(), strict=True)):
        s, n = statistics.successes[:, arm], statistics.pulls[:, arm]
        total += log_rising(alpha, s) + log_rising(beta, n - s) - log_rising(alpha + beta, n)
    return total


@final
@dataclass(frozen=True, eq=False, init=False)
class BetaUncertainty(Uncertainty):
    """Normal law of each arm's log odds of the mean and log concentration, independent between arms.

    Parameters
    ----------
    centre
        ``(arm, 2)``: the fit; where the likelihood has no finite maximum, that with the default regulariser.
    covariance
        ``(arm, 2, 2)``: inverse of the observed information there, with standard deviations of at most pi, those of
        Jeffreys' rule without any data.

    """

    family: ClassVar[str] = "beta-uncertainty"

    centre: FloatArray
    covariance: FloatArray

    def __init__(self, centre: ArrayLike, covariance: ArrayLike) -> None:
        """Check and freeze the law."""
        object.__setattr__(self, "centre", validation.matrix("centre", centre, (None, 2)))
        object.__setattr__(self, "covariance", validation.matrix("covariance", covariance, (len(self.centre), 2, 2)))

    def draw(self, prior: Any, rng: np.random.Generator, n: int) -> list[Any]:
        """``(log odds, log concentration) ~ N``, within the range of concentrations."""
        z = rng.standard_normal((n, len(self.centre), 2))
        points = self.centre + np.einsum("aij,naj->nai", np.linalg.cholesky(self.covariance), z)
        out: list[Any] = []
        for drawn in points:
            alpha, beta = np.array([_parameters(at) for at in drawn]).T
            exchangeable = isinstance(prior, ExchangeableBetaPrior)
            out.append(ExchangeableBetaPrior(float(alpha[0]), float(beta[0])) if exchangeable else BetaPrior(alpha, beta))
        return out


@final
@dataclass(frozen=True, eq=False)
class _ArmFit:
    at: FloatArray  # (log odds, log concentration)
    information: FloatArray | None  # None where the fit is a limit
    centre: FloatArray
    covariance: FloatArray
    reason: str | None
    converged: bool
    iterations: int


def _fit_arm(counts: ArmCounts, regulariser: float, start: FloatArray | None) -> _ArmFit:
    reason = counts.why_boundary()
    rho = min(max(counts.spread(), 1e-3), 0.9)
    odds = np.log((counts.total_successes + 0.5) / (counts.total_failures + 0.5))
    begin = np.array([odds, np.log(1.0 / rho - 1.0)]) if start is None else start
    safe = regulariser > 0 or reason is None
    found = maximise(BetaObjective(counts, regulariser if safe else 1.0), begin)
    if safe and found.held:
        reason = reason or "has its largest likelihood at an end of the range of concentrations"
    at, information = found.at, found.information if safe and not found.held else None
    if reason is not None and regulariser == 0:
        limit = _limit(counts, found.at)
        at, information = (found.at if limit is None else limit.at), None if limit is None or limit.held else limit.information
        reason = reason if information is None else None
    centre, centred = (at, information) if information is not None else (found.at, found.information)
    return _ArmFit(at, information, centre, _covariance(centred), reason, found.converged, found.iterations)


def _limit(counts: ArmCounts, near: FloatArray) -> Maximum | None:
    """Best point of the range for plain maximum likelihood, if the data point to any."""
    if counts.one_sided or counts.pulls.pairs() == 0:
        return None
    objective = BetaObjective(counts, 0.0)
    odds = np.log(counts.total_successes / counts.total_failures)
    ends = [np.array([odds, np.log(LARGEST)]), np.array([odds, np.log(SMALLEST)])]
    return max((maximise(objective, begin) for begin in (*ends, near)), key=lambda each: each.value)


def _covariance(information: FloatArray) -> FloatArray:
    """Inverse information with standard deviations of at most pi: that of a log odds under Beta(1/2, 1/2)."""
    values, axes = np.linalg.eigh(information)
    return np.asarray(axes / np.maximum(values, np.pi**-2) @ axes.T)


def _parameters(at: FloatArray) -> tuple[float, float]:
    """Alpha and beta."""
    c = float(np.clip(np.exp(np.clip(at[1], -50.0, 50.0)), SMALLEST, LARGEST))
    m, rest = np.exp(-np.logaddexp(0.0, -at[0])), np.exp(-np.logaddexp(0.0, at[0]))
    return max(c * float(m), LEAST), max(c * float(rest), LEAST)


def _errors(fit: _ArmFit) -> list[float]:
    """Standard errors of alpha, beta, the mean and the concentration, by the delta method; NaN at a limit."""
    if fit.information is None or np.linalg.eigvalsh(fit.information)[0] <= 0:
        return [np.nan] * 4
    alpha, beta = _parameters(fit.at)
    c = alpha + beta
    m, rest = alpha / c, beta / c
    jacobian = np.array([[alpha * rest, alpha], [-beta * m, beta], [m * rest, 0.0], [0.0, c]])
    return np.sqrt(np.einsum("ki,ij,kj->k", jacobian, np.linalg.inv(fit.information), jacobian)).tolist()


def _starts(start: Any, arms: int) -> Sequence[FloatArray | None]:
    """Where to begin, arm by arm."""
    if start is None:
        return [None] * arms
    prior = start.prior if isinstance(start, PriorFit) else start
    if not isinstance(prior, (BetaPrior, ExchangeableBetaPrior)):
        raise TypeError(f"start must be a fit or prior of Beta arms, got {type(prior).__name__}")
    alpha, beta = np.atleast_1d(prior.alpha), np.atleast_1d(prior.beta)
    if arms == 1:
        alpha, beta = alpha.mean(keepdims=True), beta.mean(keepdims=True)
    if alpha.size not in (1, arms):
        raise ValueError(f"start has {alpha.size} arms, but the data have {arms}")
    return list(np.broadcast_to(np.stack([np.log(alpha / beta), np.log(alpha + beta)], axis=1), (arms, 2)))


def _warnings(reasons: list[str | None], *, separate: bool) -> list[str]:
    """One sentence a reason, naming the arms."""
    lines = []
    for reason in dict.fromkeys(each for each in reasons if each is not None):
        arms = [str(arm) for arm, each in enumerate(reasons) if each == reason]
        named = f"{', '.join(arms[:8])}{f' and {len(arms) - 8} more' if len(arms) > 8 else ''}"
        who = (f"arm {named}" if len(arms) == 1 else f"each of the arms {named}") if separate else "the pooled arm"
        lines.append(f"{who} {reason}: the likelihood has no maximum in the interior")
    return lines
