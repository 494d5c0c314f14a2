"""Means and variances over tasks, merged tile by tile in the order of the tasks: the same bits
whatever the blocks. The NumPy twin of :mod:`priorwise.kernels.tally`, equal to it up to rounding
(compiled code fuses multiplications and additions).
"""

import numpy as np

from priorwise.core.tiles import LANES
from priorwise.core.types import FloatArray


def report(columns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Report ``(tile, row)`` on ``columns`` ``(row, task)``: means, sums of squared deviations."""
    rows, tasks = columns.shape
    whole = tasks // LANES * LANES
    means, squares = np.empty((2, -(-tasks // LANES), rows))
    parts = (columns[:, :whole], slice(whole // LANES)), (columns[:, whole:], slice(-1, None))
    for part, at in parts:
        if part.size:
            tiles = part.reshape(rows, -1, min(part.shape[1], LANES))
            centre = tiles.mean(axis=2)
            means[at] = centre.T
            apart = tiles - centre[:, :, None]
            squares[at] = np.square(apart, out=apart).sum(axis=2).T
    return means, squares


def merge_tiles(
    means: FloatArray,
    squares: FloatArray,
    tasks: int,
    count: float,
    mean: FloatArray,
    square: FloatArray,
) -> None:
    """Merge the reports ``(tile, row)`` on ``tasks`` tasks into the rows' means and squared
    deviations over ``count`` tasks so far (Chan, Golub and LeVeque's formula).
    """
    for tile, (centre, spread) in enumerate(zip(means, squares, strict=True)):
        lanes = min(LANES, tasks - tile * LANES)
        shift, merged = centre - mean, count + lanes
        mean += shift * (lanes / merged)
        square += spread + shift * shift * (count * lanes / merged)
        count = merged


def tally(columns: FloatArray, count: float, mean: FloatArray, square: FloatArray) -> None:
    """Merge the tasks of ``columns`` ``(row, task)``."""
    merge_tiles(*report(columns), columns.shape[1], count, mean, square)
