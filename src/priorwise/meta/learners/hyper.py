"""Hyper-priors: what a learner believes about the prior itself, and how past tasks change it.
Exact, by conjugacy.

Two kinds. The mean of a normal prior is unknown and itself normal, with the covariance within tasks
known (Kveton et al. 2021, Basu et al. 2021, Hong et al. 2022). Or the prior is one of finitely many
candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, Self, final

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.numerics import symmetric
from priorwise.core.protocols import Prior
from priorwise.core.runs import Trajectory
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray
from priorwise.families.gaussian.prior import GaussianPrior
from priorwise.families.linear.prior import LinearGaussianPrior
from priorwise.meta.evidence.mixture import MixturePrior, check_components
from priorwise.meta.evidence.predictive import NormalPrior, information, log_marginal
from priorwise.meta.learners.learner import Setting

ROUNDING: Final = 1e-15
"""Candidates less probable than this are out of question."""


class HyperPosterior(Protocol):
    """What is believed about the prior after some tasks: a value."""

    def observe(self, played: Trajectory) -> Self:
        """Condition on whole tasks."""
        ...

    def draw(self, rng: Stream) -> Prior:
        """Return a prior drawn from the posterior over priors."""
        ...

    def predictive(self) -> Prior:
        """Return the law of the next task: the priors averaged over their posterior."""
        ...


class HyperPrior(Protocol):
    """What is believed about the prior before the first task; frozen."""

    def start(self, setting: Setting) -> HyperPosterior:
        """Start the posterior."""
        ...


@final
@dataclass(frozen=True, eq=False, init=False)
class GaussianHyperPrior:
    """Tasks are ``N(nu, task_cov)`` with an unknown mean ``nu ~ N(mean, cov)``; the noise is known.

    For arms with normal rewards, and for the weights of a linear contextual bandit.

    Parameters
    ----------
    mean, cov
        Law of the unknown mean, ``(dim,)`` and ``(dim, dim)``.
    task_cov
        Covariance of the tasks around it, ``(dim, dim)``.

    """

    mean: FloatArray
    cov: FloatArray
    task_cov: FloatArray

    def __init__(self, mean: ArrayLike, cov: ArrayLike, task_cov: ArrayLike) -> None:
        """Check and freeze the parameters."""
        checked = validation.vector("mean", mean)
        object.__setattr__(self, "mean", checked)
        object.__setattr__(self, "cov", validation.covariance("cov", cov, checked.size))
        object.__setattr__(
            self, "task_cov", validation.covariance("task_cov", task_cov, checked.size)
        )

    def start(self, setting: Setting) -> GaussianHyperPosterior:
        """Start at the hyper-prior."""
        blank = setting.blank
        if not isinstance(blank, (GaussianPrior, LinearGaussianPrior)):
            raise TypeError(
                "a GaussianHyperPrior speaks about normal priors, not about a "
                f"{type(blank).__name__}"
            )
        dim = self.mean.size
        if blank.mean.size != dim:
            raise ValueError(
                f"the hyper-prior has {dim} entries, but the tasks have {blank.mean.size}"
            )
        return GaussianHyperPosterior(self, blank, np.zeros((dim, dim)), np.zeros(dim))


@final
@dataclass(frozen=True, eq=False)
class GaussianHyperPosterior:
    """``nu ~ N(m, V)`` given the tasks, kept as what they say about nu: likelihood ``exp(shift'nu -
    nu'precision nu / 2)``.
    """

    hyper: GaussianHyperPrior
    blank: NormalPrior
    precision: FloatArray  # (dim, dim)
    shift: FloatArray  # (dim,)

    def observe(self, played: Trajectory) -> Self:
        """Add the tasks' messages."""
        j, h = messages(*information(self.blank, played), self.hyper.task_cov)
        return type(self)(
            self.hyper, self.blank, self.precision + j.sum(axis=0), self.shift + h.sum(axis=0)
        )

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of nu."""
        return combine(self.hyper, self.precision, self.shift)

    def draw(self, rng: Stream) -> NormalPrior:
        """``N(nu, task_cov)`` with ``nu ~ N(m, V)``."""
        mean, cov = self.moments()
        nu = mean + validation.square_root(cov) @ rng.normal(mean.size)[0]
        return self.blank.replaced(mean=nu, cov=self.hyper.task_cov)

    def predictive(self) -> NormalPrior:
        """``N(m, task_cov + V)``."""
        mean, cov = self.moments()
        return self.blank.replaced(mean=mean, cov=self.hyper.task_cov + cov)


def messages(p: FloatArray, b: FloatArray, task_cov: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What tasks with likelihood ``exp(b'w - w'P w / 2)`` and ``w ~ N(nu, task_cov)`` say about nu,
    in the same form.

    ``J = (I + P task_cov)^-1 P`` and ``h = (I + P task_cov)^-1 b``, ``(task, dim, dim)`` and
    ``(task, dim)``.
    """
    both = np.linalg.solve(
        np.eye(b.shape[1]) + p @ task_cov, np.concatenate([p, b[:, :, None]], axis=2)
    )
    j = both[:, :, :-1]
    return symmetric(j), both[:, :, -1]


def combine(
    hyper: GaussianHyperPrior, precision: FloatArray, shift: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance of nu: ``V = (cov^-1 + J)^-1 = (I + cov J)^-1 cov`` and ``m = mean + V (h
    - J mean)``.

    ``precision`` and ``shift`` may have leading axes.
    """
    v = np.linalg.solve(
        np.eye(hyper.mean.size) + hyper.cov @ precision, np.broadcast_to(hyper.cov, precision.shape)
    )
    v = symmetric(np.asarray(v, dtype=np.float64))
    return hyper.mean + np.einsum(
        "...ij,...j->...i", v, shift - np.einsum("...ij,j->...i", precision, hyper.mean)
    ), v


@final
@dataclass(frozen=True, eq=False, init=False)
class CandidatePriors:
    """The prior is one of finitely many.

    Parameters
    ----------
    priors
        The candidates, of one family or several, with the same arms and reward law.
    probs
        How likely each is at the start; by default all equally.

    """

    mixture: MixturePrior

    def __init__(self, priors: Sequence[Any], probs: ArrayLike | None = None) -> None:
        """Check and freeze the candidates."""
        priors = check_components("priors", priors)
        count = len(priors)
        object.__setattr__(
            self,
            "mixture",
            MixturePrior(priors, np.full(count, 1.0 / count) if probs is None else probs),
        )

    def start(self, setting: Setting) -> CandidatePosterior:
        """Start at the given probabilities."""
        if self.mixture.arms != setting.arms:
            raise ValueError(
                f"the candidates have {self.mixture.arms} arms, but the tasks have {setting.arms}"
            )
        with np.errstate(divide="ignore"):
            return CandidatePosterior(self, np.log(self.mixture.probs))


@final
@dataclass(frozen=True, eq=False)
class CandidatePosterior:
    """Posterior weights of the candidates, as logarithms with a largest of 0 once a task was
    seen.
    """

    candidates: CandidatePriors
    log_weights: FloatArray  # (candidate,)

    def observe(self, played: Trajectory) -> Self:
        """Add the tasks' log marginal likelihoods; tasks that no remaining candidate deems possible
        are passed over.
        """
        # (candidate, task)
        each = np.stack(
            [log_marginal(prior, played) for prior in self.candidates.mixture.components]
        )
        weights = self.log_weights + each.sum(axis=1)
        if np.isneginf(weights).all():  # task by task, as each decides who remains for the next
            weights = self.log_weights
            for moved in each.T:
                weights = weights if np.isneginf(weights + moved).all() else weights + moved
        return type(self)(self.candidates, weights - weights.max())

    def probabilities(self) -> FloatArray:
        """Posterior probabilities, ``(candidate,)``."""
        weights = np.exp(self.log_weights - self.log_weights.max())
        return np.asarray(weights / weights.sum())

    def draw(self, rng: Stream) -> Prior:
        """Return one of the candidates."""
        prior: Prior = self.candidates.mixture.components[
            int(rng.choice(self.probabilities()[None])[0])
        ]
        return prior

    def predictive(self) -> Prior:
        """Return the mixture of the candidates, without those whose probability is rounding; the
        last one left as it is.
        """
        probs = self.probabilities()
        left = np.flatnonzero(probs > ROUNDING)
        components = self.candidates.mixture.components
        last: Prior = components[left[0]]
        return (
            last
            if left.size == 1
            else MixturePrior([components[i] for i in left], probs[left] / probs[left].sum())
        )
