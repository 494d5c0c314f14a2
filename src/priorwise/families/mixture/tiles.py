"""Tile functions of mixtures: those of the components, called by their addresses.

A belief holds the rows of each component, then the log weight of each, then the step of the last
draw. An environment is that of the component that was drawn, which has as many rows as any other.
"""

from dataclasses import replace

import numpy as np

from priorwise.core.tiles import FamilyTiles, Layout
from priorwise.kernels import compiling as kinds
from priorwise.kernels.bandit import bandit_tiles
from priorwise.kernels.compiling import LANES, caller, inline, tile
from priorwise.kernels.loop import run_alike
from priorwise.kernels.random import call_key, uniforms

ASKED = frozenset({"draw", "mean", "mean_size"})
"""What policies may ask of a mixture; without sizes, means are their own."""

sample_part, reward_part = caller(kinds.SAMPLE_FROM), caller(kinds.REWARD)
start_part, draw_part, mean_part = map(caller, (kinds.START, kinds.DRAW, kinds.MEAN))
update_part, predict, evidence_of = map(caller, (kinds.UPDATE, kinds.PREDICTIVE, kinds.EVIDENCE))


class At(Layout):
    """What the kernels of mixtures read; addresses are those of the components' tile functions."""

    ARMS = 0
    PARTS = 1
    ROWS = 2  # of a component's belief
    WORLD = 3  # rows of an environment
    CALLS = 4  # of the stream, that an environment takes
    HORIZON = 5
    SAMPLE = 6
    REWARD = 7
    START = 8
    DRAW = 9
    MEAN = 10
    UPDATE = 11
    COUNT = 12
    PREDICTIVE = 13
    EVIDENCE = 14  # 0: weights move at every pull
    NUMBERS = 15  # how many each component has in p
    SIZES = 16  # how many each component has in n
    PROBS = 17  # (component,)
    LOGS = 18  # (component,)
    P = 19  # (component, number)
    N = 20  # (component, size)


@inline
def numbers(n, k):
    """Where the p of a component stands."""
    first = n[At.P] + k * n[At.NUMBERS]
    return slice(first, first + n[At.NUMBERS])


@inline
def sizes(n, k):
    """Where the n of a component stands."""
    first = n[At.N] + k * n[At.SIZES]
    return slice(first, first + n[At.SIZES])


@inline
def rows(n, k):
    """Where the belief of a component stands."""
    return slice(k * n[At.ROWS], (k + 1) * n[At.ROWS])


@inline
def weigh(n, state, weights):
    """Write the posterior probabilities of the components."""
    parts, first = n[At.PARTS], n[At.PARTS] * n[At.ROWS]
    for lane in range(LANES):
        best, total = -np.inf, 0.0
        for k in range(parts):
            best = max(best, state[first + k, lane])
        for k in range(parts):
            weights[k, lane] = np.exp(state[first + k, lane] - best)
            total += weights[k, lane]
        for k in range(parts):
            weights[k, lane] /= total


@inline
def choose(parts, weights, uniform):
    """Write the component that a uniform number chooses over it: the first whose running sum of
    weights exceeds that share of the total.
    """
    for lane in range(LANES):
        total, running, chosen, last = 0.0, 0.0, 0, 0
        for k in range(parts):
            total += weights[k, lane]
        target = uniform[lane] * total
        for k in range(parts):
            running += weights[k, lane]
            if running <= target:
                chosen = k + 1
            if weights[k, lane] > 0.0:
                last = k
        uniform[lane] = min(chosen, last)


@inline
def take(index, k, values, out):
    """Copy the lanes that chose a component."""
    for row in range(values.shape[0]):
        for lane in range(LANES):
            if index[lane] == k:
                out[row, lane] = values[row, lane]


@tile(kinds.SAMPLE)
def sample(p, n, keys, environment):
    """Draw the component, then the environment."""
    parts = n[At.PARTS]
    weights, drawn = np.empty((parts, LANES)), np.empty((n[At.WORLD], LANES))
    index = np.empty(LANES)
    for k in range(parts):
        weights[k] = p[n[At.PROBS] + k]
    uniforms(keys, call_key(0, 0), 0, 0, index)
    choose(parts, weights, index)
    for k in range(parts):
        call = 1 + k * n[At.CALLS]
        sample_part(n[At.SAMPLE], p[numbers(n, k)], n[sizes(n, k)], keys, call, drawn)
        take(index, k, drawn, environment)


@tile(kinds.REWARD)
def reward(p, n, keys, step, environment, chosen, actions, spare, rewards):
    """Reward by the law that all components share."""
    reward_part(
        n[At.REWARD], p[numbers(n, 0)], n[sizes(n, 0)], keys, step, environment, chosen, actions,
        spare, rewards,
    )  # fmt: skip


@tile(kinds.START)
def start(p, n, state):
    """Start each component at its prior."""
    parts = n[At.PARTS]
    for k in range(parts):
        start_part(n[At.START], p[numbers(n, k)], n[sizes(n, k)], state[rows(n, k)])
        state[parts * n[At.ROWS] + k] = p[n[At.LOGS] + k]
    state[parts * n[At.ROWS] + parts] = 1.0


