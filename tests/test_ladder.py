"""The sensitivity ladder and the break-even."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from raising import raises

import priorwise as pw
from priorwise.core.estimates import Estimate
from priorwise.experiments import problems
from priorwise.policies.play_arms import PlayArms
from priorwise.sensitivity.breaking_even import break_even
from priorwise.sensitivity.ladder.ladder import (
    ACTIONS,
    COMMON,
    COUPLED,
    LIKELIHOOD,
    POSTERIORS,
    TRAJECTORIES,
    WORST,
    sensitivity_ladder,
)
from priorwise.sensitivity.ladder.rungs import Ladder, Rung
from priorwise.sensitivity.ladder.walk import walk
from priorwise.testing import base_seed


@pytest.fixture(scope="module")
def raised():
    """The paper's Gaussian problem, with the mean of the first arm raised by 0.05."""
    prior = problems.gaussian().prior
    mean = prior.mean.copy()
    mean[0] += 0.05
    return prior, pw.GaussianPrior(mean, prior.cov, prior.noise_var)


@pytest.fixture(scope="module")
def ladder(raised):
    return sensitivity_ladder(
        *raised, pw.ThompsonSampling(), 10, seed=base_seed(), tasks=400_000, histories=500
    )


@pytest.mark.slow
def test_the_raised_arm_earns_more(ladder):
    assert ladder.in_order, ladder.disorders
    # standard error 0.001: about 10 of them
    assert ladder.gap.mean == pytest.approx(0.095, abs=0.01)
    assert ladder.gap.std_error < 0.002
    assert WORST not in ladder.informative
    assert {POSTERIORS, ACTIONS, COUPLED, COMMON} <= set(ladder.informative)
    assert f"the wrong prior earns {ladder.gap.mean:.3g} more" in str(ladder)
    turned = replace(ladder, gap=Estimate(-ladder.gap.mean, ladder.gap.std_error))
    assert f"the wrong prior earns {ladder.gap.mean:.3g} less" in str(turned)
    unsure = replace(ladder, gap=Estimate(ladder.gap.mean, ladder.gap.mean))
    assert "no difference seen" in str(unsure)
    assert "the wrong prior earns" not in str(unsure)


def test_figure_shows_the_rungs(ladder, drawn):
    """A dot at each rung's probability and bound, in the order of the names beside them; the gap
    below; two standard errors.
    """
    files = ladder.figure("A title")
    assert files["png"].startswith(b"\x89PNG")
    often, much = drawn[0].axes
    names = [label.get_text() for label in often.get_yticklabels()]
    assert names == [*(rung.name for rung in ladder.rungs), "at worst", "at best", "measured gap"]
    heights = often.get_yticks().tolist()
    assert dots(often) == [
        (rung.delta, height) for rung, height in zip(ladder.rungs, heights, strict=False)
    ]
    assert dots(much) == [
        (rung.reward, height) for rung, height in zip(ladder.rungs, heights, strict=False)
    ] + [
        (abs(value), height)
        for value, height in zip(
            (ladder.interval.low.mean, ladder.interval.high.mean, ladder.gap.mean),
            heights[-3:],
            strict=True,
        )
    ]
    for axes, errors in (
        (often, [rung.std_error for rung in ladder.rungs]),
        (
            much,
            [
                *(rung.reward_std_error for rung in ladder.rungs),
                ladder.interval.low.std_error,
                ladder.interval.high.std_error,
                ladder.gap.std_error,
            ],
        ),
    ):
        ends = [segment for lines in axes.collections for segment in lines.get_segments()]
        assert [end[1, 0] for end in ends] == pytest.approx(
            [x + 2.0 * e for (x, _), e in zip(dots(axes), errors, strict=True)]
        )
    assert (often.get_xlabel(), much.get_xlabel()) == (
        "probability that trajectories diverge",
        "reward in a task",
    )
    assert "A title" in files["svg"].decode()


def dots(axes):
    """Places of the dots, from the top."""
    return [
        (float(line.get_xdata()[0]), float(line.get_ydata()[0]))
        for line in axes.lines
        if line.get_marker() == "o"
    ]


