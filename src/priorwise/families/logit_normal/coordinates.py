"""Coordinates of logit-normal priors."""

from priorwise.core.errors import ArgumentTypeError
from priorwise.families.logit_normal.exchangeable import ExchangeableLogitNormalPrior
from priorwise.families.logit_normal.prior import LogitNormalPrior
from priorwise.families.normal.coordinates import alike
from priorwise.fitting.coordinates import Coordinates


def coordinates(prior: LogitNormalPrior | ExchangeableLogitNormalPrior, arms: int) -> Coordinates:
    """An exchangeable prior among those with a correlation from 0; the likelihood of others is an
    approximation that no search should walk on.
    """
    if not isinstance(prior, ExchangeableLogitNormalPrior):
        raise ArgumentTypeError(
            "mixtures",
            "of logit-normal priors are learned for exchangeable arms only",
            cure="take LogitNormalMarginalLikelihood('exchangeable')",
        )
    law = prior.mean, prior.var, max(prior.correlation, 0.0)
    return alike(*law, ExchangeableLogitNormalPrior, least=0.0)
