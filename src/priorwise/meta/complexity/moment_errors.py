"""How fast the errors of a normal moment estimator fall with tasks and grow with arms, measured
beside the lemmas' rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from priorwise.core import validation
from priorwise.core.known import KnownTasks
from priorwise.core.protocols import Policy
from priorwise.core.types import FloatArray
from priorwise.families.gaussian.moments import GaussianMoments
from priorwise.families.gaussian.prior import GaussianPrior
from priorwise.families.linear.moments import LinearMoments
from priorwise.meta.complexity.explored import default_estimator, explored, replicate_seed
from priorwise.meta.complexity.theory import whitened_errors
from priorwise.meta.learners.estimators import run_for
from priorwise.policies.uniform import Uniform


@dataclass(frozen=True, eq=False)
class MomentErrors:
    """Root mean squared errors of the mean and the covariance in the norms of the lemmas, at each
    number of tasks.

    ``mean = |P^-1/2 (nu^ - nu)|_2`` and ``cov = |P^-1/2 (P^ - P) P^-1/2|_2``, ``(size,)``, with
    their standard errors.
    """

    sizes: tuple[int, ...]
    mean: FloatArray
    cov: FloatArray
    mean_std_error: FloatArray
    cov_std_error: FloatArray


def moment_errors(
    prior: Any,
    sizes: Sequence[int],
    *,
    horizon: int,
    replicates: int,
    seed: int,
    estimator: GaussianMoments | LinearMoments | None = None,
    exploration: Policy | None = None,
) -> MomentErrors:
    """Measure how the errors of a normal moment estimator fall with the number of tasks: by theory
    like ``T^-1/2``.
    """
    used = default_estimator(prior) if estimator is None else estimator
    if not isinstance(used, (GaussianMoments, LinearMoments)):
        raise TypeError(
            f"estimator must be GaussianMoments or LinearMoments, got {type(used).__name__}"
        )
    used = used.for_tasks(KnownTasks.of(prior))
    squares = np.empty((validation.count("replicates", replicates, least=2), 2, len(sizes)))
    explore = Uniform() if exploration is None else exploration
    for r in range(replicates):
        run = explored(prior, explore, max(sizes), horizon, seed=replicate_seed(seed, r))
        fits = used.fit_prefixes(run_for(used, run, arms=prior.arms), sizes)
        squares[r] = (
            np.array([whitened_errors(prior, fit.prior.mean, fit.prior.cov) for fit in fits]).T ** 2
        )
    rms = np.sqrt(squares.mean(axis=0))
    spread = squares.std(axis=0, ddof=1) / np.sqrt(replicates) / (2.0 * rms)
    return MomentErrors(tuple(sizes), rms[0], rms[1], spread[0], spread[1])


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
    found = [
        moment_errors(
            GaussianPrior(np.zeros(a), np.eye(a)), [tasks], horizon=horizon, replicates=replicates,
            seed=seed,
            estimator=replace(used, arms=a),
        )
        for a in numbers
    ]  # fmt: skip
    mean, cov = (np.array([getattr(each, name)[0] for each in found]) for name in ("mean", "cov"))
    mean_se, cov_se = (
        np.array([getattr(each, name)[0] for each in found])
        for name in ("mean_std_error", "cov_std_error")
    )
    sizes = np.array(numbers, dtype=np.float64)
    columns = (
        mean,
        mean_se,
        _scaled(sizes, mean, mean_se),
        cov,
        cov_se,
        _scaled(sizes**1.5, cov, cov_se),
    )
    return [ArmsRow(a, *(float(column[i]) for column in columns)) for i, a in enumerate(numbers)]


def _scaled(rate: FloatArray, measured: FloatArray, std_error: FloatArray) -> FloatArray:
    """``c rate`` with ``log c`` the mean of ``log(measured / rate)``, weighted by ``(measured /
    std_error)^2``.
    """
    log_ratio, weight = np.log(measured / rate), (measured / std_error) ** 2
    return np.asarray(rate * np.exp(np.average(log_ratio, weights=weight)))
