"""Normal priors over the weights of linear contextual bandits by maximum marginal likelihood, with
known or unknown noise.

In statistics this is a linear mixed model in which every feature has a random coefficient, fitted
by maximum likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal, final, get_args

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.fits import PriorFit
from priorwise.core.known import KnownTasks
from priorwise.core.numerics import symmetric
from priorwise.core.types import FloatArray
from priorwise.families.linear.contexts import Contexts, law_of_contexts
from priorwise.families.linear.likelihood.certainty import std_errors, uncertainty
from priorwise.families.linear.likelihood.climb import (
    FAR,
    LEAST_NOISE,
    Chart,
    Point,
    climb,
    safe_root,
)
from priorwise.families.linear.likelihood.model import LinearLikelihood, LinearTasks
from priorwise.families.linear.prior import LinearGaussianPrior
from priorwise.families.linear.statistics import LinearStatistics

Structure = Literal["full", "diagonal"]

REGULARISER: Final = 1.0

FEW: Final = 5_000
"""A cold start looks at so many of the tasks first, up to a factor of two."""


@final
@dataclass(frozen=True, eq=False, init=False)
class LinearMarginalLikelihood:
    """Prior ``w ~ N(mean, cov)`` of a linear contextual bandit by maximum marginal likelihood (type
    II, empirical Bayes).

    Parameters
    ----------
    contexts
        Where features come from, for the fitted prior: see :class:`LinearGaussianPrior`. The fit
        itself does not depend on it.
    structure
        Of the covariance: ``"full"`` or ``"diagonal"``.
    noise_var
        Variance of a reward around ``x'w``, one for all arms; ``"shared"`` to estimate it too. By
        default it is taken from the tasks in a meta-learner, and estimated otherwise.
    regulariser
        Weight r of ``r / 2 * (log det S - tr S / 10)`` that is added to the log likelihood, S being
        the covariance in units of the data: root mean square of each feature, and of what a common
        regression leaves of the rewards. The default 1 turns the maximum-likelihood covariance of T
        exactly observed tasks, ``SS / T``, into the unbiased ``SS / (T - 1)``, up to a tenth of the
        difference, keeps variances off zero (Chung et al. 2013, 2015) and gives features that were
        never seen a finite variance. 0 is plain maximum likelihood; where it leaves the prior open,
        in directions of the features that no task has seen, the fit takes the mean 0 and the
        variance that the default regulariser would choose, and says so.

    Notes
    -----
    ``at_boundary`` says that plain likelihood would rather have a singular covariance (or no noise)
    than the fitted one.

    Examples
    --------
    >>> data = LinearStatistics.from_trajectory(
    ...     features=np.ones((4, 3, 1)), rewards=[[0, 1, 2], [4, 3, 5], [2, 2, 2], [1, 0, 1]]
    ... )
    >>> fit = LinearMarginalLikelihood(contexts=[[1.0], [2.0]], regulariser=0.0).fit(data)
    >>> (
    ...     fit.prior.mean.round(3).tolist(),
    ...     fit.prior.cov.round(3).tolist(),
    ...     fit.prior.noise_var.round(3).tolist(),
    ... )
    ([1.917], [[1.493]], [0.583, 0.583])

    """

    reads: ClassVar[type] = LinearStatistics

    contexts: Contexts
    structure: Structure
    noise_var: float | Literal["shared"] | None
    regulariser: float

    def __init__(
        self,
        contexts: Contexts | ArrayLike,
        structure: Structure = "full",
        noise_var: float | Literal["shared"] | None = None,
        regulariser: float = REGULARISER,
    ) -> None:
        """Check the options."""
        if structure not in get_args(Structure):
            raise ValueError(
                f"structure must be one of {', '.join(get_args(Structure))}, got {structure!r}"
            )
        if isinstance(noise_var, str):
            if noise_var != "shared":
                raise ValueError(
                    f"noise_var must be a variance or 'shared' (estimate it), got {noise_var!r}"
                )
        elif noise_var is not None and validation.number("noise_var", noise_var) <= 0:
            raise ValueError(
                f"noise_var must be positive, got {noise_var:g}; 'shared' estimates it"
            )
        if validation.number("regulariser", regulariser) < 0:
            raise ValueError(
                f"regulariser must not be negative, got {regulariser:g}; 0 is plain maximum "
                "likelihood"
            )
        law = law_of_contexts(contexts)
        noise = noise_var if noise_var is None or isinstance(noise_var, str) else float(noise_var)
        for name, value in (
            ("contexts", law),
            ("structure", structure),
            ("noise_var", noise),
            ("regulariser", float(regulariser)),
        ):
            object.__setattr__(self, name, value)

    def for_tasks(self, known: KnownTasks) -> LinearMarginalLikelihood:
        """Take the noise from the tasks if it was left open; refuse tasks with other features or
        another noise.
        """
        known.check_contexts(self, self.contexts)
        noise = known.noise_for(self, self.noise_var, one_for_all=True)
        return LinearMarginalLikelihood(self.contexts, self.structure, noise, self.regulariser)

    @property
    def _known_noise(self) -> float | None:
        return None if isinstance(self.noise_var, str) else self.noise_var

    def fit(self, data: Any, *, start: Any = None) -> PriorFit:
        """Fit a kept run or :class:`LinearStatistics`; ``start`` is a fit or prior to begin
        from.
        """
        statistics = LinearStatistics.of(data)
        used = statistics.pulls > 0
        if not used.any():
            raise ValueError("no task has a pull, so there is nothing to fit")
        kept = statistics if used.all() else statistics.take(used)
        raw = LinearTasks(kept.gram, kept.moments, kept.squares, kept.pulls)
        features, reward = raw.units()
        tasks = raw.rescaled(features, reward)
        common = tasks.regression()
        tasks = tasks.centred(common)
        chart = Chart.of(
            tasks.dim, diagonal=self.structure == "diagonal", noise=self._known_noise is None
        )
        top, converged, iterations = climb(self._start(tasks, chart, start, features, reward), 200)
        singular, silent = _prefers_singular(top), top.noise_var <= LEAST_NOISE
        unseen = _unseen(top)
        units = reward / features  # of the weights
        cov = symmetric(top.root @ top.root.T if self.regulariser > 0 else _filled(top, unseen))
        prior = LinearGaussianPrior(
            (common + top.likelihood.mean) * units,
            cov * np.outer(units, units),
            # a known one exactly as it was given
            top.noise_var * reward**2 if self._known_noise is None else self._known_noise,
            self.contexts,
        )
        blind = unseen.shape[1] > 0
        there = (
            "regulariser's"
            if self.regulariser > 0
            else "default regulariser's, as the data's is open"
        )
        notes = [
            "a covariance with a variance of zero in some direction is more likely than the fitted "
            "one" * singular,
            "the rewards leave no noise: its variance is at the least that is allowed" * silent,
            f"some direction of the features was never seen: the prior there is the {there}"
            * blind,
        ]
        notes += [] if converged else ["the iterations did not come to rest"]
        centre = top
        if self.regulariser == 0 and (singular or blind):
            centre, _, _ = climb(
                Point(tasks, chart, REGULARISER, safe_root(cov, chart), top.noise_var), 200
            )
        return PriorFit(
            prior,
            type(self).__name__,
            len(raw.pulls),
            int((~used).sum()),
            at_boundary=singular or silent or blind,
            converged=converged,
            std_errors=std_errors(
                top, units, reward, interior=not silent and (self.regulariser > 0 or not singular)
            ),
            log_likelihood=top.likelihood.value - float(raw.pulls.sum()) * np.log(reward),
            iterations=iterations,
            warnings=[note for note in notes if note],
            uncertainty=uncertainty(centre, units),
            statistics=statistics,
        )

    def _start(
        self, tasks: LinearTasks, chart: Chart, start: Any, features: FloatArray, reward: float
    ) -> Point:
        """Begin from a former fit, or from a covariance that explains half of what there is and a
        few steps of EM.

        With very many tasks, some of them first.
        """
        noise = None if self._known_noise is None else self._known_noise / reward**2
        if start is None:
            root = chart.root(
                np.where(chart.rows == chart.columns, np.sqrt(0.5 / tasks.dim), 0.0), tasks.dim
            )
            point = Point(tasks, chart, self.regulariser, root, 0.5 if noise is None else noise)
            few = len(tasks.pulls) // FEW
            if few > 1:
                point = replace(point, tasks=tasks.every(few))
            for _ in range(3):
                point = point.expectation_maximisation()
            if few > 1:
                near, _, _ = climb(point, 200)
                point = Point(
                    tasks,
                    chart,
                    self.regulariser,
                    safe_root(near.root @ near.root.T, chart),
                    near.noise_var,
                )
            return point
        prior = start.prior if isinstance(start, PriorFit) else start
        if not isinstance(prior, LinearGaussianPrior):
            raise TypeError(
                "start must be a fit or prior of linear contextual bandits, got "
                f"{type(prior).__name__}"
            )
        if prior.dim != tasks.dim:
            raise ValueError(f"start has {prior.dim} features, but the data have {tasks.dim}")
        root = safe_root(prior.cov * np.outer(features, features) / reward**2, chart)
        return Point(
            tasks,
            chart,
            self.regulariser,
            root,
            float(prior.noise_var[0]) / reward**2 if noise is None else noise,
        )


def _prefers_singular(top: Point) -> bool:
    """Whether the likelihood is larger without the smallest of the variances in the fit's principal
    directions.
    """
    left, sizes, _ = np.linalg.svd(top.root)
    if sizes[-1] ** 2 < 1e-7:
        return True
    if len(top.chart.rows) == len(top.root):
        smallest = int(np.abs(np.diag(top.root)).argmin())
        flat = top.root * (np.arange(len(top.root)) != smallest)
    else:
        flat = left[:, :-1] * sizes[:-1] @ np.eye(len(sizes) - 1, len(sizes))
    return LinearLikelihood(top.tasks, flat, top.noise_var).value > top.likelihood.value


def _unseen(top: Point) -> FloatArray:
    """Directions of the features that no task has seen, ``(dim, direction)``."""
    values, axes = np.linalg.eigh(top.likelihood.mean_precision)
    return np.asarray(axes[:, values <= 1e-9 * len(top.tasks.pulls)])


def _filled(top: Point, unseen: FloatArray) -> FloatArray:
    """Give the covariance of plain likelihood, which says nothing about unseen directions, the
    regulariser's variance there.
    """
    cov = top.root @ top.root.T
    if len(top.chart.rows) == len(cov):  # the diagonal: features that were never seen
        alone = (unseen**2).sum(axis=1) > 1.0 - 1e-9
        return np.diag(np.where(alone, FAR, np.diag(cov)))
    seen = np.eye(len(cov)) - unseen @ unseen.T
    return np.asarray(seen @ cov @ seen + FAR * unseen @ unseen.T)
