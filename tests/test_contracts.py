"""The contracts of ``priorwise.testing`` over everything in the package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from registry import POLICIES, PRIORS, SAMPLING_POLICIES, STATE_PRIORS, VALUES

import priorwise as pw
from priorwise.core.serial import Serializable
from priorwise.fitting.fits import PriorFit, Uncertainty
from priorwise.policies import RoundSampling
from priorwise.testing import (
    JsonContract,
    MemoryPolicyContract,
    PolicyContract,
    PriorContract,
    SamplingPolicyContract,
    calibration,
)
from priorwise.testing.calibration import Forgetful

NOISELESS = ["finite"]
NOISY = [name for name in PRIORS if name not in NOISELESS]


class TestPriors(PriorContract):
    @pytest.fixture(params=NOISY)
    def pair(self, request: Any) -> Any:
        return PRIORS[request.param]

    @pytest.fixture
    def prior(self, pair: Any) -> Any:
        return pair[0]

    @pytest.fixture
    def believed(self, pair: Any) -> Any:
        return pair[1]


class TestNoiselessPriors(TestPriors):
    # Without noise, counting an observation twice changes nothing, and the third pull leaves little
    # to forget: Forgetful has p < 1e-45 after 2 pulls in the worst of 12 seeds, but p = 0.05 after
    # 3.
    wrong_beliefs = (Forgetful,)
    pulls = 2

    @pytest.fixture(params=NOISELESS)
    def pair(self, request: Any) -> Any:
        return PRIORS[request.param]


class TestPriorsWithAState(TestPriors):
    @pytest.fixture(params=STATE_PRIORS)
    def pair(self, request: Any) -> Any:
        return STATE_PRIORS[request.param]


class TestJson(JsonContract):
    @pytest.fixture(params=VALUES)
    def value(self, request: Any) -> Any:
        return VALUES[request.param]


class TestSamplingPolicies(SamplingPolicyContract):
    @pytest.fixture(params=SAMPLING_POLICIES)
    def policy(self, request: Any) -> Any:
        return SAMPLING_POLICIES[request.param]


@dataclass(frozen=True, eq=False)
class Counts:
    """A belief that remembers: pulls and reward sums, (task, arm)."""

    pulls: Any
    sums: Any

    def update(self, seen: Any, actions: Any, rewards: Any, after: Any) -> Counts:
        chosen = np.arange(self.pulls.shape[1]) == actions[:, None]
        return Counts(self.pulls + chosen, self.sums + chosen * rewards[:, None])


@dataclass(frozen=True)
class Counting:
    """Starts it."""

    arms: int

    def sample(self, rng: Any, tasks: int) -> Any:
        raise TypeError("held, never sampled from")

    def belief(self, tasks: int) -> Any:
        return Counts(np.zeros((tasks, self.arms)), np.zeros((tasks, self.arms)))


@dataclass(frozen=True)
class UCB1:
    def act(self, belief: Any, seen: Any, rng: Any) -> Any:
        pulls = np.maximum(belief.pulls, 1.0)
        scores = belief.sums / pulls + np.sqrt(2.0 * np.log(seen.step) / pulls)
        return pw.core.pick(seen.masked(np.where(belief.pulls == 0.0, 1e9, scores)), rng.uniform())


class TestPoliciesWithMemory(PolicyContract):
    @pytest.fixture
    def policy(self) -> Any:
        return UCB1()

    def believed(self, prior: Any) -> Any:
        return Counting(prior.arms)


class TestPolicies(PolicyContract):
    @pytest.fixture(params=POLICIES)
    def policy(self, request: Any) -> Any:
        return POLICIES[request.param]


class TestKeptDraws(MemoryPolicyContract):
    @pytest.fixture(params=[1, 3])
    def policy(self, request: Any) -> Any:
        return RoundSampling(request.param, "sum", steps=2)

    def problem(self) -> Any:
        return STATE_PRIORS["mdp"][0]


def test_the_registry_holds_every_family() -> None:
    values = {
        name: cls
        for name, cls in Serializable._families.items()
        if not issubclass(cls, (PriorFit, Uncertainty))
    }
    ours = {name for name, cls in values.items() if cls.__module__.startswith("priorwise.")}
    assert ours == {type(value).family for value in VALUES.values()}


def test_the_registry_holds_every_policy() -> None:
    # the Bayes-optimal policy is for small finite and Beta problems; its contract runs with their
    # tests
    public = {name for name in pw.__all__ if hasattr(getattr(pw, name), "act")} - {
        "SamplingPolicy",
        "BayesOptimalPolicy",
    }
    known = {type(policy).__name__ for policy in (SAMPLING_POLICIES | POLICIES).values()}
    assert public == known - {"EnvironmentSampling"}  # which stands in pw.policies


@pytest.mark.parametrize("change", ["mean", "cov", "noise_var"])
def test_calibration_rejects_another_prior(change: str, seed: int) -> None:
    """The contract sees errors in every parameter: tasks of one prior, the belief of another."""
    fields: dict[str, Any] = {"mean": np.zeros(3), "cov": 0.5 + 0.5 * np.eye(3), "noise_var": 1.0}
    other = {"mean": np.full(3, 0.3), "cov": np.eye(3), "noise_var": 2.0}
    true, held = pw.GaussianPrior(**fields), pw.GaussianPrior(**fields | {change: other[change]})
    alarm, tasks = PriorContract.false_alarm, 4096
    assert calibration(true, tasks=tasks, pulls=4, seed=seed) > alarm
    assert (
        calibration(true, tasks=tasks, pulls=4, seed=seed, wrap=lambda belief: held.belief(tasks))
        < alarm
    )
