"""Planning in one known POMDP with finitely many states: exactly, or as if states were shown.

With n steps left and the state s believed to have probability b(s), an action is worth

    Q_n(b, a) = max over vectors v of a: sum_s b(s) v(s),    Q_1(b, a) = sum_s b(s) r(s, a),

since what the best plan earns is linear in b as long as it stays the same plan. An action and a
plan for each outcome o (a reward and an observation) make one vector:

    v = r(., a) + sum_o K_(a,o) v_o,    K_(a,o)(s, s') = P(o, s' | s, a).

*Exact* plans keep, for few steps left, every vector that is not below another one; for more steps,
those that are best for some belief that can be reached from the start, whatever is played: backward
induction over reachable beliefs. A value is then the true one at every belief that can be reached,
and there are no more vectors than beliefs. *QMDP* (Littman, Cassandra and Kaelbling 1995) has one
vector for each action, Q_n of the MDP whose state is shown: what looking is worth does not count,
and values are never below the true ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from priorwise.core.choosing import TIE_TOLERANCE, sizes_of
from priorwise.core.types import BoolArray, FloatArray, IntArray
from priorwise.theory.enumeration import rounded_logs, row_groups

MOST_BELIEFS: Final = 50_000
"""Beliefs about the state that exact plans of all candidates may reach together."""

MOST_VECTORS: Final = 128
"""Vectors of all actions together up to which plans keep every one that is not below another."""

MOST_SUMS: Final = 1024
"""Sums of vectors that are formed for one action to find them."""

LESS: Final = 8.0 * TIE_TOLERANCE
"""How much less an action is taken to be worth that ties with one before it, relative to the size
of its value: too little to matter, and enough for every policy to choose the first.
"""

CHUNK: Final = 1 << 22  # numbers that are compared at a time


@final
@dataclass(frozen=True, eq=False)
class Model:
    """One known POMDP."""

    start: FloatArray  # (state,)
    rewards: FloatArray  # (state, action), means
    transitions: FloatArray  # (state, action, next state)
    # for each action, P(o, s' | s, a) of each outcome that is possible, (outcome, state, next
    # state)
    kernels: tuple[FloatArray, ...]
    shown: tuple[tuple[tuple[float, int], ...], ...]  # their rewards and observations

    @classmethod
    def of(
        cls,
        start: FloatArray,
        rewards: FloatArray,
        transitions: FloatArray,
        observations: FloatArray,
        laws: Sequence[tuple[FloatArray, FloatArray]],
    ) -> Model:
        """Lay out the outcomes; ``laws`` has for each action its rewards and their probabilities,
        ``(state, reward)``.
        """
        kernels, shown = [], []
        for arm, (values, chances) in enumerate(laws):
            parts = chances, transitions[:, arm], observations[:, arm]
            every = np.einsum("sr,st,ty->ryst", *parts)
            possible = np.argwhere(every.any(axis=(2, 3)))
            kernels.append(every[tuple(possible.T)])
            shown.append(tuple((float(values[r]), y) for r, y in possible.tolist()))
        return cls(start, rewards, transitions, tuple(kernels), tuple(shown))

    @property
    def arms(self) -> int:
        """Number of actions."""
        return self.rewards.shape[1]

    def followed(self, beliefs: FloatArray, arm: int) -> tuple[FloatArray, FloatArray]:
        """Probability of each outcome of an action, ``(belief, outcome)``, and the beliefs after
        it, ``(belief, outcome, state)``; those of impossible outcomes are 0.
        """
        joint = np.einsum("bs,ost->bot", beliefs, self.kernels[arm])
        chance = joint.sum(axis=2)
        return chance, joint / np.where(chance > 0.0, chance, 1.0)[:, :, None]


@final
@dataclass(frozen=True, eq=False)
class Vectors:
    """What actions are worth with some steps left, as vectors over states."""

    values: tuple[FloatArray, ...]  # for each action (vector, state)
    sizes: tuple[FloatArray, ...]  # sums of the absolute numbers that the values are sums of

    def best(self, beliefs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``Q(b, a)`` and the size of its addends, ``(belief, action)`` each."""
        out = np.empty((2, len(beliefs), len(self.values)))
        for arm, (values, sizes) in enumerate(zip(self.values, self.sizes, strict=True)):
            for part in _chunks(len(beliefs), len(values)):
                worth = np.einsum("bs,vs->bv", beliefs[part], values)
                which = worth.argmax(axis=1)
                out[0, part, arm] = worth[np.arange(len(which)), which]
                out[1, part, arm] = np.einsum("bs,bs->b", beliefs[part], sizes[which])
        return out[0], out[1]


