"""SciPy's special functions in tile functions, called by their address."""

import ctypes
from typing import Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from priorwise.core.tiles import LANES
from priorwise.kernels.simd import intrinsic

MOST_KEPT: Final = 1 << 15
FOUR: Final = np.uint64(4)


def kept_rows(values: int) -> int:
    """Rows in which values are kept, four numbers each: a power of two of them, at most
    MOST_KEPT.
    """
    kept = max(16, 1 << (min(values, MOST_KEPT) - 1).bit_length())
    return kept * 4 // LANES


def address_of_special(name: str, arguments: int) -> int | None:
    """Address of a function of ``scipy.special`` of so many numbers, as C sees it; None where SciPy
    has none.
    """
    from scipy.special import cython_special

    called = ctypes.pythonapi.PyCapsule_GetName
    called.restype, called.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    wanted = f"double ({'double, ' * arguments}int __pyx_skip_dispatch)".encode()
    for function, capsule in cython_special.__pyx_capi__.items():
        if function.endswith(name) and called(capsule) == wanted:
            return int(pointer(capsule, wanted))
    return None


@intrinsic
def call_special(typingctx, address, *numbers):
    """Call a function of ``scipy.special`` at its address."""

    def generate(context, builder, signature, args):
        real = ir.DoubleType()
        given = cgutils.unpack_tuple(builder, args[1])
        function_type = ir.FunctionType(real, [*[real] * len(given), ir.IntType(32)])
        function = builder.inttoptr(args[0], function_type.as_pointer())
        return builder.call(function, [*given, ir.Constant(ir.IntType(32), 0)])

    return types.float64(types.uint64, types.StarArgTuple(numbers)), generate
