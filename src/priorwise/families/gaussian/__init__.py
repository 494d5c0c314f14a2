"""Arms with a joint normal prior and normal rewards."""

from typing import Any, Final

import numpy as np

from priorwise.core.live import LiveDraws
from priorwise.core.types import FloatArray
from priorwise.families.gaussian.exchangeable import ExchangeableGaussianPrior
from priorwise.families.gaussian.prior import GaussianPrior
from priorwise.families.normal import PARTS
from priorwise.families.registry import Family, LazyImport, register

MOST_CORRELATED: Final = 40
"""Arms up to which a log is asked for all their correlations."""


def _blank(prior: GaussianPrior) -> GaussianPrior:
    """Mean 0 and the covariance of the noise: it weighs as much as one pull of each arm."""
    return prior.replaced(mean=np.zeros(prior.arms), cov=np.diag(prior.noise_var))


def _moments(prior: GaussianPrior) -> Any:
    from priorwise.families.gaussian.moments import GaussianMoments

    return GaussianMoments("full", noise_var=prior.noise_var, arms=prior.arms)


def _models(
    *,
    binary: bool,
    new_arms: bool,
    arms: int,
    context: int,
    asked: bool,
    noise_var: Any = None,
    **facts: Any,
) -> dict[str, Any]:
    from priorwise.families.gaussian.likelihood.estimator import GaussianMarginalLikelihood

    if context or (binary and not asked):
        return {}
    names = ("exchangeable",) if new_arms else ("full", "diagonal", "exchangeable")
    few = arms <= MOST_CORRELATED
    return {
        name: GaussianMarginalLikelihood(name, noise_var=noise_var)  # type: ignore[arg-type]
        for name in names
        if few or name != "full"
    }


def _information(prior: GaussianPrior, statistics: Any) -> tuple[FloatArray, FloatArray]:
    """``P = diag(pulls / v)`` and ``b = sums / v``."""
    statistics.check_noise(prior.noise_var, "the prior")
    precision = statistics.pulls / prior.noise_var
    return np.eye(prior.arms) * precision[:, None, :], statistics.sums / prior.noise_var


def _measure(prior: Any, statistics: Any) -> str:
    if statistics.squares is not None:
        return "densities of real rewards"
    return f"densities of mean rewards with noise variance {np.unique(prior.noise_var).tolist()}"


def _live(prior: GaussianPrior) -> LiveDraws:
    from priorwise.families.gaussian import tiles_live as kernels

    none = np.empty(0)
    p, n = kernels.At.pack(**prior._numbers, pool=0, contexts=none, worth=none)
    return LiveDraws(p, n, kernels.one, kernels.many)


GAUSSIAN = Family(
    name="gaussian",
    priors=(GaussianPrior, ExchangeableGaussianPrior),
    homes={
        "gaussian-statistics": "priorwise.families.gaussian.statistics",
        "gaussian-uncertainty": "priorwise.families.normal.likelihood.certainty",
        "moment-uncertainty": "priorwise.families.normal.totals",
    },
    statistics=LazyImport("priorwise.families.gaussian.statistics:GaussianStatistics"),
    blank=_blank,
    log_marginal=LazyImport(
        "priorwise.families.gaussian.likelihood.estimator:log_marginal_likelihood"
    ),
    measure=_measure,
    moments=_moments,
    models=_models,
    coordinates=LazyImport("priorwise.families.gaussian.coordinates:coordinates"),
    featured=LazyImport("priorwise.families.gaussian.likelihood.featured:regressed"),
    information=_information,
    rate=LazyImport("priorwise.families.gaussian.rates:rate"),
    covered=LazyImport("priorwise.families.gaussian.rates:covered"),
    live=_live,
    **PARTS,
)
register(GAUSSIAN)
