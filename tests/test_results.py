"""How results leave the library: tidy tables, figures and text, with the same names everywhere."""

from __future__ import annotations

import errno
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from raising import raises

import priorwise as pw
from priorwise.core.estimates import Estimate, plus_minus
from priorwise.figures.curves import Curve, learning_curves
from priorwise.figures.style import Picture

BETA = pw.BetaPrior([2.0, 2.0, 2.0], [30.0, 30.0, 30.0])
POLICIES = {"ts": pw.ThompsonSampling(), "greedy": pw.Greedy(), "uniform": pw.Uniform()}
OPTIONS: dict[str, Any] = {"horizon": 20, "tasks": 600}


@pytest.fixture(scope="module")
def comparison() -> pw.Comparison:
    from priorwise.testing import base_seed

    return pw.compare(BETA, POLICIES, seed=base_seed(), **OPTIONS)


class Noted:
    """What a figure would show, caught before it is drawn."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.texts: list[str] = []
        self.lines: dict[str, list[np.ndarray]] = {}

        def caught(figure: Any, *how: Any) -> Picture:
            for axes in figure.axes:
                said = [axes.get_title(loc="left"), axes.get_xlabel(), axes.get_ylabel()]
                self.texts += said + [
                    each.get_text() for each in (*axes.texts, *axes.get_yticklabels())
                ]
                self.lines[said[0]] = [np.asarray(line.get_ydata()) for line in axes.lines]
            self.texts += [each.get_text() for each in figure.texts]
            return Picture()

        monkeypatch.setattr("priorwise.figures.style.render", caught)

    @property
    def said(self) -> str:
        return "\n".join(self.texts)


def png(picture: Picture) -> None:
    assert picture["png"].startswith(b"\x89PNG")
    assert b"</svg>" in picture["svg"][-20:]


def test_a_run_is_one_row(comparison: pw.Comparison) -> None:
    run = comparison.runs["ts"]
    row = run.to_frame().iloc[0]
    assert (row["reward"], row["std_error"]) == (run.mean_reward, run.std_error)
    assert (row["regret"], row["regret_std_error"]) == (run.mean_regret, run.regret_std_error)
    assert (row["tasks"], row["horizon"], row["seed"]) == (600, 20, run.seed)


def test_a_comparison_is_one_row_for_each_policy(comparison: pw.Comparison) -> None:
    frame = comparison.to_frame().set_index("policy")
    assert list(frame.index) == list(POLICIES)
    for name, run in comparison.runs.items():
        gap = comparison.difference(name, comparison.best)
        assert (frame.loc[name, "reward"], frame.loc[name, "std_error"]) == (
            run.mean_reward,
            run.std_error,
        )
        assert (frame.loc[name, "minus_best"], frame.loc[name, "minus_best_std_error"]) == (
            gap.mean,
            gap.std_error,
        )


def test_curves_are_tidy(comparison: pw.Comparison) -> None:
    frame = comparison.to_frame(by_step=True)
    assert len(frame) == 3 * 20
    greedy = frame[frame["policy"] == "greedy"]
    assert greedy["step"].tolist() == list(range(1, 21))
    alone = comparison.runs["greedy"].by_step
    np.testing.assert_array_equal(
        greedy["cumulative_regret_std_error"], alone.cumulative_regret_std_error
    )
    np.testing.assert_array_equal(greedy["std_error"], alone.reward_std_error)
    np.testing.assert_array_equal(alone.to_frame()["expected_reward"], alone.expected_reward)


def test_tables_need_no_pandas_and_frames_say_so(
    comparison: pw.Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert comparison.table()["policy"] == list(POLICIES)
    with pytest.raises(
        ModuleNotFoundError, match=r"needs pandas: pip install pandas; table\(\) returns the same"
    ):
        comparison.to_frame()


def test_figures_of_runs_and_comparisons(
    comparison: pw.Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    png(comparison.figure())
    png(comparison.runs["ts"].figure(label="ts"))
    shown = Noted(monkeypatch)
    comparison.figure("Headlines in June", note="Mine.")
    for text in (
        *POLICIES,
        "Headlines in June",
        "±2 standard errors",
        "Mine.",
        "expected reward of the chosen arm",
        "Cumulative regret",
    ):
        assert text in shown.said
    for drawn, run in zip(shown.lines["Cumulative regret"], comparison.runs.values(), strict=True):
        np.testing.assert_array_equal(drawn, run.by_step.cumulative_regret)


def test_the_figure_of_clicks_is_not_noise(
    comparison: pw.Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rewards of 0 and 1 scatter from pull to pull; the expected reward of the chosen arm does so
    far less.
    """
    shown = Noted(monkeypatch)
    comparison.figure()
    for drawn, run in zip(
        shown.lines["Reward of each pull"], comparison.runs.values(), strict=True
    ):
        assert np.diff(drawn).std() < 0.5 * np.diff(run.by_step.reward).std()


