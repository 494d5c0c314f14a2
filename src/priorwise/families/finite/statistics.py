"""Log likelihoods of candidates: what estimators of finite priors read of past tasks."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import serial, validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.trajectories import Trajectory
from priorwise.core.types import FloatArray
from priorwise.families.finite.prior import FinitePrior
from priorwise.fitting.columns import Pulls, Steps, table, trajectory
from priorwise.fitting.runs import Run
from priorwise.fitting.statistics import PerTask
from priorwise.fitting.task_facts import KnownTasks


@final
@dataclass(frozen=True, eq=False, init=False, repr=False)
class FiniteStatistics(PerTask):
    """Log likelihood of each candidate task; minus infinity where a candidate is excluded.

    Parameters
    ----------
    log_likelihood
        ``(task, support)``.
    candidates
        The prior whose support they are the likelihoods of; needed to observe more pulls.

    """

    family: ClassVar[str] = "finite-statistics"
    shared: ClassVar[tuple[str, ...]] = ("candidates",)

    log_likelihood: FloatArray
    candidates: FinitePrior | None

    def __init__(self, log_likelihood: ArrayLike, *, candidates: FinitePrior | None = None) -> None:
        """Check and freeze the table."""
        values = validation.numbers("log_likelihood", log_likelihood)
        excluded = np.isneginf(values)
        checked = table("log_likelihood", np.where(excluded, 0.0, values), (None, None))
        if candidates is not None and finite(candidates).support != checked.shape[1]:
            raise ArgumentError(
                "log_likelihood",
                f"has {checked.shape[1]} candidates, but candidates has {candidates.support}",
            )
        self._set(log_likelihood=np.where(excluded, -np.inf, checked), candidates=candidates)

    @classmethod
    def known(cls, prior: Any) -> dict[str, Any]:
        """The prior itself: its support, and the noise."""
        return {"candidates": prior}

    @classmethod
    def empty(cls, tasks: int, candidates: Any = None, **known: Any) -> Self:
        """Return the statistics of tasks before their first pull."""
        shape = (validation.count("tasks", tasks), finite(candidates).support)
        return cls(np.zeros(shape), candidates=candidates)

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
        chosen, earned = trajectory(actions, rewards, finite(candidates).arms)
        total = np.zeros((len(chosen), candidates.support))
        for step in range(chosen.shape[1]):
            total += candidates.log_likelihood(chosen[:, step], earned[:, step])
        if candidates.noise_var is not None:
            constants = np.log(2.0 * np.pi * candidates.noise_var)[chosen]
            total -= 0.5 * constants.sum(axis=1, keepdims=True)
        return cls(total, candidates=candidates)

    @classmethod
    def read(cls, played: Trajectory, *, candidates: Any = None, **known: Any) -> Self:
        """Add up the log densities of played tasks."""
        return cls.from_trajectory(played.actions, played.rewards, candidates)

    @classmethod
    def from_run(
        cls, run: Run, candidates: Any = None, *, steps: Steps = None, **known: Any
    ) -> Self:
        """Read a kept run, or only its first ``steps`` pulls, or a slice of them."""
        return super().from_run(run, steps=steps, candidates=candidates)

    def _check(self, *, candidates: Any = None, **known: Any) -> None:
        if self.support != candidates.support:
            raise ArgumentError(
                "statistics",
                f"must have the {candidates.support} candidates of the estimator",
                got=self.support,
            )
        self.check_about(candidates)

    def check_about(self, prior: FinitePrior) -> None:
        """Raise an error for likelihoods of other candidates than those of a prior, where they are
        known.
        """
        mine = self.candidates
        if mine is None or mine is prior:
            return
        alike = mine.noise == prior.noise and np.array_equal(mine.means, prior.means)
        ours, theirs = (np.array(each.noise_var, float) for each in (mine, prior))
        if not (alike and np.array_equal(ours, theirs, equal_nan=True)):
            raise ArgumentError(
                "statistics",
                "must be likelihoods of the prior's candidates, with their means and noise",
                cure="read the tasks with this prior",
            )

    def _add(self, columns: dict[str, Any], pulls: Pulls) -> None:
        if self.candidates is None:
            raise ArgumentError(
                "candidates",
                "are missing: these statistics cannot take in pulls without",
                cure="pass the finite prior whose support they are about",
            )
        pulls.check(self.candidates.arms)
        density = self.candidates.log_density(pulls.actions, pulls.rewards)
        columns["log_likelihood"][pulls.tasks] += density

    def _agreed(self, name: str, mine: Any, yours: Any) -> Any:
        """Candidates agree if they are the same tasks with the same noise, whatever their
        probabilities.
        """
        if mine is not None and yours is not None and mine.replaced(probs=yours.probs) != yours:
            raise ArgumentError(
                "candidates", "must agree, but have other means, noise or names there"
            )
        return yours if mine is None else mine

    def _fields(self) -> dict[str, Any]:
        content = super()._fields()
        return content | {"log_likelihood": serial.written(content["log_likelihood"], None)}

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Self:
        table = serial.unwritten("log_likelihood", fields["log_likelihood"])
        return super()._from_fields(fields | {"log_likelihood": table})


CANDIDATES: Final = "a FinitePrior, whose support and noise are used"


def finite(candidates: Any) -> FinitePrior:
    """Raise an error for what is no finite prior."""
    validation.instance("candidates", candidates, FinitePrior, CANDIDATES)
    return candidates


def check_candidates(estimator: Any, candidates: FinitePrior, known: KnownTasks) -> None:
    """Raise an error for tasks that are none of the candidates: other arms, another noise, or a
    start with other means.
    """
    name = type(estimator).__name__
    known.check_arms(estimator, candidates=candidates.arms)
    if candidates.noise == "bernoulli":
        known.check_binary(estimator)
    if candidates.noise_var is not None:
        known.noise_for(estimator, candidates.noise_var, one_for_all=False)
    elif known.noise_var is not None:
        raise ArgumentTypeError(
            name,
            f"has candidates with noise={candidates.noise!r}, but rewards of a {known.family} "
            "are normal",
            cure="take an estimator for that prior, or candidates with noise='gaussian'",
        )
    means = getattr(known.start, "means", candidates.means)
    if not np.array_equal(means, candidates.means):
        raise ArgumentError(
            name,
            "has other candidates than the prior that the learner starts from",
            cure="give both the same means",
        )
