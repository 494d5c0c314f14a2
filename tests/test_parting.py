"""The likelihood-ratio rung and the signed interval of the ladder."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import priorwise as pw
from priorwise.core.estimates import Estimate
from priorwise.core.protocols import Seen
from priorwise.core.streams import Purpose, Streams
from priorwise.experiments import problems
from priorwise.sensitivity import Interval
from priorwise.sensitivity.exact.chain import ExactChain, exact_chain
from priorwise.sensitivity.ladder.ladder import COMMON, COUPLED, LIKELIHOOD, sensitivity_ladder
from priorwise.sensitivity.ladder.parting import value_range
from priorwise.sensitivity.ladder.walk import walk
from priorwise.testing import PriorContract, base_seed
from priorwise.theory.action_laws import ActionLaw
from priorwise.theory.diameters import FiniteLaw

ROUNDING = 1e-10
POLICIES = [
    pw.ThompsonSampling(),
    pw.KShotThompson(2),
    pw.PosteriorSampling(2, "softmax"),
    pw.Greedy(),
    pw.TopTwoThompson(most_draws=3),
]


def drawn_pair(rng: np.random.Generator) -> tuple[pw.FinitePrior, pw.FinitePrior]:
    """Two priors on a few points, which may be impossible under either."""
    points, arms = rng.integers(2, 5), rng.integers(2, 4)
    means = rng.uniform(size=(points, arms)).round(2)
    noise = "bernoulli" if rng.random() < 0.7 else "none"
    weights = rng.uniform(0.05, 1.0, size=(2, points)) ** 2
    weights[rng.random((2, points)) < 0.1] = 0.0
    weights[weights.sum(axis=1) == 0.0] = 1.0
    p, q = (pw.FinitePrior(means, each / each.sum(), noise=noise) for each in weights)
    return p, q


def tight() -> tuple[pw.FinitePrior, pw.FinitePrior]:
    """One arm is always worse by 1: with one pull all that the interval allows is lost."""
    means = [[1.0, 0.0], [0.0, 1.0]]
    return pw.FinitePrior(means, [1.0, 0.0]), pw.FinitePrior(means, [0.7, 0.3])


def broken(chain: ExactChain, prior: pw.FinitePrior, share: float = 1.0) -> list[str]:
    """Which claims fail if the interval and the rung are taken to be this share of what they
    are.
    """
    low, high = chain.interval
    horizon, delta = len(chain.action_tv), chain.trajectory_tv
    tail = FiniteLaw.of(np.ptp(prior.means, axis=1), prior.probs).tail
    cap = horizon * delta * tail(delta).value if delta > 0.0 else 0.0
    claims = {
        "interval": share * low - ROUNDING <= chain.gap <= share * high + ROUNDING,
        "width": abs(chain.gap) <= share * chain.likelihood_ratio + ROUNDING,
        "stepwise": chain.likelihood_ratio <= share * chain.stepwise + ROUNDING,
        "tail": chain.likelihood_ratio <= share * cap + ROUNDING,
    }
    return [name for name, holds in claims.items() if not holds]


@pytest.mark.slow
def test_a_thousand_finite_problems(seed):
    """Exact on both sides, so nothing may fail; with constants a tenth too small something does."""
    rng = np.random.default_rng(seed)
    caught = set()
    for case in range(1000):
        p, q = drawn_pair(rng)
        policy, horizon = POLICIES[case % len(POLICIES)], int(rng.integers(1, 4))
        chain = exact_chain(p, q, policy, horizon)
        assert not broken(chain, p), (p, q, policy, horizon)
        assert chain.likelihood_ratio <= horizon * np.ptp(p.means, axis=1).max() + ROUNDING
        caught |= set(broken(chain, p, 0.9))
    assert {"stepwise", "tail"} <= caught


def test_the_tight_case_catches_a_constant_too_small():
    p, q = tight()
    chain = exact_chain(p, q, pw.ThompsonSampling(), 1)
    assert chain.gap == pytest.approx(0.3, abs=1e-12)
    assert chain.interval == pytest.approx((0.0, 0.3), abs=1e-12)
    assert chain.likelihood_ratio == pytest.approx(chain.stepwise, abs=1e-12)
    assert not broken(chain, p)
    assert broken(chain, p, 0.9) == ["interval", "width", "stepwise", "tail"]


def test_the_spread_of_posterior_means_would_not_do():
    """A safe arm and a gamble that are as good on average: while the safe one is pulled the means
    stay tied, and what the other policy finds out is worth something all the same.
    """
    points = [[0.5, 1.0], [0.5, 0.0]]
    p, q = (pw.FinitePrior(points, probs) for probs in ([0.5, 0.5], [0.9, 0.1]))
    chain = exact_chain(p, q, pw.Greedy(), 2)
    assert chain.gap == pytest.approx(-0.125, abs=1e-12)
    assert not broken(chain, p)
    # runs that part are those that pull the safe arm first, and there the spread of means is 0
    belief = p.belief(1).update(Seen(1, 2, 2), np.array([0]), np.array([0.5]), None)
    assert np.ptp(belief.mean(Seen(2, 2, 2))) == 0.0


def by_hand(p, q, policy, horizon):
    """Ends of the gap from all trajectories of alg(p), laid out one by one."""
    mine, others = (
        pw.sensitivity.exact_evaluation(p, policy, horizon, believed=each) for each in (p, q)
    )

    def laws(evaluation):
        rows = zip(
            evaluation.actions.tolist(),
            evaluation.rewards.tolist(),
            evaluation.probability,
            strict=True,
        )
        table: dict[tuple, float] = {}
        for actions, rewards, probability in rows:
            for h in range(1, horizon + 1):
                key = (tuple(actions[:h]), tuple(rewards[: h - 1]))
                table[key] = table.get(key, 0.0) + probability
        return table

    first, second, ends = laws(mine), laws(others), np.zeros(2)
    for (actions, rewards), probability in first.items():
        likelihood = p.probs.copy()
        for arm, reward in zip(actions[:-1], rewards, strict=True):
            likelihood *= dict(p.likelihoods(arm))[reward]
        given = likelihood / likelihood.sum()
        fallen = max(probability - second.get((actions, rewards), 0.0), 0.0)
        mean = given @ p.means[:, actions[-1]]
        ends += [
            fallen * (mean - given @ p.means.max(axis=1)),
            fallen * (mean - given @ p.means.min(axis=1)),
        ]
    return ends


@pytest.mark.parametrize("case", range(6))
def test_the_interval_is_that_of_all_trajectories(case, seed):
    p, q = drawn_pair(np.random.default_rng([seed, case]))
    policy = POLICIES[case % len(POLICIES)]
    np.testing.assert_allclose(
        exact_chain(p, q, policy, 3).interval, by_hand(p, q, policy, 3), atol=1e-12
    )


@pytest.mark.slow
@pytest.mark.parametrize("policy", [pw.ThompsonSampling(), pw.Greedy()])
def test_walking_finds_the_interval(policy, seed):
    """Sampled histories against all; 5 standard errors, false alarms below 1e-6 each."""
    rng = np.random.default_rng(seed)
    means = rng.uniform(size=(3, 3)).round(2)
    p, q = (
        pw.FinitePrior(means, each / each.sum(), noise="bernoulli")
        for each in rng.uniform(0.1, 1.0, size=(2, 3))
    )
    chain = exact_chain(p, q, policy, 4)
    parting = walk(p, q, policy, 4, histories=4000, seed=seed).parting
    for found, exact in (
        (parting.parted, chain.trajectory_tv),
        (parting.lost, chain.interval[1]),
        (-parting.gained, chain.interval[0]),
    ):
        error = 5.0 * found.std() / np.sqrt(len(found)) + 1e-12
        assert abs(found.mean() - exact) <= error
    # control: the ends of the other sign
    error = 5.0 * parting.lost.std() / np.sqrt(len(parting.lost))
    assert chain.interval[0] == chain.gap or abs(parting.lost.mean() + chain.interval[0]) > error


@pytest.fixture(scope="module")
def raised():
    prior = problems.gaussian().prior
    return prior, pw.GaussianPrior(prior.mean + 0.05 * np.eye(6)[0], prior.cov, prior.noise_var)


@pytest.mark.slow
def test_the_ladder_of_the_readme_is_sharper(raised):
    """A third of the lowest rung before, and the gap inside."""
    ladder = sensitivity_ladder(*raised, pw.ThompsonSampling(), 10, seed=base_seed(), tasks=50_000)
    rung = ladder[LIKELIHOOD]
    assert rung.reward + 4.0 * rung.reward_std_error + ladder.interval.off < 5.96 / 3.0
    assert rung.reward < ladder[COUPLED].reward / 3.0
    assert ladder.interval.low.mean < -0.097 < 0.097 < ladder.interval.high.mean
    assert ladder.in_order, ladder.disorders
    assert "it lies between -0." in ladder.summary
    assert f"at worst{'':>39}" in str(ladder)
    frame = ladder.table()
    assert frame["rung"][-3:] == ["at worst", "at best", "measured gap"]
    assert frame["reward"][-3:-1] == [ladder.interval.low.mean, ladder.interval.high.mean]
    off = replace(ladder, gap=Estimate(ladder.interval.high.mean + 1.0, 0.001))
    assert any("is outside of" in each for each in off.disorders)


@pytest.mark.parametrize("family", ["beta", "linear"])
def test_the_gap_of_other_families_is_inside(family, seed):
    """Four standard errors: false alarms once in 30,000."""
    contexts = pw.SphereContexts(arms=3)
    p, q = {
        "beta": [pw.BetaPrior([2.0, 1.0], [1.0 + shift, 1.0]) for shift in (0.0, 0.5)],
        "linear": [
            pw.LinearGaussianPrior([1.0, shift], 0.2 * np.eye(2), contexts=contexts)
            for shift in (1.0, 0.7)
        ],
    }[family]
    ladder = sensitivity_ladder(
        p, q, pw.ThompsonSampling(), 4, seed=seed, tasks=20_000, histories=300
    )
    assert not ladder.interval.misses(ladder.gap)
    assert 0.0 < ladder[LIKELIHOOD].reward < ladder[COUPLED].reward
    # control: an interval that is a tenth of itself would be left by what it allows
    small = Interval(*(Estimate(0.1 * end.mean, 0.0) for end in _ends(ladder)))
    assert small.misses(Estimate(0.5 * ladder.interval.low.mean, 0.0))


def _ends(ladder):
    return ladder.interval.low, ladder.interval.high


def test_draws_stand_in_for_actions_whose_laws_are_not_known(raised, seed):
    ladder = sensitivity_ladder(
        *raised, pw.KShotThompson(3), 3, seed=seed, tasks=2000, histories=60
    )
    rung = ladder[LIKELIHOOD]
    assert rung.how == "of posterior draws, no more than coupled"
    assert rung.delta == pytest.approx(ladder[COUPLED].delta, rel=1e-9)
    assert ladder.in_order, ladder.disorders


def test_what_is_not_known_is_left_out_with_the_reason(raised, seed):
    ladder = sensitivity_ladder(
        *raised, pw.RecedingHorizon(1, 1, "online"), 2, seed=seed, tasks=500, histories=10
    )
    assert ladder.interval is None
    assert any(LIKELIHOOD in reason for reason in ladder.left_out)
    assert LIKELIHOOD not in {rung.name for rung in ladder.rungs}
    assert COMMON in {rung.name for rung in ladder.rungs}

    class Sampled:
        """Thompson sampling that knows its law from decisions only."""

        def act(self, belief, seen, rng):
            return pw.ThompsonSampling().act(belief, seen, rng)

        def monte_carlo_n(self, arms):
            return 1

        def probabilities(self, belief, seen):
            law = pw.ThompsonSampling().probabilities(belief, seen)
            return ActionLaw(law.probs, "sampling", 0.01)

    told = sensitivity_ladder(*raised, Sampled(), 2, seed=seed, tasks=500, histories=10)
    assert told.interval is None
    assert f"{LIKELIHOOD}: the policy's action laws are sampled" in told.left_out


def test_long_tasks_say_first_what_may_be_lost(seed):
    p, q = pw.BetaPrior([2.0, 1.0], [1.0, 1.0]), pw.BetaPrior([2.0, 1.0], [1.2, 1.0])
    for horizon, first in ((199, "Believing the wrong prior"), (200, "In 200 pulls the wrong")):
        ladder = sensitivity_ladder(p, q, pw.Greedy(), horizon, seed=seed, tasks=50, histories=5)
        assert ladder.summary.startswith(first)
        assert str(ladder).startswith(first)
    most = min(ladder.interval.most_lost, ladder.trivial)
    assert f"may lose at most {most:.4g}" in ladder.summary
    bare = replace(ladder, interval=None)
    assert f"{ladder.trivial:.4g} (what holds for any two policies)" in bare.summary


def test_largest_and_smallest_values_of_available_arms(seed):
    """What a finite belief knows against its own draws; 5 standard errors over 4,000 tasks."""
    rng = np.random.default_rng(seed)
    prior = pw.FinitePrior(rng.normal(size=(4, 3)), np.full(4, 0.25), noise="none")
    tasks = 4000
    belief = prior.belief(tasks)
    streams = Streams(seed, np.arange(tasks, dtype=np.uint64))
    mask = np.broadcast_to([True, True, False], (tasks, 3))

    class Drawing:
        """The same belief, known by its draws alone."""

        def sample(self, *arguments):
            return belief.sample(*arguments)

    for there in (None, mask):
        seen = Seen(1, 5, 3, None, there)
        ranges = [
            value_range(each, seen, streams.at(Purpose.ENVIRONMENT, 1))
            for each in (belief, Drawing())
        ]
        known, drawn = ((high, low, means[:, 1]) for high, low, means in ranges)
        arms = prior.means if there is None else prior.means[:, :2]
        exact = arms.max(axis=1).mean(), arms.min(axis=1).mean(), prior.means[:, 1].mean()
        for one, other, number in zip(known, drawn, exact, strict=True):
            np.testing.assert_allclose(one, number, rtol=1e-12)
            assert abs(other.mean() - number) <= 5.0 * other.std() / np.sqrt(tasks)
        assert abs(drawn[0].mean() - exact[1]) > 5.0 * drawn[0].std() / np.sqrt(tasks)


def test_the_contract_notices_extremes_of_the_means(monkeypatch, seed):
    """The control: the largest posterior mean in place of the mean of the largest value."""
    prior = pw.FinitePrior([[0.7, 0.3], [0.3, 0.7]], [0.5, 0.5], noise="bernoulli")
    contract = PriorContract()
    contract.test_largest_and_smallest_values_are_those_of_draws(prior, seed)

    def wrong(belief, seen):
        return belief.mean(seen).max(axis=1), belief.mean(seen).min(axis=1)

    monkeypatch.setattr(type(prior.belief(1)), "extremes", wrong)
    with pytest.raises(AssertionError):
        contract.test_largest_and_smallest_values_are_those_of_draws(prior, seed)
