"""The knowledge gradient of the best number of pulls: its look-ahead against enumeration and
quadrature, its value against the Bayes-optimal one and what playing it earns.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from raising import raises
from scipy import integrate, stats

import priorwise as pw
from priorwise.core.lookahead import ALL_PULLS, numbers_of_pulls
from priorwise.core.protocols import Seen
from priorwise.testing.twins import same_run, some_arms

BEST = pw.ExactKnowledgeGradient("online", pulls="best")
MASK = np.array([[True, False, True]])


def finite(rng: np.random.Generator, points: int = 3, arms: int = 3) -> pw.FinitePrior:
    weights = rng.dirichlet(np.ones(points))
    return pw.FinitePrior(rng.uniform(size=(points, arms)), weights, noise="bernoulli")


def enumerated(belief: Any, seen: Seen, arm: int, pulls: int) -> float:
    """Average the best mean over all sequences of rewards, one update per pull."""
    total = 0.0
    for rewards in product((0.0, 1.0), repeat=pulls):
        then, chance = belief, 1.0
        for reward in rewards:
            rate = then.mean(seen)[0, arm]
            chance *= rate if reward else 1.0 - rate
            then = then.update(seen, np.array([arm]), np.array([reward]), None)
        total += chance * seen.masked(then.mean(seen)).max()
    return float(total)


@pytest.mark.parametrize("mask", [None, MASK])
@pytest.mark.parametrize("name", ["beta", "finite"])
def test_bernoulli_look_ahead_is_that_of_all_sequences(name: str, mask: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    prior: Any = pw.BetaPrior(rng.uniform(0.2, 3.0, 3), rng.uniform(0.2, 5.0, 3))
    prior = prior if name == "beta" else finite(rng)
    belief, seen = prior.belief(1), Seen(1, 20, 3, None, mask)
    for pulls in (1, 2, 5):
        found = belief.best_after_pulls(seen, pulls)[0]
        for arm in (0, 1, 2):
            if mask is not None and not mask[0, arm]:
                assert found[arm] == -np.inf
            else:
                assert found[arm] == pytest.approx(enumerated(belief, seen, arm, pulls), rel=1e-9)


def test_beta_look_ahead_over_many_pulls(seed: int) -> None:
    """Against a sum over SciPy's beta-binomial law; rates from 0.2 to 95 percent."""
    rng = np.random.default_rng(seed)
    for _ in range(60):
        worth, rate = 10.0 ** rng.uniform(-1, 3), rng.choice([0.002, 0.01, 0.1, 0.5, 0.95])
        a, b, pulls = worth * rate, worth * (1.0 - rate), int(10.0 ** rng.uniform(0, 3.3))
        std = np.sqrt(rate * (1.0 - rate) / (worth + 1.0))
        c = float(np.clip(rate + rng.normal() * std, 1e-4, 1.0 - 1e-4))
        prior = pw.BetaPrior([a, 1e9 * c], [b, 1e9 * (1.0 - c)])
        found = prior.belief(1).best_after_pulls(Seen(1, 10, 2), pulls)[0, 0]
        s = np.arange(pulls + 1)
        after = np.maximum(c, (a + s) / (a + b + pulls))
        expected = stats.betabinom.pmf(s, pulls, a, b) @ after
        assert found == pytest.approx(expected, abs=1e-8 * std)


@pytest.mark.parametrize("pulls", [1, 3, 50])
def test_normal_look_ahead_is_the_integral(pulls: int, seed: int) -> None:
    """Over the mean of the rewards, by adaptive quadrature; correlated arms, and linear ones with
    features that never change, are the same problem.
    """
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(3, 4))
    mean, cov, noise = rng.normal(size=3), root @ root.T / 4.0, np.array([1.0, 0.5, 2.0])
    belief, seen = pw.GaussianPrior(mean, cov, noise).belief(1), Seen(1, 100, 3)
    found = belief.best_after_pulls(seen, pulls)[0]
    contexts = pw.GivenContexts(np.eye(3))
    linear = pw.LinearGaussianPrior(mean, cov, noise, contexts=contexts).belief(1)
    shown = Seen(1, 100, 3, np.eye(3)[None])
    np.testing.assert_allclose(linear.best_after_pulls(shown, pulls)[0], found, rtol=1e-9)
    for arm in range(3):
        std = np.sqrt(cov[arm, arm] + noise[arm] / pulls)

        def best(z: float, arm: int = arm, std: float = std) -> float:
            return float(np.max(mean + cov[:, arm] / std * z) * stats.norm.pdf(z))

        expected = integrate.quad(best, -9.0, 9.0, limit=400, epsabs=1e-11)[0]
        assert found[arm] == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("pulls", [1, 4, 60])
