"""What several pulls of a Bernoulli arm with a Beta belief teach, exactly.

After m pulls with s successes the mean is ``(a + s) / (a + b + m)``, where s is beta-binomial. With
c the best of the other means, ``E max(c, mean)`` is the larger of c and the mean now, and what the
pulls gain: where c is below the mean, ``E (c - mean)^+``, a sum over the s below ``c (a + b + m) -
a``; where it is above, the same with failures in place of successes. The sum goes away from the
centre of the law, and ends where nothing is left.
"""

from typing import Final

import numpy as np

from priorwise.core.types import FloatArray

NEGLIGIBLE: Final = 1e-14
"""Of the sum: terms below it are left out."""


def expected_best(a: FloatArray, b: FloatArray, others: FloatArray, pulls: int) -> FloatArray:
    """``E max(c, E[mu_a given m rewards])`` for Beta(a, b) arms and the best c of the others, all
    ``(task, arm)``; c is -inf where there is no other.
    """
    mean, c = a / (a + b), np.where(np.isfinite(others), others, 0.0)
    below = c <= mean
    own, other = np.where(below, a, b), np.where(below, b, a)
    # successes that leave the arm below c, or failures that leave it above
    edge = np.where(below, c, 1.0 - c) * (a + b + pulls) - own
    gain, some = np.zeros(mean.shape), edge > 0.0
    if some.any():
        gain[some] = shortfall(own[some], other[some], edge[some], pulls)
    return np.asarray(np.maximum(mean, c) + gain)


def shortfall(a: FloatArray, b: FloatArray, edge: FloatArray, pulls: int) -> FloatArray:
    """``E (edge - s)^+ / (a + b + m)`` for the beta-binomial s; all ``(place,)``, edges above 0 and
    not above the mean of s.
    """
    from scipy.special import betaln, gammaln

    s = np.ceil(edge) - 1.0
    rest = pulls - s
    log_orders = gammaln(pulls + 1.0) - gammaln(s + 1.0) - gammaln(rest + 1.0)
    chance = np.exp(log_orders + betaln(a + s, b + rest) - betaln(a, b))
    out, scale = chance * (edge - s), a + b + pulls
    while True:
        # 0 below s = 0, and from there on
        chance = chance * (s * (b + rest) / ((rest + 1.0) * np.maximum(a + s - 1.0, a)))
        s, rest = s - 1.0, rest + 1.0
        term = chance * (edge - s)
        out += term
        if not (term > NEGLIGIBLE * out).any():
            return out / scale
