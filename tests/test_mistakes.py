"""Whose mistake an error is: what cannot be is refused in one line that names the option, and a bug
is shown as a bug. And every command that fits a log takes the same options for it.
"""

from __future__ import annotations

import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer.main
from raising import raises
from typer.testing import CliRunner

import priorwise as pw
from priorwise.advise.recommending import recommend
from priorwise.cli import app
from priorwise.cli.reading import parameters
from priorwise.core.errors import ArgumentError, option
from priorwise.logs import fitting, options

RUN = ["--horizon", "5", "--seed", "0"]
COMMANDS: dict[str, list[str]] = {
    "fit": ["--seed", "0"],
    "certify": ["-p", "ts", *RUN, "--draws", "20", "--tasks", "20"],
    "backtest": ["-p", "ts", *RUN],
    "recommend": RUN,
}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    pulls = [(t, a) for t in range(24) for a in range(4) for _ in range(2)]
    rows = [f"{t},arm{a},{int((3 * t + a) % 4 == 0)}" for t, a in pulls]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["task,action,reward", *rows]))
    return path


@pytest.mark.parametrize("command", COMMANDS)
def test_a_bug_is_shown_as_a_bug(
    command: str, log: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Exit code 1 with a traceback, whatever the type of the error; nothing is written."""
    out = tmp_path / "out"
    words = [command, str(log), *COMMANDS[command], "--family", "beta", "--out", str(out)]
    for broken in (
        lambda *_, **__: None + 1,  # type: ignore[operator]
        lambda *_, **__: np.zeros(2) + np.zeros(3),
        lambda *_, **__: pw.Greedy().no_such_name,  # type: ignore[attr-defined]
    ):
        monkeypatch.setattr(fitting, "candidates", broken)
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 1
        assert "Traceback" in done.output
        assert "this is a bug in priorwise" in done.output
        assert not out.exists()


@pytest.mark.parametrize("command", ["certify", "backtest", "recommend", "simulate"])
def test_batches_longer_than_tasks_are_refused_alike(
    command: str, log: Path, tmp_path: Path
) -> None:
    words = [command, str(log), *COMMANDS.get(command, ["-p", "ts", *RUN]), "--batch", "50"]
    if command == "simulate":
        pw.BetaPrior([1.0, 2.0], [3.0, 3.0]).save(tmp_path / "prior.json")
        words[1] = str(tmp_path / "prior.json")
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "out")])
    assert done.exit_code == 2
    assert done.output == "Error: --batch must be at most --horizon 5, got 50\n"
    assert not (tmp_path / "out").exists()


def test_arguments_are_named_as_python_or_the_command_line_writes_them(
    log: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        pieces = [option("time"), option("time", ...), option("missing", "drop")]
        pieces += [option("half_life", "none"), option("reward", "sold on"), option("context")]
        raise ArgumentError("noise_var", " | ".join(pieces), got=3)

    monkeypatch.setattr(fitting, "candidates", fail)
    with pytest.raises(ArgumentError) as error:
        pw.fit_prior(log, seed=seed)
    python = "time= | time=... | missing='drop' | half_life='none' | reward='sold on' | context="
    assert error.value.problem == python
    done = CliRunner().invoke(app, ["fit", str(log), "--seed", "0"])
    line = "--time | --time | --drop-missing | --half-life none | --reward 'sold on' | context="
    assert done.output == f"Error: --noise-var {line}, got 3\n"


def shared() -> set[str]:
    return {f"--{each.name}".replace("_", "-") for each in parameters()}


def test_every_command_that_fits_a_log_takes_the_same_options() -> None:
    group: Any = typer.main.get_command(app)
    rejected = {"recommend": {"--task-features"}}  # one prior of all tasks
    for name in COMMANDS:
        taken = {word for each in group.commands[name].params for word in each.opts}
        assert shared() - taken == rejected.get(name, set()), name
    assert not shared() <= {word for each in group.commands["bound"].params for word in each.opts}


def test_the_library_takes_the_same_options_everywhere() -> None:
    """Those of ``fit_prior``; the command line has no features of arms."""
    own = set(inspect.signature(pw.fit_prior).parameters) - {"log", "family", "seed"}
    features = {"context", "contexts"}
    known = set(options.ReadingFeatures.__annotations__)
    assert known == own
    assert set(options.Reading.__annotations__) == known - features
    asked = {each.name for each in parameters()} - {"family"}
    assert asked - {"drop_missing"} | {"missing"} == known - features
    for tool in (pw.backtest, recommend):
        with raises("tasc", f"is no option of {tool.__name__}", kind=TypeError):
            tool("x.csv", {"ts": pw.ThompsonSampling()}, horizon=1, seed=len("x"), tasc="x") if (
                tool is pw.backtest
            ) else tool("x.csv", horizon=1, seed=len("x"), tasc="x")


def test_an_option_of_a_log_is_declared_in_one_place(tmp_path: Path) -> None:
    """The line of CONTRIBUTING.md, in a copy of the package. The control lacks it."""
    root = Path(__file__).parents[1]
    page = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (line,) = (each for each in page.splitlines() if each.startswith("least_pulls:"))
    shutil.copytree(root / "src", tmp_path / "src", ignore=shutil.ignore_patterns("*.pyc"))
    script = (
        "import inspect, sys, typer.main, priorwise as pw\n"
        "from priorwise.cli import app\n"
        "from priorwise.logs.reducing import read_log\n"
        "tools = (pw.fit_prior, read_log, pw.backtest, pw.recommend)\n"
        "print(*('least_pulls' in inspect.signature(each).parameters for each in tools))\n"
        "commands = typer.main.get_command(app).commands\n"
        "for name in ('fit', 'certify', 'backtest', 'recommend'):\n"
        "    taken = {word for each in commands[name].params for word in each.opts}\n"
        "    print('--least-pulls' in taken)\n"
        "print(read_log(sys.argv[1], least_pulls=3.0).rows)"
    )
    log = tmp_path / "log.csv"
    log.write_text("task,action,reward\na,x,1\na,y,0\nb,x,1\n", encoding="utf-8")
    declared = tmp_path / "src" / "priorwise" / "logs" / "options.py"
    for added, wanted in ((False, "False"), (True, "True")):
        if added:
            code, first = declared.read_text(encoding="utf-8"), "    task: Annotated["
            declared.write_text(code.replace(first, f"    {line}\n{first}"), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-c", script, str(log)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
        )
        assert done.stdout.split()[:8] == [wanted] * 8, done.stderr
        assert (done.returncode == 0) == added
        assert added or "least_pulls is no option of read_log" in done.stderr


@pytest.mark.parametrize("command", ["certify", "backtest", "recommend"])
def test_options_of_a_log_reach_its_fit(command: str, log: Path, tmp_path: Path) -> None:
    """A time column, a period and known noise are read by every command: a period without tasks is
    refused by its name, and noise that no family of clicks has too.
    """
    lines = log.read_text().splitlines()
    timed = [f"{line},{line.partition(',')[0]}" for line in lines[1:]]
    log.write_text("\n".join([f"{lines[0]},day", *timed]))
    words = [command, str(log), *COMMANDS[command], "--out", str(tmp_path / "out")]
    for more, says in (
        (["--time", "day", "--since", "99"], "Error: --since leaves no row of"),
        (["--since", "3"], "Error: --since needs the column of times, --time"),
        (["--half-life", "soon"], "Error: --half-life must be a positive number, 'auto' or"),
        (["--noise-var", "1"], "--noise-var is for families of real rewards"),
        (["--arms", "same", "--family", "beta:none"], "beta has no structure 'none'"),
    ):
        done = CliRunner().invoke(app, [*words, *more])
        assert (done.exit_code, says in done.output) == (2, True), done.output
    assert not (tmp_path / "out").exists()
