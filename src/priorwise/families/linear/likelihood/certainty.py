"""How sure a linear fit is: standard errors, and the law of plausible priors.

Covariances are drawn around the fitted S as ``A M^-1/2 exp(E) M^-1/2 A'``. Here A = D S^1/2, with S
in the data's units and D those units; E is symmetric and normal; M is the mean of exp(E). So draws
are positive definite, do not depend on the order of the features, and have the fit as their mean.
Where little is known an exponential would spread too far; so a principal component of E whose
standard deviation is s by the delta method has ``log(1 + s^2)^(1/2)`` instead, as the log-normal
variable has whose relative error is s.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.fits import Uncertainty
from priorwise.core.numerics import symmetric
from priorwise.core.types import FloatArray
from priorwise.families.linear.likelihood.climb import FAR, Point, definite
from priorwise.families.linear.prior import LinearGaussianPrior

UNKNOWN: Final = 0.5
"""Least information, in units of the data: what the default regulariser alone says about the log of
a variance.
"""

PAIRS: Final = 2048
"""Fixed normal variables, and their negatives, over which M is averaged: its error is about 2 %
where s is 1.
"""


@final
@dataclass(frozen=True, eq=False, init=False)
class LinearUncertainty(Uncertainty):
    """Normal law of the mean, of the logarithm E of the covariance, and of the log noise variance
    where that was estimated.

    Parameters
    ----------
    root
        A, ``(dim, dim)``: a root of the covariance at the fit; where the likelihood has no maximum
        in the interior, at that with the default regulariser.
    diagonal
        Whether only the diagonal of E varies.
    information
        Observed information, ``(parameter, parameter)``, in units of the data: mean, then E in
        :func:`basis`, then the log noise. Eigenvalues count as at least 1/2.
    units
        Units of the mean, ``(dim,)``.

    """

    family: ClassVar[str] = "linear-uncertainty"

    root: FloatArray
    diagonal: bool
    information: FloatArray
    units: FloatArray

    def __init__(
        self, root: ArrayLike, diagonal: bool, information: ArrayLike, units: ArrayLike
    ) -> None:
        """Check and freeze the law."""
        object.__setattr__(self, "root", validation.matrix("root", root))
        object.__setattr__(self, "diagonal", bool(diagonal))
        object.__setattr__(self, "information", validation.matrix("information", information))
        object.__setattr__(self, "units", validation.vector("units", units, len(self.root)))

    @cached_property
    def deviations(self) -> FloatArray:
        """A root of the inverse information: by the delta method, draws are this times standard
        normals.
        """
        if definite(self.information - UNKNOWN * np.eye(len(self.information))):
            root = np.linalg.inv(np.linalg.cholesky(self.information)).T
        else:
            curves, axes = np.linalg.eigh(self.information)
            root = axes / np.sqrt(np.maximum(curves, UNKNOWN))
        scale = np.ones(len(root))
        scale[: self.units.size] = self.units
        return np.asarray(scale[:, None] * root)

    @cached_property
    def _tempered(self) -> tuple[FloatArray, FloatArray]:
        """Deviations that exponentials of E and the log noise can take, and ``A M^-1/2``."""
        d, out = len(self.root), self.deviations.copy()
        directions = basis(d, diagonal=self.diagonal)
        free = d + len(directions)
        out[free:] = _log_normal(out[free:])[0]
        out[d:free], left, sizes = _log_normal(out[d:free])
        # of the principal components
        z = np.random.Generator(np.random.Philox(key=0)).standard_normal((PAIRS, len(sizes)))
        values, axes = np.linalg.eigh(np.tensordot(z * sizes @ left.T, directions, axes=1))
        mean = np.einsum("zij,zj,zkj->ik", axes, np.cosh(values), axes) / PAIRS
        values, axes = np.linalg.eigh(mean)
        return out, self.root @ (axes / np.sqrt(values) @ axes.T)

    def draw(self, prior: Any, rng: np.random.Generator, n: int) -> list[Any]:
        """``(m, E, log v) ~ N``; the means of the covariance and of v are the fit's."""
        d = len(self.root)
        directions = basis(d, diagonal=self.diagonal)
        free = d + len(directions)
        deviations, root = self._tempered
        shift = -0.5 * float((deviations[free:] ** 2).sum())
        out = []
        for change in rng.standard_normal((n, deviations.shape[1])) @ deviations.T:
            values, axes = np.linalg.eigh(np.tensordot(change[d:free], directions, axes=1))
            half = root @ axes * np.exp(values / 2.0)
            noise = (
                prior.noise_var * np.exp(change[free] + shift)
                if len(change) > free
                else prior.noise_var
            )
            out.append(
                LinearGaussianPrior(
                    prior.mean + change[:d], symmetric(half @ half.T), noise, prior.contexts
                )
            )
        return out


