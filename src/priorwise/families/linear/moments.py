"""Moment estimator of a normal prior over weights: least squares in each task (the paper's linear
contextual experiment).

With ``G = sum_h x_h x_h'`` the least squares estimate ``w^ = G^-1 sum_h x_h r_h`` of a task has
mean w and covariance ``noise_var G^-1`` given w and the features, so ``E[w^] = nu`` and ``E[w^ w^'
- noise_var G^-1] = E[w w']``.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, cast, final

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import ArrayLike

from priorwise.core.parameters import (
    Number,
)
from priorwise.core.types import BoolArray, FloatArray
from priorwise.families.linear.contexts import Contexts, law_of_contexts
from priorwise.families.linear.prior import LinearGaussianPrior
from priorwise.families.linear.statistics import LinearStatistics
from priorwise.families.normal.totals import (
    Contribution,
    MomentEstimate,
    MomentEstimator,
    Totals,
    estimate,
    moment_fit,
)
from priorwise.fitting.columns import by_arm
from priorwise.fitting.design import design_sums
from priorwise.fitting.fits import PriorFit
from priorwise.fitting.runs import Run
from priorwise.fitting.task_facts import KnownTasks


@final
@frozen(slots=False)
class LinearMoments(MomentEstimator):
    """Normal prior over the weights of a linear contextual bandit, by moments of the tasks' least
    squares estimates.

    Unbiased if the features pulled do not depend on rewards, before the covariance is projected.

    Parameters
    ----------
    contexts
        Law of the features, as :class:`~priorwise.families.linear.prior.LinearGaussianPrior` takes
        it; it goes into the fitted prior.
    noise_var
        Variance of a reward, the same for all arms. By default it is taken from the tasks in a
        meta-learner; otherwise it is estimated from what least squares leave of tasks with more
        pulls than features, and from then on taken for known.
    largest_condition
        A task whose ``G`` has a larger ratio of eigenvalues is left out, and so is one with a
        singular ``G``. Which tasks are left out depends on features alone, so this does not bias
        the fit.

    Notes
    -----
    A covariance with a negative eigenvalue is projected on the positive semi-definite matrices, and
    the fit is ``at_boundary``. With one usable task the spread is unknown and the covariance is
    ``noise_var`` times the identity; with none the mean is 0 too. Only a run shows the arms, so
    only there are they tested.
    """

    reads: ClassVar[type] = LinearStatistics
    likelihood: ClassVar[str] = "LinearMarginalLikelihood"

    contexts: Contexts | ArrayLike = field(converter=law_of_contexts)
    noise_var: float | None = field(default=None, validator=Number(1e-100))
    largest_condition: float = field(default=1e8, validator=Number(1.0))

    def for_tasks(self, known: KnownTasks) -> "LinearMoments":
        """Take the noise from the tasks if it was left open; raise an error for tasks with other
        features or another noise.
        """
        known.check_contexts(self, self.contexts)
        return evolve(self, noise_var=known.noise_for(self, self.noise_var, one_for_all=True))

    def _statistics(self, data: Any) -> LinearStatistics:
        return LinearStatistics.of(data)

    def _left_of(self, statistics: LinearStatistics) -> tuple[float, float, str, str]:
        """``r'r - w^' X'r`` of each task has the mean ``(n - dim) noise_var``."""
        used, _, weights = self._least_squares(statistics.gram, statistics.moments)
        left = statistics.squares[used] - np.einsum("ti,ti->t", weights, statistics.moments[used])
        freedom = float((statistics.pulls[used] - statistics.dim).sum())
        total = float(np.maximum(left, 0.0)[statistics.pulls[used] > statistics.dim].sum())
        silent = "least squares leave nothing of the rewards"
        return total, freedom, silent, "no task has more pulls than features"

    def _least_squares(
        self, gram: FloatArray, moments: FloatArray
    ) -> tuple[BoolArray, FloatArray, FloatArray]:
        """Which tasks are used, and their ``G^-1`` and ``w^``."""
        values, vectors = np.linalg.eigh(gram)
        used = (values[:, 0] > 0.0) & (values[:, -1] <= self.largest_condition * values[:, 0])
        inverse = (vectors[used] / values[used, None, :]) @ vectors[used].transpose(0, 2, 1)
        return used, inverse, np.einsum("tij,tj->ti", inverse, moments[used])

    def _reader(self, data: Any, statistics: LinearStatistics) -> Callable[[slice], Contribution]:
        pulls = np.ones((statistics.tasks, 1))  # one arm: nothing to test
        if isinstance(data, Run):
            arms = max(cast("Contexts", self.contexts).arms, int(data.actions.max()) + 1)
            pulls = by_arm(data.actions, None, arms)
        noise = cast("float", self.noise_var)

        def read(rows: slice) -> Contribution:
            gram, moments = statistics.gram[rows], statistics.moments[rows]
            _, inverse, weights = self._least_squares(gram, moments)
            z = weights[:, :, None] * weights[:, None, :] - noise * inverse
            return Contribution(weights, z, len(gram), design_sums(pulls[rows]))

        return read

    def _finish(self, totals: Totals, data: Any) -> PriorFit:
        tasks, dim, noise = int(totals.rows), totals.x.size, cast("float", self.noise_var)
        report = self._report(totals, tasks, data)
        if tasks < 2:
            few = "no task has" if tasks == 0 else "a single task has"
            why = f"{few} features in all directions: the covariance is that of a reward in each"
            report["warnings"].append(why)
            unknown = np.full(dim, np.inf), np.full((dim, dim), np.inf)
            found = MomentEstimate(totals.x, noise * np.eye(dim), *unknown, None)
        else:
            found = estimate(totals, subtract=True)
        prior = partial(LinearGaussianPrior, noise_var=noise, contexts=self.contexts)
        return moment_fit(prior, found, guessed=tasks < 2, **report)
