"""Moment estimator of a Beta prior: totals of Bernoulli rewards are Beta-Binomial (Tripathi, Gupta
and Gurland 1994).

For s successes in n pulls of an arm, ``E[s] = n m1`` and ``E[s (s - 1)] = n (n - 1) m2`` with ``m1
= E[mu]`` and ``m2 = E[mu^2]``, and

    alpha = m1 (m1 - m2) / (m2 - m1^2),     beta = (1 - m1) (m1 - m2) / (m2 - m1^2).

With the same n in every task these are the formulas of the lemma "Beta-Binomial" of the paper; with
different n they pool the tasks, which is right as long as n does not depend on the arm's mean.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, final

import numpy as np
from attrs import evolve, field, frozen

from priorwise.core.errors import ArgumentError
from priorwise.core.parameters import (
    Array,
    Count,
    arrays,
)
from priorwise.core.protocols import for_arms
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.beta.prior import BetaPrior
from priorwise.families.beta.statistics import BetaGroups, BetaStatistics
from priorwise.families.normal.totals import prefix_sizes
from priorwise.fitting.design import Design, Rate, design_sums, uniformity_warnings
from priorwise.fitting.fits import PLAUSIBLE_AVERAGED, PriorFit, Uncertainty
from priorwise.fitting.runs import Run
from priorwise.fitting.task_facts import KnownTasks

SMALLEST_STRENGTH: Final = 0.01
"""Least ``alpha + beta`` of an arm whose tasks are all success or all failure."""

SMALLEST: Final = 1e-6
"""Least alpha and beta that a prior takes."""


@final
@frozen(slots=False)
class BetaMoments:
    """Beta prior of each arm by the method of moments, for pulls that did not follow rewards:
    uniform, or one arm per episode.

    Parameters
    ----------
    arms
        Number of arms of a run; by default the largest action plus 1.
    steps
        Read only the first ``steps`` pulls of each task of a run; by default all.

    Notes
    -----
    Where the moments belong to no Beta law the fit is ``at_boundary`` and falls back, arm by arm,
    with a warning:

    * totals spread no more than binomial ones (``m2 <= m1^2``): as if all tasks shared one success
      probability, its posterior ``Beta(1/2 + successes, 1/2 + failures)`` over all tasks; so the
      prior is as sure as the data together, and no surer;
    * tasks all success or all failure (``m2 >= m1``): ``alpha + beta = 0.01`` at the mean ``m1``;
    * no task pulled the arm twice, so that the spread is unknown: ``alpha + beta = 2``, as in the
      uniform law, at the mean of all pulls with half a success and half a failure added; without
      any pull that is ``Beta(1, 1)``.

    The standard errors of such arms are NaN.

    Examples
    --------
    >>> from priorwise.policies.uniform import Uniform
    >>> from priorwise.simulate.run import simulate
    >>> run = simulate(
    ...     BetaPrior([2.0, 4.0], [8.0, 4.0]),
    ...     Uniform(),
    ...     horizon=10,
    ...     tasks=50_000,
    ...     seed=0,
    ...     keep=True,
    ... )
    >>> BetaMoments().fit(run).prior.alpha.round(1)
    array([2. , 3.8])

    """

    reads: ClassVar[type] = BetaStatistics
    adaptive: ClassVar[bool] = False  # pulls must not have followed rewards

    arms: int | None = field(default=None, validator=Count())
    steps: int | None = field(default=None, validator=Count())

    def for_tasks(self, known: KnownTasks) -> "BetaMoments":
        """Raise an error for tasks whose rewards are not 0 or 1, or with other arms."""
        known.check_binary(self)
        known.check_arms(self, arms=self.arms)
        return evolve(self, arms=known.arms)

    def fit(self, data: Run | BetaStatistics | BetaGroups, *, start: Any = None) -> PriorFit:
        """Fit a kept run or statistics; ``start`` is ignored."""
        if isinstance(data, BetaGroups):
            arms = [_ArmSums.of(*data.of_arm(arm)) for arm in range(data.arms)]
            return _finish(arms, data.total, 0, self._group_warnings(data), data)
        statistics = self._statistics(data)
        s, n = statistics.successes, statistics.pulls
        weights = np.ones(len(n), dtype=np.int64)
        arms = [_ArmSums.of(s[:, arm], n[:, arm], weights) for arm in range(statistics.arms)]
        left_out = int((n.sum(axis=1) == 0).sum())
        return _finish(arms, len(n) - left_out, left_out, self._warnings(n), statistics)

    def fit_prefixes(self, data: Run | BetaStatistics, sizes: Sequence[int]) -> list[PriorFit]:
        """Fit the first ``size`` tasks for each size."""
        statistics = self._statistics(data)
        return [self.fit(statistics[:size]) for size in prefix_sizes(sizes, statistics.tasks)]

    def _statistics(self, data: Any) -> BetaStatistics:
        return BetaStatistics.of(data, arms=self.arms, steps=self.steps)

    @staticmethod
    def _warnings(pulls: IntArray) -> tuple[str, ...]:
        """Tasks that pulled a single arm, all equally often, chose nothing within the task; the
        others should be uniform.
        """
        alone = (pulls > 0).sum(axis=1) <= 1
        blocks = bool(alone.all()) and np.unique(pulls[pulls > 0]).size <= 1
        if blocks:
            return ()
        return uniformity_warnings(design_sums(pulls.astype(np.float64)), "BetaMarginalLikelihood")

    @staticmethod
    def _group_warnings(data: BetaGroups) -> tuple[str, ...]:
        """Test the arms' totals, unless each task pulled a single arm: groups do not say what was
        pulled together.
        """
        pulled = data.pulls > 0
        if data.tasks[pulled].sum() <= data.total and np.unique(data.pulls[pulled]).size <= 1:
            return ()
        totals = np.bincount(data.arm, data.pulls * data.tasks, minlength=data.arms).astype(float)
        return uniformity_warnings(np.append(totals, np.zeros(3)), "BetaMarginalLikelihood")


@final
@dataclass(frozen=True, eq=False)
class _ArmSums:
    """Sums over tasks of q = (s, n, s (s - 1), n (n - 1)) of one arm, and of q q'."""

    q: FloatArray  # (4,)
    qq: FloatArray  # (4, 4)

    @classmethod
    def of(cls, successes: IntArray, pulls: IntArray, tasks: IntArray) -> "_ArmSums":
        s, n = successes.astype(np.float64), pulls.astype(np.float64)
        rows = np.stack([s, n, s * (s - 1.0), n * (n - 1.0)])
        return cls(rows @ tasks, (rows * tasks) @ rows.T)

    def moments(self) -> tuple[float, float, FloatArray]:
        """m1, m2 and their sampling covariance, from the residuals ``s - m1 n`` and ``s (s - 1) -
        m2 n (n - 1)`` of the tasks.
        """
        m1, m2 = self.q[0] / self.q[1], self.q[2] / self.q[3]
        b = np.array([[1.0, -m1, 0.0, 0.0], [0.0, 0.0, 1.0, -m2]]) / self.q[[1, 3], None]
        return float(m1), float(m2), np.asarray(b @ self.qq @ b.T)


