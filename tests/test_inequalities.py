"""Every inequality of the sensitivity theory on random small problems, exact on both sides; and
constants that must fail.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from enumerated import exact_probs
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import priorwise as pw
from priorwise.core.protocols import Seen
from priorwise.core.streams import Purpose, Streams
from priorwise.families.finite.instances import noiseless_instance, two_point_instance
from priorwise.sensitivity.bounds.lower import exact_gap
from priorwise.sensitivity.exact.chain import ExactChain, exact_chain
from priorwise.sensitivity.exact.evaluation import exact_trajectory_tv

ROUNDING = 1e-9

POLICIES = {
    "thompson": pw.ThompsonSampling(),
    "two-shot": pw.KShotThompson(2),
    "four-shot": pw.KShotThompson(4),
    "sum": pw.PosteriorSampling(3, "sum"),
    "softmax": pw.PosteriorSampling(2, "softmax"),
    "own-rule": pw.PosteriorSampling(
        2, lambda values, seen: np.eye(seen.arms)[values[:, 1].argmax(axis=1)]
    ),
    "uniform": pw.Uniform(),
    "receding": pw.RecedingHorizon(1, 1, 0.5),
    "receding-online": pw.RecedingHorizon(1, 2, "online"),
    "receding-myopic": pw.RecedingHorizon(2, 1, 0.0),
    "knowledge-gradient": pw.KnowledgeGradient(1, 1),
    "knowledge-gradient-random": pw.KnowledgeGradient(1, 2, ties="random"),
}


@st.composite
def problems(
    draw: st.DrawFn, support: int = 4, arms: int = 3
) -> tuple[pw.FinitePrior, pw.FinitePrior]:
    """Two priors of one reward law; points may have probability 0 under either, and may repeat."""
    size, width = draw(st.integers(1, support)), draw(st.integers(1, arms))
    table = (
        np.array(
            draw(
                st.lists(
                    st.lists(st.integers(0, 4), min_size=width, max_size=width),
                    min_size=size,
                    max_size=size,
                )
            )
        )
        / 4
    )
    noise = draw(st.sampled_from(["none", "bernoulli"]))
    scale = draw(st.sampled_from([1, 1, 100, 10_000]))  # how close the priors may be
    weights = st.lists(st.integers(0, 5), min_size=size, max_size=size).filter(any)
    first, second = np.array(draw(weights), dtype=float), np.array(draw(weights), dtype=float)
    second = first * (scale - 1) / first.sum() + second / second.sum()
    order = draw(st.permutations(range(size)))  # points are matched by value, not by place
    pair = [
        pw.FinitePrior(table[list(places)], each[list(places)] / each.sum(), noise)
        for each, places in ((first, range(size)), (second, order))
    ]
    return (pair[0], pair[1]) if draw(st.booleans()) else (pair[1], pair[0])


def tail_expectation(prior: pw.FinitePrior, p: float) -> float:
    """Psi(p) of the diameter: the mean over the largest diameters, filled up to probability p."""
    diameters = np.ptp(prior.means, axis=1)
    left, total = min(p, 1.0), 0.0
    for i in np.argsort(-diameters):
        taken = min(left, prior.probs[i])
        total += taken * diameters[i]
        left -= taken
    return total / min(p, 1.0)


def check_chain(chain: ExactChain, prior: pw.FinitePrior, n: int) -> None:
    links = chain.links(n)
    assert len(links) == 5
    for larger, smaller in pairwise(links):
        assert larger >= smaller - ROUNDING
    if chain.prior_tv < ROUNDING or n == 0:  # nothing moves
        assert abs(chain.gap) < ROUNDING
        return
    horizon = len(chain.action_tv)
    bounded = horizon * links[0] * np.ptp(prior.means[prior.probs > 0], axis=1).max()
    general = horizon * links[0] * tail_expectation(prior, links[0])
    assert abs(chain.gap) <= bounded + ROUNDING
    assert abs(chain.gap) <= general + ROUNDING
    for delta in links:  # every link bounds the rewards: H delta Psi(delta)
        share = min(1.0, delta)
        if share > ROUNDING:
            assert abs(chain.gap) <= horizon * share * tail_expectation(prior, share) + ROUNDING


@pytest.mark.slow
@settings(max_examples=25)
@given(pair=problems(), horizon=st.integers(1, 4))
@pytest.mark.parametrize("name", POLICIES)
def test_chain_and_reward_bounds(
    name: str, pair: tuple[pw.FinitePrior, pw.FinitePrior], horizon: int
) -> None:
    """2nH eps >= n sum E TV(posteriors) >= sum E TV(actions) >= Pr[part] >= TV(trajectories), and
    the rewards of each.
    """
    prior, other = pair
    n = POLICIES[name].monte_carlo_n(prior.arms)
    check_chain(exact_chain(prior, other, POLICIES[name], horizon), prior, n)


def coupled_by_hand(
    prior: pw.FinitePrior, other: pw.FinitePrior, policy: object, horizon: int
) -> float:
    """Probability that two runs part, following one history after the other; Bernoulli rewards."""

    def agree(tasks: np.ndarray, beliefs: tuple[object, object], step: int) -> float:
        if step > horizon:
            return float(tasks.sum())
        seen, total = Seen(step, horizon, prior.arms), 0.0
        both = np.minimum(*(exact_probs(policy, belief, seen)[0] for belief in beliefs))
        for arm in np.flatnonzero(both):
            for reward, likelihood in (
                (1.0, prior.means[:, arm]),
                (0.0, 1.0 - prior.means[:, arm]),
            ):
                if (tasks * likelihood).any():
                    after = tuple(
                        belief.update(seen, np.array([arm]), np.array([reward]), None)
                        for belief in beliefs
                    )
                    total += both[arm] * agree(tasks * likelihood, after, step + 1)
        return total

    return 1.0 - agree(prior.probs, (prior.belief(1), other.belief(1)), 1)


def test_coupled_runs_part_as_often_as_by_hand() -> None:
    table = [[0.9, 0.1, 0.5], [0.2, 0.8, 0.5], [0.3, 0.3, 0.9]]
    prior, other = (
        pw.FinitePrior(table, probs, "bernoulli") for probs in ([0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    )
    for policy in (pw.ThompsonSampling(), pw.KShotThompson(2), pw.PosteriorSampling(2, "softmax")):
        chain = exact_chain(prior, other, policy, 4)
        assert chain.disagreement == pytest.approx(
            coupled_by_hand(prior, other, policy, 4), abs=1e-12
        )
        assert chain.trajectory_tv < chain.disagreement < chain.action_tv.sum()
        assert chain.trajectory_tv == pytest.approx(
            exact_trajectory_tv(prior, other, policy, 4).value, abs=1e-12
        )


@settings(max_examples=40)
@given(pair=problems(), horizon=st.integers(1, 4))
def test_moving_the_tasks_too_adds_at_most_eps(
    pair: tuple[pw.FinitePrior, pw.FinitePrior], horizon: int
) -> None:
    found = exact_trajectory_tv(*pair, pw.ThompsonSampling(), horizon)
    assert abs(found.own_tasks - found.value) <= pw.total_variation(*pair).value + ROUNDING


def top_two_law(policy: pw.TopTwoThompson, prior: pw.FinitePrior) -> np.ndarray:
    """Law of the action, ``(arm,)``: the best arms of independent draws are independent, of
    Thompson sampling's law b each.

    Given the first, f, all m further draws agree with probability b_f^m; otherwise the first other
    one has law b given not f.
    """
    b = exact_probs(pw.ThompsonSampling(), prior.belief(1), Seen(1, 3, prior.arms))[0]
    m, second = policy.most_draws, np.zeros(prior.arms)
    for f in np.flatnonzero(b):
        others = np.where(np.arange(prior.arms) == f, 0.0, b)
        found = others * (1.0 - b[f] ** m) / others.sum() if others.any() else others
        second += b[f] * (found + (np.arange(prior.arms) == f) * (1.0 - found.sum()))
    law = policy.share * b + (1.0 - policy.share) * second
    np.testing.assert_allclose(
        exact_probs(policy, prior.belief(1), Seen(1, 3, prior.arms))[0], law, atol=1e-14
    )
    return law


TOP_TWO = [pw.TopTwoThompson(share, most) for share in (0.2, 0.5, 1.0) for most in (1, 3, 40)]


@pytest.mark.slow
@settings(max_examples=40)
@given(pair=problems())
@pytest.mark.parametrize("policy", TOP_TWO)
def test_monte_carlo_property_of_top_two(
    policy: pw.TopTwoThompson, pair: tuple[pw.FinitePrior, pw.FinitePrior]
) -> None:
    """The constant before it is rounded up, 1 + (1 - share) most_draws, is one already; the plain
    number of draws is no smaller.
    """
    coupled = 1.0 + (1.0 - policy.share) * policy.most_draws
    assert coupled <= policy.monte_carlo_n(3) <= policy.most_draws + 1
    moved = tv(*(top_two_law(policy, prior) for prior in pair))
    assert moved <= coupled * pw.total_variation(*pair).value + ROUNDING


@pytest.mark.parametrize("policy", TOP_TWO)
def test_a_smaller_constant_fails_for_top_two(policy: pw.TopTwoThompson) -> None:
    """Of a rare second best arm every further draw is a chance: it is played with probability eps
    (share + (1 - share) most).
    """
    eps = 1e-6
    case = two_point_instance(eps)
    moved = tv(*(top_two_law(policy, prior) for prior in (case.prior, case.other)))
    assert moved == pytest.approx(
        eps * (policy.share + (1.0 - policy.share) * policy.most_draws), rel=1e-3
    )
    assert moved > (1.0 - policy.share) * policy.most_draws * eps  # without the 1


@pytest.mark.parametrize("policy", [pw.TopTwoThompson(0.4, 3), pw.TopTwoThompson(0.5, 40)])
def test_top_two_has_that_law(policy: pw.TopTwoThompson, seed: int) -> None:
    """Counts of 40,000 actions, chi-square; false alarms with probability 1e-6. The control is the
    law without a second draw.
    """
    prior = pw.FinitePrior([[1.0, 0.0, 0.5], [0.0, 1.0, 1.0], [0.2, 0.1, 0.9]], [0.7, 0.2, 0.1])
    tasks = 40_000
    actions = policy.act(
        prior.belief(tasks),
        Seen(1, 3, 3),
        Streams(seed, np.arange(tasks, dtype=np.uint64)).at(Purpose.POLICY, 1),
    )
    counts = np.bincount(actions, minlength=3)
    assert chisquare(counts, tasks * top_two_law(policy, prior)).pvalue > 1e-6
    assert chisquare(counts, tasks * top_two_law(pw.TopTwoThompson(1.0), prior)).pvalue < 1e-6


@pytest.mark.slow
@settings(max_examples=40)
@given(pair=problems())
@pytest.mark.parametrize("name", POLICIES)
def test_monte_carlo_property(name: str, pair: tuple[pw.FinitePrior, pw.FinitePrior]) -> None:
    """TV of the action laws <= n TV of the posteriors."""
    seen = Seen(1, 3, pair[0].arms)
    first, second = (exact_probs(POLICIES[name], prior.belief(1), seen) for prior in pair)
    n = POLICIES[name].monte_carlo_n(pair[0].arms)
    assert np.abs(first - second).sum() / 2 <= n * pw.total_variation(*pair).value + ROUNDING


# Lemmas on arbitrary laws

LAW = st.lists(st.integers(0, 6), min_size=3, max_size=3).filter(any)


def normalised(weights: object) -> np.ndarray:
    array = np.asarray(weights, dtype=float)
    return array / array.sum(axis=-1, keepdims=True)


def tv(p: np.ndarray, q: np.ndarray) -> float:
    return float(np.abs(p - q).sum() / 2)


def conditionals(
    law: np.ndarray, kernel: np.ndarray, otherwise: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Marginal of the second variable, and law of the first given it (``otherwise`` where that has
    probability 0).
    """
    joint = law[:, None] * kernel
    marginal = joint.sum(axis=0)
    given_it = np.where(
        marginal > 0, joint / np.where(marginal > 0, marginal, 1.0), otherwise[:, None]
    )
    return marginal, given_it.T


