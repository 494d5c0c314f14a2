"""Exact laws of actions and trajectories, expected rewards and optimal values, against recursion by
hand and simulation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
import pytest
from enumerated import exact_probs
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import raises
from registry import SAMPLING_POLICIES
from scipy import stats

import priorwise as pw
from priorwise.core.choosing import pick
from priorwise.core.protocols import Seen
from priorwise.core.streams import streams
from priorwise.policies.laws import drawn_law
from priorwise.policies.play_arms import PlayArms
from priorwise.sensitivity.exact.bayes_optimal import BayesOptimalPolicy, bayes_optimal
from priorwise.sensitivity.exact.evaluation import (
    exact_evaluation,
    exact_rewards,
    exact_trajectory_tv,
)
from priorwise.testing import PolicyContract
from priorwise.theory.action_laws import ActionLaw
from priorwise.theory.enumeration import multiset_count, multisets, outcome_probabilities

TABLE = [[0.9, 0.1, 0.5], [0.2, 0.8, 0.5], [0.3, 0.3, 0.9], [0.0, 1.0, 0.4]]
TIED = [[1.0, 1.0, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [1.0, 0.0, 0.0]]
TRUE, WRONG = [0.4, 0.3, 0.2, 0.1], [0.0, 0.5, 0.25, 0.25]
FALSE_ALARM = 1e-5  # of each statistical test


@dataclass(frozen=True)
class MajorityVote(pw.SamplingPolicy):
    """A user's policy that knows its law."""

    draws: int = 3

    def votes(self, values: np.ndarray, seen: Seen) -> np.ndarray:
        return seen.masked((values == values.max(axis=2, keepdims=True)).sum(axis=1).astype(float))

    def select(self, values: np.ndarray, seen: Seen, rng: object) -> np.ndarray:
        return pick(self.votes(values, seen), rng.uniform())

    def probabilities(self, belief: object, seen: Seen) -> ActionLaw | None:
        def rule(values: np.ndarray, asked: Seen) -> np.ndarray:
            votes = self.votes(values, asked)
            best = votes == votes.max(axis=1, keepdims=True)
            return best / best.sum(axis=1, keepdims=True)

        return drawn_law(rule, self.draws, belief, seen)


def first_of_two(values: np.ndarray, seen: Seen) -> np.ndarray:
    """A rule that looks at the order of its draws."""
    best = values[:, 0] == values[:, 0].max(axis=1, keepdims=True)
    last = values[:, -1] == values[:, -1].max(axis=1, keepdims=True)
    return (2 * best / best.sum(axis=1, keepdims=True) + last / last.sum(axis=1, keepdims=True)) / 3


KNOWN = {
    # which knows no ties
    **{name: policy for name, policy in SAMPLING_POLICIES.items() if name != "own-rule"},
    "ordered": pw.PosteriorSampling(2, first_of_two),
    "vote": MajorityVote(3),
    "receding": pw.RecedingHorizon(1, 2, 0.4),
    "receding-two": pw.RecedingHorizon(2, 1, "online"),
    "knowledge-gradient": pw.KnowledgeGradient(1, 1),
    "knowledge-gradient-random": pw.KnowledgeGradient(1, 1, ties="random", when_certain="best"),
    "uniform": pw.Uniform(),
    "greedy": pw.Greedy(),
    "bayes-ucb": pw.BayesUCB(),
    "optimal": BayesOptimalPolicy(),
    "top-two": pw.TopTwoThompson(0.3, 3),
    "uniform-first": pw.UniformThen(1, pw.ThompsonSampling()),
    "arms-first": PlayArms((0, 1)),
}


class OnlyActs:
    """A user's policy that does not know its law."""

    def act(self, belief: object, seen: Seen, rng: object) -> np.ndarray:
        return pw.ThompsonSampling().act(belief, seen, rng)


# Laws of actions


