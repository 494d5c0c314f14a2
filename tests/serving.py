"""A service in a process of its own, and requests to it written byte by byte."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import priorwise as pw
from priorwise.serve.http import keys
from priorwise.serve.stores import opened
from priorwise.testing import base_seed

ARMS = ("red", "blue", "green")


def prior() -> Any:
    return pw.BetaPrior([2.0, 2.0, 3.0], [8.0, 7.0, 9.0], names=list(ARMS))


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Running:
    """A process that serves."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path
    keys: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def lines(self) -> list[Any]:
        """What it logged."""
        text = self.log.read_text()
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]

    def stop(self) -> int:
        """Tell it to stop, and wait; returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(60)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        key: str | None = "admin",
        **headers: str,
    ) -> Answer:
        """Send a request and read the answer."""
        content = b"" if body is None else body if isinstance(body, bytes) else _json(body)
        lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1"]
        if key is not None:
            lines.append(f"Authorization: Bearer {self.keys[key]}")
        if body is not None:
            lines += [f"Content-Length: {len(content)}"]
            if "content_type" not in headers:
                lines.append("Content-Type: application/json")
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        head = "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape")
        return self.raw(head + content)[0]

    def raw(
        self, *pieces: bytes, wait: float = 0.0, patience: float = 30.0, most: int = 1
    ) -> list[Answer]:
        """Send bytes, piece by piece, and read up to ``most`` answers until the other side ends."""
        with socket.create_connection(("127.0.0.1", self.port), patience) as line:
            for piece in pieces:
                try:
                    line.sendall(piece)
                except OSError:  # it has heard enough
                    break
                if wait:
                    time.sleep(wait)
            return read(line, most)


def read(line: socket.socket, most: int = 1) -> list[Answer]:
    """Read answers from a connection."""
    got, out = b"", []
    while len(out) < most:
        while True:
            head, mark, rest = got.partition(b"\r\n\r\n")
            size = _length(head) if mark else None
            if size is not None and len(rest) >= size:
                break
            try:
                more = line.recv(1 << 16)
            except OSError:
                more = b""
            if not more:
                return out
            got += more
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = dict(each.lower().split(": ", 1) for each in lines)
        status = int(first.split()[1])
        got = rest[size:]
        if status != 100:
            out.append(Answer(status, headers, rest[:size]))
    return out


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def started(
    folder: Path,
    *options: str,
    store: str | None = None,
    made: dict[str, str] | None = None,
    name: str = "service",
    with_prior: Any = None,
    horizon: int = 200,
    seed: int | None = None,
) -> Running:
    """Start a service with keys of every scope."""
    store = store or str(folder / "decisions.db")
    file = folder / "prior.json"
    if not file.exists():
        (with_prior or prior()).save(file)
    if made is None:
        made = {}
        if "--open" not in options:
            kept = opened(store)
            for scope in keys.SCOPES:
                made[scope] = keys.add(kept, scope, [scope])
            kept.close()
    log = folder / f"{name}.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "priorwise", "serve", str(file), "--policy", "ts"),
                *("--horizon", str(horizon), "--store", store),
                *("--seed", str(base_seed() if seed is None else seed)),
                *("--port", "0", *options),
            ],
            stdout=stream,
            stderr=stream,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    running = Running(process, 0, log, made)
    for _ in range(1200):
        text = log.read_text()
        if "Serving on" in text:
            running.port = int(text.partition("Serving on ")[2].split()[0].rpartition(":")[2])
            break
        if process.poll() is not None:
            break
        time.sleep(0.05)
    for _ in range(1200):
        if process.poll() is not None or not running.port:
            raise RuntimeError(log.read_text())
        try:
            if running.ask("GET", "/ready", key=None).status == 200:
                return running
        except (OSError, IndexError):
            time.sleep(0.05)
    running.kill()
    raise RuntimeError(log.read_text())
