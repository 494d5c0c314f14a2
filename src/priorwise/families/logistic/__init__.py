"""Bernoulli rewards whose log odds are linear in features."""

from typing import Any

import numpy as np

from priorwise.families.logistic.prior import VAGUE_VAR, LogisticPrior
from priorwise.families.registry import Family, LazyImport, register


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
        statistics=LazyImport("priorwise.families.logistic.statistics:LogisticStatistics"),
        blank=_blank,
        log_marginal=LazyImport("priorwise.families.logistic.evidence:log_marginal"),
        measure=_measure,
        density=LazyImport("priorwise.families.normal.density:of_weights"),
        pair=LazyImport("priorwise.families.normal.distance:GaussianPair.of"),
        posteriors=LazyImport("priorwise.families.logistic.posteriors:LogisticPosteriors.start"),
        parameters=("mean", "cov"),
        tail_conditions=LazyImport("priorwise.families.logistic.tails:tail_conditions"),
        largest_diameter=LazyImport("priorwise.families.logistic.tails:largest_diameter"),
    )
)
