"""Marginal likelihood of normal weights, from normal equations: value, gradient and observed
information.

A task with features X and rewards r has ``r ~ N(X m, V)``, ``V = X S X' + v I``, for ``w ~ N(m,
S)`` and noise variance v. All that is needed follows from X'X, X'r and r'r (see ``kernel``):

    P = X'V^-1 X,      g = X'V^-1 (r - X m),      d log p = g'dm + tr((g g' - P) dS) / 2.

The mean is profiled out: for each (S, v) it is the generalised least-squares estimate, ``m = (sum
P)^-1 sum g`` with the g of a mean of 0. Sums over tasks are taken in blocks, so small that a matrix
product of one block is not worth a second thread.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Final, final

import numpy as np

from priorwise.core.types import FloatArray, IntArray
from priorwise.families.linear.likelihood.kernel import evaluate
from priorwise.kernels.compiling import LANES

SINGLE: Final = 2**18
"""Multiplications below which a matrix product runs in one thread."""


@final
@dataclass(frozen=True, eq=False)
class LinearTasks:
    """Normal equations of the tasks that have pulls."""

    gram: FloatArray  # (task, dim, dim)
    moments: FloatArray  # (task, dim)
    squares: FloatArray  # (task,)
    pulls: FloatArray  # (task,)

    @property
    def dim(self) -> int:
        """Number of features."""
        return self.moments.shape[1]

    def rescaled(self, units: FloatArray, reward: float) -> LinearTasks:
        """Features in ``units`` (dim,) and rewards in units of ``reward``."""
        gram = self.gram * (1.0 / np.outer(units, units))
        return LinearTasks(
            gram, self.moments / (units * reward), self.squares / reward**2, self.pulls
        )

    def centred(self, mean: FloatArray) -> LinearTasks:
        """Rewards minus ``X mean``."""
        fitted = self.gram @ mean
        squares = self.squares - np.einsum("ti,i->t", 2.0 * self.moments - fitted, mean)
        return LinearTasks(self.gram, self.moments - fitted, np.maximum(squares, 0.0), self.pulls)

    def regression(self) -> FloatArray:
        """Weights of a regression common to all tasks; 0 in directions never seen."""
        gram = self.gram.sum(axis=0)
        return np.asarray(
            np.linalg.pinv(gram, rcond=1e-12, hermitian=True) @ self.moments.sum(axis=0)
        )

    def every(self, step: int) -> LinearTasks:
        """Every so many of the tasks."""
        return LinearTasks(
            *(
                np.ascontiguousarray(each[::step])
                for each in (self.gram, self.moments, self.squares, self.pulls)
            )
        )

    def units(self) -> tuple[FloatArray, float]:
        """Root mean square of each feature, and of what a regression common to all tasks leaves of
        the rewards.

        A feature that was never seen has the unit of the others, and rewards without any spread a
        unit of 1e-6 of their size.
        """
        pulls = self.pulls.sum()
        gram, moments, square = self.gram.sum(axis=0), self.moments.sum(axis=0), self.squares.sum()
        sizes = np.diag(gram) / pulls
        known = sizes > 0
        sizes = np.where(known, sizes, sizes[known].mean() if known.any() else 1.0)
        left = square - moments @ np.linalg.pinv(gram, rcond=1e-12, hermitian=True) @ moments
        left = max(left, 1e-12 * square) / pulls
        return np.sqrt(sizes), float(np.sqrt(left)) if left > 0 else 1.0


@final
@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums over tasks, with the derivatives' or without."""

    values: FloatArray  # (task,)
    scores: FloatArray  # sum of g, (dim,)
    precision: FloatArray  # sum of P, (dim, dim)
    outer: FloatArray  # sum of g g', (dim, dim)
    pairs: FloatArray  # sum of P_bc (g_a g_d - P_ad / 2), (pair, pair)
    across: FloatArray  # sum of P_ab g_c, (pair, dim)
    double: FloatArray  # sum of z = X'V^-2 e, (dim,)
    double_outer: FloatArray  # sum of z g', (dim, dim)
    double_precision: FloatArray  # sum of X'V^-2 X, (dim, dim)
    noise: FloatArray  # (4,), see the kernel


