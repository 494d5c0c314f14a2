"""``priorwise bound``: how much a policy may lose by believing one prior where another is true."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

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
    check_size,
    histories_range,
    read_policy,
    read_priors,
)
from priorwise.cli.output import (
    counted,
    fail,
    output,
    results_directory,
    say_written,
    write_results,
)

if TYPE_CHECKING:
    from rich.table import Table

    from priorwise.sensitivity import Bound, Ladder, Rung

HELP: Final = """How much may a policy lose by believing one prior where another is true?

Prints the sensitivity ladder, from the worst case over all problems down to the measured \
difference, and draws it. Each rung of the chain bounds the next, and all of them the gap; grey \
ones say no more, or hardly more, than what holds for any two policies.

\b
[bold]Examples[/]
priorwise example gaussian > prior.json
priorwise example gaussian --misspecified > wrong.json
[dim]# Thompson sampling in 10 pulls, believing the wrong prior[/]
priorwise bound prior.json wrong.json -p ts --horizon 10 --seed 0
[dim]# the same for a rule that sums 8 draws; numbers for another program[/]
priorwise bound prior.json wrong.json -p sum:8 --horizon 10 --seed 0 --json

\b
[bold]The rungs[/]
[cyan]certified bound[/]        theorem with exact or certified numbers only
[cyan]worst case[/]             2 n H times the total variation between the priors
[cyan]posteriors[/]             n times that between the posteriors, summed over pulls
[cyan]actions[/]                that between the laws of the actions, summed over pulls
[cyan]coupled trajectories[/]   how often trajectories diverge at best, pull by pull
[cyan]trajectories[/]           their total variation; only for small problems
[cyan]common random numbers[/]  how often two simulations diverge; not of the chain
[cyan]any two policies[/]       what holds whatever the priors
[cyan]measured gap[/]           what the wrong prior earns more or less; signed
"""


def bound(
    prior: PriorFile,
    believed: Annotated[
        str,
        typer.Argument(
            metavar="BELIEVED",
            help="Prior file, or saved fit, that the policy believes instead.",
            show_default=False,
        ),
    ],
    policies: Annotated[
        list[str],
        typer.Option(
            "--policy",
            "-p",
            metavar="WORD",
            help="One policy, such as ts or sum:8.",
            show_default=False,
        ),
    ],
    horizon: Horizon,
    seed: Seed,
    tasks: Annotated[
        int,
        typer.Option(
            metavar="N", callback=at_least_one, help="Tasks simulated for the measured gap."
        ),
    ] = 200_000,
    histories: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            callback=histories_range,
            help="Histories walked along for the rungs between.",
            show_default="up to 1000",
        ),
    ] = None,
    arms: Arms = None,
    out: Out = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Read, check, compute, write."""
    from priorwise.sensitivity.bounds.bandits import reward_bound
    from priorwise.sensitivity.ladder.ladder import sensitivity_ladder

    directory = results_directory("bound", out, as_json)
    if len(policies) > 1:
        fail(
            "--policy",
            f"one policy at a time, got {' and '.join(policies)}; run the command once for each",
        )
    policy = policies[0]
    truth, wrong = read_priors(prior, believed, arms, option="BELIEVED")
    rule = read_policy(policy)
    check_size(truth, [rule, rule], horizon, tasks)
    if histories == 1:
        fail(
            "--histories",
            "must be at least 2, to have a standard error; leave it out for the default",
        )
    try:
        ladder = sensitivity_ladder(
            truth,
            wrong,
            rule,
            horizon,
            seed=seed,
            tasks=tasks,
            histories=histories,
            progress=False if quiet else None,
        )
    except (ArithmeticError, TypeError, ValueError) as error:
        fail("BELIEVED", error)
    certified = reward_bound(truth, wrong, rule, horizon) if ladder.certified else None
    text = json.dumps(_numbers(ladder, certified, policy), indent=2, allow_nan=False)
    title = f"How far a wrong prior can move {policy} in {counted(horizon, 'pull')}"
    files = write_results("bound", directory, ladder.figure(title) if directory else {}, text)
    if as_json:
        typer.echo(text)
    elif not quiet:
        _show(ladder, certified, policy, files)


