"""Look-ahead of priors on finitely many mean vectors.

Vectors run along the imagined pulls of one task here, not along the tasks of the tile: pull ``i *
arms + arm`` is the i-th of an arm, so neighbours read neighbouring means. Batches of pulls go
through the same steps together: draw a task and its reward, condition on it, and count how often
each possible task is drawn afterwards (``priorwise.families.finite.tiles_counts``).

Without noise a pull shows its cell: an arm and one of the means it may have. What follows a pull
then depends on its cell and the weights alone. It is computed once for each cell and all tasks of
the tile with these weights, unless cells outnumber pulls. ``p`` and ``n`` are as in
``priorwise.families.finite.tiles``.
"""

from __future__ import annotations

import numpy as np

from priorwise.families.finite.tiles import BERNOULLI, GAUSSIAN, NONE, possible_tasks
from priorwise.families.finite.tiles_counts import (
    BATCH,
    any_short,
    best_sums,
    best_sums_and_sizes,
    best_whole_sums,
    count_draws,
    draw_heads,
    draw_remainders,
    field_of,
    keep_tops,
    look_up_tops,
    own_heads,
)
from priorwise.kernels.compiling import LANES, LOOK, inline, tile
from priorwise.kernels.random import ONE, PAIRED, S32, ZERO, box_muller, mix, pair_start, unit
from priorwise.kernels.simd import (
    WIDTH,
    bits_of,
    float_of,
    gather,
    iota,
    load,
    maximum,
    peek,
    poke,
    splat,
    store,
    where_at_least,
    zeros,
)

NO_SIGN = np.uint64(0x7FFFFFFFFFFFFFFF)
MOST = (1 << 16) - 1  # what a field can hold
DONE = 1.0  # where one task is possible there is nothing to look for
TOGETHER = 4  # tasks of equal belief whose pulls share batches, so that few batches are part empty


