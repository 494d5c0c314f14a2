"""Problems with a hidden state by recursion over whole histories, in plain Python: what the filter,
the plans and the enumeration of the package are checked against.

Nothing is shared with them: weights of (candidate, state) are never normalised or merged, plans are
a recursion over all that may be shown. A history is a tuple ``(a1, r1, y1, a2, r2, y2, ...)``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

Joint = list[list[float]]
"""Weight of each candidate and state: [candidate][state]."""


@dataclass(frozen=True)
class ByHand:
    """Finitely many POMDPs as lists."""

    moves: Any  # [candidate][state][action][next]
    sights: Any  # [candidate][next][action][observation]
    means: Any  # [candidate][state][action]
    starts: Any  # [candidate][state]
    bernoulli: bool
    round_steps: int | None
    horizon: int

    @classmethod
    def of(cls, prior: Any, horizon: int) -> ByHand:
        return cls(
            prior.transitions.tolist(),
            prior.observations.tolist(),
            prior.rewards.tolist(),
            prior.start.tolist(),
            prior.noise == "bernoulli",
            prior.round_steps,
            horizon,
        )

    @property
    def arms(self) -> int:
        return len(self.means[0][0])

    def resets(self, step: int) -> bool:
        return self.round_steps is not None and step % self.round_steps == 0

    def first(self, probs: list[float]) -> Joint:
        return [[p * q for q in row] for p, row in zip(probs, self.starts, strict=True)]

    def rewards(self, c: int, s: int, arm: int) -> dict[float, float]:
        mean = self.means[c][s][arm]
        return {1.0: mean, 0.0: 1.0 - mean} if self.bernoulli else {mean: 1.0}

    def after(self, joint: Joint, arm: int, step: int) -> dict[Any, Joint]:
        """What an action may show, with the joint weights of it and what is hidden then."""
        out: dict[Any, Joint] = defaultdict(lambda: [[0.0] * len(row) for row in joint])
        for c, row in enumerate(joint):
            for s, weight in enumerate(row):
                for r, p in self.rewards(c, s, arm).items():
                    if weight * p == 0.0:
                        continue
                    if self.resets(step):
                        for then, q in enumerate(self.starts[c]):
                            out[r, -1][c][then] += weight * p * q
                        continue
                    for then, q in enumerate(self.moves[c][s][arm]):
                        for y, o in enumerate(self.sights[c][then][arm]):
                            out[r, y][c][then] += weight * p * q * o
        return {shown: new for shown, new in out.items() if total(new) > 0.0}

    def q(self, c: int, row: list[float], step: int) -> list[float]:
        """Value of each action to the end of the round or task if the candidate is known, times the
        weight of the row.
        """
        size = sum(row)
        joint = [[0.0] * len(row) for _ in self.means]
        joint[c] = row
        out = []
        for arm in range(self.arms):
            value = sum(w * self.means[c][s][arm] for s, w in enumerate(row))
            if not self.resets(step) and step < self.horizon:
                value += sum(
                    max(self.q(c, new[c], step + 1))
                    for new in self.after(joint, arm, step).values()
                )
            out.append(value)
        return out if size > 0.0 else [0.0] * self.arms


def total(joint: Joint) -> float:
    return sum(map(sum, joint))


def posterior(problem: ByHand, probs: list[float], history: tuple[Any, ...]) -> Joint:
    """Bayes' rule by summing over all paths of hidden states."""
    pulls = [history[i : i + 3] for i in range(0, len(history), 3)]
    states = len(problem.starts[0])
    joint = [[0.0] * states for _ in probs]
    for c, path in product(range(len(probs)), product(range(states), repeat=len(pulls) + 1)):
        p = probs[c] * problem.starts[c][path[0]]
        for step, (arm, r, y) in enumerate(pulls, start=1):
            here, then = path[step - 1], path[step]
            p *= problem.rewards(c, here, arm).get(r, 0.0)
            if problem.resets(step):
                p *= problem.starts[c][then]
            else:
                p *= problem.moves[c][here][arm][then] * problem.sights[c][then][arm][y]
        joint[c][path[-1]] += p
    size = total(joint)
    return [[p / size for p in row] for row in joint]


Rule = Callable[[ByHand, Joint, int], list[float]]
"""Law of the action given (problem, joint weights of who believes, step)."""


def shots(k: int) -> Rule:
    """k-shot Thompson sampling: the best action of any of k draws. In a draw an action that ties
    with one before it is worth a little less; those that tie between draws share it.
    """

    def rule(problem: ByHand, joint: Joint, step: int) -> list[float]:
        size = total(joint)
        weights = [sum(row) / size for row in joint]
        q: list[list[float]] = [[] for _ in joint]
        for c, row in enumerate(joint):
            for value in problem.q(c, row, step) if sum(row) > 0.0 else ():
                earlier = [each for each in q[c] if abs(each - value / sum(row)) < 1e-9]
                q[c].append(value / sum(row) - (1e-7 if earlier else 0.0))
        law = [0.0] * problem.arms
        for drawn in product([c for c, w in enumerate(weights) if w > 0.0], repeat=k):
            p = 1.0
            for c in drawn:
                p *= weights[c]
            values = [max(q[c][a] for c in drawn) for a in range(problem.arms)]
            top = [value > max(values) - 1e-9 for value in values]
            for a, best in enumerate(top):
                law[a] += p * best / sum(top)
        return law

    return rule


def trajectories(
    problem: ByHand, true: list[float], held: list[float], rule: Rule
) -> dict[tuple[Any, ...], list[float]]:
    """Joint law of trajectory and candidate when alg(held) plays tasks of ``true``."""
    out: dict[tuple[Any, ...], list[float]] = {}

    def go(path: tuple[Any, ...], world: Joint, belief: Joint, step: int) -> None:
        if step > problem.horizon:
            out[path] = [sum(row) for row in world]
            return
        for arm, chance in enumerate(rule(problem, belief, step)):
            if chance == 0.0:
                continue
            learned = problem.after(belief, arm, step)
            for shown, new in problem.after(world, arm, step).items():
                scaled = [[chance * p for p in row] for row in new]
                then = learned.get(shown, problem.first(held))  # impossible: start again
                go((*path, arm, *shown), scaled, then, step + 1)

    go((), problem.first(true), problem.first(held), 1)
    return out


def average_rewards(
    problem: ByHand, true: list[float], law: dict[tuple[Any, ...], list[float]], centre: float
) -> list[tuple[float, float]]:
    """Absolute average of expected rewards given history and candidate, with its probability."""
    out = []
    for path, chances in law.items():
        joint, sums = problem.first(true), [0.0] * len(chances)
        for step in range(1, problem.horizon + 1):
            arm, *shown = path[3 * step - 3 : 3 * step]
            for c, row in enumerate(joint):
                if sum(row) > 0.0:
                    mean = sum(w * problem.means[c][s][arm] for s, w in enumerate(row))
                    sums[c] += mean / sum(row)
            joint = problem.after(joint, arm, step)[tuple(shown)]
        out += [
            (abs(each / problem.horizon - centre), p)
            for each, p in zip(sums, chances, strict=True)
            if p > 0.0
        ]
    return out


def optimal(problem: ByHand, probs: list[float]) -> float:
    """Best expected reward of all policies, by recursion over histories."""

    def value(joint: Joint, step: int) -> float:
        if step > problem.horizon:
            return 0.0
        return max(
            sum(
                total(new) * shown[0] + value(new, step + 1)
                for shown, new in problem.after(joint, arm, step).items()
            )
            for arm in range(problem.arms)
        )

    return value(problem.first(probs), 1)
