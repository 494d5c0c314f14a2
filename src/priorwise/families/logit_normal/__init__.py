"""Bernoulli arms that move together: log odds with a joint normal prior."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from priorwise.core.live import LiveDraws
from priorwise.families.logit_normal.exchangeable import ExchangeableLogitNormalPrior
from priorwise.families.logit_normal.prior import LogitNormalPrior
from priorwise.families.registry import Family, LazyImport, register

MOST_ARMS: Final = 40
"""Arms up to which a log is fitted with any covariance."""
MOST_UNASKED: Final = 8
"""The same where nobody asked for this family: with many arms it takes minutes."""


def _blank(prior: LogitNormalPrior) -> LogitNormalPrior:
    """Independent arms with log odds of mean 0 and variance 3: near to uniform rates."""
    return prior.replaced(mean=np.zeros(prior.arms), cov=3.0 * np.eye(prior.arms))


def _models(
    *, binary: bool, new_arms: bool, arms: int, context: int, asked: bool, **facts: Any
) -> dict[str, Any]:
    from priorwise.families.logit_normal.likelihood.estimator import LogitNormalMarginalLikelihood

    names: tuple[str, ...] = ("exchangeable",) if new_arms else ("full", "diagonal", "exchangeable")
    if arms > MOST_ARMS:
        names = names[-1:]
    elif arms > MOST_UNASKED and not asked:
        names = tuple(name for name in names if name != "full")
    return {
        name: LogitNormalMarginalLikelihood(name)  # type: ignore[arg-type]
        for name in names
        if binary and not context
    }


def _measure(prior: Any, statistics: Any) -> str:
    return "probabilities of rewards 0 and 1"


def _live(prior: LogitNormalPrior) -> LiveDraws:
    from priorwise.families.logit_normal import tiles_live as kernels
    from priorwise.families.logit_normal.prior import packed

    return LiveDraws(*packed(prior.mean, prior._root), kernels.one, kernels.many)


LOGIT_NORMAL = register(
    Family(
        name="logit-normal",
        priors=(LogitNormalPrior, ExchangeableLogitNormalPrior),
        homes={
            "logit-normal-uncertainty": "priorwise.families.logit_normal.likelihood.uncertainty"
        },
        statistics=LazyImport("priorwise.families.beta.statistics:BetaStatistics"),
        blank=_blank,
        log_marginal=LazyImport(
            "priorwise.families.logit_normal.likelihood.estimator:log_marginal_likelihood"
        ),
        measure=_measure,
        models=_models,
        coordinates=LazyImport("priorwise.families.logit_normal.coordinates:coordinates"),
        featured=LazyImport("priorwise.families.logit_normal.likelihood.estimator:regressed"),
        density=LazyImport("priorwise.families.normal.density:of_rates"),
        pair=LazyImport("priorwise.families.normal.distance:GaussianPair.of"),
        posteriors=LazyImport(
            "priorwise.families.logit_normal.posteriors:LogitNormalPosteriors.start"
        ),
        parameters=("mean", "cov"),
        tail_conditions=LazyImport("priorwise.families.logit_normal.tails:tail_conditions"),
        diameter=LazyImport("priorwise.families.logit_normal.tails:diameter"),
        largest_diameter=LazyImport("priorwise.families.logit_normal.tails:largest_diameter"),
        live=_live,
    )
)
