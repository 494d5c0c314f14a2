"""Compiled marginal likelihood of exchangeable arms, task by task, with its derivatives.

The log odds of an arm are ``mean + shared z + own z_a`` with standard normal z, the same for all
arms of a task, and z_a. Given z the arms are independent, so that

    P(task) = E_z prod_a g_a(mean + shared z),  g_a(x) = E exp(s eta - n log(1 + e^eta)),

with ``eta = x + own z_a``:

two nested integrals, each by Gauss-Hermite nodes around the mode, at the width of its curvature.
Derivatives are expectations under the same weights of ``d_a = s - n p``: of ``sum d_a`` in the
mean, ``z sum d_a`` in ``shared``, ``sum z_a d_a`` in ``own``.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types

from priorwise.core.types import FloatArray
from priorwise.kernels.compiling import ROW, ROWS, F, entry, inline

NEWTON = 60
CLOSE = 1e-4


@inline
def _rate(eta):
    small = math.exp(-abs(eta))
    return (1.0 if eta >= 0.0 else small) / (1.0 + small)


@inline
def _softplus(eta):
    return max(eta, 0.0) + math.log1p(math.exp(-abs(eta)))


@inline
def _inner_mode(s, n, x, own, z):
    """Where ``z = own (s - n p(x + own z))``: Newton's method in a bracket."""
    first = own * (s - n * _rate(x))
    low, high = min(0.0, first), max(0.0, first)
    z = min(max(z, low), high)
    last = high - low
    for _ in range(NEWTON):
        p = _rate(x + own * z)
        slope, curve = own * (s - n * p) - z, 1.0 + own * own * n * p * (1.0 - p)
        if slope * slope <= CLOSE * curve:
            break
        if slope >= 0.0:
            low = z
        else:
            high = z
        step = slope / curve
        if abs(step) > 0.5 * last or z + step < low or z + step > high:
            step = 0.5 * (low + high) - z
        last = abs(step)
        z += step
    return z


@entry(types.void(ROWS, ROWS, F, F, F, ROW, ROW, ROW, ROWS))
def evaluate(
    s: FloatArray,  # (task, arm)
    n: FloatArray,  # (task, arm)
    mean: float,
    shared: float,
    own: float,
    nodes: FloatArray,  # of Gauss-Hermite quadrature
    logs: FloatArray,  # of their weights, times the square root of 2 pi and e^(node^2 / 2)
    values: FloatArray,  # out (task,)
    scores: FloatArray,  # out (task, 3): derivatives in mean, shared and own
) -> None:
    """Log likelihood of each task and its derivatives."""
    tasks, arms = s.shape
    size = len(nodes)
    modes = np.zeros(arms)
    total, slope_of, own_of = np.empty(size), np.empty(size), np.empty(size)
    inner = np.empty(size)
    for t in range(tasks):
        z = 0.0
        modes[:] = 0.0
        last, low, high, curve = np.inf, -np.inf, np.inf, 1.0
        for _ in range(NEWTON):
            slope, curve = -z, 1.0
            x = mean + shared * z
            for a in range(arms):
                if n[t, a] > 0.0:
                    modes[a] = _inner_mode(s[t, a], n[t, a], x, own, modes[a])
                    p = _rate(x + own * modes[a])
                    h = n[t, a] * p * (1.0 - p)
                    slope += shared * (s[t, a] - n[t, a] * p)
                    curve += shared * shared * h / (1.0 + own * own * h)
            if slope * slope <= 1e-3 * curve:
                break
            if slope >= 0.0:
                low = z
            else:
                high = z
            step = slope / curve
            inside = low < z + step < high and abs(step) <= 0.7 * last
            if not inside and low > -np.inf and high < np.inf:
                step = 0.5 * (low + high) - z
            last = abs(step)
            z += step
        width = 1.0 / math.sqrt(curve)
        for k in range(size):
            at = z + width * nodes[k]
            x = mean + shared * at
            total[k] = logs[k] - 0.5 * at * at
            slope_of[k] = own_of[k] = 0.0
            for a in range(arms):
                if n[t, a] > 0.0:
                    centre = _inner_mode(s[t, a], n[t, a], x, own, modes[a])
                    p = _rate(x + own * centre)
                    narrow = 1.0 / math.sqrt(1.0 + own * own * n[t, a] * p * (1.0 - p))
                    top = -np.inf
                    for j in range(size):
                        za = centre + narrow * nodes[j]
                        eta = x + own * za
                        inner[j] = (
                            s[t, a] * eta - n[t, a] * _softplus(eta) + logs[j] - 0.5 * za * za
                        )
                        top = max(top, inner[j])
                    mass = d1 = d2 = 0.0
                    for j in range(size):
                        za = centre + narrow * nodes[j]
                        w = math.exp(inner[j] - top)
                        d = s[t, a] - n[t, a] * _rate(x + own * za)
                        mass += w
                        d1 += w * d
                        d2 += w * d * za
                    total[k] += top + math.log(mass * narrow)
                    slope_of[k] += d1 / mass
                    own_of[k] += d2 / mass
        top = -np.inf
        for k in range(size):
            top = max(top, total[k])
        mass = by_mean = by_shared = by_own = 0.0
        for k in range(size):
            w = math.exp(total[k] - top)
            mass += w
            by_mean += w * slope_of[k]
            by_shared += w * slope_of[k] * (z + width * nodes[k])
            by_own += w * own_of[k]
        values[t] = top + math.log(mass * width)
        scores[t, 0], scores[t, 1], scores[t, 2] = by_mean / mass, by_shared / mass, by_own / mass
