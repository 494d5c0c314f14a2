"""Climb the marginal likelihood of a linear model: Newton's method in a root of the covariance.

The chart is the lower triangle (or the diagonal) of L, ``S = L L'``, and the log of the noise
variance. S is positive semi-definite wherever the climb goes, and singular ones are ordinary
points. Units are those of the data (see ``LinearTasks.units``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, final

import numpy as np

from priorwise.core.types import FloatArray, IntArray
from priorwise.families.linear.likelihood.model import LinearLikelihood, LinearTasks

LEAST_NOISE: Final = 1e-8
"""Least noise variance, in units of the rewards' spread."""

FAR: Final = 10.0
"""Variance that the regulariser alone would choose, in units of the data: ten times what would
explain all rewards.
"""


@final
@dataclass(frozen=True, eq=False)
class Chart:
    """Which entries of L are free, and whether the noise is."""

    rows: IntArray
    columns: IntArray
    noise: bool

    @classmethod
    def of(cls, dim: int, *, diagonal: bool, noise: bool) -> Chart:
        """Lower triangle or diagonal."""
        rows, columns = (np.arange(dim), np.arange(dim)) if diagonal else np.tril_indices(dim)
        return cls(rows, columns, noise)

    def root(self, entries: FloatArray, dim: int) -> FloatArray:
        """Put entries into L."""
        root = np.zeros((dim, dim))
        root[self.rows, self.columns] = entries
        return root

    def tangents(self, root: FloatArray) -> FloatArray:
        """``dS = E_ij L' + L E_ij'`` of each free entry, ``(entry, dim, dim)``."""
        half = np.zeros((len(self.rows), *root.shape))
        half[np.arange(len(self.rows)), self.rows] = root[:, self.columns].T
        return half + half.transpose(0, 2, 1)


