"""Exploration: what is pulled when, in both engines, and which episodes play what."""

from __future__ import annotations

import numpy as np
import pytest
from raising import raises

import priorwise as pw
from priorwise.meta.exploration import OneArmBlocks, PairedArms, explored, segments
from priorwise.policies.play_arms import PlayArms
from priorwise.policies.uniform_then import UniformThen
from priorwise.testing import PolicyContract
from priorwise.testing.laws import uniform_p_value

PRIOR = pw.GaussianPrior([0.5, 0.0, -0.2], 0.1 * np.eye(3) + 0.9)
FALSE_ALARM = 1e-4


class TestUniformThenThompson(PolicyContract):
    @pytest.fixture
    def policy(self):
        return UniformThen(2, pw.ThompsonSampling())


class TestUniformThenNumpyOnly(PolicyContract):
    @pytest.fixture
    def policy(self):
        return UniformThen(1, pw.BayesUCB())


def test_uniform_then_is_uniform_then_the_policy(seed):
    """The first rounds are uniform's, those after see the belief they left; false alarms with
    probability 1e-4.
    """
    run = pw.simulate(
        PRIOR, UniformThen(2, pw.Greedy()), horizon=4, tasks=4000, seed=seed, keep=True
    )
    uniform = pw.simulate(PRIOR, pw.Uniform(), horizon=4, tasks=4000, seed=seed, keep=True)
    np.testing.assert_array_equal(run.actions[:, :2], uniform.actions[:, :2])
    assert uniform_p_value(run.actions[:, 0], 3) > FALSE_ALARM
    assert uniform_p_value(run.actions[:, 2], 3) < FALSE_ALARM  # the control: greedy is not
    plain = pw.simulate(PRIOR, pw.Greedy(), horizon=4, tasks=4000, seed=seed, keep=True)
    everything = pw.simulate(
        PRIOR, UniformThen(0, pw.Greedy()), horizon=4, tasks=4000, seed=seed, keep=True
    )
    np.testing.assert_array_equal(everything.actions, plain.actions)


@pytest.mark.parametrize(
    "policy",
    [
        PlayArms((2,)),
        PlayArms((0, 2), pw.ThompsonSampling()),
        UniformThen(1, PlayArms((1, 2), pw.KnowledgeGradient(2, 2))),
        UniformThen(2, UniformThen(3, pw.ThompsonSampling())),
    ],
    ids=["one arm", "two arms then", "nested", "twice"],
)
def test_compiled_runs_equal_numpy_runs(policy, seed):
    runs = [
        pw.simulate(PRIOR, policy, horizon=5, tasks=300, seed=seed, keep=True, engine=e)
        for e in ("compiled", "numpy")
    ]
    np.testing.assert_array_equal(runs[0].actions, runs[1].actions)


def test_play_arms_plays_them(seed):
    run = pw.simulate(PRIOR, PlayArms((0, 2)), horizon=4, tasks=5, seed=seed, keep=True)
    np.testing.assert_array_equal(run.actions, np.tile([0, 2, 2, 2], (5, 1)))
    free = pw.simulate(
        PRIOR,
        PlayArms((1,)),
        horizon=2,
        tasks=50,
        seed=seed,
        keep=True,
        available=np.array([True, False, True]),
    )
    assert set(np.unique(free.actions)) == {0, 2}
    with raises("arms", "must be among 0..2"):
        pw.simulate(PRIOR, PlayArms((3,)), horizon=2, tasks=5, seed=seed)


def test_blocks_of_one_arm(seed):
    plan = segments(OneArmBlocks(3), 8, seed=seed)
    assert [(policy.arms, number) for policy, number in plan] == [((0,), 3), ((1,), 3), ((2,), 2)]
    plan = segments(OneArmBlocks(2, rounds=3, then=pw.Uniform()), 4, seed=seed)
    assert [(policy.arms, policy.then) for policy, _ in plan] == [
        ((0, 0, 0), pw.Uniform()),
        ((1, 1, 1), pw.Uniform()),
    ]
    assert segments(OneArmBlocks(5), 2, seed=seed) == [(PlayArms((0,)), 1), (PlayArms((1,)), 1)]
    with raises("rounds", "belong together"):
        OneArmBlocks(2, rounds=3)


def test_pairs_of_arms_come_twice_and_uniformly(seed):
    """Each pair of arms with probability 1/A^2, in an even number of episodes; false alarms with
    probability 1e-4.
    """
    plan = segments(PairedArms(3), 9001, seed=seed)
    assert sum(number for _, number in plan) == 9001
    assert [number % 2 for _, number in plan] == [0] * (len(plan) - 1) + [1]
    drawn = np.concatenate(
        [np.full(number // 2, 3 * policy.arms[0] + policy.arms[1]) for policy, number in plan]
    )
    assert uniform_p_value(drawn, 9) > FALSE_ALARM
    run = explored(PRIOR, PairedArms(3), 40, 2, seed=seed)
    assert run.actions.shape == (40, 2)
    np.testing.assert_array_equal(run.actions[::2], run.actions[1::2])


def test_pairs_of_arms_are_drawn_anew_in_every_replicate(seed):
    learner = pw.ExploreThenCommit(20, pw.GaussianMoments("difference"), PairedArms(3))
    options = {"episodes": 21, "replicates": 3, "horizon": 2, "jobs": 1, "keep": True}
    run = pw.simulate_meta(PRIOR, learner, seed=seed, **options)
    played = {actions[:20].tobytes() for actions in run.actions}
    assert len(played) == 3
    again = pw.simulate_meta(PRIOR, learner, seed=seed + 1, **options)
    assert not played & {actions[:20].tobytes() for actions in again.actions}
    np.testing.assert_array_equal(run.actions[:, :20:2], run.actions[:, 1:20:2])


def test_a_policy_is_an_exploration_and_other_things_are_not(seed):
    assert segments(pw.Uniform(), 7, seed=seed) == [(pw.Uniform(), 7)]
    assert segments(pw.Uniform(), 0, seed=seed) == []
    with raises("exploration", "must be a policy or have segments"):
        segments(3, 7, seed=seed)

    class Short:
        def segments(self, episodes, *, seed):
            return [(pw.Uniform(), episodes - 1)]

    with raises("exploration", "add up to 7"):
        segments(Short(), 7, seed=seed)


def test_bad_arguments():
    with raises("rounds", "must be at least 0"):
        UniformThen(-1, pw.Uniform())
    with raises("arms", "must be a tuple"):
        PlayArms(())


def test_a_run_is_slow_for_the_reason_of_the_policy_after() -> None:
    slow = pw.TopTwoThompson()
    for policy in (UniformThen(1, slow), PlayArms((0,), slow)):
        assert policy.slow_because == slow.slow_because
        assert policy.draws_per_pull(3) == slow.draws_per_pull(3)
        assert policy.drawn_at_once == slow.drawn_at_once
    assert UniformThen(1, pw.ThompsonSampling()).slow_because == PlayArms((0,)).slow_because == ""
