"""Mixtures of priors of any families."""

from typing import Any

from priorwise.families.mixture.exchangeable import ExchangeableMixturePrior
from priorwise.families.mixture.prior import MixturePrior
from priorwise.families.registry import Family, LazyImport, family_for, register


def _blank(prior: MixturePrior) -> Any:
    """The vague prior of the likeliest component's family."""
    part = prior.components[int(prior.probs.argmax())]
    return family_for(part, "a mixture").blank(part)


MIXTURE = Family(
    name="mixture",
    priors=(MixturePrior, ExchangeableMixturePrior),
    homes={
        "mixture-statistics": "priorwise.families.mixture.statistics",
        "mixture-uncertainty": "priorwise.families.mixture.likelihood.uncertainty",
    },
    statistics=LazyImport("priorwise.families.mixture.statistics:MixtureStatistics"),
    blank=_blank,
    log_marginal=LazyImport("priorwise.families.mixture.statistics:log_marginal"),
    measure=LazyImport("priorwise.families.mixture.statistics:measure"),
    pair=LazyImport("priorwise.families.mixture.distance:pair"),
    tail_conditions=LazyImport("priorwise.families.mixture.tails:tail_conditions"),
    diameter=LazyImport("priorwise.families.mixture.tails:diameter"),
    largest_diameter=LazyImport("priorwise.families.mixture.tails:largest_diameter"),
)
register(MIXTURE)
