"""The streams of ``priorwise.core.streams``, compiled: the same numbers from the same counters."""

import numpy as np

from priorwise.core import hashing
from priorwise.kernels.compiling import LANES, inline
from priorwise.kernels.simd import WIDTH, bits_of, float_of, load, sqrt, store

GOLDEN = np.uint64(hashing.GOLDEN)
MIX_1 = np.uint64(hashing.MIX_1)
MIX_2 = np.uint64(hashing.MIX_2)
ONE_BITS = np.uint64(hashing.ONE_BITS)
PAIRED = np.uint64(hashing.PAIRED)
WORDS_PER_ATTEMPT = np.uint64(hashing.WORDS_PER_ATTEMPT)
S12, S16, S27, S29, S30, S31, S32, S48, S52, S62, S63 = (
    np.uint64(n) for n in (12, 16, 27, 29, 30, 31, 32, 48, 52, 62, 63)
)
ZERO, ONE, TWO, THREE = (np.uint64(n) for n in range(4))

MANTISSA = np.uint64(0x000FFFFFFFFFFFFF)
# the bits of 2^52: or-ing a small integer in converts it to a float
MAGIC_BITS = np.uint64(0x4330000000000000)
TWO_52 = 2.0**52
MAGIC = TWO_52 + 1023.0
MINUS_TWO_LOG_2 = -1.3862943611198906
SQRT_HALF_BITS = np.uint64(0x3FE6A09E667F3BCD)
TWO_BITS = np.uint64(0x4000000000000000)  # the bits of 2.0


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
def whole(x):
    """The integer that a float from 0 to 2^52 is."""
    return bits_of(x + TWO_52) & MANTISSA


@inline
def minus_twice_log(x):
    """-2 log x of a positive normal float, to about one unit in the last place, without a branch.

    x = 2^k m with m in [sqrt(1/2), sqrt(2)), and log m = 2 atanh(t) with t = (m - 1) / (m + 1).
    """
    bits = bits_of(x) + (ONE_BITS - SQRT_HALF_BITS)
    exponent = float_of((bits >> S52) | MAGIC_BITS) - MAGIC
    m = float_of((bits & MANTISSA) + SQRT_HALF_BITS)
    t = (m - 1.0) / (m + 1.0)
    w = t * t
    p = w * -0.33675627137797287 + -0.36243844007787285
    p = p * w + -0.4444686984281641
    p = p * w + -0.571428320319513
    p = p * w + -0.8000000012354611
    p = p * w + -1.333333333331057
    p = p * w + -4.0
    return p * t + exponent * MINUS_TWO_LOG_2


@inline
def radius_of(bits):
    """Length of a standard normal pair, from one word."""
    return sqrt(minus_twice_log(1.0 - unit(bits)))


@inline
def turned(radius, bits):
    """A point at this radius and a random angle, from one word.

    52 bits place it within an eighth of a turn of an axis, at x pi/4; the two lowest choose the
    axis: swap, and flip signs.
    """
    x = float_of((bits >> S12) | TWO_BITS) - 3.0
    w = x * x
    s = w * 6.877360573166326e-12 + -1.7571500746983935e-09
    s = s * w + 3.133616225433416e-07
    s = s * w + -3.657620415891387e-05
    s = s * w + 0.002490394570188844
    s = s * w + -0.08074551218828054
    s = s * w + 0.7853981633974483
    c = w * 1.1365469207731353e-10 + -2.4609507094028117e-08
    c = c * w + 3.590859179850238e-06
    c = c * w + -0.00032599188648354014
    c = c * w + 0.015854344243741547
    c = c * w + -0.30842513753403783
    c = c * w + 1.0
    cosine = bits_of(radius * c)
    sine = bits_of(radius * (x * s))
    swap = (cosine ^ sine) & (ZERO - (bits & ONE))
    flip = (bits & TWO) << S62
    return float_of(cosine ^ swap ^ flip ^ (bits << S63)), float_of(sine ^ swap ^ flip)


@inline
def second(bits):
    """Bits for the angle from those of the radius: one round of multiplication, as in a
    congruential generator of period 2^64.
    """
    bits = (bits ^ (bits >> S32)) * MIX_1
    return bits ^ (bits >> S29)


@inline
def box_muller(element):
    """Two independent standard normals from the element's word 0."""
    bits = mix(element)
    return turned(radius_of(bits), second(bits))


@inline
def uniforms(keys, at, draw, index, out):
    """Uniforms of one place for a tile."""
    slot = slot_key(at, draw, index)
    for g in range(0, LANES, WIDTH):
        store(out, g, unit(mix(load(keys, g) + slot)))


@inline
def normals(keys, at, draw, out):
    """Normals of the places 0, 1, ... of one draw for a tile, one a row of ``out``.

    Short loops, so that the constants of each fit in registers.
    """
    count = out.shape[0]
    pairs = count >> 1
    for pair in range(pairs):
        slot = slot_key(at, draw, pair)
        for g in range(0, LANES, WIDTH):
            place = 2 * pair * LANES + g
            bits = mix(load(keys, g) + slot)
            store(out, place, float_of(bits))
            store(out, place + LANES, float_of(second(bits)))
    for pair in range(pairs):
        for place in range(2 * pair * LANES, (2 * pair + 1) * LANES, WIDTH):
            store(out, place, radius_of(bits_of(load(out, place))))
    for pair in range(pairs):
        for place in range(2 * pair * LANES, (2 * pair + 1) * LANES, WIDTH):
            a, b = turned(load(out, place), bits_of(load(out, place + LANES)))
            store(out, place, a)
            store(out, place + LANES, b)
    if count & 1:  # the first normal of a last pair
        slot, last = slot_key(at, draw, pairs), out[count - 1]
        for g in range(0, LANES, WIDTH):
            store(last, g, radius_of(mix(load(keys, g) + slot)))
        for g in range(0, LANES, WIDTH):
            store(last, g, turned(load(last, g), second(mix(load(keys, g) + slot)))[0])


@inline
def pair_start(step):
    """Step at which the pair of single normals begins that serves this one."""
    return max(step - 1 + step % 2, 0)


@inline
def one_normal(keys, step, spare, out):
    """A single normal of the first request of a step, for a tile; odd steps leave the other half of
    the pair in ``spare``.
    """
    if step % 2 == 0:
        for g in range(0, LANES, WIDTH):
            store(out, g, load(spare, g))
        return
    slot = slot_key(call_key(step, 0), PAIRED, 0)
    for g in range(0, LANES, WIDTH):
        bits = mix(load(keys, g) + slot)
        store(out, g, radius_of(bits))
        store(spare, g, float_of(second(bits)))
    for g in range(0, LANES, WIDTH):
        a, b = turned(load(out, g), bits_of(load(spare, g)))
        store(out, g, a)
        store(spare, g, b)
