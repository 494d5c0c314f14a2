"""Logistic rewards in features: Laplace's approximation against quadrature and exact draws, and
what a family must keep.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from raising import raises
from scipy import stats
from scipy.special import expit

import priorwise as pw
from priorwise.core.protocols import Seen
from priorwise.core.streams import streams
from priorwise.families import LogisticStatistics
from priorwise.families.logistic.posteriors import LogisticPosteriors
from priorwise.sensitivity import exact_rewards, exact_trajectory_tv
from priorwise.testing import FamilyContract, PriorContract
from priorwise.testing.playing import play

TS = pw.ThompsonSampling()

BLOCK = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
SPHERE = pw.SphereContexts(arms=3)
POOL = np.array(
    [
        [[-0.8, -1.3], [-0.2, 0.4], [1.1, 0.1]],
        [[0.6, -0.5], [1.2, 0.9], [-1.0, 0.3]],
        [[0.0, 1.4], [-0.7, -0.6], [0.3, 0.2]],
        [[1.0, 1.0], [0.5, -1.1], [-0.4, 0.8]],
    ]
)
PRIORS = {
    "sphere": (
        pw.LogisticPrior([1.0, 0.0, -1.0], 2.0 * BLOCK, SPHERE),
        pw.LogisticPrior(np.zeros(3), np.eye(3), SPHERE),
    ),
    "pool": (
        pw.LogisticPrior([0.5, -0.5], [[1.0, 0.3], [0.3, 0.5]], POOL),
        pw.LogisticPrior([0.0, 0.0], np.eye(2), POOL),
    ),
    "singular": (
        pw.LogisticPrior([0.5, -0.5], [[1.0, 1.0], [1.0, 1.0]], POOL[0]),
        pw.LogisticPrior([0.0, 0.0], np.eye(2), POOL[0]),
    ),
}


class TestPriors(PriorContract):
    @pytest.fixture(params=PRIORS)
    def pair(self, request: Any) -> Any:
        return PRIORS[request.param]

    @pytest.fixture
    def prior(self, pair: Any) -> Any:
        return pair[0]

    @pytest.fixture
    def believed(self, pair: Any) -> Any:
        return pair[1]


class TestFamily(FamilyContract):
    @pytest.fixture(params=PRIORS)
    def prior(self, request: Any) -> Any:
        return PRIORS[request.param][0]


def test_tasks_of_different_lengths_are_one_batch(seed: int) -> None:
    """Beliefs after 1 and 5 pulls joined, and updated together, are those apart; statistics
    likewise.
    """
    prior = PRIORS["pool"][0]
    short, long = (play(prior, tasks=6, pulls=n, seed=seed + n) for n in (1, 5))
    both = short.belief.join(long.belief)
    seen = Seen(1, 9, 3, np.concatenate([short.seen.signal, long.seen.signal]))
    arms, earned = np.arange(12) % 3, (np.arange(12) % 2).astype(float)
    later = both.update(seen, arms, earned, None)
    parts = []
    for k, each in enumerate((short, long)):
        part = slice(6 * k, 6 * k + 6)
        one = replace(seen, signal=seen.signal[part])
        parts.append(each.belief.update(one, arms[part], earned[part], None).m)
    np.testing.assert_allclose(later.m, np.concatenate(parts), atol=1e-10)
    assert later.pulls.tolist() == [2] * 6 + [6] * 6
    np.testing.assert_allclose(later.take([7, 0]).m, later.m[[7, 0]])
    a, b = (LogisticStatistics(each.belief.x, each.belief.r) for each in (short, long))
    given = prior.belief_given(a + b)
    np.testing.assert_allclose(given.m, both.m, atol=1e-9)
    with raises("others", "beliefs of"):
        both.join(PRIORS["sphere"][0].belief(2))


def test_pulls_in_any_order_and_in_parts_are_the_same(seed: int) -> None:
    prior = PRIORS["sphere"][0]
    belief: Any = play(prior, tasks=9, pulls=7, seed=seed).belief
    x, r = belief.x, belief.r
    whole = LogisticStatistics(x, r)
    back = LogisticStatistics(x[:, ::-1], r[:, ::-1])
    first, second = (LogisticStatistics(x[:, part], r[:, part]) for part in (np.s_[:3], np.s_[3:]))
    assert first.merged(second) == whole
    m = prior.belief_given(whole).m
    np.testing.assert_allclose(prior.belief_given(back).m, m, atol=1e-9)
    assert not np.allclose(prior.belief_given(first).m, m, atol=0.01)
    some = whole.observe([0, -1] * 4 + [2], [1.0] * 9, np.ones((9, 3, 3)))
    assert some.pulls.tolist() == [8, 7] * 4 + [8]
    assert (some.take([1, 3]), some.take([1]).features.shape) == (whole.take([1, 3]), (1, 7, 3))


def test_a_kept_run_tells_the_belief(seed: int) -> None:
    prior = PRIORS["pool"][0]
    run = pw.simulate(prior, pw.Greedy(), horizon=6, tasks=20, seed=seed, keep=True)
    belief = run.belief(prior)
    assert belief.x.shape == (20, 6, 2)
    assert np.ptp(belief.m, axis=0).min() > 0.1


def test_look_ahead_is_the_average_over_rewards_and_features(seed: int) -> None:
    """By hand, with the belief after either reward, and the features of a pool."""
    prior = PRIORS["pool"][0]
    played = play(prior, tasks=3, pulls=3, seed=seed)
    belief, seen = played.belief, played.seen
    mean, found = belief.mean(seen), belief.best_after(seen)
    mask = np.array([[True, False, True]] * 3)
    masked = belief.best_after(replace(seen, mask=mask))
    assert (masked[:, 1] == -np.inf).all()
    for arm in range(3):
        want, some = np.zeros(3), np.zeros(3)
        for reward, chance in ((1.0, mean[:, arm]), (0.0, 1.0 - mean[:, arm])):
            then = belief.update(seen, np.full(3, arm), np.full(3, reward), None)
            for table in POOL:
                means = then.mean(replace(seen, signal=np.stack([table] * 3)))
                want += chance * means.max(axis=1) / 4
                some += chance * means[:, [0, 2]].max(axis=1) / 4
        np.testing.assert_allclose(found[:, arm], want, rtol=1e-9)
        if arm != 1:
            np.testing.assert_allclose(masked[:, arm], some, rtol=1e-9)
    assert (found > mean.max(axis=1)[:, None] * 0.5).all()


def test_believed_priors_and_other_families(seed: int) -> None:
    """A wrong logistic prior, and a linear one, can be believed on the same tasks."""
    prior, wrong = PRIORS["sphere"]
    linear = pw.LinearGaussianPrior(0.2 * np.ones(3), 0.1 * np.eye(3), 0.25, SPHERE)
    found = pw.compare(
        prior,
        {"right": TS, "wrong": (TS, wrong), "linear": (TS, linear), "uniform": pw.Uniform()},
        horizon=10,
        tasks=300,
        seed=seed,
    )
    earned = dict(zip(found.to_frame()["policy"], found.to_frame()["reward"], strict=True))
    assert min(earned["right"], earned["wrong"], earned["linear"]) > earned["uniform"]
    other = prior.replaced(contexts=np.ones((3, 3)))
    with raises("prior", "law of contexts"):
        pw.simulate(prior, TS, believed=other, horizon=2, tasks=2, seed=seed)


def test_distances_and_posteriors(seed: int) -> None:
    """Total variation of priors as for normal laws; of posteriors against a sum in one dimension,
    within 5 standard errors of 20,000 draws.
    """
    p = pw.LogisticPrior([0.3], [[1.0]], [[1.0], [-0.5]])
    q = pw.LogisticPrior([-0.4], [[2.0]], [[1.0], [-0.5]])
    normal = [pw.GaussianPrior(each.mean, each.cov) for each in (p, q)]
    assert pw.total_variation(p, q).value == pytest.approx(pw.total_variation(*normal).value)
    tasks = 20_000
    pair, rng = LogisticPosteriors.start(p, q, tasks), streams(seed, tasks)
    seen = Seen(1, 5, 2, np.broadcast_to(p.contexts.features[0], (tasks, 2, 1)))  # type: ignore[attr-defined]
    for step in range(3):
        found = pair.total_variation(rng(2 * step + 1))
        w = np.linspace(-12.0, 12.0, 40_001)
        laws = [stats.norm(b.m[0, 0], abs(b.root[0, 0, 0])).pdf(w) for b in (pair.p, pair.q)]
        exact = 0.5 * np.abs(laws[0] - laws[1]).sum() * (w[1] - w[0])
        assert abs(found.mean() - exact) < 5.0 * found.std() / np.sqrt(tasks)
        kept = pair.shared(rng(2 * step + 2), 2).mean(axis=1)
        assert abs(1.0 - kept.mean() - exact) < 5.0 * kept.std() / np.sqrt(tasks)
        assert exact > 0.05
        pair = pair.update(seen, np.full(tasks, step % 2), np.full(tasks, float(step == 0)), None)
    flat = pw.LogisticPrior([0.5, 0.5], np.ones((2, 2)), POOL)
    pair = LogisticPosteriors.start(flat, flat.replaced(mean=[0.7, 0.7]), 50)
    seen = Seen(1, 5, 3, np.broadcast_to(POOL[0], (50, 3, 2)))
    pair = pair.update(seen, np.zeros(50, dtype=int), np.ones(50), None)
    assert 0.0 < pair.total_variation(streams(seed, 50)(1)).mean() < 0.2
    apart = LogisticPosteriors.start(flat, flat.replaced(mean=[0.5, 0.7]), 50)
    assert (apart.total_variation(streams(seed, 50)(1)) == 1.0).all()


@pytest.mark.slow
def test_the_ladder_and_the_bound_hold_in_simulation(seed: int) -> None:
    """No rung exceeds those above it but for noise (4 standard errors), nor the gap the bound."""
    prior = PRIORS["sphere"][0]
    near = prior.replaced(mean=[0.99, 0.0, -1.0])
    bound = pw.reward_bound(prior, near, TS, 8)
    assert bound.kind == "approximate"
    bound = pw.reward_bound(prior, near, TS, 8, estimate=True, tail="bounded", seed=seed)
    assert bound.kind == "estimate"
    assert 0.0 < bound.value < bound.trivial <= 8.0
    ladder = pw.sensitivity_ladder(prior, near, TS, 8, tasks=200, seed=seed)
    rungs = {each.name: each for each in ladder.rungs}
    assert len(rungs) > 3
    for each in ladder.rungs:
        for above in (rungs[name] for name in each.above if name in rungs):
            noise = 4.0 * np.hypot(each.std_error, above.std_error)
            assert each.least <= above.most + noise
    runs = [
        pw.simulate(prior, TS, believed=held, horizon=8, tasks=1_000, seed=seed, keep=True)
        for held in (prior, near)
    ]
    gap = runs[0].rewards.sum(axis=1) - runs[1].rewards.sum(axis=1)
    assert abs(gap.mean()) < bound.value + 4.0 * gap.std() / np.sqrt(gap.size)


def truncated(prior: pw.LogisticPrior, points: Any) -> pw.FinitePrior:
    """The prior on finitely many weights, of which tasks show one table of features always."""
    features = prior.contexts.features[0]  # type: ignore[attr-defined]
    log_p = stats.multivariate_normal(prior.mean, prior.cov).logpdf(points)
    p = np.exp(log_p - log_p.max())
    return pw.FinitePrior(expit(points @ features.T), p / p.sum(), noise="bernoulli")


def test_the_bound_holds_by_enumeration() -> None:
    """Weights on a grid of 25 points, all histories of 4 pulls: what a wrong prior changes is below
    the bound, and grows with the distance.
    """
    p = pw.LogisticPrior([0.5, -0.5], [[1.0, 0.3], [0.3, 0.5]], POOL[0])
    axis = np.linspace(-2.0, 2.0, 5)
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    changed = []
    for shift in (0.01, 0.1, 1.0):
        pair = [truncated(each, points) for each in (p, p.replaced(mean=[0.5 + shift, -0.5]))]
        gap = np.subtract(
            *(exact_rewards(pair[0], TS, 4, believed=held).mean_reward for held in pair)
        )
        bound = pw.reward_bound(*pair, TS, 4)
        assert abs(gap) <= bound.value
        apart = exact_trajectory_tv(*pair, TS, 4).value
        assert 0.0 < apart <= pw.trajectory_bound(*pair, TS, 4).value
        changed.append(abs(gap))
    assert 0.0 < changed[0] < changed[1] < changed[2]
