"""What the loop can say beyond bandits: policies that remember, a seed for all steps of a task,
masks that depend on the state, actions that are real numbers, the belief after the last pull.

Expected rewards by hand; simulated means must lie within 5 standard errors (false alarm 6e-7 each),
and a nearby wrong answer must not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from raising import raises

import priorwise as pw
from priorwise.core.seen import RealActions
from priorwise.meta.learners.learner import FixedPrior
from priorwise.testing import MemoryPolicyContract

MEANS = np.array([0.1, 0.5, 0.9])
FIXED = pw.FinitePrior([MEANS], [1.0])
TASKS = 20_000


def near(run: Any, exact: float) -> bool:
    return bool(abs(run.mean_reward - exact) < 5 * run.std_error)


@dataclass(frozen=True)
class Repeats:
    """Decides by another policy at each ``every``-th pull and plays the same arm in between."""

    policy: Any
    every: int

    def begin(self, tasks: int) -> Any:
        return np.full(tasks, -1)

    def decide(self, belief: Any, seen: Any, rng: Any, memory: Any) -> Any:
        if seen.step % self.every != 1 % self.every:
            there = True if seen.mask is None else seen.mask[np.arange(rng.tasks), memory]
            if np.all(there):
                return memory, memory
        actions = self.policy.act(belief, seen, rng)
        return actions, actions


class TestRepeats(MemoryPolicyContract):
    @pytest.fixture
    def policy(self) -> Any:
        return Repeats(pw.ThompsonSampling(), 3)


@dataclass
class Forgetful:
    """Wrong: it keeps what it remembers itself, so that one block shifts the next."""

    at: int = 0

    def begin(self, tasks: int) -> Any:
        return None

    def decide(self, belief: Any, seen: Any, rng: Any, memory: Any) -> Any:
        self.at += 1
        return np.full(rng.tasks, self.at % seen.arms), None


def test_the_contract_notices_a_policy_that_remembers_by_itself(seed: int) -> None:
    contract = MemoryPolicyContract()
    with pytest.raises(AssertionError):
        contract.test_memory_is_a_value(Forgetful(), seed)
    with pytest.raises(AssertionError):
        contract.test_tasks_do_not_see_each_other(Forgetful(), seed)


def test_memory_is_kept_from_pull_to_pull(seed: int) -> None:
    options: dict[str, Any] = {"horizon": 7, "tasks": 300, "seed": seed, "keep": True}
    prior = pw.GaussianPrior([0.0, 0.1], np.eye(2))
    thompson = pw.ThompsonSampling()
    plain = pw.simulate(prior, thompson, engine="numpy", **options)
    every_pull = pw.simulate(prior, Repeats(thompson, 1), **options)
    np.testing.assert_array_equal(plain.actions, every_pull.actions)
    thrice = pw.simulate(prior, Repeats(thompson, 3), **options).actions
    np.testing.assert_array_equal(thrice[:, 0:3], thrice[:, [0, 0, 0]])
    np.testing.assert_array_equal(thrice[:, 3:6], thrice[:, [3, 3, 3]])
    assert (thrice[:, 3] != thrice[:, 2]).any()
    run = pw.simulate_meta(
        prior, FixedPrior(Repeats(thompson, 3)), episodes=4, replicates=3, horizon=7, seed=seed,
        jobs=1, keep=True,
    )  # fmt: skip
    assert run.rewards.shape == (3, 4)


def test_whoever_does_not_keep_the_memory_refuses(seed: int) -> None:
    policy = Repeats(pw.ThompsonSampling(), 2)
    with raises("then", "must be a policy without"):
        pw.UniformThen(1, policy)
    with raises("policy", "must be a policy without memory"):
        pw.sensitivity_ladder(FIXED, FIXED, policy, horizon=2, seed=seed)

    @dataclass(frozen=True)
    class Alone(Repeats):
        def decide(self, belief: Any, seen: Any, rng: Any, memory: Any) -> Any:
            return memory

    with raises("Alone.decide", "must return a pair of actions and"):
        pw.simulate(FIXED, Alone(policy, 2), horizon=2, tasks=2, seed=seed)


@dataclass(frozen=True)
class SameArm:
    """Plays the arm that the task's seed xi names, at every step."""

    def act(self, belief: Any, seen: Any, rng: Any) -> Any:
        return rng.at(0).integers(seen.arms)

    def monte_carlo_n(self, arms: int) -> int:
        return 0


def test_a_seed_is_shared_by_the_steps_of_a_task(seed: int) -> None:
    run = pw.simulate(FIXED, SameArm(), horizon=4, tasks=TASKS, seed=seed, keep=True)
    assert (run.actions == run.actions[:, :1]).all()
    assert near(run, 4 * MEANS.mean())
    # four times one arm: the variance of a total is 16 times that of an arm, not 4 times (control)
    spread = run.rewards.sum(axis=1).var() / MEANS.var()
    assert abs(spread - 16) < 1


