"""Logit-normal priors by maximum marginal likelihood: right however the pulls were chosen, and with
arms that tasks lack.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, final

import numpy as np
from attrs import evolve, field, frozen

from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.parameters import (
    Choice,
    Count,
    Number,
)
from priorwise.core.protocols import for_arms
from priorwise.core.types import FloatArray
from priorwise.families.beta.statistics import BetaStatistics
from priorwise.families.logit_normal.exchangeable import ExchangeableLogitNormalPrior
from priorwise.families.logit_normal.likelihood import joint
from priorwise.families.logit_normal.likelihood.story import Rows, log_marginal
from priorwise.families.logit_normal.likelihood.story_fit import VAGUE, WHY, StoryFit, pooled
from priorwise.families.logit_normal.likelihood.uncertainty import LogitNormalUncertainty
from priorwise.families.logit_normal.prior import LogitNormalPrior
from priorwise.fitting.coordinates import Regression
from priorwise.fitting.fits import PLAIN, PriorFit
from priorwise.fitting.newton import positive_root
from priorwise.fitting.task_facts import KnownTasks

Structure = Literal["full", "diagonal", "exchangeable"]
Effects = tuple[FloatArray, FloatArray, FloatArray]
"""Effects of the tasks' features, their covariance, and the slope of the plausible priors' law."""


@final
@frozen(slots=False)
class LogitNormalMarginalLikelihood:
    """Logit-normal prior of Bernoulli arms by maximum marginal likelihood (type II, empirical
    Bayes).

    Parameters
    ----------
    structure
        ``"exchangeable"``: one mean, variance and correlation for all arms of all tasks, as where
        arms are new in every task; the fit holds an :class:`ExchangeableLogitNormalPrior` with a
        correlation from 0, and its likelihood is exact up to quadrature. ``"diagonal"``: each arm
        has its own mean and variance, arms are independent. ``"full"``: any covariance, with the
        likelihood of expectation propagation, which is off by some 1e-3 for each task.
    arms
        Number of arms; by default that of the statistics, or the largest action of a run plus 1.
    regulariser
        Weight r of a penalty that decides only where the data do not: ``r / 2`` times ``log p (1 -
        p)`` of the mean's rate, half a success and half a failure, and ``log v / (1 + v)^2`` of the
        variances of level and deviation, which keeps them off 0. 0 is plain maximum likelihood.

    Notes
    -----
    Where plain maximum likelihood lies on an edge (a variance of 0, a correlation of 0 or 1, a mean
    without end), the fit says ``at_boundary``, whatever the regulariser, and why.

    Examples
    --------
    >>> data = BetaStatistics([[3, 4], [0, 1], [9, 8], [1, 0]], [[20, 20]] * 4)
    >>> fit = LogitNormalMarginalLikelihood().fit(data)
    >>> round(fit.prior.mean, 1), round(fit.prior.correlation, 1)
    (-2.0, 0.9)

    """

    reads: ClassVar[type] = BetaStatistics
    microseconds: ClassVar[float] = 4.0
    """About what the likelihood of one task takes."""

    structure: Structure = field(default="exchangeable", validator=Choice(Structure))
    arms: int | None = field(default=None, kw_only=True, validator=Count())
    regulariser: float = field(default=1.0, kw_only=True, validator=Number(0.0, cure=PLAIN))

    def for_tasks(self, known: KnownTasks) -> LogitNormalMarginalLikelihood:
        """Raise an error for tasks whose rewards are not 0 or 1, or with other arms."""
        known.check_binary(self)
        known.check_arms(self, arms=self.arms)
        return evolve(self, arms=known.arms)

    def fit(self, data: Any, *, start: Any = None) -> PriorFit:
        """Fit a kept run of Bernoulli arms or :class:`BetaStatistics`; ``start`` is a fit or prior
        to begin from.
        """
        return self._found(data, start, None, None)[0]

    def _found(
        self, data: Any, start: Any, z: FloatArray | None, effects: FloatArray | None
    ) -> tuple[PriorFit, Effects]:
        statistics = BetaStatistics.of(data, arms=self.arms)
        pulled = int(statistics.pulls.any(axis=1).sum())
        if pulled == 0:
            raise ArgumentError("data", "must have a task with a pull")
        begin = _start(start, statistics.arms)
        known: dict[str, Any] = {
            "estimator": type(self).__name__,
            "tasks": pulled,
            "left_out": statistics.tasks - pulled,
            "statistics": statistics,
        }
        make = {"exchangeable": self._exchangeable, "diagonal": self._diagonal, "full": self._full}
        found, more = make[self.structure](statistics, begin, z, effects)
        return PriorFit(**known, **found), more

    def _exchangeable(
        self,
        data: BetaStatistics,
        begin: LogitNormalPrior | None,
        z: FloatArray | None,
        effects: FloatArray | None,
    ) -> tuple[dict[str, Any], Effects]:
        rows = Rows.of(data.successes, data.pulls, z)
        single = rows.s.shape[1] == 1 or not ((rows.n > 0).sum(axis=1) > 1).any()
        free = (0, 2) if single else (0, 1, 2)
        first = None if begin is None else pooled(begin)
        found = StoryFit.of(rows, self.regulariser, free, first, effects)
        mean, level, own = found.at
        var = level**2 + own**2
        prior = ExchangeableLogitNormalPrior(mean, var, level**2 / var if var else 0.0)
        to = np.zeros((3, 3))
        to[0, 0] = 1.0
        if var:
            to[1, 1:] = 2.0 * level, 2.0 * own
            to[2, 1:] = np.array([level * own**2, -own * level**2]) * 2.0 / var**2
        errors = found.errors(to)
        warnings = found.warnings("")
        if single:
            errors[2] = np.nan
            warnings.append("no task pulled two arms, so nothing determines their correlation")
        return {
            "prior": prior,
            "at_boundary": bool(found.edges) or single,
            "converged": found.climb.converged,
            "std_errors": dict(zip(("mean", "var", "correlation"), errors.tolist(), strict=True)),
            "log_likelihood": found.log_likelihood,
            "iterations": found.climb.iterations,
            "warnings": warnings,
            "uncertainty": LogitNormalUncertainty(*found.plausible()),
        }, (found.effects, *found.with_effects())

    def _diagonal(
        self,
        data: BetaStatistics,
        begin: LogitNormalPrior | None,
        z: FloatArray | None,
        effects: FloatArray | None,
    ) -> tuple[dict[str, Any], Effects]:
        fits = []
        for arm in range(data.arms):
            own = slice(arm, arm + 1)
            rows = Rows.of(data.successes[:, own], data.pulls[:, own], z)
            first = None
            if begin is not None:
                first = np.array([begin.mean[arm], 0.0, np.sqrt(begin.cov[arm, arm])])
            known = None if effects is None else effects[arm]
            fits.append(StoryFit.of(rows, self.regulariser, (0, 2), first, known))
        at = np.array([each.at for each in fits])
        to = np.array([[[1.0, 0.0, 0.0], [0.0, 0.0, 2.0 * own]] for own in at[:, 2]])
        errors = np.array([each.errors(part) for each, part in zip(fits, to, strict=True)])
        cov = np.zeros((data.arms, data.arms))  # no error where nothing is fitted
        np.fill_diagonal(cov, errors[:, 1])
        centres, laws = zip(*(each.plausible() for each in fits), strict=True)
        size, k = data.arms, fits[0].effects.size
        law, slope = np.zeros((2, size, 2, size)), np.zeros((2, size, size, k))
        sure = np.zeros((size, k, size, k))
        for arm, each in enumerate(laws):
            law[:, arm, :, arm] = each[np.ix_([0, 2], [0, 2])]
            sure[arm, :, arm], moves = fits[arm].with_effects()
            slope[:, arm, arm] = moves[[0, 2]]
        warnings = [line for arm, each in enumerate(fits) for line in each.warnings(f"arm {arm}: ")]
        return {
            "prior": LogitNormalPrior(at[:, 0], np.diag(at[:, 2] ** 2)),
            "at_boundary": any(each.edges for each in fits),
            "converged": all(each.climb.converged for each in fits),
            "std_errors": {"mean": errors[:, 0], "cov": cov},
            "log_likelihood": sum(each.log_likelihood for each in fits),
            "iterations": max(each.climb.iterations for each in fits),
            "warnings": warnings[:8],
            "uncertainty": LogitNormalUncertainty(
                np.array(centres)[:, [0, 2]].T.ravel(), law.reshape(2 * size, 2 * size)
            ),
        }, (
            np.array([each.effects for each in fits]),
            sure.reshape(size * k, size * k),
            slope.reshape(2 * size, size * k),
        )  # fmt: skip

    def _full(
        self,
        data: BetaStatistics,
        begin: LogitNormalPrior | None,
        z: FloatArray | None,
        effects: FloatArray | None,
    ) -> tuple[dict[str, Any], Effects]:
        arms = data.arms
        plain = evolve(self, structure="exchangeable")
        first = plain.fit(data).prior.for_arms(arms) if begin is None else begin
        pulled = data.pulls.any(axis=1)
        s, n = (each[pulled].astype(np.float64) for each in (data.successes, data.pulls))
        objective = joint.JointObjective(s, n, self.regulariser, None if z is None else z[pulled])
        also = np.zeros(0 if z is None else arms * z.shape[1]) if effects is None else effects
        found = objective.climbed(np.append(joint.coordinates(first.mean, first.cov), also))
        place, own = found.place, objective.size
        mean, root = joint.law(place.x[:own], arms)
        edge = bool(((place.x <= objective.ends()[0]) | (place.x >= objective.ends()[1])).any())
        correlation = root @ root.T / np.sqrt(np.outer(*[(root**2).sum(axis=1)] * 2))
        edge = edge or bool(np.linalg.eigvalsh(correlation)[0] < 1e-3)
        spread, known = positive_root(place.information(), floor=VAGUE**-2)
        given, _ = positive_root(place.information()[:own, :own], floor=VAGUE**-2)
        to = joint.to_covariance(place.x[:own], arms) @ spread[:own]
        errors = np.sqrt((to**2).sum(axis=1))
        few = len(s) <= place.x.size or not known
        warnings = [f"the covariance is nearly singular: {WHY}"] if edge else []
        if few:
            warnings.append(
                f"{len(s):,} tasks do not determine all {place.x.size} parameters; take "
                'structure="exchangeable" or "diagonal"'
            )
        return {
            "prior": LogitNormalPrior(mean, root @ root.T),
            "at_boundary": edge or few,
            "converged": found.converged,
            "std_errors": {"mean": errors[:arms], "cov": errors[arms:].reshape(arms, arms)},
            "log_likelihood": place.log_likelihood,
            "iterations": found.iterations,
            "warnings": warnings,
            "uncertainty": LogitNormalUncertainty(place.x[:own], given @ given.T),
        }, (
            objective.effects(place.x),
            spread[own:] @ spread[own:].T,
            -given @ given.T @ place.information()[:own, own:],
        )  # fmt: skip


def regressed(
    estimator: LogitNormalMarginalLikelihood,
    data: Any,
    z: FloatArray,
    start: Any,
    effects: FloatArray | None,
) -> Regression:
    """Fit ``eta ~ N(mean + B z, cov)`` for tasks with features z, all parameters at once."""
    fit, more = estimator._found(data, start, z, effects)
    return Regression(fit, *more)


def _start(start: Any, arms: int) -> LogitNormalPrior | None:
    """A prior to begin from."""
    if start is None:
        return None
    prior = start.prior if isinstance(start, PriorFit) else start
    if not isinstance(prior, (LogitNormalPrior, ExchangeableLogitNormalPrior)):
        raise ArgumentTypeError(
            "start", "must be a fit or prior of logit-normal arms", got=type(prior)
        )
    whole: LogitNormalPrior = for_arms(prior, arms)
    if whole.arms != arms:
        raise ArgumentError("start", f"has {whole.arms} arms, but the data have {arms}")
    return whole


def log_marginal_likelihood(
    prior: LogitNormalPrior | ExchangeableLogitNormalPrior,
    statistics: BetaStatistics,
    offsets: FloatArray | None = None,
) -> FloatArray:
    """Log probability of each task's rewards, given which arms were pulled, ``(task,)``: by nested
    quadrature for exchangeable arms that do not move apart, by expectation propagation for others.
    ``offsets`` are added to the mean: ``(task,)`` for exchangeable arms, else ``(task, arm)``.
    """
    if isinstance(prior, ExchangeableLogitNormalPrior):
        if prior.correlation >= 0.0:
            return log_marginal(prior.mean, prior.var, prior.correlation, statistics, offsets)
        prior = prior.for_arms(statistics.arms)
        if offsets is not None:
            offsets = np.repeat(offsets[:, None], statistics.arms, axis=1)
    if prior.arms != statistics.arms:
        raise ArgumentError(
            "statistics", f"must have the {prior.arms} arms of the prior", got=statistics.arms
        )
    s, n = (each.astype(np.float64) for each in (statistics.successes, statistics.pulls))
    return joint.propagated_tasks(s, n, prior.mean, prior._root, offsets).values
