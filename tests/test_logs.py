"""A log becomes a prior: whatever its form, its columns and its engine, and never from bad rows."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather
from raising import raises
from stranger_family import PoissonLikelihood, PoissonPrior
from typer.testing import CliRunner

import priorwise as pw
from priorwise.cli import app
from priorwise.experiments import problems
from priorwise.experiments.headlines import headline_log
from priorwise.logs import read_log
from priorwise.logs.predictive import PredictiveCheck, predictive_check
from priorwise.meta.selection.models import ModelComparison

GAUSSIAN = problems.gaussian().prior


def pulls_of(run: pw.Run) -> pd.DataFrame:
    """One row per pull."""
    tasks, steps = run.actions.shape
    task = np.repeat(np.arange(tasks), steps)
    return pd.DataFrame(
        {"task": task, "action": run.actions.ravel(), "reward": run.rewards.ravel()}
    )


@pytest.fixture
def frame(seed: int) -> pd.DataFrame:
    run = pw.simulate(
        GAUSSIAN, pw.ThompsonSampling(), horizon=10, tasks=300, seed=seed, keep=True, engine="numpy"
    )
    return pulls_of(run)


def test_every_form_of_a_log_gives_the_same_sums(frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_csv(tmp_path / "a.tsv", index=False, sep="\t")
    frame.to_parquet(tmp_path / "a.parquet")
    (tmp_path / "many").mkdir()
    frame[:700].to_parquet(tmp_path / "many" / "one.parquet")
    frame[700:].to_parquet(tmp_path / "many" / "two.parquet")
    table = pa.Table.from_pandas(frame)
    feather.write_feather(table, tmp_path / "a.arrow")
    connection = ibis.duckdb.connect()
    forms: list[Any] = [frame, table, connection.read_parquet(tmp_path / "a.parquet")]
    forms += [tmp_path / name for name in ("a.csv", "a.tsv", "a.parquet", "a.arrow", "many")]
    by_hand = frame.groupby(["task", "action"]).reward
    for form in forms:
        log = read_log(form)
        np.testing.assert_array_equal(log.pulls, by_hand.size())
        np.testing.assert_allclose(log.sums, by_hand.sum(), rtol=1e-12, atol=1e-12)
        squares = (frame.reward**2).groupby([frame.task, frame.action]).sum()
        np.testing.assert_allclose(log.squares, squares, rtol=1e-12)
        assert (log.rows, len(log.tasks), log.names) == (3000, 300, tuple("012345"))


def test_rows_of_pulls_and_rows_of_sums_give_the_same_prior(frame: pd.DataFrame, seed: int) -> None:
    sums = frame.assign(n=1, sq=frame.reward**2).groupby(["task", "action"]).sum().reset_index()
    one = pw.fit_prior(frame, "gaussian:full", seed=seed).prior
    other = pw.fit_prior(sums, "gaussian:full", pulls="n", squares="sq", seed=seed).prior
    np.testing.assert_allclose(one.cov, other.cov, rtol=1e-8, atol=1e-10)
    run = pw.GaussianStatistics.from_trajectory(
        frame.action.to_numpy().reshape(300, 10), frame.reward.to_numpy().reshape(300, 10), arms=6
    )
    by_hand = pw.GaussianMarginalLikelihood("full").fit(run).prior
    np.testing.assert_allclose(one.cov, by_hand.cov, rtol=1e-8, atol=1e-10)


def test_guesses_are_said_and_can_be_overruled(frame: pd.DataFrame) -> None:
    other = frame.rename(columns={"task": "Campaign", "action": "arm", "reward": "outcome"})
    log = read_log(other)
    assert (log.columns.task, log.columns.action, log.columns.reward) == (
        "Campaign",
        "arm",
        "outcome",
    )
    assert len(log.said) == 3
    assert "'Campaign' is taken for task=" in log.said[0]
    odd = other.rename(columns={"arm": "which one"})
    with raises("log", "looks like the action"):
        read_log(odd)
    assert read_log(odd, action="which one").names == log.names
    strange = frame.rename(columns={"task": "mail", "action": "subject"})
    with raises("log", "looks like the task or the action"):
        read_log(strange)


def test_arms_keep_their_names_or_are_new(seed: int) -> None:
    text = headline_log(seed=seed, tests=60)
    log = read_log(pd.read_csv(io.StringIO(text)))
    assert log.new_arms
    fit = pw.fit_prior(pd.read_csv(io.StringIO(text)), seed=seed)
    assert fit.chosen == "logit-normal:exchangeable"
    shared = pd.DataFrame(
        {"task": np.repeat(np.arange(40), 2), "action": ["red", "blue"] * 40, "n": 20, "k": 3}
    )
    named = pw.fit_prior(shared, reward="k", pulls="n", seed=seed, family="beta:separate").prior
    assert named.names == ("blue", "red")
    with raises("family", "arms are new in every task"):
        pw.fit_prior(shared, "beta:separate", reward="k", pulls="n", arms="new", seed=seed)


@pytest.mark.slow
def test_structures_are_chosen_by_held_out_tasks(seed: int) -> None:
    """Correlated arms get a full covariance. Control: independent ones do not."""
    alone = pw.GaussianPrior(np.arange(4.0), np.eye(4))
    for prior, best in ((GAUSSIAN, "gaussian:full"), (alone, "gaussian:diagonal")):
        run = pw.simulate(prior, pw.Uniform(), horizon=12, tasks=800, seed=seed, keep=True)
        assert pw.fit_prior(pulls_of(run), seed=seed).chosen == best


@pytest.mark.slow
def test_variances_that_differ_between_tasks_are_found(seed: int) -> None:
    """Arms with noise of their own in every task. Control: the paper's problem, above, has one."""
    prior = pw.NormalGammaPrior(mean=[0.0, 1.0, 2.0], pulls=1.0, shape=2.0, rate=2.0)
    run = pw.simulate(prior, pw.Uniform(), horizon=12, tasks=600, seed=seed, keep=True)
    assert pw.fit_prior(pulls_of(run), seed=seed).chosen.startswith("normal-gamma:")


