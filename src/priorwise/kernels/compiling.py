"""How tile functions are compiled, cached on disk and passed to the loop."""

import ast
import hashlib
import threading
import warnings
from functools import cache, cached_property
from pathlib import Path
from typing import Any, ClassVar, Final

import numba
from numba import types
from numba.core import cgutils

from priorwise.core import tiles
from priorwise.core.progress import compiling, ready
from priorwise.kernels.simd import intrinsic

LANES: Final = tiles.LANES

_COMPILING = threading.Lock()  # threads that meet an uncompiled function wait for one of them

# fused multiply-add, and nothing that drops NaN
FLAGS: Final = {"fastmath": {"contract"}, "error_model": "numpy"}

# neither Python nor C calls the function: what would let them is not compiled
WITHOUT_WRAPPERS: Final = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

F = types.float64
I = types.int64
U = types.uint64
ROW = types.Array(F, 1, "C")
ROWS = types.Array(F, 2, "C")
INTS = types.Array(I, 1, "C")
KEYS = types.Array(U, 1, "C")


def sources_stamp(*files: Path) -> str:
    """Hash of these sources and of all in the package that they import, directly or not: Numba by
    itself watches only the file of the function that it compiles.
    """
    todo, sources = list(files), set[Path]()
    while todo:
        path = todo.pop()
        if path not in sources:
            sources.add(path)
            todo.extend(_imported(path, path.read_bytes()))
    digest = hashlib.sha256()
    for path in sorted(sources):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
