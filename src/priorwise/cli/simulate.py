"""``priorwise simulate``: what policies earn on tasks drawn from a prior, and what a wrong prior
costs them.
"""

from __future__ import annotations

from typing import Annotated, Final

import typer

from priorwise.cli.inputs import (
    Arms,
    AsJson,
    Horizon,
    Out,
    PriorFile,
    Quiet,
    Seed,
    at_least_one,
    entries,
    few,
    name_of,
    read_priors,
)
from priorwise.cli.output import fail, output, results_directory, say_written, write_results
from priorwise.cli.policies import WORDS

_WORDS: Final = "\n".join(
    f"[cyan]{word.usage:<17}[/] {word.meaning}".replace("[:", "\\[:") for word in WORDS.values()
)

HELP: Final = f"""\
Simulate policies on tasks drawn from a prior, on the same tasks with the same noise.

Prints what each earns, with standard errors and paired differences, and writes the learning curves.

\b
[bold]Examples[/]
[dim]# a prior file to start from; see priorwise example --help[/]
priorwise example gaussian > prior.json
[dim]# which policy earns most in 10 pulls?[/]
priorwise simulate prior.json -p ts -p sum:8 -p greedy --horizon 10 --seed 0
[dim]# what does it cost to believe a wrong prior?[/]
priorwise example gaussian --misspecified > wrong.json
priorwise simulate prior.json --believed wrong.json \\
    -p ts -p sum:8 --horizon 10 --seed 0
[dim]# arms that are new in every task; numbers for another program[/]
priorwise example exchangeable-beta | priorwise simulate - --arms 4 \\
    -p ts --horizon 50 --seed 0 --json

\b
[bold]Policies[/]
{_WORDS}
[dim]Settings may be named: kg:10,10,ties=random,when_certain=best[/]

\b
[bold]The table[/]
[cyan]minus the best[/]  paired: same tasks and noise, hence the small standard error
[cyan]n[/]               Monte-Carlo constant, for bounds; – where none is proved
[cyan]ns per pull[/]     timed in a short run of its own, on one thread
"""


def simulate(
    prior: PriorFile,
    policy: Annotated[
        list[str],
        typer.Option(
            "--policy",
            "-p",
            metavar="WORD",
            help="A policy, such as ts or sum:8; repeat it to compare.",
            show_default=False,
        ),
    ],
    horizon: Horizon,
    seed: Seed,
    tasks: Annotated[
        int,
        typer.Option(
            metavar="N",
            callback=at_least_one,
            help="Number of tasks; four times as many halve the standard errors.",
        ),
    ] = 100_000,
    believed: Annotated[
        str | None,
        typer.Option(
            metavar="PRIOR",
            help="Prior file, or saved fit, to believe instead; the true one is run too.",
            show_default=False,
        ),
    ] = None,
    arms: Arms = None,
    out: Out = None,
    as_json: AsJson = False,
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            callback=few,
            help="Threads of the compiled loop.",
            show_default="all processors",
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Read, check, simulate, write."""
    from priorwise.cli import report
    from priorwise.simulate.run import compare

    directory = results_directory("simulate", out, as_json)
    truth, wrong = read_priors(prior, believed, arms)
    chosen = entries(policy, truth, wrong, name_of(believed or ""), horizon=horizon, tasks=tasks)
    try:
        result = compare(
            truth,
            {entry.name: (entry.policy, entry.believed) for entry in chosen},
            horizon=horizon,
            tasks=tasks,
            seed=seed,
            threads=threads,
            progress=False if quiet else None,
        )
    except (TypeError, ValueError) as error:
        fail("--horizon, --tasks", error)
    lines = report.lines(truth, chosen, result)
    text = report.as_json(truth, wrong, lines)
    picture = report.as_figure(lines) if directory else {}
    files = write_results("simulate", directory, picture, text)
    if as_json:
        typer.echo(text)
    elif not quiet:
        console = output()
        for table in report.as_tables(lines, console.width):
            console.print(table)
        for line in lines:
            if line.run.resets:
                console.print(
                    f"[yellow]{line.entry.name}: in {line.run.resets:,} tasks it saw rewards that "
                    "are impossible under the prior it believes; its belief started again there.[/]"
                )
        say_written(console, files)
