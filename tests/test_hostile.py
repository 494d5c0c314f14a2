"""Bad input at the doors of the library: refused at once, by the name of the argument, and nothing
wrong enters a belief.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from raising import raises

import priorwise as pw
from priorwise.core.streams import Purpose, Streams, streams
from priorwise.testing.seeds import base_seed

SEED = base_seed()

BETA = pw.BetaPrior([1.0, 2.0, 3.0], [4.0, 3.0, 2.0])
GAUSSIAN = pw.GaussianPrior([0.0, 0.1, 0.2], np.eye(3))
FINITE = pw.FinitePrior([[0.1, 0.9, 0.5], [0.8, 0.2, 0.5]], [0.5, 0.5])
BERNOULLI = pw.FinitePrior([[0.1, 0.9, 0.5], [0.8, 0.2, 0.5]], [0.5, 0.5], noise="bernoulli")
LINEAR = pw.LinearGaussianPrior([0.0, 1.0], np.eye(2), contexts=pw.SphereContexts(3))
MIXTURE = pw.MixturePrior([BETA, pw.BetaPrior([1.0] * 3, [1.0] * 3)], [0.5, 0.5])
PRIORS = {
    "beta": BETA,
    "gaussian": GAUSSIAN,
    "finite": FINITE,
    "bernoulli": BERNOULLI,
    "linear": LINEAR,
    "mixture": MIXTURE,
}

FEATURES = np.array([[[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]] * 2)
EVERY_PRIOR = pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
POLICIES = {
    "ts": pw.ThompsonSampling(),
    "kshot": pw.KShotThompson(3),
    "sum": pw.PosteriorSampling(3, "sum"),
    "rhc": pw.RecedingHorizon(1, 1, 0.5),
    "greedy": pw.Greedy(),
    "ucb": pw.BayesUCB(),
    "toptwo": pw.TopTwoThompson(),
    "exact kg": pw.ExactKnowledgeGradient(),
    "uniform": pw.Uniform(),
    "uniform then": pw.UniformThen(1, pw.Greedy()),
}
EVERY_POLICY = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)


def seen(
    step: int = 1, horizon: int = 5, arms: int = 3, mask: Any = None, prior: Any = None
) -> pw.core.Seen:
    """What two tasks are shown."""
    return pw.core.Seen(step, horizon, arms, FEATURES if prior is LINEAR else None, mask)


class Unreadable:
    """A user's class that fails when it is made an array, and when it is printed."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("cannot be read")

    def __repr__(self) -> str:
        raise RuntimeError("cannot be shown")


