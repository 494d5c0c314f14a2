"""``priorwise keys``: who may ask a service."""

from typing import Annotated, Any, Final

import typer

from priorwise.cli.inputs import argument, number, word
from priorwise.cli.output import Command, fail, output, refusing

HELP: Final = """\
Keys to a service: add, list and revoke them.

A key is printed once, when it is made; the store keeps a hash of it. A running service knows of \
new and revoked keys within seconds.

\b
[bold]Examples[/]
priorwise keys add decisions.db --name web --scopes decide,reward
priorwise keys list decisions.db
priorwise keys revoke decisions.db web

\b
[bold]Scopes[/]
[cyan]decide[/]  decide, allocate, close tasks
[cyan]reward[/]  send rewards
[cyan]read[/]    tasks, priors, the log, metrics
[cyan]admin[/]   everything: accept priors, delete units
"""

STORE: Final = "The service's store: an SQLite file, or a URL that starts with postgresql://."

app = typer.Typer(help=HELP, no_args_is_help=True, rich_markup_mode="rich")

Store = Annotated[str, argument(STORE, "STORE")]


@app.command(cls=Command)
def add(
    store: Store,
    name: Annotated[str, word("Whose key it is, for logs.", "NAME")],
    scopes: Annotated[str, word("What it is for: some of decide,reward,read,admin.", "SCOPES")],
    rate: Annotated[
        float | None, number("Requests per second that it may make.", None, "any number")
    ] = None,
) -> None:
    """Make a key and print it, once."""
    from priorwise.serve.errors import Refused
    from priorwise.serve.http import keys

    kept = _opened(store)
    try:
        with refusing("--name", Refused):
            key = keys.add(kept, name, scopes.split(","), rate)
    finally:
        kept.close()
    typer.echo(key)


@app.command("list", cls=Command)
def show(store: Store) -> None:
    """List the keys; the keys themselves are not kept."""
    from datetime import UTC, datetime

    from rich.table import Table

    kept = _opened(store, there=True)
    try:
        with refusing():
            rows = kept.keys()
    finally:
        kept.close()
    table = Table("name", "scopes", "rate", "made", "revoked", box=None)

    def day(when: float | None) -> str:
        return "" if when is None else datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%d %H:%M")

    for each in rows:
        rate = "" if each.rate is None else f"{each.rate:g}"
        table.add_row(each.name, ",".join(each.scopes), rate, day(each.made), day(each.ended))
    output().print(table)


@app.command(cls=Command)
def revoke(store: Store, name: Annotated[str, argument("Its name.", "NAME")]) -> None:
    """End a key."""
    from priorwise.serve.errors import Refused
    from priorwise.serve.http import keys

    kept = _opened(store, there=True)
    try:
        with refusing("NAME", Refused):
            keys.revoke(kept, name)
    finally:
        kept.close()
    typer.echo(f"Revoked {name}.")


def _opened(store: str, there: bool = False) -> Any:
    from pathlib import Path

    from priorwise.cli.serve import needs_extra
    from priorwise.serve.errors import Unavailable
    from priorwise.serve.stores import opened

    needs_extra()
    if not store.strip():
        fail("STORE", "is empty, as an unset variable of the shell is; name a file or a URL")
    if "://" not in store and Path(store).is_dir():
        fail("STORE", f"{store} is a directory; name a file")
    if there and "://" not in store and not Path(store).exists():
        fail("STORE", f"no such file: {store}")
    try:
        with refusing():
            return opened(store)
    except Unavailable as error:
        fail("STORE", error)