def deconditioned(q: np.ndarray, other: np.ndarray, kernel: np.ndarray) -> float:
    """E_{X ~ Q} TV(Q(Y | X), Q'(Y | X)), where Q'(Y | X) = Q'(Y) if X is impossible under Q'."""
    marginal, first = conditionals(q, kernel, q)
    _, second = conditionals(other, kernel, other)
    return float(sum(m * tv(a, b) for m, a, b in zip(marginal, first, second, strict=True)))


def decoupled(q: np.ndarray, other: np.ndarray, kernel: np.ndarray, k: int) -> float:
    """TV of X_0, ..., X_k, which given Y are k + 1 independent draws from the law of X_0 given
    Y.
    """
    laws = []
    for law in (q, other):
        marginal, given_y = conditionals(law, kernel, law)
        joint = np.zeros((len(law),) * (k + 1))
        for m, row in zip(marginal, given_y, strict=True):
            cell = np.array(m)
            for _ in range(k + 1):
                cell = np.multiply.outer(cell, row)
            joint += cell
        laws.append(joint)
    return tv(*laws)


@settings(max_examples=200)
@given(LAW, LAW, st.lists(LAW, min_size=3, max_size=3), st.sampled_from([1, 10, 1000]))
def test_deconditioning_lemma(
    first: list[int], second: list[int], kernel: list[list[int]], scale: int
) -> None:
    q = normalised(first)
    other = normalised((scale - 1) * q + normalised(second))
    for a, b in ((q, other), (other, q)):
        assert deconditioned(a, b, normalised(kernel)) <= 2 * tv(a, b) + ROUNDING


