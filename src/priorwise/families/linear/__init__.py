"""Linear rewards in features that are drawn afresh at each pull."""

from typing import Any, Final

import numpy as np

from priorwise.core.errors import ArgumentError
from priorwise.core.types import FloatArray
from priorwise.families.linear.prior import LinearGaussianPrior
from priorwise.families.normal import PARTS
from priorwise.families.registry import Family, LazyImport, register


def _blank(prior: LinearGaussianPrior) -> LinearGaussianPrior:
    """Mean 0 and the variance of the noise for each weight."""
    return prior.replaced(mean=np.zeros(prior.dim), cov=prior.noise_var.mean() * np.eye(prior.dim))


def _moments(prior: LinearGaussianPrior) -> Any:
    from priorwise.families.linear.moments import LinearMoments

    if np.ptp(prior.noise_var) > 0.0:
        raise ArgumentError(
            "prior",
            "has a noise_var that differs between arms, which LinearMoments does not take",
            cure="pass estimator=...",
        )
    return LinearMoments(prior.contexts, float(prior.noise_var[0]))


def _information(prior: LinearGaussianPrior, statistics: Any) -> tuple[FloatArray, FloatArray]:
    """``P = sum x x' / v`` and ``b = sum x r / v``."""
    if statistics.noise_var is None and np.ptp(prior.noise_var) > 0.0:
        raise ArgumentError(
            "noise_var",
            "must be the same for all arms, as plain sums over arms cannot distinguish them",
            cure="read the tasks with noise_var=..., the variances of the arms",
        )
    noise = float(prior.noise_var[0])
    if statistics.noise_var is not None:
        if not np.array_equal(statistics.noise_var, prior.noise_var):
            raise ArgumentError("statistics", "must be in units of the prior's noise")
        noise = 1.0
    return statistics.gram / noise, statistics.moments / noise


def _models(*, context: int, contexts: Any, noise_var: Any = None, **facts: Any) -> dict[str, Any]:
    from priorwise.families.linear.likelihood.estimator import LinearMarginalLikelihood

    if not context:
        return {}
    if contexts is None:
        raise ArgumentError(
            "contexts",
            "say where the features of future tasks come from, such as "
            "contexts=SphereContexts(arms=6) or a table of each arm's features",
        )
    return {
        name: LinearMarginalLikelihood(contexts=contexts, structure=name, noise_var=noise_var)
        for name in ("full", "diagonal")
    }


OF_FEATURES: Final[dict[str, Any]] = {
    "density": LazyImport("priorwise.families.normal.density:of_weights"),
    "tail_conditions": LazyImport("priorwise.families.linear.tails:tail_conditions"),
    "largest_diameter": LazyImport("priorwise.families.linear.tails:largest_diameter"),
}
LINEAR = Family(
    name="linear",
    priors=(LinearGaussianPrior,),
    homes={
        "normal-contexts": "priorwise.families.linear.bilinear",
        "linear-statistics": "priorwise.families.linear.statistics",
        "linear-uncertainty": "priorwise.families.linear.likelihood.earlier",
    },
    statistics=LazyImport("priorwise.families.linear.statistics:LinearStatistics"),
    blank=_blank,
    log_marginal=LazyImport(
        "priorwise.families.linear.likelihood.estimator:log_marginal_likelihood"
    ),
    measure=lambda prior, statistics: "densities of real rewards",
    moments=_moments,
    models=_models,
    information=_information,
    **PARTS | OF_FEATURES,
)
register(LINEAR)
