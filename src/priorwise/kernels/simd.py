"""A vector of tasks as a value: what the compiler cannot be relied on to vectorise is written with
it.

``Lanes`` is WIDTH floats in registers, ``Bits`` WIDTH unsigned 64-bit integers. ``load(array,
offset)`` and ``store(array, offset, value)`` address a C-contiguous array of floats or unsigned
integers by element, without index checks. Arithmetic acts lane by lane, also with a scalar on the
right or left, so a function like ``mix`` or ``log`` of ``priorwise.kernels.random`` serves scalars
and vectors alike. LLVM maps it to whatever the machine has.
"""

from __future__ import annotations

import operator
from typing import Final

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

WIDTH: Final = 8


class VectorType(types.Type):
    """Numba's name for a vector of WIDTH floats or integers."""

    def __init__(self, name: str, scalar, element) -> None:
        """Name the type, its scalar type in Numba and its element in LLVM."""
        super().__init__(name=name)
        self.scalar = scalar
        self.vector = ir.VectorType(element, WIDTH)


lanes_type = VectorType("Lanes", types.float64, ir.DoubleType())
bits_type = VectorType("Bits", types.uint64, ir.IntType(64))
# the bits of a vector as 16-bit fields, four a lane
FIELDS: Final = ir.VectorType(ir.IntType(16), 4 * WIDTH)
VECTOR_OF = {types.float64: lanes_type, types.uint64: bits_type, types.int64: bits_type}


@register_model(VectorType)
class VectorModel(models.PrimitiveModel):
    """How LLVM holds it."""

    def __init__(self, manager, numba_type) -> None:
        """Hold it as one vector value."""
        super().__init__(manager, numba_type, numba_type.vector)


def _address(context, builder, array_type, array, offset):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [offset])


def _llvm(builder, name, args):
    vector = lanes_type.vector
    function_type = ir.FunctionType(vector, [vector] * len(args))
    return builder.call(
        cgutils.get_or_insert_function(builder.module, function_type, f"llvm.{name}.v{WIDTH}f64"),
        args,
    )


def _splat(builder, value, vector):
    one = builder.insert_element(
        ir.Constant(vector, ir.Undefined), value, ir.Constant(ir.IntType(32), 0)
    )
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), zeros)


@intrinsic
def load(typingctx, array, offset):
    """Read WIDTH elements from an element offset on."""
    kind = VECTOR_OF[array.dtype]

    def generate(context, builder, signature, args):
        address = _address(context, builder, signature.args[0], args[0], args[1])
        return builder.load(
            builder.bitcast(address, kind.vector.as_pointer()), align=8, typ=kind.vector
        )

    return kind(array, types.int64), generate


@intrinsic
def store(typingctx, array, offset, value):
    """Write WIDTH elements from an element offset on."""

    def generate(context, builder, signature, args):
        address = _address(context, builder, signature.args[0], args[0], args[1])
        builder.store(
            args[2], builder.bitcast(address, signature.args[2].vector.as_pointer()), align=8
        )
        return context.get_dummy_value()

    return types.void(array, types.int64, value), generate


@intrinsic
def gather(typingctx, array, offsets):
    """Read one element for each lane, by its offset."""
    kind = VECTOR_OF[array.dtype]

    def generate(context, builder, signature, args):
        vector, words = kind.vector, bits_type.vector
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        base = _splat(builder, builder.ptrtoint(data, ir.IntType(64)), words)
        eight = ir.Constant(words, [8] * WIDTH)
        pointers = ir.VectorType(vector.element.as_pointer(), WIDTH)
        places = builder.inttoptr(builder.add(base, builder.mul(args[1], eight)), pointers)
        mask = ir.VectorType(ir.IntType(1), WIDTH)
        function_type = ir.FunctionType(vector, [pointers, ir.IntType(32), mask, vector])
        name = f"llvm.masked.gather.v{WIDTH}{'f' if kind is lanes_type else 'i'}64.v{WIDTH}p0"
        function = cgutils.get_or_insert_function(builder.module, function_type, name)
        every = ir.Constant(mask, [1] * WIDTH)
        return builder.call(
            function,
            [places, ir.Constant(ir.IntType(32), 8), every, ir.Constant(vector, ir.Undefined)],
        )

    return kind(array, bits_type), generate