@inline
def slot_keys(step, call, noise, arms, k1, pitch, task_slots, noise_slots, word_slots):
    """Write the keys of all random numbers of the imagined pulls, in the order of the pulls;
    ``word_slots`` has a word a row.

    A vector that reaches past the last arm is overwritten by the next pull of the first.
    """
    calls = 2 if noise == NONE else 3
    noise_step = pair_start(step) if noise == GAUSSIAN else step
    for i in range(k1):
        for arm in range(0, arms, WIDTH):
            pull = i * arms + arm
            first = (iota() + np.uint64(arm)) * np.uint64(calls * k1) + np.uint64(call + calls * i)
            at = mix(first | (np.uint64(step) << S32))
            store(task_slots, pull, mix(at))
            if noise != NONE:
                at = mix((first + ONE) | (np.uint64(noise_step) << S32))
                store(noise_slots, pull, mix(at + ((PAIRED if noise == GAUSSIAN else ZERO) << S32)))
            at = mix((first + np.uint64(calls - 1)) | (np.uint64(step) << S32))
            for word in range(word_slots.shape[0] // pitch):
                store(word_slots, word * pitch + pull, mix(at + np.uint64(word)))


@inline
def draw_tasks(keys, slots, places, starts, rows, first, running, active, out, batch):
    """Draw a task for each pull of a batch, by inversion, and write what its row has for the arm:
    its mean, or a record.
    """
    total = peek(running, active - 1)
    for v in range(0, 4, 2):
        a_target = unit(mix(load(slots, peek(places, v)) + peek(keys, v))) * total
        b_target = unit(mix(load(slots, peek(places, v + 1)) + peek(keys, v + 1))) * total
        a_start, b_start = peek(starts, v), peek(starts, v + 1)
        a, b = load(rows, peek(first, 0) + a_start), load(rows, peek(first, 0) + b_start)
        for k in range(1, active):
            end, row = splat(peek(running, k - 1)), peek(first, k)
            a = where_at_least(a_target, end, load(rows, row + a_start), a)
            b = where_at_least(b_target, end, load(rows, row + b_start), b)
        store(out, batch + v * WIDTH, a)
        store(out, batch + (v + 1) * WIDTH, b)


@inline
def draw_rewards(noise, keys, slots, places, starts, odd, deviations, values, batch, rewards):
    """Draw the rewards of a batch."""
    one, zero = splat(1.0), splat(0.0)
    for v in range(4):
        reward = load(values, batch + v * WIDTH)
        if noise == BERNOULLI:
            reward = where_at_least(
                unit(mix(load(slots, peek(places, v)) + peek(keys, v))), reward, zero, one
            )
        elif noise == GAUSSIAN:
            pair = box_muller(load(slots, peek(places, v)) + peek(keys, v))
            reward = load(deviations, peek(starts, v)) * (pair[0] if odd else pair[1]) + reward
        store(rewards, v * WIDTH, reward)


@inline
def condition(
    noise, rewards, rows, first, starts, weights, logs, active, tolerance, deviations, after
):
    """Write the weights of the possible tasks after the rewards of a batch, a task a row."""
    zero, one = splat(0.0), splat(1.0)
    if noise == GAUSSIAN:
        for pull in range(BATCH):
            arm = starts[pull // WIDTH] + pull % WIDTH
            best = -np.inf
            for k in range(active):
                deviation = (rewards[pull] - rows[first[k] + arm]) / deviations[arm]
                after[k * BATCH + pull] = logs[k] - 0.5 * deviation * deviation
                best = max(best, after[k * BATCH + pull])
            for k in range(active):
                after[k * BATCH + pull] = np.exp(after[k * BATCH + pull] - best)
        return
    for k in range(active):
        weight = splat(peek(weights, k))
        for v in range(4):
            mean, reward = load(rows, peek(first, k) + peek(starts, v)), load(rewards, v * WIDTH)
            if noise == BERNOULLI:
                left = weight * where_at_least(reward, one, mean, 1.0 - mean)
            else:
                left = where_at_least(
                    splat(tolerance), float_of(bits_of(mean - reward) & NO_SIGN), weight, zero
                )
            store(after, k * BATCH + v * WIDTH, left)


@inline
def count_possible(state, support, number, last):
    """Write how many tasks are possible in each lane, and the last of them. Return how many lanes
    have several.
    """
    for g in range(0, LANES, WIDTH):
        count, place = possible_tasks(state, support, g)
        store(number, g, count)
        store(last, g, place)
    several = 0
    for lane in range(LANES):
        several += 1 if number[lane] > 1.0 else 0
    return several


@inline
def settle(p, arms, k1, mask, last, now, ahead):
    """Look ahead as if the last possible task were the only one: every draw is that task."""
    for g in range(0, LANES, WIDTH):
        first = load(last, g) * np.uint64(arms)
        best = splat(-np.inf)
        for arm in range(arms):
            mean = gather(p, first + np.uint64(arm))
            best = maximum(best, mean + load(mask, arm * LANES + g))
            store(now, arm * LANES + g, mean * float(k1))
        for arm in range(arms):
            store(ahead, arm * LANES + g, best * float(k1))


@inline
def read_weights(state, support, lane, ids, weights, logs, running):
    """List the possible tasks of a lane with their weights, log weights and running weights. Return
    their number.
    """
    active = 0
    total = 0.0
    for s in range(support):
        weight = peek(state, (support + s) * LANES + lane)
        if weight > 0.0:
            total += weight
            poke(ids, active, s)
            poke(weights, active, weight)
            poke(logs, active, peek(state, s * LANES + lane))
            poke(running, active, total)
            active += 1
    return active


@inline
def same_tasks(ids, active, known, mask, arms, lane, known_lane):
    """Whether a lane has the possible tasks listed before, and the available arms of the lane they
    were listed for.
    """
    same = active == known.shape[0] or peek(known, active) < 0
    for k in range(active):
        same = same and peek(known, k) == peek(ids, k)
    for arm in range(arms):
        same = same and peek(mask, arm * LANES + lane) == peek(mask, arm * LANES + known_lane)
    return same


@inline
def list_entries(
    p, arms, mask, lane, ids, active, part, entry_places, entry_values, entry_wholes, ends
):
    """List the means other than 0 of each available arm, also in multiples of the part, and where
    the counts of the task are.

    Return how many arms have any, and 0 if an available arm has none, else -inf.
    """
    listed, entry, least = 0, 0, -np.inf
    inverse = 1.0 / part if part > 0.0 else 0.0
    pitch = WIDTH if part > 0.0 else BATCH
    for arm in range(arms):
        if peek(mask, arm * LANES + lane) == 0.0:
            before = entry
            for k in range(active):
                value = peek(p, peek(ids, k) * arms + arm)
                poke(entry_places, entry, k * pitch)
                poke(entry_values, entry, value)
                poke(entry_wholes, entry, np.uint64(np.int64(value * inverse + 0.5)))
                entry += 1 if value != 0.0 else 0
            poke(ends, listed, entry)
            least = 0.0 if entry == before else least
            listed += 1 if entry > before else 0
    return listed, least


@inline
def gather_equals(state, support, mask, arms, leader, apart, number, members):
    """List the lanes from the leader on that have its weights and its available arms, and mark them
    done. Return their number.
    """
    for g in range(0, LANES, WIDTH):
        differ = zeros()
        for s in range(support, 2 * support):
            differ = differ | (
                bits_of(load(state, s * LANES + g)) ^ bits_of(peek(state, s * LANES + leader))
            )
        for arm in range(arms):
            differ = differ | (
                bits_of(load(mask, arm * LANES + g)) ^ bits_of(peek(mask, arm * LANES + leader))
            )
        store(apart, g, differ)
    together = 0
    for lane in range(leader, LANES):
        if apart[lane] == ZERO:
            members[together] = lane
            number[lane] = DONE
            together += 1
    return together


@inline
def next_places(keys, members, member, last, place, pitch, start_of, batch_keys, places, starts):
    """Write the key, the place and the first arm of the vectors of a batch; after the last task
    come pulls nobody reads.
    """
    for v in range(4):
        poke(batch_keys, v, peek(keys, peek(members, min(member, last))))
        poke(places, v, place)
        poke(starts, v, peek(start_of, place // WIDTH))
        place += WIDTH
        if place == pitch:
            member, place = member + 1, 0
    return member, place


@inline
def show(table, records, batch, size, values):
    """Write the means that the cells of a batch show: the last words of their records."""
    for v in range(0, BATCH, WIDTH):
        store(values, v, float_of(gather(table, load(records, batch + v) + np.uint64(size - 1))))


@inline
def add_up_shown(table, records, place, size, arms, k1, lane, out):
    """Write the sums over the pulls of each arm of the means that their cells show, for one
    lane.
    """
    for arm in range(arms):
        total = 0.0
        for i in range(k1):
            total += float_of(
                peek(table, np.int64(peek(records, place + i * arms + arm)) + size - 1)
            )
        poke(out, arm * LANES + lane, total)


@inline
def add_up(values, place, arms, k1, factor, sums, lane, out):
    """Write the sums over the pulls of each arm, times a factor, for one lane."""
    for arm in range(0, arms, WIDTH):
        total = load(values, place + arm)
        for i in range(1, k1):
            total = total + load(values, place + i * arms + arm)
        store(sums, arm, total * factor)
    for arm in range(arms):
        poke(out, arm * LANES + lane, peek(sums, arm))


@inline
def add_up_sizes(values, by_cell, table, records, place, size, arms, k1, lane, out):
    """Write the sums over the pulls of each arm of their absolute values, drawn or shown, for one
    lane.
    """
    for arm in range(arms):
        total = 0.0
        for i in range(k1):
            at = place + i * arms + arm
            total += abs(
                float_of(peek(table, np.int64(peek(records, at)) + size - 1))
                if by_cell
                else peek(values, at)
            )
        poke(out, arm * LANES + lane, total)


@tile(LOOK)
def look(p, n, keys, step, call, k1, k2, state, signal, mask, scratch, now, ahead, sizes):
    """Look one step past pulling each arm: draw a task and its reward, condition on it, and average
    k2 drawn mean vectors.
    """
    arms, support, noise = n[0], n[1], n[2]
    number, last, apart = np.empty(LANES), np.empty(LANES, np.uint64), np.empty(LANES, np.uint64)
    several = count_possible(state, support, number, last)
    if several < LANES:
        settle(p, arms, k1, mask, last, now, ahead)
    if several == 0:
        return
    pulls = arms * k1
    pitch = (pulls + WIDTH - 1) // WIDTH * WIDTH
    slots = pitch + WIDTH
    row = arms + WIDTH
    words = (k2 + 3) // 4
    multiple, cells, size = n[3], n[4], n[5]
    by_cell = 0 < cells <= pulls
    cell_pitch = (cells + BATCH - 1) // BATCH * BATCH
    tolerance = p[support * arms + support + 2 * arms]
    numbers = p[support * arms + support + 2 * arms + 1 + WIDTH :]
    part = numbers[0] if 0 < multiple * k2 <= MOST else 0.0
    rows, deviations = numbers[1:], numbers[1 + support * row :]
    cell_values, cell_means = deviations[row:], deviations[row + cell_pitch :]
    record_rows = n[6:]
    task_slots = np.zeros(slots, np.uint64)
    noise_slots = np.zeros(slots if noise != NONE else 0, np.uint64)
    word_slots = np.zeros(words * slots, np.uint64)
    slot_keys(step, call, noise, arms, k1, slots, task_slots, noise_slots, word_slots)
    table, cell_words = (
        np.zeros(cell_pitch * size if by_cell else 0, np.uint64),
        np.empty(BATCH, np.uint64),
    )
    if by_cell:
        for cell in range(cells):
            table[(cell + 1) * size - 1] = bits_of(cell_values[cell])
    start_of = np.empty(pitch // WIDTH, np.int64)
    for place in range(0, pitch, WIDTH):
        start_of[place // WIDTH] = place % arms
    ids, first, known = (
        np.empty(support, np.int64),
        np.empty(support, np.int64),
        np.full(support, -1),
    )
    weights, logs, running, remainders = (
        np.empty(support),
        np.empty(support),
        np.empty(support),
        np.empty(support),
    )
    entry_places, ends = np.empty(arms * support + 1, np.int64), np.empty(arms + 1, np.int64)
    entry_values, entry_wholes = (
        np.empty(arms * support + 1),
        np.empty(arms * support + 1, np.uint64),
    )
    known_lane, listed, least = 0, 0, 0.0
    signed = False
    # means with a common part are not negative
    for place in range(support * arms if multiple == 0 else 0):
        signed = signed or p[place] < 0.0
    best_size = np.empty(TOGETHER * pitch + BATCH if signed else 0)
    members, batch_keys = np.empty(LANES, np.int64), np.empty(4, np.uint64)
    places, starts, cell_starts = (
        np.empty(4, np.int64),
        np.empty(4, np.int64),
        np.arange(0, BATCH, WIDTH),
    )
    values, best, sums = (
        np.empty(TOGETHER * pitch + BATCH),
        np.empty(TOGETHER * pitch + BATCH),
        np.empty(arms + WIDTH),
    )
    records = np.empty(TOGETHER * pitch + BATCH if by_cell else 0, np.uint64)
    rewards, scales = np.empty(BATCH), np.empty(BATCH)
    after, floats = np.empty(support * BATCH), np.empty(support * BATCH)
    tops, counts = (
        np.zeros((support + 15) * WIDTH, np.uint64),
        np.zeros((support + 1) * WIDTH, np.uint64),
    )
    heads, owned = np.zeros(4 * words * WIDTH, np.uint64), np.zeros(WIDTH, np.uint64)
    for leader in range(LANES):
        if number[leader] == DONE:
            continue
        active = read_weights(state, support, leader, ids, weights, logs, running)
        if not same_tasks(ids, active, known, mask, arms, leader, known_lane):
            listed, least = list_entries(
                p,
                arms,
                mask,
                leader,
                ids,
                active,
                part,
                entry_places,
                entry_values,
                entry_wholes,
                ends,
            )
            known_lane = leader
            for k in range(support):
                known[k] = ids[k] if k < active else -1
        members[0] = leader
        together = 1
        if by_cell:
            together = gather_equals(state, support, mask, arms, leader, apart, number, members)
            for cell in range(0, cell_pitch, BATCH):
                for k in range(active):
                    poke(first, k, peek(ids, k) * cell_pitch + cell)
                shown = cell_values[cell:]
                condition(
                    noise,
                    shown,
                    cell_means,
                    first,
                    cell_starts,
                    weights,
                    logs,
                    active,
                    tolerance,
                    deviations,
                    after,
                )
                own_heads(after, active, scales, tops)
                keep_tops(tops, active, cell_words, table, cell * size, size)
        for k in range(active):
            poke(first, k, peek(ids, k) * row)
        for chunk in range(0, together, TOGETHER):
            end = min(together - chunk, TOGETHER) * pitch
            member, place = chunk, 0
            for batch in range(0, end, BATCH):
                member, place = next_places(
                    keys,
                    members,
                    member,
                    together - 1,
                    place,
                    pitch,
                    start_of,
                    batch_keys,
                    places,
                    starts,
                )
                if by_cell:
                    draw_tasks(
                        batch_keys,
                        task_slots,
                        places,
                        starts,
                        record_rows,
                        first,
                        running,
                        active,
                        records,
                        batch,
                    )
                    look_up_tops(table, active, records, batch, tops)
                else:
                    draw_tasks(
                        batch_keys,
                        task_slots,
                        places,
                        starts,
                        rows,
                        first,
                        running,
                        active,
                        values,
                        batch,
                    )
                    odd = step == pair_start(step)
                    draw_rewards(
                        noise,
                        batch_keys,
                        noise_slots,
                        places,
                        starts,
                        odd,
                        deviations,
                        values,
                        batch,
                        rewards,
                    )
                    condition(
                        noise,
                        rewards,
                        rows,
                        first,
                        starts,
                        weights,
                        logs,
                        active,
                        tolerance,
                        deviations,
                        after,
                    )
                    own_heads(after, active, scales, tops)
                draw_heads(batch_keys, word_slots, places, slots, words, heads)
                count_draws(heads, tops, active, k2, counts, owned)
                if any_short(owned, k2):
                    if by_cell:
                        show(table, records, batch, size, rewards)
                        condition(
                            noise,
                            rewards,
                            rows,
                            first,
                            starts,
                            weights,
                            logs,
                            active,
                            tolerance,
                            deviations,
                            after,
                        )
                    for pull in range(BATCH):
                        if field_of(owned, 0, pull) < k2:
                            draw_remainders(
                                batch_keys,
                                word_slots,
                                places,
                                slots,
                                pull,
                                heads,
                                k2,
                                after,
                                tops,
                                active,
                                remainders,
                                counts,
                            )
                if part > 0.0:
                    best_whole_sums(
                        counts, entry_places, entry_wholes, ends, listed, part, best, batch
                    )
                elif signed:
                    best_sums_and_sizes(
                        counts,
                        active,
                        floats,
                        entry_places,
                        entry_values,
                        ends,
                        listed,
                        least,
                        best,
                        best_size,
                        batch,
                    )
                else:
                    best_sums(
                        counts,
                        active,
                        floats,
                        entry_places,
                        entry_values,
                        ends,
                        listed,
                        least,
                        best,
                        batch,
                    )
            for place in range(0, end, pitch):
                lane = members[chunk + place // pitch]
                if by_cell:
                    add_up_shown(table, records, place, size, arms, k1, lane, now)
                else:
                    add_up(values, place, arms, k1, 1.0, sums, lane, now)
                add_up(best, place, arms, k1, 1.0 / k2, sums, lane, ahead)
                if signed:
                    add_up_sizes(
                        values, by_cell, table, records, place, size, arms, k1, lane, sizes
                    )
                    add_up(best_size, place, arms, k1, 1.0 / k2, sums, lane, sizes[arms:])