def _log_normal(deviations: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Principal components, and their sizes, of a normal vector whose exponentials have the given
    relative errors.
    """
    left, sizes, right = np.linalg.svd(deviations, full_matrices=False)
    sizes = np.sqrt(np.log1p(sizes**2))
    return left * sizes @ right, left, sizes


def basis(dim: int, *, diagonal: bool) -> FloatArray:
    """Orthonormal basis of the symmetric or diagonal matrices, ``(direction, dim, dim)``."""
    rows, columns = (np.arange(dim), np.arange(dim)) if diagonal else np.tril_indices(dim)
    out = np.zeros((len(rows), dim, dim))
    places = np.arange(len(rows))
    out[places, rows, columns] = out[places, columns, rows] = np.where(
        rows == columns, 1.0, np.sqrt(0.5)
    )
    return out


def uncertainty(top: Point, units: FloatArray) -> LinearUncertainty:
    """Law of plausible priors from the observed information at a maximum."""
    d, like, diagonal, v = (
        top.tasks.dim,
        top.likelihood,
        len(top.chart.rows) == top.tasks.dim,
        top.noise_var,
    )
    values, axes = np.linalg.eigh(top.root @ top.root.T)
    root = axes * np.sqrt(np.maximum(values, 0.0)) @ axes.T
    directions = basis(d, diagonal=diagonal)
    free = d + len(directions)
    jacobian = np.zeros((free + 1, d + d * d + 1))
    jacobian[:d, :d] = np.eye(d)
    jacobian[d:free, d:-1] = (root @ directions @ root).reshape(len(directions), d * d)
    jacobian[-1, -1] = v
    information = jacobian @ like.information @ jacobian.T
    # the second derivatives of R exp(E) R are R (B C + C B) R / 2, those of log det are 0
    slope = root @ (like.cov_gradient() - top.regulariser / (2.0 * FAR) * np.eye(d)) @ root
    information[d:free, d:free] -= symmetric(
        np.einsum("kab,bc,lca->kl", directions, slope, directions)
    )
    information[-1, -1] -= v * like.noise_gradient()
    if not top.chart.noise:
        information = information[:-1, :-1]
    return LinearUncertainty(units[:, None] * root, diagonal, symmetric(information), units)


def std_errors(
    top: Point, units: FloatArray, reward: float, *, interior: bool
) -> dict[str, FloatArray]:
    """Standard errors from the observed information in the chart of the climb, by the delta method;
    NaN at the boundary.
    """
    d, chart = top.tasks.dim, top.chart
    nothing = np.full((d, d), np.nan)
    if not interior or not definite(top.information):
        means = np.sqrt(
            np.where(
                np.diag(top.likelihood.mean_precision) > 0,
                np.diag(top.likelihood.mean_covariance),
                np.nan,
            )
        )
        errors = {"mean": means * units, "cov": nothing}
        return errors | ({"noise_var": np.array(np.nan)} if chart.noise else {})
    covariance = np.linalg.inv(top.information)
    free = d + len(chart.rows)
    tangents = chart.tangents(top.root)  # (entry, dim, dim)
    spread = np.einsum("kab,kl,lab->ab", tangents, covariance[d:free, d:free], tangents)
    errors = {
        "mean": np.sqrt(np.diag(covariance)[:d]) * units,
        "cov": np.sqrt(np.maximum(spread, 0.0)) * np.outer(units, units),
    }
    return errors | (
        {"noise_var": np.sqrt(covariance[-1, -1]) * top.noise_var * reward**2}
        if chart.noise
        else {}
    )
