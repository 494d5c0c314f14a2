"""``priorwise bound``: how much a policy may lose by believing one prior where another is true."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from priorwise.cli import inputs
from priorwise.cli.inputs import argument, histories_range, number, word
from priorwise.cli.output import counted, data, fail, finish, finite, refusing, results_directory

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from priorwise.sensitivity import Bound, Ladder

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
[cyan]certified bound[/]        theorem with exact or certified numbers only; "estimated" or
                       "approximate" if the policy's posterior is approximate
[cyan]  step by step[/]         the same, about half: a pull depends on those before it only
[cyan]worst case[/]             2 n H times the total variation between the priors
[cyan]approximate posteriors[/] what they add to the worst case
[cyan]posteriors[/]             n times that between the posteriors, summed over pulls
[cyan]actions[/]                that between the laws of the actions, summed over pulls
[cyan]coupled trajectories[/]   how often trajectories diverge at best, pull by pull
[cyan]trajectories[/]           their total variation; only for small problems
[cyan]likelihood ratio[/]       how far one policy's probabilities fall below the other's
[cyan]common random numbers[/]  how often two simulations diverge; not of the chain
[cyan]any two policies[/]       what holds whatever the priors
[cyan]at worst, at best[/]      between these the gap lies, by likelihood ratios; signed
[cyan]measured gap[/]           what the wrong prior earns more or less; signed
"""


def bound(
    prior: inputs.PriorFile,
    believed: Annotated[
        str, argument("Prior file, or saved fit, that the policy believes instead.", "BELIEVED")
    ],
    policies: Annotated[
        list[str], word("One policy, such as ts or sum:8.", "WORD", "--policy", "-p")
    ],
    horizon: inputs.Horizon,
    seed: inputs.Seed,
    tasks: Annotated[
        int, number("Tasks simulated for the measured gap.", inputs.at_least_one, True)
    ] = 200_000,
    histories: Annotated[
        int | None,
        number("Histories walked along for the rungs between.", histories_range, "up to 1000"),
    ] = None,
    arms: inputs.Arms = None,
    features: inputs.Features = None,
    out: inputs.Out = None,
    as_json: inputs.AsJson = False,
    quiet: inputs.Quiet = False,
) -> None:
    """Read, check, compute, write."""
    from priorwise.sensitivity.bounds.bandits import reward_bound
    from priorwise.sensitivity.bounds.pomdp import pomdp_reward_bound, reward_limits
    from priorwise.sensitivity.ladder.ladder import sensitivity_ladder
    from priorwise.theory.influence import has_state

    directory = results_directory("bound", out, as_json)
    if len(policies) > 1:
        several = " and ".join(policies)
        fail("--policy", f"one policy at a time, got {several}; run the command once for each")
    policy = policies[0]
    truth, wrong = inputs.read_priors(prior, believed, arms, "BELIEVED", features)
    rule = inputs.read_policy(policy)
    inputs.check_size(truth, [rule, rule], horizon, tasks)
    if histories == 1:
        two = "must be at least 2, to have a standard error"
        fail("--histories", f"{two}; leave it out for the default")
    with refusing():
        shown = False if quiet else None
        sizes: Any = {"tasks": tasks, "histories": histories, "progress": shown}
        ladder = sensitivity_ladder(truth, wrong, rule, horizon, seed=seed, **sizes)
    bounds: tuple[Bound, ...] = ()
    term = ladder.approximation
    given: Any = {"approximation": None if term is None or not term.reliable else term.total}
    if ladder.n is not None and not has_state(truth):
        bounds = tuple(
            reward_bound(truth, wrong, rule, horizon, sharp=sharp, **given)
            for sharp in (False, True)
        )
    elif ladder.n is not None and reward_limits(truth) is not None:
        bounds = tuple(
            pomdp_reward_bound((truth, wrong), rule, horizon, sharp=sharp, **given)
            for sharp in (False, True)
        )
    text = json.dumps(_numbers(ladder, bounds, policy), indent=2, allow_nan=False)
    title = f"How far a wrong prior can move {policy} in {counted(horizon, 'pull')}"
    picture = ladder.figure(title) if directory else {}
    show = None if as_json or quiet else partial(_show, ladder, bounds, policy)
    finish("bound", directory, picture, text, show)
    if as_json:
        typer.echo(text)


