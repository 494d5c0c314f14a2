"""``priorwise certify``: what deciding with a learned prior may lose."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args

import typer

from priorwise.cli import inputs
from priorwise.cli.inputs import argument, number, word
from priorwise.cli.output import (
    end,
    fail,
    finish,
    finite,
    keep_fit,
    refuse,
    refusing,
    results_directory,
)
from priorwise.cli.reading import Reading, print_notes, reads_log
from priorwise.logs.options import Arms

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
ARMS: Final = (
    "New arms in a task to come; of a log also whether tasks share their arms, or have new ones."
)
USUAL: Final = "as in the log"


@reads_log()
def certify(
    source: Annotated[str, argument(SOURCE, "FIT")],
    *,
    policies: Annotated[
        list[str], word("One policy, such as ts or sum:8.", "WORD", "--policy", "-p")
    ],
    horizon: inputs.Horizon,
    seed: inputs.Seed,
    arms: Annotated[str | None, word(ARMS, "N|same|new", shown=USUAL)] = None,
    features: inputs.Features = None,
    draws: Annotated[
        int | None,
        number("Plausible truths, at least 20.", inputs.at_least_one, "100, or 30 if slow"),
    ] = None,
    tasks: Annotated[
        int | None,
        number("Tasks simulated under each truth.", inputs.at_least_one, "about a minute's"),
    ] = None,
    bootstrap: Annotated[
        int | None,
        number("Plausible truths by refitting resampled tasks of a log; 0 for none.", None, "half"),
    ] = None,
    batch: inputs.Batch = 1,
    reading: Reading,
    out: inputs.Out = None,
    as_json: inputs.AsJson = False,
    quiet: inputs.Quiet = False,
) -> None:
    """Read, fit if need be, certify, write."""
    from priorwise.advise.certifying import certify as certified
    from priorwise.core.progress import Interrupted

    directory = results_directory("certificate", out, as_json)
    shown = False if quiet else None
    read = None  # the fit of a log
    if len(policies) > 1:
        several = " and ".join(policies)
        fail("--policy", f"one policy at a time, got {several}; run the command once for each")
    policy = inputs.read_policy(policies[0])
    inputs.check_batch(batch, horizon)
    are, count = _arms(arms)
    if source == "-" or Path(source).suffix.lower() == ".json":
        given = [*reading.given, *(["--arms"] if are != "auto" else [])]
        if given:
            what = "is" if len(given) == 1 else "are"
            only = f"{what} only for a log, and FIT is a saved fit; leave it out"
            refuse(f"{', '.join(given)} {only}")
        fit = inputs.with_features("FIT", inputs.read_fit("FIT", source), features)
        prior = inputs.with_arms("FIT", fit.prior, count)
        if count is not None and prior is fit.prior:
            own = "the learned prior has its own number of arms"
            fail("--arms", f"only for exchangeable priors, and {own}; leave --arms out")
        inputs.check_size(prior, [policy], horizon, tasks or 1)
    else:
        fit = read = _fitted(
            source, seed, reading.options | {"arms": are if count is None else "new"}, shown
        )
        fit = inputs.with_features("FIT", fit, features)
    size: Any = {"draws": draws, "tasks": tasks, "bootstrap": bootstrap, "arms": count}
    size |= {"batch": batch, "progress": shown}
    try:
        with refusing():
            found = certified(fit, policy, horizon=horizon, seed=seed, **size)
    except Interrupted as stop:
        found = stop.partial
    except KeyboardInterrupt:
        keep_fit(directory, read)
    numbers = {name: finite(each) for name, each in found.summary().items()}
    text = json.dumps({**numbers, "policy": policies[0]}, indent=2, allow_nan=False)

    def show(console: "Console") -> None:
        print_notes(console, read)
        console.print(str(found), markup=False, soft_wrap=True)

    picture = found.figure() if directory else {}
    printed = None if as_json or quiet else show
    finish("certificate", directory, picture, text, printed, found.interrupted)
    if as_json:
        typer.echo(text)
    end(found.interrupted)


def _arms(text: str | None) -> tuple[Arms, int | None]:
    """Whether tasks of a log share their arms, and how many new ones a task to come has."""
    for are in get_args(Arms):
        if text == are:
            return are, None
    if text is None:
        return "auto", None
    try:
        count = int(text)
    except ValueError:
        fail("--arms", f"must be a number, same or new, got {text!r}")
    if count < 1:
        fail("--arms", f"must be at least 1, got {count}")
    return "auto", count


def _fitted(log: str, seed: int, options: dict[str, Any], shown: bool | None) -> Any:
    """Learn the prior of a log."""
    from priorwise.advise.backtesting import LEARNING
    from priorwise.core.progress import progress_of
    from priorwise.logs.fitting import fit_prior

    with refusing(), progress_of(1, LEARNING, shown=shown, parallel=None):
        return fit_prior(log, seed=seed, **options)
