"""General decision problems: every problem of the paper's appendix runs with rules on drawn
environments, finite ones with 2-RHC, and both are exact against recursion by hand.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any, ClassVar

import hidden_by_hand
import numpy as np
import pytest
import state_by_hand
import test_hidden_state
import test_state_exact
from raising import raises
from registry import CART, NOISY_CART, OWN_CONTEXTS, PRIORS, STATE_PRIORS, VALUES
from scipy import stats
from state_by_hand import distance, marginal

import priorwise as pw
from priorwise.core.drawn import drawn_environments
from priorwise.core.protocols import Seen
from priorwise.core.streams import Purpose, Stream, Streams, streams
from priorwise.families import FiniteLqgPrior, FiniteMdpPrior, FinitePomdpPrior
from priorwise.policies import EnvironmentSampling
from priorwise.policies.laws import action_law
from priorwise.sensitivity import exact_rewards, exact_trajectory_tv
from priorwise.simulate.steps import steps
from priorwise.testing import base_seed

FINITE_MDP = FiniteMdpPrior(
    np.random.default_rng(base_seed()).dirichlet(np.ones(2), size=(3, 2, 2)),
    [[[0.2, 0.6], [0.9, 0.1]], [[0.7, 0.3], [0.2, 0.8]], [[0.5, 0.5], [0.1, 0.4]]],
    [0.5, 0.3, 0.2],
    noise="bernoulli",
    round_steps=3,
)
TIGER = pw.families.tiger([0.7, 0.9], [0.5, 0.5])
MIXED = pw.MixturePrior([pw.BetaPrior([1, 2], 3.0), pw.BetaPrior([0.1, 7], 1.0)], [0.3, 0.7])
# the special cases of the appendix, and all families
PROBLEMS: dict[str, Any] = {
    **{name: prior for name, (prior, _) in (PRIORS | STATE_PRIORS).items()},
    "finite-mdp": FINITE_MDP,
    "finite-pomdp": TIGER,
    "mixture": MIXED,
    "own-contexts": OWN_CONTEXTS,
    "particle": VALUES["particle"],
    "particle-of-draws": VALUES["particle-of-draws"],
    "particle-with-contexts": VALUES["particle-with-contexts"],
    "logistic": VALUES["logistic"],
}
CONTROL: dict[str, Any] = {
    "linear-quadratic": pw.LinearQuadraticPrior([[0.5]], [[0.8]], 0.01 * np.eye(2), CART),
    "finite-linear-quadratic": pw.families.FiniteLinearQuadraticPrior(
        [[[0.5]], [[0.9]]], [[[1.0]], [[-1.0]]], [0.3, 0.7], CART
    ),
    "finite-lqg": FiniteLqgPrior([[[0.5]], [[0.9]]], [[[1.0]], [[-1.0]]], [0.3, 0.7], NOISY_CART),
}


def best_of_the_first(drawn: Any, seen: Seen) -> Any:
    values = seen.masked(drawn.values(seen))[:, 0]
    return np.eye(seen.arms)[values.argmax(axis=1)]


@pytest.mark.parametrize("name", PROBLEMS)
def test_drawn_environments_have_the_values_that_are_drawn(name: str, seed: int) -> None:
    """The draws of ``sample`` on one stream, with what has been played before."""
    prior, tasks = PROBLEMS[name], 20
    numbers = Streams(seed, np.arange(tasks, dtype=np.uint64))
    environment = prior.sample(numbers.at(Purpose.ENVIRONMENT, 0), tasks)
    belief, policy = prior.belief(tasks), pw.Uniform()
    for step in steps(environment, belief, policy, numbers, horizon=3, arms=prior.arms):
        belief, seen = step.belief, step.seen
        drawn = drawn_environments(belief, streams(seed, tasks)(7), 4, seen)
        values = belief.sample(streams(seed, tasks)(7), 4, seen)
        np.testing.assert_allclose(drawn.values(seen), values, rtol=1e-9, atol=1e-12)
        other = belief.sample(streams(seed, tasks)(8), 4, seen)
        assert seen.step == 3 or not np.allclose(other, values)  # control; last rewards are known


@pytest.mark.parametrize("name", PROBLEMS)
def test_rules_on_environments_run(name: str, seed: int) -> None:
    policy = EnvironmentSampling(2, best_of_the_first)
    run = pw.simulate(PROBLEMS[name], policy, horizon=3, tasks=10, seed=seed)
    assert run.tasks == 10
    assert policy.monte_carlo_n(PROBLEMS[name].arms) == 2


def test_draws_of_mean_and_variance_are_joint(seed: int) -> None:
    """``lambda ~ Gamma(a, b)`` and ``k lambda (mu - m)^2 ~ chi^2(1)`` beside it: a Kolmogorov and a
    rank test at 1e-6 each. A precision drawn without the mean fails (control).
    """
    prior = pw.NormalGammaPrior([0.5], 2.0, 1.3, 0.7)
    belief, seen = prior.belief(1), Seen(1, 2, 1)
    belief = belief.update(seen, np.array([0]), np.array([1.4]), None)
    drawn = belief.sample_environments(streams(seed, 1)(1), 20_000, seen)
    precision = 1.0 / drawn.variances[0, :, 0]
    square = belief.k[0, 0] * (drawn.means[0, :, 0] - belief.m[0, 0]) ** 2
    gamma = stats.gamma(belief.a[0, 0], scale=1.0 / belief.b[0, 0])
    assert stats.kstest(precision, gamma.cdf).pvalue > 1e-6
    assert stats.kstest(square * precision, stats.chi2(1).cdf).pvalue > 1e-6
    assert stats.spearmanr(square * precision, precision).pvalue > 1e-6
    apart = gamma.rvs(20_000, random_state=np.random.default_rng(seed))
    assert stats.kstest(square * apart, stats.chi2(1).cdf).pvalue < 1e-6


def test_a_rule_may_read_what_the_family_draws(seed: int) -> None:
    shapes: dict[str, tuple[Any, dict[str, tuple[int, ...]]]] = {
        "normal-gamma": (
            pw.NormalGammaPrior([0.0, 0.1], 1.0, 2.0, 1.0),
            {"means": (9, 4, 2), "variances": (9, 4, 2)},
        ),
        "gaussian": (PROBLEMS["gaussian"], {"weights": (9, 4, 3)}),
        "linear": (PROBLEMS["linear-sphere"], {"weights": (9, 4, PROBLEMS["linear-sphere"].dim)}),
        "logistic": (PROBLEMS["logistic"], {"weights": (9, 4, 2)}),
        "finite": (PROBLEMS["finite"], {"points": (9, 4), "means": (9, 4, 3)}),
        "mdp": (PROBLEMS["mdp"], {"transitions": (9, 4, 3, 2, 3), "rewards": (9, 4, 3, 2)}),
        "finite-mdp": (FINITE_MDP, {"points": (9, 4), "transitions": (9, 4, 2, 2, 2)}),
        "finite-pomdp": (
            TIGER,
            {
                "points": (9, 4),
                "transitions": (9, 4, 2, 3, 2),
                "observations": (9, 4, 2, 3, 2),
                "rewards": (9, 4, 2, 3),
                "states": (9, 4, 2),
            },
        ),
        "mixture": (MIXED, {"components": (9, 4)}),
        "particle": (VALUES["particle"], {"parameters": (9, 4, 3)}),
    }
    for name, (prior, found) in shapes.items():
        read = []

        def rule(drawn: Any, seen: Seen, found: Any = found, read: Any = read) -> Any:
            read.append({each: getattr(drawn, each).shape for each in found})
            return best_of_the_first(drawn, seen)

        pw.simulate(prior, EnvironmentSampling(4, rule), horizon=2, tasks=9, seed=seed)
        assert read[-1] == found, name


@pytest.mark.parametrize("name", CONTROL)
def test_rules_choose_real_valued_actions(name: str, seed: int) -> None:
    """With one draw, the best action of it is Thompson sampling's."""
    prior, options = CONTROL[name], {"horizon": 4, "tasks": 30, "seed": seed, "keep": True}

    def first(drawn: Any, seen: Seen) -> Any:
        return drawn.best_actions(seen)[:, 0]

    run = pw.simulate(prior, EnvironmentSampling(1, first), **options)
    plain = pw.simulate(prior, pw.ThompsonSampling(), **options)
    np.testing.assert_allclose(run.actions, plain.actions, rtol=1e-12)
    for wrong in (lambda drawn, seen: None, lambda drawn, seen: np.zeros(3)):
        with raises("rule's actions", "must be"):
            pw.simulate(prior, EnvironmentSampling(1, wrong), **options)


