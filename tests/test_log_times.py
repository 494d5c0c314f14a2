"""Logs with times: rewards that may still come, periods and fading tasks; and rewards of
which most are zero.
"""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from raising import raises
from typer.testing import CliRunner

import priorwise as pw
from priorwise.cli import app
from priorwise.logs import read_log
from priorwise.logs.times import faded

DAY = pd.Timestamp("2024-03-01")


@pytest.fixture
def frame(seed: int) -> pd.DataFrame:
    """One task a day for 40 days, two arms, five pulls of each, clicks."""
    rng = np.random.default_rng(seed)
    task, pull = np.divmod(np.arange(400), 10)
    return pd.DataFrame(
        {
            "task": task,
            "action": np.where(pull < 5, "a", "b"),
            "reward": rng.integers(0, 2, 400),
            "day": DAY + pd.to_timedelta(task, unit="D"),
        }
    )


FORMS: dict[str, Any] = {
    "times": lambda day: day,
    "days": lambda day: day.dt.date,
    "zones": lambda day: day.dt.tz_localize("UTC"),
    "numbers": lambda day: (day - DAY).dt.days,
    "halves": lambda day: (day - DAY).dt.days.astype(float),
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_whose_rewards_may_still_come_are_left_out(form: str, frame: pd.DataFrame) -> None:
    """The last day is the 39th: with a window of 7 the days 33 to 39 are too young. A missing
    reward among them is no fault; one before is, and keeps the number of its row.
    """
    late = frame.assign(day=FORMS[form](frame.day), reward=frame.reward.astype(float))
    late.loc[395, "reward"] = np.nan
    with raises("reward", "row 396"):
        read_log(late, time="day")
    found = read_log(late, time="day", window=7)
    assert (found.rows, len(found.tasks), found.dropped) == (330, 33, 0)
    (said,) = found.left
    assert "70 rows younger" in said
    late.loc[20, "reward"] = np.nan
    since = {"times": "2024-03-02", "days": dt.date(2024, 3, 2), "zones": "2024-03-02T00:00+00:00"}
    with raises("reward", "row 21"):
        read_log(late, time="day", window=7, since=since.get(form, 1))


def test_periods_are_cut_and_said(frame: pd.DataFrame, tmp_path: Path, seed: int) -> None:
    options: Any = {"time": "day", "since": "2024-03-11", "until": "2024-03-30"}
    found = pw.fit_prior(frame, "beta:exchangeable", seed=seed, window=5.0, **options)
    assert found.log.tasks.tolist() == list(range(10, 25))
    assert "200 rows outside since=2024-03-11 and until=2024-03-30" in str(found)
    assert "50 rows younger than that at 2024-03-30" in str(found)
    frame.to_csv(tmp_path / "log.csv", index=False)
    words = ["--time", "day", "--since", "2024-03-11", "--until", "2024-03-30", "--window", "5"]
    command = ["fit", str(tmp_path / "log.csv"), "--seed", "0", "--family", "beta:exchangeable"]
    done = CliRunner().invoke(app, [*command, *words, "--json"])
    assert done.exit_code == 0
    assert json.loads(done.output)["fit"]["tasks"] == 15


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no column": ({"window": 7, "time": "none"}, ("window", "the column of times")),
    "no column, fading": ({"half_life": 7, "time": "none"}, ("half_life", "the column of times")),
    "no times": ({"time": "word", "window": 7}, ("time", "the column 'word'")),
    "no day": ({"time": "day", "since": "soon"}, ("since", "must be a day or a time")),
    "a zone": ({"time": "day", "since": "2024-03-01T00:00+01:00"}, ("since", "without a zone")),
    "nothing": ({"time": "day", "since": "2025-01-01"}, ("since", "no row of the frame")),
    "too long": ({"time": "day", "window": 99}, ("window", "no row of the frame")),
    "negative": ({"time": "day", "window": -1}, ("window", "must be positive")),
    "a word": ({"reward_as": "money"}, ("reward_as", "must be")),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_times_are_refused(name: str, frame: pd.DataFrame, seed: int) -> None:
    options, words = BAD[name]
    with raises(words):
        pw.fit_prior(frame.assign(word="x"), "beta:exchangeable", seed=seed, **options)


def test_a_row_without_a_time_is_named(frame: pd.DataFrame) -> None:
    frame.loc[6, "day"] = pd.NaT
    for options in ({}, {"window": 7}):
        with raises("time", "row 7 of the frame"):
            read_log(frame, time="day", **options)


def test_old_tasks_fade_by_half(seed: int) -> None:
    """Of 40,000 tasks of one age, a half-life old, a half is kept: 4 standard errors are 400."""
    starts = np.r_[np.zeros(40_000), 30.0]
    assert abs(faded(starts, 30.0, seed)[:-1].sum() - 20_000) < 400
    assert faded(starts, 30.0, seed)[-1]
    days = np.datetime64("2024-01-01") + np.r_[np.zeros(40_000), 30].astype("timedelta64[D]")
    np.testing.assert_array_equal(faded(days, 30.0, seed), faded(starts, 30.0, seed))


def test_faded_tasks_are_counted(frame: pd.DataFrame, seed: int) -> None:
    found = pw.fit_prior(frame, "beta:exchangeable", time="day", half_life=15, seed=seed)
    assert found.fit.tasks == len(found.log.tasks) < 40
    assert f"{found.fit.tasks} of 40 tasks were kept" in str(found)


def test_a_fit_says_whether_the_prior_changes(frame: pd.DataFrame, seed: int) -> None:
    days = pd.concat([frame.assign(task=frame.task + 40 * k) for k in range(3)])
    found = pw.fit_prior(days, "beta:exchangeable", time="day", seed=seed)
    assert found.drift is not None
    assert found.drift.verdict in str(found)
    assert list(found.drift.to_frame().part) == [1, 2, 3, 4]
    assert pw.fit_prior(days, "beta:exchangeable", time="none", seed=seed).drift is None


def test_values_per_conversion_are_noticed_and_fitted_apart(frame: pd.DataFrame, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sales = frame.assign(reward=frame.reward * rng.normal(12.5, 1.0, 400))
    whole = pw.fit_prior(sales, "gaussian:exchangeable", seed=seed)
    assert "as values per conversion are" in str(whole)
    often = pw.fit_prior(sales, reward_as="converted", seed=seed)
    assert often.chosen.partition(":")[0] in ("beta", "logit-normal")
    assert often.log.sums.sum() == frame.reward.sum()
    much = pw.fit_prior(sales, "gaussian:exchangeable", reward_as="value", seed=seed)
    assert much.log.pulls.sum() == frame.reward.sum()
    assert abs(much.fit.prior.mean - 12.5) < 0.5
    assert "per conversion" not in str(much)
    assert "per conversion" not in str(pw.fit_prior(frame, "beta:exchangeable", seed=seed))
    sales.loc[3, "reward"] = np.nan
    for each in ("converted", "value"):
        with raises("reward", "row 4 of the frame"):
            read_log(sales, reward_as=each)
    with raises("reward_as", "sums do not tell"):
        read_log(sales.assign(n=1), pulls="n", reward_as="value")
