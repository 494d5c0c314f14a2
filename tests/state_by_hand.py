"""Finite problems with a state by recursion over whole trajectories, in plain Python: what the
enumeration of the package is checked against.

Nothing is shared with it: histories are never merged, beliefs are products of likelihoods, plans
are a recursion. A trajectory is a tuple ``(s1, a1, r1, s2, a2, r2, ..., s_{H+1})``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

Law = dict[tuple[Any, ...], list[float]]
"""Joint law of trajectory and candidate: trajectory to its probability with each candidate."""


@dataclass(frozen=True)
class ByHand:
    """A finite MDP problem as lists."""

    moves: Any  # [candidate][state][action][next]
    means: Any  # [candidate][state][action]
    bernoulli: bool
    start: Any
    round_steps: int | None
    horizon: int

    @classmethod
    def of(cls, prior: Any, horizon: int) -> ByHand:
        return cls(
            prior.transitions.tolist(),
            prior.rewards.tolist(),
            prior.noise == "bernoulli",
            prior.start.tolist(),
            prior.round_steps,
            horizon,
        )

    def __hash__(self) -> int:
        return id(self)

    @property
    def arms(self) -> int:
        return len(self.means[0][0])

    @property
    def states(self) -> int:
        return len(self.start)

    def resets(self, step: int) -> bool:
        return self.round_steps is not None and step % self.round_steps == 0

    def shown(self, candidate: int, state: int, arm: int, step: int) -> dict[Any, float]:
        """Law of (reward, next state)."""
        mean = self.means[candidate][state][arm]
        rewards = {1.0: mean, 0.0: 1.0 - mean} if self.bernoulli else {mean: 1.0}
        after = self.start if self.resets(step) else self.moves[candidate][state][arm]
        out: dict[Any, float] = defaultdict(float)
        for (r, p), (s, q) in product(rewards.items(), enumerate(after)):
            out[r, s] += p * q
        return {key: p for key, p in out.items() if p > 0.0}

    @cache  # noqa: B019
    def q(self, candidate: int, step: int, state: int) -> tuple[float, ...]:
        """Value of each action to the end of the round or of the task."""
        out = []
        for arm in range(self.arms):
            value = self.means[candidate][state][arm]
            if not self.resets(step) and step < self.horizon:
                value += sum(
                    p * max(self.q(candidate, step + 1, s))
                    for s, p in enumerate(self.moves[candidate][state][arm])
                    if p > 0.0
                )
            out.append(value)
        return tuple(out)

    def learned(
        self, probs: list[float], weights: list[float], state: int, arm: int, step: int, seen: Any
    ) -> list[float]:
        """Bayes' rule; an impossible observation starts again from the prior."""
        new = [
            w * self.shown(c, state, arm, step).get(seen, 0.0)
            if not self.resets(step)
            else w * sum(p for (r, _), p in self.shown(c, state, arm, step).items() if r == seen[0])
            for c, w in enumerate(weights)
        ]
        total = sum(new)
        return [w / total for w in new] if total > 0.0 else list(probs)


Rule = Callable[[ByHand, list[float], int, int], list[float]]
"""Law of the action given (problem, posterior, step, state)."""


def shots(k: int) -> Rule:
    """k-shot Thompson sampling: the best action of any of k draws, those that tie share it."""

    def rule(problem: ByHand, weights: list[float], step: int, state: int) -> list[float]:
        law = [0.0] * problem.arms
        for drawn in product(range(len(weights)), repeat=k):
            p = 1.0
            for c in drawn:
                p *= weights[c]
            if p > 0.0:
                values = [max(problem.q(c, step, state)[a] for c in drawn) for a in range(len(law))]
                for a, share in enumerate(best(values)):
                    law[a] += p * share
        return law

    return rule


def best(values: list[float]) -> list[float]:
    top = [value > max(values) - 1e-9 for value in values]
    return [each / sum(top) for each in top]


