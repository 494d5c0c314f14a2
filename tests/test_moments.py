"""Moment estimators: by hand on tiny data, unbiased on simulated data, and honest where the data
say nothing.

Unbiasedness is a z-test of the average over replicates, entry by entry with Bonferroni's
correction: false alarms with probability 1e-4 a test. Its controls are the estimators as the paper
prints them.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from raising import raises
from scipy import stats

import priorwise as pw
from priorwise.experiments import problems
from priorwise.families.beta.moments import BetaMoments, beta_of_moments
from priorwise.families.beta.statistics import BetaStatistics
from priorwise.families.finite.counts import FiniteCounts
from priorwise.families.finite.statistics import FiniteStatistics
from priorwise.families.gaussian.moment_variants import READERS, rows_of
from priorwise.families.gaussian.moments import GaussianMoments, setup_of
from priorwise.families.gaussian.statistics import GaussianStatistics
from priorwise.families.linear.moments import LinearMoments
from priorwise.families.linear.statistics import LinearStatistics
from priorwise.families.normal import totals as moment_totals
from priorwise.fitting.design import FALSE_ALARM, design_sums, uniformity_p_value
from priorwise.fitting.fits import PriorFit
from priorwise.meta.complexity.moment_errors import moment_errors
from priorwise.meta.exploration import OneArmBlocks, PairedArms, explored, replicate_seed
from priorwise.policies.uniform_then import UniformThen

PRIOR = pw.GaussianPrior(
    [0.5, -0.3, 0.2],
    np.array([[1.0, 0.8, 0.0], [0.8, 1.5, -0.4], [0.0, -0.4, 0.7]]),
    [1.0, 0.5, 2.0],
)
VARIANTS = ["two-round", "known-mean", "difference", "full", "no-cov"]


def estimator(variant, prior=PRIOR):
    known = {"mean": prior.mean} if variant == "known-mean" else {}
    return GaussianMoments(variant, noise_var=prior.noise_var, arms=prior.arms, **known)


def bias_p_value(estimates, truth):
    """p-value of E[estimate] = truth from independent replicates (replicate, ...), over all
    entries.
    """
    flat = np.reshape(estimates, (len(estimates), -1)) - np.ravel(truth)
    error = flat.std(axis=0, ddof=1) / np.sqrt(len(flat))
    z = np.abs(flat.mean(axis=0)[error > 0] / error[error > 0])
    return min(1.0, z.size * 2 * stats.norm.sf(z.max()))


def raw(fit):
    return np.concatenate([fit.uncertainty.mean, fit.uncertainty.cov.ravel()])


def unprojected(variant, statistics):
    setup = setup_of(estimator(variant), 3)
    (totals,) = moment_totals.prefix_totals(
        lambda rows: READERS[variant](setup, *rows_of(statistics, rows)), [len(statistics)]
    )
    found = moment_totals.estimate(totals, subtract=variant in ("two-round", "full"))
    return np.concatenate([found.mean, found.cov.ravel()])


def sample(variant, tasks, seed, horizon=4, prior=PRIOR):
    explore = PairedArms(prior.arms) if variant == "difference" else pw.Uniform()
    return explored(prior, explore, tasks, horizon, seed=seed)


# ---- by hand


def by_hand(variant, actions, rewards):
    """The definitions, with loops over tasks and rounds."""
    a_count, tasks = PRIOR.arms, len(actions)
    eye, noise = np.eye(a_count), PRIOR.noise_var
    if variant == "difference":
        x = sum(
            a_count * r * eye[a]
            for t in range(tasks)
            for a, r in zip(actions[t, :2], rewards[t, :2], strict=True)
        ) / (2 * tasks)
        cov = np.zeros((a_count, a_count))
        for t in range(0, tasks, 2):
            (a, b), (r, s) = actions[t, :2], rewards[t, :2]
            # where both rounds pulled one arm, the second task's two rewards may come in either
            # order
            orders = (
                list(permutations(rewards[t + 1, :2])) if a == b else [tuple(rewards[t + 1, :2])]
            )
            for first, second in orders:
                pair = np.outer(eye[a], eye[b])
                cov += (
                    a_count**2
                    / (4 * tasks / 2)
                    * (r - first)
                    * (s - second)
                    * (pair + pair.T)
                    / len(orders)
                )
        return x, cov
    rounds = {"two-round": 2, "known-mean": 2, "full": actions.shape[1], "no-cov": 1}[variant]
    shift = PRIOR.mean if variant == "known-mean" else np.zeros(a_count)
    xs, zs = [], []
    for t in range(tasks):
        x, z = np.zeros(a_count), np.zeros((a_count, a_count))
        for h in range(rounds):
            a, r = actions[t, h], rewards[t, h]
            x += a_count / rounds * r * eye[a]
            for k in range(rounds):
                b, s = actions[t, k], rewards[t, k]
                if h != k and not (variant == "full" and a == b):
                    z += (
                        a_count**2
                        / (rounds * (rounds - 1))
                        * (r - shift[a])
                        * (s - shift[b])
                        * np.outer(eye[a], eye[b])
                    )
            if variant == "full":
                z += a_count / rounds * r**2 * np.outer(eye[a], eye[a])
        xs.append(x)
        zs.append(z - np.diag(noise) if variant == "full" else z)
    mean, second = np.mean(xs, axis=0), np.mean(zs, axis=0)
    if variant == "no-cov":
        return mean, np.eye(a_count)
    if variant == "known-mean":
        return PRIOR.mean, second
    product = np.mean(
        [np.outer(xs[s], xs[t]) for s in range(tasks) for t in range(tasks) if s != t], axis=0
    )
    return mean, second - product


@pytest.mark.parametrize("variant", VARIANTS)
def test_definitions_with_loops(variant, seed):
    run = sample(variant, 12, seed)
    fit = estimator(variant).fit(run)
    mean, cov = by_hand(variant, run.actions, run.rewards)
    np.testing.assert_allclose(fit.uncertainty.mean, mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(fit.uncertainty.cov, cov, rtol=1e-12, atol=1e-12)
    assert np.linalg.eigvalsh(fit.prior.cov)[0] > -1e-10


# ---- unbiased


@pytest.fixture(scope="module")
def replicates():
    made = {}

    def get(variant, seed, tasks=6):
        # the least of the printed errors takes more to see
        count = 3000 if variant == "full" else 1000
        if variant not in made:
            run = (
                _pairs(tasks * count, seed)
                if variant == "difference"
                else sample(variant, tasks * count, seed)
            )
            whole = GaussianStatistics.from_run(
                run, arms=3, steps={"full": None, "no-cov": 1}.get(variant, 2)
            )
            made[variant] = [whole[tasks * r : tasks * (r + 1)] for r in range(count)]
        return made[variant]

    return get


def _pairs(tasks, seed):
    """Paired arms in random order, so that every few tasks are a sample."""
    run = explored(PRIOR, PairedArms(3), tasks, 2, seed=seed)
    order = np.random.default_rng(seed).permutation(tasks // 2)
    index = np.stack([2 * order, 2 * order + 1], axis=1).ravel()
    return replace(
        run,
        trajectory=replace(run.trajectory, actions=run.actions[index], rewards=run.rewards[index]),
    )


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_unbiased(variant, replicates, seed):
    """Of the estimates before the projection, and before arms that no task pulled are filled in."""
    truth = np.concatenate([PRIOR.mean, (np.eye(3) if variant == "no-cov" else PRIOR.cov).ravel()])
    found = [unprojected(variant, each) for each in replicates(variant, seed)]
    assert bias_p_value(np.array(found), truth) > 1e-4


@pytest.mark.parametrize(
    "printed",
    ["two-round twice", "full unscaled", "full scaled", "plug-in mean", "squares without noise"],
)
def test_printed_estimators_are_caught(printed, replicates, seed):
    """The control: the same test finds what the paper prints, and the O(1/T) bias of subtracting a
    squared estimate.
    """
    found = []
    for each in replicates("two-round" if "two" in printed else "full", seed):
        arms, n = 3, each.pulls.sum(axis=1)[:, None, None]
        products = each.sums[:, :, None] * each.sums[:, None, :]
        unscaled = products / n**2
        mean = (arms / n[:, 0] * each.sums).mean(axis=0)
        if "two" in printed:
            both = products - np.stack([np.diag(q) for q in each.squares])
            z = arms**2 * both  # A^2 r s (e_a e_b' + e_b e_a')
        else:
            scale = {"full unscaled": 1.0, "full scaled": arms**2}.get(
                printed, arms**2 * n / (n - 1)
            )
            noise = 0.0 if "noise" in printed else PRIOR.noise_var
            squares = arms / n[:, 0] * each.squares - noise
            z = unscaled * scale
            z[:, range(3), range(3)] = squares
        cov = z.mean(axis=0) - np.outer(mean, mean)
        if printed != "plug-in mean":  # without this bias, to see the others alone
            x = arms / n[:, 0] * each.sums
            t = len(x)
            cov = z.mean(axis=0) - (np.outer(x.sum(0), x.sum(0)) - x.T @ x) / (t * (t - 1))
        found.append(cov)
    assert bias_p_value(np.array(found), PRIOR.cov) < 1e-4


def test_what_the_appendix_prints_on_the_papers_problem(seed):
    """Off-diagonal 0.9 of the Gaussian experiment: 0.02 unscaled, 0.81 scaled by A^2, 0.9 here;
    within 5 standard errors.
    """
    prior = problems.gaussian().prior
    run = pw.simulate(prior, pw.Uniform(), horizon=10, tasks=40_000, seed=seed, keep=True)
    each = GaussianStatistics.from_run(run, arms=6)
    own = each.sums / 10
    second = (own[:, :, None] * own[:, None, :]).mean(axis=0)
    within = np.ix_([1, 2], [1, 2])
    assert second[within][0, 1] == pytest.approx(0.9 * 90 / 100 / 36, abs=0.004)
    assert 36 * second[within][0, 1] == pytest.approx(0.81, abs=0.1)
    fit = GaussianMoments("full", arms=6).fit(each)
    assert np.all(np.abs(fit.prior.cov - prior.cov) < 5 * fit.std_errors["cov"])
    assert np.all(np.abs(fit.prior.mean - prior.mean) < 5 * fit.std_errors["mean"])
    assert fit.std_errors["cov"][1, 2] < 0.03  # or the line above says nothing


# ---- accuracy


def test_errors_fall_like_one_over_root_t(seed):
    """Slope -1/2 in the logarithms, up to 0.2: about five standard errors of the slope. Control: an
    assumed covariance stays.
    """
    prior = pw.GaussianPrior([0.5, 0.0], [[1.0, 0.5], [0.5, 1.0]])
    sizes = [500, 2_000, 8_000, 32_000]
    found = moment_errors(prior, sizes, horizon=4, replicates=16, seed=seed)
    for errors in (found.mean, found.cov):
        assert abs(np.polyfit(np.log(sizes), np.log(errors), 1)[0] + 0.5) < 0.2
    stays = moment_errors(
        prior,
        sizes,
        horizon=4,
        replicates=4,
        seed=seed,
        estimator=GaussianMoments("no-cov", arms=2),
    )
    assert abs(np.polyfit(np.log(sizes), np.log(stays.cov), 1)[0] + 0.5) > 0.2


@pytest.mark.parametrize("variant", ["two-round", "full"])
def test_standard_errors_are_the_spread_of_replicates(variant, seed):
    """Over 300 replicates a standard deviation is known to 4 %: they agree up to 25 % (heavy
    tails), entry by entry.
    """
    whole = GaussianStatistics.from_run(
        sample(variant, 300 * 500, seed), arms=3, steps=2 if variant == "two-round" else None
    )
    fits = [estimator(variant).fit(whole[500 * r : 500 * (r + 1)]) for r in range(300)]
    spread = np.std([raw(fit) for fit in fits], axis=0, ddof=1)
    said = np.mean(
        [np.concatenate([fit.std_errors["mean"], fit.std_errors["cov"].ravel()]) for fit in fits],
        axis=0,
    )
    np.testing.assert_allclose(said, spread, rtol=0.25)


def test_standard_errors_of_many_arms_are_those_of_few(monkeypatch, seed):
    """Beyond some arms the joint law of the moments is not kept; the standard errors are the same
    numbers.
    """
    statistics = GaussianStatistics.from_run(sample("full", 700, seed), arms=3)
    joint = {v: estimator(v).fit(statistics) for v in VARIANTS if v != "difference"}
    monkeypatch.setattr(moment_totals, "LARGEST_JOINT", 2)
    for variant, expected in joint.items():
        fit = estimator(variant).fit(statistics)
        assert fit.uncertainty is None
        for name, errors in expected.std_errors.items():
            np.testing.assert_allclose(fit.std_errors[name], errors, rtol=1e-8, atol=1e-6)


def test_draws_have_the_law_of_the_moments(seed):
    """Mean and spread of 2000 drawn priors, up to 10 %, where the projection does nothing."""
    fit = estimator("full").fit(sample("full", 20_000, seed))
    drawn = fit.draw(np.random.default_rng(seed), 2000)
    covs, means = np.array([p.cov for p in drawn]), np.array([p.mean for p in drawn])
    np.testing.assert_allclose(covs.std(axis=0), fit.std_errors["cov"], rtol=0.1)
    np.testing.assert_allclose(means.std(axis=0), fit.std_errors["mean"], rtol=0.1)
    np.testing.assert_allclose(
        covs.mean(axis=0), fit.prior.cov, atol=0.2 * fit.std_errors["cov"].max()
    )
    few = estimator("full").fit(sample("full", 10, seed))
    # all projected, none refused
    assert all(isinstance(p, pw.GaussianPrior) for p in few.draw(np.random.default_rng(seed), 50))


# ---- merging


@pytest.mark.parametrize("variant", VARIANTS)
def test_prefixes_splits_and_json(variant, seed):
    statistics = GaussianStatistics.from_run(sample(variant, 1000, seed), arms=3, steps=2)
    e, sizes = estimator(variant), [1000, 10, 256, 257, 511, 512, 10]
    for size, fit in zip(sizes, e.fit_prefixes(statistics, sizes), strict=True):
        alone = e.fit(statistics[:size])
        assert fit == alone  # every number, to the last bit
        assert alone.statistics is not None
        assert fit.statistics is None
        assert PriorFit.load(fit.to_json()) == fit
    parts = statistics[:300] + statistics[300:304] + statistics[304:]
    assert e.fit(parts) == e.fit(statistics)
    assert e.fit_prefixes(statistics, []) == []
    with raises("sizes", "must not exceed the number of tasks"):
        e.fit_prefixes(statistics, [1001])


@pytest.mark.parametrize("variant", ["two-round", "known-mean", "full", "no-cov"])
def test_groups_give_the_same_prior(variant, seed):
    statistics = GaussianStatistics.from_run(sample(variant, 500, seed), arms=3, steps=3)
    fit, grouped = (
        estimator(variant).fit(statistics),
        estimator(variant).fit(statistics[:200].grouped() + statistics[200:].grouped()),
    )
    np.testing.assert_allclose(grouped.prior.mean, fit.prior.mean, atol=1e-12)
    np.testing.assert_allclose(grouped.prior.cov, fit.prior.cov, atol=1e-12)
    assert (grouped.tasks, grouped.left_out) == (fit.tasks, fit.left_out)
    assert np.isnan(grouped.std_errors["mean"]).all()
    with raises("variant", "groups do not keep"):
        estimator("difference").fit(statistics.grouped())


# ---- where the data say little


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_few_tasks_give_a_usable_prior(variant, tasks, seed):
    fit = estimator(variant).fit(sample(variant, tasks, seed, horizon=2))
    assert isinstance(fit.prior, pw.GaussianPrior)
    assert fit.tasks + fit.left_out == tasks
    assert PriorFit.load(fit.to_json()) == fit
    pw.simulate(PRIOR, pw.ThompsonSampling(), horizon=2, tasks=3, seed=seed, believed=fit.prior)


def test_one_task_leaves_the_spread_unknown():
    fit = GaussianMoments("full", noise_var=1.0).fit(
        GaussianStatistics([[3, 2]], [[1.0, 2.0]], [[5.0, 4.0]])
    )
    np.testing.assert_array_equal(fit.prior.cov, np.eye(2))
    np.testing.assert_allclose(fit.prior.mean, [0.4, 0.8])
    assert fit.at_boundary
    assert "single task" in fit.warnings[0]
    assert np.isinf(fit.std_errors["cov"]).all()


def test_identical_tasks_and_unseen_arms():
    same = GaussianStatistics([[2, 2, 0]] * 30, [[1.0, 2.0, 0.0]] * 30, [[1.0, 3.0, 0.0]] * 30)
    fit = GaussianMoments("full", noise_var=0.5).fit(same)
    assert fit.at_boundary
    assert any("no task pulled arm 2" in note for note in fit.warnings)
    np.testing.assert_allclose([fit.prior.mean[2], fit.prior.cov[2, 2]], [(0.75 + 1.5) / 2, 0.5])
    np.testing.assert_array_equal(fit.prior.cov[2, :2], 0.0)
    single = GaussianStatistics(
        [[1, 0], [0, 1]], [[1.0, 0.0], [0.0, 2.0]], [[1.0, 0.0], [0.0, 4.0]]
    )
    bare = GaussianMoments("full", noise_var=1.0).fit(single)
    assert (bare.tasks, bare.left_out, bare.at_boundary) == (0, 2, True)
    np.testing.assert_array_equal(bare.prior.cov, np.eye(2))


def test_difference_leaves_out_tasks_without_a_twin():
    pulls = [[1, 1], [1, 1], [2, 0], [1, 1], [1, 1]]
    fit = GaussianMoments("difference", noise_var=1.0).fit(
        GaussianStatistics(pulls, np.array(pulls) * 0.5, np.array(pulls) * 0.25)
    )
    assert (fit.tasks, fit.left_out) == (2, 3)


@pytest.mark.parametrize("variant", ["full", "two-round", "known-mean", "difference"])
def test_a_noise_left_open_is_estimated_from_repeated_pulls(variant, seed):
    """Off by at most 5 standard errors of the sample variance: false alarms below 6e-7 a fit. A
    noise of 1 is far outside.
    """
    prior = pw.GaussianPrior([0.5, -0.2, 0.1], np.diag([1.0, 2.0, 3.0]), noise_var=0.25)
    run = pw.simulate(prior, pw.Uniform(), horizon=6, tasks=4000, seed=seed, keep=True)
    own = GaussianMoments(variant, mean=prior.mean if variant == "known-mean" else None)
    fit = own.fit(run)
    freedom = fit.statistics.within()[1]
    band = 5 * 0.25 * np.sqrt(2 / freedom)
    assert fit.prior.noise_var == pytest.approx(np.full(3, 0.25), abs=band)
    assert abs(1.0 - 0.25) > band
    assert fit.statistics.grouped().within() == pytest.approx(fit.statistics.within())
    assert own.fit_prefixes(run, [500])[0] == own.fit(fit.statistics[:500])


def test_linear_moments_estimate_a_noise_left_open(seed):
    """Off by at most 5 standard errors: false alarms below 6e-7."""
    run = pw.simulate(LINEAR, pw.Uniform(), horizon=8, tasks=2000, seed=seed, keep=True)
    fit = LinearMoments(LINEAR.contexts).fit(run)
    noise = LINEAR.noise_var[0]
    assert fit.prior.noise_var[0] == pytest.approx(
        noise, abs=5 * noise * np.sqrt(2 / (2000 * (8 - LINEAR.dim)))
    )
    sizes = LinearMoments(LINEAR.contexts).fit_prefixes(LinearStatistics.from_run(run), [300, 2000])
    assert [each.prior for each in sizes] == [
        LinearMoments(LINEAR.contexts).fit(fit.statistics[:n]).prior for n in (300, 2000)
    ]


def test_a_noise_that_cannot_be_told_must_be_passed(seed):
    run = pw.simulate(PRIOR, pw.Uniform(), horizon=2, tasks=30, seed=seed, keep=True)
    same = GaussianStatistics([[2, 2]] * 3, [[1.0, 2.0]] * 3, [[0.5, 2.0]] * 3)
    for bad, data, why in (
        (GaussianMoments("no-cov"), run, ("noise_var", "no task repeats an arm")),
        (GaussianMoments("full"), same, ("noise_var", "never differ")),
        (
            GaussianMoments("no-cov"),
            GaussianStatistics([[2, 2]], [[1.0, 0.0]]),
            "squares",
        ),
        (
            GaussianMoments("no-cov"),
            GaussianStatistics([[2, 2]], [[1.0, 0.0]]).grouped(),
            "squares",
        ),
        (
            LinearMoments(np.eye(2)),
            LinearStatistics([np.eye(2)], [[1.0, 1.0]], [2.0], [2]),
            ("noise_var", "more pulls than features"),
        ),
    ):
        with raises(why):
            bad.fit(data)


def test_bad_input_is_refused():
    statistics = GaussianStatistics([[2, 2]], [[1.0, 0.0]])
    with raises("variant", "needs the sums of squared rewards"):
        GaussianMoments("full").fit(statistics)
    with raises("moments", "hold estimates"):
        GaussianMoments("no-cov").fit(GaussianStatistics.from_estimates([1.0], [1.0]))
    with raises("variant", "must be one of"):
        GaussianMoments("best")
    with raises("mean", "is the known prior mean for"):
        GaussianMoments("known-mean")
    with raises("cov", "is the covariance that variant='no-cov' assumes"):
        GaussianMoments("full", cov=np.eye(2))
    with raises("data", "kept Run or GaussianStatistics"):
        GaussianMoments().fit([1, 2])


def test_estimators_are_values():
    for make in (
        lambda: estimator("known-mean"),
        lambda: GaussianMoments("no-cov", cov=np.eye(2)),
        lambda: LinearMoments(np.eye(2)),
        lambda: FiniteCounts(TASKS),
        BetaMoments,
    ):
        assert make() == make()
        assert hash(make()) == hash(make())
    assert estimator("full") != estimator("two-round")


def test_no_cov_reads_first_pulls_only(seed):
    run = pw.simulate(
        PRIOR, UniformThen(1, pw.ThompsonSampling()), horizon=5, tasks=3000, seed=seed, keep=True
    )
    fit = estimator("no-cov").fit(run)
    expected = [
        3 * np.where(run.actions[:, 0] == arm, run.rewards[:, 0], 0.0).mean() for arm in range(3)
    ]
    np.testing.assert_allclose(fit.prior.mean, expected, rtol=1e-10)
    assert fit.warnings == ()
    own = GaussianMoments("no-cov", noise_var=1.0, cov=2.0 * np.eye(3)).fit(run)
    np.testing.assert_array_equal(own.prior.cov, 2.0 * np.eye(3))


# ---- were the pulls uniform?


def test_uniformity_test_keeps_its_level_and_notices(seed):
    """Of 400 uniform samples at most 5 % + 4 standard errors have p < 0.05; learning and taking
    turns are always noticed.
    """
    rng = np.random.default_rng(seed)
    for tasks, horizon, arms in ((15, 4, 3), (200, 10, 6), (40, 2, 2)):
        pulls = rng.multinomial(horizon, np.full(arms, 1 / arms), size=(400, tasks)).astype(float)
        p_values = np.array([uniformity_p_value(design_sums(each)) for each in pulls])
        assert (p_values < 0.05).mean() < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 400)
    turns = np.full((200, 6), 2.0)
    assert uniformity_p_value(design_sums(turns)) < FALSE_ALARM
    # by symmetry all arms are pulled equally often
    prior = pw.GaussianPrior(np.zeros(4), np.eye(4))
    run = pw.simulate(prior, pw.ThompsonSampling(), horizon=10, tasks=500, seed=seed, keep=True)
    assert "not uniform" in GaussianMoments("full").fit(run).warnings[0]
    assert uniformity_p_value(design_sums(np.ones((3, 2)))) == 1.0


def test_adaptive_runs_warn_in_every_family(seed):
    beta, linear, finite = (
        pw.BetaPrior([1.0, 1.0], [1.0, 2.0]),
        problems.linear().prior,
        problems.discrete().prior,
    )
    for prior, fitter in (
        (beta, BetaMoments()),
        (linear, LinearMoments(linear.contexts)),
        (finite, FiniteCounts(finite)),
    ):
        learns, uniform = (
            pw.simulate(prior, policy, horizon=20, tasks=400, seed=seed, keep=True)
            for policy in (UniformThen(1, pw.Greedy()), pw.Uniform())
        )
        # there the best arm is another at each pull, so that the pulls are uniform all the same
        if prior is not linear:
            assert any("not uniform" in note for note in fitter.fit(learns).warnings)
        assert not any("not uniform" in note for note in fitter.fit(uniform).warnings)
    blocks = explored(beta, OneArmBlocks(2), 400, 6, seed=seed)
    assert BetaMoments().fit(blocks).warnings == ()


# ---- Beta


def paper_formula(successes, n):
    m1, m2 = successes.mean(), (successes**2).mean()
    below = n * (m2 / m1 - m1 - 1) + m1
    return (n * m1 - m2) / below, (n - m1) * (n - m2 / m1) / below


def test_beta_is_the_papers_formula_for_equal_pulls(seed):
    prior = pw.BetaPrior([2.0, 0.5], [3.0, 4.0])
    run = explored(prior, OneArmBlocks(2), 6000, 5, seed=seed)
    fit = BetaMoments().fit(run)
    for arm in range(2):
        own = (run.actions[:, 0] == arm).nonzero()[0]
        np.testing.assert_allclose(
            [fit.prior.alpha[arm], fit.prior.beta[arm]],
            paper_formula(run.rewards[own].sum(axis=1), 5),
            rtol=1e-9,
        )
    assert np.all(np.abs(fit.prior.alpha - prior.alpha) < 5 * fit.std_errors["alpha"])
    assert np.all(np.abs(fit.prior.beta - prior.beta) < 5 * fit.std_errors["beta"])
    first = BetaMoments(steps=2, arms=2).fit(run)
    assert first.statistics.pulls.max() == 2


def test_beta_moments_are_unbiased_and_errors_calibrated(seed):
    """m1 and m2 over 400 replicates (false alarms 1e-4; control: m2 from s^2); standard errors up
    to 20 %.
    """
    prior = pw.BetaPrior([2.0, 3.0], [3.0, 1.5])
    run = pw.simulate(prior, pw.Uniform(), horizon=8, tasks=400 * 300, seed=seed, keep=True)
    whole = BetaStatistics.from_run(run, arms=2)
    fits = [BetaMoments().fit(whole[300 * r : 300 * (r + 1)]) for r in range(400)]
    total = prior.alpha + prior.beta
    truth = np.stack(
        [prior.alpha / total, prior.alpha * (prior.alpha + 1) / total / (total + 1)], axis=1
    )
    assert bias_p_value(np.array([fit.uncertainty.moments for fit in fits]), truth) > 1e-4
    wrong = [
        (f.statistics.successes**2).sum(axis=0) / (f.statistics.pulls**2).sum(axis=0) for f in fits
    ]
    assert bias_p_value(np.array(wrong), truth[:, 1]) < 1e-4
    moments_spread = np.std([fit.uncertainty.moments for fit in fits], axis=0, ddof=1)
    said = np.sqrt(
        np.mean([np.einsum("aii->ai", fit.uncertainty.covariances) for fit in fits], axis=0)
    )
    np.testing.assert_allclose(said, moments_spread, rtol=0.2)


def test_beta_derivatives_and_inverse():
    alpha, beta = 2.3, 0.7
    m1 = alpha / (alpha + beta)
    m2 = m1 * (alpha + 1) / (alpha + beta + 1)
    law, slope = beta_of_moments(m1, m2)
    np.testing.assert_allclose(law, (alpha, beta))
    step = 1e-6
    numeric = [
        (np.array(beta_of_moments(m1 + d1, m2 + d2)[0]) - beta_of_moments(m1 - d1, m2 - d2)[0])
        / (2 * step)
        for d1, d2 in ((step, 0.0), (0.0, step))
    ]
    np.testing.assert_allclose(slope, np.transpose(numeric), rtol=1e-6)


@pytest.mark.parametrize(
    ("successes", "pulls", "expected", "words"),
    [
        ([[0], [0], [0]], [[2], [3], [2]], (0.5, 7.5), "no more than chance"),
        ([[2], [2]], [[2], [2]], (4.5, 0.5), "no more than chance"),
        ([[1], [1], [1]], [[2], [2], [2]], (3.5, 3.5), "no more than chance"),
        ([[1], [0], [0]], [[1], [1], [1]], (0.75, 1.25), "spread between tasks is unknown"),
        ([[0]], [[0]], (1.0, 1.0), "spread between tasks is unknown"),
        ([[3], [0], [0], [3]], [[3], [3], [3], [3]], (0.005, 0.005), "as much as it can"),
        ([[1]], [[4]], (1.5, 3.5), "no more than chance"),
    ],
)
def test_beta_boundaries(successes, pulls, expected, words, seed):
    statistics = BetaStatistics(successes, pulls)
    for data in (statistics, statistics.grouped()):
        fit = BetaMoments().fit(data)
        np.testing.assert_allclose([fit.prior.alpha[0], fit.prior.beta[0]], expected)
        assert fit.at_boundary
        assert any(words in note for note in fit.warnings)
        assert np.isnan(fit.std_errors["alpha"]).all()
        assert PriorFit.load(fit.to_json()) == fit
        assert fit.draw(np.random.default_rng(seed), 3) == [fit.prior] * 3


def test_beta_merging_and_draws(seed):
    prior = pw.BetaPrior([2.0, 0.5], [3.0, 4.0])
    statistics = BetaStatistics.from_run(
        pw.simulate(prior, pw.Uniform(), horizon=6, tasks=2000, seed=seed, keep=True), arms=2
    )
    fit = BetaMoments().fit(statistics)
    assert BetaMoments().fit(statistics[:700] + statistics[700:]) == fit
    assert BetaMoments().fit_prefixes(statistics, [700, 2000]) == [
        BetaMoments().fit(statistics[:700]),
        fit,
    ]
    grouped = BetaMoments().fit(statistics[:700].grouped() + statistics[700:].grouped())
    np.testing.assert_allclose(grouped.prior.alpha, fit.prior.alpha)
    np.testing.assert_allclose(grouped.std_errors["beta"], fit.std_errors["beta"])
    drawn = fit.draw(np.random.default_rng(seed), 2000)
    np.testing.assert_allclose(
        np.std([p.alpha for p in drawn], axis=0), fit.std_errors["alpha"], rtol=0.25
    )
    assert PriorFit.load(fit.to_json()) == fit


# ---- linear

LINEAR = pw.LinearGaussianPrior(
    [1.0, -0.5], [[0.5, 0.2], [0.2, 0.3]], 0.7, contexts=pw.SphereContexts(arms=3)
)


def test_linear_by_hand(seed):
    run = pw.simulate(LINEAR, pw.Uniform(), horizon=5, tasks=4, seed=seed, keep=True)
    features, weights, seconds = run.trajectory.log, [], []
    for t in range(4):
        w = np.linalg.lstsq(features[t], run.rewards[t], rcond=None)[0]
        weights.append(w)
        seconds.append(np.outer(w, w) - 0.7 * np.linalg.inv(features[t].T @ features[t]))
    product = np.mean(
        [np.outer(weights[s], weights[t]) for s in range(4) for t in range(4) if s != t], axis=0
    )
    fit = LinearMoments(LINEAR.contexts, 0.7).fit(run)
    np.testing.assert_allclose(fit.uncertainty.mean, np.mean(weights, axis=0))
    np.testing.assert_allclose(fit.uncertainty.cov, np.mean(seconds, axis=0) - product, atol=1e-10)


def test_linear_is_unbiased_and_calibrated(seed):
    """False alarms with probability 1e-4; the control leaves out the noise correction."""
    run = pw.simulate(LINEAR, pw.Uniform(), horizon=12, tasks=600 * 8, seed=seed, keep=True)
    whole = LinearStatistics.from_run(run)
    fits = [LinearMoments(LINEAR.contexts, 0.7).fit(whole[8 * r : 8 * (r + 1)]) for r in range(600)]
    truth = np.concatenate([LINEAR.mean, LINEAR.cov.ravel()])
    assert bias_p_value(np.array([raw(fit) for fit in fits]), truth) > 1e-4
    noiseless = [
        LinearMoments(LINEAR.contexts, 1e-9).fit(whole[8 * r : 8 * (r + 1)]) for r in range(600)
    ]
    assert bias_p_value(np.array([raw(fit) for fit in noiseless]), truth) < 1e-4
    fit = LinearMoments(LINEAR.contexts, 0.7).fit(whole)
    assert np.all(np.abs(fit.prior.cov - LINEAR.cov) < 5 * fit.std_errors["cov"])
    assert LinearMoments(LINEAR.contexts, 0.7).fit(whole[:500] + whole[500:]) == fit
    prefixes = LinearMoments(LINEAR.contexts, 0.7).fit_prefixes(whole, [300, 4800])
    assert prefixes == [LinearMoments(LINEAR.contexts, 0.7).fit(whole[:300]), fit]
    assert PriorFit.load(fit.to_json()) == fit
    assert isinstance(fit.draw(np.random.default_rng(seed), 1)[0], pw.LinearGaussianPrior)


def test_linear_singular_designs_are_left_out_and_counted():
    gram = np.array(
        [
            [[2.0, 0.0], [0.0, 1.0]],
            [[1.0, 1.0], [1.0, 1.0]],
            [[0.0, 0.0], [0.0, 0.0]],
            [[1.0, 0.0], [0.0, 3.0]],
        ]
    )
    statistics = LinearStatistics(
        gram, [[2.0, 1.0], [1.0, 1.0], [0.0, 0.0], [3.0, 3.0]], [3.0, 1.0, 0.0, 12.0], [3, 1, 0, 4]
    )
    fit = LinearMoments(LINEAR.contexts, 1.0).fit(statistics)
    assert (fit.tasks, fit.left_out) == (2, 2)
    np.testing.assert_allclose(fit.prior.mean, [2.0, 1.0])
    for few, tasks in ((statistics[1:3], 0), (statistics[:3], 1)):
        fit = LinearMoments(LINEAR.contexts, 0.5).fit(few)
        assert (fit.tasks, fit.at_boundary) == (tasks, True)
        np.testing.assert_array_equal(fit.prior.cov, 0.5 * np.eye(2))
        assert PriorFit.load(fit.to_json()) == fit


# ---- finite

TASKS = pw.FinitePrior([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], [0.5, 0.3, 0.2])
NO = -np.inf


def test_finite_counts_by_hand(seed):
    log = [[0.0, NO, NO], [0.0, NO, NO], [NO, 0.0, NO], [0.0, NO, 0.0], [NO, NO, NO]]
    fit = FiniteCounts(TASKS, smoothing=0.0).fit(FiniteStatistics(log))
    np.testing.assert_allclose(fit.prior.probs, [2 / 3, 1 / 3, 0.0])
    assert (fit.tasks, fit.left_out, fit.at_boundary) == (3, 2, True)
    assert "1 tasks are none of the candidates" in fit.warnings
    smooth = FiniteCounts(TASKS).fit(FiniteStatistics(log))
    np.testing.assert_allclose(smooth.prior.probs, [(2 + 1 / 3) / 4, (1 + 1 / 3) / 4, (1 / 3) / 4])
    assert not smooth.at_boundary
    assert PriorFit.load(smooth.to_json()) == smooth
    assert all(p.probs[2] == 0.0 for p in fit.draw(np.random.default_rng(seed), 5))
    nothing = FiniteCounts(TASKS).fit(FiniteStatistics([[0.0, 0.0, NO]]))
    np.testing.assert_allclose(nothing.prior.probs, 1 / 3)
    assert (nothing.tasks, nothing.at_boundary) == (0, True)


def test_counters_are_biased_and_the_likelihood_is_consistent():
    """All histories of two uniform pulls, each as often as its probability says: the statistics of
    an infinite log. By hand, two pulls identify tasks 1 and 2 with probability 7/9, and tasks 3 and
    4 with probability 5/9.
    """
    means = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.5], [0.0, 0.0, 0.7]])
    pulls = np.array([(a, b) for a in range(3) for b in range(3)])
    for often in ([1, 1, 1, 1], [1, 2, 3, 4]):
        truth = np.array(often) / sum(often)
        task = np.repeat(np.arange(4), 9 * np.array(often))
        chosen = np.concatenate([np.tile(pulls, (count, 1)) for count in often])
        candidates = pw.FinitePrior(means, truth)
        log = FiniteStatistics.from_trajectory(chosen, means[task[:, None], chosen], candidates)
        counted = FiniteCounts(candidates, smoothing=0.0).fit(log).prior.probs
        identified = truth * [7 / 9, 7 / 9, 5 / 9, 5 / 9]
        np.testing.assert_allclose(counted, identified / identified.sum())
        assert np.abs(counted - truth).max() > 0.02
        likely = pw.FiniteMarginalLikelihood(candidates, regulariser=0.0).fit(log).prior.probs
        np.testing.assert_allclose(likely, truth, atol=1e-8)


def test_finite_level_and_merging():
    statistics = FiniteStatistics([[0.0, -5.0, -6.0], [-1.0, 0.0, -1.0], [-9.0, 0.0, -9.0]])
    assert FiniteCounts(TASKS).fit(statistics).tasks == 0
    fit = FiniteCounts(TASKS, smoothing=0.0, level=0.95).fit(statistics)
    np.testing.assert_allclose(fit.prior.probs, [0.5, 0.5, 0.0])
    assert FiniteCounts(TASKS, level=0.95).fit(statistics[:1] + statistics[1:]) == FiniteCounts(
        TASKS, level=0.95
    ).fit(statistics)
    assert FiniteCounts(TASKS, level=0.95).fit_prefixes(statistics, [2]) == [
        FiniteCounts(TASKS, level=0.95).fit(statistics[:2])
    ]
    with raises("level", "must lie"):
        FiniteCounts(TASKS, level=0.4)
    with raises("statistics", "estimator"):
        FiniteCounts(problems.discrete().prior).fit(statistics)


def test_finite_finds_the_prior_of_the_discrete_experiment(seed):
    """Chi-square of the counts; false alarms with probability 1e-4, and the uniform prior is
    refused.
    """
    prior = problems.discrete().prior
    run = pw.simulate(prior, pw.Uniform(), horizon=10, tasks=3000, seed=seed, keep=True)
    fit = FiniteCounts(prior, smoothing=0.0).fit(run)
    counts = fit.prior.probs * fit.tasks
    assert stats.chisquare(counts, prior.probs * fit.tasks).pvalue > 1e-4
    assert stats.chisquare(counts, np.full(16, fit.tasks / 16)).pvalue < 1e-4
    assert fit.left_out == 3000 - fit.tasks > 0


def test_replicate_seeds_differ():
    assert len({replicate_seed(seed, r) for seed in range(20) for r in range(50)}) == 1000


# ---- arms without pulls, pulls that were not uniform


@pytest.mark.parametrize("variant", ["two-round", "full", "known-mean", "no-cov"])
def test_nothing_is_known_of_an_arm_never_pulled(variant, seed):
    run = pw.simulate(
        PRIOR,
        pw.Uniform(),
        horizon=4,
        tasks=50,
        seed=seed,
        keep=True,
        available=np.array([True, False, True]),
    )
    known = {"mean": PRIOR.mean} if variant == "known-mean" else {}
    fit = GaussianMoments(variant, noise_var=PRIOR.noise_var, arms=3, **known).fit(run)
    mean, cov = fit.std_errors["mean"], fit.std_errors["cov"]
    assert fit.at_boundary
    assert fit.uncertainty is None
    assert any("no task pulled arm 1" in note for note in fit.warnings)
    assert np.isfinite(mean[[0, 2]]).all()
    assert mean[1] == (0.0 if variant == "known-mean" else np.inf)
    if variant == "no-cov":
        assert fit.prior.mean[1] == 0.0  # as in the paper
        assert (cov == 0.0).all()  # assumed
    else:
        assert np.isinf(cov[1]).all()
        assert np.isfinite(cov[np.ix_([0, 2], [0, 2])]).all()


def test_single_pulls_that_are_not_uniform_are_noticed(seed):
    """Totals alone tell; false alarms with probability 1e-3 a fit, so that 5 of 20 have probability
    below 2e-11.
    """
    prior = pw.GaussianPrior([2.0, 0.0, 0.0], np.eye(3))
    estimator = GaussianMoments("no-cov", noise_var=1.0)
    biased = pw.simulate(prior, pw.ThompsonSampling(), horizon=3, tasks=200, seed=seed, keep=True)
    assert any("not uniform" in note for note in estimator.fit(biased).warnings)
    calm = [
        pw.simulate(prior, pw.Uniform(), horizon=3, tasks=200, seed=seed + k, keep=True)
        for k in range(20)
    ]
    assert sum(bool(estimator.fit(run).warnings) for run in calm) < 5


def test_groups_of_successes_are_tested_too(seed):
    prior = pw.BetaPrior([8.0, 2.0, 2.0], [2.0, 8.0, 8.0])

    def warned(exploration):
        run = explored(prior, exploration, 200, 10, seed=seed)
        return any(
            "not uniform" in note
            for note in BetaMoments().fit(BetaStatistics.from_run(run, arms=3).grouped()).warnings
        )

    assert warned(pw.ThompsonSampling())
    assert not warned(pw.Uniform())
    assert not warned(OneArmBlocks(3))


def test_linear_moments_count_the_arms_of_the_contexts(seed):
    """Two of three arms, evenly: not uniform, though uniform among those that were pulled."""
    prior = pw.LinearGaussianPrior(np.zeros(2), np.eye(2), contexts=pw.SphereContexts(arms=3))
    run = pw.simulate(
        prior,
        pw.Uniform(),
        horizon=6,
        tasks=200,
        seed=seed,
        keep=True,
        available=np.array([True, True, False]),
    )
    assert any("not uniform" in note for note in LinearMoments(prior.contexts).fit(run).warnings)


@pytest.mark.parametrize("noise", [np.inf, np.nan, [[1.0, 2.0]], 0.0])
def test_impossible_noise_is_refused(noise):
    with raises("noise_var", "must be"):
        GaussianMoments(noise_var=noise)
