"""Finitely many POMDPs: filter, plans, environments and problems, against sums by hand."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hidden_by_hand import ByHand, posterior
from raising import raises

import priorwise as pw
from priorwise.core.protocols import Seen
from priorwise.core.streams import Purpose, Streams, streams
from priorwise.families import FinitePomdpPrior, corridor, tiger
from priorwise.families.finite_pomdp import planner, planning
from priorwise.families.finite_pomdp.planning import exact_plan, qmdp_plan
from priorwise.testing import FamilyContract, JsonContract, PriorContract
from priorwise.testing.calibration import Forgetful
from priorwise.testing.laws import bonferroni, randomised_ranks, uniform_p_value
from priorwise.testing.playing import play
from priorwise.theory.enumeration import EnumerablePrior, HiddenStateBelief

TS = pw.ThompsonSampling()


def random_prior(generator: np.random.Generator, **fixed: Any) -> FinitePomdpPrior:
    """Two or three candidates of 2 or 3 states, 2 actions and 2 observations; some moves and sights
    are impossible.
    """
    candidates, states = (int(n) for n in generator.integers(2, 4, size=2))
    shape = (candidates, states, 2)

    def laws(size: int) -> Any:
        rows = generator.dirichlet(np.full(size, 0.7), size=shape)
        rows = np.where(rows < 0.1, 0.0, rows)
        return rows / rows.sum(axis=3, keepdims=True)

    rewards = generator.random(shape).round(int(generator.integers(1, 3)))
    options = {
        "noise": ["none", "bernoulli"][int(generator.integers(2))],
        "round_steps": [None, 2, 3][int(generator.integers(3))],
        "start": [None, 0, generator.dirichlet(np.ones(states), size=candidates)][
            int(generator.integers(3))
        ],
    } | fixed
    probs = generator.dirichlet(np.ones(candidates))
    return FinitePomdpPrior(laws(states), laws(2), rewards, probs, **options)


MOVES = [
    [
        [[0, 1, 0], [0.5, 0.4, 0.1]],
        [[0.1, 0.9, 0], [0.9, 0.1, 0]],
        [[0.6, 0.1, 0.3], [0.4, 0.6, 0]],
    ],
    [
        [[0.4, 0.1, 0.5], [0.5, 0.4, 0.1]],
        [[0.1, 0.2, 0.7], [0.2, 0.4, 0.4]],
        [[0.7, 0, 0.3], [0.3, 0.6, 0.1]],
    ],
]
SIGHTS = [
    [[[0, 1], [0.3, 0.7]], [[0.9, 0.1], [0.1, 0.9]], [[0.4, 0.6], [0.3, 0.7]]],
    [[[0.5, 0.5], [0.1, 0.9]], [[0, 1], [0.3, 0.7]], [[0.5, 0.5], [0, 1]]],
]
MEANS = [[[0.0, 0.1], [0.9, 0.8], [0.9, 1.0]], [[0.3, 0.5], [0.4, 0.0], [0.2, 0.0]]]
COIN = FinitePomdpPrior(MOVES, SIGHTS, MEANS, [0.6, 0.4], "bernoulli", round_steps=4)
SURE = FinitePomdpPrior(MOVES, SIGHTS, MEANS, [0.6, 0.4], start=0)
EARS = tiger([0.6, 0.75, 0.9], [0.2, 0.5, 0.3])


def histories(played: Any) -> list[tuple[Any, ...]]:
    """What each task did and saw."""
    columns = [
        each.tolist() for pull in played.pulls for each in (pull.actions, pull.rewards, pull.after)
    ]
    return list(zip(*columns, strict=True))


def test_it_can_be_enumerated() -> None:
    for prior in (COIN, SURE, EARS):
        assert isinstance(prior, EnumerablePrior)
        assert isinstance(prior.belief(1), HiddenStateBelief)


@pytest.mark.parametrize("number", range(6))
def test_the_filter_is_bayes_rule(number: int, seed: int) -> None:
    """Sums over all paths of hidden states, to 1e-12."""
    prior = random_prior(np.random.default_rng(100 * seed + number))
    played = play(prior, tasks=12, pulls=5, seed=seed + number)
    belief: Any = played.belief
    problem = ByHand.of(prior, 6)
    for task, history in enumerate(histories(played)):
        want = posterior(problem, prior.probs.tolist(), history)
        np.testing.assert_allclose(belief.joint()[task], want, atol=1e-12)
    assert not belief.resets.any()
    assert np.ptp(belief.joint(), axis=0).max() > 0.1  # something was learned


def test_the_filter_of_the_tiger_is_a_count() -> None:
    """After k more sounds from the left than from the right the odds are (p / (1 - p))^k, and the
    weight of an accuracy is its mixture of both sides.
    """
    belief, accuracy = EARS.belief(1), np.array([0.6, 0.75, 0.9])
    signal, left = np.array([-1]), 0
    for step, heard in enumerate([0, 0, 1, 0, 0, 0], start=1):
        after = np.array([heard])
        belief = belief.update(Seen(step, 9, 3, signal), np.array([0]), np.array([-1.0]), after)
        signal, left = after, left + (heard == 0)
        right = step - left
        sides = np.stack(
            [accuracy**left * (1 - accuracy) ** right, accuracy**right * (1 - accuracy) ** left]
        )
        np.testing.assert_allclose(belief.states[0].T, sides / sides.sum(axis=0), atol=1e-12)
        weights = np.array([0.2, 0.5, 0.3]) * sides.sum(axis=0)
        np.testing.assert_allclose(belief.probabilities()[0], weights / weights.sum(), atol=1e-12)
    # opening puts the tiger anywhere, and says nothing of the accuracy
    opened = belief.update(Seen(7, 9, 3, signal), np.array([2]), np.array([10.0]), np.array([1]))
    np.testing.assert_allclose(opened.states, 0.5, atol=1e-15)
    # but what it earned says on which side the tiger was, and so who heard well
    joint = belief.joint()[0, :, 0]
    np.testing.assert_allclose(opened.probabilities()[0], joint / joint.sum(), atol=1e-12)


@pytest.mark.parametrize("number", range(6))
def test_exact_values_are_as_by_hand(number: int, seed: int) -> None:
    """At every belief that random play reaches, with what is left of the round."""
    prior = random_prior(np.random.default_rng(200 * seed + number), planner="exact")
    horizon = 4 if prior.noise == "none" else 3
    problem = ByHand.of(prior, horizon)
    for pulls in range(horizon):
        played = play(prior, tasks=5, pulls=pulls, seed=seed + number)
        seen = Seen(pulls + 1, horizon, 2, played.seen.signal)
        belief: Any = played.belief
        values = belief.point_values(seen)
        for task, c in product(range(5), range(prior.support)):
            if belief.probabilities()[task, c] > 0.0:
                want = problem.q(c, belief.states[task, c].tolist(), pulls + 1)
                np.testing.assert_allclose(values[task, c], want, atol=1e-12)
        mean = np.einsum("tc,tca->ta", belief.probabilities(), values)
        np.testing.assert_allclose(belief.mean(seen), mean, atol=1e-12)


def test_plans_do_not_depend_on_where_vectors_are_kept(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Backward induction over reachable beliefs alone gives the values of all vectors."""
    for number in range(8):
        prior = random_prior(np.random.default_rng(300 * seed + number), round_steps=None)
        few = [exact_plan(model, 5) for model in prior.models]
        with monkeypatch.context() as patch:
            patch.setattr(planning, "MOST_SUMS", 0)
            reached = [exact_plan(model, 5) for model in prior.models]
        for one, two, model in zip(few, reached, prior.models, strict=True):
            assert one is not None and two is not None  # noqa: PT018
            assert two.beliefs > one.beliefs
            first, second = (each.depths[0].best(model.start[None])[0] for each in (one, two))
            np.testing.assert_allclose(first, second, atol=1e-12)


