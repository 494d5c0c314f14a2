"""A vector of tasks as a value: what the compiler cannot be relied on to vectorise is written with
it.

``Lanes`` is WIDTH floats in registers, ``Bits`` WIDTH unsigned 64-bit integers. ``load(array,
offset)`` and ``store(array, offset, value)`` address a C-contiguous array of floats or unsigned
integers by element, without index checks; or a span, which is a part of an array as a mere address
(``priorwise.kernels.spans``). Arithmetic acts lane by lane, also with a scalar on the
right or left, so a function like ``mix`` or ``log`` of ``priorwise.kernels.random`` serves scalars
and vectors alike. LLVM maps it to whatever the machine has.
"""

import inspect
import operator
from collections.abc import Callable
from functools import reduce
from typing import Any, Concatenate, Final, ParamSpec, Protocol, cast

from llvmlite import ir
from numba import extending, types
from numba.core import cgutils
from numba.extending import models, overload, register_model

WIDTH: Final = 8

_P = ParamSpec("_P")  # parameters of a call


def intrinsic(define: Callable[Concatenate[Any, _P], Any]) -> Callable[_P, Any]:
    """Make Numba's intrinsic. A call passes all parameters but the first, the typing context."""
    return cast(Callable[_P, Any], extending.intrinsic(define))


class VectorType(types.Type):
    """Numba's name for a vector of WIDTH floats or integers."""

    def __init__(self, name: str, scalar, element) -> None:
        """Name the type, its scalar type in Numba and its element in LLVM."""
        super().__init__(name=name)
        self.scalar = scalar
        self.vector = ir.VectorType(element, WIDTH)


lanes_type = VectorType("Lanes", types.float64, ir.DoubleType())
bits_type = VectorType("Bits", types.uint64, ir.IntType(64))
VECTOR_OF = {types.float64: lanes_type, types.uint64: bits_type, types.int64: bits_type}


@register_model(VectorType)
class VectorModel(models.PrimitiveModel):
    """How LLVM holds it."""

    def __init__(self, manager, numba_type) -> None:
        """Hold it as one vector value."""
        super().__init__(manager, numba_type, numba_type.vector)


def data_of(context, builder, kind, array):
    """Build the address of the first element of an array, or of a span."""
    if isinstance(kind, types.CPointer):
        return array
    return context.make_array(kind)(context, builder, array).data


def address_of(context, builder, kind, array, offset):
    """Build the address of an element."""
    return builder.gep(data_of(context, builder, kind, array), [offset])


def _llvm(builder, name, args):
    vector = lanes_type.vector
    function_type = ir.FunctionType(vector, [vector] * len(args))
    named = f"llvm.{name}.v{WIDTH}f64"
    return builder.call(cgutils.get_or_insert_function(builder.module, function_type, named), args)


