"""Counter-based random streams: every number is a hash of (seed, purpose, task, counter).

A counter is (step, call, draw, index, word), each with 32 bits of room but ``word``:

* ``step``: the pull it serves, 1..horizon; 0 is before the first pull;
* ``call``: how many requests the stream has answered before at this step;
* ``draw`` and ``index``: the place within the array that the request returns; the last draw, 2^32 -
  1, is kept for single normals, of which those of two neighbouring steps are one pair and have the
  first one's step;
* ``word``: numbers that one element needs beyond its first (a gamma takes more than a normal, a
  rejected one more still); of :meth:`Stream.counts` an element is four draws, word 0 their heads,
  words 1 to 4 what few of them need besides.

No state is carried from one number to the next. So a run does not depend on threads, blocks, engine
or the number of tasks; a new policy shifts nobody's noise; and two policies on one seed face the
same environments and the same reward noise. ``priorwise.kernels.random`` is the compiled twin of
this file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import IntEnum
from typing import Final, final

import numpy as np

from priorwise.core import sizes, validation
from priorwise.core.types import BoolArray, FloatArray, IntArray, UIntArray

GOLDEN: Final = 0x9E3779B97F4A7C15  # odd, 2^64 / golden ratio
MIX_1: Final = 0xBF58476D1CE4E5B9
MIX_2: Final = 0x94D049BB133111EB
MASK_64: Final = (1 << 64) - 1
ONE_BITS: Final = 0x3FF0000000000000  # the bits of 1.0
LARGE: Final = 1 << 26  # numbers of a request that may be too many for the memory
PAIRED: Final = 0xFFFFFFFF  # the draw that pairs of single normals have to themselves
WORDS_PER_ATTEMPT: Final = 4  # words of one attempt at a gamma or a beta
HEADS: Final = 1 << 16  # values of a head; a word holds four, one for each of four draws
# a share this little above a whole number of heads counts as below it, however it was rounded
SLACK: Final = 2.0**-20


class Purpose(IntEnum):
    """What a random number is for; numbers of different purposes never meet."""

    ENVIRONMENT = 0
    REWARD = 1
    POLICY = 2
    WORLD = 3


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
    values = values + np.uint64(GOLDEN)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(MIX_1)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(MIX_2)
    return values ^ (values >> np.uint64(31))


def purpose_key(seed: int, purpose: Purpose) -> int:
    """Key of all numbers of one purpose under one seed."""
    return mix(mix(seed) ^ int(purpose))


def task_keys(seed: int, purpose: Purpose, tasks: UIntArray) -> UIntArray:
    """Key of each task, shape ``(task,)``: distinct for distinct tasks."""
    return mix_array(np.uint64(purpose_key(seed, purpose)) + tasks * np.uint64(GOLDEN))


def call_key(step: int, call: int) -> int:
    """Key of one request at one step."""
    return mix((step << 32) | call)


def slot_keys(step: int, call: int, draws: int, width: int) -> UIntArray:
    """Keys of the elements of one request, shape ``(draw, index)``."""
    places = (np.arange(draws, dtype=np.uint64)[:, None] << np.uint64(32)) | np.arange(
        width, dtype=np.uint64
    )
    return mix_array(np.uint64(call_key(step, call)) + places)


def pair_start(step: int) -> int:
    """Step at which the pair of normals begins that serves this one: itself if odd, else the step
    before; 0 stands alone.
    """
    return max(step - 1 + step % 2, 0)


def unit(bits: UIntArray) -> FloatArray:
    """Uniform on [0, 1) from the top 52 bits."""
    return ((bits >> np.uint64(12)) | np.uint64(ONE_BITS)).view(np.float64) - 1.0


@final
class Stream:
    """Random numbers of one purpose at one step for a batch of tasks; methods return ``(task,
    *shape)``.

    Used like a NumPy ``Generator``, except that the task axis comes first by itself::

        rng.normal(6)  # (task, 6)
        rng.uniform()  # (task,)
    """

    def __init__(self, keys: UIntArray, step: int) -> None:
        """Bind the stream to the keys of its tasks and to a step."""
        if not isinstance(keys, np.ndarray) or keys.dtype != np.uint64 or keys.ndim != 1:
            raise TypeError(
                "keys must be an array of 64-bit keys, one for each task; streams(seed, "
                "tasks)(step) makes a stream"
            )
        self._keys = keys
        self._step = validation.count("step", step, least=0)
        self._call = 0

    @property
    def tasks(self) -> int:
        """Number of tasks served."""
        return len(self._keys)

    def _elements(self, shape: tuple[int, ...]) -> UIntArray:
        """Return the key of each element of the next request, ``(task, *shape)``."""
        _check_shape(shape)
        width = shape[-1] if shape else 1
        draws = math.prod(shape[:-1])
        if (numbers := draws * width * self.tasks) > LARGE:
            what = f"a request of shape {shape} for each of {self.tasks} tasks"
            sizes.check_memory(
                what,
                8.0 * sizes.ARRAYS * sizes.as_float(numbers),
                "ask for fewer numbers, or for fewer tasks at once",
            )
        slots = slot_keys(self._step, self._call, draws, width).reshape(shape)
        self._call += 1
        return self._keys.reshape(-1, *(1,) * len(shape)) + slots

    def _check_weights(self, weights: FloatArray) -> None:
        """Refuse weights that are not those of one law for each task."""
        if np.ndim(weights) != 2 or len(weights) != self.tasks or weights.shape[1] == 0:
            raise ValueError(
                f"weights must have a row for each of {self.tasks} tasks, got shape "
                f"{np.shape(weights)}"
            )
        largest = weights.max(axis=1)
        # NaN is neither
        if not (weights.min() >= 0.0 and largest.min() > 0.0 and largest.max() < np.inf):
            raise ValueError(
                "weights must be finite and not negative, with a positive one for each task"
            )

    def bits(self, *shape: int) -> UIntArray:
        """64 random bits each."""
        return _word(self._elements(shape), 0)

    def uniform(self, *shape: int) -> FloatArray:
        """Uniform on [0, 1)."""
        return unit(self.bits(*shape))

    def normal(self, *shape: int) -> FloatArray:
        """Draw standard normals.

        Each pair along the last axis is one Box-Muller pair. A single number per task, as reward
        noise is, pairs with that of the next step instead: those of steps 1 and 2, 3 and 4, ... are
        the two halves of a pair.
        """
        if not shape:
            start = pair_start(self._step)
            element = self._keys + np.uint64(mix(call_key(start, self._call) + (PAIRED << 32)))
            self._call += 1
            return _box_muller(element, 0)[self._step - start]
        _check_shape(shape)
        width = shape[-1]
        pairs = (*shape[:-1], (width + 1) // 2)
        first, second = _box_muller(self._elements(pairs), 0)
        return np.stack([first, second], axis=-1).reshape(self.tasks, *pairs[:-1], -1)[..., :width]

    def integers(self, high: int, *shape: int) -> IntArray:
        """Draw integers, uniform on 0..high-1."""
        validation.count("high", high)
        return np.minimum((self.uniform(*shape) * high).astype(np.int64), high - 1)

    def choice(self, weights: FloatArray, *shape: int) -> IntArray:
        """Indices drawn in proportion to ``weights`` ``(task, n)``, by inversion of the running
        sum.
        """
        self._check_weights(weights)
        return _invert(weights, self.uniform(*shape).reshape(self.tasks, -1)).reshape(
            self.tasks, *shape
        )

    def counts(self, weights: FloatArray, draws: int) -> IntArray:
        """How many of ``draws`` indices, drawn in proportion to ``weights`` ``(task, n)``, fall on
        each: ``(task, n)``.

        Of 2^16 equally likely heads an index with share x = 2^16 w / sum(w) owns a whole number f
        <= x; a draw whose head nobody owns is made from the remainders x - f. So an index has
        probability f / 2^16 + (x - f) / 2^16, its share, and nearly every draw costs 16 bits.
        """
        self._check_weights(weights)
        elements = self._elements((-(-validation.count("draws", draws, least=0) // 4),))
        # (draw, task), for speed
        heads = _word(elements, 0).astype("<u8", copy=False).view("<u2")[:, :draws].T.copy()
        w = weights.T.copy()
        shares = w * (HEADS / np.cumsum(w, axis=0)[-1])
        owned = np.trunc(shares - SLACK)
        tops = np.cumsum(owned, axis=0).astype(np.uint16)  # below 2^16, by the slack
        below = np.add.reduce(
            (heads[:, None] < tops).view(np.uint8), axis=0, dtype=np.min_scalar_type(draws)
        ).astype(np.int64)
        counts = np.diff(below, axis=0, prepend=0)
        if (below[-1] < draws).any():
            places, rows = np.nonzero(heads >= tops[-1])
            words = (places % 4 + 1).astype(np.uint64) * np.uint64(GOLDEN)
            tails = unit(mix_array(elements[rows, places // 4] + words))
            np.add.at(counts, (_invert((shares - owned).T[rows], tails[:, None])[:, 0], rows), 1)
        return counts.T

    def beta(self, alpha: FloatArray, beta: FloatArray, draws: int = 1) -> FloatArray:
        """Beta draws, ``(task, draw, n)``, for parameters ``(task, n)``.

        A ratio of two gammas; the pair is drawn again until both of its gammas are accepted (see
        :func:`_gamma_attempt`).
        """
        for name, value in (("alpha", alpha), ("beta", beta)):
            if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiu":
                raise TypeError(
                    f"{name} must be an array of numbers (task, n), got {validation.shown(value)}"
                )
            # or attempts would never end
            if value.size and not (value.min() > 0.0 and value.max() < np.inf):
                raise ValueError(
                    f"{name} must be positive and finite, got {value.min():g} to {value.max():g}"
                )
            if value.ndim != 2 or len(value) != self.tasks:
                raise ValueError(
                    f"{name} must have a row for each of {self.tasks} tasks, got shape "
                    f"{value.shape}"
                )
        if alpha.shape != beta.shape:
            raise ValueError(
                f"alpha and beta must have one shape, got {alpha.shape} and {beta.shape}"
            )
        slots = self._elements((validation.count("draws", draws, least=0), alpha.shape[1]))
        a = np.broadcast_to(alpha[:, None, :], slots.shape)
        b = np.broadcast_to(beta[:, None, :], slots.shape)
        out = np.empty(slots.shape)
        pending = np.ones(slots.shape, dtype=bool)
        attempt = 0
        while pending.any():
            keys, a_left, b_left = slots[pending], a[pending], b[pending]
            word = WORDS_PER_ATTEMPT * attempt
            x, y = _box_muller(keys, word)
            log_u, accept_u = _gamma_attempt(a_left, x, unit(_word(keys, word + 2)))
            log_v, accept_v = _gamma_attempt(b_left, y, unit(_word(keys, word + 3)))
            accept = accept_u & accept_v
            # gamma(a) = gamma(a + 1) * U^(1/a) when a < 1; negative words are never used by an
            # attempt
            log_u = log_u + np.where(a_left < 1.0, _log_unit(_word(keys, -1)) / a_left, 0.0)
            log_v = log_v + np.where(b_left < 1.0, _log_unit(_word(keys, -2)) / b_left, 0.0)
            with np.errstate(invalid="ignore"):  # of what is rejected
                value = 1.0 / (1.0 + np.exp(np.minimum(log_v - log_u, 700.0)))
            places = np.flatnonzero(pending)
            out.flat[places[accept]] = value[accept]
            pending.flat[places[accept]] = False
            attempt += 1
        return out


def _invert(weights: FloatArray, uniform: FloatArray) -> IntArray:
    """Indices ``(task, draw)``: the first whose running sum of ``weights`` ``(task, n)`` exceeds a
    uniform share of the total.
    """
    cumulative = np.cumsum(weights, axis=-1)
    targets = uniform[:, :, None] * cumulative[:, None, -1:]
    index = (cumulative[:, None, :] <= targets).sum(axis=-1)
    # rounding must not pick a weight of 0
    last = weights.shape[-1] - 1 - np.argmax(weights[:, ::-1] > 0.0, axis=-1)
    return np.minimum(index, last[:, None])


def _check_shape(shape: tuple[int, ...]) -> None:
    for n in shape:
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
            raise ValueError(f"shape must be non-negative integers, got {validation.shown(shape)}")


def _word(elements: UIntArray, word: int) -> UIntArray:
    return mix_array(elements + np.uint64((word * GOLDEN) & MASK_64))


def _log_unit(bits: UIntArray) -> FloatArray:
    return np.log(1.0 - unit(bits))


def _box_muller(elements: UIntArray, word: int) -> tuple[FloatArray, FloatArray]:
    """Two independent standard normals for each element, from one word for the radius and, made
    from it, one for the angle.
    """
    first = _word(elements, word)
    radius = np.sqrt(-2.0 * _log_unit(first))
    turn = (first ^ (first >> np.uint64(32))) * np.uint64(MIX_1)
    turn = turn ^ (turn >> np.uint64(29))
    quarter = (turn & np.uint64(3)).astype(np.float64)  # low bits, apart from those of the fraction
    angle = (unit(turn) - 0.5 + quarter) * (np.pi / 2)
    return radius * np.cos(angle), radius * np.sin(angle)


def _gamma_attempt(shape: FloatArray, x: FloatArray, u: FloatArray) -> tuple[FloatArray, BoolArray]:
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


@final
class WorldStreams:
    """What an environment draws from at one step: ``noise`` for the reward, ``world`` for contexts,
    states and observations.
    """

    def __init__(self, noise: Stream, world: Stream) -> None:
        """Pair the two streams."""
        self.noise = noise
        self.world = world


@final
class Streams:
    """All streams of one seed over a batch of tasks, numbered as in the whole run."""

    def __init__(self, seed: int, tasks: UIntArray) -> None:
        """Hash the tasks' keys once for every purpose."""
        self.tasks = len(tasks)
        self._keys = {purpose: task_keys(seed, purpose, tasks) for purpose in Purpose}

    def at(self, purpose: Purpose, step: int) -> Stream:
        """Return the stream of a purpose at a step, from its first call on."""
        return Stream(self._keys[purpose], step)

    def world(self, step: int) -> WorldStreams:
        """Return what the environment draws from at a step."""
        return WorldStreams(self.at(Purpose.REWARD, step), self.at(Purpose.WORLD, step))


def streams(seed: int, tasks: int) -> Callable[[int], Stream]:
    """Streams for trying a prior or a policy by hand: ``streams(0, tasks=5)(step)`` is a
    :class:`Stream` of 5 tasks.
    """
    seed, tasks = validation.seed(seed), validation.count("tasks", tasks)
    sizes.check_memory(
        f"tasks={sizes.amount(tasks)}", 8.0 * sizes.ARRAYS * sizes.as_float(tasks), "lower tasks"
    )
    every = Streams(seed, np.arange(tasks, dtype=np.uint64))

    def at(step: int) -> Stream:
        if validation.count("step", step, least=0) >= sizes.NUMBERED:
            raise ValueError(f"step must be below 2**32, got {step}")
        return every.at(Purpose.POLICY, step)

    return at
