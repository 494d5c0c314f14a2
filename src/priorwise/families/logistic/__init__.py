"""Bernoulli rewards whose log odds are linear in features."""

from typing import Any

import numpy as np

from priorwise.families.logistic.prior import VAGUE_VAR, LogisticPrior
from priorwise.families.registry import Family, Later, register


def _blank(prior: LogisticPrior) -> LogisticPrior:
    """Independent weights of mean 0 and variance 3."""
    return prior.replaced(mean=np.zeros(prior.dim), cov=VAGUE_VAR * np.eye(prior.dim))


def _measure(prior: Any, statistics: Any) -> str:
    return "probabilities of rewards 0 and 1"


LOGISTIC = register(
    Family(
        name="logistic",
        priors=(LogisticPrior,),
        homes={"logistic-statistics": "priorwise.families.logistic.statistics"},
        statistics=Later("priorwise.families.logistic.statistics:LogisticStatistics"),
        blank=_blank,
        log_marginal=Later("priorwise.families.logistic.evidence:log_marginal"),
        measure=_measure,
        density=Later("priorwise.families.normal.density:of_weights"),
        pair=Later("priorwise.families.normal.distance:GaussianPair.of"),
        posteriors=Later("priorwise.families.logistic.posteriors:LogisticPosteriors.start"),
        parameters=("mean", "cov"),
        tail_conditions=Later("priorwise.families.logistic.tails:tail_conditions"),
        largest_diameter=Later("priorwise.families.logistic.tails:largest_diameter"),
    )
)
