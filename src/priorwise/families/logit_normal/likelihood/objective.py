"""Log likelihood of logit-normal priors in coordinates without constraints, and its maximum.

Exchangeable arms have the mean and the standard deviations of level and deviation as coordinates,
exact up to quadrature (``story``); independent arms are such arms without a level, one by one; arms
with any covariance have the mean and the logarithm of the covariance's root (``joint``). The
information is that of the scores of the tasks, ``sum score score'``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.families.logit_normal.likelihood.story import Rows, evaluated
from priorwise.families.logit_normal.tilted import rates
from priorwise.fitting.newton import Climb, Spot, climb, positive_root

FURTHEST: Final = 16.0  # log odds of the mean
LEAST_STD: Final = 1e-3
MOST_STD: Final = 8.0
FAR: Final = 6.0
"""Standard errors beyond which the weak penalty cannot have moved the maximum off an edge."""
WIDE: Final = 4.0
"""Variance of the weak penalty on an effect of a standardised feature."""
TOLERANCE: Final = 1e-8  # rise of the log likelihood that a step has to promise
NEAR: Final = 1e-2  # the same, where a few steps by the observed information are left


@final
@dataclass(frozen=True, eq=False)
class Point:
    """The objective at some coordinates: see :class:`priorwise.fitting.newton.Place`."""

    x: FloatArray
    value: float
    gradient: FloatArray
    scored: FloatArray
    log_likelihood: float

    def information(self) -> FloatArray:
        """That of the scores."""
        return self.scored


@final
@dataclass(frozen=True, eq=False)
class StoryObjective:
    """Log likelihood of exchangeable arms plus a weak penalty that keeps it off its edges.

    ``free`` are the coordinates that move, of mean, shared and own standard deviation; others are
    0. After them stand the effects b of the tasks' features z, whose mean is ``mean + z'b``. The
    penalty is ``r / 2`` times ``log p (1 - p)`` of the mean's rate, for each standard deviation
    ``log v / (1 + v)^2`` of its square, and for each effect ``-(b / 2)^2``.
    """

    rows: Rows
    regulariser: float
    free: tuple[int, ...] = (0, 1, 2)

    def whole(self, x: FloatArray) -> FloatArray:
        """Mean, shared and own standard deviation."""
        at = np.zeros(3)
        at[list(self.free)] = x[: len(self.free)]
        return at

    def effects(self, x: FloatArray) -> FloatArray:
        """Effects of the tasks' features."""
        return x[len(self.free) :]

    def at(self, x: FloatArray) -> Point:
        """Value, gradient and information."""
        free, weights = list(self.free), self.rows.tasks
        at, z, b = self.whole(x), self.rows.z, self.effects(x)
        offsets = None if z is None else z @ b
        values, scores = evaluated(self.rows.s, self.rows.n, at, offsets=offsets)
        moved = [] if z is None else [scores[:, :1] * z]
        scores = np.concatenate([scores[:, free], *moved], axis=1)
        likelihood, weak = float(weights @ values), self.regulariser / WIDE
        penalty, slope, curve = _penalty(at, self.regulariser)
        gradient = weights @ scores + np.append(slope[free], -weak * b)
        held = np.append(curve[free], np.full(b.size, weak))
        information = (scores * weights[:, None]).T @ scores + np.diag(held)
        value = likelihood + float(penalty[free].sum()) - 0.5 * weak * float(b @ b)
        return Point(x, value, gradient, information, likelihood)

    def climbed(self, start: FloatArray) -> Climb[Point]:
        """Climb from somewhere; with features, in the end by the observed information, as that of
        the scores is slow to distinguish many coordinates.
        """
        low, high = self.ends()
        how: Any = {"limit": 100, "longest": 1.0, "low": low, "high": high}
        if self.rows.z is None:
            return climb(self.at, start, tolerance=TOLERANCE, **how)
        near = climb(self.at, start, tolerance=NEAR, **how)
        found = climb(self._curved, near.place.x, tolerance=TOLERANCE, **how)
        return Climb(self.at(found.place.x), found.converged, near.values + found.values[1:])

    def _curved(self, x: FloatArray) -> Spot:
        here = self.at(x)
        return Spot(x, here.value, lambda x: (here.gradient, self.curvature(x)))

    def ends(self) -> tuple[FloatArray, FloatArray]:
        """Ends of the range of the free coordinates."""
        free, wide = list(self.free), np.full(self.rows.features, FURTHEST)
        low = np.array([-FURTHEST, LEAST_STD, LEAST_STD])
        high = np.array([FURTHEST, MOST_STD, MOST_STD])
        return np.append(low[free], -wide), np.append(high[free], wide)

    def well_inside(self, x: FloatArray, information: FloatArray) -> bool:
        """Whether all ends of the range are at least :data:`FAR` standard errors away."""
        root, known = positive_root(information)
        low, high = self.ends()
        far = FAR * np.sqrt((root**2).sum(axis=1))
        return known and bool(((x - far > low) & (x + far < high)).all())

    def curvature(self, x: FloatArray) -> FloatArray:
        """Observed information, from differences of the gradient."""
        size = len(x)
        out, of = np.empty((size, size)), [*self.free, *[0] * self.rows.features]
        for k, step in enumerate(1e-3 * np.maximum(np.abs(x), 0.05)):
            move = np.zeros(size)
            move[k] = min(step, 0.5 * abs(x[k])) if of[k] else step
            out[k] = -(self.at(x + move).gradient - self.at(x - move).gradient) / (2.0 * move[k])
        return (out + out.T) / 2.0


def _penalty(at: FloatArray, r: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Penalty of each coordinate, its derivative, and minus the second one, where that bends
    down.
    """
    p, std = float(rates(at[:1])[0]), np.maximum(at[1:], 1e-9)
    v = std * std
    value = np.append(np.log(max(p * (1.0 - p), 1e-300)), np.log(v) - 2.0 * np.log1p(v))
    slope = np.append(1.0 - 2.0 * p, 2.0 / std - 4.0 * std / (1.0 + v))
    curve = np.append(2.0 * p * (1.0 - p), 2.0 / v)
    return r / 2.0 * value, r / 2.0 * slope, r / 2.0 * curve