@dataclass(frozen=True)
class MovingPrior:
    """Three arms; the state says which two are there. Bandit rewards, uniform play."""

    arms: int = 3

    def sample(self, rng: Any, tasks: int) -> Any:
        return MovingEnvironment(tasks)

    def belief(self, tasks: int) -> Any:
        return Nothing()


@dataclass(frozen=True)
class MovingEnvironment:
    tasks: int
    actions_influence_signals: ClassVar[bool] = False

    def start(self, rng: Any) -> Any:
        return np.zeros(self.tasks, dtype=int)

    def step(self, seen: Any, actions: Any, rng: Any) -> Any:
        return MEANS[actions], (seen.signal + 1) % 3

    def values(self, signal: Any) -> Any:
        return np.tile(MEANS, (self.tasks, 1))

    def available(self, signal: Any) -> Any:
        return np.arange(3) != signal[:, None]


@dataclass(frozen=True)
class Nothing:
    """Knows nothing, learns nothing."""

    def sample(self, rng: Any, draws: int, seen: Any) -> Any:
        return rng.normal(draws, seen.arms)

    def update(self, seen: Any, actions: Any, rewards: Any, after: Any) -> Nothing:
        return self


def test_the_environment_says_which_arms_are_there(seed: int) -> None:
    """In state s all arms but s: over three steps the expected rewards are 0.7, 0.5, 0.3."""
    run = pw.simulate(MovingPrior(), pw.Uniform(), horizon=3, tasks=TASKS, seed=seed, keep=True)
    assert (run.actions != np.arange(3)).all()
    assert near(run, 1.5)
    assert run.mean_regret is not None
    assert run.regret_std_error is not None
    best = 0.9 + 0.9 + 0.5
    assert abs(run.mean_regret - (best - 1.5)) < 5 * run.regret_std_error
    # control: where all arms are there, the best is 0.9 at each step
    assert abs(run.mean_regret - (2.7 - 1.5)) > 50 * run.regret_std_error
    allowed = pw.simulate(
        MovingPrior(), pw.Uniform(), horizon=3, tasks=9, seed=seed, keep=True,
        available=[True, True, False],
    )  # fmt: skip
    np.testing.assert_array_equal(allowed.actions[:, :2], np.tile([1, 0], (9, 1)))
    with raises("mask", "leaves task 0 without any arm"):
        pw.simulate(
            MovingPrior(), pw.Uniform(), horizon=3, tasks=9, seed=seed,
            available=[True, False, False],
        )  # fmt: skip


def test_a_wrong_mask_of_an_environment_is_refused(seed: int) -> None:
    class Wrong(MovingEnvironment):
        def available(self, signal: Any) -> Any:
            return np.ones(3, dtype=bool)

    class WrongPrior(MovingPrior):
        def sample(self, rng: Any, tasks: int) -> Any:
            return Wrong(tasks)

    with raises("the return value of Wrong.available", "must be True or False for each"):
        pw.simulate(WrongPrior(), pw.Uniform(), horizon=3, tasks=9, seed=seed)


@pytest.mark.parametrize("engine", ["auto", "numpy"])
def test_masks_of_learners(engine: Any, seed: int) -> None:
    """Arms of an episode that are not available are never played; the others are."""
    mask = np.array([[True, True, False], [False, True, True], [True, False, True]])
    prior = pw.GaussianPrior(np.zeros(3), np.eye(3))
    options: dict[str, Any] = {
        "episodes": 3, "replicates": 12, "horizon": 6, "seed": seed, "jobs": 1, "keep": True,
        "engine": engine,
    }  # fmt: skip
    run = pw.simulate_meta(prior, FixedPrior(pw.ThompsonSampling()), available=mask, **options)
    assert run.kept is not None
    actions = np.stack([each.trajectory.actions for each in run.kept])  # (replicate, episode, step)
    for episode in range(3):
        assert set(np.unique(actions[:, episode])) == set(np.flatnonzero(mask[episode]))
    everything = pw.simulate_meta(
        prior, FixedPrior(pw.ThompsonSampling()), available=np.ones((3, 3), bool), **options
    )
    none = pw.simulate_meta(prior, FixedPrior(pw.ThompsonSampling()), **options)
    np.testing.assert_array_equal(everything.rewards, none.rewards)
    with raises("available", "must have shape (3,) or (3"):
        pw.simulate_meta(prior, FixedPrior(pw.ThompsonSampling()), available=mask[:2], **options)


@dataclass(frozen=True)
class TargetPrior:
    """A hidden target x ~ N(0, 1): playing a earns -(a - x)^2, and x + noise is shown after it."""

    size: int | None = None
    arms: int = 0

    @property
    def actions(self) -> RealActions:
        return RealActions(self.size, low=-10.0, high=10.0)

    def sample(self, rng: Any, tasks: int) -> Any:
        return TargetEnvironment(rng.normal(*([] if self.size is None else [self.size])))

    def belief(self, tasks: int) -> Any:
        shape = (tasks,) if self.size is None else (tasks, self.size)
        return TargetBelief(np.zeros(shape), 1.0)


