"""Problems with a hidden state: exact enumeration against recursion by hand, and every inequality
of the theorem on Bayesian POMDPs on random small ones, with constants that are too small as
controls.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hidden_by_hand import ByHand, average_rewards, optimal, shots, trajectories
from raising import raises
from state_by_hand import distance, marginal, tail
from test_finite_pomdp import random_prior

import priorwise as pw
from priorwise.families import FinitePomdpPrior, corridor, tiger
from priorwise.policies.play_arms import PlayArms
from priorwise.sensitivity import (
    BayesOptimalPolicy,
    bayes_optimal,
    exact_evaluation,
    exact_reward_tails,
    exact_rewards,
    exact_trajectory_tv,
    pomdp_reward_bound,
    pomdp_trajectory_bound,
    reward_tails,
    total_variation,
)
from priorwise.sensitivity.exact.chain import ExactChain, exact_chain

TS = pw.ThompsonSampling()


def random_pair(
    generator: np.random.Generator, **fixed: Any
) -> tuple[FinitePomdpPrior, FinitePomdpPrior]:
    """Two priors on the same candidates; some are impossible under one of them."""
    p = random_prior(generator, **fixed)
    probs = generator.dirichlet(np.ones(p.support), size=2)
    if generator.random() < 0.3:
        probs[int(generator.integers(2)), 0] = 0.0
    if generator.random() < 0.5:
        probs[1] = probs[0] + 0.02 * (probs[1] - probs[0])  # close
    probs /= probs.sum(axis=1, keepdims=True)
    return p.replaced(probs=probs[0]), p.replaced(probs=probs[1])


def instances(
    seed: int, count: int, **fixed: Any
) -> list[tuple[FinitePomdpPrior, FinitePomdpPrior]]:
    generator = np.random.default_rng(seed)
    return [random_pair(generator, **fixed) for _ in range(count)]


# Against recursion by hand


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("number", range(6))
def test_everything_is_as_by_hand(number: int, k: int, seed: int) -> None:
    p, q = instances(6 * seed + number, 1, planner="exact")[0]
    horizon = 3 if p.noise == "none" and p.states == 2 else 2
    problem, policy = ByHand.of(p, horizon), pw.KShotThompson(k)
    true, held = p.probs.tolist(), q.probs.tolist()
    laws = [trajectories(problem, true, each, shots(k)) for each in (true, held)]
    exact = exact_evaluation(p, policy, horizon, believed=q)
    found = dict(zip(_paths(exact), exact.probability.tolist(), strict=True))
    by_hand = marginal(laws[1])
    for key, probability in found.items():
        assert probability == pytest.approx(by_hand.get(key, 0.0), abs=1e-12)
    assert sum(found.values()) == pytest.approx(1.0)
    rewards = [sum(sum(path[1::3]) * sum(joint) for path, joint in law.items()) for law in laws]
    chain = exact_chain(p, q, policy, horizon)
    assert [chain.reward, chain.reward_other] == pytest.approx(rewards, abs=1e-11)
    assert exact.mean_reward == pytest.approx(rewards[1], abs=1e-11)
    apart = distance(marginal(laws[0]), marginal(laws[1]))
    assert chain.trajectory_tv == pytest.approx(apart, abs=1e-11)
    tv = exact_trajectory_tv(p, q, policy, horizon)
    own = distance(marginal(laws[0]), marginal(trajectories(problem, held, held, shots(k))))
    assert [tv.value, tv.own_tasks] == pytest.approx([apart, own], abs=1e-11)
    tails = exact_reward_tails(p, q, policy, horizon, centre=0.3)
    for law, mine in zip(laws, (tails.true, tails.believed), strict=True):
        values = average_rewards(problem, true, law, 0.3)
        for level in (0.01, 0.2, 0.7, 1.0):
            assert mine.tail(level).value == pytest.approx(tail(values, level), abs=1e-10)
    assert bayes_optimal(p, horizon).value == pytest.approx(optimal(problem, true), abs=1e-11)


def _paths(exact: Any) -> list[tuple[Any, ...]]:
    columns = (exact.actions, exact.rewards, exact.signals[:, 1:])
    return [
        tuple(part for step in zip(*each, strict=True) for part in step)
        for each in zip(*(column.tolist() for column in columns), strict=True)
    ]


def test_the_tiger_with_unknown_accuracy(seed: int) -> None:
    """Posterior sampling and the Bayes-optimal value by enumeration, against recursion by hand;
    what simulation earns is within 5 standard errors (false alarms 6e-7), and not of the other one.
    """
    prior = tiger([0.7, 0.95], [0.5, 0.5], planner="exact")
    problem = ByHand.of(prior, 4)
    law = trajectories(problem, [0.5, 0.5], [0.5, 0.5], shots(1))
    by_hand = sum(sum(path[1::3]) * sum(joint) for path, joint in law.items())
    sampled, best = exact_rewards(prior, TS, 4), bayes_optimal(prior, 4)
    assert sampled.mean_reward == pytest.approx(by_hand, abs=1e-11)
    assert best.value == pytest.approx(optimal(problem, [0.5, 0.5]), abs=1e-11)
    assert best.value > sampled.mean_reward + 0.1
    own = exact_rewards(prior, BayesOptimalPolicy(), 4).mean_reward
    assert own == pytest.approx(best.value, abs=1e-10)
    for policy, mine, other in ((TS, sampled.mean_reward, best.value),):
        run = pw.simulate(prior, policy, horizon=4, tasks=20_000, seed=seed)
        assert abs(run.mean_reward - mine) < 5 * run.std_error
        assert abs(run.mean_reward - other) > 5 * run.std_error
    # knowing the accuracy is worth something, too
    known = np.mean([prior.plan(4, c).value for c in (0, 1)])
    assert known > best.value + 0.1


def test_wrong_planners_earn_less_in_what_they_plan_for() -> None:
    """One candidate: the exact plan is the Bayes-optimal policy, QMDP is not."""
    for prior in (tiger([0.85]), corridor(["|..G"])):
        best = bayes_optimal(prior, 4).value
        exact, loose = (
            exact_rewards(prior.replaced(planner=each), TS, 4).mean_reward
            for each in ("exact", "qmdp")
        )
        assert exact == pytest.approx(best, abs=1e-11)
        assert prior.plan(4).value == pytest.approx(best, abs=1e-11)
        assert loose < best - 0.01


def test_merging_changes_nothing(seed: int) -> None:
    for p, q in instances(seed, 10):
        whole = exact_evaluation(p, pw.KShotThompson(2), 3, believed=q)
        merged = exact_rewards(p, pw.KShotThompson(2), 3, believed=q)
        np.testing.assert_allclose(merged.by_step, whole.by_step, atol=1e-12)


def test_simulation_agrees(seed: int) -> None:
    """Each of 5 within 5 standard errors of 5,000 tasks (false alarms 3e-6 in all), and for ears
    that are misjudged the reward of another prior is outside of that.
    """
    ears = tiger([0.6, 0.9], [0.95, 0.05]), tiger([0.6, 0.9], [0.05, 0.95])
    for number, (p, q) in enumerate([ears, *instances(seed + 3, 4)]):
        run = pw.simulate(p, TS, horizon=4, tasks=5_000, seed=seed + number, believed=q)
        exact = exact_rewards(p, TS, 4, believed=q).mean_reward
        assert abs(run.mean_reward - exact) < 5 * run.std_error + 1e-9
        if number == 0:
            other = exact_rewards(p, TS, 4).mean_reward
            assert abs(run.mean_reward - other) > 5 * run.std_error


def test_comparisons_and_wrong_beliefs(seed: int) -> None:
    """Sure of the wrong ears: the loss is more than 5 paired standard errors, and within 5 of the
    exact one (6e-7).
    """
    true, wrong = tiger([0.6, 0.9], [0.9, 0.1]), tiger([0.6, 0.9], [0.001, 0.999])
    runs = {"right": (TS, true), "wrong": (TS, wrong)}
    lost = pw.compare(true, runs, horizon=5, tasks=10_000, seed=seed).difference("right", "wrong")
    assert lost.mean > 5 * lost.std_error
    exact = [exact_rewards(true, TS, 5, believed=each).mean_reward for each in (true, wrong)]
    assert abs(lost.mean - (exact[0] - exact[1])) < 5 * lost.std_error


# Inequalities


def check(p: FinitePomdpPrior, q: FinitePomdpPrior, policy: Any, horizon: int) -> ExactChain:
    """Every link of the chain, and parts (a) to (c) of the theorem."""
    n = policy.monte_carlo_n(p.arms)
    chain = exact_chain(p, q, policy, horizon)
    links = chain.links(n)
    assert (np.diff(links) <= 1e-10).all(), links
    near = pomdp_trajectory_bound((p, q), policy, horizon)  # (a)
    assert near.delta == pytest.approx(2 * n * horizon * total_variation(p, q).value)
    assert chain.trajectory_tv <= near.value + 1e-10
    gap = abs(chain.gap)
    assert gap <= pomdp_reward_bound((p, q), policy, horizon).value + 1e-10  # (b)
    for centre in (0.0, 0.5):
        tails = exact_reward_tails(p, q, policy, horizon, centre=centre)
        bound = pomdp_reward_bound((p, q), policy, horizon, tails=tails)  # (c)
        assert bound.kind == "certified"
        assert gap <= bound.value + 1e-10
        for delta in np.minimum(links, 1.0):  # in reward units, at every link
            assert gap <= horizon * delta * tails.tail(delta).value + 1e-10
    low, high = chain.interval
    assert low - 1e-10 <= chain.gap <= high + 1e-10
    assert chain.likelihood_ratio <= chain.stepwise + 1e-10
    return chain


@pytest.mark.parametrize("policy", [TS, pw.KShotThompson(2), pw.PosteriorSampling(2, "sum")])
def test_inequalities_hold_on_random_problems(policy: Any, seed: int) -> None:
    for number, (p, q) in enumerate(instances(seed + 7, 8)):
        check(p, q, policy, 1 + number % 4)


@pytest.mark.slow
def test_inequalities_hold_on_many_random_problems(seed: int) -> None:
    gaps = []
    for number, (p, q) in enumerate(instances(seed + 1, 200)):
        gaps.append(check(p, q, [TS, pw.KShotThompson(3)][number % 2], 1 + number % 4).gap)
    assert max(gaps) > 0.01  # the wrong prior loses here
    assert min(gaps) < -0.001  # and wins there


def blind_or_sharp(eps: float, rounds: int | None = 1) -> tuple[FinitePomdpPrior, FinitePomdpPrior]:
    """Two candidates that rewards hardly tell apart, of which p deems one certain: alg(q) parts
    with probability ``1 - (1 - eps)^H``.
    """
    same, dark = np.full((2, 2, 2), 0.5), np.ones((2, 2, 1))
    rewards = 0.5 + 1e-7 * np.array([np.tile([1, 0], (2, 1)), np.tile([0, 2], (2, 1))])
    p = FinitePomdpPrior(same, dark, rewards, [1.0, 0.0], "bernoulli", round_steps=rounds)
    return p, p.replaced(probs=[1.0 - eps, eps])


def fork(eps: float) -> tuple[FinitePomdpPrior, FinitePomdpPrior]:
    """A wrong first action leads to a state without rewards, which is never left."""
    moves = np.zeros((2, 3, 2, 3))
    for candidate in (0, 1):
        moves[candidate, 0, candidate, 1] = moves[candidate, 0, 1 - candidate, 2] = 1.0
        moves[candidate, 1, :, 1] = moves[candidate, 2, :, 2] = 1.0
    rewards = [[0, 0], [1, 1], [0, 0]]
    p = FinitePomdpPrior(moves, np.ones((3, 2, 1)), rewards, [1.0, 0.0], start=0)
    return p, p.replaced(probs=[1.0 - eps, eps])


def test_constants_too_small_are_caught() -> None:
    """Half of ``2 n H eps`` less a tenth, half of the range of rewards, and one draw too few."""
    p, q = blind_or_sharp(0.005)
    chain = check(p, q, TS, 4)
    bound = pomdp_trajectory_bound((p, q), TS, 4).delta
    assert chain.trajectory_tv == pytest.approx(1 - 0.995**4, rel=1e-4)
    assert chain.trajectory_tv > 0.9 * bound / 2
    shots_3 = check(p, q, pw.KShotThompson(3), 4)
    assert (np.diff(shots_3.links(2)) > 1e-3).any()
    p, q = fork(0.05)
    chain = check(p, q, TS, 4)
    assert chain.gap == pytest.approx(3 * chain.trajectory_tv)
    assert chain.gap > 0.9 * chain.interval[1]
    assert chain.gap > 0.5 * 4 * chain.trajectory_tv  # B = 1, of which half


def test_a_state_that_is_shown_is_an_mdp(seed: int) -> None:
    """Observations that tell the state, and a first state that is known: all numbers are those of
    the finite MDP.
    """
    generator = np.random.default_rng(seed)
    for noise in ("none", "bernoulli"):
        moves = generator.dirichlet(np.ones(2), size=(3, 2, 2))
        rewards, probs = generator.random((3, 2, 2)), generator.dirichlet(np.ones(3), size=2)
        shown = np.repeat(np.eye(2)[:, None], 2, axis=1)
        hidden = [FinitePomdpPrior(moves, shown, rewards, each, noise, start=0) for each in probs]
        mdp = [pw.families.FiniteMdpPrior(moves, rewards, each, noise, start=0) for each in probs]
        one, two = (exact_chain(*pair, TS, 4) for pair in (hidden, mdp))
        np.testing.assert_allclose(one.links(1), two.links(1), atol=1e-12)
        assert one.gap == pytest.approx(two.gap, abs=1e-12)
        assert bayes_optimal(hidden[0], 4).value == pytest.approx(bayes_optimal(mdp[0], 4).value)
        loose = [each.replaced(planner="qmdp") for each in hidden]
        assert exact_chain(*loose, TS, 4).gap == pytest.approx(two.gap, abs=1e-12)


def test_no_policy_beats_the_optimal_value(seed: int) -> None:
    for number, (p, _) in enumerate(instances(seed, 12)):
        horizon = 1 + number % 4
        value = bayes_optimal(p, horizon).value
        for policy in (TS, pw.KShotThompson(3), pw.Greedy(), pw.BayesUCB(), pw.Uniform()):
            assert exact_rewards(p, policy, horizon).mean_reward <= value + 1e-10
        own = exact_rewards(p, BayesOptimalPolicy(), horizon).mean_reward
        assert own == pytest.approx(value, abs=1e-10)


def test_problems_that_are_too_large_are_refused(seed: int) -> None:
    p, q = instances(seed, 1, noise="bernoulli", round_steps=None)[0]
    with raises("horizon", "must be shorter"):
        bayes_optimal(p, 9, most=50)
    with raises("horizon", "must be shorter"):
        exact_evaluation(p, TS, 9, most=50)
    with raises("q", "round_steps"):
        exact_trajectory_tv(p, q.replaced(round_steps=7), TS, 2)


# The ladder, and tails that are measured


def test_the_exact_ladder(seed: int) -> None:
    for p, q in instances(seed, 3):
        ladder = pw.sensitivity_ladder(p, q, TS, 3, seed=seed)
        chain = exact_chain(p, q, TS, 3)
        assert ladder.exact
        assert ladder.in_order, ladder
        names = ["worst case", "posteriors", "actions", "coupled trajectories", "trajectories"]
        assert [ladder[name].delta for name in names] == pytest.approx(chain.links(1).tolist())
        assert ladder.gap.mean == pytest.approx(-chain.gap)


def test_the_simulated_ladder_agrees_with_the_exact_one(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Every rung within 5 standard errors: false alarms below 1e-5."""
    from priorwise.sensitivity.ladder import ladder as ladders

    p, q = tiger([0.6, 0.8, 0.95], [0.2, 0.4, 0.4]), tiger([0.6, 0.8, 0.95], [0.4, 0.4, 0.2])
    exact = pw.sensitivity_ladder(p, q, TS, 4, seed=seed)
    monkeypatch.setattr(ladders, "MOST_EXACT", 3)
    sampled = pw.sensitivity_ladder(p, q, TS, 4, seed=seed, tasks=5_000, histories=500)
    assert exact.exact
    assert not sampled.exact
    for name in ("posteriors", "actions", "coupled trajectories", "likelihood ratio"):
        rung = sampled[name]
        assert abs(rung.delta - exact[name].delta) < 5 * rung.std_error + 1e-9
    assert abs(sampled.gap.mean - exact.gap.mean) < 5 * sampled.gap.std_error + 1e-9


def test_measured_tails_are_of_rewards_given_the_state(seed: int) -> None:
    """In simulated runs a reward is averaged given the hidden state, as the theorem has it; the
    mean size is within 5 standard errors of the one by hand, over all paths of states (6e-7).
    """
    p = tiger([0.7, 0.9])
    tails = reward_tails(p, p, TS, horizon=1, tasks=2000, seed=seed)
    assert tails.rewards == "conditional"
    assert tails.true.tail(1.0).value == pytest.approx(1.0)  # everybody listens
    always = PlayArms((1,))
    tails = reward_tails(p, p, always, horizon=1, tasks=2000, seed=seed)
    found = tails.true.tail(1.0)
    assert abs(found.value - 55.0) < 5 * 45.0 / np.sqrt(2000)
    # given the history alone, opening a door at first earns -45 on average
    law = exact_reward_tails(p, p, always, 1)
    assert law.true.tail(1.0).value == pytest.approx(45.0)
