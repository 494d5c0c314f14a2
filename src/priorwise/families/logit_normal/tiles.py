"""Tile functions of arms with logit-normal beliefs; see ``tiles_propagation`` for the belief."""

import numpy as np

from priorwise.families.beta.tiles import reward
from priorwise.families.gaussian.tiles import At, affine, sampled
from priorwise.families.logit_normal.tiles_propagation import (
    MOMENT_ROWS,
    combine,
    log_evidence,
    propagate,
    rate_moments,
    softplus_and_rate,
    variance_of,
)
from priorwise.kernels import compiling as kinds
from priorwise.kernels.compiling import LANES, inline, tile
from priorwise.kernels.normal import normals_by_lane
from priorwise.kernels.random import normals
from priorwise.kernels.simd import WIDTH, fma, load, splat, sqrt, store

__all__ = ["reward"]  # as for all Bernoulli arms


@inline
def to_rates(values, rows):
    """Turn log odds into rates, in their place."""
    for place in range(0, rows * LANES, WIDTH):
        _, rate = softplus_and_rate(load(values, place))
        store(values, place, rate)


@tile(kinds.SAMPLE)
def sample(p, n, keys, environment):
    """Draw rates from the prior."""
    sampled(p, n, keys, 0, np.empty((n[At.DIM], LANES)), environment)
    to_rates(environment, n[At.ARMS])


@tile(kinds.SAMPLE_FROM)
def sample_from(p, n, keys, call, environment):
    """Draw them from another call on."""
    sampled(p, n, keys, call, np.empty((n[At.DIM], LANES)), environment)
    to_rates(environment, n[At.ARMS])


@tile(kinds.START)
def start(p, n, state):
    """Start the belief at the prior."""
    arms = n[At.ARMS]
    state[: 4 * arms] = 0.0
    chol = np.empty((arms * arms, LANES))
    for g in range(0, LANES, WIDTH):
        combine(p, n, state, chol, g)


@tile(kinds.DRAW)
def draw(p, n, keys, at, draw, state, signal, scratch, values):
    """One posterior draw of the rates."""
    arms = n[At.ARMS]
    normals(keys, at, draw, scratch[:arms])
    affine(state, 4 * arms, state, 5 * arms, scratch, 1.0, arms, values, 0)
    to_rates(values, arms)


@tile(kinds.DRAW_EACH)
def draw_each(p, n, keys, ats, numbers, state, signal, scratch, values):
    """One posterior draw of the rates, with a draw number of its own for each lane."""
    arms = n[At.ARMS]
    normals_by_lane(keys, ats, numbers, scratch[:arms])
    affine(state, 4 * arms, state, 5 * arms, scratch, 1.0, arms, values, 0)
    to_rates(values, arms)


@tile(kinds.MEAN)
def mean(p, n, state, signal, scratch, values):
    """Posterior means of the rates."""
    for g in range(0, LANES, WIDTH):
        rate_moments(p, n, state, scratch, values, values, g)


@inline
def counted(arms, state, actions, rewards):
    """Count a pull."""
    for lane in range(LANES):
        state[actions[lane], lane] += rewards[lane]
        state[arms + actions[lane], lane] += 1.0


@tile(kinds.UPDATE)
def count(p, n, state, signal, scratch, actions, rewards):
    """Count a pull whose batch goes on."""
    counted(n[At.ARMS], state, actions, rewards)


@tile(kinds.UPDATE)
def update(p, n, state, signal, scratch, actions, rewards):
    """Count, and propagate anew."""
    counted(n[At.ARMS], state, actions, rewards)
    for g in range(0, LANES, WIDTH):
        propagate(p, n, state, scratch, g)


@tile(kinds.EVIDENCE)
def evidence(p, n, state, scratch, out):
    """Log probability of all that was seen."""
    for g in range(0, LANES, WIDTH):
        store(out, g, log_evidence(p, n, state, scratch, g))


@tile(kinds.QUANTILE)
def quantile(p, n, level, normal, state, signal, scratch, values):
    """Posterior quantiles of the rates."""
    arms = n[At.ARMS]
    for arm in range(arms):
        for g in range(0, LANES, WIDTH):
            std = sqrt(variance_of(state, arms, arm, arm, g))
            centre = load(state, (4 * arms + arm) * LANES + g)
            store(values, arm * LANES + g, fma(std, splat(normal), centre))
    to_rates(values, arms)


@inline
def work_rows(arms):
    """Rows of scratch that propagation and means need."""
    return max(arms * arms + 4 * arms, MOMENT_ROWS)


def scratch_rows(arms: int, looks_ahead: bool) -> int:
    """Rows of scratch that the family needs."""
    own = max(arms * arms + 4 * arms, MOMENT_ROWS)
    return own + arms * arms + 8 * arms + 2 if looks_ahead else own
