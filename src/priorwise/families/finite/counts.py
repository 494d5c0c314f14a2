"""Counting tasks: how often exploration identified each of finitely many possible tasks.

The paper's discrete experiment: an episode whose posterior collapses on one task adds one to that
task's counter. Other episodes count nothing, and the prior is the counters' shares. If task s is
identified with probability ``q_s``, the shares have the mean ``p_s q_s / sum_u p_u q_u``. They are
unbiased if all ``q_s`` are equal. Otherwise they miss the prior, however many episodes there are.
:class:`~priorwise.families.finite.likelihood.estimator.FiniteMarginalLikelihood` uses every episode
and is consistent.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np
from attrs import field, frozen
from scipy.special import softmax

from priorwise.core.errors import ArgumentError
from priorwise.core.parameters import (
    Array,
    Instance,
    Number,
    arrays,
)
from priorwise.core.types import FloatArray
from priorwise.families.finite.prior import FinitePrior
from priorwise.families.finite.statistics import CANDIDATES, FiniteStatistics, check_candidates
from priorwise.families.normal.totals import prefix_sizes
from priorwise.fitting.columns import by_arm
from priorwise.fitting.design import design_sums, uniformity_warnings
from priorwise.fitting.fits import PLAUSIBLE_AVERAGED, PriorFit, Uncertainty
from priorwise.fitting.runs import Run
from priorwise.fitting.task_facts import KnownTasks


@final
@frozen(slots=False)
class FiniteCounts:
    """Finite prior from the episodes that identified their task: ``probs = (counts + smoothing) /
    (sum of counts + smoothing)``.

    This is the paper's estimator. It favours tasks that exploration identifies more often than the
    others: use ``FiniteMarginalLikelihood`` for a consistent estimate, unless all tasks are equally
    easy to identify.

    Parameters
    ----------
    candidates
        A finite prior with the possible tasks and the noise; its probabilities are not used.
    smoothing
        Added to each task's counter. By default ``1 / support``, together the weight of one task:
        no possible task is ruled out because it was not met yet, and the shares move by at most ``1
        / (n + 1)``, less than their standard error. 0 gives the paper's shares.
    level
        An episode identifies its task if that has at least this posterior probability under a
        uniform prior. By default 1: all other tasks are excluded, which only noiseless rewards (and
        impossible Bernoulli ones) do.

    """

    reads: ClassVar[type] = FiniteStatistics
    adaptive: ClassVar[bool] = False  # pulls must not have followed rewards

    candidates: FinitePrior = field(validator=Instance(FinitePrior, CANDIDATES))
    smoothing: float | None = field(default=None, validator=Number(0.0))
    level: float = field(
        default=1.0, validator=Number(0.5, 1.0, ends="(]", cure="one task at most then reaches it")
    )

    def for_tasks(self, known: KnownTasks) -> "FiniteCounts":
        """Raise an error for tasks with other arms, another noise, or candidates other than
        these.
        """
        check_candidates(self, self.candidates, known)
        return self

    def fit(self, data: Run | FiniteStatistics, *, start: Any = None) -> PriorFit:
        """Fit a kept run or statistics; ``start`` is ignored. Only a run shows the arms, so only
        there are they tested.
        """
        statistics = self._statistics(data)
        warnings: list[str] = []
        if isinstance(data, Run):
            sums = design_sums(by_arm(data.actions, None, self.candidates.arms))
            warnings += uniformity_warnings(sums, "FiniteMarginalLikelihood")
        return self._count(statistics, warnings)

    def fit_prefixes(self, data: Run | FiniteStatistics, sizes: Sequence[int]) -> list[PriorFit]:
        """Fit the first ``size`` tasks for each size; the arms are not tested."""
        statistics = self._statistics(data)
        checked = prefix_sizes(sizes, statistics.tasks)
        return [self._count(statistics[:size], []) for size in checked]

    def _statistics(self, data: Any) -> FiniteStatistics:
        return FiniteStatistics.of(data, candidates=self.candidates)

    def _count(self, statistics: FiniteStatistics, warnings: list[str]) -> PriorFit:
        values = statistics.log_likelihood
        support = statistics.support
        left = np.isfinite(values).sum(axis=1)
        possible = left > 0
        weights = softmax(np.where(possible[:, None], values, 0.0), axis=1)
        sure = (self.level < 1.0) & (weights.max(axis=1) >= self.level)
        identified = possible & ((left == 1) | sure)
        counts = np.bincount(weights[identified].argmax(axis=1), minlength=support).astype(float)
        smoothing = 1.0 / support if self.smoothing is None else self.smoothing
        raised = counts + smoothing
        n = int(identified.sum())
        if (impossible := int((~possible).sum())) > 0:
            warnings.append(f"{impossible} tasks are none of the candidates")
        if n == 0:
            warnings.append("no episode identified its task: the prior is uniform")
            raised = np.ones(support)
        probs = raised / raised.sum()
        errors = np.sqrt(probs * (1.0 - probs) / n) if n else np.full(support, np.inf)
        c = self.candidates
        return PriorFit(
            FinitePrior(c.means, probs, c.noise, c.noise_var),
            type(self).__name__,
            n,
            statistics.tasks - n,
            at_boundary=n == 0 or bool((probs == 0.0).any()),
            std_errors={"probs": errors},
            warnings=warnings,
            uncertainty=DirichletUncertainty(raised),
            statistics=statistics,
        )


@final
@frozen(eq=False, slots=False)
class DirichletUncertainty(Uncertainty):
    """Dirichlet law of the probabilities, with the (smoothed) counts as its weights; tasks of
    weight 0 stay at 0.
    """

    family: ClassVar[str] = "dirichlet-uncertainty"

    weights: FloatArray = field(converter=arrays, validator=Array(("candidate",), 0.0))

    def __attrs_post_init__(self) -> None:
        if not self.weights.any():
            raise ArgumentError("weights", "must not all be 0")

    def draw(self, prior: Any, rng: np.random.Generator, n: int) -> list[Any]:
        """``probs ~ Dirichlet(weights)``."""
        probs = np.zeros((n, self.weights.size))
        probs[:, self.weights > 0.0] = rng.dirichlet(self.weights[self.weights > 0.0], size=n)
        probs /= probs.sum(axis=1, keepdims=True)
        return [FinitePrior(prior.means, row, prior.noise, prior.noise_var) for row in probs]


def averaged(fit: PriorFit, how: Any, rng: np.random.Generator) -> FinitePrior:
    """The fitted prior with plausible probabilities averaged."""
    probs = np.mean([each.probs for each in fit.draw(rng, PLAUSIBLE_AVERAGED)], axis=0)
    made: FinitePrior = fit.prior.replaced(probs=probs / probs.sum())
    return made
