"""Log likelihoods of candidates: what estimators of finite priors read of past tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.known import KnownTasks
from priorwise.core.runs import Run, Trajectory
from priorwise.core.statistics import PerTask, Steps, played, table, trajectory
from priorwise.core.types import FloatArray
from priorwise.families.finite.prior import FinitePrior


@final
@dataclass(frozen=True, eq=False, init=False, repr=False)
class FiniteStatistics(PerTask):
    """Log likelihood of each candidate task, ``(task, support)``; minus infinity where a candidate
    is excluded.
    """

    log_likelihood: FloatArray

    def __init__(self, log_likelihood: ArrayLike) -> None:
        """Check and freeze the table."""
        values = validation.numbers("log_likelihood", log_likelihood)
        excluded = np.isneginf(values)
        checked = table("log_likelihood", np.where(excluded, 0.0, values), (None, None))
        final_values = np.where(excluded, -np.inf, checked)
        final_values.setflags(write=False)
        object.__setattr__(self, "log_likelihood", final_values)

    @property
    def support(self) -> int:
        """Number of candidates."""
        return self.log_likelihood.shape[1]

    @classmethod
    def from_trajectory(
        cls, actions: ArrayLike, rewards: ArrayLike, candidates: FinitePrior
    ) -> Self:
        """Add up the log densities of actions and rewards ``(task, step)`` under each candidate of
        a prior's support.

        The prior's probabilities are not used. Densities are exact, normal ones with their
        constant, so that they can be compared with those of other families; noiseless rewards have
        probability 1 or 0.
        """
        if not isinstance(candidates, FinitePrior):
            raise TypeError(
                "candidates must be a FinitePrior, whose support and noise are used, got "
                f"{type(candidates).__name__}"
            )
        chosen, earned = trajectory(actions, rewards, candidates.arms)
        total = np.zeros((len(chosen), candidates.support))
        for step in range(chosen.shape[1]):
            total += candidates.log_likelihood(chosen[:, step], earned[:, step])
        if candidates.noise_var is not None:
            total -= 0.5 * np.log(2.0 * np.pi * candidates.noise_var)[chosen].sum(
                axis=1, keepdims=True
            )
        return cls(total)

    @classmethod
    def from_run(cls, run: Run, candidates: FinitePrior, *, steps: Steps = None) -> Self:
        """Read a kept run, or only its first ``steps`` pulls, or a slice of them."""
        actions, rewards, _ = played(run, steps)
        return cls.from_trajectory(actions, rewards, candidates)


def check_candidates(estimator: Any, candidates: FinitePrior, known: KnownTasks) -> None:
    """Refuse tasks that are none of the candidates: other arms, another noise, or a start with
    other means.
    """
    name = type(estimator).__name__
    known.check_arms(estimator, candidates=candidates.arms)
    if candidates.noise == "bernoulli":
        known.check_binary(estimator)
    if candidates.noise_var is not None:
        known.noise_for(estimator, candidates.noise_var, one_for_all=False)
    elif known.noise_var is not None:
        raise TypeError(
            f"{name} has candidates with noise={candidates.noise!r}, but rewards of a "
            f"{known.family} are normal: take an estimator "
            "for that prior, or candidates with noise='gaussian'"
        )
    means = getattr(known.start, "means", candidates.means)
    if not np.array_equal(means, candidates.means):
        raise ValueError(
            f"{name} has other candidates than the prior that the learner starts from: give both "
            "the same means"
        )


def read(prior: FinitePrior, played: Trajectory) -> FiniteStatistics:
    """Add up the log densities of played tasks under each candidate of a prior."""
    return FiniteStatistics.from_trajectory(played.actions, played.rewards, prior)