def _show(ladder: Ladder, certified: Bound | None, word: str, files: Sequence[Path]) -> None:
    console = output()
    console.print(ladder.summary, highlight=False)
    console.print(_table(ladder, certified, word))
    console.print(f"Total variation between the priors: {ladder.tv}.")
    for reason in ladder.left_out:
        console.print(f"[yellow]Left out: {reason}.[/]")
    for each in ladder.disorders:
        console.print(
            f"[red]Out of order: {each}; with more --tasks and --histories this should go away.[/]"
        )
    say_written(console, files)


def _table(ladder: Ladder, certified: Bound | None, word: str) -> Table:
    from rich.table import Table

    how = "exact" if ladder.exact else "± standard error"
    table = Table(
        title=f"{word}, {counted(ladder.horizon, 'pull')} ({how})",
        title_justify="left",
        title_style="bold",
    )
    table.add_column("rung")
    table.add_column("trajectories diverge", justify="right")
    table.add_column("reward at most", justify="right")
    table.add_column("how", style="dim")
    if certified is not None:
        style = "dim" if certified.vacuous else None
        table.add_row(
            "certified bound",
            _value(certified.delta, 0.0),
            _value(certified.value, 0.0),
            certified.assumption,
            style=style,
        )
    for rung in ladder.rungs:
        style = None if rung.name in ladder.informative else "dim"
        table.add_row(
            rung.name,
            _value(rung.delta, rung.std_error),
            _value(rung.reward, rung.reward_std_error),
            rung.how,
            style=style,
        )
    table.add_section()
    table.add_row("any two policies", "", _value(ladder.trivial, 0.0), "H times the mean diameter")
    sign = "wrong prior earns more" if ladder.gap.mean > 0 else "wrong prior earns less"
    seen = ladder.exact or abs(ladder.gap.mean) > 2.0 * ladder.gap.std_error
    table.add_row(
        "measured gap",
        "",
        _value(ladder.gap.mean, ladder.gap.std_error, signed=True),
        sign if seen else "no difference seen",
    )
    return table


def _value(value: float, std_error: float, *, signed: bool = False) -> str:
    number = f"{value:+.4g}" if signed else f"{value:.4g}"
    return f"{number} ± {std_error:.1g}" if std_error > 0.0 else number


def _numbers(ladder: Ladder, certified: Bound | None, word: str) -> dict[str, Any]:
    return {
        "policy": word,
        "horizon": ladder.horizon,
        "exact": ladder.exact,
        "total_variation": {
            "value": ladder.tv.value,
            "kind": ladder.tv.kind,
            "std_error": ladder.tv.std_error,
            "upper": ladder.tv.upper,
        },
        "certified": None
        if certified is None
        else {
            "delta": certified.delta,
            "reward": _finite(certified.value),
            "vacuous": certified.vacuous,
            "assumption": certified.assumption,
        },
        "rungs": [_rung(rung) for rung in ladder.rungs],
        "any_two_policies": ladder.trivial,
        "gap": {"mean": ladder.gap.mean, "std_error": _finite(ladder.gap.std_error)},
        "reward": {"mean": ladder.reward.mean, "std_error": _finite(ladder.reward.std_error)},
        "in_order": ladder.in_order,
        "left_out": list(ladder.left_out),
    }


def _rung(rung: Rung) -> dict[str, Any]:
    return {
        "name": rung.name,
        "delta": _finite(rung.delta),
        "std_error": _finite(rung.std_error),
        "reward": _finite(rung.reward),
        "reward_std_error": _finite(rung.reward_std_error),
        "how": rung.how,
    }


def _finite(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None