MASK = np.array([[True, True, False]] * 2)
WRONG_PULLS: dict[str, tuple[Any, Any, type[Exception], str]] = {
    "a NaN reward": (
        [0, 1],
        [1.0, np.nan],
        ValueError,
        ("rewards", "must be finite, got nan in task"),
    ),
    "an infinite reward": (
        [0, 1],
        [np.inf, 1.0],
        ValueError,
        ("rewards", "must be finite, got inf in task"),
    ),
    "a reward of minus infinity": (
        [0, 1],
        [-np.inf, 1.0],
        ValueError,
        ("rewards", "must be finite"),
    ),
    "a huge reward": ([0, 1], [1e200, 1.0], ValueError, ("rewards", "must lie between")),
    "an arm too many": ([0, 3], [1.0, 1.0], ValueError, ("actions", "must be arms")),
    "a negative arm": ([-1, 0], [1.0, 1.0], ValueError, ("actions", "must be arms")),
    "half an arm": ([0.5, 1.0], [1.0, 1.0], TypeError, ("actions", "must be arms as integers")),
    "a NaN arm": ([np.nan, 1.0], [1.0, 1.0], TypeError, ("actions", "must be arms as integers")),
    "an arm of another kind": (
        ["red", "blue"],
        [1.0, 1.0],
        TypeError,
        ("actions", "must be arms as integers"),
    ),
    "a truth value as an arm": (
        [True, False],
        [1.0, 1.0],
        TypeError,
        ("actions", "must be arms as integers"),
    ),
    "a number for two arms": (
        1,
        [1.0, 1.0],
        ValueError,
        ("actions", "must have one entry for each task"),
    ),
    "a number for two rewards": (
        [0, 1],
        1.0,
        ValueError,
        ("rewards", "must have one entry for each task"),
    ),
    "three arms for two tasks": (
        [0, 1, 1],
        [1.0, 1.0],
        ValueError,
        ("actions", "must have one entry for each task"),
    ),
    "three rewards for two tasks": (
        [0, 1],
        [1.0, 0.0, 1.0],
        ValueError,
        ("rewards", "must have one entry for each task"),
    ),
    "rewards by arm": (
        [0, 1],
        np.ones((2, 3)),
        ValueError,
        ("rewards", "must have one entry for each task"),
    ),
    "words as rewards": ([0, 1], ["a", "b"], TypeError, ("rewards", "must be numbers")),
    "complex rewards": ([0, 1], [1j, 1.0], TypeError, ("rewards", "must be numbers")),
    "None as rewards": ([0, 1], None, TypeError, ("rewards", "must be numbers")),
    "None among rewards": ([0, 1], [None, 1.0], TypeError, ("rewards", "must be numbers")),
    "ragged rewards": (
        [0, 1],
        [[1.0], [1.0, 0.0]],
        TypeError,
        ("rewards", "must be numbers in a regular shape"),
    ),
    "an infinite reward in half precision": (
        [0, 1],
        np.array([np.inf, 1.0], np.float16),
        ValueError,
        ("rewards", "must be finite"),
    ),
    "an infinite reward in single precision": (
        [0, 1],
        np.array([1.0, -np.inf], np.float32),
        ValueError,
        ("rewards", "must be finite"),
    ),
    "rewards that cannot be read": (
        [0, 1],
        Unreadable(),
        TypeError,
        ("rewards", "must be numbers in a regular shape"),
    ),
    "masked rewards": (
        [0, 1],
        np.ma.array([1.0, 0.0], mask=[0, 1]),
        TypeError,
        ("rewards", "has masked entries"),
    ),
}


@EVERY_PRIOR
@pytest.mark.parametrize("wrong", WRONG_PULLS.values(), ids=WRONG_PULLS)
def test_a_belief_refuses_what_cannot_have_happened(
    prior: Any, wrong: tuple[Any, Any, type[Exception], str]
) -> None:
    actions, rewards, error, message = wrong
    with raises(message, kind=error):
        prior.belief(2).update(seen(prior=prior), actions, rewards, None)


@pytest.mark.parametrize("prior", [BETA, BERNOULLI, MIXTURE], ids=["beta", "bernoulli", "mixture"])
@pytest.mark.parametrize("reward", [-0.1, 1.1, 2.0])
def test_a_belief_about_clicks_refuses_other_rewards(prior: Any, reward: float) -> None:
    with raises("rewards", "task 1"):
        prior.belief(2).update(seen(), [0, 1], [1.0, reward], None)


@EVERY_PRIOR
def test_a_belief_refuses_an_arm_that_was_not_available(prior: Any) -> None:
    with raises("actions", "must be available arms, but arm 2"):
        prior.belief(2).update(seen(mask=MASK, prior=prior), [0, 2], [1.0, 1.0], None)


@EVERY_PRIOR
def test_a_belief_refuses_what_is_not_of_its_tasks(prior: Any) -> None:
    belief = prior.belief(2)
    with raises("seen", "must be a Seen"):
        belief.update(None, [0, 1], [1.0, 1.0], None)
    with raises("seen.arms", "is 7, but the belief has 3"):
        belief.update(pw.core.Seen(1, 5, 7), [0, 1], [1.0, 1.0], None)
    with raises("seen.mask", "has 1 tasks, but there are 2"):
        belief.update(pw.core.Seen(1, 5, 3, mask=MASK[:1]), [0, 1], [1.0, 1.0], None)


@EVERY_PRIOR
@pytest.mark.parametrize("tasks", [0, -1, 2.5, "2", None, True])
def test_a_belief_is_about_a_number_of_tasks(prior: Any, tasks: Any) -> None:
    with raises("tasks", "must be"):
        prior.belief(tasks)


