"""What the ascent reads: groups of tasks, shifted and scaled to numbers of order one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np

from priorwise.core.types import BoolArray, FloatArray
from priorwise.families.gaussian.groups import GaussianGroups
from priorwise.families.gaussian.statistics import GaussianStatistics

WORTH_GROUPING: Final = 1024
"""Tasks from which merging those with equal pulls pays."""


@dataclass(frozen=True, eq=False)
class GaussianData:
    """Mean rewards ``y`` by group, with rewards replaced by ``(r - shift) / scale``.

    ``means`` and ``scatter`` are the mean and the sum of squared deviations of ``y`` over the tasks
    of a group. Of the rewards around their task's mean it keeps, for each arm, the sum of squares
    and their degrees of freedom.
    """

    pulls: FloatArray  # (group, arm)
    tasks: FloatArray  # (group,)
    means: FloatArray  # (group, arm)
    scatter: FloatArray  # (group, arm, arm)
    within: FloatArray | None  # (arm,)
    freedom: FloatArray  # (arm,)
    total: int
    left_out: int
    shift: float
    scale: float
    # variance of a pull in whose unit ``pulls`` are precisions; None if they are numbers of pulls
    unit: float | None
    lossy: bool  # whether rounding of large squares is a good part of what remains around the means

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.pulls.shape[1]

    @property
    def pulled(self) -> FloatArray:
        """Number of tasks that pulled each arm."""
        return np.asarray(self.tasks @ (self.pulls > 0.0))

    @classmethod
    def of(cls, data: Any, arms: int | None) -> Self:
        """Prepare a kept run, statistics or groups."""
        if isinstance(data, GaussianGroups):
            return cls._of_groups(data, arms)
        statistics = GaussianStatistics.of(data, arms=arms)
        shift = _mean_reward(statistics.sums, statistics.pulls, 1.0)
        own = _own_rewards(statistics.sums, statistics.pulls, 1.0, shift)
        centred = statistics.shifted(own)
        lossy = _lossy(statistics.squares, centred.squares, statistics.pulls.sum(axis=0))
        if len(centred) > WORTH_GROUPING:
            g = centred.grouped()
            return cls._standardise(
                g.pulls,
                g.tasks,
                g.sums,
                g.products,
                g.squares,
                shift,
                own,
                unit=g.unit,
                lossy=lossy,
            )
        n, s, q = centred.pulls, centred.sums, centred.squares
        return cls._standardise(
            n, np.ones(len(n)), s, None, q, shift, own, unit=centred.unit, lossy=lossy
        )

    @classmethod
    def _of_groups(cls, groups: GaussianGroups, arms: int | None) -> Self:
        if arms is not None and groups.arms != arms:
            raise ValueError(f"the groups have {groups.arms} arms, but arms={arms} was asked for")
        n, s, tasks = groups.pulls, groups.sums, groups.tasks[:, None]
        shift = _mean_reward(s, n, tasks)
        own = _own_rewards(s, n, tasks, shift)
        crossed = s[:, :, None] * (own * n)[:, None, :]
        products = groups.products - crossed - crossed.transpose(0, 2, 1)
        products += tasks[:, :, None] * (own * n)[:, :, None] * (own * n)[:, None, :]
        squares = (
            None if groups.squares is None else groups.squares - 2.0 * own * s + own**2 * n * tasks
        )
        lossy = _lossy(groups.squares, squares, (tasks * n).sum(axis=0))
        lossy |= _lossy(
            _diagonals(groups.products), _diagonals(products), (tasks * (n > 0.0)).sum(axis=0)
        )
        sums = s - own * n * tasks
        return cls._standardise(
            n, groups.tasks, sums, products, squares, shift, own, unit=groups.unit, lossy=lossy
        )

    @classmethod
    def _standardise(
        cls,
        n: FloatArray,
        tasks: FloatArray,
        sums: FloatArray,
        products: FloatArray | None,
        squares: FloatArray | None,
        shift: float,
        own: FloatArray,  # (arm,): what was subtracted from the rewards of each arm
        *,
        unit: float | None,
        lossy: bool,
    ) -> Self:
        with np.errstate(divide="ignore"):
            share = np.where(n > 0.0, 1.0 / n, 0.0)  # y = share * s
        means = sums * share / tasks[:, None]
        if products is None:
            scatter = np.zeros((*n.shape, n.shape[1]))
            second = means**2
        else:
            second = np.einsum("gaa->ga", products) * share**2
            scatter = (
                products * share[:, :, None] * share[:, None, :]
                - tasks[:, None, None] * means[:, :, None] * means[:, None, :]
            )
            scatter[tasks == 1.0] = 0.0
        within = None
        if squares is not None:
            within = np.maximum((squares - second * n).sum(axis=0), 0.0)
        means = np.where(n > 0.0, means + (own - shift), 0.0)
        moment = float(tasks @ (means**2).sum(axis=1) + np.einsum("gaa->", scatter))
        scale = float(np.sqrt(moment / float((tasks @ (n > 0.0)).sum())))
        if within is not None:
            scale = scale or float(np.sqrt(within.sum() / max(float((tasks @ n).sum()), 1.0)))
        scale = scale if scale > 1e-150 else 1.0
        used = n.any(axis=1)
        if not used.all():
            n, means, scatter = n[used], means[used], scatter[used]
        return cls(
            pulls=n.copy(),
            tasks=tasks[used],
            means=means / scale,
            scatter=np.ascontiguousarray(scatter / scale**2),
            within=None if within is None else within / scale**2,
            freedom=tasks[used] @ np.maximum(n - 1.0, 0.0)
            if unit is None
            else np.zeros(n.shape[1]),
            total=round(float(tasks[used].sum())),
            left_out=round(float(tasks[~used].sum())),
            shift=shift,
            scale=scale,
            unit=unit,
            lossy=lossy,
        )

    def with_pseudo_tasks(
        self, tasks: float, pulls: FloatArray, mean: FloatArray, cov: FloatArray
    ) -> Self:
        """Add a group of so many tasks, pulled so often, whose mean rewards have this mean and
        covariance.
        """
        return type(self)(
            **{
                **vars(self),
                "pulls": np.vstack([self.pulls, pulls]),
                "tasks": np.append(self.tasks, tasks),
                "means": np.vstack([self.means, mean]),
                "scatter": np.concatenate([self.scatter, tasks * cov[None]]),
            }
        )

    def of_arms(self, active: BoolArray) -> Self:
        """Keep some of the arms; the others must not have been pulled."""
        kept = np.flatnonzero(active)
        return type(self)(
            **{
                **vars(self),
                "pulls": np.ascontiguousarray(self.pulls[:, kept]),
                "means": np.ascontiguousarray(self.means[:, kept]),
                "scatter": np.ascontiguousarray(self.scatter[:, kept][:, :, kept]),
                "within": None if self.within is None else self.within[kept],
                "freedom": self.freedom[kept],
            }
        )

    def log_constant(self) -> float:
        """Return what the log density of the rewards has beyond that of their scaled means and of
        what is around them.
        """
        seen = self.pulls > 0.0
        observed = float(self.tasks @ seen.sum(axis=1))
        if self.within is None:
            return -observed * float(np.log(self.scale))
        log_pulls = float(self.tasks @ np.log(np.where(seen, self.pulls, 1.0)).sum(axis=1))
        return -(observed + float(self.freedom.sum())) * float(np.log(self.scale)) - 0.5 * log_pulls


def _mean_reward(sums: FloatArray, pulls: FloatArray, tasks: FloatArray | float) -> float:
    total = float((pulls * tasks).sum())
    if total == 0.0:
        raise ValueError("no task has a pull: there is nothing to fit")
    return float(sums.sum()) / total


def _own_rewards(
    sums: FloatArray, pulls: FloatArray, tasks: FloatArray | float, otherwise: float
) -> FloatArray:
    """Mean reward of each arm, ``(arm,)``; that of all for arms never pulled."""
    total = (pulls * tasks).sum(axis=0)
    return np.where(total > 0.0, sums.sum(axis=0) / np.where(total > 0.0, total, 1.0), otherwise)


def _diagonals(products: FloatArray) -> FloatArray:
    return np.einsum("gaa->ga", products)


def _lossy(squares: FloatArray | None, centred: FloatArray | None, counts: FloatArray) -> bool:
    """Whether rounding of sums of so many squares exceeds, for some arm, a twentieth of what
    centring leaves of all of them.
    """
    if squares is None or centred is None:
        return False
    rounding = np.finfo(np.float64).eps * squares.sum(axis=0)
    usual = max(float(centred.sum()), 0.0) / float(counts.sum())
    return bool((rounding > 0.05 * usual * counts)[counts > 1.0].any())