@pytest.mark.parametrize("name", ["finite-linear-quadratic", "finite-lqg"])
def test_the_law_of_a_real_valued_action(name: str, seed: int) -> None:
    """The mean of the best actions of two draws, by the pairs of candidates."""
    prior, tasks = CONTROL[name], 5
    numbers = Streams(seed, np.arange(tasks, dtype=np.uint64))
    environment = prior.sample(numbers.at(Purpose.ENVIRONMENT, 0), tasks)
    belief, thompson = prior.belief(tasks), pw.ThompsonSampling()
    actions: Any = prior.actions
    played = steps(environment, belief, thompson, numbers, horizon=3, arms=0, actions=actions)

    def mean(drawn: Any, seen: Seen) -> Any:
        return drawn.best_actions(seen).mean(axis=1)

    policy = EnvironmentSampling(2, mean)
    for step in played:
        one = thompson.real_action_law(step.belief, step.seen)
        law = policy.real_action_law(step.belief, step.seen)
        assert one is not None
        assert law is not None
        pairs = list(product(range(2), repeat=2))
        want = np.stack([one.actions[:, pair].mean(axis=1) for pair in map(list, pairs)], axis=1)
        odds = np.stack([one.probs[:, a] * one.probs[:, b] for a, b in pairs], axis=1)
        np.testing.assert_allclose(law.actions, want, atol=1e-12)
        np.testing.assert_allclose(law.probs, odds, atol=1e-12)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        (lambda drawn, seen: None, ("rule", "must return")),
        (lambda drawn, seen: drawn, ("rule", "must return one probability")),
        (lambda drawn, seen: drawn.values(seen), ("rule", "one probability for each task and arm")),
        (lambda drawn, seen: drawn.values(seen)[:, 0] * 0.0, ("rule", "sum to 1")),
        (lambda drawn, seen: drawn.values(seen)[:, 0] * np.nan, ("rule", "sum to 1")),
        (lambda drawn, seen: np.ones((1, seen.arms)) / seen.arms, ("rule", "must return one prob")),
        (
            lambda drawn, seen: np.eye(seen.arms)[drawn.points[:, 0] * 0],
            ("rule", "probability 0 to arms"),
        ),
    ],
)
def test_wrong_rules_are_named(wrong: Any, match: str | tuple[str, str], seed: int) -> None:
    prior, policy = PROBLEMS["finite-bernoulli"], EnvironmentSampling(2, wrong)
    belief, mask = prior.belief(3), np.tile([False, True, True], (3, 1))
    seen = Seen(1, 2, 3, None, mask)
    with raises(match):
        policy.act(belief, seen, streams(seed, 3)(1))
    with raises(match):
        policy.probabilities(belief, seen)