def _finish(
    arms: "Sequence[_ArmSums]", tasks: int, left_out: int, warnings: tuple[str, ...], data: Any
) -> PriorFit:
    laws, errors, moments, covariances, notes = [], [], [], [], list(warnings)
    fitted = np.zeros(len(arms))
    for arm, sums in enumerate(arms):
        successes, pulls = sums.q[0], sums.q[1]
        m1, m2, covariance, error = 0.0, 0.0, np.zeros((2, 2)), np.full(2, np.nan)
        if sums.q[3] > 0.0:
            m1, m2, covariance = sums.moments()
        if sums.q[3] == 0.0:
            pooled = (successes + 0.5) / (pulls + 1.0)
            law = (2.0 * pooled, 2.0 * (1.0 - pooled))
            notes.append(f"no task pulled arm {arm} twice, so its spread between tasks is unknown")
        elif m2 <= m1 * m1 or m1 in (0.0, 1.0):
            law = (successes + 0.5, pulls - successes + 0.5)
            notes.append(
                f"arm {arm} varies between tasks no more than chance explains: the fit is as sure "
                "as all data together"
            )
        elif (m1 - m2) < SMALLEST_STRENGTH * (m2 - m1 * m1):
            law = (SMALLEST_STRENGTH * m1, SMALLEST_STRENGTH * (1.0 - m1))
            notes.append(
                f"arm {arm} varies between tasks as much as it can: its strength is set to "
                f"{SMALLEST_STRENGTH:g}"
            )
        else:
            law, slope = beta_of_moments(m1, m2)
            error = np.sqrt(np.maximum(np.diag(slope @ covariance @ slope.T), 0.0))
            fitted[arm] = 1.0
        laws.append(np.maximum(law, SMALLEST))
        errors.append(error)
        moments.append([m1, m2])
        covariances.append(covariance)
    most = [sums.q[1] + 1.0 for sums in arms]
    return PriorFit(
        BetaPrior(*np.array(laws).T),
        BetaMoments.__name__,
        tasks,
        left_out,
        at_boundary=not fitted.all(),
        std_errors=dict(zip(("alpha", "beta"), np.array(errors).T, strict=True)),
        warnings=notes,
        uncertainty=BetaMomentUncertainty(moments, covariances, most, fitted),
        statistics=data,
    )