@settings(max_examples=200)
@given(
    LAW,
    LAW,
    st.lists(LAW, min_size=3, max_size=3),
    st.sampled_from([1, 10, 1000]),
    st.integers(1, 4),
)
def test_decoupling_lemma(
    first: list[int], second: list[int], kernel: list[list[int]], scale: int, k: int
) -> None:
    """TV(X_0:k) <= (2k + 3) TV(X_0)."""
    q = normalised(first)
    other = normalised((scale - 1) * q + normalised(second))
    assert decoupled(q, other, normalised(kernel), k) <= (2 * k + 3) * tv(q, other) + ROUNDING


# Constants that are too small


@pytest.mark.parametrize("eps", [0.3, 0.1, 1e-3])
def test_factor_one_in_deconditioning_fails(eps: float) -> None:
    """Q = (eps, 1 - eps, 0), Q' = (0, 1 - eps, eps), X reveals the first point: eps (2 - eps), and
    2 is the right factor.
    """
    q, other = np.array([eps, 1 - eps, 0.0]), np.array([0.0, 1 - eps, eps])
    reveal = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    found = deconditioned(q, other, reveal)
    assert found == pytest.approx(eps * (2 - eps), abs=1e-15)
    assert found > 1.5 * tv(q, other)
    # the same as a bandit: the only arm reveals the first task, and the held prior deems that
    # impossible
    means = [[1.0], [0.0], [0.0]]
    priors = [
        pw.FinitePrior(np.hstack([means, [[0.0], [0.5], [0.9]]]), probs) for probs in (q, other)
    ]
    first = Seen(1, 2, 2)
    chain = sum(
        p
        * tv(
            *(
                prior.belief(1).update(first, np.array([0]), np.array([r]), None).probabilities()[0]
                for prior in priors
            )
        )
        for r, p in ((1.0, eps), (0.0, 1 - eps))
    )
    assert chain == pytest.approx(eps * (2 - eps), abs=1e-15)