@tile(kinds.DRAW)
def draw(p, n, keys, at, draw, state, signal, scratch, values):
    """One posterior draw of the component, and of its means.

    Each component draws by a call of its own after the one that chooses: the step follows from the
    key of the latter.
    """
    parts = n[At.PARTS]
    drawing = state[parts * n[At.ROWS] + parts]
    step = int(drawing[0])
    while step <= n[At.HORIZON] and call_key(step, 0) != at:
        step += 1
    if step > n[At.HORIZON]:
        raise ValueError("a mixture draws by the first request of a step")
    drawing[0] = step
    weights, drawn = np.empty((parts, LANES)), np.empty((n[At.ARMS], LANES))
    index = np.empty(LANES)
    weigh(n, state, weights)
    uniforms(keys, at, 0, draw, index)
    choose(parts, weights, index)
    for k in range(parts):
        own, belief = call_key(step, 1 + k), state[rows(n, k)]
        draw_part(
            n[At.DRAW], p[numbers(n, k)], n[sizes(n, k)], keys, own, draw, belief, signal, scratch,
            drawn,
        )  # fmt: skip
        take(index, k, drawn, values)


@tile(kinds.MEAN)
def mean(p, n, state, signal, scratch, values):
    """Posterior means."""
    parts = n[At.PARTS]
    weights, drawn = np.empty((parts, LANES)), np.empty((n[At.ARMS], LANES))
    weigh(n, state, weights)
    values[: n[At.ARMS]] = 0.0
    for k in range(parts):
        own = state[rows(n, k)]
        mean_part(n[At.MEAN], p[numbers(n, k)], n[sizes(n, k)], own, signal, scratch, drawn)
        for arm in range(n[At.ARMS]):
            for lane in range(LANES):
                values[arm, lane] += weights[k, lane] * drawn[arm, lane]


@inline
def rescale(n, state, logs):
    """Shift log weights to a largest of 0; where all are impossible, those before stay."""
    parts, first = n[At.PARTS], n[At.PARTS] * n[At.ROWS]
    for lane in range(LANES):
        best = -np.inf
        for k in range(parts):
            best = max(best, logs[k, lane])
        if best > -np.inf:
            for k in range(parts):
                state[first + k, lane] = logs[k, lane] - best


@tile(kinds.UPDATE)
def count(p, n, state, signal, scratch, actions, rewards):
    """Count a pull whose batch goes on; the weights may wait."""
    for k in range(n[At.PARTS]):
        own, sized = p[numbers(n, k)], n[sizes(n, k)]
        belief = state[rows(n, k)]
        update_part(n[At.COUNT], own, sized, belief, signal, scratch, actions, rewards)


@tile(kinds.UPDATE)
def update(p, n, state, signal, scratch, actions, rewards):
    """Condition each component, and weigh it by how likely it deemed what was seen."""
    parts = n[At.PARTS]
    logs = np.empty((parts, LANES))
    for k in range(parts):
        own, sized, belief = p[numbers(n, k)], n[sizes(n, k)], state[rows(n, k)]
        if n[At.EVIDENCE] == 0:
            predict(n[At.PREDICTIVE], own, sized, belief, scratch, actions, rewards, logs[k])
            logs[k] += state[parts * n[At.ROWS] + k]
        update_part(n[At.UPDATE], own, sized, belief, signal, scratch, actions, rewards)
        if n[At.EVIDENCE] != 0:
            evidence_of(n[At.EVIDENCE], own, sized, belief, scratch, logs[k])
            logs[k] += p[n[At.LOGS] + k]
    rescale(n, state, logs)


def mixture_tiles(
    parts: list[FamilyTiles], probs: np.ndarray, horizon: int, uses: frozenset[str]
) -> FamilyTiles | None:
    """Tile functions of a mixture of bandits that differ in their numbers only; None of others, and
    where a policy uses what mixtures do not have.
    """
    parts = [replace(each, means_tie=True) for each in parts]
    first = parts[0]
    evidence = first.evidence or first.predictive
    alike = all(run_alike(first, each) for each in parts[1:])
    if not alike or first.sample_from is None or evidence is None or not uses <= ASKED:
        return None
    with np.errstate(divide="ignore"):
        logs = np.log(probs)
    addresses = {
        "sample": first.sample_from, "reward": first.reward, "start": first.start,
        "draw": first.draw if "draw" in uses else None,
        "mean": first.mean if "mean" in uses else None,
        "update": first.update, "count": first.count or first.update,
        "predictive": None if first.evidence else first.predictive, "evidence": first.evidence,
    }  # fmt: skip
    p, n = At.pack(
        arms=first.arms,
        parts=len(parts),
        rows=first.belief_rows,
        world=first.environment_rows,
        calls=first.sample_calls,
        horizon=horizon,
        numbers=first.p.size,
        sizes=first.n.size,
        probs=probs,
        logs=logs,
        p=np.stack([each.p for each in parts]),
        n=np.stack([each.n for each in parts]),
        **{name: 0 if each is None else each.address for name, each in addresses.items()},
    )
    return bandit_tiles(
        p,
        n,
        environment_rows=first.environment_rows,
        belief_rows=len(parts) * (first.belief_rows + 1) + 1,
        scratch_rows=first.scratch_rows,
        sample=sample,
        reward=reward,
        start=start,
        draw=draw,
        draw_calls=1 + len(parts),
        mean=mean if first.mean is not None else None,
        update=update,
        count=count if first.evidence else None,
        look=None,
    )
