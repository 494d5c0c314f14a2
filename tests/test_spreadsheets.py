"""Spreadsheets as people have them give the statistics of the same clean table, and every guess is
said; what cannot be guessed ends in an error with the whole command to type.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from raising import raises
from typer.testing import CliRunner

import priorwise as pw
from priorwise.cli import app
from priorwise.logs import read_log
from priorwise.logs.checking import fetch
from priorwise.logs.naming import UnsureError, role_by_words

ROLES = ("task", "action", "reward", "pulls", "rate")


@pytest.fixture
def clean(seed: int) -> pd.DataFrame:
    """40 tests of 3 arms with up to 20,000 impressions each."""
    rng = np.random.default_rng(seed)
    test, arm = np.divmod(np.arange(120), 3)
    shown = rng.integers(200, 20_000, 120)
    shown[:2] = 15_000, 999  # with and without a separator
    clicks = rng.binomial(shown, 0.08 + 0.05 * rng.random(120))
    return pd.DataFrame(
        {
            "task": [f"test {t}" for t in test],
            "action": np.array(["blue", "green", "red"])[arm],
            "reward": clicks,
            "pulls": shown,
        }
    )


HEAD = ["Test Name", "Variant", "Impressions (total)", "# Clicks", "CTR %", "Start Date"]
Row = tuple[str, str, str, str, str, str]


def sheet(clean: pd.DataFrame, head: list[str], row: Callable[[Any], Any], sep: str = ";") -> str:
    """Rows as text, with the sign between columns."""
    rows = [sep.join(map(str, row(each))) for each in clean.itertuples()]
    return "\n".join([sep.join(head), *rows]) + "\n"


def plain(row: Any) -> Row:
    rate = f"{100 * row.reward / row.pulls:.2f}"
    return row.task, row.action, str(row.pulls), str(row.reward), rate, "2024-03-01"


def german(row: Any) -> Row:
    points = [f"{each:,}".replace(",", ".") for each in (row.pulls, row.reward)]
    rate = f"{100 * row.reward / row.pulls:.2f}".replace(".", ",")
    return row.task, row.action, *points, rate, "01.03.2024"


def american(row: Any) -> tuple[str, ...]:
    return row.task, row.action, f'"{row.pulls:,}"', f'"{row.reward:,}"'


def with_total(clean: pd.DataFrame, text: str, off: int = 0) -> str:
    return f"{text}Total;;{clean.pulls.sum() + off};{clean.reward.sum()};;\n"


def with_subtotals(clean: pd.DataFrame) -> str:
    sums = clean.groupby("task")[["pulls", "reward"]].sum()
    rows = [f"{name};All;{row.pulls};{row.reward};;" for name, row in sums.iterrows()]
    return sheet(clean, HEAD, plain) + "\n".join(rows) + "\n"


def of_rates(clean: pd.DataFrame, digits: int = 4) -> str:
    head = ["Campaign name", "Creative", "Impr.", "CTR"]
    return sheet(
        clean,
        head,
        lambda r: (r.task, r.action, r.pulls, f"{100 * r.reward / r.pulls:.{digits}f}%"),
        "\t",
    )


def per_impression(clean: pd.DataFrame) -> str:
    rows = ["Impression ID,Test Name,Variant,Clicked (yes/no),Date"]
    for row in clean.itertuples():
        for i in range(row.pulls):
            rows.append(f"{len(rows)},{row.task},{row.action},{'Yes' if i < row.reward else 'No'},")
    return "\n".join(rows) + "\n"


def umlauts(clean: pd.DataFrame) -> pd.DataFrame:
    return clean.assign(action=clean.action.map({"blue": "für", "green": "schön", "red": "süß"}))


def small(clean: pd.DataFrame) -> pd.DataFrame:
    return clean.assign(pulls=clean.pulls // 100 + 2, reward=clean.reward // 100)


Made = Callable[[pd.DataFrame], str]
SHEETS: dict[str, tuple[Callable[[pd.DataFrame], pd.DataFrame], Made, str]] = {
    "words in names": (lambda c: c, lambda c: sheet(c, HEAD, plain), "utf-8"),
    "German numbers": (lambda c: c, lambda c: sheet(c, HEAD, german), "utf-8"),
    "American numbers": (
        lambda c: c,
        lambda c: sheet(c, ["Experiment", "Arm name", "Showings", "clicks"], american, ","),
        "utf-8",
    ),
    "a total": (lambda c: c, lambda c: with_total(c, sheet(c, HEAD, plain)), "utf-8"),
    "totals of tests": (lambda c: c, with_subtotals, "utf-8"),
    "Latin-1": (umlauts, lambda c: sheet(c, HEAD, plain), "cp1252"),
    "UTF-16": (umlauts, lambda c: sheet(c, HEAD, german), "utf-16"),
    "rates": (lambda c: c, of_rates, "utf-8"),
    "rows of impressions": (small, per_impression, "utf-8"),
    "two sorts of clicks": (
        lambda c: c,
        lambda c: sheet(
            c,
            ["Test Name", "Variant", "Sends", "Clicks (all)", "Unique clicks"],
            lambda r: (r.task, r.action, r.pulls, r.reward, r.reward // 2),
        ),
        "utf-8",
    ),
    "no likely name": (
        lambda c: c,
        lambda c: sheet(
            c, ["Mailing", "Subject line", "Sends", "Conversions"], lambda r: (*r[1:3], r[4], r[3])
        ),
        "utf-8",
    ),
}
UNCLEAR = ("two sorts of clicks", "no likely name")
NOTES = {
    "German numbers": ("points", "thousands separators"),
    "American numbers": ("commas", "thousands separators"),
    "a total": ("row 121", "'Total'"),
    "totals of tests": ("40 rows", "'All'"),
    "Latin-1": ("encoding='cp1252'",),
    "UTF-16": ("encoding='utf-16'",),
    "rates": ("percentage", "whole numbers"),
}


def same(log: Any, clean: pd.DataFrame) -> None:
    """Check the sums against those of the clean table by pandas."""
    by_hand = clean.groupby(["task", "action"])[["reward", "pulls"]].sum()
    np.testing.assert_array_equal(log.pulls, by_hand.pulls)
    np.testing.assert_array_equal(log.sums, by_hand.reward)
    assert list(log.tasks) == sorted(set(clean.task))
    assert list(log.names) == sorted(set(clean.action))


def unsaid(columns: Any, notes: str, given: set[str]) -> list[str]:
    """Roles whose column is neither given nor named like the role nor in the notes."""
    roles = {role: getattr(columns, role) for role in ROLES}
    if columns.rate is not None:
        del roles["reward"]
    return [
        role
        for role, name in roles.items()
        if name is not None and role not in given and name != role
        and f"{name!r} is taken for {role}=" not in notes
    ]  # fmt: skip


def typed(output: str) -> list[str]:
    """The words of the command that an error ends with."""
    (line,) = output.splitlines()
    assert line.startswith("Error: ")
    return shlex.split(line[line.index("priorwise fit ") :])[1:]


@pytest.mark.slow
@pytest.mark.parametrize("name", SHEETS)
def test_a_spreadsheet_is_read_and_every_guess_is_said(
    name: str, clean: pd.DataFrame, tmp_path: Path, seed: int
) -> None:
    changed, made, encoding = SHEETS[name]
    clean = changed(clean)
    path = tmp_path / "my log.csv"
    path.write_bytes(made(clean).encode(encoding))
    command = ["fit", str(path), "--seed", "0", "--family", "beta:exchangeable"]
    command += ["--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, command)
    given: dict[str, str] = {}
    if name in UNCLEAR:
        assert done.exit_code == 2, done.output
        command = typed(done.output)
        options = dict(zip(command[2::2], command[3::2], strict=True))
        given = {r: options[f"--{r}"] for r in ROLES if f"--{r}" in options}
        assert set(given) >= {"task", "action", "reward", "pulls"}
        done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    log = read_log(path, **given)  # type: ignore[arg-type]
    same(log, clean)
    assert unsaid(log.columns, "\n".join(log.said), set(given)) == []
    if not given:
        for note in log.said:
            assert note.partition("=")[0].rpartition(" ")[0] in done.output
    for word in NOTES.get(name, ()):
        assert any(word in note for note in log.said), log.said
    fitted = pw.fit_prior(clean, "beta:exchangeable", seed=seed).fit.prior
    found = pw.load_prior(tmp_path / "out" / "prior.json")
    np.testing.assert_allclose([found.alpha, found.beta], [fitted.alpha, fitted.beta], rtol=1e-6)


NAMES = {
    "Test Name": "task",
    "testId": "task",
    "Test Variant": "action",
    "Variant (test)": "action",
    "# Clicks": "reward",
    "clicks_total": "reward",
    "Impressions (total)": "pulls",
    "Impr.": "pulls",
    "CTR %": "rate",
    "Click rate": "rate",
    "% clicked": "rate",
    "Test Start Date": None,
    "Cost per click": None,
    "Click URL": None,
    "# of variants": None,
    "Number of variants": None,
    "Impression ID": None,
    "subject": None,
    "": None,
    "%": None,
}


@pytest.mark.parametrize("name", NAMES)
def test_words_in_names_speak_for_one_role(name: str) -> None:
    assert role_by_words(name) == NAMES[name]


def test_unclear_names_raise_with_all_arguments(clean: pd.DataFrame) -> None:
    """Two columns of clicks, also where one has the common name; a name is never guessed from a
    column of dates; what is left stands for what lacks.
    """
    extra = clean.rename(columns={"reward": "Clicks", "task": "Test Name"})
    assert read_log(extra).columns.reward == "Clicks"
    for other in ("Unique clicks", "conversions"):
        with pytest.raises(
            UnsureError, match=r"may each be the reward.*pass task='Test Name'"
        ) as e:
            read_log(extra.assign(**{other: 1}))
        expected = {"task": "Test Name", "action": "action", "reward": "Clicks", "pulls": "pulls"}
        assert e.value.arguments == expected
        same(read_log(extra.assign(**{other: 1}), **e.value.arguments), clean)
    dated = clean.drop(columns="task").assign(test_start_date="2024-01-01", mailing=clean.task)
    with pytest.raises(UnsureError, match="looks like the task") as e:
        read_log(dated)
    assert e.value.arguments["task"] == "mailing"
    same(read_log(dated, **e.value.arguments), clean)


def test_single_pulls_are_not_taken_for_sums(clean: pd.DataFrame) -> None:
    """A column with a word for pulls in its name, beside the library's own name of rewards."""
    single = clean.assign(**{"page views": clean.pulls})[["task", "action", "reward", "page views"]]
    assert not read_log(single).columns.summed


