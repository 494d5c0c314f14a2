"""Tasks with equal pull vectors, merged: the likelihood of a normal prior needs no more."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self, final

import numpy as np

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.core.types import FloatArray, IntArray, UIntArray
from priorwise.fitting.columns import counts, table, zero_where_unpulled

if TYPE_CHECKING:
    from priorwise.families.gaussian.statistics import GaussianStatistics

NO_SQUARES: Final = ("squares", "are missing, as noise_var is, which is estimated from them")


@final
@dataclass(frozen=True, eq=False)
class GaussianGroups:
    """Sums over the tasks that share a vector of pulls; ``a + b`` merges, ``len(a)`` is the number
    of groups.

    Parameters
    ----------
    pulls
        The distinct pull vectors, ``(group, arm)``.
    tasks
        Number of tasks with each, ``(group,)``.
    sums
        Sum over these tasks of the arms' reward sums ``s``, ``(group, arm)``.
    products
        Sum over these tasks of ``s s'``, ``(group, arm, arm)``.
    squares
        Sum over these tasks of the sums of squared rewards, ``(group, arm)``; needed to estimate
        the noise.

    """

    pulls: FloatArray
    tasks: FloatArray
    sums: FloatArray
    products: FloatArray
    squares: FloatArray | None = None
    unit: float | None = field(default=None, init=False)
    """Variance of a pull in whose unit ``pulls`` are precisions; None: these are counts."""

    def __post_init__(self) -> None:
        """Check and freeze the arrays; rows with equal pulls are merged."""
        n, q = counts("pulls", self.pulls, (None, None)), self.squares
        groups, arms = n.shape
        t = validation.positive("tasks", counts("tasks", self.tasks, (groups,)), 1.0)
        s = zero_where_unpulled("sums", table("sums", self.sums, n.shape), n)
        p = table("products", self.products, (groups, arms, arms))
        if q is not None:
            q = zero_where_unpulled("squares", table("squares", q, n.shape), n)
        gap = np.abs(p - p.transpose(0, 2, 1)).max()
        if gap > 1e-8 * np.abs(p).max():
            raise ArgumentError(
                "products", f"must be symmetric in each group, but entries differ by up to {gap:g}"
            )
        if np.any(t[:, None] * np.einsum("gaa->ga", p) < s * s * (1.0 - 1e-9) - 1e-300):
            raise ArgumentError(
                "products",
                "must be at least sums sums' / tasks",
                cure="pass sums over tasks of s s', s the reward sums of a task",
            )
        self._set({"tasks": t, "sums": s, "products": p, "squares": q}, n, None)

    def _set(self, columns: dict[str, Any], pulls: FloatArray, unit: float | None) -> Self:
        """Merge rows with equal pulls and freeze."""
        distinct, place = distinct_rows(pulls)
        if len(distinct) < len(pulls):
            pulls = distinct
            columns = {name: sum_rows(each, place, len(pulls)) for name, each in columns.items()}
        validation.freeze(self, **columns, pulls=pulls, unit=unit)
        return self

    @classmethod
    def of(cls, statistics: GaussianStatistics) -> Self:
        """Group the tasks."""
        pulls, place = distinct_rows(statistics.pulls)
        groups, arms = pulls.shape
        sums, products = statistics.sums, np.empty((groups, arms, arms))
        for a in range(arms):
            for b in range(a + 1):
                both = np.bincount(place, sums[:, a] * sums[:, b], minlength=groups)
                products[:, a, b] = products[:, b, a] = both
        columns = {
            "tasks": np.bincount(place, minlength=groups).astype(np.float64),
            "sums": sum_rows(sums, place, groups),
            "products": products,
            "squares": sum_rows(statistics.squares, place, groups),
        }
        return object.__new__(cls)._set(columns, pulls, statistics.unit)

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.pulls.shape[1]

    @property
    def total(self) -> int:
        """Number of tasks."""
        return int(self.tasks.sum())

    @property
    def counted(self) -> bool:
        """Whether ``pulls`` are numbers of pulls; otherwise they are precisions in units of a
        pull.
        """
        return self.unit is None

    def within(self) -> tuple[float, float]:
        """Sum of squared deviations of the rewards from their task's and arm's mean, and its
        degrees of freedom.
        """
        means = np.einsum("gaa->ga", self.products) / np.maximum(self.pulls, 1.0)
        left = np.maximum(squares_of(self) - means, 0.0)
        return float(left.sum()), float(self.tasks @ np.maximum(self.pulls - 1.0, 0.0).sum(axis=1))

    def __len__(self) -> int:
        """Number of groups."""
        return len(self.pulls)

    def __add__(self, other: GaussianGroups) -> GaussianGroups:
        """Merge: groups with equal pulls add up."""
        if not isinstance(other, GaussianGroups):
            return NotImplemented
        if self.arms != other.arms:
            raise ArgumentError("other", f"must have {self.arms} arms to be merged", got=other.arms)
        if (self.squares is None) != (other.squares is None):
            raise ArgumentError(
                "other",
                "must have squares if these groups have, and only then",
                cure="leave them out of both",
            )
        names = ["tasks", "sums", "products", "pulls"] + ["squares"] * (self.squares is not None)
        joined = {
            name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in names
        }
        made, pulls = object.__new__(GaussianGroups), joined.pop("pulls")
        return made._set({"squares": None} | joined, pulls, joint_unit(self.unit, other.unit))

    def __radd__(self, other: Any) -> GaussianGroups:
        """Let ``sum`` merge many, which starts from 0."""
        return self if type(other) is int and other == 0 else NotImplemented


def squares_of(data: Any) -> FloatArray:
    """Sums of squared rewards, which are needed to estimate the noise."""
    if data.squares is None:
        raise ArgumentError(*NO_SQUARES)
    return np.asarray(data.squares)


def check_unit(unit: float | None, noise: FloatArray, holder: str) -> None:
    """Check that estimates with standard errors are read with the noise that is their unit of
    precision.
    """
    if unit is not None and not np.allclose(noise, unit, rtol=1e-9, atol=0.0):
        raise ArgumentError(
            "noise_var",
            f"must be that of the estimates, {unit:g}, in {holder}",
            got=np.unique(noise).tolist(),
        )


def joint_unit(one: float | None, other: float | None) -> float | None:
    """Unit of precision of both together; numbers of pulls take any."""
    if one is not None and other is not None and one != other:
        raise ArgumentError(
            "noise_var", "must be the same for estimates that are joined", got=(one, other)
        )
    return other if one is None else one


def distinct_rows(rows: FloatArray) -> tuple[FloatArray, IntArray]:
    """Distinct rows and where each row is among them, by sorting one number per row.

    That number is exact where the rows are small whole numbers (a mixed-radix numeral); otherwise
    it is a hash of 64 bits, and should two distinct rows ever share it, rows are compared entry by
    entry.
    """
    keys = _keys(rows)
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    distinct = rows[first]
    if not np.array_equal(distinct[place], rows):
        distinct, place = np.unique(rows, axis=0, return_inverse=True)
    return np.ascontiguousarray(distinct), place.ravel()


def sum_rows(values: FloatArray | None, place: IntArray, groups: int) -> FloatArray | None:
    """Sum rows by group, along the first axis, where there are any."""
    if values is None:
        return None
    columns = values.reshape(len(values), -1)
    total = np.empty((groups, columns.shape[1]))
    for j in range(columns.shape[1]):
        total[:, j] = np.bincount(place, columns[:, j], minlength=groups)
    return total.reshape(groups, *values.shape[1:])


def _keys(rows: FloatArray) -> UIntArray:
    """One number per row, equal for equal rows."""
    sizes = rows.max(axis=0) + 1.0
    keys = np.zeros(len(rows), dtype=np.uint64)
    if np.prod(sizes) < 2.0**63 and np.array_equal(rows, np.rint(rows)):
        for column, size in zip(rows.T, sizes, strict=True):
            keys = keys * np.uint64(size) + column.astype(np.uint64)
        return keys
    # + 0.0: minus zero becomes zero
    for bits in np.ascontiguousarray((rows + 0.0).T).view(np.uint64):
        keys = (keys ^ bits) * np.uint64(0x9E3779B97F4A7C15)
        keys ^= keys >> np.uint64(29)
    return keys
