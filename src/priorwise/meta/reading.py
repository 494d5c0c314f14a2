"""From what was played to what estimators read. A trajectory does not say how many arms there were; a learner knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from priorwise.meta.beta_likelihood import BetaMarginalLikelihood
from priorwise.meta.fit import Estimator
from priorwise.meta.gaussian_likelihood import GaussianMarginalLikelihood
from priorwise.meta.learner import as_run
from priorwise.meta.linear_likelihood import LinearMarginalLikelihood
from priorwise.meta.moments_beta import BetaMoments
from priorwise.meta.moments_gaussian import GaussianMoments
from priorwise.meta.moments_linear import LinearMoments
from priorwise.meta.statistics import BetaStatistics, FiniteStatistics, GaussianStatistics, LinearStatistics
from priorwise.priors.beta import BetaPrior
from priorwise.priors.exchangeable import ExchangeableBetaPrior, ExchangeableGaussianPrior
from priorwise.priors.finite import FinitePrior
from priorwise.priors.gaussian import GaussianPrior
from priorwise.priors.linear import LinearGaussianPrior
from priorwise.simulate.results import Run, Trajectory


def _gaussian(played: Trajectory, arms: int) -> GaussianStatistics:
    return GaussianStatistics.from_trajectory(played.actions, played.rewards, arms=arms)


def _beta(played: Trajectory, arms: int) -> BetaStatistics:
    return BetaStatistics.from_trajectory(played.actions, played.rewards, arms=arms)


def _linear(played: Trajectory) -> LinearStatistics:
    if played.log is None:
        raise ValueError("these tasks have no features: they do not come from a linear contextual bandit")
    return LinearStatistics.from_trajectory(played.log, played.rewards)


_READERS: Final[dict[type, Callable[[Any, Trajectory], Any]]] = {
    GaussianPrior: lambda prior, played: _gaussian(played, prior.arms),
    BetaPrior: lambda prior, played: _beta(played, prior.arms),
    LinearGaussianPrior: lambda prior, played: _linear(played),
    FinitePrior: lambda prior, played: FiniteStatistics.from_trajectory(played.actions, played.rewards, prior),
}


def has_statistics(name: str, prior: Any) -> None:
    """Refuse a prior whose family has no statistics."""
    if type(prior) not in _READERS:
        known = ", ".join(each.__name__ for each in _READERS)
        raise TypeError(f"{name} must be a prior whose statistics are known ({known}), got a {type(prior).__name__}")


def statistics(prior: Any, played: Trajectory) -> Any:
    """Sufficient statistics of tasks for the family of a prior, with its number of arms (or features, or candidates)."""
    has_statistics("prior", prior)
    return _READERS[type(prior)](prior, played)


def data_for(estimator: Estimator, played: Trajectory, *, arms: int) -> Any:
    """What an estimator reads of an exploration with so many arms, whether or not all of them were pulled.

    Statistics for estimators of one law an arm; moment estimators get the pulls that they read of a run. A kept run for all
    others: their priors know the arms, and only a run shows which were pulled.
    """
    if isinstance(estimator, GaussianMoments):
        return _gaussian(_first_pulls(played, estimator.steps), arms)
    if isinstance(estimator, GaussianMarginalLikelihood):
        return _gaussian(played, arms)
    if isinstance(estimator, BetaMoments):
        return _beta(_first_pulls(played, estimator.steps), arms)
    return _beta(played, arms) if isinstance(estimator, BetaMarginalLikelihood) else as_run(played)


def run_for(estimator: Estimator, run: Run, *, arms: int) -> Any:
    """Do the same with a kept run, which estimators that read runs get as it is."""
    if run.trajectory is None:
        raise ValueError("trajectories were not kept: call simulate(..., keep=True)")
    data = data_for(estimator, run.trajectory, arms=arms)
    return run if isinstance(data, Run) else data


def _first_pulls(played: Trajectory, steps: int | None) -> Trajectory:
    log = None if played.log is None else played.log[:, :steps]
    return Trajectory(played.actions[:, :steps], played.rewards[:, :steps], log)


def with_arms(prior: Any, arms: int) -> Any:
    """Return a prior of exchangeable arms for this many of them, others as they are."""
    return prior.for_arms(arms) if isinstance(prior, (ExchangeableBetaPrior, ExchangeableGaussianPrior)) else prior


def check_estimator(estimator: Any) -> None:
    """Refuse what cannot fit."""
    if isinstance(estimator, type):
        raise TypeError(f"estimator must be an estimator, not the class {estimator.__name__}: pass {estimator.__name__}(...)")
    if not callable(getattr(estimator, "fit", None)):
        raise TypeError(f"estimator must have a method fit(data, start=...), but {type(estimator).__name__} has none")


def check_noise(estimator: Any, held: Any) -> None:
    """Refuse an estimator that takes for known another variance of rewards than what is held before its first fit."""
    if not isinstance(estimator, (GaussianMarginalLikelihood, GaussianMoments, LinearMarginalLikelihood, LinearMoments)):
        return
    known, actual = estimator.noise_var, getattr(held, "noise_var", None)
    if known is None or isinstance(known, str) or actual is None:
        return
    if np.ndim(known) and np.shape(known) != np.shape(actual):
        raise ValueError(f"estimator has a noise_var for {np.size(known)} arms, but there are {np.size(actual)}")
    if not np.allclose(known, actual, rtol=1e-9, atol=0.0):
        given, needed = (np.unique(np.asarray(each)).tolist() for each in (known, actual))
        raise ValueError(
            f"estimator takes the variance of a reward to be {given}, but it is {needed} in what is held before the first fit: "
            "pass noise_var=... to the estimator, or let the learner start from a prior with the noise that you mean"
        )
