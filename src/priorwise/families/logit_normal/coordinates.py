"""Coordinates of logit-normal priors."""

from dataclasses import replace

import numpy as np

from priorwise.core.errors import ArgumentTypeError
from priorwise.core.types import FloatArray
from priorwise.families.beta.statistics import BetaStatistics
from priorwise.families.logit_normal.exchangeable import ExchangeableLogitNormalPrior
from priorwise.families.logit_normal.likelihood.story import scored
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
    form = alike(*law, ExchangeableLogitNormalPrior, least=0.0)
    return replace(form, scored=_scored)


def _scored(
    prior: ExchangeableLogitNormalPrior, data: BetaStatistics
) -> tuple[FloatArray, FloatArray]:
    """With the standard deviations ``a = e^x sqrt(c)`` of the level and ``b = e^x sqrt(1 - c)`` of
    the deviations, and ``c = 1 / (1 + e^-y)``, the derivatives are ``d/dx = a d/da + b d/db`` and
    ``d/dy = ((1 - c) a d/da - c b d/db) / 2``.
    """
    c = prior.correlation
    values, slopes = scored(prior.mean, prior.var, c, data)
    by_mean, by_a, by_b = slopes.T * [
        [1.0],
        [np.sqrt(prior.var * c)],
        [np.sqrt(prior.var * (1.0 - c))],
    ]
    return values, np.stack([by_mean, by_a + by_b, ((1.0 - c) * by_a - c * by_b) / 2.0], axis=1)
