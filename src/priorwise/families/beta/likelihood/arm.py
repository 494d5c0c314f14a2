"""Fit of one arm: the maximum or the limit that the likelihood points to, why it is one, and how
sure it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.families.beta.likelihood.counts import (
    LARGEST,
    SMALLEST,
    ArmCounts,
    BetaObjective,
    Maximum,
    alpha_beta,
    maximise,
)


@final
@dataclass(frozen=True, eq=False)
class ArmFit:
    """What is known of one arm after its fit."""

    at: FloatArray  # (log odds, log concentration)
    information: FloatArray | None  # None where the fit is a limit
    centre: FloatArray
    covariance: FloatArray
    reason: str | None
    converged: bool
    iterations: int


def fit_arm(counts: ArmCounts, regulariser: float, start: FloatArray | None) -> ArmFit:
    """Maximise the likelihood of one arm, or find the limit it points to; ``start`` is (log odds,
    log concentration).
    """
    reason = counts.why_boundary()
    rho = min(max(counts.spread(), 1e-3), 0.9)
    odds = np.log((counts.total_successes + 0.5) / (counts.total_failures + 0.5))
    begin = np.array([odds, np.log(1.0 / rho - 1.0)]) if start is None else start
    safe = regulariser > 0 or reason is None
    found = maximise(BetaObjective(counts, regulariser if safe else 1.0), begin)
    if safe and found.held:
        reason = reason or "has its largest likelihood at an end of the range of concentrations"
    at, information = found.at, found.information if safe and not found.held else None
    if reason is not None and regulariser == 0:
        limit = _limit(counts, found.at)
        at, information = (
            (found.at if limit is None else limit.at),
            None if limit is None or limit.held else limit.information,
        )
        reason = reason if information is None else None
    centre, centred = (
        (at, information) if information is not None else (found.at, found.information)
    )
    return ArmFit(
        at, information, centre, _covariance(centred), reason, found.converged, found.iterations
    )


def _limit(counts: ArmCounts, near: FloatArray) -> Maximum | None:
    """Best point of the range for plain maximum likelihood, if the data point to any."""
    if counts.one_sided or counts.pulls.pairs() == 0:
        return None
    objective = BetaObjective(counts, 0.0)
    odds = np.log(counts.total_successes / counts.total_failures)
    ends = [np.array([odds, np.log(LARGEST)]), np.array([odds, np.log(SMALLEST)])]
    return max((maximise(objective, begin) for begin in (*ends, near)), key=lambda each: each.value)


def _covariance(information: FloatArray) -> FloatArray:
    """Inverse information with standard deviations of at most pi: that of a log odds under
    Beta(1/2, 1/2).
    """
    values, axes = np.linalg.eigh(information)
    return np.asarray(axes / np.maximum(values, np.pi**-2) @ axes.T)


def std_errors(fit: ArmFit) -> list[float]:
    """Standard errors of alpha, beta, the mean and the concentration, by the delta method; NaN at a
    limit.
    """
    if fit.information is None or np.linalg.eigvalsh(fit.information)[0] <= 0:
        return [np.nan] * 4
    alpha, beta = alpha_beta(fit.at)
    c = alpha + beta
    m, rest = alpha / c, beta / c
    jacobian = np.array([[alpha * rest, alpha], [-beta * m, beta], [m * rest, 0.0], [0.0, c]])
    return np.sqrt(
        np.einsum("ki,ij,kj->k", jacobian, np.linalg.inv(fit.information), jacobian)
    ).tolist()