def _shuffled(builder, a, b, places):
    return builder.shuffle_vector(
        a, b, ir.Constant(ir.VectorType(ir.IntType(32), len(places)), list(places))
    )


def _four(context, builder, vectors):
    return context.make_tuple(builder, types.UniTuple(bits_type, 4), vectors)


@intrinsic
def gather_four(typingctx, array, start, offsets, place):
    """Read four integers for each lane, from ``start`` and its offset on: a vector of the first
    ones, of the second ones, ...
    """

    def generate(context, builder, signature, args):
        quad = ir.VectorType(ir.IntType(64), 4)
        rows = []
        for lane in range(WIDTH):
            at = builder.add(args[3], ir.Constant(ir.IntType(64), lane))
            offset = builder.load(_address(context, builder, signature.args[2], args[2], at))
            address = _address(
                context, builder, signature.args[0], args[0], builder.add(args[1], offset)
            )
            rows.append(
                builder.load(builder.bitcast(address, quad.as_pointer()), align=8, typ=quad)
            )
        while len(rows) > 1:  # of each two: all first integers, then all second ones, ...
            size = rows[0].type.count // 4
            places = [
                half * 4 * size + k * size + i
                for k in range(4)
                for half in range(2)
                for i in range(size)
            ]
            rows = [
                _shuffled(builder, a, b, places) for a, b in zip(rows[::2], rows[1::2], strict=True)
            ]
        return _four(
            context,
            builder,
            [
                _shuffled(builder, rows[0], rows[0], range(k, k + WIDTH))
                for k in range(0, 4 * WIDTH, WIDTH)
            ],
        )

    return types.UniTuple(bits_type, 4)(array, types.int64, offsets, types.int64), generate


@intrinsic
def transposed(typingctx, a, b, c, d):
    """Swap vectors and 16-bit fields: field ``f`` of vector ``v`` becomes field ``v`` of vector
    ``f``, in each lane.
    """

    def generate(context, builder, signature, args):
        fields = [builder.bitcast(arg, FIELDS) for arg in args]
        pairs = [
            _interleaved(builder, x, y, 1, half)
            for x, y in (fields[:2], fields[2:])
            for half in (0, 4)
        ]
        quads = [
            _interleaved(builder, pairs[i], pairs[i + 2], 2, half)
            for half in (0, 4)
            for i in (0, 1)
        ]
        rows = [
            _interleaved(builder, quads[i], quads[i + 1], 4, half)
            for i in (0, 2)
            for half in (0, 4)
        ]
        return _four(context, builder, [builder.bitcast(row, bits_type.vector) for row in rows])

    return types.UniTuple(bits_type, 4)(bits_type, bits_type, bits_type, bits_type), generate


def _interleaved(builder, a, b, size, half):
    """Interleave runs of ``size`` fields of a and b, from the first or second half of every two
    lanes: what machines can do.
    """
    count = FIELDS.count
    places = [
        base + half + i + j + other
        for base in range(0, count, 8)
        for i in range(0, 4, size)
        for other in (0, count)
        for j in range(size)
    ]
    return _shuffled(builder, a, b, places)


@intrinsic
def iota(typingctx):
    """Return 0, 1, ... along the lanes."""

    def generate(context, builder, signature, args):
        return ir.Constant(bits_type.vector, list(range(WIDTH)))

    return bits_type(), generate


@intrinsic
def peek(typingctx, array, offset):
    """Read one element by its offset."""

    def generate(context, builder, signature, args):
        return builder.load(_address(context, builder, signature.args[0], args[0], args[1]))

    return array.dtype(array, types.int64), generate


@intrinsic
def poke(typingctx, array, offset, value):
    """Write one element by its offset."""

    def generate(context, builder, signature, args):
        builder.store(args[2], _address(context, builder, signature.args[0], args[0], args[1]))
        return context.get_dummy_value()

    return types.void(array, types.int64, array.dtype), generate


@intrinsic
def largest(typingctx, a):
    """Return the largest of the lanes."""

    def generate(context, builder, signature, args):
        best = builder.extract_element(args[0], ir.Constant(ir.IntType(32), 0))
        for k in range(1, WIDTH):
            value = builder.extract_element(args[0], ir.Constant(ir.IntType(32), k))
            best = builder.select(builder.fcmp_ordered(">", value, best), value, best)
        return best

    return types.float64(lanes_type), generate