def test_a_strangers_family_is_fitted_from_a_log(seed: int) -> None:
    """Its statistics are no sums of rewards and squares, and still read from the rows."""
    prior = PoissonPrior([4.0, 8.0], [2.0, 2.0])
    run = pw.simulate(prior, pw.ThompsonSampling(), horizon=6, tasks=200, seed=seed, keep=True)
    fit = pw.fit_prior(pulls_of(run), "poisson-gamma", seed=seed)
    by_hand = PoissonLikelihood().fit(run).prior
    np.testing.assert_allclose(fit.prior.shape, by_hand.shape, rtol=1e-6)
    assert fit.check is not None
    sums = pulls_of(run).assign(n=1).groupby(["task", "action"]).sum().reset_index()
    with raises("pulls", "one row per pull"):
        pw.fit_prior(sums, "poisson-gamma", pulls="n", seed=seed)


def test_features_give_a_linear_prior(seed: int) -> None:
    prior = problems.linear().prior
    run = pw.simulate(prior, pw.ThompsonSampling(), horizon=20, tasks=200, seed=seed, keep=True)
    frame = pulls_of(run)
    assert run.kept is not None
    names = [f"x{i}" for i in range(6)]
    frame[names] = np.asarray(run.kept.log).reshape(-1, 6)
    given: Any = {"context": names, "contexts": prior.contexts, "seed": seed}
    fit = pw.fit_prior(frame, "linear:full", **given)
    by_hand = pw.LinearMarginalLikelihood(prior.contexts).fit(run).prior
    np.testing.assert_allclose(fit.prior.mean, by_hand.mean, rtol=1e-6, atol=1e-8)
    with raises("contexts", "say where the features"):
        pw.fit_prior(frame, context=names, seed=seed)


