"""What the marginal likelihood reads of tasks: groups of them with one design, in units of order
one.

Arms are features of length one: a pull shows one weight. A task's features are turned so that its
weights are shown separately too (see ``kernel``), and arms and features meet the same formulas.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Final, NamedTuple, Self, final

import numpy as np

from priorwise.core.types import BoolArray, FloatArray, IntArray
from priorwise.families.normal.likelihood.kernel import evaluate, separate

BLOCK: Final = 2**19
"""Numbers of a group's matrices at a time: for bounded memory, in the processor's cache, and so few
that a matrix product is not worth a second thread.
"""


@final
@dataclass(frozen=True, eq=False)
class Units:
    """Weights are ``centre + weight * (what is fitted)``, rewards in units of ``reward``."""

    centre: FloatArray  # (d,)
    weight: FloatArray  # (d,)
    reward: float

    def of_arms(self, active: BoolArray) -> Units:
        """Keep some of the arms."""
        return Units(self.centre[active], self.weight[active], self.reward)


@final
@dataclass(frozen=True, eq=False)
class Parameters:
    """Mean, covariance and noise: of a prior, or in the units of a fit."""

    mean: FloatArray  # (d,)
    cov: FloatArray  # (d, d)
    noise: FloatArray  # (noise,): one for each arm, or one

    def out_of(self, units: Units) -> Parameters:
        """Return to the units of the rewards."""
        mean, cov = units.centre + units.weight * self.mean, np.outer(units.weight, units.weight)
        return Parameters(mean, self.cov * cov, self.noise * units.reward**2)

    def into(self, units: Units) -> Parameters:
        """Go to the units of the fit."""
        mean, cov = (self.mean - units.centre) / units.weight, np.outer(units.weight, units.weight)
        return Parameters(mean, self.cov / cov, self.noise / units.reward**2)


class Curvature(NamedTuple):
    """Sums that make up the information about mean, covariance and noise."""

    place: IntArray  # (d, d): where entries of symmetric matrices stand in their lower triangle
    pairs: FloatArray  # (pair, pair): sum P Q
    squares: FloatArray  # (pair, pair): sum P P / 2
    across: FloatArray  # (pair, d): sum P g
    with_mean: FloatArray  # (noise, d)
    with_cov: FloatArray  # (noise, d, d)
    with_noise: FloatArray  # (noise, noise)
    of_noise: FloatArray  # (noise,), expected


@final
@dataclass(frozen=True, eq=False)
class Sums:
    """The log likelihood over groups of tasks, with its derivatives in the parameters.

    With ``P = X'V^-1 X`` and ``g = X'V^-1 (r - X m)`` of a task: the slope in the mean is ``sum
    g``, that in the covariance ``sum (g g' - P) / 2``.
    """

    values: FloatArray  # (group,): of mean rewards
    around: float  # of the rewards around them
    mean: FloatArray  # (d,)
    cov: FloatArray  # (d, d)
    noise: FloatArray  # (noise,)
    precision: FloatArray  # (d, d): sum P, the information about the mean
    information: Curvature | None  # if asked for

    @property
    def value(self) -> float:
        """Log likelihood of all groups."""
        return float(self.values.sum()) + self.around


@final
@dataclass(frozen=True, eq=False)
class NormalTasks:
    """Mean rewards ``y`` by group of tasks with one design, and what is left of the rewards around
    them.

    ``means`` and ``scatter`` are the mean and the sum of squared deviations of ``y`` over the tasks
    of a group; only the last groups have scatter. For each noise, ``within`` is the sum of squares
    around the task's means, ``freedom`` its degrees of freedom; without squares ``within`` is None.
    """

    turn: FloatArray  # (group, d, d); no group for arms
    pulls: FloatArray  # (group, d)
    tasks: FloatArray  # (group,)
    means: FloatArray  # (group, d)
    scatter: FloatArray  # (last groups, d, d)
    within: FloatArray | None  # (noise,)
    freedom: FloatArray  # (noise,)

    @classmethod
    def of_features(
        cls, gram: FloatArray, moments: FloatArray, squares: FloatArray, pulls: FloatArray
    ) -> Self:
        """From normal equations, one task per group; all pulls have one noise."""
        turn, own, means = np.empty_like(gram), np.empty_like(moments), np.empty_like(moments)
        separate(np.ascontiguousarray(gram), np.ascontiguousarray(moments), turn, own, means)
        left = np.maximum(squares - (own * means**2).sum(axis=1), 0.0)
        freedom = np.array([float((pulls - (own > 0.0).sum(axis=1)).sum())])
        scatter, within = np.empty((0, *gram.shape[1:])), np.array([left.sum()])
        return cls(turn, own, np.ones(len(own)), means, scatter, within, freedom)

    @property
    def dim(self) -> int:
        """Number of arms or features."""
        return self.pulls.shape[1]

    @property
    def which(self) -> IntArray:
        """Which noise each direction has."""
        return np.arange(self.dim) if len(self.turn) == 0 else np.zeros(self.dim, dtype=np.int64)

    def of_arms(self, active: BoolArray) -> Self:
        """Keep some of the arms; the others must not have been pulled."""
        return replace(
            self,
            pulls=np.ascontiguousarray(self.pulls[:, active]),
            means=np.ascontiguousarray(self.means[:, active]),
            scatter=np.ascontiguousarray(self.scatter[:, active][:, :, active]),
            within=None if self.within is None else self.within[active],
            freedom=self.freedom[active],
        )

    def sums(self, at: Parameters, *, noisy: bool = False, curved: bool = False) -> Sums:
        """Log likelihood and its derivatives: ``noisy`` for those in the noise too, ``curved`` for
        the information.

        Minus the second derivative in directions E and F of the covariance is ``sum tr(Q E P F)``,
        ``Q = g g' - P / 2``; in one of them and the mean's e, ``sum e'P E g``. The rewards around
        their task's means have the density ``(2 pi v)^(-f/2) exp(-within / 2v)``.
        """
        d, groups, kinds = self.dim, len(self.tasks), len(at.noise)
        place = _places(d)
        size = d * (d + 1) // 2
        values, which, none = np.empty(groups), self.which, np.empty((0, d, d))
        noise, with_noise = np.zeros(kinds), np.zeros((kinds, kinds))
        with_mean, with_cov = np.zeros((kinds, d)), np.zeros((kinds, d, d))
        mean, precision, second = np.zeros(d), np.zeros(size), np.zeros(size)
        pairs, squares, across = (np.zeros((size, width)) for width in (size, size, d))
        step = max(BLOCK // (size * (size if curved else 1)) // 64, 1) * 64
        plain = groups - len(self.scatter)
        for first in range(0, groups, step):
            block = slice(first, min(first + step, groups))
            scores = np.empty((block.stop - first, d))
            P, W = np.empty((2, block.stop - first, size))
            evaluate(
                self.turn[block] if len(self.turn) else none, self.pulls[block], self.tasks[block],
                self.means[block], self.scatter[max(first - plain, 0) : max(block.stop - plain, 0)],
                at.mean, at.cov, at.noise, which, int(noisy) * (1 + int(curved)), values[block],
                scores, P, W, noise, with_mean, with_cov, with_noise,
            )  # fmt: skip
            mean += scores.sum(axis=0)
            precision += np.einsum("g,gp->p", self.tasks[block], P)
            second += W.sum(axis=0)
            if curved:
                half = 0.5 * self.tasks[block, None] * P
                W -= half  # Q
                pairs += P.T @ W
                squares += P.T @ half
                across += P.T @ scores
        around = 0.0
        if self.within is not None:
            left = self.within / at.noise
            around = -0.5 * float((self.freedom * np.log(2.0 * np.pi * at.noise) + left).sum())
            noise += 0.5 * (left - self.freedom) / at.noise
            with_noise += np.diag((left - 0.5 * self.freedom) / at.noise**2)
        information = None
        if curved:
            of_noise = 0.5 * self.freedom / at.noise**2
            information = Curvature(
                place, pairs, squares, across, with_mean, with_cov, with_noise, of_noise
            )
        cov_slope = 0.5 * (second - precision)[place]
        return Sums(values, around, mean, cov_slope, noise, precision[place], information)

    @property
    def entries(self) -> float:
        """Number of mean rewards, and of what is left around them if that is known."""
        left = 0.0 if self.within is None else float(self.freedom.sum())
        return float(self.tasks @ (self.pulls > 0.0).sum(axis=1)) + left

    @property
    def log_constant(self) -> float:
        """Log density of the rewards less that of their means and of what is around them: ``-log n
        / 2`` for each of the means; 0 without squares.
        """
        if self.within is None:
            return 0.0
        logs = np.log(np.where(self.pulls > 0.0, self.pulls, 1.0))
        return -0.5 * float(self.tasks @ logs.sum(axis=1))


@cache
def _places(dim: int) -> IntArray:
    """Where each entry of a symmetric matrix stands in its lower triangle, ``(dim, dim)``."""
    place = np.zeros((dim, dim), dtype=np.int64)
    rows, columns = np.tril_indices(dim)
    place[rows, columns] = place[columns, rows] = np.arange(len(rows))
    return place
