"""Tabular Bayesian MDPs: planning, posterior sampling with draws renewed or kept, against exact
numbers.

One uncertain step: in state 0 waiting earns W and stays; trying earns nothing and moves to state 1
with probability p ~ Beta(a, b). State 1 earns 1 and is kept to the end of the round of 3 steps. The
plans are monotone in p, so that the law of every choice is a Beta tail.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from raising import raises
from registry import ANY_MOVES, EARNED, MOVES, STATE_PRIORS
from scipy.special import betainc, gammaln

import priorwise as pw
from priorwise.core.streams import Streams, streams
from priorwise.families import MdpStatistics, riverswim
from priorwise.families.tabular_mdp.evidence import log_marginal
from priorwise.families.tabular_mdp.planning import backward_values, optimal_value, q_values
from priorwise.families.tabular_mdp.riverswim import riverswim_transitions
from priorwise.policies import EnvironmentSampling, RoundSampling
from priorwise.sensitivity import pomdp_reward_bound, pomdp_trajectory_bound
from priorwise.simulate.steps import environments, steps
from priorwise.testing.playing import play
from priorwise.testing.twins import same_run

W, STEPS, ROUNDS = 0.3, 3, 2
HORIZON = STEPS * ROUNDS
# with 3 steps left try if p > W / (2 - 2 W), with 2 if p > W / (1 - W), with 1 never
THRESHOLDS = {3: W / (2 - 2 * W), 2: W / (1 - W), 1: 2.0}


def step_prior(a: float, b: float) -> pw.DirichletMdpPrior:
    return pw.DirichletMdpPrior(
        [[[1, 0], [b, a]], [[0, 1], [0, 1]]], [[W, 0.0], [1.0, 0.9]], round_steps=STEPS
    )


def exact(true: tuple[float, float], held: tuple[float, float], *, kept: bool, k: int = 1) -> Any:
    """Law of all trajectories (state, action), and the expected total reward.

    Values rise with p, so that the best of k draws is the one with the largest p.
    """
    law: dict[Any, float] = defaultdict(float)
    earned = 0.0

    def walk(
        step: int, state: int, ups: int, downs: int, drawn: Any, path: Any, chance: float
    ) -> None:
        nonlocal earned
        if chance == 0.0:
            return
        if step == HORIZON:
            law[path] += chance
            return
        left = STEPS - step % STEPS
        if left == STEPS:
            state = 0
            if kept and drawn is None:
                edges = [0.0, THRESHOLDS[3], THRESHOLDS[2], 1.0]
                masses = np.diff(betainc(held[0] + ups, held[1] + downs, edges) ** k)
                for place, mass in enumerate(masses):
                    middle = (edges[place] + edges[place + 1]) / 2
                    walk(step, 0, ups, downs, middle, path, chance * mass)
                return
        if state == 1:
            options = [(0, 1.0)]
        elif kept:
            options = [(int(drawn > THRESHOLDS[left]), 1.0)]
        else:
            tail = 1.0 - betainc(held[0] + ups, held[1] + downs, min(THRESHOLDS[left], 1.0)) ** k
            options = [(0, 1.0 - tail), (1, tail)]
        for action, share in options:
            reward = 1.0 if state == 1 else W * (action == 0)
            earned += chance * share * reward
            up = (true[0] + ups) / (sum(true) + ups + downs)
            ways = [(1, up, 1, 0), (0, 1.0 - up, 0, 1)] if state == 0 and action == 1 else None
            if ways is None or left == 1:  # certain, or a reset, which teaches nothing
                ways = [(state, 1.0, 0, 0)]
            for after, probability, one, other in ways:
                shown = 0 if left == 1 else after
                walk(
                    step + 1,
                    after,
                    ups + one,
                    downs + other,
                    None if left == 1 else drawn,
                    (*path, (state, action, shown)),
                    chance * share * probability,
                )

    walk(0, 0, 0, 0, None, (), 1.0)
    assert abs(sum(law.values()) - 1.0) < 1e-12
    return law, earned


def distance(first: dict[Any, float], second: dict[Any, float]) -> float:
    return sum(abs(first[k] - second[k]) for k in {*first, *second}) / 2


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("kept", [False, True])
def test_posterior_sampling_earns_the_exact_reward(kept: bool, k: int, seed: int) -> None:
    """Within 5 standard errors (false alarm 6e-7); the other kind of draw, or another number of
    draws, does not.
    """
    true, held = (1.0, 2.0), (0.6, 0.5)
    run = pw.simulate(
        step_prior(*true),
        RoundSampling(k, steps=STEPS) if kept else pw.KShotThompson(k),
        believed=step_prior(*held),
        horizon=HORIZON,
        tasks=200_000,
        seed=seed,
    )
    assert abs(run.mean_reward - exact(true, held, kept=kept, k=k)[1]) < 5 * run.std_error
    for other in ({"kept": not kept, "k": k}, {"kept": kept, "k": 4 - k}):
        assert abs(run.mean_reward - exact(true, held, **other)[1]) > 5 * run.std_error


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("kept", [False, True])
def test_trajectories_differ_by_no_more_than_the_bound(kept: bool, k: int, seed: int) -> None:
    """2 k R eps with draws kept for R rounds, 2 n H eps with draws at every step, on 40 random
    pairs of priors with the exact eps and the exact laws; a twelfth of the first is exceeded.
    """
    rng = np.random.default_rng(seed)
    ratios = []
    for _ in range(40):
        true = tuple(rng.gamma(1.0, size=2) + 0.05)
        held = tuple(np.array(true) * np.exp(rng.normal(0, 0.3, size=2)))
        p, q = step_prior(*true), step_prior(*held)
        tv = pw.total_variation(p, q)
        assert tv.kind == "exact"
        first, second = (exact(true, each, kept=kept, k=k) for each in (true, held))
        redraws = RoundSampling(steps=STEPS).redraws(HORIZON) if kept else None
        bound = pomdp_trajectory_bound(tv, k, HORIZON, redraws=redraws)
        gap = distance(first[0], second[0])
        assert gap <= bound.value + 1e-12
        worth = pomdp_reward_bound(tv, k, HORIZON, redraws=redraws, reward_range=1.0)
        assert abs(first[1] - second[1]) <= worth.value + 1e-12
        ratios.append(gap / (2 * (redraws or HORIZON) * tv.value))
    if kept and k == 1:
        assert max(ratios) > 1 / 12  # control


def test_kept_draws_count_as_actions() -> None:
    """A policy that keeps draws says how often it draws, and has no constant per step."""
    policy = RoundSampling(3, "max", steps=20)
    assert policy.monte_carlo_n(2) is None
    assert [policy.redraws(h) for h in (1, 20, 21, 100)] == [1, 1, 2, 5]
    bound = pomdp_trajectory_bound(0.001, 3, 100, redraws=5)
    assert bound.value == pytest.approx(2 * 3 * 5 * 0.001)
    assert (bound.n, bound.horizon) == (3, 100)
    with raises("redraws", "must not exceed the horizon"):
        pomdp_trajectory_bound(0.1, 1, 4, redraws=5)


# Planning


def brute(transitions: Any, rewards: Any, state: int, left: int) -> float:
    if left == 0:
        return 0.0
    return float(
        max(
            rewards[state, a]
            + sum(
                chance * brute(transitions, rewards, after, left - 1)
                for after, chance in enumerate(transitions[state, a])
            )
            for a in range(rewards.shape[1])
        )
    )


def test_value_iteration_is_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    transitions, rewards = rng.dirichlet(np.ones(3), size=(4, 3, 2)), rng.normal(size=(4, 3, 2))
    plans = backward_values(transitions, rewards, 4)
    for task in range(4):
        expected = [brute(transitions[task], rewards[task], 1, n) for n in (1, 2, 3, 4)]
        np.testing.assert_allclose(plans[task, :, 1].max(axis=1), expected, rtol=1e-12)
    mixed = q_values(transitions, rewards, np.array([1, 4, 2, 3]))
    for task, left in enumerate((1, 4, 2, 3)):
        np.testing.assert_array_equal(mixed[task], plans[task, left - 1])
    start = np.array([0.2, 0.3, 0.5])
    whole = [
        sum(p * brute(transitions[0], rewards[0], s, n) for s, p in enumerate(start))
        for n in (3, 1)
    ]
    assert optimal_value(transitions[0], rewards[0], start, 7, 3) == pytest.approx(
        2 * whole[0] + whole[1]
    )


def test_riverswim_is_the_one_of_the_issue() -> None:
    table = riverswim_transitions()
    assert table[0, 1, :2].tolist() == [0.4, 0.6]
    assert table[3, 1, 2:5].tolist() == [0.05, 0.6, 0.35]
    assert table[5, 1, 4:].tolist() == [0.4, 0.6]
    river = riverswim()
    assert optimal_value(table, river.rewards, river.start, 20) == pytest.approx(3.3972639592)
    np.testing.assert_allclose(river.mean_transitions, table)


@pytest.mark.slow
def test_who_knows_the_river_earns_its_optimal_value(seed: int) -> None:
    """Within 5 standard errors of dynamic programming; swimming at random does not."""
    river = riverswim(1e9)
    best = optimal_value(riverswim_transitions(), river.rewards, river.start, 40, 20)
    for policy in (pw.ThompsonSampling(), RoundSampling(steps=20), pw.KShotThompson(3)):
        run = pw.simulate(river, policy, horizon=40, tasks=10_000, seed=seed)
        assert abs(run.mean_reward - best) < 5 * run.std_error
    lost = pw.simulate(river, pw.Uniform(), horizon=40, tasks=10_000, seed=seed)
    assert lost.mean_reward < best - 5 * lost.std_error


def test_regret_against_dynamic_programming_is_the_sum_of_planned_gaps(seed: int) -> None:
    """sum_h V*(s_h) - Q*(s_h, a_h) has the mean of V* minus the reward, within 5 std errors."""
    prior = STATE_PRIORS["mdp"][0]
    numbers = Streams(seed, np.arange(4000, dtype=np.uint64))
    tasks = environments(prior, numbers)
    gaps, earned = np.zeros(4000), np.zeros(4000)
    for step in steps(
        tasks, prior.belief(4000), pw.ThompsonSampling(), numbers, horizon=8, arms=prior.arms
    ):
        planned = tasks.planned(step.seen)  # type: ignore[attr-defined]
        gaps += planned.max(axis=1) - planned[np.arange(4000), step.actions]
        earned += step.rewards
    difference = tasks.optimal(8) - earned - gaps  # type: ignore[attr-defined]
    error = difference.std() / np.sqrt(4000)
    assert abs(difference.mean()) < 5 * error
    assert gaps.mean() > 5 * error


# Policies


@pytest.mark.parametrize("name", ["mdp", "mdp-bernoulli"])
def test_policies_on_environments_are_those_on_values(name: str, seed: int) -> None:
    """Draws kept for one step, or shown to a rule that takes the best of one, are Thompson
    sampling's.
    """
    prior, believed = STATE_PRIORS[name]
    options: Any = {"horizon": 9, "tasks": 70, "seed": seed, "keep": True, "believed": believed}

    def best(drawn: Any, seen: Any) -> Any:
        values = drawn.values(seen)[:, 0]
        return (values == values.max(axis=1, keepdims=True)).astype(float)

    run = pw.simulate(prior, pw.ThompsonSampling(), **options)
    same_run(run, pw.simulate(prior, RoundSampling(steps=1), **options))
    same_run(run, pw.simulate(prior, EnvironmentSampling(1, best), **options))
    other = pw.simulate(prior, RoundSampling(steps=9), **options)
    assert (other.actions != run.actions).any()  # control


def test_a_kept_draw_is_a_fixed_plan(seed: int) -> None:
    """Within a round, who is in the same state at the same step of the same task does the same."""
    prior = STATE_PRIORS["mdp"][0]
    belief, rng = prior.belief(50), streams(seed, 50)
    policy, memory = RoundSampling(steps=4), None
    seen = pw.core.Seen(1, 8, 2, np.zeros(50, dtype=np.int64))
    first, memory = policy.decide(belief, seen, rng(1), memory)
    later = pw.core.Seen(2, 8, 2, np.ones(50, dtype=np.int64))
    told = belief.update(seen, first, np.zeros(50), later.signal)
    again, same = policy.decide(told, later, rng(2), memory)
    assert same is memory
    np.testing.assert_array_equal(again, memory.plans[np.arange(50), 0, 2, 1].argmax(axis=1))
    fresh = pw.core.Seen(5, 8, 2, np.zeros(50, dtype=np.int64))
    assert policy.decide(told, fresh, rng(5), memory)[1] is not memory


def test_looking_ahead_finds_what_the_next_state_is_worth(seed: int) -> None:
    """With a known MDP, r + Q of one step ahead is Q: receding horizon with equal weights plans."""
    rewards = [[0.3, 0.0], [1.0, 0.9]]
    known = pw.DirichletMdpPrior([[[1, 0], [0, 1]], [[0, 1], [0, 1]]], rewards, round_steps=3)
    run = pw.simulate(
        known, pw.RecedingHorizon(1, 1, 0.5), horizon=6, tasks=4, seed=seed, keep=True
    )
    assert run.mean_reward == pytest.approx(4.0)  # try, then 1 + 1, twice
    myopic = pw.simulate(known, pw.RecedingHorizon(1, 1, 0.0), horizon=6, tasks=4, seed=seed)
    assert myopic.mean_reward == pytest.approx(6 * 0.3)
    assert pw.RecedingHorizon(1, 1, 0.5).monte_carlo_n(2) == 2 * 5


def test_impossible_moves_start_the_belief_again(seed: int) -> None:
    everywhere = pw.DirichletMdpPrior(ANY_MOVES, EARNED, round_steps=4)
    narrow = pw.DirichletMdpPrior(MOVES, EARNED, round_steps=4)
    options: Any = {"horizon": 8, "tasks": 200, "seed": seed, "believed": narrow}
    runs = [
        pw.simulate(everywhere, pw.ThompsonSampling(), engine=engine, **options)
        for engine in ("compiled", "numpy")
    ]
    assert runs[0].resets == runs[1].resets > 0
    assert pw.simulate(narrow, pw.ThompsonSampling(), **options).resets == 0


def test_runs_do_not_depend_on_blocks_and_threads(seed: int) -> None:
    river = riverswim(3.0)
    options: Any = {"horizon": 25, "tasks": 500, "seed": seed, "keep": True}
    whole = pw.simulate(river, pw.ThompsonSampling(), threads=1, **options)
    parts = pw.simulate(river, pw.ThompsonSampling(), threads=2, block=64, **options)
    np.testing.assert_array_equal(whole.actions, parts.actions)
    np.testing.assert_array_equal(whole.kept.log, parts.kept.log)
    assert (whole.mean_reward, whole.std_error) == (parts.mean_reward, parts.std_error)


def test_states_may_lack_actions(seed: int) -> None:
    """The same as a problem in which the action costs so much that nobody takes it."""
    moves = MOVES.copy()
    moves[1, 0] = 0.0
    lacking = pw.DirichletMdpPrior(moves, EARNED, round_steps=4)
    dear = np.array(EARNED)
    dear[1, 0] = -50.0
    # a certain move is not drawn either
    paid = pw.DirichletMdpPrior(
        np.where(moves.sum(axis=2, keepdims=True) > 0, moves, [[[0, 1, 0]]]), dear, round_steps=4
    )
    options: Any = {"horizon": 12, "tasks": 300, "seed": seed, "keep": True}
    for policy in (pw.ThompsonSampling(), pw.PosteriorSampling(3, "sum"), RoundSampling(steps=4)):
        run = pw.simulate(lacking, policy, **options)
        same_run(run, pw.simulate(paid, policy, engine="numpy", **options))
        state = run.kept.log[:, :, 0]
        assert (state == 1).any()
        assert not (run.actions[state == 1] == 0).any()
    for policy in (pw.Uniform(), pw.RecedingHorizon(2, 2, 0.5)):
        played = pw.simulate(lacking, policy, **options)
        assert not (played.actions[played.kept.log[:, :, 0] == 1] == 0).any()
    assert lacking.reward_range == (0.0, 0.7)
    assert pw.load_prior(lacking.to_json()) == lacking
    rivers = environments(lacking, Streams(seed, np.arange(5, dtype=np.uint64)))
    assert np.isfinite(rivers.optimal(8)).all()  # type: ignore[attr-defined]


# Statistics


@pytest.mark.parametrize("name", STATE_PRIORS)
@pytest.mark.parametrize("engine", ["auto", "numpy"])
def test_statistics_of_a_run_give_its_belief(name: str, engine: Any, seed: int) -> None:
    """Belief from the log = belief of every update, but for where the last step led."""
    prior = STATE_PRIORS[name][0]
    played = play(prior, tasks=30, pulls=7, seed=seed)
    statistics = MdpStatistics.empty(30, states=3, arms=2)
    for pull in played.pulls:
        ends = prior.round_steps is not None and pull.seen.step % prior.round_steps == 0
        then = np.where(ends, -1, pull.after)
        statistics = statistics.observe(
            pull.actions, pull.rewards, np.stack([pull.seen.signal, then], axis=1)
        )
    belief = prior.belief_given(statistics)
    for field in ("alpha", "pulls", "sums"):
        np.testing.assert_allclose(
            getattr(belief, field), getattr(played.belief, field), rtol=1e-12, atol=1e-12
        )
    run = pw.simulate(
        prior, pw.Uniform(), horizon=12, tasks=30, seed=seed, keep=True, engine=engine
    )
    read = MdpStatistics.from_run(run, **MdpStatistics.known(prior))
    moves = 12 - (12 // prior.round_steps if prior.round_steps else 1)
    np.testing.assert_array_equal(read.moves.sum(axis=(1, 2, 3)), moves)
    np.testing.assert_array_equal(read.pulls.sum(axis=(1, 2)), 12)
    np.testing.assert_allclose(read.sums.sum(axis=(1, 2)), run.rewards.sum(axis=1))
    assert not (read.moves[:, ~prior.possible] > 0).any()


def test_evidence_is_the_product_of_predictions(seed: int) -> None:
    """Against the chain rule: (alpha_j + n_j) / (alpha_0 + N), move by move."""
    prior = STATE_PRIORS["mdp-bernoulli"][0]
    played = play(prior, tasks=20, pulls=6, seed=seed)
    log, rows = np.zeros(20), np.arange(20)
    model = prior.reward_model
    for pull in played.pulls:
        place = rows, pull.seen.signal, pull.actions
        a, b = model.posterior(pull.belief.pulls, pull.belief.sums)
        mean = (a / (a + b))[place]
        log += np.log(np.where(pull.rewards > 0, mean, 1 - mean))
        if pull.seen.step % 3:
            alpha = pull.belief.alpha[place]
            log += np.log(alpha[rows, pull.after] / alpha.sum(axis=1))
    statistics = MdpStatistics(
        played.belief.alpha - prior.transitions,
        played.belief.pulls,
        played.belief.sums,
        played.belief.sums,
    )
    np.testing.assert_allclose(log_marginal(prior, statistics), log, rtol=1e-10)
    assert np.isneginf(
        log_marginal(
            step_prior(1, 1),
            MdpStatistics(
                [[[[0, 1], [0, 0]], [[0, 0], [0, 0]]]],
                [[[1, 0], [0, 0]]],
                [[[W, 0], [0, 0]]],
                [[[W * W, 0], [0, 0]]],
            ),
        )
    ).all()


# Distances


def test_one_uncertain_row_is_a_beta_law() -> None:
    p, q = step_prior(2.0, 3.0), step_prior(3.0, 2.5)
    one, two = pw.BetaPrior([2.0], [3.0]), pw.BetaPrior([3.0], [2.5])
    assert pw.total_variation(p, q).value == pytest.approx(pw.total_variation(one, two).value)
    assert pw.sensitivity.kl(p, q) == pytest.approx(pw.sensitivity.kl(one, two))
    assert pw.total_variation(p, q.replaced(transitions=q.transitions + 1.0)).value == 1.0


def test_dirichlet_rows_agree_with_quadrature(seed: int) -> None:
    """Three outcomes: the affinity, the divergence and the total variation, on a fine grid."""
    a, b = np.array([2.0, 3.0, 1.5]), np.array([3.0, 2.0, 2.5])
    moves = np.zeros((3, 1, 3))
    moves[:, 0, 0] = 1.0
    p, q = (
        pw.DirichletMdpPrior(
            np.where(np.arange(3)[:, None, None] == 0, row, moves), np.zeros((3, 1))
        )
        for row in (a, b)
    )
    x = (np.arange(700) + 0.5) / 700
    u, v = np.meshgrid(x, x)  # x1 = u, x2 = (1 - u) v
    logs = np.stack([np.log(u), np.log1p(-u) + np.log(v), np.log1p(-u) + np.log1p(-v)], axis=-1)
    one, two = (
        np.exp(logs @ (r - 1) + gammaln(r.sum()) - gammaln(r).sum()) * (1 - u) for r in (a, b)
    )
    mass = 1 / 700**2
    affinity = (np.sqrt(one * two) * mass).sum()
    assert pw.sensitivity.hellinger(p, q) == pytest.approx(np.sqrt(1 - affinity), rel=1e-4)
    assert pw.sensitivity.kl(p, q) == pytest.approx(
        (one * np.log(one / two) * mass).sum(), rel=1e-3
    )
    tv = pw.total_variation(p, q, seed=seed)
    value = np.abs(one - two).sum() * mass / 2
    assert abs(tv.value - value) < 5 * tv.std_error + 1e-4
    assert value <= tv.upper


# Priors, in words


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"transitions": np.ones((2, 2, 3))}, "transitions must have shape"),
        ({"transitions": -np.ones((2, 2, 2))}, "transitions must not be negative"),
        ({"transitions": np.zeros((2, 2, 2))}, "transitions must leave state 0 an action"),
        ({"rewards": np.zeros((2, 3))}, "rewards must have a row for each state"),
        ({"rewards": [[np.nan, 0.0], [0.0, 0.0]]}, "rewards"),
        ({"round_steps": 0}, ("round_steps", "must be at least 1")),
        ({"start": 2}, ("start", "must be one of the states")),
        ({"start": [0.5, 0.6]}, ("start", "must sum to 1")),
        ({"names": ["a"]}, ("names", "must have one entry")),
    ],
)
def test_wrong_arguments_are_named(change: dict[str, Any], match: str | tuple[str, str]) -> None:
    with raises(match):
        step_prior(1.0, 1.0).replaced(**change)


def test_other_states_cannot_be_believed(seed: int) -> None:
    with raises("prior", "share the law of contexts"):
        pw.simulate(
            riverswim(), pw.Uniform(), believed=riverswim(states=5), horizon=2, tasks=2, seed=seed
        )
    belief = riverswim().belief(2)
    with raises("seen.signal", "states 0..5"):
        belief.sample(streams(seed, 2)(1), 1, pw.core.Seen(1, 2, 2, np.array([0, 6])))
    with raises("seen.signal", "the state of each task"):
        belief.sample(streams(seed, 2)(1), 1, pw.core.Seen(1, 2, 2))


def test_tables_of_rewards_have_two_axes() -> None:
    """A row of numbers is no table, and a number alone says not how many."""
    for alpha in ([1.0, 2.0], 1.0, np.ones((2, 2, 2))):
        with raises("alpha", "must have shape"):
            pw.families.BernoulliRewardPrior(alpha, 1.0)
    with raises("var", "must have shape"):
        pw.families.NormalRewardPrior([[1.0, 2.0]], [1.0, 2.0])
    with pytest.raises(ValueError, match=r"(alpha|beta) must have shape"):
        pw.families.BernoulliRewardPrior(1.0, [1.0, 2.0])
    assert pw.families.BernoulliRewardPrior(1.0, [[1.0, 2.0]]).alpha.tolist() == [[1.0, 1.0]]


def test_kept_draws_are_told_which_bound_is_theirs() -> None:
    river = pw.families.riverswim()
    near = river.replaced(transitions=river.transitions * 1.0001)
    policy = RoundSampling(steps=20)
    with raises("policy", "keeps its draws; pass it to pomdp_trajectory_bound"):
        pw.trajectory_bound(river, near, policy, 20)
    assert "drawn once" in str(pw.sensitivity.pomdp_trajectory_bound((river, near), policy, 20))


def test_tails_say_what_they_are(seed: int) -> None:
    river = pw.families.riverswim()
    options: Any = {"horizon": 20, "tasks": 50, "seed": seed, "centre": 0.5}
    tails = pw.sensitivity.reward_tails(river, river, pw.Uniform(), **options)
    mean = f"{tails.true.values.mean():.4g}"
    said = "conditional average rewards over 50 simulated tasks; mean size minus 0.5"
    assert str(tails) == f"{said} {mean}, believed {mean}"
