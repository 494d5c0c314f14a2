"""``priorwise serve``: decisions over HTTP."""

import ipaddress
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from priorwise.cli import inputs
from priorwise.cli.inputs import argument, number, word
from priorwise.cli.output import fail, refusing

if TYPE_CHECKING:
    import socket

HELP: Final = """\
Decide live: serve decisions about tasks over HTTP, with a page to watch.

Decisions and rewards are kept in an SQLite file, or in PostgreSQL, which several services may \
share.

\b
[bold]Examples[/]
[dim]# on this machine, without keys[/]
priorwise example beta > prior.json
priorwise serve prior.json --policy ts --horizon 200 --seed 0 --open
curl localhost:8000/v1/decide -H 'Content-Type: application/json' \\
    -d '{"task": "page 1"}'
[dim]# with keys; the first start prints one for the administrator[/]
priorwise serve prior.json --policy ts --horizon 200 --seed 0
[dim]# four processes on PostgreSQL; rewards that do not come in an hour count as 0[/]
priorwise serve prior.json --policy ts --horizon 200 --seed 0 --workers 4 \\
    --store postgresql://localhost/decisions --window 3600 --missing 0

\b
[bold]Addresses[/]
[cyan]/v1/decide, /v1/reward, ...[/]  the operations; /openapi.json describes them
[cyan]/[/]                            the page to watch
[cyan]/health, /ready, /metrics[/]    for those who run it
"""

EXTRA: Final = "needs packages that are not installed: pip install 'priorwise[serve]'"
PRIOR: Final = "Prior file, or saved fit; without it, the one that the store goes on with."
STORE: Final = "SQLite file, or a URL that starts with postgresql://; memory keeps nothing."
HOST: Final = "Address to listen on; 0.0.0.0 for all of this machine."
WORKERS: Final = "Processes; more than one is for PostgreSQL."
WINDOW: Final = "Seconds within which a reward has to come; without it, for ever."
MISSING: Final = "What a reward that did not come counts as; without it, the pull is left out."
FLOOR: Final = "Least probability of each arm; or of one, such as --floor red=0.1, repeatedly."
CONTROL: Final = "An arm and its fixed share of the pulls, such as current=0.1."
PROPENSITIES: Final = "Whether to compute and log the probability of each decision."
PATIENCE: Final = "Seconds that a client may take to send a request, or to read on."
HTTPS: Final = "A proxy with TLS stands before it: cookies are for HTTPS alone."
ROOT: Final = "What a proxy takes off the start of every path, such as /decisions."
OPEN: Final = "Take requests from this machine without keys."
RATE: Final = "Requests per second of each key, in each process."


def serve(
    policy: Annotated[str, word("A policy, such as ts or sum:8.", "WORD", "--policy", "-p")],
    horizon: inputs.Horizon,
    seed: inputs.Seed,
    prior: Annotated[str | None, argument(PRIOR, "PRIOR")] = None,
    store: Annotated[str, word(STORE, "STORE", shown=True)] = "decisions.db",
    host: Annotated[str, word(HOST, "ADDRESS", shown=True)] = "127.0.0.1",
    port: Annotated[int, number("Port to listen on; 0 takes a free one.", None, True)] = 8000,
    workers: Annotated[int, number(WORKERS, inputs.few, True)] = 1,
    window: Annotated[float | None, number(WINDOW, None)] = None,
    missing: Annotated[float | None, number(MISSING, None)] = None,
    floor: Annotated[list[str] | None, word(FLOOR, "SHARE")] = None,
    control: Annotated[str | None, word(CONTROL, "ARM=SHARE")] = None,
    propensities: Annotated[
        bool, typer.Option("--propensities/--no-propensities", help=PROPENSITIES)
    ] = True,
    rate: Annotated[float | None, number(RATE, None, "any number")] = None,
    patience: Annotated[float, number(PATIENCE, None, True)] = 15.0,
    https: Annotated[bool, typer.Option("--https", help=HTTPS)] = False,
    root_path: Annotated[str, word(ROOT, "PATH")] = "",
    is_open: Annotated[bool, typer.Option("--open", help=OPEN)] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Log only what goes wrong.")] = False,
) -> None:
    """Check everything, make the first key, and serve."""
    needs_extra()
    from priorwise.serve.http.limits import Limits
    from priorwise.serve.http.running import Settings, run

    if not 0.0 < patience <= 3600.0:
        fail("--patience", f"must be positive and at most an hour, got {patience:g}")
    if root_path and not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+/?", root_path):
        fail("--root-path", f"must start with a slash and hold plain letters, got {root_path}")
    _check(port, rate, window, missing, is_open, host, store, workers)
    chosen = inputs.read_policy(policy)
    given = None if prior is None else inputs.read_prior("PRIOR", prior)
    kept = None if store == "memory" else store
    start, current = _going_on(given, kept, horizon, seed)
    settings = Settings(
        start,
        chosen,
        horizon,
        seed,
        kept,
        propensities=propensities,
        floor=_floor(floor or []),
        control=None if control is None else _share("--control", control),
        window=window,
        missing="leave out" if missing is None else missing,
        open=is_open,
        limits=Limits(rate=rate, patience=patience),
        least="warning" if quiet else "info",
        https=https,
        prefix=root_path,
    )
    _try(settings, current)
    if workers > 1 and "://" not in store:
        _warn("--workers: several processes take turns at an SQLite file; PostgreSQL is for that")
    with _port(host, port) as place:
        if not _loopback(host):
            _warn("--host: what passes is not encrypted; put a proxy with TLS before it")
        _first_key(settings)
        run(settings, place, workers, _say)


