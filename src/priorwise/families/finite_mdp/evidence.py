"""How likely counted moves and summed rewards are under each candidate, and under a prior."""

from __future__ import annotations

from typing import Any

import numpy as np

from priorwise.core.errors import ArgumentError
from priorwise.core.types import FloatArray
from priorwise.families.finite_mdp.prior import FiniteMdpPrior


def likelihood_of(prior: FiniteMdpPrior, statistics: Any) -> FloatArray:
    """Log likelihood of each candidate given counted moves and summed rewards, ``(task,
    candidate)``.
    """
    from scipy.special import xlog1py, xlogy

    if statistics.states != prior.states:
        raise ArgumentError(
            "statistics", f"must have the {prior.states} states of the prior", got=statistics.states
        )
    tasks = statistics.tasks
    total = np.zeros((tasks, prior.support))
    n, sums, squares = statistics.pulls, statistics.sums, statistics.squares
    for c in range(prior.support):
        means = prior.rewards[c]
        if prior.noise == "bernoulli":
            found = xlogy(sums, means) + xlog1py(n - sums, -means)
        else:  # sum (r - m)^2 is 0 but for rounding
            apart = squares - 2.0 * means * sums + n * means**2
            same = apart <= n * np.maximum(prior.tolerance**2, 1e-13 * means**2)
            found = np.where(same, 0.0, -np.inf)
        moved = xlogy(statistics.moves, prior.transitions[c])
        total[:, c] = found.sum(axis=(1, 2)) + moved.sum(axis=(1, 2, 3))
    return total


def log_marginal_likelihood(prior: FiniteMdpPrior, statistics: Any) -> FloatArray:
    """``log sum_c p_c L_c``: log probability of each task's moves and rewards given its actions,
    ``(task,)``.
    """
    from scipy.special import logsumexp

    with np.errstate(divide="ignore"):
        start = np.log(prior.probs / prior.probs.sum())
    return np.asarray(logsumexp(start + likelihood_of(prior, statistics), axis=1))