def trajectories(problem: ByHand, true: list[float], held: list[float], rule: Rule) -> Law:
    """Joint law of trajectory and candidate when alg(held) plays tasks of ``true``."""
    out: Law = {}

    def go(path: tuple[Any, ...], weights: list[float], joint: list[float], step: int) -> None:
        if step > problem.horizon:
            out[path] = joint
            return
        state = path[-1]
        for arm, chance in enumerate(rule(problem, weights, step, state)):
            if chance == 0.0:
                continue
            seen = {key for c in range(len(joint)) for key in problem.shown(c, state, arm, step)}
            for r, s in seen:
                then = [
                    j * chance * problem.shown(c, state, arm, step).get((r, s), 0.0)
                    for c, j in enumerate(joint)
                ]
                if sum(then) > 0.0:
                    after = problem.learned(held, weights, state, arm, step, (r, s))
                    go((*path, arm, r, s), after, then, step + 1)

    for s, p in enumerate(problem.start):
        if p > 0.0:
            go((s,), list(held), [p * each for each in true], 1)
    return out


def kept_trajectories(
    problem: ByHand, true: list[float], held: list[float], kept: int
) -> dict[tuple[Any, ...], float]:
    """Law of the trajectory where one draw is kept for ``kept`` steps, as PSRL does."""
    out: dict[tuple[Any, ...], float] = defaultdict(float)

    def go(
        path: tuple[Any, ...], weights: list[float], joint: list[float], drawn: int, step: int
    ) -> None:
        if step > problem.horizon:
            out[path] += sum(joint)
            return
        again = (step - 1) % kept == 0
        draws = enumerate(weights) if again else [(drawn, 1.0)]
        state = path[-1]
        for c, p in draws:
            for arm, share in enumerate(best(list(problem.q(c, step, state)))):
                if p * share == 0.0:
                    continue
                seen = {k for d in range(len(joint)) for k in problem.shown(d, state, arm, step)}
                for r, s in seen:
                    then = [
                        j * p * share * problem.shown(d, state, arm, step).get((r, s), 0.0)
                        for d, j in enumerate(joint)
                    ]
                    if sum(then) > 0.0:
                        after = problem.learned(held, weights, state, arm, step, (r, s))
                        go((*path, arm, r, s), after, then, c, step + 1)

    for s, p in enumerate(problem.start):
        if p > 0.0:
            go((s,), list(held), [p * each for each in true], -1, 1)
    return dict(out)


def distance(first: dict[Any, float], second: dict[Any, float]) -> float:
    """Total variation of two laws."""
    keys = first.keys() | second.keys()
    return sum(abs(first.get(key, 0.0) - second.get(key, 0.0)) for key in keys) / 2


def marginal(law: Law) -> dict[tuple[Any, ...], float]:
    """Law of the trajectory alone."""
    return {path: sum(joint) for path, joint in law.items()}


def pulls(path: tuple[Any, ...]) -> Iterator[tuple[int, int, float]]:
    """State, action and reward of each step."""
    for step in range(len(path) // 3):
        yield path[3 * step], path[3 * step + 1], path[3 * step + 2]


def reward(law: Law) -> float:
    """Expected total reward."""
    return sum(sum(joint) * sum(r for *_, r in pulls(path)) for path, joint in law.items())


def average_rewards(problem: ByHand, law: Law, centre: float) -> list[tuple[float, float]]:
    """Absolute average conditional reward, with its probability, per trajectory and candidate."""
    return [
        (
            abs(sum(problem.means[c][s][a] for s, a, _ in pulls(path)) / problem.horizon - centre),
            p,
        )
        for path, joint in law.items()
        for c, p in enumerate(joint)
        if p > 0.0
    ]


def tail(values: list[tuple[float, float]], level: float) -> float:
    """Mean of the largest values that have probability ``level`` together."""
    left, total = level, 0.0
    for value, p in sorted(values, reverse=True):
        total += value * min(p, left)
        left = max(left - p, 0.0)
    return total / level


def optimal(problem: ByHand, probs: list[float]) -> float:
    """Best expected reward of all policies, by recursion over histories with the joint weights of
    the candidates: no belief is formed.
    """

    def value(joint: list[float], state: int, step: int) -> float:
        if step > problem.horizon:
            return 0.0
        found = []
        for arm in range(problem.arms):
            total = 0.0
            for r, s in {k for c in range(len(joint)) for k in problem.shown(c, state, arm, step)}:
                then = [
                    j * problem.shown(c, state, arm, step).get((r, s), 0.0)
                    for c, j in enumerate(joint)
                ]
                total += sum(then) * r + value(then, s, step + 1)
            found.append(total)
        return max(found)

    return sum(
        value([p * each for each in probs], s, 1) for s, p in enumerate(problem.start) if p > 0.0
    )
