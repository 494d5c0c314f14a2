"""Contexts whose law is a part of the unknown task: the posterior by closed forms and by
enumeration, calibration with a belief that is blind to contexts, distances and bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Self

import numpy as np
import pytest
from raising import raises
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm

import priorwise as pw
from priorwise.core.protocols import Seen
from priorwise.core.streams import Purpose, Stream, Streams
from priorwise.families import NormalContexts, bilinear, matrix_normal
from priorwise.families.mixture.statistics import MixtureStatistics
from priorwise.testing import FamilyContract, PriorContract
from priorwise.testing.calibration import Forgetful, Gullible
from priorwise.testing.playing import play

ARMS = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
COVS = (np.array([[1.0, 0.3], [0.3, 0.3]]), np.array([[0.3, -0.2], [-0.2, 1.0]]))
CENTRES = ([[1.0, 0.0], [0.0, 1.0]], [[-1.0, 0.5], [0.0, -1.0]])
MIDDLES = np.array([[1.0, 0.3], [0.0, 1.0]])
# with contexts about 0, ranks of values could not see who is blind to them
NOISE = np.array([1.0, 0.5, 2.0])


def linear(probs: Any = (0.6, 0.4), covs: Any = COVS) -> pw.MixturePrior:
    """``L`` is near one matrix or another, and contexts have one covariance or another."""
    parts = []
    for centre, cov, middle in zip(CENTRES, covs, MIDDLES, strict=True):
        law = matrix_normal(centre, 0.3 * np.eye(2), np.eye(2))
        parts.append(pw.LinearGaussianPrior(*law, NOISE, NormalContexts(ARMS, cov, middle)))
    return pw.MixturePrior(parts, probs)


TABLES = bilinear([[1.0], [-1.0]], [[1.0], [-0.5]])  # two tables of two arms with one feature
WEIGHTS = (1.5, -1.0)
POOLS = (TABLES[[0, 0, 0, 1]], TABLES[[0, 1, 1]])


def clicks(probs: Any = (0.5, 0.5), var: float = 0.0) -> pw.MixturePrior:
    """Weights of a component all but known, and one of two tables at each pull."""
    parts = [pw.LogisticPrior([w], [[var]], pool) for w, pool in zip(WEIGHTS, POOLS, strict=True)]
    return pw.MixturePrior(parts, probs)


def _features(run: Any, prior: Any) -> Any:
    return run.trajectory.log.reshape(*run.rewards.shape, prior.arms, prior.dim)


# --- the posterior ------------------------------------------------------------------------------


def test_posterior_is_that_of_contexts_and_rewards(seed: int) -> None:
    """Weights of the components are ``p_k prod_h N(x_h; 0, S_k) N(r; X m_k, X C_k X' + V)``, before
    the first reward too, and values are means of the components' closed forms.
    """
    prior = linear()
    played = play(prior, tasks=30, pulls=5, seed=seed)
    for pulls in range(6):
        belief = prior.belief(30)
        for pull in played.pulls[:pulls]:
            belief = belief.update(pull.seen, pull.actions, pull.rewards, pull.after)
        seen = played.pulls[pulls].seen if pulls < 5 else played.seen
        shown = [each.seen.signal for each in played.pulls[:pulls]] + [seen.signal]
        for task in range(30):
            # arm 0 has v = (1, 0), so that its first features are the context
            x = np.array([table[task, 0, :2] for table in shown])
            actions = [pull.actions[task] for pull in played.pulls[:pulls]]
            rewards = np.array([pull.rewards[task] for pull in played.pulls[:pulls]])
            logs, means = [], []
            for k, part in enumerate(prior.components):
                shows = multivariate_normal(MIDDLES[k], COVS[k])
                log = np.log(prior.probs[k]) + shows.logpdf(x).sum()
                mean = part.mean
                if pulls:
                    rows = np.array(
                        [np.kron(ARMS[a], each) for a, each in zip(actions, x, strict=False)]
                    )
                    spread = rows @ part.cov @ rows.T + np.diag(NOISE[actions])
                    log += multivariate_normal(rows @ part.mean, spread).logpdf(rewards)
                    gain = part.cov @ rows.T @ np.linalg.inv(spread)
                    mean = part.mean + gain @ (rewards - rows @ part.mean)
                logs.append(log)
                means.append([np.kron(v, x[-1]) @ mean for v in ARMS])
            weights = np.exp(np.array(logs) - max(logs))
            weights /= weights.sum()
            np.testing.assert_allclose(belief.probabilities(seen)[task], weights, atol=1e-10)
            np.testing.assert_allclose(belief.mean(seen)[task], weights @ means, atol=1e-10)


def test_contexts_alone_tell(seed: int) -> None:
    """Who sees contexts and no reward finds the component; who does not look at them stays at the
    prior.
    """
    prior = linear((0.5, 0.5))
    streams = Streams(seed, np.arange(200, dtype=np.uint64))
    environment: Any = prior.sample(streams.at(Purpose.ENVIRONMENT, 0), 200)
    statistics = MixtureStatistics.empty(200, **MixtureStatistics.known(prior))
    for step in range(1, 21):
        shown = environment.start(streams.world(step))
        logs = prior.contexts.log_densities(shown)
        statistics = replace(statistics, log_contexts=statistics.log_contexts + logs)
    found = prior.belief_given(statistics).probabilities()[np.arange(200), environment.component]
    assert found.mean() > 0.95
    assert (prior.belief(200).probabilities() == 0.5).all()


def test_each_context_counts_once(seed: int) -> None:
    """A step that an update has counted is not counted again where somebody looks back at it."""
    prior = linear()
    played = play(prior, tasks=10, pulls=3, seed=seed)
    belief = played.belief
    for pull in played.pulls:
        np.testing.assert_array_equal(belief.probabilities(pull.seen), belief.probabilities())
    assert not np.allclose(belief.probabilities(played.seen), belief.probabilities())
    late = replace(played.seen, step=np.full(10, played.seen.step))  # one step for each task
    np.testing.assert_array_equal(belief.probabilities(late), belief.probabilities(played.seen))


def test_statistics_of_a_run_are_those_of_its_pulls(seed: int) -> None:
    prior = linear()
    run = pw.simulate(prior, pw.Uniform(), horizon=4, tasks=20, seed=seed, keep=True)
    read, told = (MixtureStatistics.empty(20, **MixtureStatistics.known(prior)) for _ in range(2))
    read = MixtureStatistics.read(run.trajectory, **MixtureStatistics.known(prior))
    for step in range(4):
        shown = _features(run, prior)[:, step]
        told = told.observe(run.actions[:, step], run.rewards[:, step], shown)
    np.testing.assert_allclose(told.log_contexts, read.log_contexts)
    idle = told.observe(np.full(20, -1), np.zeros(20), shown)  # shown, but not pulled
    np.testing.assert_array_equal(idle.log_contexts, told.log_contexts)
    np.testing.assert_allclose(
        run.belief(prior).log_weights, prior.belief_given(told).log_weights, atol=1e-9
    )
    # evidence has the contexts, too
    own = [
        np.log(p) + pw.meta.log_marginal_likelihood(part, stats) + read.log_contexts[:, k]
        for k, (part, p, stats) in enumerate(
            zip(prior.components, prior.probs, read.parts, strict=True)
        )
    ]
    whole = pw.meta.log_marginal_likelihood(prior, run)
    np.testing.assert_allclose(whole, np.logaddexp(*own), atol=1e-9)


def test_impossible_contexts_leave_the_weights_but_not_the_rewards() -> None:
    """Where no component can have shown what a task shows, rewards go on teaching."""
    prior = clicks(var=0.5)
    strange = np.full((1, 2, 1), 0.25) * [[[1.0], [-1.0]]]
    seen = Seen(1, 3, 2, strange)
    belief = prior.belief(1)
    assert belief.probabilities(seen).tolist() == [[0.5, 0.5]]
    after = belief.update(seen, np.array([0]), np.array([1.0]), None)
    assert after.probabilities()[0, 0] > 0.5


# --- contracts: calibration, with a belief that does not look at contexts -----------------------


@dataclass(frozen=True)
class Blind:
    """A wrong belief: it learns from rewards alone."""

    belief: Any

    def sample(self, rng: Stream, draws: int, seen: Seen) -> Any:
        return replace(self.belief, contexts=None).sample(rng, draws, seen)

    def update(self, seen: Seen, actions: Any, rewards: Any, after: Any) -> Self:
        return type(self)(replace(self.belief, contexts=None).update(seen, actions, rewards, after))


class TestLinear(PriorContract):
    tasks = 16384  # what contexts tell beside rewards is little
    wrong_beliefs = (Forgetful, Gullible, Blind)

    @pytest.fixture
    def prior(self) -> pw.MixturePrior:
        return linear()

    @pytest.fixture
    def believed(self) -> pw.MixturePrior:
        return linear((0.1, 0.9))


class TestLogistic(PriorContract):
    wrong_beliefs = (Forgetful, Gullible, Blind)

    @pytest.fixture
    def prior(self) -> pw.MixturePrior:
        return clicks((0.3, 0.7), var=0.3)


class TestFamily(FamilyContract):
    @pytest.fixture(params=["linear", "logistic"])
    def prior(self, request: Any) -> pw.MixturePrior:
        return linear() if request.param == "linear" else clicks()


def test_contexts_are_worth_something(seed: int) -> None:
    """Paired on the same tasks: who ignores contexts earns less, by far more than four standard
    errors; so does who believes one component's law and weights.
    """
    prior = linear((0.5, 0.5))
    law = prior.components[0].contexts
    ignoring = pw.MixturePrior(
        [part.replaced(contexts=law) for part in prior.components], [0.5] * 2
    )
    ts = pw.ThompsonSampling()
    runs = [
        pw.simulate(prior, ts, believed=each, horizon=6, tasks=2000, seed=seed, keep=True)
        for each in (prior, ignoring, prior.components[0])
    ]
    for other in runs[1:]:
        lost = (runs[0].rewards - other.rewards).sum(axis=1)
        assert lost.mean() > 4.0 * lost.std() / np.sqrt(lost.size)


# --- bounds -------------------------------------------------------------------------------------


def _rates(w: float, table: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-table[:, 0] * w))


def _enumerated(true: Any, held: Any, horizon: int, blind: bool = False) -> tuple[float, dict]:
    """Expected reward of Thompson sampling that holds these probabilities of the components, and
    the law of (component, history), by hand.
    """
    share = [
        [np.mean([(entry == table).all() for entry in pool]) for table in TABLES] for pool in POOLS
    ]
    value, law = 0.0, {}
    for k, history in product(
        range(2), product(product(range(2), range(2), range(2)), repeat=horizon)
    ):
        chance, earned, weights = true[k], 0.0, np.array(held, dtype=float)
        for table, action, reward in history:
            if not blind:
                weights = weights * [each[table] for each in share]
            play = sum(
                w
                for j, w in enumerate(weights / weights.sum())
                if _rates(WEIGHTS[j], TABLES[table]).argmax() == action
            )
            rates = [_rates(w, TABLES[table])[action] for w in WEIGHTS]
            likelihoods = np.array([rate if reward else 1.0 - rate for rate in rates])
            chance *= share[k][table] * play * likelihoods[k]
            earned += reward
            weights = weights * likelihoods
        value += chance * earned
        law[k, history] = chance
    return value, law


def test_rewards_and_bounds_by_enumeration(seed: int) -> None:
    """Simulated rewards are those of all histories, and trajectories and rewards differ by no more
    than the theorems say: that on bandits, with the diameter over the contexts of the task's own
    law, and that on general problems. Four standard errors; the belief that is blind to contexts
    is the control.
    """
    true, horizon, tasks = (0.5, 0.5), 3, 60_000
    ts = pw.ThompsonSampling()
    value, law = _enumerated(true, true, horizon)
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-12)
    run = pw.simulate(clicks(true), ts, horizon=horizon, tasks=tasks, seed=seed)
    assert abs(run.mean_reward - value) < 4.0 * run.std_error
    blind, _ = _enumerated(true, true, horizon, blind=True)
    assert abs(run.mean_reward - blind) > 4.0 * run.std_error
    for held in ((0.45, 0.55), (0.499, 0.501), (0.9, 0.1), (0.0, 1.0)):
        other, its = _enumerated(true, held, horizon)
        tv = pw.total_variation(clicks(true), clicks(held))
        assert tv.kind == "exact"
        assert tv.value == pytest.approx(abs(true[0] - held[0]), abs=1e-12)
        apart = sum(abs(law[key] - its[key]) for key in law) / 2.0
        near = pw.sensitivity.trajectory_bound(clicks(true), clicks(held), ts, horizon)
        assert apart <= near.value + 1e-12
        bound = pw.reward_bound(clicks(true), clicks(held), ts, horizon)
        general = pw.sensitivity.pomdp_reward_bound(
            (clicks(true), clicks(held)), ts, horizon, reward_range=1.0
        )
        assert bound.kind == general.kind == "certified"
        assert abs(value - other) <= bound.value <= general.value + 1e-12


def test_distances_are_those_of_excluding_components(seed: int) -> None:
    """Against integrals over the weights of each component; estimates within four standard
    errors.
    """
    laws = [NormalContexts([[1.0], [-1.0]], [[var]]) for var in (1.0, 4.0)]

    def mixture(probs: Any, means: Any, variances: Any) -> pw.MixturePrior:
        parts = [
            pw.LinearGaussianPrior([m], [[v]], 1.0, law)
            for m, v, law in zip(means, variances, laws, strict=True)
        ]
        return pw.MixturePrior(parts, probs)

    p, q = mixture([0.3, 0.7], [0.0, 1.0], [1.0, 0.5]), mixture([0.5, 0.5], [0.4, 0.8], [2.0, 0.4])

    def integral(change: Any) -> float:
        total = 0.0
        for k in range(2):
            f, g = (
                norm(each.components[k].mean[0], np.sqrt(each.components[k].cov[0, 0]))
                for each in (p, q)
            )
            a, b = p.probs[k], q.probs[k]
            whole = lambda w: change(a * f.pdf(w), b * g.pdf(w))  # noqa: B023, E731
            total += quad(whole, -12.0, 12.0, limit=400, points=[-1.0, 0.0, 1.0, 2.0])[0]
        return total

    tv = pw.total_variation(p, q, seed=seed, draws=50_000)
    exact = integral(lambda f, g: abs(f - g) / 2.0)
    assert tv.kind == "estimate"
    assert abs(tv.value - exact) < 4.0 * tv.std_error
    assert exact <= tv.upper
    far = integral(lambda f, g: f * np.log(f / g) if f > 0.0 and g > 0.0 else 0.0)
    assert pw.sensitivity.kl(p, q) == pytest.approx(far, abs=1e-7)
    affinity = integral(lambda f, g: np.sqrt(f * g))
    assert pw.sensitivity.hellinger(p, q) == pytest.approx(np.sqrt(1.0 - affinity), abs=1e-7)
    none, all_ = mixture([0.0, 1.0], [0.0, 1.0], [1.0, 0.5]), mixture([1.0, 0.0], [0, 1], [1, 0.5])
    assert pw.total_variation(none, all_).value == 1.0
    assert pw.sensitivity.kl(none, all_) == np.inf
    same = mixture([0.3, 0.7], [0.0, 1.5], [1.0, 0.5])
    shift = 2.0 * norm.cdf(0.5 / np.sqrt(0.5) / 2.0) - 1.0
    assert pw.total_variation(p, same).value == pytest.approx(0.7 * shift)


# --- what is refused ----------------------------------------------------------------------------


def test_laws_that_features_do_not_tell_apart_are_refused() -> None:
    part = pw.LinearGaussianPrior(np.zeros(4), np.eye(4), NOISE, NormalContexts(ARMS, np.eye(2)))
    for other in (
        pw.SphereContexts(arms=3),
        NormalContexts(2.0 * ARMS, np.eye(2)),
        np.ones((3, 4)),
    ):
        with raises("components", "contexts"):
            pw.MixturePrior([part, part.replaced(contexts=other)], [0.5, 0.5])
    with raises("components", "share dim"):
        pw.MixturePrior(
            [part, pw.LinearGaussianPrior([0.0], [[1.0]], NOISE, np.ones((3, 1)))], [0.5, 0.5]
        )


def test_a_mixture_of_such_mixtures_is_refused() -> None:
    """Its environments and its evidence would be those of the first one only."""
    with raises("components", "must not be mixtures whose components"):
        pw.MixturePrior([linear(), linear((0.1, 0.9))], [0.5, 0.5])
    with raises("components", "must not be mixtures whose components"):
        pw.MixturePrior([linear()], [1.0])


def test_tools_say_where_they_do_not_apply(seed: int) -> None:
    prior, other = linear(), linear(covs=COVS[::-1])
    with raises("q", "of contexts"):
        pw.total_variation(prior, other)
    first, second = prior.components
    some = pw.MixturePrior([first, second, second], [0.2, 0.3, 0.5])
    with raises("contexts", "must be one law for all"):
        pw.total_variation(some, some.replaced(probs=[0.3, 0.3, 0.4]))
    with raises("priors", "share the law of contexts"):
        pw.meta.CandidatePriors(prior.components)
    fixed = prior.components[0]
    with raises("prior", "share the law of contexts"):
        pw.simulate(fixed, pw.Greedy(), believed=prior.components[1], horizon=1, tasks=1, seed=seed)
    run = pw.simulate(fixed, pw.Uniform(), horizon=2, tasks=3, seed=seed, keep=True)
    with raises("log", "must hold 3 x 4 features"):
        prior.belief_given(run)
    both = MixtureStatistics.empty(3, **MixtureStatistics.known(prior))
    with raises("statistics", "laws of contexts"):
        other.belief_given(both)
    with raises("statistics", "laws of contexts"):
        both.merged(MixtureStatistics(both.parts))
