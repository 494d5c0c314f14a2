"""Look-ahead of priors on finitely many mean vectors.

Vectors run along the imagined pulls of one task here, not along the tasks of the tile: pull ``i * arms + arm`` is the i-th of an
arm, so neighbours read neighbouring means. Batches of pulls go through the same steps together: draw a task and its reward,
condition on it, and count how often each possible task is drawn afterwards, as ``priorwise.core.streams.Stream.counts`` does it,
with four pulls in the 16-bit fields of each 64-bit lane. ``p`` and ``n`` are as in ``priorwise.kernels.finite``.
"""

from __future__ import annotations

import numpy as np

from priorwise.core import streams
from priorwise.kernels.compiling import LANES, LOOK, inline, tile
from priorwise.kernels.finite import BERNOULLI, GAUSSIAN, NONE
from priorwise.kernels.random import (
    GOLDEN,
    MAGIC_BITS,
    PAIRED,
    S16,
    S32,
    S48,
    ZERO,
    box_muller,
    call_key,
    mix,
    pair_start,
    slot_key,
    unit,
)
from priorwise.kernels.simd import (
    WIDTH,
    bits_of,
    count_fields_below,
    float_of,
    load,
    maximum,
    peek,
    poke,
    splat,
    store,
    trunc,
    where_at_least,
    zeros,
)

BATCH = 4 * WIDTH
HEADS = float(streams.HEADS)
SLACK = streams.SLACK
TWO_16, TWO_32, TWO_52 = 2.0**16, 2.0**32, 2.0**52
FIELD = np.uint64(0xFFFF)
NO_SIGN = np.uint64(0x7FFFFFFFFFFFFFFF)
LOW_48 = np.uint64(0x0000FFFFFFFFFFFF)
SIGNS = np.uint64(0x8000800080008000)  # flipped on both sides of a comparison: machines compare signed fields
EACH_FIELD = np.uint64(0x0001000100010001)
EVEN_16 = np.uint64(0x0000FFFF0000FFFF)
LOW_32 = np.uint64(0x00000000FFFFFFFF)