def test_rungs_are_found_by_name(ladder):
    assert ladder[WORST].delta == pytest.approx(2 * 10 * ladder.tv.value)
    with pytest.raises(KeyError, match="no rung 'best case'"):
        ladder["best case"]


def test_same_seed_same_ladder(raised, seed):
    few = {"tasks": 500, "histories": 300}
    first, second, other = (
        sensitivity_ladder(*raised, pw.ThompsonSampling(), 3, seed=seed + n, **few)
        for n in (0, 0, 1)
    )
    assert first == second
    assert first[COUPLED].delta != other[COUPLED].delta


def _random_finite(rng):
    means = rng.uniform(size=(3, 2)).round(2)
    p, q = (weights / weights.sum() for weights in rng.uniform(0.1, 1.0, size=(2, 3)))
    return pw.FinitePrior(means, p, noise="bernoulli"), pw.FinitePrior(means, q, noise="bernoulli")


@pytest.mark.parametrize("case", range(6))
@pytest.mark.parametrize(
    "policy", [pw.ThompsonSampling(), pw.KShotThompson(2), pw.PosteriorSampling(2, "softmax")]
)
def test_small_finite_problems_are_exact_and_in_order(case, policy, seed):
    p, q = _random_finite(np.random.default_rng([seed, case]))
    ladder = sensitivity_ladder(p, q, policy, 3, seed=seed)
    assert ladder.exact
    assert ladder.in_order, ladder.disorders
    names = [rung.name for rung in ladder.rungs]
    assert names == [WORST, POSTERIORS, ACTIONS, COUPLED, TRAJECTORIES, LIKELIHOOD]
    assert all(rung.std_error == 0.0 for rung in ladder.rungs)


@pytest.mark.parametrize("policy", [pw.ThompsonSampling(), pw.KShotThompson(2)])
def test_walking_finds_what_enumeration_finds(policy, seed):
    """Sampled histories against all of them; 5 standard errors, so false alarms below 1e-6 each."""
    p, q = _random_finite(np.random.default_rng(seed))
    exact = sensitivity_ladder(p, q, policy, 4, seed=seed)
    steps = walk(p, q, policy, 4, histories=4000, seed=seed)
    n = policy.monte_carlo_n(2)
    for rung, values in (
        (POSTERIORS, n * steps.posteriors),
        (ACTIONS, steps.actions.value),
        (COUPLED, 1.0 - steps.shared),
    ):
        assert (
            abs(values.mean() - exact[rung].delta)
            <= 5.0 * values.std() / np.sqrt(len(values)) + 1e-12
        )
    parted = 1.0 - steps.shared
    # control: another rung
    assert abs(parted.mean() - exact[ACTIONS].delta) > 5.0 * parted.std() / np.sqrt(len(parted))


def test_disorder_is_noticed():
    def rung(name, delta, *above):
        return Rung(name, delta, 0.01, 10.0 * delta, 0.1, "", above)

    good = Ladder(
        (rung("a", 0.5), rung("b", 0.3, "a")),
        Estimate(0.1, 0.01),
        Estimate(5.0, 0.1),
        20.0,
        None,
        "TS",
        10,
        False,
    )
    assert good.in_order
    swapped = Ladder(
        (rung("a", 0.3), rung("b", 0.5, "a")),
        *[getattr(good, name) for name in list(vars(good))[1:]],
    )
    assert swapped.disorders == ("b (0.5) exceeds a (0.3)",)
    wide = Ladder(
        good.rungs, Estimate(-6.0, 0.01), *[getattr(good, name) for name in list(vars(good))[2:]]
    )
    assert len(wide.disorders) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "missing", "coupled"),
    [
        (pw.KShotThompson(3), set(), "posterior draws coupled maximally"),
        (pw.RecedingHorizon(1, 1, "online"), {COUPLED, LIKELIHOOD}, None),
        (pw.Greedy(), {WORST, POSTERIORS}, "actions coupled maximally"),
        (pw.TopTwoThompson(most_draws=4), set(), "actions coupled maximally"),
        (pw.UniformThen(1, pw.ThompsonSampling()), set(), "actions coupled maximally"),
    ],
)
def test_each_policy_gets_the_rungs_there_are(raised, policy, missing, coupled, seed):
    ladder = sensitivity_ladder(*raised, policy, 3, seed=seed, tasks=2000, histories=100)
    names = {rung.name for rung in ladder.rungs}
    assert names == {WORST, POSTERIORS, ACTIONS, COUPLED, LIKELIHOOD, COMMON} - missing
    assert len(ladder.left_out) == bool(missing)
    assert ladder.n == policy.monte_carlo_n(raised[0].arms)
    assert ladder.certified == (WORST not in missing)
    assert ladder.in_order, ladder.disorders
    if coupled:
        assert ladder[COUPLED].how == coupled


