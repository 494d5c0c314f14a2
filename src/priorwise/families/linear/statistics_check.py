"""Compiled check of normal equations: whether any features and rewards have them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from priorwise.core.types import FloatArray
from priorwise.kernels.compiling import F, entry

READ_ROW, READ_ROWS, READ_CUBE = (types.Array(F, axes, "C", readonly=True) for axes in (1, 2, 3))


def _impossible(gram: FloatArray, moments: FloatArray, squares: FloatArray, slack: float) -> int:
    """First task whose ``[X'X, X'r; r'X, r'r]`` has a negative eigenvalue, its diagonal scaled to
    1; -1 if there is none.
    """
    tasks, d = moments.shape
    H, scale = np.empty((d + 1, d + 1)), np.empty(d + 1)
    for t in range(tasks):
        for i in range(d + 1):
            size = gram[t, i, i] if i < d else squares[t]
            if size < 0.0:
                return t
            scale[i] = np.sqrt(size)
        for i in range(d + 1):
            for j in range(i + 1):
                s = gram[t, i, j] if i < d else moments[t, j] if j < d else squares[t]
                unit = scale[i] * scale[j]
                if unit > 0.0:
                    s /= unit
                elif s != 0.0:
                    return t
                if i == j:
                    s += slack
                for m in range(j):
                    s -= H[i, m] * H[j, m]
                if i > j:
                    H[i, j] = s / H[j, j]
                elif s <= 0.0:
                    return t
                else:
                    H[i, i] = np.sqrt(s)
    return -1


impossible: Any = entry(types.int64(READ_CUBE, READ_ROWS, READ_ROW, F))(_impossible)
