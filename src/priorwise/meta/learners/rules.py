"""Acting on a fitted prior without trusting it too much: what to hold given a fit.

A fit is uncertain, most of all about arms that were rarely pulled. A policy that randomises
(Thompson sampling) goes on trying them; one that reads the posterior exactly (greedy rules, the
knowledge gradient) never comes back to an arm whose fitted mean is too low by accident. The rules
here turn a fit into the prior to hold.
"""

from dataclasses import dataclass
from typing import Any, Protocol, final

from attrs import field, frozen

from priorwise.core import argument_checks
from priorwise.core.parameters import Checked, Number
from priorwise.core.protocols import Prior, for_arms
from priorwise.core.streams import Stream
from priorwise.families.mixture.prior import MixturePrior
from priorwise.families.registry import family_for
from priorwise.fitting.fits import PriorFit
from priorwise.meta.learners.learner import generator


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
@frozen(slots=False)
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

    widened: float = field(default=3.0, validator=Number(0.0))
    raised: float = field(default=0.5, validator=Number(0.0))

    def hold(self, fit: PriorFit, rng: Stream) -> Prior:
        """Return the widened prior."""
        prior: Prior = family_for(fit.prior, "Widened").widened(fit, self, generator(rng))
        return prior


@final
@frozen(slots=False)
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

    vague: Prior = field(validator=Checked(argument_checks.fixed_prior))
    share: float = field(default=0.05, validator=Number(0.0, 1.0, ends="()"))

    def hold(self, fit: PriorFit, rng: Stream) -> Prior:
        """``(1 - share) P_fit + share P_vague``."""
        vague: Any = self.vague
        learned = for_arms(fit.prior, vague.arms)
        if type(learned) is type(vague) and getattr(vague, "noise_var", None) is not None:
            vague = vague.replaced(noise_var=learned.noise_var)
        return MixturePrior([learned, vague], [1.0 - self.share, self.share])