def action_p_value(
    policy: object, prior: pw.FinitePrior, law_of: pw.FinitePrior, mask: object, seed: int
) -> float:
    """Chi-square p-value of 20,000 actions after one pull against the law under ``law_of``."""
    tasks = 20_000
    rows = None if mask is None else np.broadcast_to(np.array(mask), (tasks, 3))
    seen, first = Seen(2, 4, 3, None, rows), Seen(1, 4, 3)
    pulled, shown = np.full(tasks, 1), np.full(tasks, prior.means[1, 1].round())
    actions = policy.act(
        prior.belief(tasks).update(first, pulled, shown, None), seen, streams(seed, tasks)(2)
    )
    one = Seen(2, 4, 3, None, None if rows is None else rows[:1])
    law = exact_probs(policy, law_of.belief(1).update(first, pulled[:1], shown[:1], None), one)[0]
    assert law.sum() == pytest.approx(1.0, abs=1e-12)
    counts = np.bincount(actions, minlength=3)
    if counts[law == 0.0].any():
        return 0.0
    there = law > 0.0
    return (
        1.0
        if there.sum() == 1
        else float(stats.chisquare(counts[there], tasks * law[there]).pvalue)
    )


@pytest.mark.parametrize("mask", [None, [True, False, True]], ids=["all arms", "some arms"])
@pytest.mark.parametrize("name", KNOWN)
def test_action_law_is_that_of_the_actions(name: str, mask: object, seed: int) -> None:
    """False alarms with probability 1e-5 for each policy and mask."""
    prior = pw.FinitePrior(TIED, TRUE, noise="bernoulli")
    assert action_p_value(KNOWN[name], prior, prior, mask, seed) > FALSE_ALARM


def test_action_law_of_another_prior_is_noticed(seed: int) -> None:
    """The control."""
    prior, other = (
        pw.FinitePrior(TIED, p, noise="bernoulli") for p in (TRUE, [0.35, 0.3, 0.25, 0.1])
    )
    assert action_p_value(pw.KShotThompson(2), prior, other, None, seed) < FALSE_ALARM


def test_ignoring_the_order_of_draws_is_noticed(seed: int) -> None:
    """The control for rules that look at the order."""
    prior = pw.FinitePrior(TIED, TRUE, noise="bernoulli")
    seen = Seen(1, 4, 3)
    law = exact_probs(pw.PosteriorSampling(2, first_of_two), prior.belief(1), seen)
    wrong = drawn_law(first_of_two, 2, prior.belief(1), seen).probs
    assert np.abs(law - wrong).max() > 0.02


def test_action_laws_differ_by_task_and_mask() -> None:
    """A batch is the same as its tasks one by one."""
    prior = pw.FinitePrior(TABLE, TRUE)
    belief = prior.belief(3).update(
        Seen(1, 2, 3), np.array([0, 1, 2]), np.array([0.9, 0.8, 0.5]), None
    )
    mask = np.array([[True, True, False], [True, True, True], [False, True, True]])
    for policy in (
        pw.KShotThompson(2),
        pw.RecedingHorizon(1, 1, 0.5),
        BayesOptimalPolicy(),
        pw.Greedy(),
    ):
        batch = exact_probs(policy, belief, Seen(2, 2, 3, None, mask))
        for task in range(3):
            alone = type(belief)(prior, belief.log_weights[[task]], belief.resets[[task]])
            single = exact_probs(policy, alone, Seen(2, 2, 3, None, mask[[task]]))
            np.testing.assert_allclose(batch[task], single[0], atol=1e-14)
        assert not batch[~mask].any()


def test_action_law_by_hand() -> None:
    prior = pw.FinitePrior([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]], [0.5, 0.3, 0.2])
    seen, belief = Seen(1, 3, 2), prior.belief(2)
    law = exact_probs(pw.ThompsonSampling(), belief, seen)
    np.testing.assert_allclose(law, [[0.6, 0.4]] * 2, atol=1e-15)  # the third task ties
    # best of two: both tasks seen, or only the third: tie; else the one that was seen
    tie = 2 * 0.5 * 0.3 + 0.2**2
    law = exact_probs(pw.KShotThompson(2), belief, seen)
    np.testing.assert_allclose(
        law[0], [0.5**2 + 2 * 0.5 * 0.2 + tie / 2, 0.3**2 + 2 * 0.3 * 0.2 + tie / 2], atol=1e-15
    )


