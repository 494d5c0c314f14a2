"""``priorwise recommend``: which prior and which policy, from a log."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from priorwise.cli import inputs
from priorwise.cli.inputs import word
from priorwise.cli.output import end, fail, finish, finite, keep_fit, refusing, results_directory
from priorwise.cli.reading import LogFile, Reading, print_notes, reads_log
from priorwise.core.errors import ArgumentError

if TYPE_CHECKING:
    from rich.console import Console

HELP: Final = """What to do: which prior to believe, and which policy to play, from a log of past \
tasks.

Compares families and structures by the likelihood of held-out tasks, then lets policies play \
simulated tasks of priors that the log leaves plausible, from a plain A/B test to exact \
look-ahead. The best is chosen on some tasks and scored on others. Prints the advice with its \
reasons, and how much of the gain a plain A/B test gives away; writes a picture of what policies \
earn against what a wrong prior costs them.

\b
[bold]Examples[/]
priorwise example headlines > log.csv
priorwise recommend log.csv --horizon 200 --batch 20 --seed 0
[dim]# one page to show around[/]
priorwise recommend log.csv --horizon 200 --batch 20 --seed 0 --report advice.html
[dim]# columns with other names; numbers for another program[/]
priorwise recommend visits.parquet --task campaign --action banner --reward bought \\
    --horizon 50 --seed 0 --json
"""

REPORT: Final = "One self-contained page about the advice, such as advice.html."


@reads_log(without=("task_features",))
def recommend(
    log: LogFile,
    *,
    horizon: inputs.Horizon,
    seed: inputs.Seed,
    batch: inputs.Batch = 1,
    report: Annotated[str | None, word(REPORT, "FILE")] = None,
    reading: Reading,
    out: inputs.Out = None,
    as_json: inputs.AsJson = False,
    quiet: inputs.Quiet = False,
) -> None:
    """Read, learn, simulate, advise, write."""
    from priorwise.advise.recommending import recommend as advised
    from priorwise.core.progress import Interrupted

    directory = results_directory("advice", out, as_json)
    page = None if report is None else _page(report)
    inputs.check_batch(batch, horizon)
    shown = False if quiet else None
    how: Any = {"horizon": horizon, "seed": seed, "batch": batch, "progress": shown}
    try:
        with refusing():
            found = advised(log, **how, **reading.options)
    except Interrupted as stop:
        found = stop.partial or keep_fit(directory, stop.fit)
    interrupted = found.interrupted
    if page is not None:
        try:
            end(interrupted)
            _write_page(page, found, log, reading.options, shown)
        except KeyboardInterrupt:
            interrupted, page = f"{interrupted} The page {page} was not written.".lstrip(), None
    numbers = {name: finite(each) for name, each in found.summary().items()}
    numbers["policies"] = [
        {name: finite(each) for name, each in row.items()} for row in numbers["policies"]
    ]
    numbers["fit"] = json.loads(found.fit.fit.to_json())
    text = json.dumps(numbers, indent=1, allow_nan=False)

    def show(console: "Console") -> None:
        print_notes(console, found.fit)
        console.print(str(found), markup=False, soft_wrap=True)
        if page is not None:
            console.print(f"Wrote {page}", markup=False, soft_wrap=True)

    picture = found.figure() if directory is not None else {}
    printed = None if as_json or quiet else show
    finish("advice", directory, picture, text, printed, found.interrupted)
    if as_json:
        typer.echo(text)
    end(interrupted)


def _page(text: str) -> Path:
    """Return where the page goes; stop before the work if it cannot be written there."""
    from priorwise.core.files import file_path

    try:
        path = file_path(text)
        folder = path.absolute().parent
        if path.is_dir() or not folder.is_dir():
            wrong = f"{path} is a directory" if path.is_dir() else f"no directory {folder}"
            fail("--report", f"{wrong}; name a file in one that is there, such as advice.html")
        if not os.access(folder, os.W_OK | os.X_OK):
            fail("--report", f"no permission to write in {folder}; choose another directory")
    except (OSError, ArgumentError) as error:
        fail("--report", f"{error}; name a file, such as advice.html")
    return path


def _write_page(path: Path, found: Any, log: str, read: Any, shown: bool | None) -> None:
    from priorwise.advise.page import advice_page, backtest_of, certificate_of
    from priorwise.core.files import write_whole

    certificate = certificate_of(found, progress=shown)
    replayed = backtest_of(found, log, progress=shown, **read)
    content = advice_page(found, certificate, replayed).encode()
    try:
        write_whole(path, content)
    except OSError as error:
        fail("--report", f"{error}; choose another file")
