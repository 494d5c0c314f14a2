"""Acting on a fitted prior without trusting it too much: what to hold given a fit.

A fit is uncertain, most of all about arms that were rarely pulled. A policy that randomises
(Thompson sampling) goes on trying them; one that reads the posterior exactly (greedy rules, the
knowledge gradient) never comes back to an arm whose fitted mean is too low by accident. The rules
here turn a fit into the prior to hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol, final

import numpy as np

from priorwise.core import doors, validation
from priorwise.core.family import for_arms
from priorwise.core.fits import PriorFit
from priorwise.core.protocols import Prior
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray
from priorwise.families.beta.prior import BetaPrior
from priorwise.families.beta.statistics import BetaGroups, BetaStatistics
from priorwise.families.finite.prior import FinitePrior
from priorwise.families.gaussian.groups import GaussianGroups
from priorwise.families.gaussian.prior import GaussianPrior
from priorwise.families.gaussian.statistics import GaussianStatistics
from priorwise.families.linear.prior import LinearGaussianPrior
from priorwise.families.linear.statistics import LinearStatistics
from priorwise.meta.evidence.mixture import MixturePrior
from priorwise.meta.learners.hyper import messages
from priorwise.meta.learners.learner import generator

BLOCK: Final = 1024
"""Tasks, or groups of them, whose matrices are held at once."""

DRAWS: Final = 64
"""Plausible priors that an average is taken over."""


class PriorRule(Protocol):
    """Which prior to hold, given a fit; frozen."""

    def hold(self, fit: PriorFit, rng: Stream) -> Prior:
        """Return the prior; ``rng`` serves one task."""
        ...


@final
@dataclass(frozen=True)
class AsFitted:
    """Hold the fitted prior."""

    def hold(self, fit: PriorFit, rng: Stream) -> Prior:
        """``P_theta`` at the fit."""
        prior: Prior = fit.prior
        return prior


@final
@dataclass(frozen=True)
class Drawn:
    """Hold one plausible prior, drawn from the fit's uncertainty: Thompson sampling over priors."""

    def hold(self, fit: PriorFit, rng: Stream) -> Prior:
        """``theta ~`` the fit's law."""
        prior: Prior = fit.draw(generator(rng), 1)[0]
        return prior


@final
@dataclass(frozen=True)
class Widened:
    """Widen the fitted prior by what is not known about its mean.

    Normal priors: ``N(m + raised sqrt(diag V), S + widened V)`` with V the covariance of the fitted
    mean m given the fitted covariance S, ``V = (K^-1 + sum_t (S + P_t^-1)^-1)^-1`` over the tasks t
    with precisions P_t (pulls over noise), and K the variance of the noise: as if one pull of each
    arm had shown a mean of m. Weights of features are never raised: they have no better direction.

    Beta priors: the mean and variance of each arm averaged over plausible priors. Finite priors:
    plausible probabilities averaged.

    Parameters
    ----------
    widened
        Multiple of V that is added to the covariance. 1 is the law of the next task; more makes a
        policy come back to arms about which little is known, for the sake of later tasks.
    raised
        Standard errors added to the mean of each arm, to the same end.

    """

    widened: float = 3.0
    raised: float = 0.5

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("raised", "widened"):
            if validation.number(name, getattr(self, name)) < 0.0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name):g}")

    def hold(self, fit: PriorFit, rng: Stream) -> Prior:
        """Return the widened prior."""
        prior = _with_arms_of(fit)
        if isinstance(prior, (GaussianPrior, LinearGaussianPrior)):
            v = mean_covariance(fit)
            raised = self.raised * np.sqrt(np.diag(v)) if isinstance(prior, GaussianPrior) else 0.0
            return prior.replaced(mean=prior.mean + raised, cov=prior.cov + self.widened * v)
        plausible = fit.draw(generator(rng), DRAWS)
        return _averaged(prior, [for_arms(each, prior.arms) for each in plausible])


def mean_covariance(fit: PriorFit) -> FloatArray:
    """Covariance of the fitted mean of a normal prior given its fitted covariance, with the noise
    as one observation of it.
    """
    prior, data = _with_arms_of(fit), fit.statistics
    noise = float(np.mean(prior.noise_var))
    if isinstance(data, GaussianGroups):
        rows, weights = data.pulls, data.tasks
    elif isinstance(data, GaussianStatistics):
        rows, tasks = np.unique(data.pulls, axis=0, return_counts=True)
        weights = tasks.astype(np.float64)
    elif isinstance(data, LinearStatistics):
        rows, weights = data.gram, np.ones(data.tasks)
    else:
        raise ValueError(
            "the fit holds no statistics of normal rewards: an estimator of your own must return "
            "PriorFit(..., statistics=data), "
            "and a fit read from JSON has lost them (fit again)"
        )
    precision = np.eye(len(prior.mean)) / noise
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        p = (
            block / noise
            if block.ndim == 3
            else np.eye(prior.arms) * (block / prior.noise_var)[:, None, :]
        )
        j, _ = messages(p, np.zeros(p.shape[:2]), prior.cov)
        precision += np.einsum("t,tij->ij", weights[start : start + BLOCK], j)
    return np.asarray(np.linalg.inv(precision), dtype=np.float64)


def _with_arms_of(fit: PriorFit) -> Any:
    """Return the fitted prior; of exchangeable arms, for as many as the data have."""
    data = fit.statistics
    known = isinstance(data, (GaussianStatistics, GaussianGroups, BetaStatistics, BetaGroups))
    return for_arms(fit.prior, data.arms) if known else fit.prior


def _averaged(prior: Any, plausible: list[Any]) -> Prior:
    if isinstance(prior, FinitePrior):
        probs = np.mean([each.probs for each in plausible], axis=0)
        return FinitePrior(prior.means, probs / probs.sum(), prior.noise, prior.noise_var)
    if isinstance(prior, BetaPrior):
        a, b = (np.stack([getattr(each, name) for each in plausible]) for name in ("alpha", "beta"))
        mean = (a / (a + b)).mean(axis=0)
        square = (a * (a + 1.0) / ((a + b) * (a + b + 1.0))).mean(axis=0)
        # alpha + beta
        strength = np.maximum((mean - square) / np.maximum(square - mean**2, 1e-12), 1e-6)
        return BetaPrior(mean * strength, (1.0 - mean) * strength)
    raise TypeError(f"no way is known to widen a {type(prior).__name__}; use Drawn() or AsFitted()")


@final
@dataclass(frozen=True)
class Mixed:
    """Mix the fitted prior with a vague one, which takes over in tasks that contradict the fit.

    Parameters
    ----------
    vague
        The other prior, with the same arms and kind of rewards. Its noise is replaced by that of
        the fit, known or estimated: the two differ in what they say about the tasks' means, and not
        about the rewards around them.
    share
        Its probability.

    """

    vague: Prior
    share: float = 0.05

    def __post_init__(self) -> None:
        """Check the prior and the share."""
        doors.role("vague", self.vague, "a prior", "arms", "sample", "belief")
        if not 0.0 < validation.number("share", self.share) < 1.0:
            raise ValueError(f"share must lie in (0, 1), got {self.share:g}")

    def hold(self, fit: PriorFit, rng: Stream) -> Prior:
        """``(1 - share) P_fit + share P_vague``."""
        learned, vague = for_arms(fit.prior, self.vague.arms), self.vague
        if isinstance(vague, (GaussianPrior, LinearGaussianPrior)) and isinstance(
            learned, type(vague)
        ):
            vague = vague.replaced(noise_var=learned.noise_var)
        return MixturePrior([learned, vague], [1.0 - self.share, self.share])