def texts(clean: pd.DataFrame, **columns: list[str]) -> pd.DataFrame:
    """The clean table with some texts in place of its first numbers."""
    changed = clean.astype({"reward": str, "pulls": str})
    for name, values in columns.items():
        changed.loc[: len(values) - 1, name] = values
    return changed


@pytest.mark.parametrize(
    ("written", "numbers", "word"),
    [
        (["1,5", "0,25"], [1.5, 0.25], "decimal commas"),
        (["1,234", "0,250"], [1.234, 0.25], "decimal commas"),
        (["1.234,5", "12"], [1234.5, 12], "thousands separators"),
        (["1,234.5", "12"], [1234.5, 12], "thousands separators"),
        (["1,234", "12"], [1234, 12], "thousands separators"),
        (["1,234,567", "12,345"], [1234567, 12345], "thousands separators"),
        (["1 234", "12\u00a0345"], [1234, 12345], "spaces or apostrophes"),
        (["1'234", "12"], [1234, 12], "spaces or apostrophes"),
        (["1.234", "12.345"], [1.234, 12.345], "decimal points"),
        (["1.5", "12.345"], [1.5, 12.345], None),
        (["1e3", "-.5"], [1000, -0.5], None),
        (["Yes", "no"], [1, 0], "yes and no"),
    ],
)
def test_a_column_decides_how_its_numbers_are_written(
    written: list[str], numbers: list[float], word: str | None, tmp_path: Path
) -> None:
    frame = pd.DataFrame({"task": [1, 2], "action": "a", "reward": written})
    frame.to_csv(tmp_path / "log.csv", index=False, sep=";")
    table = ibis.memtable(pa.Table.from_pandas(frame))
    for log in (frame, tmp_path / "log.csv", table):
        read = read_log(log)
        np.testing.assert_allclose(read.sums, numbers, rtol=1e-12)
        if log is frame or word != "yes and no":  # of a file these have a type of their own
            said = "\n".join(read.said)
            assert "'reward'" in said if word else not said
            assert (word or "") in said


