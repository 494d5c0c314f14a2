"""Means and variances over tasks, merged tile by tile in the order of the tasks: the same bits
whatever the blocks.
"""

from __future__ import annotations

import numpy as np

from priorwise.core.tiles import LANES
from priorwise.core.types import FloatArray
from priorwise.kernels.tally import merge_tiles, tally
from priorwise.kernels.tally import report as report_tiles

__all__ = ["merge_tiles", "report", "tally"]


def report(columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Report ``(tile, row)`` on ``columns`` ``(row, task)``: means, sums of squared deviations."""
    rows, tasks = columns.shape
    means, squares = np.empty((2, -(-tasks // LANES), rows))
    report_tiles(columns, 0, means, squares)
    return means, squares
