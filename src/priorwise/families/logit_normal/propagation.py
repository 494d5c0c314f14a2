"""Expectation propagation: each arm's counts stand as a normal factor ``exp(b eta - t eta^2 / 2)``
such that taking it out and putting the true likelihood in leaves mean and variance of the arm's log
odds as they are.

All arms move at once, so that arms of equal counts and equal prior keep equal beliefs. The start
depends on the counts alone, and a task goes on until no mean moves by more than ``TOLERANCE``
standard deviations and no variance by that share. A step that makes things worse is shortened.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.families.logit_normal.tilted import MIDDLE, Tilted, softplus, tilted

TOLERANCE: Final = 1e-11
MOST_ROUNDS: Final = 300
GROWTH: Final = 0.9  # of the move, beyond which the next step is half as long


@final
@dataclass(frozen=True, eq=False)
class Sites:
    """Precision and shift of the factor of each arm, ``(task, arm)``; 0 where it was not pulled.

    ``moved`` is by how much the last round moved each task, ``(task,)``.
    """

    precision: FloatArray
    shift: FloatArray
    moved: FloatArray

    def take(self, part: slice) -> Sites:
        """Return some tasks."""
        return Sites(self.precision[part], self.shift[part], self.moved[part])

    def normal(self, mean: FloatArray, root: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean ``(task, arm)`` and root of the covariance, ``(task, arm, arm)``, of prior and
        factors.
        """
        if not self.precision.any():
            tasks, arms = self.precision.shape
            return np.broadcast_to(mean, (tasks, arms)), np.broadcast_to(root, (tasks, arms, arms))
        m, new, _ = _combined(mean, root, self.precision, self.shift)
        return m, new

    def units(self, mean: FloatArray, root: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean ``(task, arm)`` and root of the covariance, ``(task, arm, arm)``, of ``u`` with log
        odds ``mean + root u``.
        """
        inverse = np.linalg.inv(_lower(root, self.precision))
        spread = np.asarray(inverse.transpose(0, 2, 1), dtype=np.float64)
        slope = np.einsum("ij,ti->tj", root, self.shift - self.precision * mean)
        return np.einsum("tij,tkj,tk->ti", spread, spread, slope), spread

    def tilted(
        self, s: FloatArray, n: FloatArray, mean: FloatArray, root: FloatArray
    ) -> tuple[Tilted, FloatArray]:
        """Law of each arm with its own counts as they are and the others' factors, and what the
        factors are off from the log mass of the task, ``(task,)``.
        """
        m, new, log_det = _combined(mean, root, self.precision, self.shift)
        centre, var = without(m, _squares(new), self.precision, self.shift)
        law = tilted(s, n, centre, var, m)
        pulled = self.precision > 0.0
        t = np.where(pulled, self.precision, 1.0)
        y = self.shift / t
        wide = 1.0 + t * var
        alone = np.where(pulled, -0.5 * (np.log(wide) + (y - centre) ** 2 * t / wide), 0.0)
        known = s * m - n * softplus(m)
        own = np.where(n > 0.0, np.where(var > 0.0, law.log_mass, known), 0.0)
        # of the prior times exp(-t (eta - y)^2 / 2): the fit of the joint mean m
        gap = np.where(pulled, y - mean, 0.0)
        fit = np.where(pulled, t * gap * (y - m), 0.0).sum(axis=1)
        return law, (own - alone).sum(axis=1) - 0.5 * (log_det + fit)


def propagated(s: FloatArray, n: FloatArray, mean: FloatArray, root: FloatArray) -> Sites:
    """Find the factors for successes and pulls ``(task, arm)`` under ``eta ~ N(mean, root
    root')``.
    """
    t, b = _start(s, n)
    out_t, out_b, moved = t.copy(), b.copy(), np.zeros(len(s))
    rows = np.flatnonzero((n > 0.0).any(axis=1))
    s, n, t, b = s[rows], n[rows], t[rows], b[rows]
    m, new, _ = _combined(mean, root, t, b)
    var = _squares(new)
    step, last = np.ones(len(rows)), np.full(len(rows), np.inf)
    for _ in range(MOST_ROUNDS):
        if not len(rows):
            break
        to_t, to_b = _matched(s, n, t, b, m, var)
        t, b = t + step[:, None] * (to_t - t), b + step[:, None] * (to_b - b)
        there, new, _ = _combined(mean, root, t, b)
        to_var = _squares(new)
        known = np.where(to_var > 0.0, to_var, 1.0)
        apart = np.maximum(np.abs(there - m) / np.sqrt(known), np.abs(var / known - 1.0))
        off = np.where(to_var > 0.0, apart, 0.0).max(axis=1)
        off = off / step
        out_t[rows], out_b[rows], moved[rows] = t, b, off
        step = np.where(off > GROWTH * last, np.maximum(0.5 * step, 0.05), step)
        left = off > TOLERANCE
        rows, s, n, t, b = rows[left], s[left], n[left], t[left], b[left]
        m, var, step, last = there[left], to_var[left], step[left], off[left]
    return Sites(out_t, out_b, moved)


def _start(s: FloatArray, n: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log odds of the observed share with half a success and half a failure more, as precise as
    counts of that share are.
    """
    pulled = n > 0.0
    share = (s + 0.5) / (n + 1.0)
    t = np.where(pulled, n * share * (1.0 - share), 0.0)
    return t, t * np.log(share / (1.0 - share))


def _combined(
    mean: FloatArray, root: FloatArray, t: FloatArray, b: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean, root ``L R^-1`` with ``R'R = I + L' diag(t) L``, and log determinant of the latter."""
    lower = _lower(root, t)
    solved = np.linalg.solve(lower, np.broadcast_to(root.T, lower.shape))
    new: FloatArray = np.ascontiguousarray(solved.transpose(0, 2, 1), dtype=np.float64)
    gain = np.einsum("tij,ti->tj", new, b - t * mean)
    m = mean + np.einsum("tij,tj->ti", new, gain)
    log_det = 2.0 * np.log(np.einsum("tii->ti", lower)).sum(axis=1)
    return m, new, log_det


def _lower(root: FloatArray, t: FloatArray) -> FloatArray:
    """Cholesky factor of ``I + L' diag(t) L``, ``(task, arm, arm)``."""
    scaled = np.sqrt(t)[:, :, None] * root
    inner = scaled.transpose(0, 2, 1) @ scaled
    arms = np.arange(root.shape[1])
    inner[:, arms, arms] += 1.0
    return np.asarray(np.linalg.cholesky(inner), dtype=np.float64)


def _squares(root: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("tij,tij->ti", root, root))


def without(
    m: FloatArray, var: FloatArray, t: FloatArray, b: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of an arm without its own factor."""
    share = np.maximum(1.0 - t * var, 1e-12)
    return (m - var * b) / share, var / share


def _matched(
    s: FloatArray, n: FloatArray, t: FloatArray, b: FloatArray, m: FloatArray, var: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Factors that give each arm the moments of its tilted law."""
    centre, wide = without(m, var, t, b)
    pulled = (n > 0.0) & (wide > 0.0)
    mean, narrow = tilted(s, n, centre, wide, m, MIDDLE).moments()
    with np.errstate(divide="ignore", invalid="ignore"):
        to_t = np.maximum(1.0 / narrow - 1.0 / wide, 0.0)
        to_b = mean / narrow - centre / wide
    return np.where(pulled, to_t, 0.0), np.where(pulled, to_b, 0.0)
