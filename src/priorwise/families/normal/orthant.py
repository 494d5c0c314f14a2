"""Probability that normal values are all below their limits, one lattice rule for many: compiled.

``P(X_j <= upper_j for all j)`` with ``X = L Z`` is an integral over the unit cube (Genz 1992): with
``e_j = Phi((upper_j - sum_(i<j) L_ji z_i) / L_jj)`` and ``z_i = Phi^-1(u_i e_i)`` it is the mean
over u of ``e_1 e_2 ... e_n``. Both functions are polynomials times elementary ones, for eight
points at a time; they are off by at most 2e-10, far less than the lattice is.
"""

# mypy: disable-error-code="no-untyped-def"

from typing import Final

import numpy as np
from numba import types

from priorwise.kernels import simd
from priorwise.kernels.compiling import ROW, ROWS, F, entry, inline
from priorwise.kernels.elementary import exp, polynomial
from priorwise.kernels.random import S52

CUBE: Final = types.Array(F, 3, "C")
REACH: Final = 9.0  # standard deviations beyond which a probability is taken for that at the end
SMALLEST: Final = 1e-31  # probability below which its quantile is not needed
LN2: Final = 0.6931471805599453
LARGE: Final = 2.0**52  # its lowest bits are those of an integer that is added to it
LARGE_BITS: Final = np.uint64(0x4330000000000000)
ONE_BITS: Final = np.uint64(0x3FF0000000000000)
FRACTION: Final = np.uint64(0x000FFFFFFFFFFFFF)

# Phi(-c) exp(c^2 / 2) on [0, 9], in x = 10/3 c / (c + 6) - 1
TAIL: Final = np.array([
    2.1935193217359485e-09, -1.0091116564581172e-08, -4.540080453807601e-08, 5.14695084063987e-07,
    -9.413011866854504e-07, -1.2719664295346432e-05, 0.00013295983028314135, -0.0007475138681012796,
    0.003048426953344574, -0.00981946436798562, 0.02590601265525178, -0.05691220766593738,
    0.10467152391021352, -0.16060920460222455, 0.13814145559481478,
])  # fmt: skip

# z / w with w = sqrt(-2 log 2 Phi(-z)) on [0, 12], in x = 9/4 w / (w + 1.5) - 1
QUANTILE: Final = np.array([
    -0.00011774161830544474, -5.937223322689534e-05, 0.0008447142085060481, 0.00032851089490577574,
    -0.0029483295627869676, -0.0007622281904332338, 0.006801028285703371, 0.0006479344563389902,
    -0.012134698948644548, 0.001321672474631885, 0.018559046963208037, -0.006830968081989196,
    -0.026216160963901267, 0.018101449888035224, 0.03528309535116178, -0.04037484415367889,
    -0.047154188499296416, 0.08504670681230087, 0.06235771540951912, -0.20189785189724713,
    -0.1243041142307941, 0.6350190622268364, 0.5795697058031511,
])  # fmt: skip

# log of 1.5 + x / 2
LOG: Final = np.array([
    -2.3029017434536717e-09, 7.179136071036648e-09, -1.3204021081262376e-08, 4.343040803723482e-08,
    -1.5862086922821103e-07, 5.178477774396086e-07, -1.692419072029446e-06, 5.642500374161546e-06,
    -1.9052354615302475e-05, 6.532182459255082e-05, -0.00022862361110867672, 0.0008230451432221016,
    -0.003086419760312579, 0.012345679021305562, -0.0555555555552867, 0.33333333333314497,
    0.40546510810816305,
])  # fmt: skip


@inline
def below(x):
    """Phi(x)."""
    c = simd.minimum(simd.maximum(x, 0.0 - x), simd.splat(REACH))
    tail = polynomial(TAIL, c / (c + 6.0) * (10.0 / 3.0) - 1.0) * exp(c * c * -0.5)
    return simd.where_at_least(x, simd.splat(0.0), 1.0 - tail, tail)


@inline
def quantile(p):
    """Phi^-1(p)."""
    m = simd.maximum(simd.minimum(p, 1.0 - p), simd.splat(SMALLEST)) * 2.0
    bits = simd.bits_of(m)
    power = simd.float_of((bits >> S52) | LARGE_BITS) - (LARGE + 1023.0)
    fraction = simd.float_of((bits & FRACTION) | ONE_BITS)
    log = polynomial(LOG, fraction * 2.0 - 3.0) + power * LN2
    w = simd.sqrt(simd.maximum(log * -2.0, simd.splat(0.0)))
    z = w * polynomial(QUANTILE, w / (w + 1.5) * 2.25 - 1.0)
    return simd.where_at_least(p, simd.splat(0.5), z, 0.0 - z)


@entry(types.void(ROWS, CUBE, ROWS, ROW, ROW))
def all_below(upper, root, nodes, weights, out):
    """Probability of each row of limits ``(row, n)``, with Cholesky factors ``(row, n, n)``; nodes
    ``(n - 1, point)`` and their weights ``(point,)``, a multiple of WIDTH.
    """
    rows, n = upper.shape
    flat, z = nodes.reshape(-1), np.empty(n * simd.WIDTH)
    points = weights.size
    for row in range(rows):
        total = simd.splat(0.0)
        first = below(simd.splat(upper[row, 0] / root[row, 0, 0]))
        for at in range(0, points, simd.WIDTH):
            inside = first
            product = first
            for j in range(1, n):
                simd.store(
                    z,
                    (j - 1) * simd.WIDTH,
                    quantile(simd.load(flat, (j - 1) * points + at) * inside),
                )
                rest = simd.splat(upper[row, j])
                for i in range(j):
                    rest = rest - simd.load(z, i * simd.WIDTH) * root[row, j, i]
                inside = below(rest / root[row, j, j])
                product = product * inside
            total = total + product * simd.load(weights, at)
        out[row] = simd.sum_of(total)
