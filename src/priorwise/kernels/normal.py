"""Normal laws in tile functions: probabilities, the best of several lines in a normal number, and
normals of which every lane has a number of its own.
"""

from typing import Final

import numpy as np

from priorwise.kernels import simd
from priorwise.kernels.compiling import LANES, inline
from priorwise.kernels.elementary import exp, polynomial
from priorwise.kernels.random import S32, box_muller, mix

REACH: Final = 9.0
"""Standard deviations beyond which nothing counts: 1e-20 of an expected excess."""

# (phi(c) - c Phi(-c)) exp(c^2 / 2) on [0, 9], within 4e-16, in x = 26/9 c / (c + 4) - 1
EXCESS: Final = np.array([
    -5.090224175359022e-11, -1.637902779006653e-10, 5.255045809941257e-10, 3.50866340327359e-09,
    -5.428460438490586e-10, -5.027845091367263e-08, -6.975648185623435e-08, 6.673702579705824e-07,
    1.6760395497530071e-06, -1.0293275052815813e-05, -2.754264192448986e-05, 0.00021693267774301812,
    0.00014169756863390763, -0.005304168530436542, 0.02528163165245475, -0.06826396830762022,
    0.11846080214184747, -0.12373367292021403, 0.05798953554669641,
])  # fmt: skip

# Phi(-c) exp(c^2 / 2) on [0, 9], within 7e-16, in the same x
TAIL: Final = np.array([
    -1.4879333321005105e-11, -6.1118043959140775e-12, 2.2087988327257336e-10, 4.254980012774468e-10,
    -2.2188078219187446e-09, -1.0124872460437474e-08, 1.641213231096117e-08, 1.8339932012167992e-07,
    -7.951048388576965e-08, -3.2852865905397264e-06, 1.2603202923244794e-06, 6.597910149082509e-05,
    -0.00013299513297523546, -0.0012599597412435947, 0.010085113903253895, -0.039089654260398676,
    0.10094061760795107, -0.18781385907165812, 0.1610054628480699,
])  # fmt: skip


@inline
def expected_excess(c):
    """E[(Z - c)^+] = phi(c) - c Phi(-c) for c from 0 to REACH."""
    return polynomial(EXCESS, c / (c + 4.0) * (26.0 / 9.0) - 1.0) * exp(c * c * -0.5)


@inline
def probability_below(x):
    """Phi(x) of a standard normal, within 1e-15."""
    c = simd.minimum(simd.maximum(x, 0.0 - x), simd.splat(REACH))
    tail = polynomial(TAIL, c / (c + 4.0) * (26.0 / 9.0) - 1.0) * exp(c * c * -0.5)
    return simd.where_at_least(x, simd.splat(0.0), 1.0 - tail, tail)


@inline
def expected_maximum(levels, slopes, mask, lines, g):
    """E[max_b (level_b + slope_b Z)] for standard normal Z, for a group of lanes; a mask of -inf
    takes a line away.

    The maximum is the highest level plus, for each point c where a steeper line takes over, the
    change of slope times E[(Z - |c|)^+]. The points are found from the left to the right.
    """
    never, zero, end = simd.splat(np.inf), simd.splat(0.0), simd.splat(REACH)
    total, height, level, slope = simd.splat(-np.inf), simd.splat(-np.inf), zero, zero
    for b in range(lines):
        own = simd.load(levels, b * LANES + g) + simd.load(mask, b * LANES + g)
        rise = simd.load(slopes, b * LANES + g)
        total = simd.maximum(total, own)
        at_start = own - rise * REACH
        level = simd.where_at_least(at_start, height, own, level)
        slope = simd.where_at_least(at_start, height, rise, slope)
        height = simd.maximum(at_start, height)
    for _ in range(lines):
        place, next_level, next_slope = end, level, slope
        for b in range(lines):
            own = simd.load(levels, b * LANES + g) + simd.load(mask, b * LANES + g)
            rise = simd.load(slopes, b * LANES + g)
            steeper = rise - slope
            crossing = simd.where_at_least(zero, steeper, never, (level - own) / steeper)
            next_level = simd.where_at_least(crossing, place, next_level, own)
            next_slope = simd.where_at_least(crossing, place, next_slope, rise)
            place = simd.minimum(crossing, place)
        if simd.largest(end - place) <= 0.0:
            break
        place = simd.minimum(simd.maximum(place, 0.0 - place), end)
        total = total + (next_slope - slope) * expected_excess(place)
        level, slope = next_level, next_slope
    return total


@inline
def normals_by_lane(keys, ats, numbers, out):
    """Normals of the places 0, 1, ... of one draw for a tile, one a row of ``out``; each lane has
    the key of its own request, and the number of its own draw in it.
    """
    count = out.shape[0]
    for pair in range((count + 1) // 2):
        for g in range(0, LANES, simd.WIDTH):
            slot = mix(simd.load(ats, g) + ((simd.load(numbers, g) << S32) | np.uint64(pair)))
            a, b = box_muller(simd.load(keys, g) + slot)
            simd.store(out, 2 * pair * LANES + g, a)
            if 2 * pair + 1 < count:
                simd.store(out, (2 * pair + 1) * LANES + g, b)
