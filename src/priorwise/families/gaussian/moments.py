"""Moment estimators of a normal prior from uniform exploration: the theory's, those of the
experiments, without their slips.

With H uniform pulls per task, S the reward sums and Q the sums of squared rewards of the arms,

    E[A / H S_a] = nu_a,     E[A^2 / (H (H - 1)) S_a S_b] = E[mu_a mu_b]   (a != b),
    E[A^2 / (H (H - 1)) (S_a^2 - Q_a)] = E[A / H Q_a] - noise_var_a = E[mu_a^2].

``S_a S_b`` sums the products of the rewards of all pairs of different rounds; with H = 2 this is
the paper's two-round estimator with the factor ``A^2 / (2T)`` (the main text prints twice that).
The products of the appendix' estimator lack the factor ``1 / (H (H - 1))`` of pairs of different
rounds.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, ClassVar, Final, Literal, final

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.core.parameters import (
    Checked,
    Choice,
    Count,
)
from priorwise.core.types import FloatArray
from priorwise.families.gaussian.groups import GaussianGroups
from priorwise.families.gaussian.moment_variants import READERS, Setup, rows_of, second_moments
from priorwise.families.gaussian.prior import GaussianPrior
from priorwise.families.gaussian.statistics import GaussianStatistics, noise_variances
from priorwise.families.normal.totals import (
    Contribution,
    MomentEstimator,
    Totals,
    estimate,
    moment_fit,
)
from priorwise.fitting.design import design_sums
from priorwise.fitting.fits import PriorFit
from priorwise.fitting.task_facts import KnownTasks

Variant = Literal["two-round", "known-mean", "difference", "full", "no-cov"]

STEPS: Final[dict[str, int | None]] = {"full": None, "no-cov": 1}
"""How many pulls of each task a variant reads of a run, if not two: those that its exploration
draws uniformly.
"""


def check_noise(name: str, value: ArrayLike) -> Any:
    """Return a known noise as a value that compares."""
    return _as_value(noise_variances(value))


def numbers_as_value(name: str, value: ArrayLike) -> Any:
    """Return numbers as a value that compares."""
    return _as_value(validation.numbers(name, value))


@final
@frozen(slots=False)
class GaussianMoments(MomentEstimator):
    """Normal prior by the method of moments; unbiased under uniform exploration, before the
    covariance is projected.

    Of a kept run a variant reads the pulls that its exploration makes uniform; statistics are used
    as they are, whatever the number of pulls per task, and tasks with too few pulls are left out.

    Parameters
    ----------
    variant
        ``"two-round"``: products of different rounds, from the first two rounds; the noise is not
        used. The mean comes from both rounds, where the paper takes the first. ``"known-mean"``:
        the same around a known ``mean``. ``"difference"``: ``A^2 / (4T) sum (r - r~)_a (s - s~)_b
        (e_a e_b' + e_b e_a')`` over pairs of consecutive tasks that pulled the same arms (see
        :class:`~priorwise.meta.exploration.PairedArms`); it does not depend on the mean.
        ``"full"``: all rounds, with the diagonal ``A / H sum r^2 - noise_var`` (MetaTS:full).
        ``"no-cov"``: the mean only, from the first round; the covariance is ``cov``
        (MetaTS:no-cov).
    noise_var
        Variance of a reward, one for all arms or ``(arm,)``. By default it is taken from the tasks
        in a meta-learner; otherwise one for all arms is estimated from pulls of an arm that a task
        repeats, and from then on taken for known.
    mean
        Known prior mean, for ``"known-mean"``.
    cov
        Assumed covariance, for ``"no-cov"``; by default the identity.
    arms
        Number of arms of a run; by default the largest action plus 1.

    Notes
    -----
    A covariance with a negative eigenvalue is projected on the positive semi-definite matrices, and
    the fit is ``at_boundary``. The fit fills in what the data do not determine, with a warning. An
    arm that no task pulled gets the average of the other means and the variance ``noise_var`` (a
    prior worth one pull). So does every arm if a single task leaves the spread unknown. Such a fit
    is ``at_boundary`` and its standard errors are infinite there. With ``"no-cov"`` an arm that no
    task pulled has mean 0, as the paper's average of ``A r e_a`` gives, and the assumed
    variance.

    Examples
    --------
    >>> from priorwise.policies.uniform import Uniform
    >>> from priorwise.simulate.run import simulate
    >>> prior = GaussianPrior([0.5, 0.0], [[1.0, 0.9], [0.9, 1.0]])
    >>> run = simulate(prior, Uniform(), horizon=10, tasks=50_000, seed=0, keep=True)
    >>> GaussianMoments().fit(run).prior.cov.round(1)
    array([[1. , 0.9],
           [0.9, 1. ]])

    """

    reads: ClassVar[type] = GaussianStatistics
    likelihood: ClassVar[str] = "GaussianMarginalLikelihood"

    variant: Variant = field(default="full", validator=Choice(Variant))
    noise_var: ArrayLike | None = field(default=None, validator=Checked(check_noise))
    mean: ArrayLike | None = field(default=None, validator=Checked(numbers_as_value))
    cov: ArrayLike | None = field(default=None, validator=Checked(numbers_as_value))
    arms: int | None = field(default=None, validator=Count())

    def __attrs_post_init__(self) -> None:
        if (self.mean is not None) != (self.variant == "known-mean"):
            raise ArgumentError(
                "mean", "is the known prior mean for variant='known-mean', and only for it"
            )
        if self.cov is not None and self.variant != "no-cov":
            raise ArgumentError(
                "cov",
                "is the covariance that variant='no-cov' assumes",
                cure="the others estimate it and take none",
            )

    @property
    def _name(self) -> str:
        return f"{type(self).__name__}({self.variant})"

    @property
    def steps(self) -> int | None:
        """How many pulls of each task of a run are read; None for all."""
        return STEPS.get(self.variant, 2)

    def for_tasks(self, known: KnownTasks) -> "GaussianMoments":
        """Take the noise from the tasks if it was left open; raise an error for tasks with other
        arms or another noise.
        """
        given = {"mean": self.mean, "cov": self.cov}
        sizes = {name: np.shape(each)[0] for name, each in given.items() if each is not None}
        known.check_arms(self, arms=self.arms, **sizes)
        noise = known.noise_for(self, self.noise_var, one_for_all=False)
        return evolve(self, noise_var=noise, arms=known.arms)

    def fit(self, data: Any, *, start: Any = None) -> PriorFit:
        """Fit a kept run or statistics; ``start`` is ignored. Groups give no standard errors: they
        keep no fourth moments.
        """
        if not isinstance(data, GaussianGroups):
            return super().fit(data)
        self._check(data)
        known = self._known(data)
        return known._finish(known._group_totals(data), data)

    def _left_of(self, data: Any) -> tuple[float, float, str, str]:
        """Take the pulls that a task repeats."""
        single = f"no task repeats an arm in what {self.variant!r} reads"
        return *data.within(), "their rewards never differ", single

    def _reader(self, data: Any, statistics: GaussianStatistics) -> Callable[[slice], Contribution]:
        setup, read = setup_of(self, statistics.arms), READERS[self.variant]
        return lambda rows: read(setup, *rows_of(statistics, rows))

    def _statistics(self, data: Any) -> GaussianStatistics:
        statistics = GaussianStatistics.of(data, arms=self.arms, steps=self.steps)
        self._check(statistics)
        return statistics

    def _check(self, data: GaussianStatistics | GaussianGroups) -> None:
        if not len(data):
            raise ArgumentError("data", "holds no task", cure="a fit needs at least one")
        if not data.counted:
            raise ArgumentError(
                "moments",
                "need numbers of pulls, but these statistics hold estimates",
                cure="use GaussianMarginalLikelihood",
            )
        if data.squares is None and self.variant != "no-cov":
            raise ArgumentError(
                "variant",
                "needs the sums of squared rewards",
                got=self.variant,
                cure="pass squares=... to the statistics",
            )
        if isinstance(data, GaussianGroups) and self.variant == "difference":
            raise ArgumentError(
                "variant",
                "compares consecutive tasks, which groups do not keep",
                got=self.variant,
                cure="pass GaussianStatistics",
            )

    def _group_totals(self, groups: GaussianGroups) -> Totals:
        """Sums over tasks from sums over groups: every estimate is linear in S, S S' and Q."""
        setup, n, t = setup_of(self, groups.arms), groups.pulls, groups.tasks
        sums, squares = groups.sums, groups.squares
        squares = np.zeros_like(sums) if squares is None else squares
        shift = n * setup.mean
        cross = shift[:, :, None] * sums[:, None, :]
        outer = t[:, None, None] * shift[:, :, None] * shift[:, None, :]
        products = groups.products - cross - cross.transpose(0, 2, 1) + outer
        squares = squares - 2.0 * setup.mean * sums + t[:, None] * n * setup.mean**2
        used = n.sum(axis=1) >= (1 if self.variant == "no-cov" else 2)
        first = (n.shape[1] / np.maximum(n.sum(axis=1), 1.0))[used]
        x = first[:, None] * sums[used]
        if self.variant == "known-mean":
            x = t[used, None] * setup.mean
        if self.variant == "no-cov":
            z = t[used, None, None] * setup.cov
        else:
            noise = t[used, None] * setup.noise_var if self.variant == "full" else None
            z = second_moments(n[used], products[used], squares[used], noise)
        xx = np.einsum("g,gab->ab", first**2, groups.products[used])
        rows, sums_of = float(t[used].sum()), (x.sum(axis=0), z.sum(axis=0), xx)
        return Totals(rows, int(t.sum()), *sums_of, (), design_sums(n, t))

    def _finish(self, totals: Totals, data: Any) -> PriorFit:
        setup, arms = setup_of(self, totals.x.size), totals.x.size
        tasks = int(totals.rows) * (2 if self.variant == "difference" else 1)
        unseen = totals.design[:arms] == 0
        subtract = self.variant in ("two-round", "full")
        blind = np.full(arms, totals.rows < (2 if subtract else 1)) | unseen
        report = self._report(totals, tasks, data)
        warnings = report["warnings"]
        if tasks == 0:
            warnings.append(
                "no task has enough pulls for this estimator: the prior is as wide as a single "
                "reward"
            )
            cov = setup.cov if self.variant == "no-cov" else np.diag(setup.noise_var)
            prior = GaussianPrior(setup.mean, cov, setup.noise_var)
            return PriorFit(prior, at_boundary=True, **report)
        found = estimate(totals, subtract=subtract)
        if self.variant == "no-cov":
            blind[:] = False
        elif self.mean is None and unseen.any() and not unseen.all():
            found.mean[unseen] = found.mean[~unseen].mean()
        if unseen.any():
            names = ", ".join(map(str, np.flatnonzero(unseen)))
            warnings.append(f"no task pulled arm {names}: what the prior says of it is a guess")
        elif blind.any():
            warnings.append(
                "a single task says nothing about the spread between tasks: each variance is that "
                "of a reward"
            )
        if self.mean is None:
            found.mean_error[unseen] = np.inf
        for matrix, value in ((found.cov_error, np.inf), (found.cov, 0.0)):
            matrix[blind, :], matrix[:, blind] = value, value
        found.cov[blind, blind] = setup.noise_var[blind]
        prior_of = partial(GaussianPrior, noise_var=setup.noise_var)
        return moment_fit(prior_of, found, guessed=bool(blind.any() or unseen.any()), **report)


@lru_cache(maxsize=16)
def setup_of(estimator: GaussianMoments, arms: int) -> Setup:
    """What an estimator knows of tasks with so many arms: noise, mean and covariance."""
    assert estimator.noise_var is not None
    noise = validation.per_arm("noise_var", estimator.noise_var, arms)
    mean, cov = np.zeros(arms), np.eye(arms)
    if estimator.mean is not None:
        mean = validation.vector("mean", estimator.mean, arms)
    if estimator.cov is not None:
        cov = validation.covariance("cov", estimator.cov, arms)
    return Setup(noise, mean, cov)


def _as_value(array: FloatArray) -> Any:
    """Nested tuples of an array."""
    return float(array) if array.ndim == 0 else tuple(_as_value(row) for row in array)
