"""A structured normal prior as a set of coordinates: from coordinates to parameters to a prior, with standard errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core.types import BoolArray, FloatArray
from priorwise.meta.fit import Uncertainty
from priorwise.meta.gaussian_charts import Structure, chart_of
from priorwise.meta.gaussian_data import GaussianData
from priorwise.meta.gaussian_objective import Objective, Parameters
from priorwise.priors.exchangeable import ExchangeableGaussianPrior
from priorwise.priors.gaussian import GaussianPrior

NoiseKind = Literal["known", "shared", "per-arm"]


@dataclass(frozen=True)
class Model:
    """Structure of the covariance, number of factors and arms, and what is estimated of the noise."""

    structure: Structure
    factors: int
    arms: int
    noise: NoiseKind

    def objective(self, data: GaussianData, known_noise: FloatArray, avoid: float) -> Objective:
        """Log likelihood in the coordinates of the model."""
        one, each, none = np.ones((self.arms, 1)), np.eye(self.arms), np.empty((self.arms, 0))
        return Objective(
            data=data,
            chart=chart_of(self.structure, self.arms, self.factors),
            mean_map=one if self.structure == "exchangeable" else each,
            noise_map={"known": none, "shared": one, "per-arm": each}[self.noise],
            known_noise=known_noise,
            avoid=avoid,
        )

    def prior(self, at: Parameters) -> GaussianPrior | ExchangeableGaussianPrior:
        """Return the prior with these parameters."""
        if self.structure != "exchangeable":
            return GaussianPrior(at.nu, at.psi, at.noise)
        var = float(at.psi[0, 0])
        correlation = float(at.psi[0, -1]) / var if var > 0.0 and self.arms > 1 else 0.0
        least = -1.0 / (self.arms - 1) if self.arms > 1 else -1.0
        return ExchangeableGaussianPrior(float(at.nu[0]), var, min(max(correlation, least), 1.0), float(at.noise[0]))

    def std_errors(self, objective: Objective, x: FloatArray, root: FloatArray, *, at_boundary: bool) -> dict[str, FloatArray]:
        """Delta method: the coordinates have covariance ``root root'``; variances at their boundary have no standard error."""
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
        if at_boundary:
            errors |= {name: np.full_like(errors[name], np.nan) for name in ("var", "correlation", "cov") if name in errors}
        if tau.size:
            noise = at.noise * _length(objective.noise_map @ tau)
            errors["noise_var"] = noise[0] if self.structure == "exchangeable" else noise
        return errors


@final
@dataclass(frozen=True, eq=False, init=False)
class GaussianUncertainty(Uncertainty):
    """Normal law of the coordinates around the fit, with the inverse of the observed information as covariance.

    Every vector of coordinates is a prior, so that every draw is one; at a boundary, where a variance is zero, plausible variances
    are not. Arms outside ``active`` were never pulled; they get the average of the others, as in the fit.
    """

    family: ClassVar[str] = "gaussian-uncertainty"

    structure: Structure
    factors: int
    arms: int
    noise: NoiseKind
    known_noise: FloatArray
    active: FloatArray
    estimate: FloatArray
    root: FloatArray
    shift: float
    scale: float

    def __init__(
        self,
        structure: Structure,
        factors: int,
        arms: int,
        noise: NoiseKind,
        known_noise: ArrayLike,
        active: ArrayLike,
        estimate: ArrayLike,
        root: ArrayLike,
        shift: float,
        scale: float,
    ) -> None:
        """Freeze the law."""
        for name, value in (("structure", structure), ("factors", factors), ("arms", arms), ("noise", noise)):
            object.__setattr__(self, name, value)
        arrays = {"known_noise": known_noise, "active": active, "estimate": estimate, "root": root}
        for name, array in arrays.items():
            frozen = np.array(array, dtype=np.float64)
            frozen.setflags(write=False)
            object.__setattr__(self, name, frozen)
        object.__setattr__(self, "shift", float(shift))
        object.__setattr__(self, "scale", float(scale))

    def draw(self, prior: GaussianPrior | ExchangeableGaussianPrior, rng: np.random.Generator, n: int) -> list[object]:
        """Draw coordinates and return their priors."""
        active = self.active.astype(bool)
        model = Model(self.structure, self.factors, int(active.sum()), self.noise)
        objective = model.objective(EMPTY, self.known_noise[active], 0.0)
        draws = self.estimate + rng.standard_normal((n, self.root.shape[1])) @ self.root.T
        whole = Model(self.structure, self.factors, self.arms, self.noise)
        return [
            whole.prior(extend(unscaled(objective.parameters(x), self.shift, self.scale), active, self.known_noise * self.scale**2))
            for x in draws
        ]


EMPTY = GaussianData(
    pulls=np.empty((0, 0)),
    tasks=np.empty(0),
    means=np.empty((0, 0)),
    scatter=np.empty((0, 0, 0)),
    within=None,
    freedom=np.empty(0),
    total=0,
    left_out=0,
    shift=0.0,
    scale=1.0,
    counted=True,
)


def unscaled(at: Parameters, shift: float, scale: float) -> Parameters:
    """Return to the unit of the rewards."""
    return Parameters(shift + scale * at.nu, scale**2 * at.psi, scale**2 * at.noise)


def scaled(at: Parameters, shift: float, scale: float) -> Parameters:
    """Go to the unit of the data."""
    return Parameters((at.nu - shift) / scale, at.psi / scale**2, at.noise / scale**2)


def extend(at: Parameters, active: BoolArray, known_noise: FloatArray) -> Parameters:
    """Give arms that are not active the mean of the others' means and variances, and no correlation."""
    if active.all():
        return at
    psi = np.diag(np.full(len(active), np.diag(at.psi).mean()))
    psi[np.ix_(active, active)] = at.psi
    nu = np.full(len(active), at.nu.mean())
    nu[active] = at.nu
    noise = np.where(known_noise > 0.0, known_noise, at.noise.mean())
    noise[active] = at.noise
    return Parameters(nu, psi, noise)


def _length(moves: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt((moves**2).sum(axis=-1)))
