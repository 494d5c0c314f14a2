"""How fast the errors of a normal moment estimator fall with tasks, in the norms of the lemmas."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from priorwise.core import argument_checks, validation
from priorwise.core.estimates import std_error
from priorwise.core.protocols import Policy
from priorwise.core.types import FloatArray
from priorwise.families.registry import family_for
from priorwise.fitting.task_facts import KnownTasks, adapted
from priorwise.meta.complexity.theory import whitened_errors
from priorwise.meta.exploration import explored, replicate_seed
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
    estimator: Any = None,
    exploration: Policy | None = None,
) -> MomentErrors:
    """Measure how the errors of a normal moment estimator fall with the number of tasks: by theory
    like ``T^-1/2``.
    """
    family = family_for(prior, "moment_errors")
    family.require("information")  # a mean and a covariance
    used = family.moments(prior) if estimator is None else estimator
    argument_checks.role("estimator", used, "a moment estimator", "fit_prefixes")
    used = adapted(used, KnownTasks.of(prior))
    squares = np.empty((validation.count("replicates", replicates, least=2), 2, len(sizes)))
    explore = Uniform() if exploration is None else exploration
    for r in range(replicates):
        run = explored(prior, explore, max(sizes), horizon, seed=replicate_seed(seed, r))
        fits = used.fit_prefixes(run, sizes)
        errors = [whitened_errors(prior, fit.prior.mean, fit.prior.cov) for fit in fits]
        squares[r] = np.array(errors).T ** 2
    rms = np.sqrt(squares.mean(axis=0))
    spread = std_error(squares) / (2.0 * rms)
    return MomentErrors(tuple(sizes), rms[0], rms[1], spread[0], spread[1])