def test_qmdp_is_the_mdp_whose_state_is_shown(seed: int) -> None:
    """Its values are those of the finite MDP, never below the exact ones, and above them where
    looking is worth something.
    """
    above = 0
    for number in range(10):
        prior = random_prior(np.random.default_rng(400 * seed + number), round_steps=None)
        shown = pw.families.FiniteMdpPrior(
            prior.transitions, prior.rewards, prior.probs, prior.noise
        )
        for c, model in enumerate(prior.models):
            loose, exact = qmdp_plan(model, 4), exact_plan(model, 4)
            assert exact is not None
            for depth, vectors in enumerate(loose.depths):
                q = np.stack([each[0] for each in vectors.values], axis=1)
                np.testing.assert_allclose(q, shown.planned(4)[c, 3 - depth], atol=1e-12)
            high, low = (each.depths[0].best(model.start[None])[0] for each in (loose, exact))
            assert (high >= low - 1e-12).all()
            above += int((high > low + 1e-3).any())
    assert above > 3


def test_the_value_of_the_tiger_for_ever() -> None:
    """Discounting is a game that ends with probability 1 - d after each step. The uniform belief is
    worth 19.3714 with d = 0.95 and 1.9334 with d = 0.75 for an accuracy of 0.85: by the exact plan
    of many steps, and by value iteration on how many more sounds came from the left.
    """
    for discount, steps, known in ((0.95, 280, 19.3714), (0.75, 70, 1.9334)):
        assert ended_tiger(discount, steps) == pytest.approx(known, abs=5e-5)
        assert counted_tiger(discount) == pytest.approx(known, abs=5e-5)


