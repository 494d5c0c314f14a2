"""Hyper-priors: what a learner believes about the prior itself, and how past tasks change it.

Where the prior is one of finitely many candidates the update is exact here; the hyper-prior over
the mean of a normal prior stands with the normal families.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, Self, final

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core.errors import ArgumentError
from priorwise.core.protocols import Prior
from priorwise.core.streams import Stream
from priorwise.core.trajectories import Trajectory
from priorwise.core.types import FloatArray
from priorwise.families.mixture.prior import MixturePrior, check_components
from priorwise.meta.evidence.likelihood import log_marginal_likelihood
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
        even = np.full(len(priors), 1.0 / len(priors))
        mixture = MixturePrior(priors, even if probs is None else probs)
        if getattr(mixture.contexts, "of_environment", False):
            raise ArgumentError(
                "priors",
                "must share the law of contexts",
                cure="pass the same contexts to all of them",
            )
        object.__setattr__(self, "mixture", mixture)

    def start(self, setting: Setting) -> "CandidatePosterior":
        """Start at the given probabilities."""
        if self.mixture.arms != setting.arms:
            raise ArgumentError(
                "candidates",
                f"must have the {setting.arms} arms of the tasks",
                got=self.mixture.arms,
            )
        with np.errstate(divide="ignore"):
            return CandidatePosterior(self, np.log(self.mixture.probs))


@final
@dataclass(frozen=True, eq=False)
class CandidatePosterior:
    """Log posterior weights of the candidates, the largest 0 once a task was seen."""

    candidates: CandidatePriors
    log_weights: FloatArray  # (candidate,)

    def observe(self, played: Trajectory) -> Self:
        """Add the tasks' log marginal likelihoods; tasks that no remaining candidate allows are
        passed over.
        """
        priors = self.candidates.mixture.components
        each = np.stack([log_marginal_likelihood(prior, played) for prior in priors])
        weights = self.log_weights + each.sum(axis=1)  # (candidate,) of (candidate, task)
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
        chosen = int(rng.choice(self.probabilities()[None])[0])
        prior: Prior = self.candidates.mixture.components[chosen]
        return prior

    def predictive(self) -> Prior:
        """Return the mixture of the candidates, without those whose probability is rounding; the
        last one left as it is.
        """
        probs = self.probabilities()
        left = np.flatnonzero(probs > ROUNDING)
        components = [self.candidates.mixture.components[i] for i in left]
        last: Prior = components[0]
        mixed = left.size > 1
        return MixturePrior(components, probs[left] / probs[left].sum()) if mixed else last