def test_linear_and_beta_problems(seed):
    contexts = pw.SphereContexts(arms=3)
    linear = [
        pw.LinearGaussianPrior([1.0, shift], 0.2 * np.eye(2), contexts=contexts)
        for shift in (1.0, 0.9)
    ]
    beta = [pw.BetaPrior([2.0, 1.0], [1.0 + shift, 1.0]) for shift in (0.0, 0.2)]
    for p, q in (linear, beta):
        ladder = sensitivity_ladder(
            p, q, pw.ThompsonSampling(), 4, seed=seed, tasks=20_000, histories=200
        )
        assert ladder.in_order, ladder.disorders


@pytest.mark.slow
@pytest.mark.parametrize("policy", [pw.Uniform(), PlayArms((0, 1))])
def test_what_does_not_look_at_the_posterior_has_a_flat_ladder(raised, policy, seed):
    ladder = sensitivity_ladder(*raised, policy, 3, seed=seed, tasks=1000, histories=50)
    assert (ladder.n, ladder.certified, ladder.gap.mean) == (0, True, 0.0)
    assert {WORST, POSTERIORS, ACTIONS} <= {rung.name for rung in ladder.rungs}
    assert all(rung.delta == rung.reward == 0.0 for rung in ladder.rungs)
    assert ladder.in_order, ladder.disorders
    assert ladder.figure()


def test_equal_priors_have_a_flat_ladder(raised, seed):
    ladder = sensitivity_ladder(
        raised[0], raised[0], pw.ThompsonSampling(), 3, seed=seed, tasks=1000, histories=50
    )
    assert all(rung.delta == rung.reward == 0.0 for rung in ladder.rungs)
    assert ladder[COMMON].std_error == 1e-3, "what was not seen in 1,000 tasks may still happen"
    assert ladder.gap.mean == 0.0
    assert ladder.in_order


@pytest.mark.slow
@pytest.mark.parametrize(("arms", "dim"), [(12, 2), (8, 3), (12, 7)])
def test_more_arms_than_features(arms, dim, seed):
    """Values of low rank, where a plain factorisation of their differences breaks down."""
    contexts = pw.SphereContexts(arms=arms)
    p, q = (
        pw.LinearGaussianPrior(shift * np.eye(dim)[0], np.eye(dim), contexts=contexts)
        for shift in (0.0, 0.1)
    )
    ladder = sensitivity_ladder(p, q, pw.ThompsonSampling(), 3, seed=seed, tasks=5000, histories=60)
    assert ladder.in_order, ladder.disorders
    assert 0.0 < ladder[COUPLED].delta < ladder[POSTERIORS].delta


def test_standard_errors_shrink_with_the_shift(raised, seed):
    """A rung of 1e-4 is not lost in a floor on its error, so that order is really checked."""
    prior = raised[0]
    near = pw.GaussianPrior(prior.mean + 1e-5 * np.eye(6)[0], prior.cov, prior.noise_var)
    ladder = sensitivity_ladder(
        prior, near, pw.ThompsonSampling(), 3, seed=seed, tasks=1000, histories=100
    )
    assert ladder[POSTERIORS].std_error < 0.1 * ladder[POSTERIORS].delta


