"""Coordinates of a full covariance in its own eigenvectors, for its uncertainty near a fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.families.gaussian.likelihood.charts import EntryChart

ZERO: Final = 1e-12
"""Eigenvalues this small, relative to the largest, are zero."""


@final
@dataclass(frozen=True, eq=False)
class RotatedChart:
    """Entries of ``V' R`` for a full covariance near one with eigenvectors V, from the largest
    eigenvalue to the smallest.

    The entries are a triangle, and all of the block that belongs to eigenvalues of zero. Unlike a
    triangle in the arms, the chart does not depend on their order, and what moves the eigenvectors
    adds to the smaller of two variances only.
    """

    vectors: FloatArray  # (arm, eigenvalue)
    entries: EntryChart

    @classmethod
    def at(cls, cov: FloatArray) -> tuple[RotatedChart, FloatArray]:
        """Return the chart of a covariance, and the covariance's coordinates in it."""
        arms = len(cov)
        values, vectors = np.linalg.eigh(cov)
        values, vectors = np.where(values > ZERO * values[-1], values, 0.0)[::-1], vectors[:, ::-1]
        positive = int((values > 0.0).sum())
        rows, cols = np.tril_indices(arms)
        more_rows, more_cols = np.triu_indices(arms - positive, 1)
        rows, cols = np.append(rows, positive + more_rows), np.append(cols, positive + more_cols)
        return cls(vectors, EntryChart(arms, arms, arms, rows, cols)), np.where(
            rows == cols, np.sqrt(values)[rows], 0.0
        )

    @property
    def axes(self) -> FloatArray:
        """The eigenvectors."""
        return self.vectors

    @property
    def size(self) -> int:
        """Number of entries."""
        return self.entries.size

    def root(self, x: FloatArray) -> FloatArray:
        """Rotate back."""
        return np.asarray(self.vectors @ self.entries.root(x))

    def pull_back(self, grad: FloatArray) -> FloatArray:
        """Rotate, and take the entries."""
        return self.entries.pull_back(self.vectors.T @ grad)

    def jacobian(self, x: FloatArray) -> FloatArray:
        """Rotate that of the entries."""
        return np.asarray(self.vectors @ self.entries.jacobian(x) @ self.vectors.T)

    def bend(self, grad: FloatArray) -> FloatArray:
        """Bend of the entries under the rotated gradient."""
        return self.entries.bend(self.vectors.T @ grad @ self.vectors)

    def coordinates(self, cov: FloatArray) -> FloatArray:
        """Triangular root in the eigenvectors."""
        return self.entries.coordinates(self.vectors.T @ cov @ self.vectors)

    def trim(self, x: FloatArray, small: float) -> FloatArray:
        """Drop small eigenvalues."""
        return self.entries.trim(x, small)

    def least(self, x: FloatArray) -> float:
        """Smallest eigenvalue."""
        return self.entries.least(x)
