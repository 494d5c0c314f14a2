"""What a backtest may use and what it may quote: nothing recorded after the split teaches, records
last as long as they should, and the policy that is quoted was chosen without the later tasks.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from raising import raises
from typer.testing import CliRunner

import priorwise as pw
from priorwise.advise.backtest_result import Line
from priorwise.advise.page import backtest_of
from priorwise.advise.replaying import _counted
from priorwise.cli import app
from priorwise.core.errors import ArgumentError
from priorwise.core.estimates import Estimate

POLICIES = {"ts": pw.ThompsonSampling()}
DAY = pd.Timestamp("2024-05-01")


def long_tasks(seed: int, tasks: int = 40, days: int = 12) -> pd.DataFrame:
    """A task begins each day and goes on for some days, with five pulls of two arms on each."""
    rng = np.random.default_rng(seed)
    rates = rng.beta(2.0, 6.0, (tasks, 2))
    task, day, arm, _ = (each.ravel() for each in np.indices((tasks, days, 2, 5)))
    reward = rng.random(task.size) < rates[task, arm]
    return pd.DataFrame(
        {"task": task, "action": arm, "reward": reward.astype(int), "when": task + day}
    )


FORMS: dict[str, Any] = {
    "numbers": lambda when: when,
    "halves": lambda when: when / 2.0,
    "times": lambda when: DAY + pd.to_timedelta(when, unit="D"),
    "days": lambda when: (DAY + pd.to_timedelta(when, unit="D")).dt.date,
    "zones": lambda when: (DAY + pd.to_timedelta(when, unit="D")).dt.tz_localize("Asia/Tokyo"),
}


@pytest.mark.parametrize("form", FORMS)
def test_what_is_recorded_after_the_split_teaches_nothing(form: str, seed: int) -> None:
    """The first later task begins on day 20. The prior is the same bits whatever came later, also
    of tasks that had begun before, and it is the fit of the rows before that day by hand. Controls:
    an earlier row teaches, and so would all rows of earlier tasks.
    """
    log = long_tasks(seed)
    timed = log.assign(when=FORMS[form](log.when))
    how: Any = {"horizon": 4, "seed": seed, "family": "beta:separate", "time": "when"}
    found = pw.backtest(timed, POLICIES, **how)
    late = (log.when >= 20) & (log.task < 20)
    flipped = timed.assign(reward=timed.reward.where(~late, 1 - timed.reward))
    prior = found.fit.prior
    np.testing.assert_array_equal(
        pw.backtest(flipped, POLICIES, **how).fit.prior.alpha, prior.alpha
    )
    by_hand = pw.fit_prior(log[log.when < 20], "beta:separate", seed=seed)
    np.testing.assert_allclose(prior.alpha, by_hand.prior.alpha, rtol=1e-9)
    assert found.fit.log.pulls.sum() == (log.when < 20).sum()
    all_rows = pw.fit_prior(log[log.task < 20], "beta:separate", seed=seed).prior
    assert abs(all_rows.alpha / prior.alpha - 1.0).max() > 1e-3
    early = timed.assign(reward=timed.reward.where(log.when >= 5, 1 - timed.reward))
    assert (pw.backtest(early, POLICIES, **how).fit.prior.alpha != prior.alpha).any()
    # the later tasks are whole
    assert len(found.uniform) == 20
    assert f"{late.sum():,} pulls of earlier tasks were made" in str(found)


def test_rewards_that_had_not_come_at_the_split_teach_nothing(seed: int) -> None:
    """With a window of three days, what was pulled from day 17 on was not known on day 20; the end
    of the log loses its last three days too.
    """
    log = long_tasks(seed)
    how: Any = {"horizon": 4, "seed": seed, "family": "beta:separate", "time": "when"}
    found = pw.backtest(log, POLICIES, window=3, **how)
    assert found.fit.log.pulls.sum() == (log.when < 17).sum()
    assert len(found.fit.log.tasks) == 17
    faded = pw.backtest(log, POLICIES, half_life=5, **how)
    assert len(faded.fit.log.tasks) < 20
    with raises("time", "when the first later task began, at"):
        pw.backtest(log, POLICIES, window=30, until=70, **how)


def test_pulls_beyond_the_records_are_counted_step_by_step() -> None:
    """By hand: two tasks of two arms, with 2 and 1 records of arm 0."""
    actions = np.array([[0, 0], [0, 0], [1, 1], [0, 0]])  # (step, task)
    counts, late = _counted(actions, np.array([[2.0, 5.0], [1.0, 0.0]]))
    np.testing.assert_array_equal(counts, [[3, 1], [3, 1]])
    np.testing.assert_array_equal(late, [0, 1, 1, 2])


def few_records(seed: int, tasks: int = 60, pulls: int = 10) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    counts = rng.binomial(pulls, rng.beta(2.0, 4.0, (tasks, 3)))
    task, arm = (each.ravel() for each in np.indices(counts.shape))
    return pd.DataFrame({"task": task, "action": arm, "pulls": pulls, "reward": counts.ravel()})


def test_the_longest_horizon_that_records_allow_is_replayed(seed: int) -> None:
    """A policy that plays its arm for ever has 10 records: of h pulls, h - 10 come after them, so
    that at most a tenth of 11 do, and in batches of 3 at most of 9.
    """
    log = few_records(seed)
    sure = pw.BetaPrior([9e5, 1.0, 1.0], [1e5, 9.0, 9.0])
    players = {"one arm": (pw.Greedy(), sure)}
    how: Any = {"seed": seed, "family": "beta:separate", "most_run_out": 0.1}
    for batch, pulls in ((1, 11), (3, 9), (4, 8), (11, 11)):
        found = pw.backtest(log, players, horizon=50, batch=batch, **how)
        assert (found.horizon, found.asked) == (pulls, 50), batch
        assert found.ran_out == pytest.approx(max(1 - 10 / pulls, 0.0))
        for text in (str(found), found.card):
            assert f"{pulls} of 50 pulls of a task were replayed: with more, over 10 %" in text
        assert len(found.to_frame()) == 1
    whole = pw.backtest(log, players, horizon=11, **how)
    assert (whole.horizon, "were replayed" in str(whole)) == (11, False)
    # less than a batch cannot be replayed, and the card warns
    short = pw.backtest(log, players, horizon=50, batch=40, **how)
    assert short.horizon == 40
    assert short.card.startswith("Do not lean on this")
    same = pw.backtest(log, players, horizon=9, seed=seed, family="beta:separate")
    again = pw.backtest(log, players, horizon=50, batch=3, **how)
    assert same.uniform.mean() == pytest.approx(again.uniform.mean())
    for wrong in (0.0, 1.0):
        with raises("most_run_out", "must lie strictly between 0 and 1"):
            pw.backtest(log, players, horizon=5, **{**how, "most_run_out": wrong})


def test_the_command_replays_as_long_as_records_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.chdir(tmp_path)
    few_records(seed).to_csv("log.csv", index=False)
    line = ["backtest", "log.csv", "-p", "ts", "-p", "greedy", "--horizon", "60", "--seed", "0"]
    line += ["--family", "beta:separate", "--most-run-out", "0.02", "--json"]
    done = CliRunner().invoke(app, line)
    told = json.loads(done.stdout)
    assert told["asked"] == 60
    assert 1 < told["horizon"] < 30
    assert max(each["ran_out"] for each in told["policies"]) <= 0.02
    assert told["chosen"] in [each["policy"] for each in told["policies"]]
    assert CliRunner().invoke(app, [*line, "--most-run-out", "2"]).exit_code == 2


def test_the_card_quotes_what_the_earlier_tasks_chose(seed: int) -> None:
    """The policy with the largest prediction is quoted, also where another one earned more on the
    later tasks (control), which is said. A baseline never is, whatever is predicted of it.
    """
    players = {"a": pw.Uniform(), "b": pw.Greedy(), "c": pw.ThompsonSampling()}
    log = few_records(seed)
    found = pw.backtest(log, players, horizon=8, seed=seed, family="beta:separate")
    promised = {name: line.predicted for name, line in found.lines.items()}
    assert all(promised.values())
    best = max(players, key=lambda name: getattr(promised[name], "mean", 0.0))
    assert found.chosen == best
    vague = found.lines["b (vague prior)"]
    lucky = {"b (vague prior)": replace(vague, predicted=Estimate(999.0, 0.1))}
    assert replace(found, lines={**found.lines, **lucky}).chosen == best
    lucky = {"b (vague prior)": replace(lucky["b (vague prior)"], baseline=False)}
    assert replace(found, lines={**found.lines, **lucky}).chosen == "b (vague prior)"  # control
    assert list(found.to_frame().chosen) == [name == best for name in found.lines]
    lines = dict(found.lines)
    lines["a"] = replace(lines["a"], predicted=Estimate(99.0, 0.1))
    other = replace(found, lines=lines)
    assert other.chosen == "a" != other.winner
    assert f", a would have earned {other.reward('a').mean:.4g} per task" in other.card
    lines["b"] = replace(lines["b"], rewards=lines["a"].rewards + np.linspace(1.0, 1.1, 30))
    clear = replace(found, lines=lines)
    assert "Earned more per task than a, and by more than luck: b (1.0" in clear.card
    assert replace(clear, picked="c").chosen == "c"


def test_choosing_by_later_tasks_would_flatter(seed: int) -> None:
    """Twelve policies that earn what any arm does, but for luck, predicted with noise of its own:
    over 400 backtests the one that predictions chose is not above any arm (4.5 standard errors,
    false alarm 7e-6), and the one that earned most is (control).
    """
    rng = np.random.default_rng(seed)
    log = few_records(seed, tasks=8)
    made = pw.backtest(log, POLICIES, horizon=2, seed=seed, family="beta:exchangeable")
    chosen, luckiest = [], []
    for _ in range(400):
        lines = {
            f"{k}": Line(rng.normal(size=50), None, 0.0, Estimate(rng.normal(), 0.1))
            for k in range(12)
        }
        found = replace(made, lines=lines, uniform=np.zeros(50))
        chosen.append(found.reward(found.chosen).mean)
        luckiest.append(found.reward(found.winner).mean)
    error = 1.0 / np.sqrt(50 * 400)
    assert abs(np.mean(chosen)) < 4.5 * error
    assert np.mean(luckiest) > 4.5 * error


def test_the_page_replays_what_the_earlier_half_recommends(
    seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Later tasks of which every reward is turned round leave the choice as it is; records last,
    and a log that cannot be replayed is told, while a bug is not taken for one.
    """
    from priorwise.advise import page, recommending

    monkeypatch.setattr(recommending, "MOST", 64)
    log = few_records(seed)
    turned = log.assign(reward=log.reward.where(log.task < 30, log.pulls - log.reward))
    advice = pw.recommend(log, horizon=40, batch=4, family="beta:separate", seed=seed)
    names = []
    for each in (log, turned):
        found = backtest_of(advice, each, family="beta:separate", progress=False)
        assert not isinstance(found, str)
        names.append(found.chosen)
        assert found.horizon < found.asked == 40
        assert found.ran_out <= 0.02
        assert found.horizon % 4 == 0
    assert names[0] == names[1]
    few = backtest_of(advice, log[log.task < 3], family="beta:separate")
    assert isinstance(few, str)
    assert "must have 4 or more tasks" in few
    monkeypatch.setattr(page, "replay_on", lambda *_, **__: np.zeros(2) + np.zeros(3))
    with pytest.raises(ValueError, match="broadcast") as caught:
        backtest_of(advice, log, family="beta:separate")
    assert not isinstance(caught.value, ArgumentError)
