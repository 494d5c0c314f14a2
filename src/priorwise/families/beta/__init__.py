"""Independent Bernoulli arms with Beta priors."""

from typing import Any

import numpy as np

from priorwise.core.live import LiveDraws
from priorwise.families.beta.exchangeable import ExchangeableBetaPrior
from priorwise.families.beta.prior import BetaPrior
from priorwise.families.registry import Family, LazyImport, register


def _blank(prior: BetaPrior) -> BetaPrior:
    """Beta(1, 1) for each arm."""
    return prior.replaced(alpha=np.ones(prior.arms), beta=np.ones(prior.arms))


def _moments(prior: BetaPrior) -> Any:
    from priorwise.families.beta.moments import BetaMoments

    return BetaMoments(arms=prior.arms)


def _models(*, binary: bool, new_arms: bool, context: int, **facts: Any) -> dict[str, Any]:
    from priorwise.families.beta.likelihood.estimator import BetaMarginalLikelihood

    names = ("exchangeable",) if new_arms else ("separate", "exchangeable")
    return {name: BetaMarginalLikelihood(name) for name in names if binary and not context}  # type: ignore[arg-type]


def _live(prior: BetaPrior) -> LiveDraws:
    from priorwise.families.beta import tiles_live as kernels

    none = np.zeros(1)
    p, n = kernels.At.pack(arms=prior.arms, alpha=prior.alpha, beta=prior.beta, inverse=none)
    return LiveDraws(p, n, kernels.one, kernels.many, kernels.drawn)


BETA = Family(
    name="beta",
    priors=(BetaPrior, ExchangeableBetaPrior),
    homes={
        "beta-statistics": "priorwise.families.beta.statistics",
        "beta-moment-uncertainty": "priorwise.families.beta.moments",
        "beta-uncertainty": "priorwise.families.beta.likelihood.estimator",
    },
    statistics=LazyImport("priorwise.families.beta.statistics:BetaStatistics"),
    blank=_blank,
    log_marginal=LazyImport("priorwise.families.beta.likelihood.arm:log_marginal_likelihood"),
    measure=lambda prior, statistics: "probabilities of rewards 0 and 1",
    moments=_moments,
    models=_models,
    widened=LazyImport("priorwise.families.beta.moments:averaged"),
    rate=LazyImport("priorwise.families.beta.moments:rate"),
    covered=LazyImport("priorwise.families.beta.moments:covered"),
    coordinates=LazyImport("priorwise.families.beta.coordinates:coordinates"),
    density=LazyImport("priorwise.families.beta.density:density"),
    pair=LazyImport("priorwise.families.beta.distance:BetaPair.of"),
    posteriors=LazyImport("priorwise.families.beta.distance:BetaPosteriors.start"),
    parameters=("alpha", "beta"),
    tail_conditions=LazyImport("priorwise.families.beta.tails:tail_conditions"),
    diameter=LazyImport("priorwise.families.beta.tails:diameter"),
    largest_diameter=LazyImport("priorwise.families.beta.tails:largest_diameter"),
    live=_live,
)
register(BETA)
