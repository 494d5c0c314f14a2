"""Spans: parts of one allocated array, held as mere addresses.

A record of many arrays is slow to compile: each array is seven numbers to LLVM, in every call that
the record is passed to. A span is one. It is read and written like an array, without index checks,
and does not keep its memory: that is what ``keep`` is for, after the last use.
"""

from llvmlite import ir
from numba import types

from priorwise.kernels.simd import WIDTH, data_of, intrinsic


def _taking(dtype):
    """Make ``take(memory, size)``: a span of so many elements, of a type of eight bytes, off the
    memory, an array of integers whose first says how many are taken; the first vector is its own,
    and spans begin at whole vectors.
    """
    kind = types.CPointer(dtype)

    @intrinsic
    def take(typingctx, memory, size):
        def generate(context, builder, signature, args):
            first = data_of(context, builder, signature.args[0], args[0])
            place = builder.load(first)
            room = builder.and_(
                builder.add(args[1], ir.Constant(args[1].type, WIDTH - 1)),
                ir.Constant(args[1].type, -WIDTH),
            )
            builder.store(builder.add(place, room), first)
            return builder.bitcast(builder.gep(first, [place]), context.get_value_type(kind))

        return kind(memory, types.int64), generate

    return take


take_floats, take_ints, take_bits = map(_taking, (types.float64, types.int64, types.uint64))


@intrinsic
def keep(typingctx, memory):
    """Do nothing, but hold the memory up to here: spans of it are not used any more."""
    return types.void(memory), lambda context, builder, signature, args: context.get_dummy_value()
