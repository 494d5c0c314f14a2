"""Means and variances over tasks, merged tile by tile in the order of the tasks: the same bits whatever the blocks and threads."""

from __future__ import annotations

import numpy as np
from numba import types

from priorwise.kernels.compiling import LANES, ROW, ROWS, F, entry


@entry(types.void(ROWS, F, ROW, ROW))
def tally(columns, count, mean, square):
    """Merge the tasks of ``columns`` (row, task) into the rows' means and sums of squared deviations over ``count`` tasks so far.

    Chan, Golub and LeVeque's merge; eight partial sums a tile, added in a fixed order.
    """
    rows, tasks = columns.shape
    partial = np.empty(8)
    for row in range(rows):
        seen = count
        values = columns[row]
        for first in range(0, tasks, LANES):
            lanes = min(LANES, tasks - first)
            whole = lanes // 8 * 8
            partial[:] = 0.0
            for lane in range(0, whole, 8):
                for k in range(8):
                    partial[k] += values[first + lane + k]
            for lane in range(whole, lanes):
                partial[lane - whole] += values[first + lane]
            total = 0.0
            for k in range(8):
                total += partial[k]
            centre = total / lanes
            partial[:] = 0.0
            for lane in range(0, whole, 8):
                for k in range(8):
                    gap = values[first + lane + k] - centre
                    partial[k] += gap * gap
            for lane in range(whole, lanes):
                gap = values[first + lane] - centre
                partial[lane - whole] += gap * gap
            spread = 0.0
            for k in range(8):
                spread += partial[k]
            shift = centre - mean[row]
            merged = seen + lanes
            mean[row] += shift * (lanes / merged)
            square[row] += spread + shift * shift * (seen * lanes / merged)
            seen = merged


@entry(types.void(ROWS, ROW))
def totals(columns, out):
    """Add the steps of ``columns`` (step, task) in their order."""
    out[:] = 0.0
    for step in range(columns.shape[0]):
        row = columns[step]
        for task in range(columns.shape[1]):
            out[task] += row[task]
