"""The streams of ``priorwise.core.streams``, compiled: the same numbers from the same counters."""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from priorwise.core import streams
from priorwise.kernels.compiling import LANES, inline

GOLDEN = np.uint64(streams.GOLDEN)
MIX_1 = np.uint64(streams.MIX_1)
MIX_2 = np.uint64(streams.MIX_2)
ONE_BITS = np.uint64(streams.ONE_BITS)
WORDS_PER_ATTEMPT = np.uint64(streams.WORDS_PER_ATTEMPT)
S12, S27, S30, S31, S32, S52, S62, S63 = (np.uint64(n) for n in (12, 27, 30, 31, 32, 52, 62, 63))
ZERO, ONE, TWO, THREE = (np.uint64(n) for n in range(4))

MANTISSA = np.uint64(0x000FFFFFFFFFFFFF)
MAGIC_BITS = np.uint64(0x4330000000000000)  # the bits of 2^52: or-ing a small integer in converts it to a float
MAGIC = 4503599627370496.0 + 1023.0
LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10
SQRT_HALF_BITS = np.uint64(0x3FE6A09E667F3BCD)
HALF_PI = np.pi / 2


@intrinsic
def bits_of(typingctx, value):
    """Return the bits of a float."""

    def generate(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(64))

    return types.uint64(types.float64), generate


@intrinsic
def float_of(typingctx, value):
    """Return the float with these bits."""

    def generate(context, builder, signature, args):
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.uint64), generate


@inline
def mix(x):
    """Finalise 64 bits."""
    x = x + GOLDEN
    x = (x ^ (x >> S30)) * MIX_1
    x = (x ^ (x >> S27)) * MIX_2
    return x ^ (x >> S31)


@inline
def call_key(step, call):
    """Key of one request at one step."""
    return mix((np.uint64(step) << S32) | np.uint64(call))


@inline
def slot_key(at, draw, index):
    """Key of one element of the request with key ``at``."""
    return mix(at + ((np.uint64(draw) << S32) | np.uint64(index)))


@inline
def unit(bits):
    """Uniform on [0, 1)."""
    return float_of((bits >> S12) | ONE_BITS) - 1.0


@inline
def log(x):
    """Natural logarithm of a positive normal float, to about one unit in the last place, without a branch.

    x = 2^k (1 + f) with sqrt(1/2) < 1 + f < sqrt(2), and log(1 + f) from s = f / (2 + f) by an odd series in s.
    """
    bits = bits_of(x) + (ONE_BITS - SQRT_HALF_BITS)
    exponent = float_of((bits >> S52) | MAGIC_BITS) - MAGIC
    m = float_of((bits & MANTISSA) + SQRT_HALF_BITS)
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    p = 1.479819860511658591e-01
    p = p * z + 1.531383769920937332e-01
    p = p * z + 1.818357216161805012e-01
    p = p * z + 2.222219843214978396e-01
    p = p * z + 2.857142874366239149e-01
    p = p * z + 3.999999999940941908e-01
    p = p * z + 6.666666666666735130e-01
    square = 0.5 * f * f
    return exponent * LN2_HIGH - ((square - (s * (square + p * z) + exponent * LN2_LOW)) - f)


@inline
def cosine(x):
    """Cosine on [-pi/4, pi/4]."""
    z = x * x
    p = -1.13596475577881948265e-11
    p = p * z + 2.08757232129817482790e-09
    p = p * z - 2.75573143513906633035e-07
    p = p * z + 2.48015872894767294178e-05
    p = p * z - 1.38888888888741095749e-03
    p = p * z + 4.16666666666666019037e-02
    return 1.0 - (0.5 * z - z * z * p)


@inline
def sine(x):
    """Sine on [-pi/4, pi/4]."""
    z = x * x
    p = 1.58969099521155010221e-10
    p = p * z - 2.50507602534068634195e-08
    p = p * z + 2.75573137070700676789e-06
    p = p * z - 1.98412698298579493134e-04
    p = p * z + 8.33333333332248946124e-03
    p = p * z - 1.66666666666666324348e-01
    return x + x * z * p


@inline
def box_muller(element):
    """Two independent standard normals from the element's words 0 and 1."""
    radius = np.sqrt(-2.0 * log(1.0 - unit(mix(element))))
    turn = mix(element + GOLDEN)
    x = (unit(turn) - 0.5) * HALF_PI
    c = radius * cosine(x)
    s = radius * sine(x)
    # turn by 0 to 3 quarters: swap where the first low bit is set, flip signs by the sign bit
    swap = (bits_of(c) ^ bits_of(s)) & (ZERO - (turn & ONE))
    flip = (turn & TWO) << S62
    flip_first = flip ^ ((turn & ONE) << S63)
    return float_of(bits_of(c) ^ swap ^ flip_first), float_of(bits_of(s) ^ swap ^ flip)


@inline
def uniforms(keys, at, draw, index, out):
    """Uniforms of one place for a tile."""
    slot = slot_key(at, draw, index)
    for lane in range(LANES):
        out[lane] = unit(mix(keys[lane] + slot))


@inline
def normals(keys, at, draw, first, out):
    """Normals of the places 0, 1, ... of one draw for a tile, written to ``out`` (place, lane) from row ``first`` on."""
    count = out.shape[0] - first
    pairs = count >> 1
    for pair in range(pairs):
        slot = slot_key(at, draw, pair)
        even = out[first + 2 * pair]
        odd = out[first + 2 * pair + 1]
        for lane in range(LANES):
            a, b = box_muller(keys[lane] + slot)
            even[lane] = a
            odd[lane] = b
    if count & 1:
        last_normal(keys, at, draw, pairs, out[first + count - 1])


@inline
def last_normal(keys, at, draw, pair, out):
    """Return the first normal of a pair for a tile."""
    slot = slot_key(at, draw, pair)
    for lane in range(LANES):
        out[lane] = box_muller(keys[lane] + slot)[0]


@inline
def one_normal(keys, at, out):
    """Standard normal of the first place of a request, for a tile."""
    last_normal(keys, at, 0, 0, out)
