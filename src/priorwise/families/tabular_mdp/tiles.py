"""Tile functions of tabular MDPs with Dirichlet beliefs: drawn, planned and played in lockstep.

Only possible moves have cells, ordered by state, action and next state. All tasks have the same
ones, so that value iteration runs over lanes. A belief holds a row for the parameter of each cell,
two for each Beta law of a reward, and one that counts impossible moves. A signal has four rows: the
state, the steps left of the round, whether a reset came before, and the state before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from priorwise.core.tiles import FamilyTiles
from priorwise.families.tabular_mdp.tiles_draw import At, drawn
from priorwise.kernels.bandit import never_certain
from priorwise.kernels.compiling import (
    DRAW,
    LANES,
    MOVE,
    REWARD,
    SAMPLE,
    SIGNAL,
    START,
    UPDATE,
    VALUES,
    inline,
    tile,
)
from priorwise.kernels.random import (
    call_key,
    mix,
    slot_key,
    uniforms,
    unit,
)
from priorwise.kernels.simd import (
    WIDTH,
    fma,
    load,
    maximum,
    store,
)

NO_RESET = 1 << 40


@inline
def known_means(p, n, table):
    """Write known rewards."""
    if not n[At.BERNOULLI]:
        for pair in range(n[At.ARMS] * n[At.STATES]):
            table[n[At.CELLS] + pair, :] = p[n[At.MEANS] + pair]


@inline
def started(p, n, state):
    """Write the parameters of the prior."""
    cells = n[At.CELLS]
    for cell in range(cells):
        state[cell, :] = p[n[At.ALPHA] + cell]
    if n[At.BERNOULLI]:
        for k in range(2 * n[At.ARMS] * n[At.STATES]):
            state[cells + k, :] = p[n[At.BETAS] + k]


@inline
def first_state(p, n, u):
    """State that a uniform number stands for under the law of first states."""
    states, total, last = n[At.STATES], 0.0, 0
    for s in range(states):
        weight = p[n[At.FIRSTS] + s]
        total += weight
        if weight > 0.0:
            last = s
    running, chosen = 0.0, 0
    for s in range(states):
        running += p[n[At.FIRSTS] + s]
        if running <= u * total:
            chosen = s + 1
    return min(chosen, last)


@inline
def next_state(n, environment, pair, lane, u):
    """State that a uniform number stands for under the law of a row."""
    begin, end = n[n[At.FIRST] + pair], n[n[At.FIRST] + pair + 1]
    total, last = 0.0, begin
    for cell in range(begin, end):
        total += environment[cell, lane]
        if environment[cell, lane] > 0.0:
            last = cell
    running, chosen = 0.0, begin
    for cell in range(begin, end):
        running += environment[cell, lane]
        if running <= u * total:
            chosen = cell + 1
    return n[n[At.NEXT] + min(chosen, last)]


@inline
def steps_left(n, step):
    """Steps to the end of the round or of the task, this one among them."""
    return min(n[At.HORIZON] - step + 1, n[At.ROUND] - (step - 1) % n[At.ROUND])


@tile(SAMPLE)
def sample(p, n, keys, environment):
    """Draw an MDP for each task."""
    state = np.empty((n[At.CELLS] + 2 * n[At.ARMS] * n[At.STATES], LANES))
    started(p, n, state)
    drawn(n, keys, call_key(0, 0), 0, state, np.empty(LANES), environment)
    known_means(p, n, environment)


@tile(SIGNAL)
def signal(p, n, keys, step, signal):
    """Show the first state."""
    slot = slot_key(call_key(step - 1, 0), 0, 0)
    for lane in range(LANES):
        signal[0, lane] = first_state(p, n, unit(mix(keys[lane] + slot)))
        signal[1, lane] = steps_left(n, step)


@tile(MOVE)
def move(p, n, keys, step, environment, actions, signal):
    """Move to the next state, or to the first one of the next round."""
    slot, ends = slot_key(call_key(step, 0), 0, 0), step % n[At.ROUND] == 0
    for lane in range(LANES):
        u, state = unit(mix(keys[lane] + slot)), np.int64(signal[0, lane])
        pair = state * n[At.ARMS] + actions[lane]
        after = first_state(p, n, u) if ends else next_state(n, environment, pair, lane, u)
        signal[0, lane] = after
        signal[1, lane] = steps_left(n, step + 1)
        signal[2, lane] = 1.0 if ends else 0.0
        signal[3, lane] = state


@tile(VALUES)
def values(p, n, environment, signal, values):
    """Mean rewards of the actions in the present state."""
    arms, cells = n[At.ARMS], n[At.CELLS]
    for lane in range(LANES):
        row = cells + np.int64(signal[0, lane]) * arms
        for arm in range(arms):
            values[arm, lane] = environment[row + arm, lane]


@tile(REWARD)
def reward(p, n, keys, step, environment, chosen, actions, spare, rewards):
    """Reward 1 with the mean as probability, or the mean itself where it is known."""
    if not n[At.BERNOULLI]:
        rewards[:] = chosen
        return
    uniforms(keys, call_key(step, 0), 0, 0, rewards)
    for lane in range(LANES):
        rewards[lane] = 1.0 if rewards[lane] < chosen[lane] else 0.0


@tile(START)
def start(p, n, state):
    """Start the belief at the prior."""
    started(p, n, state)
    state[len(state) - 1, :] = 0.0


@tile(DRAW)
def draw(p, n, keys, at, draw, state, signal, scratch, values):
    """Draw an MDP, iterate its values to the end of the round, and read those of the state now."""
    arms, states, cells = n[At.ARMS], n[At.STATES], n[At.CELLS]
    pairs = arms * states
    drawn(n, keys, at, draw, state, scratch[len(scratch) - 1], scratch)
    known_means(p, n, scratch)
    means, q, best = cells, cells + pairs, cells + 2 * pairs
    for place in range(pairs * LANES):
        scratch[q + place // LANES, place % LANES] = scratch[means + place // LANES, place % LANES]
    for _ in range(np.int64(signal[1, 0]) - 1):
        for s in range(states):
            for g in range(0, LANES, WIDTH):
                v = load(scratch, (q + s * arms) * LANES + g)
                for arm in range(1, arms):
                    v = maximum(v, load(scratch, (q + s * arms + arm) * LANES + g))
                store(scratch, (best + s) * LANES + g, v)
        for pair in range(pairs):
            begin, end = n[n[At.FIRST] + pair], n[n[At.FIRST] + pair + 1]
            for g in range(0, LANES, WIDTH):
                total = load(scratch, (means + pair) * LANES + g)
                for cell in range(begin, end):
                    then = load(scratch, (best + n[n[At.NEXT] + cell]) * LANES + g)
                    total = fma(load(scratch, cell * LANES + g), then, total)
                store(scratch, (q + pair) * LANES + g, total)
    for lane in range(LANES):
        row = q + np.int64(signal[0, lane]) * arms
        for arm in range(arms):
            values[arm, lane] = scratch[row + arm, lane]


@tile(UPDATE)
def update(p, n, state, signal, scratch, actions, rewards):
    """Condition on the reward and the move; an impossible move starts the belief again."""
    arms, cells, resets = n[At.ARMS], n[At.CELLS], len(state) - 1
    betas = 2 * arms * n[At.STATES] if n[At.BERNOULLI] else 0
    for lane in range(LANES):
        pair = np.int64(signal[3, lane]) * arms + actions[lane]
        if betas:
            state[cells + 2 * pair, lane] += rewards[lane]
            state[cells + 2 * pair + 1, lane] += 1.0 - rewards[lane]
        if signal[2, lane] != 0.0:
            continue
        after, found = np.int64(signal[0, lane]), False
        for cell in range(n[n[At.FIRST] + pair], n[n[At.FIRST] + pair + 1]):
            if n[n[At.NEXT] + cell] == after:
                state[cell, lane] += 1.0
                found = True
        if not found:
            for cell in range(cells):
                state[cell, lane] = p[n[At.ALPHA] + cell]
            for k in range(betas):
                state[cells + k, lane] = p[n[At.BETAS] + k]
            state[resets, lane] += 1.0


def family_tiles(prior: Any, horizon: int) -> FamilyTiles:
    """Numbers, sizes and tile functions of a prior."""
    model, possible = prior.reward_model, prior.possible
    cells, pairs = int(possible.sum()), prior.states * prior.arms
    bernoulli = hasattr(model, "alpha")
    nothing = np.zeros(1)
    p, n = At.pack(
        arms=prior.arms,
        states=prior.states,
        horizon=horizon,
        round=prior.round_steps or NO_RESET,
        cells=cells,
        bernoulli=int(bernoulli),
        first=np.concatenate([[0], np.cumsum(possible.sum(axis=2).ravel())]),
        next=np.nonzero(possible)[2],
        firsts=prior.start,
        alpha=prior.transitions[possible],
        means=nothing if bernoulli else model.means,
        betas=np.stack([model.alpha, model.beta], axis=-1) if bernoulli else nothing,
    )
    belief = cells + 2 * pairs * bernoulli
    return FamilyTiles(
        p=p,
        n=n,
        arms=prior.arms,
        environment_rows=cells + pairs,
        signal_rows=4,
        belief_rows=belief + 1,
        scratch_rows=cells + 2 * pairs + prior.states + 1,
        resets_row=belief,
        sample=sample,
        signal=signal,
        values=values,
        reward=reward,
        start=start,
        draw=draw,
        mean=None,
        update=update,
        look=None,
        certain=never_certain,
        move=move,
    )
