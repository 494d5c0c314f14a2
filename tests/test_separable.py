"""Taking tasks out of a belief, and joining beliefs; the contracts check every family's draws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from raising import raises
from registry import PRIORS

import priorwise as pw
from priorwise.core.protocols import Seen, SeparableBelief
from priorwise.core.seen import RealActions
from priorwise.core.streams import Purpose, Streams
from priorwise.families.gaussian.running_mean import RunningMeanBelief
from priorwise.families.normal.hyper import HierarchicalBelief
from priorwise.testing import base_seed
from priorwise.testing.playing import play

BETA = pw.BetaPrior([1.0, 2.0], [3.0, 1.0])


def test_take_and_join_by_hand() -> None:
    seen = Seen(1, 3, 2)
    belief = BETA.belief(3).update(seen, np.array([0, 1, 0]), np.array([1.0, 0.0, 0.0]), None)
    np.testing.assert_array_equal(belief.take([2, 0]).a, [[1, 2], [2, 2]])
    np.testing.assert_array_equal(belief.take([2, 0]).b, [[4, 1], [3, 1]])
    np.testing.assert_array_equal(belief.take(np.array([True, False, True])).a, [[2, 2], [1, 2]])
    np.testing.assert_array_equal(belief.take(slice(1, 2)).b, [[3, 2]])
    both = belief.take([1]).join(BETA.belief(1), belief.take([0]))
    np.testing.assert_array_equal(both.a, [[1, 2], [1, 2], [2, 2]])
    assert belief.take([]).tasks == 0


def test_beliefs_that_couple_tasks_have_neither() -> None:
    assert issubclass(type(BETA.belief(1)), SeparableBelief)
    for coupled in (HierarchicalBelief, RunningMeanBelief):
        assert not issubclass(coupled, SeparableBelief)


def test_misuse_is_refused() -> None:
    belief, other = BETA.belief(3), pw.GaussianPrior([0, 0], np.eye(2)).belief(3)
    for index, error in (([3], IndexError), ([-1], IndexError), ([0.5], TypeError)):
        with pytest.raises(error, match="index must"):
            belief.take(index)
    with raises("index", "must be a row of task numbers"):
        belief.take([True, False])
    with raises("others", "BetaBelief"):
        belief.join(other)  # type: ignore[arg-type]
    shifted = pw.GaussianPrior([0, 1], np.eye(2)).belief(1)
    with raises("beliefs", "must share their prior"):
        other.join(shifted)
    assert other.join(pw.GaussianPrior([0, 0], np.eye(2)).belief(1)).tasks == 4


@pytest.mark.parametrize("name", ["gaussian", "beta", "finite-bernoulli", "linear-sphere"])
def test_every_family_serves_tasks_at_different_steps(name: str, seed: int) -> None:
    """A batch at mixed steps does what each task does alone; control: at one step it does not."""
    prior = PRIORS[name][0]
    played = play(prior, tasks=40, pulls=2, seed=seed)
    belief: Any = played.belief
    steps = 1 + np.arange(40) % 7
    seen = replace(played.seen, step=steps, horizon=9)
    streams = Streams(seed, np.arange(40, dtype=np.uint64))
    for policy in (pw.BayesUCB(), pw.ThompsonSampling()):
        together = policy.act(belief, seen, streams.at(Purpose.POLICY, steps))
        for task in range(40):
            alone, own = replace(seen.take([task]), step=int(steps[task])), np.array([task])
            rng = Streams(seed, own.astype(np.uint64)).at(Purpose.POLICY, int(steps[task]))
            assert policy.act(belief.take(own), alone, rng)[0] == together[task]
    at_one_step = policy.act(belief, replace(seen, step=1), streams.at(Purpose.POLICY, 1))
    assert (at_one_step != together).any()


def test_steps_that_do_not_fit_are_refused(seed: int) -> None:
    with raises("step", "the horizon, in each"):
        Seen(np.array([1, 4]), 3, 2)
    with raises("step", "must be an integer or one for"):
        Seen(np.array([1.0, 2.0]), 3, 2)
    with raises("step", "must be an integer or one for"):
        Seen(np.array([1, 2]), np.array([3, 3, 3]), 2)
    rng = Streams(seed, np.arange(3, dtype=np.uint64)).at(Purpose.POLICY, 1)
    with raises("seen.step", "has 2 tasks, but there are 3"):
        pw.ThompsonSampling().act(BETA.belief(3), Seen(np.array([1, 2]), 3, 2), rng)


def test_the_law_of_a_rule_that_reads_the_step_at_different_steps() -> None:
    def rule(values: Any, seen: Seen) -> Any:
        weights = np.exp(values.sum(axis=1) * np.reshape(seen.step, (-1, 1)))
        return weights / weights.sum(axis=1, keepdims=True)

    policy = pw.PosteriorSampling(2, rule)
    prior = pw.FinitePrior([[0.9, 0.1], [0.2, 0.6], [0.0, 1.0]], [0.5, 0.3, 0.2])
    law = policy.probabilities(prior.belief(3), Seen(np.array([1, 5, 2]), 5, 2))
    assert law is not None
    for task, step in enumerate((1, 5, 2)):
        alone = policy.probabilities(prior.belief(1), Seen(step, 5, 2))
        assert alone is not None
        np.testing.assert_allclose(law.probs[task], alone.probs[0], rtol=1e-12)
    assert abs(law.probs[0, 0] - law.probs[1, 0]) > 1e-3  # control: steps matter


def test_bounds_of_real_actions_and_who_believed_are_checked() -> None:
    for wrong in ({"low": 1.0, "high": 0.0}, {"low": np.nan}):
        with raises("low", "must not exceed high"):
            RealActions(**wrong)
    for size in (0, 1.5, "a"):
        with raises("size", "must be"):
            RealActions(size=size)  # type: ignore[arg-type]
    run = pw.simulate(
        BETA, pw.Greedy(), horizon=2, tasks=2, seed=base_seed(), keep=True, engine="numpy"
    )
    for wrong_prior in (None, pw.BetaPrior):
        with raises("believed", "must be a prior"):
            run.belief(wrong_prior)


def test_a_belief_that_cannot_be_taken_apart_says_so_at_different_steps(seed: int) -> None:
    mixture = pw.MixturePrior([BETA, BETA], [0.5, 0.5])
    rng = Streams(seed, np.arange(2, dtype=np.uint64)).at(Purpose.POLICY, 1)
    seen = Seen(np.array([1, 2]), 2, BETA.arms)
    with raises("belief", "needs take for tasks at different"):
        pw.UniformThen(1, pw.ThompsonSampling()).act(mixture.belief(2), seen, rng)
