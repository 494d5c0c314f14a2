"""Coordinates of normal priors, given their noise."""

from priorwise.families.gaussian.exchangeable import ExchangeableGaussianPrior
from priorwise.families.gaussian.prior import GaussianPrior
from priorwise.families.normal.coordinates import alike, joint
from priorwise.fitting.coordinates import Coordinates


def coordinates(prior: GaussianPrior | ExchangeableGaussianPrior, arms: int) -> Coordinates:
    """The prior among those with its noise, for tasks with this many arms; independent arms stay
    independent.
    """
    if isinstance(prior, ExchangeableGaussianPrior):
        least = -1.0 / (arms - 1) if arms > 1 else -1.0
        noise = prior.noise_var
        return alike(
            prior.mean,
            prior.var,
            prior.correlation,
            lambda mean, var, c: ExchangeableGaussianPrior(mean, var, c, noise),
            least=least,
        )
    return joint(prior.mean, prior.cov, lambda mean, cov: prior.replaced(mean=mean, cov=cov))
