"""Laplace's approximation: the normal law at the mode of the posterior, with the curvature there.

With ``w = mean + L u`` and ``z_i = L'x_i`` the log posterior of u is

    sum_i r_i eta_i - log(1 + e^eta_i)  -  |u|^2 / 2,        eta_i = x_i'mean + z_i'u.

It is concave, and its curvature ``H = I + sum_i p_i (1 - p_i) z_i z_i'`` at least 1, so that there
is one mode and singular priors need nothing special. Newton's method goes there, and halves a step
that does not raise the log posterior by a share of what its slope promises (Armijo): it converges
from anywhere. A task is done when its step is shorter than :data:`TOLERANCE` posterior standard
deviations, ``sqrt(g'H^-1 g)`` with g the slope; that step is still taken.
"""

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.families.logit_normal.tilted import rates, softplus

TOLERANCE: Final = 1e-10
MOST_STEPS: Final = 200
MOST_HALVINGS: Final = 60
SHARE: Final = 1e-4  # of the rise that the slope promises
SLACK: Final = 1e-13  # relative rounding of a log posterior


@final
@dataclass(frozen=True, eq=False)
class Mode:
    """Where the posterior of each task is largest, and how it falls off there."""

    u: FloatArray  # (task, dim)
    spread: FloatArray  # (task, dim, dim): the inverse of the curvature is spread spread'
    log_mass: FloatArray  # (task,): log of the integral of prior times likelihood
    left: FloatArray  # (task,): length of the last step in standard deviations


def mode(z: FloatArray, shift: FloatArray, r: FloatArray, start: FloatArray) -> Mode:
    """Find the modes for rows z ``(task, row, dim)`` with log odds ``shift`` at ``u = 0`` and
    rewards, ``(task, row)`` each, from ``start`` ``(task, dim)``; rows of zeros say nothing.

    A task does not depend on those beside it.
    """
    (tasks, _, dim), unit = z.shape, np.eye(z.shape[2])
    out, curve = start.astype(np.float64), np.empty((tasks, dim, dim))
    level, left = np.empty(tasks), np.full(tasks, np.inf)
    rows, u = np.arange(tasks), out
    eta = log_odds(z, shift, u)
    now = _log_posterior(r, eta, u)
    for _ in range(MOST_STEPS):
        if not len(rows):
            break
        p = rates(eta)
        slope = ((r * rates(-eta) - (1.0 - r) * p)[:, None, :] @ z)[:, 0] - u
        bend = (z * (p * (1.0 - p))[:, :, None]).transpose(0, 2, 1) @ z + unit
        step = np.asarray(np.linalg.solve(bend, slope[:, :, None])[:, :, 0], dtype=np.float64)
        rise = np.einsum("tj,tj->t", slope, step)
        u, eta, now = _stepped(r, z, shift, u, now, step, rise)
        out[rows], level[rows], curve[rows] = u, now, bend
        left[rows] = np.sqrt(np.maximum(rise, 0.0))
        on = rise > TOLERANCE**2
        if not on.all():
            rows, r, z, shift = rows[on], r[on], z[on], shift[on]
            u, eta, now = u[on], eta[on], now[on]
    lower = np.linalg.cholesky(curve)
    solved = np.linalg.solve(lower, np.broadcast_to(unit, curve.shape))
    spread = np.ascontiguousarray(solved.transpose(0, 2, 1), dtype=np.float64)
    log_det = np.log(np.einsum("tii->ti", lower)).sum(axis=1)
    return Mode(out, spread, level - log_det, left)


def log_odds(z: FloatArray, shift: FloatArray, u: FloatArray) -> FloatArray:
    """``shift + z'u``, ``(task, row)``."""
    return np.asarray(shift + (z @ u[:, :, None])[:, :, 0])


def _log_posterior(r: FloatArray, eta: FloatArray, u: FloatArray) -> FloatArray:
    """Without the constant of the prior, and with ``log 2`` for each row of zeros, ``(task,)``."""
    return np.asarray((r * eta - softplus(eta)).sum(axis=1) - 0.5 * np.einsum("tj,tj->t", u, u))


def _stepped(
    r: FloatArray,
    z: FloatArray,
    shift: FloatArray,
    u: FloatArray,
    now: FloatArray,
    step: FloatArray,
    rise: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return where Newton's step leads, or the half, the quarter, ... of it that rises enough, with
    ``eta`` and the log posterior there.
    """
    to = u + step
    eta = log_odds(z, shift, to)
    there = _log_posterior(r, eta, to)
    share = np.ones(len(u))
    for _ in range(MOST_HALVINGS):
        low = there < now + SHARE * share * rise - SLACK * (1.0 + np.abs(now))
        if not low.any():
            break
        some = np.flatnonzero(low)
        share[some] *= 0.5
        to[some] = u[some] + share[some, None] * step[some]
        eta[some] = log_odds(z[some], shift[some], to[some])
        there[some] = _log_posterior(r[some], eta[some], to[some])
    return to, eta, there
