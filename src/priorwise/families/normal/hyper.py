"""The mean of a normal prior is unknown and itself normal, with the covariance within tasks known:
exact, by conjugacy (Kveton et al. 2021, Basu et al. 2021, Hong et al. 2022). So is the mean of a
fitted prior, which is widened by it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Self, final

import numpy as np
from attrs import field, frozen

from priorwise.core import argument_checks, validation
from priorwise.core.errors import ArgumentError
from priorwise.core.parameters import Array, Covariance, arrays
from priorwise.core.protocols import Environment
from priorwise.core.seen import Seen, Signal
from priorwise.core.streams import Stream
from priorwise.core.trajectories import Trajectory
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.registry import family_for, statistics_of, unseen
from priorwise.fitting.fits import PriorFit
from priorwise.theory.numerics import symmetric

BLOCK: Final = 1024  # tasks, or groups of them, whose matrices are held at once


@final
@frozen(eq=False, slots=False)
class GaussianHyperPrior:
    """Tasks are ``N(nu, task_cov)`` with an unknown mean ``nu ~ N(mean, cov)``; the noise is known.

    For arms with normal rewards, and for the weights of a linear contextual bandit.

    Parameters
    ----------
    mean
        Mean of the unknown mean, ``(dim,)``.
    cov
        Its covariance, ``(dim, dim)``.
    task_cov
        Covariance of the tasks around the unknown mean, ``(dim, dim)``.

    """

    mean: FloatArray = field(converter=arrays, validator=Array(("dim",)))
    cov: FloatArray = field(converter=arrays, validator=Covariance(("dim", "dim")))
    task_cov: FloatArray = field(converter=arrays, validator=Covariance(("dim", "dim")))

    def start(self, setting: Any) -> GaussianHyperPosterior:
        """Start at the hyper-prior."""
        blank = setting.blank
        family_for(blank, "GaussianHyperPrior").require("information")
        dim = self.mean.size
        if blank.mean.size != dim:
            raise ArgumentError(
                "hyper", f"must have {blank.mean.size} entries, as the tasks have", got=dim
            )
        return GaussianHyperPosterior(self, blank, np.zeros((dim, dim)), np.zeros(dim))


@final
@dataclass(frozen=True, eq=False)
class GaussianHyperPosterior:
    """``nu ~ N(m, V)`` given the tasks, kept as what they say about nu: likelihood ``exp(shift'nu -
    nu'precision nu / 2)``.
    """

    hyper: GaussianHyperPrior
    blank: Any  # a normal prior of the tasks, whose mean and covariance are not read
    precision: FloatArray  # (dim, dim)
    shift: FloatArray  # (dim,)

    def observe(self, played: Trajectory) -> Self:
        """Add the tasks' messages."""
        j, h = messages(*self.information(played), self.hyper.task_cov)
        precision, shift = self.precision + j.sum(axis=0), self.shift + h.sum(axis=0)
        return replace(self, precision=precision, shift=shift)

    def information(self, seen: Any) -> tuple[FloatArray, FloatArray]:
        """What each task, played or as statistics, says about its w: ``P``, ``(task, dim, dim)``,
        and ``b``, ``(task, dim)``, with a likelihood of w proportional to ``exp(b'w - w'P w / 2)``.
        """
        statistics = statistics_of(self.blank, seen, "GaussianHyperPrior")
        return family_for(self.blank, "GaussianHyperPrior").information(self.blank, statistics)

    def together(self) -> HierarchicalPrior:
        """Return the law of tasks that are played at the same time, and teach each other."""
        return HierarchicalPrior(self)

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of nu."""
        return combine(self.hyper, self.precision, self.shift)

    def draw(self, rng: Stream) -> Any:
        """``N(nu, task_cov)`` with ``nu ~ N(m, V)``."""
        mean, cov = self.moments()
        nu = mean + validation.square_root(cov) @ rng.normal(mean.size)[0]
        return self.blank.replaced(mean=nu, cov=self.hyper.task_cov)

    def predictive(self) -> Any:
        """``N(m, task_cov + V)``."""
        mean, cov = self.moments()
        return self.blank.replaced(mean=mean, cov=self.hyper.task_cov + cov)


def messages(p: FloatArray, b: FloatArray, task_cov: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What tasks with likelihood ``exp(b'w - w'P w / 2)`` and ``w ~ N(nu, task_cov)`` say about nu,
    in the same form.

    ``J = (I + P task_cov)^-1 P`` and ``h = (I + P task_cov)^-1 b``, ``(task, dim, dim)`` and
    ``(task, dim)``.
    """
    both = np.concatenate([p, b[:, :, None]], axis=2)
    solved = np.linalg.solve(np.eye(b.shape[1]) + p @ task_cov, both)
    both = np.asarray(solved, dtype=np.float64)
    return symmetric(both[:, :, :-1]), both[:, :, -1]


def combine(
    hyper: GaussianHyperPrior, precision: FloatArray, shift: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance of nu: ``V = (cov^-1 + J)^-1 = (I + cov J)^-1 cov`` and ``m = mean + V (h
    - J mean)``.

    ``precision`` and ``shift`` may have leading axes.
    """
    prior = np.broadcast_to(hyper.cov, precision.shape)
    v = np.linalg.solve(np.eye(hyper.mean.size) + hyper.cov @ precision, prior)
    v = symmetric(np.asarray(v, dtype=np.float64))
    surprise = shift - np.einsum("...ij,j->...i", precision, hyper.mean)
    return hyper.mean + np.einsum("...ij,...j->...i", v, surprise), v


@final
@dataclass(frozen=True, eq=False)
class HierarchicalPrior:
    """A group of tasks that share an unknown mean: ``nu ~ N(m, V)``, then ``w_i ~ N(nu, task_cov)``
    for each task i of the batch.

    Unlike with other priors the tasks of a batch are not independent, and neither are their
    beliefs.
    """

    above: GaussianHyperPosterior

    @property
    def arms(self) -> int:
        """Number of arms."""
        return int(self.above.blank.arms)

    def sample(self, rng: Stream, tasks: int) -> Environment:
        """Tasks around one mean; it is drawn with the first task's numbers."""
        shared = self.above.draw(rng)
        environment: Environment = shared.sample(rng, tasks)
        return environment

    def belief(self, tasks: int) -> HierarchicalBelief:
        """Start with no data on these tasks."""
        blank, tasks = self.above.blank, validation.count("tasks", tasks)
        return HierarchicalBelief(self.above, unseen(blank, tasks, "HierThompson"))


@final
@dataclass(frozen=True, eq=False)
class HierarchicalBelief:
    """What each task of the batch has seen."""

    above: GaussianHyperPosterior
    statistics: Any

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return int(self.statistics.tasks)

    @property
    def arms(self) -> int:
        """Number of arms."""
        return int(self.above.blank.arms)

    def sample(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """``nu`` given all tasks, ``w`` given nu and the own task; values ``(task, draw, arm)``."""
        above, draws = self.above, argument_checks.drawing(self, rng, draws)
        p, b = above.information(self.statistics)
        j, h = messages(p, b, above.hyper.task_cov)
        precision, shift = above.precision + j.sum(axis=0), above.shift + h.sum(axis=0)
        mean, cov = combine(above.hyper, precision, shift)
        # ~ N(m, V), (task, draw, dim)
        nu = mean + rng.normal(draws, mean.size) @ validation.square_root(cov).T
        # w given nu and the task's data: N(nu + S (b - P nu), S), S = (I + C P)^-1 C
        c = above.hyper.task_cov
        s = np.linalg.solve(np.eye(mean.size) + c @ p, np.broadcast_to(c, p.shape))
        squares, vectors = np.linalg.eigh((s + s.transpose(0, 2, 1)) / 2.0)
        root = vectors * np.sqrt(np.maximum(squares, 0.0))[:, None, :]
        surprise = b[:, None, :] - nu @ p  # P is symmetric
        noise = rng.normal(draws, mean.size) @ root.transpose(0, 2, 1)
        w = nu + surprise @ s.transpose(0, 2, 1) + noise
        values: FloatArray = above.blank.values(w, seen)
        return values

    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Condition on ``r ~ N(x_a'w, v_a)``: ``P += x x' / v``, ``b += x r / v``."""
        actions, rewards = argument_checks.played(self, seen, actions, rewards)
        return type(self)(self.above, self.statistics.observe(actions, rewards, seen.signal))


def widened(fit: PriorFit, how: Any, rng: np.random.Generator) -> Any:
    """``N(m + raised sqrt(diag V), S + widened V)`` with V of :func:`mean_covariance`; weights of
    features are never raised.
    """
    prior, v = fit.with_arms(), mean_covariance(fit)
    raised = how.raised * np.sqrt(np.diag(v)) if getattr(prior, "contexts", None) is None else 0.0
    return prior.replaced(mean=prior.mean + raised, cov=prior.cov + how.widened * v)


def mean_covariance(fit: PriorFit) -> FloatArray:
    """Covariance of the fitted mean of a normal prior given its fitted covariance, with the noise
    as one observation of it.
    """
    prior, data = fit.with_arms(), fit.statistics
    noise = float(np.mean(prior.noise_var))
    rows, weights = _rows(data)
    precision = np.eye(len(prior.mean)) / noise
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        p = block / noise
        if block.ndim == 2:
            p = np.eye(prior.arms) * (block / prior.noise_var)[:, None, :]
        j, _ = messages(p, np.zeros(p.shape[:2]), prior.cov)
        precision += np.einsum("t,tij->ij", weights[start : start + BLOCK], j)
    return np.asarray(np.linalg.inv(precision), dtype=np.float64)


def _rows(data: Any) -> tuple[FloatArray, FloatArray]:
    """Gram matrices, or pulls, and how many tasks have each."""
    if hasattr(data, "gram"):
        return data.gram, np.ones(data.tasks)
    if not hasattr(data, "pulls"):
        raise ArgumentError(
            "fit",
            "holds no statistics of normal rewards",
            cure=(
                "return PriorFit(..., statistics=data); a fit read from JSON has lost them "
                "(fit again)"
            ),
        )
    if isinstance(data.tasks, np.ndarray):  # groups of tasks
        return data.pulls, data.tasks
    rows, tasks = np.unique(data.pulls, axis=0, return_counts=True)
    return rows, tasks.astype(np.float64)