@intrinsic
def sum_of(typingctx, a):
    """Add up the lanes, from the first to the last."""

    def generate(context, builder, signature, args):
        total = builder.extract_element(args[0], ir.Constant(ir.IntType(32), 0))
        for k in range(1, WIDTH):
            total = builder.fadd(
                total, builder.extract_element(args[0], ir.Constant(ir.IntType(32), k))
            )
        return total

    return types.float64(lanes_type), generate


@intrinsic
def splat(typingctx, value):
    """Return the same number in every lane."""

    def generate(context, builder, signature, args):
        return _splat(builder, args[0], lanes_type.vector)

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
def minimum(typingctx, a, b):
    """Return the smaller, lane by lane."""

    def generate(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered("<", args[0], args[1]), args[0], args[1])

    return lanes_type(lanes_type, lanes_type), generate


@intrinsic
def where_at_least(typingctx, a, b, yes, no):
    """Return ``yes`` where ``a >= b`` and ``no`` elsewhere."""

    def generate(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">=", args[0], args[1]), args[2], args[3])

    return yes(lanes_type, lanes_type, yes, yes), generate


@intrinsic
def count_at_least(typingctx, count, a, b):
    """Return ``count`` plus one where ``a >= b``."""

    def generate(context, builder, signature, args):
        hit = builder.fcmp_ordered(">=", args[1], args[2])
        return builder.sub(args[0], builder.sext(hit, bits_type.vector))  # true is -1

    return bits_type(bits_type, lanes_type, lanes_type), generate


@intrinsic
def count_fields_below(typingctx, count, a, b):
    """Of each of the 16-bit fields of the lanes, signed: return ``count`` plus one where ``a <
    b``.
    """

    def generate(context, builder, signature, args):
        counts, left, right = (builder.bitcast(arg, FIELDS) for arg in args)
        hit = builder.icmp_signed("<", left, right)
        # true is -1
        return builder.bitcast(builder.sub(counts, builder.sext(hit, FIELDS)), bits_type.vector)

    return bits_type(bits_type, bits_type, bits_type), generate


@intrinsic
def times_fields(typingctx, a, factor):
    """Multiply every 16-bit field by a number."""

    def generate(context, builder, signature, args):
        factors = _splat(builder, builder.trunc(args[1], FIELDS.element), FIELDS)
        return builder.bitcast(
            builder.mul(builder.bitcast(args[0], FIELDS), factors), bits_type.vector
        )

    return bits_type(bits_type, types.uint64), generate


@intrinsic
def maximum_fields(typingctx, a, b):
    """Return the larger of the 16-bit fields, unsigned."""

    def generate(context, builder, signature, args):
        left, right = (builder.bitcast(arg, FIELDS) for arg in args)
        return builder.bitcast(
            builder.select(builder.icmp_unsigned(">", left, right), left, right), bits_type.vector
        )

    return bits_type(bits_type, bits_type), generate


@intrinsic
def zeros(typingctx):
    """Return the integer 0 in every lane."""

    def generate(context, builder, signature, args):
        return ir.Constant(bits_type.vector, [0] * WIDTH)

    return bits_type(), generate


@intrinsic
def trunc(typingctx, a):
    """Return the whole number towards 0, lane by lane."""

    def generate(context, builder, signature, args):
        return _llvm(builder, "trunc", args)

    return lanes_type(lanes_type), generate


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
                v if t is kind else _splat(builder, v, kind.vector)
                for v, t in zip(args, signature.args, strict=True)
            ]
            return getattr(builder, method)(*vectors, **options)

        return kind(a if a is kind else kind.scalar, b if b is kind else kind.scalar), generate

    @overload(symbol)
    def resolve(a, b):
        if (a is kind or b is kind) and usable(a) and usable(b):
            return lambda a, b: operate(a, b)  # noqa: PLW0108 (Numba compiles it)
        return None


for _symbol, _method in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _define(_symbol, lanes_type, _method, flags=("contract",))
for _symbol, _method in (
    (operator.add, "add"),
    (operator.sub, "sub"),
    (operator.mul, "mul"),
    (operator.xor, "xor"),
    (operator.and_, "and_"),
    (operator.or_, "or_"),
    (operator.lshift, "shl"),
    (operator.rshift, "lshr"),
):
    _define(_symbol, bits_type, _method)
