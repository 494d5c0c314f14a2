"""Log likelihood of arms with any covariance, by expectation propagation.

At its fixed point the approximate log likelihood depends on the prior as if each arm had shown
``y = b / t`` with normal noise of variance ``1 / t``: with ``V = S + T^-1`` and ``g = V^-1 (y -
m)``, which is b minus t times the task's own mean, its derivatives are g in the mean and ``(g g' -
V^-1) / 2`` in the covariance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.families.logit_normal.likelihood.objective import FURTHEST, TOLERANCE, WIDE, Point
from priorwise.families.logit_normal.prior import packed
from priorwise.families.logit_normal.tilted import rates
from priorwise.fitting.newton import Climb, climb

LEAST_LOG: Final = float(np.log(1e-3))
MOST_LOG: Final = float(np.log(8.0))


@final
@dataclass(frozen=True, eq=False)
class Propagated:
    """Factors of tasks, mean and root of the covariance of their log odds, and log likelihoods."""

    precision: FloatArray  # (task, arm)
    shift: FloatArray  # (task, arm)
    mean: FloatArray  # (task, arm)
    root: FloatArray  # (task, arm, arm)
    values: FloatArray  # (task,)


def propagated_tasks(
    s: FloatArray,
    n: FloatArray,
    mean: FloatArray,
    root: FloatArray,
    offsets: FloatArray | None = None,
) -> Propagated:
    """Find the factors for successes and pulls ``(task, arm)`` under ``eta ~ N(mean, root
    root')``; ``offsets`` ``(task, arm)`` are added to the mean.
    """
    from priorwise.families.logit_normal.likelihood.joint_kernel import propagate_tasks

    s, n = (np.ascontiguousarray(each, dtype=np.float64) for each in (s, n))
    precision, shift, there = (np.empty(s.shape) for _ in range(3))
    out = Propagated(precision, shift, there, np.empty((*s.shape, s.shape[1])), np.empty(len(s)))
    more = np.zeros((0, s.shape[1])) if offsets is None else np.ascontiguousarray(offsets)
    propagate_tasks(*packed(mean, root), more, s, n, precision, shift, there, out.root, out.values)
    return out


@final
@dataclass(frozen=True, eq=False)
class JointObjective:
    """Log likelihood of arms with any covariance plus a weak penalty: ``r / 2`` times ``log p (1 -
    p)`` of each mean's rate, ``log det S - 2 sum log(1 + S_aa)``, and ``-(b / 2)^2`` of effects b.

    Coordinates are the mean, the root of the covariance row by row, its diagonal in logarithms, and
    the effects of the tasks' features z on the mean of each arm.
    """

    s: FloatArray
    n: FloatArray
    regulariser: float
    z: FloatArray | None = None  # (task, feature)

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.s.shape[1]

    @property
    def size(self) -> int:
        """Coordinates of mean and root."""
        return self.arms + self.arms * (self.arms + 1) // 2

    def effects(self, x: FloatArray) -> FloatArray:
        """Effects of the tasks' features, ``(arm, feature)``."""
        return x[self.size :].reshape(self.arms, -1)

    def at(self, x: FloatArray) -> Point:
        """Value, gradient and information."""
        arms, z, b = self.arms, self.z, self.effects(x)
        mean, root = law(x[: self.size], arms)
        found = propagated_tasks(self.s, self.n, mean, root, None if z is None else z @ b.T)
        t, values = found.precision, found.values
        g = found.shift - t * found.mean
        cov = found.root @ found.root.transpose(0, 2, 1)
        inverse = -t[:, :, None] * cov * t[:, None, :]  # V^-1 = T - T cov T
        inverse[:, np.arange(arms), np.arange(arms)] += t
        slope = (g[:, :, None] * g[:, None, :] - inverse) / 2.0
        moved = [] if z is None else [(g[:, :, None] * z[:, None, :]).reshape(len(g), -1)]
        scores = np.concatenate([g, self._to_root(slope, root), *moved], axis=1)
        r, cov = self.regulariser / 2.0, root @ root.T
        p, v = rates(mean), np.diag(cov)
        penalty = np.log(p * (1.0 - p)).sum() + 2.0 * np.log(np.diag(root)).sum()
        penalty -= 2.0 * np.log1p(v).sum()
        pull = np.linalg.inv(cov) - 2.0 * np.diag(1.0 / (1.0 + v))
        penalty -= (b**2).sum() / WIDE
        weak = np.concatenate(
            [1.0 - 2.0 * p, self._to_root(pull[None], root)[0], -2.0 / WIDE * b.ravel()]
        )
        likelihood = float(values.sum())
        # about that of the penalty
        held = np.concatenate(
            [2.0 * p * (1.0 - p), np.ones(self.size - arms), np.full(b.size, 2.0 / WIDE)]
        )
        information = scores.T @ scores + r * np.diag(held)
        return Point(
            x,
            likelihood + r * float(penalty),
            scores.sum(axis=0) + r * weak,
            information,
            likelihood,
        )

    def _to_root(self, slope: FloatArray, root: FloatArray) -> FloatArray:
        """Derivatives in the coordinates of the root, from those in the covariance."""
        by_root = 2.0 * slope @ root
        diagonal = np.arange(self.arms)
        by_root[:, diagonal, diagonal] *= np.diag(root)
        return by_root[:, *np.tril_indices(self.arms)]

    def climbed(self, start: FloatArray) -> Climb[Point]:
        """Climb from somewhere."""
        low, high = self.ends()
        how: Any = {"limit": 50 if self.z is None else 200, "low": low, "high": high}
        return climb(self.at, start, tolerance=TOLERANCE, longest=1.0, **how)

    def ends(self) -> tuple[FloatArray, FloatArray]:
        """Ends of the range of the coordinates."""
        rows, columns = np.tril_indices(self.arms)
        low = np.where(rows == columns, LEAST_LOG, -8.0)
        high = np.where(rows == columns, MOST_LOG, 8.0)
        ones = np.full(self.arms, FURTHEST)
        wide = np.full(0 if self.z is None else self.arms * self.z.shape[1], FURTHEST)
        return np.concatenate([-ones, low, -wide]), np.concatenate([ones, high, wide])


def law(x: FloatArray, arms: int) -> tuple[FloatArray, FloatArray]:
    """Mean and root of the covariance."""
    root = np.zeros((arms, arms))
    root[np.tril_indices(arms)] = x[arms:]
    root[np.arange(arms), np.arange(arms)] = np.exp(np.diag(root))
    return x[:arms], root


def coordinates(mean: FloatArray, cov: FloatArray) -> FloatArray:
    """Where a law stands."""
    arms = len(mean)
    root = np.asarray(np.linalg.cholesky(cov + 1e-9 * np.eye(arms)), dtype=np.float64)
    root[np.arange(arms), np.arange(arms)] = np.log(np.diag(root))
    return np.append(mean, root[np.tril_indices(arms)])


def to_covariance(x: FloatArray, arms: int) -> FloatArray:
    """Derivatives of mean and covariance, row by row, in the coordinates."""
    _, root = law(x, arms)
    out = np.zeros((arms + arms * arms, len(x)))
    out[:arms, :arms] = np.eye(arms)
    for k, (i, j) in enumerate(zip(*np.tril_indices(arms), strict=True)):
        step = np.zeros((arms, arms))
        step[i, j] = root[i, i] if i == j else 1.0
        moved = step @ root.T
        out[arms:, arms + k] = (moved + moved.T).ravel()
    return out