# Exact laws and rewards, against recursion by hand


def softmax(scores: list[float]) -> list[float]:
    weights = np.exp(scores)
    return (weights / weights.sum()).tolist()


def soft(scores: Any) -> Any:
    weights = np.exp(scores)
    return weights / weights.sum(axis=1, keepdims=True)


def odd_rule(drawn: Any, seen: Seen) -> Any:
    """Look at the order of two draws, at their tables and at the step."""
    rows, values = np.arange(len(drawn.points)), drawn.values(seen)
    extra = drawn.rewards[:, 1].max(axis=1) + drawn.transitions[:, 0, 0, :, 0]
    if isinstance(drawn, pw.families.finite_pomdp.environment.DrawnPomdps):
        extra = extra + drawn.states[:, 1, :1] + drawn.observations[:, 0, 0, :, 0]
    else:
        extra = extra + drawn.rewards[rows, 0, seen.signal]
    return soft(values[:, 0] - 2.0 * values[:, 1] + seen.step * extra)


def odd_in_mdps(problem: Any, weights: list[float], step: int, state: int) -> list[float]:
    law = np.zeros(problem.arms)
    for first, second in product(range(len(weights)), repeat=2):
        scores = []
        for a in range(problem.arms):
            extra = max(row[a] for row in problem.means[second]) + problem.moves[first][0][a][0]
            extra += problem.means[first][state][a]
            value = problem.q(first, step, state)[a] - 2.0 * problem.q(second, step, state)[a]
            scores.append(value + step * extra)
        law += weights[first] * weights[second] * np.array(softmax(scores))
    return law.tolist()


