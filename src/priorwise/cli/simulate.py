"""``priorwise simulate``: what policies earn on tasks drawn from a prior, and what a wrong prior
costs them.
"""

from functools import partial
from typing import Annotated, Any, Final

import typer

from priorwise.cli import inputs
from priorwise.cli.inputs import number, word
from priorwise.cli.output import finish, refusing, results_directory
from priorwise.cli.policies import WORDS

TASKS: Final = "Number of tasks; four times as many halve the standard errors."

_WORDS: Final = "\n".join(
    f"[cyan]{each.usage:<17}[/] {each.meaning}".replace("[:", "\\[:") for each in WORDS.values()
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
[dim]# rewards come in after every 50 impressions[/]
priorwise simulate prior.json -p ts -p greedy --horizon 1000 --batch 50 --seed 0
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
    prior: inputs.PriorFile,
    policy: Annotated[
        list[str],
        word("A policy, such as ts or sum:8; repeat it to compare.", "WORD", "--policy", "-p"),
    ],
    horizon: inputs.Horizon,
    seed: inputs.Seed,
    tasks: Annotated[int, number(TASKS, inputs.at_least_one, True)] = 100_000,
    believed: Annotated[
        str | None,
        word("Prior file, or saved fit, to believe instead; the true one is run too.", "PRIOR"),
    ] = None,
    arms: inputs.Arms = None,
    features: inputs.Features = None,
    batch: inputs.Batch = 1,
    out: inputs.Out = None,
    as_json: inputs.AsJson = False,
    threads: Annotated[
        int | None, number("Threads of the compiled loop.", inputs.few, "all processors")
    ] = None,
    quiet: inputs.Quiet = False,
) -> None:
    """Read, check, simulate, write."""
    from priorwise.cli import report
    from priorwise.simulate.run import compare

    directory = results_directory("simulate", out, as_json)
    truth, wrong = inputs.read_priors(prior, believed, arms, features=features)
    priors = {"true": truth} | ({} if wrong is None else {inputs.name_of(believed or ""): wrong})
    size: Any = {"horizon": horizon, "tasks": tasks}
    chosen = inputs.entries(policy, priors, **size)
    players = {entry.name: (entry.policy, entry.believed) for entry in chosen}
    size |= {"batch": batch, "threads": threads, "progress": False if quiet else None}
    inputs.check_batch(batch, horizon)
    with refusing():
        result = compare(truth, players, seed=seed, **size)
    lines = report.lines(truth, chosen, result, batch)
    text = report.as_json(truth, wrong, lines, batch)
    picture = report.as_figure(lines) if directory else {}
    show = None if as_json or quiet else partial(report.show, lines)
    finish("simulate", directory, picture, text, show)
    if as_json:
        typer.echo(text)
