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

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal, final, get_args

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.design import design_sums, uniformity_warnings
from priorwise.core.fits import PriorFit
from priorwise.core.known import KnownTasks
from priorwise.core.numerics import project_psd
from priorwise.core.runs import Run
from priorwise.core.types import FloatArray
from priorwise.families.gaussian.groups import GaussianGroups
from priorwise.families.gaussian.moment_variants import READERS, Setup, rows_of, second_moments
from priorwise.families.gaussian.prior import GaussianPrior
from priorwise.families.gaussian.statistics import GaussianStatistics
from priorwise.families.normal.totals import (
    MomentUncertainty,
    Totals,
    estimate,
    prefix_sizes,
    prefix_totals,
)

Variant = Literal["two-round", "known-mean", "difference", "full", "no-cov"]

STEPS: Final[dict[str, int | None]] = {
    "two-round": 2,
    "known-mean": 2,
    "difference": 2,
    "full": None,
    "no-cov": 1,
}
"""How many pulls of each task a variant reads of a run: those that its exploration draws
uniformly.
"""


@final
@dataclass(frozen=True)
class GaussianMoments:
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
    the fit is ``at_boundary``. What the data cannot tell is filled in, with a warning: an arm that
    no task pulled has the average of the other means and the variance ``noise_var`` (a prior worth
    one pull), and so has every arm where a single task leaves the spread unknown; such a fit is
    ``at_boundary`` and the standard errors are infinite there. With ``"no-cov"`` an arm that no
    task pulled has mean 0, which is what the paper's average of ``A r e_a`` gives, and the assumed
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
    adaptive: ClassVar[bool] = False  # pulls must not have followed rewards

    variant: Variant = "full"
    noise_var: ArrayLike | None = None
    mean: ArrayLike | None = None
    cov: ArrayLike | None = None
    arms: int | None = None

    def __post_init__(self) -> None:
        """Check the parameters."""
        if self.variant not in get_args(Variant):
            raise ValueError(
                f"variant must be one of {', '.join(get_args(Variant))}, got {self.variant!r}"
            )
        if self.noise_var is not None:
            noise = validation.positive(
                "noise_var", validation.numbers("noise_var", self.noise_var)
            )
            if noise.ndim > 1 or not np.isfinite(noise).all():
                raise ValueError(
                    "noise_var must be one finite variance or one for each arm, got "
                    f"{self.noise_var}"
                )
        if (self.mean is not None) != (self.variant == "known-mean"):
            raise ValueError(
                "variant='known-mean' needs mean=..., the known prior mean; the others estimate it "
                "and take none"
            )
        if self.cov is not None and self.variant != "no-cov":
            raise ValueError(
                "cov is the covariance that variant='no-cov' assumes; the others estimate it and "
                "take none"
            )
        if self.arms is not None:
            validation.count("arms", self.arms)
        for name in ("noise_var", "mean", "cov"):  # values that compare and hash
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, _as_value(validation.numbers(name, value)))

    @property
    def steps(self) -> int | None:
        """How many pulls of each task of a run are read; None for all."""
        return STEPS[self.variant]

    def for_tasks(self, known: KnownTasks) -> GaussianMoments:
        """Take the noise from the tasks if it was left open; refuse tasks with other arms or
        another noise.
        """
        sizes = {
            name: None if (value := getattr(self, name)) is None else np.shape(value)[0]
            for name in ("mean", "cov")
        }
        known.check_arms(self, arms=self.arms, **sizes)
        noise = known.noise_for(self, self.noise_var, one_for_all=False)
        return replace(self, noise_var=noise, arms=known.arms)

    def fit(
        self, data: Run | GaussianStatistics | GaussianGroups, *, start: Any = None
    ) -> PriorFit:
        """Fit a kept run or statistics; ``start`` is ignored. Groups give no standard errors: they
        keep no fourth moments.
        """
        if isinstance(data, GaussianGroups):
            self._check(data)
            known = self._with_noise_of(data)
            return known._finish(known._group_totals(data), known._setup(data.arms), data)
        statistics = self._statistics(data)
        return self._with_noise_of(statistics)._fits(statistics, [statistics.tasks], [statistics])[
            0
        ]

    def fit_prefixes(self, data: Run | GaussianStatistics, sizes: Sequence[int]) -> list[PriorFit]:
        """Fit the first ``size`` tasks for each size, in one pass: the same fits as
        ``fit(statistics[:size])`` to the last bit.

        They hold no statistics, which would be many copies of the data.
        """
        statistics = self._statistics(data)
        checked = prefix_sizes(sizes, statistics.tasks)
        if self.noise_var is None:  # each size estimates its own
            each = [(self._with_noise_of(statistics[:size]), size) for size in checked]
            return [known._fits(statistics, [size], [None])[0] for known, size in each]
        return self._fits(statistics, checked, [None] * len(checked)) if checked else []

    def _with_noise_of(self, data: GaussianStatistics | GaussianGroups) -> GaussianMoments:
        """Estimate the noise if it was left open, from the pulls that a task repeats."""
        if self.noise_var is not None:
            return self
        left, freedom = data.within()
        if not (freedom > 0.0 and left > 0.0):
            why = (
                "their rewards never differ"
                if freedom > 0.0
                else f"no task repeats an arm in what {self.variant!r} reads"
            )
            raise ValueError(
                f"the noise cannot be estimated, as {why}: pass noise_var=..., the variance of a "
                "reward"
            )
        return replace(self, noise_var=left / freedom)

    def _fits(
        self, statistics: GaussianStatistics, sizes: Sequence[int], kept: Sequence[Any]
    ) -> list[PriorFit]:
        setup = self._setup(statistics.arms)
        read = READERS[self.variant]
        totals = prefix_totals(lambda rows: read(setup, *rows_of(statistics, rows)), sizes)
        return [self._finish(total, setup, keep) for total, keep in zip(totals, kept, strict=True)]

    def _setup(self, arms: int) -> Setup:
        assert self.noise_var is not None
        noise = validation.per_arm("noise_var", self.noise_var, arms)
        mean = np.zeros(arms) if self.mean is None else validation.vector("mean", self.mean, arms)
        return Setup(
            noise,
            mean,
            np.eye(arms) if self.cov is None else validation.covariance("cov", self.cov, arms),
        )

    def _statistics(self, data: Any) -> GaussianStatistics:
        statistics = GaussianStatistics.of(data, arms=self.arms, steps=self.steps)
        self._check(statistics)
        return statistics

    def _check(self, data: GaussianStatistics | GaussianGroups) -> None:
        if not len(data):
            raise ValueError("data holds no task; a fit needs at least one")
        if not data.counted:
            raise ValueError(
                "moments need numbers of pulls, but these statistics hold estimates: use "
                "GaussianMarginalLikelihood"
            )
        if data.squares is None and self.variant != "no-cov":
            raise ValueError(
                f"variant={self.variant!r} needs the sums of squared rewards: pass squares=... to "
                "the statistics"
            )
        if isinstance(data, GaussianGroups) and self.variant == "difference":
            raise ValueError(
                "variant='difference' compares consecutive tasks, which groups do not keep: pass "
                "GaussianStatistics"
            )

    def _group_totals(self, groups: GaussianGroups) -> Totals:
        """Sums over tasks from sums over groups: every estimate is linear in S, S S' and Q."""
        setup, n, t = self._setup(groups.arms), groups.pulls, groups.tasks
        sums, products = groups.sums, groups.products
        squares = np.zeros_like(sums) if groups.squares is None else groups.squares
        shift = n * setup.mean
        cross = shift[:, :, None] * sums[:, None, :]
        products = (
            products
            - cross
            - cross.transpose(0, 2, 1)
            + t[:, None, None] * shift[:, :, None] * shift[:, None, :]
        )
        squares = squares - 2.0 * setup.mean * sums + t[:, None] * n * setup.mean**2
        used = n.sum(axis=1) >= (1 if self.variant == "no-cov" else 2)
        first = (n.shape[1] / np.maximum(n.sum(axis=1), 1.0))[used]
        x = (
            t[used, None] * setup.mean
            if self.variant == "known-mean"
            else first[:, None] * sums[used]
        )
        if self.variant == "no-cov":
            z = t[used, None, None] * setup.cov
        else:
            noise = t[used, None] * setup.noise_var if self.variant == "full" else None
            z = second_moments(n[used], products[used], squares[used], noise)
        xx = np.einsum("g,gab->ab", first**2, groups.products[used])
        tasks = int(t.sum())
        return Totals(
            float(t[used].sum()), tasks, x.sum(axis=0), z.sum(axis=0), xx, (), design_sums(n, t)
        )

    def _finish(self, totals: Totals, setup: Setup, data: Any) -> PriorFit:
        arms = setup.noise_var.size
        warnings = list(uniformity_warnings(totals.design, "GaussianMarginalLikelihood"))
        tasks = int(totals.rows) * (2 if self.variant == "difference" else 1)
        unseen = totals.design[:arms] == 0
        subtract = self.variant in ("two-round", "full")
        blind = np.full(arms, totals.rows < (2 if subtract else 1)) | unseen
        if tasks == 0:
            warnings.append(
                "no task has enough pulls for this estimator: the prior is as wide as a single "
                "reward"
            )
            cov = setup.cov if self.variant == "no-cov" else np.diag(setup.noise_var)
            return PriorFit(
                GaussianPrior(setup.mean, cov, setup.noise_var),
                self._name, 0, totals.tasks, at_boundary=True, warnings=warnings, statistics=data,
            )  # fmt: skip
        found = estimate(totals, subtract=subtract)
        mean, cov = found.mean.copy(), found.cov.copy()
        if self.variant == "no-cov":
            blind[:] = False
        elif self.mean is None and unseen.any() and not unseen.all():
            mean[unseen] = mean[~unseen].mean()
        if unseen.any():
            names = ", ".join(map(str, np.flatnonzero(unseen)))
            warnings.append(f"no task pulled arm {names}: what the prior says of it is a guess")
        elif blind.any():
            warnings.append(
                "a single task says nothing about the spread between tasks: each variance is that "
                "of a reward"
            )
        mean_error, cov_error = found.mean_error.copy(), found.cov_error.copy()
        if self.mean is None:
            mean_error[unseen] = np.inf
        cov_error[blind, :], cov_error[:, blind] = np.inf, np.inf
        cov[blind, :], cov[:, blind] = 0.0, 0.0
        cov[blind, blind] = setup.noise_var[blind]
        projected = project_psd(cov)
        uncertainty = None
        if found.joint is not None and not (blind.any() or unseen.any()):
            uncertainty = MomentUncertainty(mean, cov, found.joint)
        return PriorFit(
            GaussianPrior(mean, projected.matrix, setup.noise_var),
            self._name,
            tasks,
            totals.tasks - tasks,
            at_boundary=projected.clipped or bool(blind.any() or unseen.any()),
            std_errors={"mean": mean_error, "cov": cov_error},
            warnings=warnings,
            uncertainty=uncertainty,
            statistics=data,
        )

    @property
    def _name(self) -> str:
        return f"{type(self).__name__}({self.variant})"


def _as_value(array: FloatArray) -> Any:
    """Nested tuples of an array."""
    return float(array) if array.ndim == 0 else tuple(_as_value(row) for row in array)
