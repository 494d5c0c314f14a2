"""Bounds on what a wrong prior costs: by hand, their forms and limits, and against simulated
gaps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import raises

import priorwise as pw
from priorwise.core.rewards import BanditEnvironment, NoiselessRewards
from priorwise.core.streams import Stream, WorldStreams
from priorwise.experiments import problems
from priorwise.sensitivity.bounds.bandits import Bound, reward_bound, trajectory_bound
from priorwise.sensitivity.bounds.kveton import kveton_comparison
from priorwise.sensitivity.bounds.pomdp import (
    pomdp_reward_bound,
    pomdp_trajectory_bound,
    reward_tails,
)
from priorwise.sensitivity.distance.measures import total_variation
from priorwise.sensitivity.exact.evaluation import exact_reward_tails
from priorwise.sensitivity.tails.expectation import tail_expectation
from priorwise.theory.conditions import Bounded, SubGamma, SubGaussian
from priorwise.theory.distance import Distance

TS = pw.ThompsonSampling()


def finite(first: float) -> pw.FinitePrior:
    return pw.FinitePrior([[1.0, 0.0], [0.0, 0.5], [0.25, 0.25]], [first, 0.5, 0.5 - first])


def shifted(size: float, arms: int = 3, cov: float = 1.0) -> pw.GaussianPrior:
    return pw.GaussianPrior(np.r_[size, np.zeros(arms - 1)], cov * np.eye(arms))


# By hand


def test_finite_by_hand() -> None:
    p, q = finite(0.01), finite(0.02)  # eps = 0.01, diameters 1, 0.5, 0
    bound = reward_bound(p, q, pw.KShotThompson(2), 5)
    assert bound.delta == pytest.approx(0.2, rel=1e-13)  # 2 n H eps
    assert bound.value == pytest.approx(5 * (0.01 + 0.19 * 0.5), rel=1e-12)  # H delta Psi(delta)
    assert bound.trivial == pytest.approx(5 * (0.01 + 0.25), rel=1e-12)
    assert (bound.kind, bound.std_error, bound.n, bound.horizon, bound.vacuous) == (
        "certified",
        0.0,
        2,
        5,
        False,
    )
    assert bound.tv == total_variation(p, q)
    assert bound.assumption == "law of the diameter"
    assert (
        str(bound) == "at most 0.525 (certified; law of the diameter; delta = 0.2; without it 1.3)"
    )
    assert reward_bound(p, q, pw.KShotThompson(2), 5, tail="bounded").value == pytest.approx(
        5 * 0.2 * 1.0, rel=1e-12
    )
    near = trajectory_bound(p, q, pw.KShotThompson(2), 5)
    assert near.value == near.delta == pytest.approx(0.2, rel=1e-13)
    assert (near.kind, near.vacuous, near.trivial) == ("certified", False, 1.0)


def test_beyond_delta_one() -> None:
    p, q = finite(0.01), finite(0.2)
    bound = reward_bound(p, q, pw.KShotThompson(2), 5)
    assert bound.delta == pytest.approx(3.8, rel=1e-12)
    assert bound.value == bound.trivial == pytest.approx(5 * 0.26, rel=1e-12)
    assert bound.vacuous
    assert "vacuous" in str(bound)
    near = trajectory_bound(p, q, pw.KShotThompson(2), 5)
    assert near.value == 1.0
    assert near.vacuous
    assert reward_bound(p, q, pw.KShotThompson(2), 5, tail="bounded").value == pytest.approx(5.0)


def test_equal_priors_cost_nothing() -> None:
    for prior in (
        finite(0.2),
        shifted(0.3),
        pw.BetaPrior([1.0, 2.0], 3.0),
        problems.gaussian().prior,
        problems.linear().prior,
    ):
        bound = reward_bound(prior, prior, TS, 10)
        assert (bound.value, bound.delta, bound.kind, bound.vacuous) == (
            0.0,
            0.0,
            "certified",
            False,
        )
        assert trajectory_bound(prior, prior, TS, 10).value == 0.0


@pytest.mark.parametrize("size", [1e-300, 1e-12, 1e-4, 0.01, 0.3])
def test_sub_gaussian_forms(size: float) -> None:
    arms, horizon, n = 3, 10, 4
    p = shifted(0.5, arms, 2.0)
    if size < 1e-13:
        bounds = {
            tail: reward_bound(p, None, pw.KShotThompson(n), horizon, tail=tail, tv=size)
            for tail in (
                "auto",
                "normal",
                "subgaussian-tight",
                "subgaussian",
                "subgaussian-printed",
            )
        }
        eps = size
    else:
        q = shifted(0.5 + size, arms, 2.0)
        bounds = {
            tail: reward_bound(p, q, pw.KShotThompson(n), horizon, tail=tail)
            for tail in (
                "auto",
                "normal",
                "subgaussian-tight",
                "subgaussian",
                "subgaussian-printed",
            )
        }
        eps = math.erf(size / math.sqrt(2.0) / math.sqrt(8.0))
    delta = 2 * n * horizon * eps
    level = min(1.0, delta)

    def bracket(log: float) -> float:
        return 0.5 + math.sqrt(2.0) * (8 + 5 * math.sqrt(log))

    printed = 2 * n * horizon**2 * eps * bracket(math.log(arms**2 / level))
    lemma = horizon * level * bracket(math.log(2 * arms) - math.log(level))
    assert bounds["subgaussian-printed"].value == pytest.approx(printed, rel=1e-9)
    assert bounds["subgaussian"].value == pytest.approx(lemma, rel=1e-9)
    values = [bound.value for bound in bounds.values()]
    assert values == sorted(values)
    assert values[0] > 0.0
    assert values[-1] < math.inf
    assert {bound.kind for bound in bounds.values()} == {"certified"}
    assert bounds["auto"].vacuous == (delta >= 1.0)
    sub_gamma = reward_bound(
        p, None, pw.KShotThompson(n), horizon, tail=SubGamma(p.mean, 2.0, 0.3), tv=eps
    )
    extra = 0.3 * (11 + 7 * (math.log(2 * arms) - math.log(level)))
    assert sub_gamma.value == pytest.approx(lemma + horizon * level * extra, rel=1e-9)


def test_many_arms() -> None:
    @dataclass(frozen=True)
    class Many:
        arms: int = 10**6

    mean = np.zeros(10**6)
    for eps in (1e-300, 1e-9, 1.0):
        for form in ("lemma", "tight", "printed"):
            bound = reward_bound(Many(), None, TS, 20, tail=SubGaussian(mean, 1.0, form), tv=eps)
            assert 0.0 < bound.value < math.inf
            assert bound.vacuous == (eps == 1.0)
            assert math.isfinite(bound.trivial)


@pytest.mark.slow
@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.integers(1, 50), st.integers(1, 20))
def test_monotone_in_the_distance(a: float, b: float, horizon: int, k: int) -> None:
    p, policy = finite(0.1), pw.KShotThompson(k)
    low, high = (reward_bound(p, None, policy, horizon, tv=tv) for tv in sorted((a, b)))
    assert low.value <= high.value + 1e-12
    assert high.value <= high.trivial + 1e-12
    psi = tail_expectation(p, min(1.0, high.delta)).value
    # the theorem as stated, without the minimum
    assert high.value <= 2 * k * horizon**2 * high.tv.value * psi + 1e-9
    assert reward_bound(p, None, policy, horizon + 1, tv=max(a, b)).value >= high.value - 1e-12


# What is certified, and what is estimated


def test_only_certified_numbers_unless_told(seed: int) -> None:
    p, q = (
        pw.GaussianPrior(np.zeros(3), np.eye(3)),
        pw.GaussianPrior(np.zeros(3), np.diag([1.001, 1.002, 1.003])),
    )
    certified = reward_bound(p, q, TS, 10)
    assert certified.tv.kind == "upper"
    assert certified.kind == "certified"
    assert certified.std_error == 0.0
    told = reward_bound(p, q, TS, 10, estimate=True, seed=seed)
    assert told.tv.kind == "estimate"
    assert told.kind == "estimate"
    assert 0.0 < told.std_error < told.value < certified.value
    assert "±" in str(told)
    near = trajectory_bound(p, q, TS, 10, estimate=True, seed=seed)
    assert (near.kind, near.std_error) == ("estimate", pytest.approx(20 * told.tv.std_error))
    assert trajectory_bound(p, q, TS, 10).value == pytest.approx(20 * certified.tv.upper)
    with raises("seed", "is missing: the total variation between"):
        reward_bound(p, q, TS, 10, estimate=True)
    distance = total_variation(p, q, seed=seed)
    for call in (reward_bound, trajectory_bound):
        with raises("tv", "is an estimate"):
            call(p, q, TS, 10, tv=distance)
        assert call(p, q, TS, 10, tv=distance, estimate=True, seed=seed).kind == "estimate"
        assert call(p, q, TS, 10, tv=distance.upper).kind == "certified"
    # estimates of the tail are estimates too
    p = problems.gaussian().prior
    q = pw.GaussianPrior(p.mean + 0.001, p.cov)
    assert reward_bound(p, q, TS, 10, estimate=True, seed=seed).kind == "estimate"
    assert reward_bound(p, q, TS, 10).kind == "certified"


def test_standard_error_of_an_estimate(seed: int) -> None:
    """Spread over 40 seeds against the mean standard error, which may be larger as it takes Psi for
    the quantile: below 1e-6.
    """
    p, q = (
        pw.GaussianPrior(np.zeros(2), np.eye(2)),
        pw.GaussianPrior(np.zeros(2), np.diag([1.02, 1.04])),
    )
    bounds = []
    for i in range(40):
        distance = total_variation(p, q, seed=1000 * seed + i, draws=500)
        bounds.append(reward_bound(p, q, TS, 10, tv=distance, estimate=True, seed=seed))
    spread = np.std([bound.value for bound in bounds], ddof=1)
    error = np.mean([bound.std_error for bound in bounds])
    assert 0.3 * error < spread < 1.7 * error
    assert not spread < 1.7 * error / 10  # control


def test_a_known_distance() -> None:
    p = finite(0.1)
    assert (
        reward_bound(p, None, TS, 5, tv=0.01).assumption
        == "law of the diameter; total variation as given"
    )
    exact = Distance(0.01, "exact", 0.0, 0.01)
    assert (
        reward_bound(p, None, TS, 5, tv=exact).value
        == reward_bound(p, finite(0.3), TS, 5, tv=0.01).value
    )
    for tv in (-0.1, 1.1, math.nan):
        with raises("tv", "must"):
            trajectory_bound(p, None, TS, 5, tv=tv)
    with raises("q", "must be the prior that the policy"):
        reward_bound(p, None, TS, 5)


@pytest.mark.parametrize("policy", [pw.Uniform(), pw.UniformThen(2, pw.Uniform())])
def test_what_does_not_look_at_the_posterior_moves_by_nothing(policy: Any) -> None:
    """n = 0: every bound is 0, also with an infinite or unknown tail, and none of them is
    vacuous.
    """
    for p, q in ((finite(0.1), finite(0.2)), (shifted(0.0, 2), shifted(1.0, 2))):
        for bound in (
            trajectory_bound(p, q, policy, 5),
            reward_bound(p, q, policy, 5),
            reward_bound(p, None, policy, 5, tv=1.0),
        ):
            assert (bound.value, bound.delta, bound.n, bound.kind, bound.vacuous) == (
                0.0,
                0.0,
                0,
                "certified",
                False,
            )
            assert bound.trivial > 0.0
    for bound in (
        pomdp_trajectory_bound(0.5, 0, 5),
        pomdp_reward_bound(0.5, 0, 5, reward_range=1.0),
    ):
        assert (bound.value, bound.vacuous) == (0.0, False)
    with raises("n", "must be at least 0"):
        pomdp_trajectory_bound(0.5, -1, 5)


def test_constants_that_are_no_whole_numbers_are_refused() -> None:
    class Claims:
        def __init__(self, n: Any) -> None:
            self.n = n

        def monte_carlo_n(self, arms: int) -> Any:
            return self.n

    assert trajectory_bound(finite(0.1), finite(0.2), Claims(3), 5).n == 3
    for wrong in (-1, 1.5, "1"):
        with raises("Claims.monte_carlo_n(arms)", "must be"):
            trajectory_bound(finite(0.1), finite(0.2), Claims(wrong), 5)


# Refusals


@pytest.mark.parametrize("call", [trajectory_bound, reward_bound])
def test_refusals(call: Any) -> None:
    p, q = finite(0.1), finite(0.2)
    for policy in (
        pw.Greedy(),
        pw.BayesUCB(),
        pw.ExactKnowledgeGradient(),
        pw.UniformThen(1, pw.Greedy()),
        object(),
    ):
        with raises("policy", "which has no Monte-Carlo constant"):
            call(p, q, policy, 5)
    with raises("policy", "its choice looks at the posterior itself"):
        call(p, q, pw.KnowledgeGradient(2, 2, when_certain="best"), 5)
    with raises("policy", "not the class ThompsonSampling"):
        call(p, q, pw.ThompsonSampling, 5)
    with raises("horizon", "must be at least 1"):
        call(p, q, TS, 0)
    with raises("horizon", "must be an integer"):
        call(p, q, TS, 2.5)
    noisy = pw.FinitePrior(p.means, p.probs, noise="bernoulli")
    gaussian, other_noise = shifted(0.1, 2), pw.GaussianPrior([0.1, 0.0], np.eye(2), noise_var=2.0)
    linear = [
        pw.LinearGaussianPrior([0.0, 0.0], np.eye(2), contexts=pw.SphereContexts(arms))
        for arms in (2, 3)
    ]
    pool = pw.LinearGaussianPrior([0.0, 0.0], np.eye(2), contexts=np.eye(2))
    for one, two, message in (
        (p, noisy, ("q", "reward")),
        (gaussian, other_noise, ("q", "reward")),
        (linear[0], linear[1], ("q", "must have the 2 arms of")),
        (linear[0], pool, ("q", "of contexts")),
    ):
        with raises(message):
            call(one, two, TS, 5)
        with raises(message):
            call(one, two, TS, 5, tv=0.1)
    with raises("q", "must be of the family of"):
        call(p, gaussian, TS, 5)
    with raises("q", "must have a fixed number of"):
        call(pw.ExchangeableBetaPrior(1, 2).for_arms(2), pw.ExchangeableBetaPrior(1, 2), TS, 5)


def test_unknown_tails(seed: int) -> None:
    with raises("tail", "'bounded' is not known to hold for"):
        reward_bound(shifted(0.1), shifted(0.2), TS, 5, tail="bounded")

    @dataclass(frozen=True)
    class Stranger:
        arms: int = 2

        def sample(self, rng: Stream, tasks: int) -> BanditEnvironment:
            return BanditEnvironment(rng.uniform(2), NoiselessRewards())

    with raises("p", "variation"):
        reward_bound(Stranger(), Stranger(), TS, 5)
    with raises("seed", "is missing: nothing is known of"):
        reward_bound(Stranger(), Stranger(), TS, 5, tv=0.01)
    bound = reward_bound(Stranger(), Stranger(), TS, 5, tv=0.01, estimate=True, seed=seed)
    assert bound.kind == "estimate"
    assert bound.trivial == pytest.approx(5 / 3, rel=0.02)
    own = reward_bound(Stranger(), Stranger(), TS, 5, tv=0.01, tail=Bounded(1.0))
    assert (own.value, own.trivial, own.kind) == (pytest.approx(0.5), 5.0, "certified")


# Against what happens


@pytest.mark.parametrize(
    "policy", [TS, pw.KShotThompson(2), pw.PosteriorSampling(2, "sum")], ids=["ts", "2-shot", "sum"]
)
@pytest.mark.parametrize("name", ["finite", "gaussian", "beta", "linear", "fixed"])
def test_simulated_gaps_stay_below(name: str, policy: Any, seed: int) -> None:
    """Fifteen paired gaps, each with 6 standard errors: false alarms below 1e-7."""
    p, q = {
        "finite": (finite(0.1), finite(0.12)),
        "gaussian": (shifted(0.5, 3), shifted(0.53, 3)),
        "beta": (pw.BetaPrior([2.0, 1.0, 3.0], 4.0), pw.BetaPrior([2.1, 1.0, 3.0], 4.0)),
        "linear": tuple(
            pw.LinearGaussianPrior([m, 0.0], np.eye(2), contexts=pw.SphereContexts(arms=3))
            for m in (0.5, 0.53)
        ),
        "fixed": tuple(
            pw.LinearGaussianPrior([m, 0.0], np.eye(2), contexts=[[1.0, 0.0], [0.0, 1.0]])
            for m in (0.5, 0.53)
        ),
    }[name]
    both = {"true": policy, "believed": (policy, q)}
    gap = pw.compare(p, both, horizon=5, tasks=20_000, seed=seed).difference("true", "believed")
    bound = reward_bound(p, q, policy, 5)
    assert not bound.vacuous
    assert abs(gap.mean) <= bound.value + 6 * gap.std_error


def test_a_bound_without_the_horizon_would_fail(seed: int) -> None:
    """Control: on the two-point instance trajectories differ with probability ``1 - (1 - eps)^(H
    k)``, above ``eps``.
    """
    p, q = (
        pw.FinitePrior([[0.5, 0.0], [0.5, 1.0]], [1 - e, e], noise="bernoulli") for e in (0.0, 0.02)
    )
    run = pw.simulate(p, TS, believed=q, horizon=10, tasks=20_000, seed=seed, keep=True)
    differ = float((run.actions == 1).any(axis=1).mean())
    assert 0.02 * 3 < differ <= trajectory_bound(p, q, TS, 10).value == pytest.approx(0.4)


# General decision problems


def test_pomdp_by_hand() -> None:
    near = pomdp_trajectory_bound(0.01, 3, 5)
    assert near.value == pytest.approx(0.3)  # 2 n H eps: n counts
    bound = pomdp_reward_bound(0.01, 3, 5, reward_range=2.0)
    assert bound.value == pytest.approx(2 * 3 * 2.0 * 25 * 0.01)  # 2 n B H^2 eps
    assert (bound.trivial, bound.kind, bound.vacuous) == (10.0, "certified", False)
    far = pomdp_reward_bound(0.5, 3, 5, reward_range=2.0)
    assert far.value == far.trivial == 10.0
    assert far.vacuous
    assert pomdp_reward_bound(0.0, 3, 5, reward_range=2.0).value == 0.0
    with raises("reward_range", "must be given, or else tails=..."):
        pomdp_reward_bound(0.01, 3, 5)
    with raises("reward_range", "must not be negative"):
        pomdp_reward_bound(0.01, 3, 5, reward_range=-1.0)
    # a policy that does not look at the posterior
    assert pomdp_trajectory_bound(0.01, 0, 5).value == 0.0
    with raises("n", "must be at least 0"):
        pomdp_trajectory_bound(0.01, -1, 5)
    with raises("tv", "is an estimate"):
        pomdp_trajectory_bound(Distance(0.1, "estimate", 0.01, 0.2), 1, 5)


def test_pomdp_tails_of_a_bandit(seed: int) -> None:
    """One arm N(1, 4): the average conditional reward is its mean. Tests of 6 standard errors:
    false alarms below 1e-7.
    """
    p, q = (pw.GaussianPrior([m], [[4.0]]) for m in (1.0, 1.1))
    tails = reward_tails(p, q, TS, horizon=3, tasks=40_000, seed=seed)
    assert tails.rewards == "conditional"
    two = pw.GaussianPrior([1.0, 0.0], [[4.0, 0.0], [0.0, 0.0]])  # its diameter is |mu|
    for level in (1.0, 0.1, 0.01):
        want = 2 * tail_expectation(two, level).value
        got = tails.tail(level)
        assert abs(got.value - want) < 6 * got.std_error
        assert abs(got.value - 1.2 * want) > 6 * got.std_error  # control
    bound = pomdp_reward_bound(0.01, 1, 3, tails=tails, estimate=True)
    assert bound.kind == "estimate"
    assert bound.value == pytest.approx(3 * 0.06 * tails.tail(0.06).value)
    assert bound.std_error == pytest.approx(3 * 0.06 * tails.tail(0.06).std_error)
    with raises("tails", "from simulated runs are estimates"):
        pomdp_reward_bound(0.01, 1, 3, tails=tails)
    tiny = pomdp_reward_bound(1e-9, 1, 3, tails=tails, estimate=True)
    assert tiny.std_error == math.inf  # too few runs to see that far


def test_pomdp_bounds_of_two_priors(seed: int) -> None:
    """The distance, the constant and the range are looked up; an estimate has to be allowed."""
    tasks = [[0.9, 0.1], [0.2, 0.8]]
    p, q = (pw.FinitePrior(tasks, probs, "bernoulli") for probs in ([0.5, 0.5], [0.49, 0.51]))
    policy = pw.KShotThompson(2)
    assert pomdp_trajectory_bound((p, q), policy, 4) == pw.trajectory_bound(p, q, policy, 4)
    assert pomdp_trajectory_bound((p, q), 2, 4).value == pytest.approx(0.16)
    whole = pomdp_reward_bound((p, q), policy, 4)
    assert whole.value == pytest.approx(4 * 0.16)
    assert pomdp_reward_bound((p, q), policy, 4, reward_range=0.5).value == pytest.approx(2 * 0.16)
    with raises("policy", "no bound is known for Greedy"):
        pomdp_trajectory_bound((p, q), pw.Greedy(), 4)
    normal = [pw.GaussianPrior([m, 0.0], np.diag([v, v])) for m, v in ((0.0, 1.0), (0.01, 1.01))]
    upper = pomdp_trajectory_bound(tuple(normal), TS, 4)
    guess = pomdp_trajectory_bound(tuple(normal), TS, 4, estimate=True, seed=seed)
    assert (upper.kind, guess.kind) == ("certified", "estimate")
    assert guess.value < upper.value
    with raises("reward_range", "must be given, or else tails=..."):
        pomdp_reward_bound(tuple(normal), TS, 4)


def test_exact_tails_of_a_bandit_are_those_of_its_runs(seed: int) -> None:
    """Within 5 standard errors of 40,000 runs at each level (false alarms 6e-7), which another
    centre is not; and the bound is certified.
    """
    tasks = [[0.9, 0.1], [0.2, 0.8]]
    p, q = (pw.FinitePrior(tasks, probs, "bernoulli") for probs in ([0.5, 0.5], [0.3, 0.7]))
    for centre in (0.0, 0.5):
        exact = exact_reward_tails(p, q, TS, 3, centre=centre)
        runs = reward_tails(p, q, TS, horizon=3, tasks=40_000, seed=seed, centre=centre)
        off = exact_reward_tails(p, q, TS, 3, centre=centre + 0.05)
        for level in (1.0, 0.5, 0.1):
            got = runs.tail(level)
            assert abs(got.value - exact.tail(level).value) < 5 * got.std_error + 1e-9
        assert abs(runs.tail(1.0).value - off.tail(1.0).value) > 5 * runs.tail(1.0).std_error
        bound = pomdp_reward_bound((p, q), TS, 3, tails=exact)
        assert bound.kind == "certified"
        assert "exact" in bound.assumption


def test_pomdp_tails_are_those_of_the_runs(seed: int) -> None:
    """Same tasks as a simulation: its gap is within the bound, and the averages are those of its
    actions.
    """
    p, q = shifted(0.5), shifted(0.52)
    tails = reward_tails(p, q, TS, horizon=4, tasks=3_000, seed=seed)
    run = pw.simulate(p, TS, believed=q, horizon=4, tasks=3_000, seed=seed, keep=True)
    from priorwise.core.streams import Purpose, Streams

    means = p.sample(
        Streams(seed, np.arange(3_000, dtype=np.uint64)).at(Purpose.ENVIRONMENT, 0), 3_000
    ).means
    want = np.abs(np.take_along_axis(means, run.actions, axis=1).mean(axis=1))
    assert np.allclose(np.sort(want)[::-1], tails.believed.values, rtol=1e-9)
    gap = pw.compare(p, {"a": TS, "b": (TS, q)}, horizon=4, tasks=3_000, seed=seed).difference(
        "a", "b"
    )
    bound = pomdp_reward_bound(total_variation(p, q), 1, 4, tails=tails, estimate=True)
    assert abs(gap.mean) <= bound.value + 6 * (gap.std_error + bound.std_error)


def test_realised_rewards_where_there_are_no_values(seed: int) -> None:
    @dataclass(frozen=True)
    class Hidden:
        inner: BanditEnvironment

        def start(self, rng: WorldStreams) -> None:
            return None

        def step(self, seen: Any, actions: Any, rng: WorldStreams) -> Any:
            return self.inner.step(seen, actions, rng)

    @dataclass(frozen=True)
    class HiddenPrior:
        inner: pw.GaussianPrior
        arms: int = 3

        def sample(self, rng: Stream, tasks: int) -> Hidden:
            return Hidden(self.inner.sample(rng, tasks))

        def belief(self, tasks: int) -> Any:
            return self.inner.belief(tasks)

    p = shifted(0.5)
    open_, dark = (
        reward_tails(each, p, TS, horizon=4, tasks=3_000, seed=seed) for each in (p, HiddenPrior(p))
    )
    assert (open_.rewards, dark.rewards) == ("conditional", "realised")
    assert dark.tail(0.1).value > open_.tail(0.1).value  # noise adds to the tails
    run = pw.simulate(p, TS, horizon=4, tasks=3_000, seed=seed, keep=True)
    assert np.allclose(np.sort(np.abs(run.rewards.mean(axis=1)))[::-1], dark.true.values, rtol=1e-9)


# Comparison with Kveton et al.


@pytest.mark.slow
@settings(max_examples=30)
@given(st.integers(2, 8), st.floats(1e-9, 0.5), st.floats(0.1, 4.0), st.integers(0, 1000))
def test_kveton(arms: int, size: float, std: float, number: int) -> None:
    rng = np.random.default_rng(number)
    mean, move = rng.normal(size=arms), size * rng.normal(size=arms)
    p, q = (pw.GaussianPrior(m, std**2 * np.eye(arms)) for m in (mean, mean + move))
    got = kveton_comparison(p, q, 10)
    assert got.epsilon_theirs == pytest.approx(arms * np.abs(move).max() / std, rel=1e-6)
    assert got.epsilon == pytest.approx(
        math.erf(np.linalg.norm(move) / std / math.sqrt(8)), rel=1e-6
    )
    assert got.epsilon <= got.epsilon_upper * (1 + 1e-9)
    assert got.epsilon_theirs >= math.sqrt(arms) * got.epsilon_upper * (1 - 1e-9)
    assert got.ratio >= math.sqrt(arms) * (1 - 1e-9)
    assert isinstance(got.bound, Bound)
    assert got.bound.delta == pytest.approx(20 * got.epsilon)
    if got.epsilon_theirs < 1.0:
        assert got.ours < got.theirs


def test_kveton_by_hand() -> None:
    p, q = shifted(0.5, 2, 4.0), shifted(0.7, 2, 4.0)
    got = kveton_comparison(p, q, 10)
    assert got.epsilon_theirs == pytest.approx(0.2)
    assert got.epsilon_upper == pytest.approx(0.1)
    assert got.theirs == pytest.approx((0.5 + 2 * math.sqrt(math.log(50))) * 100 * 0.2)
    assert got.ours == pytest.approx(
        (0.5 + 2 * math.sqrt(math.log(10 / got.epsilon))) * 100 * got.epsilon
    )
    assert got.bound == replace(reward_bound(p, q, TS, 10), assumption=got.bound.assumption)
    assert kveton_comparison(p, p, 10).ratio == 1.0
    with raises("q.cov", "must be the same positive multiple"):
        kveton_comparison(p, shifted(0.5, 2, 1.0), 10)
    with raises("p.cov", "must be"):
        kveton_comparison(problems.gaussian().prior, problems.gaussian().misspecified, 10)
    with raises("q", "must be a GaussianPrior"):
        kveton_comparison(p, pw.BetaPrior([1.0, 1.0], 1.0), 10)
