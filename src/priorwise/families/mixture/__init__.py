"""Mixtures of priors of any families."""

from priorwise.core.family import Family, Later, register
from priorwise.families.mixture.prior import MixturePrior

MIXTURE = Family(
    name="mixture",
    priors=(MixturePrior,),
    homes={"mixture-statistics": "priorwise.families.mixture.statistics"},
    statistics=Later("priorwise.families.mixture.statistics:MixtureStatistics"),
    log_marginal=Later("priorwise.families.mixture.statistics:log_marginal"),
)
register(MIXTURE)