@final
@dataclass(frozen=True, eq=False)
class LinearLikelihood:
    """The likelihood at a root L of the covariance, ``S = L L'``, and a noise variance; the mean is
    the best one unless given.
    """

    tasks: LinearTasks
    root: FloatArray  # (dim, dim)
    noise_var: float
    given_mean: FloatArray | None = None

    @cached_property
    def _values(self) -> _Sums:
        """At the given mean, or at 0, from where the best one is a step of Newton's method away."""
        mean = np.zeros(self.tasks.dim) if self.given_mean is None else self.given_mean
        return self._sum(mean, detail=False)

    @cached_property
    def _details(self) -> _Sums:
        """At the mean."""
        return self._sum(self.mean, detail=True)

    def _sum(self, mean: FloatArray, *, detail: bool) -> _Sums:
        tasks, d = self.tasks, self.tasks.dim
        place = _places(d)
        pairs = int(place.max()) + 1
        block = min(max(SINGLE // pairs**2 // LANES, 1), 16) * LANES
        root = np.ascontiguousarray(self.root)
        packed, weights, noise = (
            np.empty((block, pairs)),
            np.empty((block, pairs)),
            np.empty((block, 4)),
        )
        g, z = np.empty((block, d)), np.empty((block, d))
        out = _Sums(
            np.empty(len(tasks.pulls)), np.zeros(d), np.zeros(pairs), np.zeros((d, d)),
            np.zeros((pairs, pairs)),
            np.zeros((pairs, d)), np.zeros(d), np.zeros((d, d)), np.zeros((d, d)), np.zeros(4),
        )  # fmt: skip
        for first in range(0, len(tasks.pulls), block):
            here = slice(first, first + block)
            n = len(tasks.pulls[here])
            evaluate(
                tasks.gram[here], tasks.moments[here], tasks.squares[here], tasks.pulls[here], root,
                float(self.noise_var), mean,
                int(detail), out.values[here], g, packed, weights, z, noise, out.double_precision,
            )  # fmt: skip
            p, own, other = packed[:n], g[:n], z[:n]
            _add(out.scores, own.sum(axis=0))
            _add(out.precision, p.sum(axis=0))
            if detail:
                _add(out.outer, own.T @ own)
                _add(out.pairs, p.T @ weights[:n])
                _add(out.across, p.T @ own)
                _add(out.double, other.sum(axis=0))
                _add(out.double_outer, other.T @ own)
                _add(out.noise, noise[:n].sum(axis=0))
        lower = np.tril(out.double_precision)
        whole = lower + np.tril(lower, -1).T
        return replace(out, precision=out.precision[place], double_precision=whole)

    @property
    def mean_precision(self) -> FloatArray:
        """Sum of P over tasks: the information about the mean."""
        return self._values.precision

    @cached_property
    def mean_covariance(self) -> FloatArray:
        """Inverse of it, 0 in directions that no task has seen."""
        return np.asarray(np.linalg.pinv(self.mean_precision, rcond=1e-10, hermitian=True))

    @cached_property
    def mean(self) -> FloatArray:
        """Given mean, or the generalised least-squares estimate."""
        return (
            np.asarray(self.mean_covariance @ self._values.scores)
            if self.given_mean is None
            else self.given_mean
        )

    def by_task(self) -> FloatArray:
        """Log marginal likelihood of each task."""
        return (
            self._values.values
            if self.given_mean is not None
            else self._sum(self.mean, detail=False).values
        )

    @cached_property
    def value(self) -> float:
        """Log marginal likelihood of all tasks."""
        total = float(self._values.values.sum())
        return (
            total
            if self.given_mean is not None
            else total + 0.5 * float(self._values.scores @ self.mean)
        )

    def cov_gradient(self) -> FloatArray:
        """Gradient in S, ``sum (g g' - P) / 2``."""
        return 0.5 * (self._details.outer - self._details.precision)

    def noise_gradient(self) -> float:
        """Gradient in v, ``sum (|V^-1 e|^2 - tr V^-1) / 2``."""
        v, (size, trace, _, _) = self.noise_var, self._details.noise
        return float(0.5 * (size / v**2 - (self.tasks.pulls.sum() - trace / v) / v))

    def expectations(self) -> tuple[FloatArray, float]:
        """Posterior mean of ``sum (w - m)(w - m)'``, which is ``S + S (g g' - P) S`` in each task,
        and of ``sum |r - X w|^2``.
        """
        cov = self.root @ self.root.T
        size, trace, _, _ = self._details.noise
        return len(self.tasks.pulls) * cov + 2.0 * cov @ self.cov_gradient() @ cov, float(
            size + trace
        )

    @cached_property
    def information(self) -> FloatArray:
        """Observed information of (m, vec S, v), ``(dim + dim^2 + 1)`` squared; S enters through
        symmetric changes only.
        """
        d, v, sums, place = (
            self.tasks.dim,
            self.noise_var,
            self._details,
            _places(self.tasks.dim).ravel(),
        )
        out = np.zeros((d + d * d + 1, d + d * d + 1))
        cov, noise = slice(d, d + d * d), -1
        out[:d, :d] = sums.precision
        # dg'S-part: g'dS P dS'g - tr(P dS P dS') / 2 = sum P_bc (g_a g_d - P_ad / 2) dS_ab dS'_cd
        pairs = sums.pairs[np.ix_(place, place)].reshape(d, d, d, d)
        out[cov, cov] = pairs.transpose(2, 0, 1, 3).reshape(d * d, d * d)
        across = sums.across[place].reshape(d, d * d)  # P_ea g_b
        out[:d, cov], out[cov, :d] = across, across.T
        out[:d, noise] = out[noise, :d] = sums.double
        mixed = sums.double_outer
        out[cov, noise] = out[noise, cov] = (
            (mixed + mixed.T - sums.double_precision) / 2.0
        ).ravel()
        size, trace, spread, fourth = sums.noise
        third = (size - v * spread) / v**3  # e'V^-3 e
        traces = (self.tasks.pulls.sum() - 2.0 * trace / v + fourth / v**2) / v**2  # tr V^-2
        out[noise, noise] = third - 0.5 * traces
        return out


def _add(total: FloatArray, part: FloatArray) -> None:
    np.add(total, part, out=total)


@cache
def _places(dim: int) -> IntArray:
    """Where each entry of a symmetric matrix stands in its lower triangle, ``(dim, dim)``."""
    place = np.zeros((dim, dim), dtype=np.int64)
    rows, columns = np.tril_indices(dim)
    place[rows, columns] = place[columns, rows] = np.arange(len(rows))
    return place
