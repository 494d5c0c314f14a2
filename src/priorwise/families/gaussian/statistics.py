"""Per-task pulls, sums and squares: all that a normal prior's likelihood and moments read of a
log.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.runs import Run, Trajectory
from priorwise.core.statistics import (
    PerTask,
    Steps,
    arms_played,
    by_arm,
    counts,
    played,
    table,
    trajectory,
    zero_where_unpulled,
)
from priorwise.core.types import FloatArray
from priorwise.families.gaussian.groups import GaussianGroups, joint_unit


@final
@dataclass(frozen=True, eq=False, init=False, repr=False)
class GaussianStatistics(PerTask):
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

    Notes
    -----
    ``pulls`` are whole numbers, kept as floats: :meth:`from_estimates` stores precisions there, in
    units of a pull. ``counted`` tells the two apart.

    Examples
    --------
    >>> a = GaussianStatistics(pulls=[[2, 1]], sums=[[1.0, 0.5]])
    >>> (a + a).tasks, a.arms
    (2, 2)

    """

    pulls: FloatArray
    sums: FloatArray
    squares: FloatArray | None
    _unit: float | None = field(repr=False)

    def __init__(self, pulls: ArrayLike, sums: ArrayLike, squares: ArrayLike | None = None) -> None:
        """Check and freeze the arrays."""
        n = counts("pulls", pulls, (None, None))
        s = zero_where_unpulled("sums", table("sums", sums, n.shape), n)
        q = None
        if squares is not None:
            q = zero_where_unpulled("squares", table("squares", squares, n.shape), n)
            short = q * n < s * s * (1.0 - 1e-9) - 1e-300
            if short.any():
                task, arm = np.argwhere(short)[0]
                raise ValueError(
                    f"squares must be at least sums^2 / pulls, but task {task} has "
                    f"{q[task, arm]:g} on arm {arm} "
                    f"with a sum of {s[task, arm]:g} over {n[task, arm]:g} pulls; pass sums of "
                    "squared rewards"
                )
        self._set(n, s, q, unit=None)

    def _set(
        self, pulls: FloatArray, sums: FloatArray, squares: FloatArray | None, *, unit: float | None
    ) -> None:
        object.__setattr__(self, "pulls", pulls)
        object.__setattr__(self, "sums", sums)
        object.__setattr__(self, "squares", squares)
        object.__setattr__(self, "_unit", unit)

    @classmethod
    def _unchecked(
        cls, pulls: FloatArray, sums: FloatArray, squares: FloatArray | None, *, unit: float | None
    ) -> Self:
        made = object.__new__(cls)
        for array in (pulls, sums, squares):
            if array is not None:
                array.setflags(write=False)
        made._set(pulls, sums, squares, unit=unit)
        return made

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.pulls.shape[1]

    @property
    def counted(self) -> bool:
        """Whether ``pulls`` are numbers of pulls; otherwise they are precisions of
        :meth:`from_estimates`.
        """
        return self._unit is None

    @property
    def unit(self) -> float | None:
        """Variance of a pull in whose unit ``pulls`` are precisions; None if they are numbers of
        pulls.
        """
        return self._unit

    @classmethod
    def from_trajectory(cls, actions: ArrayLike, rewards: ArrayLike, *, arms: int) -> Self:
        """Sum up actions and rewards ``(task, step)``."""
        chosen, earned = trajectory(actions, rewards, arms)
        columns = (by_arm(chosen, weights, arms) for weights in (None, earned, earned * earned))
        return cls._unchecked(*columns, unit=None)

    @classmethod
    def from_run(cls, run: Run, *, arms: int, steps: Steps = None) -> Self:
        """Sum up a kept run, or only its first ``steps`` pulls, or a slice of them."""
        actions, rewards, _ = played(run, steps)
        return cls.from_trajectory(actions, rewards, arms=arms)

    @classmethod
    def from_estimates(
        cls, estimates: ArrayLike, std_errors: ArrayLike, *, noise_var: float = 1.0
    ) -> Self:
        """Take estimates of each task's means that come with their standard errors, as in a
        meta-analysis.

        An estimate with standard error e says as much as ``noise_var / e^2`` pulls with that mean
        reward; these precisions need not be whole. Estimators and priors must hold the same
        ``noise_var``, which is checked; estimates cannot tell what it is.

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
            raise ValueError(
                f"estimates and std_errors must both be (task,) or (task, arm), got {y.shape} and "
                f"{e.shape}"
            )
        given = ~np.isnan(y)
        y, e = (np.where(given, each, 1.0).reshape(len(y), -1) for each in (y, e))
        y, e = (
            table("estimates", y, (None, None)),
            validation.positive("std_errors", table("std_errors", e, (None, None))),
        )
        unit = validation.number("noise_var", noise_var)
        if unit <= 0.0:
            raise ValueError(
                f"noise_var must be positive, got {unit:g}; it is the unit of precision, 1 if "
                "nothing else is meant"
            )
        pulls = np.where(given.reshape(y.shape), unit / e**2, 0.0)
        return cls._unchecked(
            validation.matrix("noise_var / std_errors^2", pulls), pulls * y, None, unit=unit
        )

    @classmethod
    def of(cls, data: Any, *, arms: int | None = None) -> Self:
        """Return statistics as they are, and those of a kept run.

        A run does not say how many arms there were; without ``arms`` it is taken to be the largest
        action plus 1.
        """
        if isinstance(data, Run):
            return cls.from_run(data, arms=int(data.actions.max()) + 1 if arms is None else arms)
        if not isinstance(data, cls):
            raise TypeError(f"data must be a kept Run or {cls.__name__}, got {type(data).__name__}")
        if arms is not None and data.arms != arms:
            raise ValueError(f"the statistics have {data.arms} arms, but arms={arms} was asked for")
        return data

    def within(self) -> tuple[float, float]:
        """Sum of squared deviations of the rewards from their task's and arm's mean, and its
        degrees of freedom.
        """
        if self.squares is None:
            raise ValueError(
                "the noise cannot be estimated without squares: give sums of squared rewards, or "
                "pass noise_var=..."
            )
        pulled = np.maximum(self.pulls, 1.0)
        # large offsets round away the rest
        centred = self.shifted(self.sums.sum(axis=0) / np.maximum(self.pulls.sum(axis=0), 1.0))
        assert centred.squares is not None
        left = np.maximum(centred.squares - centred.sums**2 / pulled, 0.0)
        return float(left.sum()), float(np.maximum(self.pulls - 1.0, 0.0).sum())

    def without_squares(self) -> Self:
        """Return the same without the sums of squares."""
        return self._unchecked(self.pulls, self.sums, None, unit=self.unit)

    def shifted(self, by: float | FloatArray) -> Self:
        """Return the statistics of the rewards minus a number, or minus one for each arm."""
        by = validation.per_arm("by", by, self.arms)
        squares = (
            None
            if self.squares is None
            else np.maximum(self.squares - 2.0 * by * self.sums + by**2 * self.pulls, 0.0)
        )
        return self._unchecked(self.pulls, self.sums - by * self.pulls, squares, unit=self.unit)

    def grouped(self) -> GaussianGroups:
        """Merge the tasks with equal pull vectors, which loses nothing of the likelihood."""
        return GaussianGroups.of(self)

    def _join(self, other: Any) -> Self:
        unit = joint_unit(self.unit, other.unit)
        joined = super()._join(other)
        return self._unchecked(joined.pulls, joined.sums, joined.squares, unit=unit)

    def _with(self, columns: dict[str, Any]) -> Self:
        return self._unchecked(**columns, unit=self.unit)


def read(prior: Any, played: Trajectory) -> GaussianStatistics:
    """Sum up played tasks, for as many arms as a prior has."""
    arms = arms_played(prior, played.actions)
    return GaussianStatistics.from_trajectory(played.actions, played.rewards, arms=arms)
