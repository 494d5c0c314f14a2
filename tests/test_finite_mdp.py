"""Finitely many MDPs: posterior, plans, rounds, statistics and distances, against sums by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from raising import raises
from state_by_hand import ByHand, kept_trajectories

import priorwise as pw
from priorwise.core.protocols import Seen
from priorwise.core.streams import streams
from priorwise.families import FiniteMdpPrior
from priorwise.families.registry import family_for, unseen
from priorwise.sensitivity import exact_rewards
from priorwise.testing import FamilyContract, PriorContract
from priorwise.testing.playing import play
from priorwise.theory.enumeration import EnumerableBelief, EnumerablePrior

TS = pw.ThompsonSampling()
MOVES = np.array(
    [
        [[[0.7, 0.3], [0.2, 0.8]], [[0.5, 0.5], [0.9, 0.1]]],
        [[[0.1, 0.9], [0.6, 0.4]], [[0.3, 0.7], [0.0, 1.0]]],
        [[[0.4, 0.6], [1.0, 0.0]], [[0.8, 0.2], [0.5, 0.5]]],
    ]
)
MEANS = np.array([[[0.2, 0.5], [0.9, 0.1]], [[0.6, 0.3], [0.4, 0.8]], [[0.5, 0.5], [0.0, 1.0]]])
PROBS = [0.5, 0.3, 0.2]
COIN = FiniteMdpPrior(MOVES, MEANS, PROBS, "bernoulli", round_steps=3, start=[0.25, 0.75])
SURE = FiniteMdpPrior(MOVES, MEANS, PROBS)


def test_it_can_be_enumerated() -> None:
    for prior in (COIN, SURE):
        assert isinstance(prior, EnumerablePrior)
        assert isinstance(prior.belief(1), EnumerableBelief)


@pytest.mark.parametrize("prior", [COIN, SURE], ids=["bernoulli", "noiseless"])
def test_the_posterior_is_bayes_rule(prior: FiniteMdpPrior, seed: int) -> None:
    """Products of likelihoods along played histories; resets count for nothing."""
    played = play(prior, tasks=30, pulls=5, seed=seed)
    belief: Any = played.belief
    problem = ByHand.of(prior, 6)
    for task in range(30):
        weights = list(PROBS)
        for step, pull in enumerate(played.pulls, start=1):
            arm, state = int(pull.actions[task]), int(pull.seen.signal[task])
            shown = (float(pull.rewards[task]), int(pull.after[task]))
            weights = problem.learned(PROBS, weights, state, arm, step, shown)
        np.testing.assert_allclose(belief.probabilities()[task], weights, atol=1e-12)
    assert np.ptp(belief.probabilities(), axis=0).max() > 0.3  # something was learned


@pytest.mark.parametrize("prior", [COIN, SURE], ids=["rounds", "one round"])
def test_values_are_planned_to_the_end_of_the_round(prior: FiniteMdpPrior, seed: int) -> None:
    problem, belief = ByHand.of(prior, 7), prior.belief(40)
    state = np.arange(40) % 2
    for step in range(1, 8):
        seen = Seen(step, 7, 2, state)
        q = np.array([[problem.q(c, step, s) for c in range(3)] for s in (0, 1)])  # (s, c, arm)
        np.testing.assert_allclose(belief.points(seen.take([1])), q[1], atol=1e-12)
        want = np.einsum("c,sca->sa", PROBS, q)[state]
        np.testing.assert_allclose(belief.mean(seen), want, atol=1e-12)
        drawn = belief.sample(streams(seed, 40)(step), 5, seen)
        kept = belief.sample_environments(streams(seed, 40)(step), 5, seen)
        np.testing.assert_array_equal(kept.values(seen), drawn)
        near = np.abs(drawn[:, :, None] - q[state][:, None]).max(axis=3)  # (task, draw, candidate)
        assert near.min(axis=2).max() < 1e-12
    # tasks at different steps
    mixed = Seen(1 + np.arange(40) % 7, 7, 2, state)
    want = [
        np.einsum("c,ca->a", PROBS, [problem.q(c, 1 + t % 7, t % 2) for c in range(3)])
        for t in range(40)
    ]
    np.testing.assert_allclose(belief.mean(mixed), want, atol=1e-12)
    law = TS.probabilities(belief, mixed)
    assert law is not None
    for t in range(40):
        alone = TS.probabilities(prior.belief(1), Seen(1 + t % 7, 7, 2, state[[t]]))
        assert alone is not None
        np.testing.assert_allclose(law.probs[t], alone.probs[0], atol=1e-12)


def test_quantiles_are_those_of_the_posterior() -> None:
    belief, seen = SURE.belief(1), Seen(5, 5, 2, np.array([0]))  # Q is the reward: .2, .6, .5
    for level, value in ((0.4, 0.2), (0.5, 0.2), (0.6, 0.5), (0.7, 0.5), (0.71, 0.6), (0.99, 0.6)):
        assert belief.quantile(level, seen)[0, 0] == value


def test_environments_move_as_they_say(seed: int) -> None:
    """Frequencies of first states, moves and rewards of one candidate, within 5 standard errors
    (false alarms 1e-5 in all); those of another candidate are not.
    """
    prior, tasks = COIN.replaced(probs=[0.0, 1.0, 0.0]), 40_000
    played = play(prior, tasks=tasks, pulls=4, seed=seed).pulls
    first = played[0].seen.signal
    share = (first == 1).mean()
    assert abs(share - 0.75) < 5 * np.sqrt(0.75 * 0.25 / tasks)
    again = played[3].seen.signal  # after the reset that ends the first round
    assert abs((again == 1).mean() - 0.75) < 5 * np.sqrt(0.75 * 0.25 / tasks)
    wrong = 0
    for pull in played[:2]:
        for state in (0, 1):
            for arm in (0, 1):
                rows = (pull.seen.signal == state) & (pull.actions == arm)
                for found, table in (
                    (pull.after[rows] == 1, MOVES[..., 1]),
                    (pull.rewards[rows], MEANS),
                ):
                    room = 5 * 0.5 / np.sqrt(rows.sum())
                    assert abs(found.mean() - table[1, state, arm]) < room
                    wrong += abs(found.mean() - table[0, state, arm]) > room
    assert wrong > 8


@pytest.mark.parametrize("prior", [COIN, SURE], ids=["bernoulli", "noiseless"])
def test_statistics_tell_the_belief_all(prior: FiniteMdpPrior, seed: int) -> None:
    played = play(prior, tasks=25, pulls=5, seed=seed)
    statistics = unseen(prior, 25, "a test")
    for step, pull in enumerate(played.pulls, start=1):
        after = np.full(25, -1) if prior.round_steps and step % 3 == 0 else pull.after
        shown = np.stack([pull.seen.signal, after], axis=1)
        statistics = statistics.observe(pull.actions, pull.rewards, shown)
    given = prior.belief_given(statistics)
    np.testing.assert_allclose(given.probabilities(), played.belief.probabilities(), atol=1e-10)
    assert not given.resets.any()
    before = prior.belief(25).probabilities()
    assert np.abs(given.probabilities() - before).max() > 0.3  # control
    # evidence: what the posterior is divided by
    evidence = np.exp(family_for(prior, "a test").log_marginal(prior, statistics))
    joint = []
    for c in range(3):
        one = prior.replaced(probs=np.eye(3)[c])
        joint.append(PROBS[c] * np.exp(family_for(one, "a test").log_marginal(one, statistics)))
    np.testing.assert_allclose(evidence, np.sum(joint, axis=0), rtol=1e-10)
    np.testing.assert_allclose(given.probabilities().T, np.array(joint) / evidence, atol=1e-10)


def test_a_kept_run_is_read(seed: int) -> None:
    """All but where the last step led, which no log holds."""
    run = pw.simulate(COIN, TS, horizon=5, tasks=20, seed=seed, keep=True)
    belief = run.belief(COIN)
    log = run.kept.log[:, :, 0].astype(int)
    problem = ByHand.of(COIN, 5)
    for task in range(20):
        weights = list(PROBS)
        for step in range(1, 6):
            arm, reward = int(run.actions[task, step - 1]), float(run.rewards[task, step - 1])
            state = int(log[task, step - 1])
            if step < 5:
                shown = (reward, int(log[task, step]))
                weights = problem.learned(PROBS, weights, state, arm, step, shown)
            else:
                means = MEANS[:, state, arm]
                weights = np.array(weights) * (means if reward else 1.0 - means)
        want = np.array(weights) / np.sum(weights)
        np.testing.assert_allclose(belief.probabilities()[task], want, atol=1e-10)


def test_what_is_impossible_starts_again() -> None:
    seen, belief = Seen(1, 4, 2, np.array([1, 1])), SURE.belief(2)
    # action 1 in state 1: candidate 1 never moves to state 0, and earns 0.8
    belief = belief.update(seen, np.array([1, 1]), np.array([0.8, 0.1]), np.array([0, 0]))
    assert belief.resets.tolist() == [1, 0]
    np.testing.assert_allclose(belief.probabilities()[0], PROBS)
    np.testing.assert_allclose(belief.probabilities()[1], [1.0, 0.0, 0.0])
    assert belief.certain().tolist() == [False, True]
    statistics = unseen(SURE, 1, "a test").observe([1], [0.8], np.array([[1, 0]]))
    given = SURE.belief_given(statistics)
    assert given.resets.tolist() == [1]
    np.testing.assert_allclose(given.probabilities()[0], PROBS)


def test_distances(seed: int) -> None:
    other = COIN.replaced(probs=[0.2, 0.3, 0.5])
    assert pw.total_variation(COIN, other).value == pytest.approx(0.3)
    assert pw.total_variation(COIN, other).kind == "exact"
    twice = COIN.replaced(
        transitions=MOVES[[0, 0, 1, 2]], rewards=MEANS[[0, 0, 1, 2]], probs=[0.25, 0.25, 0.3, 0.2]
    )
    assert pw.total_variation(COIN, twice).value == pytest.approx(0.0, abs=1e-15)
    elsewhere = COIN.replaced(rewards=MEANS / 2)
    assert pw.total_variation(COIN, elsewhere).value == 1.0
    for changed in ({"round_steps": 4}, {"start": 0}, {"noise": "none"}):
        with raises("q", "of the other prior"):
            pw.total_variation(COIN, COIN.replaced(**changed))
    with raises("prior", "law of contexts"):
        pw.simulate(COIN, TS, horizon=2, tasks=2, seed=seed, believed=COIN.replaced(start=0))


def test_bad_states_are_refused() -> None:
    belief = COIN.belief(2)
    pull = (np.array([0, 1]), np.array([1.0, 0.0]))
    good = Seen(1, 4, 2, np.array([0, 1]))
    for seen, after, name in (
        (Seen(1, 4, 2), np.array([0, 1]), "seen.signal"),
        (Seen(1, 4, 2, np.array([0, 2])), np.array([0, 1]), "seen.signal"),
        (Seen(1, 4, 2, np.array([0.0, 1.0])), np.array([0, 1]), "seen.signal"),
        (good, None, "after"),
        (good, np.array([0]), "after"),
        (good, np.array([-1, 0]), "after"),
    ):
        with raises(name, "must be"):
            belief.update(seen, *pull, after)
    with raises("rewards", "must be 0 or 1"):
        belief.update(good, pull[0], np.array([1.5, 0.0]), np.array([0, 1]))


def test_rows_that_nearly_sum_to_one_are_made_to() -> None:
    moves = MOVES * (1.0 + 1e-8)
    prior = FiniteMdpPrior(moves, MEANS, PROBS)
    assert np.abs(prior.transitions.sum(axis=3) - 1.0).max() < 1e-15
    assert pw.load_prior(prior.to_json()).transitions.tobytes() == prior.transitions.tobytes()


def test_kept_draws_run_as_enumerated(seed: int) -> None:
    """Trajectories of PSRL in the loop against their law by hand: chi-square, false alarms 1e-5;
    the law of draws that are renewed at each step is noticed.
    """
    from scipy import stats

    policy, tasks, p_values = pw.policies.RoundSampling(steps=2), 20_000, []
    prior = SURE.replaced(round_steps=2)
    run = pw.simulate(prior, policy, horizon=2, tasks=tasks, seed=seed, keep=True)
    for kept in (2, 1):
        law = kept_trajectories(ByHand.of(prior, 2), PROBS, PROBS, kept)
        want: dict[Any, float] = {}
        for path, chance in law.items():
            key = (path[0], path[1], path[3], path[4])
            want[key] = want.get(key, 0.0) + chance
        found = dict.fromkeys(want, 0)
        columns = (run.kept.log[:, :, 0].astype(int), run.actions)
        for s, a in zip(*(each.tolist() for each in columns), strict=True):
            key = (s[0], a[0], s[1], a[1])
            found[key] = found.get(key, 0) + 1
        if found.keys() != want.keys():
            p_values.append(0.0)
            continue
        counts = np.array([found[key] for key in want])
        p_values.append(stats.chisquare(counts, tasks * np.array(list(want.values()))).pvalue)
    assert p_values[0] > 1e-5
    assert p_values[1] < 1e-5


def test_a_wrong_prior_loses(seed: int) -> None:
    """Sure of the wrong candidate: the loss is more than 5 paired standard errors, and within 5 of
    the exact one (6e-7).
    """
    prior, wrong = COIN.replaced(probs=[0.9, 0.1, 0.0]), COIN.replaced(probs=[0.001, 0.999, 0.0])
    runs = {"right": (TS, prior), "wrong": (TS, wrong)}
    lost = pw.compare(prior, runs, horizon=9, tasks=20_000, seed=seed).difference("right", "wrong")
    assert lost.mean > 5 * lost.std_error
    exact = [exact_rewards(prior, TS, 9, believed=each).mean_reward for each in (prior, wrong)]
    assert abs(lost.mean - (exact[0] - exact[1])) < 5 * lost.std_error


class TestContract(PriorContract):
    """Three candidates leave few ranks: more tasks than usual, and fewer pulls, which decide."""

    tasks, pulls = 16_384, 3

    @pytest.fixture(params=[COIN, SURE], ids=["bernoulli", "noiseless"])
    def prior(self, request: Any) -> Any:
        return request.param.replaced(rewards=MEANS if request.param is COIN else MEANS[0])

    @pytest.fixture
    def believed(self, prior: Any) -> Any:
        return prior.replaced(probs=[0.0, 0.5, 0.5])


class TestFamily(FamilyContract):
    @pytest.fixture(params=[COIN, SURE], ids=["bernoulli", "noiseless"])
    def prior(self, request: Any) -> Any:
        return request.param
