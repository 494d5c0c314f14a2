"""Log probability of what tasks saw under Beta priors."""

from __future__ import annotations

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.families.beta.exchangeable import ExchangeableBetaPrior
from priorwise.families.beta.likelihood.rising import log_rising
from priorwise.families.beta.prior import BetaPrior
from priorwise.families.beta.statistics import BetaStatistics


def log_marginal_likelihood(
    prior: BetaPrior | ExchangeableBetaPrior, statistics: BetaStatistics
) -> FloatArray:
    """Log probability of each task's rewards, given which arms were pulled, ``(task,)``: exact,
    whatever chose the arms.

    The rewards are a sequence of zeros and ones, so that there are no binomial coefficients.
    """
    arms = prior.for_arms(statistics.arms) if isinstance(prior, ExchangeableBetaPrior) else prior
    if arms.arms != statistics.arms:
        raise ValueError(
            f"the prior has {arms.arms} arms, but the statistics have {statistics.arms}"
        )
    total = np.zeros(statistics.tasks)
    for arm, (alpha, beta) in enumerate(zip(arms.alpha.tolist(), arms.beta.tolist(), strict=True)):
        s, n = statistics.successes[:, arm], statistics.pulls[:, arm]
        total += log_rising(alpha, s) + log_rising(beta, n - s) - log_rising(alpha + beta, n)
    return total
