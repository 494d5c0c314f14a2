"""Probability that two to five normal values are all below their limits, without a lattice:
compiled.

Along the correlations ``C(t) = t C + (1 - t) I`` Plackett's identity (1954, Biometrika 41) gives
the derivative of every pair ``i < j``, in which two values stand at their limits and n - 2 others
are below theirs:

    P_n(h; C) = prod_k Phi(h_k) + sum_(i<j) C_ij int_0^1 phi_2(h_i, h_j; t C_ij) P_(n-2)(h'; C') dt

with h' and C' given the two. So three values take one integral and five take two. Where C is
singular the integrand turns sharply near t = 1 alone, where the nodes of ``rule`` crowd.
"""

# mypy: disable-error-code="no-untyped-def"

from math import erfc, pi
from math import exp as exp_of
from math import sqrt as root_of
from typing import Final

import numpy as np
from numba import types

from priorwise.families.normal.orthant import CUBE, below
from priorwise.kernels import simd
from priorwise.kernels.compiling import ROW, ROWS, entry, inline
from priorwise.kernels.elementary import exp

NOTHING: Final = 45.0
"""Minus the log of a density that does not count."""
LEAST: Final = 700.0
"""The same where the compiled exponential ends."""


@inline
def up_to_three(h, c, n, rule):
    """Probability for two or three values, eight nodes at a time; for none it is 1."""
    product = 1.0
    for k in range(n):
        product *= 0.5 * erfc(-h[k] * root_of(0.5))
    if n < 2:
        return product
    total, nodes = simd.splat(0.0), rule.shape[1]
    for at in range(0, nodes, simd.WIDTH):
        t, rest = simd.load(rule, at), simd.load(rule, nodes + at)
        weight = simd.load(rule, 2 * nodes + at)
        for i in range(n - 1):
            for j in range(i + 1, n):
                rho = t * c[i, j]
                one = (rest + t * (1.0 - c[i, j])) * (rest + t * (1.0 + c[i, j]))  # 1 - rho^2
                apart, both = h[i] - h[j], h[i] * h[j]
                power = ((1.0 - rho) * both + 0.5 * apart * apart) / one
                power = simd.minimum(power, simd.splat(LEAST))
                density = exp(0.0 - power) / simd.sqrt(one) * (c[i, j] * weight)
                if n == 3:
                    k = 3 - i - j
                    # t c = C(t) off its diagonal; slopes of value k on values i and j
                    first = (t * c[i, k] - rho * (t * c[j, k])) / one
                    second = (t * c[j, k] - rho * (t * c[i, k])) / one
                    spread = 1.0 - t * (first * c[i, k] + second * c[j, k])
                    ahead = h[k] - first * h[i] - second * h[j]
                    density = density * below(ahead / simd.sqrt(simd.maximum(spread, rest)))
                total = total + density
    return product + simd.sum_of(total) / (2.0 * pi)


@inline
def below_given(h, c, n, i, j, t, rest, given, among):
    """Limits and correlations of the other values where values i and j stand at their limits, along
    the way at t.
    """
    rho = t * c[i, j]
    one = (rest + t * (1.0 - c[i, j])) * (rest + t * (1.0 + c[i, j]))
    a = 0
    for k in range(n):
        if k not in (i, j):
            first = t * (c[i, k] - rho * c[j, k]) / one
            second = t * (c[j, k] - rho * c[i, k]) / one
            given[a] = h[k] - first * h[i] - second * h[j]
            b = 0
            for m in range(k + 1):
                if m not in (i, j):
                    own = 1.0 if m == k else t * c[k, m]
                    among[a, b] = own - t * (first * c[i, m] + second * c[j, m])
                    b += 1
            among[a, a] = root_of(max(among[a, a], rest))
            given[a] /= among[a, a]
            a += 1
    for a in range(n - 2):
        for b in range(a):
            share = among[a, b] / (among[a, a] * among[b, b])
            among[a, b] = among[b, a] = min(max(share, -1.0), 1.0)


@entry(types.void(ROWS, CUBE, ROWS, ROW))
def orthants(limits, correlations, rule, out):
    """Probability of each row of two to five limits ``(row, n)`` with correlations ``(row, n, n)``;
    the rule has nodes t, ``1 - t`` with all its digits, and weights, ``(3, node)``, a multiple of
    WIDTH.
    """
    (rows, n), nodes = limits.shape, rule.shape[1]
    given, among = np.empty(n), np.empty((n, n))
    for row in range(rows):
        h, c = limits[row], correlations[row]
        if n <= 3:
            out[row] = up_to_three(h, c, n, rule)
            continue
        total = 1.0
        for k in range(n):
            total *= 0.5 * erfc(-h[k] * root_of(0.5))
        for i in range(n - 1):
            for j in range(i + 1, n):
                for at in range(nodes):
                    t, rest, rho = rule[0, at], rule[1, at], rule[0, at] * c[i, j]
                    one = (rest + t * (1.0 - c[i, j])) * (rest + t * (1.0 + c[i, j]))
                    apart = h[i] - h[j]
                    power = ((1.0 - rho) * h[i] * h[j] + 0.5 * apart * apart) / one
                    if power < NOTHING and rho != 0.0:
                        below_given(h, c, n, i, j, t, rest, given, among)
                        density = exp_of(-power) / (2.0 * pi * root_of(one))
                        inside = up_to_three(given, among, n - 2, rule)
                        total += rule[2, at] * c[i, j] * density * inside
        out[row] = total
