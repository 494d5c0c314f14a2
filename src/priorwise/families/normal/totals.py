"""What the moment estimators of normal priors share: sums over tasks, and from them a mean and a
covariance with their errors.

Each task gives an unbiased estimate x of the prior mean and z of the second moments. With T tasks

    mean = sum_t x_t / T,     cov = sum_t z_t / T - sum_{t != t'} x_t x_t'' / (T (T - 1)),

where the second term is a U-statistic over pairs of different tasks: it estimates ``mean mean'``
without the O(1/T) bias that the product of two estimated means has. To first order ``cov`` is the
average of ``z - mean x' - x mean'``, which gives its sampling covariance over tasks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from attrs import evolve, field, frozen

from priorwise.core import validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.parameters import (
    Array,
    arrays,
)
from priorwise.core.types import FloatArray, IntArray
from priorwise.fitting.design import uniformity_warnings
from priorwise.fitting.fits import PriorFit, Uncertainty
from priorwise.theory.numerics import ROUNDING, project_psd

CHUNK: Final = 256
"""Tasks summed at once; even, so that pairs of tasks stay together. Sums do not depend on what
comes after a task.
"""

LARGEST_JOINT: Final = 20
"""Beyond this many parameters of the mean, the joint law of all moments is not kept (its size grows
with the fourth power).
"""


@cache
def lower_triangle(k: int) -> tuple[IntArray, IntArray]:
    """Places of the lower triangle, row by row."""
    rows, columns = np.tril_indices(k)
    return rows, columns


@final
@dataclass(frozen=True, eq=False)
class Contribution:
    """What some tasks say: estimates of the mean ``x`` (task, k) and of the second moments ``z``
    (task, k, k).
    """

    x: FloatArray
    z: FloatArray
    tasks: int  # tasks that were read; those that say nothing have no row
    design: FloatArray  # sums that the check of the design reads


@final
@dataclass(frozen=True, eq=False)
class Totals:
    """Sums over tasks; ``a + b`` merges."""

    rows: float
    tasks: int
    x: FloatArray  # (k,)
    z: FloatArray  # (k, k)
    xx: FloatArray  # (k, k)
    # products of (x, z): jointly, or (sum z_ab^2, sum z_ab x_a) for many parameters; empty: unknown
    spread: tuple[FloatArray, ...]
    design: FloatArray

    @classmethod
    def of(cls, part: Contribution) -> Self:
        """Sum over tasks."""
        x, z = part.x, part.z
        k = x.shape[1]
        if k <= LARGEST_JOINT:
            flat = np.ravel_multi_index(lower_triangle(k), (k, k))
            values = np.concatenate([x, z.reshape(-1, k * k).take(flat, axis=1)], axis=1)
            spread: tuple[FloatArray, ...] = (values.T @ values,)
        else:
            spread = (np.einsum("tab,tab->ab", z, z), np.einsum("tab,ta->ab", z, x))
        return cls(len(x), part.tasks, x.sum(axis=0), z.sum(axis=0), x.T @ x, spread, part.design)

    def __add__(self, other: Totals) -> Totals:
        """Merge."""
        spread = tuple(a + b for a, b in zip(self.spread, other.spread, strict=True))
        names = ("rows", "tasks", "x", "z", "xx", "design")
        sums = {name: getattr(self, name) + getattr(other, name) for name in names}
        return Totals(**sums, spread=spread)


def prefix_sizes(sizes: Sequence[int], tasks: int) -> list[int]:
    """Check numbers of tasks, each from the first one on."""
    if isinstance(sizes, str) or not isinstance(sizes, Iterable):
        raise ArgumentTypeError("sizes", "must be a list of numbers of tasks", got=sizes)
    checked = [validation.count("sizes", size) for size in sizes]
    if checked and max(checked) > tasks:
        raise ArgumentError(
            "sizes", f"must not exceed the number of tasks, {tasks}", got=max(checked)
        )
    return checked


def prefix_totals(read: Callable[[slice], Contribution], sizes: Sequence[int]) -> list[Totals]:
    """Sums over the first ``size`` tasks for each size, in one pass, each the same to the last bit
    as if it were the only one.
    """
    wanted: dict[int, Totals] = {}
    running: Totals | None = None

    def joined(part: Totals) -> Totals:
        return part if running is None else running + part

    for start in range(0, max(sizes), CHUNK):
        for size in {size for size in sizes if start < size < start + CHUNK}:
            wanted[size] = joined(Totals.of(read(slice(start, size))))
        if start + CHUNK <= max(sizes):
            running = joined(Totals.of(read(slice(start, start + CHUNK))))
            wanted[start + CHUNK] = running
    return [wanted[size] for size in sizes]


@final
@dataclass(frozen=True, eq=False)
class MomentEstimate:
    """Mean and covariance before projection, their standard errors, and the covariance of all of
    them (mean, lower triangle).
    """

    mean: FloatArray
    cov: FloatArray
    mean_error: FloatArray
    cov_error: FloatArray
    joint: FloatArray | None


def estimate(totals: Totals, *, subtract: bool) -> MomentEstimate:
    """Estimate the mean, and the covariance: the average of z, less the U-statistic of ``mean
    mean'`` if ``subtract``.
    """
    rows, k = totals.rows, totals.x.size
    mean, second = totals.x / rows, totals.z / rows
    cov = second
    if subtract and rows > 1:
        cov = second - (np.outer(totals.x, totals.x) - totals.xx) / (rows * (rows - 1))
    if rows < 2 or not totals.spread:
        unknown = np.inf if rows < 2 else np.nan
        return MomentEstimate(mean, cov, np.full(k, unknown), np.full((k, k), unknown), None)
    slope = mean if subtract else np.zeros(k)
    lower = lower_triangle(k)
    if len(totals.spread) == 1:
        centre = np.concatenate([mean, second[lower]])
        raw = (totals.spread[0] / rows - np.outer(centre, centre)) / (rows - 1)
        # a known mean, an assumed covariance
        constant = np.diag(raw) * (rows - 1) <= ROUNDING * centre**2
        raw[constant], raw[:, constant] = 0.0, 0.0
        # d cov_ab / d mean_c = -(mean_a [b = c] + mean_b [a = c])
        jacobian = np.eye(centre.size)
        entries = np.arange(k, centre.size)
        np.subtract.at(jacobian, (entries, lower[1]), slope[lower[0]])
        np.subtract.at(jacobian, (entries, lower[0]), slope[lower[1]])
        joint = jacobian @ raw @ jacobian.T
        errors = np.sqrt(np.maximum(np.diag(joint), 0.0))
        cov_error = np.zeros((k, k))
        cov_error[lower] = errors[k:]
        cov_error = np.maximum(cov_error, cov_error.T)
        return MomentEstimate(mean, cov, errors[:k], cov_error, joint)
    zz, zx = (each / rows for each in totals.spread)
    xx = totals.xx / rows
    # E (z_ab - m_a x_b - m_b x_a)^2 - (E z_ab - 2 m_a m_b)^2
    own = np.outer(slope**2, np.diag(xx))
    across = slope[:, None] * zx.T
    squares = zz + own + own.T - 2.0 * (across + across.T) + 2.0 * np.outer(slope, slope) * xx
    variance = squares - (second - 2.0 * np.outer(slope, mean)) ** 2
    mean_error = np.sqrt(np.maximum(np.diag(xx) - mean**2, 0.0) / (rows - 1))
    cov_error = np.sqrt(np.maximum(variance, 0.0) / (rows - 1))
    return MomentEstimate(mean, cov, mean_error, cov_error, None)


class MomentEstimator(ABC):
    """Fits of a normal prior by moments, of all tasks or of the first so many; the noise is known,
    or estimated first and from then on taken for known.
    """

    adaptive: ClassVar[bool] = False  # pulls must not have followed rewards
    likelihood: ClassVar[str]  # the estimator that does not mind
    noise_var: Any

    @property
    def _name(self) -> str:
        return type(self).__name__

    def fit(self, data: Any, *, start: Any = None) -> PriorFit:
        """Fit a kept run or statistics; ``start`` is ignored."""
        statistics = self._statistics(data)
        (fit,) = self._known(statistics)._fits(data, statistics, [statistics.tasks], statistics)
        return fit

    def fit_prefixes(self, data: Any, sizes: Sequence[int]) -> list[PriorFit]:
        """Fit the first ``size`` tasks for each size, in one pass: the same fits as of those tasks
        alone, to the last bit.

        They hold no statistics, which would be many copies of the data.
        """
        statistics = self._statistics(data)
        checked = prefix_sizes(sizes, statistics.tasks)
        if self.noise_var is None:  # each size estimates its own
            each = [(self._known(statistics[:size]), size) for size in checked]
            return [known._fits(data, statistics, [size])[0] for known, size in each]
        return self._fits(data, statistics, checked) if checked else []

    def _known(self, statistics: Any) -> Self:
        """Estimate the noise if it was left open."""
        if self.noise_var is not None:
            return self
        left, freedom, silent, single = self._left_of(statistics)
        if not (freedom > 0.0 and left > 0.0):
            raise ArgumentError(
                "noise_var",
                f"is missing, and cannot be estimated: {silent if freedom > 0.0 else single}",
                cure="pass the variance of a reward",
            )
        return evolve(self, noise_var=left / freedom)  # type: ignore[misc]

    def _fits(
        self, data: Any, statistics: Any, sizes: Sequence[int], kept: Any = None
    ) -> list[PriorFit]:
        totals = prefix_totals(self._reader(data, statistics), sizes)
        return [self._finish(total, kept) for total in totals]

    def _report(self, totals: Totals, tasks: int, data: Any) -> dict[str, Any]:
        """What a fit says beside its prior."""
        warnings = list(uniformity_warnings(totals.design, self.likelihood))
        counted = {"tasks": tasks, "left_out": totals.tasks - tasks}
        return {"estimator": self._name, **counted, "warnings": warnings, "statistics": data}

    @abstractmethod
    def _statistics(self, data: Any) -> Any:
        """Read a run, and check statistics."""

    @abstractmethod
    def _left_of(self, statistics: Any) -> tuple[float, float, str, str]:
        """Sum of squares that is noise alone, its degrees of freedom, and what is wrong where the
        first is zero or the second.
        """

    @abstractmethod
    def _reader(self, data: Any, statistics: Any) -> Callable[[slice], Contribution]:
        """What some of the tasks say."""

    @abstractmethod
    def _finish(self, totals: Totals, data: Any) -> PriorFit:
        """Return the fit."""


def moment_fit(
    prior: Callable[..., Any], found: MomentEstimate, *, guessed: bool, **more: Any
) -> PriorFit:
    """Return the fit with the covariance projected; no law of plausible priors where a part of it
    is ``guessed``.
    """
    projected = project_psd(found.cov)
    law = None
    if found.joint is not None and not guessed:
        law = MomentUncertainty(found.mean, found.cov, found.joint)
    return PriorFit(
        prior(found.mean, projected.matrix),
        at_boundary=projected.clipped or guessed,
        std_errors={"mean": found.mean_error, "cov": found.cov_error},
        uncertainty=law,
        **more,
    )


@final
@frozen(eq=False, slots=False)
class MomentUncertainty(Uncertainty):
    """Normal law of the estimated mean and covariance, with the sampling covariance of the moments
    over tasks.

    Draws are projected on the positive semi-definite matrices, as the fit is. The law is centred at
    the estimate before its projection.

    Parameters
    ----------
    mean, cov
        The estimates, the covariance before projection.
    covariance
        Sampling covariance of the mean and of the lower triangle of the covariance, row by row.

    """

    family: ClassVar[str] = "moment-uncertainty"

    mean: FloatArray = field(converter=arrays, validator=Array(("dim",)))
    cov: FloatArray = field(converter=arrays, validator=Array(("dim", "dim")))
    covariance: FloatArray = field(converter=arrays, validator=Array(("moment", "moment")))

    def draw(self, prior: Any, rng: np.random.Generator, n: int) -> list[Any]:
        """``(mean, cov) ~ N``, then project."""
        k = self.mean.size
        lower = lower_triangle(k)
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        out = []
        for draw in rng.standard_normal((n, len(root))) @ root.T:
            change = np.zeros((k, k))
            change[lower] = draw[k:]
            change = change + np.tril(change, -1).T
            cov = project_psd(self.cov + change).matrix
            out.append(prior.replaced(mean=self.mean + draw[:k], cov=cov))
        return out
