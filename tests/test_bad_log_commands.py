"""Every kind of bad log ends each command that reads one with one line that names column and row,
with exit code 2, and nothing is written.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from priorwise.cli import app

HEAD = "task,action,reward\n"
GOOD = HEAD + "1,a,0\n1,b,1\n2,a,1\n2,b,0\n"
TIMES = "task,action,reward\n2024-01-01 00:00:00+01:00,a,1\n2024-01-01 00:00:00,b,0\n"

RUN = ["--horizon", "5", "--seed", "0"]
COMMANDS: dict[str, list[str]] = {
    "fit": ["--seed", "0"],
    "certify": ["-p", "ts", *RUN],
    "backtest": ["-p", "ts", *RUN],
    "recommend": [*RUN, "--report", "advice.html"],
}
CASES: dict[str, tuple[str, list[str], str]] = {
    "no bytes": ("", [], "is empty"),
    "no rows": (HEAD, [], "has no rows"),
    "one task": (HEAD + "1,a,0\n1,b,1\n", [], "--task must have several tasks"),
    "one arm": (
        HEAD + "1,a,0\n2,a,1\n3,a,1\n4,a,0\n",
        [],
        "--action must have arms to choose between",
    ),
    "NaN": (GOOD + "3,a,nan\n", [], "in row 5 of"),
    "infinite": (GOOD + "3,a,inf\n", [], "in row 5 of"),
    "infinite, dropped": (GOOD + "3,a,-inf\n", ["--drop-missing"], "an infinite reward"),
    "not 0 or 1": (
        GOOD + "3,a,2\n4,b,1\n",
        ["--family", "beta"],
        "--family does not fit this log: its rewards are not 0 or 1: row 5 of",
    ),
    "clicks above impressions": (
        "task,action,clicks,impressions\n1,a,1,9\n1,b,10,9\n2,a,1,9\n3,a,1,9\n4,b,1,9\n",
        ["--family", "beta"],
        "row 2 of",
    ),
    "clicks above impressions, family not said": (
        "task,action,clicks,impressions\n1,a,1,9\n1,b,10,9\n2,a,1,9\n3,a,1,9\n4,b,1,9\n",
        [],
        "Clicks they are not: row 2 of",
    ),
    "duplicate column": (
        "task,action,reward,reward\n1,a,0,1\n",
        [],
        "the column 'reward' more than once",
    ),
    "missing column": ("task,action,x\n1,a,0\n", [], "--task task --action action --reward x"),
    "no such column": (GOOD, ["--reward", "clicks"], "--reward must be a column of"),
    "words for rewards": (GOOD + "3,a,many\n", [], "in row 5 of"),
    "decimal commas and points": (
        "task;action;reward\n1;a;0,5\n1;b;1.5\n2;a;2.5\n2;b;0.1\n",
        [],
        "in row 1 of",
    ),
    "a total that is none": (
        "task;action;clicks;impressions\na;x;1;9\nb;x;2;9\nTotal;;4;18\n",
        [],
        "'clicks' is 4, and the others add up to 3",
    ),
    "rates of no whole clicks": (
        "task;action;CTR;impressions\na;x;0.2500;8\nb;x;0.3123;8\n",
        [],
        "in row 2 of",
    ),
    "times for rewards": (HEAD + "1,a,2024-01-01\n2,a,2024-01-02\n", [], "and not numbers"),
    "no task": (GOOD + ",a,1\n", [], "in row 5 of"),
    "mixed zones": (TIMES, [], "row 2 of"),
    "mixed zones of a column of times": (
        "when,task,action,reward\n2024-01-01 00:00:00Z,1,a,1\n2024-01-01 00:00:00,2,b,0\n",
        ["--time", "when"],
        "row 2 of",
    ),
}
OTHERS: dict[tuple[str, str], str] = {
    ("one task", "backtest"): "--task must have 4 or more tasks",
}
"""What a command says instead."""


def refused(command: str, log: Path, options: list[str], words: str) -> None:
    before = sorted(log.parent.iterdir())
    line = [command, str(log), *COMMANDS[command], *options]
    done = CliRunner().invoke(app, line)
    assert done.exit_code == 2, done.output
    (said,) = done.output.splitlines()
    assert said.startswith("Error: ")
    assert not said.startswith(("Error: LOG: log", "Error: FIT: log"))
    assert words in said
    assert sorted(log.parent.iterdir()) == before


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands write here, if they write."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", CASES)
def test_a_bad_log_ends_the_command(name: str, command: str, tmp_path: Path) -> None:
    text, options, words = CASES[name]
    log = tmp_path / "log.csv"
    log.write_text(text)
    refused(command, log, options, OTHERS.get((name, command), words))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_is_not_there_is_named_once(command: str, tmp_path: Path) -> None:
    for name, words in (("log.csv", ": there is no file"), ("log.xlsx", " must be a file ending")):
        refused(command, tmp_path / name, [], words)
        done = CliRunner().invoke(app, [command, name, *COMMANDS[command]])
        assert done.output.startswith(f"Error: {'FIT' if command == 'certify' else 'LOG'}{words}")


@pytest.mark.slow
def test_a_million_arms_cannot_be_told_apart(tmp_path: Path) -> None:
    arms = np.arange(1_000_000)
    table = {"task": arms // 1000, "action": arms, "reward": (arms % 7 == 0).astype(int)}
    parquet.write_table(pa.table(table), tmp_path / "log.parquet")
    for options, words in (
        (["--arms", "same"], "'action' has 1,000,000 values, too many"),
        (["--family", "beta:separate"], "only exchangeable structures fit"),
    ):
        for command in COMMANDS:
            refused(command, tmp_path / "log.parquet", options, words)


def test_a_good_log_is_fitted(tmp_path: Path) -> None:
    """The control: nothing but what is bad is refused."""
    (tmp_path / "log.csv").write_text(GOOD)
    command = ["fit", str(tmp_path / "log.csv"), "--family", "beta:exchangeable", "--seed", "0"]
    done = CliRunner().invoke(app, [*command, "--json"])
    assert done.exit_code == 0, done.output
    assert not (tmp_path / "out").exists()
