"""One loop for everything: a contextual toy and a Markov decision process run through the bandits'
loop.

Expected rewards by enumeration; simulated means must lie within 5 standard errors (false alarm 6e-7
each), and a nearby wrong answer must not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pytest

import priorwise as pw

TASKS = 100_000


def near(run: Any, exact: float) -> bool:
    return bool(abs(run.mean_reward - exact) < 5 * run.std_error)


@dataclass(frozen=True)
class Models:
    """A prior over finitely many models, each an array; weights are probabilities."""

    tables: Any  # (model, ...)
    weights: tuple[float, ...]

    def draw(self, rng: Any, tasks: int) -> Any:
        return self.tables[rng.choice(np.tile(self.weights, (tasks, 1)))]


# A contextual toy: the signal is a context 0 or 1, drawn afresh; a model is a table of success
# probabilities (context, arm).

CONTEXTUAL = Models(
    np.array([[[0.9, 0.2], [0.1, 0.6]], [[0.3, 0.7], [0.8, 0.2]], [[0.2, 0.5], [0.4, 0.6]]]),
    (0.5, 0.3, 0.2),
)


@dataclass(frozen=True)
class ContextualPrior:
    models: Models = CONTEXTUAL
    arms: int = 2

    def sample(self, rng: Any, tasks: int) -> ContextualEnvironment:
        return ContextualEnvironment(self.models.draw(rng, tasks))

    def belief(self, tasks: int) -> ContextualBelief:
        return ContextualBelief(self.models, np.tile(self.models.weights, (tasks, 1)))


@dataclass(frozen=True)
class ContextualEnvironment:
    table: Any  # (task, context, arm)
    actions_influence_signals: ClassVar[bool] = False

    def start(self, rng: Any) -> Any:
        return rng.world.integers(2)

    def step(self, seen: Any, actions: Any, rng: Any) -> Any:
        mean = self.values(seen.signal)[np.arange(len(actions)), actions]
        return (rng.noise.uniform() < mean).astype(float), rng.world.integers(2)

    def values(self, signal: Any) -> Any:
        return self.table[np.arange(len(signal)), signal]


@dataclass(frozen=True)
class ContextualBelief:
    models: Models
    weights: Any  # (task, model)

    def sample(self, rng: Any, draws: int, seen: Any) -> Any:
        return self.models.tables[rng.choice(self.weights, draws), seen.signal[:, None]]

    def update(self, seen: Any, actions: Any, rewards: Any, after: Any) -> ContextualBelief:
        mean = self.models.tables[:, seen.signal, actions].T
        return replace(self, weights=self.weights * np.where(rewards[:, None] > 0, mean, 1 - mean))


def contextual_reward(models: Models, horizon: int, learns: bool = True) -> float:
    """Expected total reward of Thompson sampling, by enumeration of models, contexts, draws and
    rewards.
    """

    def ahead(true: int, weights: Any, steps: int) -> float:
        if steps == 0:
            return 0.0
        total = 0.0
        for context in range(2):
            for drawn, weight in enumerate(weights / weights.sum()):
                arm = int(models.tables[drawn, context].argmax())
                mean = models.tables[true, context, arm]
                likelihood = models.tables[:, context, arm]
                success, failure = (
                    (weights * likelihood, weights * (1 - likelihood))
                    if learns
                    else (weights, weights)
                )
                later = mean * ahead(true, success, steps - 1) + (1 - mean) * ahead(
                    true, failure, steps - 1
                )
                total += 0.5 * weight * (mean + later)
        return total

    prior = np.array(models.weights)
    return float(sum(p * ahead(true, prior, horizon) for true, p in enumerate(prior)))


def test_contextual_toy_earns_the_exact_reward(seed: int) -> None:
    run = pw.simulate(ContextualPrior(), pw.ThompsonSampling(), horizon=3, tasks=TASKS, seed=seed)
    assert near(run, contextual_reward(CONTEXTUAL, 3))
    assert not near(run, contextual_reward(CONTEXTUAL, 3, learns=False))  # control
    best = 3 * float(np.array(CONTEXTUAL.weights) @ CONTEXTUAL.tables.max(axis=2).mean(axis=1))
    assert run.mean_regret is not None
    assert run.regret_std_error is not None
    assert (
        abs(run.mean_regret - (best - contextual_reward(CONTEXTUAL, 3))) < 5 * run.regret_std_error
    )


# A Markov decision process on 3 states: a model is a table of transition probabilities (state,
# action, next state); arriving at state 2 earns 1, at state 1 earns 0.2. The value of an action now
# is the Q of the drawn model with the steps that are left.

EARNED = np.array([0.0, 0.2, 1.0])
MDP = Models(
    np.array(
        [
            [
                [[0.8, 0.2, 0.0], [0.2, 0.5, 0.3]],
                [[0.1, 0.2, 0.7], [0.7, 0.3, 0.0]],
                [[0.5, 0.0, 0.5], [0.1, 0.9, 0.0]],
            ],
            [
                [[0.1, 0.8, 0.1], [0.9, 0.1, 0.0]],
                [[0.6, 0.4, 0.0], [0.2, 0.1, 0.7]],
                [[0.9, 0.1, 0.0], [0.1, 0.2, 0.7]],
            ],
        ]
    ),
    (0.6, 0.4),
)


def plan(table: Any, steps: int) -> Any:
    """Q of each (state, action) with this many steps left, by backward induction."""
    q = np.zeros(table.shape[:2])
    for _ in range(steps):
        q = table @ (EARNED + q.max(axis=1))
    return q


@dataclass(frozen=True)
class MdpPrior:
    models: Models = MDP
    arms: int = 2

    def sample(self, rng: Any, tasks: int) -> MdpEnvironment:
        return MdpEnvironment(self.models.draw(rng, tasks))

    def belief(self, tasks: int) -> MdpBelief:
        return MdpBelief(self.models, np.tile(self.models.weights, (tasks, 1)))


@dataclass(frozen=True)
class MdpEnvironment:
    table: Any  # (task, state, action, next state)

    def start(self, rng: Any) -> Any:
        return np.zeros(len(self.table), dtype=int)

    def step(self, seen: Any, actions: Any, rng: Any) -> Any:
        after = rng.world.choice(self.table[np.arange(len(actions)), seen.signal, actions])
        return EARNED[after], after


@dataclass(frozen=True)
class MdpBelief:
    models: Models
    weights: Any  # (task, model)

    def sample(self, rng: Any, draws: int, seen: Any) -> Any:
        q = np.stack([plan(table, seen.horizon - seen.step + 1) for table in self.models.tables])
        return q[rng.choice(self.weights, draws), seen.signal[:, None]]

    def update(self, seen: Any, actions: Any, rewards: Any, after: Any) -> MdpBelief:
        likelihood = self.models.tables[:, seen.signal, actions, after].T
        return replace(self, weights=self.weights * likelihood)


def mdp_reward(horizon: int, learns: bool = True) -> float:
    """Expected total reward of posterior sampling, by enumeration of models, draws and
    transitions.
    """

    @cache
    def actions(steps: int) -> Any:
        # (model, state)
        return np.stack([plan(table, steps).argmax(axis=1) for table in MDP.tables])

    def ahead(true: int, weights: Any, state: int, steps: int) -> float:
        if steps == 0:
            return 0.0
        total = 0.0
        for drawn, weight in enumerate(weights / weights.sum()):
            action = actions(steps)[drawn, state]
            for after, chance in enumerate(MDP.tables[true, state, action]):
                if weight * chance > 0.0:
                    updated = weights * MDP.tables[:, state, action, after] if learns else weights
                    total += (
                        weight * chance * (EARNED[after] + ahead(true, updated, after, steps - 1))
                    )
        return total

    prior = np.array(MDP.weights)
    return float(sum(p * ahead(true, prior, 0, horizon) for true, p in enumerate(prior)))


@pytest.mark.parametrize("horizon", [1, 2, 4])
def test_mdp_earns_the_exact_reward(horizon: int, seed: int) -> None:
    run = pw.simulate(MdpPrior(), pw.ThompsonSampling(), horizon=horizon, tasks=TASKS, seed=seed)
    assert near(run, mdp_reward(horizon))
    assert run.engine == "numpy"
    assert run.mean_regret is None
    assert run.by_step.regret is None
    assert run.by_step.cumulative_regret is None
    assert run.by_step.expected_reward is None
    assert "regret" not in str(run)


def test_mdp_control(seed: int) -> None:
    """Had the belief not been updated, the enumeration would not match."""
    run = pw.simulate(MdpPrior(), pw.ThompsonSampling(), horizon=4, tasks=TASKS, seed=seed)
    assert not near(run, mdp_reward(4, learns=False))


def test_mdp_with_a_known_model_earns_its_value(seed: int) -> None:
    known = MdpPrior(Models(MDP.tables, (1.0, 0.0)))
    run = pw.simulate(known, pw.ThompsonSampling(), horizon=4, tasks=TASKS, seed=seed)
    assert near(run, plan(MDP.tables[0], 4)[0].max())
    assert not near(run, plan(MDP.tables[1], 4)[0].max())


# Signals: what is seen before the action, and what comes after


class DiaryEnvironment:
    def start(self, rng: Any) -> Any:
        return np.zeros(rng.world.tasks)

    def step(self, seen: Any, actions: Any, rng: Any) -> Any:
        return 10.0 * seen.signal + actions, seen.signal + 1.0


class DiaryBelief:
    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.told: list[Any] = []

    def sample(self, rng: Any, draws: int, seen: Any) -> Any:
        self.asked.append((seen.step, seen.horizon, seen.arms, seen.signal[0]))
        return np.tile([0.0, 1.0], (rng.tasks, draws, 1))

    def update(self, seen: Any, actions: Any, rewards: Any, after: Any) -> DiaryBelief:
        self.told.append((seen.step, seen.signal[0], actions[0], rewards[0], after[0]))
        return self


def test_signals_are_passed_before_and_after(seed: int) -> None:
    belief = DiaryBelief()

    class DiaryPrior:
        arms = 2

        def sample(self, rng: Any, tasks: int) -> DiaryEnvironment:
            return DiaryEnvironment()

        def belief(self, tasks: int) -> DiaryBelief:
            return belief

    pw.simulate(DiaryPrior(), pw.ThompsonSampling(), horizon=3, tasks=2, seed=seed)
    assert belief.asked == [(1, 3, 2, 0.0), (2, 3, 2, 1.0), (3, 3, 2, 2.0)]
    # nothing is learned from the last pull
    assert belief.told == [(1, 0.0, 1, 1.0, 1.0), (2, 1.0, 1, 11.0, 2.0)]
