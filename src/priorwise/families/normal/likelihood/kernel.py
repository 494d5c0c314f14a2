"""Compiled marginal likelihood of a normal prior, group by group, with what its derivatives need.

A group is t tasks with one design. In the design's own coordinates ``w' = C'w`` the directions are
pulled separately, as arms are (for which C is the identity): with O the directions that were pulled
n times, mean rewards are ``y ~ N((C'm)_O, V)``, ``V = (C'S C)_OO + diag(noise_var / n)_O``. V is
inverted and never S, which may be singular.

Groups run in lockstep, :data:`LANES` at a time. A direction that was not pulled stands in V as a
row and column of the identity, with a residual of zero, which changes neither the determinant nor
the rest of the inverse; its own entry of the inverse is removed.
"""

import numpy as np
from numba import types

from priorwise.core.types import FloatArray, IntArray
from priorwise.kernels.compiling import INTS, LANES, ROW, ROWS, F, I, entry, inline

CUBE = types.Array(F, 3, "C")
READ_ROWS, READ_CUBE = (types.Array(F, axes, "C", readonly=True) for axes in (2, 3))


@inline
def _own_covariance(cov, turn, turned, seen, s, product, out):
    """Lower triangle of C'S C, zero where a direction was not pulled."""
    d = seen.shape[0]
    if turned:
        for i in range(d):
            for j in range(d):
                for l in range(LANES):
                    s[l] = cov[i, j]
                for m in range(j + 1, d):
                    for l in range(LANES):
                        s[l] += cov[i, m] * turn[m, j, l]
                for l in range(LANES):
                    product[i, j, l] = s[l]
    for i in range(d):
        for j in range(i + 1):
            for l in range(LANES):
                s[l] = product[i, j, l] if turned else cov[i, j]
            if turned:
                for m in range(i + 1, d):
                    for l in range(LANES):
                        s[l] += turn[m, i, l] * product[m, j, l]
            for l in range(LANES):
                out[i, j, l] = s[l] * seen[i, l] * seen[j, l]


@inline
def _cholesky(matrix, diagonal, s, det, inverse, log_det):
    """Root of ``matrix + diag(diagonal)`` in its place, and the inverses of its diagonal."""
    d = diagonal.shape[0]
    for i in range(d):
        for j in range(i + 1):
            for l in range(LANES):
                s[l] = matrix[i, j, l]
            for m in range(j):
                for l in range(LANES):
                    s[l] -= matrix[i, m, l] * matrix[j, m, l]
            if i > j:
                for l in range(LANES):
                    matrix[i, j, l] = s[l] * inverse[j, j, l]
            else:
                for l in range(LANES):
                    pivot = max(s[l] + diagonal[i, l], 1e-300)
                    det[l] *= pivot
                    matrix[i, i, l] = np.sqrt(pivot)
                    inverse[i, i, l] = 1.0 / matrix[i, i, l]
        if i % 4 == 3 or i == d - 1:  # so few factors keep the product in range
            for l in range(LANES):
                log_det[l] += np.log(det[l])
                det[l] = 1.0


@inline
def _precision(root, inverse, seen, s, out):
    """``V^-1`` from its root, through the inverse of the root; zero where not pulled."""
    d = seen.shape[0]
    for i in range(d):
        for j in range(i):
            for l in range(LANES):
                s[l] = 0.0
            for m in range(j, i):
                for l in range(LANES):
                    s[l] -= root[i, m, l] * inverse[m, j, l]
            for l in range(LANES):
                inverse[i, j, l] = s[l] * inverse[i, i, l]
    for i in range(d):
        for j in range(i + 1):
            for l in range(LANES):
                s[l] = 0.0
            for m in range(i, d):
                for l in range(LANES):
                    s[l] += inverse[m, i, l] * inverse[m, j, l]
            for l in range(LANES):
                out[i, j, l] = s[l] * seen[i, l] * seen[j, l]
                out[j, i, l] = out[i, j, l]


@inline
def _scores(precision, residual, tasks, s, scores, quadratic):
    """``V^-1 r`` of the group's mean residual r, and ``t r'V^-1 r``."""
    d = residual.shape[0]
    for i in range(d):
        for l in range(LANES):
            s[l] = 0.0
        for j in range(d):
            for l in range(LANES):
                s[l] += precision[i, j, l] * residual[j, l]
        for l in range(LANES):
            scores[i, l] = s[l]
            quadratic[l] += tasks[l] * s[l] * residual[i, l]


