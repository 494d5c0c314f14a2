"""A task's state is its statistics: beliefs given them, one pull more, two parts of one task."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from raising import raises
from registry import FEATURES, PRIORS
from scipy.special import betaln

import priorwise as pw
from priorwise.core.protocols import Seen
from priorwise.core.streams import Purpose, Streams
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.beta.statistics import MOST_PULLS
from priorwise.families.mixture.statistics import MixtureStatistics
from priorwise.families.registry import statistics_of, unseen
from priorwise.fitting.statistics import PerTask

MIXTURES = {
    "mixture": pw.MixturePrior(
        [PRIORS["gaussian"][0], pw.GaussianPrior([1.0, 2.0, 3.0], np.eye(3))], [0.3, 0.7]
    ),
    "mixture-linear": pw.MixturePrior(
        [
            PRIORS["linear-pool"][0],
            pw.LinearGaussianPrior([0.0, 0.0], np.eye(2), [1.0, 0.5, 2.0], contexts=FEATURES),
        ],
        [0.5, 0.5],
    ),
    "mixture-of-families": pw.MixturePrior(
        [pw.BetaPrior([1.0, 2.0, 3.0], 2.0), PRIORS["finite-bernoulli"][0]], [0.4, 0.6]
    ),
}
ALL: dict[str, Any] = {name: prior for name, (prior, _) in PRIORS.items()} | MIXTURES
TASKS, MOST = 9, 6


@dataclass(frozen=True)
class Played:
    """Pulls of tasks that stop at different times: -1 where a task pulls no more."""

    actions: IntArray  # (step, task)
    rewards: FloatArray  # (step, task)
    signals: list[Any]

    def statistics(self, prior: Any, steps: slice = slice(None)) -> Any:
        state = unseen(prior, TASKS, "a test")
        for actions, rewards, signal in zip(
            self.actions[steps], self.rewards[steps], self.signals[steps], strict=True
        ):
            state = state.observe(actions, rewards, signal)
        return state


def play(prior: Any, seed: int) -> Played:
    """Task t makes t pulls, at most ``MOST``, of any arms."""
    generator = np.random.default_rng(seed)
    streams = Streams(seed, np.arange(TASKS, dtype=np.uint64))
    environment = prior.sample(streams.at(Purpose.ENVIRONMENT, 0), TASKS)
    actions = generator.integers(prior.arms, size=(MOST, TASKS))
    rewards, signals = np.empty((MOST, TASKS)), []
    signal = environment.start(streams.world(0))
    for step in range(MOST):
        seen = Seen(step + 1, MOST + 1, prior.arms, signal)
        rewards[step], after = environment.step(seen, actions[step], streams.world(step + 1))
        signals.append(signal)
        signal = after
    over = np.arange(MOST)[:, None] >= np.minimum(np.arange(TASKS), MOST)
    return Played(np.where(over, -1, actions), np.where(over, np.nan, rewards), signals)


def row(signal: Any, task: int) -> Any:
    return None if signal is None else signal[task : task + 1]


def one_by_one(prior: Any, played: Played, task: int) -> Any:
    """Belief of one task, by one update per pull."""
    belief = prior.belief(1)
    for step in range(MOST):
        if (action := played.actions[step, task]) >= 0:
            signal = row(played.signals[step], task)
            seen = Seen(step + 1, MOST + 1, prior.arms, signal)
            belief = belief.update(
                seen, np.array([action]), played.rewards[step, task : task + 1], signal
            )
    return belief


def summary(belief: Any, seen: Seen) -> list[FloatArray]:
    """Posterior means, and covariances or probabilities where there are any."""
    out = [belief.mean(seen)]
    laws = (getattr(belief, name, None) for name in ("covariance", "probabilities"))
    out += [law() for law in laws if law is not None]
    if hasattr(belief, "a"):
        out += [belief.a, belief.b]
    return out


@pytest.mark.parametrize("name", ALL)
def test_belief_given_statistics_is_that_of_one_update_per_pull(name: str, seed: int) -> None:
    prior = ALL[name]
    played = play(prior, seed)
    belief = prior.belief_given(played.statistics(prior))
    seen = Seen(1, MOST, prior.arms, played.signals[0])
    together = summary(belief, seen)
    for task in range(TASKS):
        alone = Seen(1, MOST, prior.arms, row(played.signals[0], task))
        for mine, theirs in zip(
            together, summary(one_by_one(prior, played, task), alone), strict=True
        ):
            np.testing.assert_allclose(mine[task], theirs[0], rtol=1e-9, atol=1e-11)
    # control: one pull less is another belief
    less = summary(prior.belief_given(played.statistics(prior, slice(1, None))), seen)
    assert np.abs(less[0] - together[0]).max() > 1e-6


@pytest.mark.parametrize("name", ["gaussian", "gaussian-singular", "gaussian-noise-per-arm"])
def test_normal_posterior_by_conditioning_on_all_rewards_at_once(name: str, seed: int) -> None:
    prior = ALL[name]
    played = play(prior, seed)
    belief = prior.belief_given(played.statistics(prior))
    for task in range(TASKS):
        arms = played.actions[played.actions[:, task] >= 0, task]
        r = played.rewards[played.actions[:, task] >= 0, task]
        z = np.eye(prior.arms)[arms]
        gain = prior.cov @ z.T @ np.linalg.inv(z @ prior.cov @ z.T + np.diag(prior.noise_var[arms]))
        mean = prior.mean + gain @ (r - z @ prior.mean)
        np.testing.assert_allclose(belief.m[task], mean, atol=1e-10)
        np.testing.assert_allclose(
            belief.covariance()[task], prior.cov - gain @ z @ prior.cov, atol=1e-10
        )


@pytest.mark.parametrize("name", ["linear-sphere", "linear-pool", "linear-singular"])
def test_linear_posterior_by_conditioning_on_all_rewards_at_once(name: str, seed: int) -> None:
    prior = ALL[name]
    played = play(prior, seed)
    belief = prior.belief_given(played.statistics(prior))
    for task in range(TASKS):
        steps = np.flatnonzero(played.actions[:, task] >= 0)
        arms, r = played.actions[steps, task], played.rewards[steps, task]
        x = np.array([played.signals[s][task, a] for s, a in zip(steps, arms, strict=True)])
        x = x.reshape(len(steps), prior.dim)
        gain = prior.cov @ x.T @ np.linalg.inv(x @ prior.cov @ x.T + np.diag(prior.noise_var[arms]))
        np.testing.assert_allclose(
            belief.m[task], prior.mean + gain @ (r - x @ prior.mean), atol=1e-10
        )


def test_beta_posterior_by_quadrature(seed: int) -> None:
    prior = ALL["beta"]
    played = play(prior, seed)
    belief = prior.belief_given(played.statistics(prior))
    mu = (np.arange(200_000) + 0.5) / 200_000
    for task in range(TASKS):
        for arm in range(prior.arms):
            r = played.rewards[played.actions[:, task] == arm, task]
            a, b = prior.alpha[arm] - 1.0, prior.beta[arm] - 1.0
            weight = np.exp(
                (a + r.sum()) * np.log(mu)
                + (b + (1 - r).sum()) * np.log1p(-mu)
                - betaln(a + 1, b + 1)
            )
            mean = (weight * mu).sum() / weight.sum()
            assert belief.mean(Seen(1, 1, 3))[task, arm] == pytest.approx(mean, abs=1e-4)


def test_finite_posterior_by_enumeration(seed: int) -> None:
    prior = ALL["finite-bernoulli"]
    played = play(prior, seed)
    belief = prior.belief_given(played.statistics(prior))
    for task in range(TASKS):
        weights = prior.probs.copy()
        for action, reward in zip(played.actions[:, task], played.rewards[:, task], strict=True):
            if action >= 0:
                mean = prior.means[:, action]
                weights = weights * (mean if reward == 1.0 else 1.0 - mean)
        np.testing.assert_allclose(
            belief.probabilities()[task], weights / weights.sum(), atol=1e-12
        )


def test_a_task_that_the_prior_excludes_starts_again() -> None:
    prior = pw.FinitePrior([[1.0, 0.0], [0.0, 1.0]], [0.25, 0.75])
    belief = prior.belief_given(
        pw.FiniteStatistics.from_trajectory([[0], [0]], [[7.0], [1.0]], prior)
    )
    np.testing.assert_allclose(belief.probabilities(), [[0.25, 0.75], [1.0, 0.0]])
    assert belief.resets.tolist() == [1, 0]


def test_likelihoods_of_other_candidates_are_refused() -> None:
    prior = pw.FinitePrior([[0.9, 0.1], [0.2, 0.6]], [0.7, 0.3])
    state = pw.FiniteStatistics.from_trajectory([[0]], [[0.9]], prior)
    for other in (
        prior.replaced(means=[[0.5, 0.1], [0.2, 0.6]]),
        prior.replaced(noise="bernoulli"),
    ):
        for use in (
            lambda: other.belief_given(state),  # noqa: B023 - called at once
            lambda: pw.meta.log_marginal_likelihood(other, state),  # noqa: B023
            lambda: pw.FiniteMarginalLikelihood(other).fit(state),  # noqa: B023
        ):
            with raises("statistics", "candidates"):
                use()
    sure = prior.replaced(probs=[0.5, 0.5]).belief_given(state)  # the same ones
    np.testing.assert_array_equal(sure.probabilities(), [[1.0, 0.0]])
    for make in (
        lambda: pw.FiniteStatistics.empty(2),
        lambda: pw.FiniteStatistics([[0.0, 0.0]], candidates="x"),  # type: ignore[arg-type]
    ):
        with raises("candidates", "must be"):
            make()


def test_statistics_of_a_mixture_refuse_what_does_not_fit() -> None:
    one = pw.GaussianStatistics([[1, 0], [2, 1]], [[0.5, 0.0], [1.0, 1.0]])
    both = MixtureStatistics((one, one))
    prior = pw.GaussianPrior([0.0, 1.0], np.eye(2))
    mixture = pw.MixturePrior([prior, prior, prior], [0.5, 0.25, 0.25])
    wrong: list[tuple[Any, Any]] = [
        (lambda: MixtureStatistics(()), ("parts", "must be a list")),
        (lambda: MixtureStatistics("ab"), ("parts", "must be a list")),  # type: ignore[arg-type]
        (lambda: MixtureStatistics((one, one.take([0]))), ("parts", "the same tasks")),
        (lambda: both.merged(one), ("other", "must be MixtureStatistics")),
        (lambda: both.merged(MixtureStatistics((one,))), "statistics"),
        (lambda: both + MixtureStatistics((one,)), "statistics"),
        (lambda: mixture.belief_given(both), ("statistics", "must have parts for 3 components")),
    ]
    for call, words in wrong:
        with raises(words):
            call()
    with pytest.raises(IndexError, match="leaves none of the 2 tasks"):
        one.take([])


@pytest.mark.parametrize("name", ["exchangeable-gaussian", "exchangeable-beta"])
def test_exchangeable_priors_take_the_arms_of_the_statistics(name: str, seed: int) -> None:
    free = {
        "exchangeable-gaussian": pw.ExchangeableGaussianPrior(0.1, 1.0, 0.9, 0.5),
        "exchangeable-beta": pw.ExchangeableBetaPrior(0.8, 1.6),
    }[name]
    prior: Any = free.for_arms(3)
    state = play(prior, seed).statistics(prior)
    seen = Seen(1, 1, 3)
    np.testing.assert_array_equal(
        free.belief_given(state).mean(seen), prior.belief_given(state).mean(seen)
    )


@pytest.mark.parametrize("free", [pw.ExchangeableGaussianPrior(0.1, 1.0, 0.9, 0.5),
                                  pw.ExchangeableBetaPrior(0.8, 1.6)])  # fmt: skip
def test_exchangeable_priors_refuse_what_does_not_tell_the_arms(free: Any, seed: int) -> None:
    run = pw.simulate(free.for_arms(3), pw.Uniform(), horizon=2, tasks=2, seed=seed, keep=True)
    for condition in (lambda: free.belief_given(run), lambda: run.belief(free)):
        with raises("data", "how many arms its tasks have"):
            condition()
    with raises("statistics", "must be"):
        free.belief_given(None)


def exact_posterior(prior: Any, arms: IntArray, rewards: FloatArray) -> tuple[Any, Any]:
    """Posterior mean and covariance in rational arithmetic."""
    m = [Fraction(each) for each in prior.mean.tolist()]
    root = [[Fraction(each) for each in row] for row in prior._root.tolist()]
    cov = [[sum(a * b for a, b in zip(i, j, strict=True)) for j in root] for i in root]
    for a, r in zip(arms.tolist(), rewards.tolist(), strict=True):
        column = [row[a] for row in cov]
        total = column[a] + Fraction(float(prior.noise_var[a]))
        residual = Fraction(r) - m[a]
        m = [each + c / total * residual for each, c in zip(m, column, strict=True)]
        cov = [
            [each - c * d / total for each, d in zip(row, column, strict=True)]
            for row, c in zip(cov, column, strict=True)
        ]
    return np.array(m, dtype=np.float64), np.array(cov, dtype=np.float64)


@pytest.mark.parametrize(("scale", "noise"), [(1.0, 1e-12), (1e12, 1.0)])
def test_a_belief_given_statistics_is_as_exact_where_noise_is_small(
    scale: float, noise: float, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    arms = np.array([3, 1, 3])  # of the others something is learned, not all
    for _ in range(5):
        factor = generator.normal(size=(4, 4))
        prior = pw.GaussianPrior(generator.normal(size=4), scale * factor @ factor.T, noise)
        rewards = np.sqrt(scale) * (factor @ generator.normal(size=4))[arms]
        mean, cov = exact_posterior(prior, arms, rewards)
        belief = prior.belief_given(
            pw.GaussianStatistics.from_trajectory(arms[None], rewards[None], arms=4)
        )
        np.testing.assert_allclose(belief.m[0], mean, atol=1e-7 * np.abs(mean).max())
        np.testing.assert_allclose(belief.covariance()[0], cov, atol=1e-10 * scale)


@pytest.mark.parametrize("name", ALL)
def test_a_step_at_which_no_task_pulls_changes_nothing(name: str, seed: int) -> None:
    prior = ALL[name]
    played = play(prior, seed)
    state = played.statistics(prior)
    nothing = np.full(TASKS, np.nan)
    assert state.observe(np.full(TASKS, -1), nothing, played.signals[0]) == state


def close(one: PerTask, other: PerTask) -> None:
    theirs = vars(other)
    for name, mine in vars(one).items():
        if isinstance(mine, tuple) and mine and isinstance(mine[0], PerTask):
            for a, b in zip(mine, theirs[name], strict=True):
                close(a, b)
        elif isinstance(mine, np.ndarray):
            np.testing.assert_allclose(mine, theirs[name], rtol=1e-12, atol=1e-12)
        else:
            assert mine == theirs[name]


@pytest.mark.parametrize("name", ALL)
def test_parts_of_one_task_merge(name: str, seed: int) -> None:
    prior = ALL[name]
    played = play(prior, seed)
    whole = played.statistics(prior)
    parts = [
        played.statistics(prior, steps) for steps in (slice(0, 2), slice(2, 3), slice(3, None))
    ]
    close(parts[0].merged(parts[1]).merged(parts[2]), whole)
    close(parts[2].merged(parts[0]).merged(parts[1]), whole)  # in any order
    close(parts[0].take([3, 1]).merged(parts[1].take([3, 1])).merged(parts[2].take([3, 1])),
          whole.take([3, 1]))  # fmt: skip
    assert (whole + whole).tasks == 2 * TASKS
    assert pw.core.Serializable.load(whole.to_json()) == whole
    with raises("other", "9 tasks"):
        whole.merged(whole.take([0, 1]))
    with raises("other", "of the same tasks"):
        whole.merged(3)


@pytest.mark.parametrize(
    "name", ["gaussian", "beta", "finite-gaussian", "linear-sphere", "linear-pool"]
)
def test_observing_is_reading_pull_by_pull(name: str, seed: int) -> None:
    prior = ALL[name]
    run = pw.simulate(prior, pw.ThompsonSampling(), horizon=5, tasks=7, seed=seed, keep=True)
    read = statistics_of(prior, run, "a test")
    state = unseen(prior, 7, "a test")
    for step in range(5):
        signal = None
        if run.kept.log is not None:
            signal = np.zeros((7, prior.arms, prior.dim))
            signal[np.arange(7), run.actions[:, step]] = run.kept.log[:, step]
        state = state.observe(run.actions[:, step], run.rewards[:, step], signal)
    close(state, read)


def test_bad_pulls_and_parts() -> None:
    state = pw.GaussianStatistics.empty(2, arms=3)
    for actions, rewards, message in (
        ([0], [1.0], ("actions", "one for each of the 2 tasks")),
        ([0.5, 1.0], [1.0, 1.0], ("actions", "whole numbers")),
        ([0, 3], [1.0, 1.0], ("actions", "must lie in 0..2")),
        ([0, -2], [1.0, 1.0], ("actions", "-1 for none")),
        ([0, 1], [1.0, np.nan], "rewards"),
        ([0, 1], [1.0], ("rewards", "one entry for each of the 2")),
    ):
        with raises(message):
            state.observe(actions, rewards)
    assert state.observe([-1, 1], [np.nan, 2.0]).sums.tolist() == [[0, 0, 0], [0, 2, 0]]
    assert state.pulls.sum() == 0.0  # a value: the old one stays
    with raises("rewards", "0 or 1"):
        pw.BetaStatistics.empty(1, 1).observe([0], [0.5])
    with raises("other", "(2, 3)"):
        state.merged(pw.GaussianStatistics.empty(2, arms=2))
    with raises("other", "squares"):
        state.merged(pw.GaussianStatistics([[1, 0, 0]] * 2, [[1.0, 0, 0]] * 2))
    estimates = [
        pw.GaussianStatistics.from_estimates([1.0], [1.0], noise_var=unit) for unit in (1.0, 2.0)
    ]
    with raises("noise_var", "must be the same for estimates"):
        estimates[0].merged(estimates[1])
    assert estimates[0].merged(estimates[0]).pulls.tolist() == [[2.0]]
    with raises("pulls", "must not exceed"):
        pw.BetaStatistics([[0]], [[MOST_PULLS]]).merged(pw.BetaStatistics([[0]], [[1]]))
    with raises("candidates", "are missing: these statistics cannot take"):
        pw.FiniteStatistics([[0.0, -1.0]]).observe([0], [1.0])
    plain, weighted = (
        unseen(ALL[name], 2, "a test") for name in ("linear-singular", "linear-pool")
    )
    with raises("other", "log_noise"):
        plain.merged(weighted)
    with raises("noise_var", "cannot distinguish"):
        ALL["linear-pool"].belief_given(plain)
    with raises("statistics", "must be in units of the"):
        ALL["linear-singular"].belief_given(weighted)
    with raises("statistics", "must be a kept Run or GaussianStatistics"):
        ALL["gaussian"].belief_given(pw.BetaStatistics([[1]], [[2]]))
    with raises("statistics", "the prior"):
        ALL["gaussian"].belief_given(pw.GaussianStatistics.empty(1, 2))
    with raises("noise_var", "the prior"):
        pw.GaussianPrior([0.0], [[1.0]]).belief_given(estimates[1])


def test_names_are_carried(seed: int) -> None:
    names = ("red", "green", "blue")
    prior = pw.GaussianPrior(np.zeros(3), np.eye(3), names=names)
    run = pw.simulate(prior, pw.Uniform(), horizon=9, tasks=40, seed=seed, keep=True)
    state = statistics_of(prior, run, "a test")
    assert state.names == state.take([0, 1]).names == (state + state).names == names
    assert state.merged(state).names == state.shifted(1.0).names == names
    for estimator in (pw.GaussianMoments(noise_var=1.0), pw.GaussianMarginalLikelihood()):
        fit = estimator.fit(state)
        assert fit.prior.names == fit.draw(np.random.default_rng(seed), 2)[1].names == names
        again = pw.load_prior(fit.to_json())
        assert again == fit.prior
        assert again.names == names
    assert prior.replaced(mean=[1.0, 2.0, 3.0]).names == names
    assert "names" not in pw.GaussianPrior([0.0], [[1.0]]).to_json()
    assert prior != pw.GaussianPrior(np.zeros(3), np.eye(3))
    unnamed = pw.GaussianStatistics(state.pulls, state.sums, state.squares)
    assert (unnamed + state).names == names  # one that does not say takes what the other says
    other = pw.GaussianStatistics(state.pulls, state.sums, state.squares, names=["a", "b", "c"])
    for join in (lambda: state + other, lambda: state.merged(other)):
        with raises("names", "must agree"):
            join()
    with raises("statistics", "must have names=('red', 'green', 'blue'), as"):
        prior.belief_given(other)
    with raises("believed", "must have the names of arms"):
        pw.simulate(prior, pw.Greedy(), horizon=2, tasks=2, seed=seed,
                    believed=prior.replaced(names=["a", "b", "c"]))  # fmt: skip
    for wrong in ("abc", ["a", "b"], ["a", "a", "b"]):
        with raises("names", "must"):
            pw.GaussianPrior(np.zeros(3), np.eye(3), names=wrong)
    counts = pw.BetaStatistics([[1, 2]], [[3, 3]], names=["x", "y"])
    assert pw.BetaMarginalLikelihood().fit(counts).prior.names == ("x", "y")
    learner = pw.EmpiricalBayes(pw.GaussianMarginalLikelihood())
    learned = pw.simulate_meta(
        prior, learner, episodes=4, replicates=1, horizon=3, seed=seed, jobs=1, keep=True
    )
    assert learned.fits[0].prior.names == names
