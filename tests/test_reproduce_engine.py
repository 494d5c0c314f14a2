"""Experiments survive interruption, damage and the loss of workers with the same tables, bit for
bit.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
import toy_experiment
from raising import raises
from toy_experiment import SECONDS, WHERE, WRONG, Toy
from typer.testing import CliRunner, Result

from priorwise.cli import app
from priorwise.experiments import registry
from priorwise.experiments.experiment import Block
from priorwise.experiments.running.headline import headline, mean_text
from priorwise.experiments.running.parquet import read_parquet, to_parquet
from priorwise.experiments.running.report import as_html
from priorwise.experiments.running.run import Results, run_experiments
from priorwise.experiments.running.store import (
    BlockStore,
    Finished,
    InUseError,
    claimed,
    code_stamp,
    digest_of,
    write_whole,
)
from priorwise.experiments.running.summary import seconds_text
from priorwise.experiments.running.workers import Call, WorkersError, run_block, start_workers
from priorwise.testing import base_seed

REPLICATES = 13  # blocks of 2 and of 4: the last ones are shorter
BLOCKS = 7 + 4
SEED = 5 + base_seed()
PATIENCE = 60.0


def run(out: Path, seed: int, experiment: Toy | None = None, **options: object) -> Results:
    return run_experiments(
        [experiment or Toy()], seed=seed, replicates=REPLICATES, out=out, **{"jobs": 1, **options}
    )  # type: ignore[arg-type]


def tables(out: Path) -> dict[str, bytes]:
    found = {path.name: path.read_bytes() for path in (out / "toy").glob("*.parquet")}
    assert set(found) == {"values.parquet", "counts.parquet", "fixed.parquet"}
    return found


def blocks(out: Path) -> list[Path]:
    return sorted(out.glob("blocks/toy/*/*.npz"))


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str] | None = None) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.02)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Results]:
    """A run that nothing happened to."""
    out = tmp_path_factory.mktemp("whole")
    return out, run(out, SEED)


def test_run_writes_tables_figures_and_claims(whole: tuple[Path, Results]) -> None:
    out, results = whole
    (outcome,) = results.outcomes
    assert (outcome.blocks, outcome.resumed, len(blocks(out))) == (BLOCKS, 0, BLOCKS)
    assert [claim.holds for claim in outcome.claims] == [True, True]
    assert not results.failed
    toy = Toy()
    expected = toy.tables([(block, toy.run(block, SEED)) for block in toy.blocks(REPLICATES)])
    for name, table in expected.items():
        found = read_parquet(out / f"toy/{name}.parquet")
        assert list(found) == list(table)
        for column in table:
            np.testing.assert_array_equal(found[column], table[column])
            assert found[column].dtype.kind == table[column].dtype.kind
        assert found is not outcome.tables[name]
    assert {path.name for path in (out / "toy").iterdir()} == {
        *tables(out),
        "all_values.svg",
        "all_values.png",
    }
    total = f"{expected['values']['value'].sum():.6f}"
    assert total in (out / "toy/all_values.svg").read_text()


def test_what_is_there_is_not_run_again(whole: tuple[Path, Results], tmp_path: Path) -> None:
    shutil.copytree(whole[0] / "blocks", tmp_path / "blocks")
    results = run(tmp_path, SEED, Toy(fails_at=0))  # any block that ran would raise
    assert results.outcomes[0].resumed == BLOCKS
    assert tables(tmp_path) == tables(whole[0])


def test_an_error_in_the_middle_keeps_what_is_done(
    whole: tuple[Path, Results], tmp_path: Path
) -> None:
    with pytest.raises(RuntimeError, match="as asked") as raised:
        run(tmp_path, SEED, Toy(fails_at=9))
    assert "count=4" in raised.value.__notes__[0]
    done = len(blocks(tmp_path))
    assert 0 < done < BLOCKS
    assert not (tmp_path / "toy").exists()
    assert run(tmp_path, SEED).outcomes[0].resumed == done
    assert tables(tmp_path) == tables(whole[0])


def test_seed_constants_and_code_have_blocks_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digests = {
        digest_of(Toy(), 0),
        digest_of(Toy(), 1),
        digest_of(Toy(scale=2.0), 0),
        digest_of(Toy(name="other"), 0),
    }
    assert len(digests) == 4
    assert digest_of(Toy(fails_at=3), 0) in digests
    monkeypatch.setattr("priorwise.experiments.running.store.code_stamp", lambda: "other sources")
    assert digest_of(Toy(), 0) not in digests
    with pytest.raises(WorkersError, match="other sources or versions"):
        run_block(Call(Toy(), Block("a/b", 0, 1), 0, "other sources"))
    monkeypatch.setattr(Toy, "constants", lambda self: {"policy": repr(object())})
    with pytest.raises(ValueError, match="memory address"):
        digest_of(Toy(), 0)


@pytest.mark.parametrize("damage", ["cut", "empty", "altered", "another", "older", "array", "junk"])
def test_damaged_blocks_run_again(whole: tuple[Path, Results], tmp_path: Path, damage: str) -> None:
    shutil.copytree(whole[0] / "blocks", tmp_path / "blocks")
    toy, block = Toy(), Toy().blocks(REPLICATES)[2]
    store = BlockStore(blocks(tmp_path)[0].parent, "0123456789abcdef")
    victim, other = store.path(block), store.path(toy.blocks(REPLICATES)[3])
    content = victim.read_bytes()
    middle = content.index(b"\x93NUMPY") + 160  # inside the numbers of the first array
    changed = {
        "cut": content[: len(content) // 2],
        "empty": b"",
        "altered": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
        "another": other.read_bytes(),
        "older": b"",
        "array": content[content.index(b"\x93NUMPY") :],
        "junk": b"PK\x03\x04" + os.urandom(500),
    }
    victim.write_bytes(changed[damage])
    if damage == "older":  # whole, but made by another digest
        store.save(block, Finished(toy.run(block, SEED), 0.0))
    results = run(tmp_path, SEED)
    assert BLOCKS - results.outcomes[0].resumed == 1
    assert tables(tmp_path) == tables(whole[0])


def test_jobs_change_nothing(whole: tuple[Path, Results], tmp_path: Path) -> None:
    results = run(tmp_path, SEED, jobs=2)
    assert results.workers == "2 processes on this machine"
    assert tables(tmp_path) == tables(whole[0])
    assert run(tmp_path, SEED + 1).outcomes[0].resumed == 0
    assert tables(tmp_path) != tables(whole[0])


@pytest.mark.slow
def test_a_worker_that_dies_is_named(tmp_path: Path) -> None:
    with pytest.raises(WorkersError, match="a worker process died"):
        run(tmp_path, SEED, Toy(dies_at=0), jobs=2)
    assert not list(tmp_path.rglob("*.parquet"))


def test_blocks_may_be_cut_otherwise(whole: tuple[Path, Results], tmp_path: Path) -> None:
    run(tmp_path, SEED, Toy(size=5))
    for name in ("values", "counts", "fixed"):
        for column, values in read_parquet(tmp_path / f"toy/{name}.parquet").items():
            np.testing.assert_array_equal(values, whole[1].outcomes[0].tables[name][column])


def command(out: Path, *options: object) -> subprocess.Popen[str]:
    script = [
        sys.executable,
        toy_experiment.__file__,
        "reproduce",
        "toy",
        "--seed",
        SEED,
        "--replicates",
        REPLICATES,
        "--out",
        out,
    ]
    environment = {**os.environ, SECONDS: "0.4"}
    return subprocess.Popen(
        [str(each) for each in [*script, *options]],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_killed_and_started_again(whole: tuple[Path, Results], tmp_path: Path) -> None:
    with command(tmp_path, "--jobs", 2) as process:
        wait_for(lambda: len(blocks(tmp_path)) >= 3, process)
        with pytest.raises(InUseError, match="another run"):
            run(tmp_path, SEED)
        process.kill()
    done = len(blocks(tmp_path))
    assert 3 <= done < BLOCKS
    assert not (tmp_path / "toy").exists()
    (tmp_path / "blocks/.cut.npz.1.tmp").write_bytes(b"half")  # as if killed while writing
    (next((tmp_path / "blocks").glob("*/*")) / ".cut.npz.1.tmp").write_bytes(b"half")
    foreign = {tmp_path / ".notes.tmp", tmp_path / "blocks/.notes.tmp"}
    for path in foreign:
        path.write_bytes(b"somebody else's")
    results = run(tmp_path, SEED)
    assert results.outcomes[0].resumed == done
    assert tables(tmp_path) == tables(whole[0])
    assert set(tmp_path.rglob("*.tmp")) == foreign


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_interrupted_and_started_again(
    whole: tuple[Path, Results], tmp_path: Path, number: signal.Signals
) -> None:
    with command(tmp_path, "--jobs", 1) as process:
        wait_for(lambda: len(blocks(tmp_path)) >= 2, process)
        process.send_signal(number)
        said = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 130
    kept = f"Finished blocks are kept in {tmp_path / 'blocks'}"
    assert said.split() == f"Interrupted. {kept}: the same command goes on from there.".split()
    assert 2 <= len(blocks(tmp_path)) < BLOCKS
    assert not list(tmp_path.rglob("*.tmp"))
    run(tmp_path, SEED)
    assert tables(tmp_path) == tables(whole[0])


@pytest.mark.slow
def test_a_single_dask_worker_does_the_work() -> None:
    from distributed import Client, LocalCluster
    from joblib import Parallel, delayed

    with LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as cluster:
        with Client(cluster) as client:
            worker = next(iter(client.run(os.getpid).values()))
        with start_workers("dask", None, cluster.scheduler_address) as workers:
            ran = Parallel(batch_size=1, pre_dispatch=workers.ahead)(
                delayed(os.getpid)() for _ in range(3)
            )
    assert ran == [worker] * 3


@pytest.mark.slow
def test_dask_loses_a_worker(
    whole: tuple[Path, Results], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dask
    from distributed import Client, LocalCluster

    monkeypatch.setenv(SECONDS, "0.3")
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
        ) as cluster,
    ):
        there = {"where": "dask", "scheduler": cluster.scheduler_address, "jobs": None}
        with Client(cluster) as client:
            victim = next(iter(client.run(os.getpid).values()))

        def kill() -> None:
            wait_for(lambda: len(blocks(tmp_path)) >= 2)
            os.kill(victim, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        results = run(tmp_path, SEED, **there)
        killer.join()
        assert "Dask cluster" in results.workers
        assert results.outcomes[0].resumed == 0
        assert tables(tmp_path) == tables(whole[0])
        # a block that kills every worker must not be waited for
        with pytest.raises(WorkersError, match="gave up"):
            run(tmp_path, SEED, Toy(scale=2.0, dies_at=12), **there)


def test_files_appear_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_whole(tmp_path / "a", b"old")

    def full(self: Path, content: bytes) -> int:
        self.touch()
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="no space"):
        write_whole(tmp_path / "a", b"new")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"old"}


def test_tables_must_be_tables() -> None:
    with raises("t", "must have columns of one length"):
        to_parquet("t", {"a": np.zeros(2), "b": np.zeros(3)}, {})
    with pytest.raises(TypeError, match="numbers or text"):
        BlockStore(Path(), "").save(Block("p", 0, 1), Finished({"a": np.array([None])}, 0.0))


@pytest.mark.parametrize(
    "options", [{"jobs": 0}, {"where": "spark"}, {"replicates": 0}, {"seed": -1}]
)
def test_bad_arguments_are_named(tmp_path: Path, options: dict[str, object], seed: int) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        run_experiments([Toy()], **{"seed": 0, "replicates": 1, "out": tmp_path, **options})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="names"):
        run_experiments([Toy(), Toy()], seed=seed, replicates=1, out=tmp_path)
    assert not list(tmp_path.iterdir())


def test_report_needs_nothing_else_and_lists_every_claim(whole: tuple[Path, Results]) -> None:
    page = as_html(whole[1])
    assert "http" not in page
    assert not re.search(r'(?:src|href)="(?!data:|#)', page)
    assert "@import" not in page
    assert "url(" not in page
    assert page.count("✓ yes") == 2
    for text in (
        "values are &lt; 100 &amp; finite",
        "values are as the environment says",
        "A toy &lt;experiment&gt;",
        "data:image/svg+xml",
    ):
        assert text in page
    assert f"mean over {REPLICATES} replicates" in page
    assert "13 replicates instead of" in page
    values = whole[1].outcomes[0].tables["values"]
    # replicates are independent
    mine = values["value"][values["algorithm"] == "KG"].reshape(REPLICATES, 3).mean(axis=1)
    assert f'<td class="number">{mean_text(mine)}</td>' in page


def test_headlines() -> None:
    table = {
        "algorithm": np.array(["b", "a"] * 4),
        "replicate": np.arange(8) // 2,
        "reward": np.arange(8.0),
        "n": np.ones(8, int),
    }
    shown = headline(table)
    assert shown is not None
    assert shown.columns == ("algorithm", "n", "reward")
    assert shown.rows == (("b", "1", "3.0 ± 1.3"), ("a", "1", "4.0 ± 1.3"))
    assert headline({"x": np.arange(10_000)}) is None
    assert [seconds_text(each) for each in (0.81, 12.2, 185.4)] == ["0.8 s", "12 s", "3 min 05 s"]


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.EXPERIMENTS, "toy", ("paper", WHERE))


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)])


@pytest.mark.usefixtures("registered")
def test_command_judges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = call("toy", "--jobs", 1, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "2 of 2 claims hold" in result.stdout
    assert str(tmp_path / "report.html") in result.stdout
    assert "claims may fail" not in result.stdout
    monkeypatch.setenv(WRONG, "1")
    result = call("toy", "--jobs", 1, "--out", tmp_path)
    assert result.exit_code == 1
    assert "1 of 2 claims hold" in result.stdout
    assert "Fails  toy: values are as the environment says" in result.stdout
    assert "all 75 blocks were there already and cost nothing" in result.stdout
    assert "✗ no" in (tmp_path / "report.html").read_text()
    for fewer in (["--replicates", 99], ["--quick"]):
        result = call("toy", "--jobs", 1, "--out", tmp_path, *fewer)
        assert result.exit_code == 0
        assert "1 of 2 claims hold" in result.stdout
        assert "claims may fail by chance" in result.stdout
    assert "claims may fail by chance" in (tmp_path / "report.html").read_text()


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("toyy",),
            "TARGET must be an experiment, one of gaussian",
        ),
        (("toy", "--where", "spark"), "--where: 'spark' is not one of local, dask"),
        (
            ("toy", "--scheduler", "tcp://x:1"),
            "--scheduler: only for a Dask cluster; add --where dask",
        ),
        (
            ("toy", "--scheduler", "tcp://x:1", "--where", "dask", "--jobs", "2"),
            "--jobs: the cluster",
        ),
        (("toy", "--replicates", "0"), "--replicates: must be at least 1, got 0"),
        (("toy", "--jobs", "0"), "--jobs: must be at least 1, got 0"),
        (("toy", "--seed", "-1"), "--seed: seed must be at least 0"),
        (("toy", "--quick", "--replicates", "5"), "--quick: means --replicates"),
        (("toy", "--out", "{file}"), "--out: "),
        (("toy", "--out", "{used}"), "--out: another run is writing to"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    (tmp_path / "file").touch()
    with claimed(tmp_path / "used"):
        places = {"file": tmp_path / "file", "used": tmp_path / "used"}
        result = call(
            *(each.format(**places) for each in arguments),
            *(() if "--out" in arguments else ("--out", tmp_path / "out")),
        )
    assert result.exit_code == 2, result.output
    assert len(result.stderr.strip().splitlines()) == 1
    assert result.stderr.startswith(f"Error: {says}")
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("registered")
def test_registry_names_groups_and_leaves_out_what_is_missing() -> None:
    groups = registry.groups()
    assert groups["paper"] == ["gaussian", "linear", "discrete", "toy"]
    assert "later" not in groups
    assert "absent" not in groups["all"]
    assert registry.names_of(["toy", "paper", "gaussian"]) == groups["paper"]
    assert registry.load("toy") == Toy()


def test_help_teaches() -> None:
    text = call("--help").stdout
    for word in (
        "priorwise reproduce paper --seed 7",
        "--where dask --scheduler",
        "dask worker",
        "goes on from there",
        "gaussian",
    ):
        assert word in text


def test_the_report_keeps_what_earlier_calls_made(tmp_path: Path) -> None:
    first, second = Toy(), Toy(name="other", title="Another toy", scale=2.0)
    everything = run_experiments(
        [first, second], seed=SEED, replicates=REPLICATES, out=tmp_path, jobs=1
    )
    again = run(tmp_path, SEED, first, others=[second])
    assert (
        [each.name for each in again.outcomes],
        [each.name for each in again.kept],
        again.stale,
    ) == (["toy"], ["other"], ())
    (kept,) = again.kept
    assert (kept.digest, kept.claims, kept.blocks) == (
        everything.outcomes[1].digest,
        everything.outcomes[1].claims,
        BLOCKS,
    )
    for name, table in everything.outcomes[1].tables.items():
        for column in table:
            np.testing.assert_array_equal(kept.tables[name][column], table[column])
    page = as_html(again)
    assert page.count("<section id=") == 2
    assert "4 of 4" in page
    assert "From an earlier call; 11 blocks" in page
    assert "with the same seed, replicates and sources: other." in page
    for changed in ({"seed": SEED + 1}, {"replicates": REPLICATES + 1}):
        options: dict[str, Any] = {
            "seed": SEED,
            "replicates": REPLICATES,
            "out": tmp_path,
            "jobs": 1,
        } | changed
        now = run_experiments([first], others=[second], **options)
        assert (now.kept, now.stale) == ((), ("other",))
        assert as_html(now).count("<section id=") == 1
        assert (
            "Left out, since an earlier call made them with another seed, replicates or sources: "
            "other." in as_html(now)
        )
    (tmp_path / "elsewhere").mkdir()
    assert run(tmp_path / "elsewhere", SEED, first, others=[second]).stale == ()


@pytest.mark.usefixtures("registered")
def test_command_keeps_other_sections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.EXPERIMENTS, "other", ("ours", "toy_experiment:OTHER"))
    assert call("toy", "other", "--jobs", 1, "--out", tmp_path).exit_code == 0
    result = call("toy", "--jobs", 1, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "From earlier calls, with the same seed, replicates and sources: other." in result.stdout
    page = (tmp_path / "report.html").read_text()
    assert 'id="toy"' in page
    assert 'id="other"' in page


class Compiling(Toy):
    """Compiles in every block."""

    def run(self, block: Block, seed: int) -> dict[str, Any]:
        numba.njit(lambda x: x + 1.0)(float(seed))
        return super().run(block, seed)


def test_compiling_is_booked_apart(tmp_path: Path) -> None:
    block = Block("a/b", 0, 2)
    _, plain = run_block(Call(Toy(), block, SEED, code_stamp()))
    _, compiled = run_block(Call(Compiling(), block, SEED, code_stamp()))
    assert plain.compiling == 0.0
    assert compiled.compiling > 0.0
    assert compiled.seconds >= 0.0
    results = run(tmp_path, SEED, Compiling())
    assert results.compiling > 0.0
    assert results.seconds == pytest.approx(results.outcomes[0].seconds + results.compiling)
    page = as_html(results)
    assert "compiling, about" in page
    # all blocks are there: nothing compiles
    assert "compiling, about" not in as_html(run(tmp_path, SEED, Compiling()))
