"""Exponentials and logarithms of a vector of tasks, and of the gamma function."""

from math import factorial
from typing import Final

import numpy as np

from priorwise.kernels.compiling import inline
from priorwise.kernels.random import S52
from priorwise.kernels.simd import bits_of, float_of, fma, largest, splat, where_at_least

TO_INTEGER: Final = 1.5 * 2.0**52  # added to a float, its lowest bits are those of an integer
LOG2_E: Final = 1.4426950408889634
LN2_HIGH: Final = 0.6931471803691238
LN2_LOW: Final = 1.9082149292705877e-10
TAYLOR: Final = np.array([1.0 / factorial(k) for k in range(13, -1, -1)])

TERMS: Final = 17
ATANH: Final = np.array([2.0 / (2 * k + 1) for k in range(TERMS - 1, -1, -1)])
"""``2 artanh(v) / v`` in ``v^2``, for v up to 1/3."""
LN2: Final = 0.6931471805599453
LARGE: Final = 2.0**52
LARGE_BITS: Final = np.uint64(0x4330000000000000)
ONE_BITS: Final = np.uint64(0x3FF0000000000000)
FRACTION: Final = np.uint64(0x000FFFFFFFFFFFFF)

STIRLING: Final = np.array([
    -3617.0 / 122400.0, 1.0 / 156.0, -691.0 / 360360.0, 1.0 / 1188.0, -1.0 / 1680.0, 1.0 / 1260.0,
    -1.0 / 360.0, 1.0 / 12.0,
])  # fmt: skip
"""Of Stirling's series, in ``1 / x^2``: within 1e-16 from ``FROM`` on."""
FROM: Final = 8
HALF_LOG_TAU: Final = 0.9189385332046727  # log(2 pi) / 2


@inline
def polynomial(coefficients, x):
    """Evaluate at x, the highest power first."""
    value = x * coefficients[0] + coefficients[1]
    for k in range(2, len(coefficients)):
        value = value * x + coefficients[k]
    return value


@inline
def exp(x):
    """e^x between -700 and 700, to about one unit in the last place: 2^k e^r with |r| < 0.35."""
    t = x * LOG2_E + TO_INTEGER
    k = t - TO_INTEGER
    r = x - k * LN2_HIGH
    r = r - k * LN2_LOW
    return float_of(bits_of(polynomial(TAYLOR, r)) + (bits_of(t) << S52))


@inline
def log(x):
    """Logarithm of a positive number: ``k log 2 + 2 artanh((f - 1) / (f + 1))``."""
    k = float_of((bits_of(x) >> S52) | LARGE_BITS) - (LARGE + 1023.0)
    f = float_of((bits_of(x) & FRACTION) | ONE_BITS)
    v = (f - 1.0) / (f + 1.0)
    return fma(k, splat(LN2), v * polynomial(ATANH, v * v))


@inline
def log1p(x):
    """``log(1 + x)`` for x from 0 on, with all digits of a small one."""
    v = x / (x + 2.0)
    return where_at_least(x, splat(1.0), log(x + 1.0), v * polynomial(ATANH, v * v))


@inline
def log_gamma(x):
    """Log of the gamma function of a positive number: Stirling's series, below ``FROM`` by way of
    ``gamma(x + 1) = x gamma(x)``.
    """
    edge = splat(float(FROM))
    y, log_steps = where_at_least(x, edge, x, x + float(FROM)), splat(0.0)
    if largest(edge - x) > 0.0:
        steps = x
        for k in range(1, FROM):
            steps = steps * (x + float(k))
        log_steps = log(where_at_least(x, edge, splat(1.0), steps))
    r = 1.0 / y
    series = r * polynomial(STIRLING, r * r) + HALF_LOG_TAU
    return fma(y - 0.5, log(y), series - y) - log_steps