def spread(builder, value, vector):
    """Build a vector with the same value in every lane."""
    anything = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(anything, value, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(one, anything, zeros)


class _Decorator(Protocol):
    def __call__(self, build: Callable[Concatenate[Any, _P], Any]) -> Callable[_P, Any]: ...


def operation(result: types.Type, *arguments: types.Type) -> _Decorator:
    """Make an intrinsic of fixed types from the function that builds its instructions."""

    def decorate(build: Callable[Concatenate[Any, _P], Any]) -> Callable[_P, Any]:
        untyped: Any = build

        def generate(context, builder, signature, args):
            return untyped(builder, *args)

        def define(typingctx: Any, /, *given: _P.args, **none: _P.kwargs) -> Any:
            return result(*arguments), generate

        names = ("typingctx", *list(inspect.signature(build).parameters)[1:])
        plain = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = inspect.Signature([inspect.Parameter(name, plain) for name in names])
        define.__signature__ = parameters  # type: ignore[attr-defined]  # what Numba reads
        define.__name__, define.__doc__ = build.__name__, build.__doc__
        return intrinsic(define)

    return decorate


@intrinsic
def load(typingctx, array, offset):
    """Read WIDTH elements from an element offset on."""
    kind = VECTOR_OF[array.dtype]

    def generate(context, builder, signature, args):
        address = address_of(context, builder, signature.args[0], args[0], args[1])
        address = builder.bitcast(address, kind.vector.as_pointer())
        return builder.load(address, align=8, typ=kind.vector)

    return kind(array, types.int64), generate


@intrinsic
def store(typingctx, array, offset, value):
    """Write WIDTH elements from an element offset on."""

    def generate(context, builder, signature, args):
        address = address_of(context, builder, signature.args[0], args[0], args[1])
        address = builder.bitcast(address, signature.args[2].vector.as_pointer())
        builder.store(args[2], address, align=8)
        return context.get_dummy_value()

    return types.void(array, types.int64, value), generate


@intrinsic
def gather(typingctx, array, offsets):
    """Read one element for each lane, by its offset."""
    kind = VECTOR_OF[array.dtype]

    def generate(context, builder, signature, args):
        vector, words = kind.vector, bits_type.vector
        data = data_of(context, builder, signature.args[0], args[0])
        base = spread(builder, builder.ptrtoint(data, ir.IntType(64)), words)
        eight = ir.Constant(words, [8] * WIDTH)
        pointers = ir.VectorType(vector.element.as_pointer(), WIDTH)
        places = builder.inttoptr(builder.add(base, builder.mul(args[1], eight)), pointers)
        mask = ir.VectorType(ir.IntType(1), WIDTH)
        function_type = ir.FunctionType(vector, [pointers, ir.IntType(32), mask, vector])
        name = f"llvm.masked.gather.v{WIDTH}{'f' if kind is lanes_type else 'i'}64.v{WIDTH}p0"
        function = cgutils.get_or_insert_function(builder.module, function_type, name)
        every, anything = ir.Constant(mask, [1] * WIDTH), ir.Constant(vector, ir.Undefined)
        return builder.call(function, [places, ir.Constant(ir.IntType(32), 8), every, anything])

    return kind(array, bits_type), generate


@intrinsic
def peek(typingctx, array, offset):
    """Read one element by its offset."""

    def generate(context, builder, signature, args):
        return builder.load(address_of(context, builder, signature.args[0], args[0], args[1]))

    return array.dtype(array, types.int64), generate


@intrinsic
def poke(typingctx, array, offset, value):
    """Write one element by its offset."""

    def generate(context, builder, signature, args):
        builder.store(args[2], address_of(context, builder, signature.args[0], args[0], args[1]))
        return context.get_dummy_value()

    return types.void(array, types.int64, array.dtype), generate


@operation(bits_type)
def iota(builder):
    """Return 0, 1, ... along the lanes."""
    return ir.Constant(bits_type.vector, list(range(WIDTH)))


@operation(bits_type)
def zeros(builder):
    """Return the integer 0 in every lane."""
    return ir.Constant(bits_type.vector, [0] * WIDTH)


@operation(lanes_type, types.float64)
def splat(builder, value):
    """Return the same number in every lane."""
    return spread(builder, value, lanes_type.vector)


def _lanes(builder, a):
    return [builder.extract_element(a, ir.Constant(ir.IntType(32), k)) for k in range(WIDTH)]


def _larger(builder, a, b):
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


@operation(types.float64, lanes_type)
def largest(builder, a):
    """Return the largest of the lanes."""
    return reduce(lambda best, value: _larger(builder, value, best), _lanes(builder, a))


@operation(types.float64, lanes_type)
def sum_of(builder, a):
    """Add up the lanes, from the first to the last."""
    return reduce(builder.fadd, _lanes(builder, a))


@operation(lanes_type, lanes_type, lanes_type, lanes_type)
def fma(builder, a, b, c):
    """Compute ``a * b + c``, fused where the machine does that."""
    return _llvm(builder, "fmuladd", [a, b, c])


@operation(lanes_type, lanes_type)
def trunc(builder, a):
    """Return the whole number towards 0, lane by lane."""
    return _llvm(builder, "trunc", [a])


@operation(lanes_type, lanes_type, lanes_type)
def maximum(builder, a, b):
    """Return the larger, lane by lane."""
    return _larger(builder, a, b)


@operation(lanes_type, lanes_type, lanes_type)
def minimum(builder, a, b):
    """Return the smaller, lane by lane."""
    return builder.select(builder.fcmp_ordered("<", a, b), a, b)


@intrinsic
def where_at_least(typingctx, a, b, yes, no):
    """Return ``yes`` where ``a >= b`` and ``no`` elsewhere."""

    def generate(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">=", args[0], args[1]), args[2], args[3])

    return yes(lanes_type, lanes_type, yes, yes), generate


@intrinsic
def sqrt(typingctx, a):
    """Return the square root, of a vector or of a number."""

    def generate(context, builder, signature, args):
        if signature.args[0] is lanes_type:
            return _llvm(builder, "sqrt", args)
        return builder.call(builder.module.declare_intrinsic("llvm.sqrt", [ir.DoubleType()]), args)

    return a(a), generate


def _reinterpret(source, target):
    kinds = {source: target, VECTOR_OF[source]: VECTOR_OF[target]}

    @intrinsic
    def cast(typingctx, value):
        result = kinds[value]

        def generate(context, builder, signature, args):
            return builder.bitcast(args[0], context.get_value_type(result))

        return result(value), generate

    return cast


bits_of = _reinterpret(types.float64, types.uint64)
float_of = _reinterpret(types.uint64, types.float64)


def _define(symbol, kind, method, **options):
    def usable(a):
        return a is kind or (isinstance(a, types.Number) and not isinstance(a, types.Complex))

    @intrinsic
    def operate(typingctx, a, b):
        def generate(context, builder, signature, args):
            vectors = [
                v if t is kind else spread(builder, v, kind.vector)
                for v, t in zip(args, signature.args, strict=True)
            ]
            return getattr(builder, method)(*vectors, **options)

        return kind(a if a is kind else kind.scalar, b if b is kind else kind.scalar), generate

    @overload(symbol)
    def resolve(a, b):
        if (a is kind or b is kind) and usable(a) and usable(b):
            return lambda a, b: operate(a, b)  # noqa: PLW0108 (Numba compiles it)
        return None


_OF_FLOATS = {"add": "fadd", "sub": "fsub", "mul": "fmul", "truediv": "fdiv"}
_OF_BITS = {"add": "add", "sub": "sub", "mul": "mul", "lshift": "shl", "rshift": "lshr"}
for _name, _method in _OF_FLOATS.items():
    _define(getattr(operator, _name), lanes_type, _method, flags=("contract",))
for _name, _method in (_OF_BITS | {name: name for name in ("xor", "and_", "or_")}).items():
    _define(getattr(operator, _name), bits_type, _method)
