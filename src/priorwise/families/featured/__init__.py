"""Priors whose mean is linear in features of tasks, of any family that has such a regression."""

from priorwise.families.featured.prior import FeaturedPrior
from priorwise.families.registry import Family, LazyImport, register

FEATURED: Family[FeaturedPrior] = Family(
    name="featured",
    priors=(FeaturedPrior,),
    homes={
        "task-features": "priorwise.families.featured.features",
        "featured-statistics": "priorwise.families.featured.statistics",
        "featured-uncertainty": "priorwise.families.featured.uncertainty",
        "uncertainty-at-features": "priorwise.families.featured.uncertainty",
    },
    statistics=LazyImport("priorwise.families.featured.statistics:FeaturedStatistics"),
    log_marginal=LazyImport("priorwise.families.featured.statistics:log_marginal"),
    measure=LazyImport("priorwise.families.featured.statistics:measure"),
)
register(FEATURED)
