"""Log density of what tasks saw under a normal prior over weights."""

from __future__ import annotations

import numpy as np

from priorwise.core import validation
from priorwise.core.types import FloatArray
from priorwise.families.linear.likelihood.model import LinearLikelihood, LinearTasks
from priorwise.families.linear.prior import LinearGaussianPrior
from priorwise.families.linear.statistics import LinearStatistics


def log_marginal_likelihood(prior: LinearGaussianPrior, statistics: LinearStatistics) -> FloatArray:
    """Log density of each task's rewards given the features of the pulled arms, ``(task,)``: exact,
    whatever chose the arms.

    ``log N(r; X m, X S X' + v I)`` from X'X, X'r and r'r. The noise must be the same for all arms.
    """
    if np.ptp(prior.noise_var) > 0:
        raise ValueError(
            "the prior's noise differs between arms, which sums over arms cannot tell apart; use "
            "one noise_var"
        )
    if prior.dim != statistics.dim:
        raise ValueError(
            f"the prior has {prior.dim} features, but the statistics have {statistics.dim}"
        )
    tasks = LinearTasks(statistics.gram, statistics.moments, statistics.squares, statistics.pulls)
    return LinearLikelihood(
        tasks, validation.square_root(prior.cov), float(prior.noise_var[0]), prior.mean
    ).by_task()
