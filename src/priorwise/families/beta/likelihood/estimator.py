"""Beta priors by maximum marginal likelihood: right however the pulls were chosen, and with arms
that tasks lack.

The likelihood of one arm, its maximisation and its fit stand in ``arm``. Compound
laws of this kind have one maximum along each ray of fixed mean, which is finite only with
over-dispersion (Levin and Reeds 1977, Annals of Statistics 5).
"""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Literal, final

import numpy as np
from attrs import evolve, field, frozen

from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.parameters import (
    Array,
    Choice,
    Count,
    Number,
    arrays,
)
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.beta.exchangeable import ExchangeableBetaPrior
from priorwise.families.beta.likelihood import arm
from priorwise.families.beta.likelihood.arm import ArmCounts, alpha_beta, fit_arm, std_errors
from priorwise.families.beta.prior import BetaPrior
from priorwise.families.beta.statistics import BetaGroups, BetaStatistics
from priorwise.fitting.fits import PLAIN, PriorFit, Uncertainty, limits_in_words
from priorwise.fitting.task_facts import KnownTasks

Structure = Literal["separate", "exchangeable"]


@final
@frozen(slots=False)
class BetaMarginalLikelihood:
    """Beta prior of Bernoulli arms by maximum marginal likelihood (type II, empirical Bayes).

    Parameters
    ----------
    structure
        ``"separate"``: each arm has its own Beta law, and the fit holds a :class:`BetaPrior`.
        ``"exchangeable"``: one law for all arms of all tasks, as where arms are new in every task,
        and the fit holds an :class:`ExchangeableBetaPrior`.
    arms
        Number of arms; by default that of the statistics, or the largest action of a run plus 1.
    regulariser
        Weight r of ``r / 2 * (log m (1 - m) + log rho (1 - rho))`` that is added to the log
        likelihood, with m the mean and ``rho = 1 / (alpha + beta + 1)`` the correlation between two
        pulls of an arm in one task. With the default 1, half a success and half a failure are added
        to each of the two shares (Jeffreys' rule on the log odds), which decides only where the
        data do not: an arm never pulled has Beta(1/2, 1/2), and an arm without over-dispersion a
        finite concentration, with the tail (alpha + beta)^(-1/2) that is customary for it. 0 is
        plain maximum likelihood.

    Notes
    -----
    Where plain maximum likelihood has no maximum in the interior, the fit says ``at_boundary``,
    whatever the regulariser, and why. Without a regulariser it then holds the limit that the
    likelihood points to (a concentration of 1e8 or 1e-4); and if the data do not even point to one
    (only successes, only failures, no task with two pulls) what the default regulariser gives.

    Examples
    --------
    >>> data = BetaStatistics(successes=[[3], [0], [1], [4]], pulls=[[5], [5], [5], [5]])
    >>> fit = BetaMarginalLikelihood(regulariser=0.0).fit(data)
    >>> fit.prior.alpha.round(2).tolist(), fit.prior.beta.round(2).tolist(), fit.at_boundary
    ([1.09], [1.7], False)

    """

    reads: ClassVar[type] = BetaStatistics

    structure: Structure = field(default="separate", validator=Choice(Structure))
    arms: int | None = field(default=None, kw_only=True, validator=Count())
    regulariser: float = field(default=1.0, kw_only=True, validator=Number(0.0, cure=PLAIN))

    def for_tasks(self, known: KnownTasks) -> "BetaMarginalLikelihood":
        """Raise an error for tasks whose rewards are not 0 or 1, or with other arms."""
        known.check_binary(self)
        known.check_arms(self, arms=self.arms)
        return evolve(self, arms=known.arms)

    def fit(self, data: Any, *, start: Any = None) -> PriorFit:
        """Fit a kept run of Bernoulli arms, :class:`BetaStatistics` or their groups; ``start`` is a
        fit or prior to begin from.
        """
        statistics = self._statistics(data)
        counts, tasks, left_out = self._counts(statistics)
        if tasks == 0:
            raise ArgumentError("data", "must have a task with a pull")
        begins = _starts(start, len(counts))
        both = zip(counts, begins, strict=True)
        fits = [fit_arm(each, self.regulariser, begin) for each, begin in both]
        parameters = np.array([alpha_beta(each.at) for each in fits])  # (arm, alpha and beta)
        errors = np.array([std_errors(each) for each in fits])
        prior: Any = BetaPrior(parameters[:, 0], parameters[:, 1])
        if self.structure == "exchangeable":
            prior = ExchangeableBetaPrior(*parameters[0].tolist())
            errors = errors[0]
        found = zip(counts, fits, strict=True)
        values = [arm.BetaObjective(count, 0.0).log_likelihood(*each.at) for count, each in found]
        reasons = [each.reason for each in fits]
        names = ("alpha", "beta", "mean", "concentration")
        law = ([each.centre for each in fits], [each.covariance for each in fits])
        return PriorFit(
            prior,
            type(self).__name__,
            tasks,
            left_out,
            at_boundary=any(reason is not None for reason in reasons),
            converged=all(each.converged for each in fits),
            std_errors=dict(zip(names, np.moveaxis(errors, -1, 0), strict=True)),
            log_likelihood=sum(values),
            iterations=max(each.iterations for each in fits),
            warnings=limits_in_words(reasons, separate=self.structure == "separate"),
            uncertainty=BetaUncertainty(*law),
            statistics=statistics,
        )

    def _statistics(self, data: Any) -> BetaStatistics | BetaGroups:
        if not isinstance(data, BetaGroups):
            return BetaStatistics.of(data, arms=self.arms)
        if self.arms is not None and data.arms != self.arms:
            raise ArgumentError("data", f"must have arms={self.arms}", got=data.arms)
        return data

    def _counts(self, statistics: BetaStatistics | BetaGroups) -> tuple[list[ArmCounts], int, int]:
        """What each Beta law is fitted to, the number of tasks with a pull and of those without."""
        s, n, pooled = statistics.successes, statistics.pulls, self.structure == "exchangeable"
        rows: Iterable[tuple[IntArray, ...]]
        if isinstance(statistics, BetaGroups):
            total = statistics.total
            pulled = total if n.any() else 0  # groups do not say which rows were one task
            rows = [(s, n, statistics.tasks)]
            if not pooled:
                rows = map(statistics.of_arm, range(statistics.arms))
        else:
            total, pulled = statistics.tasks, int(n.any(axis=1).sum())
            rows = [(s.ravel(), n.ravel())]
            if not pooled:
                rows = zip(np.ascontiguousarray(s.T), np.ascontiguousarray(n.T), strict=True)
        return [ArmCounts.of(*row) for row in rows], pulled, total - pulled


