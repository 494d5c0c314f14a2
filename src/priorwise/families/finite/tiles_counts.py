"""Counts of drawn tasks for batches of imagined pulls, as ``priorwise.core.hashing.Stream.counts``
draws them, and their best sums.

Heads, ends of owned heads and counts have 16 bits. Four pulls share a 64-bit lane: pull ``i`` of a
batch is field ``i // WIDTH`` of lane ``i % WIDTH``. Words hold four numbers of one pull instead;
``transposed`` leads from one to the other.
"""

import numpy as np

from priorwise.core import hashing
from priorwise.families.finite.tiles_work import BATCH
from priorwise.kernels import simd
from priorwise.kernels.compiling import inline
from priorwise.kernels.fields import (
    count_fields_below,
    gather_four,
    maximum_fields,
    times_fields,
    transposed,
)
from priorwise.kernels.random import GOLDEN, MAGIC_BITS, S16, S32, S48, mix, unit
from priorwise.kernels.simd import WIDTH, float_of, load, maximum, peek, splat, store, trunc, zeros

HEADS = float(hashing.HEADS)
SLACK = hashing.SLACK
# a cell whose tasks are all impossible, or as good as, must not spoil its neighbours in the lane
TINY = 1e-300
TWO_16, TWO_32, TWO_52 = 2.0**16, 2.0**32, 2.0**52
FIELD = np.uint64(0xFFFF)
LOW_48 = np.uint64(0x0000FFFFFFFFFFFF)
# flipped on both sides of a comparison: machines compare signed fields
SIGNS = np.uint64(0x8000800080008000)
EACH_FIELD = np.uint64(0x0001000100010001)


@inline
def store_four(array, place, vectors):
    """Write four vectors one after the other."""
    store(array, place, vectors[0])
    store(array, place + WIDTH, vectors[1])
    store(array, place + 2 * WIDTH, vectors[2])
    store(array, place + 3 * WIDTH, vectors[3])


@inline
def own_heads(work, active):
    """Write where the heads of each task end that it owns: the whole numbers in its shares, summed
    up.
    """
    for v in range(0, BATCH, WIDTH):
        total = load(work.after, v)
        for k in range(1, active):
            total = total + load(work.after, k * BATCH + v)
        store(work.scales, v, HEADS / maximum(total, splat(TINY)))
    after, tops = work.after, work.tops
    a_scale, b_scale = load(work.scales, 0), load(work.scales, WIDTH)
    c_scale, d_scale = load(work.scales, 2 * WIDTH), load(work.scales, 3 * WIDTH)
    running = zeros()
    for k in range(active):
        a = trunc(load(after, k * BATCH) * a_scale - SLACK)
        b = trunc(load(after, k * BATCH + WIDTH) * b_scale - SLACK)
        c = trunc(load(after, k * BATCH + 2 * WIDTH) * c_scale - SLACK)
        d = trunc(load(after, k * BATCH + 3 * WIDTH) * d_scale - SLACK)
        # the fraction bits of 2^52 + x are the whole number x
        low = simd.bits_of((c * TWO_32 + (b * TWO_16 + a)) + TWO_52)
        running = running + ((low & LOW_48) | (simd.bits_of(d + TWO_52) << S48))
        store(tops, k * WIDTH, running ^ SIGNS)


