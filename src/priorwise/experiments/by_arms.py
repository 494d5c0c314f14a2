"""How fast the errors of a normal moment estimator grow with the number of arms, measured beside
the lemmas' rates.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from attrs import evolve

from priorwise.core import validation
from priorwise.core.types import FloatArray
from priorwise.families.gaussian.moments import GaussianMoments
from priorwise.families.gaussian.prior import GaussianPrior
from priorwise.meta.complexity.moment_errors import moment_errors


@dataclass(frozen=True)
class ArmsRow:
    """Measured errors with so many arms, their standard errors, and what the theory's rates say of
    this number of arms.

    A rate leaves its constant open. It is one number for all rows, the one that fits them best: the
    mean of the logarithms of measured over rate, weighted by their precision.
    """

    arms: int
    mean_error: float
    mean_std_error: float
    mean_theory: float
    cov_error: float
    cov_std_error: float
    cov_theory: float


def errors_by_arms(
    arms: Sequence[int],
    *,
    tasks: int,
    replicates: int,
    seed: int,
    estimator: GaussianMoments | None = None,
    horizon: int = 2,
) -> list[ArmsRow]:
    """Measure how errors grow with the number of arms, for N(0, I) and noise 1, beside the lemmas'
    rates.

    The lemmas bound the mean's error by ``sqrt(d2 A^2 / T)`` and the covariance's by ``sqrt(d A^3 /
    T)``. For this prior d2 and d do not depend on A, so the theory columns are ``c A`` and ``c
    A^1.5``, each with the constant c that fits all rows best.
    """
    used = GaussianMoments("two-round") if estimator is None else estimator
    numbers = sorted(validation.count("arms", each) for each in arms)
    sizes, measured = np.array(numbers, dtype=np.float64), []
    for a in numbers:
        size: Any = {"horizon": horizon, "replicates": replicates, "seed": seed}
        true, fitted = GaussianPrior(np.zeros(a), np.eye(a)), evolve(used, arms=a)
        each = moment_errors(true, [tasks], **size, estimator=fitted)
        measured.append((each.mean[0], each.mean_std_error[0], each.cov[0], each.cov_std_error[0]))
    mean, mean_se, cov, cov_se = np.array(measured).T
    theory = _scaled(sizes, mean, mean_se), _scaled(sizes**1.5, cov, cov_se)
    columns = zip(mean, mean_se, theory[0], cov, cov_se, theory[1], strict=True)
    return [ArmsRow(a, *map(float, row)) for a, row in zip(numbers, columns, strict=True)]


def _scaled(rate: FloatArray, measured: FloatArray, std_error: FloatArray) -> FloatArray:
    """``c rate`` with ``log c`` the mean of ``log(measured / rate)``, weighted by ``(measured /
    std_error)^2``.
    """
    log_ratio, weight = np.log(measured / rate), (measured / std_error) ** 2
    return np.asarray(rate * np.exp(np.average(log_ratio, weights=weight)))
