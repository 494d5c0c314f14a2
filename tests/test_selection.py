"""Held-out likelihood between models, and policies under the priors that the data leave
plausible.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from raising import raises

import priorwise as pw
from priorwise.core.hashing import mix
from priorwise.core.types import FloatArray, IntArray
from priorwise.experiments import problems
from priorwise.families.beta.likelihood.estimator import BetaMarginalLikelihood
from priorwise.families.beta.statistics import BetaStatistics
from priorwise.families.finite.likelihood.estimator import FiniteMarginalLikelihood
from priorwise.families.finite.statistics import FiniteStatistics
from priorwise.families.gaussian.likelihood.estimator import GaussianMarginalLikelihood
from priorwise.families.gaussian.moments import GaussianMoments
from priorwise.families.gaussian.statistics import GaussianStatistics
from priorwise.families.linear.statistics import LinearStatistics
from priorwise.fitting.fits import PriorFit
from priorwise.meta.evidence.likelihood import log_marginal_likelihood
from priorwise.meta.selection.models import compare_models
from priorwise.meta.selection.policies import compare_policies

OWN, POOLED = BetaMarginalLikelihood(), BetaMarginalLikelihood("exchangeable")
DIFFERENT = pw.BetaPrior([1.0, 6.0, 3.0], [6.0, 2.0, 3.0])
ALIKE = pw.BetaPrior([2.0, 2.0, 2.0], [4.0, 4.0, 4.0])


def beta_run(prior: pw.BetaPrior, tasks: int, seed: int) -> pw.Run:
    return pw.simulate(prior, pw.ThompsonSampling(), horizon=10, tasks=tasks, seed=seed, keep=True)


# -- models
# -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recorded:
    """An estimator that keeps what it was given and what it found."""

    estimator: Any
    fits: list[tuple[Any, Any]] = field(default_factory=list)

    def fit(self, data: Any, *, start: Any = None) -> PriorFit:
        fit = self.estimator.fit(data, start=start)
        self.fits.append((data, fit.prior))
        return fit


def folds_seen(model: Recorded, scores: FloatArray, whole: Any) -> IntArray:
    """Fold of each task, read off its score: the one fit after the first that gives it."""
    table = np.stack([log_marginal_likelihood(prior, whole) for _, prior in model.fits[1:]])
    hits = np.isclose(table, scores, rtol=1e-10, atol=0.0)
    assert (hits.sum(axis=0) == 1).all(), "each task is scored by one of the fits, on all its pulls"
    return hits.argmax(axis=0)


def rows(statistics: Any, name: str) -> list[list[float]]:
    """What the tasks saw, in order of size: tasks as a set."""
    return sorted(np.hstack([statistics.pulls, getattr(statistics, name)]).tolist())


def test_scores_are_those_of_the_other_folds(seed: int) -> None:
    """Each task is scored by the fit to all tasks but those of its fold; folds are equally
    large.
    """
    data = BetaStatistics.from_run(beta_run(DIFFERENT, 50, seed), arms=3)
    model = Recorded(OWN)
    got = compare_models({"own": model}, data, folds=5, seed=seed)
    fold = folds_seen(model, got.scores["own"], data)
    assert np.bincount(fold).tolist() == [10] * 5
    for k, (trained, prior) in enumerate(model.fits[1:]):
        assert rows(trained, "successes") == rows(data.take(fold != k), "successes")
        assert prior == OWN.fit(data.take(fold != k), start=got.fits["own"]).prior
        anew = OWN.fit(data.take(fold != k)).prior  # where it begins does not matter
        np.testing.assert_allclose(prior.alpha, anew.alpha, rtol=1e-4)
    assert got.estimate("own").mean == pytest.approx(got.scores["own"].mean())
    assert got.estimate("own").std_error == pytest.approx(
        got.scores["own"].std(ddof=1) / np.sqrt(50)
    )
    assert got.fits["own"].prior == OWN.fit(data).prior


def test_the_same_seed_gives_the_same_folds(seed: int) -> None:
    run = beta_run(DIFFERENT, 40, seed)
    first, second = (compare_models({"own": OWN}, run, seed=seed).scores["own"] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert (compare_models({"own": OWN}, run, seed=seed + 1).scores["own"] != first).any()


def test_arms_that_differ_are_told_from_arms_that_do_not(seed: int) -> None:
    """5 standard errors apart if arms differ (false alarm below 1e-6); control: arms alike, where
    pooling must not lose.
    """
    apart = compare_models(
        {"own": OWN, "pooled": POOLED}, beta_run(DIFFERENT, 1_000, seed), seed=seed
    )
    gap = apart.difference("own", "pooled")
    assert apart.best == "own"
    assert gap.mean > 5 * gap.std_error
    back = apart.difference("pooled", "own")
    assert (back.mean, back.std_error) == (pytest.approx(-gap.mean), pytest.approx(gap.std_error))
    control = compare_models(
        {"own": OWN, "pooled": POOLED}, beta_run(ALIKE, 1_000, seed), seed=seed
    ).difference("own", "pooled")
    assert control.mean < 5 * control.std_error


def test_covariance_structures(seed: int) -> None:
    run = pw.simulate(
        problems.gaussian().prior,
        pw.ThompsonSampling(),
        horizon=10,
        tasks=300,
        seed=seed,
        keep=True,
    )
    models = {name: GaussianMarginalLikelihood(name) for name in ("full", "diagonal")}
    got = compare_models(models, run, seed=seed)
    gap = got.difference("full", "diagonal")
    assert gap.mean > 5 * gap.std_error  # false alarm below 1e-6
    assert "full" in str(got).splitlines()[1]


def test_all_models_are_scored_on_all_pulls(seed: int) -> None:
    """Estimators that read the first pull or two predict whole tasks; what they do not read would
    be a bonus otherwise.
    """
    run = pw.simulate(
        pw.GaussianPrior(np.zeros(3), np.eye(3)),
        pw.Uniform(),
        horizon=8,
        tasks=60,
        seed=seed,
        keep=True,
    )
    models = {
        name: Recorded(GaussianMoments(name, noise_var=1.0, arms=3))
        for name in ("no-cov", "two-round", "full")
    }  # type: ignore[arg-type]
    got = compare_models(
        {**models, "likelihood": GaussianMarginalLikelihood(arms=3)}, run, folds=4, seed=seed
    )
    whole = GaussianStatistics.from_run(run, arms=3)
    folds = {name: folds_seen(model, got.scores[name], whole) for name, model in models.items()}
    for name, model in models.items():
        read = got.fits[name].statistics
        assert (name == "full") == (read.pulls.sum() == whole.pulls.sum())
        np.testing.assert_array_equal(
            folds[name], folds["full"], err_msg="all models are tried on the same folds"
        )
        for k, (trained, _) in enumerate(model.fits[1:]):
            assert rows(trained, "sums") == rows(read.take(folds[name] != k), "sums")
    # no model can be far better than the truth: 5 standard errors of the paired difference, false
    # alarm 3e-7 each
    truth = log_marginal_likelihood(pw.GaussianPrior(np.zeros(3), np.eye(3)), whole)
    for name, score in got.scores.items():
        gap = score - truth
        assert gap.mean() < 5 * gap.std(ddof=1) / np.sqrt(60), name


@pytest.mark.parametrize(("shared", "better"), [(0.0, "diagonal"), (0.9, "full")])
def test_overfitting_is_punished(shared: float, better: str, seed: int) -> None:
    """Independent arms and 24 tasks: 15 covariances more fit the data better and new tasks worse,
    in most of 5 sets of data.

    Control: correlated arms, where the same 15 are worth having. A set of data tells the wrong way
    less than once in 20, so 2 of 5 do less than once in 40 (and have not in 15 seeds); a score that
    does not hold out tasks prefers them always.
    """
    prior = pw.GaussianPrior(np.zeros(6), (1.0 - shared) * np.eye(6) + shared, 0.25)
    models = {
        name: GaussianMarginalLikelihood(name, noise_var=0.25, regulariser=0.0, arms=6)  # type: ignore[arg-type]
        for name in ("full", "diagonal")
    }
    won = 0
    for number in range(5):
        run = pw.simulate(
            prior, pw.Uniform(), horizon=12, tasks=24, seed=1000 * seed + number, keep=True
        )
        got = compare_models(models, run, seed=seed)
        assert got.fits["full"].log_likelihood > got.fits["diagonal"].log_likelihood
        won += got.best == better
    assert won >= 4


def test_families_of_one_kind_can_be_compared(seed: int) -> None:
    means = np.array([[0.2, 0.8], [0.8, 0.2]])
    truth = pw.FinitePrior(means, [0.5, 0.5], "bernoulli")
    run = pw.simulate(truth, pw.ThompsonSampling(), horizon=12, tasks=400, seed=seed, keep=True)
    got = compare_models({"finite": FiniteMarginalLikelihood(truth), "beta": OWN}, run, seed=seed)
    gap = got.difference("finite", "beta")
    assert gap.mean > 5 * gap.std_error
    with raises("models", "'normal'"):
        compare_models({"beta": OWN, "normal": GaussianMarginalLikelihood()}, run, seed=seed)


def test_impossible_tasks_score_minus_infinity(seed: int) -> None:
    table = np.array([[0.0, -np.inf]] * 5 + [[-np.inf, 0.0]])
    two = pw.FinitePrior([[0.0], [1.0]], [0.5, 0.5])
    models = {
        name: FiniteMarginalLikelihood(two, regulariser=c)
        for name, c in (("plain", 0.0), ("half", 0.5))
    }
    got = compare_models(models, FiniteStatistics(table), folds=6, seed=seed)
    assert got.best == "half"
    assert got.estimate("plain").mean == -np.inf
    assert got.difference("plain", "half").mean == -np.inf
    assert got.difference("plain", "plain").mean == 0.0
    assert "nan" not in str(got)


def test_likelihoods_of_all_families_agree_on_what_they_share() -> None:
    """One arm, one pull: normal, linear and a finite prior of one candidate, in the limit of no
    spread.
    """
    normal = log_marginal_likelihood(
        pw.GaussianPrior([0.3], [[0.0]], 2.0), GaussianStatistics([[1]], [[1.5]], [[2.25]])
    )
    linear = log_marginal_likelihood(
        pw.LinearGaussianPrior([0.3], [[0.0]], 2.0, [[1.0]]),
        LinearStatistics([[[1.0]]], [[1.5]], [2.25], [1]),
    )
    candidate = pw.FinitePrior([[0.3]], [1.0], "gaussian", 2.0)
    finite = log_marginal_likelihood(
        candidate, FiniteStatistics.from_trajectory([[0]], [[1.5]], candidate)
    )
    np.testing.assert_allclose([normal[0], linear[0]], finite[0], rtol=1e-12)
    with raises("prior", "prior of a registered family ("):
        log_marginal_likelihood(3, None)


def test_bad_models(seed: int) -> None:
    data = BetaStatistics.from_run(beta_run(ALIKE, 10, seed), arms=3)
    with raises("models", "must be a mapping"):
        compare_models({}, data, seed=seed)
    with raises("folds", "must not exceed"):
        compare_models({"own": OWN}, data, folds=11, seed=seed)
    with raises("models", "must read tasks, but 'own' reads"):
        compare_models({"own": OWN}, data.grouped(), seed=seed)
    with pytest.raises(KeyError, match="no 'other'"):
        compare_models({"own": OWN}, data, seed=seed).difference("own", "other")


# -- policies
# -------------------------------------------------------------------------------------------------

POLICIES = {"thompson": pw.ThompsonSampling(), "greedy": pw.Greedy(), "uniform": pw.Uniform()}


def test_policies_meet_plausible_priors_and_hold_the_fitted_one(seed: int) -> None:
    fit = OWN.fit(beta_run(DIFFERENT, 60, seed))
    got = compare_policies(fit, POLICIES, horizon=8, tasks=200, draws=5, seed=seed)
    drawn = fit.draw(np.random.Generator(np.random.Philox(key=seed)), 5)
    assert got.priors == drawn
    for number, prior in enumerate(drawn):
        run = pw.simulate(
            prior,
            pw.Greedy(),
            horizon=8,
            tasks=200,
            seed=mix(mix(seed) ^ number),
            believed=fit.prior,
        )
        assert got.scores["greedy"][number] == run.mean_reward
    again = compare_policies(fit, {"greedy": pw.Greedy()}, horizon=8, tasks=200, draws=5, seed=seed)
    np.testing.assert_array_equal(again.scores["greedy"], got.scores["greedy"])
    assert sum(got.share_best().values()) == pytest.approx(1.0)


def test_the_better_policy_is_found(seed: int) -> None:
    """Thompson against uniform pulls: 5 standard errors (20 draws: false alarm below 1e-4);
    control: a policy against itself.
    """
    fit = OWN.fit(beta_run(DIFFERENT, 200, seed))
    both = {**POLICIES, "same": pw.ThompsonSampling()}
    got = compare_policies(fit, both, horizon=10, tasks=500, draws=20, seed=seed)
    gap = got.difference("thompson", "uniform")
    assert gap.mean > 5 * gap.std_error
    assert got.difference("thompson", "same").mean == 0.0
    assert got.best != "uniform"


def test_less_data_more_spread(seed: int) -> None:
    few, many = (OWN.fit(beta_run(DIFFERENT, tasks, seed)) for tasks in (10, 5_000))
    spreads = [
        compare_policies(
            fit, {"ts": pw.ThompsonSampling()}, horizon=10, tasks=1_000, draws=20, seed=seed
        ).spread("ts")
        for fit in (few, many)
    ]
    assert spreads[0] > 2 * spreads[1]


def test_exchangeable_arms_need_a_number(seed: int) -> None:
    fit = POOLED.fit(beta_run(ALIKE, 100, seed))
    got = compare_policies(fit, POLICIES, horizon=5, tasks=50, draws=3, seed=seed, arms=7)
    assert got.priors[0].arms == 7
    with raises("arms", "is missing, and the fitted prior"):
        compare_policies(fit, POLICIES, horizon=5, tasks=50, draws=3, seed=seed)


def test_bad_fits(seed: int) -> None:
    with raises("fit", "must be a PriorFit"):
        compare_policies(ALIKE, POLICIES, horizon=5, tasks=5, draws=2, seed=seed)  # type: ignore[arg-type]
    with raises("fit", "no law of plausible priors"):
        compare_policies(
            PriorFit(ALIKE, "guess", 1), POLICIES, horizon=5, tasks=5, draws=2, seed=seed
        )


def test_other_arms_than_those_of_the_fit_are_refused(seed: int) -> None:
    fit = pw.PriorFit(pw.BetaPrior([1.0, 2.0, 3.0], [3.0, 2.0, 1.0]), "by hand", 5)
    options = {"horizon": 2, "tasks": 64, "draws": 2, "seed": seed}
    with raises("arms", "the fitted prior has"):
        pw.compare_policies(fit, {"greedy": pw.Greedy()}, arms=5, **options)