@inline
def _second(P, z, t, scatter, product, W):
    """``W = V^-1 (sum over tasks of r r') V^-1 = t z z' + P scatter P``; returns ``tr(P scatter)``,
    of which nothing is there for a group without scatter.
    """
    d, trace = len(z), 0.0
    for i in range(d):
        for j in range(d):
            W[i, j] = t * z[i] * z[j]
    if scatter.shape[0] > 0:
        for i in range(d):
            for j in range(d):
                product[i, j] = 0.0
            for m in range(d):
                for j in range(d):
                    product[i, j] += P[i, m] * scatter[m, j]
            trace += product[i, i]
        for i in range(d):
            for m in range(d):
                for j in range(d):
                    W[i, j] += product[i, m] * P[m, j]
    return trace


@inline
def _turn_back(turn, matrix, product, out):
    """``C matrix C'``."""
    d = len(matrix)
    for i in range(d):
        for j in range(d):
            product[i, j] = matrix[i, j]
        for m in range(i):
            for j in range(d):
                product[i, j] += turn[i, m] * matrix[m, j]
    for i in range(d):
        for j in range(d):
            out[i, j] = product[i, j]
            for m in range(j):
                out[i, j] += product[i, m] * turn[j, m]


@inline
def _add_noise(P, W, z, t, pulls, which, with_mean, with_cov, with_noise):
    """Add the information about the noise, all in the design's own coordinates.

    With ``Q = W - t P / 2`` and k the noise of direction a: with the mean ``t P_ai z_a / n_a``,
    with the covariance ``Q_ai P_aj / n_a``, of two noises ``Q_ab P_ab / n_a n_b``.
    """
    d = len(z)
    for a in range(d):
        if pulls[a] > 0.0:
            k, share = which[a], 1.0 / pulls[a]
            for i in range(d):
                q = (W[a, i] - 0.5 * t * P[a, i]) * share
                with_mean[k, i] += t * P[a, i] * z[a] * share
                for j in range(d):
                    with_cov[k, i, j] += q * P[a, j]
                if pulls[i] > 0.0:
                    with_noise[k, which[i]] += q * P[a, i] / pulls[i]