@inline
def keep_tops(work, active, words, table, record, size):
    """Keep the tops of a batch of cells in their records: four tasks a word, from the first word
    on.
    """
    for k in range(0, active, 4):
        at = k * WIDTH
        a, b = load(work.tops, at), load(work.tops, at + WIDTH)
        c, d = load(work.tops, at + 2 * WIDTH), load(work.tops, at + 3 * WIDTH)
        store_four(words, 0, transposed(a, b, c, d))
        for i in range(BATCH):
            simd.poke(table, record + i * size + k // 4, peek(words, i))


@inline
def look_up_tops(work, table, active, records):
    """Write the tops of a batch of pulls from the records of their cells."""
    for k in range(0, active, 16):
        word, tops = k // 4, work.tops
        a, b = gather_four(table, word, records, 0), gather_four(table, word, records, WIDTH)
        c = gather_four(table, word, records, 2 * WIDTH)
        d = gather_four(table, word, records, 3 * WIDTH)
        store_four(tops, k * WIDTH, transposed(a[0], b[0], c[0], d[0]))
        if k + 4 < active:
            store_four(tops, (k + 4) * WIDTH, transposed(a[1], b[1], c[1], d[1]))
        if k + 8 < active:
            store_four(tops, (k + 8) * WIDTH, transposed(a[2], b[2], c[2], d[2]))
            store_four(tops, (k + 12) * WIDTH, transposed(a[3], b[3], c[3], d[3]))


@inline
def draw_heads(work):
    """Draw the heads of a batch, a draw a row: four of each pull from a word."""
    slots, places, keys = work.word_slots, work.places, work.keys
    for word in range(work.words):
        first = word * work.slot_pitch
        a = mix(load(slots, first + peek(places, 0)) + peek(keys, 0)) ^ SIGNS
        b = mix(load(slots, first + peek(places, 1)) + peek(keys, 1)) ^ SIGNS
        c = mix(load(slots, first + peek(places, 2)) + peek(keys, 2)) ^ SIGNS
        d = mix(load(slots, first + peek(places, 3)) + peek(keys, 3)) ^ SIGNS
        store_four(work.heads, 4 * word * WIDTH, transposed(a, b, c, d))


@inline
def count_draws(work, active):
    """Count the draws of each task, those below the end of its heads less those below the end of
    the heads before; and of all.
    """
    before, tops, counts = zeros(), work.tops, work.counts
    for k in range(0, active, 2):
        first, second = load(tops, k * WIDTH), load(tops, (k + 1) * WIDTH)
        a, b = zeros(), zeros()
        for j in range(work.k2):
            head = load(work.heads, j * WIDTH)
            a = count_fields_below(a, head, first)
            b = count_fields_below(b, head, second)
        store(counts, k * WIDTH, a - before)
        store(counts, (k + 1) * WIDTH, b - a)
        before = b
        store(work.owned, 0, b if k + 1 < active else a)


@inline
def field_of(rows, row, pull):
    """One 16-bit field: that of a pull of the batch."""
    return np.int64((rows[row * WIDTH + pull % WIDTH] >> np.uint64(pull // WIDTH * 16)) & FIELD)


@inline
def any_short(work):
    """Whether any pull of a batch has draws whose heads nobody owns."""
    short = np.uint64(0)
    for lane in range(WIDTH):
        short |= peek(work.owned, lane) ^ (np.uint64(work.k2) * EACH_FIELD)
    return short != np.uint64(0)


@inline
def draw_remainders(work, active):
    """Draw those tasks whose heads nobody owns: in proportion to what the whole numbers leave of
    the shares.
    """
    for pull in range(BATCH):
        if field_of(work.owned, 0, pull) < work.k2:
            draw_remainders_of(work, pull, active)


@inline
def draw_remainders_of(work, pull, active):
    """Draw those of one pull."""
    after, remainders = work.after, work.remainders
    place = work.places[pull // WIDTH] + pull % WIDTH
    total = 0.0
    for k in range(active):
        total += after[k * BATCH + pull]
    scale = HEADS / total
    total = 0.0
    last = 0
    end = 0
    for k in range(active):
        top = field_of(work.tops, k, pull) ^ 0x8000
        remainder = after[k * BATCH + pull] * scale - (top - end)
        end = top
        total += remainder
        remainders[k] = total
        last = k if remainder > 0.0 else last
    for j in range(work.k2):
        if field_of(work.heads, j, pull) ^ 0x8000 >= end:
            slot = work.word_slots[(j // 4) * work.slot_pitch + place]
            element = work.keys[pull // WIDTH] + slot
            target = unit(mix(element + np.uint64(j % 4 + 1) * GOLDEN)) * total
            chosen = 0
            for k in range(active):
                chosen += 1 if remainders[k] <= target else 0
            field = np.uint64(1) << np.uint64(pull // WIDTH * 16)
            work.counts[min(chosen, last) * WIDTH + pull % WIDTH] += field


@inline
def spread_fields(fields, scale, out, place):
    """Write the fields of a batch as floats, times a scale."""
    store(out, place, (float_of((fields & FIELD) | MAGIC_BITS) - TWO_52) * scale)
    store(out, place + WIDTH, (float_of(((fields >> S16) & FIELD) | MAGIC_BITS) - TWO_52) * scale)
    store(
        out, place + 2 * WIDTH, (float_of(((fields >> S32) & FIELD) | MAGIC_BITS) - TWO_52) * scale
    )
    store(out, place + 3 * WIDTH, (float_of((fields >> S48) | MAGIC_BITS) - TWO_52) * scale)


@inline
def best_sums_of(work, signed, active, listed, least, at):
    """Write the best sums of a batch, in the cheapest way there is."""
    if work.part > 0.0:
        best_whole_sums(work, listed, at)
        return
    for k in range(active):
        spread_fields(load(work.counts, k * WIDTH), 1.0, work.floats, k * BATCH)
    if signed:
        best_sums_and_sizes(work, listed, least, at)
    else:
        best_sums(work, listed, least, at)


@inline
def best_whole_sums(work, listed, at):
    """Best sums where all means are multiples of a part, none negative, so small that their sums
    fit in 16 bits.
    """
    counts, places, wholes = work.counts, work.entry_places, work.entry_wholes
    most = zeros()
    entry = 0
    for arm in range(listed):
        end = peek(work.entry_ends, arm)
        total = times_fields(load(counts, peek(places, entry)), peek(wholes, entry))
        entry += 1
        while entry < end:
            total = total + times_fields(load(counts, peek(places, entry)), peek(wholes, entry))
            entry += 1
        most = maximum_fields(most, total)
    spread_fields(most, work.part, work.best, at)


@inline
def best_sums(work, listed, least, at):
    """Of each pull of a batch, the largest sum of its drawn mean vectors over the listed arms, and
    at least ``least``.
    """
    floats = work.floats
    for v in range(0, BATCH, 2 * WIDTH):
        best_a, best_b = splat(least), splat(least)
        entry = 0
        for arm in range(listed):
            a, b = splat(0.0), splat(0.0)
            end = peek(work.entry_ends, arm)
            while entry < end:
                value = splat(peek(work.entry_values, entry))
                place = peek(work.entry_places, entry) + v
                a = load(floats, place) * value + a
                b = load(floats, place + WIDTH) * value + b
                entry += 1
            best_a, best_b = maximum(best_a, a), maximum(best_b, b)
        store(work.best, at + v, best_a)
        store(work.best, at + v + WIDTH, best_b)


@inline
def best_sums_and_sizes(work, listed, least, at):
    """Best sums where means may cancel, and the sums of the absolute means that they are sums
    of.
    """
    for v in range(0, BATCH, WIDTH):
        most, most_size = splat(least), splat(0.0)
        entry = 0
        for arm in range(listed):
            total, size = splat(0.0), splat(0.0)
            end = peek(work.entry_ends, arm)
            while entry < end:
                count = load(work.floats, peek(work.entry_places, entry) + v)
                value = peek(work.entry_values, entry)
                total = count * splat(value) + total
                size = count * splat(abs(value)) + size
                entry += 1
            most_size = simd.where_at_least(total, most, size, most_size)
            most = maximum(most, total)
        store(work.best, at + v, most)
        store(work.best_sizes, at + v, most_size)
