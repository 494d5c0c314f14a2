"""What the look-ahead of a finite prior needs to know of its means, computed once a run."""

from typing import Any, Final

import numpy as np

from priorwise.core.types import FloatArray, IntArray
from priorwise.families.finite.tiles_work import BATCH
from priorwise.kernels.simd import WIDTH

MOST_MULTIPLES: Final = 1 << 16
"""Means are counted in multiples of a common part if they are less than this."""

MOST_CELL_MEANS: Final = 1 << 18
"""Cells are numbered if they have no more means of tasks than this: more would not stay in the
cache.
"""


NO_TABLES: Final[dict[str, Any]] = {
    **dict.fromkeys(("multiple", "signed", "cells", "record", "records"), 0),
    **dict.fromkeys(("part", "rows", "row_stds", "cell_values", "cell_means"), np.zeros(0)),
}


def look_tables(means: FloatArray, deviations: FloatArray, *, noiseless: bool) -> dict[str, Any]:
    """Return what the look-ahead reads, by its names in the layout; no cells with noise, or where
    they are too many.
    """
    support, arms = means.shape
    part, multiple = common_part(means)
    repeated = np.arange(arms + WIDTH) % arms
    cells = cells_of(means)
    count = int(cells.max()) + 1
    if not noiseless or count * support > MOST_CELL_MEANS:
        cells, count = cells[:, :0], 0
    whole = -(-count // BATCH) * BATCH
    shown, arm_of = np.zeros(whole), np.zeros(whole, dtype=np.int64)
    if count > 0:
        shown[cells] = means
        arm_of[cells] = np.arange(arms)
    # words of a record: tops, four a word, rounded up to the 16 looked up at once, and the mean
    size = -(-support // 16) * 4 + 1
    return {
        "part": part,
        "multiple": multiple,
        "signed": multiple == 0 and bool(means.min() < 0.0),
        "rows": means[:, repeated],
        "row_stds": deviations[repeated],
        "cells": count,
        "cell_values": shown,
        "cell_means": means[:, arm_of],
        "record": size,
        "records": size * cells[:, repeated] if count > 0 else cells,
    }


def cells_of(means: FloatArray) -> IntArray:
    """Number the distinct means of each arm, ``(support, arm)``: what a noiseless pull can show."""
    order = np.argsort(means, axis=0)
    ordered = np.take_along_axis(means, order, axis=0)
    new = np.vstack([np.ones(means.shape[1], dtype=bool), ordered[1:] != ordered[:-1]])
    cells = np.empty(means.shape, dtype=np.int64)
    np.put_along_axis(cells, order, np.cumsum(new.T).reshape(new.T.shape).T - 1, axis=0)
    return cells


def common_part(means: FloatArray) -> tuple[float, int]:
    """Find a number that all means are multiples of, but for rounding, and the largest multiple; or
    zeros if there is none.

    Euclid's algorithm. Means below 0 have none: where sums cancel, rounding counts.
    """
    largest = float(means.max())
    if means.min() < 0.0 or largest < 1e-290:
        return 0.0, 0
    part, rest = largest, np.unique(means)
    while (
        part * MOST_MULTIPLES > largest
        and (rest := rest[rest > part * 0.5 / MOST_MULTIPLES]).size > 0
    ):
        part = float(rest.min())
        rest = rest % part
        rest = np.minimum(rest, part - rest)
    multiple = round(largest / part)
    part = largest / multiple
    exact = np.allclose(np.rint(means / part) * part, means, rtol=1e-14, atol=0.0)
    return (part, multiple) if exact and multiple < MOST_MULTIPLES else (0.0, 0)
