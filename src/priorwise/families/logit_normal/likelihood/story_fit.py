"""The fit of exchangeable arms, or of one arm: where it ends, on which edges plain likelihood
would, and how sure it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, final

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.families.logit_normal.likelihood.objective import Point, StoryObjective
from priorwise.families.logit_normal.likelihood.story import Rows
from priorwise.families.logit_normal.prior import LogitNormalPrior
from priorwise.fitting.newton import Climb, positive_root

VAGUE: Final = 2.0
"""Largest standard deviation of a plausible prior's coordinates."""
EDGES: Final = ("the mean", "the variance that arms of a task share", "the variance of arms around")
WHY: Final = "the likelihood has no maximum in the interior"


@final
@dataclass(frozen=True, eq=False)
class StoryFit:
    """A fit of exchangeable arms: where it ended, and on which edges plain likelihood would."""

    objective: StoryObjective
    climb: Climb[Point]
    edges: tuple[int, ...]
    at: FloatArray
    information: FloatArray  # (free and effects, the same)

    @classmethod
    def of(
        cls,
        rows: Rows,
        regulariser: float,
        free: tuple[int, ...],
        begin: FloatArray | None,
        effects: FloatArray | None = None,
    ) -> StoryFit:
        """Climb with the penalty, then without it where an edge is near; ``begin`` and ``effects``
        are where to begin.
        """
        if not len(rows.s):
            return cls._unpulled(free, rows.features)
        first = _guess(rows) if begin is None else np.maximum(begin, [-np.inf, 0.05, 0.05])
        objective = StoryObjective(rows, regulariser, free)
        also = np.zeros(rows.features) if effects is None else effects
        found = objective.climbed(np.append(first[list(free)], also))
        information = objective.curvature(found.place.x)
        plain = found.place.x
        if regulariser and not objective.well_inside(plain, information):
            plain = replace(objective, regulariser=0.0).climbed(plain).place.x
        low, high = objective.ends()
        held = (plain <= low * (1.0 + 1e-9)) & (low > 0.0) | (np.abs(plain) >= high)
        at = objective.whole(found.place.x)
        if not regulariser:
            at[1:] = np.where(at[1:] <= 1.001e-3, 0.0, at[1:])
        edges = tuple(np.array(free)[held[: len(free)]].tolist())
        return cls(objective, found, edges, at, information)

    @classmethod
    def _unpulled(cls, free: tuple[int, ...], features: int) -> StoryFit:
        """An arm without pulls: what the penalty alone gives."""
        z = np.zeros((0, features)) if features else None
        empty = Rows(np.zeros((0, 1)), np.zeros((0, 1)), np.zeros(0), z)
        objective = StoryObjective(empty, 1.0, free)
        x = np.append(np.array([0.0, 1.0, 1.0])[list(free)], np.zeros(features))
        place = objective.at(x)
        return cls(objective, Climb(place, True, (0.0,)), free, objective.whole(x), np.eye(len(x)))

    @property
    def log_likelihood(self) -> float:
        """Without the penalty."""
        return self.climb.place.log_likelihood

    @property
    def effects(self) -> FloatArray:
        """Effects of the tasks' features."""
        return self.objective.effects(self.climb.place.x)

    def _spread(self, *, given: bool = False) -> FloatArray:
        """Root of the covariance of all three coordinates, or of that given the effects."""
        free = list(self.objective.free)
        known = self.information[: len(free), : len(free)] if given else self.information
        root, _ = positive_root(known, floor=1e-6)
        out = np.zeros((3, root.shape[1]))
        out[free] = root[: len(free)]
        return out

    def with_effects(self) -> tuple[FloatArray, FloatArray]:
        """Covariance of the effects, and how the coordinates of :meth:`plausible` move with
        them.
        """
        free, size = list(self.objective.free), len(self.objective.free)
        root, _ = positive_root(self.information, floor=1e-6)
        slope = np.zeros((3, len(root) - size))
        given = self._spread(given=True)[free]
        slope[free] = -given @ given.T @ self.information[:size, size:]
        slope[1:] /= np.maximum(self.at[1:, None], 1e-3)
        return root[size:] @ root[size:].T, slope

    def errors(self, to: FloatArray) -> FloatArray:
        """Standard errors by the delta method; NaN on an edge."""
        if np.linalg.eigvalsh(self.information)[0] <= 0.0:
            return np.full(len(to), np.nan)
        errors = np.sqrt(((to @ self._spread()) ** 2).sum(axis=1))
        if self.edges and not self.objective.regulariser:
            errors[1:] = np.nan
        if 0 in self.edges:
            errors[:] = np.nan
        return np.asarray(errors)

    def plausible(self) -> tuple[FloatArray, FloatArray]:
        """Centre and covariance in mean and logarithms of standard deviations, given the
        effects.
        """
        std = np.maximum(self.at[1:], 1e-3)
        unit = np.append(1.0, 1.0 / std)
        root = self._spread(given=True) * unit[:, None]
        law = root @ root.T
        wide = np.sqrt(np.maximum(np.diag(law), 1e-300)) / VAGUE
        shrink = np.maximum(wide, 1.0)
        return np.append(self.at[0], np.log(std)), law / shrink / shrink[:, None]

    def warnings(self, who: str) -> list[str]:
        """One sentence for each edge."""
        lines = []
        for edge in self.edges:
            large = self.climb.place.x.size and edge and self.at[edge] > 1.0
            end = "without end" if edge == 0 else "infinite" if large else "0"
            lines.append(f"{who}the data would rather have {EDGES[edge]} {end}: {WHY}")
        return lines


def _guess(rows: Rows) -> FloatArray:
    """Mean and standard deviations to begin from, from shares with half a success more."""
    seen = rows.n > 0.0
    share = (rows.s + 0.5) / (rows.n + 1.0)
    weight = rows.tasks[:, None] * np.where(seen, rows.n * share * (1.0 - share), 0.0)
    eta = np.log(share / (1.0 - share))
    total = max(float(weight.sum()), 1e-12)
    pooled = float((rows.tasks[:, None] * rows.s).sum() + 0.5)
    pulls = float((rows.tasks[:, None] * rows.n).sum() + 1.0)
    centre = float((weight * eta).sum() / total)
    spread = float((weight * (eta - centre) ** 2).sum() / total)
    mean = float(np.log(pooled / (pulls - pooled)))
    std = float(np.clip(np.sqrt(spread / 2.0), 0.1, 1.5))
    return np.array([mean - std**2, std, std])


def pooled(prior: LogitNormalPrior) -> FloatArray:
    """Mean, shared and own standard deviation of a prior's average arm."""
    var, arms = float(np.diag(prior.cov).mean()), prior.arms
    off = 0.0
    if arms > 1:
        off = float((prior.cov.sum() - np.trace(prior.cov)) / (arms * (arms - 1)))
    shared = min(max(off, 0.0), var)
    return np.array([prior.mean.mean(), np.sqrt(shared), np.sqrt(var - shared)])
