"""``priorwise certify``: what deciding with a learned prior may lose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from priorwise.cli import columns, inputs
from priorwise.cli.inputs import argument, number, word
from priorwise.cli.output import fail, finish, finite, results_directory

if TYPE_CHECKING:
    from rich.console import Console

HELP: Final = """What may a policy lose because its prior is learned, and not the truth?

Takes what priorwise fit writes (out/prior.json), or the log itself, with the same options for its \
columns; a log also allows the bootstrap. Under many truths that the log leaves plausible, the \
policy plays the same tasks with the truth and with the learned prior. Prints what is lost on \
average and with 95 % confidence, beside the theorem's bound, a vague prior, and the error of the \
reward that the prior promises; and how many more tasks would halve the loss.

\b
[bold]Examples[/]
priorwise example headlines > log.csv
priorwise fit log.csv --seed 0
priorwise certify out/prior.json --arms 4 -p ts --horizon 50 \\
    --draws 40 --tasks 500 --seed 0
[dim]# with a bootstrap over tasks, from the log itself[/]
priorwise certify log.csv --family beta:exchangeable --arms 4 \\
    -p ts --horizon 50 --seed 0
"""

SOURCE: Final = "Saved fit, as priorwise fit writes it (.json), or log to fit."


def certify(
    source: Annotated[str, argument(SOURCE, "FIT")],
    policies: Annotated[
        list[str], word("One policy, such as ts or sum:8.", "WORD", "--policy", "-p")
    ],
    horizon: inputs.Horizon,
    seed: inputs.Seed,
    arms: inputs.Arms = None,
    draws: Annotated[
        int, number("Plausible truths, at least 20.", inputs.at_least_one, True)
    ] = 100,
    tasks: Annotated[
        int, number("Tasks simulated under each truth.", inputs.at_least_one, True)
    ] = 4_000,
    bootstrap: Annotated[
        int | None,
        number("Plausible truths by refitting resampled tasks of a log; 0 for none.", None, "half"),
    ] = None,
    batch: Annotated[
        int, number("Rewards are seen after every so many pulls.", inputs.at_least_one, True)
    ] = 1,
    family: columns.FamilyName = "auto",
    task: columns.Task = None,
    action: columns.Action = None,
    reward: columns.Reward = None,
    pulls: columns.Pulls = None,
    squares: columns.Squares = None,
    noise_var: columns.NoiseVar = None,
    drop_missing: columns.DropMissing = False,
    out: inputs.Out = None,
    as_json: inputs.AsJson = False,
    quiet: inputs.Quiet = False,
) -> None:
    """Read, fit if need be, certify, write."""
    from priorwise.advise.certifying import certify as certified

    directory = results_directory("certificate", out, as_json)
    if len(policies) > 1:
        several = " and ".join(policies)
        fail("--policy", f"one policy at a time, got {several}; run the command once for each")
    policy = inputs.read_policy(policies[0])
    read: Any = {"task": task, "action": action, "reward": reward, "pulls": pulls}
    read |= {"squares": squares, "noise_var": noise_var}
    read |= {"missing": "drop" if drop_missing else "refuse"}
    if source == "-" or Path(source).suffix.lower() == ".json":
        given = [name for name, each in read.items() if each not in (None, "refuse")]
        if given or family != "auto":
            what = ", ".join(f"--{name}".replace("_", "-") for name in given or ["family"])
            fail(what, "only for a log, and FIT is a saved fit; leave it out")
        fit = inputs.read_fit("FIT", source)
    else:
        fit = _fitted(source, family, seed, read)
    prior = inputs.with_arms("FIT", fit.prior, arms)
    if arms is not None and prior is fit.prior:
        own = "the learned prior has its own number of arms"
        fail("--arms", f"only for exchangeable priors, and {own}; leave --arms out")
    inputs.check_size(prior, [policy], horizon, tasks)
    try:
        size: Any = {"draws": draws, "tasks": tasks, "bootstrap": bootstrap, "arms": arms}
        size |= {"batch": batch, "progress": False if quiet else None}
        found = certified(fit, policy, horizon=horizon, seed=seed, **size)
    except (ArithmeticError, TypeError, ValueError) as error:
        fail("FIT, --policy, --draws, --tasks, --batch", error)
    numbers = {name: finite(each) for name, each in found.summary().items()}
    text = json.dumps({**numbers, "policy": policies[0]}, indent=2, allow_nan=False)

    def show(console: Console) -> None:
        console.print(str(found), markup=False, soft_wrap=True)

    picture = found.figure() if directory else {}
    finish("certificate", directory, picture, text, None if as_json or quiet else show)
    if as_json:
        typer.echo(text)


def _fitted(log: str, family: str, seed: int, read: dict[str, Any]) -> Any:
    """Learn the prior of a log."""
    from priorwise.logs.fitting import fit_prior

    try:
        return fit_prior(log, family, seed=seed, **read)
    except (ModuleNotFoundError, OSError, TypeError, ValueError) as error:
        fail("FIT", error)
