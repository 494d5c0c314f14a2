"""The marginal likelihood of a normal prior over the weights of a linear contextual bandit and its
maximum, with known or unknown noise.

In statistics this is a linear mixed model in which every feature has a random coefficient, fitted
by maximum likelihood.
"""

from dataclasses import replace
from typing import Any, ClassVar, Final, Literal, final

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.core.parameters import Checked, Choice, Number
from priorwise.core.types import FloatArray
from priorwise.families.linear.contexts import Contexts, law_of_contexts
from priorwise.families.linear.prior import LinearGaussianPrior
from priorwise.families.linear.statistics import LinearStatistics
from priorwise.families.normal.likelihood.certainty import certainty, to_boundary, would_be_on_edge
from priorwise.families.normal.likelihood.model import Chart, Model, Place, scoring
from priorwise.families.normal.likelihood.tasks import NormalTasks, Parameters, Sums, Units
from priorwise.fitting.fits import PLAIN, PriorFit
from priorwise.fitting.newton import Climb, climb
from priorwise.fitting.task_facts import KnownTasks

Structure = Literal["full", "diagonal"]

REGULARISER: Final = 1.0
LEAST_NOISE: Final = 1e-8  # variance, in units of the rewards' spread
FAR: Final = 10.0
"""Variance that the regulariser alone would choose, in units of the data: ten times what would
explain all rewards. Where the data say nothing of a weight, it is as far as that from the fit.
"""
FEW: Final = 5_000  # tasks that a cold start looks at first, up to a factor of two


def check_noise(name: str, value: float | str) -> float | None:
    """Check for the word 'shared', or return a variance."""
    if not isinstance(value, str):
        return Number(1e-100, cure="'shared' estimates it").checked(name, value, None)
    if value != "shared":
        raise ArgumentError(name, "must be a variance or 'shared' (estimate it)", got=value)
    return None


@final
@frozen(slots=False)
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

    contexts: Contexts | ArrayLike = field(converter=law_of_contexts)
    structure: Structure = field(default="full", validator=Choice(Structure))
    noise_var: float | Literal["shared"] | None = field(
        default=None, validator=Checked(check_noise)
    )
    regulariser: float = field(default=REGULARISER, validator=Number(0.0, cure=PLAIN))

    def for_tasks(self, known: KnownTasks) -> "LinearMarginalLikelihood":
        """Take the noise from the tasks if it was left open; raise an error for tasks with other
        features or another noise.
        """
        known.check_contexts(self, self.contexts)
        noise = known.noise_for(self, self.noise_var, one_for_all=True)
        return evolve(self, noise_var=noise)

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
            raise ArgumentError("data", "must have a task with a pull")
        units, scaled = _in_units(statistics if used.all() else statistics.take(used))
        model = self._model(NormalTasks.of_features(*scaled), units)
        if start is None:
            begin, few = None, len(scaled[0]) // FEW
            if few > 1:
                some = NormalTasks.of_features(*(each[::few] for each in scaled))
                begin = _climb(self._model(some, units), None).place.at
        else:
            prior = start.prior if isinstance(start, PriorFit) else start
            validation.instance(
                "start", prior, LinearGaussianPrior, "a fit or prior of linear contextual bandits"
            )
            if prior.dim != model.tasks.dim:
                raise ArgumentError(
                    "start", f"has {prior.dim} features, but the data have {model.tasks.dim}"
                )
            begin = Parameters(prior.mean, prior.cov, prior.noise_var[:1]).into(units)
        found, on_edge = _climb(model, begin), False
        unseen = _unseen(found.place)
        blind = unseen.shape[1] > 0
        if self.regulariser == 0:
            found, on_edge = to_boundary(found, 1e-7)
            if blind:
                found = replace(found, place=_filled(found.place, unseen))
        place, known = found.place, self._known_noise
        silent = known is None and bool(place.at.noise[0] <= 1.001 * LEAST_NOISE)
        at = place.at.out_of(units)
        noise = float(at.noise[0]) if known is None else known  # exactly as it was given
        errors, law, _ = certainty(
            place, units, self.structure, np.array(noise),
            active=np.ones(len(at.mean), dtype=bool), on_edge=on_edge, floor=1.0 / FAR,
        )  # fmt: skip
        errors["mean"][np.diag(place.sums.precision) <= 0.0] = np.nan
        if blind:
            errors["cov"][:] = np.nan
        if silent:
            errors["noise_var"] = np.array(np.nan)
        singular = on_edge or would_be_on_edge(place)
        whose = "default regulariser's, as the data's is open"
        if self.regulariser > 0:
            whose = "regulariser's"
        notes = {
            "a covariance with a variance of zero in some direction is more likely than the fitted "
            "one": singular,
            "the rewards leave no noise: its variance is at the least that is allowed": silent,
            f"some direction of the features was never seen: the prior there is the {whose}": blind,
            "the iterations did not come to rest": not found.converged,
        }
        tasks = model.tasks
        return PriorFit(
            LinearGaussianPrior(at.mean, at.cov, noise, self.contexts),
            type(self).__name__,
            int(used.sum()),
            int((~used).sum()),
            singular or silent or blind,
            found.converged,
            errors,
            place.sums.value + tasks.log_constant - tasks.entries * float(np.log(units.reward)),
            found.iterations,
            [note for note, holds in notes.items() if holds],
            law,
            statistics,
        )

    def _model(self, tasks: NormalTasks, units: Units) -> Model:
        """Return the model with its regulariser; a noise to be estimated begins at half of what
        there is.
        """
        known, d = self._known_noise, tasks.dim
        return Model(
            tasks,
            Chart(self.structure, d),
            mean_map=np.eye(d),
            noise_map=np.ones((1, int(known is None))),
            known_noise=np.array([0.5 if known is None else known / units.reward**2]),
            log_det=0.5 * self.regulariser,
            trace=0.5 * self.regulariser / FAR,
            least_log_noise=float(np.log(LEAST_NOISE)),
        )