def test_many_draws_from_two_points() -> None:
    """The number of orders of 2,000 draws exceeds all floats, and the law is still a binomial
    tail.
    """
    prior = pw.FinitePrior([[1.0, 0.0], [0.0, 1.0]], [0.48, 0.52])
    law = exact_probs(pw.PosteriorSampling(2001, "sum"), prior.belief(1), Seen(1, 1, 2))
    assert law[0, 0] == pytest.approx(stats.binom.sf(1000, 2001, 0.48), rel=1e-9)


def test_no_law_is_none() -> None:
    prior, seen = pw.FinitePrior(TABLE, TRUE), Seen(1, 2, 3)
    # 39,711 multisets
    assert exact_probs(pw.KShotThompson(60), prior.belief(1), seen) is None
    # 65,536 sequences
    assert exact_probs(pw.PosteriorSampling(8, first_of_two), prior.belief(1), seen) is None
    assert exact_probs(OnlyActs(), prior.belief(1), seen) is None
    assert exact_probs(pw.RecedingHorizon(10, 10, 1.0), prior.belief(1), seen) is None
    assert exact_probs(pw.ThompsonSampling(), pw.BetaPrior([1, 1], 1).belief(1), seen) is None


def test_wrong_rules_are_refused() -> None:
    belief = pw.FinitePrior(TABLE, TRUE).belief(1)
    for rule, message in (
        (lambda v, s: v[:, 0, :2], ("rule", "must return one probability for each")),
        (lambda v, s: 1.0 + v[:, 0], ("rule", "sum to 1")),
    ):
        with raises(message):
            exact_probs(pw.PosteriorSampling(1, rule), belief, Seen(1, 2, 3))


@given(st.integers(1, 4), st.integers(1, 5))
def test_multisets_are_all_there(points: int, draws: int) -> None:
    outcomes, log_orders = multisets(points, draws)
    assert (
        len({tuple(row) for row in outcomes.tolist()})
        == len(outcomes)
        == multiset_count(points, draws)
    )
    assert np.exp(log_orders).sum() == pytest.approx(points**draws)
    weights = np.arange(1.0, points + 1)[None]
    assert outcome_probabilities(
        weights / weights.sum(), outcomes, log_orders
    ).sum() == pytest.approx(1.0)


# Trajectories


def thompson_by_hand(
    prior: pw.FinitePrior, believed: pw.FinitePrior, horizon: int
) -> dict[tuple[tuple[int, float], ...], float]:
    """Law of the trajectories of Thompson sampling, one history at a time."""
    law: dict[tuple[tuple[int, float], ...], float] = {}

    def likelihood(mean: float, reward: float) -> float:
        return float(mean == reward) if prior.noise == "none" else (mean if reward else 1.0 - mean)

    def follow(
        history: tuple[tuple[int, float], ...], true: list[float], held: list[float]
    ) -> None:
        if len(history) == horizon:
            law[history] = law.get(history, 0.0) + sum(true)
            return
        total = sum(held)
        chances = [0.0] * prior.arms
        for weight, means in zip(held, believed.means.tolist(), strict=True):
            best = [a for a, m in enumerate(means) if m == max(means)]
            for a in best:
                chances[a] += weight / total / len(best)
        for a, chance in enumerate(chances):
            for r in (
                sorted(set(prior.means[:, a].tolist())) if prior.noise == "none" else [0.0, 1.0]
            ):
                next_true = [
                    w * chance * likelihood(m, r)
                    for w, m in zip(true, prior.means[:, a].tolist(), strict=True)
                ]
                next_held = [
                    w * likelihood(m, r)
                    for w, m in zip(held, believed.means[:, a].tolist(), strict=True)
                ]
                if sum(next_true) > 0.0:
                    follow(
                        (*history, (a, r)),
                        next_true,
                        next_held if sum(next_held) > 0.0 else believed.probs.tolist(),
                    )

    follow((), prior.probs.tolist(), believed.probs.tolist())
    return law


