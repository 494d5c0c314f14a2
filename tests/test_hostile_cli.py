"""The command line is given what no one should have written: one line that names it, whatever the
terminal, disk or moment.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hostile_cli import Case, cases, make, run
from raising import raises
from typer.testing import CliRunner

import priorwise as pw
from priorwise.cli import app
from priorwise.cli.inputs import _standard_input
from priorwise.experiments.experiment import Block, Claim
from priorwise.experiments.running.store import Finished
from priorwise.experiments.running.workers import (
    Call,
    code_stamp,
    interrupts_waiting,
    start_workers,
)

CASES = list(cases())
RUN = ("--horizon", "3", "--tasks", "50", "--seed", "0")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("hostile")
    make(directory)
    return directory


@pytest.mark.parametrize("bad", CASES, ids=[f"{at}: {each.label}" for at, each in enumerate(CASES)])
def test_bad_command_lines(bad: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    before = sorted(Path.cwd().iterdir())
    wrong, result = run(bad)
    assert not wrong, result.output
    assert sorted(Path.cwd().iterdir()) == before  # nothing written


def priorwise(*arguments: object, **options: object) -> subprocess.CompletedProcess[bytes]:
    line = [sys.executable, "-m", "priorwise", *map(str, arguments)]
    return subprocess.run(
        line, check=False, stderr=subprocess.PIPE, **({"stdout": subprocess.PIPE} | options)
    )  # type: ignore[call-overload, no-any-return]


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_terminals_that_lack_signs(encoding: str, folder: Path) -> None:
    line = (
        "simulate",
        "prior.json",
        "-p",
        "ts",
        "-p",
        "greedy",
        "--believed",
        "wrong.json",
        *RUN,
        "--out",
        encoding,
    )
    done = priorwise(*line, cwd=folder, env=os.environ | {"PYTHONIOENCODING": encoding})
    assert done.returncode == 0, done.stderr
    shown = done.stdout.decode(encoding)
    assert "greedy" in shown
    assert ("+-" if encoding == "ascii" else "±") in shown
    assert "?" not in shown


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize(
    "line", [("example", "gaussian"), ("simulate", "prior.json", "-p", "ts", *RUN, "--json")]
)
def test_standard_output_on_a_full_disk(line: tuple[str, ...], folder: Path) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = priorwise(*line, cwd=folder, stdout=full)
    assert done.returncode == 1
    assert done.stderr.decode().splitlines() == [
        (
            "Error: standard output: [Errno 28] No space left on device; make room, or send it "
            "elsewhere"
        )
    ]


def test_standard_output_that_is_closed(folder: Path) -> None:
    """Nor does a backend of Matplotlib that does not exist matter: figures go to files."""
    line = ("simulate", "prior.json", "-p", "ts", *RUN, "--out", "closed")
    done = priorwise(
        *line,
        cwd=folder,
        env=os.environ | {"MPLBACKEND": "none at all"},
        preexec_fn=lambda: os.close(1),
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert (folder / "closed" / "simulate.png").exists()


def test_standard_input_that_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with raises("standard input", "is closed"):
        _standard_input()


def test_a_reader_that_leaves_is_no_error(folder: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as gone:
        done = priorwise("example", "linear", cwd=folder, stdout=gone)
    assert not done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("typer", ["--version"]),
        ("priorwise.experiments.registry", ["--version"]),
        ("numba", ["simulate", "prior.json", "-p", "ts", *RUN]),
    ],
)
def test_interrupted_while_importing(module: str, arguments: list[str], folder: Path) -> None:
    code = f"""
import os, signal, sys
sys.argv = ["/usr/bin/priorwise", *{arguments!r}]
class Interrupt:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
from priorwise.cli import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=folder
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "Interrupted. No file was written or changed.\n"


def test_a_library_user_keeps_the_exception() -> None:
    code = (
        "import signal, priorwise; assert signal.getsignal(signal.SIGINT) is "
        "signal.default_int_handler"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


class Masked:
    """Says of each worker whether an interruption can reach it."""

    name = title = "masked"

    def run(self, block: Block, seed: int) -> dict[str, np.ndarray]:
        return {"held": np.array([signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])])}

    def claims(self, tables: object) -> list[Claim]:
        return []


def test_workers_never_see_an_interruption() -> None:
    with start_workers("local", 2, None) as workers:
        done: list[tuple[Block, Finished]] = list(
            workers.run([Call(Masked(), Block("p", at, 1), 0, code_stamp()) for at in range(4)])  # type: ignore[arg-type]
        )
    assert len(done) == 4
    assert all(finished.arrays["held"].all() for _, finished in done)
    with pytest.raises(KeyboardInterrupt), interrupts_waiting():  # noqa: PT012
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        waited = True
    assert waited


def test_two_policies_are_not_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(
        app, ["bound", "prior.json", "wrong.json", "-p", "ts", "-p", "greedy", *RUN]
    )
    assert "one policy at a time, got ts and greedy" in result.stderr


def test_only_a_full_disk_is_told_to_make_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pw.BetaPrior([1, 2], 3).save("prior.json")
    for error, says in (
        (OSError(28, "No space left on device"), "make room"),
        (IsADirectoryError("x is a directory"), "move what"),
    ):

        def broken(*_: object, error: OSError = error, **__: object) -> None:
            raise error

        monkeypatch.setattr("priorwise.experiments.running.run.run_experiments", broken)
        result = CliRunner().invoke(app, ["reproduce", "gaussian"])
        assert result.exit_code == 2
        assert says in result.stderr
        assert ("make room" in result.stderr) == (says == "make room")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("missing", "code", "says"),
    [
        (
            "pytest",
            "import priorwise.testing",
            "holds test classes for pytest, which is not installed; pip install pytest",
        ),
        (
            "distributed",
            (
                "from priorwise.experiments.running.workers import start_workers; "
                "start_workers('dask', 1, None).__enter__()"
            ),
            "Dask is not installed; pip install 'priorwise[dask]', or '.[dask]' in a checkout",
        ),
    ],
)
def test_what_is_not_installed_is_named_with_its_cure(missing: str, code: str, says: str) -> None:
    hide = f"import sys; sys.modules[{missing!r}] = None; "
    done = subprocess.run(
        [sys.executable, "-c", hide + code], capture_output=True, text=True, check=False
    )
    assert done.stderr.splitlines()[-1].endswith(says)


def test_every_extra_is_used() -> None:
    """An extra installs what some file of the package imports, or, where it brings the engine of
    a table that users hand over, some test; ``dev`` is for those who work on it.
    """
    root = Path(__file__).parent.parent
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    files = [*(root / "src").rglob("*.py"), *(root / "tests").glob("test_*.py")]
    imported = "\n".join(path.read_text() for path in files)
    for extra, packages in extras.items():
        for package in packages if extra not in ("dev", "all") else ():
            name = re.split(r"[\[<>=~ ]", package)[0].replace("-", "_").removesuffix("_framework")
            used = re.search(rf"^\s*(?:import|from) {name}\b", imported, re.MULTILINE)
            # distributed needs dask
            assert used or name == "dask", f"{extra} installs {package}, which nothing imports"