def test_signs_that_may_be_either_raise_or_follow_the_other_columns(tmp_path: Path) -> None:
    head = {"task": ["a", "b"], "action": "x"}
    unclear = pd.DataFrame({**head, "clicks": ["1,234", "2,345"]})
    with pytest.raises(UnsureError, match=r"'clicks' .* decimal signs or thousands") as e:
        read_log(unclear)
    assert e.value.arguments["decimal"] == "."
    assert read_log(unclear, **e.value.arguments).sums.tolist() == [1234, 2345]
    assert read_log(unclear, decimal=",").sums.tolist() == [1.234, 2.345]
    for pulls, sums in ((["12.345", "2.000"], [1.234, 2.345]), (["12,345", "2,000"], [1234, 2345])):
        log = read_log(unclear.assign(impressions=pulls))
        assert (log.sums.tolist(), log.pulls.tolist()) == (sums, [12345, 2000])
    unclear.to_csv(tmp_path / "log.csv", index=False)
    done = CliRunner().invoke(app, ["fit", str(tmp_path / "log.csv"), "--seed", "0"])
    assert typed(done.output)[-4:] == ["--decimal", ".", "--seed", "0"]
    mixed = pd.DataFrame({**head, "task": list("abc"), "reward": ["1.5", "2.5", "0,5"]})
    with raises("reward", "in row 3 of the frame"):
        read_log(mixed)
    with raises("decimal", "must be '.' or ','"):
        read_log(mixed, decimal=";")  # type: ignore[arg-type]