@pytest.mark.parametrize("noise", ["none", "bernoulli"])
@pytest.mark.parametrize("held", [TRUE, WRONG], ids=["true", "wrong"])
@pytest.mark.parametrize("table", [TABLE, TIED], ids=["table", "tied"])
def test_trajectories_are_those_of_a_recursion_by_hand(
    table: list[list[float]], held: list[float], noise: str
) -> None:
    prior, believed = pw.FinitePrior(table, TRUE, noise), pw.FinitePrior(table, held, noise)
    check_by_hand(prior, believed)


@pytest.mark.parametrize("noise", ["none", "bernoulli"])
def test_held_prior_may_have_other_tasks(noise: str) -> None:
    """What it deems impossible makes it start again."""
    check_by_hand(
        pw.FinitePrior(TABLE, TRUE, noise),
        pw.FinitePrior([TABLE[0], TIED[1], TABLE[2]], [0.2, 0.5, 0.3], noise),
    )


def check_by_hand(prior: pw.FinitePrior, believed: pw.FinitePrior) -> None:
    law = thompson_by_hand(prior, believed, 3)
    exact = exact_evaluation(prior, pw.ThompsonSampling(), 3, believed=believed)
    found = {
        tuple(zip(a, r, strict=True)): p
        for a, r, p in zip(
            exact.actions.tolist(), exact.rewards.tolist(), exact.probability.tolist(), strict=True
        )
    }
    assert len(found) == len(exact.probability)
    assert {key for key, p in law.items() if p > 0} == set(found)
    for key, probability in found.items():
        assert probability == pytest.approx(law[key], abs=1e-14)
    assert exact.probability.sum() == pytest.approx(1.0, abs=1e-12)
    assert exact.mean_reward == pytest.approx(
        sum(p * sum(r for _, r in key) for key, p in law.items())
    )


@pytest.mark.parametrize("noise", ["none", "bernoulli"])
@pytest.mark.parametrize(
    "name",
    [
        "thompson",
        "k-shot",
        "softmax",
        "greedy",
        "receding",
        "knowledge-gradient",
        "optimal",
        "vote",
    ],
)
def test_merging_changes_nothing(name: str, noise: str) -> None:
    prior, believed = pw.FinitePrior(TIED, TRUE, noise), pw.FinitePrior(TIED, WRONG, noise)
    whole = exact_evaluation(prior, KNOWN[name], 4, believed=believed)
    merged = exact_rewards(prior, KNOWN[name], 4, believed=believed)
    np.testing.assert_allclose(merged.by_step, whole.by_step, atol=1e-12)


@pytest.mark.parametrize("noise", ["none", "bernoulli"])
def test_trajectory_distance_is_that_of_the_two_laws(noise: str) -> None:
    prior, other = pw.FinitePrior(TIED, TRUE, noise), pw.FinitePrior(TIED, WRONG, noise)
    policy = pw.KShotThompson(2)

    def law(tasks: pw.FinitePrior, held: pw.FinitePrior) -> dict[bytes, float]:
        e = exact_evaluation(tasks, policy, 4, believed=held)
        keys = [a.tobytes() + r.tobytes() for a, r in zip(e.actions, e.rewards, strict=True)]
        return dict(zip(keys, e.probability.tolist(), strict=True))

    def distance(p: dict[bytes, float], q: dict[bytes, float]) -> float:
        return sum(abs(p.get(key, 0.0) - q.get(key, 0.0)) for key in p.keys() | q.keys()) / 2

    found = exact_trajectory_tv(prior, other, policy, 4)
    assert found.value == pytest.approx(distance(law(prior, prior), law(prior, other)), abs=1e-12)
    assert found.own_tasks == pytest.approx(
        distance(law(prior, prior), law(other, other)), abs=1e-12
    )
    same = exact_trajectory_tv(prior, prior, policy, 4)
    assert same.value == same.own_tasks == 0.0


