"""A structured normal prior as a set of coordinates: from coordinates to parameters to a prior,
with standard errors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from priorwise.core.types import BoolArray, FloatArray
from priorwise.families.gaussian.exchangeable import ExchangeableGaussianPrior
from priorwise.families.gaussian.likelihood.charts import Structure, chart_of
from priorwise.families.gaussian.likelihood.data import GaussianData
from priorwise.families.gaussian.likelihood.noise import NoiseKind
from priorwise.families.gaussian.likelihood.objective import Objective, Parameters
from priorwise.families.gaussian.prior import GaussianPrior


@dataclass(frozen=True)
class Model:
    """Structure of the covariance, number of factors and arms, and what is estimated of the
    noise.
    """

    structure: Structure
    factors: int
    arms: int
    noise: NoiseKind

    def objective(
        self,
        data: GaussianData,
        known_noise: FloatArray,
        avoid: float,
        free: BoolArray | None = None,
    ) -> Objective:
        """Log likelihood in the coordinates of the model; arms that are not ``free`` keep their
        known noise.
        """
        one, each, none = np.ones((self.arms, 1)), np.eye(self.arms), np.empty((self.arms, 0))
        return Objective(
            data=data,
            chart=chart_of(self.structure, self.arms, self.factors),
            mean_map=one if self.structure == "exchangeable" else each,
            noise_map={
                "known": none,
                "shared": one,
                "per-arm": each if free is None else each[:, free],
            }[self.noise],
            known_noise=known_noise,
            avoid=avoid,
        )

    def std_errors(
        self, objective: Objective, x: FloatArray, root: FloatArray, *, on_edge: bool
    ) -> dict[str, FloatArray]:
        """Delta method: the coordinates have covariance ``root root'``; a covariance with a
        variance at zero has no such errors.
        """
        at = objective.parameters(x)
        beta, theta, tau = np.split(root, objective.cuts)
        J = objective.chart.jacobian(np.split(x, objective.cuts)[1])
        moves = np.einsum("pab,pc->abc", J, theta)  # of Psi with each column of the root
        errors = {"mean": _length(objective.mean_map @ beta)}
        if self.structure == "exchangeable":
            var, along = moves[0, 0], moves[0, -1]
            ratio = at.psi[0, -1] / at.psi[0, 0] if at.psi[0, 0] > 0.0 else 0.0
            errors["mean"] = errors["mean"][0]
            errors["var"] = _length(var)
            errors["correlation"] = _length((along - ratio * var) / max(at.psi[0, 0], 1e-300))
            if self.arms == 1:
                errors["correlation"] = np.array(np.nan)
        else:
            errors["cov"] = _length(moves)
        if on_edge:
            errors |= {
                name: np.full_like(errors[name], np.nan)
                for name in ("var", "correlation", "cov")
                if name in errors
            }
        if tau.size:
            noise = np.where(
                objective.noise_map.any(axis=1),
                at.noise * _length(objective.noise_map @ tau),
                np.nan,
            )
            errors["noise_var"] = noise[0] if self.structure == "exchangeable" else noise
        return errors


def unscaled(at: Parameters, shift: float, scale: float) -> Parameters:
    """Return to the unit of the rewards."""
    return Parameters(shift + scale * at.nu, scale**2 * at.psi, scale**2 * at.noise)


def scaled(at: Parameters, shift: float, scale: float) -> Parameters:
    """Go to the unit of the data."""
    return Parameters((at.nu - shift) / scale, at.psi / scale**2, at.noise / scale**2)


def extend(at: Parameters, active: BoolArray, noise: FloatArray) -> Parameters:
    """Give arms that are not active the mean of the others' means and variances, no correlation,
    and the given noise.
    """
    if active.all():
        return at
    psi = np.diag(np.full(len(active), np.diag(at.psi).mean()))
    psi[np.ix_(active, active)] = at.psi
    nu = np.full(len(active), at.nu.mean())
    nu[active] = at.nu
    whole = noise.copy()
    whole[active] = at.noise
    return Parameters(nu, psi, whole)


def prior_of(structure: Structure, at: Parameters) -> GaussianPrior | ExchangeableGaussianPrior:
    """Return the prior with these parameters."""
    if structure != "exchangeable":
        return GaussianPrior(at.nu, at.psi, at.noise)
    arms, var = len(at.nu), float(at.psi[0, 0])
    correlation = float(at.psi[0, -1]) / var if var > 0.0 and arms > 1 else 0.0
    least = -1.0 / (arms - 1) if arms > 1 else -1.0
    return ExchangeableGaussianPrior(
        float(at.nu[0]), var, min(max(correlation, least), 1.0), float(at.noise[0])
    )


def _length(moves: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt((moves**2).sum(axis=-1)))