@dataclass(frozen=True)
class TargetEnvironment:
    target: Any
    actions_influence_signals: ClassVar[bool] = False

    def start(self, rng: Any) -> Any:
        return None

    def step(self, seen: Any, actions: Any, rng: Any) -> Any:
        noise = rng.world.normal(*self.target.shape[1:])
        return self.value_of(None, actions), self.target + noise

    def value_of(self, signal: Any, actions: Any) -> Any:
        gap = (actions - self.target) ** 2
        return -gap if gap.ndim == 1 else -gap.sum(axis=1)

    def best_value(self, signal: Any) -> Any:
        return np.zeros(len(self.target))


@dataclass(frozen=True)
class TargetBelief:
    total: Any
    precision: float

    def sample(self, rng: Any, draws: int, seen: Any) -> Any:
        raise NotImplementedError

    def update(self, seen: Any, actions: Any, rewards: Any, after: Any) -> TargetBelief:
        return TargetBelief(self.total + after, self.precision + 1.0)


@dataclass(frozen=True)
class PlaysMean:
    shift: float = 0.0

    def act(self, belief: Any, seen: Any, rng: Any) -> Any:
        return belief.total / belief.precision + self.shift

    def monte_carlo_n(self, arms: int) -> None:
        return None


@pytest.mark.parametrize("size", [None, 2])
def test_real_actions(size: int | None, seed: int) -> None:
    """The posterior mean after h - 1 signals misses by a variance of 1/h: -(1 + 1/2 + 1/3)."""
    prior = TargetPrior(size)
    result = pw.compare(
        prior, {"mean": PlaysMean(), "off": PlaysMean(0.5)}, horizon=3, tasks=TASKS, seed=seed,
        keep=True,
    )  # fmt: skip
    run, off = result.runs["mean"], result.runs["off"]
    exact = -(1 + 1 / 2 + 1 / 3) * (size or 1)
    assert near(run, exact)
    assert near(off, exact - 3 * 0.25 * (size or 1))
    assert not near(off, exact)  # control
    assert run.mean_regret == pytest.approx(-run.mean_reward)
    assert run.actions.dtype == np.float64
    assert run.actions.shape == ((TASKS, 3) if size is None else (TASKS, 3, size))
    again = pw.simulate(prior, PlaysMean(), horizon=3, tasks=70, seed=seed, keep=True, block=64)
    np.testing.assert_array_equal(again.actions, run.actions[:70])


def test_real_actions_out_of_place_are_refused(seed: int) -> None:
    options: dict[str, Any] = {"horizon": 2, "tasks": 5, "seed": seed}
    with raises("the return value of PlaysMean.act", "must lie between -10 and 10"):
        pw.simulate(TargetPrior(), PlaysMean(11.0), **options)
    with raises("the return value of PlaysMean.act", "must be finite numbers of shape (5,)"):
        pw.simulate(TargetPrior(), PlaysMean(np.nan), **options)
    with raises("available", "is for arms"):
        pw.simulate(TargetPrior(), PlaysMean(), available=[True], **options)
    with raises("believed", "must have the same actions"):
        pw.simulate(TargetPrior(), PlaysMean(), believed=TargetPrior(2), **options)
    with raises("prior.arms", "must be at least 1"):
        pw.simulate(replace(MovingPrior(), arms=0), pw.Uniform(), **options)


@pytest.mark.parametrize("engine", ["compiled", "numpy"])
def test_the_belief_after_the_last_pull(engine: Any, seed: int) -> None:
    """By the counts of what was played; without the last pull it is another (control)."""
    prior = pw.BetaPrior([1.0, 2.0], [3.0, 1.0])
    run = pw.simulate(
        prior, pw.ThompsonSampling(), horizon=5, tasks=9, seed=seed, keep=True, engine=engine
    )
    belief = run.belief(prior)
    for task in range(9):
        for arm in range(2):
            won = run.rewards[task][run.actions[task] == arm]
            assert belief.a[task, arm] == pytest.approx(prior.alpha[arm] + won.sum())
            assert belief.b[task, arm] == pytest.approx(prior.beta[arm] + (1 - won).sum())
    assert (belief.a + belief.b).sum(axis=1) == pytest.approx(7 + 5)
    with raises("run", "trajectories"):
        pw.simulate(prior, pw.Uniform(), horizon=1, tasks=1, seed=seed).belief(prior)


def test_belief_of_a_run_whose_rewards_are_shares_of_a_success(seed: int) -> None:
    tasks = pw.FinitePrior([[0.3, 0.7, 0.5]], [1.0])
    believed = pw.BetaPrior([1.0, 1.0, 1.0], [2.0, 2.0, 2.0])
    run = pw.simulate(
        tasks, pw.Uniform(), horizon=3, tasks=5, seed=seed, believed=believed, keep=True
    )
    belief = run.belief(believed)
    earned = np.array(
        [[run.rewards[t][run.actions[t] == a].sum() for a in range(3)] for t in range(5)]
    )
    np.testing.assert_allclose(belief.a, 1.0 + earned, rtol=1e-12)
