"""Which of several independent values is the largest, each the best of k draws, and its mean.

With values ``m_a + scale_a T_a`` of distribution functions ``F_a``,

    P(a is best) = integral of prod_(b != a) F_b(x)^k dF_a(x)^k,
    E[max] = sum_a integral of x prod_(b != a) F_b(x) dF_a(x),

by Gauss-Legendre panels that are narrow where any distribution bends: as wide as its scale near its
centre, as wide as the distance from it elsewhere, so heavy tails take few. Below the lowest value
of any arm the product is nought. Above all others' highest values one arm alone is left, and its
tail is added in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol, Self, final

import numpy as np

from priorwise.core.types import BoolArray, FloatArray

NODES: Final = 12  # in a panel
WIDE: Final = 2.0
"""Width of a panel around the centre of an arm, in its scale and in the widths of its law."""
MOST_PANELS: Final = 2000
ENTRIES: Final = 1 << 21


class Standard(Protocol):
    """Distributions of ``T``, symmetric about 0, one for each task and arm."""

    def below(self, t: FloatArray) -> FloatArray:
        """``P(T < t)`` for ``(task, arm, node)``."""
        ...

    def log_density(self, t: FloatArray) -> FloatArray:
        """Log density at ``(task, arm, node)``."""
        ...

    def beyond(self, t: FloatArray) -> FloatArray:
        """``E[T; T > t]`` for ``(task, arm, node)``."""
        ...

    def reach(self) -> FloatArray | float:
        """Where next to nothing is left, ``(task, arm)``."""
        ...

    def width(self) -> FloatArray | float:
        """How wide the centre is, ``(task, arm)``, at most 1."""
        ...

    def take(self, part: slice) -> Self:
        """Return the distributions of some tasks."""
        ...


@final
@dataclass(frozen=True)
class StandardNormal:
    """N(0, 1) for every arm."""

    def below(self, t: FloatArray) -> FloatArray:
        """``Phi(t)``."""
        from scipy.special import ndtr

        return np.asarray(ndtr(t))

    def log_density(self, t: FloatArray) -> FloatArray:
        """``log phi(t)``."""
        return np.asarray(-0.5 * (t * t + np.log(2.0 * np.pi)))

    def beyond(self, t: FloatArray) -> FloatArray:
        """``E[T; T > t] = phi(t)``."""
        return np.asarray(np.exp(self.log_density(t)))

    def reach(self) -> float:
        """Where a share of 1e-15 is left."""
        return 8.0

    def width(self) -> float:
        """One standard deviation."""
        return 1.0

    def take(self, part: slice) -> Self:
        """All tasks have the same."""
        return self


def argmax_probabilities(
    m: FloatArray,
    scale: FloatArray,
    standard: Standard,
    k: int = 1,
    available: BoolArray | None = None,
) -> FloatArray:
    """Return the probability that each arm has the largest of its k draws, ``(task, arm)``, from
    ``m + scale T``, ``(task, arm)`` each.
    """
    return _integrals(m, scale, standard, k, available)[0]


def expected_extremes(
    m: FloatArray, scale: FloatArray, standard: Standard, available: BoolArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """``E[max]`` and ``E[min]`` of one draw ``m + scale T`` of each arm, ``(task,)`` each; the
    distributions need a mean.
    """
    high = _integrals(m, scale, standard, 1, available)[1]
    low = _integrals(-m, scale, standard, 1, available)[1]
    return high, -low


def _integrals(
    m: FloatArray, scale: FloatArray, standard: Standard, k: int, available: BoolArray | None
) -> tuple[FloatArray, FloatArray]:
    """Probabilities ``(task, arm)`` and the mean of the largest value ``(task,)``."""
    tasks, arms = m.shape
    mask = np.ones((tasks, arms), dtype=bool) if available is None else available
    law, mean = np.empty((tasks, arms)), np.empty(tasks)
    size = max(1, ENTRIES // (arms * NODES * 40))
    for first in range(0, tasks, size):
        part = slice(first, first + size)
        law[part], mean[part] = _pass(m[part], scale[part], standard.take(part), k, mask[part])
    return law, mean


def _edges(
    m: FloatArray, scale: FloatArray, standard: Standard, available: BoolArray
) -> FloatArray:
    """Ends of panels ``(task, end)`` from where all arms may lie to where at most one does; the
    last ones of a task may be empty.
    """
    reach = scale * standard.reach()
    low = np.where(available, m - reach, -np.inf).max(axis=1)
    upper = np.where(available, m + reach, -np.inf)
    second = np.sort(upper, axis=1)[:, -2] if m.shape[1] > 1 else low
    high = np.maximum(second, low)
    width = WIDE * scale * standard.width()
    edges = [low]
    while (edges[-1] < high).any() and len(edges) <= MOST_PANELS:
        apart = edges[-1][:, None] - m
        ahead = np.where(apart < 0.0, -0.5 * apart, apart)
        step = np.where(available, np.maximum(ahead, width), np.inf).min(axis=1)
        edges.append(np.minimum(edges[-1] + step, high))
    return np.stack([*edges, high], axis=1)


def _pass(
    m: FloatArray, scale: FloatArray, standard: Standard, k: int, available: BoolArray
) -> tuple[FloatArray, FloatArray]:
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    edges = _edges(m, scale, standard, available)
    half = np.diff(edges, axis=1)[:, :, None] / 2.0
    x = (edges[:, :-1, None] + half * (nodes + 1.0)).reshape(len(m), 1, -1)  # (task, 1, node)
    heavy = (half * weights).reshape(len(m), -1)
    m, scale = m[:, :, None], scale[:, :, None]
    t = (x - m) / scale
    with np.errstate(divide="ignore"):
        log_below = np.where(available[:, :, None], np.log(standard.below(t)), 0.0)
    density = standard.log_density(t) - np.log(scale)
    with np.errstate(invalid="ignore"):
        others = k * log_below.sum(axis=1, keepdims=True) - log_below
    inside = np.exp(density + np.where(np.isnan(others), -np.inf, others)) * k
    law = np.einsum("tan,tn->ta", inside, heavy)
    last = (edges[:, None, -1:] - m) / scale
    above = standard.below(-last)[:, :, 0]
    law = np.where(available, law - np.expm1(k * np.log1p(-above)), 0.0)
    # measured from the largest centre, so a common shift costs no digits
    centre = np.where(available, m[:, :, 0], -np.inf).max(axis=1)
    within = np.einsum("tan,tn->ta", inside * (x - centre[:, None, None]), heavy)
    tail = (m[:, :, 0] - centre[:, None]) * above + (scale * standard.beyond(last))[:, :, 0]
    mean = centre + np.where(available, within + tail, 0.0).sum(axis=1)
    return np.asarray(law / law.sum(axis=1, keepdims=True)), np.asarray(mean)