@EVERY_PRIOR
def test_a_prior_draws_from_a_stream_of_its_tasks(prior: Any) -> None:
    with raises("rng", "must be a Stream"):
        prior.sample(np.random.default_rng(SEED), 2)
    with raises("rng", "must have a number for each of"):
        prior.sample(streams(SEED, 2)(0), 3)


@EVERY_PRIOR
def test_lists_and_arrays_are_the_same_to_a_belief(prior: Any) -> None:
    """The control: what is right is taken, from lists as from arrays."""
    shown = seen(prior=prior, mask=MASK)
    lists = prior.belief(2).update(shown, [0, 1], [1, 0], None)
    arrays = prior.belief(2).update(shown, np.array([0, 1]), np.array([1.0, 0.0]), None)
    rng = streams(SEED, 2)
    np.testing.assert_array_equal(lists.sample(rng(1), 4, shown), arrays.sample(rng(1), 4, shown))
    assert np.isfinite(lists.sample(rng(1), 4, shown)).all()


@pytest.mark.parametrize(
    "signal", [None, "x", np.ones((2, 3)), np.ones((1, 3, 2)), np.ones((2, 3, 5))]
)
def test_a_linear_belief_refuses_other_features(signal: Any) -> None:
    belief, shown = LINEAR.belief(2), pw.core.Seen(1, 5, 3, signal)
    for ask in (lambda: belief.update(shown, [0, 1], [1.0, 1.0], None), lambda: belief.mean(shown)):
        with raises("seen.signal", "must be the features of each task"):
            ask()
    with raises("seen.signal", "must be the features of each task"):
        pw.ThompsonSampling().act(belief, shown, streams(SEED, 2)(1))


def test_a_linear_belief_refuses_features_that_are_no_numbers() -> None:
    with raises("seen.signal", "must be finite"):
        LINEAR.belief(2).update(pw.core.Seen(1, 5, 3, FEATURES * np.nan), [0, 1], [1.0, 1.0], None)


@pytest.mark.parametrize("kind", [complex, object, str])
def test_a_linear_belief_refuses_features_of_another_kind(kind: type) -> None:
    signal = pw.core.Seen(1, 5, 3, FEATURES.astype(kind))
    for call in (
        lambda: LINEAR.belief(2).update(signal, [0, 1], [1.0, 0.0], None),
        lambda: LINEAR.belief(2).sample(streams(SEED, 2)(1), 2, signal),
        lambda: LINEAR.belief(2).mean(signal),
    ):
        with raises("seen.signal", "must be an array of numbers"):
            call()


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_features_that_are_not_finite_do_not_become_values(wrong: float) -> None:
    signal = pw.core.Seen(1, 5, 3, np.where(FEATURES == 0.8, wrong, FEATURES))
    for policy in (pw.ThompsonSampling(), pw.Greedy(), pw.BayesUCB()):
        with raises("seen.signal", "must be finite"):
            policy.act(LINEAR.belief(2), signal, streams(SEED, 2)(1))


def test_features_whose_squares_are_not_finite_do_not_enter_a_belief() -> None:
    with raises("seen.signal", "must be finite, at most 1e+100"):
        LINEAR.belief(2).update(
            pw.core.Seen(1, 5, 3, np.full((2, 3, 2), 1e200)), [0, 1], [1.0, 0.0], None
        )


def test_a_linear_belief_needs_to_be_shown_something() -> None:
    with raises("seen", "must be a Seen"):
        LINEAR.belief(2).mean(None)


@EVERY_PRIOR
def test_a_belief_about_more_tasks_than_memory_holds(prior: Any) -> None:
    with raises("tasks", "of 1.0e+15 needs 8,000,000 GB, and"):
        prior.belief(10**15)


@EVERY_POLICY
def test_a_policy_says_what_it_draws_from(policy: Any) -> None:
    for wrong in (np.random.default_rng(SEED), 0, None, streams(SEED, 2)):
        with raises("rng", "must be a Stream"):
            policy.act(GAUSSIAN.belief(2), seen(), wrong)


