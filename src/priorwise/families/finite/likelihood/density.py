"""Log density of what tasks saw under a prior on finitely many tasks."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from priorwise.core.types import FloatArray
from priorwise.families.finite.prior import FinitePrior
from priorwise.families.finite.statistics import FiniteStatistics


def log_marginal_likelihood(prior: FinitePrior, statistics: FiniteStatistics) -> FloatArray:
    """``log sum_s p_s L_ts``, ``(task,)``: exact, whatever chose the arms; minus infinity where no
    candidate fits.
    """
    if prior.support != statistics.support:
        raise ValueError(
            f"the prior has {prior.support} candidates, but the statistics have "
            f"{statistics.support}"
        )
    weights = np.broadcast_to(prior.probs, statistics.log_likelihood.shape)
    with np.errstate(divide="ignore"):
        return np.asarray(logsumexp(statistics.log_likelihood, axis=1, b=weights))