def odd_in_pomdps(problem: Any, joint: Any, step: int) -> list[float]:
    size, law = hidden_by_hand.total(joint), np.zeros(problem.arms)
    for first, second in product(range(len(joint)), repeat=2):
        one, two = sum(joint[first]), sum(joint[second])
        if one * two == 0.0:
            continue
        scores = []
        for a in range(problem.arms):
            extra = max(row[a] for row in problem.means[second]) + problem.moves[first][0][a][0]
            extra += joint[second][0] / two + problem.sights[first][0][a][0]
            value = problem.q(first, joint[first], step)[a] / one
            value -= 2.0 * problem.q(second, joint[second], step)[a] / two
            scores.append(value + step * extra)
        law += one * two / size**2 * np.array(softmax(scores))
    return law.tolist()


Pair = tuple[float, float]


def largest(arms: list[dict[Pair, float]]) -> list[float]:
    """Probability that each arm's (value, tie-breaker) is the largest; ties share it."""
    law = [0.0] * len(arms)
    ranks = [ranked([pair[which] for each in arms for pair in each]) for which in (0, 1)]
    levels: list[dict[Pair, float]] = []
    for each in arms:
        level: dict[Pair, float] = defaultdict(float)
        for (value, now), p in each.items():
            level[ranks[0][value], ranks[1][now]] += p
        levels.append(level)
    for outcome in product(*(level.items() for level in levels)):
        p = float(np.prod([chance for _, chance in outcome]))
        top = max(pair for pair, _ in outcome)
        tied = [pair == top for pair, _ in outcome]
        for a, best in enumerate(tied):
            law[a] += p * best / sum(tied)
    return law


def ranked(values: list[float]) -> dict[float, float]:
    """Rank of each value, the same for values that differ by rounding alone."""
    ranks: dict[float, float] = {}
    rank, last = 0, -np.inf
    for value in sorted(values):
        rank += value > last + 1e-11
        ranks[value], last = rank, value
    return ranks


def summed(one: dict[Pair, float], times: int) -> dict[Pair, float]:
    """Law of the sum of so many independent pairs."""
    out = {(0.0, 0.0): 1.0}
    for _ in range(times):
        then: dict[Pair, float] = defaultdict(float)
        for ((v, n), p), ((w, m), q) in product(out.items(), one.items()):
            then[v + w, n + m] += p * q
        out = dict(then)
    return out


Choice = tuple[int, int, float]  # k1, k2, alpha


def ahead_in_mdps(k1: int, k2: int, alpha: float, *, over: bool = True) -> Any:
    """2-RHC by summing over all that it draws; ``over``: nothing is left after the last step."""

    def rule(problem: Any, weights: list[float], step: int, state: int) -> list[float]:
        arms, count = [], range(len(weights))
        last = over and step == problem.horizon
        for arm in range(problem.arms):
            one: dict[Pair, float] = defaultdict(float)
            for c in (c for c in count if weights[c] > 0.0):
                now = problem.means[c][state % problem.states][arm]
                for shown, p in problem.shown(c, state, arm, step).items():
                    after = problem.learned(weights, weights, state, arm, step, shown)
                    for drawn in product(count, repeat=k2):
                        q = float(np.prod([after[d] for d in drawn]))
                        then = min(step + 1, problem.horizon)
                        ahead = (
                            0.0
                            if last
                            else max(
                                sum(problem.q(d, then, shown[1])[a] for d in drawn) / k2
                                for a in range(problem.arms)
                            )
                        )
                        value = (1.0 - alpha) * now + alpha * ahead
                        one[value, now] += weights[c] * p * q
            arms.append(summed(one, k1))
        return largest(arms)

    return rule


