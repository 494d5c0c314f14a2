"""Which marginal likelihood a prior has, and which statistics it reads: one entry per family."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from priorwise.core.runs import Run
from priorwise.core.statistics import PerTask
from priorwise.core.types import FloatArray
from priorwise.families.beta.exchangeable import ExchangeableBetaPrior
from priorwise.families.beta.likelihood import density as beta
from priorwise.families.beta.prior import BetaPrior
from priorwise.families.beta.statistics import BetaStatistics
from priorwise.families.finite.likelihood import density as finite
from priorwise.families.finite.prior import FinitePrior
from priorwise.families.finite.statistics import FiniteStatistics
from priorwise.families.gaussian.exchangeable import ExchangeableGaussianPrior
from priorwise.families.gaussian.likelihood import density as gaussian
from priorwise.families.gaussian.prior import GaussianPrior
from priorwise.families.gaussian.statistics import GaussianStatistics
from priorwise.families.linear.likelihood import density as linear
from priorwise.families.linear.prior import LinearGaussianPrior
from priorwise.families.linear.statistics import LinearStatistics


def log_marginal_likelihood(prior: Any, statistics: Any) -> FloatArray:
    """Log density of each task's rewards given its actions under a prior, ``(task,)``; see the
    function of the prior's family.
    """
    family = _family(prior)
    if isinstance(statistics, Run):
        statistics = family.read(prior, statistics)
    if not isinstance(statistics, family.reads):
        wanted = f"a kept Run or {family.reads.__name__}"
        raise TypeError(
            f"statistics must be {wanted} for a {type(prior).__name__}, got "
            f"{type(statistics).__name__}"
        )
    return family.likelihood(prior, statistics)


def all_pulls(prior: Any, run: Run) -> PerTask:
    """Statistics of all pulls of a kept run, as the likelihood of the prior's family reads them."""
    return _family(prior).read(prior, run)


@dataclass(frozen=True)
class _Family:
    """What a family of priors can do with a task."""

    reads: type[PerTask]
    likelihood: Callable[[Any, Any], FloatArray]
    read: Callable[[Any, Run], PerTask]  # prior and kept run to statistics of all pulls


def _arms(prior: Any, run: Run) -> int:
    exchangeable = isinstance(prior, (ExchangeableBetaPrior, ExchangeableGaussianPrior))
    return int(run.actions.max()) + 1 if exchangeable else int(prior.arms)


_GAUSSIAN: Final = _Family(
    GaussianStatistics,
    gaussian.log_marginal_likelihood,
    lambda prior, run: GaussianStatistics.from_run(run, arms=_arms(prior, run)),
)
_BETA: Final = _Family(
    BetaStatistics,
    beta.log_marginal_likelihood,
    lambda prior, run: BetaStatistics.from_run(run, arms=_arms(prior, run)),
)
_FAMILIES: Final = {
    GaussianPrior: _GAUSSIAN,
    ExchangeableGaussianPrior: _GAUSSIAN,
    BetaPrior: _BETA,
    ExchangeableBetaPrior: _BETA,
    LinearGaussianPrior: _Family(
        LinearStatistics,
        linear.log_marginal_likelihood,
        lambda _, run: LinearStatistics.from_run(run),
    ),
    FinitePrior: _Family(
        FiniteStatistics,
        finite.log_marginal_likelihood,
        lambda prior, run: FiniteStatistics.from_run(run, prior),
    ),
}


def _family(prior: Any) -> _Family:
    if type(prior) not in _FAMILIES:
        known = ", ".join(each.__name__ for each in _FAMILIES)
        raise TypeError(
            f"prior must be one whose marginal likelihood is known ({known}), got "
            f"{type(prior).__name__}"
        )
    return _FAMILIES[type(prior)]