def test_supports_too_large_to_enumerate_are_walked(seed):
    rng = np.random.default_rng(seed)
    p = pw.FinitePrior(rng.uniform(size=(3, 2)), np.full(3, 1 / 3), noise="bernoulli")
    q = pw.FinitePrior(
        np.concatenate([p.means, rng.uniform(size=(57, 2))]), np.full(60, 1 / 60), noise="bernoulli"
    )
    ladder = sensitivity_ladder(p, q, pw.KShotThompson(3), 2, seed=seed, tasks=2000, histories=50)
    assert not ladder.exact
    assert ladder.in_order, ladder.disorders


def test_a_family_of_ones_own_takes_part_with_its_distance(raised, seed):
    class Mine:
        """A prior that the package knows nothing of."""

        def __init__(self, inner):
            self.inner, self.arms, self.reward_law = inner, inner.arms, inner.reward_law

        def sample(self, rng, tasks):
            return self.inner.sample(rng, tasks)

        def belief(self, tasks):
            return self.inner.belief(tasks)

    p, q = (Mine(prior) for prior in raised)
    ladder = sensitivity_ladder(
        p, q, pw.ThompsonSampling(), 3, seed=seed, tasks=2000, histories=50, tv=0.052
    )
    assert POSTERIORS not in {rung.name for rung in ladder.rungs}
    assert ladder[WORST].delta == pytest.approx(0.312)
    with raises("p", "variation"):
        sensitivity_ladder(p, q, pw.ThompsonSampling(), 3, seed=seed)


@pytest.mark.parametrize("policy", [pw.BayesUCB(), pw.ExactKnowledgeGradient("online")])
def test_policies_with_known_scores_are_coupled(raised, policy, seed):
    ladder = sensitivity_ladder(*raised, policy, 3, seed=seed, tasks=500, histories=60)
    assert ladder[COUPLED].how == "actions coupled maximally"
    assert ladder[ACTIONS].how == "action laws exact"


def test_bad_input_is_refused(raised, seed):
    p, q = raised
    with raises("horizon", "must be at least 1"):
        sensitivity_ladder(p, q, pw.ThompsonSampling(), 0, seed=seed)
    with raises("q", "reward"):
        sensitivity_ladder(
            p, pw.GaussianPrior(q.mean, q.cov, 2.0), pw.ThompsonSampling(), 5, seed=seed
        )
    with raises("histories", "must be at least 2"):
        sensitivity_ladder(p, q, pw.ThompsonSampling(), 5, seed=seed, histories=1)
    with pytest.raises(TypeError, match="seed"):
        sensitivity_ladder(p, q, pw.ThompsonSampling(), 5)


