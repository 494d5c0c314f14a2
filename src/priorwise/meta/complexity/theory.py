"""What the theory says of the number of tasks that a moment estimator needs: its constants, its rates, and the lemma between.

The constants in front of the rates are universal and not given, so a rate is a number of tasks up to a factor: compare rates, or
set them beside measured numbers, which :mod:`priorwise.meta.complexity.sample_complexity` has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from priorwise.core import validation
from priorwise.core.types import FloatArray
from priorwise.priors.beta import BetaPrior
from priorwise.priors.gaussian import GaussianPrior
from priorwise.sensitivity.distance import kl


@dataclass(frozen=True)
class GaussianConstants:
    """Constants of the lemmas on normal priors.

    For the prior N(nu, P), with ``v_a = P_aa + noise_var_a + nu_a^2``, the mean is governed by
    ``d2 = lambda_max(P^-1/2 diag(v) P^-1/2)`` and ``d_inf = max_a sqrt((P^-1)_aa v_a)``, the covariance by
    ``d = (noise_var^2 + max_a P_aa^2) / lambda_min(P)^2``. Where the noise differs between arms, d takes its largest variance. They
    are infinite for a singular covariance.
    """

    d2: float
    d_inf: float
    d: float


def gaussian_constants(prior: GaussianPrior) -> GaussianConstants:
    """Constants of a normal prior (lemmas "Gaussian mean estimation" and "Gaussian covariance estimation").

    Examples
    --------
    >>> gaussian_constants(GaussianPrior([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]]))
    GaussianConstants(d2=2.0, d_inf=1.4142135623730951, d=2.0)

    """
    if not isinstance(prior, GaussianPrior):
        raise TypeError(f"prior must be a GaussianPrior, got {type(prior).__name__}")
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


@dataclass(frozen=True)
class KLLemma:
    """KL of an estimate from the truth, exactly and by the lemma "Gaussian KL-divergence".

    ``mean_error = |P^-1/2 (nu^ - nu)|``, ``cov_error = |P^-1/2 P^ P^-1/2 - I|`` (spectral norm). If ``cov_error <= 2/3`` then
    ``KL <= bound = (A cov_error^2 + mean_error^2) / 2``; otherwise ``bound`` is infinite. By Pinsker ``TV <= sqrt(bound / 2)``.
    """

    exact: float
    bound: float
    mean_error: float
    cov_error: float

    @property
    def total_variation(self) -> float:
        """What the lemma certifies of the total variation."""
        return float(min(1.0, np.sqrt(self.bound / 2.0)))


def kl_lemma(truth: GaussianPrior, fitted: GaussianPrior) -> KLLemma:
    """Compare ``KL(fitted || truth)`` with the lemma's bound; the truth must not be singular."""
    mean_error, cov_error = whitened_errors(truth, fitted.mean, fitted.cov)
    bound = (truth.arms * cov_error**2 + mean_error**2) / 2.0 if cov_error <= 2.0 / 3.0 else np.inf
    return KLLemma(kl(fitted, truth), float(bound), mean_error, cov_error)


def whitened_errors(truth: Any, mean: FloatArray, cov: FloatArray) -> tuple[float, float]:
    """Errors of an estimated mean and covariance in units of the true covariance P.

    ``|P^-1/2 (mean - nu)|_2`` and ``|P^-1/2 (cov - P) P^-1/2|_2``, the norms of the paper's lemmas.
    """
    values, vectors = np.linalg.eigh(truth.cov)
    if values[0] <= 1e-14 * max(values[-1], 0.0):
        raise ValueError("truth must have a covariance that is not singular: errors are measured in its units")
    root = (vectors / np.sqrt(values)) @ vectors.T
    return float(np.linalg.norm(root @ (mean - truth.mean))), float(np.linalg.norm(root @ (cov - truth.cov) @ root, 2))


@dataclass(frozen=True)
class Rate:
    """Tasks that suffice for ``TV <= eps`` with probability ``1 - delta``, up to a factor that the theory does not give."""

    tasks: float
    formula: str

    def __str__(self) -> str:
        """Formula and its value."""
        return f"C {self.formula}, {self.tasks:.3g} for C = 1"


def theory_rate(prior: Any, eps: float, delta: float, *, known_cov: bool = False) -> Rate:
    """Rate of the theorems on Beta and on normal priors.

    * Beta: ``T >= C A^2 log(A / delta) / eps^2``, with C depending on (alpha, beta);
    * normal: ``T >= C d (A^4 + A^3 log(1 / delta)) / eps^2``, C universal;
    * normal with ``known_cov``: ``T >= C d2 (A^2 + A log(1 / delta)) / eps^2``, C universal.
    """
    eps, delta = open_share("eps", eps), open_share("delta", delta)
    a = prior.arms
    if isinstance(prior, BetaPrior) and not known_cov:
        return Rate(a**2 * np.log(a / delta) / eps**2, "A^2 log(A / delta) / eps^2")
    if not isinstance(prior, GaussianPrior):
        raise TypeError(f"the theory has rates for a BetaPrior and a GaussianPrior, got {type(prior).__name__}")
    constants = gaussian_constants(prior)
    if known_cov:
        return Rate(constants.d2 * (a**2 + a * np.log(1.0 / delta)) / eps**2, "d2 (A^2 + A log(1 / delta)) / eps^2")
    return Rate(constants.d * (a**4 + a**3 * np.log(1.0 / delta)) / eps**2, "d (A^4 + A^3 log(1 / delta)) / eps^2")


def open_share(name: str, value: float) -> float:
    """Return a number strictly between 0 and 1."""
    checked = validation.number(name, value)
    if not 0.0 < checked < 1.0:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {checked:g}")
    return checked
