"""Four 16-bit fields to a lane: small counts and parts of words, four times as many to a vector."""

from typing import Final

from llvmlite import ir
from numba import types

from priorwise.kernels.simd import WIDTH, address_of, bits_type, intrinsic, operation, spread

FIELDS: Final = ir.VectorType(ir.IntType(16), 4 * WIDTH)
FOUR: Final = types.UniTuple(bits_type, 4)


@operation(bits_type, bits_type, bits_type, bits_type)
def count_fields_below(builder, count, a, b):
    """Of each of the fields, signed: return ``count`` plus one where ``a < b``."""
    counts, left, right = (builder.bitcast(each, FIELDS) for each in (count, a, b))
    hit = builder.icmp_signed("<", left, right)
    # true is -1
    return builder.bitcast(builder.sub(counts, builder.sext(hit, FIELDS)), bits_type.vector)


@operation(bits_type, bits_type, types.uint64)
def times_fields(builder, a, factor):
    """Multiply every field by a number."""
    factors = spread(builder, builder.trunc(factor, FIELDS.element), FIELDS)
    return builder.bitcast(builder.mul(builder.bitcast(a, FIELDS), factors), bits_type.vector)


@operation(bits_type, bits_type, bits_type)
def maximum_fields(builder, a, b):
    """Return the larger of the fields, unsigned."""
    left, right = builder.bitcast(a, FIELDS), builder.bitcast(b, FIELDS)
    larger = builder.select(builder.icmp_unsigned(">", left, right), left, right)
    return builder.bitcast(larger, bits_type.vector)


def _shuffled(builder, a, b, places):
    kind = ir.VectorType(ir.IntType(32), len(places))
    return builder.shuffle_vector(a, b, ir.Constant(kind, list(places)))


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
            offset = builder.load(address_of(context, builder, signature.args[2], args[2], at))
            first = builder.add(args[1], offset)
            address = address_of(context, builder, signature.args[0], args[0], first)
            address = builder.bitcast(address, quad.as_pointer())
            rows.append(builder.load(address, align=8, typ=quad))
        while len(rows) > 1:  # of each two: all first integers, then all second ones, ...
            size = rows[0].type.count // 4
            places = [
                half * 4 * size + k * size + i
                for k in range(4)
                for half in range(2)
                for i in range(size)
            ]
            pairs = zip(rows[::2], rows[1::2], strict=True)
            rows = [_shuffled(builder, a, b, places) for a, b in pairs]
        parts = (range(k, k + WIDTH) for k in range(0, 4 * WIDTH, WIDTH))
        vectors = [_shuffled(builder, rows[0], rows[0], places) for places in parts]
        return context.make_tuple(builder, FOUR, vectors)

    return FOUR(array, types.int64, offsets, types.int64), generate


@intrinsic
def transposed(typingctx, a, b, c, d):
    """Swap vectors and fields: field ``f`` of vector ``v`` becomes field ``v`` of vector ``f``, in
    each lane.
    """

    def generate(context, builder, signature, args):
        def woven(x, y, size):
            return [_interleaved(builder, x, y, size, half) for half in (0, 4)]

        a, b, c, d = (builder.bitcast(arg, FIELDS) for arg in args)
        ab, cd = woven(a, b, 1), woven(c, d, 1)
        low, high = woven(ab[0], cd[0], 2), woven(ab[1], cd[1], 2)
        rows = woven(low[0], high[0], 4) + woven(low[1], high[1], 4)
        vectors = [builder.bitcast(row, bits_type.vector) for row in rows]
        return context.make_tuple(builder, FOUR, vectors)

    return FOUR(bits_type, bits_type, bits_type, bits_type), generate


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