@inline
def slot_keys(step, call, noise, arms, k1, pitch, task_slots, noise_slots, word_slots):
    """Write the keys of all random numbers of the imagined pulls, in the order of the pulls; ``word_slots`` has a word a row."""
    calls = 2 if noise == NONE else 3
    noise_step = pair_start(step) if noise == GAUSSIAN else step
    for arm in range(arms):
        for i in range(k1):
            first = call + calls * (arm * k1 + i)
            pull = i * arms + arm
            task_slots[pull] = slot_key(call_key(step, first), 0, 0)
            if noise != NONE:
                noise_slots[pull] = slot_key(call_key(noise_step, first + 1), PAIRED if noise == GAUSSIAN else ZERO, 0)
            at = call_key(step, first + calls - 1)
            for word in range(word_slots.shape[0] // pitch):
                word_slots[word * pitch + pull] = slot_key(at, 0, word)


@inline
def draw_tasks(key, slots, pull, rows, first, running, active, values):
    """Draw a task for each pull of a batch, by inversion, and write its mean of the arm."""
    for v in range(0, BATCH, WIDTH):
        target = unit(mix(load(slots, pull + v) + key)) * peek(running, active - 1)
        value = load(rows, peek(first, 0) + v)
        for k in range(1, active):
            value = where_at_least(target, splat(peek(running, k - 1)), load(rows, peek(first, k) + v), value)
        store(values, pull + v, value)


@inline
def draw_rewards(noise, key, slots, pull, odd, rows, deviations, values, rewards):
    """Draw the rewards of a batch."""
    one, zero = splat(1.0), splat(0.0)
    for v in range(0, BATCH, WIDTH):
        reward = load(values, pull + v)
        if noise == BERNOULLI:
            reward = where_at_least(unit(mix(load(slots, pull + v) + key)), reward, zero, one)
        elif noise == GAUSSIAN:
            pair = box_muller(load(slots, pull + v) + key)
            reward = load(rows, deviations + v) * (pair[0] if odd else pair[1]) + reward
        store(rewards, v, reward)


@inline
def condition(noise, rewards, rows, first, weights, logs, active, tolerance, deviations, after):
    """Write the weights of the possible tasks after the rewards of a batch, a task a row."""
    zero, one = splat(0.0), splat(1.0)
    if noise == GAUSSIAN:
        for pull in range(BATCH):
            best = -np.inf
            for k in range(active):
                deviation = (rewards[pull] - rows[first[k] + pull]) / rows[deviations + pull]
                after[k * BATCH + pull] = logs[k] - 0.5 * deviation * deviation
                best = max(best, after[k * BATCH + pull])
            for k in range(active):
                after[k * BATCH + pull] = np.exp(after[k * BATCH + pull] - best)
        return
    for k in range(active):
        weight = splat(peek(weights, k))
        for v in range(0, BATCH, WIDTH):
            mean, reward = load(rows, peek(first, k) + v), load(rewards, v)
            if noise == BERNOULLI:
                left = weight * where_at_least(reward, one, mean, 1.0 - mean)
            else:
                apart = mean - reward
                left = where_at_least(splat(tolerance), float_of(bits_of(apart) & NO_SIGN), weight, zero)
            store(after, k * BATCH + v, left)


@inline
def own_heads(after, active, scales, tops):
    """Write where the heads of each task end that it owns: the whole numbers in its shares, summed up. Four pulls a lane."""
    for v in range(0, BATCH, WIDTH):
        total = load(after, v)
        for k in range(1, active):
            total = total + load(after, k * BATCH + v)
        store(scales, v, HEADS / total)
    a_scale, b_scale, c_scale, d_scale = load(scales, 0), load(scales, WIDTH), load(scales, 2 * WIDTH), load(scales, 3 * WIDTH)
    running = zeros()
    for k in range(active):
        a = trunc(load(after, k * BATCH) * a_scale - SLACK)
        b = trunc(load(after, k * BATCH + WIDTH) * b_scale - SLACK)
        c = trunc(load(after, k * BATCH + 2 * WIDTH) * c_scale - SLACK)
        d = trunc(load(after, k * BATCH + 3 * WIDTH) * d_scale - SLACK)
        low = bits_of((c * TWO_32 + (b * TWO_16 + a)) + TWO_52)  # the fraction bits of 2^52 + x are the whole number x
        running = running + ((low & LOW_48) | (bits_of(d + TWO_52) << S48))
        store(tops, k * WIDTH, running ^ SIGNS)


@inline
def draw_heads(key, slots, pull, pitch, words, heads):
    """Draw the heads of a batch, a draw a row: of four vectors, transpose the four fields of each lane."""
    for word in range(words):
        place = word * pitch + pull
        a = mix(load(slots, place) + key)
        b = mix(load(slots, place + WIDTH) + key)
        c = mix(load(slots, place + 2 * WIDTH) + key)
        d = mix(load(slots, place + 3 * WIDTH) + key)
        swap = ((a >> S16) ^ b) & EVEN_16
        a, b = a ^ (swap << S16), b ^ swap
        swap = ((c >> S16) ^ d) & EVEN_16
        c, d = c ^ (swap << S16), d ^ swap
        swap = ((a >> S32) ^ c) & LOW_32
        store(heads, 4 * word * WIDTH, (a ^ (swap << S32)) ^ SIGNS)
        store(heads, (4 * word + 2) * WIDTH, (c ^ swap) ^ SIGNS)
        swap = ((b >> S32) ^ d) & LOW_32
        store(heads, (4 * word + 1) * WIDTH, (b ^ (swap << S32)) ^ SIGNS)
        store(heads, (4 * word + 3) * WIDTH, (d ^ swap) ^ SIGNS)


@inline
def count_draws(heads, tops, active, k2, below, counts):
    """Count the draws of each task: those below the end of its heads less those below the end of the heads before."""
    for k in range(0, active, 2):
        first, second = load(tops, k * WIDTH), load(tops, (k + 1) * WIDTH)
        a, b = zeros(), zeros()
        for j in range(k2):
            head = load(heads, j * WIDTH)
            a = count_fields_below(a, head, first)
            b = count_fields_below(b, head, second)
        store(below, k * WIDTH, a)
        store(below, (k + 1) * WIDTH, b)
    before = zeros()
    for k in range(active):
        up_to = load(below, k * WIDTH)
        own = up_to - before
        before = up_to
        store(counts, k * BATCH, float_of((own & FIELD) | MAGIC_BITS) - TWO_52)
        store(counts, k * BATCH + WIDTH, float_of(((own >> S16) & FIELD) | MAGIC_BITS) - TWO_52)
        store(counts, k * BATCH + 2 * WIDTH, float_of(((own >> S32) & FIELD) | MAGIC_BITS) - TWO_52)
        store(counts, k * BATCH + 3 * WIDTH, float_of((own >> S48) | MAGIC_BITS) - TWO_52)


@inline
def field_of(rows, row, pull):
    """One 16-bit field: that of a pull of the batch."""
    return np.int64((rows[row * WIDTH + pull % WIDTH] >> np.uint64(pull // WIDTH * 16)) & FIELD)


@inline
def any_from(heads, k2, pull, end):
    """Whether any head of one pull is at or past an end."""
    found = False
    for j in range(k2):
        found = found or field_of(heads, j, pull) ^ 0x8000 >= end
    return found


@inline
def draw_remainders(key, slots, place, pitch, pull, heads, k2, after, scale, tops, active, remainders, counts):
    """Draw those tasks of one pull whose heads nobody owns: in proportion to what the whole numbers leave of the shares."""
    total = 0.0
    last = 0
    end = field_of(tops, active - 1, pull) ^ 0x8000
    if not any_from(heads, k2, pull, end):
        return
    end = 0
    for k in range(active):
        top = field_of(tops, k, pull) ^ 0x8000
        remainder = after[k * BATCH + pull] * scale - (top - end)
        end = top
        total += remainder
        remainders[k] = total
        last = k if remainder > 0.0 else last
    for j in range(k2):
        if field_of(heads, j, pull) ^ 0x8000 >= end:
            element = key + slots[(j // 4) * pitch + place]
            target = unit(mix(element + np.uint64(j % 4 + 1) * GOLDEN)) * total
            chosen = 0
            for k in range(active):
                chosen += 1 if remainders[k] <= target else 0
            counts[min(chosen, last) * BATCH + pull] += 1.0


@inline
def best_sums(counts, entry_places, entry_values, ends, arms, mask_row, best, pull):
    """Of each pull of a batch, the largest available sum of its drawn mean vectors; entries of 0 are left out."""
    for v in range(0, BATCH, 2 * WIDTH):
        best_a, best_b = splat(-np.inf), splat(-np.inf)
        entry = 0
        for arm in range(arms):
            a = splat(peek(mask_row, arm))
            b = a
            end = peek(ends, arm)
            while entry < end:
                value, place = splat(peek(entry_values, entry)), peek(entry_places, entry) + v
                a = load(counts, place) * value + a
                b = load(counts, place + WIDTH) * value + b
                entry += 1
            best_a, best_b = maximum(best_a, a), maximum(best_b, b)
        store(best, pull + v, best_a)
        store(best, pull + v + WIDTH, best_b)


@tile(LOOK)
def look(p, n, keys, step, call, k1, k2, state, signal, mask, scratch, now, ahead):
    """Look one step past pulling each arm: draw a task and its reward, condition on it, and average k2 drawn mean vectors."""
    arms, support, noise = n[0], n[1], n[2]
    pulls = arms * k1
    pitch = (pulls + BATCH - 1) // BATCH * BATCH
    row = arms + BATCH  # means and deviations of the arms, over and over, so that a batch can start at any arm
    words = (k2 + 3) // 4
    task_slots = np.zeros(pitch, np.uint64)
    noise_slots = np.zeros(pitch if noise != NONE else 0, np.uint64)
    word_slots = np.zeros(words * pitch, np.uint64)
    slot_keys(step, call, noise, arms, k1, pitch, task_slots, noise_slots, word_slots)
    rows = np.empty((support + 1) * row)
    for s in range(support + 1):
        source = s * arms if s < support else support * arms + support + arms
        for place in range(row):
            rows[s * row + place] = p[source + place] if place < arms else rows[s * row + place - arms]
    tolerance = p[support * arms + support + 2 * arms]
    ids = np.empty(support, np.int64)
    known = np.full(support, -1)
    first = np.empty(support, np.int64)
    weights, logs, running, remainders = np.empty(support), np.empty(support), np.empty(support), np.empty(support)
    entry_places = np.empty(arms * support + 1, np.int64)
    entry_values = np.empty(arms * support + 1)
    ends = np.empty(arms, np.int64)
    mask_row = np.empty(arms)
    values, best = np.empty(pitch), np.empty(pitch)
    rewards, scales = np.empty(BATCH), np.empty(BATCH)
    after, counts = np.empty(support * BATCH), np.empty(support * BATCH)
    tops = np.zeros((support + 1) * WIDTH, np.uint64)
    below = np.zeros((support + 1) * WIDTH, np.uint64)
    heads = np.zeros(4 * words * WIDTH, np.uint64)
    for lane in range(LANES):
        active = 0
        total = 0.0
        same = True
        for s in range(support):
            weight = peek(state, (support + s) * LANES + lane)
            if weight > 0.0:
                total += weight
                poke(ids, active, s)
                poke(weights, active, weight)
                poke(running, active, total)
                poke(logs, active, peek(state, s * LANES + lane))
                same = same and peek(known, active) == s
                active += 1
        for arm in range(arms):
            poke(mask_row, arm, peek(mask, arm * LANES + lane))
        if active == 1:
            alone = -np.inf
            for arm in range(arms):
                alone = max(alone, peek(p, peek(ids, 0) * arms + arm) + peek(mask_row, arm))
            for arm in range(arms):
                poke(now, arm * LANES + lane, k1 * peek(p, peek(ids, 0) * arms + arm))
                poke(ahead, arm * LANES + lane, k1 * alone)
            continue
        if not same or (active < support and known[active] >= 0):
            entry = 0
            for arm in range(arms):
                for k in range(active):
                    value = peek(p, peek(ids, k) * arms + arm)
                    poke(entry_places, entry, k * BATCH)
                    poke(entry_values, entry, value)
                    entry += 1 if value != 0.0 else 0
                poke(ends, arm, entry)
            for k in range(support):
                known[k] = ids[k] if k < active else -1
        key = keys[lane]
        for pull in range(0, pitch, BATCH):
            start = pull % arms
            for k in range(active):
                poke(first, k, peek(ids, k) * row + start)
            deviations = support * row + start
            draw_tasks(key, task_slots, pull, rows, first, running, active, values)
            draw_rewards(noise, key, noise_slots, pull, step == pair_start(step), rows, deviations, values, rewards)
            condition(noise, rewards, rows, first, weights, logs, active, tolerance, deviations, after)
            own_heads(after, active, scales, tops)
            draw_heads(key, word_slots, pull, pitch, words, heads)
            count_draws(heads, tops, active, k2, below, counts)
            short = ZERO
            for field in range((active - 1) * WIDTH, active * WIDTH):
                short |= peek(below, field) ^ (np.uint64(k2) * EACH_FIELD)
            if short != ZERO:
                for i in range(BATCH):
                    draw_remainders(
                        key, word_slots, pull + i, pitch, i, heads, k2, after, scales[i], tops, active, remainders, counts
                    )
            best_sums(counts, entry_places, entry_values, ends, arms, mask_row, best, pull)
        for arm in range(arms):
            value_sum, best_sum = 0.0, 0.0
            for i in range(k1):
                value_sum += peek(values, i * arms + arm)
                best_sum += peek(best, i * arms + arm)
            poke(now, arm * LANES + lane, value_sum)
            poke(ahead, arm * LANES + lane, best_sum / k2)
