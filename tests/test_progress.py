"""Long calls say how long they take, on a terminal and nowhere else, and without any influence on
the numbers.
"""

from __future__ import annotations

import importlib.util
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numba import types
from raising import raises

import priorwise as pw
from priorwise.core import progress
from priorwise.experiments import problems
from priorwise.experiments.headlines import headline_log
from priorwise.kernels.compiling import LazyEntry, Tile
from priorwise.simulate import blocks
from priorwise.simulate.engine import Runner

PRIOR = pw.GaussianPrior([0.5, 0.0], np.eye(2))
OTHER = pw.GaussianPrior([0.0, 0.0], np.eye(2))


class Terminal(io.StringIO):
    """Standard error that a person looks at."""

    def isatty(self) -> bool:
        """Say so."""
        return True


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every call counts as long."""
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    yield
    assert not progress._here  # every call has taken its bar away


@contextmanager
def terminal(kind: type[io.StringIO] = Terminal) -> Iterator[io.StringIO]:
    """Let standard error be a terminal; within the test, as pytest puts its own in between."""
    before, sys.stderr = sys.stderr, kind()
    try:
        yield sys.stderr
    finally:
        sys.stderr = before


def policies(seed: int) -> pw.Comparison:
    return pw.compare(
        PRIOR,
        {"ts": pw.ThompsonSampling(), "greedy": pw.Greedy()},
        horizon=5,
        tasks=1000,
        seed=seed,
        threads=2,
    )


def clicks() -> Any:
    return pw.BetaMarginalLikelihood().fit(
        pw.BetaStatistics([[3, 1], [0, 2], [1, 1]], [[5, 5], [5, 5], [5, 5]])
    )


def log(seed: int) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(headline_log(seed=seed, tests=60)))


TS = {"ts": pw.ThompsonSampling()}
FEW: Any = {"horizon": 5, "family": "beta:exchangeable"}

CALLS: dict[str, tuple[str, Callable[[int], Any]]] = {
    "compare": ("tasks", policies),
    "simulate in NumPy": (
        "tasks",
        lambda s: pw.simulate(PRIOR, pw.Greedy(), horizon=3, tasks=5000, seed=s, engine="numpy"),
    ),
    "simulate_meta": (
        "replicates",
        lambda s: pw.simulate_meta(
            PRIOR, pw.FixedPrior(pw.Greedy()), episodes=2, replicates=3, horizon=2, seed=s, jobs=1
        ),
    ),
    "sensitivity_ladder": (
        "pulls walked along",
        lambda s: pw.sensitivity_ladder(
            PRIOR, OTHER, pw.ThompsonSampling(), 3, seed=s, tasks=2000, histories=4
        ),
    ),
    "break_even": (
        "scales",
        lambda s: pw.break_even(PRIOR, [-2.0, 0.0], pw.Greedy(), 3, seed=s, tasks=200),
    ),
    "compare_policies": (
        "plausible priors",
        lambda s: pw.compare_policies(
            clicks(), {"ts": pw.ThompsonSampling()}, horizon=2, tasks=64, draws=3, seed=s
        ),
    ),
    "certify": (
        "plausible truths",
        lambda s: pw.certify(
            clicks(), pw.ThompsonSampling(), horizon=2, tasks=64, draws=20, seed=s
        ),
    ),
    "backtest": ("predicting rewards", lambda s: pw.backtest(log(s), TS, **FEW, seed=s)),
    "recommend": (
        "scoring it on other tasks",
        lambda s: pw.recommend(log(s), **FEW, seconds=1e-3, seed=s),
    ),
    "sample_complexity": (
        "replicates of 64 tasks",
        lambda s: pw.sample_complexity(PRIOR, 0.5, 0.5, horizon=4, seed=s, replicates=3, most=64),
    ),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.usefixtures("patient")
def test_long_calls_show_how_far_they_are(name: str, seed: int) -> None:
    unit, call = CALLS[name]
    with terminal() as stream:
        call(seed)
    shown = stream.getvalue()
    assert unit in shown
    if name in ("backtest", "recommend"):
        assert "learning the prior" in shown
    # the calls within have no bars of their own
    if name in ("break_even", "certify", "compare_policies", "sample_complexity"):
        assert " tasks " not in shown.replace(unit, "")


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.usefixtures("patient")
def test_nothing_is_written_into_pipes_and_logs(
    name: str, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    CALLS[name][1](seed)
    assert capsys.readouterr() == ("", "")


def test_short_calls_show_nothing(seed: int) -> None:
    policies(seed)  # compiles
    with terminal() as stream:
        policies(seed)
    assert stream.getvalue() == ""


@pytest.mark.usefixtures("patient")
def test_a_call_can_be_silenced_and_made_to_speak(seed: int) -> None:
    with terminal() as stream:
        pw.simulate(PRIOR, pw.Greedy(), horizon=2, tasks=200, seed=seed, progress=False)
    assert stream.getvalue() == ""
    with terminal(io.StringIO) as pipe:
        pw.simulate(PRIOR, pw.Greedy(), horizon=2, tasks=200, seed=seed, progress=True)
    assert "tasks" in pipe.getvalue()
    with raises("progress", "must be True, False or None"):
        pw.simulate(PRIOR, pw.Greedy(), horizon=2, tasks=200, seed=seed, progress="no")  # type: ignore[arg-type]


@pytest.mark.usefixtures("patient")
def test_the_line_beforehand_names_the_slow_policy(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(progress, "LONG", -1.0)
    with terminal() as stream:
        pw.simulate(
            PRIOR, pw.TopTwoThompson(most_draws=64), horizon=20, tasks=512, seed=seed, block=64
        )
        pw.simulate(PRIOR, pw.RecedingHorizon(64, 32, 1.0), horizon=20, tasks=512, seed=seed)
    assert "s: TopTwoThompson, as it draws up to 64 times per pull" in stream.getvalue()
    assert (
        "s: RecedingHorizon, as it looks ahead with 64 × 32 draws for each arm and pull"
        in stream.getvalue()
    )


def test_the_first_block_tells_how_long_the_others_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 64 tasks; compiled blocks of the other 640 run in four threads, and those in NumPy in
    one.
    """
    now = [0.0]
    for module in (progress, blocks):
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    monkeypatch.setattr(progress, "_ready", 0.0)

    def takes(seconds: float) -> Any:
        def run(**block: Any) -> Any:
            now[0] += seconds

        return run

    clock = blocks.Clock(
        {"quick": Runner("compiled", takes(4.0)), "slow": Runner("numpy", takes(12.0))}
    )
    for name in clock.runners:
        for first in (0, 64):
            clock.runners[name].run(first=first)
    assert (clock.slowest, clock.share("slow"), clock.left(64, 704, threads=4)) == (
        "slow",
        0.75,
        10 * (4.0 / 4 + 12.0),
    )
    assert clock.first_block(256) == 256
    assert blocks.Clock({"quick": Runner("compiled", takes(1.0))}).first_block(256) == 64


