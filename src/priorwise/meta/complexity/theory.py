"""What the theory says of the number of tasks that a moment estimator needs: rates, and a lemma.

The constants in front of the rates are universal and not given, so a rate is a number of tasks up
to a factor: compare rates, or set them beside measured numbers, which
:mod:`priorwise.meta.complexity.sample_complexity` has.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from priorwise.core import argument_checks, validation
from priorwise.core.errors import ArgumentError
from priorwise.core.protocols import Policy
from priorwise.core.types import FloatArray
from priorwise.families.registry import family_for, has_part
from priorwise.fitting.design import Design, Rate
from priorwise.fitting.fits import Estimator
from priorwise.meta.exploration import Exploration, OneArmBlocks, PairedArms
from priorwise.policies.uniform import Uniform
from priorwise.policies.uniform_then import UniformThen
from priorwise.sensitivity.distance.measures import kl


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


def kl_lemma(truth: Any, fitted: Any) -> KLLemma:
    """Compare ``KL(fitted || truth)`` with the lemma's bound; the truth must not be singular."""
    for name, prior in (("truth", truth), ("fitted", fitted)):
        argument_checks.role(name, prior, "a normal prior", "arms", "mean", "cov")
    mean_error, cov_error = whitened_errors(truth, fitted.mean, fitted.cov)
    bound = (truth.arms * cov_error**2 + mean_error**2) / 2.0 if cov_error <= 2.0 / 3.0 else np.inf
    return KLLemma(kl(fitted, truth), float(bound), mean_error, cov_error)


def whitened_errors(truth: Any, mean: FloatArray, cov: FloatArray) -> tuple[float, float]:
    """Errors of an estimated mean and covariance in units of the true covariance P.

    ``|P^-1/2 (mean - nu)|_2`` and ``|P^-1/2 (cov - P) P^-1/2|_2``, the norms of the paper's lemmas.
    """
    values, vectors = np.linalg.eigh(truth.cov)
    if values[0] <= 1e-14 * max(values[-1], 0.0):
        raise ArgumentError(
            "truth",
            "must have a covariance that is not singular",
            cure="errors are measured in its units",
        )
    root = (vectors / np.sqrt(values)) @ vectors.T
    far = np.linalg.norm(root @ (mean - truth.mean))
    return float(far), float(np.linalg.norm(root @ (cov - truth.cov) @ root, 2))


def theory_rate(
    prior: Any, eps: float, delta: float, *, known_mean: bool = False, known_cov: bool = False
) -> Rate:
    """Rate of the theorems on Beta and on normal priors, with the constants d2 and d of
    :func:`~priorwise.families.gaussian.rates.gaussian_constants`.

    * Beta, by moments of blocks of tasks that pull one arm: ``T >= C A^2 log(4 A / delta) /
      eps^2``, C depending on (alpha, beta); the paper prints ``log(A / delta)``, which is too small
      for one arm (see docs/corrections.md);
    * normal with ``known_cov``, the mean from one uniform pull: ``T >= C d2 (A^2 + A log(1 /
      delta)) / eps^2``, C universal;
    * normal with ``known_mean``, the covariance from two: ``T >= C d (A^4 + A^3 log(1 / delta)) /
      eps^2``, C universal;
    * normal, both from differences of two tasks: the larger of these two rates. The paper prints
      the second alone, which does not depend on the prior mean; but d2 does, and the mean has to be
      learned as well (see docs/corrections.md).
    """
    eps, delta = validation.share("eps", eps), validation.share("delta", delta)
    for name, value in (("known_mean", known_mean), ("known_cov", known_cov)):
        validation.flag(name, value)
    argument_checks.fixed_prior("prior", prior)
    rate = family_for(prior, "theory_rate").rate
    found: Rate = rate(prior, eps, delta, known_mean=known_mean, known_cov=known_cov)
    return found


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
    if not has_part(prior, "covered"):
        return None
    design = _design(exploration, prior.arms, horizon)
    known = family_for(prior, "covered_rate").covered(prior, estimator, design)
    return None if known is None else theory_rate(prior, eps, delta, **known)


def _design(exploration: Policy | Exploration, arms: int, horizon: int) -> Design:
    """What an exploration with so many arms promises of its rounds."""
    if isinstance(exploration, UniformThen):
        return Design(horizon, uniform=min(horizon, exploration.rounds))
    if isinstance(exploration, OneArmBlocks) and exploration.arms == arms:
        return Design(horizon, one_arm=exploration.rounds or horizon)
    if isinstance(exploration, PairedArms) and exploration.arms == arms:
        return Design(horizon, paired=min(horizon, 2))
    return Design(horizon, uniform=horizon if isinstance(exploration, Uniform) else 0)