@pytest.mark.parametrize("noise", ["none", "bernoulli"])
def test_simulation_agrees(noise: str, seed: int) -> None:
    """Within 4.6 standard errors, which false alarms pass with probability 4e-6; the true prior's
    reward is outside of that.
    """
    prior, believed = pw.FinitePrior(TIED, TRUE, noise), pw.FinitePrior(TIED, WRONG, noise)
    run = pw.simulate(
        prior,
        pw.ThompsonSampling(),
        horizon=5,
        tasks=100_000,
        seed=seed,
        believed=believed,
        keep=True,
    )
    exact = exact_rewards(prior, pw.ThompsonSampling(), 5, believed=believed)
    assert abs(run.mean_reward - exact.mean_reward) < 4.6 * run.std_error
    assert (
        abs(run.mean_reward - exact_rewards(prior, pw.ThompsonSampling(), 5).mean_reward)
        > 4.6 * run.std_error
    )
    short = exact_evaluation(prior, pw.ThompsonSampling(), 2, believed=believed)
    expected = 100_000 * short.probability
    hits = (run.actions[:, None, :2] == short.actions) & (run.rewards[:, None, :2] == short.rewards)
    counts = hits.all(axis=2).sum(axis=0)
    assert counts.sum() == 100_000
    often = expected > 20
    table = (
        np.append(counts[often], counts[~often].sum()),
        np.append(expected[often], expected[~often].sum()),
    )
    keep = table[1] > 0
    assert stats.chisquare(table[0][keep], table[1][keep]).pvalue > FALSE_ALARM


def test_rewards_of_a_long_horizon() -> None:
    """40 pulls have 4^40 histories and 12,341 states in the last layer."""
    prior = pw.FinitePrior([[0.5, 0.2], [0.5, 0.9], [0.3, 0.3]], [0.5, 0.3, 0.2], noise="bernoulli")
    exact = exact_rewards(prior, pw.ThompsonSampling(), 40)
    assert exact.states < 125_000
    assert exact.by_step[0] < exact.by_step[-1]
    assert exact.by_step[-1] < prior.probs @ prior.means.max(axis=1)


def test_trees_that_are_too_large_are_refused() -> None:
    prior = pw.FinitePrior(TABLE, TRUE, noise="bernoulli")
    with raises("horizon", "pulls, more than most=1000"):
        exact_evaluation(prior, pw.Uniform(), 9, most=1000)
    normal = pw.FinitePrior(TABLE, TRUE, noise="gaussian", noise_var=1.0)
    for call, argument in (
        (lambda: exact_evaluation(normal, pw.Uniform(), 2), "prior"),
        (lambda: exact_evaluation(prior, OnlyActs(), 2), "policy"),
        (
            lambda: exact_evaluation(prior, pw.Uniform(), 2, believed=pw.FinitePrior(TABLE, TRUE)),
            "believed",
        ),
        (
            lambda: exact_trajectory_tv(
                prior, pw.FinitePrior([[0.1]], [1.0], "bernoulli"), pw.Uniform(), 2
            ),
            "other",
        ),
        (lambda: bayes_optimal(normal, 2), "prior"),
        (
            lambda: bayes_optimal(pw.BetaPrior(np.ones(3), 1.0), 20, most=1000),
            "horizon",
        ),
    ):
        with raises(argument):
            call()
    with raises("prior", "must be a prior on finitely many"):
        exact_evaluation(pw.BetaPrior([1.0, 1.0], 1.0), pw.Uniform(), 2)
    with raises("prior", "such as that of a FinitePrior or"):
        bayes_optimal(pw.GaussianPrior([0.0], [[1.0]]), 2)


def test_nearly_equal_rewards_are_one_reward() -> None:
    prior = pw.FinitePrior([[0.1 + 0.2, 0.0], [0.3, 1.0]], [0.5, 0.5])
    assert len(prior.likelihoods(0)) == 1
    assert len(exact_evaluation(prior, pw.Uniform(), 1).probability) == 3


# Optimal values