def ahead_in_pomdps(k1: int, k2: int, alpha: float) -> Any:
    """2-RHC with a hidden state, by summing over all that it draws."""

    def rule(problem: Any, joint: Any, step: int) -> list[float]:
        size, arms = hidden_by_hand.total(joint), []
        for arm in range(problem.arms):
            one: dict[Pair, float] = defaultdict(float)
            for new in problem.after(joint, arm, step).values():
                after = [sum(row) for row in new]
                left = [c for c, weight in enumerate(after) if weight > 0.0]
                q = {c: problem.q(c, new[c], step + 1) for c in left}
                for c in left:
                    now = sum(w * problem.means[c][s][arm] for s, w in enumerate(joint[c]))
                    now /= sum(joint[c])
                    for drawn in product(left, repeat=k2):
                        chance = float(np.prod([after[d] / sum(after) for d in drawn]))
                        ahead = (
                            0.0
                            if step == problem.horizon
                            else max(
                                sum(q[d][a] / after[d] for d in drawn) / k2
                                for a in range(problem.arms)
                            )
                        )
                        value = (1.0 - alpha) * now + alpha * ahead
                        one[value, now] += after[c] / size * chance
            arms.append(summed(one, k1))
        return largest(arms)

    return rule


CHOICES: list[Choice] = [(1, 1, 1.0), (2, 1, 0.5), (1, 2, 0.7)]
POLICIES: dict[str, tuple[Any, Callable[..., Any], Callable[..., Any]]] = {
    "rule on environments": (EnvironmentSampling(2, odd_rule), odd_in_mdps, odd_in_pomdps),
    **{
        f"2-RHC{each}": (
            pw.RecedingHorizon(*each), ahead_in_mdps(*each), ahead_in_pomdps(*each)
        )
        for each in CHOICES
    },
}  # fmt: skip


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("number", range(5))
def test_finite_mdps_are_as_by_hand(number: int, name: str, seed: int) -> None:
    """Expected rewards, and the distance of trajectories, to 1e-10."""
    p, q = test_state_exact.instances(5 * seed + number, 1)[0]
    policy, rule, _ = POLICIES[name]
    horizon = 3 if p.support * p.states < 6 else 2
    problem = state_by_hand.ByHand.of(p, horizon)
    true, held = p.probs.tolist(), q.probs.tolist()
    laws = [state_by_hand.trajectories(problem, true, each, rule) for each in (true, held)]
    wants = [state_by_hand.reward(law) for law in laws]
    found = [exact_rewards(p, policy, horizon, believed=each).mean_reward for each in (p, q)]
    assert found == pytest.approx(wants, abs=1e-10)
    apart = distance(marginal(laws[0]), marginal(laws[1]))
    assert exact_trajectory_tv(p, q, policy, horizon).value == pytest.approx(apart, abs=1e-10)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("number", range(4))
def test_finite_pomdps_are_as_by_hand(number: int, name: str, seed: int) -> None:
    """The same with a hidden state."""
    p, q = test_hidden_state.instances(4 * seed + number, 1, planner="exact")[0]
    policy, _, rule = POLICIES[name]
    problem = hidden_by_hand.ByHand.of(p, 2)
    true, held = p.probs.tolist(), q.probs.tolist()
    laws = [hidden_by_hand.trajectories(problem, true, each, rule) for each in (true, held)]
    wants = [sum(sum(path[1::3]) * sum(each) for path, each in law.items()) for law in laws]
    found = [exact_rewards(p, policy, 2, believed=each).mean_reward for each in (p, q)]
    assert found == pytest.approx(wants, abs=1e-10)
    apart = distance(marginal(laws[0]), marginal(laws[1]))
    assert exact_trajectory_tv(p, q, policy, 2).value == pytest.approx(apart, abs=1e-10)


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("number", range(3))
def test_finite_bandits_are_as_by_hand(number: int, choice: Choice, seed: int) -> None:
    """A bandit is an MDP of one state whose rounds have one step."""
    generator = np.random.default_rng([seed, number])
    means = generator.random((3, 2)).round(2)
    p, q = (
        pw.FinitePrior(means, generator.dirichlet(np.ones(3)), noise="bernoulli") for _ in range(2)
    )
    as_mdp = FiniteMdpPrior(
        np.ones((3, 1, 2, 1)), means[:, None], p.probs, noise="bernoulli", round_steps=1
    )
    problem = state_by_hand.ByHand.of(as_mdp, 3)
    true, held = p.probs.tolist(), q.probs.tolist()

    def pairs(drawn: Any, seen: Seen) -> Any:
        return soft(drawn.means[:, 0] - 2.0 * drawn.means[:, 1] + drawn.points[:, :1] * [0.0, 1.0])

    def pairs_by_hand(problem: Any, weights: list[float], step: int, state: int) -> list[float]:
        law = np.zeros(2)
        for i, j in product(range(3), repeat=2):
            scores = means[i] - 2.0 * means[j] + i * np.array([0.0, 1.0])
            law += weights[i] * weights[j] * np.array(softmax(scores.tolist()))
        return law.tolist()

    for policy, rule in (
        (pw.RecedingHorizon(*choice), ahead_in_mdps(*choice, over=False)),
        (EnvironmentSampling(2, pairs), pairs_by_hand),
    ):
        law = state_by_hand.trajectories(problem, true, held, rule)
        found = exact_rewards(p, policy, 3, believed=q).mean_reward
        assert found == pytest.approx(state_by_hand.reward(law), abs=1e-10)