def _in_units(data: LinearStatistics) -> tuple[Units, tuple[FloatArray, ...]]:
    """Units of the fit, and the normal equations in them.

    Features are in units of their root mean square, rewards of that of what a regression common to
    all tasks leaves of them, which is subtracted. A feature that was never seen has the unit of the
    others, and rewards without any spread a unit of 1e-6 of their size.
    """
    pulls, gram, moments = data.pulls.sum(), data.gram.sum(axis=0), data.moments.sum(axis=0)
    sizes = np.diag(gram) / pulls
    known = sizes > 0
    sizes = np.sqrt(np.where(known, sizes, sizes[known].mean() if known.any() else 1.0))
    inverse = np.linalg.pinv(gram / np.outer(sizes, sizes), rcond=1e-12, hermitian=True)
    common = inverse @ (moments / sizes) / sizes
    left = max(float(data.squares.sum() - moments @ common), 1e-12 * float(data.squares.sum()))
    reward = float(np.sqrt(left / pulls)) if left > 0 else 1.0
    fitted = data.gram @ common
    squares = data.squares - np.einsum("ti,i->t", 2.0 * data.moments - fitted, common)
    scaled = (
        data.gram / np.outer(sizes, sizes),
        (data.moments - fitted) / (sizes * reward),
        np.maximum(squares, 0.0) / reward**2,
        data.pulls,
    )
    return Units(common, reward / sizes, reward), scaled


def _climb(model: Model, start: Parameters | None) -> Climb[Place]:
    """Climb from a former fit, or from a covariance that explains half of what there is and a few
    steps of EM: ``S = E[(w - m)(w - m)']``, ``v = E|r - X w|^2 / pulls``.
    """
    tasks, d = model.tasks, model.tasks.dim
    sums: Sums | None = None
    at = Parameters(np.zeros(d), 0.5 / d * np.eye(d), model.known_noise)
    if start is not None:
        noise = start.noise if model.noise_map.size else model.known_noise
        at = Parameters(np.zeros(d), start.cov, noise)
    for _ in range(4 if start is None else 1):
        if sums is not None:
            spread = at.cov + 2.0 / len(tasks.tasks) * at.cov @ sums.cov @ at.cov
            left = at.noise + 2.0 * at.noise**2 * sums.noise / tasks.entries
            noise = np.maximum(left, LEAST_NOISE) if model.noise_map.size else at.noise
            at = replace(at, cov=spread, noise=noise)
        # from an exact 0 there is no way up
        values, axes = np.linalg.eigh(at.cov)
        at = replace(at, cov=axes * np.maximum(values, 1e-4) @ axes.T)
        sums = tasks.sums(at, noisy=True)
        best = np.linalg.pinv(sums.precision, rcond=1e-10, hermitian=True) @ sums.mean
        at = replace(at, mean=at.mean + best)
    return climb(model.at, model.coordinates(at), scoring=scoring, longest=1.0, low=model.low)


def _unseen(place: Place) -> FloatArray:
    """Directions of the features that no task has seen, ``(dim, direction)``."""
    values, axes = np.linalg.eigh(place.sums.precision)
    return np.asarray(axes[:, values <= 1e-9 * len(place.model.tasks.tasks)])


def _filled(place: Place, unseen: FloatArray) -> Place:
    """Give the prior of plain likelihood, which says nothing about unseen directions, the mean 0
    and the regulariser's variance there.
    """
    cov, seen = place.at.cov, np.eye(len(unseen)) - unseen @ unseen.T
    if place.model.chart.triangular:
        cov = seen @ cov @ seen + FAR * unseen @ unseen.T
    else:  # the diagonal: features that were never seen
        cov = np.diag(np.where((unseen**2).sum(axis=1) > 1.0 - 1e-9, FAR, np.diag(cov)))
    at = replace(place.at, mean=seen @ place.at.mean, cov=cov)
    return place.model.at(place.model.coordinates(at))


def log_marginal_likelihood(prior: LinearGaussianPrior, statistics: LinearStatistics) -> FloatArray:
    """Log density of each task's rewards given the features of the pulled arms, ``(task,)``: exact,
    whatever chose the arms.

    ``log N(r; X m, X S X' + v I)`` from X'X, X'r and r'r; v is 1 for sums in units of the noise,
    which a prior whose noise differs between arms needs.
    """
    weighted = statistics.noise_var is not None
    if not weighted and np.ptp(prior.noise_var) > 0:
        raise ArgumentError(
            "noise_var", "must be the same for all arms, as sums over arms cannot distinguish them"
        )
    if prior.dim != statistics.dim:
        raise ArgumentError(
            "statistics", f"must have the {prior.dim} features of the prior", got=statistics.dim
        )
    noise = 1.0 if weighted else float(prior.noise_var[0])
    pulls = statistics.pulls
    log_noise = 0.0 if statistics.log_noise is None else statistics.log_noise
    tasks = NormalTasks.of_features(statistics.gram, statistics.moments, statistics.squares, pulls)
    at = Parameters(np.array(prior.mean), np.array(prior.cov), np.array([noise]))
    out = tasks.sums(at).values
    seen = tasks.pulls > 0.0
    left = np.maximum(statistics.squares - (tasks.pulls * tasks.means**2).sum(axis=1), 0.0)
    freedom = pulls - seen.sum(axis=1)
    out -= 0.5 * (freedom * np.log(2.0 * np.pi * noise) + left / noise)
    return out - 0.5 * (np.log(np.where(seen, tasks.pulls, 1.0)).sum(axis=1) + log_noise)
