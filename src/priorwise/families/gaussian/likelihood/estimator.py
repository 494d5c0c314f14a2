"""The marginal likelihood of a normal prior over arms and its maximum, from data collected in any
way.
"""

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final, Literal, final

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import ArrayLike

from priorwise.core.errors import ArgumentError
from priorwise.core.parameters import Checked, Choice, Count, Number
from priorwise.core.types import BoolArray, FloatArray
from priorwise.families.gaussian.exchangeable import ExchangeableGaussianPrior
from priorwise.families.gaussian.groups import GaussianGroups
from priorwise.families.gaussian.likelihood.data import ArmData, Noise, noise_of, read_arms, target
from priorwise.families.gaussian.prior import GaussianPrior
from priorwise.families.gaussian.statistics import GaussianStatistics, noise_variances
from priorwise.families.normal.likelihood.certainty import (
    NEWTON,
    certainty,
    named,
    to_boundary,
    with_others,
    would_be_on_edge,
)
from priorwise.families.normal.likelihood.model import Chart, Model, Structure, scoring
from priorwise.families.normal.likelihood.tasks import NormalTasks, Parameters
from priorwise.fitting.fits import PriorFit
from priorwise.fitting.newton import climb, climb_by_gradient
from priorwise.fitting.task_facts import KnownTasks

LONGEST: Final = 10.0  # step of the ascent, in coordinates of order one
REGULARISER: Final = 2.0
AVOID: Final = 0.25  # how much of log det Psi the regulariser adds


def check_noise(name: str, value: ArrayLike | str) -> FloatArray | None:
    """Check for a word, or return variances."""
    if not isinstance(value, str):
        return noise_variances(value)
    if value not in ("shared", "per-arm"):
        must = "must be a variance, 'shared' or 'per-arm' (both estimate it)"
        raise ArgumentError(name, must, got=value)
    return None


