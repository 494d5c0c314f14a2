"""Models of your own: any prior with a sampler, any law of rewards with a density."""

from typing import Any

from priorwise.families.particle.prior import ParticlePrior
from priorwise.families.registry import Family, LazyImport, register


def _measure(prior: ParticlePrior, statistics: Any) -> str:
    rewards = prior.reward_law.rewards
    if rewards is None:  # it may have atoms
        return "densities of rewards as log_density has them"
    return f"probabilities of rewards {' and '.join(f'{each:g}' for each in sorted(rewards))}"


PARTICLE = Family(
    name="particle",
    priors=(ParticlePrior,),
    homes={"particle-statistics": "priorwise.families.particle.statistics"},
    statistics=LazyImport("priorwise.families.particle.statistics:ParticleStatistics"),
    log_marginal=LazyImport("priorwise.families.particle.statistics:log_marginal"),
    measure=_measure,
    pair=LazyImport("priorwise.families.particle.distance:pair"),
    posteriors=LazyImport("priorwise.families.particle.distance:ParticlePosteriors.start"),
    tail_conditions=LazyImport("priorwise.families.particle.distance:tail_conditions"),
    diameter=LazyImport("priorwise.families.particle.distance:diameter"),
)
register(PARTICLE)
