"""What the theory says of the number of tasks that a moment estimator needs: its constants, its
rates, and the lemma between.

The constants in front of the rates are universal and not given, so a rate is a number of tasks up
to a factor: compare rates, or set them beside measured numbers, which
:mod:`priorwise.meta.complexity.sample_complexity` has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from priorwise.core import validation
from priorwise.core.fits import Estimator
from priorwise.core.protocols import Policy
from priorwise.core.types import FloatArray
from priorwise.families.beta.moments import BetaMoments
from priorwise.families.beta.prior import BetaPrior
from priorwise.families.gaussian.moments import GaussianMoments
from priorwise.families.gaussian.prior import GaussianPrior
from priorwise.meta.exploration import Exploration, OneArmBlocks, PairedArms
from priorwise.policies.uniform import Uniform
from priorwise.policies.uniform_then import UniformThen
from priorwise.sensitivity.distance.measures import kl


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

    ``mean_error = |P^-1/2 (nu^ - nu)|``, ``cov_error = |P^-1/2 P^ P^-1/2 - I|`` (spectral norm). If
    ``cov_error <= 2/3`` then ``KL <= bound = (A cov_error^2 + mean_error^2) / 2``; otherwise
    ``bound`` is infinite. By Pinsker ``TV <= sqrt(bound / 2)``.
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
        raise ValueError(
            "truth must have a covariance that is not singular: errors are measured in its units"
        )
    root = (vectors / np.sqrt(values)) @ vectors.T
    return float(np.linalg.norm(root @ (mean - truth.mean))), float(
        np.linalg.norm(root @ (cov - truth.cov) @ root, 2)
    )


@dataclass(frozen=True)
class Rate:
    """Tasks that suffice for ``TV <= eps`` with probability ``1 - delta``, up to a factor that the
    theory does not give.
    """

    tasks: float
    formula: str

    def __str__(self) -> str:
        """Formula and its value."""
        return f"C {self.formula}, {self.tasks:.3g} for C = 1"


def theory_rate(
    prior: Any, eps: float, delta: float, *, known_mean: bool = False, known_cov: bool = False
) -> Rate:
    """Rate of the theorems on Beta and on normal priors, with the constants d2 and d of
    :func:`gaussian_constants`.

    * Beta, by moments of blocks of tasks that pull one arm: ``T >= C A^2 log(A / delta) / eps^2``,
      C depending on (alpha, beta);
    * normal with ``known_cov``, the mean from one uniform pull: ``T >= C d2 (A^2 + A log(1 /
      delta)) / eps^2``, C universal;
    * normal with ``known_mean``, the covariance from two: ``T >= C d (A^4 + A^3 log(1 / delta)) /
      eps^2``, C universal;
    * normal, both from differences of two tasks: the larger of these two rates. The paper prints
      the second alone, which does not depend on the prior mean; but d2 does, and the mean has to be
      learned as well (see docs/corrections.md).
    """
    eps, delta = open_share("eps", eps), open_share("delta", delta)
    a = prior.arms
    if isinstance(prior, BetaPrior):
        if known_mean or known_cov:
            raise ValueError(
                "known_mean and known_cov are about a GaussianPrior; a BetaPrior has no such rate"
            )
        return Rate(a**2 * np.log(a / delta) / eps**2, "A^2 log(A / delta) / eps^2")
    if not isinstance(prior, GaussianPrior):
        raise TypeError(
            f"the theory has rates for a BetaPrior and a GaussianPrior, got {type(prior).__name__}"
        )
    if known_mean and known_cov:
        raise ValueError(
            "known_mean and known_cov are both True, which leaves nothing to learn: pass one of "
            "them"
        )
    constants = gaussian_constants(prior)
    mean = Rate(
        constants.d2 * (a**2 + a * np.log(1.0 / delta)) / eps**2,
        "d2 (A^2 + A log(1 / delta)) / eps^2",
    )
    cov = Rate(
        constants.d * (a**4 + a**3 * np.log(1.0 / delta)) / eps**2,
        "d (A^4 + A^3 log(1 / delta)) / eps^2",
    )
    if known_mean or known_cov:
        return mean if known_cov else cov
    return Rate(
        max(cov.tasks, mean.tasks),
        "max(d (A^4 + A^3 log(1 / delta)), d2 (A^2 + A log(1 / delta))) / eps^2",
    )


def covered_rate(
    prior: Any,
    estimator: Estimator,
    exploration: Policy | Exploration,
    horizon: int,
    eps: float,
    delta: float,
) -> Rate | None:
    """Rate of the theorem that covers this estimator with this exploration; None where no theorem
    does.

    Covered are, with what each theorem asks of the pulls: ``BetaMoments`` with ``OneArmBlocks`` of
    two pulls or more; ``GaussianMoments("difference")`` with ``PairedArms``;
    ``GaussianMoments("known-mean")`` with the true mean and two uniform pulls;
    ``GaussianMoments("no-cov")`` with the true covariance and one uniform pull. What
    ``"two-round"`` and ``"full"`` need grows faster with the prior mean than any of these rates.
    """
    if (
        isinstance(prior, BetaPrior)
        and isinstance(estimator, BetaMoments)
        and isinstance(exploration, OneArmBlocks)
    ):
        read = min(horizon, estimator.steps or horizon)
        covered = exploration.arms == prior.arms and 2 <= read <= (exploration.rounds or horizon)
        return theory_rate(prior, eps, delta) if covered else None
    if not (isinstance(prior, GaussianPrior) and isinstance(estimator, GaussianMoments)):
        return None
    uniform = min(horizon, _uniform_rounds(exploration, horizon))
    if estimator.variant == "difference":
        covered = (
            isinstance(exploration, PairedArms) and exploration.arms == prior.arms and horizon >= 2
        )
        return theory_rate(prior, eps, delta) if covered else None
    if (
        estimator.variant == "known-mean"
        and uniform >= 2
        and np.allclose(_given(estimator.mean), prior.mean)
    ):
        return theory_rate(prior, eps, delta, known_mean=True)
    if estimator.variant == "no-cov" and uniform >= 1:
        assumed = np.eye(prior.arms) if estimator.cov is None else _given(estimator.cov)
        if np.shape(assumed) == prior.cov.shape and np.allclose(assumed, prior.cov):
            return theory_rate(prior, eps, delta, known_cov=True)
    return None


def _given(value: Any) -> FloatArray:
    return np.asarray(value, dtype=np.float64)


def _uniform_rounds(exploration: Policy | Exploration, horizon: int) -> int:
    """How many rounds of each task an exploration surely draws uniformly, whatever happened in
    it.
    """
    if isinstance(exploration, UniformThen):
        return exploration.rounds
    return horizon if isinstance(exploration, Uniform) else 0


def open_share(name: str, value: float) -> float:
    """Return a number strictly between 0 and 1."""
    checked = validation.number(name, value)
    if not 0.0 < checked < 1.0:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {checked:g}")
    return checked
