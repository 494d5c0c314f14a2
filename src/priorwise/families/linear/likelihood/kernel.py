"""Compiled marginal likelihood of normal weights, task by task, with what its derivatives need.

With ``S = L L'`` and v the noise variance, ``H H' = I + L'X'X L / v`` and ``R = H^-1 L'``, the
posterior covariance is ``R'R``, and

    P = X'V^-1 X = (X'X - B'B / v) / v,  B = R X'X;      g = X'V^-1 e = (X'e - B'R X'e / v) / v,  e
    = r - X m.

L may be singular. Tasks run in lockstep, :data:`LANES` at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from priorwise.core.types import FloatArray
from priorwise.kernels.compiling import LANES, ROW, ROWS, F, I, entry

READ_ROW, READ_ROWS, READ_CUBE = (types.Array(F, axes, "C", readonly=True) for axes in (1, 2, 3))


def _evaluate(
    gram: FloatArray,  # (task, dim, dim)
    moments: FloatArray,  # (task, dim)
    squares: FloatArray,  # (task,)
    pulls: FloatArray,  # (task,)
    root: FloatArray,  # L
    v: float,
    mean: FloatArray,  # m
    detail: int,  # 0: values, scores and P only
    values: FloatArray,  # out (task,): log density of the rewards
    scores: FloatArray,  # out (task, dim): g
    packed: FloatArray,  # out (task, pair): lower triangle of P, row by row
    weights: FloatArray,  # out (task, pair): that of g g' - P / 2
    double: FloatArray,  # out (task, dim): X'V^-2 e
    # out (task, 4): |V^-1 e|^2 v^2, tr C X'X, g'C g, tr (C X'X)^2, with C the posterior covariance
    noise: FloatArray,
    inner: FloatArray,  # in and out (dim, dim): plus the sum over tasks of X'V^-2 X
) -> None:
    tasks, d = moments.shape
    G, H, R = np.empty((d, d, LANES)), np.empty((d, d, LANES)), np.empty((d, d, LANES))
    B, P, N = np.empty((d, d, LANES)), np.empty((d, d, LANES)), np.empty((d, d, LANES))
    e, h, g, k = (
        np.empty((d, LANES)),
        np.empty((d, LANES)),
        np.empty((d, LANES)),
        np.empty((d, LANES)),
    )
    q, det, log_det, hh, kk = (
        np.empty(LANES),
        np.empty(LANES),
        np.empty(LANES),
        np.empty(LANES),
        np.empty(LANES),
    )
    size, trace, fourth, s = np.empty(LANES), np.empty(LANES), np.empty(LANES), np.empty(LANES)
    for first in range(0, tasks, LANES):
        here = min(LANES, tasks - first)
        for l in range(LANES):
            t = first + min(l, here - 1)
            q[l] = squares[t]
            det[l], log_det[l], hh[l], kk[l] = 1.0, 0.0, 0.0, 0.0
            for i in range(d):
                e[i, l] = moments[t, i]
                for j in range(d):
                    G[i, j, l] = gram[t, i, j]
        for i in range(d):  # e = X'r - X'X m, q = r'r - 2 m'X'r + m'X'X m
            for l in range(LANES):
                q[l] -= mean[i] * e[i, l]
            for j in range(d):
                for l in range(LANES):
                    e[i, l] -= G[i, j, l] * mean[j]
            for l in range(LANES):
                q[l] -= mean[i] * e[i, l]
        for i in range(d):  # N = X'X L
            for j in range(d):
                for l in range(LANES):
                    N[i, j, l] = 0.0
                for m in range(d):
                    for l in range(LANES):
                        N[i, j, l] += G[i, m, l] * root[m, j]
        for i in range(d):  # H
            for j in range(i + 1):
                for l in range(LANES):
                    s[l] = 0.0
                for m in range(d):
                    for l in range(LANES):
                        s[l] += root[m, i] * N[m, j, l]
                for l in range(LANES):
                    s[l] = s[l] / v + (1.0 if i == j else 0.0)
                for m in range(j):
                    for l in range(LANES):
                        s[l] -= H[i, m, l] * H[j, m, l]
                for l in range(LANES):
                    H[i, j, l] = s[l] / H[j, j, l] if i > j else np.sqrt(max(s[l], 1e-300))
            for l in range(LANES):
                det[l] *= H[i, i, l]
            if i % 8 == 7 or i == d - 1:
                for l in range(LANES):
                    log_det[l] += 2.0 * np.log(det[l])
                    det[l] = 1.0
        for i in range(d):  # R, h = R X'e
            for l in range(LANES):
                s[l] = 1.0 / H[i, i, l]
                h[i, l] = 0.0
            for j in range(d):
                for l in range(LANES):
                    R[i, j, l] = root[j, i]
                for m in range(i):
                    for l in range(LANES):
                        R[i, j, l] -= H[i, m, l] * R[m, j, l]
                for l in range(LANES):
                    R[i, j, l] *= s[l]
                    h[i, l] += R[i, j, l] * e[j, l]
            for l in range(LANES):
                hh[l] += h[i, l] * h[i, l]
        for i in range(d):  # B
            for j in range(d):
                for l in range(LANES):
                    B[i, j, l] = 0.0
                for m in range(d):
                    for l in range(LANES):
                        B[i, j, l] += R[i, m, l] * G[m, j, l]
        for i in range(d):  # P, g
            for l in range(LANES):
                g[i, l] = 0.0
            for m in range(d):
                for l in range(LANES):
                    g[i, l] += B[m, i, l] * h[m, l]
            for l in range(LANES):
                g[i, l] = (e[i, l] - g[i, l] / v) / v
            for j in range(i + 1):
                for l in range(LANES):
                    s[l] = 0.0
                for m in range(d):
                    for l in range(LANES):
                        s[l] += B[m, i, l] * B[m, j, l]
                for l in range(LANES):
                    P[i, j, l] = P[j, i, l] = (G[i, j, l] - s[l] / v) / v
        for l in range(here):
            t = first + l
            values[t] = -0.5 * (
                pulls[t] * np.log(2.0 * np.pi * v) + log_det[l] + (max(q[l], 0.0) - hh[l] / v) / v
            )
            pair = 0
            for i in range(d):
                scores[t, i] = g[i, l]
                for j in range(i + 1):
                    packed[t, pair] = P[i, j, l]
                    pair += 1
        if detail == 0:
            continue
        for l in range(LANES):
            size[l] = max(q[l], 0.0) - 2.0 * hh[l] / v
            trace[l] = fourth[l] = 0.0
        for i in range(d):  # k = R g; u = R'h / v, for which e stands from here on
            for l in range(LANES):
                k[i, l] = e[i, l] = 0.0
            for m in range(d):
                for l in range(LANES):
                    k[i, l] += R[i, m, l] * g[m, l]
                    e[i, l] += R[m, i, l] * h[m, l] / v
            for l in range(LANES):
                kk[l] += k[i, l] * k[i, l]
        for i in range(d):
            for j in range(d):
                for l in range(LANES):
                    s[l] = N[i, j, l] = 0.0
                    size[l] += e[i, l] * G[i, j, l] * e[j, l]
                for m in range(d):
                    for l in range(LANES):
                        s[l] += B[i, m, l] * R[j, m, l]  # (R X'X R')_ij
                        N[i, j, l] += R[i, m, l] * P[m, j, l]
                for l in range(LANES):
                    fourth[l] += s[l] * s[l]
                if i == j:
                    for l in range(LANES):
                        trace[l] += s[l]
        for i in range(d):
            for l in range(LANES):
                h[i, l] = 0.0
            for m in range(d):
                for l in range(LANES):
                    h[i, l] += B[m, i, l] * k[m, l]
            for j in range(i + 1):  # X'V^-2 X = (P - B'R P / v) / v
                for l in range(LANES):
                    s[l] = 0.0
                for m in range(d):
                    for l in range(LANES):
                        s[l] += B[m, i, l] * N[m, j, l]
                for l in range(here):
                    inner[i, j] += (P[i, j, l] - s[l] / v) / v
        for l in range(here):
            t = first + l
            noise[t, 0], noise[t, 1], noise[t, 2], noise[t, 3] = (
                max(size[l], 0.0),
                trace[l],
                kk[l],
                fourth[l],
            )
            pair = 0
            for i in range(d):
                double[t, i] = (g[i, l] - h[i, l] / v) / v
                for j in range(i + 1):
                    weights[t, pair] = g[i, l] * g[j, l] - 0.5 * P[i, j, l]
                    pair += 1


evaluate: Any = entry(
    types.void(
        READ_CUBE,
        READ_ROWS,
        READ_ROW,
        READ_ROW,
        READ_ROWS,
        F,
        READ_ROW,
        I,
        ROW,
        ROWS,
        ROWS,
        ROWS,
        ROWS,
        ROWS,
        ROWS,
    )
)(_evaluate)
