"""Marginal likelihood of normal weights, from normal equations: value, gradient and observed information.

A task with features X and rewards r has ``r ~ N(X m, V)``, ``V = X S X' + v I``, for ``w ~ N(m, S)`` and noise variance v. With
``C = (S^-1 + X'X / v)^-1`` the posterior covariance and ``K = (I - C X'X / v) / v``, all that is needed follows from X'X, X'r
and r'r:

    X'V^-1 X = P = X'X K,      X'V^-1 (r - X m) = g = K'(X'r - X'X m),      d log p = g'dm + tr((g g' - P) dS) / 2.

The mean is profiled out: for each (S, v) it is the generalised least-squares estimate ``m = (sum P)^-1 sum K'X'r``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from priorwise.core.types import FloatArray


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
        gram = self.gram / units[:, None] / units
        return LinearTasks(gram, self.moments / (units * reward), self.squares / reward**2, self.pulls)

    def units(self) -> tuple[FloatArray, float]:
        """Root mean square of each feature, and of what a regression common to all tasks leaves of the rewards.

        A feature that was never seen has the unit of the others, and rewards without any spread a unit of 1e-6 of their size.
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
class LinearLikelihood:
    """The likelihood at a root L of the covariance, ``S = L L'``, and a noise variance; the mean is the best one unless given."""

    tasks: LinearTasks
    root: FloatArray  # (dim, dim)
    noise_var: float
    given_mean: FloatArray | None = None

    @cached_property
    def _inner(self) -> FloatArray:
        """``I + L'X'X L / v``, whose determinant is that of ``V / v``."""
        gram = self.tasks.gram
        return np.eye(self.tasks.dim) + self.root.T @ gram @ self.root / self.noise_var

    @cached_property
    def posterior(self) -> FloatArray:
        """C, ``(task, dim, dim)``."""
        return np.asarray(self.root @ np.linalg.inv(self._inner) @ self.root.T)

    @cached_property
    def _k(self) -> FloatArray:
        v = self.noise_var
        return (np.eye(self.tasks.dim) - self.posterior @ self.tasks.gram / v) / v

    @cached_property
    def precisions(self) -> FloatArray:
        """P, what each task says about the mean, ``(task, dim, dim)``."""
        p = self.tasks.gram @ self._k
        return np.asarray((p + p.transpose(0, 2, 1)) / 2.0)

    @cached_property
    def mean_precision(self) -> FloatArray:
        """Sum of P over tasks: the information about the mean."""
        return np.asarray(self.precisions.sum(axis=0))

    @cached_property
    def mean_covariance(self) -> FloatArray:
        """Inverse of it, 0 in directions that no task has seen."""
        return np.asarray(np.linalg.pinv(self.mean_precision, rcond=1e-10, hermitian=True))

    @cached_property
    def mean(self) -> FloatArray:
        """Given mean, or the generalised least-squares estimate."""
        if self.given_mean is not None:
            return self.given_mean
        return np.asarray(self.mean_covariance @ np.tensordot(self._k, self.tasks.moments, axes=([0, 1], [0, 1])))

    @cached_property
    def _residual(self) -> tuple[FloatArray, FloatArray]:
        """``X'e`` and ``e'e`` of ``e = r - X m``."""
        tasks, m = self.tasks, self.mean
        gm = tasks.gram @ m
        squares = tasks.squares - 2.0 * tasks.moments @ m + gm @ m
        return tasks.moments - gm, np.maximum(squares, 0.0)

    @cached_property
    def scores(self) -> FloatArray:
        """g, the gradient in the mean, task by task."""
        return _times(self._k.transpose(0, 2, 1), self._residual[0])

    @cached_property
    def deviations(self) -> FloatArray:
        """Posterior means of ``w - m``."""
        return _times(self.posterior, self._residual[0]) / self.noise_var

    def by_task(self) -> FloatArray:
        """Log marginal likelihood of each task."""
        moments, squares = self._residual
        logdet = 2.0 * np.log(np.einsum("tii->ti", np.linalg.cholesky(self._inner))).sum(axis=1)
        fit = (squares - np.einsum("ti,ti->t", moments, self.deviations)) / self.noise_var
        return np.asarray(-0.5 * (self.tasks.pulls * np.log(2.0 * np.pi * self.noise_var) + logdet + fit))

    @cached_property
    def value(self) -> float:
        """Log marginal likelihood of all tasks."""
        return float(self.by_task().sum())

    @cached_property
    def _whitened(self) -> tuple[FloatArray, FloatArray]:
        """``|V^-1 e|^2 v^2`` and ``tr C X'X`` of each task."""
        moments, squares = self._residual
        u, gram = self.deviations, self.tasks.gram
        size = squares - 2.0 * np.einsum("ti,ti->t", moments, u) + np.einsum("ti,ti->t", u, _times(gram, u))
        return np.maximum(size, 0.0), np.einsum("tij,tij->t", self.posterior, gram)

    def cov_gradient(self) -> FloatArray:
        """Gradient in S, ``sum (g g' - P) / 2``."""
        return np.asarray(0.5 * (self.scores.T @ self.scores - self.mean_precision))

    def noise_gradient(self) -> float:
        """Gradient in v, ``sum (|V^-1 e|^2 - tr V^-1) / 2``."""
        v = self.noise_var
        size, trace = self._whitened
        return float(0.5 * (size.sum() / v**2 - (self.tasks.pulls.sum() - trace.sum() / v) / v))

    def information(self) -> FloatArray:
        """Observed information of (m, vec S, v), ``(dim + dim^2 + 1)`` squared; S enters through symmetric changes only."""
        d, v, g, p = self.tasks.dim, self.noise_var, self.scores, self.precisions
        flat = p.reshape(len(p), d * d)
        w = (g[:, :, None] * g[:, None, :] - 0.5 * p).reshape(len(p), d * d)
        out = np.zeros((d + d * d + 1, d + d * d + 1))
        cov, noise = slice(d, d + d * d), -1
        out[:d, :d] = self.mean_precision
        # dg'S-part: g'dS P dS'g - tr(P dS P dS') / 2 = sum P_bc (g_a g_d - P_ad / 2) dS_ab dS'_cd
        out[cov, cov] = (flat.T @ w).reshape(d, d, d, d).transpose(2, 0, 1, 3).reshape(d * d, d * d)
        across = (flat.T @ g).reshape(d, d * d)  # P_ea g_b
        out[:d, cov], out[cov, :d] = across, across.T
        z = _times(self._k.transpose(0, 2, 1), g)  # X'V^-2 e
        q = np.tensordot(self._k, p, axes=([0, 1], [0, 1]))  # sum K'X'X K = sum X'V^-2 X
        out[:d, noise] = out[noise, :d] = z.sum(axis=0)
        out[cov, noise] = out[noise, cov] = ((z.T @ g + g.T @ z - q) / 2.0).ravel()
        size, trace = self._whitened
        cg = np.eye(d) - v * self._k  # C X'X / v
        third = (size.sum() - v * np.vdot(g, _times(self.posterior, g))) / v**3  # e'V^-3 e
        traces = (self.tasks.pulls.sum() - 2.0 * trace.sum() / v + np.vdot(cg, cg.transpose(0, 2, 1))) / v**2  # tr V^-2
        out[noise, noise] = third - 0.5 * traces
        return out


def _times(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """Matrix times vector, task by task."""
    return np.asarray((matrices @ vectors[:, :, None])[:, :, 0])
