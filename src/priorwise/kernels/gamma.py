"""Gammas in tile functions, by Marsaglia and Tsang's method (2000): one attempt in lockstep, then
the long way where it was not plainly accepted.
"""

import numpy as np

from priorwise.kernels import random
from priorwise.kernels.compiling import LANES, inline
from priorwise.kernels.random import GOLDEN, TWO, WORDS_PER_ATTEMPT, ZERO, box_muller, mix, unit
from priorwise.kernels.simd import WIDTH, load, minimum, peek, store


@inline
def attempt(shape, x, u):
    """Return log of one attempt at gamma(shape, or shape + 1 below 1) and whether it is
    accepted.
    """
    d = (shape + 1.0 if shape < 1.0 else shape) - 1.0 / 3.0
    y = x / np.sqrt(9.0 * d)
    if y <= -1.0:
        return 0.0, False
    log_root = np.log1p(y)
    accept = np.log(1.0 - u) < 0.5 * x * x + d * (3.0 * (log_root - y) - y * y * (3.0 + y))
    return np.log(d) + 3.0 * log_root, accept


@inline
def one_log_gamma(element, shape):
    """Logarithm of one gamma of scale 1: attempts until one is accepted; NaN for a shape of no
    gamma law.
    """
    if not 0.0 < shape < np.inf:
        return np.nan
    word = ZERO
    while True:
        at = element + word * GOLDEN
        x, _ = box_muller(at)
        log, accept = attempt(shape, x, unit(mix(at + TWO * GOLDEN)))
        if accept:
            break
        word += WORDS_PER_ATTEMPT
    if shape < 1.0:
        log += np.log(1.0 - unit(mix(element - GOLDEN))) / shape
    return log


@inline
def gamma_row(keys, slot, shape, work, out):
    """Gammas of one shape for a tile; ``work`` is a row.

    An attempt is accepted here by the squeeze, which implies the full test; other lanes start over
    from the same numbers, so the draw is that of :func:`one_log_gamma` in every lane.
    """
    d = shape - 1.0 / 3.0
    if shape >= 1.0:
        for g in range(0, LANES, WIDTH):
            store(out, g, random.radius_of(mix(load(keys, g) + slot)))
        for g in range(0, LANES, WIDTH):
            x, _ = random.turned(load(out, g), random.second(mix(load(keys, g) + slot)))
            root = x * (1.0 / np.sqrt(9.0 * d)) + 1.0
            u = unit(mix(load(keys, g) + slot + TWO * GOLDEN))
            store(work, g, minimum(root, u - x * x * (x * x) * 0.0331))
            store(out, g, root * root * root * d)
    for lane in range(LANES):
        if shape < 1.0 or not peek(work, lane) > 0.0:
            out[lane] = np.exp(one_log_gamma(keys[lane] + slot, shape))
