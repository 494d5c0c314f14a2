"""How results leave the library: tidy tables, figures and text, with the same names everywhere."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import priorwise as pw
from priorwise.core.style import Picture
from priorwise.simulate.figure import Curve, learning_curves

BETA = pw.BetaPrior([2.0, 2.0, 2.0], [30.0, 30.0, 30.0])
POLICIES = {"ts": pw.ThompsonSampling(), "greedy": pw.Greedy(), "uniform": pw.Uniform()}
OPTIONS: dict[str, Any] = {"horizon": 20, "tasks": 600}


@pytest.fixture(scope="module")
def comparison() -> pw.Comparison:
    from priorwise.testing import base_seed

    return pw.compare(BETA, POLICIES, seed=base_seed(), **OPTIONS)


class Noted:
    """What a figure would show, caught before it is drawn."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
        self.texts: list[str] = []
        self.lines: dict[str, list[np.ndarray]] = {}

        def caught(figure: Any) -> Picture:
            for axes in figure.axes:
                said = [axes.get_title(loc="left"), axes.get_xlabel(), axes.get_ylabel()]
                self.texts += said + [each.get_text() for each in (*axes.texts, *axes.get_yticklabels())]
                self.lines[said[0]] = [np.asarray(line.get_ydata()) for line in axes.lines]
            self.texts += [each.get_text() for each in figure.texts]
            return Picture()

        monkeypatch.setattr(import_module(module), "render", caught)

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
        assert (frame.loc[name, "reward"], frame.loc[name, "std_error"]) == (run.mean_reward, run.std_error)
        assert (frame.loc[name, "minus_best"], frame.loc[name, "minus_best_std_error"]) == (gap.mean, gap.std_error)


def test_curves_are_tidy(comparison: pw.Comparison) -> None:
    frame = comparison.to_frame(by_step=True)
    assert len(frame) == 3 * 20
    greedy = frame[frame["policy"] == "greedy"]
    assert greedy["step"].tolist() == list(range(1, 21))
    alone = comparison.runs["greedy"].by_step
    np.testing.assert_array_equal(greedy["cumulative_regret_std_error"], alone.cumulative_regret_std_error)
    np.testing.assert_array_equal(greedy["std_error"], alone.reward_std_error)
    np.testing.assert_array_equal(alone.to_frame()["expected_reward"], alone.expected_reward)


def test_tables_need_no_pandas_and_frames_say_so(comparison: pw.Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert comparison.table()["policy"] == list(POLICIES)
    with pytest.raises(ModuleNotFoundError, match=r"needs pandas: pip install pandas; table\(\) returns the same"):
        comparison.to_frame()


def test_figures_of_runs_and_comparisons(comparison: pw.Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    png(comparison.figure())
    png(comparison.runs["ts"].figure(label="ts"))
    shown = Noted(monkeypatch, "priorwise.simulate.figure")
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


def test_the_figure_of_clicks_is_not_noise(comparison: pw.Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rewards of 0 and 1 scatter from pull to pull; the expected reward of the chosen arm does so far less."""
    shown = Noted(monkeypatch, "priorwise.simulate.figure")
    comparison.figure()
    for drawn, run in zip(shown.lines["Reward of each pull"], comparison.runs.values(), strict=True):
        assert np.diff(drawn).std() < 0.5 * np.diff(run.by_step.reward).std()


def test_without_a_best_arm_the_figure_shows_rewards(comparison: pw.Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    run = comparison.runs["ts"]
    plain = replace(run, by_step=type(run.by_step)(run.by_step.reward, run.by_step.reward_std_error), mean_regret=None)
    shown = Noted(monkeypatch, "priorwise.simulate.figure")
    learning_curves([Curve("ts", plain, "ts")], "Title")
    assert "Cumulative reward" in shown.said
    np.testing.assert_array_equal(shown.lines["Reward of each pull"][0], run.by_step.reward)
    assert np.isnan(plain.by_step.table()["regret"]).all()


META: dict[str, Any] = {"episodes": 12, "replicates": 5, "horizon": 4, "jobs": 1}


@pytest.fixture(scope="module")
def learned() -> dict[str, pw.MetaRun]:
    from priorwise.testing import base_seed

    learners = {"ts": pw.FixedPrior(pw.ThompsonSampling()), "oracle": pw.FixedPrior(pw.Greedy())}
    return {name: pw.simulate_meta(BETA, each, seed=base_seed(), **META) for name, each in learners.items()}


def test_a_meta_run_is_one_row_for_each_episode(learned: dict[str, pw.MetaRun]) -> None:
    run = learned["ts"]
    frame = run.to_frame()
    assert frame["episode"].tolist() == list(range(1, 13))
    np.testing.assert_array_equal(frame["reward"], run.rewards.mean(axis=0))
    np.testing.assert_array_equal(frame["std_error"], run.std_error)
    np.testing.assert_allclose(frame["average"], (np.cumsum(run.rewards, axis=1) / np.arange(1, 13)).mean(axis=0))
    assert frame["average_std_error"].iloc[-1] == pytest.approx(run.average().std_error)
    alone = run.running_average().to_frame()
    np.testing.assert_array_equal(alone["reward"], frame["average"])
    long = run.to_frame(by_replicate=True)
    assert long.pivot(index="replicate", columns="episode", values="reward").to_numpy().tolist() == run.rewards.tolist()


def test_figure_of_a_meta_run(learned: dict[str, pw.MetaRun], monkeypatch: pytest.MonkeyPatch) -> None:
    run, oracle = learned.values()
    png(run.figure())
    png(run.figure("Learning", label="ts", others={"oracle": oracle}))
    shown = Noted(monkeypatch, "priorwise.meta.learners.meta_figure")
    run.figure("Learning", label="ts", others={"oracle": oracle})
    for text in ("Learning", "ts", "oracle", "Short of oracle", "standard errors over replicates"):
        assert text in shown.said
    short = shown.lines["Short of oracle"][0]
    assert short[-1] == pytest.approx(run.shortfall(oracle).mean)
    assert short[2] == pytest.approx(run.shortfall(oracle, 1, 3).mean)
    with pytest.raises(ValueError, match="others must have names of their own, but 'ts'"):
        run.figure(label="ts", others={"ts": oracle})
    other = pw.simulate_meta(BETA, pw.FixedPrior(pw.Greedy()), seed=run.seed + 1, **META)
    with pytest.raises(ValueError, match="same tasks, but its seed"):
        run.figure(others={"oracle": other})


def test_a_picture_is_saved_by_its_suffix(comparison: pw.Comparison, tmp_path: Path) -> None:
    picture = comparison.figure()
    assert picture.save(tmp_path / "a.png").read_bytes() == picture["png"]
    assert picture.save(str(tmp_path / "b.SVG")).read_bytes() == picture["svg"]
    with pytest.raises(ValueError, match=r"path must end in \.png or \.svg, got 'c\.pdf'"):
        picture.save("c.pdf")
    assert len(repr(picture)) < 100


def test_completion_offers_the_public_names_only() -> None:
    assert dir(pw) == sorted(pw.__all__)
    assert not {"Any", "TYPE_CHECKING", "core", "kernels"} & set(dir(pw))
