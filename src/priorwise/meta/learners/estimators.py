"""What learners ask of an estimator: that it fits, that it takes the noise for what it is, and which data it reads."""

from __future__ import annotations

from typing import Any

import numpy as np

from priorwise.meta.fit import Estimator
from priorwise.meta.likelihood.beta.estimator import BetaMarginalLikelihood
from priorwise.meta.likelihood.gaussian.estimator import GaussianMarginalLikelihood
from priorwise.meta.likelihood.linear.estimator import LinearMarginalLikelihood
from priorwise.meta.moments.beta import BetaMoments
from priorwise.meta.moments.gaussian import GaussianMoments
from priorwise.meta.moments.linear import LinearMoments
from priorwise.meta.statistics.episodes import as_run
from priorwise.meta.statistics.reading import beta_statistics, gaussian_statistics
from priorwise.simulate.results import Run, Trajectory


def data_for(estimator: Estimator, played: Trajectory, *, arms: int) -> Any:
    """What an estimator reads of an exploration with so many arms, whether or not all of them were pulled.

    Statistics for estimators of one law an arm; moment estimators get the pulls that they read of a run. A kept run for all
    others: their priors know the arms, and only a run shows which were pulled.
    """
    if isinstance(estimator, GaussianMoments):
        return gaussian_statistics(_first_pulls(played, estimator.steps), arms)
    if isinstance(estimator, GaussianMarginalLikelihood):
        return gaussian_statistics(played, arms)
    if isinstance(estimator, BetaMoments):
        return beta_statistics(_first_pulls(played, estimator.steps), arms)
    return beta_statistics(played, arms) if isinstance(estimator, BetaMarginalLikelihood) else as_run(played)


def run_for(estimator: Estimator, run: Run, *, arms: int) -> Any:
    """Do the same with a kept run, which estimators that read runs get as it is."""
    if run.trajectory is None:
        raise ValueError("trajectories were not kept: call simulate(..., keep=True)")
    data = data_for(estimator, run.trajectory, arms=arms)
    return run if isinstance(data, Run) else data


def _first_pulls(played: Trajectory, steps: int | None) -> Trajectory:
    log = None if played.log is None else played.log[:, :steps]
    return Trajectory(played.actions[:, :steps], played.rewards[:, :steps], log)


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
