"""``priorwise fit``: from a log of past tasks to a prior file."""

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from priorwise.cli import columns
from priorwise.cli.inputs import AsJson, Out, Quiet, Seed, argument, word
from priorwise.cli.output import fail, finish, results_directory

if TYPE_CHECKING:
    from rich.console import Console

HELP: Final = """Learn a prior from a log of past tasks, and say whether it fits.

A log has one row per pull (task, action, reward), or one row for several pulls of an arm (with \
their number in --pulls). It is a Parquet, CSV or Arrow file, or a folder of Parquet files. \
Columns with common names are found; what is guessed is said.

Writes the prior, which every other command takes, and two pictures: the prior, and whether it \
generates tasks like the log's.

\b
[bold]Examples[/]
priorwise example headlines > log.csv
priorwise fit log.csv --seed 0
[dim]# columns with other names; one family and structure instead of a comparison[/]
priorwise fit visits.parquet --task campaign --action banner --reward bought \\
    --family beta:exchangeable --seed 0
[dim]# rewards come within a week; does the prior change over time?[/]
priorwise fit visits.parquet --time day --window 7 --seed 0
[dim]# what would policies earn on tasks like these?[/]
priorwise simulate out/prior.json --arms 4 -p ts -p greedy --horizon 200 --seed 0
[dim]# what may be lost because the prior is only learned?[/]
priorwise certify out/prior.json --arms 4 -p ts --horizon 50 --tasks 500 --seed 0
"""


class ArmsAre(StrEnum):
    """Whether tasks share their arms."""

    auto = "auto"
    same = "same"
    new = "new"


class RewardIs(StrEnum):
    """What of a reward counts."""

    reward = "reward"
    converted = "converted"
    value = "value"


def fit(
    log: Annotated[str, argument("Parquet, CSV or Arrow file of past tasks.", "LOG")],
    seed: Seed,
    family: columns.FamilyName = "auto",
    task: columns.Task = None,
    action: columns.Action = None,
    reward: columns.Reward = None,
    pulls: columns.Pulls = None,
    squares: columns.Squares = None,
    arms: Annotated[
        ArmsAre, typer.Option(help="Do tasks share their arms, or has each new ones?")
    ] = ArmsAre.auto,
    noise_var: columns.NoiseVar = None,
    time: Annotated[str | None, word("When a row was: days, times or numbers.", "COLUMN")] = None,
    since: Annotated[str | None, word("Leave out rows before this time.", "TIME")] = None,
    until: Annotated[str | None, word("Leave out rows after this time.", "TIME")] = None,
    window: Annotated[
        float | None, word("Days that a reward may take: younger rows are left out.", "DAYS")
    ] = None,
    half_life: Annotated[
        float | None, word("Days after which half of the tasks are left out.", "DAYS")
    ] = None,
    reward_as: Annotated[
        RewardIs, typer.Option(help="The reward, whether there is one, or how much if there is.")
    ] = RewardIs.reward,
    drop_missing: columns.DropMissing = False,
    out: Out = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Read, check, fit, write."""
    from priorwise.logs.fitting import fit_prior

    directory = results_directory("prior", out, as_json)
    try:
        found = fit_prior(
            log, family, seed=seed, task=task, action=action, reward=reward, pulls=pulls,
            squares=squares, arms=arms.value, noise_var=noise_var, time=time,
            since=since, until=until, window=window, half_life=half_life, reward_as=reward_as.value,
            missing="drop" if drop_missing else "refuse",
        )  # fmt: skip
    except (ModuleNotFoundError, OSError, TypeError, ValueError) as error:
        fail("LOG", error)
    text, pictures = found.fit.to_json(), {}
    if directory is not None:
        pictures = dict(found.figure())
        if found.check is not None:
            pictures |= {f"check.{suffix}": each for suffix, each in found.check.figure().items()}

    def show(console: "Console") -> None:
        console.print(str(found), markup=False, soft_wrap=True)

    finish("prior", directory, pictures, text, None if as_json or quiet else show)
    if as_json:
        check = None if found.check is None else found.check.table()
        typer.echo(json.dumps({"fit": json.loads(text), "chosen": found.chosen, "check": check}))
