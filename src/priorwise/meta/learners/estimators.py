"""What learners ask of an estimator: that it fits, and which data it reads."""

from __future__ import annotations

from typing import Any

from priorwise.core.episodes import as_run
from priorwise.core.fits import Estimator
from priorwise.core.runs import Run, Trajectory
from priorwise.families.beta.likelihood.estimator import BetaMarginalLikelihood
from priorwise.families.beta.moments import BetaMoments
from priorwise.families.gaussian.likelihood.estimator import GaussianMarginalLikelihood
from priorwise.families.gaussian.moments import GaussianMoments
from priorwise.meta.reading import beta_statistics, gaussian_statistics, statistics_kind


def data_for(estimator: Estimator, played: Trajectory, *, arms: int) -> Any:
    """What an estimator reads of an exploration with so many arms, whether or not all of them were
    pulled.

    Statistics for estimators of one law per arm; moment estimators get the pulls that they read of
    a run. A kept run for all others: their priors know the arms, and only a run shows which were
    pulled.
    """
    if isinstance(estimator, GaussianMoments):
        return gaussian_statistics(_first_pulls(played, estimator.steps), arms)
    if isinstance(estimator, GaussianMarginalLikelihood):
        return gaussian_statistics(played, arms)
    if isinstance(estimator, BetaMoments):
        return beta_statistics(_first_pulls(played, estimator.steps), arms)
    return (
        beta_statistics(played, arms)
        if isinstance(estimator, BetaMarginalLikelihood)
        else as_run(played)
    )


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
        raise TypeError(
            f"estimator must be an estimator, not the class {estimator.__name__}: pass "
            f"{estimator.__name__}(...)"
        )
    if not callable(getattr(estimator, "fit", None)):
        raise TypeError(
            f"estimator must have a method fit(data, start=...), but {type(estimator).__name__} "
            "has none"
        )


def check_reads(estimator: Any, start: Any) -> None:
    """Refuse an estimator that reads other statistics than those of the prior that a learner starts
    from.
    """
    kind, reads = statistics_kind("start", start), getattr(estimator, "reads", None)
    if reads is not None and reads is not kind:
        raise TypeError(
            f"{type(estimator).__name__} reads {reads.__name__}, but a learner that starts from a "
            f"{type(start).__name__} gathers "
            f"{kind.__name__}: take an estimator for that prior, or pass a start for the estimator"
        )