@final
@dataclass(frozen=True, eq=False)
class Policy:
    """A plan for one model and a number of steps: vectors by depth, the number of steps done."""

    depths: tuple[Vectors, ...]
    beliefs: int  # reached; 0 for QMDP
    exact: bool


def exact_plan(model: Model, steps: int, most: int = MOST_BELIEFS) -> Policy | None:
    """Return the best plan from the start, or None where it would reach more than ``most``
    beliefs.
    """
    rewards = model.rewards.T[:, None, :]
    last = Vectors(tuple(rewards), tuple(np.abs(rewards)))
    few = [last]  # vectors for 1, 2, ... steps left
    while len(few) < steps and (more := _every(model, few[-1])) is not None:
        few.append(more)
    layers = _reached(model, steps - len(few), most)
    if layers is None:
        return None
    depths = few[::-1]
    value, size = _together(few[-1])
    for beliefs in reversed(layers):
        found, value, size = _backed_up(model, beliefs, value, size)
        depths.insert(0, found)
    return Policy(tuple(depths), sum(map(len, layers)), exact=True)


def qmdp_plan(model: Model, steps: int) -> Policy:
    """Return the values of the MDP whose state is shown, one vector for each action."""
    values, sizes = model.rewards, np.abs(model.rewards)
    out = []
    rows = np.arange(len(values))
    for step in range(steps):
        if step:
            best = (rows, values.argmax(axis=1))
            values = model.rewards + model.transitions @ values[best]
            sizes = np.abs(model.rewards) + model.transitions @ sizes[best]
        out.append(Vectors(tuple(values.T[:, None, :]), tuple(sizes.T[:, None, :])))
    return Policy(tuple(out[::-1]), 0, exact=False)


def _every(model: Model, after: Vectors) -> Vectors | None:
    """All vectors with one step more that are not below another one; None where they are many."""
    value, size = _together(after)
    parts = []
    for arm in range(model.arms):
        here = []
        for kernel in model.kernels[arm]:
            projected = value @ kernel.T, size @ kernel.T
            kept = _upper(projected[0])
            here.append((projected[0][kept], projected[1][kept]))
        if np.prod([float(len(each)) for each, _ in here]) > MOST_SUMS:
            return None
        sums = model.rewards[None, :, arm], np.abs(model.rewards[None, :, arm])
        for each in here:
            sums = tuple(
                (one[:, None] + two[None]).reshape(-1, one.shape[1])
                for one, two in zip(sums, each, strict=True)
            )
        kept = _upper(sums[0])
        parts.append((sums[0][kept], sums[1][kept]))
    if sum(len(each) for each, _ in parts) > MOST_VECTORS:
        return None
    return Vectors(tuple(each for each, _ in parts), tuple(each for _, each in parts))


def _reached(model: Model, steps: int, most: int) -> list[FloatArray] | None:
    """Beliefs that can be reached in 0, 1, ... steps, whatever is played, ``(belief, state)`` each;
    None where they are too many.
    """
    layers = [model.start[None]][: max(steps, 0)]
    total = len(layers)
    for _ in range(steps - 1):
        found = []
        for arm in range(model.arms):
            chance, then = model.followed(layers[-1], arm)
            found.append(then[chance > 0.0])
        every = np.concatenate(found)
        with np.errstate(divide="ignore"):
            first, _ = row_groups(rounded_logs(np.log(every)))
        total += len(first)
        if total > most:
            return None
        layers.append(every[np.sort(first)])
    return layers


