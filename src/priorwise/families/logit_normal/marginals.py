"""The law of one arm's log odds, better than that of the normal approximation.

Expectation propagation leaves each arm a normal law of what the other arms show about it. With few
clicks that is skewed, and the variance of a rare rate lives in its tail. So each other arm's normal
factor is replaced by its counts as well, one at a time, given the arm's own log odds:

    p(eta_a) ~ tilted(eta_a) prod_(b != a) E[likelihood_b / factor_b given eta_a],

with expectations under the normal approximation (Cseke and Heskes 2011, Journal of Machine Learning
Research 12). It is exact for two arms, up to quadrature.

The log of each expectation is smooth in eta_a. It is computed at the few ``KNOTS`` of each side and
interpolated by a polynomial, which is off by less than the nodes are.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.families.logit_normal.propagation import Sites, without
from priorwise.families.logit_normal.tilted import COARSE, MASS, MASS_DROP, Span, Tilted

ENTRIES: Final = 1 << 21  # numbers in an array of one pass
KNOTS: Final = np.array([0.0, 0.15, 0.3, 0.5, 0.8])
"""Places of a side at which corrections are computed, as shares of its length."""
BETWEEN: Final = np.vander(COARSE[0], len(KNOTS)) @ np.linalg.inv(np.vander(KNOTS))
"""The polynomial through the knots, at the nodes of a side: ``(node, knot)``."""


def marginals(
    s: FloatArray, n: FloatArray, sites: Sites, m: FloatArray, root: FloatArray
) -> Tilted:
    """Return the laws of all arms, ``(task, arm)`` with a node axis, from successes and pulls, the
    factors, and mean and root of the normal approximation.
    """
    tasks, arms = m.shape
    size = max(1, ENTRIES // (arms * arms * 4 * KNOTS.size * MASS.shape[1]))
    parts = [
        _pass(s[part], n[part], m[part], root[part], sites.take(part))
        for part in (slice(first, first + size) for first in range(0, max(tasks, 1), size))
    ]
    return Tilted(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def _pass(
    s: FloatArray, n: FloatArray, m: FloatArray, root: FloatArray, sites: Sites
) -> tuple[FloatArray, FloatArray, FloatArray]:
    t, b = sites.precision, sites.shift
    cov = root @ root.transpose(0, 2, 1)
    var = np.einsum("tii->ti", cov)
    centre, wide = without(m, var, t, b)
    span = Span.of(s, n, centre, wide, m)
    law = span.law(COARSE)
    arms = m.shape[1]
    if arms == 1 or not (n > 0.0).any():
        return law.eta, law.weight, law.log_mass
    gap = span.at[:, :, None] + span.steps(KNOTS) - m[:, :, None]  # (task, a, knot)
    log_more = np.zeros_like(gap)
    for arm in range(arms):
        some = np.flatnonzero(n[:, arm] > 0.0)
        if not len(some):
            continue
        share = cov[some, :, arm] / np.maximum(var[some], 1e-300)
        rest = var[some, arm, None] - share * cov[some, :, arm]  # of arm b given a, (task, a)
        rest = np.maximum(rest, 0.0)
        at = m[some, arm, None, None] + share[:, :, None] * gap[some]
        precision, shift = t[some, arm, None], b[some, arm, None]
        left = np.maximum(1.0 - precision * rest, 1e-12)
        wide = np.broadcast_to((rest / left)[:, :, None], at.shape)
        centre = (at - (rest * shift)[:, :, None]) / left[:, :, None]
        won, of = (np.broadcast_to(each[some, arm, None, None], at.shape) for each in (s, n))
        true = Span.of(won, of, centre, wide, at, MASS_DROP).law(MASS).log_mass
        shown = np.where(precision > 0.0, shift / np.where(precision > 0.0, precision, 1.0), 0.0)
        apart = shown[:, :, None] - centre
        factor = 1.0 + precision[:, :, None] * wide
        more = true + 0.5 * (np.log(factor) + apart**2 * precision[:, :, None] / factor)
        more[:, arm] = 0.0
        log_more[some] += more
    sides = np.split(log_more, 2, axis=2)
    log_more = np.concatenate([side @ BETWEEN.T for side in sides], axis=2)
    log_more -= log_more.max(axis=2, keepdims=True)
    weight = law.weight * np.exp(log_more)
    return law.eta, weight / weight.sum(axis=2, keepdims=True), law.log_mass