@final
@frozen(slots=False)
class GaussianMarginalLikelihood:
    """Fit ``mu ~ N(nu, Psi)``, ``r ~ N(mu_a, noise_var_a)`` by the likelihood of what the tasks
    saw.

    With n pulls of the arms O that a task pulled, its mean rewards are ``y ~ N(nu_O, Psi_OO +
    diag(noise_var / n)_O)``. How the arms were chosen drops out as long as choices depend on past
    rewards only, so that logs of adaptive policies, tasks with few pulls and tasks without some of
    the arms are all fine. The maximum is found by Newton's method with exact derivatives; the
    likelihood rises at each step. Tasks with equal pulls are merged, so that the cost grows with
    the number of distinct vectors of pulls.

    Parameters
    ----------
    structure
        ``"full"`` covariance, ``"diagonal"``, ``"factor"`` (``F F' + diag``, F with ``factors``
        columns) or ``"exchangeable"`` (one mean, one variance, one correlation: for arms that are
        new in every task).
    factors
        Number of factors, below the number of arms; read with ``structure="factor"``.
    noise_var
        Variance of a reward: known, one for all arms or ``(arm,)``; ``"shared"`` to estimate one
        for all arms; ``"per-arm"`` to estimate one each. Estimating needs squares and some arm
        pulled twice in a task. By default it is taken from what is fitted: in a meta-learner from
        the tasks, with :meth:`GaussianStatistics.from_estimates` the one they were made with,
        otherwise ``"shared"``.
    arms
        Number of arms; by default that of the statistics, or the largest action of a run plus 1.
    regulariser
        How many tasks' worth of caution to add; 0 gives maximum likelihood. See the notes.
    max_iterations, tolerance
        Stop when a step promises a rise of the log likelihood below ``tolerance``: at 1e-4 the
        estimate is then within 1.5 % of a standard error of the maximum.

    Notes
    -----
    **The regulariser.** Thirty numbers cannot be had from ten tasks: the likelihood is then highest
    at singular covariances, and a learner that believes them never again tries some of the arms.
    Two terms prevent that.

    * ``regulariser`` pseudo-tasks, pulled as often as an average task, whose arms are independent
      with one variance, that of tasks around their arm's mean pooled over the arms (plus one
      standard error), and centred at each arm's own mean, shrunk towards the others' as far as
      these agree. They weigh like that many tasks, not more, whatever the unit of the rewards and
      whatever the differences between the arms' means. Exchangeable arms have one mean.
    * ``log det Psi / 4`` (times the regulariser where that is below 1), half of the scale-free
      prior of Chung et al., "Weakly informative prior for point estimation of covariance matrices"
      (2015), which moves variances away from zero by at most about a standard error.

    Both vanish against the likelihood as tasks come in. How the default was chosen:
    ``docs/learning.md``.

    **Arms never pulled** get the mean of the others' means and variances and no correlation, with a
    warning.

    **Boundary.** With ``regulariser=0`` a variance, or a direction of the covariance, may be best
    at zero. That is a result, with ``at_boundary=True``. With a regulariser it never is zero;
    ``at_boundary`` then says that the data alone are likelier with the smallest variance (of a full
    covariance: the smallest eigenvalue) set to zero than as fitted.

    **Noise that the data do not determine.** Without any repeated pull, or with rewards that never
    differ, the noise is held at that of ``start``, with a warning; without a start that is an
    error. With ``"per-arm"``, an arm that alone is like that takes the noise of all arms together.

    **Factors.** The likelihood of a factor model can have several local maxima. The ascent finds
    the one uphill of its start, by default independent arms; give fits from several ``start``
    priors and keep the one with the highest ``log_likelihood``.

    **Large offsets.** Squares of rewards near 1e8 do not hold a noise of order 1; a fit that needs
    it warns. Subtract a number near the rewards' mean first.

    Examples
    --------
    >>> schools = GaussianStatistics.from_estimates(
    ...     [28, 8, -3, 7, -1, 1, 18, 12], [15, 10, 16, 11, 9, 11, 10, 18]
    ... )
    >>> fit = GaussianMarginalLikelihood("exchangeable", regulariser=0).fit(schools)
    >>> round(fit.prior.mean, 2), fit.prior.var, fit.at_boundary
    (7.69, 0.0, True)

    """

    reads: ClassVar[type] = GaussianStatistics

    structure: Structure = field(default="full", validator=Choice(Structure))
    factors: int = field(default=1, kw_only=True, validator=Count())
    noise_var: ArrayLike | Literal["shared", "per-arm"] | None = field(
        default=None, kw_only=True, validator=Checked(check_noise)
    )
    arms: int | None = field(default=None, kw_only=True, validator=Count())
    regulariser: float = field(default=REGULARISER, kw_only=True, validator=Number(0.0))
    max_iterations: int = field(default=100, kw_only=True, validator=Count())
    tolerance: float = field(default=1e-4, kw_only=True, validator=Number(0.0, ends="()"))

    def __attrs_post_init__(self) -> None:
        noise = self.noise_var
        several = (
            noise == "per-arm" if isinstance(noise, str) else noise is not None and np.ptp(noise)
        )
        if self.structure == "exchangeable" and several:
            raise ArgumentError(
                "noise_var", "must be one: exchangeable arms share it", cure="'shared' estimates it"
            )

    @property
    def name(self) -> str:
        """Name of the estimator, as fits carry it."""
        detail = f"factor {self.factors}" if self.structure == "factor" else self.structure
        return f"GaussianMarginalLikelihood({detail})"

    def for_tasks(self, known: KnownTasks) -> "GaussianMarginalLikelihood":
        """Take the noise from the tasks if it was left open; raise an error for tasks with other
        arms or another noise.
        """
        known.check_arms(self, arms=self.arms)
        noise = known.noise_for(self, self.noise_var, one_for_all=self.structure == "exchangeable")
        return evolve(self, noise_var=noise, arms=known.arms)

    def fit(
        self,
        data: Any,
        *,
        start: PriorFit | GaussianPrior | ExchangeableGaussianPrior | None = None,
    ) -> PriorFit:
        """Fit a kept run, :class:`GaussianStatistics` or :class:`GaussianGroups`; ``start`` is
        where to begin the ascent.
        """
        if not isinstance(data, (GaussianStatistics, GaussianGroups)):
            data = GaussianStatistics.of(data, arms=self.arms)
        whole = read_arms(data, self.arms)
        arms, alike = whole.arms, self.structure == "exchangeable"
        if self.structure == "factor" and self.factors >= arms:
            raise ArgumentError(
                "factors",
                f"must be below the number of arms, {arms}",
                got=self.factors,
                cure="use structure='full'",
            )
        first = start.prior if isinstance(start, PriorFit) else start
        if isinstance(first, ExchangeableGaussianPrior):
            first = first.for_arms(arms)
        if first is not None and (not isinstance(first, GaussianPrior) or first.arms != arms):
            raise ArgumentError(
                "start", f"must be a fit or a normal prior of {arms} arms", got=first
            )
        noise = noise_of(whole, self.noise_var, None if first is None else first.noise_var)
        active = whole.pulled | alike
        part = whole if active.all() else whole.of_arms(active)
        model, begin, notes = self._prepare(part, noise, active, first)
        options: dict[str, Any] = {"tolerance": self.tolerance, "limit": self.max_iterations}
        if model.tasks.dim > NEWTON:
            found = climb_by_gradient(partial(model.at, curved=False), begin, **options)
        else:
            options |= {"longest": LONGEST, "low": model.low, "high": -model.low}
            found = climb(model.at, begin, scoring=scoring, last=False, **options)
        on_edge = False
        if not model.log_det:
            found, on_edge = to_boundary(found, self.tolerance)
        if not found.converged:
            notes.append(f"not converged after {found.iterations} iterations; raise max_iterations")
        place, units, groups = found.place, part.units, len(part.tasks.tasks)
        at = place.at.out_of(units)
        # what is known stays as it is, to the last bit
        at = replace(at, noise=np.where(noise.free[active], at.noise, noise.value[active]))
        if not active.all():
            others = noise.value if noise.kind == "known" else np.full(arms, at.noise.mean())
            at = with_others(at, active, others)
        errors, law, more = certainty(
            place, units, self.structure, at.noise, active=active, on_edge=on_edge
        )
        if noise.kind == "known" and not isinstance(self.noise_var, np.ndarray):
            errors["noise_var"] = np.full(() if alike else arms, np.nan)
        data_alone = place.sums.value - float(place.sums.values[groups:].sum())
        log_unit = part.tasks.entries * float(np.log(units.reward))
        return PriorFit(
            ExchangeableGaussianPrior(**named(self.structure, at))
            if alike
            else GaussianPrior(at.mean, at.cov, at.noise),
            self.name,
            whole.total,
            whole.left_out,
            on_edge or noise.silent or would_be_on_edge(place, groups),
            found.converged,
            errors,
            data_alone + part.tasks.log_constant - log_unit,
            found.iterations,
            notes + more,
            law,
            data,
        )

    def _prepare(
        self, whole: ArmData, noise: Noise, active: BoolArray, start: GaussianPrior | None
    ) -> tuple[Model, FloatArray, list[str]]:
        """Return the model with its regulariser, where to begin, and what to warn of."""
        tasks, units, arms = whole.tasks, whole.units, whole.arms
        alike, every = self.structure == "exchangeable", np.eye(arms)
        own, free = noise.value[active] / units.reward**2, noise.free[active]
        lean = target(tasks, own, alike=alike)
        if self.regulariser > 0.0:
            # so many tasks, pulled as often as an average one, with the target's mean and variance
            cov = np.diag(lean.var + own / lean.pulls)
            tasks = replace(
                tasks,
                pulls=np.vstack([tasks.pulls, np.full(arms, lean.pulls)]),
                tasks=np.append(tasks.tasks, self.regulariser),
                means=np.vstack([tasks.means, lean.mean]),
                scatter=np.concatenate([tasks.scatter, self.regulariser * cov[None]]),
            )
        factors = min(self.factors, max(arms - 1, 1))
        one = np.ones((arms, 1))
        model = Model(
            tasks,
            Chart(self.structure, arms, factors),
            mean_map=one if alike else every,
            noise_map={"known": every[:, :0], "shared": one, "per-arm": every[:, free]}[noise.kind],
            known_noise=own,
            log_det=AVOID * min(self.regulariser, 1.0),
        )
        begin = Parameters(lean.mean, np.diag(lean.var), own)
        if start is not None:
            cov = start.cov[np.ix_(active, active)]
            given = Parameters(start.mean[active], cov, start.noise_var[active]).into(units)
            least = 1e-2 * float(lean.var.mean())
            # zero variances do not move
            if float(np.linalg.eigvalsh(given.cov)[0]) < 1e-3 * least:
                given = replace(given, cov=given.cov + least * every)
            begin = replace(given, noise=np.where(free, given.noise, own))
        notes = []
        missing = np.flatnonzero(~active).tolist()
        if missing:
            names, verb = ", ".join(map(str, missing)), "was" if len(missing) == 1 else "were"
            which = f"arm{'s' * (len(missing) > 1)} {names} {verb}"
            notes.append(f"{which} never pulled and took mean and variance from the others")
        if whole.lossy:
            notes.append(
                "rounding hides the spread of rewards so far from zero; subtract a number near "
                "their mean first"
            )
        if whole.total < model.size:
            notes.append(f"{whole.total} tasks are few for {model.size} parameters")
        return model, model.coordinates(begin), notes + list(noise.notes)


