"""Means and variances over tasks, merged tile by tile in the order of the tasks: the same bits
whatever the blocks and threads.

A block of tasks reports, for each tile and row (a step's reward, say), the mean and the sum of
squared deviations over the tile's tasks. Reports are small, so they may be made in any thread and
merged in order (Chan, Golub and LeVeque's formula).
"""

from numba import types

from priorwise.kernels.compiling import LANES, ROW, ROWS, F, I, entry, inline
from priorwise.kernels.simd import WIDTH, fma, load, splat, sum_of


@inline
def spread_of(values, first, lanes):
    """Mean and sum of squared deviations of ``lanes`` numbers from an element offset on."""
    if lanes == LANES:
        total = splat(0.0)
        for g in range(0, LANES, WIDTH):
            total = total + load(values, first + g)
        centre = sum_of(total) / LANES
        middle, squares = splat(centre), splat(0.0)
        for g in range(0, LANES, WIDTH):
            gap = load(values, first + g) - middle
            squares = fma(gap, gap, squares)
        return centre, sum_of(squares)
    flat = values.reshape(-1)
    centre = 0.0
    for k in range(first, first + lanes):
        centre += flat[k]
    centre /= lanes
    rest = 0.0
    for k in range(first, first + lanes):
        rest += (flat[k] - centre) ** 2
    return centre, rest


@inline
def note(means, squares, tile, row, values, first, lanes):
    """Report on numbers of a tile: their mean and squared deviations."""
    means[tile, row], squares[tile, row] = spread_of(values, first, lanes)


@inline
def merge(lanes, centre, squares, row, seen, mean, square):
    """Merge the numbers of one tile into a row."""
    shift = centre - mean[row]
    merged = seen + lanes
    mean[row] += shift * (lanes / merged)
    square[row] += squares + shift * shift * (seen * lanes / merged)


@entry(types.void(ROWS, ROWS, I, F, ROW, ROW))
def merge_tiles(means, squares, tasks, count, mean, square):
    """Merge the reports (tile, row) on ``tasks`` tasks into the rows' means and squared deviations
    over ``count`` tasks so far.
    """
    for tile in range(means.shape[0]):
        lanes = min(LANES, tasks - tile * LANES)
        for row in range(means.shape[1]):
            merge(lanes, means[tile, row], squares[tile, row], row, count, mean, square)
        count += lanes


@entry(types.void(ROWS, F, ROW, ROW))
def tally(columns, count, mean, square):
    """Merge the tasks of ``columns`` (row, task) into the rows' means and squared deviations over
    ``count`` tasks so far.
    """
    rows, tasks = columns.shape
    for first in range(0, tasks, LANES):
        lanes = min(LANES, tasks - first)
        for row in range(rows):
            centre, squares = spread_of(columns, row * tasks + first, lanes)
            merge(lanes, centre, squares, row, count, mean, square)
        count += lanes
