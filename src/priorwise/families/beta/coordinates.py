"""Coordinates of Beta priors: log odds of the mean and log concentration of each law."""

from typing import Any, Final

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.families.beta.exchangeable import ExchangeableBetaPrior
from priorwise.families.beta.likelihood.arm import alpha_beta
from priorwise.families.beta.prior import BetaPrior
from priorwise.fitting.coordinates import Coordinates

FAR: Final = 3.0
"""A long way: a factor of 20."""


def coordinates(prior: BetaPrior | ExchangeableBetaPrior, arms: int) -> Coordinates:
    """All means, then all concentrations; one of each for exchangeable arms."""
    alpha, beta = np.atleast_1d(prior.alpha), np.atleast_1d(prior.beta)

    def made(x: FloatArray) -> Any:
        laws = np.array([alpha_beta(at) for at in x.reshape(2, -1).T]).T
        if isinstance(prior, ExchangeableBetaPrior):
            return ExchangeableBetaPrior(*laws[:, 0].tolist())
        return prior.replaced(alpha=laws[0], beta=laws[1])

    x = np.concatenate([np.log(alpha / beta), np.log(alpha + beta)])
    return Coordinates(x, np.full(x.shape, FAR), made, ("alpha", "beta"))
