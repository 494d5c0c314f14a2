"""From counters to random numbers: hashes of 64 bits, and the laws made from them."""

from collections.abc import Callable
from typing import Final

import numpy as np

from priorwise.core.types import BoolArray, FloatArray, IntArray, UIntArray

GOLDEN: Final = 0x9E3779B97F4A7C15  # odd, 2^64 / golden ratio
MIX_1: Final = 0xBF58476D1CE4E5B9
MIX_2: Final = 0x94D049BB133111EB
MASK_64: Final = (1 << 64) - 1
ONE_BITS: Final = 0x3FF0000000000000  # the bits of 1.0
PAIRED: Final = 0xFFFFFFFF  # the draw that pairs of single normals have to themselves
WORDS_PER_ATTEMPT: Final = 4  # words of one attempt at a gamma or a beta
HEADS: Final = 1 << 16  # values of a head; a word holds four, one for each of four draws
# a share this little above a whole number of heads counts as below it, however it was rounded
SLACK: Final = 2.0**-20


def mix(value: int) -> int:
    """Finalise 64 bits: a bijection that flips each output bit with probability 1/2 when one input
    bit flips.
    """
    value = (value + GOLDEN) & MASK_64
    value = ((value ^ (value >> 30)) * MIX_1) & MASK_64
    value = ((value ^ (value >> 27)) * MIX_2) & MASK_64
    return value ^ (value >> 31)


def mix_array(values: UIntArray) -> UIntArray:
    """Apply :func:`mix` to each element."""
    return _mixed(values + np.uint64(GOLDEN))


def _mixed(values: UIntArray) -> UIntArray:
    """Mix in place."""
    values ^= values >> np.uint64(30)
    values *= np.uint64(MIX_1)
    values ^= values >> np.uint64(27)
    values *= np.uint64(MIX_2)
    values ^= values >> np.uint64(31)
    return values


def purpose_key(seed: int, purpose: int) -> int:
    """Key of all numbers of one purpose under one seed."""
    return mix(mix(seed) ^ int(purpose))


def task_keys(seed: int, purpose: int, tasks: UIntArray) -> UIntArray:
    """Key of each task, shape ``(task,)``: distinct for distinct tasks."""
    return mix_array(np.uint64(purpose_key(seed, purpose)) + tasks * np.uint64(GOLDEN))


def call_keys(step: int | IntArray, call: int) -> UIntArray:
    """Key of one request at one step, ``(1,)``, or at the step of each task, ``(task,)``."""
    if isinstance(step, int):
        return np.array([mix((step << 32) | call)], dtype=np.uint64)
    return mix_array((step.astype(np.uint64) << np.uint64(32)) | np.uint64(call))


def slot_keys(step: int | IntArray, call: int, draws: int, width: int) -> UIntArray:
    """Keys of the elements of one request, ``(1 or task, draw, index)``."""
    places = (np.arange(draws, dtype=np.uint64)[:, None] << np.uint64(32)) | np.arange(
        width, dtype=np.uint64
    )
    return mix_array(call_keys(step, call)[:, None, None] + places)


def pair_start(step: int | IntArray) -> int | IntArray:
    """Step at which the pair of normals begins that serves this one: itself if odd, else the step
    before; 0 stands alone.
    """
    start = step - 1 + step % 2
    return max(start, 0) if isinstance(start, int) else np.maximum(start, 0)


def unit(bits: UIntArray) -> FloatArray:
    """Uniform on [0, 1) from the top 52 bits."""
    fraction = bits >> np.uint64(12)
    fraction |= np.uint64(ONE_BITS)
    numbers = fraction.view(np.float64)
    numbers -= 1.0
    return numbers


def invert(weights: FloatArray, uniform: FloatArray) -> IntArray:
    """Indices ``(task, draw)``: the first whose running sum of ``weights`` ``(task, n)`` exceeds a
    uniform share of the total.
    """
    cumulative = np.cumsum(weights, axis=-1)
    targets = uniform[:, :, None] * cumulative[:, None, -1:]
    index = (cumulative[:, None, :] <= targets).sum(axis=-1)
    # rounding must not pick a weight of 0
    last = weights.shape[-1] - 1 - np.argmax(weights[:, ::-1] > 0.0, axis=-1)
    return np.minimum(index, last[:, None])


