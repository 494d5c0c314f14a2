"""The law of plausible normal priors around a fit: normal in a root of the covariance, with the fit
as its mean.

A covariance is drawn as ``L L'`` with L normal, so that every draw is one, also at a boundary,
where a variance is zero but plausible ones are not. By itself that would be too wide: what is not
known of L adds to the variances. The mean of L is therefore shortened by as much, so that the mean
of a drawn covariance is the fitted one, along its principal axes. Standard deviations of its
entries are their standard errors where these are well below the smallest eigenvalues. Where they
are not, the two differ, entry by entry, mostly downwards: covariances as far from the fit as that
in every direction at once are not positive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core.fits import Uncertainty
from priorwise.core.types import FloatArray
from priorwise.families.gaussian.exchangeable import ExchangeableGaussianPrior
from priorwise.families.gaussian.likelihood.charts import Structure
from priorwise.families.gaussian.likelihood.model import extend, prior_of
from priorwise.families.gaussian.likelihood.objective import Parameters
from priorwise.families.gaussian.prior import GaussianPrior


@final
@dataclass(frozen=True, eq=False, init=False)
class GaussianUncertainty(Uncertainty):
    """With z standard normal: ``nu = mean + mean_moves z``, ``Psi = L L'``, ``L = root + root_moves
    z``, and log-normal noise.

    The mean over draws is the fit, but for variances at zero, and the order of the arms does not
    matter. Arms outside ``active`` were never pulled; they get the average of the others, as in the
    fit.
    """

    family: ClassVar[str] = "gaussian-uncertainty"

    structure: Structure
    active: FloatArray  # (all arms,): 1 or 0
    mean: FloatArray  # (arm,)
    mean_moves: FloatArray  # (arm, z)
    root: FloatArray  # (arm, column)
    root_moves: FloatArray  # (arm, column, z)
    noise: FloatArray  # (all arms,)
    noise_moves: FloatArray  # (arm, z), of the logarithm

    def __init__(
        self,
        structure: Structure,
        active: ArrayLike,
        mean: ArrayLike,
        mean_moves: ArrayLike,
        root: ArrayLike,
        root_moves: ArrayLike,
        noise: ArrayLike,
        noise_moves: ArrayLike,
    ) -> None:
        """Freeze the law."""
        object.__setattr__(self, "structure", structure)
        arrays = {
            "active": active,
            "mean": mean,
            "mean_moves": mean_moves,
            "root": root,
            "root_moves": root_moves,
            "noise": noise,
            "noise_moves": noise_moves,
        }
        for name, array in arrays.items():
            frozen = np.array(array, dtype=np.float64)
            frozen.setflags(write=False)
            object.__setattr__(self, name, frozen)

    def draw(
        self, prior: GaussianPrior | ExchangeableGaussianPrior, rng: np.random.Generator, n: int
    ) -> list[object]:
        """Draw z and return the priors."""
        active = self.active.astype(bool)
        z = rng.standard_normal((n, self.mean_moves.shape[1]))
        means = self.mean + z @ self.mean_moves.T
        noises = self.noise[active] * np.exp(
            z @ self.noise_moves.T - 0.5 * (self.noise_moves**2).sum(axis=1)
        )
        draws: list[object] = []
        for each, nu, noise in zip(z, means, noises, strict=True):
            root = self.root + self.root_moves @ each
            draws.append(
                prior_of(
                    self.structure, extend(Parameters(nu, root @ root.T, noise), active, self.noise)
                )
            )
        return draws


def centred(root: FloatArray, moves: FloatArray, axes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Keep the variance along each axis: a row ``l + M z`` of the root gets the mean ``|l|^2`` of
    its squared length.

    That is ``m = |l|^2`` plus ``k = tr(M M')`` before; l is shortened to ``m - k``. Where k is
    above m, M is shortened to m, for a variance cannot be less known than if nothing but its size
    were: l is then zero. Rows of zero, at a boundary, stay as they are. In the end the same small
    change is made to the arms' variances, as the axes' moves are correlated, by scaling their rows.

    Parameters
    ----------
    root, moves
        The root, ``(arm, column)``, and how it moves with z, ``(arm, column, z)``.
    axes
        Orthogonal directions, ``(arm, axis)``.

    """
    rows, steps = axes.T @ root, np.einsum("ai,acz->icz", axes, moves)
    m, k = (rows**2).sum(axis=1), (steps**2).sum(axis=(1, 2))
    inside = m > 0.0
    damped = np.where(inside & (k > m), np.sqrt(m / np.where(k > m, k, 1.0)), 1.0)
    kept = np.sqrt(1.0 - np.minimum(k / np.where(inside, m, 1.0), 1.0))
    rows *= np.where(inside, kept, 1.0)[:, None]
    steps *= damped[:, None, None]
    new, more = axes @ rows, np.einsum("ai,icz->acz", axes, steps)
    before, after = (root**2).sum(axis=1), (new**2).sum(axis=1) + (more**2).sum(axis=(1, 2))
    scale = np.where(before > 0.0, np.sqrt(before / np.where(after > 0.0, after, 1.0)), 1.0)
    return scale[:, None] * new, scale[:, None, None] * more
