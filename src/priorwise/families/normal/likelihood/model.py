"""The model that is fitted: a structured normal prior in unconstrained coordinates, with its log
marginal likelihood.

A covariance is ``S = R R'`` with R linear in its coordinates. Every vector is allowed, and a
variance of zero is an ordinary point, so that a fit at the boundary is found like any other.
"""

from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, final

import numpy as np

from priorwise.core.types import FloatArray, IntArray
from priorwise.core.validation import freeze, square_root
from priorwise.families.normal.likelihood.tasks import NormalTasks, Parameters, Sums

Structure = Literal["full", "diagonal", "exchangeable", "factor"]

LARGEST_LOG: Final = 100.0
"""Of a noise in the unit of the data; steps that overshoot stay in the range of floats."""
ZERO: Final = 1e-12  # eigenvalues this small, relative to the largest, are zero


@final
@dataclass(frozen=True, eq=False)
class Chart:
    """Coordinates of a covariance: ``R = axes @ B`` where B has a coordinate at each of some
    places, and zeros elsewhere.

    The places are a triangle (full), a diagonal, or loadings beside a diagonal (factor; zeros above
    the loadings' diagonal remove rotations). The axes are those of the weights; for exchangeable
    arms, the level of all of them and differences between them, which share one coordinate.
    """

    axes: FloatArray  # (d, d), orthogonal
    rows: IntArray
    cols: IntArray
    which: IntArray  # coordinate at each place
    factors: int  # the first so many columns are a triangle; a diagonal follows if there are more

    def __init__(
        self, structure: Structure, dim: int, factors: int = 1, around: FloatArray | None = None
    ) -> None:
        """Find the places. A full covariance ``around`` a given one is seen in that one's
        eigenvectors, from the largest eigenvalue to the smallest.

        The places are then a triangle, and all of the block that belongs to eigenvalues of zero.
        Unlike a triangle in the weights, the chart does not depend on their order, and what moves
        the eigenvectors adds to the smaller of two variances only.
        """
        columns = {"full": dim, "factor": min(factors, dim)}.get(structure, 0)
        rows, cols = np.tril_indices(dim)
        rows, cols = rows[cols < columns], cols[cols < columns]
        axes, more = np.eye(dim), (np.arange(dim), columns + np.arange(dim))
        if around is not None:
            values, vectors = np.linalg.eigh(around)
            axes, positive = vectors[:, ::-1], int((values > ZERO * values[-1]).sum())
            block = np.triu_indices(dim - positive, 1)
            more = positive + block[0], positive + block[1]
        if structure != "full" or around is not None:
            rows, cols = np.append(rows, more[0]), np.append(cols, more[1])
        which = np.arange(len(rows))
        if structure == "exchangeable":
            axes = np.linalg.eigh(np.full((dim, dim), 1.0 / dim))[1]
            which = (which == dim - 1).astype(np.int64) if dim > 1 else which
        freeze(self, axes=axes, rows=rows, cols=cols, which=which, factors=columns)

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return int(self.which.max()) + 1

    @property
    def triangular(self) -> bool:
        """Whether B is a triangle and nothing else: the covariance is full."""
        return self.factors == len(self.axes)

    def root(self, x: FloatArray) -> FloatArray:
        """Return R, ``(d, column)``; for each of many x, ``(size, many)``, as ``(d, column,
        many)``.
        """
        B = np.zeros((len(self.axes), int(self.cols.max()) + 1, *x.shape[1:]))
        B[self.rows, self.cols] = x[self.which]
        return np.asarray(np.tensordot(self.axes, B, axes=1))

    def curves(self, root: FloatArray, cov_slope: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``dS / dx``, ``(size, d, d)``, and ``sum_ij cov_slope_ij d^2 S_ij / dx dx``, ``(size,
        size)``.

        For a place in row i and column j: ``a_i R_j' + R_j a_i'`` with the axes a; for two in rows
        i and k of one column: ``2 a_i'cov_slope a_k``.
        """
        half = self.axes.T[self.rows, :, None] * root.T[self.cols, None, :]
        inner = 2.0 * (self.axes.T @ cov_slope @ self.axes)[np.ix_(self.rows, self.rows)]
        bend = np.where(self.cols[:, None] == self.cols, inner, 0.0)
        if len(self.which) > self.size:
            share = np.equal.outer(np.arange(self.size), self.which).astype(np.float64)
            half, bend = np.tensordot(share, half, axes=1), share @ bend @ share.T
        return half + half.transpose(0, 2, 1), bend

    def trimmed(self, root: FloatArray, small: float | None = None) -> tuple[FloatArray, bool]:
        """Root of the covariance with the variances below ``small`` set to zero, by default the
        smallest one, and whether there were any: eigenvalues of a full covariance, variances along
        the axes otherwise.
        """
        if self.triangular:
            axes, sizes, _ = np.linalg.svd(root)
            loadings = np.zeros((len(root), 0))
        else:
            axes, B = self.axes, self.axes.T @ root
            loadings, sizes = B[:, : self.factors], np.abs(np.diag(B[:, self.factors :]))
        drop = sizes**2 < ((1.0 + 1e-6) * sizes.min() ** 2 if small is None else small)
        half = axes @ np.hstack([loadings, np.diag(np.where(drop, 0.0, sizes))])
        return np.asarray(half), bool(drop.any())

    def read(self, root: FloatArray) -> FloatArray:
        """Coordinates of a root that has the structure; the columns of a full one are rotated."""
        B, x = self.axes.T @ root, np.zeros(self.size)
        if self.triangular and np.triu(B, 1).any():
            B = np.tril(B @ np.linalg.qr(B.T)[0])
            B = B * np.where(np.diag(B) < 0.0, -1.0, 1.0)
        x[self.which] = B[self.rows, self.cols]
        return x


@final
@dataclass(frozen=True, eq=False)
class Model:
    """``sum_t log N(r_t; X m, X S X' + noise) + log_det log det S - trace tr S``.

    Coordinates are those of the mean (one each, or one for all arms), of the covariance (its
    chart), and the logarithms of the noise if it is estimated (one for all, or one each).
    """

    tasks: NormalTasks
    chart: Chart
    mean_map: FloatArray  # (d, coordinate)
    # (noise, coordinate); no column if the noise is known, a row of zeros for one that is
    noise_map: FloatArray
    known_noise: FloatArray  # (noise,), read where it is known
    log_det: float = 0.0
    trace: float = 0.0
    least_log_noise: float = -LARGEST_LOG

    @property
    def cuts(self) -> tuple[int, int]:
        """Where the coordinates of the covariance begin and end."""
        begin = self.mean_map.shape[1]
        return begin, begin + self.chart.size

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return self.cuts[1] + self.noise_map.shape[1]

    @property
    def low(self) -> FloatArray:
        """Least coordinates: only those of the noise have any."""
        return np.where(np.arange(self.size) < self.cuts[1], -np.inf, self.least_log_noise)

    def coordinates(self, of: Parameters) -> FloatArray:
        """Coordinates of given parameters, or of some near them that the model has.

        Of a covariance: a triangular root; for a factor model the leading eigenvectors, with the
        rest of the variances on the diagonal; the mean variance along axes that share one.
        """
        chart, cov, dim = self.chart, of.cov, len(of.cov)
        if chart.triangular:
            theta = chart.read(square_root(cov))
        else:
            own = np.asarray(np.diag(chart.axes.T @ cov @ chart.axes), dtype=np.float64)
            loadings = np.zeros((dim, 0))
            if chart.factors:
                values, vectors = np.linalg.eigh(cov - 0.3 * np.diag(own))
                sizes = np.maximum(values[-chart.factors :], 0.01 * own.mean())
                loadings = vectors[:, -chart.factors :] * np.sqrt(sizes)
                own = np.maximum(own - (loadings**2).sum(axis=1), 0.1 * own)
                turn = np.linalg.qr(loadings[: chart.factors].T)[0]
                loadings = loadings @ turn * np.where(np.diag(loadings @ turn) < 0.0, -1.0, 1.0)
            shared = chart.which[-dim:] - chart.which[-dim:].min()
            means = (np.bincount(shared, own) / np.bincount(shared))[shared]
            diagonal = np.diag(np.sqrt(np.maximum(means, 0.0)))
            theta = chart.read(chart.axes @ np.hstack([loadings, diagonal]))
        parts = [np.linalg.lstsq(self.mean_map, of.mean)[0], theta]
        if self.noise_map.size:
            parts.append(np.linalg.lstsq(self.noise_map, np.log(of.noise))[0])
        return np.concatenate(parts)

    def at(self, x: FloatArray, *, curved: bool = True) -> "Place":
        """Value and gradient; ``curved`` if the information will be asked for."""
        beta, theta, tau = np.split(x, self.cuts)
        chart, root, noise = self.chart, self.chart.root(theta), self.known_noise
        if tau.size:
            estimate = np.exp(np.clip(self.noise_map @ tau, -LARGEST_LOG, LARGEST_LOG))
            noise = np.where(self.noise_map.any(axis=1), estimate, noise)
        at = Parameters(self.mean_map @ beta, root @ root.T, noise)
        sums = self.tasks.sums(at, noisy=tau.size > 0, curved=curved)
        value = sums.value - self.trace * float(np.trace(at.cov))
        inverse: FloatArray | None = None
        cov_slope = sums.cov - self.trace * np.eye(len(root))
        if self.log_det:
            sign, log_det = np.linalg.slogdet(at.cov)
            value += self.log_det * float(log_det) if sign > 0.0 else -np.inf
            inverse = np.zeros_like(at.cov)
            if sign > 0.0:
                inverse = np.asarray(np.linalg.inv(at.cov), dtype=np.float64)
            cov_slope = cov_slope + self.log_det * inverse
        by_place = (chart.axes.T @ (2.0 * cov_slope @ root))[chart.rows, chart.cols]
        by_coordinate = np.bincount(chart.which, by_place), (sums.noise * noise) @ self.noise_map
        parts = [sums.mean @ self.mean_map, *by_coordinate]
        gradient = np.asarray(np.concatenate(parts), dtype=np.float64)
        return Place(self, x, at, root, sums, value, gradient, cov_slope, inverse)


@final
@dataclass(frozen=True, eq=False)
class Place:
    """The model at some coordinates."""

    model: Model
    x: FloatArray
    at: Parameters
    root: FloatArray  # (d, column)
    sums: Sums
    value: float  # minus infinity where the regulariser forbids a singular covariance
    gradient: FloatArray
    cov_slope: FloatArray  # regulariser included
    inverse: FloatArray | None  # of the covariance, if the regulariser has its determinant

    def information(
        self, chart: Chart | None = None, root: FloatArray | None = None, *, expected: bool = False
    ) -> FloatArray:
        """Information about the coordinates, those of the covariance in the model's chart or in
        another; observed, or expected, plus what curved coordinates add where that is positive.

        It is that about (mean, covariance, noise), through the coordinates' first derivatives, less
        the slopes times their second ones.
        """
        model, at, d = self.model, self.at, self.model.tasks.dim
        chart, root = chart or model.chart, self.root if root is None else root
        sums = self.sums
        if sums.information is None:  # was not asked for
            sums = model.tasks.sums(at, noisy=model.noise_map.size > 0, curved=True)
        assert sums.information is not None
        known = sums.information
        cov, noise, flat = slice(d, d + d * d), slice(d + d * d, None), known.place.ravel()
        # about (mean, vec cov, noise); order of the axes: of the mean or of E, ab, then of F, cd
        natural = np.zeros((d + d * d + len(at.noise),) * 2)
        natural[:d, :d] = sums.precision
        quads = (known.squares if expected else known.pairs)[flat][:, flat].reshape(d, d, d, d)
        natural[cov, cov] = quads.transpose(2, 0, 1, 3).reshape(d * d, d * d)  # Q_ad P_bc
        if expected:  # without what noise and others have in common
            natural[noise, noise] = np.diag(known.of_noise)
        else:
            natural[:d, cov] = known.across[known.place].reshape(d, d * d)  # P_ac g_d
            natural[:d, noise] = known.with_mean.T
            natural[cov, noise] = known.with_cov.reshape(-1, d * d).T
            natural[cov, :d], natural[noise, :d] = natural[:d, cov].T, known.with_mean
            natural[noise, cov], natural[noise, noise] = natural[cov, noise].T, known.with_noise
        if self.inverse is not None:  # of log det S: tr(S^-1 E S^-1 F)
            outer = self.inverse[:, None, None, :] * self.inverse[None, :, :, None]
            natural[cov, cov] += model.log_det * outer.reshape(d * d, d * d)
        cov_slope, noise_slope = self.cov_slope, self.sums.noise * at.noise
        if expected:
            values, vectors = np.linalg.eigh(cov_slope)
            cov_slope = vectors * np.minimum(values, 0.0) @ vectors.T
            noise_slope = np.minimum(noise_slope, 0.0)
        jacobian, bend = chart.curves(root, cov_slope)
        begin, end = model.mean_map.shape[1], model.mean_map.shape[1] + chart.size
        moves = np.zeros((end + model.noise_map.shape[1], len(natural)))
        moves[:begin, :d] = model.mean_map.T
        moves[begin:end, cov] = jacobian.reshape(chart.size, d * d)
        moves[end:, noise] = (model.noise_map * at.noise[:, None]).T
        out = moves @ natural @ moves.T
        out[begin:end, begin:end] -= bend
        out[end:, end:] -= model.noise_map.T @ (model.noise_map * noise_slope[:, None])
        return np.asarray((out + out.T) / 2.0)


scoring = partial(Place.information, expected=True)
"""What :func:`~priorwise.fitting.newton.climb` takes where the observed information is not
positive.
"""
