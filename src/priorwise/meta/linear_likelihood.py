"""Normal priors over the weights of linear contextual bandits by maximum marginal likelihood, with known or unknown noise.

In statistics this is a linear mixed model in which every feature has a random coefficient, fitted by maximum likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final, get_args

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.types import FloatArray
from priorwise.meta.fit import PriorFit, Uncertainty
from priorwise.meta.linear_climb import LEAST_NOISE, Chart, Point, climb, definite, safe_root
from priorwise.meta.linear_model import LinearLikelihood, LinearTasks
from priorwise.meta.statistics import LinearStatistics
from priorwise.priors.contexts import Contexts
from priorwise.priors.linear import LinearGaussianPrior

Structure = Literal["full", "diagonal"]


@final
@dataclass(frozen=True, eq=False, init=False)
class LinearMarginalLikelihood:
    """Prior ``w ~ N(mean, cov)`` of a linear contextual bandit by maximum marginal likelihood (type II, empirical Bayes).

    Parameters
    ----------
    contexts
        Where features come from, for the fitted prior: see :class:`LinearGaussianPrior`. The fit itself does not depend on it.
    structure
        Of the covariance: ``"full"`` or ``"diagonal"``.
    noise_var
        Variance of a reward around ``x'w``, one for all arms; None to estimate it too.
    regulariser
        Weight r of ``r / 2 * (log det S - tr S / 10)`` that is added to the log likelihood, S being the covariance in units of the
        data: root mean square of each feature, and of what a common regression leaves of the rewards. The default 1 turns the
        maximum-likelihood covariance of T exactly observed tasks, ``SS / T``, into the unbiased ``SS / (T - 1)``, up to a tenth of
        the difference, keeps variances off zero (Chung et al. 2013, 2015) and gives features that were never seen a finite
        variance. 0 is plain maximum likelihood.

    Notes
    -----
    ``at_boundary`` says that plain likelihood would rather have a singular covariance (or no noise) than the fitted one.

    Examples
    --------
    >>> data = LinearStatistics.from_trajectory(features=np.ones((4, 3, 1)), rewards=[[0, 1, 2], [4, 3, 5], [2, 2, 2], [1, 0, 1]])
    >>> fit = LinearMarginalLikelihood(contexts=[[1.0], [2.0]], noise_var=None, regulariser=0.0).fit(data)
    >>> fit.prior.mean.round(3).tolist(), fit.prior.cov.round(3).tolist(), fit.prior.noise_var.round(3).tolist()
    ([1.917], [[1.493]], [0.583, 0.583])

    """

    contexts: Contexts
    structure: Structure
    noise_var: float | None
    regulariser: float

    def __init__(
        self,
        contexts: Contexts | ArrayLike,
        structure: Structure = "full",
        noise_var: float | None = 1.0,
        regulariser: float = 1.0,
    ) -> None:
        """Check the options."""
        if structure not in get_args(Structure):
            raise ValueError(f"structure must be one of {', '.join(get_args(Structure))}, got {structure!r}")
        if noise_var is not None and validation.number("noise_var", noise_var) <= 0:
            raise ValueError(f"noise_var must be positive, got {noise_var:g}; None estimates it")
        if validation.number("regulariser", regulariser) < 0:
            raise ValueError(f"regulariser must not be negative, got {regulariser:g}; 0 is plain maximum likelihood")
        law = _contexts(contexts)
        for name, value in (("contexts", law), ("structure", structure), ("noise_var", noise_var), ("regulariser", regulariser)):
            object.__setattr__(self, name, value)

    def fit(self, data: Any, *, start: Any = None) -> PriorFit:
        """Fit a kept run or :class:`LinearStatistics`; ``start`` is a fit or prior to begin from."""
        statistics = LinearStatistics.of(data)
        used = statistics.pulls > 0
        if not used.any():
            raise ValueError("no task has a pull, so there is nothing to fit")
        raw = LinearTasks(*(each[used] for each in (statistics.gram, statistics.moments, statistics.squares, statistics.pulls)))
        features, reward = raw.units()
        tasks = raw.rescaled(features, reward)
        chart = Chart.of(tasks.dim, diagonal=self.structure == "diagonal", noise=self.noise_var is None)
        begin = self._start(tasks, chart, start, features, reward)
        top, converged, iterations = climb(begin, 200)
        units = reward / features  # of the weights
        prior = LinearGaussianPrior(
            top.likelihood.mean * units, _symmetric(top.root) * np.outer(units, units), top.noise_var * reward**2, self.contexts
        )
        singular, silent = _prefers_singular(top), top.noise_var <= LEAST_NOISE
        unseen = bool(np.linalg.eigvalsh(top.likelihood.mean_precision)[0] <= 1e-9 * len(raw.pulls))
        notes = [
            "a covariance with a variance of zero in some direction is more likely than the fitted one" * singular,
            "the rewards leave no noise: its variance is at the least that is allowed" * silent,
            "some direction of the features was never seen: the prior there is the regulariser's" * unseen,
        ]
        notes += [] if converged else ["the iterations did not come to rest"]
        return PriorFit(
            prior,
            type(self).__name__,
            len(raw.pulls),
            int((~used).sum()),
            at_boundary=singular or silent or unseen,
            converged=converged,
            std_errors=_errors(top, units, reward, interior=not silent and (self.regulariser > 0 or not singular)),
            log_likelihood=top.likelihood.value - float(raw.pulls.sum()) * np.log(reward),
            iterations=iterations,
            warnings=[note for note in notes if note],
            uncertainty=_uncertainty(top, units),
            statistics=statistics,
        )

    def _start(self, tasks: LinearTasks, chart: Chart, start: Any, features: FloatArray, reward: float) -> Point:
        """Begin from a former fit, or from a covariance that explains half of what there is and a few steps of EM."""
        noise = None if self.noise_var is None else self.noise_var / reward**2
        if start is None:
            root = chart.root(np.where(chart.rows == chart.columns, np.sqrt(0.5 / tasks.dim), 0.0), tasks.dim)
            point = Point(tasks, chart, self.regulariser, root, 0.5 if noise is None else noise)
            for _ in range(3):
                point = point.expectation_maximisation()
            return point
        prior = start.prior if isinstance(start, PriorFit) else start
        if not isinstance(prior, LinearGaussianPrior):
            raise TypeError(f"start must be a fit or prior of linear contextual bandits, got {type(prior).__name__}")
        if prior.dim != tasks.dim:
            raise ValueError(f"start has {prior.dim} features, but the data have {tasks.dim}")
        root = safe_root(prior.cov * np.outer(features, features) / reward**2, chart)
        return Point(tasks, chart, self.regulariser, root, float(prior.noise_var[0]) / reward**2 if noise is None else noise)


def log_marginal_likelihood(prior: LinearGaussianPrior, statistics: LinearStatistics) -> FloatArray:
    """Log density of each task's rewards given the features of the pulled arms, ``(task,)``: exact, whatever chose the arms.

    ``log N(r; X m, X S X' + v I)`` from X'X, X'r and r'r. The noise must be the same for all arms.
    """
    if np.ptp(prior.noise_var) > 0:
        raise ValueError("the prior's noise differs between arms, which sums over arms cannot tell apart; use one noise_var")
    if prior.dim != statistics.dim:
        raise ValueError(f"the prior has {prior.dim} features, but the statistics have {statistics.dim}")
    tasks = LinearTasks(statistics.gram, statistics.moments, statistics.squares, statistics.pulls)
    return LinearLikelihood(tasks, validation.square_root(prior.cov), float(prior.noise_var[0]), prior.mean).by_task()


@final
@dataclass(frozen=True, eq=False, init=False)
class LinearUncertainty(Uncertainty):
    """Normal law of the mean, of the root L of the covariance ``L L'``, and of the log noise variance where it was estimated.

    Parameters
    ----------
    root
        L at the fit, ``(dim, dim)``: lower triangular, or diagonal.
    diagonal
        Whether only the diagonal varies.
    deviations
        Draws are these ``(parameter, parameter)`` times standard normals: a root of the inverse observed information, in which
        directions that the data leave open have the data's own unit. Mean, then entries of L row by row, then the log noise.

    """

    family: ClassVar[str] = "linear-uncertainty"

    root: FloatArray
    diagonal: bool
    deviations: FloatArray

    def __init__(self, root: ArrayLike, diagonal: bool, deviations: ArrayLike) -> None:
        """Check and freeze the law."""
        object.__setattr__(self, "root", validation.matrix("root", root))
        object.__setattr__(self, "diagonal", bool(diagonal))
        object.__setattr__(self, "deviations", validation.matrix("deviations", deviations))

    def draw(self, prior: Any, rng: np.random.Generator, n: int) -> list[Any]:
        """``(m, L, log v) ~ N``."""
        d = len(self.root)
        chart = Chart.of(d, diagonal=self.diagonal, noise=True)
        free = d + len(chart.rows)
        out = []
        for change in rng.standard_normal((n, self.deviations.shape[1])) @ self.deviations.T:
            root = self.root + chart.root(change[d:free], d)
            noise = prior.noise_var * np.exp(change[free]) if len(change) > free else prior.noise_var
            out.append(LinearGaussianPrior(prior.mean + change[:d], _symmetric(root), noise, prior.contexts))
        return out


def _symmetric(root: FloatArray) -> FloatArray:
    cov = root @ root.T
    return np.asarray((cov + cov.T) / 2.0)


def _prefers_singular(top: Point) -> bool:
    """Whether the likelihood is larger without the smallest of the variances in the fit's principal directions."""
    left, sizes, _ = np.linalg.svd(top.root)
    if sizes[-1] ** 2 < 1e-7:
        return True
    if len(top.chart.rows) == len(top.root):
        smallest = int(np.abs(np.diag(top.root)).argmin())
        flat = top.root * (np.arange(len(top.root)) != smallest)
    else:
        flat = left[:, :-1] * sizes[:-1] @ np.eye(len(sizes) - 1, len(sizes))
    return LinearLikelihood(top.tasks, flat, top.noise_var).value > top.likelihood.value


def _errors(top: Point, units: FloatArray, reward: float, *, interior: bool) -> dict[str, FloatArray]:
    """Standard errors from the observed information in the chart, by the delta method; NaN at the boundary."""
    d, chart = top.tasks.dim, top.chart
    nothing = np.full((d, d), np.nan)
    if not interior or not definite(top.information):
        means = np.sqrt(np.where(np.diag(top.likelihood.mean_precision) > 0, np.diag(top.likelihood.mean_covariance), np.nan))
        errors = {"mean": means * units, "cov": nothing}
        return errors | ({"noise_var": np.array(np.nan)} if chart.noise else {})
    covariance = np.linalg.inv(top.information)
    free = d + len(chart.rows)
    tangents = chart.tangents(top.root)  # (entry, dim, dim)
    spread = np.einsum("kab,kl,lab->ab", tangents, covariance[d:free, d:free], tangents)
    errors = {
        "mean": np.sqrt(np.diag(covariance)[:d]) * units,
        "cov": np.sqrt(np.maximum(spread, 0.0)) * np.outer(units, units),
    }
    return errors | ({"noise_var": np.sqrt(covariance[-1, -1]) * top.noise_var * reward**2} if chart.noise else {})


def _uncertainty(top: Point, units: FloatArray) -> LinearUncertainty:
    """Root of the inverse information, whose eigenvalues count as at least 1 in units of the data."""
    information = top.information
    if definite(information - np.eye(len(information))):
        deviations = np.linalg.inv(np.linalg.cholesky(information)).T
    else:
        values, axes = np.linalg.eigh(information)
        deviations = axes / np.sqrt(np.maximum(values, 1.0))
    scale = np.concatenate([units, units[top.chart.rows], np.ones(int(top.chart.noise))])
    return LinearUncertainty(units[:, None] * top.root, len(top.chart.rows) == len(top.root), scale[:, None] * deviations)


def _contexts(contexts: Any) -> Contexts:
    """Check the law of contexts as the prior does, whatever the number of features."""
    array = isinstance(contexts, (list, tuple, np.ndarray))
    dim = np.asarray(contexts).shape[-1] if array and np.ndim(contexts) > 1 else 1
    if not array and not isinstance(contexts, type) and hasattr(contexts, "features"):
        dim = contexts.features.shape[-1]
    return LinearGaussianPrior(np.zeros(dim), np.eye(dim), 1.0, contexts).contexts
