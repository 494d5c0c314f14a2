"""What a look-ahead of a finite prior works with: one record of spans, for one tile function."""

from typing import Any, NamedTuple

import numpy as np

from priorwise.families.finite.tiles import GAUSSIAN, NONE, At
from priorwise.kernels.compiling import inline
from priorwise.kernels.random import ONE, PAIRED, S32, ZERO, mix, pair_start
from priorwise.kernels.simd import WIDTH, iota, peek, poke, store
from priorwise.kernels.spans import take_bits, take_floats, take_ints

BATCH = 4 * WIDTH  # pulls that go through the steps together
MOST = (1 << 16) - 1  # what a field can hold


class Work(NamedTuple):
    """Sizes and spans. Pull ``i * arms + arm`` of a task is the i-th of an arm."""

    arms: int
    support: int
    k1: int  # imagined pulls of each arm
    k2: int  # look-ahead draws after each of them
    pitch: int  # pulls of a task, in whole vectors
    slot_pitch: int  # the same with room for a vector that reaches past the last pull
    words: int  # of four heads, for the draws of a pull
    part: float  # 0: means are no multiples, or their sums do not fit in 16 bits
    # keys of the random numbers, pull after pull
    task_slots: Any
    noise_slots: Any
    word_slots: Any  # (word, pull)
    first_arms: Any  # of the vectors of a task's pulls
    # the possible tasks of a lane, and those that the entries were listed for
    ids: Any
    weights: Any
    logs: Any
    running: Any  # weights up to and with each
    rows: Any  # where the row of each begins
    known: Any
    # means other than 0 of the available arms, arm after arm
    entry_places: Any  # of the task's counts
    entry_values: Any
    entry_wholes: Any  # in parts
    entry_ends: Any  # of each arm
    # a batch of pulls: of its four vectors
    keys: Any
    places: Any
    starts: Any  # first arms
    # of its pulls
    rewards: Any
    scales: Any
    after: Any  # (task, pull), weights after the reward
    floats: Any  # (task, pull), counts
    # of its pulls, four to a lane
    tops: Any  # (task, lane), where the heads end that a task owns
    counts: Any  # (task, lane)
    heads: Any  # (draw, lane)
    owned: Any  # draws whose heads have an owner
    remainders: Any  # of one pull, running over the tasks
    # of all pulls of a task, or of several tasks one after the other
    values: Any  # what they showed
    best: Any  # largest sums of the draws that followed
    best_sizes: Any  # sums of the absolute means that these are sums of
    sums: Any  # of one task, by arm


@inline
def work_in(memory, p, n, k1, k2, together):
    """Take the work of a tile in which so many tasks share batches off the memory, all zeros."""
    arms, support = n[At.ARMS], n[At.SUPPORT]
    pitch = (arms * k1 + WIDTH - 1) // WIDTH * WIDTH
    slot_pitch, words, room = pitch + WIDTH, (k2 + 3) // 4, together * pitch + BATCH
    entries = arms * support + 1
    # control flow stands before the call: Numba has no calls of many arguments that branch
    part = p[n[At.PART]] if 0 < n[At.MULTIPLE] * k2 <= MOST else 0.0
    noise_room = slot_pitch if n[At.NOISE] != NONE else 0
    size_room = room if n[At.SIGNED] else 0
    return Work(
        arms, support, k1, k2, pitch, slot_pitch, words, part,
        take_bits(memory, slot_pitch), take_bits(memory, noise_room),
        take_bits(memory, words * slot_pitch), take_ints(memory, pitch // WIDTH),
        take_ints(memory, support), take_floats(memory, support), take_floats(memory, support),
        take_floats(memory, support), take_ints(memory, support), take_ints(memory, support),
        take_ints(memory, entries), take_floats(memory, entries), take_bits(memory, entries),
        take_ints(memory, arms + 1),
        take_bits(memory, 4), take_ints(memory, 4), take_ints(memory, 4),
        take_floats(memory, BATCH), take_floats(memory, BATCH),
        take_floats(memory, support * BATCH), take_floats(memory, support * BATCH),
        take_bits(memory, (support + 15) * WIDTH), take_bits(memory, (support + 1) * WIDTH),
        take_bits(memory, 4 * words * WIDTH), take_bits(memory, WIDTH),
        take_floats(memory, support),
        take_floats(memory, room), take_floats(memory, room), take_floats(memory, size_room),
        take_floats(memory, arms + WIDTH),
    )  # fmt: skip


@inline
def begin(work, noise, step, call):
    """Write the keys of all random numbers of the imagined pulls, and their first arms; no entries
    are listed yet.

    A vector that reaches past the last arm is overwritten by the next pull of the first.
    """
    for k in range(work.support):
        poke(work.known, k, -1)
    for place in range(0, work.pitch, WIDTH):
        poke(work.first_arms, place // WIDTH, place % work.arms)
    calls = 2 if noise == NONE else 3
    noise_step = pair_start(step) if noise == GAUSSIAN else step
    for i in range(work.k1):
        for arm in range(0, work.arms, WIDTH):
            pull = i * work.arms + arm
            first = (iota() + np.uint64(arm)) * np.uint64(calls * work.k1)
            first = first + np.uint64(call + calls * i)
            at = mix(first | (np.uint64(step) << S32))
            store(work.task_slots, pull, mix(at))
            if noise != NONE:
                at = mix((first + ONE) | (np.uint64(noise_step) << S32))
                pair = PAIRED if noise == GAUSSIAN else ZERO
                store(work.noise_slots, pull, mix(at + (pair << S32)))
            at = mix((first + np.uint64(calls - 1)) | (np.uint64(step) << S32))
            for word in range(work.words):
                store(work.word_slots, word * work.slot_pitch + pull, mix(at + np.uint64(word)))


@inline
def next_places(work, keys, members, member, last, place):
    """Write the key, the place and the first arm of the vectors of a batch, and return where the
    next one begins; after the last task come pulls nobody reads.
    """
    for v in range(4):
        poke(work.keys, v, peek(keys, peek(members, min(member, last))))
        poke(work.places, v, place)
        poke(work.starts, v, peek(work.first_arms, place // WIDTH))
        place += WIDTH
        if place == work.pitch:
            member, place = member + 1, 0
    return member, place