def test_points_in_whole_numbers_of_a_file_separate_thousands(tmp_path: Path) -> None:
    """The engine alone would read 2.000 impressions as 2."""
    (tmp_path / "log.csv").write_text("task;action;clicks;impressions\na;x;1.200;2.000\nb;x;3;9\n")
    log = read_log(tmp_path / "log.csv")
    assert (log.sums.tolist(), log.pulls.tolist()) == ([1200, 3], [2000, 9])
    assert sum("thousands separators" in note for note in log.said) == 2


@pytest.mark.slow
def test_totals_that_do_not_add_up_are_not_dropped(clean: pd.DataFrame, tmp_path: Path) -> None:
    total = {
        "task": "Total",
        "action": "",
        "reward": clean.reward.sum(),
        "pulls": clean.pulls.sum(),
    }

    def with_row(**changed: Any) -> pd.DataFrame:
        return pd.concat([clean, pd.DataFrame([total | changed])], ignore_index=True)

    for frame in (with_row(), with_row(task="", action="SUM "), with_row(action=None)):
        log = read_log(frame)
        same(log, clean)
        assert any("row 121" in note and "left out" in note for note in log.said)
    red = clean[clean.action == "red"]
    of_red = {"action": "red", "reward": red.reward.sum(), "pulls": red.pulls.sum()}
    same(read_log(with_row(**of_red)), clean)  # the total of an arm
    for changed in ({"pulls": 1 + clean.pulls.sum()}, {"reward": clean.reward.sum() - 1}):
        with raises("task", "row 121") as e:
            read_log(with_row(**changed))
        assert next(iter(changed)) in str(e.value)
    with raises("task", "row 121"):  # of the arm, and not of all
        read_log(with_row(action="red"))
    one = clean.assign(action=clean.action.replace("red", "Total"))
    with raises("action", "row 3"):
        read_log(one)
    arm = clean.assign(action=clean.action.replace("red", "all"))
    log = read_log(arm)
    same(log, arm)
    assert any("'all'" in note and "is an arm" in note for note in log.said)


