"""Replayed tasks: the law of what they deal, what policies earn on them, and who may see what.

Means of draws must lie within 5 standard errors of what is exact (false alarm 6e-7 each) and a
nearby wrong answer, the control, must not.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from headline_logs import headline_log as headline_tests
from raising import raises
from scipy import stats
from typer.testing import CliRunner

import priorwise as pw
from priorwise.advise.backtest_words import MUCH
from priorwise.advise.backtesting import learned_from, replay_on
from priorwise.advise.replay import Recorded
from priorwise.cli import app
from priorwise.core.estimates import Estimate, mean_estimate
from priorwise.experiments.headlines import headline_log
from priorwise.logs.reducing import read_log
from priorwise.logs.rows import Records
from priorwise.simulate.engine import choose

BETA = pw.BetaPrior([2.0, 4.0, 3.0], [6.0, 6.0, 6.0])
DAY = pd.Timestamp(2024, 1, 1)
GAUSSIAN = pw.GaussianPrior([0.0, 0.3], [[1.0, 0.5], [0.5, 1.0]])


def clicks(seed: int, tasks: int = 400, pulls: int = 12) -> pd.DataFrame:
    """Each task pulls each of three arms equally often; one row for each."""
    rng = np.random.default_rng(seed)
    rates = rng.beta(BETA.alpha, BETA.beta, (tasks, 3))
    counts = rng.binomial(pulls, rates)
    task, arm = np.indices(counts.shape)
    return pd.DataFrame(
        {"task": task.ravel(), "action": arm.ravel(), "pulls": pulls, "reward": counts.ravel()}
    )


def singles(seed: int, tasks: int = 60, pulls: int = 6) -> pd.DataFrame:
    """Real rewards, one row per pull, any of two arms, with its propensity."""
    rng = np.random.default_rng(seed)
    means = rng.multivariate_normal(GAUSSIAN.mean, GAUSSIAN.cov, tasks)
    task = np.repeat(np.arange(tasks), pulls)
    arm = rng.integers(2, size=task.size)
    reward = means[task, arm] + rng.normal(size=task.size)
    return pd.DataFrame({"task": task, "action": arm, "reward": reward, "chance": 0.5})


def near(found: Estimate, exact: float) -> bool:
    return abs(found.mean - exact) < 5 * found.std_error


def test_every_order_of_the_records_is_equally_likely(seed: int) -> None:
    """Pearson's test on the orders of three records, p > 1e-6. Control: with replacement some
    deals are no order at all.
    """
    tasks = 6_000
    pulls, ones = np.full((tasks, 1), 3.0), np.full((tasks, 1), 2.0)
    binary = Recorded(pulls, ones).deal(seed, 0, tasks, 3).rewards[:, 0]
    values = np.array([0.5, 1.5, 4.0])
    records = Records(np.tile(values, tasks), 3 * np.arange(tasks))
    rows = records.first[:, None]
    single = Recorded(pulls, 2 * pulls, records, rows).deal(seed, 0, tasks, 5).rewards[:, 0]
    for dealt, orders in (
        (binary, {(0.0, 1.0, 1.0), (1.0, 0.0, 1.0), (1.0, 1.0, 0.0)}),
        (single[:, :3], set(permutations(values))),
    ):
        counts = Counter(map(tuple, dealt.tolist()))
        assert set(counts) == orders
        assert stats.chisquare(list(counts.values())).pvalue > 1e-6
    beyond = single[:, 3:]
    assert set(beyond.ravel()) == set(values)
    assert set(map(tuple, single[:, 2:].tolist())) > set(permutations(values))
    # the next reward is worth the mean of those left: by hand
    dealt = Recorded(pulls, ones).deal(seed, 0, tasks, 3)
    two = dealt.expected(np.full((tasks, 1), 2))
    np.testing.assert_allclose(two, 2 / 3 + (2 - binary[:, 0]) / 2)
    np.testing.assert_allclose(dealt.expected(np.full((tasks, 1), 3)).mean(), 2.0, atol=0.05)


@pytest.mark.parametrize("batch", [1, 6])
@pytest.mark.parametrize("policy", [pw.ThompsonSampling(), pw.Greedy(), pw.Uniform()])
def test_the_compiled_loop_replays_as_numpy_does(policy: Any, batch: int, seed: int) -> None:
    log = clicks(seed, tasks=40)
    pulls = log.pulls.to_numpy(float).reshape(-1, 3)
    recorded = Recorded(pulls, log.reward.to_numpy(float).reshape(-1, 3))
    there = np.ones(pulls.shape, dtype=bool)
    there[::3, 0] = False
    both = []
    how: Any = {"seed": seed, "first": 0, "tasks": 40, "horizon": 20, "batch": batch}
    for engine in ("compiled", "numpy"):
        tasks = recorded.deal(seed, 0, len(pulls), 20)
        runner = choose(tasks, BETA, policy, 20, masked=True, engine=engine)  # type: ignore[arg-type]
        both.append(runner.run(**how, available=there, keep=True))
    np.testing.assert_array_equal(both[0].columns.actions, both[1].columns.actions)
    np.testing.assert_array_equal(both[0].columns.rewards, both[1].columns.rewards)
    np.testing.assert_allclose(both[0].means, both[1].means)


def test_replayed_rewards_are_unbiased(seed: int) -> None:
    """Against simulation from the truth, with as many records as pulls. Controls: a score that
    knows all records while it counts the pulls (a leak) promises too much, and the best arm in
    hindsight more than the best arm.
    """
    log, horizon = clicks(seed, tasks=3_000), 12
    how: Any = {"horizon": horizon, "seed": seed, "family": "beta:separate"}
    found = pw.backtest(log, {"greedy": (pw.Greedy(), BETA)}, **how)
    assert found.ran_out == 0.0
    truth = pw.simulate(BETA, pw.Greedy(), horizon=horizon, tasks=200_000, seed=seed)
    reward = found.reward("greedy")
    assert near(reward, truth.mean_reward)
    # the right prior shrinks: its score of the same pulls is unbiased too
    line = found.lines["greedy"]
    assert line.worth is not None
    worth = Estimate(line.worth.mean(), line.worth.std() / np.sqrt(len(line.worth)))
    assert near(worth, truth.mean_reward)
    best = np.random.default_rng(seed).beta(BETA.alpha, BETA.beta, (200_000, 3)).max(axis=1)
    luck = Estimate(found.best.mean(), found.best.std() / np.sqrt(len(found.best)))
    assert luck.mean > horizon * best.mean() + 5 * luck.std_error
    assert found.shrunken_best is not None
    assert found.shrunken_best.mean() < horizon * best.mean()
    later = log.iloc[-3 * len(found.best) :]
    pulls, sums = (later[name].to_numpy(float).reshape(-1, 3) for name in ("pulls", "reward"))
    tasks = Recorded(pulls, sums).deal(seed, 0, len(pulls), horizon)
    # the same tasks from their number 0 on
    run = choose(tasks, BETA, pw.Greedy(), horizon, masked=False, engine="numpy").run(
        seed=seed, first=0, tasks=len(pulls), horizon=horizon, available=None, keep=True
    )
    assert run.columns is not None
    leak = tasks.means[np.arange(len(pulls)), run.columns.actions].sum(axis=0)
    assert leak.mean() > truth.mean_reward + 5 * leak.std() / np.sqrt(len(leak))


def test_later_tasks_teach_nothing(seed: int) -> None:
    """The prior is the same bits whatever later tasks earned, and no task is on both sides.
    Control: earlier tasks do teach.
    """
    log = clicks(seed, tasks=60)
    how: Any = {"horizon": 5, "seed": seed, "family": "beta:separate"}
    policies = {"ts": pw.ThompsonSampling()}
    first = pw.backtest(log, policies, **how).fit
    assert set(first.log.tasks) == set(range(30))
    same = log.assign(reward=log.reward.where(log.task < 30, log.pulls - log.reward))
    other = log.assign(reward=log.reward.where(log.task >= 30, log.pulls - log.reward))
    np.testing.assert_array_equal(
        first.prior.alpha, pw.backtest(same, policies, **how).fit.prior.alpha
    )
    assert (first.prior.alpha != pw.backtest(other, policies, **how).fit.prior.alpha).any()
    # rows of one task stay together wherever they stand, and a column of times has the last word
    mixed = log.sample(frac=1.0, random_state=seed)
    begun = mixed.reset_index(drop=True).reset_index().groupby("task")["index"].min()
    found = pw.backtest(mixed, policies, train=0.25, **how).fit.log.tasks
    assert set(found) == set(begun.sort_values().index[:15])
    times = mixed.assign(when=pd.Timestamp("2024-05-01") - pd.to_timedelta(mixed.task, unit="D"))
    found = pw.backtest(times, policies, time="when", train=0.25, **how).fit.log.tasks
    assert set(found) == set(range(45, 60))


def test_two_copies_of_a_policy_earn_the_same(seed: int) -> None:
    policies = {"one": pw.ThompsonSampling(), "two": pw.ThompsonSampling(), "any": pw.Uniform()}
    how: Any = {"horizon": 8, "seed": seed}
    for log, family in ((clicks(seed, 80), "beta:separate"), (singles(seed), "gaussian:full")):
        found = pw.backtest(log, policies, family=family, **how)
        assert found.difference("one", "two") == Estimate(0.0, 0.0)
        assert found.difference("one", "any").std_error > 0.0
        assert found.difference("one", "one (vague prior)").std_error > 0.0
        assert "any (vague prior)" not in found.lines
        batched = pw.backtest(log, policies, family=family, batch=4, **how)
        assert batched.difference("one", "two") == Estimate(0.0, 0.0)
        assert batched.reward("one") != found.reward("one")
        assert batched.reward("any") == found.reward("any")
        again = pw.backtest(log, policies, family=family, **how)
        pd.testing.assert_frame_equal(found.to_frame(), again.to_frame())


def test_records_that_run_out_are_counted_and_said_first(seed: int) -> None:
    log = clicks(seed, tasks=40, pulls=2)
    how: Any = {"seed": seed, "family": "beta:separate"}
    enough = pw.backtest(log, {"any": pw.Uniform()}, horizon=2, **how)
    assert enough.ran_out == 0.0
    assert str(enough).startswith("Recorded rewards sufficed for all pulls.")
    short = pw.backtest(log, {"any": pw.Uniform()}, horizon=60, **how)
    # any of 60 pulls finds one of the 3 arms, and 2 of each are recorded
    assert short.ran_out == pytest.approx(1 - 6 / 60, abs=1e-12)
    assert str(short).startswith(
        "Recorded rewards had run out for up to 90.00 % of the pulls (any)"
    )
    assert short.card.startswith("Do not lean on this: too many records ran out")
    assert "Do not lean" not in enough.card
    assert short.reward("any").mean == pytest.approx(short.uniform.mean(), abs=3.0)


def test_weighted_estimates_agree_with_the_truth(seed: int) -> None:
    """Control: the mean of what was recorded, without weights, is not what greedy earns. A policy
    that is the recorded one has weights 1.
    """
    log, horizon = singles(seed, tasks=4_000, pulls=4), 4
    policies = {"greedy": (pw.Greedy(), GAUSSIAN), "any": (pw.Uniform(), GAUSSIAN)}
    found = pw.backtest(
        log, policies, horizon=horizon, seed=seed, family="gaussian:full", propensity="chance"
    )
    truth = pw.simulate(GAUSSIAN, pw.Greedy(), horizon=horizon, tasks=400_000, seed=seed)
    weighted, same = found.lines["greedy"].weighted, found.lines["any"].weighted
    assert weighted is not None
    assert same is not None
    for each in (weighted.ips, weighted.dr):
        assert near(each, truth.mean_reward)
    assert weighted.dr.std_error < weighted.ips.std_error
    later = log[log.task >= 2_000].groupby("task").reward.sum()
    plain = Estimate(later.mean(), later.std() / np.sqrt(len(later)))
    assert not near(plain, truth.mean_reward)
    assert same.effective == pytest.approx(2_000)
    assert same.ips.mean == pytest.approx(plain.mean)
    # greedy makes one of 2^4 sequences of pulls, so that about one task in 16 counts
    assert weighted.effective == pytest.approx(2_000 / 16, rel=0.4)
    assert {"ips", "doubly_robust", "effective_tasks"} <= set(found.to_frame())
    assert "weighted by propensities" in str(found)
    assert "effective tasks (" not in str(found)
    few = replace(weighted, effective=0.0)
    lines = {**found.lines, "greedy": replace(found.lines["greedy"], weighted=few)}
    assert "Less than 5 effective tasks (greedy): too few" in str(replace(found, lines=lines))
    with raises("horizon", "later task"):
        pw.backtest(log, policies, horizon=9, seed=seed, propensity="chance")


@pytest.mark.validate
def test_few_records_that_run_out_do_not_flatter(seed: int) -> None:
    """What greedy gains over any arm, minus the same by shrunken rates, is 0 on average while
    records last: within 4 standard errors of five logs (false alarm 6e-5). The control replays ten
    times as many pulls beyond the records, which seem to gain 6 standard errors more (less than 2.5
    in 3e-4 of runs).
    """
    how: Any = {"horizon": 200, "batch": 20, "train": 0.2, "family": "logit-normal:exchangeable"}
    off: dict[float, list[Any]] = {MUCH: [], 10.0 * MUCH: []}
    for each in range(5):
        own = 100 * seed + each
        log = pd.read_csv(io.StringIO(headline_log(seed=own, tests=5_000)))
        for limit, found in off.items():
            test = pw.backtest(log, {"g": pw.Greedy()}, seed=own, most_run_out=limit, **how)
            line = test.lines["g"]
            found.append(line.rewards - test.uniform - (line.worth - test.shrunken_uniform))
    few, many = (mean_estimate(np.concatenate(each)) for each in off.values())
    assert abs(few.mean) < 4.0 * few.std_error
    assert many.mean > 2.5 * many.std_error


@pytest.mark.validate
def test_predictions_hold_on_headlines(seed: int) -> None:
    """Within 4 standard errors (false alarm 6e-5 each). Control: not if clicks halve halfway."""
    log = pd.read_csv(io.StringIO(headline_log(seed=seed, tests=1_600)))
    how: Any = {"horizon": 100, "seed": seed, "family": "logit-normal:exchangeable"}
    found = pw.backtest(log, {"ts": pw.ThompsonSampling(), "greedy": pw.Greedy()}, **how)
    assert all(abs(found.held(name) or 0.0) < 4.0 for name in found.lines)
    late = log.test >= "t00800"
    halved = log.assign(clicks=log.clicks.where(~late, log.clicks // 2))
    worse = pw.backtest(halved, {"ts": pw.ThompsonSampling()}, **how)
    assert (worse.held("ts") or 0.0) < -4.0
    assert "did not hold: less was earned" in worse.card


def test_tables_words_and_figures(seed: int, drawn: list[Any]) -> None:
    found = pw.backtest(
        clicks(seed, 80),
        {"ts": pw.ThompsonSampling()},
        horizon=6,
        seed=seed,
        family="beta:separate",
    )
    frame = found.to_frame()
    assert list(frame.policy) == ["ts", "ts (vague prior)"]
    assert {"reward", "std_error", "share", "shrunken_share", "predicted", "ran_out"} <= set(frame)
    assert "share of the gap" in str(found)
    assert found.card.startswith("On 40 later tasks that it had not seen")
    assert set(found.figure()) == {"png", "svg"}
    (axes,) = drawn[-1].axes
    legend, panel = axes.get_legend().get_window_extent(), axes.get_window_extent()
    assert legend.y0 >= panel.y1  # it hides no line
    with pytest.raises(KeyError, match="there are ts, ts"):
        found.reward("greedy")


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ({}, {"time": "when"}, ("time", "column")),
        ({"when": "yesterday"}, {"time": "when"}, ("time", "the column 'when'")),
        ({"when": [pd.NaT] + [DAY] * 119}, {"time": "when"}, ("time", "no time")),
        ({"when": [DAY] * 120}, {"time": "when"}, ("time", "same first time")),
        (
            {"when": [DAY.tz_localize("UTC")] + [DAY] * 119},
            {"time": "when"},
            ("time", "row 2 of the frame"),
        ),
        ({}, {"reward": "reward", "propensity": "reward"}, ("log", "in two roles")),
        ({"chance": 0.0}, {"propensity": "chance"}, ("propensity", "needs one row per pull")),
        ({"action": ["a", "b", "c"] * 39 + ["a", "b", "d"]}, {}, ("action", "has the arm 'd'")),
        ({"pulls": 20.5}, {}, ("pulls", "has pulls that are no whole")),
        ({"task": 1}, {}, ("task", "must have 4 or more tasks")),
    ],
)  # fmt: skip
def test_bad_logs_are_refused_by_column_and_row(
    change: Any, options: Any, words: str | tuple[str, str]
) -> None:
    log = clicks(0, tasks=40).assign(**change)
    how: Any = {"horizon": 5, "seed": 0, "family": "beta:separate", "arms": "same"} | options
    with raises(words):
        pw.backtest(log, {"ts": pw.ThompsonSampling()}, **how)


def test_sums_of_real_rewards_are_refused(seed: int) -> None:
    each = singles(seed).assign(pulls=1)
    sums = each.assign(squares=each.reward**2).groupby(["task", "action"]).sum().reset_index()
    how: Any = {"horizon": 3, "seed": seed, "family": "gaussian:full"}
    with raises("reward", "a replay draws single rewards"):
        pw.backtest(sums.drop(columns="chance"), {"ts": pw.ThompsonSampling()}, **how)
    bad = each.drop(columns="pulls")
    bad.loc[2, "chance"] = 1.5
    with raises("propensity", "no probability above 0 and up to"):
        pw.backtest(bad, {"ts": pw.ThompsonSampling()}, propensity="chance", **how)


def test_the_command_writes_all_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.chdir(tmp_path)
    clicks(seed, 40).to_csv("log.csv", index=False)
    line = ["backtest", "log.csv", "-p", "ts", "-p", "greedy", "--horizon", "5", "--seed", "0"]
    line += ["--family", "beta:separate"]
    bad = CliRunner().invoke(app, [*line, "--time", "when"])
    assert (bad.exit_code, list(tmp_path.iterdir())) == (2, [tmp_path / "log.csv"])
    assert "--time must be a column of" in bad.stderr
    assert CliRunner().invoke(app, [*line, "--train", "1.5"]).exit_code == 2
    assert "given twice" in CliRunner().invoke(app, [*line, "-p", "ts"]).stderr
    done = CliRunner().invoke(app, line)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("Recorded rewards")
    assert "On 20 later tasks" in done.stdout
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"backtest.json", "backtest.png", "backtest.svg"}
    told = json.loads(CliRunner().invoke(app, [*line, "--json"]).stdout)
    assert [each["policy"] for each in told["policies"]][:2] == ["ts", "ts (vague prior)"]
    assert told == json.loads((tmp_path / "out" / "backtest.json").read_text())


@pytest.mark.validate
def test_shares_of_the_gap_cover_the_truth(seed: int) -> None:
    """40 logs of 3,800 headline tests whose level falls. The truth is what the same policies with
    the same learned prior close on the later halves of three fresh logs. Intervals of two standard
    errors must cover it in 36 of 40 logs, 90 %. They cover it in 95.4 %, so each policy fails by
    chance in P(Binomial(40, 0.954) < 36) = 3.4 % of runs. The control has a quarter of the
    interval.
    """
    policies = {"ts": pw.ThompsonSampling(), "greedy": pw.Greedy()}
    how: Any = {"horizon": 200, "batch": 50, "limit": None, "progress": False}
    covered, control = dict.fromkeys(policies, 0), dict.fromkeys(policies, 0)
    for each in range(40 * seed, 40 * seed + 40):
        halves = learned_from(
            headline_tests(seed=each).frame(), 0.5, "logit-normal", None, each, {}
        )
        others = [headline_tests(seed=100_000 + 3 * each + k).frame() for k in range(3)]
        late = [part[part.test >= "t01900"] for part in others]
        fresh = pd.concat([part.assign(test=part.test + f"-{k}") for k, part in enumerate(late)])
        found = replay_on(halves, policies, **how, seed=each)
        again = replay_on(replace(halves, later=read_log(fresh)), policies, **how, seed=each)
        for name in policies:
            share, truth = found.share(name), again.share(name)
            off = abs(share.mean - truth.mean) / np.hypot(share.std_error, truth.std_error)
            covered[name] += off <= 2.0
            control[name] += off <= 0.5
    print(f"of 40 logs, intervals cover the share of the gap in {covered}, control {control}")
    assert min(covered.values()) >= 36, covered
    assert max(control.values()) < 36, control
