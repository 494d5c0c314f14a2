"""Finitely many possible tasks."""

from typing import Any

import numpy as np

from priorwise.families.finite.prior import FinitePrior
from priorwise.families.registry import Family, LazyImport, register


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
    statistics=LazyImport("priorwise.families.finite.statistics:FiniteStatistics"),
    blank=_blank,
    log_marginal=LazyImport(
        "priorwise.families.finite.likelihood.estimator:log_marginal_likelihood"
    ),
    measure=_measure,
    moments=LazyImport("priorwise.families.finite.counts:FiniteCounts"),
    widened=LazyImport("priorwise.families.finite.counts:averaged"),
    pair=LazyImport("priorwise.families.finite.distance:FinitePair.of"),
    posteriors=LazyImport("priorwise.families.finite.distance:FinitePosteriors.start"),
    parameters=("probs",),
    tail_conditions=LazyImport("priorwise.families.finite.distance:tail_conditions"),
    diameter=LazyImport("priorwise.families.finite.distance:diameter"),
)
register(FINITE)
