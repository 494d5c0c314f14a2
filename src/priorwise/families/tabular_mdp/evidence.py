"""The likelihood of tasks under a prior: Dirichlet-multinomial moves, Beta-Bernoulli or normal
rewards.

With n_j moves of N to state j from a pair of state and action, whichever way actions were chosen,

    log P = sum_j log (alpha_j)_{n_j} - log (alpha_1 + alpha_2 + ...)_N

with rising factorials ``(x)_k = x (x + 1) ... (x + k - 1)``.

Moves are a sequence, so that there are no multinomial coefficients; resets have probability 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from priorwise.core.errors import ArgumentError
from priorwise.core.types import FloatArray
from priorwise.families.beta.likelihood.rising import log_rising
from priorwise.families.tabular_mdp.prior import DirichletMdpPrior
from priorwise.families.tabular_mdp.rewards import (
    BernoulliRewardPrior,
    NormalRewardPrior,
    RewardModel,
)


def log_marginal(prior: DirichletMdpPrior, statistics: Any) -> FloatArray:
    """Log density of each task's moves and rewards given its actions, ``(task,)``; minus infinity
    for what the prior rules out.
    """
    if (prior.states, prior.arms) != (statistics.states, statistics.arms):
        raise ArgumentError(
            "statistics",
            f"must have the {prior.states} states and {prior.arms} actions of the prior",
            got=(statistics.states, statistics.arms),
        )
    moves = statistics.moves.astype(np.int64)
    total = _rewards(prior.reward_model, statistics)
    total[(moves[:, ~prior.possible] > 0).any(axis=1)] = -np.inf
    for state, action in np.ndindex(prior.states, prior.arms):
        alpha, seen = prior.transitions[state, action], moves[:, state, action]
        places = np.flatnonzero(alpha)
        if places.size > 1:
            total -= log_rising(float(alpha.sum()), seen.sum(axis=1))
            for j in places:
                total += log_rising(float(alpha[j]), seen[:, j])
    return total


def _rewards(model: RewardModel, statistics: Any) -> FloatArray:
    """Log density of the rewards, ``(task,)``."""
    n, sums, squares = statistics.pulls, statistics.sums, statistics.squares
    tasks = len(n)
    if isinstance(model, BernoulliRewardPrior):
        s, k = sums.astype(np.int64), n.astype(np.int64)
        out = np.zeros(tasks)
        for place in np.ndindex(model.alpha.shape):
            a, b = float(model.alpha[place]), float(model.beta[place])
            at = (slice(None), *place)
            out += log_rising(a, s[at]) + log_rising(b, k[at] - s[at]) - log_rising(a + b, k[at])
        return out
    if isinstance(model, NormalRewardPrior):
        mean, noise = sums / np.maximum(n, 1.0), model.noise_var
        within = np.maximum(squares - n * mean**2, 0.0)
        each = n * np.log(2.0 * np.pi * noise) + np.log1p(n * model.var / noise) + within / noise
        each = each + n * (mean - model.mean) ** 2 / (noise + n * model.var)
        return np.asarray(-0.5 * each.reshape(tasks, -1).sum(axis=1))
    known = np.isclose(sums, n * model.means, rtol=1e-9, atol=1e-9 * (1.0 + np.abs(model.means)))
    return np.where(known.reshape(tasks, -1).all(axis=1), 0.0, -np.inf)
