"""``priorwise refit``: a new prior from the tasks that a service has closed."""

import json
from typing import Annotated, Final

import typer

from priorwise.cli.inputs import AsJson, Seed, read_policy
from priorwise.cli.output import fail, refusing

HELP: Final = """Learn the prior again from the closed tasks of a store, and propose it.

The store is the file or the database of ``priorwise serve`` or ``pw.Decider``, which may \
go on running. The proposal is kept in it, with what it was fitted on and a backtest against \
the prior in use. New tasks start with it once it is accepted; running ones keep theirs.

\b
[bold]Examples[/]
priorwise refit decisions.db --policy ts --horizon 200 --seed 0
priorwise refit decisions.db --policy ts --horizon 200 --accept better --seed 0
priorwise refit postgresql://host/db --policy ts --horizon 200 --family beta --seed 0
"""


def refit(
    store: Annotated[str, typer.Argument(help="File or URL of the store.", metavar="STORE")],
    *,
    policy: Annotated[str, typer.Option("--policy", "-p", help="The policy that decides.")],
    horizon: Annotated[int, typer.Option(help="Pulls of a task.")],
    seed: Seed,
    family: Annotated[str, typer.Option(help="As in priorwise fit.")] = "auto",
    accept: Annotated[
        str, typer.Option(help="ask, better (by its backtest, two standard errors) or always.")
    ] = "ask",
    as_json: AsJson = False,
) -> None:
    """Open the store, fit, backtest, propose."""
    from pathlib import Path

    from priorwise.serve.decider import Decider
    from priorwise.serve.errors import Refused, Unavailable

    rule = read_policy(policy)
    if "://" not in store and not Path(store).is_file():
        fail("STORE", f"{store} is not a file")
    with (
        refusing("STORE", Refused, Unavailable),
        Decider(None, rule, horizon=horizon, seed=seed, store=store) as decider,
    ):
        made = decider.refit(family, seed=seed, accept=accept)  # type: ignore[arg-type]
        story = decider.versions()[made.version - 1].story
    if as_json:
        typer.echo(json.dumps({"version": made.version, "accepted": made.accepted, **story}))
    else:
        typer.echo(str(made))
