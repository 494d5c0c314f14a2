"""Exact posteriors by importance sampling, where a normal law stands for the posterior.

In units of the prior ``u ~ N(0, I)`` the posterior has density proportional to ``N(u; 0, I) l(u)``,
with ``l`` the likelihood, and ``N(u; c, R R')`` stands for it. Draws come from the mixture

    g = 1/2 N(c, R R') + 1/4 N(c, 4 R R') + 1/4 N(0, I).

The last part bounds the weights of the posterior: ``N(u; 0, I) l(u) / g(u) <= 4 max l``. The first
part bounds those of the approximation by 2. So both have all moments, and errors can be estimated.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray

WIDER = 2.0
"""Factor of the standard deviations in the second part."""


def weighted(
    centre: FloatArray,
    spread: FloatArray,
    log_likelihood: Callable[[FloatArray], FloatArray],
    rng: Stream,
    draws: int,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Draw u, ``(task, draw, dim)``; return it with its weights under the posterior and under
    ``N(centre, spread spread')``, ``(task, draw)`` each, which sum to 1.

    ``log_likelihood`` maps ``(task, draw, dim)`` to ``(task, draw)``.
    """
    dim = centre.shape[1]
    wide, prior = draws // 4, draws // 4
    z = rng.normal(draws, dim)
    scale = np.ones(draws)
    scale[draws - prior - wide : draws - prior] = WIDER
    u = centre[:, None] + scale[:, None] * (z @ spread.transpose(0, 2, 1))
    u[:, draws - prior :] = z[:, draws - prior :]
    y = np.linalg.solve(spread, (u - centre[:, None]).transpose(0, 2, 1))
    distance = np.square(y).sum(axis=1)  # (task, draw)
    log_det = np.linalg.slogdet(spread)[1][:, None]
    log_prior = -0.5 * np.square(u).sum(axis=2)
    log_used = -0.5 * distance - log_det
    log_wide = -0.5 * distance / WIDER**2 - log_det - dim * np.log(WIDER)
    share = np.log([(draws - prior - wide) / draws, wide / draws, prior / draws])
    parts = np.stack([log_used, log_wide, log_prior]) + share[:, None, None]
    log_g = np.logaddexp.reduce(parts, axis=0)
    exact = _normalised(log_prior + log_likelihood(u) - log_g)
    return u, exact, _normalised(log_used - log_g)


def _normalised(log_weights: FloatArray) -> FloatArray:
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
