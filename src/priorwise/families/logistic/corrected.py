"""Laplace's approximation, corrected to the second order: the mean of the posterior instead of its
mode, and its covariance instead of the inverse curvature.

With ``S = R R'`` the inverse curvature at the mode, ``y_i = R'z_i`` the rows in its units and
``k3_i``, ``k4_i`` the third and fourth derivatives of a reward's log likelihood in its log odds,

    T_abc = sum_i k3_i y_ia y_ib y_ic,   d_a = sum_b T_abb / 2,   F = sum_i k4_i |y_i|^2 y_i y_i',

the posterior has mean ``u + R d`` and covariance ``R (I + G) R'`` with

    G_ab = F_ab / 2 + sum_c T_abc d_c + sum_cd T_acd T_bcd / 2,

and log mass of Laplace plus ``sum_i k4_i |y_i|^4 / 8 + |d|^2 / 2 + sum T_abc^2 / 12``, all up to
terms of the third order (the expansion of Tierney and Kadane 1986; these are its one-loop terms).
Where the second order is not small the expansion does not hold: a shift beyond :data:`FURTHEST`
standard deviations is shortened, and eigenvalues of G are kept within :data:`SMALLEST` and
:data:`LARGEST`.
"""

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.families.logistic.laplace import log_odds, mode
from priorwise.families.logit_normal.tilted import rates

FURTHEST: Final = 1.0
SMALLEST: Final = -0.3
LARGEST: Final = 0.4
MOST_FEATURES: Final = 16
"""Features up to which the covariance and the mass are corrected, at a cost of dim^3 per row; the
mean is always.
"""
ENTRIES: Final = 1 << 22  # numbers in an array of one pass


@final
@dataclass(frozen=True, eq=False)
class Normal:
    """The normal law that stands for a posterior, in units of the prior: ``w = mean + L u``."""

    mode: FloatArray  # (task, dim)
    u: FloatArray  # (task, dim), the mean
    spread: FloatArray  # (task, dim, dim), a root of the covariance
    log_mass: FloatArray  # (task,): rows of zeros count as tosses of a coin


def posterior(prior: Any, x: FloatArray, r: FloatArray, start: FloatArray) -> Normal:
    """Return the normal law after pulls with features ``(task, row, dim)`` and rewards ``(task,
    row)``; the mode is looked for from ``start``.
    """
    z, shift = x @ prior._root, np.einsum("tnj,j->tn", x, prior.mean)
    found = mode(z, shift, r, start)
    size = max(1, ENTRIES // max(1, z.shape[2] ** 3 + z.shape[1] * z.shape[2] ** 2))
    parts = [
        _corrected(z[some], shift[some], found.u[some], found.spread[some])
        for some in (slice(first, first + size) for first in range(0, max(len(z), 1), size))
    ]
    shifted, spread, more = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Normal(found.u, shifted, spread, found.log_mass + more)


def _corrected(
    z: FloatArray, shift: FloatArray, u: FloatArray, spread: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean, root of the covariance and what to add to the log mass."""
    (tasks, rows, dim), y = z.shape, z @ spread
    p = rates(log_odds(z, shift, u))
    q = p * (1.0 - p)
    third, fourth = -q * (1.0 - 2.0 * p), -q * (1.0 - 6.0 * q)
    size = np.einsum("tnj,tnj->tn", y, y)
    d = 0.5 * ((third * size)[:, None, :] @ y)[:, 0]
    long = np.sqrt(np.einsum("tj,tj->t", d, d))
    d = d * np.minimum(1.0, FURTHEST / np.maximum(long, 1e-300))[:, None]
    to = u + (spread @ d[:, :, None])[:, :, 0]
    if dim > MOST_FEATURES:
        return to, spread, np.zeros(tasks)
    pairs = (y[:, :, :, None] * y[:, :, None, :]).reshape(tasks, rows, dim * dim)
    cube = (y * third[:, :, None]).transpose(0, 2, 1) @ pairs  # T, (task, a, bc)
    fall = ((fourth * size)[:, None, :] @ pairs).reshape(tasks, dim, dim)
    along = (d[:, None, :] @ cube).reshape(tasks, dim, dim)
    g = 0.5 * fall + along + 0.5 * cube @ cube.transpose(0, 2, 1)
    more = (
        0.125 * np.einsum("tn,tn,tn->t", fourth, size, size)
        + 0.5 * np.einsum("tj,tj->t", d, d)
        + np.einsum("tab,tab->t", cube, cube) / 12.0
    )
    return to, spread @ np.linalg.cholesky(_kept(g) + np.eye(dim)), more


def _kept(g: FloatArray) -> FloatArray:
    """Keep the eigenvalues of G within bounds."""
    large = np.flatnonzero(np.einsum("tab,tab->t", g, g) > SMALLEST**2)
    if large.size:
        values, axes = np.linalg.eigh(g[large])
        kept = axes * np.clip(values, SMALLEST, LARGEST)[:, None, :]
        g = g.copy()
        g[large] = kept @ axes.transpose(0, 2, 1)
    return g
