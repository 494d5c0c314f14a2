"""Tasks whose particles have the same values, and what a policy asks of their best arm."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from priorwise.core.choosing import TIE_TOLERANCE
from priorwise.core.types import BoolArray, FloatArray, IntArray
from priorwise.families.particle import weights as weighted
from priorwise.theory.action_laws import tied_law


@final
@dataclass(frozen=True, eq=False)
class Part:
    """Some tasks whose particles have the same values."""

    tasks: IntArray
    parameters: FloatArray  # (particle, d)
    log_weights: FloatArray  # (any task, particle)
    values: FloatArray  # (arm, particle)
    orders: IntArray | None = None  # (arm, particle): places of the values in ascending order
    starts: IntArray | None = None  # where families of particles begin

    @cached_property
    def probs(self) -> FloatArray:
        """Weights ``(task, particle)`` that sum to 1."""
        return weighted.normalised(self.log_weights[self.tasks])


def at(part: Part, index: IntArray) -> FloatArray:
    """Values of drawn particles ``index`` ``(task, draw)``, ``(task, draw, arm)``."""
    return part.values[:, index[part.tasks]].transpose(1, 2, 0)


def _by_mask(part: Part, mask: BoolArray | None) -> Iterator[tuple[IntArray, FloatArray]]:
    """Rows of a part that have the same arms, and the values of these, -inf for the others."""
    if mask is None:
        yield np.arange(len(part.tasks)), part.values
        return
    masks, which = np.unique(mask[part.tasks], axis=0, return_inverse=True)
    for number, there in enumerate(masks):
        rows = np.flatnonzero(which.reshape(-1) == number)
        yield rows, np.where(there[:, None], part.values, -np.inf)


def ends(part: Part, mask: BoolArray | None) -> FloatArray:
    """Means of the largest and of the smallest value, ``(task, 2)``."""
    out = np.empty((len(part.tasks), 2))
    for rows, values in _by_mask(part, mask):
        low = np.where(np.isneginf(values), np.inf, values).min(axis=0)
        out[rows] = weighted.average(part.probs[rows], np.stack([values.max(axis=0), low]))
    return out


def best(part: Part, draws: int, mask: BoolArray | None) -> FloatArray:
    """Law of the best arm of the particle whose best value is largest of those drawn, ``(task,
    arm)``.

    With particles in ascending order of their best value and F their running weight, it is particle
    i with probability ``F_i^k - F_(i-1)^k``; those that tie share that of all of them. NaN where
    particles tie that have different best arms.
    """
    out = np.empty((len(part.tasks), len(part.values)))
    for rows, values in _by_mask(part, mask):
        best, probs = values.max(axis=0), part.probs[rows]
        shares = tied_law(values.T).T  # (arm, particle)
        if draws > 1:
            order = np.argsort(best, kind="stable")
            running = np.minimum(np.cumsum(probs[:, order], axis=1), 1.0) ** draws
            gap = np.diff(best[order], append=np.inf)
            ends = np.flatnonzero(gap > TIE_TOLERANCE * np.abs(best[order]))
            if _mixed_ties(shares[:, order], ends):
                return np.full_like(out, np.nan)
            chance = np.diff(running[:, ends], axis=1, prepend=0.0)
            mass = np.add.reduceat(probs[:, order], np.append(0, ends[:-1] + 1), axis=1)
            factor = np.divide(chance, mass, out=np.zeros_like(mass), where=mass > 0.0)
            spread = np.repeat(factor, np.diff(ends, prepend=-1), axis=1)
            probs = probs.copy()
            probs[:, order] *= spread
        out[rows] = weighted.average(probs, shares)
    return out


def _mixed_ties(shares: FloatArray, ends: IntArray) -> bool:
    """Whether particles with the same best value have different best arms."""
    first = np.append(0, ends[:-1] + 1)
    leader = np.repeat(shares[:, first], np.diff(ends, prepend=-1), axis=1)
    return bool((leader != shares).any())
