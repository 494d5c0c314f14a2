"""Problems with a state: exact enumeration against recursion by hand, and every inequality of the
theorem on Bayesian POMDPs on random small ones, with constants that are too small as controls.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from raising import raises
from state_by_hand import (
    ByHand,
    average_rewards,
    distance,
    kept_trajectories,
    marginal,
    optimal,
    reward,
    shots,
    tail,
    trajectories,
)

import priorwise as pw
from priorwise.families import FiniteMdpPrior
from priorwise.sensitivity import (
    BayesOptimalPolicy,
    bayes_optimal,
    exact_evaluation,
    exact_reward_tails,
    exact_rewards,
    exact_trajectory_tv,
    pomdp_reward_bound,
    pomdp_trajectory_bound,
    total_variation,
    trajectory_bound,
)
from priorwise.sensitivity.exact.chain import ExactChain, exact_chain
from priorwise.sensitivity.ladder import ladder as ladders

TS = pw.ThompsonSampling()
STAY, SWAP = np.eye(2), 1.0 - np.eye(2)


def random_pair(
    generator: np.random.Generator, **fixed: Any
) -> tuple[FiniteMdpPrior, FiniteMdpPrior]:
    """Two priors on the same 2 or 3 candidates of 2 or 3 states and 2 actions; some moves are
    impossible, some candidates too.
    """
    candidates, states = generator.integers(2, 4, size=2)
    shape = (candidates, states, 2)
    transitions = generator.dirichlet(np.full(states, 0.5), size=shape)
    transitions = np.where(transitions < 0.1, 0.0, transitions)
    transitions /= transitions.sum(axis=3, keepdims=True)
    rewards = generator.random(shape).round(generator.integers(1, 4))
    if generator.random() < 0.3:
        rewards[:] = rewards[0]  # what is earned tells nothing
    probs = generator.dirichlet(np.ones(candidates), size=2)
    if generator.random() < 0.3:
        probs[1, 0] = 0.0
        probs[1] /= probs[1].sum()
    options: dict[str, Any] = {
        "noise": str(generator.choice(["none", "bernoulli"])),
        "round_steps": [None, 1, 2, 3][generator.integers(4)],
        "start": generator.dirichlet(np.ones(states)) if generator.random() < 0.5 else 0,
    }
    p = FiniteMdpPrior(transitions, rewards, probs[0], **options | fixed)
    return p, p.replaced(probs=probs[1])


def instances(seed: int, count: int, **fixed: Any) -> Any:
    generator = np.random.default_rng(seed)
    return [random_pair(generator, **fixed) for _ in range(count)]


def tiny_difference(eps: float, **options: Any) -> tuple[FiniteMdpPrior, FiniteMdpPrior]:
    """Two candidates that rewards hardly tell apart, of which p deems one certain: alg(q) parts
    with probability ``1 - (1 - eps)^H``, and ``eps`` is the distance of the priors.
    """
    rewards = 0.5 + 1e-7 * np.array([np.tile([1, 0], (2, 1)), np.tile([0, 2], (2, 1))])
    same = np.full((2, 2, 2, 2), 0.5)
    options = {"noise": "bernoulli", "round_steps": 1} | options
    p = FiniteMdpPrior(same, rewards, [1.0, 0.0], **options)
    return p, p.replaced(probs=[1.0 - eps, eps])


def fork(eps: float) -> tuple[FiniteMdpPrior, FiniteMdpPrior]:
    """A wrong first action leads to a state without rewards, which is never left."""
    moves = np.zeros((2, 3, 2, 3))
    for candidate in (0, 1):
        moves[candidate, 0, candidate, 1] = moves[candidate, 0, 1 - candidate, 2] = 1.0
        moves[candidate, 1, :, 1] = moves[candidate, 2, :, 2] = 1.0
    p = FiniteMdpPrior(moves, [[0, 0], [1, 1], [0, 0]], [1.0, 0.0])
    return p, p.replaced(probs=[1.0 - eps, eps])


# Against recursion by hand


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("number", range(8))
def test_everything_is_as_by_hand(number: int, k: int, seed: int) -> None:
    p, q = instances(8 * seed + number, 1)[0]
    horizon = 3 if p.states == 2 else 2
    problem, policy = ByHand.of(p, horizon), pw.KShotThompson(k)
    true, held = p.probs.tolist(), q.probs.tolist()
    laws = [trajectories(problem, true, each, shots(k)) for each in (true, held)]
    exact = exact_evaluation(p, policy, horizon, believed=q)
    found = dict(zip(_paths(exact), exact.probability.tolist(), strict=True))
    by_hand = _rounded(marginal(laws[1]))
    assert found.keys() == by_hand.keys()
    for key, probability in found.items():
        assert probability == pytest.approx(by_hand[key], abs=1e-12)
    rewards = [reward(law) for law in laws]
    chain = exact_chain(p, q, policy, horizon)
    assert [chain.reward, chain.reward_other] == pytest.approx(rewards, abs=1e-11)
    assert exact.mean_reward == pytest.approx(rewards[1], abs=1e-11)
    apart = distance(marginal(laws[0]), marginal(laws[1]))
    assert chain.trajectory_tv == pytest.approx(apart, abs=1e-11)
    tv = exact_trajectory_tv(p, q, policy, horizon)
    own = distance(marginal(laws[0]), marginal(trajectories(problem, held, held, shots(k))))
    assert [tv.value, tv.own_tasks] == pytest.approx([apart, own], abs=1e-11)
    tails = exact_reward_tails(p, q, policy, horizon, centre=0.3)
    for level in (0.01, 0.2, 0.7, 1.0):
        for law, mine in zip(laws, (tails.true, tails.believed), strict=True):
            want = tail(average_rewards(problem, law, 0.3), level)
            assert mine.tail(level).value == pytest.approx(want, abs=1e-10)
    assert bayes_optimal(p, horizon).value == pytest.approx(optimal(problem, true), abs=1e-11)


def _paths(exact: Any) -> list[tuple[Any, ...]]:
    out = []
    columns = (exact.signals, exact.actions, exact.rewards.round(9))
    for s, a, r in zip(*(each.tolist() for each in columns), strict=True):
        steps = [part for step in zip(s[:-1], a, r, strict=True) for part in step]
        out.append((*steps, s[-1]))
    return out


def _rounded(law: dict[Any, float]) -> dict[Any, float]:
    return {
        tuple(round(part, 9) if i % 3 == 2 else part for i, part in enumerate(path)): p
        for path, p in law.items()
    }


def test_a_held_prior_that_is_wrong_starts_again(seed: int) -> None:
    """Candidates that the held prior does not know: it meets what it deems impossible."""
    moves = np.stack([np.stack([STAY, SWAP], 1), np.stack([SWAP, STAY], 1)])
    p = FiniteMdpPrior(moves, [[0.2, 0.8], [1.0, 0.0]], [0.5, 0.5])
    q = p.replaced(probs=[1.0, 0.0])
    problem = ByHand.of(p, 4)
    law = trajectories(problem, [0.5, 0.5], [1.0, 0.0], shots(1))
    assert exact_rewards(p, TS, 4, believed=q).mean_reward == pytest.approx(reward(law))
    run = pw.simulate(p, TS, horizon=4, tasks=200, seed=seed, believed=q)
    assert run.resets > 0


def test_merging_changes_nothing(seed: int) -> None:
    for p, q in instances(seed, 10):
        whole = exact_evaluation(p, pw.KShotThompson(2), 3, believed=q)
        merged = exact_rewards(p, pw.KShotThompson(2), 3, believed=q)
        np.testing.assert_allclose(merged.by_step, whole.by_step, atol=1e-12)


def test_simulation_agrees(seed: int) -> None:
    """Each of 8 within 5 standard errors of 20,000 tasks (false alarms 5e-6 in all), and the reward
    of another prior is outside of that at least once.
    """
    others = 0
    for number, (p, q) in enumerate(instances(seed, 8)):
        run = pw.simulate(p, TS, horizon=4, tasks=20_000, seed=seed + number, believed=q)
        exact = exact_rewards(p, TS, 4, believed=q).mean_reward
        assert abs(run.mean_reward - exact) < 5 * run.std_error + 1e-9
        others += abs(run.mean_reward - exact_rewards(p, TS, 4).mean_reward) > 5 * run.std_error
    assert others > 0


# Inequalities


def check(p: FiniteMdpPrior, q: FiniteMdpPrior, policy: Any, horizon: int) -> ExactChain:
    """Every link of the chain, and parts (a) to (c) of the theorem."""
    n = policy.monte_carlo_n(p.arms)
    chain = exact_chain(p, q, policy, horizon)
    links = chain.links(n)
    assert (np.diff(links) <= 1e-10).all(), links
    near = trajectory_bound(p, q, policy, horizon)  # (a)
    assert near.delta == pytest.approx(2 * n * horizon * total_variation(p, q).value)
    assert near == pomdp_trajectory_bound((p, q), policy, horizon)
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
    least, most = p.mean_range
    assert chain.likelihood_ratio <= (most - least) * horizon * chain.trajectory_tv + 1e-10
    return chain


@pytest.mark.parametrize("policy", [TS, pw.KShotThompson(2), pw.PosteriorSampling(2, "sum")])
def test_inequalities_hold_on_random_problems(policy: Any, seed: int) -> None:
    for number, (p, q) in enumerate(instances(seed, 12)):
        check(p, q, policy, 1 + number % 4)


@pytest.mark.slow
def test_inequalities_hold_on_many_random_problems(seed: int) -> None:
    for number, (p, q) in enumerate(instances(seed + 1, 300)):
        check(p, q, [TS, pw.KShotThompson(3)][number % 2], 1 + number % 4)


def test_constants_too_small_are_caught() -> None:
    """Half of ``2 n H eps`` less a tenth, half of the range of rewards, and one draw too few."""
    p, q = tiny_difference(0.005)
    chain = check(p, q, TS, 4)
    bound = trajectory_bound(p, q, TS, 4).delta
    assert chain.trajectory_tv == pytest.approx(1 - 0.995**4, rel=1e-4)
    assert chain.trajectory_tv > 0.9 * bound / 2
    assert chain.links(1)[1] > 0.9 * bound / 2
    shots_3 = check(p, q, pw.KShotThompson(3), 4)
    assert (np.diff(shots_3.links(2)) > 1e-3).any()
    p, q = fork(0.05)
    chain = check(p, q, TS, 4)
    assert chain.gap == pytest.approx(3 * chain.trajectory_tv)
    # the run earns 0, 1, 1, 1 where it does not part: the upper end is the gap, and no less will do
    assert chain.interval[1] == pytest.approx(chain.gap)
    assert chain.gap > 0.9 * chain.interval[1]
    assert chain.gap > 0.5 * 4 * chain.trajectory_tv  # B = 1, of which half


def test_one_step_of_a_random_problem_is_a_bandit(seed: int) -> None:
    """With rounds of one step and one state, all numbers are those of the finite bandit."""
    generator = np.random.default_rng(seed)
    means = generator.random((3, 1, 2))
    probs = generator.dirichlet(np.ones(3), size=2)
    same = np.ones((3, 1, 2, 1))
    for noise in ("none", "bernoulli"):
        p, q = (FiniteMdpPrior(same, means, each, noise, round_steps=1) for each in probs)
        bandit = [pw.FinitePrior(means[:, 0], each, noise) for each in probs]
        one, two = (exact_chain(*pair, TS, 4) for pair in ((p, q), bandit))
        np.testing.assert_allclose(one.links(1), two.links(1), atol=1e-13)
        assert one.gap == pytest.approx(two.gap, abs=1e-13)
        assert bayes_optimal(p, 4).value == pytest.approx(bayes_optimal(bandit[0], 4).value)


# Draws that are kept for a round


def test_kept_draws_move_trajectories_by_two_redraws_at_most(seed: int) -> None:
    """TV <= 2 k R eps with R redraws, here with k = 1."""
    for p, q in instances(seed, 4, round_steps=2):
        problem = ByHand.of(p, 4)
        laws = [
            kept_trajectories(problem, p.probs.tolist(), each.probs.tolist(), 2) for each in (p, q)
        ]
        eps = total_variation(p, q).value
        assert distance(*laws) <= 2 * 1 * 2 * eps + 1e-10


def test_fewer_redraws_than_there_are_would_be_caught() -> None:
    """The control: with R - 1 redraws, or a quarter of the constant, the bound fails."""
    p, q = tiny_difference(0.005, round_steps=2)
    problem = ByHand.of(p, 4)
    laws = [kept_trajectories(problem, p.probs.tolist(), each.probs.tolist(), 2) for each in (p, q)]
    apart = distance(*laws)
    assert apart == pytest.approx(1 - 0.995**2, rel=1e-3)
    assert apart <= 2 * 2 * 0.005
    assert apart > 0.9 * 2 * 0.005


def test_kept_draws_are_not_one_monte_carlo_per_step() -> None:
    """The first action of a round tells that the draw was none of the first candidate, and the
    second repeats it: given that history the two laws exclude each other, although the posteriors
    are as close as the priors.
    """
    moves = np.zeros((3, 2, 2, 2))
    moves[..., 1] = 1.0
    best = [[[1, 0], [1, 0]], [[0, 1], [1, 0]], [[0, 1], [0, 1]]]
    rewards = 0.5 + 1e-7 * np.array(best)
    p = FiniteMdpPrior(moves, rewards, [0.99, 0.01, 0.0], "bernoulli", round_steps=2)
    q = p.replaced(probs=[0.99, 0.0, 0.01])
    problem, second = ByHand.of(p, 2), []
    for held in (p, q):
        law = kept_trajectories(problem, p.probs.tolist(), held.probs.tolist(), 2)
        after = {path: chance for path, chance in law.items() if path[1] == 1}
        again = sum(chance for path, chance in after.items() if path[4] == 1)
        second.append(again / sum(after.values()))
    assert second == pytest.approx([0.0, 1.0], abs=1e-6)
    assert total_variation(p, q).value == pytest.approx(0.01)
    fresh = exact_chain(p, q, TS, 2)  # drawn anew at each step, the laws are within the posteriors'
    assert (fresh.action_tv <= fresh.posterior_tv + 1e-12).all()


# The Bayes-optimal value


def test_no_policy_beats_the_optimal_value(seed: int) -> None:
    for number, (p, _) in enumerate(instances(seed, 15)):
        horizon = 1 + number % 4
        value = bayes_optimal(p, horizon).value
        for policy in (TS, pw.KShotThompson(3), pw.Greedy(), pw.BayesUCB(), pw.Uniform()):
            assert exact_rewards(p, policy, horizon).mean_reward <= value + 1e-10
        own = exact_rewards(p, BayesOptimalPolicy(), horizon).mean_reward
        assert own == pytest.approx(value, abs=1e-10)


def test_the_optimal_policy_explores() -> None:
    """A round to learn and a round to earn: greedy takes a sure reward, the optimal policy first
    tries where an action leads.
    """
    moves = np.zeros((2, 3, 2, 3))
    moves[:, 1:, :, 0] = 1.0
    moves[:, 0, 0, 0] = 1.0
    moves[0, 0, 1, 1] = moves[1, 0, 1, 2] = 1.0
    rewards = [[0.3, 0.0], [1.0, 1.0], [0.0, 0.0]]
    p = FiniteMdpPrior(moves, rewards, [0.4, 0.6], round_steps=2)
    found = bayes_optimal(p, 8)
    greedy = exact_rewards(p, pw.Greedy(), 8).mean_reward
    assert greedy == pytest.approx(8 * 0.3)
    assert found.value == pytest.approx(0.4 * 4.0 + 0.6 * 3 * 0.6)
    assert found.first_arms.tolist() == [1]


def test_plans_that_are_too_large_are_refused(seed: int) -> None:
    p, q = instances(seed, 1, noise="bernoulli")[0]
    with raises("horizon", "must be shorter"):
        bayes_optimal(p, 9, most=50)
    with raises("horizon", "must be shorter"):
        exact_evaluation(p, TS, 9, most=50)
    other = q.replaced(round_steps=7)
    with raises("q", "round_steps"):
        exact_trajectory_tv(p, other, TS, 2)


# The ladder


def test_the_exact_ladder(seed: int) -> None:
    for p, q in instances(seed, 4):
        ladder = pw.sensitivity_ladder(p, q, TS, 3, seed=seed)
        chain = exact_chain(p, q, TS, 3)
        assert ladder.exact
        assert ladder.in_order, ladder
        names = ["worst case", "posteriors", "actions", "coupled trajectories", "trajectories"]
        assert [ladder[name].delta for name in names] == pytest.approx(chain.links(1).tolist())
        assert ladder.gap.mean == pytest.approx(-chain.gap)
        low, high = p.reward_range
        assert ladder.trivial <= 3 * (high - low) + 1e-12
        assert ladder.interval is not None
        assert ladder.interval.low.mean - 1e-10 <= ladder.gap.mean
        assert ladder.gap.mean <= ladder.interval.high.mean + 1e-10


def test_the_simulated_ladder_agrees_with_the_exact_one(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Every rung within 5 standard errors: false alarms below 1e-5; a rung is not within that of
    the one above, where these differ by a third.
    """
    p, q = instances(seed, 1, noise="bernoulli", round_steps=2)[0]
    exact = pw.sensitivity_ladder(p, q, TS, 4, seed=seed)
    monkeypatch.setattr(ladders, "MOST_EXACT", 3)
    sampled = pw.sensitivity_ladder(p, q, TS, 4, seed=seed, tasks=20_000, histories=1000)
    assert exact.exact
    assert not sampled.exact
    assert sampled.in_order, sampled
    apart = 0
    for name, above in (
        ("posteriors", "worst case"),
        ("actions", "posteriors"),
        ("coupled trajectories", "actions"),
        ("likelihood ratio", "coupled trajectories"),
    ):
        rung = sampled[name]
        assert abs(rung.delta - exact[name].delta) < 5 * rung.std_error + 1e-9
        apart += rung.delta + 5 * rung.std_error < exact[above].delta
    assert apart > 0
    assert abs(sampled.gap.mean - exact.gap.mean) < 5 * sampled.gap.std_error + 1e-9
    for name in ("low", "high"):
        end, true = (getattr(each.interval, name) for each in (sampled, exact))
        assert abs(end.mean - true.mean) < 5 * end.std_error + 1e-9
    assert "trajectories" not in [rung.name for rung in sampled.rungs]
    assert sampled["common random numbers"].delta > exact["trajectories"].delta - 0.05
