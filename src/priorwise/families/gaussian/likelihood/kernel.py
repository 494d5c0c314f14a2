"""Compiled marginal likelihood of a normal prior, group by group, with what its derivatives need.

A group is t tasks with one vector of pulls n. With O the arms that were pulled, the mean rewards of
a task are ``y ~ N(nu_O, S)``, ``S = Psi_OO + diag(noise_var / n)_O``. S is inverted and never Psi,
which may be singular.

Groups run in lockstep, :data:`LANES` at a time. An arm that was not pulled stands in S as a row and
column of the identity, with a residual of zero, which changes neither the determinant nor the rest
of the inverse; its own entry of the inverse is removed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from priorwise.core.types import FloatArray
from priorwise.kernels.compiling import LANES, ROW, ROWS, F, entry

CUBE = types.Array(F, 3, "C")


def _evaluate(
    pulls: FloatArray,  # (group, arm)
    tasks: FloatArray,  # (group,)
    means: FloatArray,  # (group, arm): mean over the group's tasks of y
    scatter: FloatArray,  # (group, arm, arm): sum over the group's tasks of (y - mean)(y - mean)'
    nu: FloatArray,  # (arm,)
    psi: FloatArray,  # (arm, arm)
    noise: FloatArray,  # (arm,)
    values: FloatArray,  # out (group,): log density of the y of all tasks of the group
    w: FloatArray,  # out (group, arm): sum over tasks of S^-1 (y - nu); 0 where not pulled
    P: FloatArray,  # out (group, arm, arm): S^-1; 0 where not pulled
    # out (group, arm, arm): S^-1 (sum over tasks of (y - nu)(y - nu)') S^-1; 0 where not pulled
    W: FloatArray,
    grad_nu: FloatArray,  # in and out (arm,): plus the sum over groups of w
    grad_psi: FloatArray,  # in and out (arm, arm): plus that of (W - t P) / 2
    grad_noise: FloatArray,  # in and out (arm,): plus that of (W - t P)_aa / 2 n_a
) -> None:
    arms, groups = nu.size, tasks.size
    seen, share, r, z = (
        np.empty((arms, LANES)),
        np.empty((arms, LANES)),
        np.empty((arms, LANES)),
        np.empty((arms, LANES)),
    )
    root, inverse = np.empty((arms, arms, LANES)), np.empty((arms, arms, LANES))
    block, product = np.empty((arms, arms, LANES)), np.empty((arms, arms, LANES))
    s, t, det, quadratic = np.empty(LANES), np.empty(LANES), np.empty(LANES), np.empty(LANES)
    log_det, entries, spread = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    for first in range(0, groups, LANES):
        for l in range(LANES):
            g = min(first + l, groups - 1)
            t[l] = tasks[g]
            det[l] = 1.0
            log_det[l] = entries[l] = spread[l] = quadratic[l] = 0.0
            for a in range(arms):
                n = pulls[g, a]
                seen[a, l] = 1.0 if n > 0.0 else 0.0
                share[a, l] = noise[a] / n if n > 0.0 else 1.0
                r[a, l] = means[g, a] - nu[a] if n > 0.0 else 0.0
                entries[l] += seen[a, l]
                spread[l] += scatter[g, a, a]
        for i in range(arms):  # S = root root'
            for j in range(i + 1):
                value = psi[i, j]
                for l in range(LANES):
                    s[l] = value * seen[i, l] * seen[j, l]
                for m in range(j):
                    for l in range(LANES):
                        s[l] -= root[i, m, l] * root[j, m, l]
                if i > j:
                    for l in range(LANES):
                        root[i, j, l] = s[l] * inverse[j, j, l]
                else:
                    for l in range(LANES):
                        pivot = max(s[l] + share[i, l], 1e-300)
                        det[l] *= pivot
                        root[i, i, l] = np.sqrt(pivot)
                        inverse[i, i, l] = 1.0 / root[i, i, l]
            if i % 4 == 3 or i == arms - 1:  # so few factors keep the product in range
                for l in range(LANES):
                    log_det[l] += np.log(det[l])
                    det[l] = 1.0
        for i in range(arms):  # inverse = root^-1
            for j in range(i):
                for l in range(LANES):
                    s[l] = 0.0
                for m in range(j, i):
                    for l in range(LANES):
                        s[l] -= root[i, m, l] * inverse[m, j, l]
                for l in range(LANES):
                    inverse[i, j, l] = s[l] * inverse[i, i, l]
        for i in range(arms):  # S^-1 = inverse' inverse
            for j in range(i + 1):
                for l in range(LANES):
                    s[l] = 0.0
                for m in range(i, arms):
                    for l in range(LANES):
                        s[l] += inverse[m, i, l] * inverse[m, j, l]
                for l in range(LANES):
                    block[i, j, l] = s[l] * seen[i, l] * seen[j, l]
                    block[j, i, l] = block[i, j, l]
        for i in range(arms):
            for l in range(LANES):
                s[l] = 0.0
            for j in range(arms):
                for l in range(LANES):
                    s[l] += block[i, j, l] * r[j, l]
            for l in range(LANES):
                z[i, l] = s[l]
                quadratic[l] += t[l] * s[l] * r[i, l]
        count = min(LANES, groups - first)
        for l in range(count):
            g = first + l
            for i in range(arms):
                w[g, i] = t[l] * z[i, l]
                for j in range(arms):
                    P[g, i, j] = block[i, j, l]
                    W[g, i, j] = t[l] * z[i, l] * z[j, l]
            if spread[l] > 0.0:
                for i in range(arms):
                    for j in range(arms):
                        product[i, j, 0] = 0.0
                    for m in range(arms):
                        for j in range(arms):
                            product[i, j, 0] += P[g, i, m] * scatter[g, m, j]
                    quadratic[l] += product[i, i, 0]
                for i in range(arms):
                    for m in range(arms):
                        for j in range(arms):
                            W[g, i, j] += product[i, m, 0] * P[g, m, j]
            for i in range(arms):
                grad_nu[i] += w[g, i]
                for j in range(arms):
                    grad_psi[i, j] += 0.5 * (W[g, i, j] - t[l] * P[g, i, j])
                if seen[i, l] > 0.0:
                    grad_noise[i] += 0.5 * (W[g, i, i] - t[l] * P[g, i, i]) / pulls[g, i]
            values[g] = -0.5 * (
                t[l] * (entries[l] * np.log(2.0 * np.pi) + log_det[l]) + quadratic[l]
            )


def _curvature(
    pulls: FloatArray,  # (group, arm)
    tasks: FloatArray,  # (group,)
    w: FloatArray,  # (group, arm), as above
    P: FloatArray,  # (group, arm, arm), as above
    W: FloatArray,  # (group, arm, arm), as above
    # 1: Q = W - t P / 2, the observed information; 0: Q = t P / 2, the expected one
    observed: float,
    noisy: float,  # 1: with the terms of the noise
    mean_mean: FloatArray,  # out (i, j): sum over groups of t P_ij
    mean_cov: FloatArray,  # out (i, j, k): P_ij w_k
    cov_cov: FloatArray,  # out (i, j, k l): Q_ij P_kl
    mean_noise: FloatArray,  # out (i, a): P_ia w_a / n_a
    noise_cov: FloatArray,  # out (a, j, k): Q_aj P_ka / n_a
    noise_noise: FloatArray,  # out (a, b): Q_ab P_ab / (n_a n_b)
) -> None:
    arms = pulls.shape[1]
    flat = np.empty(arms * arms)
    share = np.empty(arms)
    for g in range(tasks.size):
        t = tasks[g]
        for i in range(arms):
            share[i] = 1.0 / pulls[g, i] if pulls[g, i] > 0.0 else 0.0
            for j in range(arms):
                flat[i * arms + j] = P[g, i, j]
        for i in range(arms):
            if share[i] == 0.0:
                continue
            for j in range(arms):
                p = P[g, i, j]
                q = observed * (W[g, i, j] - t * p) + 0.5 * t * p
                mean_mean[i, j] += t * p
                for k in range(arms):
                    mean_cov[i, j, k] += p * w[g, k]
                if j <= i and share[j] > 0.0:
                    for m in range(arms * arms):
                        cov_cov[i, j, m] += q * flat[m]
                if noisy > 0.0:
                    mean_noise[i, j] += p * w[g, j] * share[j]
                    noise_noise[i, j] += q * p * share[i] * share[j]
                    for k in range(arms):
                        noise_cov[i, j, k] += q * P[g, i, k] * share[i]
    for i in range(arms):
        for j in range(i):
            for m in range(arms * arms):
                cov_cov[j, i, m] = cov_cov[i, j, m]


evaluate: Any = entry(
    types.void(ROWS, ROW, ROWS, CUBE, ROW, ROWS, ROW, ROW, ROWS, CUBE, CUBE, ROW, ROWS, ROW)
)(_evaluate)
curvature: Any = entry(
    types.void(ROWS, ROW, ROWS, CUBE, CUBE, F, F, ROWS, CUBE, CUBE, ROWS, CUBE, ROWS)
)(_curvature)