def log_marginal_likelihood(
    prior: GaussianPrior | ExchangeableGaussianPrior,
    statistics: Any,
    offsets: FloatArray | None = None,
) -> FloatArray:
    """Log density of what each task saw under a normal prior, ``(task,)``, for held-out comparison
    of priors.

    With the squares it is the density of all rewards in their order, ``N(r; nu_a, Z Psi Z' +
    noise)`` with Z picking the pulled arms, computed as that of the mean rewards y times that of
    the rewards around them,

    ``N(y; nu_O, Psi_OO + diag(noise_var / n)) prod_a n_a^(-1/2) (2 pi noise_var_a)^(-(n_a - 1)/2)
    exp(-ss_a / 2 noise_var_a)``,

    and can be compared with that of any other family. Without squares it is the density of y alone,
    which can be compared only with other priors of the same noise. Tasks without a pull have log
    density 0. ``offsets`` ``(task,)`` or ``(task, arm)`` are added to nu.
    """
    data = GaussianStatistics.of(statistics)
    if offsets is not None:
        data = data.shifted(offsets.reshape(data.tasks, -1))
    normal = prior.for_arms(data.arms) if isinstance(prior, ExchangeableGaussianPrior) else prior
    if not isinstance(normal, GaussianPrior) or normal.arms != data.arms:
        raise ArgumentError(
            "prior",
            f"must be a normal prior of {data.arms} arms, as the statistics have",
            got=prior,
        )
    data.check_noise(normal.noise_var, "the prior")
    n, noise, none = data.pulls, np.array(normal.noise_var), np.empty((0, data.arms, data.arms))
    middle = float(normal.mean.mean())
    centred, safe = data.shifted(middle), np.where(n > 0.0, n, 1.0)
    pulls, ones, freedom = n.copy(), np.ones(data.tasks), np.zeros(data.arms)
    tasks = NormalTasks(none, pulls, ones, centred.sums / safe, none, None, freedom)
    at = Parameters(normal.mean - middle, np.array(normal.cov, order="C"), noise)
    out = tasks.sums(at).values
    if centred.squares is not None:
        within = np.maximum(centred.squares - centred.sums**2 / safe, 0.0)
        more = (n - 1.0) * np.log(2.0 * np.pi * noise) + np.log(safe) + within / noise
        out -= 0.5 * np.where(n > 0.0, more, 0.0).sum(axis=1)
    return out