@EVERY_POLICY
def test_a_policy_refuses_another_batch(policy: Any) -> None:
    rng = streams(SEED, 2)(1)
    with raises("belief", "is about 5 tasks, but rng has"):
        policy.act(GAUSSIAN.belief(5), seen(), rng)
    with raises("seen.arms", "is 7, but the belief has 3"):
        policy.act(GAUSSIAN.belief(2), pw.core.Seen(1, 5, 7), rng)
    with raises("seen.mask", "has 1 tasks, but there are 2"):
        policy.act(GAUSSIAN.belief(2), seen(mask=MASK[:1]), rng)
    with raises("seen", "must be a Seen"):
        policy.act(GAUSSIAN.belief(2), 1, rng)
    with raises("belief", "must be a belief, as prior.belief"):
        policy.act(GAUSSIAN, seen(), rng)
    with raises("belief", "must be a belief"):
        policy.act(None, seen(), rng)


def test_a_policy_says_what_it_needs_of_a_belief() -> None:
    with raises("policy", "needs a belief with quantile; MixtureBelief lacks"):
        pw.BayesUCB().act(MIXTURE.belief(2), seen(), streams(SEED, 2)(1))


@EVERY_PRIOR
def test_a_belief_draws_from_a_stream_of_its_tasks(prior: Any) -> None:
    belief, shown = prior.belief(2), seen(prior=prior)
    for wrong in (0, -1, 2.5, "x", None):
        with raises("draws", "must be"):
            belief.sample(streams(SEED, 2)(1), wrong, shown)
    with raises("rng", "must be a Stream"):
        belief.sample(np.random.default_rng(SEED), 1, shown)
    with raises("belief", "is about 2 tasks, but rng has"):
        belief.sample(streams(SEED, 5)(1), 1, shown)


@pytest.mark.parametrize(
    "prior", [BETA, GAUSSIAN, FINITE, LINEAR], ids=["beta", "gaussian", "finite", "linear"]
)
@pytest.mark.parametrize("level", [2.0, 0.0, 1.0, -1.0, np.nan, "x", None])
def test_a_quantile_has_a_level(prior: Any, level: Any) -> None:
    with raises("level", "must"):
        prior.belief(2).quantile(level, seen(prior=prior))


SEEN: dict[str, tuple[dict[str, Any], str]] = {
    "step 0": ({"step": 0}, ("step", "must be at least 1")),
    "step past the horizon": ({"step": 6}, ("step", "must be one of 1..5, the")),
    "step of words": ({"step": "a"}, ("step", "must be an integer")),
    "half a step": ({"step": 1.5}, ("step", "must be an integer")),
    "no horizon": ({"horizon": 0}, ("horizon", "must be at least 1")),
    "endless horizon": ({"horizon": np.inf}, ("horizon", "must be an integer")),
    "no arms": ({"arms": 0}, ("arms", "must be at least 1")),
    "arms of words": ({"arms": "red"}, ("arms", "must be an integer")),
    "a task without an arm": (
        {"mask": np.array([[True] * 3, [False] * 3])},
        ("mask", "leaves task 1 without any arm"),
    ),
    "a mask of numbers": ({"mask": np.ones((2, 3))}, ("mask", "must be boolean")),
    "a mask of one row": (
        {"mask": np.ones(3, dtype=bool)},
        ("mask", "must have shape (task"),
    ),
    "a mask of other arms": (
        {"mask": np.ones((2, 4), dtype=bool)},
        ("mask", "must have shape (task, 3)"),
    ),
    "a span of time for a step": ({"step": np.timedelta64(1)}, ("step", "must be an integer")),
    "a mask that cannot be read": (
        {"mask": Unreadable()},
        ("mask", "must be numbers in a regular shape"),
    ),
    "a word for a mask": ({"mask": "all"}, ("mask", "must be boolean")),
}


@pytest.mark.parametrize("wrong", SEEN.values(), ids=SEEN)
def test_seen_checks_itself(wrong: tuple[dict[str, Any], str]) -> None:
    with raises(wrong[1]):
        seen(**wrong[0])