def best_of_all_policies(prior: pw.FinitePrior, horizon: int) -> float:
    """Largest value over all deterministic rules from histories of rewards to arms: brute force,
    without any posterior.
    """
    rewards = [
        sorted(set(prior.means[:, a].tolist())) if prior.noise == "none" else [0.0, 1.0]
        for a in range(prior.arms)
    ]
    shown = sorted({r for column in rewards for r in column})
    # a rule maps the rewards so far to an arm; its own past arms follow from it
    points = [history for h in range(horizon) for history in product(shown, repeat=h)]
    best = -np.inf
    for choice in product(range(prior.arms), repeat=len(points)):
        rule = dict(zip(points, choice, strict=True))
        total = 0.0
        for weight, means in zip(prior.probs.tolist(), prior.means.tolist(), strict=True):
            alive = {(): weight}
            for _ in range(horizon):
                after: dict[tuple[float, ...], float] = {}
                for history, p in alive.items():
                    mean = means[rule[history]]
                    total += p * mean
                    for r, q in (
                        [(mean, 1.0)] if prior.noise == "none" else [(1.0, mean), (0.0, 1.0 - mean)]
                    ):
                        after[(*history, r)] = after.get((*history, r), 0.0) + p * q
                alive = after
        best = max(best, total)
    return best


@pytest.mark.parametrize(
    ("prior", "horizon"),
    [
        (pw.FinitePrior([[0.6, 0.2], [0.3, 0.9]], [0.6, 0.4], "bernoulli"), 3),
        (pw.FinitePrior([[0.5, 0.1], [0.5, 0.95], [0.2, 0.4]], [0.6, 0.3, 0.1], "bernoulli"), 3),
        (pw.FinitePrior([[0.6, 0.1, 0.5], [0.3, 0.9, 0.5]], [0.6, 0.4], "bernoulli"), 3),
        (pw.FinitePrior([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5]), 3),
        (pw.FinitePrior([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]], [0.7, 0.3]), 2),
    ],
)
def test_optimal_value_is_the_best_of_all_policies(prior: pw.FinitePrior, horizon: int) -> None:
    found = bayes_optimal(prior, horizon)
    assert found.value == pytest.approx(best_of_all_policies(prior, horizon), abs=1e-12)
    assert found.value == found.first_values.max()


def beta_by_hand(alpha: tuple[float, ...], beta: tuple[float, ...], horizon: int) -> float:
    @cache
    def value(a: tuple[float, ...], b: tuple[float, ...], left: int) -> float:
        if left == 0:
            return 0.0
        best = -1.0
        for arm in range(len(a)):
            p = a[arm] / (a[arm] + b[arm])
            up, down = ([*x[:arm], x[arm] + 1, *x[arm + 1 :]] for x in (a, b))
            best = max(
                best,
                p * (1 + value(tuple(up), b, left - 1)) + (1 - p) * value(a, tuple(down), left - 1),
            )
        return best

    return value(alpha, beta, horizon)


@pytest.mark.parametrize(
    ("alpha", "beta", "horizon"),
    [
        ((1, 1), (1, 1), 2),
        ((1, 1), (1, 1), 20),
        ((0.3, 2.5), (0.7, 4.1), 15),
        ((1, 2, 3), (3, 2, 1), 7),
        ((1e12, 1), (1e12, 1), 5),
    ],
)
def test_optimal_value_of_beta_priors(
    alpha: tuple[float, ...], beta: tuple[float, ...], horizon: int
) -> None:
    found = bayes_optimal(pw.BetaPrior(alpha, beta), horizon)
    assert found.value == pytest.approx(beta_by_hand(alpha, beta, horizon), rel=1e-12)


@pytest.mark.parametrize(
    ("horizon", "value"),
    [(2, 1.083333), (5, 2.888889), (10, 6.021786), (20, 12.431265), (40, 25.446877)],
)
def test_known_values_of_two_uniform_arms(horizon: int, value: float) -> None:
    """Two Beta(1, 1) arms."""
    found = bayes_optimal(pw.BetaPrior([1.0, 1.0], 1.0), horizon)
    assert found.value == pytest.approx(value, abs=5e-7)


