"""The command line: its numbers are the library's, its errors are one line, its files are whole."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import priorwise as pw
from priorwise.cli import app, output
from priorwise.cli.policies import WORDS, parse_policy
from priorwise.experiments import problems
from priorwise.figures.style import spread
from priorwise.testing import base_seed

SEED = base_seed() + 3
RUN = ("--horizon", "4", "--tasks", "300", "--seed", str(SEED))


def call(*arguments: object, text: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments], input=text)


def error_of(*arguments: object, text: str | None = None) -> str:
    result = call(*arguments, text=text)
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit)  # no traceback
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("Error: ")
    assert not result.stdout
    return lines[0]


@pytest.fixture
def prior(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    problem = problems.gaussian()
    problem.prior.save(tmp_path / "prior.json")  # type: ignore[attr-defined]
    problem.misspecified.save(tmp_path / "wrong.json")  # type: ignore[attr-defined]
    return Path("prior.json")


def test_numbers_are_those_of_the_library(prior: Path) -> None:
    result = call(
        "simulate", prior, "-p", "ts", "-p", "sum:8", "--believed", "wrong.json", *RUN, "--json"
    )
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    problem = problems.gaussian()
    comparison = pw.compare(
        problem.prior,
        {
            "ts": pw.ThompsonSampling(),
            "sum:8": pw.PosteriorSampling(8, "sum"),
            "ts (wrong)": (pw.ThompsonSampling(), problem.misspecified),
            "sum:8 (wrong)": (pw.PosteriorSampling(8, "sum"), problem.misspecified),
        },
        horizon=4,
        tasks=300,
        seed=SEED,
    )
    by_name = {each["name"]: each for each in content["policies"]}
    assert set(by_name) == set(comparison.runs)
    for name, run in comparison.runs.items():
        shown = by_name[name]
        assert shown["mean_reward"] == pytest.approx(run.mean_reward, rel=1e-12)
        assert shown["std_error"] == pytest.approx(run.std_error, rel=1e-12)
        assert shown["mean_regret"] == pytest.approx(run.mean_regret, rel=1e-12)
        assert shown["by_step"]["reward"] == pytest.approx(run.by_step.reward, rel=1e-12)
        assert shown["from_best"]["mean"] == pytest.approx(
            comparison.difference(name, comparison.best).mean, rel=1e-12
        )
    cost = comparison.difference("ts (wrong)", "ts")
    assert by_name["ts (wrong)"]["wrong_prior_gain"]["mean"] == pytest.approx(cost.mean, rel=1e-12)
    assert by_name["ts (wrong)"]["wrong_prior_gain"]["std_error"] == pytest.approx(
        cost.std_error, rel=1e-12
    )
    assert by_name["ts"]["wrong_prior_gain"] is None
    assert [each["monte_carlo_n"] for each in content["policies"] if each["policy"] == "sum:8"] == [
        8,
        8,
    ]
    assert pw.load_prior(json.dumps(content["believed"])) == problem.misspecified
    assert not Path("out").exists()  # --json alone writes nothing


def test_batches_are_those_of_the_library(prior: Path) -> None:
    result = call("simulate", prior, "-p", "greedy", *RUN, "--batch", "3", "--json")
    assert result.exit_code == 0, result.output
    content, tasks = json.loads(result.stdout), problems.gaussian().prior
    size = {"horizon": 4, "tasks": 300, "seed": SEED}
    run = pw.simulate(tasks, pw.Greedy(), batch=3, **size)
    assert content["batch"] == 3
    assert content["policies"][0]["mean_reward"] == pytest.approx(run.mean_reward, rel=1e-12)
    assert run.mean_reward != pytest.approx(pw.simulate(tasks, pw.Greedy(), **size).mean_reward)
    assert call("simulate", prior, "-p", "greedy", *RUN, "--batch", "0").exit_code == 2


def test_table_and_whole_files(prior: Path) -> None:
    result = call(
        "simulate",
        prior,
        "-p",
        "ts",
        "-p",
        "greedy",
        "-p",
        "bayes-ucb",
        *RUN,
        "--out",
        "deep/results",
    )
    assert result.exit_code == 0, result.output
    run = pw.simulate(problems.gaussian().prior, pw.Greedy(), horizon=4, tasks=300, seed=SEED)
    row = next(line for line in result.stdout.splitlines() if line.strip().startswith("greedy"))
    assert f"{run.mean_reward:.2f} ± {run.std_error:.2f}" in row
    assert "compiled" in row
    out = Path("deep/results")
    assert sorted(path.name for path in out.iterdir()) == [
        "simulate.json",
        "simulate.png",
        "simulate.svg",
    ]
    assert (out / "simulate.png").read_bytes().endswith(b"IEND\xaeB`\x82")
    ET.parse(out / "simulate.svg")
    assert json.loads((out / "simulate.json").read_text())["seed"] == SEED


@pytest.mark.slow
@pytest.mark.parametrize("width", [40, 80, 200])
def test_tables_fit_the_terminal_and_cut_nothing(
    prior: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setattr("priorwise.cli.output.PIPED_WIDTH", width)
    result = call("simulate", prior, "-p", "ts", "-p", "sum:8", "--believed", "wrong.json", *RUN)
    assert "…" not in result.stdout
    assert result.stdout.count("compiled") == 4


def test_the_short_runs_that_time_a_pull_show_no_bar(
    prior: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[bool | None] = []

    def told(*arguments: Any, progress: bool | None = None, **options: Any) -> Any:
        shown.append(progress)
        return pw.simulate(*arguments, progress=progress, **options)

    monkeypatch.setattr("priorwise.cli.report.simulate", told)
    assert call("simulate", prior, "-p", "greedy", *RUN).exit_code == 0
    assert set(shown) == {False}


def test_quiet_says_nothing_and_single_task_has_no_error_bar(prior: Path) -> None:
    result = call(
        "simulate", prior, "-p", "ts", "--horizon", 1, "--tasks", 1, "--seed", SEED, "--quiet"
    )
    assert (result.exit_code, result.output) == (0, "")
    assert json.loads(Path("out/simulate.json").read_text())["policies"][0]["std_error"] is None


def test_interrupt_leaves_the_old_files(prior: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("out").mkdir()
    Path("out/simulate.json").write_text("old")

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["priorwise.simulate.run"], "compare", interrupted)
    result = call("simulate", prior, "-p", "ts", *RUN)
    assert result.exit_code == 130
    assert "Interrupted" in result.stderr
    assert [path.name for path in Path("out").iterdir()] == ["simulate.json"]
    assert Path("out/simulate.json").read_text() == "old"


def test_files_appear_together_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    with pytest.raises(IsADirectoryError):
        output.write_all(tmp_path, {"a": b"1", "b": b"2"})
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("-p", "tss", *RUN), "--policy: tss: policy must be one of ts"),
        (("-p", "sum", *RUN), "k is missing; write sum:K, for example sum:8"),
        (("-p", "sum:many", *RUN), "k must be an integer, got 'many'"),
        (("-p", "sum:0", *RUN), "k must be at least 1"),
        (("-p", "ts:2", *RUN), "ts has fewer settings, got '2'"),
        (("-p", "rhc:2,2,9", *RUN), "alpha must lie in [0, 1]"),
        (("-p", "kg:2,2,tie=random", *RUN), "kg has no setting 'tie'"),
        (("-p", "ts", "-p", "ts", *RUN), "given twice"),
        (RUN, "--policy is missing"),
        (
            ("-p", "ts", "--horizon", "4"),
            "--seed is missing: A whole number from 0 on, such as --seed 0",
        ),
        (("-p", "ts", "--horizon", "0", "--seed", "0"), "--horizon: must be at least 1, got 0"),
        (("-p", "ts", "--horizon", "4", "--seed", "-1"), "--seed: seed must be at least 0"),
        (("-p", "ts", "--horizon", "four", "--seed", "0"), "--horizon: "),
        (("-p", "ts", "--arms", "3", *RUN), "--arms: only for exchangeable priors"),
        (("-p", "ts", "--believed", "none.json", *RUN), "--believed: no such file: none.json"),
        (("-p", "ts", "--out", "prior.json", *RUN), "--out: "),
        (("-p", "ts", "--speed", *RUN), "No such option: --speed"),
    ],
)
def test_mistakes_are_one_line(prior: Path, arguments: tuple[str, ...], says: str) -> None:
    assert says in error_of("simulate", prior, *arguments)
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "no such file: bad.json; priorwise example gaussian > prior.json"),
        ('{"priorwise": 1,', "not valid JSON"),
        ("[1, 2]", "not a priorwise file"),
        ('{"priorwise": 1, "family": "gauss"}', "family must be one of"),
        (
            '{"priorwise": 1, "family": "gaussian", "mean": [0, 0], "cov": [1, 1]}',
            "cov must be a 2 x 2 matrix",
        ),
        ('{"priorwise": 1, "family": "sphere-contexts", "arms": 3}', "must hold a prior or a fit"),
    ],
)
def test_bad_prior_files(prior: Path, content: str | None, says: str) -> None:
    if content is not None:
        Path("bad.json").write_text(content)
    message = error_of("simulate", "bad.json", "-p", "ts", *RUN)
    assert says in message
    assert message.startswith("Error: PRIOR: ")


def test_priors_that_do_not_go_together(prior: Path) -> None:
    Path("linear.json").write_text(call("example", "linear").stdout)
    assert "--believed " in error_of(
        "simulate", prior, "-p", "ts", "--believed", "linear.json", *RUN
    )


@pytest.mark.parametrize("family", ["gaussian", "beta", "finite", "linear"])
def test_examples_simulate(family: str, tmp_path: Path) -> None:
    text = call("example", family).stdout
    assert pw.load_prior(text).to_json() + "\n" == text
    result = call("simulate", "-", "-p", "uniform", *RUN, "--json", text=text)
    assert result.exit_code == 0, result.output


def test_exchangeable_priors_take_arms(prior: Path) -> None:
    text = call("example", "exchangeable-gaussian").stdout
    assert "--arms: missing" in error_of("simulate", "-", "-p", "ts", *RUN, text=text)
    result = call("simulate", "-", "-p", "ts", "--arms", 3, *RUN, "--json", text=text)
    run = pw.simulate(
        pw.load_prior(text).for_arms(3), pw.ThompsonSampling(), horizon=4, tasks=300, seed=SEED
    )  # type: ignore[attr-defined]
    assert json.loads(result.stdout)["policies"][0]["mean_reward"] == pytest.approx(
        run.mean_reward, rel=1e-12
    )
    # believed takes the arms of PRIOR
    result = call("simulate", prior, "-p", "ts", "--believed", "-", *RUN, "--json", text=text)
    assert result.exit_code == 0, result.output


def test_a_saved_fit_is_a_prior_file(prior: Path) -> None:
    fit = pw.PriorFit(pw.ExchangeableBetaPrior(2, 38), "by hand", 5)
    fit.save("fit.json")
    fit.prior.save("inside.json")
    held = ("-p", "ts", "--arms", 3, *RUN, "--json")
    ours, plain = (
        json.loads(call("simulate", path, *held).stdout) for path in ("fit.json", "inside.json")
    )
    assert ours["prior"] == plain["prior"]
    assert ours["policies"][0]["mean_reward"] == plain["policies"][0]["mean_reward"]
    both = call(
        "bound", "fit.json", "-", "-p", "ts", "--arms", 3, *BOUND, "--json", text=fit.to_json()
    )
    assert both.exit_code == 0, both.output
    assert "--arms: missing" in error_of("simulate", "fit.json", "-p", "ts", *RUN)


def test_misspecified_examples() -> None:
    assert (
        pw.load_prior(call("example", "gaussian", "--misspecified").stdout)
        == problems.gaussian().misspecified
    )
    assert "--misspecified" in error_of("example", "beta", "--misspecified")
    assert "FAMILY: 'cauchy' is not one of" in error_of("example", "cauchy")


def test_every_word_parses_and_stands_in_the_help() -> None:
    text = call("simulate", "--help").stdout
    for word in WORDS.values():
        parse_policy(word.example)
        assert word.usage in text
    assert parse_policy("rhc:3,4,online") == pw.RecedingHorizon(3, 4, "online")
    assert parse_policy("rhc:k2=4,k1=3,alpha=0.5") == pw.RecedingHorizon(3, 4, 0.5)
    assert parse_policy("kg:10,10,random,best") == pw.KnowledgeGradient(
        10, 10, ties="random", when_certain="best"
    )
    assert parse_policy("exact-kg") == pw.ExactKnowledgeGradient("online")
    assert parse_policy("kg-best") == pw.ExactKnowledgeGradient("online", pulls="best")


def test_labels_keep_their_distance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(50):
        heights = np.sort(rng.uniform(0, 1, size=12))
        placed = spread(list(heights), 0.05, 0.0, 1.0)
        assert np.diff(placed).min() >= 0.05 - 1e-12
        assert 0.0 <= placed[0] <= placed[-1] <= 1.0 + 1e-12
    assert spread([0.1, 0.5, 0.9], 0.05, 0.0, 1.0) == pytest.approx([0.1, 0.5, 0.9])


@pytest.mark.slow
def test_script() -> None:
    script = Path(sys.executable).with_name("priorwise")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"priorwise {pw.__version__}\n"
    assert not done.stderr
    wrong = subprocess.run(
        [script, "simulate", "none.json", "-p", "ts", *RUN],
        capture_output=True,
        text=True,
        check=False,
    )
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("Error: PRIOR: no such file")


def test_import_stays_light() -> None:
    heavy = "{'matplotlib', 'rich', 'typer'} & set(sys.modules)"
    code = (
        f"import sys, priorwise; assert not {heavy}; import priorwise.cli; assert 'matplotlib' not "
        "in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


BOUND = ("--horizon", "3", "--seed", str(SEED), "--tasks", "500", "--histories", "40")


def test_bound_numbers_are_those_of_the_library(prior: Path) -> None:
    result = call("bound", prior, "wrong.json", "-p", "ts", *BOUND, "--json")
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    problem = problems.gaussian()
    ladder = pw.sensitivity_ladder(
        problem.prior,
        problem.misspecified,
        pw.ThompsonSampling(),
        3,
        seed=SEED,
        tasks=500,
        histories=40,
    )
    assert [rung["delta"] for rung in content["rungs"]] == [rung.delta for rung in ladder.rungs]
    assert content["gap"]["mean"] == ladder.gap.mean
    for name, sharp in (("bound", False), ("sharp_bound", True)):
        bound = pw.reward_bound(
            problem.prior, problem.misspecified, pw.ThompsonSampling(), 3, sharp=sharp
        )
        assert content[name]["reward"] == bound.value
        assert content[name]["kind"] == "certified"
    assert not Path("out").exists()


@pytest.mark.slow
def test_bound_writes_a_table_and_whole_files(prior: Path) -> None:
    result = call("bound", prior, "wrong.json", "-p", "ts", *BOUND)
    assert result.exit_code == 0, result.output
    for word in (
        "worst case",
        "coupled trajectories",
        "measured gap",
        "any two policies",
        "H E[diam]",
        "bound.svg",
    ):
        assert word in result.stdout
    assert {path.name for path in Path("out").iterdir()} == {"bound.png", "bound.svg", "bound.json"}


@pytest.mark.slow
def test_quiet_bound_shows_neither_bar_nor_table(
    prior: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[bool | None] = []

    def told(*arguments: Any, progress: bool | None = None, **options: Any) -> Any:
        shown.append(progress)
        return pw.sensitivity_ladder(*arguments, progress=progress, **options)

    monkeypatch.setattr("priorwise.sensitivity.ladder.ladder.sensitivity_ladder", told)
    loud = call("bound", prior, "wrong.json", "-p", "ts", *BOUND)
    quiet = call("bound", prior, "wrong.json", "-p", "ts", *BOUND, "--quiet")
    assert shown == [None, False]  # None: a bar on a terminal, if it takes long
    assert "measured gap" in loud.stdout
    assert (quiet.exit_code, quiet.output) == (0, "")


def test_bound_of_a_problem_with_a_state(prior: Path) -> None:
    """All of it exact, with the certified bound of decision problems."""
    true = pw.load_prior(call("example", "finite-mdp").stdout)
    wrong = true.replaced(probs=[0.6, 0.4])
    Path("mdp.json").write_text(true.to_json())
    Path("guess.json").write_text(wrong.to_json())
    result = call("bound", "mdp.json", "guess.json", "-p", "ts", *BOUND, "--json")
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    ladder = pw.sensitivity_ladder(true, wrong, pw.ThompsonSampling(), 3, seed=SEED)
    assert content["exact"]
    assert content["gap"]["mean"] == ladder.gap.mean
    certified = pw.sensitivity.pomdp_reward_bound((true, wrong), pw.ThompsonSampling(), 3)
    assert content["bound"]["reward"] == certified.value
    assert certified.value == pytest.approx(0.6 * 3 * 0.6)


def test_bound_says_what_a_baseline_lacks(prior: Path) -> None:
    result = call("bound", prior, "wrong.json", "-p", "greedy", *BOUND)
    assert result.exit_code == 0, result.output
    assert "Left out: worst case, posteriors" in result.stdout
    assert "certified bound" not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("prior.json", "missing.json", "-p", "ts"), "BELIEVED: no such file"),
        (("prior.json", "wrong.json", "-p", "best"), "policy must be one of ts"),
        (("-", "-", "-p", "ts"), "BELIEVED: standard input is taken"),
        (("prior.json", "noisy.json", "-p", "ts"), "must have the reward law of the other"),
    ],
)
def test_bound_mistakes_are_one_line(prior: Path, arguments: tuple[str, ...], says: str) -> None:
    wrong = problems.gaussian().misspecified
    pw.GaussianPrior(wrong.mean, wrong.cov, 2.0).save("noisy.json")  # type: ignore[attr-defined]
    assert says in error_of("bound", *arguments, *BOUND)
