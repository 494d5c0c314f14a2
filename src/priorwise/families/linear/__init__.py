"""Linear rewards in features that are drawn afresh at each pull."""

from __future__ import annotations

from typing import Any

import numpy as np

from priorwise.core.family import Family, Later, register
from priorwise.families.linear.prior import LinearGaussianPrior


def _blank(prior: LinearGaussianPrior) -> LinearGaussianPrior:
    """Mean 0 and the variance of the noise for each weight."""
    return prior.replaced(mean=np.zeros(prior.dim), cov=prior.noise_var.mean() * np.eye(prior.dim))


def _measure(prior: LinearGaussianPrior, statistics: Any) -> str:
    return "densities of real rewards"


LINEAR = register(
    Family(
        name="linear",
        priors=(LinearGaussianPrior,),
        homes={
            "linear-uncertainty": "priorwise.families.linear.likelihood.certainty",
            "moment-uncertainty": "priorwise.families.normal.totals",
        },
        statistics=Later("priorwise.families.linear.statistics:LinearStatistics"),
        read=Later("priorwise.families.linear.statistics:read"),
        blank=_blank,
        log_marginal=Later("priorwise.families.linear.likelihood.density:log_marginal_likelihood"),
        measure=_measure,
        pair=Later("priorwise.families.normal.distance:GaussianPair.of"),
        posteriors=Later("priorwise.families.normal.posteriors:NormalPosteriors.start"),
        parameters=("mean", "cov"),
        tail_conditions=Later("priorwise.families.linear.tails:tail_conditions"),
        diameter=Later("priorwise.families.linear.tails:diameter"),
        largest_diameter=Later("priorwise.families.linear.tails:largest_diameter"),
    )
)