@pytest.mark.slow
def test_rates_must_give_whole_clicks(clean: pd.DataFrame) -> None:
    rate = clean.reward / clean.pulls
    table = clean.drop(columns="reward")
    for column in (rate, rate.round(6), (100 * rate).round(4), rate.map("{:.6f}".format)):
        log = read_log(table.assign(CTR=column))
        same(log, clean)
        assert any("'CTR' is taken for rate=" in note for note in log.said)
        assert any("whole numbers" in note for note in log.said)
    few = pd.DataFrame({"task": list("aabb"), "action": [1, 2] * 2})
    log = read_log(few.assign(CTR=["0.1", "#DIV/0!", "0.3", "0"], impressions=[10, 0, 10, 7]))
    assert log.sums.tolist() == [1, 0, 3, 0]
    for wrong, words in (
        (rate + 0.3 / clean.pulls, "no whole number of clicks"),
        ((rate + 0.3 / clean.pulls).round(8), "no whole number of clicks"),
        (rate.round(2), "too few digits"),
        (rate + 200.0, "no whole number of clicks"),
    ):
        with raises("rate", words):
            read_log(table.assign(CTR=wrong))
    signs = rate.map("{:.4%}".format)
    same(read_log(table.assign(share=signs), rate="share"), clean)
    signs[4] = signs[4].removesuffix("%")
    with raises("rate", "must have % in all rows"):
        read_log(table.assign(share=signs), rate="share")
    with pytest.raises(UnsureError, match=r"rate='CTR'"):
        read_log(table.assign(CTR=rate, open_rate=rate))
    with raises("rate", "stands for the reward"):
        read_log(clean.assign(CTR=rate), rate="CTR", reward="reward")
    with raises("rate", "needs pulls="):
        read_log(table.drop(columns="pulls").assign(CTR=rate), rate="CTR")


