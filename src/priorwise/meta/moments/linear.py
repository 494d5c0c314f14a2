"""Moment estimator of a normal prior over weights: least squares in each task (the paper's linear contextual experiment).

With ``G = sum_h x_h x_h'`` the least squares estimate ``w^ = G^-1 sum_h x_h r_h`` of a task has mean w and covariance
``noise_var G^-1`` given w and the features, so ``E[w^] = nu`` and ``E[w^ w^' - noise_var G^-1] = E[w w']``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast, final

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.types import FloatArray
from priorwise.meta.fit import PriorFit
from priorwise.meta.moments.totals import Contribution, MomentUncertainty, Totals, estimate, prefix_totals
from priorwise.meta.numerics import project_psd
from priorwise.meta.statistics.design import design_sums, uniformity_warnings
from priorwise.meta.statistics.linear import LinearStatistics
from priorwise.meta.statistics.tasks import by_arm
from priorwise.priors.contexts import Contexts, GivenContexts
from priorwise.priors.linear import LinearGaussianPrior
from priorwise.simulate.results import Run


@final
@dataclass(frozen=True)
class LinearMoments:
    """Normal prior over the weights of a linear contextual bandit, by moments of the tasks' least squares estimates.

    Unbiased if the features pulled do not depend on rewards, before the covariance is projected.

    Parameters
    ----------
    contexts
        Law of the features, as :class:`~priorwise.priors.linear.LinearGaussianPrior` takes it; it goes into the fitted prior.
    noise_var
        Known variance of a reward, the same for all arms.
    largest_condition
        A task whose ``G`` has a larger ratio of eigenvalues is left out, and so is one with a singular ``G``. Which tasks are left
        out depends on features alone, so this does not bias the fit.

    Notes
    -----
    A covariance with a negative eigenvalue is projected on the positive semi-definite matrices, and the fit is ``at_boundary``.
    With one usable task the spread is unknown and the covariance is ``noise_var`` times the identity; with none the mean is 0 too.
    """

    contexts: Contexts | ArrayLike
    noise_var: float = 1.0
    largest_condition: float = 1e8

    def __post_init__(self) -> None:
        """Check the numbers."""
        if isinstance(self.contexts, (list, tuple, np.ndarray)):
            object.__setattr__(self, "contexts", GivenContexts(self.contexts))
        validation.positive("noise_var", np.array(validation.number("noise_var", self.noise_var)))
        if not validation.number("largest_condition", self.largest_condition) >= 1.0:
            raise ValueError(f"largest_condition must be at least 1, got {self.largest_condition:g}")

    def fit(self, data: Run | LinearStatistics, *, start: Any = None) -> PriorFit:
        """Fit a kept run or statistics; ``start`` is ignored. Only a run shows the arms, so only there are they tested."""
        statistics = LinearStatistics.of(data)
        return self._fits(data, statistics, [statistics.tasks], [statistics])[0]

    def fit_prefixes(self, data: Run | LinearStatistics, sizes: Sequence[int]) -> list[PriorFit]:
        """Fit the first ``size`` tasks for each size, in one pass: the same fits as of those tasks alone, without statistics."""
        statistics = LinearStatistics.of(data)
        checked = [validation.count("sizes", size) for size in sizes]
        if checked and max(checked) > statistics.tasks:
            raise ValueError(f"sizes must not exceed the number of tasks, {statistics.tasks}, got {max(checked)}")
        return self._fits(data, statistics, checked, [None] * len(checked)) if checked else []

    def _fits(self, data: Any, statistics: LinearStatistics, sizes: Sequence[int], kept: Sequence[Any]) -> list[PriorFit]:
        pulls = np.ones((statistics.tasks, 1))  # one arm: nothing to test
        if isinstance(data, Run):
            arms = max(cast("Contexts", self.contexts).arms, int(data.actions.max()) + 1)
            pulls = by_arm(data.actions, None, arms)
        totals = prefix_totals(lambda rows: self._read(statistics, pulls, rows), sizes)
        return [self._finish(total, keep) for total, keep in zip(totals, kept, strict=True)]

    def _read(self, statistics: LinearStatistics, pulls: FloatArray, rows: slice) -> Contribution:
        gram, moments = statistics.gram[rows], statistics.moments[rows]
        values, vectors = np.linalg.eigh(gram)
        used = (values[:, 0] > 0.0) & (values[:, -1] <= self.largest_condition * values[:, 0])
        inverse = (vectors[used] / values[used, None, :]) @ vectors[used].transpose(0, 2, 1)
        weights = np.einsum("tij,tj->ti", inverse, moments[used])
        z = weights[:, :, None] * weights[:, None, :] - self.noise_var * inverse
        return Contribution(weights, z, len(gram), design_sums(pulls[rows]))

    def _finish(self, totals: Totals, data: Any) -> PriorFit:
        tasks, dim = int(totals.rows), totals.x.size
        warnings = list(uniformity_warnings(totals.design, "LinearMarginalLikelihood"))
        if tasks < 2:
            few = "no task has" if tasks == 0 else "a single task has"
            warnings.append(f"{few} features in all directions: the covariance is that of a reward in each")
            mean, cov = totals.x, self.noise_var * np.eye(dim)
            unknown = {"mean": np.full(dim, np.inf), "cov": np.full((dim, dim), np.inf)}
            return PriorFit(
                LinearGaussianPrior(mean, cov, self.noise_var, self.contexts), type(self).__name__, tasks, totals.tasks - tasks,
                at_boundary=True, std_errors=unknown, warnings=warnings, statistics=data,
            )  # fmt: skip
        found = estimate(totals, subtract=True)
        projected = project_psd(found.cov)
        return PriorFit(
            LinearGaussianPrior(found.mean, projected.matrix, self.noise_var, self.contexts),
            type(self).__name__,
            tasks,
            totals.tasks - tasks,
            at_boundary=projected.clipped,
            std_errors={"mean": found.mean_error, "cov": found.cov_error},
            warnings=warnings,
            uncertainty=None if found.joint is None else MomentUncertainty(found.mean, found.cov, found.joint),
            statistics=data,
        )
