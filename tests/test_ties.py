"""Ties of sums that cancel: one tolerance, relative to what is summed, in both engines and in the
exact laws of actions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from enumerated import exact_probs
from scipy import stats

import priorwise as pw
from priorwise.core.choosing import level, ties
from priorwise.core.protocols import Seen
from priorwise.core.streams import Purpose, Streams
from priorwise.policies.laws import drawn_law
from priorwise.sensitivity.exact.bayes_optimal import BayesOptimalPolicy, bayes_optimal
from priorwise.testing.twins import same_run, some_arms
from priorwise.theory.action_laws import tied_law

FALSE_ALARM = 1e-5
COMPILED = {
    "thompson": pw.ThompsonSampling(),
    "k-shot": pw.KShotThompson(3),
    "sum": pw.PosteriorSampling(4, "sum"),
    "sum-of-three": pw.PosteriorSampling(3, "sum"),
    "greedy": pw.Greedy(),
    "receding": pw.RecedingHorizon(2, 3, 0.5),
    "receding-online": pw.RecedingHorizon(3, 2, "online"),
    "receding-random": pw.RecedingHorizon(2, 4, 0.5, ties="random"),
    "bayes-ucb": pw.BayesUCB(),
    "top-two": pw.TopTwoThompson(most_draws=20),
    "exact": pw.ExactKnowledgeGradient(0.5),
    "exact-online": pw.ExactKnowledgeGradient("online"),
    "exact-only": pw.ExactKnowledgeGradient(1.0),
    "knowledge-gradient": pw.KnowledgeGradient(3, 4),
    "knowledge-gradient-random": pw.KnowledgeGradient(3, 4, ties="random", when_certain="best"),
}
SCALES = (0.1, 1 / 3, 1e7 / 3, 5e-324, 1e-310)
# every column sums to 0, which floating point misses
TENTHS = 0.1 * np.array([[3, -3, 1], [-1, 1, 2], [-2, 2, -3]])
THIRDS = np.full(3, 1 / 3)


def cancelling(rng: np.random.Generator, scale: float, noise: Any) -> pw.FinitePrior:
    """Random whole multiples of a scale, each task with its opposite, equally likely: the mean of
    every arm is 0.
    """
    half = rng.integers(-3, 4, size=(rng.integers(2, 6), rng.integers(2, 6)))
    means = np.vstack([half, -half]) * scale
    variance = {"gaussian": scale**2 if scale > 1e-150 else 1.0}.get(noise)
    return pw.FinitePrior(
        means, np.full(len(means), 1 / len(means)), noise=noise, noise_var=variance
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILED)
def test_engines_agree_where_means_cancel(name: str, seed: int) -> None:
    """Action for action, with and without noise and masks, also with means that are denormal."""
    rng = np.random.default_rng(seed)
    for case, scale in enumerate(SCALES * 2):
        prior = cancelling(rng, scale, "gaussian" if case % 2 else "none")
        available = some_arms(128, prior.arms, seed + case) if case % 3 == 0 else None
        same_run(
            *(
                pw.simulate(
                    prior,
                    COMPILED[name],
                    horizon=4,
                    tasks=128,
                    seed=seed + case,
                    keep=True,
                    engine=engine,
                    available=available,
                )
                for engine in ("compiled", "numpy")
            )
        )


def test_engines_agree_where_normal_means_cancel(seed: int) -> None:
    """Arms that were not pulled learn the same from the others; where prior and rewards cancel,
    their means are nearly 0.
    """
    p = pw.ExchangeableGaussianPrior(1.0, 1.0, 0.9, 0.5).for_arms(5)
    belief, seen = p.belief(2), Seen(2, 4, 5)
    low, high = -3.0, 1.0
    for _ in range(60):  # the reward that drives the means of the arms that were not pulled to 0
        middle = (low + high) / 2.0
        after = belief.update(Seen(1, 4, 5), np.array([0, 0]), np.full(2, middle), None)
        low, high = (low, middle) if after.mean(seen)[0, 1] > 0.0 else (middle, high)
    scores = pw.Greedy().scores(after, seen)[0, 1:]
    assert np.abs(scores).max() < 1e-14
    assert (scores == scores[0]).all()
    runs = (
        pw.simulate(p, pw.Greedy(), horizon=4, tasks=150_000, seed=seed, keep=True, engine=e)
        for e in ("compiled", "numpy")
    )
    same_run(*runs)


def test_engines_agree_where_prior_means_differ_by_rounding(seed: int) -> None:
    """Two arms that learn the same from a third one tie if their prior means do, wherever the
    posterior ones lie.
    """
    cov = [[1.0, 0.2, 0.9], [0.2, 1.0, 0.9], [0.9, 0.9, 2.0]]
    for gap in (2e-13, 1e-3):
        prior = pw.GaussianPrior([0.3 + gap, 0.3, 0.5], cov, 0.1)
        runs = [
            pw.simulate(prior, pw.Greedy(), horizon=2, tasks=4_000, seed=seed, keep=True, engine=e)
            for e in ("compiled", "numpy")
        ]
        same_run(*runs)
        second = np.bincount(runs[0].actions[:, 1], minlength=3)
        # played by half of those who leave arm 2 where it ties, by none where it does not
        assert (second[1] > 0) == (gap < 1e-6)


def test_engines_agree_where_sums_of_draws_cancel(seed: int) -> None:
    """Arms that are one and the same but for rounding: their draws tie, wherever the sums of these
    lie.
    """
    prior = pw.GaussianPrior(np.zeros(3), np.ones((3, 3)))
    policy = pw.PosteriorSampling(4, "sum")
    runs = (
        pw.simulate(prior, policy, horizon=2, tasks=60_000, seed=seed, keep=True, engine=e)
        for e in ("compiled", "numpy")
    )
    same_run(*runs)


def test_levelling_tells_near_ties_from_others(seed: int) -> None:
    """Values near the best, and sizes that make them tie or not, against the rule written out;
    nothing else is touched.
    """
    rng = np.random.default_rng(seed)
    values = rng.integers(-2, 3, size=(4_000, 4)) + rng.choice(
        [0.0, 4e-13, 3e-12, -1e-9], size=(4_000, 4)
    )
    values[rng.random(values.shape) < 0.1] = -np.inf
    values[:, 0] = np.where(np.isneginf(values).all(axis=1), 0.0, values[:, 0])
    for sizes in (
        None,
        np.full((1, 4), 2.0),
        rng.choice([0.1, 1.0, 10.0, np.inf, np.nan], size=values.shape),
    ):
        given = (
            np.zeros(values.shape) if sizes is None else np.where(np.isfinite(sizes), sizes, 0.0)
        )
        half = 5e-13 * np.maximum(
            np.maximum(given, np.where(np.isfinite(values), np.abs(values), 0.0)), 1e-306
        )
        best = values.max(axis=1, keepdims=True)
        tied = values + half >= (values - half).max(axis=1, keepdims=True)
        np.testing.assert_array_equal(level(values, sizes), np.where(tied, best, values))
        assert (tied.sum(axis=1) > 1).any()
        assert (tied.sum(axis=1) == 1).any()


@pytest.mark.parametrize(
    "policy", [pw.Greedy(), pw.ExactKnowledgeGradient(0.5), BayesOptimalPolicy()], ids=str
)
def test_order_of_the_possible_tasks_does_not_matter(policy: Any, seed: int) -> None:
    """Sums over the tasks in another order round differently, and must tie all the same."""
    rng = np.random.default_rng(seed)
    for scale in SCALES * 4:
        prior = cancelling(rng, scale, "none")
        order = rng.permutation(prior.support)
        other = pw.FinitePrior(prior.means[order], prior.probs[order])
        seen = Seen(1, 2, prior.arms)
        laws = [exact_probs(policy, each.belief(1), seen) for each in (prior, other)]
        np.testing.assert_allclose(*laws, atol=1e-12)


def test_arms_that_are_worth_nothing_tie() -> None:
    prior = pw.FinitePrior(TENTHS, THIRDS)
    belief, seen = prior.belief(1), Seen(1, 1, 3)
    assert np.abs(belief.mean(seen)).max() < 1e-16
    assert ties(pw.Greedy().scores(belief, seen)).all()
    assert bayes_optimal(prior, 1).first_arms.tolist() == [0, 1, 2]
    # one pull tells the task, whichever the arm; the second earns 0.3, 0.2 or 0.2
    assert bayes_optimal(prior, 2).value == pytest.approx(0.7 / 3)
    assert bayes_optimal(prior, 2).first_arms.tolist() == [0, 1, 2]


def test_an_arm_that_is_never_played_does_not_blur_the_others() -> None:
    """The tolerance of two arms is relative to what those two are sums of."""
    means = np.array([[-1e15, 0.1, 0.2], [-1e15, 0.2, 0.1]])
    prior = pw.FinitePrior(means, [0.4, 0.6])
    belief, seen = prior.belief(1), Seen(1, 1, 3)
    for policy in (
        pw.Greedy(),
        pw.PosteriorSampling(3, "sum"),
        pw.RecedingHorizon(1, 3, 0.5),
        BayesOptimalPolicy(),
    ):
        law = exact_probs(policy, belief, seen)[0]
        assert law[0] == 0.0
        assert abs(law[1] - law[2]) > 0.05
    values, sizes = np.array([[-1e15, 0.1, 0.2, -np.inf]]), np.array([[1e15, 0.1, 0.2, np.inf]])
    assert level(values, sizes).tolist() == values.tolist()


LAWS = {
    "sum": pw.PosteriorSampling(4, "sum"),
    "sum-of-three": pw.PosteriorSampling(3, "sum"),
    "receding": pw.RecedingHorizon(1, 3, 0.5),
    "receding-two": pw.RecedingHorizon(2, 2, 0.5, ties="random"),
    "knowledge-gradient": pw.KnowledgeGradient(2, 2),
    "knowledge-gradient-random": pw.KnowledgeGradient(1, 3, ties="random"),
    "greedy": pw.Greedy(),
    "exact-knowledge-gradient": pw.ExactKnowledgeGradient(0.5),
    "optimal": BayesOptimalPolicy(),
}


def p_value(policy: Any, law: Any, prior: pw.FinitePrior, seed: int) -> float:
    """Chi-square p-value of 20,000 first actions against a law ``(arm,)``."""
    tasks = 20_000
    rng = Streams(seed, np.arange(tasks, dtype=np.uint64)).at(Purpose.POLICY, 1)
    counts = np.bincount(
        policy.act(prior.belief(tasks), Seen(1, 2, prior.arms), rng), minlength=prior.arms
    )
    there = law > 1e-12
    if counts[~there].any():
        return 0.0
    return (
        1.0
        if there.sum() == 1
        else float(stats.chisquare(counts[there], tasks * law[there] / law[there].sum()).pvalue)
    )


@pytest.mark.parametrize("name", LAWS)
def test_enumerated_law_is_that_of_the_actions(name: str, seed: int) -> None:
    """False alarms with probability 1e-5 for each policy."""
    prior = pw.FinitePrior(TENTHS, THIRDS)
    law = exact_probs(LAWS[name], prior.belief(1), Seen(1, 2, 3))
    assert p_value(LAWS[name], law[0], prior, seed) > FALSE_ALARM


def test_law_without_the_size_of_the_addends_is_noticed(seed: int) -> None:
    """The control: ties judged relative to the sum itself, which rounding decides."""
    prior = pw.FinitePrior(TENTHS, THIRDS)
    law = drawn_law(
        lambda values, seen: tied_law(values.sum(axis=1)), 3, prior.belief(1), Seen(1, 2, 3)
    ).probs
    assert p_value(pw.PosteriorSampling(3, "sum"), law[0], prior, seed) < FALSE_ALARM
