"""Problems in which actions influence later signals: no regret, and the bounds for bandits point to
those for decision problems.

Three states: a start, a good and a bad one, which are not left again. A state earns the same
whatever is played, 1 in the good one and 0 elsewhere, so that nothing is lost now; but one action
of the start leads to the good state, the other to the bad one, and the prior says which. Thompson
sampling that holds ``p`` earns (p'p) (H - 1), with q instead (p'q) (H - 1).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from raising import raises

import priorwise as pw
from priorwise.sensitivity.bounds.bandits import trajectory_bound
from priorwise.sensitivity.bounds.pomdp import (
    pomdp_reward_bound,
    pomdp_trajectory_bound,
    reward_tails,
)
from priorwise.sensitivity.tails.diameter import diameter_law
from priorwise.testing import PriorContract, base_seed
from priorwise.testing.playing import same_signals
from priorwise.theory.conditions import Bounded

START, GOOD, BAD = range(3)
EARNED = np.array([0.0, 1.0, 0.0])
HORIZON, TASKS, TV = 3, 20_000, 0.8
TS = pw.ThompsonSampling()


@dataclass(frozen=True)
class SilentFork:
    """Does not say that actions influence signals."""

    good: Any  # (task,): the action that leads to the good state

    def start(self, rng: Any) -> Any:
        return np.full(len(self.good), START)

    def step(self, seen: Any, actions: Any, rng: Any) -> Any:
        after = np.where(
            seen.signal == START, np.where(actions == self.good, GOOD, BAD), seen.signal
        )
        return EARNED[seen.signal], after

    def values(self, signal: Any) -> Any:
        return np.tile(EARNED[signal][:, None], 2)


@dataclass(frozen=True)
class Fork(SilentFork):
    actions_influence_signals: ClassVar[bool] = True


@dataclass(frozen=True)
class LyingFork(SilentFork):
    actions_influence_signals: ClassVar[bool] = False


@dataclass(frozen=True)
class VagueFork(SilentFork):
    actions_influence_signals: ClassVar[Any] = "sometimes"


class HiddenFork(SilentFork):
    """Keeps its state to itself, and shows nothing; says nothing either."""

    def start(self, rng: Any) -> None:
        self.__dict__["state"] = np.full(len(self.good), START)

    def step(self, seen: Any, actions: Any, rng: Any) -> Any:
        earned, self.__dict__["state"] = super().step(
            replace(seen, signal=self.__dict__["state"]), actions, rng
        )
        return earned, None

    def values(self, signal: Any) -> Any:
        return super().values(self.__dict__["state"])


class LateFork(SilentFork):
    """Shows its state, but for the first."""

    def start(self, rng: Any) -> None:
        return None

    def step(self, seen: Any, actions: Any, rng: Any) -> Any:
        return super().step(replace(seen, signal=np.full(len(actions), START)), actions, rng)

    def values(self, signal: Any) -> Any:
        return np.zeros((len(self.good), 2))


@dataclass(frozen=True)
class ForkPrior:
    first: float = 0.9  # probability that the first action is the good one
    environment: Any = Fork
    arms: int = 2

    def sample(self, rng: Any, tasks: int) -> Any:
        return self.environment((rng.uniform() >= self.first).astype(int))

    def belief(self, tasks: int) -> ForkBelief:
        return ForkBelief(np.tile([self.first, 1.0 - self.first], (tasks, 1)))


@dataclass(frozen=True)
class ForkBelief:
    weights: Any  # (task, model)

    def sample(self, rng: Any, draws: int, seen: Any) -> Any:
        return np.eye(2)[rng.choice(self.weights, draws)]

    def update(self, seen: Any, actions: Any, rewards: Any, after: Any) -> ForkBelief:
        return self


P, Q = ForkPrior(0.9), ForkPrior(0.1)


def test_the_prior_matters_and_there_is_no_regret(seed: int) -> None:
    result = pw.compare(P, {"p": (TS, P), "q": (TS, Q)}, horizon=HORIZON, tasks=TASKS, seed=seed)
    gap = result.difference("p", "q")
    assert abs(gap.mean - 1.28) < 5 * gap.std_error  # false alarms with probability 6e-7
    for run in result.runs.values():
        assert run.mean_regret is None
        assert run.by_step.regret is None
        assert run.by_step.cumulative_regret is None
        assert "regret" not in str(run)
    assert result.runs["p"].to_frame()["regret"].isna().all()


@pytest.mark.parametrize(
    ("tool", "instead"),
    [
        (
            lambda: pw.reward_bound(P, Q, TS, HORIZON, tv=TV, estimate=True, seed=base_seed()),
            "pomdp_reward_bound",
        ),
        (
            lambda: pw.reward_bound(P, Q, TS, HORIZON, tv=TV, tail=Bounded(1.0)),
            "pomdp_reward_bound",
        ),
        (lambda: pw.tail_expectation(P, 0.5, horizon=HORIZON, seed=base_seed()), "reward_tails"),
        (lambda: diameter_law(P, HORIZON, seed=base_seed()), "reward_tails"),
    ],
    ids=[
        "reward_bound",
        "reward_bound-given-tail",
        "tail_expectation",
        "diameter_law",
    ],
)
def test_bandit_bounds_refuse(tool: Any, instead: str) -> None:
    with raises("prior", "do not influence later signals"):
        tool()


def test_bounds_for_decision_problems_hold(seed: int) -> None:
    tails = reward_tails(P, Q, TS, horizon=HORIZON, tasks=2_000, seed=seed)
    for bound in (
        pomdp_reward_bound(TV, 1, HORIZON, reward_range=1.0),
        pomdp_reward_bound(TV, 1, HORIZON, tails=tails, estimate=True),
    ):
        assert bound.value > 1.28


def test_the_bound_on_trajectories_needs_no_other_name() -> None:
    """``2 n H eps`` is that of the theorem for bandits and of the one for decision problems."""
    bound = trajectory_bound(P, Q, TS, HORIZON, tv=0.01)
    assert bound == pomdp_trajectory_bound(0.01, 1, HORIZON)
    assert bound.value == pytest.approx(0.06)


def test_the_ladder_has_tails_of_rewards(seed: int) -> None:
    """By hand: the two runs part at the first step or never; |average reward| is 2/3 or 0."""
    ladder = pw.sensitivity_ladder(P, Q, TS, HORIZON, seed=seed, tasks=TASKS, histories=400, tv=TV)
    assert ladder.in_order, ladder
    assert "average rewards" in str(ladder)
    assert "diam" not in str(ladder)
    for share, held in ((0.82, "true"), (0.18, "believed")):  # p'p and p'q
        tails = reward_tails(P, Q, TS, horizon=HORIZON, tasks=TASKS, seed=seed)
        mean = getattr(tails, held).tail(1.0)
        assert abs(mean.value - share * 2 / 3) < 5 * mean.std_error  # 6e-7
    worst = ladder["worst case"]
    assert worst.reward == pytest.approx(ladder.trivial)
    assert abs(ladder.gap.mean + 1.28) < 5 * ladder.gap.std_error


@pytest.mark.parametrize("environment", [SilentFork, LateFork])
def test_an_environment_that_shows_signals_has_to_say(environment: Any, seed: int) -> None:
    prior = ForkPrior(environment=environment)
    with raises(f"{environment.__name__}.actions_influence_signals", "is missing"):
        pw.simulate(prior, TS, horizon=HORIZON, tasks=8, seed=seed)
    if environment is SilentFork:
        with raises(
            "SilentFork.actions_influence_signals", "is missing, and the environment shows"
        ):
            pw.reward_bound(prior, Q, TS, HORIZON, tv=TV, estimate=True, seed=seed)


def test_what_it_says_is_true_or_false(seed: int) -> None:
    with raises("VagueFork.actions_influence_signals", "must be True or"):
        pw.simulate(ForkPrior(environment=VagueFork), TS, horizon=HORIZON, tasks=8, seed=seed)


def test_shipped_environments_say_no(seed: int) -> None:
    contextual = pw.LinearGaussianPrior([0.5, 0.0], np.eye(2), contexts=pw.SphereContexts(arms=3))
    for prior in (pw.GaussianPrior([0.5, 0.0], np.eye(2)), contextual):
        assert same_signals(prior, tasks=16, pulls=3, seed=seed)
        for engine in ("numpy", "compiled"):
            assert (
                pw.simulate(prior, TS, horizon=3, tasks=64, seed=seed, engine=engine).mean_regret
                > 0.0
            )


class TestContract:
    """The contract sees through environments that lie, also about a state that they do not show."""

    @pytest.mark.parametrize("environment", [Fork, LyingFork, HiddenFork])
    def test_lies_are_noticed(self, environment: Any, seed: int) -> None:
        prior = ForkPrior(environment=environment)
        assert not same_signals(prior, tasks=64, pulls=2, seed=seed)
        check = PriorContract().test_actions_influence_signals_as_the_environment_says
        if environment is Fork:
            check(prior, seed)
        else:
            with pytest.raises(AssertionError, match="actions_influence_signals = True"):
                check(prior, seed)
