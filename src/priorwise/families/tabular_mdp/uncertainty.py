"""The law of plausible Dirichlet MDP priors around a fit: normal in the logits of each row's mean
and the log of its concentration, independent between rows.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, final

import numpy as np
from attrs import field, frozen

from priorwise.core.parameters import (
    Array,
    arrays,
)
from priorwise.core.types import FloatArray
from priorwise.fitting.fits import Uncertainty

SMALLEST: Final = 1e-4
LARGEST: Final = 1e8
"""Range of concentrations."""

LEAST: Final = 1e-6  # of a parameter, as the prior has it


def parameters(at: FloatArray) -> FloatArray:
    """Dirichlet parameters from logits, of which the last is 0 and left out, and the log of their
    sum.
    """
    logits = np.append(at[:-1], 0.0)
    log_c = np.clip(at[-1], np.log(SMALLEST), np.log(LARGEST))
    return np.maximum(np.exp(log_c + logits - np.logaddexp.reduce(logits)), LEAST)


@final
@frozen(eq=False, slots=False)
class DirichletMdpUncertainty(Uncertainty):
    """Normal law of each row's coordinates; rewards are as fitted.

    Parameters
    ----------
    centre
        ``(row, coordinate)``: the fit of each row with two outcomes or more, in order of state and
        action; of rows with fewer outcomes than others only the first entries count.
    covariance
        ``(row, coordinate, coordinate)``: inverse of the observed information there, with standard
        deviations of at most pi.

    """

    family: ClassVar[str] = "dirichlet-mdp-uncertainty"

    centre: FloatArray = field(converter=arrays, validator=Array(("row", "coordinate")))
    covariance: FloatArray = field(
        converter=arrays, validator=Array(("row", "coordinate", "coordinate"))
    )

    @classmethod
    def of(cls, rows: list[tuple[FloatArray, FloatArray]]) -> DirichletMdpUncertainty:
        """Put together the centres and informations of the rows."""
        most = max(len(at) for at, _ in rows)
        centre, covariance = np.zeros((len(rows), most)), np.zeros((len(rows), most, most))
        for k, (at, information) in enumerate(rows):
            values, axes = np.linalg.eigh(information)
            centre[k, : len(at)] = at
            inverse = axes / np.maximum(values, np.pi**-2) @ axes.T
            covariance[k, : len(at), : len(at)] = inverse
        return cls(centre, covariance)

    def draw(self, prior: Any, rng: np.random.Generator, n: int) -> list[Any]:
        """Coordinates ``~ N``, within the range of concentrations."""
        counts = prior.possible.sum(axis=2)
        rows = np.argwhere(counts > 1)
        out = []
        for _ in range(n):
            alpha = prior.transitions.copy()
            for k, (state, action) in enumerate(rows):
                size = counts[state, action]
                cov = self.covariance[k, :size, :size]
                values, axes = np.linalg.eigh(cov)
                step = axes @ (np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(size))
                alpha[state, action, prior.possible[state, action]] = parameters(
                    self.centre[k, :size] + step
                )
            out.append(prior.replaced(transitions=alpha))
        return out