def ended_tiger(discount: float, steps: int) -> float:
    one = tiger([0.85])
    moves, sights = np.zeros((3, 3, 3)), np.zeros((3, 3, 3))
    moves[:2, :, :2] = discount * one.transitions[0]
    moves[:2, :, 2] = 1.0 - discount
    moves[2, :, 2] = sights[2, :, 2] = 1.0
    sights[:2, :, :2] = one.observations[0]
    rewards = np.vstack([one.rewards[0], np.zeros(3)])
    prior = FinitePomdpPrior(moves, sights, rewards, [1.0], start=[0.5, 0.5, 0.0])
    plan = exact_plan(prior.models[0], steps, most=10**6)
    assert plan is not None
    return float(plan.depths[0].best(prior.start)[0].max())


def counted_tiger(discount: float, most: int = 25) -> float:
    count = np.arange(-most, most + 1)
    left = 1.0 / (1.0 + (0.15 / 0.85) ** count)  # probability that the tiger is on the left
    hear = 0.85 * left + 0.15 * (1.0 - left)
    value = np.zeros(len(count))
    for _ in range(2000):
        up, down = np.append(value[1:], value[-1]), np.append(value[0], value[:-1])
        listen = -1.0 + discount * (hear * up + (1.0 - hear) * down)
        best = np.maximum(10.0 - 110.0 * left, 10.0 - 110.0 * (1.0 - left))
        value = np.maximum(listen, best + discount * value[most])
    return float(value[most])


def test_ties_are_broken_as_stated(seed: int) -> None:
    """Whether to listen first and open then, or the other way round: of two orders that are worth
    the same, policies and plans take the action with the lower number.
    """
    sure = tiger([1.0], listening=0.0, planner="exact")
    belief = sure.belief(500)
    seen = Seen(1, 3, 3, np.full(500, -1))
    heard = belief.update(seen, np.zeros(500, int), np.zeros(500), np.zeros(500, int))
    then = Seen(2, 3, 3, np.zeros(500, int))
    values = heard.sample(streams(seed, 500)(2), 1, then)[:, 0]
    np.testing.assert_allclose(values[:, [0, 2]], 10.0, rtol=1e-10)
    assert (values[:, 0] > values[:, 2]).all()
    assert (values[:, 1] < -50).all()
    for policy in (TS, pw.KShotThompson(3), pw.PosteriorSampling(3, "sum")):
        assert (policy.act(heard, then, streams(seed, 500)(2)) == 0).all()
        law = policy.probabilities(heard, then)
        assert law is not None
        np.testing.assert_array_equal(law.probs[0], [1.0, 0.0, 0.0])
    means = heard.mean(then)
    assert (means[:, 0] == means[:, 2]).all()
    share = (pw.Greedy().act(heard, then, streams(seed, 500)(2)) == 0).mean()
    assert abs(share - 0.5) < 5 * 0.5 / np.sqrt(500)  # means tie as everywhere; false alarms 6e-7
    assert "listen (as good: open right)" in str(sure.plan(3))
    # rounding does not decide, whichever way it goes: sums in another order differ in the last
    # digits
    one, other = 0, 0
    for number in range(30):
        shifted = sure.replaced(rewards=sure.rewards / 3.0 + 0.1 * number)
        text, vectors = str(shifted.plan(3)), shifted.plans(3)[0].depths[1]
        assert "listen (as good: open right)" in text
        listen, _, right = vectors.best(np.array([[1.0, 0.0]]))[0][0]
        one, other = one + (listen > right), other + (listen < right)
    assert other > 0  # the other action would have been chosen


