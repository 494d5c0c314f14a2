"""Decisions over HTTP next to an endpoint that only inserts a row, on the same PostgreSQL.

    python -m benchmarks.bare [--seconds 8] [--clients 8] [--rounds 2]

The server is Debian's with its defaults, where statements are compiled. The endpoint is Starlette
on uvicorn: it reads JSON, inserts one row with psycopg, commits, and answers. It comes in three
forms. One connects anew for each request, the two others keep a connection for each client: one
inserts in threads, and one in coroutines.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from benchmarks.http import Load, spent, started
from tests.servers import debian_postgres

URL = "BENCHMARK_DATABASE"
INSERT = "INSERT INTO bare (task, token) VALUES (%s, %s)"


def anew() -> Starlette:
    """Return the endpoint that connects for each request."""

    async def decide(request: Request) -> JSONResponse:
        task, token = (await request.json())["task"], os.urandom(8).hex()
        async with await psycopg.AsyncConnection.connect(os.environ[URL]) as connection:
            await connection.execute(INSERT, (task, token))
        return JSONResponse({"token": token})

    return Starlette(routes=[Route("/v1/decide", decide, methods=["POST"])])


def threaded() -> Starlette:
    """Return the endpoint that inserts in threads."""
    own = threading.local()

    def insert(task: str, token: str) -> None:
        if not hasattr(own, "connection"):
            own.connection = psycopg.connect(os.environ[URL], autocommit=True)
        own.connection.execute(INSERT, (task, token))

    async def decide(request: Request) -> JSONResponse:
        task, token = (await request.json())["task"], os.urandom(8).hex()
        await asyncio.to_thread(insert, task, token)
        return JSONResponse({"token": token})

    return Starlette(routes=[Route("/v1/decide", decide, methods=["POST"])])


def awaited() -> Starlette:
    """Return the endpoint that inserts in coroutines."""
    idle: list[Any] = []

    async def decide(request: Request) -> JSONResponse:
        task, token = (await request.json())["task"], os.urandom(8).hex()
        connect = psycopg.AsyncConnection.connect
        connection = idle.pop() if idle else await connect(os.environ[URL], autocommit=True)
        await connection.execute(INSERT, (task, token))
        idle.append(connection)
        return JSONResponse({"token": token})

    return Starlette(routes=[Route("/v1/decide", decide, methods=["POST"])])


def bare(form: str, url: str) -> tuple[subprocess.Popen[bytes], int]:
    """Start the endpoint in a process of its own; return it and its port."""
    line = [sys.executable, "-m", "uvicorn", f"benchmarks.bare:{form}", "--factory", "--port", "0"]
    process = subprocess.Popen(
        [*line, "--no-access-log"], stderr=subprocess.PIPE, env={**os.environ, URL: url}
    )
    assert process.stderr is not None
    for text in process.stderr:
        if b"running on" in text:
            return process, int(text.split(b"127.0.0.1:")[1].split()[0])
    raise SystemExit("the endpoint did not start")


def measured(
    start: Callable[[], tuple[subprocess.Popen[bytes], int]], seconds: float, clients: int
) -> dict[str, float]:
    """Send as many decisions as are taken."""
    process, port = start()
    try:
        asyncio.run(Load(None, None, rewards=False).run(port, 1.0, clients))
        load, before = Load(None, None, rewards=False), spent(process.pid)
        clock = time.perf_counter()
        seen = asyncio.run(load.run(port, seconds, clients))
        clock = time.perf_counter() - clock
        times = 1e3 * np.array(seen.times["decide"])
        return {
            "per second": round(len(times) / clock, 1),
            "p50 ms": round(float(np.quantile(times, 0.5)), 2),
            "p99 ms": round(float(np.quantile(times, 0.99)), 2),
            "processor us": round(1e6 * (spent(process.pid) - before) / len(times)),
            "errors": len(seen.errors),
        }
    finally:
        process.terminate()
        process.wait(30)


def main() -> None:
    """Measure all in turn."""
    kind = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=kind)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    speeds: dict[str, list[float]] = {}
    with debian_postgres() as url, tempfile.TemporaryDirectory() as folder:
        with psycopg.connect(url, autocommit=True) as there:
            there.execute("CREATE TABLE bare (id bigserial PRIMARY KEY, task text, token text)")
            about = [there.execute(f"SHOW {name}").fetchone() for name in ("server_version", "jit")]  # type: ignore[arg-type]
        print(about)
        starts = {
            "bare, connects anew": lambda: bare("anew", url),
            "bare, in threads": lambda: bare("threaded", url),
            "bare, in coroutines": lambda: bare("awaited", url),
            "decide": lambda: started(url, Path(folder), ["--quiet"]),
        }
        for _ in range(given.rounds):
            for name, start in starts.items():
                row = measured(start, given.seconds, given.clients)
                speeds.setdefault(name, []).append(row["per second"])
                print(json.dumps({"run": name, **row}), flush=True)
    decide = np.array(speeds.pop("decide"))
    for name, others in speeds.items():
        print(f"decide makes {', '.join(map(str, (decide / others).round(2)))} times {name}")


if __name__ == "__main__":
    main()