class AnyRewards(state_by_hand.ByHand):
    """One state, rounds of one step, and any law of rewards in each candidate."""

    laws: ClassVar[Any] = None  # [candidate][arm][reward]

    def shown(self, candidate: int, state: int, arm: int, step: int) -> dict[Any, float]:
        return {(r, 0): p for r, p in zip(PAID, self.laws[candidate][arm], strict=True) if p > 0.0}


PAID = (0.0, 1.0, 3.0)


@pytest.mark.parametrize("choice", CHOICES)
def test_bandits_with_general_rewards_are_as_by_hand(choice: Choice, seed: int) -> None:
    """The environment is the whole law of rewards, of which a rule reads the share of the largest
    reward.
    """
    laws = np.random.default_rng(seed).dirichlet(np.ones(3), size=(3, 2))  # (task, arm, reward)

    def log_density(rows: Any, arm: int, reward: Any) -> Any:
        place = np.searchsorted(PAID, np.asarray(reward))
        return np.log(rows.reshape(-1, 2, 3)[np.arange(len(rows)), arm, place])

    options: dict[str, Any] = {"rewards": list(PAID), "arms": 2}
    p, q = (
        pw.ParticlePrior(laws.reshape(3, 6), log_density, weights=w, **options)
        for w in ([0.5, 0.3, 0.2], [0.2, 0.2, 0.6])
    )
    means = laws @ np.array(PAID)
    problem = AnyRewards(None, means[:, None].tolist(), False, [1.0], 1, 3)
    AnyRewards.laws = laws.tolist()

    def large(drawn: Any, seen: Seen) -> Any:
        share = drawn.parameters.reshape(-1, 2, 2, 3)[..., 2]  # (task, draw, arm)
        return soft(4.0 * share[:, 0] - share[:, 1] * drawn.values(seen)[:, 1])

    def large_by_hand(problem: Any, weights: list[float], step: int, state: int) -> list[float]:
        law = np.zeros(2)
        for i, j in product(range(3), repeat=2):
            scores = 4.0 * laws[i, :, 2] - laws[j, :, 2] * means[j]
            law += weights[i] * weights[j] * np.array(softmax(scores.tolist()))
        return law.tolist()

    for policy, rule in (
        (EnvironmentSampling(2, large), large_by_hand),
        (pw.RecedingHorizon(*choice), ahead_in_mdps(*choice, over=False)),
    ):
        law = state_by_hand.trajectories(problem, [0.5, 0.3, 0.2], [0.2, 0.2, 0.6], rule)
        found = exact_rewards(p, policy, 3, believed=q).mean_reward
        assert found == pytest.approx(state_by_hand.reward(law), abs=1e-10)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("own", [False, True], ids=["shared contexts", "contexts of the task"])
def test_contextual_bandits_are_as_by_hand(own: bool, name: str, seed: int) -> None:
    """A context is a state that no action moves; its law is shared, or belongs to the task."""
    generator = np.random.default_rng([seed, own])
    contexts = generator.dirichlet(np.ones(2), size=2)
    contexts = contexts if own else contexts[[0, 0]]
    p = FiniteMdpPrior(
        np.broadcast_to(contexts[:, None, None], (2, 2, 2, 2)),
        generator.random((2, 2, 2)).round(2),
        [0.4, 0.6],
        noise="bernoulli",
        start=[0.5, 0.5],
    )
    policy, rule, _ = POLICIES[name]
    law = state_by_hand.trajectories(state_by_hand.ByHand.of(p, 3), [0.4, 0.6], [0.7, 0.3], rule)
    found = exact_rewards(p, policy, 3, believed=p.replaced(probs=[0.7, 0.3])).mean_reward
    assert found == pytest.approx(state_by_hand.reward(law), abs=1e-10)