def test_a_plan_reads_as_a_policy() -> None:
    plan = tiger([0.85]).plan(3)
    lines = str(plan).splitlines()
    assert lines[0] == "plan for 3 steps in candidate 0: earns 2.7200 (exact, 6 nodes)"
    assert lines[1] == "#1 step 1, state 0.5 0.5: listen"
    assert "     hear left (0.745) -> #4" in lines
    assert lines[-1] == "#6 step 3, state 0.0302 0.97: open left"
    frame = plan.to_frame()
    assert frame.groupby("node").probability.sum().to_numpy() == pytest.approx(1.0)
    assert set(frame.next) == {0, 2, 3, 4, 5, 6}
    late = 0.15**2 / (0.15**2 + 0.85**2)
    assert plan.value == pytest.approx(-2 + 0.745 * (10 - 110 * late) - 0.255)
    with raises("candidate", "must be one of 0..0"):
        tiger([0.85]).plan(3, 1)
    long = tiger([0.85]).plan(9)
    assert len(long.nodes) == 42
    assert str(long).endswith("... and 2 more; to_frame() has all")


def test_plans_earn_what_they_say(seed: int) -> None:
    """The value of a plan is the value by hand; that of QMDP's plan is no more, and less where it
    should have looked.
    """
    for number in range(6):
        prior = random_prior(np.random.default_rng(500 * seed + number), round_steps=None)
        for c in range(prior.support):
            best = max(ByHand.of(prior, 3).q(c, prior.start[c].tolist(), 1))
            exact = prior.replaced(planner="exact").plan(3, c)
            loose = prior.replaced(planner="qmdp").plan(3, c)
            assert exact.value == pytest.approx(best, abs=1e-12)
            assert loose.value <= best + 1e-12
    exact, loose = (corridor(planner=each).plan(3) for each in ("exact", "qmdp"))
    assert loose.value < exact.value - 0.01


def test_environments_move_as_they_say(seed: int) -> None:
    """Rewards, moves and sights of one candidate within 5 standard errors (at most 60 comparisons,
    false alarms 4e-5); those of another candidate are not.
    """
    prior, tasks = COIN.replaced(probs=np.eye(COIN.support)[1]), 40_000
    environment = prior.sample(streams(seed, tasks)(1), tasks)
    world = Streams(seed, np.arange(tasks, dtype=np.uint64))
    signal = environment.start(world.world(0))
    assert (signal == -1).all()
    wrong = 0
    actions = np.arange(tasks) % 2
    for step in range(1, 6):
        before = np.array(environment.state)
        rewards, after = environment.step(Seen(step, 5, 2, signal), actions, world.world(step))
        for arm, state in product((0, 1), range(prior.states)):
            rows = (actions == arm) & (before == state)
            if not rows.any():
                continue
            room = 5 * 0.5 / np.sqrt(rows.sum())
            assert abs(rewards[rows].mean() - prior.rewards[1, state, arm]) < room
            if step == 4:
                assert (after == -1).all()
                law = prior.start[:, 0]
                found = (np.array(environment.state)[rows] == 0).mean()
                assert abs(found - law[1]) < room
                continue
            sights = np.einsum(
                "cst,cty->csy", prior.transitions[:, :, arm], prior.observations[:, :, arm]
            )
            found = (after[rows] == 1).mean()
            assert abs(found - sights[1, state, 1]) < room
            wrong += abs(found - sights[0, state, 1]) > room
        signal = after
    assert wrong > 4


