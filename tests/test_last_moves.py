"""Rounds that show where their last move led, against recursion by hand."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import hidden_by_hand
import numpy as np
import pytest
import state_by_hand
import test_hidden_state
import test_state_exact
from raising import raises
from registry import STATE_PRIORS
from state_by_hand import distance, marginal
from test_general_decisions import ahead_in_mdps, ahead_in_pomdps

import priorwise as pw
from priorwise.core.protocols import Seen
from priorwise.core.streams import Purpose, Streams, streams
from priorwise.families import FiniteMdpPrior, FinitePomdpPrior
from priorwise.sensitivity import bayes_optimal, exact_rewards, exact_trajectory_tv
from priorwise.simulate.steps import steps

TS = pw.ThompsonSampling()
SHOWN: dict[str, Any] = {"last_move": "shown"}


class ShownByHand(state_by_hand.ByHand):
    """The same, with signals ``state + states (1 + arrived)`` at the start of later rounds."""

    def shown(self, candidate: int, state: int, arm: int, step: int) -> dict[Any, float]:
        plain = super().shown(candidate, state % self.states, arm, step)
        if not self.resets(step):
            return plain
        out: dict[Any, float] = defaultdict(float)
        for arrived, p in enumerate(self.moves[candidate][state % self.states][arm]):
            for (r, s), q in plain.items():
                out[r, s + self.states * (1 + arrived)] += p * q
        return {key: p for key, p in out.items() if p > 0.0}

    def q(self, candidate: int, step: int, state: int) -> tuple[float, ...]:
        return super().q(candidate, step, state % self.states)

    def learned(
        self, probs: list[float], weights: list[float], state: int, arm: int, step: int, seen: Any
    ) -> list[float]:
        new = [w * self.shown(c, state, arm, step).get(seen, 0.0) for c, w in enumerate(weights)]
        return [w / sum(new) for w in new] if sum(new) > 0.0 else list(probs)


class HiddenShownByHand(hidden_by_hand.ByHand):
    """The same with a hidden state: the last step of a round shows an observation."""

    def after(self, joint: Any, arm: int, step: int) -> dict[Any, Any]:
        if not self.resets(step):
            return super().after(joint, arm, step)
        out: dict[Any, Any] = defaultdict(lambda: [[0.0] * len(row) for row in joint])
        for c, row in enumerate(joint):
            for s, weight in enumerate(row):
                for r, p in self.rewards(c, s, arm).items():
                    for then, m in enumerate(self.moves[c][s][arm]):
                        for y, o in enumerate(self.sights[c][then][arm]):
                            for first, q in enumerate(self.starts[c]):
                                out[r, y][c][first] += weight * p * m * o * q
        return {shown: new for shown, new in out.items() if hidden_by_hand.total(new) > 0.0}


POLICIES = [
    (TS, state_by_hand.shots(1), hidden_by_hand.shots(1)),
    (pw.RecedingHorizon(1, 2, 0.5), ahead_in_mdps(1, 2, 0.5), ahead_in_pomdps(1, 2, 0.5)),
]


@pytest.mark.parametrize("which", [0, 1], ids=["Thompson", "2-RHC"])
@pytest.mark.parametrize("number", range(5))
def test_finite_mdps_are_as_by_hand(number: int, which: int, seed: int) -> None:
    p, q = test_state_exact.instances(5 * seed + number, 1, round_steps=1 + number % 2, **SHOWN)[0]
    policy, rule, _ = POLICIES[which]
    horizon = 3 if p.support * p.states < 6 else 2
    problem = ShownByHand.of(p, horizon)
    true, held = p.probs.tolist(), q.probs.tolist()
    laws = [state_by_hand.trajectories(problem, true, each, rule) for each in (true, held)]
    wants = [state_by_hand.reward(law) for law in laws]
    found = [exact_rewards(p, policy, horizon, believed=each).mean_reward for each in (p, q)]
    assert found == pytest.approx(wants, abs=1e-10)
    apart = distance(marginal(laws[0]), marginal(laws[1]))
    assert exact_trajectory_tv(p, q, policy, horizon).value == pytest.approx(apart, abs=1e-10)
    best = state_by_hand.optimal(ShownByHand.of(p, 3), true)
    assert bayes_optimal(p, 3).value == pytest.approx(best, abs=1e-10)


@pytest.mark.parametrize("which", [0, 1], ids=["Thompson", "2-RHC"])
@pytest.mark.parametrize("number", range(4))
def test_finite_pomdps_are_as_by_hand(number: int, which: int, seed: int) -> None:
    fixed = {"planner": "exact", "round_steps": 1 + number % 2, **SHOWN}
    p, q = test_hidden_state.instances(4 * seed + number, 1, **fixed)[0]
    policy, _, rule = POLICIES[which]
    problem = HiddenShownByHand.of(p, 2)
    true, held = p.probs.tolist(), q.probs.tolist()
    laws = [hidden_by_hand.trajectories(problem, true, each, rule) for each in (true, held)]
    wants = [sum(sum(path[1::3]) * sum(each) for path, each in law.items()) for law in laws]
    found = [exact_rewards(p, policy, 2, believed=each).mean_reward for each in (p, q)]
    assert found == pytest.approx(wants, abs=1e-10)
    apart = distance(marginal(laws[0]), marginal(laws[1]))
    assert exact_trajectory_tv(p, q, policy, 2).value == pytest.approx(apart, abs=1e-10)
    best = hidden_by_hand.optimal(HiddenShownByHand.of(p, 3), true)
    assert bayes_optimal(p, 3).value == pytest.approx(best, abs=1e-10)


FORK = FiniteMdpPrior(
    [[[[0.9, 0.1], [0.5, 0.5]], [[0.9, 0.1], [0.5, 0.5]]],
     [[[0.1, 0.9], [0.5, 0.5]], [[0.1, 0.9], [0.5, 0.5]]]],
    [[[0.3, 0.6], [0.0, 0.0]], [[0.7, 0.5], [0.0, 0.0]]],
    [0.5, 0.5],
    noise="bernoulli",
    round_steps=1,
)  # fmt: skip
SIGHT = FinitePomdpPrior(
    np.full((2, 2, 2), 0.5),
    [[[[0.9, 0.1]] * 2] * 2, [[[0.1, 0.9]] * 2] * 2],
    [[[0.3, 0.6]] * 2, [[0.7, 0.5]] * 2],
    [0.5, 0.5],
    noise="bernoulli",
    round_steps=1,
)


@pytest.mark.parametrize("prior", [FORK, SIGHT], ids=["MDP", "POMDP"])
def test_what_is_shown_is_worth_something(prior: Any, seed: int) -> None:
    """Simulation is within 5 standard errors of enumeration (false alarms 6e-7), and further from
    that with the last move hidden (control).
    """
    shown = prior.replaced(last_move="shown")
    exact = [exact_rewards(each, TS, 6).mean_reward for each in (prior, shown)]
    run = pw.simulate(shown, TS, horizon=6, tasks=60_000, seed=seed)
    assert abs(run.mean_reward - exact[1]) < 5.0 * run.std_error
    assert exact[1] - exact[0] > 10.0 * run.std_error
    with raises("prior", "law of contexts"):
        pw.simulate(shown, TS, believed=prior, horizon=2, tasks=2, seed=seed)
    assert pw.load_prior(shown.to_json()) == shown


@pytest.mark.parametrize("name", ["finite", *STATE_PRIORS])
def test_statistics_count_the_last_moves(name: str, seed: int) -> None:
    """Statistics of a kept run make the belief of the updates before its last step, with the last
    reward added; with the last moves hidden they count fewer moves (control).
    """
    prior = FORK.replaced(start=[0.5, 0.5]) if name == "finite" else STATE_PRIORS[name][0]
    tasks, horizon, counted = 30, 9, {}
    for last_move in ("hidden", "shown"):
        each = prior.replaced(last_move=last_move)
        run = pw.simulate(each, pw.Uniform(), horizon=horizon, tasks=tasks, seed=seed, keep=True)
        kind = pw.families.MdpStatistics
        counted[last_move] = kind.of(run, **kind.known(each))
    ends = 0 if prior.round_steps is None else (horizon - 1) // prior.round_steps
    np.testing.assert_array_equal(counted["shown"].moves.sum(axis=(1, 2, 3)), horizon - 1)
    np.testing.assert_array_equal(counted["hidden"].moves.sum(axis=(1, 2, 3)), horizon - 1 - ends)
    numbers = Streams(seed, np.arange(tasks, dtype=np.uint64))
    world, belief = each.sample(numbers.at(Purpose.ENVIRONMENT, 0), tasks), each.belief(tasks)
    *_, last = steps(world, belief, pw.Uniform(), numbers, horizon=horizon, arms=each.arms)
    given = each.belief_given(run)
    if name != "finite":
        np.testing.assert_allclose(given.alpha, last.belief.alpha)
        return
    means = each.rewards[:, each.contexts.now(last.seen.signal), last.actions].T
    joint = last.belief.probabilities() * np.where(last.rewards[:, None] > 0.5, means, 1.0 - means)
    want = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(given.probabilities(), want, atol=1e-12)


def test_wrong_signals_are_named() -> None:
    shown, tasks = FORK.replaced(**SHOWN, round_steps=2), 3
    belief, played = shown.belief(tasks), (np.zeros(tasks, dtype=np.int64), np.ones(tasks))
    state = np.zeros(tasks, dtype=np.int64)
    for step, after in ((1, state + 2), (2, state), (2, state + 6)):
        with raises("after", "must be"):
            belief.update(Seen(step, 4, 2, state), *played, after)
    with raises("last_move", "must be one of"):
        FORK.replaced(last_move="seen")
    with raises("last_move", "must be one of"):
        SIGHT.replaced(last_move=True)
    silent = SIGHT.replaced(**SHOWN).belief(tasks)
    with raises("after", "must be an observation"):
        silent.update(Seen(1, 4, 2, state - 1), *played, state - 1)


def test_priors_without_rounds_do_not_mind(seed: int) -> None:
    prior = STATE_PRIORS["mdp-one-round"][0]
    options: Any = {"horizon": 6, "tasks": 40, "seed": seed, "keep": True, "engine": "numpy"}
    runs = [pw.simulate(each, TS, **options) for each in (prior, prior.replaced(**SHOWN))]
    np.testing.assert_array_equal(runs[0].actions, runs[1].actions)
    belief, seen = prior.belief(2), Seen(1, 6, 2, np.array([0, 2]))
    assert belief.sample(streams(seed, 2)(1), 3, seen).shape == (2, 3, 2)
