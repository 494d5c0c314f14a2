"""Look-ahead of finite priors without noise, cell by cell.

A noiseless pull shows its cell: an arm and one of the means it may have. What follows then depends
on the cell and the weights alone. It is computed once for each cell and all tasks of the tile with
these weights, and kept in a record: the ends of the heads that each task owns, and the mean that
the cell shows. The numbers are those of ``priorwise.families.finite.tiles_look``, which is cheaper
where cells outnumber pulls.
"""

from typing import Any, NamedTuple

import numpy as np

from priorwise.families.finite import tiles_counts as counts
from priorwise.families.finite import tiles_look as pulls
from priorwise.families.finite.tiles import NONE, At
from priorwise.families.finite.tiles_work import BATCH, begin, next_places, work_in
from priorwise.kernels.compiling import LANES, LOOK, inline, tile
from priorwise.kernels.random import ZERO
from priorwise.kernels.simd import WIDTH, bits_of, float_of, gather, load, peek, poke, store, zeros
from priorwise.kernels.spans import keep, take_bits, take_ints

TOGETHER = 4  # tasks of equal belief whose pulls share batches, so that few batches are part empty


class Cells(NamedTuple):
    """What is known about the cells."""

    pitch: int  # their number in whole batches
    size: int  # words of a record
    table: Any  # (cell, word), records
    words: Any  # of a batch
    records: Any  # of the cells that a batch shows
    starts: Any  # of the vectors of a batch of cells


@inline
def cells_in(memory, n):
    """Take the records off the memory."""
    size = n[At.RECORD]
    pitch = (n[At.CELLS] + BATCH - 1) // BATCH * BATCH
    return Cells(
        pitch, size,
        take_bits(memory, pitch * size), take_bits(memory, BATCH), take_bits(memory, BATCH),
        take_ints(memory, 4),
    )  # fmt: skip


@inline
def begin_cells(cells, p, n):
    """Write the means that the cells show as the last words of their records."""
    for cell in range(n[At.CELLS]):
        place = (cell + 1) * cells.size - 1
        poke(cells.table, place, bits_of(peek(p, n[At.CELL_VALUES] + cell)))
    for v in range(4):
        poke(cells.starts, v, v * WIDTH)


@inline
def gather_equals(work, state, mask, leader, apart, number, members):
    """List the lanes from the leader on that have its weights and its available arms, and mark them
    done. Return their number.
    """
    for g in range(0, LANES, WIDTH):
        differ = zeros()
        for s in range(work.support, 2 * work.support):
            own = bits_of(peek(state, s * LANES + leader))
            differ = differ | (bits_of(load(state, s * LANES + g)) ^ own)
        for arm in range(work.arms):
            own = bits_of(peek(mask, arm * LANES + leader))
            differ = differ | (bits_of(load(mask, arm * LANES + g)) ^ own)
        store(apart, g, differ)
    together = 0
    for lane in range(leader, LANES):
        if apart[lane] == ZERO:
            members[together] = lane
            number[lane] = pulls.DONE
            together += 1
    return together


@inline
def fill_records(work, cells, p, n, active):
    """Compute what follows each cell under the weights of the possible tasks."""
    for cell in range(0, cells.pitch, BATCH):
        pulls.point_rows(work, active, cells.pitch, n[At.CELL_MEANS] + cell)
        shown = n[At.CELL_VALUES] + cell
        pulls.rule_out(work, p, cells.starts, p, shown, p[n[At.TOLERANCE]], active)
        counts.own_heads(work, active)
        counts.keep_tops(work, active, cells.words, cells.table, cell * cells.size, cells.size)


@inline
def look_by_cell(work, cells, p, n, keys, lanes, first, end, active, listed, least):
    """Look ahead from the lanes ``first`` to ``end``, exclusive, which hold one belief."""
    member, place, pitch = first, pulls.I0, work.arms + WIDTH
    last = np.uint64(cells.size - 1)  # word of a record
    pulls.point_rows(work, active, pitch, n[At.RECORDS])
    for at in range(0, (end - first) * work.pitch, BATCH):
        member, place = next_places(work, keys, lanes, member, end - 1, place)
        pulls.draw_tasks(work, n, active, cells.records, 0)
        for v in range(0, BATCH, WIDTH):  # the means that the cells show
            shown = float_of(gather(cells.table, load(cells.records, v) + last))
            store(work.values, at + v, shown)
        counts.look_up_tops(work, cells.table, active, cells.records)
        counts.draw_heads(work)
        counts.count_draws(work, active)
        if counts.any_short(work):
            pulls.point_rows(work, active, pitch, n[At.ROWS])
            pulls.rule_out(work, p, work.starts, work.values, at, p[n[At.TOLERANCE]], active)
            counts.draw_remainders(work, active)
            pulls.point_rows(work, active, pitch, n[At.RECORDS])
        counts.best_sums_of(work, n[At.SIGNED], active, listed, least, at)


@tile(LOOK)
def look(p, n, keys, step, call, k1, k2, state, signal, mask, scratch, now, ahead, sizes):
    """Look one step past pulling each arm: draw the cell that it shows, and average k2 drawn mean
    vectors of tasks that show it.
    """
    number, last, apart = np.empty(LANES), np.empty(LANES, np.uint64), np.empty(LANES, np.uint64)
    if pulls.settle(p, n, k1, state, mask, number, last, now, ahead) == 0:
        return
    taken, lanes = np.full(1, WIDTH), np.empty(LANES, np.int64)
    work_in(taken, p, n, k1, k2, TOGETHER)
    cells_in(taken, n)
    memory = np.zeros(taken[0], np.int64)
    memory[0] = WIDTH
    work, cells = work_in(memory, p, n, k1, k2, TOGETHER), cells_in(memory, n)
    begin(work, NONE, step, call)
    begin_cells(cells, p, n)
    known_lane, listed, least = pulls.I0, pulls.I0, 0.0
    for leader in range(LANES):
        if number[leader] == pulls.DONE:
            continue
        active, known_lane, listed, least = pulls.start_at(
            work, leader, state, mask, p, n, known_lane, listed, least
        )
        together = gather_equals(work, state, mask, leader, apart, number, lanes)
        fill_records(work, cells, p, n, active)
        for first in range(0, together, TOGETHER):
            end = min(together, first + TOGETHER)
            look_by_cell(work, cells, p, n, keys, lanes, first, end, active, listed, least)
            for member in range(first, end):
                place = (member - first) * work.pitch
                pulls.add_up_pulls(work, place, lanes[member], n[At.SIGNED], now, ahead, sizes)
    keep(memory)