def state_ranks(prior: FinitePomdpPrior, pulls: int, tasks: int, seed: int, wrap: Any) -> float:
    """P-value of the hypothesis that hidden states are drawn from the belief: the true state ranks
    uniformly among 15 draws of (candidate, state), by a number for each.
    """
    played = play(prior, tasks=tasks, pulls=pulls, seed=seed, wrap=wrap)
    belief: Any = getattr(played.belief, "belief", played.belief)
    environment: Any = played.environment
    rng = played.streams.at(Purpose.POLICY, 9)
    joint = belief.joint().reshape(tasks, -1)
    drawn = rng.choice(joint, 15).astype(float)
    truth = (environment.index * prior.states + environment.state).astype(float)
    pairs = [(truth, drawn), (truth % prior.states, drawn % prior.states)]
    ranks = [randomised_ranks(*pair, rng.uniform()) for pair in pairs]
    return bonferroni([uniform_p_value(each, 16) for each in ranks])


class Numb:
    """A wrong belief: it takes every observation for the one that it is not."""

    def __init__(self, belief: Any) -> None:
        self.belief = belief

    def update(self, seen: Seen, actions: Any, rewards: Any, after: Any) -> Numb:
        other = np.where(after < 0, after, 1 - after)
        return Numb(self.belief.update(seen, actions, rewards, other))


def test_the_hidden_state_is_calibrated(seed: int) -> None:
    """False alarms 1e-4 each; a belief that mistakes what it saw is noticed, and where states are
    no mirror images one that forgets, too.
    """
    for prior, controls in ((COIN, (Numb, Forgetful)), (EARS, (Numb,))):
        assert state_ranks(prior, 4, 8192, seed, lambda belief: belief) > 1e-4
        for wrong in controls:
            assert state_ranks(prior, 4, 8192, seed, wrong) < 1e-4


def test_what_is_impossible_starts_again() -> None:
    """A tiger that is always heard on its side, and a sound from the other side; the plan goes on
    from the start with what is left.
    """
    prior = tiger([1.0, 1.0], [0.3, 0.7], planner="exact")
    belief, signal = prior.belief(1), np.array([-1])
    for step, heard in enumerate([0, 1], start=1):
        seen = Seen(step, 5, 3, signal)
        signal = np.array([heard])
        belief = belief.update(seen, np.array([0]), np.array([-1.0]), signal)
    assert belief.resets.tolist() == [1]
    assert belief.age.tolist() == [0]
    np.testing.assert_allclose(belief.joint()[0], [[0.15, 0.15], [0.35, 0.35]])
    want = ByHand.of(prior, 5).q(0, [0.5, 0.5], 3)
    np.testing.assert_allclose(belief.mean(Seen(3, 5, 3, signal))[0], want, atol=1e-12)