@settings(max_examples=30)
@given(
    table=st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=1, max_size=4),
    weights=st.lists(st.integers(0, 5), min_size=4, max_size=4),
    noise=st.sampled_from(["none", "bernoulli"]),
    horizon=st.integers(1, 5),
)
def test_no_policy_beats_the_optimal_value(
    table: list[tuple[int, int, int]], weights: list[int], noise: str, horizon: int
) -> None:
    probs = np.array(weights[: len(table)]) + 1e-3
    prior = pw.FinitePrior(np.array(table) / 4, probs / probs.sum(), noise)
    value = bayes_optimal(prior, horizon).value
    for name in ("thompson", "k-shot", "sum", "greedy", "bayes-ucb", "receding", "uniform"):
        assert exact_rewards(prior, KNOWN[name], horizon).mean_reward <= value + 1e-10
    assert exact_rewards(prior, BayesOptimalPolicy(), horizon).mean_reward == pytest.approx(
        value, abs=1e-10
    )
    assert value <= horizon * (prior.probs @ prior.means.max(axis=1)) + 1e-10


def test_greedy_can_be_far_from_optimal() -> None:
    """An arm that pays nothing and tells which of two others pays: greedy never pulls it; so the
    optimum is not just greedy.
    """
    means = [[1.0, 0.0, 0.0, 0.6], [0.0, 1.0, 0.1, 0.6]]
    prior = pw.FinitePrior(means, [0.5, 0.5])
    assert exact_rewards(prior, pw.Greedy(), 4).mean_reward == pytest.approx(4 * 0.6)
    assert bayes_optimal(prior, 4).value == pytest.approx(0.5 * 4 + 0.5 * 3)
    assert bayes_optimal(prior, 4).first_arms.tolist() == [0, 1]


@pytest.mark.parametrize(
    "prior",
    [
        pw.BetaPrior([1.0, 2.0], [1.0, 3.0]),
        pw.FinitePrior(TABLE, TRUE, "bernoulli"),
        pw.FinitePrior(TABLE, TRUE),
    ],
    ids=["beta", "bernoulli", "noiseless"],
)
def test_optimal_policy_plays_the_optimal_value(
    prior: pw.FinitePrior | pw.BetaPrior, seed: int
) -> None:
    """Within 4.6 standard errors; Thompson sampling, the control, falls short by more."""
    value = bayes_optimal(prior, 6).value
    runs = {
        name: pw.simulate(prior, policy, horizon=6, tasks=20_000, seed=seed)
        for name, policy in {
            "optimal": BayesOptimalPolicy(),
            "thompson": pw.ThompsonSampling(),
        }.items()
    }
    assert abs(runs["optimal"].mean_reward - value) < 4.6 * runs["optimal"].std_error
    assert runs["thompson"].mean_reward < value - 4.6 * runs["thompson"].std_error


def test_optimal_policy_honours_masks_and_wrong_priors(seed: int) -> None:
    prior, wrong = pw.FinitePrior(TABLE, TRUE), pw.FinitePrior(TABLE, WRONG)
    run = pw.simulate(
        prior,
        BayesOptimalPolicy(),
        horizon=4,
        tasks=200,
        seed=seed,
        believed=wrong,
        available=[True, False, True],
        keep=True,
    )
    assert set(np.unique(run.actions)) <= {0, 2}
    narrow = pw.FinitePrior(np.array(TABLE)[:, [0, 2]], TRUE)
    values = BayesOptimalPolicy().values(
        prior.belief(1), Seen(1, 4, 3, None, np.array([[True, False, True]]))
    )
    np.testing.assert_allclose(values[0, [0, 2]], bayes_optimal(narrow, 4).first_values, atol=1e-12)
    assert values[0, 1] == -np.inf


class TestBayesOptimalPolicy(PolicyContract):
    """The contract of every policy, on a problem that can be planned."""

    tasks = 2048

    @pytest.fixture
    def policy(self) -> BayesOptimalPolicy:
        return BayesOptimalPolicy()

    def problem(self, order: np.ndarray | None = None) -> pw.BetaPrior:
        order = np.arange(3) if order is None else order
        return pw.BetaPrior(np.array([1.0, 2.0, 0.5])[order], np.array([1.0, 3.0, 0.4])[order])