@entry(
    types.void(
        CUBE, ROWS, ROW, ROWS, CUBE, ROW, ROWS, ROW, INTS, I,
        ROW, ROWS, ROWS, ROWS, ROW, ROWS, CUBE, ROWS,
    )
)  # fmt: skip
def evaluate(
    turn: FloatArray,  # (group, d, d): C, unit lower triangles; no group for arms
    pulls: FloatArray,  # (group, d)
    tasks: FloatArray,  # (group,)
    means: FloatArray,  # (group, d): mean over the group's tasks of y
    # (some, d, d): sum over tasks of (y - mean)(y - mean)' of the last groups; others have none
    scatter: FloatArray,
    mean: FloatArray,  # m
    cov: FloatArray,  # S
    noise: FloatArray,  # (noise,)
    which: IntArray,  # (d,): which noise each direction has
    detail: int,  # 0: no derivatives in the noise; 1: the first; 2: the second, too
    values: FloatArray,  # out (group,): log density of the y of all tasks of the group
    scores: FloatArray,  # out (group, d): C g, with g the sum over tasks of V^-1 (y - C'm)
    packed: FloatArray,  # out (group, pair): lower triangle of C P C', P = V^-1, row by row
    second: FloatArray,  # out (group, pair): that of C W C', with W the sum over tasks of g g'
    slope: FloatArray,  # in and out (noise,): derivative in the noise
    with_mean: FloatArray,  # in and out (noise, d): information about noise and mean
    with_cov: FloatArray,  # in and out (noise, d, d): about noise and covariance
    with_noise: FloatArray,  # in and out (noise, noise): about two noises
) -> None:
    """Log densities of groups of tasks, and the sums that their derivatives need."""
    groups, d = pulls.shape
    turned, plain = turn.shape[0] > 0, groups - scatter.shape[0]
    seen, share, residual = np.empty((d, LANES)), np.empty((d, LANES)), np.empty((d, LANES))
    z, C = np.empty((d, LANES)), np.empty((d if turned else 0, d, LANES))
    V, inverse = np.empty((d, d, LANES)), np.empty((d, d, LANES))
    P, product = np.empty((d, d, LANES)), np.empty((d, d, LANES))
    s, t, det, log_det = np.empty(LANES), np.empty(LANES), np.empty(LANES), np.empty(LANES)
    quadratic, entries = np.empty(LANES), np.empty(LANES)
    own_P, own_W, own_z = np.empty((d, d)), np.empty((d, d)), np.empty(d)
    two, back, nothing = np.empty((d, d)), np.empty((d, d)), np.empty((0, d))
    own_mean, own_cov = np.empty((len(noise), d)), np.empty((len(noise), d, d))
    for first in range(0, groups, LANES):
        for l in range(LANES):
            g = min(first + l, groups - 1)
            t[l], det[l] = tasks[g], 1.0
            log_det[l] = entries[l] = quadratic[l] = 0.0
            for i in range(d):
                n = pulls[g, i]
                seen[i, l] = 1.0 if n > 0.0 else 0.0
                share[i, l] = noise[which[i]] / n if n > 0.0 else 1.0
                centre = mean[i]
                if turned:
                    for j in range(d):
                        C[i, j, l] = turn[g, i, j]
                    for j in range(i + 1, d):
                        centre += turn[g, j, i] * mean[j]
                residual[i, l] = means[g, i] - centre if n > 0.0 else 0.0
                entries[l] += seen[i, l]
        _own_covariance(cov, C, turned, seen, s, product, V)
        _cholesky(V, share, s, det, inverse, log_det)
        _precision(V, inverse, seen, s, P)
        _scores(P, residual, t, s, z, quadratic)
        for l in range(min(LANES, groups - first)):
            g = first + l
            for i in range(d):
                own_z[i] = z[i, l]
                for j in range(d):
                    own_P[i, j] = P[i, j, l]
            more = _second(
                own_P, own_z, t[l], scatter[g - plain] if g >= plain else nothing, two, own_W
            )
            values[g] = -0.5 * (
                t[l] * (entries[l] * np.log(2.0 * np.pi) + log_det[l]) + quadratic[l] + more
            )
            for i in range(d if detail > 0 else 0):
                if pulls[g, i] > 0.0:
                    slope[which[i]] += 0.5 * (own_W[i, i] - t[l] * own_P[i, i]) / pulls[g, i]
            if detail > 1 and turned:
                own_mean[:] = 0.0
                own_cov[:] = 0.0
                _add_noise(
                    own_P, own_W, own_z, t[l], pulls[g], which, own_mean, own_cov, with_noise
                )
                _turn_back(turn[g], own_cov[0], two, back)
                for i in range(d):
                    for j in range(d):
                        with_cov[0, i, j] += back[i, j]
                        with_mean[0, i] += own_mean[0, j] * turn[g, i, j]
            elif detail > 1:
                _add_noise(
                    own_P, own_W, own_z, t[l], pulls[g], which, with_mean, with_cov, with_noise
                )
            pair = 0
            if turned:
                _turn_back(turn[g], own_P, two, back)
                for i in range(d):
                    centre = own_z[i]
                    for j in range(i):
                        centre += turn[g, i, j] * own_z[j]
                    scores[g, i] = t[l] * centre
                for i in range(d):
                    for j in range(i + 1):
                        packed[g, pair] = back[i, j]
                        second[g, pair] = scores[g, i] * scores[g, j] / t[l]
                        pair += 1
            else:
                for i in range(d):
                    scores[g, i] = t[l] * own_z[i]
                    for j in range(i + 1):
                        packed[g, pair] = own_P[i, j]
                        second[g, pair] = own_W[i, j]
                        pair += 1


@entry(types.void(READ_CUBE, READ_ROWS, CUBE, ROWS, ROWS))
def separate(
    gram: FloatArray,  # (task, d, d): X'X
    moments: FloatArray,  # (task, d): X'r
    turn: FloatArray,  # out (task, d, d): C
    pulls: FloatArray,  # out (task, d): D
    means: FloatArray,  # out (task, d): y = D^-1 C^-1 X'r, 0 where D is
) -> None:
    """``X'X = C D C'`` with C a unit lower triangle: in the coordinates ``C'w`` features are pulled
    separately, as arms are. Pivots below 1e-12 of their feature's size are 0: not seen.
    """
    tasks, d = moments.shape
    for t in range(tasks):
        for j in range(d):
            pivot, moment = gram[t, j, j], moments[t, j]
            for m in range(j):
                pivot -= turn[t, j, m] * turn[t, j, m] * pulls[t, m]
                moment -= turn[t, j, m] * pulls[t, m] * means[t, m]
            pulls[t, j] = pivot if pivot > 1e-12 * gram[t, j, j] else 0.0
            means[t, j] = moment / pulls[t, j] if pulls[t, j] > 0.0 else 0.0
            for i in range(d):
                turn[t, i, j] = 1.0 if i == j else 0.0
            if pulls[t, j] > 0.0:
                for i in range(j + 1, d):
                    s = gram[t, i, j]
                    for m in range(j):
                        s -= turn[t, i, m] * turn[t, j, m] * pulls[t, m]
                    turn[t, i, j] = s / pulls[t, j]
