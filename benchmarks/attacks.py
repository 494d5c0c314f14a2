"""What a hostile client does to another one: the time of a decision, quiet and under attack.

    python -m benchmarks.attacks [--seconds 10]

Each attack meets a service of its own on SQLite, on the loopback, and lasts some seconds. One
client decides all the time, and the last line of an attack says what it saw.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np

import priorwise as pw
from priorwise.serve.http import keys
from priorwise.serve.stores import opened

ARMS = [str(arm) for arm in range(1000)]
BETA = pw.ExchangeableBetaPrior(2.0, 40.0)
CORRELATED = pw.ExchangeableGaussianPrior(0.0, 1.0, 0.5)


class Service:
    """A service in a process of its own."""

    def __init__(self, folder: Path, prior: Any) -> None:
        file, self.store = folder / "prior.json", str(folder / "decisions.db")
        prior.save(file)
        kept = opened(self.store)
        self.keys = {scope: keys.add(kept, scope, [scope]) for scope in keys.SCOPES}
        kept.close()
        line = [sys.executable, "-m", "priorwise", "serve", str(file), "--policy", "ts", "--quiet"]
        line += ["--horizon", "200", "--seed", "0", "--store", self.store, "--port", "0"]
        self.process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        for text in self.process.stderr:
            if "Serving on" in text:
                self.port = int(text.rsplit(":", 1)[1].split()[0])
                break

    def sent(self, method: str, path: str, body: Any = None, key: str = "decide") -> socket.socket:
        """Send a request and do not wait for its answer."""
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.keys[key]}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        return self.raw(head.encode() + content)

    def raw(self, content: bytes) -> socket.socket:
        """Send bytes."""
        line = socket.create_connection(("127.0.0.1", self.port))
        line.sendall(content)
        return line

    def decided(self, seconds: float) -> tuple[list[int], list[float]]:
        """Decide all the time; return statuses and milliseconds."""
        line, statuses, times = HTTPConnection("127.0.0.1", self.port, timeout=20), [], []
        headers = {"Authorization": f"Bearer {self.keys['decide']}"}
        headers["Content-Type"] = "application/json"
        end = time.perf_counter() + seconds
        while (began := time.perf_counter()) < end:
            task = {"task": os.urandom(6).hex(), "available": ["a", "b", "c"]}
            try:
                line.request("POST", "/v1/decide", json.dumps(task), headers)
                answer = line.getresponse()
                answer.read()
                statuses.append(answer.status)
            except OSError:
                statuses.append(0)
                line.close()
            times.append(1e3 * (time.perf_counter() - began))
            time.sleep(0.01)
        return statuses, times

    def memory(self) -> int:
        """Most megabytes that it ever had."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) // 1024

    def stopped(self) -> float:
        """Seconds from SIGTERM to the end."""
        began = time.perf_counter()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        return time.perf_counter() - began


def log_ins(service: Service) -> Iterator[socket.socket]:
    head = b"POST /watch/login HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nkey="
    return (service.raw(head) for _ in range(1100))


def allocation(service: Service) -> Iterator[socket.socket]:
    body = {"task": "x", "pulls": 1_000_000, "available": ARMS}
    yield service.sent("POST", "/v1/allocate", body)


def decision(service: Service) -> Iterator[socket.socket]:
    yield service.sent("POST", "/v1/decide", {"task": "x", "available": ARMS})


def summaries(service: Service) -> Iterator[socket.socket]:
    for arms in range(102, 180):
        body = {"task": f"x{arms}", "available": ARMS[:arms]}
        with service.sent("POST", "/v1/decide", body) as line:
            line.recv(1)
        yield service.sent("GET", f"/v1/tasks/x{arms}", key="read")


ATTACKS: dict[str, tuple[Any, Callable[[Service], Iterator[socket.socket]]]] = {
    "1,100 log-ins without a body": (BETA, log_ins),
    "allocate 1,000 arms, 1,000,000 pulls": (BETA, allocation),
    "decide among 1,000 correlated arms": (CORRELATED, decision),
    "78 summaries of 102 to 179 arms": (BETA, summaries),
}


def attacked(name: str, seconds: float) -> str:
    """Run an attack and say what another client saw."""
    prior, attack = ATTACKS[name]
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as lines:
        service = Service(Path(folder), prior)
        _, quiet = service.decided(seconds / 2)
        for line in attack(service):
            lines.enter_context(line)
        statuses, busy = service.decided(seconds)
        kept = opened(service.store)
        keys.revoke(kept, "decide")
        kept.close()
        began = time.perf_counter()
        while 401 not in service.decided(0.1)[0] and time.perf_counter() - began < 60.0:
            pass
        revoked, memory = time.perf_counter() - began, service.memory()
        stopped = service.stopped()
    p99 = [float(np.quantile(each, 0.99)) for each in (quiet, busy)]
    bad = sum(status != 200 for status in statuses)
    return (
        f"{name}: p99 {p99[0]:.0f} ms quiet, {p99[1]:.0f} ms attacked; {bad} of {len(busy)} not "
        f"answered; revoked key dead after {revoked:.1f} s; {memory} MB; ended in {stopped:.1f} s"
    )


def main() -> None:
    """Run all attacks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    given = parser.parse_args()
    for name in ATTACKS:
        print(attacked(name, given.seconds), flush=True)


if __name__ == "__main__":
    main()
