"""Log density of what tasks saw under a normal prior over weights."""

from __future__ import annotations

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.families.linear.prior import LinearGaussianPrior
from priorwise.families.linear.statistics import LinearStatistics
from priorwise.families.normal.likelihood.tasks import NormalTasks, Parameters


def log_marginal_likelihood(prior: LinearGaussianPrior, statistics: LinearStatistics) -> FloatArray:
    """Log density of each task's rewards given the features of the pulled arms, ``(task,)``: exact,
    whatever chose the arms.

    ``log N(r; X m, X S X' + v I)`` from X'X, X'r and r'r; v is 1 for sums in units of the noise,
    which a prior whose noise differs between arms needs.
    """
    weighted = statistics.noise_var is not None
    if not weighted and np.ptp(prior.noise_var) > 0:
        raise ValueError(
            "the prior's noise differs between arms, which sums over arms cannot tell apart; use "
            "one noise_var"
        )
    if prior.dim != statistics.dim:
        raise ValueError(
            f"the prior has {prior.dim} features, but the statistics have {statistics.dim}"
        )
    noise = 1.0 if weighted else float(prior.noise_var[0])
    pulls = statistics.pulls
    log_noise = 0.0 if statistics.log_noise is None else statistics.log_noise
    tasks = NormalTasks.of_features(statistics.gram, statistics.moments, statistics.squares, pulls)
    out = tasks.sums(
        Parameters(np.array(prior.mean), np.array(prior.cov), np.array([noise]))
    ).values
    seen = tasks.pulls > 0.0
    left = np.maximum(statistics.squares - (tasks.pulls * tasks.means**2).sum(axis=1), 0.0)
    freedom = pulls - seen.sum(axis=1)
    out -= 0.5 * (freedom * np.log(2.0 * np.pi * noise) + left / noise)
    return out - 0.5 * (np.log(np.where(seen, tasks.pulls, 1.0)).sum(axis=1) + log_noise)
