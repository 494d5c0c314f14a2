"""The law of plausible normal-gamma priors around a fit."""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np
from attrs import field, frozen

from priorwise.core.parameters import (
    Array,
    arrays,
)
from priorwise.core.types import FloatArray
from priorwise.families.normal_gamma.exchangeable import ExchangeableNormalGammaPrior
from priorwise.families.normal_gamma.likelihood.arm import PULLS, SHAPES, parameters
from priorwise.families.normal_gamma.prior import NormalGammaPrior
from priorwise.fitting.fits import Uncertainty


@final
@frozen(eq=False, slots=False)
class NormalGammaUncertainty(Uncertainty):
    """Normal law of each arm's mean and logarithms of pulls, shape and ``rate / shape``,
    independent between arms.

    Parameters
    ----------
    centre
        ``(arm, 4)``: the fit; where the likelihood has no finite maximum, that with the default
        regulariser.
    covariance
        ``(arm, 4, 4)``: inverse of the observed information there, with limits to what the data
        leave open.

    """

    family: ClassVar[str] = "normal-gamma-uncertainty"

    centre: FloatArray = field(converter=arrays, validator=Array(("arm", 4)))
    covariance: FloatArray = field(converter=arrays, validator=Array(("arm", 4, 4)))

    def draw(self, prior: Any, rng: np.random.Generator, n: int) -> list[Any]:
        """Draw, within the ranges of pulls and shape."""
        z = rng.standard_normal((n, len(self.centre), 4))
        points = self.centre + np.einsum("aij,naj->nai", np.linalg.cholesky(self.covariance), z)
        points[:, :, 1] = np.clip(points[:, :, 1], *np.log(PULLS))
        points[:, :, 2] = np.clip(points[:, :, 2], *np.log(SHAPES))
        points[:, :, 3] = np.clip(points[:, :, 3], -100.0, 100.0)
        out: list[Any] = []
        for drawn in points:
            rows = np.array([parameters(at) for at in drawn])  # (arm, parameter)
            out.append(
                ExchangeableNormalGammaPrior(*rows[0].tolist())
                if isinstance(prior, ExchangeableNormalGammaPrior)
                else NormalGammaPrior(*rows.T)
            )
        return out