def _show(ladder: Ladder, bounds: tuple[Bound, ...], word: str, console: Console) -> None:
    console.print(ladder.summary, highlight=False)
    console.print(_table(ladder, bounds, word))
    console.print(f"Total variation between the priors: {ladder.tv}.")
    for reason in ladder.left_out:
        console.print(f"Left out: {reason}.", style="yellow", markup=False)
    for each in ladder.disorders:
        told = f"Out of order: {each}; with more --tasks and --histories this should go away."
        console.print(told, style="red", markup=False)


def _table(ladder: Ladder, bounds: tuple[Bound, ...], word: str) -> Table:
    from rich.markup import escape
    from rich.table import Table

    how = "exact" if ladder.exact else "± standard error"
    title = f"{word}, {counted(ladder.horizon, 'pull')} ({how})"
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("rung")
    table.add_column("trajectories diverge", justify="right")
    table.add_column("reward at most", justify="right")
    table.add_column("how", style="dim")
    for name, bound in zip(_names(bounds), bounds, strict=True):
        reward = _value(bound.value, bound.std_error)
        style = "dim" if bound.vacuous else None
        table.add_row(name, _value(bound.delta), reward, escape(bound.assumption), style=style)
    for rung in ladder.rungs:
        numbers = _value(rung.delta, rung.std_error), _value(rung.reward, rung.reward_std_error)
        style = None if rung.name in ladder.informative else "dim"
        table.add_row(rung.name, *numbers, escape(rung.how), style=style)
    table.add_section()
    table.add_row("any two policies", "", _value(ladder.trivial), escape(ladder.any_two))
    for name, end, words in ladder.ends:
        table.add_row(name, "", _value(end.mean, end.std_error, sign="+"), words)
    gap = ladder.gap
    said = "wrong prior earns more" if gap.mean > 0 else "wrong prior earns less"
    if not ladder.exact and abs(gap.mean) <= 2.0 * gap.std_error:
        said = "no difference seen"
    table.add_row("measured gap", "", _value(gap.mean, gap.std_error, sign="+"), said)
    return table


def _names(bounds: tuple[Bound, ...]) -> tuple[str, ...]:
    """Names of the bound and of the one by steps."""
    words = {"certified": "certified", "estimate": "estimated", "approximate": "approximate"}
    return (f"{words[bounds[0].kind]} bound", "  step by step") if bounds else ()


def _value(value: float, std_error: float = 0.0, sign: str = "") -> str:
    return f"{value:{sign}.4g}" + (f" ± {std_error:.1g}" if std_error > 0.0 else "")


def _numbers(ladder: Ladder, bounds: tuple[Bound, ...], word: str) -> dict[str, Any]:
    rung = ("name", "delta", "std_error", "reward", "reward_std_error", "how")
    proved: list[Any] = [
        {"delta": bound.delta, "reward": finite(bound.value)}
        | data(bound, "kind", "std_error", "vacuous", "assumption")
        for bound in bounds
    ]
    ends = ladder.interval
    interval = None
    if ends is not None:
        interval = {
            "low": data(ends.low, "mean", "std_error"),
            "high": data(ends.high, "mean", "std_error"),
            "off": finite(ends.off),
        }
    return {
        "policy": word,
        "horizon": ladder.horizon,
        "exact": ladder.exact,
        "total_variation": data(ladder.tv, "value", "kind", "std_error", "upper"),
        "bound": proved[0] if proved else None,
        "sharp_bound": proved[1] if proved else None,
        "rungs": [data(each, *rung) for each in ladder.rungs],
        "any_two_policies": ladder.trivial,
        "interval": interval,
        "gap": data(ladder.gap, "mean", "std_error"),
        "reward": data(ladder.reward, "mean", "std_error"),
        "in_order": ladder.in_order,
        "left_out": list(ladder.left_out),
    }
