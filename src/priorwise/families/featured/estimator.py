"""Priors whose mean is linear in features of tasks, by maximum marginal likelihood."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Final, final

import numpy as np
from attrs import field, frozen

from priorwise.core import argument_checks, validation
from priorwise.core.errors import ArgumentError
from priorwise.core.parameters import (
    Checked,
)
from priorwise.families.featured.prior import FeaturedPrior
from priorwise.families.featured.statistics import FeaturedStatistics
from priorwise.families.featured.uncertainty import FeaturedUncertainty
from priorwise.families.registry import family_for
from priorwise.fitting.fits import PriorFit

TOOL: Final = "FeaturedMarginalLikelihood"


@final
@frozen(slots=False)
class FeaturedMarginalLikelihood:
    """Fit the prior of tasks with features x, ``mu ~ P(mean + B (x - centre))``, P of one family.

    Parameters
    ----------
    estimator
        Marginal-likelihood estimator of tasks without features: of Gaussian or logit-normal priors,
        or of any family that offers ``featured``. Exchangeable arms share their effects, others
        have each their own. Its regulariser also leans the effects to zero, by about so many tasks.

    """

    reads: ClassVar[type] = FeaturedStatistics

    estimator: Any = field(validator=Checked(argument_checks.estimator))

    @property
    def name(self) -> str:
        """Name of the estimator, as fits carry it."""
        one = getattr(self.estimator, "name", type(self.estimator).__name__)
        return f"FeaturedMarginalLikelihood({one})"

    def fit(self, data: Any, *, start: Any = None) -> PriorFit:
        """Fit :class:`FeaturedStatistics`; ``start`` is a fit or prior to begin from."""
        validation.instance("data", data, FeaturedStatistics, "FeaturedStatistics")
        first = start.prior if isinstance(start, PriorFit) else start
        effects = None
        if first is not None:
            if not isinstance(first, FeaturedPrior) or first.features != data.features:
                raise ArgumentError(
                    "start", "must be a fit or prior with the same features", got=first
                )
            effects, first = first.slopes * data.features.scale, first.base
        begin = self.estimator.fit(data.seen).prior if first is None else first
        part = family_for(begin, TOOL).featured
        found = part(self.estimator, data.seen, data.z, begin, effects)
        fit, scale = found.fit, data.features.scale
        slopes, units = found.effects / scale, np.tile(scale, found.effects.size // scale.size)
        covariance = found.covariance / units / units[:, None]
        covariance = (covariance + covariance.T) / 2.0
        prior = FeaturedPrior(fit.prior, list(np.moveaxis(slopes, -1, 0)), data.features)
        errors = np.sqrt(np.diag(covariance)).reshape(slopes.shape)
        std_errors = {f"base.{name}": each for name, each in fit.std_errors.items()}
        for place, label in enumerate(data.features.labels):
            std_errors[f"effects.{label}"] = errors[..., place]
        law = None
        if fit.uncertainty is not None:
            law = FeaturedUncertainty(fit.uncertainty, covariance, found.slope * units)
        return replace(
            fit, prior=prior, estimator=self.name, std_errors=std_errors, uncertainty=law,
            statistics=data,
        )  # fmt: skip
