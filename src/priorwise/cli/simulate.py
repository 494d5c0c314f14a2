"""``priorwise simulate``: what policies earn on tasks drawn from a prior, and what a wrong prior costs them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from priorwise.cli.errors import fail
from priorwise.cli.files import check_directory, write_all
from priorwise.cli.inputs import entries, name_of, read_priors
from priorwise.cli.policies import WORDS

DEFAULT_OUT: Final = Path("out")

_WORDS: Final = "\n".join(f"[cyan]{word.usage:<17}[/] {word.meaning}".replace("[:", "\\[:") for word in WORDS.values())

HELP: Final = f"""Simulate policies on tasks drawn from a prior, on the same tasks with the same noise.

Prints what each earns, with standard errors and paired differences, and writes the learning curves.

\b
[bold]Examples[/]
[dim]# a prior file to start from (edit it, or see priorwise example --help)[/]
priorwise example gaussian > prior.json
[dim]# which policy earns most in 10 pulls?[/]
priorwise simulate prior.json --policy ts --policy sum:8 --policy greedy --horizon 10 --tasks 100000 --seed 0
[dim]# what does it cost to hold a wrong prior?[/]
priorwise example gaussian --misspecified > wrong.json
priorwise simulate prior.json --policy ts --policy sum:8 --believed wrong.json --horizon 10 --seed 0
[dim]# arms that are new in every task; numbers for another program[/]
priorwise example exchangeable-beta | priorwise simulate - --arms 4 --policy ts --horizon 50 --seed 0 --json

\b
[bold]Policies[/]
{_WORDS}

\b
[bold]The table[/]
minus the best   paired difference: same tasks, same noise, so its standard error is small
n                Monte-Carlo constant: how many posterior draws a choice sees; none for baselines
ns per pull      timed apart, on one thread; engine numpy is slower than compiled
"""


def simulate(
    prior: Annotated[
        str, typer.Argument(metavar="PRIOR", help="Prior file the tasks are drawn from; - reads standard input.", show_default=False)
    ],
    policy: Annotated[
        list[str],
        typer.Option("--policy", "-p", metavar="WORD", help="A policy, such as ts or sum:8; repeat it to compare.", show_default=False),
    ],
    horizon: Annotated[int, typer.Option(min=1, help="Pulls in a task, such as 10.", show_default=False)],
    seed: Annotated[
        int,
        typer.Option(
            min=0, max=2**64 - 1, help="Any integer, such as --seed 0; the same seed gives the same numbers.", show_default=False
        ),
    ],
    tasks: Annotated[int, typer.Option(min=1, help="Number of tasks; four times as many halve the standard errors.")] = 100_000,
    believed: Annotated[
        str | None,
        typer.Option(metavar="PRIOR", help="Prior file the policies hold instead; the true one is run too.", show_default=False),
    ] = None,
    arms: Annotated[int | None, typer.Option(min=1, help="Number of arms, for exchangeable priors.", show_default=False)] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Directory for simulate.png, .svg and .json.", show_default="out; no files with --json"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON instead of the table.")] = False,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads of the compiled loop.", show_default="all processors")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no table.")] = False,
) -> None:
    """Read, check, simulate, write."""
    directory = out if out or as_json else DEFAULT_OUT
    if directory is not None:
        check_directory("--out", directory)
    truth, held = read_priors(prior, believed, arms)
    chosen = entries(policy, truth, held, name_of(believed or ""))

    from priorwise.cli import report
    from priorwise.simulate.run import compare

    result = compare(
        truth,
        {entry.name: (entry.policy, entry.held) for entry in chosen},
        horizon=horizon,
        tasks=tasks,
        seed=seed,
        threads=threads,
        progress=not quiet and sys.stderr.isatty(),
    )
    lines = report.lines(truth, chosen, result)
    text = report.as_json(truth, held, lines)
    files: list[Path] = []
    if directory is not None:
        contents = {f"simulate.{suffix}": content for suffix, content in report.as_figure(lines).items()}
        try:
            files = write_all(directory, {**contents, "simulate.json": f"{text}\n".encode()})
        except OSError as error:
            fail("--out", f"{error}; choose another directory")
    if as_json:
        typer.echo(text)
    elif not quiet:
        _show(lines, files)


def _show(lines: Sequence[object], files: Sequence[Path]) -> None:
    from priorwise.cli import report
    from priorwise.cli.output import output

    console = output()
    shown = [line for line in lines if isinstance(line, report.Line)]
    console.print(report.as_table(shown))
    for line in shown:
        if line.run.resets:
            console.print(
                f"[yellow]{line.entry.name}: {line.run.resets:,} tasks met rewards that the prior it holds deems impossible; "
                "its belief started again there.[/]"
            )
    console.print("Wrote " + ", ".join(str(path) for path in files), soft_wrap=True, highlight=False)
