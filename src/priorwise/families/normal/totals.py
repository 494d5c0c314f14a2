"""What the moment estimators of normal priors share: sums over tasks, and from them a mean and a
covariance with their errors.

Each task gives an unbiased estimate x of the prior mean and z of the second moments. With T tasks

    mean = sum_t x_t / T,     cov = sum_t z_t / T - sum_{t != t'} x_t x_t'' / (T (T - 1)),

where the second term is a U-statistic over pairs of different tasks: it estimates ``mean mean'``
without the O(1/T) bias that the product of two estimated means has. To first order ``cov`` is the
average of ``z - mean x' - x mean'``, which gives its sampling covariance over tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.numerics import ROUNDING, project_psd
from priorwise.core.types import FloatArray, IntArray
from priorwise.core.uncertainty import Uncertainty

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
            values = np.concatenate([x, z[:, *lower_triangle(k)]], axis=1)
            spread: tuple[FloatArray, ...] = (values.T @ values,)
        else:
            spread = (np.einsum("tab,tab->ab", z, z), np.einsum("tab,ta->ab", z, x))
        return cls(len(x), part.tasks, x.sum(axis=0), z.sum(axis=0), x.T @ x, spread, part.design)

    def __add__(self, other: Totals) -> Totals:
        """Merge."""
        spread = tuple(a + b for a, b in zip(self.spread, other.spread, strict=True))
        mine = (self.x + other.x, self.z + other.z, self.xx + other.xx)
        return Totals(
            self.rows + other.rows,
            self.tasks + other.tasks,
            *mine,
            spread,
            self.design + other.design,
        )


def prefix_sizes(sizes: Sequence[int], tasks: int) -> list[int]:
    """Check numbers of tasks, each from the first one on."""
    if isinstance(sizes, str) or not isinstance(sizes, Iterable):
        raise TypeError(f"sizes must be a list of numbers of tasks, got {validation.shown(sizes)}")
    checked = [validation.count("sizes", size) for size in sizes]
    if checked and max(checked) > tasks:
        raise ValueError(f"sizes must not exceed the number of tasks, {tasks}, got {max(checked)}")
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
    mean_variance = np.diag(xx) - mean**2
    mean_error, cov_error = (
        np.sqrt(np.maximum(each, 0.0) / (rows - 1)) for each in (mean_variance, variance)
    )
    return MomentEstimate(mean, cov, mean_error, cov_error, None)


@final
@dataclass(frozen=True, eq=False, init=False)
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

    mean: FloatArray
    cov: FloatArray
    covariance: FloatArray

    def __init__(self, mean: ArrayLike, cov: ArrayLike, covariance: ArrayLike) -> None:
        """Check and freeze the law."""
        checked = validation.vector("mean", mean)
        k = checked.size
        object.__setattr__(self, "mean", checked)
        object.__setattr__(self, "cov", validation.matrix("cov", cov, (k, k)))
        size = k + k * (k + 1) // 2
        object.__setattr__(
            self, "covariance", validation.matrix("covariance", covariance, (size, size))
        )

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
            out.append(
                prior.replaced(mean=self.mean + draw[:k], cov=project_psd(self.cov + change).matrix)
            )
        return out
