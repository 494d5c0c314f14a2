"""Finitely many possible tasks."""

from typing import Any

import numpy as np

from priorwise.families.finite.prior import FinitePrior
from priorwise.families.registry import Family, Later, register


def _blank(prior: FinitePrior) -> FinitePrior:
    """All possible tasks equally likely."""
    return prior.replaced(probs=np.full(prior.support, 1.0 / prior.support))


def _measure(prior: FinitePrior, statistics: Any) -> str:
    return {
        "none": "probabilities of noiseless rewards",
        "bernoulli": "probabilities of rewards 0 and 1",
        "gaussian": "densities of real rewards",
    }[prior.noise]


FINITE = Family(
    name="finite",
    priors=(FinitePrior,),
    homes={
        "finite-statistics": "priorwise.families.finite.statistics",
        "dirichlet-uncertainty": "priorwise.families.finite.counts",
        "simplex-uncertainty": "priorwise.families.finite.likelihood.estimator",
    },
    statistics=Later("priorwise.families.finite.statistics:FiniteStatistics"),
    blank=_blank,
    log_marginal=Later("priorwise.families.finite.likelihood.estimator:log_marginal_likelihood"),
    measure=_measure,
    moments=Later("priorwise.families.finite.counts:FiniteCounts"),
    widened=Later("priorwise.families.finite.counts:averaged"),
    pair=Later("priorwise.families.finite.distance:FinitePair.of"),
    posteriors=Later("priorwise.families.finite.distance:FinitePosteriors.start"),
    parameters=("probs",),
    tail_conditions=Later("priorwise.families.finite.distance:tail_conditions"),
    diameter=Later("priorwise.families.finite.distance:diameter"),
)
register(FINITE)