def test_tasks_may_be_at_different_steps(seed: int) -> None:
    """Each is filtered and valued as it would be alone; rounds end for some and not for others."""
    prior = COIN.replaced(round_steps=2)
    played = [play(prior, tasks=6, pulls=pulls, seed=seed + pulls) for pulls in (0, 1, 2, 3)]
    alone: list[Any] = [each.belief for each in played]
    belief = alone[0].join(*alone[1:])
    step = np.repeat([1, 2, 3, 4], 6)
    signal = np.concatenate([each.seen.signal for each in played])
    seen = Seen(step, 5, 2, signal)
    rng = np.random.default_rng(seed)
    actions, rewards = rng.integers(2, size=24), rng.integers(2, size=24).astype(float)
    after = np.where(step % 2 == 0, -1, 1)
    learned = belief.update(seen, actions, rewards, after)
    then = Seen(step + 1, 5, 2, after)
    for number, each in enumerate(alone):
        rows = slice(6 * number, 6 * number + 6)
        one = Seen(number + 1, 5, 2, signal[rows])
        np.testing.assert_allclose(belief.point_values(seen)[rows], each.point_values(one))
        mine = each.update(one, actions[rows], rewards[rows], after[rows])
        np.testing.assert_allclose(learned.joint()[rows], mine.joint(), atol=1e-15)
        later = Seen(number + 2, 5, 2, after[rows])
        np.testing.assert_allclose(learned.point_values(then)[rows], mine.point_values(later))
        law, laws = TS.probabilities(mine, later), TS.probabilities(learned, then)
        assert law is not None
        assert laws is not None
        np.testing.assert_allclose(laws.probs[rows], law.probs, atol=1e-12)


def test_the_corridor() -> None:
    prior = corridor(["|.G", "G.|"], accuracy=0.8, stride=0.7, walking=-0.1, mistake=-2.0)
    np.testing.assert_allclose(prior.transitions[0, 0, :2], [[1.0, 0.0, 0.0], [0.3, 0.7, 0.0]])
    np.testing.assert_allclose(prior.transitions[:, :, 2], 1 / 3)
    np.testing.assert_allclose(prior.observations[0, :, 0, 1], [0.8, 0.2, 0.8])
    np.testing.assert_allclose(prior.rewards[:, :, 2], [[-2, -2, 1], [1, -2, -2]])
    assert (prior.rewards[:, :, :2] == -0.1).all()
    for wrong, words in (
        ({"maps": []}, ("maps", "must be a list")),
        ({"maps": "|.G"}, ("maps", "must be a list")),
        ({"maps": ["|.", "G"]}, ("maps", "must have one length")),
        ({"maps": ["|x"]}, ("maps", "must be made of")),
        ({"stride": 1.5}, "stride"),
        ({"accuracy": -0.1}, "accuracy"),
    ):
        with raises(words):
            corridor(**wrong)  # type: ignore[arg-type]


def test_bad_tables_are_refused() -> None:
    good: Any = {
        "transitions": EARS.transitions,
        "observations": EARS.observations,
        "rewards": EARS.rewards,
        "probs": EARS.probs,
    }
    nan = EARS.observations.copy()
    nan[0, 0, 0, 0] = np.nan
    for name, wrong, words in (
        ("transitions", EARS.transitions * 0.9, "transitions must sum to 1 over the states"),
        ("observations", EARS.observations * 1.1, "observations must sum to 1 over the observat"),
        ("observations", nan, "observations must be finite"),
        ("observations", -EARS.observations, "observations must not be negative"),
        ("observations", EARS.observations[:, :1], "observations must have shape"),
        ("transitions", EARS.transitions[..., :1], "transitions must have shape"),
        ("rewards", EARS.rewards[:2], "rewards must have shape"),
        ("rewards", [1.0], "rewards must have shape"),
        ("probs", [0.5, 0.6, -0.1], "probs must not be negative"),
        ("probs", [], "probs must have shape"),
        ("start", [[0.5, 0.5]], "start must have shape"),
        ("start", 2, "start must be one of the states"),
        ("start", [[0.5, 0.4]] * 3, "start must sum to 1"),
        ("noise", "normal", "noise must be one of"),
        ("noise", "bernoulli", "rewards must lie in"),
        ("planner", "best", "planner must be one of auto, exact, qmdp"),
        ("round_steps", 0, "round_steps"),
        ("names", ["a"], "names must have one entry for each of the 3 actions"),
        ("observation_names", ["a"], "observation_names must have one entry for each of the 2 obs"),
    ):
        with raises(words):
            FinitePomdpPrior(**good | {name: wrong})
    FinitePomdpPrior(**good)


