"""Two finite posteriors of the same histories, one from each prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from priorwise.core.distance import BothBeliefs
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.finite.prior import FinitePrior


@final
@dataclass(frozen=True, eq=False)
class FinitePosteriors(BothBeliefs):
    """Probabilities of the points of both supports."""

    places: tuple[IntArray, IntArray]  # where the points of each support stand in their union
    points: int
    exact: bool = True

    @classmethod
    def start(cls, p: FinitePrior, q: FinitePrior, tasks: int) -> FinitePosteriors:
        """Match points that are equal bit for bit."""
        index: dict[tuple[float, ...], int] = {}
        places = [
            [
                index.setdefault(tuple(point), len(index))
                for point in (prior.candidates + 0.0).tolist()
            ]
            for prior in (p, q)
        ]
        return cls(
            p.belief(tasks), q.belief(tasks), (np.array(places[0]), np.array(places[1])), len(index)
        )

    def _laws(self) -> tuple[FloatArray, FloatArray]:
        """Both posteriors on the union of the supports, ``(task, point)``."""
        first, second = (
            np.stack(
                [
                    np.bincount(place, row, self.points).astype(np.float64)
                    for row in belief.probabilities()
                ]
            )
            for place, belief in zip(self.places, (self.p, self.q), strict=True)
        )
        return first, second

    def total_variation(self, rng: Stream) -> FloatArray:
        """``sum |p - q| / 2``."""
        first, second = self._laws()
        return np.asarray(np.abs(first - second).sum(axis=1) / 2.0)

    def shared(self, rng: Stream, draws: int) -> FloatArray:
        """``min(1, q / p)`` at the drawn points."""
        first, second = self._laws()
        drawn = self.places[0][rng.choice(self.p.weights(), draws)]
        rows = np.arange(len(drawn))[:, None]
        return np.minimum(1.0, second[rows, drawn] / first[rows, drawn])
