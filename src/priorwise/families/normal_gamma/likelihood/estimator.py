"""Normal-gamma priors by maximum marginal likelihood: right however the pulls were chosen, and with
arms that tasks lack. The likelihood of one arm and its maximisation stand in ``arm``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final, Literal, final

import numpy as np
from attrs import evolve, field, frozen

from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.parameters import (
    Choice,
    Count,
    Number,
)
from priorwise.core.types import FloatArray
from priorwise.families.gaussian.statistics import GaussianStatistics
from priorwise.families.normal_gamma.exchangeable import ExchangeableNormalGammaPrior
from priorwise.families.normal_gamma.likelihood.arm import (
    ArmData,
    fit_arm,
    parameters,
    std_errors,
)
from priorwise.families.normal_gamma.likelihood.uncertainty import NormalGammaUncertainty
from priorwise.families.normal_gamma.prior import NormalGammaPrior
from priorwise.fitting.fits import PLAIN, PriorFit, limits_in_words
from priorwise.fitting.task_facts import KnownTasks

Structure = Literal["separate", "exchangeable"]
NAMES: Final = ("mean", "pulls", "shape", "rate")


@final
@frozen(slots=False)
class NormalGammaMarginalLikelihood:
    """Normal-gamma prior by maximum marginal likelihood (type II, empirical Bayes).

    Parameters
    ----------
    structure
        ``"separate"``: each arm has its own law, and the fit holds a :class:`NormalGammaPrior`.
        ``"exchangeable"``: one law for all arms of all tasks, as where arms are new in every task,
        and the fit holds an :class:`ExchangeableNormalGammaPrior`.
    arms
        Number of arms; by default that of the statistics, or the largest action of a run plus 1.
    regulariser
        Weight r of ``r / 2 * (log s (1 - s) + log t (1 - t))`` that is added to the log likelihood,
        with ``s = 1 / (1 + pulls)`` the correlation between two pulls of an arm in one task and ``t
        = 1 / (1 + shape)``. It decides only where the data do not: an arm whose means, or whose
        variances, do not differ between tasks has finite pulls, or shape. 0 is plain maximum
        likelihood.

    Notes
    -----
    Where plain maximum likelihood has no maximum in the interior, the fit says ``at_boundary``,
    whatever the regulariser, and why. Without a regulariser it then holds the limit that the
    likelihood points to (pulls or a shape of 1e6); and if the data do not even point to one (no
    task with two pulls of the arm, rewards that never differ) what the default regulariser gives.

    It takes about 20 tasks to show how variances differ between them. Large offsets of rewards
    leave few digits in their squares: subtract a number near their mean first.

    Examples
    --------
    >>> data = GaussianStatistics([[4], [4], [4]], [[4.0], [8.0], [1.0]], [[5.0], [20.0], [1.5]])
    >>> fit = NormalGammaMarginalLikelihood().fit(data)
    >>> fit.prior.mean.round(2).tolist(), fit.prior.pulls.round(2).tolist(), fit.at_boundary
    ([0.95], [1.67], True)

    """

    reads: ClassVar[type] = GaussianStatistics

    structure: Structure = field(default="separate", validator=Choice(Structure))
    arms: int | None = field(default=None, kw_only=True, validator=Count())
    regulariser: float = field(default=1.0, kw_only=True, validator=Number(0.0, cure=PLAIN))

    def for_tasks(self, known: KnownTasks) -> NormalGammaMarginalLikelihood:
        """Raise an error for tasks with features, or with other arms."""
        if known.features:
            raise ArgumentTypeError(
                "estimator",
                f"reads rewards of arms, but tasks of a {known.family} show features",
                cure="take an estimator for that prior",
            )
        known.check_arms(self, arms=self.arms)
        return evolve(self, arms=known.arms)

    def fit(self, data: Any, *, start: Any = None) -> PriorFit:
        """Fit a kept run of arms with real rewards, or :class:`GaussianStatistics` with squares;
        ``start`` is a fit or prior to begin from.
        """
        statistics = GaussianStatistics.of(data, arms=self.arms)
        arms = self._data(statistics)
        pulled = int(statistics.pulls.any(axis=1).sum())
        if pulled == 0:
            raise ArgumentError("data", "must have a task with a pull")
        begins = _starts(start, len(arms))
        fits = [
            fit_arm(each, self.regulariser, begin) for each, begin in zip(arms, begins, strict=True)
        ]
        found = np.array([parameters(each.at) for each in fits])  # (arm, parameter)
        errors = np.array([std_errors(each) for each in fits])
        prior: Any = NormalGammaPrior(*found.T)
        if self.structure == "exchangeable":
            prior, errors = ExchangeableNormalGammaPrior(*found[0].tolist()), errors[0]
        return PriorFit(
            prior,
            type(self).__name__,
            pulled,
            statistics.tasks - pulled,
            at_boundary=any(each.reason is not None for each in fits),
            converged=all(each.converged for each in fits),
            std_errors=dict(zip(NAMES, np.moveaxis(errors, -1, 0), strict=True)),
            log_likelihood=sum(each.log_likelihood for each in fits),
            iterations=max(each.iterations for each in fits),
            warnings=limits_in_words(
                [each.reason for each in fits], separate=self.structure == "separate"
            ),
            uncertainty=NormalGammaUncertainty(
                [each.centre for each in fits], [each.plausible for each in fits]
            ),
            statistics=statistics,
        )

    def _data(self, statistics: GaussianStatistics) -> list[ArmData]:
        """What each law is fitted to."""
        squares = statistics.squares
        if squares is None:
            raise ArgumentError(
                "squares", "are missing, without which the variance cannot be estimated"
            )
        columns = (statistics.pulls, statistics.sums, squares)
        if self.structure == "exchangeable":
            return [ArmData.of(*(each.ravel() for each in columns))]
        return [ArmData.of(*(each[:, arm] for each in columns)) for arm in range(statistics.arms)]


def _starts(start: Any, arms: int) -> Sequence[FloatArray | None]:
    """Where to begin, arm by arm."""
    if start is None:
        return [None] * arms
    prior = start.prior if isinstance(start, PriorFit) else start
    if not isinstance(prior, (NormalGammaPrior, ExchangeableNormalGammaPrior)):
        raise ArgumentTypeError(
            "start", "must be a fit or prior of normal-gamma arms", got=type(prior)
        )
    mean, pulls, shape, rate = (np.atleast_1d(getattr(prior, name)) for name in NAMES)
    at = np.stack([mean, np.log(pulls), np.log(shape), np.log(rate / shape)], axis=1)
    if arms == 1:
        at = at.mean(axis=0, keepdims=True)
    if len(at) not in (1, arms):
        raise ArgumentError("start", f"has {len(at)} arms, but the data have {arms}")
    return list(np.broadcast_to(at, (arms, 4)))