def test_plans_that_are_too_long_are_refused(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(planner, "MOST_BELIEFS", 2000)
    long = corridor(planner="exact")
    with raises("planner", "cannot be 'exact' for rounds this"):
        pw.simulate(long, TS, horizon=40, tasks=2, seed=seed)
    auto = long.replaced(planner="auto")
    assert [auto.plans(steps)[0].exact for steps in (5, 40)] == [True, False]
    run = pw.simulate(auto, TS, horizon=40, tasks=200, seed=seed)
    other = pw.simulate(long.replaced(planner="qmdp"), TS, horizon=40, tasks=200, seed=seed)
    assert run.mean_reward == other.mean_reward
    rounds = pw.simulate(long.replaced(round_steps=5), TS, horizon=40, tasks=200, seed=seed)
    assert np.isfinite(rounds.mean_reward)


def test_bad_observations_are_refused() -> None:
    belief, good = EARS.belief(2), Seen(1, 4, 3, np.array([-1, -1]))
    pull = (np.array([0, 0]), np.array([-1.0, -1.0]))
    for seen, after, words in (
        (good, None, ("after", "must be the observation")),
        (good, np.array([0]), ("after", "must be the observation")),
        (good, np.array([0.0, 1.0]), ("after", "must be the observation")),
        (good, np.array([0, 2]), ("after", "must be observations 0..1")),
        (good, np.array([0, -1]), ("after", "must be an")),
    ):
        with raises(words):
            belief.update(seen, *pull, after)
    ended = tiger([0.8], round_steps=1).belief(2)
    with raises("after", "must be -1 at the end of"):
        ended.update(good, *pull, np.array([0, -1]))
    with raises("seen.signal", "must be"):
        belief.mean(Seen(1, 4, 3))


def test_priors_with_other_states_can_be_believed(seed: int) -> None:
    """States are hidden: who believes in three of them plays where there are two; what is shown has
    to be the same.
    """
    three = FinitePomdpPrior(
        np.full((3, 3, 3), 1 / 3), np.full((3, 3, 2), 0.5), np.tile([-1.0, 1.0, 2.0], (3, 1)), [1.0]
    )
    run = pw.simulate(EARS, TS, horizon=4, tasks=50, seed=seed, believed=three)
    assert run.resets > 0
    for changed in (
        {"round_steps": 4},
        {"observations": np.full((2, 3, 3), 1 / 3), "observation_names": None},
    ):
        with raises("prior", "law of contexts"):
            pw.simulate(EARS, TS, horizon=2, tasks=2, seed=seed, believed=EARS.replaced(**changed))


def test_policies_that_keep_an_environment_are_refused(seed: int) -> None:
    """A kept draw would go on with the belief about the state that it was drawn with."""
    with raises("drawn", "POMDPs serve one step"):
        pw.simulate(EARS, pw.policies.RoundSampling(steps=2), horizon=4, tasks=2, seed=seed)


def test_distances() -> None:
    other = EARS.replaced(probs=[0.4, 0.4, 0.2])
    assert pw.total_variation(EARS, other).value == pytest.approx(0.2)
    assert pw.total_variation(EARS, other).kind == "exact"
    assert pw.total_variation(EARS, tiger([0.61, 0.75, 0.9], EARS.probs)).value == pytest.approx(
        0.2
    )
    with raises("q", "contexts"):
        pw.total_variation(EARS, EARS.replaced(round_steps=3))


class TestContract(PriorContract):
    pulls = 3

    @pytest.fixture(params=["random", "tiger", "corridor"])
    def prior(self, request: Any) -> Any:
        found = {"random": COIN, "tiger": EARS, "corridor": corridor(planner="qmdp")}
        return found[request.param]

    @pytest.fixture
    def believed(self, prior: Any) -> Any:
        weights = np.arange(prior.support)
        return prior.replaced(probs=weights / weights.sum())


class TestFamily(FamilyContract):
    @pytest.fixture(params=[COIN, SURE, EARS], ids=["bernoulli", "noiseless", "tiger"])
    def prior(self, request: Any) -> Any:
        return request.param


class TestJson(JsonContract):
    @pytest.fixture(params=[COIN, SURE, EARS, corridor(planner="qmdp", round_steps=3)])
    def value(self, request: Any) -> Any:
        return request.param
