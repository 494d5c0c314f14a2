"""The law of plausible Beta priors around a fit: normal in log odds and log concentration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.types import FloatArray
from priorwise.core.uncertainty import Uncertainty
from priorwise.families.beta.exchangeable import ExchangeableBetaPrior
from priorwise.families.beta.likelihood.arm import alpha_beta
from priorwise.families.beta.prior import BetaPrior


@final
@dataclass(frozen=True, eq=False, init=False)
class BetaUncertainty(Uncertainty):
    """Normal law of each arm's log odds of the mean and log concentration, independent between
    arms.

    Parameters
    ----------
    centre
        ``(arm, 2)``: the fit; where the likelihood has no finite maximum, that with the default
        regulariser.
    covariance
        ``(arm, 2, 2)``: inverse of the observed information there, with standard deviations of at
        most pi, those of Jeffreys' rule without any data.

    """

    family: ClassVar[str] = "beta-uncertainty"

    centre: FloatArray
    covariance: FloatArray

    def __init__(self, centre: ArrayLike, covariance: ArrayLike) -> None:
        """Check and freeze the law."""
        object.__setattr__(self, "centre", validation.matrix("centre", centre, (None, 2)))
        object.__setattr__(
            self,
            "covariance",
            validation.matrix("covariance", covariance, (len(self.centre), 2, 2)),
        )

    def draw(self, prior: Any, rng: np.random.Generator, n: int) -> list[Any]:
        """``(log odds, log concentration) ~ N``, within the range of concentrations."""
        z = rng.standard_normal((n, len(self.centre), 2))
        points = self.centre + np.einsum("aij,naj->nai", np.linalg.cholesky(self.covariance), z)
        out: list[Any] = []
        for drawn in points:
            alpha, beta = np.array([alpha_beta(at) for at in drawn]).T
            exchangeable = isinstance(prior, ExchangeableBetaPrior)
            out.append(
                ExchangeableBetaPrior(float(alpha[0]), float(beta[0]))
                if exchangeable
                else BetaPrior(alpha, beta)
            )
        return out