def test_normal_gamma_look_ahead_is_the_integral(pulls: int) -> None:
    """The mean of the rewards is Student's with 2a degrees of freedom."""
    m, k, a, b = np.array([0.2, 0.0]), 1.5, 2.5, 1.2
    belief = pw.NormalGammaPrior(m, [k, k], [a, a], [b, b]).belief(1)
    found = belief.best_after_pulls(Seen(1, 100, 2), pulls)[0]
    scale = np.sqrt(b / a * (1.0 / k + 1.0 / pulls))
    for arm, other in ((0, 1), (1, 0)):

        def best(t: float, arm: int = arm, other: int = other) -> float:
            after = m[arm] + pulls / (k + pulls) * scale * t
            return float(max(m[other], after) * stats.t.pdf(t, 2.0 * a))

        kink = (m[other] - m[arm]) / (scale * pulls / (k + pulls))
        parts = [integrate.quad(best, *ends)[0] for ends in ((-np.inf, kink), (kink, np.inf))]
        assert found[arm] == pytest.approx(sum(parts), abs=1e-7)


def test_finite_look_ahead_with_other_rewards(seed: int) -> None:
    """Noiseless rewards repeat themselves; several normal ones have a mean with less noise."""
    means = np.random.default_rng(seed).normal(size=(4, 3))
    seen, probs = Seen(1, 100, 3), np.full(4, 0.25)
    still = pw.FinitePrior(means, probs).belief(1)
    one, many = (still.best_after_pulls(seen, pulls) for pulls in (1, 7))
    np.testing.assert_array_equal(one, many)
    noisy, clear = (
        pw.FinitePrior(means, probs, noise="gaussian", noise_var=v).belief(1) for v in (4.0, 1.0)
    )
    np.testing.assert_allclose(noisy.best_after_pulls(seen, 4), clear.best_after(seen), rtol=1e-12)


@pytest.mark.parametrize("rate", [0.02, 0.5])
@pytest.mark.parametrize("pulls", [1, 3])
def test_logit_normal_look_ahead_is_close(rate: float, pulls: int) -> None:
    """What the pulls gain is within 25 percent of that of all sequences, or 1 percent of the
    spread; without the correlation between arms it is not.
    """
    logit = np.log(rate / (1.0 - rate))
    cov = 0.36 * (0.2 * np.eye(2) + 0.8)
    seen = Seen(1, 100, 2)
    far = 0
    for apart in (0.0, 0.3):
        belief = pw.LogitNormalPrior([logit, logit - apart], cov).belief(1)
        alone = pw.LogitNormalPrior([logit, logit - apart], 0.36 * np.eye(2)).belief(1)
        top, spread = belief.mean(seen).max(), np.sqrt(belief.variance().max())
        for arm in (0, 1):
            true = enumerated(belief, seen, arm, pulls) - top
            found, independent = (
                each.best_after_pulls(seen, pulls)[0, arm] - top for each in (belief, alone)
            )
            room = max(0.25 * true, 0.01 * spread)
            assert abs(found - true) < room
            far += abs(independent - true) > room
    assert far > 0


