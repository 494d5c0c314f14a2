"""Acting on a fitted prior without trusting it too much: what to hold given a fit, and an alarm when tasks contradict it.

A fit is uncertain, most of all about arms that were rarely pulled. A policy that randomises (Thompson sampling) goes on trying
them; one that reads the posterior exactly (greedy rules, the knowledge gradient) never comes back to an arm whose fitted mean is
too low by accident. The rules here turn a fit into the prior to hold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, Self, final

import numpy as np

from priorwise.core import validation
from priorwise.core.protocols import Prior
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray
from priorwise.meta.evidence import log_marginal
from priorwise.meta.fit import PriorFit
from priorwise.meta.hyper import messages
from priorwise.meta.learner import generator
from priorwise.meta.mixture import MixturePrior
from priorwise.meta.moments import with_moments
from priorwise.meta.statistics import GaussianGroups, GaussianStatistics, LinearStatistics
from priorwise.priors.beta import BetaPrior
from priorwise.priors.finite import FinitePrior
from priorwise.priors.gaussian import GaussianPrior
from priorwise.priors.linear import LinearGaussianPrior
from priorwise.simulate.results import Trajectory

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

    Normal priors: ``N(m + raised sqrt(diag V), S + widened V)`` with V the covariance of the fitted mean m given the fitted
    covariance S, ``V = (K^-1 + sum_t (S + P_t^-1)^-1)^-1`` over the tasks t with precisions P_t (pulls over noise), and K the
    variance of the noise: as if one pull of each arm had shown a mean of m. Weights of features are never raised: they have no
    better direction.

    Beta priors: the mean and variance of each arm averaged over plausible priors. Finite priors: plausible probabilities averaged.

    Parameters
    ----------
    widened
        Multiple of V that is added to the covariance. 1 is the law of the next task; more makes a policy come back to arms about
        which little is known, for the sake of later tasks.
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
        prior = fit.prior
        if isinstance(prior, (GaussianPrior, LinearGaussianPrior)):
            v = mean_covariance(fit)
            raised = self.raised * np.sqrt(np.diag(v)) if isinstance(prior, GaussianPrior) else 0.0
            return with_moments(prior, prior.mean + raised, prior.cov + self.widened * v)
        return _averaged(fit.prior, fit.draw(generator(rng), DRAWS))


def mean_covariance(fit: PriorFit) -> FloatArray:
    """Covariance of the fitted mean of a normal prior given its fitted covariance, with the noise as one observation of it."""
    prior, data = fit.prior, fit.statistics
    noise = float(np.mean(prior.noise_var))
    if isinstance(data, (GaussianStatistics, GaussianGroups)):
        weights = np.ones(len(data.pulls)) if isinstance(data, GaussianStatistics) else data.tasks
        p = np.eye(prior.arms) * (data.pulls / prior.noise_var)[:, None, :]
    elif isinstance(data, LinearStatistics):
        weights, p = np.ones(data.tasks), data.gram / noise
    else:
        raise ValueError("the fit holds no statistics of normal rewards: fit again, a fit read from JSON has lost them")
    j, _ = messages(p, np.zeros(p.shape[:2]), prior.cov)
    return np.linalg.inv(np.eye(len(prior.mean)) / noise + np.einsum("t,tij->ij", weights, j))


def _averaged(prior: Any, plausible: list[Any]) -> Prior:
    if isinstance(prior, FinitePrior):
        probs = np.mean([each.probs for each in plausible], axis=0)
        return FinitePrior(prior.means, probs / probs.sum(), prior.noise, prior.noise_var)
    if isinstance(prior, BetaPrior):
        a, b = (np.stack([getattr(each, name) for each in plausible]) for name in ("alpha", "beta"))
        mean = (a / (a + b)).mean(axis=0)
        square = (a * (a + 1.0) / ((a + b) * (a + b + 1.0))).mean(axis=0)
        strength = np.maximum((mean - square) / np.maximum(square - mean**2, 1e-12), 1e-6)  # alpha + beta
        return BetaPrior(mean * strength, (1.0 - mean) * strength)
    raise TypeError(f"no way is known to widen a {type(prior).__name__}; use Drawn() or AsFitted()")


@final
@dataclass(frozen=True)
class Mixed:
    """Mix the fitted prior with a vague one, which takes over in tasks that contradict the fit.

    Parameters
    ----------
    vague
        The other prior, with the same arms and reward law.
    share
        Its probability.

    """

    vague: Prior
    share: float = 0.05

    def __post_init__(self) -> None:
        """Check the share."""
        if not 0.0 < validation.number("share", self.share) < 1.0:
            raise ValueError(f"share must lie in (0, 1), got {self.share:g}")

    def hold(self, fit: PriorFit, rng: Stream) -> Prior:
        """``(1 - share) P_fit + share P_vague``."""
        return MixturePrior([fit.prior, self.vague], [1.0 - self.share, self.share])


@final
@dataclass(frozen=True, eq=False)
class Alarm:
    """Watches whether tasks follow a prior: a test that may be looked at after every task.

    The evidence against the prior is the likelihood ratio ``E_t = prod_{i <= t} p_other(task i) / p_prior(task i)``. If tasks are
    drawn from ``prior`` then E is a non-negative martingale with mean 1, whatever policy plays, so it ever reaches ``1 / level``
    with probability at most ``level`` (Ville's inequality): that is the false-alarm rate over all tasks together, however many. It
    is stated for tasks that follow ``prior`` exactly; with a fitted one, choose an ``other`` wider than the error of the fit.

    Parameters
    ----------
    prior
        The prior that is held.
    other
        What the tasks may follow instead: a wider prior, an older one, or a mixture of several.
    level
        False-alarm rate.

    """

    prior: Prior
    other: Prior
    level: float = 0.01
    log_evidence: float = 0.0
    largest: float = 0.0

    def __post_init__(self) -> None:
        """Check the level."""
        if not 0.0 < validation.number("level", self.level) < 1.0:
            raise ValueError(f"level must lie in (0, 1), got {self.level:g}")

    def observe(self, played: Trajectory) -> Self:
        """Add tasks, in their order."""
        ours, theirs = log_marginal(self.prior, played), log_marginal(self.other, played)
        ruled_out = np.isneginf(theirs)  # by the alternative: the evidence is gone for good
        path = self.log_evidence + np.cumsum(np.where(ruled_out, 0.0, theirs - np.where(ruled_out, 0.0, ours)))
        path = np.where(np.logical_or.accumulate(ruled_out), -np.inf, path)
        return replace(self, log_evidence=float(path[-1]), largest=float(max(self.largest, path.max())))

    @property
    def raised(self) -> bool:
        """Whether the evidence has ever reached ``1 / level``."""
        return self.largest >= -np.log(self.level)

    @property
    def p_value(self) -> float:
        """A p-value that holds at any time: ``1 / max_t E_t``."""
        return float(min(1.0, np.exp(-self.largest)))
