"""``priorwise reproduce``: the paper's three problems, simulated and held against known values."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from priorwise.cli.errors import fail
from priorwise.cli.files import check_directory, write_all
from priorwise.cli.inputs import seed_range
from priorwise.cli.output import output
from priorwise.cli.paper import MOST_STD_ERRORS, PROBLEMS, Result, Row, rows, run_row
from priorwise.cli.paper_figure import reward_by_samples
from priorwise.cli.table import plus_minus
from priorwise.simulate.results import Estimate

if TYPE_CHECKING:
    from rich.table import Table

WHAT: Final = "A small real simulation of the paper's three problems; the learning-curve experiments are not part of it yet."
QUICK_SHARE: Final = 0.1

HELP: Final = f"""Simulate the paper's three problems and hold the rewards against known values.

{WHAT}

Writes reproduce.png and .svg (what the receding horizon earns with more and more posterior draws) and reproduce.json.

Takes less than a minute on two processors, and longer the first time, to compile. Exits with 1 if a value does not agree.

\b
[bold]Examples[/]
priorwise reproduce
priorwise reproduce --quick --seed 7 --out /tmp/paper
"""


def reproduce(
    seed: Annotated[
        int, typer.Option(metavar="N", callback=seed_range, help="Any whole number; the same seed gives the same numbers.")
    ] = 0,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Directory for reproduce.png, .svg and .json.")] = Path("out"),
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of the tasks.")] = False,
) -> None:
    """Simulate, write, compare."""
    check_directory("--out", out)
    console = output()
    console.print(WHAT)
    results = _run(rows(QUICK_SHARE if quick else 1.0), seed)
    content = {"priorwise": 1, "command": "reproduce", "what": WHAT, "seed": seed, "rows": [each.as_dict() for each in results]}
    figure = {f"reproduce.{suffix}": data for suffix, data in reward_by_samples(results).items()}
    try:
        files = write_all(out, {**figure, "reproduce.json": f"{json.dumps(content, indent=2, allow_nan=False)}\n".encode()})
    except OSError as error:
        fail("--out", f"{error}; choose another directory")
    console.print(_table(results, seed))
    differing = [each for each in results if each.agrees is False]
    known = sum(each.agrees is not None for each in results)
    colour = "red" if differing else "green"
    console.print(
        f"[{colour}]{known - len(differing)} of {known} known values agree within {MOST_STD_ERRORS:g} standard errors.[/]"
    )
    console.print("Wrote " + ", ".join(str(path) for path in files), soft_wrap=True)
    if differing:
        raise typer.Exit(1)


def _run(sweep: Sequence[Row], seed: int) -> list[Result]:
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    weights = [row.tasks * PROBLEMS[row.problem]().horizon * row.ns_per_pull for row in sweep]
    columns = (TextColumn("{task.description:<40}"), BarColumn(), TimeRemainingColumn())
    results = []
    with Progress(*columns, transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("", total=sum(weights))
        for row, weight in zip(sweep, weights, strict=True):
            bar.update(task, description=f"{row.problem}: {row.algorithm}")
            results.append(run_row(row, seed))
            bar.advance(task, weight)
    return results


def _table(results: Sequence[Result], seed: int) -> Table:
    from rich import box
    from rich.table import Table

    title = f"Mean total reward of a task ± standard error (seed {seed})"
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for header in ("problem", "algorithm", "prior held"):
        table.add_column(header)
    for header in ("tasks", "measured", "known", "agrees"):
        table.add_column(header, justify="right")
    for index, each in enumerate(results):
        last = index + 1 == len(results) or results[index + 1].row.problem != each.row.problem
        table.add_row(
            each.row.problem,
            each.row.algorithm,
            each.row.held,
            f"{each.run.tasks:,}",
            *plus_minus([Estimate(each.run.mean_reward, each.run.std_error)]),
            each.row.known.text if each.row.known else "–",
            {True: "[green]yes[/]", False: "[bold red]NO[/]", None: "–"}[each.agrees],
            end_section=last,
        )
    return table