@pytest.mark.parametrize(("k", "horizon"), [(1, 5), (2, 4), (3, 3)])
def test_quarter_of_the_trajectory_constant_fails(k: int, horizon: int) -> None:
    case = two_point_instance(0.1 / (k * horizon))
    chain = exact_chain(case.prior, case.other, pw.KShotThompson(k), horizon)
    assert chain.trajectory_tv > chain.links(k)[0] / 4
    assert chain.trajectory_tv <= chain.links(k)[0]


def test_eighth_of_the_reward_constant_fails() -> None:
    eps, horizon = 1e-3, 4
    case = noiseless_instance(24, eps, 0.01)
    chain = exact_chain(case.prior, case.other, pw.ThompsonSampling(), horizon)
    assert chain.prior_tv == pytest.approx(eps)
    assert chain.gap > 2 * horizon**2 * eps / 8
    assert chain.gap <= 2 * horizon**2 * eps
    # nearly a quarter, with more arms
    assert exact_gap(3, 40, 4000, 1e-4, 1e-3) > 2 * 3 * 40**2 * 1e-4 * 0.23


def test_fewer_draws_than_there_are_fail() -> None:
    """k-shot Thompson sampling is not (k - 1)-Monte-Carlo: 1 - (1 - eps)^k."""
    case, seen = two_point_instance(0.01), Seen(1, 3, 2)
    for k in (2, 3, 5):
        first, second = (
            exact_probs(pw.KShotThompson(k), p.belief(1), seen) for p in (case.prior, case.other)
        )
        assert tv(first, second) == pytest.approx(1 - 0.99**k)
        assert tv(first, second) > (k - 1) * case.eps