class TestBreakEven:
    prior = pw.GaussianPrior([0.5, 0.0], 0.1 * np.eye(2))

    def test_matches_a_fine_grid(self, seed):
        """Greedy play that believes arm 2 is better by s: the crossing is where its advantage over
        uniform play turns negative.
        """
        found = break_even(
            self.prior, [-1.0, 0.0], pw.Greedy(), 5, seed=seed, largest=2.0, tasks=20_000
        )
        assert found.scale is not None
        low, high = found.between
        assert low <= found.scale <= high
        for scale, sign in ((0.9 * low, 1.0), (1.1 * high, -1.0)):
            held = pw.GaussianPrior(self.prior.mean - [scale, 0.0], self.prior.cov)
            policies = {"held": (pw.Greedy(), held), "uniform": pw.Uniform()}
            gap = pw.compare(
                self.prior, policies, horizon=5, tasks=100_000, seed=seed + 1
            ).difference("held", "uniform")
            assert sign * gap.mean > 0.0

    def test_losses_are_signed(self, seed):
        prior = problems.gaussian().prior
        found = break_even(prior, np.eye(6)[0], pw.ThompsonSampling(), 10, seed=seed, tasks=20_000)
        assert found.scale is None
        assert (found.losses[1:] > 2.0 * found.losses_std_errors[1:]).all()
        assert "no less than Uniform at every scale up to 1" in str(found)

    def test_vague_prior_as_fallback(self, seed, drawn):
        vague = pw.GaussianPrior([0.0, 0.0], np.eye(2))
        found = break_even(
            self.prior,
            [-1.0, 0.0],
            pw.ThompsonSampling(),
            10,
            seed=seed,
            fallback=vague,
            largest=4.0,
            tasks=5000,
        )
        assert found.scale is not None
        assert "GaussianPrior" in str(found)
        assert found.figure()["png"].startswith(b"\x89PNG")
        axes = drawn[0].axes[0]
        curve, _, crossing = axes.lines
        np.testing.assert_array_equal(
            curve.get_xydata(), np.stack([found.scales, found.advantages], axis=1)
        )
        assert crossing.get_xydata().tolist() == [[found.scale, 0.0]]
        assert (axes.get_xlabel(), axes.get_ylabel()) == (
            "how far the believed prior is off",
            "reward above the fallback",
        )

    @pytest.mark.parametrize(
        ("prior", "direction"),
        [
            (pw.BetaPrior([2.0, 1.0], [1.0, 2.0]), {"alpha": [0.0, 6.0]}),
            (pw.BetaPrior([2.0, 1.0], [1.0, 2.0]), pw.BetaPrior([1.0, 8.0], [4.0, 1.0])),
            (
                pw.FinitePrior(np.eye(2), [0.9, 0.1], noise="bernoulli"),
                pw.FinitePrior(np.eye(2), [0.1, 0.9], noise="bernoulli"),
            ),
            (prior, lambda scale: pw.GaussianPrior([0.5 - scale, 0.0], 0.1 * np.eye(2))),
        ],
    )
    def test_ways_to_be_wrong(self, prior, direction, seed):
        found = break_even(prior, direction, pw.ThompsonSampling(), 4, seed=seed, tasks=2000)
        assert found.scales[0] == 0.0
        assert found.losses[0] == 0.0
        assert found.advantages[-1] < found.advantages[0]

    @pytest.mark.parametrize(
        ("direction", "problem"),
        [
            ([1.0, 2.0, 3.0], ("direction['mean']", "must have shape")),
            ({"spread": 1.0}, ("direction", "must shift one of mean, cov")),
            (pw.BetaPrior([1.0], [1.0]), ("direction", "must be of the family")),
            (
                pw.GaussianPrior([0.0, 0.5], np.eye(2), 9.0),
                ("direction", "must have the reward law"),
            ),
            ({"cov": -np.eye(2)}, ("direction", "leads out of the family at scale")),
        ],
    )
    def test_bad_directions_are_refused(self, direction, problem, seed):
        with raises(problem):
            break_even(self.prior, direction, pw.Greedy(), 5, seed=seed, tasks=100)

    def test_largest_must_be_positive(self, seed):
        with raises("largest", "must be positive"):
            break_even(self.prior, [1.0, 0.0], pw.Greedy(), 5, seed=seed, largest=0.0)


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_a_gap_that_is_rounding_is_none(scale):
    """With one arm nothing is at stake, and the rewards of both policies are the same sum in
    another order; the control is a gap of a millionth of the reward.
    """
    means = scale * np.array([[0.27], [0.84]])
    noise = "bernoulli" if scale == 1.0 else "none"
    p = pw.FinitePrior(means, [0.0, 1.0], noise=noise)
    q = p.replaced(probs=[0.63497736, 0.36502264])
    ladder = sensitivity_ladder(p, q, pw.KShotThompson(3), 3, seed=base_seed())
    assert ladder.reward.mean == pytest.approx(3.0 * 0.84 * scale)  # by hand
    assert ladder.gap.mean == 0.0
    assert ladder.in_order, ladder.disorders
    assert "earns the same" in ladder.summary
    off = replace(ladder, gap=Estimate(1e-6 * ladder.reward.mean, 0.0))
    assert not off.in_order
