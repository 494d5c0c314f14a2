"""Ctrl-C keeps what is done: the numbers of the tasks, truths and policies that were complete,
labelled, in files of their own; and no number before there is one.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import priorwise as pw
from priorwise.advise import Interrupted, recommending
from priorwise.cli import app
from priorwise.core.progress import Progress
from priorwise.core.types import FloatArray
from priorwise.experiments.headlines import headline_log
from priorwise.simulate.blocks import in_order, run_blocks
from priorwise.simulate.engine import Runner
from priorwise.testing.seeds import base_seed

LANES = 64
SEED = base_seed()
FAMILY = ["--family", "beta:exchangeable", "--seed", str(SEED)]
BACKTEST = ["backtest", "log.csv", "-p", "greedy", "-p", "ts", "--horizon", "10", *FAMILY]
CERTIFY = ["certify", "log.csv", "-p", "ts", "--horizon", "3", "--tasks", "64", *FAMILY]
CERTIFY += ["--draws", "30", "--arms", "new"]
RECOMMEND = ["recommend", "log.csv", "--horizon", "10", *FAMILY]
COMMANDS = {"backtest": BACKTEST, "certificate": CERTIFY, "advice": RECOMMEND}

SCORING = "scoring it on other tasks"


def log_of(seed: int, tests: int = 600) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(headline_log(seed=seed, tests=tests)))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a log; simulations are short."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(recommending, "MOST", 64)
    log_of(3).to_csv("log.csv", index=False)
    return tmp_path


def interrupt(monkeypatch: pytest.MonkeyPatch, after: int, text: str) -> None:
    """Let Ctrl-C come with so many steps done of bars with this text."""
    advance, steps = Progress.advance, []

    def stopped(bar: Progress, amount: float) -> None:
        advance(bar, amount)
        steps.extend([amount] if text == bar._text else [])
        if len(steps) == after:
            raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "advance", stopped)


def interruption(call: Callable[[], Any], after: int, text: str) -> Any:
    """What a call raises that is interrupted."""
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, after, text)
        with pytest.raises(KeyboardInterrupt) as stop:
            call()
    return stop.value


def command(words: list[str]) -> Any:
    return CliRunner().invoke(app, words)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()} - {"log.csv"}


def interrupted_backtest(log: pd.DataFrame, seed: int, after: int) -> pw.Backtest:
    policies = {"greedy": pw.Greedy(), "again": pw.Greedy(), "ts": pw.ThompsonSampling()}
    how: Any = {"horizon": 10, "family": "beta:exchangeable", "seed": seed}
    stop = interruption(lambda: pw.backtest(log, policies, **how), after, "tasks")
    found: pw.Backtest = stop.partial
    return found


def blocks_of(rewards: FloatArray, whole: FloatArray) -> list[int]:
    """Return which blocks of all tasks these are, by what was earned."""
    parts = {whole[at : at + LANES].tobytes(): at // LANES for at in range(0, len(whole), LANES)}
    assert len(parts) == -(-len(whole) // LANES)
    at, found = 0, []
    while at < len(rewards):
        size = LANES if rewards[at : at + LANES].tobytes() in parts else len(whole) % LANES
        found.append(parts[rewards[at : at + size].tobytes()])
        at += size
    return found


def test_a_backtest_keeps_tasks_of_random_blocks(seed: int) -> None:
    """They earn what they earn without Ctrl-C. Which tasks are done depends on the seed alone, not
    on rewards: control, another seed takes others (by chance the same ones: 1 in 252).
    """
    log = log_of(seed, 1_200)
    policies = {"greedy": pw.Greedy(), "ts": pw.ThompsonSampling()}
    how: Any = {"horizon": 10, "family": "beta:exchangeable"}
    whole = pw.backtest(log, policies, **how, seed=seed)
    part = interrupted_backtest(log, seed, 5)
    for name in ("greedy", "ts", "ts (vague prior)"):
        taken = blocks_of(part.lines[name].rewards, whole.lines[name].rewards)
        assert taken == blocks_of(part.best, whole.best)
        assert len(taken) == 5
        assert taken == sorted(taken)
        assert part.reward(name).std_error > whole.reward(name).std_error
    assert part.difference("greedy", "again").mean == 0.0
    other = log.assign(clicks=log.clicks.to_numpy()[::-1].clip(max=log.impressions))
    ends = pw.backtest(other, policies, **how, seed=seed).best
    assert blocks_of(interrupted_backtest(other, seed, 5).best, ends) == taken
    ends = pw.backtest(log, policies, **how, seed=seed + 1).best
    assert blocks_of(interrupted_backtest(log, seed + 1, 5).best, ends) != taken


def test_the_sample_of_tasks_is_no_prefix() -> None:
    """Of 8 blocks in a random order the first is each in 1 of 8 seeds: Pearson's test on 400
    seeds, false alarm 1e-6. Control: a prefix fails it.
    """
    from scipy import stats

    first = [int(np.random.default_rng(seed).permutation(8)[0]) for seed in range(400)]
    assert stats.chisquare(np.bincount(first, minlength=8)).pvalue > 1e-6
    assert stats.chisquare(np.bincount([0] * 400, minlength=8)).pvalue < 1e-6


def test_an_interrupted_backtest_is_labelled_and_replaces_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command(BACKTEST).exit_code == 0
    before = (folder / "out" / "backtest.json").read_text()
    interrupt(monkeypatch, 2, "tasks")
    done = command(BACKTEST)
    assert done.exit_code == 130, done.output
    numbers = json.loads((folder / "out" / "interrupted-backtest.json").read_text())
    used = numbers["tasks"]
    assert LANES < used <= 2 * LANES
    label = f"These numbers use only {used} of 300 later tasks"
    assert done.stdout.startswith(f"Interrupted. {label}")
    assert done.stderr.startswith(f"Interrupted. {label}")
    assert numbers["interrupted"].startswith(label)
    assert "chosen by simulation" not in done.stdout
    assert (folder / "out" / "backtest.json").read_text() == before
    whole = json.loads(before)
    assert whole["interrupted"] == ""
    errors = [each["policies"][0]["std_error"] for each in (numbers, whole)]
    assert errors[0] > errors[1]
    assert all(np.isfinite(errors))


def test_records_that_may_not_run_out_are_counted_on_the_tasks_done(seed: int) -> None:
    """Before it is known how many pulls records allow there is no result."""
    log = log_of(seed).assign(impressions=4)
    log = log.assign(clicks=log.clicks.clip(upper=4))
    how: Any = {"horizon": 12, "family": "beta:exchangeable", "seed": seed}
    for limit, partial in ((0.001, False), (0.99, True)):
        how["most_run_out"] = limit
        stop = interruption(lambda: pw.backtest(log, {"ts": pw.Greedy()}, **how), 1, "tasks")
        assert isinstance(stop, Interrupted) is partial


@pytest.mark.parametrize("name", COMMANDS)
def test_without_numbers_there_are_none(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while the prior is being learned. Control: without it there are files."""
    with monkeypatch.context() as patch:

        def stopped(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        patch.setattr("priorwise.logs.fitting.predictive_check", stopped)
        done = command(COMMANDS[name])
    assert (done.exit_code, done.stdout, names(folder)) == (130, "", set())
    assert done.stderr == "Interrupted. No file was written or changed.\n"
    assert command(COMMANDS[name]).exit_code == 0
    assert names(folder) == {f"{name}.{suffix}" for suffix in ("json", "png", "svg")}


@pytest.mark.parametrize(("name", "after"), [("certificate", 19), ("advice", 1)])
def test_a_learned_prior_is_kept(
    name: str, after: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too few truths for a number: 20 have a 95 % loss, and 2 a standard error."""
    interrupt(monkeypatch, after, SCORING if name == "advice" else "plausible truths")
    done = command(COMMANDS[name])
    assert (done.exit_code, done.stdout) == (130, "")
    assert names(folder) == {"interrupted-prior.json"}
    assert "out/interrupted-prior.json" in done.stderr
    prior = pw.PriorFit.load(Path("out/interrupted-prior.json")).prior
    np.testing.assert_allclose(
        prior.alpha, pw.fit_prior("log.csv", "beta:exchangeable", seed=SEED).prior.alpha
    )
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    with monkeypatch.context() as patch:
        interrupt(patch, after, SCORING if name == "advice" else "plausible truths")
        (folder / "out" / "interrupted-prior.json").unlink()
        assert command([*COMMANDS[name], "--json"]).stdout == ""
        assert names(folder) == set()  # --json writes no file


def test_an_interrupted_certificate_has_the_truths_that_were_done(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = pw.fit_prior("log.csv", "beta:exchangeable", seed=SEED)
    how: Any = {"horizon": 3, "seed": SEED, "draws": 30, "tasks": 64, "arms": 4}
    whole = pw.certify(fit, pw.ThompsonSampling(), **how)
    for after, used in ((25, {"law": 25}), (45, {"law": 30}), (50, {"law": 30, "bootstrap": 20})):
        part = interruption(
            lambda: pw.certify(fit, pw.ThompsonSampling(), **how), after, "plausible truths"
        ).partial
        assert {name: len(each.losses) for name, each in part.measured.items()} == used
        for name, count in used.items():
            losses = whole.measured[name].losses[:count]
            np.testing.assert_array_equal(part.measured[name].losses, losses)
        assert f"use {sum(used.values())} of 50 plausible truths" in str(part)
        assert part.more_tasks is None
    interrupt(monkeypatch, 25, "plausible truths")
    done = command(CERTIFY)
    assert done.exit_code == 130
    assert "Interrupted. These numbers use 25 of 50 plausible truths" in done.stdout
    suffixes = ("json", "png", "svg")
    assert names(folder) == {f"interrupted-certificate.{suffix}" for suffix in suffixes}


def test_an_interrupted_recommendation_scores_under_fewer_truths(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    how: Any = {"family": "beta:exchangeable", "horizon": 10, "seed": 0}
    whole = pw.recommend("log.csv", **how)
    stop = interruption(lambda: pw.recommend("log.csv", **how), 7, SCORING)
    part = stop.partial
    assert stop.fit is part.fit
    assert part.simulated == whole.simulated
    for name, scores in whole.scored.scores.items():
        np.testing.assert_array_equal(part.scored.scores[name], scores[:7])
        np.testing.assert_array_equal(part.losses[name], whole.losses[name][:7])
    interrupt(monkeypatch, 7, SCORING)
    done = command([*RECOMMEND, "--report", "advice.html"])
    assert done.exit_code == 130
    assert "\nInterrupted. Policies are scored under 7 of 20 plausible priors" in done.stdout
    assert "The page advice.html was not written" in done.stderr
    assert names(folder) == {f"interrupted-advice.{suffix}" for suffix in ("json", "png", "svg")}
    assert json.loads(Path("out/interrupted-advice.json").read_text())["interrupted"]


@pytest.mark.parametrize("after", [0, 2])
def test_an_interrupted_replay_leaves_the_advice(
    after: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check is made to fail: then later tasks are replayed, or were to be."""
    monkeypatch.setattr("priorwise.logs.predictive.PredictiveCheck.doubts", ("between tasks",))
    replay = recommending.on_later_tasks

    def stopped(*given: Any, **options: Any) -> Any:
        if not after:
            raise KeyboardInterrupt
        interrupt(monkeypatch, after, "tasks")
        return replay(*given, **options)

    monkeypatch.setattr(recommending, "on_later_tasks", stopped)
    with pytest.raises(Interrupted) as stop:
        pw.recommend("log.csv", family="beta:exchangeable", horizon=10, seed=SEED)
    part = stop.value.partial
    assert len(part.scored.scores["ts"]) == recommending.TRUTHS
    if after:
        assert f"only {len(part.later.uniform)} of 300 later tasks" in part.interrupted
    else:
        assert part.later is None
        assert "Treat the gains below with caution" in str(part)


def test_a_page_that_is_interrupted_leaves_the_advice(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt(monkeypatch, 3, "plausible truths")
    done = command([*RECOMMEND, "--report", "advice.html"])
    assert done.exit_code == 130
    assert "Interrupted" not in done.stdout
    assert names(folder) == {"advice.json", "advice.png", "advice.svg"}
    assert "The page advice.html was not written" in done.stderr


def test_a_real_interruption(folder: Path) -> None:
    """SIGINT of the system after two blocks, in a process of its own."""
    code = f"""
import os, signal, sys
sys.argv = ["/usr/bin/priorwise", *{BACKTEST!r}]
from priorwise.core.progress import Progress
advance, steps = Progress.advance, []
def counted(bar, amount):
    advance(bar, amount)
    steps.extend([amount] if bar._text == "tasks" else [])
    if len(steps) == 2:
        os.kill(os.getpid(), signal.SIGINT)
Progress.advance = counted
from priorwise.cli import main
main()
"""
    line = [sys.executable, "-c", code]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 130, done.stderr
    assert done.stdout.startswith("Interrupted. These numbers use only ")
    assert "Traceback" not in done.stderr
    assert names(folder) == {f"interrupted-backtest.{suffix}" for suffix in ("json", "png", "svg")}


def test_threads_stop_after_the_policy_that_plays() -> None:
    begun, leave, played = threading.Event(), threading.Event(), []

    def run(name: str) -> Callable[..., Any]:
        def slow(**part: Any) -> Any:
            played.append(name)
            begun.set()
            leave.wait(30)

        return slow

    runners: dict[str, Any] = {name: Runner("compiled", run(name)) for name in "abcd"}

    def work(number: int) -> Any:
        if number == 0:
            begun.wait(30)
            raise KeyboardInterrupt
        threading.Timer(0.3, leave.set).start()
        return next(run_blocks(runners, [{}], 1))

    with pytest.raises(KeyboardInterrupt):
        list(in_order(work, range(2), 2))
    assert played == ["a"]
