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
from typing import Any, Final, NamedTuple, final

import numpy as np

from priorwise.core import hashing, sizes, validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.hashing import boost, box_muller, gamma_attempt, invert, student, unit, word_of
from priorwise.core.types import BoolArray, FloatArray, IntArray, UIntArray

LARGE: Final = 1 << 26  # numbers of a request that may be too many for the memory


class Purpose(IntEnum):
    """What a random number is for; numbers of different purposes never meet."""

    ENVIRONMENT = 0
    REWARD = 1
    POLICY = 2
    WORLD = 3


class Stream:
    """Random numbers of one purpose at one step for a batch of tasks; methods return ``(task,
    *shape)``.

    Used like a NumPy ``Generator``, except that the task axis comes first by itself::

        rng.normal(6)  # (task, 6)
        rng.uniform()  # (task,)
    """

    def __init__(self, keys: UIntArray, step: int | IntArray) -> None:
        """Bind the stream to the keys of its tasks and to a step, or to one for each task."""
        if not isinstance(keys, np.ndarray) or keys.dtype != np.uint64 or keys.ndim != 1:
            raise ArgumentTypeError(
                "keys",
                "must be an array of 64-bit keys, one for each task",
                cure="streams(seed, tasks)(step) makes a stream",
            )
        self._keys = keys
        self._step = validation.counted("step", step, len(keys), least=0)
        self._call = 0

    def at(self, step: int | IntArray) -> Stream:
        """Return the stream of the same purpose and tasks at another step, from its first call on.

        At the step at which a draw was made, the same request gives the same draw again, so that it
        can be kept for several steps. ``at(0)`` is shared by all steps of a task, and different
        from what any step draws: the random seed xi of a policy.
        """
        moved = Stream(self._keys, step)
        sizes.check_numbered("step", int(np.max(moved._step, initial=0)))
        return moved

    @property
    def tasks(self) -> int:
        """Number of tasks served."""
        return len(self._keys)

    def take(self, index: IntArray | BoolArray | slice) -> Stream:
        """Return the stream of some of the tasks, after as many requests as this one."""
        step = self._step
        part = Stream(self._keys[index], step if isinstance(step, int) else step[index])
        part._call = self._call
        return part

    def _elements(self, shape: tuple[int, ...]) -> UIntArray:
        """Return the key of each element of the next request, ``(task, *shape)``."""
        _check_shape(shape)
        width = shape[-1] if shape else 1
        draws = math.prod(shape[:-1])
        if (numbers := draws * width * self.tasks) > LARGE:
            size = f"{shape} for each of {self.tasks} tasks"
            cure = "ask for fewer numbers, or for fewer tasks at once"
            sizes.check_memory("shape", size, 8.0 * sizes.ARRAYS * sizes.as_float(numbers), cure)
        slots = hashing.slot_keys(self._step, self._call, draws, width).reshape(-1, *shape)
        self._call += 1
        return self._keys.reshape(-1, *(1,) * len(shape)) + slots

    def _check_weights(self, weights: FloatArray) -> None:
        """Refuse weights that are not those of one law for each task."""
        if np.ndim(weights) != 2 or len(weights) != self.tasks or weights.shape[1] == 0:
            raise ArgumentError(
                "weights", f"must have a row for each of {self.tasks} tasks", got=np.shape(weights)
            )
        largest = weights.max(axis=1)
        # NaN is neither
        if not (weights.min() >= 0.0 and largest.min() > 0.0 and largest.max() < np.inf):
            raise ArgumentError(
                "weights", "must be finite and not negative, with a positive one for each task"
            )

    def bits(self, *shape: int) -> UIntArray:
        """64 random bits each."""
        return word_of(self._elements(shape), 0)

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
            start = hashing.pair_start(self._step)
            slot = hashing.mix_array(
                hashing.call_keys(start, self._call) + np.uint64(hashing.PAIRED << 32)
            )
            self._call += 1
            first, second = box_muller(self._keys + slot, 0)
            halves = self._step == start
            return np.where(halves, first, second) if np.ndim(halves) else (second, first)[halves]
        _check_shape(shape)
        width = shape[-1]
        pairs = (*shape[:-1], (width + 1) // 2)
        first, second = box_muller(self._elements(pairs), 0)
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
        index = invert(weights, self.uniform(*shape).reshape(self.tasks, -1))
        return index.reshape(self.tasks, *shape)

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
        heads = word_of(elements, 0).astype("<u8", copy=False).view("<u2")[:, :draws].T.copy()
        w = weights.T.copy()
        shares = w * (hashing.HEADS / np.cumsum(w, axis=0)[-1])
        owned = np.trunc(shares - hashing.SLACK)
        tops = np.cumsum(owned, axis=0).astype(np.uint16)  # below 2^16, by the slack
        below = np.add.reduce(
            (heads[:, None] < tops).view(np.uint8), axis=0, dtype=np.min_scalar_type(draws)
        ).astype(np.int64)
        counts = np.diff(below, axis=0, prepend=0)
        if (below[-1] < draws).any():
            places, rows = np.nonzero(heads >= tops[-1])
            words = (places % 4 + 1).astype(np.uint64) * np.uint64(hashing.GOLDEN)
            tails = unit(hashing.mix_array(elements[rows, places // 4] + words))
            np.add.at(counts, (invert((shares - owned).T[rows], tails[:, None])[:, 0], rows), 1)
        return counts.T

    def beta(self, alpha: FloatArray, beta: FloatArray, draws: int = 1) -> FloatArray:
        """Beta draws, ``(task, draw, n)``, for parameters ``(task, n)``.

        A ratio of two gammas; the pair is drawn again until both of its gammas are accepted (see
        :func:`~priorwise.core.hashing.gamma_attempt`).
        """
        slots, a, b = self._parameters(draws, alpha=alpha, beta=beta)

        def attempt(keys: UIntArray, left: BoolArray, word: int) -> tuple[FloatArray, BoolArray]:
            x, y = box_muller(keys, word)
            log_u, accept_u = gamma_attempt(a[left], x, unit(word_of(keys, word + 2)))
            log_v, accept_v = gamma_attempt(b[left], y, unit(word_of(keys, word + 3)))
            # negative words are never used by an attempt
            log_u = log_u + boost(a[left], word_of(keys, -1))
            log_v = log_v + boost(b[left], word_of(keys, -2))
            with np.errstate(invalid="ignore"):  # of what is rejected
                ratio = 1.0 / (1.0 + np.exp(np.minimum(log_v - log_u, 700.0)))
            return ratio, accept_u & accept_v

        return hashing.until_accepted(slots, attempt)

    def gamma(self, shape: FloatArray, draws: int = 1) -> FloatArray:
        """Gamma draws of scale 1, ``(task, draw, n)``, for shapes ``(task, n)``."""
        return np.exp(self.log_gamma(shape, draws, "shape"))

    def dirichlet(self, alpha: FloatArray, draws: int = 1) -> FloatArray:
        """Dirichlet draws, ``(task, draw, n)``, for parameters ``(task, n)``: gammas over their
        sum.
        """
        logs = self.log_gamma(alpha, draws, "alpha")
        weights = np.exp(logs - logs.max(axis=-1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=-1, keepdims=True))

    def student(self, freedom: FloatArray, draws: int = 1) -> FloatArray:
        """Student's t, ``(task, draw, n)``, for degrees of freedom ``(task, n)``."""
        return student(*self._parameters(draws, freedom=freedom))

    def log_gamma(self, shape: FloatArray, draws: int = 1, name: str = "shape") -> FloatArray:
        """Logarithms of gammas, which do not underflow, by Marsaglia and Tsang's method."""
        slots, a = self._parameters(draws, **{name: shape})

        def attempt(keys: UIntArray, left: BoolArray, word: int) -> tuple[FloatArray, BoolArray]:
            x, _ = box_muller(keys, word)
            log, accept = gamma_attempt(a[left], x, unit(word_of(keys, word + 2)))
            return log + boost(a[left], word_of(keys, -1)), accept

        return hashing.until_accepted(slots, attempt)

    def _parameters(self, draws: int, **named: Any) -> list[Any]:
        """Return the keys of so many draws ``(task, draw, n)``, and the parameters ``(task, n)`` in
        that shape.
        """
        for name, value in named.items():
            if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiu":
                raise ArgumentTypeError(name, "must be an array of numbers", got=value)
            # or attempts would never end
            if value.size and not (value.min() > 0.0 and value.max() < np.inf):
                raise ArgumentError(
                    name, "must be positive and finite", got=(value.min(), value.max())
                )
            if value.ndim != 2 or len(value) != self.tasks:
                raise ArgumentError(
                    name, f"must have a row for each of {self.tasks} tasks", got=value.shape
                )
        first, *others = named.values()
        if any(other.shape != first.shape for other in others):
            raise ArgumentError(
                " and ".join(named),
                "must have one shape",
                got=[value.shape for value in named.values()],
            )
        slots = self._elements((validation.count("draws", draws, least=0), first.shape[1]))
        return [slots, *(np.broadcast_to(v[:, None, :], slots.shape) for v in named.values())]


def _check_shape(shape: tuple[int, ...]) -> None:
    for n in shape:
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
            raise ArgumentError("shape", "must be non-negative integers", got=shape)


@final
class WorldStreams(NamedTuple):
    """What an environment draws from: ``noise`` for rewards, ``world`` for all that it shows."""

    noise: Stream
    world: Stream


@final
class Streams:
    """All streams of one seed over a batch of tasks, numbered as in the whole run."""

    def __init__(self, seed: int, tasks: UIntArray) -> None:
        """Hash the tasks' keys once for every purpose."""
        self.tasks = len(tasks)
        self._keys = {purpose: hashing.task_keys(seed, purpose, tasks) for purpose in Purpose}

    def at(self, purpose: Purpose, step: int | IntArray) -> Stream:
        """Return the stream of a purpose at a step, from its first call on."""
        return Stream(self._keys[purpose], step)

    def world(self, step: int) -> WorldStreams:
        """Return what the environment draws from at a step."""
        return WorldStreams(self.at(Purpose.REWARD, step), self.at(Purpose.WORLD, step))


def streams(seed: int, tasks: int) -> Callable[[int], Stream]:
    """Streams to try a prior or a policy by hand: ``streams(0, tasks=5)(step)`` has 5 tasks."""
    seed, tasks = validation.seed(seed), validation.count("tasks", tasks)
    sizes.check_memory("tasks", tasks, 8.0 * sizes.ARRAYS * sizes.as_float(tasks), "lower tasks")
    return Streams(seed, np.arange(tasks, dtype=np.uint64)).at(Purpose.POLICY, 0).at
