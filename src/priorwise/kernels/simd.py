"""A vector of tasks as a value: what the compiler cannot be relied on to vectorise is written with it.

``Lanes`` is WIDTH doubles in registers. ``load(array, offset)`` and ``store(array, offset, value)`` address a C-contiguous float
array by element, without index checks; ``+``, ``-``, ``*``, ``/`` and :func:`fma`, :func:`maximum`, :func:`sqrt` act lane by lane.
LLVM maps it to whatever the machine has, from two to eight doubles at a time.
"""

from __future__ import annotations

import operator
from typing import Final

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

from priorwise.kernels.compiling import LANES

WIDTH: Final = 8
GROUPS: Final = LANES // WIDTH

_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)


class LanesType(types.Type):
    """Numba's name for a vector of WIDTH tasks."""

    def __init__(self) -> None:
        """Name the type."""
        super().__init__(name="Lanes")


lanes_type = LanesType()


@register_model(LanesType)
class LanesModel(models.PrimitiveModel):
    """How LLVM holds it."""

    def __init__(self, manager, numba_type) -> None:
        """Hold it as one vector value."""
        super().__init__(manager, numba_type, _VECTOR)


def _address(context, builder, array_type, array, offset):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [offset])


def _llvm(builder, name, args):
    function_type = ir.FunctionType(_VECTOR, [_VECTOR] * len(args))
    return builder.call(cgutils.get_or_insert_function(builder.module, function_type, f"llvm.{name}.v{WIDTH}f64"), args)


@intrinsic
def load(typingctx, array, offset):
    """Read WIDTH elements from an element offset on."""

    def generate(context, builder, signature, args):
        address = _address(context, builder, signature.args[0], args[0], args[1])
        return builder.load(builder.bitcast(address, _VECTOR.as_pointer()), align=8, typ=_VECTOR)

    return lanes_type(array, types.int64), generate


@intrinsic
def store(typingctx, array, offset, value):
    """Write WIDTH elements from an element offset on."""

    def generate(context, builder, signature, args):
        address = _address(context, builder, signature.args[0], args[0], args[1])
        builder.store(args[2], builder.bitcast(address, _VECTOR.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.void(array, types.int64, lanes_type), generate


@intrinsic
def splat(typingctx, value):
    """Return the same number in every lane."""

    def generate(context, builder, signature, args):
        one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), args[0], ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
        return builder.shuffle_vector(one, ir.Constant(_VECTOR, ir.Undefined), zeros)

    return lanes_type(types.float64), generate


@intrinsic
def fma(typingctx, a, b, c):
    """Compute ``a * b + c``, fused where the machine does that."""

    def generate(context, builder, signature, args):
        return _llvm(builder, "fmuladd", args)

    return lanes_type(lanes_type, lanes_type, lanes_type), generate


@intrinsic
def maximum(typingctx, a, b):
    """Return the larger, lane by lane."""

    def generate(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">", args[0], args[1]), args[0], args[1])

    return lanes_type(lanes_type, lanes_type), generate


@intrinsic
def sqrt(typingctx, a):
    """Return the square root."""

    def generate(context, builder, signature, args):
        return _llvm(builder, "sqrt", args)

    return lanes_type(lanes_type), generate


def _define(symbol, method):
    @intrinsic
    def operate(typingctx, a, b):
        def generate(context, builder, signature, args):
            return getattr(builder, method)(*args)

        return lanes_type(lanes_type, lanes_type), generate

    @overload(symbol)
    def resolve(a, b):
        if isinstance(a, LanesType) and isinstance(b, LanesType):
            return lambda a, b: operate(a, b)  # noqa: PLW0108 (Numba compiles it)
        return None


for _symbol, _method in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _define(_symbol, _method)
