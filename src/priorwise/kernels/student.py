"""Student's t in tile functions: the twin of ``priorwise.core.hashing.student``, in vectors."""

from math import factorial
from typing import Final

import numpy as np

from priorwise.kernels.compiling import LANES, inline
from priorwise.kernels.elementary import LN2_HIGH, LN2_LOW, LOG2_E, TO_INTEGER, polynomial
from priorwise.kernels.random import (
    ONE_BITS,
    S52,
    minus_twice_log,
    mix,
    second,
    turned,
    unit,
)
from priorwise.kernels.simd import WIDTH, bits_of, float_of, load, sqrt, store

TAYLOR: Final = np.array([1.0 / factorial(k) for k in range(13, 0, -1)])  # of (e^r - 1) / r


@inline
def expm1(x):
    """``e^x - 1`` between 0 and 700, with all digits near 0: ``2^k (e^r - 1) + 2^k - 1``."""
    t = x * LOG2_E + TO_INTEGER
    k = t - TO_INTEGER
    r = x - k * LN2_HIGH
    r = r - k * LN2_LOW
    power = float_of((bits_of(t) << S52) + ONE_BITS)
    return polynomial(TAYLOR, r) * r * power + (power - 1.0)


@inline
def student_row(keys, slot, centre, width, inverse, work, out):
    """Write ``centre + sqrt(width / nu) T`` for a tile, T of ``nu = 1 / inverse`` degrees of
    freedom; all are rows, ``work`` is one that is used up.

    Short loops, so that the constants of each fit in registers.
    """
    for g in range(0, LANES, WIDTH):
        bits = mix(load(keys, g) + slot)
        store(work, g, float_of(second(bits)))
        store(out, g, minus_twice_log(1.0 - unit(bits)))
    for g in range(0, LANES, WIDTH):
        squared = load(width, g) * expm1(load(out, g) * load(inverse, g))
        store(out, g, sqrt(squared))
    for g in range(0, LANES, WIDTH):
        cosine, _ = turned(load(out, g), bits_of(load(work, g)))
        store(out, g, load(centre, g) + cosine)