def _starts(start: Any, arms: int) -> Sequence[FloatArray | None]:
    """Where to begin, arm by arm."""
    if start is None:
        return [None] * arms
    prior = start.prior if isinstance(start, PriorFit) else start
    if not isinstance(prior, (BetaPrior, ExchangeableBetaPrior)):
        raise ArgumentTypeError("start", "must be a fit or prior of Beta arms", got=type(prior))
    alpha, beta = np.atleast_1d(prior.alpha), np.atleast_1d(prior.beta)
    if arms == 1:
        alpha, beta = alpha.mean(keepdims=True), beta.mean(keepdims=True)
    if alpha.size not in (1, arms):
        raise ArgumentError("start", f"has {alpha.size} arms, but the data have {arms}")
    starts = np.stack([np.log(alpha / beta), np.log(alpha + beta)], axis=1)
    return list(np.broadcast_to(starts, (arms, 2)))


@final
@frozen(eq=False, slots=False)
class BetaUncertainty(Uncertainty):
    """Normal law of each arm's log odds of the mean and log concentration, independent between
    arms.

    Parameters
    ----------
    centre
        ``(arm, 2)``: the fit; where the likelihood has no finite maximum, that with the default
        regulariser.
    covariance
        ``(arm, 2, 2)``: inverse of the observed information there, with standard deviations of at
        most pi, those of Jeffreys' rule without any data.

    """

    family: ClassVar[str] = "beta-uncertainty"

    centre: FloatArray = field(converter=arrays, validator=Array(("arm", 2)))
    covariance: FloatArray = field(converter=arrays, validator=Array(("arm", 2, 2)))

    def draw(self, prior: Any, rng: np.random.Generator, n: int) -> list[Any]:
        """``(log odds, log concentration) ~ N``, within the range of concentrations."""
        z = rng.standard_normal((n, len(self.centre), 2))
        points = self.centre + np.einsum("aij,naj->nai", np.linalg.cholesky(self.covariance), z)
        laws = [np.array([alpha_beta(at) for at in drawn]).T for drawn in points]
        if isinstance(prior, ExchangeableBetaPrior):
            return [ExchangeableBetaPrior(*law[:, 0].tolist()) for law in laws]
        return [BetaPrior(*law) for law in laws]