def test_a_first_part_that_takes_long_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with (
        terminal() as stream,
        progress.progress_of(10, "tasks", shown=None, why="may take long: a slow policy") as bar,
    ):
        assert bar._timer is not None
        bar._timer.join()  # the time is over, and nothing is done yet
    assert "may take long: a slow policy" in stream.getvalue()


@pytest.mark.usefixtures("patient")
def test_a_bar_changes_no_number(seed: int) -> None:
    options: dict[str, Any] = {
        "horizon": 7,
        "tasks": 40_000,
        "seed": seed,
        "threads": 2,
        "keep": True,
    }
    with terminal():
        loud, calm = (
            pw.simulate(problems.gaussian().prior, pw.ThompsonSampling(), progress=p, **options)
            for p in (None, False)
        )
    assert (loud.mean_reward, loud.std_error) == (calm.mean_reward, calm.std_error)
    np.testing.assert_array_equal(loud.actions, calm.actions)
    np.testing.assert_array_equal(loud.by_step.reward, calm.by_step.reward)


def test_durations_read_well() -> None:
    assert [progress.duration(s) for s in (4.4, 80.0, 445.0, 11_500.0)] == [
        "about 4 s",
        "about 80 s",
        "about 7 min",
        "about 3.2 h",
    ]


@pytest.mark.usefixtures("patient")
def test_estimates_count_parts_that_run_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    monkeypatch.setattr(progress, "_ready", 0.0)
    with terminal() as stream, progress.progress_of(101, "parts", shown=None, parallel=2) as bar:
        now[0] = 10.0
        progress.ready()  # ten seconds of compiling do not count
        now[0] = 16.0
        bar.advance(1)
    assert "about 5 min: parts" in stream.getvalue()


# --- the first compilation
# -------------------------------------------------------------------------------------------------


@pytest.fixture
def fresh(tmp_path: Path) -> Any:
    """A function that no cache knows."""
    path = tmp_path / "fresh.py"
    path.write_text("def double(x):\n    return 2 * x\n")
    spec = importlib.util.spec_from_file_location("fresh", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.double


@pytest.mark.parametrize("kind", [LazyEntry, Tile])
def test_the_first_compilation_says_so(
    kind: Any, fresh: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_said", [])

    def told() -> str:
        with terminal() as stream:
            made = kind(types.int64(types.int64), fresh)
            assert made(4) == 8 if kind is LazyEntry else made.address
        progress._said.clear()
        return stream.getvalue()

    assert told() == f"priorwise: {progress.COMPILING}\n"
    assert told() == ""  # from the cache


@pytest.mark.parametrize(("shown", "said"), [(None, True), (True, True), (False, False)])
def test_compiling_within_a_call_is_on_its_bar(shown: bool | None, said: bool, fresh: Any) -> None:
    with terminal() as stream, progress.progress_of(10, "tasks", shown=shown):
        LazyEntry(types.int64(types.int64), fresh)(1)
    assert (progress.COMPILING in stream.getvalue()) == said
    assert "priorwise:" not in stream.getvalue()


def test_compiling_says_nothing_into_a_pipe(fresh: Any, capsys: pytest.CaptureFixture[str]) -> None:
    LazyEntry(types.int64(types.int64), fresh)(1)
    assert capsys.readouterr() == ("", "")
