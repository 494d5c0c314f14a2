"""Which of several independent Student values is the largest, each the best of k draws.

``P(a is best) = integral of prod_(b != a) F_b(x)^k dF_a(x)^k``, by Gauss-Legendre panels that are
narrow where any arm's law bends: as wide as its scale near its centre, as wide as the distance from
it elsewhere, so that heavy tails take few. Below the lowest value of any arm the product is nought,
and above all others' highest values one arm alone is left: its tail is added in closed form.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from priorwise.core.types import BoolArray, FloatArray
from priorwise.families.normal_gamma import student

NODES: Final = 12  # in a panel
WIDE: Final = 2.0
"""Width of a panel around the centre of an arm, in its scale; less below one degree of freedom."""
TAIL: Final = 1e-12
MOST_PANELS: Final = 2000
ENTRIES: Final = 1 << 21


def student_argmax(
    m: FloatArray,
    scale: FloatArray,
    freedom: FloatArray,
    k: int = 1,
    available: BoolArray | None = None,
) -> FloatArray:
    """Return the probability that each arm has the largest of its k draws, ``(task, arm)``, from
    ``m + scale T`` of so much freedom, ``(task, arm)`` each.
    """
    tasks, arms = m.shape
    mask = np.ones((tasks, arms), dtype=bool) if available is None else available
    out = np.empty((tasks, arms))
    size = max(1, ENTRIES // (arms * NODES * 40))
    for first in range(0, tasks, size):
        part = slice(first, first + size)
        out[part] = _pass(m[part], scale[part], freedom[part], k, mask[part])
    return out


def _edges(
    m: FloatArray, scale: FloatArray, freedom: FloatArray, available: BoolArray
) -> FloatArray:
    """Ends of panels ``(task, end)`` from where all arms may lie to where at most one does; the
    last ones of a task may be empty.
    """
    reach = -scale * student.quantile(freedom, TAIL)
    low = np.where(available, m - reach, -np.inf).max(axis=1)
    upper = np.where(available, m + reach, -np.inf)
    second = np.sort(upper, axis=1)[:, -2] if m.shape[1] > 1 else low
    high = np.maximum(second, low)
    width = WIDE * scale * np.minimum(1.0, np.sqrt(freedom))
    edges = [low]
    while (edges[-1] < high).any() and len(edges) <= MOST_PANELS:
        apart = edges[-1][:, None] - m
        ahead = np.where(apart < 0.0, -0.5 * apart, apart)
        step = np.where(available, np.maximum(ahead, width), np.inf).min(axis=1)
        edges.append(np.minimum(edges[-1] + step, high))
    return np.stack([*edges, high], axis=1)


def _pass(
    m: FloatArray, scale: FloatArray, freedom: FloatArray, k: int, available: BoolArray
) -> FloatArray:
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    edges = _edges(m, scale, freedom, available)
    half = np.diff(edges, axis=1)[:, :, None] / 2.0
    x = (edges[:, :-1, None] + half * (nodes + 1.0)).reshape(len(m), 1, -1)  # (task, 1, node)
    heavy = (half * weights).reshape(len(m), -1)
    m, scale, freedom = (each[:, :, None] for each in (m, scale, freedom))
    t = (x - m) / scale
    with np.errstate(divide="ignore"):
        log_below = np.where(available[:, :, None], np.log(student.below(freedom, t)), 0.0)
    density = student.log_density(freedom, t) - np.log(scale)
    with np.errstate(invalid="ignore"):
        others = k * log_below.sum(axis=1, keepdims=True) - log_below
    inside = np.exp(density + np.where(np.isnan(others), -np.inf, others)) * k
    law = np.einsum("tan,tn->ta", inside, heavy)
    above = student.below(freedom, -(edges[:, None, -1:] - m) / scale)[:, :, 0]
    law = np.where(available, law - np.expm1(k * np.log1p(-above)), 0.0)
    return np.asarray(law / law.sum(axis=1, keepdims=True))
