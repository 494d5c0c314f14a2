"""Command lines and files that no one should have written: what ``test_hostile_cli`` runs through
the command line.

Each is refused with exit code 2 and one line on standard error that holds ``names``: the option or
argument at fault. ``python tests/hostile_cli.py`` prints every message, to be read.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

import priorwise as pw
from priorwise.cli import app
from priorwise.experiments import problems

RUN = "--horizon 4 --tasks 100 --seed 3"


@dataclass(frozen=True)
class Case:
    """A command line, what its error must hold, and what it reads from standard input."""

    line: tuple[str, ...]
    names: str
    text: str | bytes | None = None

    @property
    def label(self) -> str:
        return " ".join(
            each if len(each) < 30 else f"{each[:20]}...{len(each)}" for each in self.line
        )


def case(line: str, names: str, *more: str, text: str | bytes | None = None) -> Case:
    return Case((*line.split(), *more), names, text)


def document(family: str, **fields: Any) -> str:
    return json.dumps({"priorwise": 1, "family": family, **fields})


def files() -> Mapping[str, str | bytes]:
    """Content of the bad prior files, by name."""
    gaussian = problems.gaussian().prior.to_json()  # type: ignore[attr-defined]
    fit = json.loads(
        pw.PriorFit(
            pw.BetaPrior([2, 3], [8, 9]), "by hand", 7, std_errors={"alpha": [0.1, 0.2]}
        ).to_json()
    )
    contexts = {"family": "sphere-contexts", "arms": 4}
    linear = {"mean": [0, 0], "cov": [[1, 0], [0, 1]], "contexts": contexts}
    return {
        "empty": "",
        "spaces": "   \n\t ",
        "binary": bytes(range(256)) * 8,
        "zeros": bytes(4096),
        "utf16": gaussian.encode("utf-16"),
        "utf32": gaussian.encode("utf-32"),
        "latin1": '{"priorwise": 1, "family": "gauß"}'.encode("latin-1"),
        "pickle": b"\x80\x05\x95\x1a\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x94"
        b"\x8c\x06system\x94\x93\x94.",
        "png": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
        "cut": gaussian[: len(gaussian) // 2],
        "doubled": gaussian + gaussian,
        "trailing comma": '{"priorwise": 1, "family": "beta", "alpha": [1,], "beta": 1}',
        "single quotes": "{'priorwise': 1}",
        "comment": '// mine\n{"priorwise": 1}',
        "nested lists": "[" * 200_000 + "]" * 200_000,
        "nested fields": '{"x":' * 50_000 + "1" + "}" * 50_000,
        "nested alpha": '{"priorwise":1,"family":"beta","beta":1,"alpha":'
        + "[" * 300 + "1" + "]" * 300 + "}",
        "nested families": '{"priorwise":1,"family":"prior-fit","estimator":"x","tasks":1,"prior":'
        + '{"family":"prior-fit","estimator":"x","tasks":1,"prior":' * 400 + "1" + "}" * 401,
        "digits": '{"priorwise":1,"family":"beta","beta":1,"alpha":' + "9" * 6_000 + "}",
        "negative digits": '{"priorwise":1,"family":"exchangeable-beta","beta":1,"alpha":-'
        + "9" * 6_000 + "}",
        "exponent": '{"priorwise":1,"family":"beta","beta":1,"alpha":1e99999}',
        "twice": '{"priorwise":1,"family":"beta","beta":1,"alpha":1,"beta":2}',
        "twice inside": '{"priorwise":1,"family":"linear-gaussian","mean":[1],"cov":[[1]],'
        '"contexts":'
        '{"family":"sphere-contexts","arms":3,"arms":4}}',
        "long family": document("f" * 3_000_000),
        "long field": document("beta", alpha=1, beta=1, **{"f" * 3_000_000: 1}),
        "long value": document("beta", alpha="f" * 3_000_000, beta=1),
        "array": "[1, 2, 3]",
        "string": '"prior"',
        "null": "null",
        "no version": json.dumps({"family": "beta", "alpha": 1, "beta": 1}),
        "version 2": json.dumps({"priorwise": 2, "family": "beta", "alpha": 1, "beta": 1}),
        "version true": json.dumps({"priorwise": True, "family": "beta", "alpha": 1, "beta": 1}),
        "family null": document(None),  # type: ignore[arg-type]
        "family list": json.dumps({"priorwise": 1, "family": ["beta"]}),
        "family typo": document("gausian"),
        "contexts only": document("sphere-contexts", arms=3),
        "uncertainty only": document("dirichlet-uncertainty", counts=[1, 1]),
        "no alpha": document("beta", beta=1),
        "alpha null": document("beta", alpha=None, beta=1),
        "alpha true": document("beta", alpha=True, beta=1),
        "alpha text": document("beta", alpha=["1", "2"], beta=1),
        "alpha dict": document("beta", alpha={"a": 1}, beta=1),
        "alpha zero": document("beta", alpha=[0, 1], beta=1),
        "alpha empty": document("beta", alpha=[], beta=[]),
        "alpha ragged": document("beta", alpha=[[1, 2], [3]], beta=1),
        "alpha NaN": '{"priorwise": 1, "family": "beta", "alpha": [NaN], "beta": 1}',
        "alpha Infinity": '{"priorwise": 1, "family": "beta", "alpha": [Infinity], "beta": 1}',
        "cov vector": document("gaussian", mean=[0, 0], cov=[1, 1]),
        "cov asymmetric": document("gaussian", mean=[0, 0], cov=[[1, 1], [0, 1]]),
        "cov indefinite": document("gaussian", mean=[0, 0], cov=[[1, 2], [2, 1]]),
        "noise zero": document("gaussian", mean=[0, 0], cov=[[1, 0], [0, 1]], noise_var=0),
        "noise text": document("gaussian", mean=[0, 0], cov=[[1, 0], [0, 1]], noise_var="small"),
        "probs sum": document("finite", means=[[0, 1], [1, 0]], probs=[0.5, 0.6]),
        "probs negative": document("finite", means=[[0, 1], [1, 0]], probs=[1.5, -0.5]),
        "noise unknown": document("finite", means=[[0, 1], [1, 0]], probs=[0.5, 0.5],
        noise="poisson"),
        "correlation": document("exchangeable-gaussian", mean=0, var=1, correlation=2),
        "contexts number": document("linear-gaussian", **{**linear, "contexts": 4}),
        "contexts prior": document("linear-gaussian", **{**linear, "contexts": {"family": "beta",
        "alpha": 1, "beta": 1}}),
        "contexts arms": document("linear-gaussian", **{**linear, "contexts": {**contexts,
        "arms": 0}}),
        "contexts many": document("linear-gaussian", **{**linear, "contexts": {**contexts,
        "arms": 10**13}}),
        "fit tasks": json.dumps({**fit, "tasks": -1}),
        "fit flag": json.dumps({**fit, "converged": "yes"}),
        "fit errors": json.dumps({**fit, "std_errors": {"alpha": ["a", 1]}}),
        "fit prior": json.dumps({**fit, "prior": contexts}),
        "fit uncertainty": json.dumps({**fit, "uncertainty": contexts}),
        "fit statistics": json.dumps({**fit, "statistics": [1]}),
        "fit without prior": json.dumps({key: value for key,
        value in fit.items() if key != "prior"}),
    }  # fmt: skip


def make(directory: Path) -> None:
    """Write the good files and the bad ones."""
    problem = problems.gaussian()
    problem.prior.save(directory / "prior.json")  # type: ignore[attr-defined]
    problem.misspecified.save(directory / "wrong.json")  # type: ignore[attr-defined]
    problems.linear().prior.save(directory / "linear.json")  # type: ignore[attr-defined]
    pw.ExchangeableBetaPrior(2, 8).save(directory / "arms.json")
    pw.BetaPrior([2, 3], 8).save(directory / "two.json")
    (directory / "folder").mkdir()
    (directory / "taken").mkdir()
    (directory / "taken" / "blocks").write_text("")
    (directory / "page").mkdir()
    (directory / "page" / "report.html").mkdir()
    (directory / "curve" / "simulate.png").mkdir(parents=True)
    (directory / "ladder" / "bound.json").mkdir(parents=True)
    (directory / "loop").symlink_to("loop")
    for name, content in files().items():
        (directory / f"{name}.bad").write_bytes(
            content.encode() if isinstance(content, str) else content
        )


def cases() -> Iterator[Case]:
    """All of them."""
    long = "n" * 300
    yield from (
        case("simulate", "PRIOR: ", f"{name}.bad", *f"-p ts {RUN}".split()) for name in files()
    )
    yield from (
        case(f"bound prior.json -p ts {RUN}", "BELIEVED: ", f"{name}.bad")
        for name in list(files())[::6]
    )
    yield from (
        case(f"simulate - -p ts {RUN}", "PRIOR: ", text=content)
        for content in list(files().values())[::4]
    )
    # numbers
    for option in ("--horizon", "--tasks", "--seed", "--threads"):
        for value in ("0x10", "1e20", "1_0_", "ten", "", " ", "1.5", "-5", "nan", "inf", "१०0x"):
            yield case(
                "simulate prior.json -p ts",
                f"{option}: ",
                *f"{RUN} --threads 1".split(),
                f"{option}={value}",
            )
    for option in ("--horizon", "--tasks", "--threads"):
        yield case(f"simulate prior.json -p ts {RUN} {option} 0", f"{option}: ")
    for value in ("99999999999999999999", "1" + "0" * 400, "18446744073709551616"):
        for option in ("--horizon", "--tasks", "--seed", "--threads"):
            yield case(f"simulate prior.json -p ts {RUN} {option} {value}", f"{option}: ")
        yield case(f"simulate arms.json -p ts {RUN} --arms {value}", "--arms: ")
        yield case(f"bound prior.json wrong.json -p ts {RUN} --horizon {value}", "--horizon: ")
        yield case(f"bound prior.json wrong.json -p ts {RUN} --tasks {value}", "--tasks: ")
        yield case(f"bound prior.json wrong.json -p ts {RUN} --histories {value}", "--histories: ")
        yield case(f"reproduce gaussian --replicates {value}", "--replicates: ")
        yield case(f"reproduce gaussian --seed {value}", "--seed: ")
        yield case(f"reproduce gaussian --jobs {value}", "--jobs: ")
        for word in ("softmax", "sum", "kshot"):
            yield case(f"simulate prior.json {RUN} -p {word}:{value}", "--policy: ")
        yield case(f"simulate prior.json {RUN} -p kg:{value},2", "--policy: ")
    for size in ("10_000_000_000_000", "9223372036854775807"):
        yield case(f"simulate prior.json -p ts {RUN} --tasks {size} --horizon 100", "--tasks")
        yield case(f"simulate prior.json -p ts {RUN} --horizon {size}", "--horizon")
        yield case(f"simulate arms.json -p ts {RUN} --arms {size}", "--arms: ")
        yield case(f"bound prior.json wrong.json -p ts {RUN} --horizon {size}", "--horizon")
        yield case(
            f"bound prior.json wrong.json -p ts {RUN} --horizon 100 --tasks {size}", "--tasks"
        )
        yield case(f"reproduce gaussian --replicates {size}", "--replicates: ")
        yield case(f"bound prior.json wrong.json -p ts {RUN} --histories {size}", "--histories: ")
    yield case(
        "simulate prior.json -p kg:10000,10000 --horizon 1000 --tasks 1000000 --seed 0", "--tasks"
    )
    # policies
    words = (
        "", ":", "ts:", "ts:1", "sum:", "sum:-1", "sum:1.5", "sum:8,", "sum:k=8,k=9", "sum:8,9",
        "kg:1", "kg:0,1", "kg:1,1,ties=coin", "rhc:1,1,2", "rhc:1,1,nan", "exact-kg:x",
        "top-two:2", "top-two:nan", "TS", "thompson", "uniform:1", "w" * 5_000, "sum:" + "8" *
        5_000, "\u202ets", "ts;rm", "\x1b[31mts", "t\0s",
    )  # fmt: skip
    for word in words:
        yield case(f"simulate prior.json {RUN} -p", "--policy: ", word)
    yield case(f"simulate prior.json {RUN} -p ts -p ts", "--policy: ")
    yield case(f"simulate prior.json {RUN}", "--policy ")
    yield case(f"bound prior.json wrong.json {RUN} -p ts -p greedy", "--policy: ")
    yield case(f"bound prior.json wrong.json {RUN} -p nope", "--policy: ")
    # where it writes
    for out in ("", " ", "\t", long, f"deep/{long}", "/".join(["d" * 200] * 30), "prior.json",
    "prior.json/sub", "loop", "loop/sub",
                "/dev/null", "/proc/nothing", "a\0b"):  # fmt: skip
        yield case(f"simulate prior.json -p ts {RUN} --out", "--out: ", out)
        yield case(f"bound prior.json wrong.json -p ts {RUN} --out", "--out: ", out)
        yield case("reproduce gaussian --quick --out", "--out: ", out)
    yield case(f"simulate prior.json -p ts {RUN} --out curve", "--out: ")
    yield case(f"bound prior.json wrong.json -p ts {RUN} --out ladder", "--out: ")
    yield case("reproduce gaussian --quick --out taken", "--out: ")
    yield case("reproduce gaussian --quick --out page", "--out: ")
    # what it reads
    for path in (
        "",
        " ",
        "none.json",
        "folder",
        "loop",
        long,
        "n" * 6_000,
        "/dev/null",
        "/dev/zero",
        "~",
        "*",
        "\x1b[2J",
        "a\0b",
    ):
        yield case(f"simulate -p ts {RUN}", "PRIOR: ", path)
        yield case(f"simulate prior.json -p ts {RUN} --believed", "--believed: ", path)
        yield case(f"bound prior.json -p ts {RUN}", "BELIEVED: ", path)
    yield case(f"simulate prior.json --believed linear.json -p ts {RUN}", "--believed: ")
    yield case(f"simulate prior.json --believed two.json -p ts {RUN}", "--believed: ")
    yield case(f"simulate - --believed - -p ts {RUN}", "--believed: ", text="{}")
    yield case(f"bound - - -p ts {RUN}", "BELIEVED: ", text="{}")
    yield case(f"bound prior.json linear.json -p ts {RUN}", "BELIEVED: ")
    yield case(f"bound prior.json wrong.json -p ts {RUN} --histories 1", "--histories: ")
    yield case(f"simulate prior.json -p ts {RUN} --arms 3", "--arms: ")
    yield case(f"simulate arms.json -p ts {RUN}", "--arms: ")
    for arms in ("0", "-1", "two", "1.5", ""):
        yield case(f"simulate arms.json -p ts {RUN}", "--arms: ", f"--arms={arms}")
    # words
    yield case("simulat prior.json", "simulat")
    yield case(f"simulate prior.json -p ts {RUN} --tsaks 3", "--tsaks")
    yield case(f"simulate prior.json extra.json -p ts {RUN}", "extra.json")
    yield case("simulate", "PRIOR ")
    yield case("simulate prior.json -p ts --seed 0", "--horizon ")
    yield case("simulate prior.json -p ts --horizon 3", "--seed ")
    yield case("simulate prior.json -p ts --seed 0 --horizon", "--horizon")
    yield case("bound prior.json", "BELIEVED ")
    for family in ("cauchy", "", "GAUSSIAN", "f" * 5_000):
        yield case("example", "FAMILY: ", family)
    yield case("example", "FAMILY ")
    yield case("example exchangeable-beta --misspecified", "--misspecified: ")
    for target in ("nothing", "", "gausian", "t" * 5_000, "../gaussian"):
        yield case("reproduce", "TARGET: ", target)
    for engine in ("spark", "", "LOCAL", "e" * 5_000):
        yield case("reproduce gaussian", "--where: ", f"--where={engine}")
    for address in ("", " "):
        yield case("reproduce gaussian --where dask --scheduler", "--scheduler: ", address)
    yield case("reproduce gaussian --scheduler tcp://localhost:1", "--scheduler: ")
    yield case("reproduce gaussian --where dask --scheduler tcp://localhost:1 --jobs 2", "--jobs: ")
    yield case("reproduce gaussian --quick --replicates 9", "--quick: ")
    for value in ("0", "-1", "many", "1e3", ""):
        yield case("reproduce gaussian", "--replicates: ", f"--replicates={value}")
        yield case("reproduce gaussian", "--jobs: ", f"--jobs={value}")


SECONDS = 60
"""After so long a case counts as one that hangs; most take a hundredth of one."""


def run(each: Case) -> tuple[str, Result]:
    """Run a case in this process; return what is wrong with how it ended, or nothing."""

    def hang(*_: object) -> None:
        raise AssertionError("hangs")

    before = signal.signal(signal.SIGALRM, hang)
    signal.alarm(SECONDS)
    try:
        result = CliRunner().invoke(app, list(each.line), input=each.text)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    lines = result.stderr.strip().splitlines()
    if not isinstance(result.exception, SystemExit):
        return f"a traceback: {result.exception!r}", result
    if result.exit_code != 2:
        return f"exit code {result.exit_code}", result
    if (
        result.stdout
        or len(lines) != 1
        or not lines[0].startswith("Error: ")
        or len(lines[0]) > 1_100
    ):
        return "more than one line", result
    if not lines[0].isprintable():
        return "signs that steer a terminal", result
    name = each.names.removesuffix(": ")  # or "--arms must be ..."
    fits = each.names in lines[0] or f"{name} " in lines[0]
    return "" if fits else f"does not name {each.names!r}", result


if __name__ == "__main__":
    os.chdir(tempfile.mkdtemp())
    make(Path.cwd())
    for each in cases():
        start = time.perf_counter()
        wrong, result = run(each)
        seconds = time.perf_counter() - start
        sys.stdout.write(
            f"{f'*** {wrong}: ' if wrong else ''}{each.label} ({seconds:.1f} s)\n    "
            f"{result.stderr.strip()[:400]}\n"
        )