def check_of(prior: Any, true: Any, policy: Any, seed: int) -> Any:
    run = pw.simulate(true, policy, horizon=20, tasks=1000, seed=seed, keep=True)
    data = pw.GaussianStatistics.from_run(run, arms=true.arms)
    return predictive_check(prior, data, np.ones((1000, true.arms), dtype=bool), seed=seed)


@pytest.mark.slow
def test_the_check_believes_the_right_prior_and_doubts_a_wrong_one(seed: int) -> None:
    """Rewards were chosen by Thompson sampling, which the check must not mind. Each of 4 numbers of
    the right prior is doubted with probability at most 0.01; all of five logs together must raise
    at most 3 doubts (probability of more below 1e-4). Controls: independent arms, too wide a prior.
    """
    doubts = sum(
        len(check_of(GAUSSIAN, GAUSSIAN, pw.ThompsonSampling(), seed + 10 * k).doubts)
        for k in range(5)
    )
    assert doubts <= 3
    apart = pw.GaussianPrior(GAUSSIAN.mean, np.eye(6))
    found = check_of(apart, GAUSSIAN, pw.ThompsonSampling(), seed)
    assert "between tasks" in found.doubts
    assert "move together" in found.verdict
    wide = pw.GaussianPrior(GAUSSIAN.mean, 4.0 * GAUSSIAN.cov)
    assert "resemble each other more" in check_of(wide, GAUSSIAN, pw.Uniform(), seed).verdict


@pytest.mark.slow
def test_the_check_flags_independent_arms_on_headlines(seed: int) -> None:
    log = pd.read_csv(io.StringIO(headline_log(seed=seed, tests=1500)))
    fit = pw.fit_prior(log, "beta:exchangeable", seed=seed)
    assert fit.check is not None
    assert "arms of one task move together" in fit.check.verdict
    assert "move together" in str(fit)
    alone = pd.read_csv(io.StringIO(headline_log(seed=seed, tests=1500, correlation=0.0)))
    honest = pw.fit_prior(alone, "beta:exchangeable", seed=seed)
    assert honest.check is not None
    assert "move together" not in honest.check.verdict


def test_what_a_prior_is_worth_in_pulls() -> None:
    """alpha + beta of a Beta law, noise over variance of a normal one; 20,000 draws tell it within
    5 % (6 standard errors).
    """
    from priorwise.logs.fitting import worth

    found = worth(pw.ExchangeableBetaPrior(3.0, 97.0))
    assert found is not None
    np.testing.assert_allclose(found, 100.0, rtol=0.05)
    found = worth(pw.GaussianPrior([0.0, 1.0], np.diag([1.0, 4.0]), noise_var=2.0))
    np.testing.assert_allclose(found, [2.0, 0.5], rtol=0.06)

    found = worth(pw.GaussianPrior([1.0, 1.0], np.diag([0.0, 1.0])))
    assert found is not None
    assert np.isinf(found).tolist() == [True, False]


def test_the_simplest_of_the_models_that_are_as_good_is_taken(seed: int) -> None:
    """Gaps to the best against their standard errors, by hand. Covariances that a structure holds
    at zero are no parameters: independent arms are simpler than correlated ones.
    """
    from priorwise.logs.choosing import _free, simplest

    alone = pw.GaussianPrior(np.arange(2.0), np.eye(2))
    run = pw.simulate(alone, pw.Uniform(), horizon=8, tasks=40, seed=seed, keep=True)
    structures = ("full", "diagonal", "exchangeable")
    fits: Any = {s: pw.GaussianMarginalLikelihood(s).fit(run) for s in structures}  # type: ignore[arg-type]
    assert [_free(fits[s]) for s in structures] == [2 + 3 + 1, 2 + 2 + 1, 4]
    shown = pw.BetaStatistics(successes=[[1, 4], [7, 2], [3, 3]], pulls=[[9, 9]] * 3)
    assert _free(pw.BetaMarginalLikelihood("exchangeable").fit(shown)) == 2
    wiggle = np.tile([1.0, -1.0], 20)  # a standard error of 1 / sqrt(39)
    for diagonal, exchangeable, wanted in (
        (0.17, 0.17, "full"),
        (0.15, 0.17, "diagonal"),
        (0.17, 0.15, "exchangeable"),
        (0.15, 0.15, "exchangeable"),
    ):
        gaps = {"full": 0.0 * wiggle, "diagonal": wiggle + diagonal}
        gaps["exchangeable"] = wiggle + exchangeable
        scores = {name: -gap for name, gap in gaps.items()}
        assert simplest(ModelComparison(scores, fits)) == wanted