@final
@dataclass(frozen=True, eq=False)
class Point:
    """A place on the way: objective, gradient and Hessian in the chart, with the mean profiled out.

    The objective is the log likelihood plus ``regulariser / 2 * (log det S - tr S / 10)``, S in
    units of the data.
    """

    tasks: LinearTasks
    chart: Chart
    regulariser: float
    root: FloatArray
    noise_var: float
    likelihood: LinearLikelihood = field(init=False)

    def __post_init__(self) -> None:
        """Set up the likelihood, which computes what it is asked for."""
        object.__setattr__(
            self, "likelihood", LinearLikelihood(self.tasks, self.root, self.noise_var)
        )

    def moved(self, step: FloatArray) -> Point:
        """Go a step in the chart; the noise does not go below its least."""
        free = len(self.chart.rows)
        root = self.root + self.chart.root(step[:free], len(self.root))
        noise = (
            max(self.noise_var * float(np.exp(step[-1])), LEAST_NOISE)
            if self.chart.noise
            else self.noise_var
        )
        return Point(self.tasks, self.chart, self.regulariser, root, noise)

    @cached_property
    def value(self) -> float:
        """Objective; minus infinity where the regulariser forbids a singular S."""
        if self.regulariser == 0:
            return self.likelihood.value
        diagonal = np.abs(np.diag(self.root))
        if not diagonal.all():
            return -np.inf
        weak = 2.0 * np.log(diagonal).sum() - (self.root**2).sum() / FAR
        return float(self.likelihood.value + 0.5 * self.regulariser * weak)

    def gradient(self) -> FloatArray:
        """In the free entries of L, and in the log noise."""
        slope = 2.0 * self.likelihood.cov_gradient() @ self.root
        if self.regulariser > 0:
            slope += self.regulariser * (np.diag(1.0 / np.diag(self.root)) - self.root / FAR)
        own = slope[self.chart.rows, self.chart.columns]
        return (
            np.append(own, self.noise_var * self.likelihood.noise_gradient())
            if self.chart.noise
            else own
        )

    @cached_property
    def information(self) -> FloatArray:
        """Observed information of (mean, free entries of L, log noise), regulariser included."""
        chart, d, r = self.chart, self.tasks.dim, self.regulariser
        free = len(chart.rows)
        jacobian = np.zeros((d + free + 1, d + d * d + 1))
        jacobian[:d, :d] = np.eye(d)
        jacobian[d : d + free, d : d + d * d] = chart.tangents(self.root).reshape(free, d * d)
        jacobian[-1, -1] = self.noise_var
        out = jacobian @ self.likelihood.information @ jacobian.T
        # second derivatives of the chart: d^2 S = E_ii' + E_i'i for entries of one column, d^2 v =
        # v
        same = chart.columns[:, None] == chart.columns
        bend = 2.0 * self.likelihood.cov_gradient() - r / FAR * np.eye(d)
        out[d : d + free, d : d + free] -= np.where(same, bend[np.ix_(chart.rows, chart.rows)], 0.0)
        if r > 0:
            on = d + np.flatnonzero(chart.rows == chart.columns)
            out[on, on] += r / np.diag(self.root) ** 2
        out[-1, -1] -= self.noise_var * self.likelihood.noise_gradient()
        return out if chart.noise else out[:-1, :-1]

    def newton(self) -> tuple[FloatArray, float]:
        """Step uphill and the gain it promises; curvatures of the wrong sign are turned, so that it
        leads away from saddles.
        """
        d = self.tasks.dim
        full, gradient = self.information, self.gradient()
        across = full[d:, :d]
        profile = full[d:, d:] - across @ self.likelihood.mean_covariance @ across.T
        if definite(profile):
            step = np.linalg.solve(profile, gradient)
        else:
            curves, axes = np.linalg.eigh(profile)
            step = axes @ (
                (axes.T @ gradient)
                / np.maximum(np.abs(curves), 1e-9 * max(np.abs(curves).max(), 1e-9))
            )
        if self.chart.noise and self.noise_var <= LEAST_NOISE and gradient[-1] < 0:
            step[-1] = 0.0
        step = step * min(1.0, 1.0 / np.abs(step).max()) if step.any() else step
        return np.asarray(step), float(gradient @ step) / 2.0

    def expectation_maximisation(self) -> Point:
        """One step of EM, which gets near from anywhere: S = E[(w - m)(w - m)'], v = E|r - X w|^2 /
        pulls.
        """
        spread, left = self.likelihood.expectations()
        noise = (
            max(left / float(self.tasks.pulls.sum()), LEAST_NOISE)
            if self.chart.noise
            else self.noise_var
        )
        return Point(
            self.tasks,
            self.chart,
            self.regulariser,
            safe_root(spread / len(self.tasks.pulls), self.chart),
            noise,
        )


def definite(matrix: FloatArray) -> bool:
    """Whether a symmetric matrix is positive definite, and not just barely."""
    try:
        pivots = np.diag(np.linalg.cholesky(matrix))
    except np.linalg.LinAlgError:
        return False
    return bool(pivots.min() > 1e-6 * pivots.max())


def safe_root(cov: FloatArray, chart: Chart) -> FloatArray:
    """Root of a covariance in the chart, its eigenvalues at least 1e-4: from an exact 0 there is no
    way up.
    """
    if len(chart.rows) == len(cov):  # the diagonal
        return np.diag(np.sqrt(np.maximum(np.diag(cov), 1e-4)))
    values, axes = np.linalg.eigh(cov)
    return np.asarray(np.linalg.cholesky(axes * np.maximum(values, 1e-4) @ axes.T))


def climb(point: Point, limit: int) -> tuple[Point, bool, int]:
    """Newton's method with backtracking, never a step down; returns the top, whether it is one, and
    the number of steps.
    """
    for iteration in range(1, limit + 1):
        step, gain = point.newton()
        # within rounding of the value: the step itself is still good
        done = gain < 1e-10 + 1e-14 * abs(point.value)
        while np.abs(step).max() > 1e-14:
            there = point.moved(step)
            if there.value >= point.value or (done and np.isfinite(there.value)):
                point = there
                break
            step = step / 2.0
        else:
            done = True
        if done:
            return point, gain < 1e-6, iteration
    return point, False, limit
