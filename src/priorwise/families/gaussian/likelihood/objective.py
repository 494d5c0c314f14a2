"""Log marginal likelihood of a normal prior in unconstrained coordinates, with its gradient and
information.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.families.gaussian.likelihood.charts import Chart
from priorwise.families.gaussian.likelihood.data import GaussianData
from priorwise.families.gaussian.likelihood.kernel import curvature, evaluate

BLOCK: Final = 8192  # groups at a time, for bounded memory
# of a variance in the unit of the data; steps that overshoot stay in the range of floats
LARGEST_LOG: Final = 100.0


Parts = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""By group: values, w, P and W of the kernel."""


@dataclass(frozen=True, eq=False)
class Parameters:
    """Mean, covariance and noise."""

    nu: FloatArray  # (arm,)
    psi: FloatArray  # (arm, arm)
    noise: FloatArray  # (arm,)


@dataclass(frozen=True, eq=False)
class Point:
    """The objective somewhere: its value and gradient, and the gradient in Psi that curved
    coordinates need again.
    """

    x: FloatArray
    parameters: Parameters
    value: float
    gradient: FloatArray
    grad_psi: FloatArray
    grad_noise: FloatArray
    parts: Parts | None  # kept if there is one block


@dataclass(frozen=True, eq=False)
class Objective:
    """``sum_t log N(y_t; nu_O, Psi_OO + diag(noise / n)_O)``, the density of the rewards around
    ``y``, and ``avoid log det Psi``.

    Coordinates are those of the mean (one each, or one for all arms), of Psi (its chart), and the
    logarithms of the noise if it is estimated (one for all arms, or one each).
    """

    data: GaussianData
    chart: Chart
    mean_map: FloatArray  # (arm, coordinate)
    # (arm, coordinate); no column if the noise is known, a row of zeros for an arm whose noise is
    noise_map: FloatArray
    known_noise: FloatArray  # (arm,), read where it is known
    avoid: float = 0.0
    cuts: tuple[int, int] = field(init=False)  # where the coordinates of Psi begin and end

    def __post_init__(self) -> None:
        """Remember where the coordinates of Psi begin and end."""
        begin = self.mean_map.shape[1]
        object.__setattr__(self, "cuts", (begin, begin + self.chart.size))

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return self.cuts[1] + self.noise_map.shape[1]

    def coordinates(self, parameters: Parameters) -> FloatArray:
        """Coordinates of given parameters, or of the nearest that the model has."""
        beta = np.linalg.lstsq(self.mean_map, parameters.nu)[0]
        tau = (
            np.linalg.lstsq(self.noise_map, np.log(parameters.noise))[0]
            if self.noise_map.size
            else np.empty(0)
        )
        return np.concatenate([beta, self.chart.coordinates(parameters.psi), tau])

    def parameters(self, x: FloatArray) -> Parameters:
        """Parameters at given coordinates."""
        begin, end = self.cuts
        beta, theta, tau = x[:begin], x[begin:end], x[end:]
        root = self.chart.root(theta)
        noise = self.known_noise
        if tau.size:
            estimated = np.exp(np.clip(self.noise_map @ tau, -LARGEST_LOG, LARGEST_LOG))
            noise = np.where(self.noise_map.any(axis=1), estimated, noise)
        return Parameters(self.mean_map @ beta, root @ root.T, noise)

    def at(self, x: FloatArray) -> Point:
        """Value and gradient. With ``S = Psi + D``, ``P = S^-1`` and residuals r: ``dPsi: (P r r' P
        - P) / 2``, ``dnu: P r``.
        """
        at, data = self.parameters(x), self.data
        value, (grad_nu, grad_psi, grad_noise) = 0.0, self._zeros()
        for block in self._blocks():
            parts = self._evaluate(block, at, grad_nu, grad_psi, grad_noise)
            value += float(parts[0].sum())
        value += self._around_means(at)
        if data.within is not None:
            grad_noise += 0.5 * (data.within / at.noise - data.freedom) / at.noise
        if self.avoid:
            sign, log_det = np.linalg.slogdet(at.psi)
            if sign <= 0.0:
                return Point(x, at, -np.inf, np.zeros(self.size), grad_psi, grad_noise, None)
            value += self.avoid * float(log_det)
            grad_psi += self.avoid * np.linalg.inv(at.psi)
        theta = x[slice(*self.cuts)]
        gradient = np.concatenate(
            [
                self.mean_map.T @ grad_nu,
                self.chart.pull_back(2.0 * grad_psi @ self.chart.root(theta)),
                self.noise_map.T @ (grad_noise * at.noise),
            ]
        )
        return Point(
            x,
            at,
            value,
            gradient,
            grad_psi,
            grad_noise,
            parts if len(data.tasks) <= BLOCK else None,
        )

    def of_data(self, point: Point, groups: int) -> float:
        """Log likelihood of the first so many groups and of the noise, without what regularises."""
        at, value = point.parameters, 0.0
        if point.parts is not None:
            value = float(point.parts[0][:groups].sum())
        else:
            for block in self._blocks():
                values = self._evaluate(block, at, *self._zeros())[0]
                value += float(values[: max(groups - block.start, 0)].sum())
        return value + self._around_means(at)

    def _around_means(self, at: Parameters) -> float:
        """Log density of the rewards around their task's mean, (2 pi v)^(-f/2) exp(-within / 2v),
        where squares are given.
        """
        if self.data.within is None:
            return 0.0
        return -0.5 * float(
            (self.data.freedom * np.log(2.0 * np.pi * at.noise) + self.data.within / at.noise).sum()
        )

    def _zeros(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        arms = self.data.arms
        return np.zeros(arms), np.zeros((arms, arms)), np.zeros(arms)

    def information(self, point: Point, *, observed: bool = True) -> FloatArray:
        """Minus the Hessian in the coordinates; or the expected one, plus what curved coordinates
        add where that is positive.

        With ``Q = P r r' P - P / 2`` (expected: ``P / 2``), minus the second derivative in
        directions E and F of Psi is ``tr(Q E P F)``.
        """
        at, data, arms = point.parameters, self.data, self.data.arms
        cube = (arms, arms, arms)
        nn, nc, cc, ns, sc, ss = (
            np.zeros(s)
            for s in ((arms, arms), cube, (arms, arms, arms**2), (arms, arms), cube, (arms, arms))
        )
        noisy = float(self.noise_map.size > 0)
        for block in self._blocks():
            _, w, P, W = point.parts or self._evaluate(block, at, *self._zeros())
            curvature(
                data.pulls[block],
                data.tasks[block],
                w,
                P,
                W,
                float(observed),
                noisy,
                nn,
                nc,
                cc,
                ns,
                sc,
                ss,
            )
        if self.avoid:
            inverse = np.linalg.inv(at.psi)
            cc += self.avoid * inverse[:, :, None] * inverse.ravel()
        if not observed:
            nc, ns = np.zeros_like(nc), np.zeros_like(ns)
        theta = point.x[slice(*self.cuts)]
        J = self.chart.jacobian(theta)
        flat = J.reshape(len(J), -1)
        # (jk, li) of Q_ij P_kl
        Q = cc.reshape(arms, arms, arms, arms).transpose(1, 2, 3, 0).reshape(arms**2, arms**2)
        # the noise of arm a in units of its logarithm: direction noise_a / n_a at (a, a)
        M, V = self.mean_map, self.noise_map * at.noise[:, None]
        within = np.zeros(arms)
        if data.within is not None:
            within = (
                (data.within / at.noise - 0.5 * data.freedom) / at.noise**2
                if observed
                else 0.5 * data.freedom / at.noise**2
            )
        begin, end = self.cuts
        H = np.zeros((self.size, self.size))
        H[:begin, :begin] = M.T @ nn @ M
        H[:begin, begin:end] = M.T @ nc.reshape(arms, -1) @ flat.T
        H[:begin, end:] = M.T @ ns @ V
        H[begin:end, end:] = flat @ sc.reshape(arms, -1).T @ V
        H += H.T
        H[:begin, :begin] /= 2.0
        H[begin:end, begin:end] = flat @ Q @ flat.T
        H[end:, end:] = V.T @ (ss + np.diag(within)) @ V
        bend = self.chart.bend(point.grad_psi if observed else _negative_part(point.grad_psi))
        H[begin:end, begin:end] -= bend
        if self.noise_map.size and observed:
            H[end:, end:] -= self.noise_map.T @ (
                self.noise_map * (point.grad_noise * at.noise)[:, None]
            )
        return np.asarray((H + H.T) / 2.0)

    def mean_information(self, point: Point) -> FloatArray:
        """``sum_t P_t``, the information about the arms' means, ``(arm, arm)``."""
        total = np.zeros((self.data.arms, self.data.arms))
        for block in self._blocks():
            P = (point.parts or self._evaluate(block, point.parameters, *self._zeros()))[2]
            total += np.einsum("g,gij->ij", self.data.tasks[block], P)
        return total

    def _blocks(self) -> list[slice]:
        groups = len(self.data.tasks)
        return [slice(start, min(start + BLOCK, groups)) for start in range(0, groups, BLOCK)]

    def _evaluate(self, block: slice, at: Parameters, *gradients: FloatArray) -> Parts:
        data = self.data
        groups, arms = block.stop - block.start, data.arms
        out = (
            np.empty(groups),
            np.empty((groups, arms)),
            np.empty((groups, arms, arms)),
            np.empty((groups, arms, arms)),
        )
        arrays = (each[block] for each in (data.pulls, data.tasks, data.means, data.scatter))
        evaluate(*arrays, at.nu, at.psi, at.noise, *out, *gradients)
        return out


def _negative_part(matrix: FloatArray) -> FloatArray:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors * np.minimum(values, 0.0) @ vectors.T)