def _backed_up(
    model: Model, beliefs: FloatArray, value: FloatArray, size: FloatArray
) -> tuple[Vectors, FloatArray, FloatArray]:
    """Vectors of each action that are best for some of the beliefs, given those ``(vector, state)``
    with one step less; and of these the ones of actions that are best for some belief.
    """
    values, sizes, worth, sized, whose = [], [], [], [], []
    for arm in range(model.arms):
        chosen, earned, costs = [], [], []
        for kernel in model.kernels[arm]:
            projected, weighed = value @ kernel.T, size @ kernel.T
            chosen.append(_first_vector(beliefs, projected, weighed))
            earned.append(projected)
            costs.append(weighed)
        first, group = row_groups(np.stack(chosen, axis=1))
        picked = [which[first] for which in chosen]
        reward = model.rewards[:, arm]
        new = reward + sum(each[which] for each, which in zip(earned, picked, strict=True))
        cost = np.abs(reward) + sum(each[which] for each, which in zip(costs, picked, strict=True))
        values.append(new)
        sizes.append(cost)
        worth.append(np.einsum("bs,bs->b", beliefs, new[group]))
        sized.append(np.einsum("bs,bs->b", beliefs, cost[group]))
        whose.append(group)
    found = Vectors(tuple(values), tuple(sizes))
    action = first_best(np.stack(worth, axis=1), np.stack(sized, axis=1))
    used = [np.unique(whose[arm][action == arm]) for arm in range(model.arms)]
    best = [
        np.concatenate([table[arm][rows] for arm, rows in enumerate(used)])
        for table in (values, sizes)
    ]
    return found, best[0], best[1]


def first_best(values: FloatArray, sizes: FloatArray) -> IntArray:
    """Lowest number of those that tie for the largest value, ``(row, number)`` to ``(row,)``, by
    the rule of :mod:`priorwise.core.choosing`.
    """
    return np.argmax(tied(values, sizes), axis=1)


def tied(values: FloatArray, sizes: FloatArray) -> BoolArray:
    """Which values tie for the largest of their row."""
    half = TIE_TOLERANCE / 2.0 * sizes_of(values, sizes)
    return np.asarray(values + half >= (values - half).max(axis=-1, keepdims=True))


def settled(values: FloatArray, sizes: FloatArray) -> FloatArray:
    """Set the first of the values that tie for the largest to it, ``(..., action)``, and the others
    a little below.
    """
    equal = tied(values, sizes)
    best = values.max(axis=-1, keepdims=True)
    first = np.cumsum(equal, axis=-1) == 1
    below = best - LESS * sizes_of(best, sizes.max(axis=-1, keepdims=True))
    return np.where(equal, np.where(first, best, below), values)


def _first_vector(beliefs: FloatArray, values: FloatArray, sizes: FloatArray) -> IntArray:
    """Return the first of the vectors that are best for each belief."""
    out = np.zeros(len(beliefs), dtype=np.int64)
    for part in _chunks(len(beliefs), len(values)) if len(values) > 1 else ():
        worth, size = (np.einsum("bs,vs->bv", beliefs[part], each) for each in (values, sizes))
        out[part] = first_best(worth, size)
    return out


def _chunks(beliefs: int, vectors: int) -> Iterator[slice]:
    """Beliefs that are compared with so many vectors at a time."""
    step = max(1, CHUNK // vectors)
    return (slice(start, start + step) for start in range(0, beliefs, step))


def _together(vectors: Vectors) -> tuple[FloatArray, FloatArray]:
    """Vectors of all actions that are not below another one, those of the first action first."""
    value, size = (np.concatenate(each) for each in (vectors.values, vectors.sizes))
    kept = _upper(value)
    return value[kept], size[kept]


def _upper(vectors: FloatArray) -> Sequence[int]:
    """Places of the vectors that no other one is at least as large as everywhere; of equal ones the
    first.
    """
    kept: list[int] = []
    for place, each in enumerate(vectors):
        others = vectors[kept]
        if kept and (others >= each).all(axis=1).any():
            continue
        kept = [k for k, other in zip(kept, others, strict=True) if not (each >= other).all()]
        kept.append(place)
    return kept