@pytest.mark.parametrize(
    "prior",
    [
        pw.BetaPrior([1.0, 2.0, 0.5], [9.0, 12.0, 9.0]),
        pw.GaussianPrior([0.0, 0.1, 0.3], 0.5 * np.eye(3) + 0.5),
        pw.NormalGammaPrior([0.0, 0.1, 0.3], [1.0, 1.0, 1.0], 2.0, 1.0),
    ],
    ids=["beta", "gaussian", "normal-gamma"],
)
def test_one_pull_is_the_online_rule_and_all_commit(prior: Any) -> None:
    belief, seen = prior.belief(1), Seen(3, 12, 3)
    np.testing.assert_allclose(
        belief.best_after_pulls(seen, 1), belief.best_after(seen), rtol=1e-12
    )
    plan, mean = BEST.plan(belief, seen), belief.mean(seen)
    tried = {m: m * mean + (10 - m) * belief.best_after_pulls(seen, m) for m in range(1, 10)}
    tried[10] = 10 * mean
    np.testing.assert_allclose(plan.value, np.max(list(tried.values()), axis=0), rtol=1e-12)
    for arm in range(3):
        assert tried[int(plan.pulls[0, arm])][0, arm] == pytest.approx(plan.value[0, arm])
    last = Seen(12, 12, 3)
    assert BEST.scores(belief, last).argmax() == belief.mean(last).argmax()
    # with two pulls left, one of them teaches and the other earns
    two = Seen(11, 12, 3)
    np.testing.assert_array_equal(
        np.isfinite(BEST.scores(belief, two)),
        np.isfinite(pw.ExactKnowledgeGradient().scores(belief, two)),
    )


@pytest.mark.parametrize("number", range(6))
def test_value_lies_between_what_it_earns_and_the_optimum(number: int, seed: int) -> None:
    """Exactly: max V <= what playing earns <= Bayes-optimal value."""
    prior, horizon = finite(np.random.default_rng(seed + number)), 6
    promised = float(BEST.plan(prior.belief(1), Seen(1, horizon, 3)).value.max())
    earned = pw.sensitivity.exact_rewards(prior, BEST, horizon).mean_reward
    optimum = pw.sensitivity.bayes_optimal(prior, horizon).value
    assert promised <= earned + 1e-9
    assert earned <= optimum + 1e-9
    assert promised >= horizon * prior.belief(1).mean(Seen(1, horizon, 3)).max() - 1e-9


def test_a_value_that_counts_pulls_twice_exceeds_the_optimum() -> None:
    """The control: pulls that teach are counted as if they earned the best mean as well."""
    prior = pw.FinitePrior([[0.9, 0.1], [0.1, 0.9]], [0.5, 0.5], noise="bernoulli")
    belief, seen, horizon = prior.belief(1), Seen(1, 4, 2), 4
    optimum = pw.sensitivity.bayes_optimal(prior, horizon).value
    boast = max(horizon * belief.best_after_pulls(seen, m).max() for m in range(1, horizon))
    assert BEST.plan(belief, seen).value.max() < optimum + 1e-9 < boast


def test_playing_earns_what_it_promises_on_rare_events(seed: int) -> None:
    """By simulation, within 4 standard errors (3e-5), also in batches; the control, any arm, does
    not.
    """
    prior, horizon = pw.ExchangeableBetaPrior(1.0, 30.0).for_arms(4), 100
    belief = prior.belief(1)
    promised = float(BEST.plan(belief, Seen(1, horizon, 4)).value.max())
    options: Any = {"horizon": horizon, "tasks": 1_500, "seed": seed, "batch": 20}
    result = pw.compare(prior, {"best": BEST, "uniform": pw.Uniform()}, **options)
    best, other = result.runs["best"], result.runs["uniform"]
    assert best.mean_reward > promised - 4.0 * best.std_error
    assert other.mean_reward < promised - 4.0 * other.std_error