def beta_of_moments(m1: float, m2: float) -> tuple[tuple[float, float], FloatArray]:
    """Parameters of the Beta law with ``E[mu] = m1`` and ``E[mu^2] = m2``, and their derivatives,
    ``((alpha, beta), (m1, m2))``.
    """
    spread, rest = m2 - m1 * m1, m1 - m2
    strength = rest / spread
    by_m1, by_m2 = (spread + 2.0 * m1 * rest) / spread**2, -(spread + rest) / spread**2
    of_alpha = [strength + m1 * by_m1, m1 * by_m2]
    of_beta = [-strength + (1.0 - m1) * by_m1, (1.0 - m1) * by_m2]
    return (m1 * strength, (1.0 - m1) * strength), np.array([of_alpha, of_beta])


@final
@frozen(eq=False, slots=False)
class BetaMomentUncertainty(Uncertainty):
    """Normal law of each arm's first two moments, mapped back to Beta laws; arms that fell back
    keep their law.

    Draws that belong to no Beta law are moved to the nearest spread that does: between no more
    strength than all pulls of the arm, and no less than 0.01.

    Parameters
    ----------
    moments
        Estimates of ``E[mu]`` and ``E[mu^2]``, ``(arm, 2)``; 0 where no task pulled the arm twice.
    covariances
        Their sampling covariances, ``(arm, 2, 2)``.
    most
        Largest ``alpha + beta`` of a draw, ``(arm,)``.
    fitted
        1 for an arm with a law, 0 for one that fell back, ``(arm,)``.

    """

    family: ClassVar[str] = "beta-moment-uncertainty"

    moments: FloatArray = field(converter=arrays, validator=Array(("arm", 2)))
    covariances: FloatArray = field(converter=arrays, validator=Array(("arm", 2, 2)))
    most: FloatArray = field(converter=arrays, validator=Array())
    fitted: FloatArray = field(converter=arrays, validator=Array())

    def draw(self, prior: Any, rng: np.random.Generator, n: int) -> list[Any]:
        """``(m1, m2) ~ N`` for each arm."""
        values, vectors = np.linalg.eigh(self.covariances)
        roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        z = rng.standard_normal((n, *self.moments.shape))
        drawn = self.moments + np.einsum("aij,naj->nai", roots, z)
        mean = np.clip(drawn[:, :, 0], SMALLEST, 1.0 - SMALLEST)
        binary = mean * (1.0 - mean)  # spread = binary / (1 + strength)
        least, most = binary / (1.0 + self.most), binary / (1.0 + SMALLEST_STRENGTH)
        spread = np.clip(drawn[:, :, 1] - mean**2, least, most)
        strength = binary / spread - 1.0
        kept = self.fitted > 0.0
        alpha = np.maximum(np.where(kept, mean * strength, prior.alpha), SMALLEST)
        beta = np.maximum(np.where(kept, (1.0 - mean) * strength, prior.beta), SMALLEST)
        return [BetaPrior(a, b) for a, b in zip(alpha, beta, strict=True)]


def averaged(fit: PriorFit, how: Any, rng: np.random.Generator) -> BetaPrior:
    """Beta priors with the mean and variance of each arm averaged over plausible priors."""
    prior = fit.with_arms()
    plausible = [for_arms(each, prior.arms) for each in fit.draw(rng, PLAUSIBLE_AVERAGED)]
    a, b = (np.stack([getattr(each, name) for each in plausible]) for name in ("alpha", "beta"))
    mean = (a / (a + b)).mean(axis=0)
    square = (a * (a + 1.0) / ((a + b) * (a + b + 1.0))).mean(axis=0)
    # alpha + beta
    strength = np.maximum((mean - square) / np.maximum(square - mean**2, 1e-12), 1e-6)
    made: BetaPrior = prior.replaced(alpha=mean * strength, beta=(1.0 - mean) * strength)
    return made


def rate(
    prior: BetaPrior, eps: float, delta: float, *, known_mean: bool = False, known_cov: bool = False
) -> Rate:
    """How many tasks the theorem on Beta priors asks for, up to a constant.

    The paper prints ``log(A / delta)``. Its proof needs ``log(4 A / delta)``: two moments of each
    arm, each from two sides (see docs/corrections.md).
    """
    if known_mean or known_cov:
        raise ArgumentError(
            "known_mean",
            "and known_cov are about a GaussianPrior",
            cure="a BetaPrior has no such rate",
        )
    a = prior.arms
    return Rate(a**2 * np.log(4 * a / delta) / eps**2, "A^2 log(4 A / delta) / eps^2")


def covered(prior: BetaPrior, estimator: Any, design: Design) -> dict[str, bool] | None:
    """Nothing is taken for known where the estimator reads two pulls or more of one arm per task;
    None otherwise.
    """
    if not isinstance(estimator, BetaMoments):
        return None
    read = min(design.horizon, estimator.steps or design.horizon)
    return {} if 2 <= read <= design.one_arm else None
