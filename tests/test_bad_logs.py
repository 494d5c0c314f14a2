"""Logs as people have them: odd types, odd texts, odd engines. What is right is read, and what
cannot be is refused by column and row.
"""

from __future__ import annotations

import datetime as dt
import gzip
import json
import sqlite3
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from raising import raises
from typer.testing import CliRunner

import priorwise as pw
from priorwise.cli import app
from priorwise.logs import read_log


@pytest.fixture
def frame(seed: int) -> pd.DataFrame:
    """20 tasks, 3 arms, 4 pulls of each."""
    rng = np.random.default_rng(seed)
    task, action = np.divmod(np.arange(240), 12)
    return pd.DataFrame({"task": task, "action": action // 4, "reward": rng.normal(size=240)})


@pytest.fixture
def clicks(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(reward=(frame.reward > 0).astype(int))


@pytest.fixture
def sums(frame: pd.DataFrame) -> pd.DataFrame:
    """One row for each task and arm."""
    each = frame.assign(pulls=1, squares=frame.reward**2)
    return each.groupby(["task", "action"], as_index=False).sum()


def same(log: Any, frame: pd.DataFrame, **options: Any) -> None:
    """Check the sums against pandas."""
    found = read_log(log, **options)
    by_hand = frame.groupby(["task", "action"]).reward
    np.testing.assert_array_equal(found.pulls, by_hand.size())
    np.testing.assert_allclose(found.sums, by_hand.sum(), rtol=1e-12, atol=1e-12)
    assert (found.rows, len(found.tasks)) == (len(frame), frame.task.nunique())


def test_texts_are_read_whatever_their_dress(frame: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    text = frame.to_csv(index=False)
    dresses = {
        "BOM": b"\xef\xbb\xbf" + text.encode(),
        "semicolons": frame.to_csv(index=False, sep=";").encode(),
        "CRLF": frame.to_csv(index=False, lineterminator="\r\n").encode(),
        "spaces": text.replace(",", ", ").encode(),
    }
    for dress in dresses.values():
        path.write_bytes(dress)
        same(path, frame)
    odd = frame.rename(columns={"task": "my, täsk", "reward": "reward,usd"})
    odd["action"] = odd.action.map({0: 'a, "b"', 1: "z\nz", 2: "日本"})
    odd.to_csv(path, index=False, sep=";")
    same(path, frame, task="my, täsk", reward="reward,usd")
    packed = tmp_path / "log.csv.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    same(packed, frame)
    with pa.output_stream(str(tmp_path / "log.csv.zst"), compression="zstd") as file:
        file.write(text.encode())
    same(tmp_path / "log.csv.zst", frame)
    (tmp_path / "log[1].csv").write_text(text)  # no pattern: the file is there
    same(tmp_path / "log[1].csv", frame)
    same(tmp_path / "log?1].csv", frame)


def test_rewards_may_be_booleans_or_numbers_as_text(
    frame: pd.DataFrame, clicks: pd.DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "log.csv"
    same(clicks.assign(reward=clicks.reward.astype(bool)), clicks)
    for words in ({0: "False", 1: "True"}, {0: "no", 1: "yes"}):
        clicks.assign(reward=clicks.reward.map(words)).to_csv(path, index=False)
        same(path, clicks)
    same(frame.assign(reward=frame.reward.map(repr)), frame)
    late = frame.assign(reward=frame.reward.map(repr))
    late.loc[4, "reward"] = " NA "
    with raises("reward", "has no finite reward"):
        read_log(late)
    assert read_log(late, missing="drop").dropped == 1


def test_columns_of_any_type_name_tasks_and_arms(frame: pd.DataFrame) -> None:
    day, index = pd.Timestamp("2024-03-01"), pd.to_timedelta(frame.task, unit="D")
    forms = {
        "dates": frame.assign(
            task=[dt.date(2024, 1, 1) + dt.timedelta(int(t)) for t in frame.task]
        ),
        "times": frame.assign(task=day + index),
        "times with a zone": frame.assign(task=day.tz_localize("Europe/Berlin") + index),
        "decimals": frame.assign(
            task=frame.task.map(Decimal), reward=frame.reward.map(lambda r: Decimal(repr(r)))
        ),
        "large integers": frame.assign(task=frame.task.astype("uint64") + np.uint64(2**64 - 30)),
        "categories": frame.assign(action=frame.action.astype("category")),
        "nullable": frame.convert_dtypes(),
        "bytes": frame.assign(task=frame.task.map(lambda t: bytes([t]))),
        "an arm called nan": frame.assign(action=frame.action.map({0: "NA", 1: "nan", 2: "null"})),
    }
    for form in forms.values():
        same(form, frame)


def test_squares_of_large_integers_do_not_overflow(frame: pd.DataFrame) -> None:
    large = frame.assign(reward=(frame.reward * 1e12).astype("int64"))
    found = read_log(large)
    by_hand = (large.reward.astype(float) ** 2).groupby([large.task, large.action]).sum()
    np.testing.assert_allclose(found.squares, by_hand, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:The 'future.infer_string' option")  # Ibis 12 on pandas 3
def test_other_engines_and_lazy_tables_are_read(frame: pd.DataFrame, tmp_path: Path) -> None:
    """SQLite has neither isinf nor remainders of fractions; a lazy frame collects itself."""
    with sqlite3.connect(tmp_path / "log.db") as connection:
        frame.to_sql("log", connection, index=False)
        frame.assign(reward=0.5).to_sql("halves", connection, index=False)
    connection.close()
    engine = ibis.sqlite.connect(tmp_path / "log.db")
    same(engine.table("log"), frame)
    assert read_log(engine.table("halves")).not_binary is not None
    engine.disconnect()
    same(SimpleNamespace(collect=lambda: frame), frame)
    same(pa.Table.from_pandas(frame).to_reader(), frame)
    with raises("log", "unbound tables"):
        read_log(ibis.table({"task": "int64", "action": "int64", "reward": "float64"}, name="t"))


@pytest.mark.parametrize("name", ["task", "action", "reward", "pulls", "squares"])
def test_a_nan_in_parquet_is_seen(name: str, sums: pd.DataFrame, tmp_path: Path) -> None:
    """Parquet files state extremes without NaN, and DuckDB trusts them, most of all where all other
    rows are equal.
    """
    values = {column: sums[column].to_numpy(float, copy=True) for column in sums}
    values[name][4] = np.nan
    table = pa.table({key: pa.array(each, from_pandas=False) for key, each in values.items()})
    parquet.write_table(table, tmp_path / "log.parquet")
    with raises(name, f"in the column '{name}'"):
        read_log(tmp_path / "log.parquet")


def test_a_later_row_of_another_type_is_read_or_named(tmp_path: Path) -> None:
    """DuckDB tells types from the first 20,480 rows."""
    path, head = tmp_path / "log.csv", "task,action,reward\n" + "1,2,0.5\n2,2,0.25\n" * 12_000
    path.write_text(head + "three,2,1\n")
    found = read_log(path)
    assert found.tasks.tolist() == ["1", "2", "three"]
    assert found.sums.tolist() == [6000.0, 3000.0, 1.0]
    path.write_text(head + "3,2,oops\n")
    with raises("reward", "row 24,001 of"):
        read_log(path)
    path.write_text(head + "3,2\n")
    with raises("log", "line 24,002 has 2 fields, and the"):
        read_log(path)


def put(frame: pd.DataFrame, column: str, value: Any) -> pd.DataFrame:
    out = frame.astype({column: float})
    out.loc[4, column] = value
    return out


BAD_SUMS: dict[str, tuple[Any, str]] = {
    "no squares": (lambda f: put(f, "squares", np.nan), ("squares", "no finite")),
    "small squares": (lambda f: put(f, "squares", -1.0), ("squares", "no sum of squares")),
    "squares without a pull": (
        lambda f: put(put(f, "pulls", 0), "reward", 0),
        ("squares", "without a pull"),
    ),
    "negative pulls": (lambda f: put(f, "pulls", -1), ("pulls", "no whole number")),
    "infinite pulls": (lambda f: put(f, "pulls", np.inf), ("pulls", "no whole number")),
    "huge": (lambda f: put(f, "reward", 1e300), ("reward", "larger unit")),
    "an empty arm": (lambda f: f.assign(action=""), ("action", "row 1 (and 59 more)")),
    "lists": (lambda f: f.assign(task=[[each] for each in f.task]), ("task", "array<int64>")),
    "structs": (lambda f: f.assign(action=[{"a": 1}] * len(f)), ("action", "struct<a: int64>")),
    "lists of rewards": (lambda f: f.assign(reward=[[1.0]] * len(f)), ("reward", "not numbers")),
    "times as rewards": (lambda f: f.assign(reward=pd.Timestamp(0)), ("reward", "not numbers")),
    "cases": (lambda f: f.assign(Reward=1.0), ("log", "column 'reward' more than once")),
    "a column": (lambda f: f.reward, ("log", "must be a path")),
    "clicks that are none": (
        lambda f: f.drop(columns="squares"),
        ("squares", "real rewards in 'reward'"),
    ),
}


@pytest.mark.parametrize("name", BAD_SUMS)
def test_bad_sums_are_refused_by_column_and_row(name: str, sums: pd.DataFrame, seed: int) -> None:
    change, words = BAD_SUMS[name]
    assert read_log(sums).squares is not None
    with raises(words):
        pw.fit_prior(change(sums), seed=seed)


def test_rewards_far_from_zero_are_read_or_refused(frame: pd.DataFrame, seed: int) -> None:
    """Squares of numbers near 1e8 have no digits left for a spread of 1; near 1e5 they have."""
    with raises("reward", "rounding"):
        pw.fit_prior(frame.assign(reward=frame.reward + 1e8), seed=seed)
    near, far = (
        pw.fit_prior(frame.assign(reward=frame.reward + add), "gaussian:exchangeable", seed=seed)
        for add in (0.0, 1e5)
    )
    np.testing.assert_allclose(far.prior.mean - 1e5, near.prior.mean, atol=1e-6)
    np.testing.assert_allclose(far.prior.noise_var, near.prior.noise_var, rtol=1e-3)


def test_a_known_noise_needs_no_squares(sums: pd.DataFrame) -> None:
    """As the page on logs says; without them sums and means tell as much."""
    known = pw.GaussianMarginalLikelihood("diagonal", noise_var=1.0)
    one = known.fit(read_log(sums).statistics(pw.GaussianStatistics, "auto")).prior
    other = read_log(sums.drop(columns="squares")).statistics(pw.GaussianStatistics, "auto")
    np.testing.assert_allclose(known.fit(other).prior.cov, one.cov, rtol=1e-6, atol=1e-9)


def test_squares_without_pulls_and_wide_tables_are_refused(frame: pd.DataFrame, seed: int) -> None:
    with raises("squares", "pulls="):
        read_log(frame.assign(q=1.0), squares="q")
    wide = pd.DataFrame({"task": np.maximum(np.arange(200_000), 100_000), "action": 0})
    wide["action"] = np.arange(200_000)
    wide["reward"] = wide.action % 2
    with raises("action", "the task '100000' has 100,001) needs"):
        pw.fit_prior(wide, seed=seed)


def test_times_with_and_without_a_zone_are_not_mixed(frame: pd.DataFrame, tmp_path: Path) -> None:
    zones = [dt.UTC, dt.timezone(dt.timedelta(hours=2))]
    hours = [dt.datetime(2024, 1, 1, int(t), tzinfo=zones[t % 2]) for t in frame.task]
    fine = frame.assign(task=pd.Series(hours, dtype=object))
    assert len(read_log(fine).tasks) == len(set(hours))
    hours[30] = hours[30].replace(tzinfo=None)
    with raises("time", "row 31 of the frame"):
        read_log(frame.assign(task=pd.Series(hours, dtype=object)))
    path = tmp_path / "log.csv"
    path.write_text("task,action,reward\n2024-01-01 00:00:00+01:00,a,1\n2024-01-01 00:00:00,a,0\n")
    with raises("time", "the column 'task'"):
        read_log(path)
    path.write_text("task,action,reward\n2024-01-01 00:00:00+01,a,1\n2023-12-31 23:00:00Z,a,0\n")
    assert len(read_log(path).tasks) == 1


BAD_FILES: dict[str, tuple[str, bytes, str]] = {
    "only a head": ("log.csv", b"task,action,reward\n", ("log", "has no rows")),
    "short rows": ("log.csv", b"task,action,reward\n1,2,3\n1,2\n", ("log", "line 3 has 2 fields")),
    "Latin-1": (
        "log.csv",
        "täsk,action,reward\n1,2,3\n".encode("latin-1"),
        ("log", "it has 'täsk'"),
    ),
    "no gzip": ("log.csv.gz", b"task,action,reward\n1,2,3\n", ("log", "cannot be read")),
    "mixed signs": (
        "log.csv",
        b"task;action;reward\n1;2;0,5\n1;2;1.5\n",
        ("reward", "has a comma"),
    ),
    "words": (
        "log.csv",
        b"task,action,reward\n1,2,3\n1,2,?\n",
        ("reward", "has a text that is no number"),
    ),
    "no table": ("log.parquet", b"PAR1", ("log", "cannot be read")),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_end_the_command_with_a_line(name: str, tmp_path: Path) -> None:
    file, content, words = BAD_FILES[name]
    (tmp_path / file).write_bytes(content)
    out = tmp_path / "out"
    done = CliRunner().invoke(app, ["fit", str(tmp_path / file), "--seed", "0", "--out", str(out)])
    assert done.exit_code == 2
    (line,) = done.output.splitlines()
    assert line.startswith(("Error: LOG", "Error: --"))
    with raises(words):
        read_log(tmp_path / file)
    assert not out.exists()


def test_a_log_of_ones_own_is_fitted_by_the_command(clicks: pd.DataFrame, tmp_path: Path) -> None:
    own = clicks.rename(columns={"task": "Kampagne, Nr.", "action": "Bänner", "reward": "kauft?"})
    own.to_csv(tmp_path / "own.csv", index=False, sep=";")
    names = ["--task", "Kampagne, Nr.", "--action", "Bänner", "--reward", "kauft?"]
    command = ["fit", str(tmp_path / "own.csv"), "--seed", "0", "--json"]
    done = CliRunner().invoke(app, [*command, *names])
    assert done.exit_code == 0
    found = json.loads(done.output)
    assert (found["chosen"].partition(":")[0], found["fit"]["tasks"]) == ("beta", 20)
    lost = CliRunner().invoke(app, command)
    assert lost.exit_code == 2
    assert "it has 'Kampagne, Nr.', 'Bänner', 'kauft?'" in lost.output
    empty = CliRunner().invoke(app, ["fit", "", *command[2:]])
    assert (empty.exit_code, "has an empty path" in empty.output) == (2, True)


def test_bad_folders_end_the_command_with_a_line(frame: pd.DataFrame, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    (tmp_path / "other").mkdir()
    frame.to_parquet(tmp_path / "other" / "a.parquet")
    frame.rename(columns={"reward": "r"}).to_parquet(tmp_path / "other" / "b.parquet")
    twice = pa.table([[1], [2], [3.0], [4.0]], names=["task", "action", "reward", "reward"])
    parquet.write_table(twice, tmp_path / "twice.parquet")
    for name, words in (
        ("none", "must have files that"),
        ("other", "mismatch"),
        ("twice.parquet", "once"),
    ):
        done = CliRunner().invoke(app, ["fit", str(tmp_path / name), "--seed", "0", "--json"])
        assert done.exit_code == 2
        assert words in done.output