Case = tuple[Callable[[], Any], str]
BY_HAND: dict[str, Case] = {
    "streams: negative seed": (lambda: streams(-1, 2), ("seed", "must be at least 0")),
    "streams: seed of words": (lambda: streams("a", 2), ("seed", "must be an integer")),
    "streams: seed too large": (lambda: streams(2**64, 2), ("seed", "must be below")),
    "streams: no tasks": (lambda: streams(SEED, 0), ("tasks", "must be at least 1")),
    "streams: half a task": (lambda: streams(SEED, 1.5), ("tasks", "must be an integer")),
    "streams: tasks beyond memory": (
        lambda: streams(SEED, 10**15),
        ("tasks", "of 1.0e+15 needs 3.2e+07 GB, and"),
    ),
    "streams: step -1": (lambda: streams(SEED, 2)(-1), ("step", "must be at least 0")),
    "streams: half a step": (lambda: streams(SEED, 2)(0.5), ("step", "must be an integer")),
    "streams: step 2**32": (lambda: streams(SEED, 2)(2**32), ("step", "must be below")),
    "stream: keys of a list": (lambda: pw.core.Stream([1, 2], 1), ("keys", "must be")),
    "stream: normal(-1)": (
        lambda: streams(SEED, 2)(1).normal(-1),
        ("shape", "must be non-negative integers"),
    ),
    "stream: normal(1.5)": (
        lambda: streams(SEED, 2)(1).normal(1.5),
        ("shape", "must be non-negative integers"),
    ),
    "stream: uniform('a')": (
        lambda: streams(SEED, 2)(1).uniform("a"),
        ("shape", "must be non-negative"),
    ),
    "stream: normal beyond memory": (
        lambda: streams(SEED, 2)(1).normal(10**9, 10**9),
        ("shape", "(1000000000"),
    ),
    "stream: integers(0)": (
        lambda: streams(SEED, 2)(1).integers(0),
        ("high", "must be at least 1"),
    ),
    "stream: integers(2.5)": (
        lambda: streams(SEED, 2)(1).integers(2.5),
        ("high", "must be an integer"),
    ),
    "stream: NaN weights": (
        lambda: streams(SEED, 2)(1).choice(np.full((2, 3), np.nan)),
        ("weights", "must be finite"),
    ),
    "stream: negative weights": (
        lambda: streams(SEED, 2)(1).choice(np.full((2, 3), -1.0)),
        ("weights", "must be finite and not negative"),
    ),
    "stream: no weight": (
        lambda: streams(SEED, 2)(1).choice(np.zeros((2, 3))),
        ("weights", "positive one for each task"),
    ),
    "stream: infinite weights": (
        lambda: streams(SEED, 2)(1).choice(np.full((2, 3), np.inf)),
        ("weights", "must be finite"),
    ),
    "stream: weights of one row": (
        lambda: streams(SEED, 2)(1).choice(np.ones(3)),
        ("weights", "must have a row for each of"),
    ),
    "stream: weights of other tasks": (
        lambda: streams(SEED, 2)(1).counts(np.ones((5, 3)), 4),
        ("weights", "must have a row for each"),
    ),
    "stream: counts of NaN": (
        lambda: streams(SEED, 2)(1).counts(np.full((2, 3), np.nan), 4),
        ("weights", "must be finite"),
    ),
    "stream: counts(-1)": (
        lambda: streams(SEED, 2)(1).counts(np.ones((2, 3)), -1),
        ("draws", "must be at least 0"),
    ),
    "stream: beta of other tasks": (
        lambda: streams(SEED, 2)(1).beta(np.ones((5, 3)), np.ones((5, 3))),
        ("alpha", "must have a row for"),
    ),
    "stream: beta of NaN": (
        lambda: streams(SEED, 2)(1).beta(np.ones((2, 3)), np.full((2, 3), np.nan)),
        ("beta", "must be positive"),
    ),
    "stream: step -3": (
        lambda: pw.core.Stream(np.zeros(2, np.uint64), -3),
        ("step", "must be at least 0"),
    ),
    "stream: step of words": (
        lambda: pw.core.Stream(np.zeros(2, np.uint64), "a"),
        ("step", "must be an integer"),
    ),
    "stream: beta of a number": (
        lambda: streams(SEED, 2)(1).beta(1.0, np.ones((2, 3))),
        ("alpha", "must be an array of numbers"),
    ),
    "stream: beta of objects": (
        lambda: streams(SEED, 2)(1).beta(np.ones((2, 1)), np.array([[1.0], [None]])),
        ("beta", "must be an array of numbers"),
    ),
    "stream: beta of two shapes": (
        lambda: streams(SEED, 2)(1).beta(np.ones((2, 3)), np.ones((2, 1))),
        ("alpha and beta", "must have one shape"),
    ),
    "stream: beta, -1 draws": (
        lambda: streams(SEED, 2)(1).beta(np.ones((2, 3)), np.ones((2, 3)), -1),
        ("draws", "must be at least 0"),
    ),
    "masked: values of other tasks": (
        lambda: seen(mask=MASK).masked(np.ones((5, 3))),
        ("values", "must be"),
    ),
    "masked: a row": (lambda: seen(mask=MASK).masked(np.ones(3)), ("values", "must be")),
    "masked: nothing": (lambda: seen(mask=MASK).masked(None), ("values", "must be")),
    "pick: ragged": (
        lambda: pw.core.pick([[1.0], [1.0, 2.0]], np.array([0.5])),
        ("values", "must be numbers in a regular shape"),
    ),
    "pick: masked": (
        lambda: pw.core.pick(np.ma.array([[1.0, 9.0]], mask=[[0, 1]]), np.array([0.5])),
        ("values", "has masked entries"),
    ),
    "pick: ragged uniform": (
        lambda: pw.core.pick(np.ones((2, 2)), [[0.1], [0.1, 0.2]]),
        ("uniform", "must be numbers in a regular shape"),
    ),
    "pick: NaN uniform": (
        lambda: pw.core.pick(np.ones((1, 3)), np.array([np.nan])),
        ("uniform", "must lie in [0, 1)"),
    ),
    "pick: uniform 2": (
        lambda: pw.core.pick(np.ones((1, 3)), np.array([2.0])),
        ("uniform", "must lie in [0, 1)"),
    ),
    "pick: uniform 1": (
        lambda: pw.core.pick(np.ones((1, 3)), np.array([1.0])),
        ("uniform", "must lie in [0, 1)"),
    ),
    "pick: negative uniform": (
        lambda: pw.core.pick(np.ones((1, 3)), np.array([-0.1])),
        ("uniform", "must lie in [0, 1)"),
    ),
    "pick: one uniform for two": (
        lambda: pw.core.pick(np.ones((2, 3)), np.array([0.5])),
        ("uniform", "must be one number for each of"),
    ),
    "pick: a number": (
        lambda: pw.core.pick(np.ones((1, 3)), 0.5),
        ("uniform", "must be one number for each"),
    ),
    "pick: all minus infinity": (
        lambda: pw.core.pick(np.full((1, 3), -np.inf), np.array([0.5])),
        ("values", "of a task"),
    ),
    "pick: NaN value": (
        lambda: pw.core.pick(np.array([[0.0, np.nan]]), np.array([0.5])),
        ("values", "of an arm is NaN"),
    ),
    "pick: no arms": (
        lambda: pw.core.pick(np.ones((2, 0)), np.ones(2) / 2),
        ("values", "must be numbers"),
    ),
    "pick: a row": (
        lambda: pw.core.pick(np.ones(3), np.ones(3) / 2),
        ("values", "must be numbers"),
    ),
    "pick: words": (
        lambda: pw.core.pick(np.array([["a", "b"]]), np.array([0.5])),
        ("values", "must be numbers"),
    ),
}


@pytest.mark.parametrize("case", BY_HAND.values(), ids=BY_HAND)
def test_what_is_used_by_hand_is_checked(case: Case) -> None:
    with raises(case[1]):
        case[0]()


def test_wide_stream_requests_are_counted_whole() -> None:
    """A shape whose product leaves 64 bits is not mistaken for a small one."""
    with raises("shape", "of (4294967296, 4294967296, 1) for each"):
        Streams(SEED, np.arange(2, dtype=np.uint64)).at(Purpose.POLICY, 1).uniform(2**32, 2**32, 1)
