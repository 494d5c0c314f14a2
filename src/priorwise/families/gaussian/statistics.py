"""Per-task pulls, sums and squares: all that a normal prior's likelihood and moments read of a
log.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.core.types import FloatArray
from priorwise.families.gaussian.groups import GaussianGroups, check_unit, joint_unit, squares_of
from priorwise.fitting.columns import counts, table, zero_where_unpulled
from priorwise.fitting.statistics import PerArm


@final
@dataclass(frozen=True, eq=False, init=False, repr=False)
class GaussianStatistics(PerArm):
    """What each task saw of each arm.

    Parameters
    ----------
    pulls
        How often each arm was pulled, ``(task, arm)``; 0 for an arm that a task did not pull or
        does not have.
    sums
        Sums of the rewards, ``(task, arm)``.
    squares
        Sums of the squared rewards, ``(task, arm)``; needed to estimate the noise.
    unit
        Variance of a pull in whose unit ``pulls`` are precisions, as :meth:`from_estimates` makes
        them; None: they are numbers of pulls.
    names
        Names of the arms.

    Examples
    --------
    >>> a = GaussianStatistics(pulls=[[2, 1]], sums=[[1.0, 0.5]])
    >>> (a + a).tasks, a.arms
    (2, 2)

    """

    family: ClassVar[str] = "gaussian-statistics"
    shared: ClassVar[tuple[str, ...]] = ("unit", "names")

    pulls: FloatArray
    sums: FloatArray
    squares: FloatArray | None
    unit: float | None

    def __init__(
        self,
        pulls: ArrayLike,
        sums: ArrayLike,
        squares: ArrayLike | None = None,
        *,
        unit: float | None = None,
        names: Any = None,
    ) -> None:
        """Check and freeze the arrays."""
        if unit is None:
            n = counts("pulls", pulls, (None, None))
        else:
            n = table("pulls", pulls, (None, None))
            if validation.number("unit", unit) <= 0.0 or n.min() < 0.0:
                raise ArgumentError("unit", "must be positive, and pulls not negative")
        s = zero_where_unpulled("sums", table("sums", sums, n.shape), n)
        q = None
        if squares is not None:
            q = zero_where_unpulled("squares", table("squares", squares, n.shape), n)
            short = q * n < s * s * (1.0 - 1e-9) - 1e-300
            if short.any():
                task, arm = np.argwhere(short)[0]
                raise ArgumentError(
                    "squares",
                    f"must be at least sums^2 / pulls, but task {task} has {q[task, arm]:g} on "
                    f"arm {arm} with a sum of {s[task, arm]:g} over {n[task, arm]:g} pulls",
                    cure="pass sums of squared rewards",
                )
        self._set(pulls=n, sums=s, squares=q, unit=unit, names=validation.names(names, n.shape[1]))

    @property
    def counted(self) -> bool:
        """Whether ``pulls`` are numbers of pulls; otherwise they are precisions of
        :meth:`from_estimates`.
        """
        return self.unit is None

    @classmethod
    def addends(cls, rewards: FloatArray) -> dict[str, Any]:
        """Pulls, sums and sums of squares."""
        return {"pulls": 1.0, "sums": rewards, "squares": rewards * rewards}

    @classmethod
    def from_estimates(
        cls, estimates: ArrayLike, std_errors: ArrayLike, *, noise_var: float = 1.0
    ) -> Self:
        """Take estimates of each task's means that come with their standard errors, as in a
        meta-analysis.

        An estimate with standard error e says as much as ``noise_var / e^2`` pulls with that mean
        reward; these precisions need not be whole. Estimators and priors must hold the same
        ``noise_var``, which is checked; estimates cannot show what it is.

        Parameters
        ----------
        estimates
            One for each task, ``(task,)``, or for each task and arm, ``(task, arm)``; NaN where
            there is none.
        std_errors
            Their standard errors, in the same shape; those of missing estimates are not read.
        noise_var
            Variance of a pull, the unit of precision.

        Examples
        --------
        >>> GaussianStatistics.from_estimates([28.0, 8.0], [15.0, 10.0]).pulls.ravel().tolist()
        [0.0044444444444444444, 0.01]

        """
        y = validation.numbers("estimates", estimates)
        e = validation.numbers("std_errors", std_errors)
        if y.ndim not in (1, 2) or e.shape != y.shape:
            raise ArgumentError(
                "estimates",
                "and std_errors must both be (task,) or (task, arm)",
                got=(y.shape, e.shape),
            )
        if not y.size:
            raise ArgumentError("estimates", "must have at least one task")
        given = ~np.isnan(y)
        y, e = (np.where(given, each, 1.0).reshape(len(y), -1) for each in (y, e))
        y, e = table("estimates", y, (None, None)), table("std_errors", e, (None, None))
        validation.positive("std_errors", e)
        unit = validation.number("noise_var", noise_var)
        if unit <= 0.0:
            raise ArgumentError(
                "noise_var",
                "must be positive",
                got=unit,
                cure="it is the unit of precision, 1 if nothing else is meant",
            )
        pulls = np.where(given.reshape(y.shape), unit / e**2, 0.0)
        return cls(validation.matrix("noise_var / std_errors^2", pulls), pulls * y, unit=unit)

    def within(self) -> tuple[float, float]:
        """Sum of squared deviations of the rewards from their task's and arm's mean, and its
        degrees of freedom.
        """
        # large offsets round away the rest
        centred = self.shifted(self.sums.sum(axis=0) / np.maximum(self.pulls.sum(axis=0), 1.0))
        left = squares_of(centred) - centred.sums**2 / np.maximum(self.pulls, 1.0)
        return float(np.maximum(left, 0.0).sum()), float(np.maximum(self.pulls - 1.0, 0.0).sum())

    def check_noise(self, noise_var: FloatArray, holder: str) -> None:
        """Raise an error for a noise other than that of the estimates."""
        check_unit(self.unit, noise_var, holder)

    def without_squares(self) -> Self:
        """Return the same without the sums of squares."""
        return self._with(self._columns() | {"squares": None})

    def shifted(self, by: float | FloatArray) -> Self:
        """Return the statistics of the rewards minus a number, or minus one for each arm, or for
        each task and arm (or all its arms).
        """
        by = by if np.ndim(by) == 2 else validation.per_arm("by", by, self.arms)
        sums, squares = self.sums - by * self.pulls, self.squares
        if squares is not None:
            squares = np.maximum(squares - 2.0 * by * self.sums + by**2 * self.pulls, 0.0)
        return self._with({"pulls": self.pulls, "sums": sums, "squares": squares})

    def grouped(self) -> GaussianGroups:
        """Merge the tasks with equal pull vectors, which loses nothing of the likelihood."""
        return GaussianGroups.of(self)

    def _agreed(self, name: str, mine: Any, yours: Any) -> Any:
        return joint_unit(mine, yours) if name == "unit" else super()._agreed(name, mine, yours)


def noise_variances(value: ArrayLike) -> FloatArray:
    """Check a known noise: one variance for all arms, or one each."""
    noise = validation.positive("noise_var", validation.numbers("noise_var", value))
    if noise.ndim > 1 or not np.isfinite(noise).all():
        raise ArgumentError(
            "noise_var", "must be one finite variance or one for each arm", got=noise
        )
    return noise
