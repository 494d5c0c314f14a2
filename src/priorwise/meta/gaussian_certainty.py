"""What comes after the ascent: variances that are zero, standard errors, and the law of plausible priors."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from priorwise.core.types import BoolArray, FloatArray
from priorwise.meta.gaussian_ascent import NEWTON_ARMS, Ascent
from priorwise.meta.gaussian_model import GaussianUncertainty, Model
from priorwise.meta.gaussian_objective import Objective
from priorwise.meta.numerics import positive_root

DIFFERENCES: Final = 150
"""Most coordinates for which standard errors are found by differences of the gradient, where arms are too many for formulas."""


def to_boundary(objective: Objective, ascent: Ascent, tolerance: float) -> tuple[Ascent, bool]:
    """Set small variances to zero if that costs no likelihood; tells whether it did."""
    if objective.avoid:
        return ascent, False
    point, data = ascent.point, objective.data
    begin, end = objective.cuts
    most = data.pulls.max(axis=0)
    noise = np.where(most > 0.0, point.parameters.noise / np.where(most > 0.0, most, 1.0), 0.0)
    scale = float(np.trace(point.parameters.psi) + noise.sum()) / data.arms
    for small in (1e-2, 1e-4, 1e-6, 1e-9):
        x = point.x.copy()
        x[begin:end] = objective.chart.trim(x[begin:end], small * scale)
        trial = objective.at(x)
        psi, before = trial.parameters.psi, point.parameters.psi
        dropped = bool(np.abs(psi - before).max() > 0.0 or np.diag(psi).min() == 0.0)
        if dropped and trial.value >= point.value - 10.0 * tolerance:
            return replace(ascent, point=trial, information=None), True
    return ascent, False


def certainty(
    model: Model,
    objective: Objective,
    ascent: Ascent,
    *,
    active: BoolArray,
    known_noise: FloatArray,
    at_boundary: bool,
) -> tuple[dict[str, FloatArray], GaussianUncertainty | None, list[str]]:
    """Standard errors and the law of plausible priors, from the observed information, and what to warn of."""
    x, data = ascent.point.x, objective.data
    if data.arms <= NEWTON_ARMS:
        information = objective.information(ascent.point) if ascent.information is None else ascent.information
    elif objective.size <= DIFFERENCES:
        information = _by_differences(objective, x)
    else:
        return {}, None, [f"no standard errors: {objective.size} parameters are too many"]
    root, determined = positive_root(information)
    notes = [] if determined else ["the data leave some directions of the covariance undetermined"]
    errors = model.std_errors(objective, x, root, at_boundary=at_boundary)
    power = {"mean": 1, "var": 2, "cov": 2, "noise_var": 2, "correlation": 0}
    errors = {name: error * data.scale ** power[name] for name, error in errors.items()}
    if not active.all():
        errors = {name: _spread(error, active) for name, error in errors.items()}
    law = GaussianUncertainty(
        model.structure, model.factors, len(active), model.noise, known_noise, active, x, root, data.shift, data.scale
    )
    return errors, law, notes


def _by_differences(objective: Objective, x: FloatArray) -> FloatArray:
    step = 1e-5
    columns = [objective.at(x - step * e).gradient - objective.at(x + step * e).gradient for e in np.eye(x.size)]
    return np.stack(columns) / (2.0 * step)


def _spread(error: FloatArray, active: BoolArray) -> FloatArray:
    """Put the active arms' standard errors in their places, NaN elsewhere."""
    out = np.full((len(active),) * error.ndim, np.nan)
    out[np.ix_(*[active] * error.ndim)] = error
    return out
