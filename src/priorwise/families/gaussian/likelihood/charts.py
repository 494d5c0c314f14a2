"""Coordinates of structured covariances in which every vector is allowed: ``Psi = R R'`` with R
linear in them.

A variance of zero is an ordinary point of these coordinates, so that a fit at the boundary is found
like any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, final

import numpy as np

from priorwise.core import validation
from priorwise.core.types import FloatArray, IntArray

Structure = Literal["full", "diagonal", "exchangeable", "factor"]


class Chart(Protocol):
    """Coordinates ``x`` of a covariance."""

    @property
    def axes(self) -> FloatArray:
        """Orthogonal directions, ``(arm, axis)``, each of which has variances of its own."""
        ...

    @property
    def size(self) -> int:
        """Number of coordinates."""
        ...

    def root(self, x: FloatArray) -> FloatArray:
        """Return R, ``(arm, column)``."""
        ...

    def pull_back(self, grad: FloatArray) -> FloatArray:
        """Gradient in x of a function with this gradient in R."""
        ...

    def jacobian(self, x: FloatArray) -> FloatArray:
        """``dPsi / dx``, ``(size, arm, arm)``."""
        ...

    def bend(self, grad: FloatArray) -> FloatArray:
        """``sum_ij grad_ij d^2 Psi_ij / dx dx``, ``(size, size)``."""
        ...

    def coordinates(self, cov: FloatArray) -> FloatArray:
        """Coordinates of a covariance, or of one near it that has the structure."""
        ...

    def trim(self, x: FloatArray, small: float) -> FloatArray:
        """Set to zero the variances below ``small``."""
        ...

    def least(self, x: FloatArray) -> float:
        """Return the smallest of the variances that can be set to zero."""
        ...


@final
@dataclass(frozen=True, eq=False)
class EntryChart:
    """The free entries of R: a triangle (full), a diagonal, or loadings beside a diagonal
    (factor).
    """

    arms: int
    columns: int
    factors: int  # the first so many columns are a triangle; a diagonal follows if there are more
    rows: IntArray
    cols: IntArray

    @classmethod
    def of(cls, arms: int, factors: int, *, diagonal: bool) -> EntryChart:
        """Loadings with zeros above their diagonal, which removes rotations, and a diagonal beside
        them.
        """
        rows, cols = np.tril_indices(arms)
        rows, cols = rows[cols < factors], cols[cols < factors]
        if diagonal:
            rows, cols = (
                np.append(rows, np.arange(arms)),
                np.append(cols, factors + np.arange(arms)),
            )
        return cls(arms, factors + arms * diagonal, factors, rows, cols)

    @property
    def axes(self) -> FloatArray:
        """The arms."""
        return np.eye(self.arms)

    @property
    def size(self) -> int:
        """Number of free entries."""
        return self.rows.size

    def root(self, x: FloatArray) -> FloatArray:
        """Put the entries in their places."""
        root = np.zeros((self.arms, self.columns))
        root[self.rows, self.cols] = x
        return root

    def pull_back(self, grad: FloatArray) -> FloatArray:
        """Take the entries from their places."""
        return grad[self.rows, self.cols]

    def jacobian(self, x: FloatArray) -> FloatArray:
        """``e_i R_j' + R_j e_i'`` for the entry in row i and column j."""
        columns, index = self.root(x).T[self.cols], np.arange(self.size)
        out = np.zeros((self.size, self.arms, self.arms))
        out[index, self.rows] = columns
        return out + out.transpose(0, 2, 1)

    def bend(self, grad: FloatArray) -> FloatArray:
        """``2 grad_ik`` for entries in rows i and k of one column."""
        return np.where(
            self.cols[:, None] == self.cols, 2.0 * grad[np.ix_(self.rows, self.rows)], 0.0
        )

    def coordinates(self, cov: FloatArray) -> FloatArray:
        """Triangular root; for a factor model the leading eigenvectors, with the rest of the
        variances on the diagonal.
        """
        root = np.zeros((self.arms, self.columns))
        if self.factors == self.columns:
            root[:, : self.factors] = _triangular(validation.square_root(cov))
        else:
            variances = np.diag(cov)
            own = variances.copy()
            if self.factors:
                values, vectors = np.linalg.eigh(cov - 0.3 * np.diag(variances))
                leading = vectors[:, -self.factors :] * np.sqrt(
                    np.maximum(values[-self.factors :], 0.01 * variances.mean())
                )
                root[:, : self.factors] = _triangular(leading)
                own = np.maximum(variances - (leading**2).sum(axis=1), 0.1 * variances)
            root[np.arange(self.arms), self.factors + np.arange(self.arms)] = np.sqrt(own)
        return root[self.rows, self.cols]

    def trim(self, x: FloatArray, small: float) -> FloatArray:
        """Drop small eigenvalues of a full covariance, small variances otherwise."""
        root = self.root(x)
        if self.factors == self.columns:
            left, sizes, _ = np.linalg.svd(root)
            root = (
                _triangular(left * np.where(sizes**2 < small, 0.0, sizes))
                if (sizes**2 < small).any()
                else root
            )
        else:
            own = root[:, self.factors :]
            own[own**2 < small] = 0.0
        return root[self.rows, self.cols]

    def least(self, x: FloatArray) -> float:
        """Smallest eigenvalue of a full covariance, smallest own variance of an arm otherwise."""
        root = self.root(x)
        if self.factors == self.columns:
            return float(np.linalg.svd(root, compute_uv=False)[-1] ** 2)
        return float((np.diag(root[:, self.factors :]) ** 2).min())


@final
@dataclass(frozen=True, eq=False)
class ExchangeableChart:
    """``Psi = a^2 (I - 11'/n) + b^2 11'/n``: spread of the arms around their task's mean, and of
    that mean.
    """

    arms: int

    @property
    def axes(self) -> FloatArray:
        """The level of all arms, and differences between them."""
        return np.linalg.eigh(self.parts[-1])[1]

    @property
    def parts(self) -> FloatArray:
        """The projections, ``(size, arm, arm)``; with one arm there is nothing but its mean."""
        level = np.full((self.arms, self.arms), 1.0 / self.arms)
        return np.stack([np.eye(self.arms) - level, level][-self.size :])

    @property
    def size(self) -> int:
        """Two, or one for a single arm."""
        return min(self.arms, 2)

    def root(self, x: FloatArray) -> FloatArray:
        """Scaled projections side by side."""
        return np.concatenate(list(x[:, None, None] * self.parts), axis=1)

    def pull_back(self, grad: FloatArray) -> FloatArray:
        """Inner products with the projections."""
        return np.einsum("pij,ipj->p", self.parts, grad.reshape(self.arms, self.size, self.arms))

    def jacobian(self, x: FloatArray) -> FloatArray:
        """``2 x`` times each projection."""
        return 2.0 * x[:, None, None] * self.parts

    def bend(self, grad: FloatArray) -> FloatArray:
        """``2 tr(grad P)`` for each projection."""
        return np.diag(2.0 * np.einsum("pij,ij->p", self.parts, grad))

    def coordinates(self, cov: FloatArray) -> FloatArray:
        """Mean variance along each projection."""
        return np.sqrt(
            np.maximum(
                np.einsum("pij,ij->p", self.parts, cov) / np.einsum("pii->p", self.parts), 0.0
            )
        )

    def trim(self, x: FloatArray, small: float) -> FloatArray:
        """Drop small variances."""
        return np.where(x**2 < small, 0.0, x)

    def least(self, x: FloatArray) -> float:
        """Smaller of the two variances."""
        return float((x**2).min())


def chart_of(structure: Structure, arms: int, factors: int) -> Chart:
    """Coordinates of a structure."""
    if structure == "exchangeable":
        return ExchangeableChart(arms)
    if structure == "full":
        return EntryChart.of(arms, arms, diagonal=False)
    return EntryChart.of(arms, min(factors, arms) if structure == "factor" else 0, diagonal=True)


def _triangular(root: FloatArray) -> FloatArray:
    """Rotate the columns of a root so that it has zeros above its diagonal and none below zero on
    it.
    """
    lower = np.tril(root @ np.linalg.qr(root[: root.shape[1]].T)[0])
    signs = np.sign(np.diag(lower))
    return np.asarray(lower * np.where(signs == 0.0, 1.0, signs))
