"""How tile functions are compiled, cached on disk and passed to the loop."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any, Final

import numba
from numba import types
from numba.core.types import WrapperAddressProtocol

LANES: Final = 64

FLAGS: Final = {"fastmath": {"contract"}, "error_model": "numpy"}  # fused multiply-add, and nothing that drops NaN

F = types.float64
I = types.int64
U = types.uint64
ROW = types.Array(F, 1, "C")
ROWS = types.Array(F, 2, "C")
INTS = types.Array(I, 1, "C")
KEYS = types.Array(U, 1, "C")


@cache
def sources_stamp() -> str:
    """Hash of every kernel source: Numba by itself watches only the file of the function it compiles."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _key_on_all_sources(function: Any) -> Any:
    """Make a cached function's entry on disk depend on all kernel sources."""
    cache_file = getattr(function._cache, "_cache_file", None)
    if cache_file is not None:
        cache_file._source_stamp = (cache_file._source_stamp, sources_stamp())
    return function


def inline(function: Any) -> Any:
    """Compile a helper that other kernels call; it is compiled into each of them."""
    return numba.njit(forceinline=True, **FLAGS)(function)


def entry(signature: Any) -> Any:
    """Compile a function that Python calls, at its first call, cached on disk; it runs without the interpreter lock."""

    def decorate(function: Any) -> Any:
        return LazyEntry(signature, function)

    return decorate


class LazyEntry:
    """A compiled function that is compiled, or loaded from the cache, when first called."""

    def __init__(self, signature: Any, function: Any) -> None:
        """Remember what to compile."""
        self._signature = signature
        self._function = function
        self._compiled: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function."""
        if self._compiled is None:
            dispatcher = _key_on_all_sources(numba.njit(nogil=True, cache=True, **FLAGS)(self._function))
            dispatcher.compile(self._signature)
            dispatcher.disable_compile()
            self._compiled = dispatcher
        return self._compiled(*arguments)


class Tile(WrapperAddressProtocol):
    """A tile function: a first-class function the loop calls through its address."""

    def __init__(self, signature: Any, function: Any) -> None:
        """Remember what to compile."""
        self._signature = signature
        self._function = function
        self._address = 0
        self._keep: Any = None

    def __wrapper_address__(self) -> int:
        """Compile, or load from the cache, at first use."""
        if not self._address:
            library = numba.core.ccallback.CFunc(
                self._function, (self._signature.args, self._signature.return_type), {}, dict(FLAGS)
            )
            library.enable_caching()
            _key_on_all_sources(library)
            library.compile()
            self._keep, self._address = library, library.address
        return self._address

    def signature(self) -> Any:
        """Return the Numba signature."""
        return self._signature


def tile(signature: Any) -> Any:
    """Compile a tile function with a fixed signature."""
    return lambda function: Tile(signature, function)


# Signatures of the tile functions. p and n are a family's numbers and sizes; arrays are (row, lane).
SAMPLE = types.void(ROW, INTS, KEYS, ROWS)  # p, n, keys, environment
SIGNAL = types.void(ROW, INTS, KEYS, I, ROWS)  # p, n, keys, step, signal
VALUES = types.void(ROW, INTS, ROWS, ROWS, ROWS)  # p, n, environment, signal, values of the arms
REWARD = types.void(ROW, INTS, KEYS, I, ROW, INTS, ROW)  # p, n, keys, step, values of the actions, actions, rewards
START = types.void(ROW, INTS, ROWS)  # p, n, belief
DRAW = types.void(ROW, INTS, KEYS, U, I, ROWS, ROWS, ROWS, ROWS)  # p, n, keys, call, draw, belief, signal, scratch, values
MEAN = types.void(ROW, INTS, ROWS, ROWS, ROWS, ROWS)  # p, n, belief, signal, scratch, values
UPDATE = types.void(ROW, INTS, ROWS, ROWS, ROWS, INTS, ROW)  # p, n, belief, signal, scratch, actions, rewards
CERTAIN = types.void(ROW, INTS, ROWS, ROW)  # p, n, belief, 1.0 where the belief has collapsed
# p, n, keys, step, first call, k1, k2, belief, signal, mask, scratch; for each arm the sums of values now and of best values ahead
LOOK = types.void(ROW, INTS, KEYS, I, I, I, I, ROWS, ROWS, ROWS, ROWS, ROWS, ROWS)
# a policy: its p and n, keys, step, then the belief's draw, mean, look and certain, its p and n, state, signal, mask (0 or -inf),
# scratch, values, accumulator, actions
ACT = types.void(
    ROW, INTS, KEYS, I,
    types.FunctionType(DRAW), types.FunctionType(MEAN), types.FunctionType(LOOK), types.FunctionType(CERTAIN),
    ROW, INTS, ROWS, ROWS, ROWS, ROWS, ROWS, ROWS, INTS,
)  # fmt: skip
