"""How well a prior predicts: log marginal likelihoods of whole tasks, and log predictive densities
of single rewards.

The policy's choices do not depend on the prior's parameters given what it saw, so they drop out;
the likelihood of a task is that of its rewards given its actions. Densities are exact, with their
constants.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from scipy.special import logsumexp

from priorwise.core.protocols import Prior, Seen
from priorwise.core.runs import Trajectory
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.beta.prior import BetaBelief, BetaPrior
from priorwise.families.finite.prior import FiniteBelief, FinitePrior
from priorwise.families.gaussian.prior import GaussianBelief, GaussianPrior
from priorwise.families.linear.prior import LinearBelief, LinearGaussianPrior
from priorwise.meta.marginals import log_marginal_likelihood
from priorwise.meta.reading import statistics

NormalPrior = GaussianPrior | LinearGaussianPrior


def information(prior: NormalPrior, played: Trajectory) -> tuple[FloatArray, FloatArray]:
    """What each task says about its w: ``P = sum x x' / v``, ``(task, dim, dim)``, and ``b = sum x
    r / v``, ``(task, dim)``.

    The likelihood of w is proportional to ``exp(b'w - w'P w / 2)``; x is the feature vector of the
    chosen arm, for arms without features the unit vector of that arm, and v its noise variance. The
    law in ``prior`` is not read, only its noise.
    """
    x = _features(prior, played)
    weighted = x / prior.noise_var[played.actions][:, :, None]
    return weighted.transpose(0, 2, 1) @ x, np.einsum("tsj,ts->tj", weighted, played.rewards)


def _features(prior: NormalPrior, played: Trajectory) -> FloatArray:
    """Features of the chosen arms, ``(task, step, dim)``."""
    if isinstance(prior, LinearGaussianPrior):
        if played.log is None:
            raise ValueError(
                "these tasks have no features: they do not come from a linear contextual bandit"
            )
        return played.log
    return np.eye(prior.arms)[played.actions]


def log_marginal(prior: Any, played: Trajectory) -> FloatArray:
    """Log density of each task's rewards given its actions, ``(task,)``; -inf where the prior deems
    them impossible.

    * normal, linear: ``r ~ N(X mean, diag(v) + X cov X')``
    * Beta: ``sum_a log B(alpha_a + s_a, beta_a + n_a - s_a) / B(alpha_a, beta_a)``
    * finite: ``log sum_s probs_s prod_h p(r_h given s, a_h)``
    * mixture: ``log sum_k probs_k p_k``
    """
    return _lookup(_MARGINALS, prior)(prior, played)


def _by_statistics(prior: Any, played: Trajectory) -> FloatArray:
    return log_marginal_likelihood(prior, statistics(prior, played))


def _linear(prior: LinearGaussianPrior, played: Trajectory) -> FloatArray:
    """In units of each reward's noise, since sums over arms cannot tell noises apart: ``r / s_a ~
    N(x' w / s_a, 1)``.
    """
    scale = np.sqrt(prior.noise_var)[played.actions]
    scaled = Trajectory(
        played.actions, played.rewards / scale, _features(prior, played) / scale[:, :, None]
    )
    unit = LinearGaussianPrior(prior.mean, prior.cov, 1.0, prior.contexts)
    return _by_statistics(unit, scaled) - np.log(scale).sum(axis=1)


def log_predictive(belief: Any, seen: Seen, actions: IntArray, rewards: FloatArray) -> FloatArray:
    """Log density of the next reward of each task's action under its belief, ``(task,)``."""
    return _lookup(_PREDICTIVES, belief)(belief, seen, actions, rewards)


def _gaussian_next(
    belief: GaussianBelief, seen: Seen, actions: IntArray, rewards: FloatArray
) -> FloatArray:
    rows = np.arange(len(actions))
    f = belief.root[rows, actions]
    return _normal_density(
        rewards - belief.m[rows, actions],
        np.einsum("tj,tj->t", f, f) + belief.prior.noise_var[actions],
    )


def _linear_next(
    belief: LinearBelief, seen: Seen, actions: IntArray, rewards: FloatArray
) -> FloatArray:
    x = seen.signal[np.arange(len(actions)), actions]
    f = np.einsum("tij,ti->tj", belief.root, x)
    variance = np.einsum("tj,tj->t", f, f) + belief.prior.noise_var[actions]
    return _normal_density(rewards - np.einsum("tj,tj->t", x, belief.m), variance)


def _beta_next(
    belief: BetaBelief, seen: Seen, actions: IntArray, rewards: FloatArray
) -> FloatArray:
    rows = np.arange(len(actions))
    mean = (belief.a / (belief.a + belief.b))[rows, actions]
    return np.asarray(rewards * np.log(mean) + (1.0 - rewards) * np.log1p(-mean))


def _finite_next(
    belief: FiniteBelief, seen: Seen, actions: IntArray, rewards: FloatArray
) -> FloatArray:
    prior = belief.prior
    likelihood = prior.log_likelihood(actions, rewards)
    if prior.noise_var is not None:
        likelihood = likelihood - 0.5 * np.log(2.0 * np.pi * prior.noise_var[actions])[:, None]
    joint = logsumexp(belief.log_weights + likelihood, axis=1)
    return np.asarray(joint - logsumexp(belief.log_weights, axis=1))


def _normal_density(residual: FloatArray, variance: FloatArray) -> FloatArray:
    return np.asarray(-0.5 * (residual**2 / variance + np.log(2.0 * np.pi * variance)))


Marginal = Callable[[Any, Trajectory], FloatArray]
Predictive = Callable[[Any, Seen, IntArray, FloatArray], FloatArray]

_MARGINALS: Final[dict[type, Marginal]] = {
    GaussianPrior: _by_statistics,
    LinearGaussianPrior: _linear,
    BetaPrior: _by_statistics,
    FinitePrior: _by_statistics,
}
_PREDICTIVES: Final[dict[type, Predictive]] = {
    GaussianBelief: _gaussian_next,
    LinearBelief: _linear_next,
    BetaBelief: _beta_next,
    FiniteBelief: _finite_next,
}


def check_known(name: str, prior: Any) -> None:
    """Refuse a prior without a marginal likelihood."""
    try:
        _lookup(_MARGINALS, prior)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def register(prior: type[Prior], marginal: Marginal, belief: type, predictive: Predictive) -> None:
    """Add a family."""
    _MARGINALS[prior] = marginal
    _PREDICTIVES[belief] = predictive


def _lookup(table: dict[type, Any], value: Any) -> Any:
    if type(value) not in table:
        known = ", ".join(each.__name__ for each in table)
        raise TypeError(
            f"marginal likelihoods are known for {known}, not for a {type(value).__name__}; add it "
            "with "
            "priorwise.meta.evidence.predictive.register"
        )
    return table[type(value)]