def _imported(path: Path, source: bytes) -> frozenset[Path]:
    """Return what a source imports from its own package and from this one."""
    homes = {}
    for file in (Path(__file__), path):
        folder = next(each for each in file.parents if not (each / "__init__.py").exists())
        homes[file.relative_to(folder).parts[0]] = folder
    modules = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            modules += [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
        elif isinstance(node, ast.Import):
            modules += [each.name for each in node.names]
    places = [
        homes[first].joinpath(each.replace(".", "/"))
        for each in modules
        if (first := each.partition(".")[0]) in homes
    ]
    files = [file for each in places for file in (each.with_suffix(".py"), each / "__init__.py")]
    return frozenset(file for file in files if file.is_file())


def _cached(function: Any) -> Any:
    """Cache a function on disk, keyed on its source and all that it imports; where nothing can be
    written, compile in each process.
    """
    try:
        function.enable_caching()
    # neither the package's directory nor the user's cache is there to write to
    except RuntimeError:
        _say_uncached()
    cache_file = getattr(function._cache, "_cache_file", None)
    if cache_file is not None:
        stamp = sources_stamp(Path(function.py_func.__code__.co_filename))
        cache_file._source_stamp = (cache_file._source_stamp, stamp)
    load = function._cache.load_overload

    def load_or_tell(*arguments: Any) -> Any:
        found = load(*arguments)
        if found is None:  # nothing to load, so that Numba compiles: say so
            compiling()
        return found

    function._cache.load_overload = load_or_tell
    return function


@cache
def _say_uncached() -> None:
    warnings.warn(
        "compiled code cannot be kept: neither the directory of priorwise nor the user's cache can "
        "be written to, so that every "
        "process compiles anew, which takes seconds; set NUMBA_CACHE_DIR to a directory that can",
        RuntimeWarning,
        stacklevel=2,
    )


def inline(function: Any) -> Any:
    """Compile a helper that other kernels call; it is compiled into each of them, allocates nothing
    and counts no references. Python must not call it.
    """
    flags: dict[str, Any] = {"forceinline": True, "_nrt": False, **FLAGS, **WITHOUT_WRAPPERS}
    return numba.njit(**flags)(function)


class LazyEntry:
    """A compiled function that is compiled, or loaded from the cache, when first called; it runs
    without the interpreter lock.
    """

    flags: ClassVar[dict[str, bool]] = {"no_cfunc_wrapper": True}

    def __init__(self, signature: Any, function: Any) -> None:
        """Remember what to compile."""
        self._signature = signature
        self._function = function
        self._dispatcher: Any = None

    def _compiled(self) -> Any:
        with _COMPILING:
            if self._dispatcher is None:
                flags: dict[str, Any] = FLAGS | self.flags
                dispatcher = _cached(numba.njit(nogil=True, **flags)(self._function))
                dispatcher.compile(self._signature)
                dispatcher.disable_compile()
                self._dispatcher = dispatcher
                ready()
        return self._dispatcher

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function."""
        return self._compiled()(*arguments)


class Tile(LazyEntry):
    """A tile function: compiled, or loaded from the cache, when its address is first asked for.

    The address is that of the function as Numba compiles it, which returns whether it failed, and
    not that of a C callback, which would print an exception and go on: an allocation that fails in
    a tile function is an exception of the function that calls it.
    """

    flags: ClassVar[dict[str, bool]] = WITHOUT_WRAPPERS

    @cached_property
    def address(self) -> int:
        """Where the loop finds it."""
        compiled = self._compiled().overloads[self._signature.args]
        return int(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))


def entry(signature: Any) -> Any:
    """Compile a function that Python calls, at its first call, cached on disk."""
    return lambda function: LazyEntry(signature, function)


def tile(signature: Any) -> Any:
    """Compile a tile function with a fixed signature."""
    return lambda function: Tile(signature, function)


def _lent(context: Any, builder: Any, value: Any, kind: Any) -> Any:
    """Pass an array without its owner: the caller keeps it alive, and the function called need not
    count references.
    """
    if not isinstance(kind, types.Array):
        return value
    array = context.make_array(kind)(context, builder, value)
    array.meminfo = cgutils.get_null_value(array.meminfo.type)
    array.parent = cgutils.get_null_value(array.parent.type)
    return array._getvalue()


def caller(signature: Any) -> Any:
    """Make what kernels call a tile function of this signature with: ``call(address, *arguments)``;
    its exceptions pass through.

    Numba's own first-class functions do the same at a cost of some 20 microseconds for each
    function passed in.
    """
    wanted = signature.args

    @intrinsic
    def call(typingctx, address, *arguments):
        def generate(context, builder, typed, args):
            passed, made = cgutils.unpack_tuple(builder, args[1]), (signature.return_type, wanted)
            given = zip(passed, typed.args[1].types, wanted, strict=True)
            values = [
                _lent(context, builder, context.cast(builder, *cast), cast[2]) for cast in given
            ]
            convention = context.call_conv
            kind = convention.get_function_type(*made).as_pointer()
            function = builder.inttoptr(args[0], kind)
            status, _ = convention.call_function(builder, function, *made, values)
            with cgutils.if_unlikely(builder, status.is_error):
                convention.return_status_propagate(builder, status)
            return context.get_dummy_value()

        return types.void(types.int64, types.StarArgTuple(arguments)), generate

    return call


# Signatures of the tile functions. p and n are a family's numbers and sizes; arrays are (row,
# lane).
SAMPLE = types.void(ROW, INTS, KEYS, ROWS)  # p, n, keys, environment
SAMPLE_FROM = types.void(ROW, INTS, KEYS, I, ROWS)  # the same from some call on: before environment
SIGNAL = types.void(ROW, INTS, KEYS, I, ROWS)  # p, n, keys, step, signal
# p, n, keys, step, environment, actions, signal: the next one in its place, and what update needs
MOVE = types.void(ROW, INTS, KEYS, I, ROWS, INTS, ROWS)
VALUES = types.void(ROW, INTS, ROWS, ROWS, ROWS)  # p, n, environment, signal, values of the arms
# p, n, keys, step, environment, values of the actions, actions, a row kept from step to step,
# rewards
REWARD = types.void(ROW, INTS, KEYS, I, ROWS, ROW, INTS, ROW, ROW)
START = types.void(ROW, INTS, ROWS)  # p, n, belief
# p, n, keys, call, draw, belief, signal, scratch, values
DRAW = types.void(ROW, INTS, KEYS, U, I, ROWS, ROWS, ROWS, ROWS)
# the same, with the key of its own call and the number of its own draw for each lane
DRAW_EACH = types.void(ROW, INTS, KEYS, KEYS, KEYS, ROWS, ROWS, ROWS, ROWS)
MEAN = types.void(ROW, INTS, ROWS, ROWS, ROWS, ROWS)  # p, n, belief, signal, scratch, values
# p, n, level, the quantile of a standard normal at that level, belief, signal, scratch, values
QUANTILE = types.void(ROW, INTS, F, F, ROWS, ROWS, ROWS, ROWS)
# p, n, belief, signal, mask, scratch, expected best mean after a pull of each arm
BEST_AFTER = types.void(ROW, INTS, ROWS, ROWS, ROWS, ROWS, ROWS)
# p, n, pulls, belief, signal, mask, scratch, expected best mean after so many pulls of each arm; 0
# pulls come first: they write the means, and what all numbers of pulls share into scratch
BEST_AFTER_PULLS = types.void(ROW, INTS, I, ROWS, ROWS, ROWS, ROWS, ROWS)
# p, n, belief, signal, scratch, actions, rewards
UPDATE = types.void(ROW, INTS, ROWS, ROWS, ROWS, INTS, ROW)
# p, n, belief, scratch, actions, rewards, log density of these rewards
PREDICTIVE = types.void(ROW, INTS, ROWS, ROWS, INTS, ROW, ROW)
EVIDENCE = types.void(ROW, INTS, ROWS, ROWS, ROW)  # p, n, belief, scratch, log density of all seen
CERTAIN = types.void(ROW, INTS, ROWS, ROW)  # p, n, belief, 1.0 where the belief has collapsed
# p, n, keys, step, first call, k1, k2, belief, signal, mask, scratch; for each arm the sums of
# values now and of best values ahead, and the sums of the absolute numbers that these are sums of,
# now then ahead, where the family says ``draws_cancel``
LOOK = types.void(ROW, INTS, KEYS, I, I, I, I, ROWS, ROWS, ROWS, ROWS, ROWS, ROWS, ROWS)
# a policy: its p and n, keys, step, the addresses of all tile functions, the belief's p, n and
# state, signal, mask (0 or -inf), scratch, values, accumulator, actions
ACT = types.void(ROW, INTS, KEYS, I, INTS, ROW, INTS, ROWS, ROWS, ROWS, ROWS, ROWS, ROWS, INTS)

# Places of the tile functions in the table of addresses that the loop and the policies call
# through. That of the mean size is 0 if the family has none: then sums are their own sizes; that of
# the move if actions do not influence signals.
SAMPLE_AT, SIGNAL_AT, VALUES_AT, REWARD_AT, START_AT, DRAW_AT, MEAN_AT, UPDATE_AT = range(8)
LOOK_AT, CERTAIN_AT, ACT_AT, MEAN_SIZE_AT, QUANTILE_AT, BEST_AFTER_AT = range(8, 14)
DRAW_EACH_AT, MOVE_AT, COUNT_AT, BEST_AFTER_PULLS_AT = range(14, 18)