def _say(address: str) -> None:
    typer.echo(f"Serving on {address} (Ctrl-C stops)", err=True)


def needs_extra() -> None:
    """Stop with a line where the packages of the service are missing."""
    from importlib.util import find_spec

    wanted = ("httptools", "jinja2", "prometheus_client", "starlette", "uvicorn")
    if missing := [name for name in wanted if find_spec(name) is None]:
        fail("serve", f"{EXTRA} (missing: {', '.join(missing)})")


def _check(
    port: int,
    rate: float | None,
    window: float | None,
    missing: float | None,
    is_open: bool,
    host: str,
    store: str,
    workers: int,
) -> None:
    if not 0 <= port <= 65535:
        fail("--port", f"must be 0 to 65535, got {port}")
    if rate is not None and not 0.0 < rate < 1e9:
        fail("--rate", f"must be positive, got {rate:g}")
    if missing is not None and window is None:
        fail("--missing", "says what counts after --window seconds; pass that too")
    if is_open and not _loopback(host):
        fail("--open", f"takes requests without keys, so only on 127.0.0.1 or ::1, not {host}")
    if not store.strip():
        fail("--store", "is empty, as an unset variable of the shell is; name a file or a URL")
    if "://" in store and store.partition("://")[0] not in ("postgresql", "postgres"):
        fail("--store", f"must be a file or a URL that starts with postgresql://, got {store}")
    if "://" not in store and Path(store).is_dir():
        fail("--store", f"{store} is a directory; name a file")
    if store == "memory" and not is_open:
        fail("--store", "memory keeps no keys either; pass --open, or name a file")
    if store == "memory" and workers > 1:
        fail("--workers", "processes do not share memory; use PostgreSQL")


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _share(option: str, text: str) -> tuple[str, float]:
    arm, sign, share = text.rpartition("=")
    try:
        if not sign or not arm:
            raise ValueError
        return arm, float(share)
    except ValueError:
        fail(option, f"must be an arm and its share, such as current=0.1, got {text}")


def _floor(words: list[str]) -> float | dict[str, float]:
    if len(words) == 1 and "=" not in words[0]:
        try:
            return float(words[0])
        except ValueError:
            fail("--floor", f"must be a number such as 0.05, or red=0.1, got {words[0]}")
    return dict(_share("--floor", each) for each in words) or 0.0


def _port(host: str, port: int) -> "socket.socket":
    from priorwise.serve.http.running import bound

    try:
        return bound("127.0.0.1" if host == "localhost" else host, port)
    except OSError as error:
        fail("--host, --port", f"cannot listen on {host}:{port}: {error.strerror or error}")


def _going_on(prior: Any, store: str | None, horizon: int, seed: int) -> tuple[Any, Any]:
    """Return the prior to start with, None to go on with that of a store that knows this one; and
    the one that new tasks have then.
    """
    from priorwise.core.serial import load_prior
    from priorwise.serve.stores import opened

    current, priors = 0, {}
    if store is not None and ("://" in store or Path(store).exists()):
        kept = _or_unavailable(lambda: opened(store))
        try:
            current = _or_unavailable(lambda: kept.look(lambda session: session.version))
            priors = {each.number: each.prior for each in _or_unavailable(kept.versions)}
            _other_settings(_or_unavailable(kept.settings), horizon, seed)
        finally:
            kept.close()
    if not current:
        if prior is None:
            fail("PRIOR", f"is missing: {store or 'memory'} has none yet; {inputs.HOW_TO}")
        return prior, prior
    if prior is not None and prior.to_json() not in priors.values():
        fail(
            "PRIOR",
            f"{store} runs with another prior; leave PRIOR out to go on with that, and propose "
            "this one with POST /v1/priors",
        )
    return None, load_prior(priors[current])


def _other_settings(texts: list[str], horizon: int, seed: int) -> None:
    """Warn where the store was used with another horizon or seed the last time."""
    if not texts:
        return
    before = json.loads(texts[-1])
    for option, value in (("horizon", horizon), ("seed", seed)):
        if before[option] != value:
            _warn(f"--{option}: {value} from now on; the store had {before[option]} before")


def _or_unavailable(work: Any) -> Any:
    from priorwise.serve.errors import Refused, Unavailable

    try:
        with refusing("--store", Refused):
            return work()
    except Unavailable as error:
        fail("--store", error)


def _try(settings: Any, prior: Any) -> None:
    """Let a decider in memory say whether all goes together: a bad option leaves no file."""
    with refusing():
        replace(settings, prior=prior, store=None).decider().close()


def _first_key(settings: Any) -> None:
    """Make the first key of a store that has none, for whoever sits at the terminal."""
    from priorwise.serve.http import keys
    from priorwise.serve.stores import opened

    if settings.open:
        return
    store = _or_unavailable(lambda: opened(settings.store))
    try:
        if _or_unavailable(lambda: keys.in_use(store)):
            return
        if not sys.stdout.isatty():
            fail(
                "--store",
                f"has no keys yet, and there is no terminal to print one to: priorwise keys add "
                f"{settings.store} --name admin --scopes admin makes one, --open goes without",
            )
        key = _or_unavailable(lambda: keys.add(store, "admin", ["admin"]))
        typer.echo(f"Key of the administrator, shown only now: {key}")
    finally:
        store.close()


def _warn(text: str) -> None:
    from rich.console import Console
    from rich.text import Text

    Console(stderr=True).print(Text.assemble(("Warning: ", "yellow"), text), soft_wrap=True)
