"""Statistics merge exactly, keep their checks, and fits round-trip."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from raising import raises

import priorwise as pw
import priorwise.core
import priorwise.families
import priorwise.meta
from priorwise.families.beta.statistics import BetaGroups, BetaStatistics
from priorwise.families.finite.statistics import FiniteStatistics
from priorwise.families.gaussian.groups import GaussianGroups, distinct_rows
from priorwise.families.gaussian.statistics import GaussianStatistics
from priorwise.families.linear.statistics import LinearStatistics
from priorwise.fitting.fits import PriorFit, Uncertainty
from priorwise.fitting.newton import positive_root
from priorwise.theory.numerics import project_psd

ARMS = 3


@pytest.fixture
def run(seed: int) -> pw.Run:
    prior = pw.GaussianPrior([0.5, 0.0, -0.2], np.eye(ARMS))
    return pw.simulate(prior, pw.ThompsonSampling(), horizon=7, tasks=400, seed=seed, keep=True)


def literal(run: pw.Run, steps: slice = slice(None)) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    out = np.zeros((3, run.tasks, ARMS))
    for t in range(run.tasks):
        for action, reward in zip(run.actions[t, steps], run.rewards[t, steps], strict=True):
            out[:, t, action] += (1.0, reward, reward**2)
    return tuple(out)


class TestGaussian:
    def test_from_run_sums_every_pull(self, run: pw.Run) -> None:
        for steps, chosen in ((None, slice(None)), (2, slice(2)), (slice(1, 6, 2), slice(1, 6, 2))):
            stats = GaussianStatistics.from_run(run, arms=ARMS, steps=steps)
            for got, want in zip(
                (stats.pulls, stats.sums, stats.squares), literal(run, chosen), strict=True
            ):
                np.testing.assert_allclose(got, want, atol=1e-12)

    def test_subsets_and_sums_of_tasks(self, run: pw.Run) -> None:
        stats = GaussianStatistics.of(run, arms=ARMS)
        again = stats[:150] + stats.take(np.arange(400) >= 150)
        assert len(again) == again.tasks == 400
        for name in ("pulls", "sums", "squares"):
            np.testing.assert_array_equal(getattr(again, name), getattr(stats, name))
        np.testing.assert_array_equal(stats.take([3, 3, 1]).sums, stats.sums[[3, 3, 1]])
        assert stats[5].tasks == 1

    def test_groups_hold_the_sums_of_their_tasks(self, run: pw.Run) -> None:
        stats = GaussianStatistics.of(run, arms=ARMS)
        groups = stats.grouped()
        assert groups.total == 400
        assert len(groups) == len(np.unique(stats.pulls, axis=0))
        for g, pulls in enumerate(groups.pulls):
            own = (stats.pulls == pulls).all(axis=1)
            assert groups.tasks[g] == own.sum()
            np.testing.assert_allclose(groups.sums[g], stats.sums[own].sum(axis=0))
            np.testing.assert_allclose(groups.products[g], stats.sums[own].T @ stats.sums[own])
            np.testing.assert_allclose(groups.squares[g], stats.squares[own].sum(axis=0))

    def test_merged_groups_are_those_of_the_whole(self, run: pw.Run) -> None:
        stats = GaussianStatistics.of(run, arms=ARMS)
        merged, whole = stats[:123].grouped() + stats[123:].grouped(), stats.grouped()
        for name in ("pulls", "tasks", "sums", "products", "squares"):
            np.testing.assert_allclose(getattr(merged, name), getattr(whole, name), atol=1e-9)

    def test_groups_given_by_hand_merge_equal_rows(self) -> None:
        groups = GaussianGroups(
            [[1, 0], [1, 0]], [1, 2], [[1.0, 0], [4.0, 0]], [[[1.0, 0], [0, 0]], [[8.0, 0], [0, 0]]]
        )
        assert len(groups) == 1
        assert groups.sums.tolist() == [[5.0, 0.0]]
        assert groups.tasks.tolist() == [3.0]

    def test_hashed_rows_equal_sorted_rows(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        for rows in (
            rng.integers(0, 3, (500, 4)) * 1e7,
            rng.integers(0, 2, (500, 70)) * 0.1,
            rng.integers(0, 4, (500, 3)),
        ):
            distinct, place = distinct_rows(rows.astype(float))
            np.testing.assert_array_equal(distinct[place], rows)
            assert len(distinct) == len(np.unique(rows, axis=0))

    def test_estimates_become_precisions(self) -> None:
        stats = GaussianStatistics.from_estimates(
            [[1.0, np.nan], [2.0, 3.0]], [[0.5, np.nan], [1.0, 2.0]], noise_var=4.0
        )
        assert stats.pulls.tolist() == [[16.0, 0.0], [4.0, 1.0]]
        assert stats.sums.tolist() == [[16.0, 0.0], [8.0, 3.0]]
        assert not stats.counted
        assert not (stats + GaussianStatistics([[1, 1]], [[0.0, 0.0]])).counted
        assert not stats[:1].grouped().counted

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (
                {"pulls": [[1.5]], "sums": [[1.0]]},
                ("pulls", "must be non-negative whole"),
            ),
            ({"pulls": [[-1]], "sums": [[1.0]]}, ("pulls", "must be non-negative")),
            ({"pulls": [[0]], "sums": [[1.0]]}, ("sums", "must be 0 where pulls is 0")),
            ({"pulls": [[1, 2]], "sums": [[1.0]]}, ("sums", "must have shape")),
            ({"pulls": [[1]], "sums": [[np.nan]]}, ("sums", "must be finite")),
            (
                {"pulls": [[2]], "sums": [[2.0]], "squares": [[1.0]]},
                ("squares", "must be at least"),
            ),
            ({"pulls": np.empty((0, 2)), "sums": np.empty((0, 2))}, ("pulls", "holds no task")),
        ],
    )
    def test_bad_input_is_named(self, arguments: dict, message: str | tuple[str, str]) -> None:
        with raises(message):
            GaussianStatistics(**arguments)

    def test_units_of_precision_are_positive_and_agree(self) -> None:
        for noise_var in (-1.0, 0.0):
            with raises("noise_var", "must be positive"):
                GaussianStatistics.from_estimates([1.0], [1.0], noise_var=noise_var)
        one, other = (
            GaussianStatistics.from_estimates([1.0], [1.0], noise_var=v) for v in (1.0, 2.0)
        )
        counted = GaussianStatistics([[1]], [[1.0]])
        assert (one + counted).unit == (counted + one)[:1].grouped().unit == 1.0
        for a, b in ((one, other), (one.grouped(), other.grouped())):
            with raises("noise_var", "estimates"):
                a + b

    def test_arrays_are_kept_row_by_row(self) -> None:
        n = np.asfortranarray(np.ones((4, 3)))
        stats = GaussianStatistics(n, n, n)
        assert all(each.flags.c_contiguous for each in (stats.pulls, stats.sums, stats.squares))
        n[0, 0] = 5.0
        assert stats.pulls[0, 0] == 1.0

    def test_sum_joins_many(self, run: pw.Run) -> None:
        stats = GaussianStatistics.of(run, arms=ARMS)
        np.testing.assert_array_equal(
            sum([stats[:100], stats[100:300], stats[300:]]).sums, stats.sums
        )
        assert sum([stats[:100].grouped(), stats[100:].grouped()]).total == 400
        beta = BetaStatistics([[1, 0]], [[3, 1]]).grouped()
        assert sum([beta, beta]).total == 2
        with pytest.raises(TypeError):
            3 + stats  # type: ignore[operator]

    @pytest.mark.parametrize("index", [np.ones(3, dtype=bool), [400], [-401], [0.5]])
    def test_tasks_that_are_not_there(self, run: pw.Run, index) -> None:
        with pytest.raises(IndexError, match=r"400 tasks|mask or whole numbers"):
            GaussianStatistics.of(run, arms=ARMS).take(index)

    def test_unlike_parts_do_not_join(self) -> None:
        one = GaussianStatistics([[1]], [[1.0]], [[1.0]])
        with raises("other", "squares"):
            one + one.without_squares()
        with raises("other", "must have pulls of shape (1"):
            one + GaussianStatistics([[1, 0]], [[1.0, 0]], [[1.0, 0]])
        with pytest.raises(TypeError):
            one + 3  # type: ignore[operator]
        with raises("actions", "must lie in 0..1"):
            GaussianStatistics.from_trajectory([[2]], [[0.0]], arms=2)

    def test_they_cannot_be_written_to(self) -> None:
        stats = GaussianStatistics([[1]], [[1.0]])
        with pytest.raises(ValueError, match="read-only"):
            (stats + stats).sums[0] = 2.0


class TestBeta:
    def test_counts_and_groups(self, seed: int) -> None:
        run = pw.simulate(
            pw.BetaPrior([1, 2], [1, 3]),
            pw.ThompsonSampling(),
            horizon=5,
            tasks=300,
            seed=seed,
            keep=True,
        )
        stats = BetaStatistics.from_run(run, arms=2)
        assert stats.pulls.sum() == 1500
        assert stats.successes.sum() == run.rewards.sum()
        groups = stats.grouped()
        assert groups.total == 300
        assert groups.arms == 2
        for arm in range(2):
            for s, n, tasks in zip(*groups.of_arm(arm), strict=True):
                assert tasks == ((stats.successes[:, arm] == s) & (stats.pulls[:, arm] == n)).sum()
        merged = stats[:77].grouped() + stats[77:].grouped()
        for name in ("arm", "successes", "pulls", "tasks"):
            np.testing.assert_array_equal(getattr(merged, name), getattr(groups, name))

    def test_errors(self) -> None:
        with raises("successes", "must not exceed pulls"):
            BetaStatistics([[2]], [[1]])
        with raises("rewards", "must be 0 or 1"):
            BetaStatistics.from_trajectory([[0]], [[0.5]], arms=1)
        with raises("arm", "each arm"):
            BetaGroups([1], [0], [0], [3])


def test_linear_normal_equations(seed: int) -> None:
    prior = pw.LinearGaussianPrior(np.ones(3), np.eye(3), contexts=pw.SphereContexts(arms=2))
    run = pw.simulate(prior, pw.ThompsonSampling(), horizon=6, tasks=50, seed=seed, keep=True)
    stats = LinearStatistics.of(run)
    x, r = run.trajectory.log[7], run.rewards[7]
    np.testing.assert_allclose(stats.gram[7], x.T @ x)
    np.testing.assert_allclose(stats.moments[7], x.T @ r)
    assert stats.squares[7] == pytest.approx(r @ r)
    assert stats.pulls[7] == 6
    assert (stats[:20] + stats[20:]).tasks == 50
    assert LinearStatistics.from_run(run, steps=2).pulls.tolist() == [2.0] * 50


def test_finite_log_likelihood_has_its_constants() -> None:
    prior = pw.FinitePrior(
        [[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5], noise="gaussian", noise_var=[1.0, 4.0]
    )
    stats = FiniteStatistics.from_trajectory([[0, 1]], [[0.5, 2.0]], prior)

    def log_normal(r: float, m: float, v: float) -> float:
        return -0.5 * (np.log(2 * np.pi * v) + (r - m) ** 2 / v)

    want = [
        log_normal(0.5, 1, 1) + log_normal(2, 0, 4),
        log_normal(0.5, 0, 1) + log_normal(2, 1, 4),
    ]
    np.testing.assert_allclose(stats.log_likelihood, [want])
    exact = FiniteStatistics.from_trajectory(
        [[0, 1]], [[1.0, 0.0]], pw.FinitePrior([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5])
    )
    assert exact.log_likelihood.tolist() == [[0.0, -np.inf]]
    with raises("log_likelihood", "finite"):
        FiniteStatistics([[np.inf]])


class Shaken(Uncertainty):
    family = "test-shaken"

    def __init__(self, width: float) -> None:
        self.width = width

    def draw(self, prior, rng, n):
        return [
            pw.GaussianPrior(prior.mean + self.width * rng.standard_normal(prior.arms), prior.cov)
            for _ in range(n)
        ]


def test_fits_round_trip_and_draw(seed: int) -> None:
    prior = pw.GaussianPrior([0.1, 0.2], np.eye(2))
    stats = GaussianStatistics([[1, 1]], [[0.0, 0.0]])
    fit = PriorFit(
        prior,
        "by hand",
        5,
        std_errors={"mean": [1 / 3, np.nan]},
        warnings=["beware"],
        uncertainty=Shaken(0.5),
        statistics=stats,
    )
    again = PriorFit.load(fit.to_json())
    assert again == fit
    assert again.statistics is None
    assert fit.statistics is stats
    assert again.warnings == ("beware",)
    np.testing.assert_array_equal(again.std_errors["mean"], [1 / 3, np.nan])
    first, second = (each.draw(np.random.default_rng(seed), 3) for each in (fit, again))
    assert first == second
    assert len(first) == 3
    assert "from 5 tasks" in str(fit)
    assert "warning: beware" in str(fit)
    with raises("fit", "no law of plausible priors"):
        PriorFit(prior, "by hand", 5).draw(np.random.default_rng(seed), 1)
    with raises("rng", "Generator"):
        fit.draw(seed, 1)  # type: ignore[arg-type]


def test_a_process_that_fitted_nothing_reads_a_fit(tmp_path: Path) -> None:
    data = BetaStatistics(successes=[[3], [0], [1], [4]], pulls=[[5], [5], [5], [5]])
    fit = pw.BetaMarginalLikelihood().fit(data)
    fit.save(tmp_path / "fit.json")
    code = "import sys, priorwise as pw; fit = pw.PriorFit.load(sys.argv[1]); fit.save(sys.argv[2])"
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "fit.json"), str(tmp_path / "again.json")],
        check=True,
    )
    assert PriorFit.load(tmp_path / "again.json") == fit


def test_json_finds_every_value_that_is_not_imported_yet() -> None:
    for package in (priorwise.core, priorwise.families, priorwise.meta):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    ours = {
        name: kind.__module__
        for name, kind in pw.core.Serializable._families.items()
        if kind.__module__.startswith("priorwise.")
    }
    homes = pw.core.Serializable._homes
    assert {name: ours[name] for name in homes} == homes
    code = (
        "import priorwise as pw; from priorwise.families.registry import discover; discover(); "
        "print(*pw.core.Serializable._families)"
    )
    fresh = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert set(ours) == set(homes) | set(fresh.stdout.split())


def test_json_is_standard() -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    errors = {"mean": [1.0, np.nan], "cov": [[np.inf, np.nan], [np.inf, 2.0]], "var": np.nan}
    for value in (-np.inf, np.nan, 1.5):
        fit = PriorFit(
            pw.GaussianPrior([0.0], [[1.0]]), "by hand", 5, std_errors=errors, log_likelihood=value
        )
        json.loads(fit.to_json(), parse_constant=refuse)
        again = PriorFit.load(fit.to_json())
        for name, array in errors.items():
            np.testing.assert_array_equal(again.std_errors[name], array)
        np.testing.assert_array_equal(again.log_likelihood, value)


def test_projection_is_the_nearest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((4, 4))
    even = (matrix + matrix.T) / 2
    found = project_psd(matrix)
    assert found.clipped
    assert np.linalg.eigvalsh(found.matrix)[0] > -1e-12
    for _ in range(50):
        root = np.linalg.cholesky(found.matrix + 1e-9 * np.eye(4)) + 0.05 * rng.standard_normal(
            (4, 4)
        )
        assert np.linalg.norm(root @ root.T - even) >= np.linalg.norm(found.matrix - even) - 1e-6
    assert not project_psd(np.eye(2)).clipped


def test_root_of_an_inverse(seed: int) -> None:
    root = np.random.default_rng(seed).standard_normal((5, 5))
    precision = root @ root.T + 0.1 * np.eye(5)
    inverse, determined = positive_root(precision)
    np.testing.assert_allclose(inverse @ inverse.T @ precision, np.eye(5), atol=1e-8)
    assert determined
    assert not positive_root(np.diag([1.0, 0.0]))[1]
    assert not positive_root(np.array([[1e10, 1e9], [1e9, -1e3]]))[1]  # and no overflow on the way
