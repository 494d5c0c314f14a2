"""What comes after the ascent: variances that are zero or would be, standard errors, and the law of
plausible priors.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from priorwise.core.numerics import positive_root
from priorwise.core.types import BoolArray, FloatArray
from priorwise.families.gaussian.likelihood.ascent import NEWTON_ARMS, Ascent
from priorwise.families.gaussian.likelihood.law import GaussianUncertainty, centred
from priorwise.families.gaussian.likelihood.model import Model
from priorwise.families.gaussian.likelihood.objective import Objective, Point
from priorwise.families.gaussian.likelihood.rotated_chart import RotatedChart

DIFFERENCES: Final = 150
"""Most coordinates for which standard errors are found by differences of the gradient, where arms
are too many for formulas.
"""


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


def would_be_on_edge(objective: Objective, ascent: Ascent, groups: int) -> bool:
    """Whether the first so many groups, the data without what regularises, are likelier with the
    smallest variance at zero.
    """
    begin, end = objective.cuts
    x = ascent.point.x.copy()
    x[begin:end] = objective.chart.trim(
        x[begin:end], (1.0 + 1e-6) * objective.chart.least(x[begin:end])
    )
    trial = replace(objective, avoid=0.0).at(x)
    return objective.of_data(trial, groups) >= objective.of_data(ascent.point, groups)


def certainty(
    model: Model,
    objective: Objective,
    ascent: Ascent,
    *,
    active: BoolArray,
    noise: FloatArray,
    on_edge: bool,
) -> tuple[dict[str, FloatArray], GaussianUncertainty | None, list[str]]:
    """Standard errors and the law of plausible priors, from the observed information, and what to
    warn of.

    ``noise`` is that of all arms, in the unit of the rewards.
    """
    point, data = ascent.point, objective.data
    if data.arms > NEWTON_ARMS and objective.size > DIFFERENCES:
        return {}, None, [f"no standard errors: {objective.size} parameters are too many"]
    if model.structure == "full":
        objective, point = _rotated(objective, point)
    elif ascent.information is not None:
        information = ascent.information.copy()
    if model.structure == "full" or ascent.information is None:
        many = data.arms > NEWTON_ARMS
        information = _by_differences(objective, point.x) if many else objective.information(point)
    if on_edge:
        _widen_edge(objective, point, information)
    root, determined = positive_root(information)
    notes = [] if determined else ["the data leave some directions of the covariance undetermined"]
    errors = model.std_errors(objective, point.x, root, on_edge=on_edge)
    power = {"mean": 1, "var": 2, "cov": 2, "noise_var": 2, "correlation": 0}
    errors = {name: error * data.scale ** power[name] for name, error in errors.items()}
    if not active.all():
        errors = {name: _spread(error, active) for name, error in errors.items()}
    beta, theta, tau = np.split(root, objective.cuts)
    chart = objective.chart
    moves = np.stack([chart.root(column) for column in theta.T], axis=-1)
    law = GaussianUncertainty(
        model.structure,
        active,
        data.shift + data.scale * point.parameters.nu,
        data.scale * (objective.mean_map @ beta),
        *centred(
            data.scale * chart.root(point.x[slice(*objective.cuts)]), data.scale * moves, chart.axes
        ),
        noise,
        objective.noise_map @ tau,
    )
    return errors, law, notes


def _rotated(objective: Objective, point: Point) -> tuple[Objective, Point]:
    """Go to the coordinates of a full covariance that do not depend on the order of the arms."""
    chart, theta = RotatedChart.at(point.parameters.psi)
    begin, end = objective.cuts
    rotated = replace(objective, chart=chart)
    return rotated, rotated.at(np.concatenate([point.x[:begin], theta, point.x[end:]]))


def _widen_edge(objective: Objective, point: Point, information: FloatArray) -> None:
    """Add to the information about roots of variances at zero, whose slope N may be flat, what
    curvature has to say.

    With ``y = x^2`` the likelihood falls as ``exp(-N x^2 - c x^4 / 2)``. For small N the fourth
    power limits x: it is counted as a further precision ``2 sqrt(c)``, for which ``c = sum P^2 /
    2`` is replaced by ``(sum P)^2 / 2T``, its least value.
    """
    begin, end = objective.cuts
    idle = ~objective.chart.jacobian(point.x[begin:end]).any(axis=(1, 2))
    if idle.any():
        slope = objective.mean_information(point) / np.sqrt(2.0 * objective.data.tasks.sum())
        index = begin + np.flatnonzero(idle)
        information[np.ix_(index, index)] += objective.chart.bend(slope)[np.ix_(idle, idle)]


def _by_differences(objective: Objective, x: FloatArray) -> FloatArray:
    step = 1e-5
    columns = [
        objective.at(x - step * e).gradient - objective.at(x + step * e).gradient
        for e in np.eye(x.size)
    ]
    return np.stack(columns) / (2.0 * step)


def _spread(error: FloatArray, active: BoolArray) -> FloatArray:
    """Put the active arms' standard errors in their places, NaN elsewhere."""
    out = np.full((len(active),) * error.ndim, np.nan)
    out[np.ix_(*[active] * error.ndim)] = error
    return out
