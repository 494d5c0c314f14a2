"""``priorwise fit``: from a log of past tasks to a prior file."""

import json
from typing import TYPE_CHECKING, Final

import typer

from priorwise.cli.inputs import AsJson, Out, Quiet, Seed
from priorwise.cli.output import finish, refusing, results_directory
from priorwise.cli.reading import LogFile, Reading, reads_log

if TYPE_CHECKING:
    from rich.console import Console

HELP: Final = """Learn a prior from a log of past tasks, and say whether it fits.

A log has one row per pull (task, action, reward), or one row for several pulls of an arm (with \
their number in --pulls). It is a Parquet, CSV or Arrow file, or a folder of Parquet files. \
Columns are found by common names and by words in names; what is guessed is said. An unclear \
guess ends in an error with the command to type. Decimal commas, thousands separators, rows of \
totals, Latin-1, and rates (with impressions) in place of clicks are read.

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
[dim]# a prior for each task, by what describes it[/]
priorwise fit visits.parquet --task-features country,age --seed 0
[dim]# what would policies earn on tasks like these?[/]
priorwise simulate out/prior.json --arms 4 -p ts -p greedy --horizon 200 --seed 0
[dim]# what may be lost because the prior is only learned?[/]
priorwise certify out/prior.json --arms 4 -p ts --horizon 50 --tasks 500 --seed 0
"""


@reads_log()
def fit(
    log: LogFile,
    *,
    seed: Seed,
    reading: Reading,
    out: Out = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Read, check, fit, write."""
    from priorwise.logs.fitting import fit_prior

    directory = results_directory("prior", out, as_json)
    with refusing():
        found = fit_prior(log, seed=seed, **reading.options)
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
        numbers = {"fit": json.loads(text), "chosen": found.chosen, "check": check}
        typer.echo(json.dumps({**numbers, "notes": list(found.log.said)}))
