"""The law of plausible logit-normal priors around a fit."""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np
from attrs import field, frozen

from priorwise.core import validation
from priorwise.core.parameters import (
    Array,
    Covariance,
    arrays,
)
from priorwise.core.types import FloatArray
from priorwise.families.logit_normal.exchangeable import ExchangeableLogitNormalPrior
from priorwise.families.logit_normal.likelihood import joint
from priorwise.families.logit_normal.likelihood.objective import FURTHEST, LEAST_STD, MOST_STD
from priorwise.families.logit_normal.prior import LogitNormalPrior
from priorwise.fitting.fits import Uncertainty


@final
@frozen(eq=False, slots=False)
class LogitNormalUncertainty(Uncertainty):
    """Normal law of a fit's coordinates.

    Parameters
    ----------
    centre
        Coordinates ``(k,)``. Of exchangeable arms: mean and logarithms of the standard deviations
        of level and deviation. Of independent arms: means, then logarithms of standard deviations.
        Else: means, then the root of the covariance row by row, its diagonal in logarithms.
    covariance
        ``(k, k)``: inverse of the information, with limits to what the data leave open.

    """

    family: ClassVar[str] = "logit-normal-uncertainty"

    centre: FloatArray = field(converter=arrays, validator=Array(("coordinate",)))
    covariance: FloatArray = field(
        converter=arrays, validator=Covariance(("coordinate", "coordinate"))
    )

    def moved(self, by: FloatArray) -> LogitNormalUncertainty:
        """Return the law with another centre."""
        return LogitNormalUncertainty(self.centre + by, self.covariance)

    def draw(self, prior: Any, rng: np.random.Generator, n: int) -> list[Any]:
        """Draw, within the ranges of means and standard deviations."""
        root = validation.square_root(self.covariance)
        points = self.centre + rng.standard_normal((n, self.centre.size)) @ root.T
        return [self._prior(prior, at) for at in points]

    def _prior(self, prior: Any, at: FloatArray) -> Any:
        least, most = np.log(LEAST_STD), np.log(MOST_STD)
        if isinstance(prior, ExchangeableLogitNormalPrior):
            level, own = np.exp(2.0 * np.clip(at[1:3], least, most))
            centre = float(np.clip(at[0], -FURTHEST, FURTHEST))
            return ExchangeableLogitNormalPrior(
                centre, float(level + own), float(level / (level + own))
            )
        arms = prior.arms
        mean = np.clip(at[:arms], -FURTHEST, FURTHEST)
        if at.size == 2 * arms:
            return LogitNormalPrior(mean, np.diag(np.exp(2.0 * np.clip(at[arms:], least, most))))
        _, root = joint.law(at, arms)
        cov = root @ root.T
        large = np.sqrt(np.maximum(np.diag(cov) / MOST_STD**2, 1.0))
        return LogitNormalPrior(mean, cov / large / large[:, None])
