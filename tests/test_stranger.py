"""As a stranger would write it from the documentation: a policy of ten lines and a prior of forty,
in NumPy alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from raising import raises

import priorwise as pw
from priorwise.core.streams import streams
from priorwise.testing import PolicyContract, PriorContract, SamplingPolicyContract, base_seed


class SecondThoughts(pw.SamplingPolicy):
    """Play the arm with the largest median of five draws."""

    draws = 5

    def select(self, values, seen, rng):  # type: ignore[no-untyped-def]
        return np.median(values, axis=1).argmax(axis=1)


class EpsilonGreedy:
    """A policy without a base class: the best of one draw, or now and then any arm that is
    available.
    """

    def act(self, belief, seen, rng):  # type: ignore[no-untyped-def]
        draw = seen.masked(belief.sample(rng, 1, seen))[:, 0]
        any_arm = seen.masked(rng.uniform(seen.arms)).argmax(axis=1)
        return np.where(rng.uniform() < 0.1, any_arm, draw.argmax(axis=1))


def gamma(rng: Any, shape: Any, draws: int, terms: int) -> Any:
    """Gamma draws with whole-number shapes (task, arm), at most ``terms``: sums of exponentials."""
    exponentials = -np.log(1.0 - rng.uniform(draws, shape.shape[1], terms))
    return (exponentials * (np.arange(terms) < shape[:, None, :, None])).sum(axis=3)


@dataclass(frozen=True)
class CountsPrior:
    """Arms that count events: mu ~ Gamma(shape, rate), r ~ Poisson(mu)."""

    shape: tuple[int, ...]
    rate: tuple[float, ...]

    @property
    def arms(self) -> int:
        return len(self.shape)

    def sample(self, rng: Any, tasks: int) -> CountsEnvironment:
        return CountsEnvironment(self.belief(tasks).sample(rng, 1, None)[:, 0])

    def belief(self, tasks: int) -> CountsBelief:
        return CountsBelief(np.tile(self.shape, (tasks, 1)), np.tile(self.rate, (tasks, 1)))


@dataclass(frozen=True)
class CountsEnvironment:
    means: Any  # (task, arm)

    def start(self, rng: Any) -> None:
        return None

    def step(self, seen: Any, actions: Any, rng: Any) -> Any:
        mean = self.means[np.arange(len(actions)), actions]
        arrivals = np.cumsum(-np.log(1.0 - rng.noise.uniform(64)), axis=1)  # of a Poisson process
        return (arrivals < mean[:, None]).sum(axis=1).astype(float), None

    def values(self, signal: Any) -> Any:
        return self.means


@dataclass(frozen=True)
class CountsBelief:
    shape: Any  # (task, arm)
    rate: Any  # (task, arm)

    def sample(self, rng: Any, draws: int, seen: Any) -> Any:
        # as many exponentials as any task of any batch may need, so that a task's draws do not
        # depend on its neighbours
        return gamma(rng, self.shape, draws, terms=96) / self.rate[:, None, :]

    def update(self, seen: Any, actions: Any, rewards: Any, after: Any) -> CountsBelief:
        chosen = np.arange(self.shape.shape[1]) == actions[:, None]
        return CountsBelief(self.shape + chosen * rewards[:, None].astype(int), self.rate + chosen)


COUNTS = CountsPrior(shape=(2, 3, 1), rate=(1.0, 2.0, 1.0))


@pytest.mark.slow
class TestCountsPrior(PriorContract):
    tasks = 2048

    @pytest.fixture
    def prior(self) -> Any:
        return COUNTS

    @pytest.fixture
    def believed(self) -> Any:
        return CountsPrior(shape=(1, 1, 1), rate=(1.0, 1.0, 1.0))


class TestSecondThoughts(SamplingPolicyContract):
    @pytest.fixture
    def policy(self) -> Any:
        return SecondThoughts()


class TestEpsilonGreedy(PolicyContract):
    @pytest.fixture
    def policy(self) -> Any:
        return EpsilonGreedy()


class TestEpsilonGreedyOnCounts(TestEpsilonGreedy):
    def problem(self, order: Any = None) -> Any:
        order = range(3) if order is None else order
        return CountsPrior(
            tuple(COUNTS.shape[i] for i in order), tuple(COUNTS.rate[i] for i in order)
        )


@pytest.mark.slow
def test_they_work_together(seed: int) -> None:
    policies = {
        "thompson": pw.ThompsonSampling(),
        "median": SecondThoughts(),
        "epsilon": EpsilonGreedy(),
        "uniform": pw.Uniform(),
    }
    comparison = pw.compare(COUNTS, policies, horizon=5, tasks=3000, seed=seed)
    assert comparison.runs["median"].engine == "numpy"
    # each learns: the difference from uniform exceeds 5 standard errors, which chance does with
    # probability 3e-7
    for name in ("thompson", "median", "epsilon"):
        gain = comparison.difference(name, "uniform")
        assert gain.mean > 5 * gain.std_error
    alone = pw.simulate(COUNTS, SecondThoughts(), horizon=5, tasks=3000, seed=seed)
    assert alone.mean_reward == comparison.runs["median"].mean_reward
    assert alone.mean_regret is not None


def test_a_policy_that_needs_more_says_what(seed: int) -> None:
    with raises("policy", "needs a belief with mean; CountsBelief lacks"):
        pw.simulate(COUNTS, pw.Greedy(), horizon=2, tasks=2, seed=seed)


def test_own_policy_on_our_prior(seed: int) -> None:
    run = pw.simulate(
        pw.BetaPrior([1, 2], [3, 1]), EpsilonGreedy(), horizon=3, tasks=50, seed=seed, keep=True
    )
    assert run.engine == "numpy"
    assert run.actions.shape == (50, 3)


def test_trying_a_belief_by_hand(seed: int) -> None:
    rng = streams(seed, tasks=4)(1)
    assert COUNTS.belief(4).sample(rng, 2, None).shape == (4, 2, 3)


def test_a_policy_without_a_constant_is_bounded_by_nothing():
    """A stranger's policy need not know of Monte-Carlo constants: it runs, gets the ladder's other
    rungs, and no bound.
    """
    p, q = (
        pw.FinitePrior([[1.0, 0.0], [0.0, 1.0]], [first, 1.0 - first], noise="bernoulli")
        for first in (0.5, 0.6)
    )
    for policy in (EpsilonGreedy(), pw.UniformThen(1, EpsilonGreedy())):
        ladder = pw.sensitivity_ladder(p, q, policy, 3, seed=base_seed(), tasks=500, histories=20)
        assert (ladder.n, ladder.certified) == (None, False)
        assert ladder.left_out[0].startswith(
            f"worst case, posteriors: no bound is known for {type(policy).__name__}"
        )
        with raises("policy", "no bound is known"):
            pw.trajectory_bound(p, q, policy, 3)
    assert (
        pw.sensitivity_ladder(
            p, q, SecondThoughts(), 3, seed=base_seed(), tasks=500, histories=20
        ).n
        == 5
    )