def test_a_number_is_doubted_where_all_generated_logs_lie_on_one_side() -> None:
    """A right prior puts the log anywhere among 200 generated ones, so that the outermost two
    places of 201 have a chance of 1 %; the next two would double it.
    """
    drawn = {name: np.arange(1.0, 201.0) for name in ("mean", "between arms", "between tasks")}
    ends = {"mean": 0.5, "between arms": 1.5, "between tasks": 200.5}
    found = PredictiveCheck(ends, drawn)
    assert found.doubts == ("mean", "between tasks")
    assert "move together" in found.verdict
    single = {**drawn, "between arms": np.zeros(200)}
    alone = PredictiveCheck({**ends, "between arms": 0.0}, single)
    assert "tasks that differ more" in alone.verdict
    assert "move together" not in alone.verdict


def changed(frame: pd.DataFrame, column: str, value: Any) -> pd.DataFrame:
    out = frame.astype({column: object}) if isinstance(value, str) else frame.copy()
    out.loc[4, column] = value
    return out


BAD: dict[str, tuple[Any, dict[str, Any], str]] = {
    "nothing": (lambda f: f[:0], {}, ("log", "has no rows")),
    "one task": (lambda f: f[f.task == 0], {}, ("task", "must have several tasks in the")),
    "NaN": (lambda f: changed(f, "reward", np.nan), {}, ("reward", "row 5 of the frame")),
    "infinite": (lambda f: changed(f, "reward", np.inf), {}, ("reward", "row 5 of the frame")),
    "infinite, dropped": (
        lambda f: changed(f, "reward", np.inf),
        {"missing": "drop"},
        ("reward", "infinite"),
    ),
    "not binary": (lambda f: f, {"family": "beta"}, ("family", "rewards are not 0 or 1: row")),
    "no such column": (lambda f: f, {"reward": "clicks"}, ("reward", "column")),
    "two roles": (lambda f: f, {"reward": "task", "task": "task"}, ("log", "'task'")),
    "words": (
        lambda f: changed(f, "reward", "oops"),
        {},
        ("log", "row 5 of the column 'reward' has"),
    ),
    "no task": (
        lambda f: changed(f.astype({"task": float}), "task", np.nan),
        {},
        ("task", "no task"),
    ),
    "twice": (
        lambda f: pd.concat([f, f.reward], axis=1),
        {},
        ("log", "column 'reward' more than once"),
    ),
    "no family": (lambda f: f, {"family": "gauss"}, ("family", "must be 'auto' or one of beta")),
    "no table": (lambda f: 3, {}, ("log", "must be a path")),
    "half a pull": (lambda f: f.assign(n=0.5), {"pulls": "n"}, ("pulls", "no whole number")),
    "one row for each arm of a task": (
        lambda f: f.drop_duplicates(["task", "action"]),
        {},
        ("reward", "two rows of one"),
    ),
    "missing": (lambda f: f, {"missing": "zero"}, ("missing", "must be")),
    "arms": (lambda f: f, {"arms": 6}, ("arms", "must be")),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_logs_are_refused_by_column_and_row(name: str, frame: pd.DataFrame, seed: int) -> None:
    change, options, words = BAD[name]
    with raises(words):
        pw.fit_prior(change(frame), **{"seed": seed, **options})


def test_clicks_above_impressions_name_their_row(seed: int) -> None:
    log = pd.DataFrame(
        {"test": [1, 1, 2], "arm": [1, 2, 1], "clicks": [1, 9, 2], "pulls": [5, 5, 5]}
    )
    with raises("family", "'clicks' that is not a whole number"):
        pw.fit_prior(log, "beta", seed=seed)


def test_too_many_arms_to_tell_apart(seed: int) -> None:
    many = pd.DataFrame({"task": np.repeat(np.arange(9), 1000), "action": np.arange(9000) % 1000})
    many["reward"] = 0.5 * (many.action % 3)
    with raises("action", "1,000 values, too many"):
        pw.fit_prior(many, arms="same", seed=seed)


def test_missing_rewards_are_left_out_and_counted(frame: pd.DataFrame, seed: int) -> None:
    late = changed(frame, "reward", np.nan)
    fit = pw.fit_prior(late, "gaussian:diagonal", missing="drop", seed=seed)
    assert fit.log.dropped == 1
    assert fit.log.pulls.sum() == len(frame) - 1
    assert "1 rows without one" in fit.assumptions[1]


def test_bad_files_are_refused(tmp_path: Path, seed: int) -> None:
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "twice.csv").write_text("task,action,reward,reward\n1,2,3,4\n")
    (tmp_path / "no.parquet").write_bytes(b"PAR1 this is none")
    for name, words in (
        ("empty.csv", "is empty"),
        ("twice.csv", "more than once"),
        ("no.parquet", "cannot be read"),
        ("log.xlsx", "must be a file ending in"),
    ):
        with raises("log", words):
            pw.fit_prior(tmp_path / name, seed=seed)
    with pytest.raises(FileNotFoundError, match="no file"):
        pw.fit_prior(tmp_path / "none.csv", seed=seed)