@pytest.mark.slow
def test_encodings_are_guessed_from_all_bytes_or_given(clean: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    words = umlauts(clean)
    text = words.to_csv(index=False)
    for encoding in ("latin-1", "utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "cp1252"):
        path.write_bytes(text.encode(encoding))
        same(read_log(path), words)
        same(read_log(path, encoding=encoding), words)
    late = "task,action,reward\n" + "1,a,0\n" * 200_000 + "2,sch\u00f6n,1\n"
    path.write_bytes(late.encode("latin-1"))
    log = read_log(path)
    assert log.names == ("a", "sch\u00f6n")
    assert any("encoding='cp1252'" in note for note in log.said)
    with raises("encoding", "is not text in ascii"):
        read_log(path, encoding="ascii")
    with raises("encoding", "must be the name of an encoding"):
        read_log(path, encoding="latin-99")
    with raises("encoding", "is for a file of text"):
        read_log(clean, encoding="latin-1")


COMMANDS: dict[str, list[str]] = {
    "fit": [],
    "certify": ["-p", "ts", "--horizon", "3", "--draws", "20", "--tasks", "20", "--bootstrap", "0"],
    "backtest": ["-p", "ts", "--horizon", "3"],
    "recommend": ["--horizon", "3"],
}


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_what_it_guessed_and_what_to_type(
    command: str, clean: pd.DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "log.csv"
    path.write_text(with_total(clean, sheet(clean, HEAD, plain)))
    options = [*COMMANDS[command], "--seed", "0", "--family", "beta:separate", "--drop-missing"]
    done = CliRunner().invoke(app, [command, str(path), *options, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    for role, name in (
        ("task", HEAD[0]),
        ("action", HEAD[1]),
        ("pulls", HEAD[2]),
        ("reward", HEAD[3]),
    ):
        assert f"{name!r} is taken for --{role}" in done.output
    assert "'Total'" in done.output
    path.write_text(path.read_text().replace("CTR %", "Unique clicks"))
    done = CliRunner().invoke(app, [command, str(path), *options])
    assert done.exit_code == 2
    line = shlex.split(done.output[done.output.index(f"priorwise {command} ") :])
    roles = ["--task", HEAD[0], "--action", HEAD[1], "--reward", HEAD[3], "--pulls", HEAD[2]]
    assert line == ["priorwise", command, str(path), *roles, *_sorted_like(line, options)]


def _sorted_like(line: list[str], options: list[str]) -> list[str]:
    """The options as the line has them, once all of them are there; short names become long."""
    tail = line[11:]
    named = {"-p": "--policy"}
    assert sorted(tail) == sorted(named.get(each, each) for each in options)
    return tail


def dated(clean: pd.DataFrame, form: str, most: int = 28) -> str:
    """A test on each of 40 days from 1 to ``most``."""
    days = [pd.Timestamp(2024, 1 + t // most, 1 + t % most) for t in range(40)]

    def row(each: Any) -> Row:
        return *plain(each)[:5], days[int(each.task.split()[1])].strftime(form)

    return sheet(clean, HEAD, row)


@pytest.mark.parametrize(
    ("form", "most", "clear"),
    [
        ("%d/%m/%Y", 28, True),
        ("%m/%d/%Y", 28, True),
        ("%d.%m.%Y", 12, True),
        ("%Y-%m-%d", 12, True),
        ("%Y-%m-%d %H:%M:%S", 12, True),
        ("%d/%m/%Y", 12, False),
        ("%m-%d-%Y", 12, False),
        ("%d.%m.%y", 28, False),
        ("%m/%d/%y", 28, False),
    ],
)
def test_days_that_can_be_read_in_two_ways_are_no_times(
    form: str, most: int, clear: bool, clean: pd.DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "log.csv"
    path.write_text(dated(clean, form, most))
    found = read_log(path)
    assert found.columns.time == ("Start Date" if clear else None)
    assert found.columns.ordered is not clear
    assert any("can be read in two ways" in each for each in found.said) is not clear
    if clear:
        first = fetch(found.source.aggregate(first=found.source.time.cast("date").max()))["first"]
        last = pd.Timestamp(2024, 1 + 39 // most, 1 + 39 % most)
        assert pd.Timestamp(first[0]) == last
    else:
        with raises("time", "is unclear: the days in 'Start Date'"):
            read_log(path, time="Start Date")


def test_texts_that_are_no_times_are_said(clean: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(dated(clean, "%d %b %Y"))
    found = read_log(path)
    assert found.columns.time is None
    assert any("'Start Date' has texts that are no times" in each for each in found.said)
    with raises("time", "has texts, and neither times"):
        read_log(path, time="Start Date")


def test_a_total_needs_no_time(clean: pd.DataFrame, tmp_path: Path) -> None:
    """Control: a row like the others does."""
    path = tmp_path / "log.csv"
    path.write_text(with_total(clean, dated(clean, "%Y-%m-%d")))
    found = read_log(path)
    assert (found.columns.time, len(found.tasks)) == ("Start Date", 40)
    path.write_text(dated(clean, "%Y-%m-%d") + "test 1;blue;100;5;5.0;\n")
    assert read_log(path).columns.time is None


def test_the_command_to_type_is_that_of_the_module_too(tmp_path: Path, clean: pd.DataFrame) -> None:
    path = tmp_path / "log.csv"
    clean.rename(columns={"task": "mailing"}).to_csv(path, index=False)
    words = ["fit", str(path), "--seed", "0"]
    for name in ("priorwise", "python -m priorwise"):
        done = CliRunner().invoke(app, words, prog_name=name)
        assert f" type priorwise fit {path} --task mailing" in " ".join(done.stderr.split()), name


def test_rates_above_1_are_called_percentages(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    rates = ["0.07", "0.1", "1.3", "0.09"]
    lines = [f"t{i},{arm},100,{rate}" for i, rate in enumerate(rates) for arm in "xy"]
    path.write_text("\n".join(["test,variant,impressions,ctr", *lines]))
    with raises("rate", "read as percentages because the largest is 1.3"):
        read_log(path)
