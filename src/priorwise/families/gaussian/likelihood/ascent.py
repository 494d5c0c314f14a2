"""Newton's ascent with a monotone safeguard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.families.gaussian.likelihood.objective import Objective, Point

NEWTON_ARMS: Final = 40
"""Beyond, second derivatives in the whole covariance cost too much, and a quasi-Newton method takes
over.
"""


REACH: Final = 10.0
"""Longest step, relative to the coordinates, which are of order one."""


@dataclass(frozen=True, eq=False)
class Ascent:
    """Where an ascent ended; ``values`` holds the objective at each iteration, which never
    falls.
    """

    point: Point
    converged: bool
    values: tuple[float, ...]
    information: FloatArray | None = None  # observed, at the end, if it was at hand

    @property
    def iterations(self) -> int:
        """Number of steps taken."""
        return len(self.values) - 1


def ascend(
    objective: Objective, start: FloatArray, *, tolerance: float, max_iterations: int
) -> Ascent:
    """Climb until a Newton step promises less than ``tolerance``, in units of the log likelihood.

    The step is ``H^-1 g`` with H the observed information where that is positive definite and the
    expected one otherwise, halved until the objective rises. Being scale-free, the promise ``g'
    H^-1 g / 2`` says how far, in standard errors, the end is.
    """
    if objective.data.arms > NEWTON_ARMS:
        return _quasi_newton(objective, start, tolerance, max_iterations)
    point = objective.at(start)
    values = [point.value]
    for _ in range(max_iterations):
        enough = max(tolerance, 1e-13 * abs(point.value))
        for observed in (True, False):
            information = objective.information(point, observed=observed)
            step, promise, exact = _step(information, point, observed=observed)
            if exact and promise / 2.0 < enough:
                return Ascent(point, True, tuple(values), information if observed else None)
            better = _search(objective, point, step, promise) if exact or not observed else None
            if better is not None:
                break
        if better is None:  # no step rises: rest is rounding
            return Ascent(point, promise / 2.0 < 1e3 * enough, tuple(values))
        point = better
        values.append(point.value)
    return Ascent(point, False, tuple(values))


def _step(H: FloatArray, point: Point, *, observed: bool) -> tuple[FloatArray, float, bool]:
    """Newton step, the rise it promises times two, and whether its matrix was positive definite."""
    scale = np.sqrt(np.maximum(np.abs(np.diag(H)), 1e-12 * max(np.abs(H).max(), 1e-300)))
    H = H / scale / scale[:, None]
    exact = True
    try:
        np.linalg.cholesky(H - 1e-11 * np.eye(len(H)))
    except np.linalg.LinAlgError:
        exact = not observed
        if not observed:
            H += 1e-6 * np.eye(len(H))
    if not exact:
        return np.zeros_like(point.x), 0.0, False
    step = np.linalg.solve(H, point.gradient / scale) / scale
    step *= min(1.0, REACH * (1.0 + np.abs(point.x).max()) / max(float(np.abs(step).max()), 1e-300))
    return step, float(point.gradient @ step), True


def _search(objective: Objective, point: Point, step: FloatArray, promise: float) -> Point | None:
    """Halve the step until the objective rises by a ten-thousandth of what was promised."""
    length = 1.0
    for _ in range(40):
        trial = objective.at(point.x + length * step)
        if trial.value >= point.value + 1e-4 * length * promise:
            return trial
        length /= 2.0
    return None


def _quasi_newton(
    objective: Objective, start: FloatArray, tolerance: float, max_iterations: int
) -> Ascent:
    from scipy.optimize import minimize

    values = [objective.at(start).value]
    visited: dict[bytes, float] = {}

    def descent(x: FloatArray) -> tuple[float, FloatArray]:
        point = objective.at(x)
        visited[x.tobytes()] = point.value
        return -point.value, -point.gradient

    def keep(x: FloatArray) -> None:
        values.append(visited[x.tobytes()])

    relative = tolerance / max(abs(values[0]), 1.0)
    options = {
        "maxiter": 20 * max_iterations,
        "maxfun": 40 * max_iterations,
        "ftol": relative,
        "gtol": 1e-6,
    }
    found = minimize(descent, start, jac=True, method="L-BFGS-B", callback=keep, options=options)
    return Ascent(objective.at(found.x), bool(found.success), tuple(values))