def test_looking_whether_the_posterior_has_collapsed_is_not_monte_carlo() -> None:
    """Playing the best arm of a collapsed posterior, and ties at random otherwise, moves by much
    more than n eps.
    """
    policy = pw.KnowledgeGradient(1, 1, ties="random", when_certain="best")
    constant = pw.KnowledgeGradient(1, 1, ties="random").monte_carlo_n(3)
    means, eps, seen = [[1.0, 0.0, 0.0], [1.0, 0.1, 0.0]], 1e-3, Seen(1, 3, 3)
    priors = [pw.FinitePrior(means, [1 - p, p]) for p in (0.0, eps)]
    moved = tv(*(exact_probs(policy, prior.belief(1), seen) for prior in priors))
    assert moved > 0.6
    assert moved > 10 * constant * eps


@pytest.mark.parametrize("k", [1, 2, 4])
def test_half_of_the_decoupling_constant_fails(k: int) -> None:
    """Mass eps moves between two rare points that Y tells from the common one: every look-ahead
    draw may show the move, twice.
    """
    eps, rare, shown = 1e-4, 0.05, 0.05
    q, other = np.array([1 - rare, rare, 0.0]), np.array([1 - rare, rare - eps, eps])
    found = decoupled(q, other, np.array([[0.0, 1.0], [shown, 1 - shown], [1.0, 0.0]]), k)
    assert (2 * k + 3) / 2 * eps < found <= (2 * k + 3) * eps


@pytest.mark.parametrize("k", [1, 3])
def test_decoupling_by_hand(k: int) -> None:
    """With Y that says nothing there are k + 1 independent draws: 1 - (1 - eps)^(k + 1)."""
    eps = 1e-3
    found = decoupled(np.array([1.0, 0.0]), np.array([1 - eps, eps]), np.ones((2, 1)), k)
    assert found == pytest.approx(1 - (1 - eps) ** (k + 1), abs=1e-12)