def word_of(elements: UIntArray, word: int) -> UIntArray:
    """One of the words of 64 bits that each element has."""
    return _mixed(elements + np.uint64(((word + 1) * GOLDEN) & MASK_64))


def log_unit(bits: UIntArray) -> FloatArray:
    """Logarithm of a uniform number on (0, 1]."""
    return np.log(1.0 - unit(bits))


def box_muller(elements: UIntArray, word: int) -> tuple[FloatArray, FloatArray]:
    """Two independent standard normals for each element, from one word for the radius and, made
    from it, one for the angle.
    """
    first = word_of(elements, word)
    radius, angle = np.sqrt(-2.0 * log_unit(first)), _angle(first)
    return radius * np.cos(angle), radius * np.sin(angle)


def student(elements: UIntArray, freedom: FloatArray) -> FloatArray:
    """One number from Student's t for each element, after Bailey (1994, Mathematics of
    Computation 62), who rejects nothing.

    A point at a uniform angle whose squared length is ``nu (U^(-2 / nu) - 1)``; for large nu that
    is ``-2 log U``, as in :func:`box_muller`. Only one of its coordinates is used: they are not
    independent.
    """
    first = word_of(elements, 0)
    squared = freedom * np.expm1(-2.0 * log_unit(first) / freedom)
    return np.sqrt(squared) * np.cos(_angle(first))


def _angle(first: UIntArray) -> FloatArray:
    """Return a uniform angle from the word of the radius."""
    turn = first ^ (first >> np.uint64(32))
    turn *= np.uint64(MIX_1)
    turn ^= turn >> np.uint64(29)
    angle = unit(turn)
    angle -= 0.5
    angle += turn & np.uint64(3)  # a quarter: low bits, apart from those of the fraction
    angle *= np.pi / 2
    return angle


def gamma_attempt(shape: FloatArray, x: FloatArray, u: FloatArray) -> tuple[FloatArray, BoolArray]:
    """One attempt at log gamma(shape, or shape + 1 if shape < 1), after Marsaglia and Tsang (2000),
    and whether it is accepted.
    """
    d = np.where(shape < 1.0, shape + 1.0, shape) - 1.0 / 3.0
    y = np.maximum(x / np.sqrt(9.0 * d), -1.0)  # the attempt is d (1 + y)^3
    with np.errstate(divide="ignore", invalid="ignore"):
        log_root = np.log1p(y)
        # x^2 / 2 + d (1 - (1 + y)^3 + 3 log(1 + y)), written so that it keeps its digits where d is
        # large
        bound = 0.5 * x * x + d * (3.0 * (log_root - y) - y * y * (3.0 + y))
        accept = (y > -1.0) & (np.log(1.0 - u) < bound)
    return np.log(d) + 3.0 * log_root, accept


def boost(shape: FloatArray, bits: UIntArray) -> FloatArray:
    """What the logarithm of a gamma of shape below 1 has beyond one of shape + 1: gamma(a) =
    gamma(a + 1) U^(1/a).
    """
    return np.where(shape < 1.0, log_unit(bits) / shape, 0.0)


Attempt = Callable[[UIntArray, BoolArray, int], tuple[FloatArray, BoolArray]]


def until_accepted(elements: UIntArray, attempt: Attempt) -> FloatArray:
    """Numbers of the shape of ``elements``, each from its first attempt that is accepted.

    ``attempt(keys, pending, word)`` is given the keys of the elements still pending, which those
    are, and its first word.
    """
    out, pending = np.empty(elements.shape), np.ones(elements.shape, dtype=bool)
    word = 0
    while pending.any():
        values, accept = attempt(elements[pending], pending, word)
        places = np.flatnonzero(pending)[accept]
        out.flat[places] = values[accept]
        pending.flat[places] = False
        word += WORDS_PER_ATTEMPT
    return out