@pytest.mark.slow
def test_the_command_line_goes_from_example_to_prior(tmp_path: Path) -> None:
    runner = CliRunner()
    log = runner.invoke(app, ["example", "headlines"])
    assert log.output.splitlines()[0] == "test,headline,impressions,clicks"
    (tmp_path / "log.csv").write_text("\n".join(log.output.splitlines()[:800]))
    out = tmp_path / "out"
    command = ["fit", str(tmp_path / "log.csv"), "--seed", "0", "--out", str(out)]
    done = runner.invoke(app, command)
    assert done.exit_code == 0
    assert "'impressions' is taken for --pulls" in done.output
    names = {"prior.json", "prior.png", "prior.svg", "prior.check.png", "prior.check.svg"}
    assert {each.name for each in out.iterdir()} == names
    assert isinstance(pw.load_prior(out / "prior.json"), pw.ExchangeableLogitNormalPrior)
    told = runner.invoke(app, [*command[:-2], "--json"])
    assert json.loads(told.output)["chosen"] == "logit-normal:exchangeable"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--task", "nope"], "--task must be a column of"),
        (["--family", "nope"], "--family must be"),
        (["--out", ""], "--out"),
    ],
)
def test_the_command_line_refuses_and_writes_nothing(
    options: list[str], words: str | tuple[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "log.csv"
    log.write_text("task,action,reward\n1,a,0\n1,b,1\n2,a,0\n2,b,0\n")
    out = tmp_path / "out"
    done = CliRunner().invoke(app, ["fit", str(log), "--seed", "0", "--out", str(out), *options])
    assert done.exit_code == 2
    assert words in done.output
    assert not out.exists()


@pytest.mark.slow
def test_results_leave_the_library(frame: pd.DataFrame, seed: int, tmp_path: Path) -> None:
    fit = pw.fit_prior(frame, "gaussian", seed=seed)
    assert set(fit.to_frame().columns) == {"parameter", "row", "column", "value", "std_error"}
    assert fit.check is not None
    assert list(fit.check.to_frame().number) == ["mean", "between tasks", "between arms", "tails"]
    assert fit.figure()["png"] != fit.check.figure()["png"]
    fit.save(tmp_path / "fit.json")
    assert pw.load_prior(tmp_path / "fit.json") == fit.prior
    assert len(fit.draw(np.random.default_rng(seed), 3)) == 3
    assert fit.models is not None
    assert set(fit.models.scores) == {
        "gaussian:full",
        "gaussian:diagonal",
        "gaussian:exchangeable",
    }
