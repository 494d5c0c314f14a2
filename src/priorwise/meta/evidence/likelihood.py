"""How well a prior predicts whole tasks.

The policy's choices do not depend on the prior's parameters given what it saw, so they drop out;
the likelihood of a task is that of its rewards given its actions. Densities are exact, with their
constants.
"""

from typing import Any

from priorwise.core.types import FloatArray
from priorwise.families.registry import family_for, statistics_of


def log_marginal_likelihood(prior: Any, statistics: Any) -> FloatArray:
    """Log density of each task's rewards given its actions under a prior, ``(task,)``; minus
    infinity where the prior rules them out.

    ``statistics`` are those of the prior's family, or a kept run, or its trajectory.

    * normal, linear: ``r ~ N(X mean, diag(v) + X cov X')``
    * Beta: ``sum_a log B(alpha_a + s_a, beta_a + n_a - s_a) / B(alpha_a, beta_a)``
    * finite: ``log sum_s probs_s prod_h p(r_h given s, a_h)``
    * mixture: ``log sum_k probs_k p_k``
    """
    tool = "log_marginal_likelihood"
    density = family_for(prior, tool).log_marginal
    return density(prior, statistics_of(prior, statistics, tool))