def test_numbers_of_pulls_that_are_tried_miss_little(seed: int) -> None:
    """All of a few; of many a grid, which loses at most 0.2 percent of the value."""
    assert numbers_of_pulls(1) == [1]
    assert numbers_of_pulls(ALL_PULLS) == list(range(1, ALL_PULLS + 1))
    assert numbers_of_pulls(3000)[-1] == 3000
    assert len(numbers_of_pulls(3000)) < 65
    rng = np.random.default_rng(seed)
    left = 200
    prior = pw.BetaPrior(rng.uniform(0.5, 5.0, 4), rng.uniform(50.0, 100.0, 4))
    belief, seen = prior.belief(1), Seen(1, left, 4)
    found = BEST.plan(belief, seen).value.max()
    every = max(
        (m * belief.mean(seen) + (left - m) * belief.best_after_pulls(seen, m)).max()
        for m in range(1, left)
    )
    assert found <= every + 1e-9
    assert found >= 0.998 * every


COMPILED: dict[str, tuple[Any, Any]] = {
    "gaussian": (
        pw.GaussianPrior([0.1, 0.0, -0.2], 0.4 * np.eye(3) + 0.6, [4.0, 9.0, 1.0]),
        pw.GaussianPrior(np.zeros(3), np.eye(3), 2.0),
    ),
    "beta": (
        pw.BetaPrior([0.3, 2.0, 9.0], [0.4, 3.0, 9.0]),
        pw.BetaPrior([1.0, 0.1, 30.0], [1.0, 2.0, 30.0]),
    ),
    "logit-normal": (
        pw.LogitNormalPrior([-1.0, -2.0, 0.5], 0.5 * np.eye(3) + 0.5),
        pw.ExchangeableLogitNormalPrior(-3.0, 0.4, 0.9).for_arms(3),
    ),
}


@pytest.mark.parametrize("masked", [False, True], ids=["all arms", "some arms"])
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_plans_are_those_of_numpy(name: str, masked: bool, seed: int) -> None:
    """Action for action, pull by pull and in batches, with a right and a wrong prior."""
    prior, wrong = COMPILED[name]
    options: Any = {"available": some_arms(70, 3, seed) if masked else None, "tasks": 70}
    for believed, horizon, batch in ((prior, 6, 1), (wrong, 120, 40)):
        options |= {"believed": believed, "horizon": horizon, "batch": batch, "seed": seed}
        same_run(
            *(
                pw.simulate(prior, BEST, keep=True, engine=engine, **options)
                for engine in ("compiled", "numpy")
            )
        )


def test_compiled_plans_of_shares_of_a_success_and_of_certain_arms(seed: int) -> None:
    """A Beta belief about tasks without noise has no whole counts; a logit-normal one without
    variance moves by nothing.
    """
    prior = pw.FinitePrior([[0.3, 0.7, 0.123], [0.6, 0.05, 0.456]], [0.5, 0.5])
    known = pw.LogitNormalPrior([-1.0, 0.0, -0.5], np.diag([0.0, 0.0, 0.3]))
    for believed in (pw.BetaPrior([1.0, 1.0, 0.5], 1.0), known):
        same_run(
            *(
                pw.simulate(
                    prior, BEST, believed=believed, horizon=8, tasks=70, seed=seed, keep=True,
                    engine=engine,
                )
                for engine in ("compiled", "numpy")
            )
        )  # fmt: skip


def test_refusals(seed: int) -> None:
    with pytest.raises(ValueError, match=r"alpha must be 'online' with pulls='best'"):
        pw.ExactKnowledgeGradient(0.5, pulls="best")
    for wrong in (2, "all", True, None):
        with pytest.raises(ValueError, match="pulls must be one of 1, best"):
            pw.ExactKnowledgeGradient(pulls=wrong)  # type: ignore[arg-type]
    with raises("pulls", "a number of pulls"):
        pw.ExactKnowledgeGradient().plan(None, Seen(1, 2, 3))
    moving = pw.LinearGaussianPrior(np.zeros(2), np.eye(2), contexts=pw.SphereContexts(arms=3))
    with raises("contexts", "never change"):
        pw.simulate(moving, BEST, horizon=3, tasks=2, seed=seed)
    parts = [pw.BetaPrior([1, 1], [1, 1]), pw.BetaPrior([2, 1], [1, 1])]
    mixture = pw.MixturePrior(parts, [0.5, 0.5])
    with raises("policy", "best_after_pulls"):
        pw.simulate(mixture, BEST, horizon=3, tasks=2, seed=seed)
