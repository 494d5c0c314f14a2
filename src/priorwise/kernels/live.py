"""What compiled decisions about single tasks share: draws of one lane, and the largest of them."""

import numpy as np
from numba import types

from priorwise.core.choosing import SMALLEST_SIZE, TIE_TOLERANCE
from priorwise.kernels import compiling as kinds
from priorwise.kernels.compiling import inline
from priorwise.kernels.random import box_muller, call_key, mix, slot_key, unit

MASK = types.Array(types.uint8, 1, "C")
MASKS = types.Array(types.uint8, 2, "C")
# (p, n, state, key, step, mask) -> arm
ONE = types.int64(kinds.ROW, kinds.INTS, kinds.ROW, kinds.U, kinds.I, MASK)
# (p, n, states, keys, steps, masks, arms)
MANY = types.void(kinds.ROW, kinds.INTS, kinds.ROWS, kinds.KEYS, kinds.INTS, MASKS, kinds.INTS)
# (p, n, state, key, step, mask, promised, left, law) -> (arm, error); writes the law
DRAWN = types.UniTuple(kinds.F, 2)(
    kinds.ROW, kinds.INTS, kinds.ROW, kinds.U, kinds.I, MASK, kinds.ROW, kinds.F, kinds.ROW
)


@inline
def drawn_from(key, step, promised, left, law, error):
    """Draw an arm from ``promised + left * law``, which is left in ``law``, with the uniform number
    of the first request; return it and the error of the law.
    """
    arms, total = law.shape[0], 0.0
    for arm in range(arms):
        law[arm] = promised[arm] + left * law[arm]
        total += law[arm]
    target = unit(mix(key + slot_key(call_key(step, 0), 0, 0))) * total
    chosen, running = -1, 0.0
    for arm in range(arms):
        running += law[arm]
        if law[arm] > 0.0 and (chosen < 0 or running - law[arm] <= target):
            chosen = arm
        law[arm] /= total
    return float(chosen), error


@inline
def normal_draws(key, step, out):
    """Write the normals of the first request of a step, as ``Stream.normal(1, n)`` draws them."""
    at, count = call_key(step, 0), out.shape[0]
    for pair in range((count + 1) >> 1):
        a, b = box_muller(key + slot_key(at, 0, pair))
        out[2 * pair] = a
        if 2 * pair + 1 < count:
            out[2 * pair + 1] = b


@inline
def largest(key, step, values, mask):
    """Return the arm with the largest value; where several tie, the one that the uniform number of
    the second request points at, as ``priorwise.core.choosing.pick`` does.
    """
    best, arm, arms = -np.inf, -1, values.shape[0]
    for a in range(arms):
        if mask[a] and values[a] > best:
            best, arm = values[a], a
    least, tied = best - TIE_TOLERANCE * max(abs(best), SMALLEST_SIZE), 0
    for a in range(arms):
        tied += 1 if mask[a] and values[a] >= least else 0
    if tied < 2:
        return arm
    rank = min(int(unit(mix(key + slot_key(call_key(step, 1), 0, 0))) * tied), tied - 1)
    for a in range(arms):
        if mask[a] and values[a] >= least:
            if rank == 0:
                return a
            rank -= 1
    return arm
