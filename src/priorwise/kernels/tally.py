"""Means and variances over tasks, merged tile by tile in the order of the tasks: the same bits whatever the blocks and threads."""

from __future__ import annotations

from numba import types

from priorwise.kernels.compiling import LANES, ROW, ROWS, F, entry, inline
from priorwise.kernels.simd import WIDTH, fma, load, splat, sum_of


@inline
def merge(lanes, centre, spread, row, seen, mean, square):
    """Merge a tile of so many tasks into a row (Chan, Golub and LeVeque)."""
    shift = centre - mean[row]
    merged = seen + lanes
    mean[row] += shift * (lanes / merged)
    square[row] += spread + shift * shift * (seen * lanes / merged)


@inline
def add_row(columns, row, count, mean, square):
    """Merge one row of ``columns`` into its mean and sum of squared deviations over ``count`` tasks so far."""
    tasks = columns.shape[1]
    whole = tasks // LANES * LANES
    start = row * tasks
    seen = count
    for first in range(start, start + whole, LANES):
        total = splat(0.0)
        for g in range(0, LANES, WIDTH):
            total = total + load(columns, first + g)
        centre = sum_of(total) / LANES
        middle, spread = splat(centre), splat(0.0)
        for g in range(0, LANES, WIDTH):
            gap = load(columns, first + g) - middle
            spread = fma(gap, gap, spread)
        merge(LANES, centre, sum_of(spread), row, seen, mean, square)
        seen += LANES
    if whole < tasks:
        total_left = 0.0
        for task in range(whole, tasks):
            total_left += columns[row, task]
        centre = total_left / (tasks - whole)
        spread_left = 0.0
        for task in range(whole, tasks):
            spread_left += (columns[row, task] - centre) ** 2
        merge(tasks - whole, centre, spread_left, row, seen, mean, square)


@entry(types.void(ROWS, F, ROW, ROW))
def tally(columns, count, mean, square):
    """Merge the tasks of ``columns`` (row, task) into the rows' means and squared deviations over ``count`` tasks so far."""
    for row in range(columns.shape[0]):
        add_row(columns, row, count, mean, square)


@entry(types.void(ROWS, F, ROW, ROW, ROWS, ROW, ROW))
def tally_steps(columns, count, mean, square, total, total_mean, total_square):
    """Merge the steps of ``columns`` (step, task), and their total in the order of the steps, written to ``total`` (1, task)."""
    total[0] = 0.0
    for step in range(columns.shape[0]):
        add_row(columns, step, count, mean, square)
        for task in range(columns.shape[1]):
            total[0, task] += columns[step, task]
    add_row(total, 0, count, total_mean, total_square)
