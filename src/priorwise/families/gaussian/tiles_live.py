"""Thompson sampling of one task at a time from pulls and sums of rewards."""

import numpy as np

from priorwise.families.gaussian.tiles import At
from priorwise.kernels.compiling import entry, inline
from priorwise.kernels.live import MANY, ONE, largest, normal_draws

__all__ = ["At"]


@inline
def reflect(a, rows, columns, dim):
    """Turn the columns of ``a`` into a triangle, one Householder reflection each; the last column
    comes along.
    """
    for j in range(columns):
        square = 0.0
        for i in range(j, rows):
            square += a[i, j] * a[i, j]
        norm = np.sqrt(square)
        if norm == 0.0:
            continue
        head = a[j, j]
        pivot = -norm if head > 0.0 else norm
        first = head - pivot
        factor = first * pivot  # -v'v / 2
        for k in range(j + 1, dim):
            total = first * a[j, k]
            for i in range(j + 1, rows):
                total += a[i, j] * a[i, k]
            total /= factor
            a[j, k] += total * first
            for i in range(j + 1, rows):
                a[i, k] += total * a[i, j]
        a[j, j] = pivot
        for i in range(j + 1, rows):
            a[i, j] = 0.0


@inline
def chosen(p, n, state, key, step, mask, values, z, work):
    """Condition on all that was seen, draw the means, and return the arm with the largest.

    The posterior's root is that of ``families.normal.arithmetic.given``: with the triangle ``[R y;
    0 .]`` of ``[H L, e; I, 0]``, where a pulled arm's row of H is its unit vector times the square
    root of pulls over noise, a draw is ``m + L R^-1 (y + z)``.
    """
    dim, mean, root, noise = n[At.ARMS], n[At.MEAN], n[At.ROOT], n[At.NOISE_VAR]
    rows = 0
    for arm in range(dim):
        pulls = state[arm]
        if pulls > 0.0:
            scale = np.sqrt(pulls / p[noise + arm])
            for j in range(dim):
                work[rows, j] = scale * p[root + arm * dim + j]
            work[rows, dim] = scale * (state[dim + arm] / pulls - p[mean + arm])
            rows += 1
    for i in range(dim):
        for j in range(dim + 1):
            work[rows + i, j] = 0.0
        work[rows + i, i] = 1.0
    if rows:
        reflect(work, rows + dim, dim, dim + 1)
    normal_draws(key, step, z)
    for i in range(dim - 1, -1, -1):  # R x = y + z, with the signs of Cholesky's R
        sign = 1.0 if work[i, i] > 0.0 else -1.0
        total = work[i, dim] + sign * z[i]
        for j in range(i + 1, dim):
            total -= work[i, j] * z[j]
        z[i] = total / work[i, i]
    for arm in range(dim):
        total = p[mean + arm]
        for j in range(dim):
            total += p[root + arm * dim + j] * z[j]
        values[arm] = total
    return largest(key, step, values, mask)


@entry(ONE)
def one(p, n, state, key, step, mask):
    """Choose the arm of one task."""
    dim = n[At.ARMS]
    work = np.empty((2 * dim, dim + 1))
    return chosen(p, n, state, key, step, mask, np.empty(dim), np.empty(dim), work)


@entry(MANY)
def many(p, n, states, keys, steps, masks, arms):
    """Choose the arms of several tasks."""
    dim = n[At.ARMS]
    values, z, work = np.empty(dim), np.empty(dim), np.empty((2 * dim, dim + 1))
    for t in range(len(keys)):
        arms[t] = chosen(p, n, states[t], keys[t], steps[t], masks[t], values, z, work)
