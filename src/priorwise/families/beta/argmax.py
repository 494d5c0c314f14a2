"""Which of several independent Beta values is the largest, each the best of k draws, and its mean.

``P(a is best) = integral of prod_(b != a) F_b(x)^k dF_a(x)^k``, by Gauss-Legendre panels on the
log-odds scale, where the densities are smooth. Below the lowest value of any arm the product is
nought, and above all others' highest values one arm alone is left: its tail is added in closed
form. ``E[max]`` is the same integral of ``x``.
"""

from typing import Final

import numpy as np
from scipy.special import betainc, betaincinv, betaln, expit, logit, polygamma

from priorwise.core.types import BoolArray, FloatArray, IntArray

NODES: Final = 16  # in a panel
PANEL: Final = 3.0
"""Widest panel, in standard deviations of the narrowest arm."""
WIDEST: Final = 6.0
"""Widest panel in log odds z. The poles of ``1 / (1 + e^-z)`` at ``+-i pi`` leave 16 nodes an error
of about 1e-12.
"""
MOST_PANELS: Final = 512
TAIL: Final = 1e-13
ENTRIES: Final = 1 << 21

_AT, _WEIGHTS = np.polynomial.legendre.leggauss(NODES)


def beta_argmax(
    a: FloatArray, b: FloatArray, k: int = 1, available: BoolArray | None = None
) -> FloatArray:
    """Return the probability that each arm has the largest of its k draws, ``(task, arm)``, from
    Beta(a, b) ``(task, arm)``.
    """
    return _integrals(a, b, k, available)[0]


def beta_extremes(
    a: FloatArray, b: FloatArray, available: BoolArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """``E[max]`` and ``E[min]`` of one draw of each arm, ``(task,)`` each."""
    # 1 - X ~ Beta(b, a)
    return _integrals(a, b, 1, available)[1], 1.0 - _integrals(b, a, 1, available)[1]


def _integrals(
    a: FloatArray, b: FloatArray, k: int, available: BoolArray | None
) -> tuple[FloatArray, FloatArray]:
    """Probabilities ``(task, arm)`` and the mean of the largest value ``(task,)``."""
    tasks, arms = a.shape
    mask = np.ones((tasks, arms), dtype=bool) if available is None else available
    low, high, panels = _ranges(a, b, mask)
    law, mean = np.empty((tasks, arms)), np.empty(tasks)
    for count in np.unique(panels):
        chosen = np.flatnonzero(panels == count)
        size = max(1, ENTRIES // (arms * NODES * int(count)))
        for first in range(0, chosen.size, size):
            part = chosen[first : first + size]
            ends = low[part], high[part]
            law[part], mean[part] = _pass(a[part], b[part], k, mask[part], *ends, int(count))
    return law, mean


def _ranges(
    a: FloatArray, b: FloatArray, available: BoolArray
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Log odds between which several arms may be the largest, and how many panels resolve the
    narrowest of them.
    """
    with np.errstate(divide="ignore"):
        lower = np.where(available, logit(np.maximum(betaincinv(a, b, TAIL), 1e-300)), -np.inf)
        upper = np.where(available, -logit(np.maximum(betaincinv(b, a, TAIL), 1e-300)), -np.inf)
    low = lower.max(axis=1)
    second = np.sort(upper, axis=1)[:, -2] if a.shape[1] > 1 else low
    high = np.maximum(second, low)
    stds = np.where(upper > low[:, None], np.sqrt(polygamma(1, a) + polygamma(1, b)), np.inf)
    widest = np.minimum(PANEL * stds.min(axis=1), WIDEST)
    wanted = np.clip((high - low) / widest, 2.0, MOST_PANELS)
    return low, high, np.exp2(np.ceil(np.log2(wanted))).astype(np.int64)


def _pass(
    a: FloatArray,
    b: FloatArray,
    k: int,
    available: BoolArray,
    low: FloatArray,
    high: FloatArray,
    panels: int,
) -> tuple[FloatArray, FloatArray]:
    unit = ((np.arange(panels)[:, None] + (_AT + 1.0) / 2.0) / panels).ravel()
    z = low[:, None, None] + (high - low)[:, None, None] * unit  # (task, 1, node)
    log_x, log_rest = -np.logaddexp(0.0, -z), -np.logaddexp(0.0, z)
    below = _below(a[:, :, None], b[:, :, None], z)
    with np.errstate(divide="ignore"):
        log_below = np.where(available[:, :, None], np.log(below), 0.0)
    # of the log odds
    density = a[:, :, None] * log_x + b[:, :, None] * log_rest - betaln(a, b)[:, :, None]
    with np.errstate(invalid="ignore"):
        others = k * log_below.sum(axis=1, keepdims=True) - log_below
    inside = np.exp(density + np.where(np.isnan(others), -np.inf, others)) * k
    weights, width = np.tile(_WEIGHTS / (2.0 * panels), panels), (high - low)[:, None]
    law = np.einsum("tan,n->ta", inside, weights)
    beyond = 1.0 - _below(a, b, high[:, None]) ** k
    law = np.where(available, law * width + beyond, 0.0)
    within = np.einsum("tan,n->ta", inside * np.exp(log_x), weights) * width
    tail = a / (a + b) * (1.0 - _below(a + 1.0, b, high[:, None]))  # E[X; X > high]
    mean = np.where(available, within + tail, 0.0).sum(axis=1)
    return np.asarray(law / law.sum(axis=1, keepdims=True)), np.asarray(mean)


def _below(a: FloatArray, b: FloatArray, z: FloatArray) -> FloatArray:
    """``P(X <= x)`` at log odds z, from the side that keeps its digits."""
    x = expit(z)
    return np.asarray(np.where(z <= 0.0, betainc(a, b, x), 1.0 - betainc(b, a, expit(-z))))