PAIRS = np.array(list(product(range(2), repeat=2)))


class EveryPair(Stream):
    """Draws all pairs of two components, a task each, and keeps what it was asked to draw from."""

    asked: list[Any]

    def choice(self, weights: Any, *shape: int) -> Any:
        self.asked.append(weights)
        return np.tile(PAIRS, (self.tasks // 4, 1)) if shape else super().choice(weights)


def components_rule(drawn: Any, seen: Seen) -> Any:
    """Look at the order of two draws, at their components, at the context and at the step."""
    values, second = drawn.values(seen), drawn.components[:, 1:]
    signal: Any = seen.signal
    return soft(3.0 * values[:, 0] - 2.0 * values[:, 1] + seen.step * second * signal[:, :, 0])


def law_of_pairs(belief: Any, history: Any, step: int) -> Any:
    """What a rule on two draws plays after histories of (context, action, reward), summed over the
    pairs of components that the belief may draw.
    """
    every = [np.repeat(column, 4, axis=0) for column in history]
    for past in range(step):
        seen = Seen(past + 1, 3, 2, every[3 * past])
        if past < step - 1:
            belief = belief.update(seen, *every[3 * past + 1 : 3 * past + 3], None)
    rng = EveryPair(np.arange(belief.tasks, dtype=np.uint64), step)
    rng.asked = []
    EnvironmentSampling(2, components_rule).act(belief, seen, rng)
    weights, law = rng.asked
    odds = np.take_along_axis(weights, np.tile(PAIRS, (len(weights) // 4, 1)), axis=1).prod(axis=1)
    return (odds[:, None] * law).reshape(-1, 4, 2).sum(axis=1)


@pytest.mark.parametrize("number", range(5))
def test_contexts_that_tell_of_the_task_are_as_by_hand(number: int, seed: int) -> None:
    """A mixture whose components show contexts of their own, so that the first context teaches.

    After every history the rule plays what a sum over pairs of components says: to 1e-10 before a
    reward, later to 1e-7 because predictive rates of log odds are computed to 2e-9. It earns what
    all histories do, within four standard errors: false alarms in one of 16,000 cases. A belief
    that is blind to contexts is the control.
    """
    generator = np.random.default_rng([seed, number])
    tables, weights = generator.uniform(-1.5, 1.5, (2, 2, 1)), generator.uniform(-1.5, 1.5, 2)
    counts = generator.permutation([[1, 3], [2, 1 - number % 2]])  # some cannot be shown
    true, held = generator.dirichlet(np.ones(2), size=2)
    parts = [
        pw.LogisticPrior([w], [[0.0]], np.repeat(tables, count, axis=0))
        for w, count in zip(weights, counts, strict=True)
    ]
    p, q = (pw.MixturePrior(parts, probs) for probs in (true, held))
    share = counts / counts.sum(axis=1, keepdims=True)  # (component, table)
    rates = 1.0 / (1.0 + np.exp(-weights[:, None, None] * tables[:, :, 0]))  # (.., table, arm)
    value, blind = 0.0, 0.0
    before: dict[Any, Any] = {(): np.array(true)}
    for step in (1, 2, 3):
        found, after = [], {}
        for history, joint in before.items():
            for x in range(2):
                now = joint * share[:, x]
                if now.sum() > 0.0:
                    found.append(((*history, x), now))
        paths = np.array([path for path, _ in found])
        columns = [tables[c] if i % 3 == 0 else c for i, c in enumerate(paths.T)]
        columns = [c.astype(float) if i % 3 == 2 else c for i, c in enumerate(columns)]
        belief = q.belief(4 * len(paths))
        played = law_of_pairs(belief, columns, step)
        unseen = law_of_pairs(replace(belief, contexts=None), columns, step)
        want = np.zeros_like(played)
        for row, (path, joint) in enumerate(found):
            x, posterior = path[-1], held / true * joint / (held / true * joint).sum()
            for first, second in product(range(2), repeat=2):
                scores = 3.0 * rates[first, x] - 2.0 * rates[second, x]
                scores = scores + step * second * tables[x, :, 0]
                want[row] += posterior[first] * posterior[second] * np.array(softmax(scores))
            for arm, reward in product(range(2), repeat=2):
                chance = rates[:, x, arm] if reward else 1.0 - rates[:, x, arm]
                after[*path, arm, reward] = joint * want[row, arm] * chance
            value += float(joint @ rates[:, x] @ want[row])
        np.testing.assert_allclose(played, want, rtol=0.0, atol=1e-10 if step == 1 else 1e-7)
        blind = max(blind, np.abs(unseen - want).max())
        before = after
    assert blind > 1e-4
    policy = EnvironmentSampling(2, components_rule)
    run = pw.simulate(p, policy, believed=q, horizon=3, tasks=20_000, seed=seed)
    assert abs(run.mean_reward - value) < 4.0 * run.std_error


# What is played is what the laws say, and the constant holds


@pytest.mark.parametrize("name", ["finite-mdp", "finite-pomdp"])
@pytest.mark.parametrize(
    "policy",
    [
        EnvironmentSampling(2, odd_rule),
        pw.RecedingHorizon(2, 2, 0.5),
        pw.KnowledgeGradient(1, 2, ties="random", when_certain="best"),
    ],
    ids=["rule", "2-RHC", "KG"],
)
def test_policies_play_their_laws(name: str, policy: Any, seed: int) -> None:
    """Frequencies over 20,000 tasks at each of three steps, chi-squared at 1e-6; a law that gives
    the rarest arm a tenth more fails (control).
    """
    prior, tasks = PROBLEMS[name], 20_000
    signal = np.full(tasks, -1 if name == "finite-pomdp" else 0)
    belief, apart = prior.belief(tasks), []
    for step in (1, 2, 3):
        seen = Seen(step, 3, prior.arms, signal)
        actions = policy.act(belief, seen, streams(seed, tasks)(step))
        law = policy.probabilities(belief.take([0]), seen.take([0]))
        assert law is not None
        assert law.source == "exact"
        counts = np.bincount(actions, minlength=prior.arms)
        some = law.probs[0] > 0.0
        assert counts[~some].sum() == 0
        if some.sum() > 1:
            assert stats.chisquare(counts[some], law.probs[0, some] * tasks).pvalue > 1e-6
            wrong = 0.9 * law.probs[0, some]
            wrong[wrong.argmin()] += 0.1
            apart.append(stats.chisquare(counts[some], wrong * tasks).pvalue)
        move, reward = np.zeros(tasks, dtype=np.int64), np.full(tasks, prior.rewards[0, 0, 0])
        reward = reward if prior.noise == "none" else np.ones(tasks)
        after = np.zeros(tasks, dtype=np.int64)
        belief, signal = belief.update(seen, move, reward, after), after
    assert not apart or min(apart) < 1e-6


def test_the_constant_of_two_step_control_holds(seed: int) -> None:
    """``TV(actions) <= A k1 (2 k2 + 3) TV(posteriors)`` for priors on the same candidates, with a
    state and with a hidden state; ``TV(posteriors)`` itself is not enough (control).
    """
    most = 0.0
    for p, q in (
        *test_state_exact.instances(seed, 40), *test_hidden_state.instances(seed, 40)
    ):  # fmt: skip
        tv = float(np.abs(p.probs - q.probs).sum() / 2.0)
        signal = np.array([-1 if isinstance(p, FinitePomdpPrior) else 0])
        seen = Seen(1, 3, p.arms, signal)
        for policy in (pw.RecedingHorizon(2, 1, 0.5), pw.RecedingHorizon(1, 2, 1.0)):
            first, second = (policy.probabilities(each.belief(1), seen) for each in (p, q))
            assert first is not None
            assert second is not None
            apart, n = float(first.distance(second)[0]), policy.monte_carlo_n(p.arms)
            assert n is not None
            assert apart <= n * tv + 1e-12
            most = max(most, apart / tv)
    assert most > 1.0


def test_no_law_where_it_cannot_be_enumerated(seed: int) -> None:
    seen = Seen(1, 3, 3)
    policy = EnvironmentSampling(20, best_of_the_first)
    assert policy.probabilities(PROBLEMS["finite"].belief(1), seen) is None
    assert policy.probabilities(PROBLEMS["gaussian"].belief(1), seen) is None
    law = action_law(policy, PROBLEMS["gaussian"].belief(2), seen, streams(seed, 2)(1), draws=16)
    assert law.source == "sampling"
