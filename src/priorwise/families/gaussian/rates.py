"""How many tasks the theory asks for to learn a normal prior by moments: constants and rates."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.families.gaussian.moments import GaussianMoments
from priorwise.families.gaussian.prior import GaussianPrior
from priorwise.fitting.design import Design, Rate


@dataclass(frozen=True)
class GaussianConstants:
    """Constants of the lemmas on normal priors.

    For the prior N(nu, P), with ``v_a = P_aa + noise_var_a + nu_a^2``, the mean is governed by ``d2
    = lambda_max(P^-1/2 diag(v) P^-1/2)`` and ``d_inf = max_a sqrt((P^-1)_aa v_a)``, the covariance
    by ``d = (noise_var^2 + max_a P_aa^2) / lambda_min(P)^2``. Where the noise differs between arms,
    d takes its largest variance. They are infinite for a singular covariance.
    """

    d2: float
    d_inf: float
    d: float


def gaussian_constants(prior: GaussianPrior) -> GaussianConstants:
    """Constants of a normal prior (lemmas "Gaussian mean estimation" and "Gaussian covariance
    estimation").

    Examples
    --------
    >>> gaussian_constants(GaussianPrior([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]]))
    GaussianConstants(d2=2.0, d_inf=1.4142135623730951, d=2.0)

    """
    validation.instance("prior", prior, GaussianPrior)
    values, vectors = np.linalg.eigh(prior.cov)
    if values[0] <= 1e-14 * max(values[-1], 0.0):
        return GaussianConstants(np.inf, np.inf, np.inf)
    scale = np.diag(prior.cov) + prior.noise_var + prior.mean**2
    root = (vectors / np.sqrt(values)) @ vectors.T
    precision = (vectors / values) @ vectors.T
    return GaussianConstants(
        d2=float(np.linalg.eigvalsh(root * scale @ root)[-1]),
        d_inf=float(np.sqrt(np.max(np.diag(precision) * scale))),
        d=float((prior.noise_var.max() ** 2 + np.diag(prior.cov).max() ** 2) / values[0] ** 2),
    )


def rate(
    prior: Any, eps: float, delta: float, *, known_mean: bool = False, known_cov: bool = False
) -> Rate:
    """Rate of the theorems on normal priors."""
    if known_mean and known_cov:
        raise ArgumentError(
            "known_mean",
            "and known_cov are both True, which leaves nothing to learn",
            cure="pass one of them",
        )
    a, constants, log = prior.arms, gaussian_constants(prior), np.log(1.0 / delta)
    mean, of_mean = constants.d2 * (a**2 + a * log) / eps**2, "d2 (A^2 + A log(1 / delta))"
    cov, of_cov = constants.d * (a**4 + a**3 * log) / eps**2, "d (A^4 + A^3 log(1 / delta))"
    if known_cov:
        return Rate(mean, f"{of_mean} / eps^2")
    if known_mean:
        return Rate(cov, f"{of_cov} / eps^2")
    return Rate(max(cov, mean), f"max({of_cov}, {of_mean}) / eps^2")


def covered(prior: GaussianPrior, estimator: Any, design: Design) -> dict[str, bool] | None:
    """What the theorem on this estimator with this exploration takes for known; None where there is
    none.
    """
    if not isinstance(estimator, GaussianMoments):
        return None
    if estimator.variant == "difference":
        return {} if design.paired >= 2 else None
    if estimator.variant == "known-mean" and design.uniform >= 2:
        known = np.asarray(estimator.mean, dtype=np.float64)
        return {"known_mean": True} if np.allclose(known, prior.mean) else None
    if estimator.variant == "no-cov" and design.uniform >= 1:
        assumed = np.eye(prior.arms) if estimator.cov is None else np.asarray(estimator.cov)
        if assumed.shape == prior.cov.shape and np.allclose(assumed, prior.cov):
            return {"known_cov": True}
    return None