def test_without_a_best_arm_the_figure_shows_rewards(
    comparison: pw.Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = comparison.runs["ts"]
    plain = replace(
        run,
        by_step=type(run.by_step)(run.by_step.reward, run.by_step.reward_std_error),
        mean_regret=None,
    )
    shown = Noted(monkeypatch)
    learning_curves([Curve("ts", plain, "ts")], "Title")
    assert "Cumulative reward" in shown.said
    np.testing.assert_array_equal(shown.lines["Reward of each pull"][0], run.by_step.reward)
    assert np.isnan(plain.by_step.table()["regret"]).all()


META: dict[str, Any] = {"episodes": 12, "replicates": 5, "horizon": 4, "jobs": 1}


@pytest.fixture(scope="module")
def learned() -> dict[str, pw.meta.MetaRun]:
    from priorwise.testing import base_seed

    learners = {"ts": pw.FixedPrior(pw.ThompsonSampling()), "oracle": pw.FixedPrior(pw.Greedy())}
    return {
        name: pw.simulate_meta(BETA, each, seed=base_seed(), **META)
        for name, each in learners.items()
    }


def test_a_meta_run_is_one_row_for_each_episode(learned: dict[str, pw.meta.MetaRun]) -> None:
    run = learned["ts"]
    frame = run.to_frame()
    assert frame["episode"].tolist() == list(range(1, 13))
    np.testing.assert_array_equal(frame["reward"], run.rewards.mean(axis=0))
    np.testing.assert_array_equal(frame["std_error"], run.std_error)
    np.testing.assert_allclose(
        frame["average"], (np.cumsum(run.rewards, axis=1) / np.arange(1, 13)).mean(axis=0)
    )
    assert frame["average_std_error"].iloc[-1] == pytest.approx(run.average().std_error)
    alone = run.running_average().to_frame()
    np.testing.assert_array_equal(alone["reward"], frame["average"])
    long = run.to_frame(by_replicate=True)
    assert (
        long.pivot(index="replicate", columns="episode", values="reward").to_numpy().tolist()
        == run.rewards.tolist()
    )


def test_figure_of_a_meta_run(
    learned: dict[str, pw.meta.MetaRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, oracle = learned.values()
    png(run.figure())
    png(run.figure("Learning", label="ts", others={"oracle": oracle}))
    shown = Noted(monkeypatch)
    run.figure("Learning", label="ts", others={"oracle": oracle})
    for text in ("Learning", "ts", "oracle", "Short of oracle", "standard errors over replicates"):
        assert text in shown.said
    short = shown.lines["Short of oracle"][0]
    assert short[-1] == pytest.approx(run.shortfall(oracle).mean)
    assert short[2] == pytest.approx(run.shortfall(oracle, 1, 3).mean)
    with raises("others", "must have names of their own, but"):
        run.figure(label="ts", others={"ts": oracle})
    other = pw.simulate_meta(BETA, pw.FixedPrior(pw.Greedy()), seed=run.seed + 1, **META)
    with raises("others['oracle']", "must have seed=0, as this run"):
        run.figure(others={"oracle": other})


CLICKED, SHOWN = (
    [[12, 9, 0], [5, 12, 6], [9, 6, 5], [14, 5, 0], [21, 40, 25]],
    [[120, 80, 0], [90, 150, 60], [60, 70, 65], [200, 40, 0], [300, 310, 290]],
)
CLICKS = pw.BetaStatistics(CLICKED, SHOWN)


def test_statistics_print_in_one_line(seed: int) -> None:
    assert str(CLICKS) == "BetaStatistics(tasks=5, arms=3, pulls=1,835)"
    assert len(str(sum([CLICKS] * 500))) < 100
    run = pw.simulate(
        pw.GaussianPrior([0.0, 1.0], np.eye(2)),
        pw.Uniform(),
        horizon=3,
        tasks=50,
        seed=seed,
        keep=True,
    )
    assert (
        str(pw.GaussianStatistics.from_run(run, arms=2))
        == "GaussianStatistics(tasks=50, arms=2, pulls=150)"
    )


def moving(correlation: float, seed: int) -> pw.PriorFit:
    """Fit arms of one task that move together so much."""
    prior = pw.ExchangeableGaussianPrior(0.2, 1.0, correlation, 0.1).for_arms(3)
    run = pw.simulate(prior, pw.Uniform(), horizon=12, tasks=400, seed=seed, keep=True)
    return pw.GaussianMarginalLikelihood("exchangeable", noise_var=0.1).fit(run)


def test_printing_a_fit_shows_its_numbers() -> None:
    fit = pw.BetaMarginalLikelihood("exchangeable").fit(CLICKS)
    said = str(fit)
    assert "from 5 tasks" in said
    for name in ("alpha", "beta", "mean", "concentration"):
        assert isinstance(fit.std_errors[name], float)
        assert name in said
    mean = fit.prior.alpha / (fit.prior.alpha + fit.prior.beta)
    assert f"{mean:.4f} ± {fit.std_errors['mean']:.4f}" in said
    assert f"{fit.prior.alpha:.0f} ± {fit.std_errors['alpha']:.0f}" in said
    assert "arms of one task are taken as independent" in said
    again = pw.PriorFit.load(fit.to_json())
    assert again == fit
    assert str(again) == said


def test_tiny_numbers_keep_their_digits() -> None:
    assert plus_minus(1.0123e-21, 2.34e-22) == "1.01e-21 ± 2.3e-22"
    assert plus_minus(1.0123e-6, 2.34e-7) == "0.00000101 ± 0.00000023"
    assert plus_minus(2.0, 1e-9) == "2.0000000000 ± 0.0000000010"


def test_an_exchangeable_correlation_is_read_back_in_words(seed: int) -> None:
    fit = moving(0.8, seed)
    number = f"correlation {fit.prior.correlation:.2f} ± {fit.std_errors['correlation']:.2f}"
    assert f"arms of one task move together: {number}" in str(fit)
    none = pw.ExchangeableGaussianPrior(0.0, 1.0, 0.02)
    assert none.in_words({"correlation": 0.05}) == [
        "no sign that arms of one task move together: correlation 0.02 ± 0.05"
    ]
    assert (
        "move apart: correlation -0.30 ± 0.05"
        in pw.ExchangeableGaussianPrior(0.0, 1.0, -0.3).in_words({"correlation": 0.05})[0]
    )
    assert "correlation 0.50," in pw.ExchangeableGaussianPrior(0.0, 1.0, 0.5).in_words({})[0]


def test_printing_a_fit_tells_what_is_out_of_the_ordinary() -> None:
    prior = pw.GaussianPrior([0.123456, 1.0], [[1.0, 0.25], [0.25, 2.0]])
    errors = {"mean": [0.0123, np.nan], "cov": [[0.1, 0.2], [0.2, 0.3]]}
    said = str(
        pw.PriorFit(
            prior,
            "by hand",
            7,
            3,
            at_boundary=True,
            converged=False,
            std_errors=errors,
            warnings=["beware"],
        )
    )
    for text in (
        "7 tasks, 3 left out",
        "0.123 ± 0.012, 1",
        "1.00  0.25",
        "standard errors 0.1 to 0.3",
        "at the boundary",
        "not converged",
    ):
        assert text in said
    assert said.endswith("warning: beware")
    # without standard errors, the prior's own numbers
    assert "mean       0.1235, 1" in str(pw.PriorFit(prior, "by hand", 7))
    many = str(
        pw.PriorFit(
            pw.GaussianPrior(np.zeros(30), np.eye(30)),
            "by hand",
            7,
            std_errors={"mean": np.ones(30), "cov": np.eye(30)},
        )
    )
    assert "(30 in all)" in many
    assert "(30 rows)" in many
    assert max(map(len, many.splitlines())) < 140


def test_a_fit_is_one_row_for_each_number() -> None:
    prior = pw.GaussianPrior([0.5, 1.0], [[1.0, 0.25], [0.25, 2.0]])
    frame = pw.PriorFit(
        prior, "by hand", 7, std_errors={"mean": [0.1, np.nan], "cov": [[0.1, 0.2], [0.2, 0.3]]}
    ).to_frame()
    assert frame["parameter"].tolist() == ["mean"] * 2 + ["cov"] * 4
    last = frame.iloc[-1]
    assert (last["row"], last["column"], last["value"], last["std_error"]) == (1, 1, 2.0, 0.3)
    assert frame["column"].isna().tolist() == [True, True, False, False, False, False]
    clicks = pw.BetaMarginalLikelihood("exchangeable").fit(CLICKS)
    assert clicks.to_frame().set_index("parameter").loc["mean", "value"] == pytest.approx(
        clicks.prior.mean
    )


def test_figure_of_a_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = pw.BetaMarginalLikelihood("exchangeable").fit(CLICKS)
    png(fit.figure())
    shown = Noted(monkeypatch)
    fit.figure("Headlines")
    for text in ("Headlines", "any arm", f"{fit.prior.mean:.3g}", "20 priors that the data leave"):
        assert text in shown.said
    shown.texts.clear()
    linear = pw.LinearGaussianPrior([1.0, 2.0], np.eye(2), contexts=pw.SphereContexts(arms=3))
    pw.PriorFit(linear, "by hand", 3).figure()
    assert "feature 1" in shown.said
    assert "2.0" in shown.said or "2" in shown.texts
    assert "plausible" not in shown.said
    pw.PriorFit(pw.FinitePrior([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5]), "by hand", 3).figure()
    assert "arm 1" in shown.said


@pytest.mark.parametrize(("reward", "said"), [(4.52, "no more"), (4.51, "hardly more")])
def test_a_ladder_that_is_vacuous_says_first_what_may_be_lost(
    reward: float, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"worst case": 400.0, "posteriors": 178.0, "actions": 23.0, "coupled trajectories": 1.0}
    rungs = tuple(
        pw.sensitivity.Rung(name, delta, 0.0, reward, 0.0, "by hand")
        for name, delta in names.items()
    )
    gap, distance = pw.core.Estimate(-0.011, 0.002), pw.sensitivity.Distance(1.0, "exact", 0.0, 1.0)
    ladder = pw.sensitivity.Ladder(
        rungs,
        gap,
        pw.core.Estimate(20.0, 0.1),
        4.52,
        distance,
        "ThompsonSampling",
        200,
        exact=False,
    )
    first = (
        "Believing the wrong prior, ThompsonSampling earns 0.011 ± 0.002 less in 200 pulls "
        "(measured)."
    )
    second = (
        f"The bounds say {said} than that of any two policies, 4.52: only the measured gap speaks "
        "here."
    )
    lost = "In 200 pulls the wrong prior may lose at most 4.52 (what holds for any two policies)."
    assert ladder.summary == f"{lost} {first} {second}"
    assert str(ladder).startswith(f"{lost}\n{first}\n{second}\n")
    shown = Noted(monkeypatch)
    ladder.figure()
    assert first in shown.said
    unseen = replace(ladder, gap=pw.core.Estimate(0.001, 0.002))
    assert (
        "Believing the wrong prior, ThompsonSampling earns the same in 200 pulls, to within 0.004."
        in unseen.summary
    )


def test_a_ladder_sums_up_its_best_bound(seed: int) -> None:
    p = pw.FinitePrior([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5], noise="bernoulli")
    q = pw.FinitePrior([[1.0, 0.0], [0.0, 1.0]], [0.6, 0.4], noise="bernoulli")
    ladder = pw.sensitivity_ladder(p, q, pw.ThompsonSampling(), 3, seed=seed)
    least = min(ladder.rungs, key=lambda rung: rung.reward)
    assert f"The smallest bound on the difference is {least.reward:.4g} (" in ladder.summary
    assert ladder.gap.mean == 0.0
    assert ladder.summary.startswith(
        "Believing the wrong prior, ThompsonSampling earns the same in 3 pulls. "
    )
    wide = pw.sensitivity.Interval(Estimate(-9.0, 0.0), Estimate(0.01, 0.0))
    ends = f"it lies between {-least.reward:.4g} and 0.01."  # no wider than the bound itself
    assert replace(ladder, interval=wide).summary.endswith(ends)
    frame = ladder.to_frame().set_index("rung")
    assert frame.loc["actions", "delta"] == ladder["actions"].delta
    assert frame.loc["actions", "reward"] == ladder["actions"].reward
    assert frame.loc["measured gap", "reward"] == ladder.gap.mean
    assert frame.loc["any two policies", "reward"] == ladder.trivial
    png(ladder.figure())


def test_choices_are_tables_too(seed: int) -> None:
    fit = pw.BetaMarginalLikelihood("exchangeable").fit(CLICKS)
    found = pw.compare_policies(
        fit,
        {"greedy": pw.Greedy(), "uniform": pw.Uniform()},
        horizon=5,
        tasks=64,
        draws=3,
        seed=seed,
        arms=2,
    )
    assert str(found).split()[0] == "reward"
    frame = found.to_frame().set_index("policy")
    assert frame.loc["uniform", "reward"] == found.estimate("uniform").mean
    assert frame.loc["uniform", "minus_best"] == found.difference("uniform", found.best).mean
    models = {
        "one for all": pw.BetaMarginalLikelihood("exchangeable"),
        "own": pw.BetaMarginalLikelihood(),
    }
    compared = pw.compare_models(models, CLICKS, folds=2, seed=seed)
    assert compared.to_frame()["model"].tolist() == list(models)
    assert compared.to_frame()["log_likelihood"].iloc[1] == compared.estimate("own").mean


def test_a_picture_is_saved_by_its_suffix(comparison: pw.Comparison, tmp_path: Path) -> None:
    picture = comparison.figure()
    assert picture.save(tmp_path / "a.png").read_bytes() == picture["png"]
    assert picture.save(str(tmp_path / "b.SVG")).read_bytes() == picture["svg"]
    with raises("path", "must end in .png or"):
        picture.save("c.pdf")
    assert len(repr(picture)) < 100
    (tmp_path / "d.png").mkdir()
    with pytest.raises(IsADirectoryError, match=r"d\.png is a directory"):
        picture.save(tmp_path / "d.png")


def test_a_picture_that_cannot_be_written_leaves_the_one_before(
    comparison: pw.Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept.png"
    kept.write_bytes(b"before")

    def full(path: Path, content: bytes) -> int:
        with path.open("wb") as file:
            file.write(content[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match=r"kept\.png") as caught:
        comparison.figure().save(kept)
    assert caught.value.errno == errno.ENOSPC
    assert kept.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [kept]


def test_completion_offers_the_public_names_only() -> None:
    assert dir(pw) == sorted(pw.__all__)
    assert not {"Any", "TYPE_CHECKING", "lazily", "kernels"} & set(dir(pw))
