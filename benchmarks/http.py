"""Load on the service: decisions with their rewards over HTTP, on an SQLite file.

    python -m benchmarks.http [--seconds 60] [--store decisions.db] [--rate 1000]

Three runs against one service process: pairs of decide and reward at a fixed rate, at half of it,
and as many as it takes. The client is one process with plain sockets on the other core. Requests of
a fixed rate are timed from when they were due, so that a stall counts for all that it holds up.
Meanwhile another thread writes and syncs a page 20 times a second: what the disk can do in the same
run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

TASKS = 1000
CONNECTIONS = 64
ARMS = 6


@dataclass
class Seen:
    """What came of a run."""

    times: dict[str, list[float]] = field(default_factory=lambda: {"decide": [], "reward": []})
    errors: list[str] = field(default_factory=list)
    pairs: int = 0


class Connection(asyncio.Protocol):
    """Sends one pair after the other, each when it is due."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.got = b""
        self.due = 0.0
        self.kind = ""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.load.idle.append(self)

    def pair(self, due: float) -> None:
        number = self.load.next()
        self.send("decide", b'{"task":"task %d"}' % (number % TASKS), due)

    def send(self, kind: str, body: bytes, due: float) -> None:
        self.kind, self.due = kind, due
        head = b"POST /v1/%s HTTP/1.1\r\nHost: 127.0.0.1\r\n%b" % (kind.encode(), self.load.key)
        more = b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        self.transport.write(head + more + body)

    def data_received(self, data: bytes) -> None:
        self.got += data
        end = self.got.find(b"\r\n\r\n")
        if end < 0:
            return
        at = self.got.index(b"content-length: ") + 16
        size = int(self.got[at : self.got.index(b"\r", at)])
        if len(self.got) < end + 4 + size:
            return
        status, body = self.got[9:12], self.got[end + 4 :]
        self.got = b""
        now = time.perf_counter()
        seen = self.load.seen
        seen.times[self.kind].append(now - self.due)
        if status != b"200":
            seen.errors.append(f"{self.kind}: {status.decode()} {body[:200]!r}")
            self.load.done(self)
        elif self.kind == "decide" and self.load.rewards:
            token = json.loads(body)["token"]
            value = hash(token) % 4 == 0
            self.send("reward", json.dumps({"token": token, "value": float(value)}).encode(), now)
        else:
            seen.pairs += 1
            self.load.done(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.load.over:
            self.load.seen.errors.append(f"connection lost: {exc}")


class Load:
    """Pairs at a fixed rate, or as many as the service takes; ``rewards=False``: decisions alone,
    of which one counts for a pair.
    """

    def __init__(self, key: str | None, rate: float | None, rewards: bool = True) -> None:
        self.rewards = rewards
        self.key = b"" if key is None else b"Authorization: Bearer %b\r\n" % key.encode()
        self.rate, self.seen = rate, Seen()
        self.idle: list[Connection] = []
        self.waiting: list[float] = []
        self.count, self.over = 0, False

    def next(self) -> int:
        self.count += 1
        return self.count

    def done(self, connection: Connection) -> None:
        if self.over:
            return
        if self.rate is None:
            connection.pair(time.perf_counter())
        elif self.waiting:
            connection.pair(self.waiting.pop(0))
        else:
            self.idle.append(connection)

    async def run(self, port: int, seconds: float, connections: int) -> Seen:
        loop = asyncio.get_running_loop()
        for _ in range(connections):
            await loop.create_connection(lambda: Connection(self), "127.0.0.1", port)
        start = time.perf_counter()
        if self.rate is None:
            for each in self.idle[:]:
                each.pair(time.perf_counter())
            await asyncio.sleep(seconds)
        else:
            for number in range(int(self.rate * seconds)):
                due = start + number / self.rate
                if (wait := due - time.perf_counter()) > 0.0:
                    await asyncio.sleep(wait)
                if self.idle:
                    self.idle.pop(0).pair(due)
                else:
                    self.waiting.append(due)
            limit = time.perf_counter() + 5.0
            while self.seen.pairs < int(self.rate * seconds) and time.perf_counter() < limit:
                await asyncio.sleep(0.01)
        self.over = True
        return self.seen


class Disk(threading.Thread):
    """Times of fdatasync while something else goes on."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.path, self.times, self.over = folder / "probe", [], threading.Event()  # type: ignore[var-annotated]

    def run(self) -> None:
        with self.path.open("wb", buffering=0) as file:
            while not self.over.wait(0.05):
                file.write(os.urandom(4096))
                start = time.perf_counter()
                os.fdatasync(file.fileno())
                self.times.append(time.perf_counter() - start)


def memory(pid: int) -> float:
    """Megabytes that a process holds."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def spent(pid: int) -> float:
    """Seconds of a processor that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def started(store: str, folder: Path, options: list[str]) -> tuple[subprocess.Popen[bytes], int]:
    """Start a service of its own process; return it and its port."""
    import priorwise as pw

    prior = folder / "prior.json"
    pw.BetaPrior([2.0] * ARMS, 18.0, names=[f"arm {each}" for each in range(ARMS)]).save(prior)
    log = (folder / "log.jsonl").open("wb")
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "priorwise", "serve", str(prior), "--policy", "ts"),
            *("--horizon", "200", "--seed", "0", "--store", store, "--port", "0", "--open"),
            *options,
        ],
        stdout=log,
        stderr=log,
    )
    limit = time.monotonic() + 60.0
    while time.monotonic() < limit and process.poll() is None:
        text = (folder / "log.jsonl").read_text()
        if "Serving on" in text:
            time.sleep(1.0)
            address = text.partition("Serving on ")[2].split()[0]
            return process, int(address.rpartition(":")[2])
        time.sleep(0.1)
    raise SystemExit((folder / "log.jsonl").read_text())


def told(name: str, seen: Seen, seconds: float, disk: list[float]) -> dict[str, Any]:
    sync = np.quantile(disk, 0.99) if disk else float("nan")
    row: dict[str, Any] = {
        "run": name,
        "pairs": seen.pairs,
        "pairs per second": round(seen.pairs / seconds, 1),
        "errors": len(seen.errors),
    }
    for kind, times in seen.times.items():
        for level in (0.5, 0.99):
            row[f"{kind} p{level * 100:.0f} ms"] = round(float(np.quantile(times, level)) * 1e3, 2)
    every = np.concatenate([np.array(each) for each in seen.times.values()])
    row["p99 ms"] = round(float(np.quantile(every, 0.99)) * 1e3, 2)
    row["max ms"] = round(float(every.max()) * 1e3, 1)
    row["fdatasync p50 ms"] = round(float(np.quantile(disk, 0.5)) * 1e3, 2)
    row["fdatasync p99 ms"] = round(float(sync) * 1e3, 2)
    row["p99 over fdatasync's"] = round(float(np.quantile(every, 0.99) / sync), 2)
    return row


def main() -> None:
    kind = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=kind)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=1000.0)
    parser.add_argument("--store", default=None)
    parser.add_argument("--connections", type=int, default=CONNECTIONS)
    parser.add_argument("options", nargs="*", help="of priorwise serve, after --")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        store = given.store or str(folder / "decisions.db")
        process, port = started(store, folder, given.options)
        try:
            short = max(2.0, given.seconds / 3)
            runs = [
                (f"{given.rate:g} pairs per second", given.rate, given.seconds),
                (f"{given.rate / 2:g} pairs per second", given.rate / 2, short),
                ("as many as it takes", None, short),
            ]
            for title, rate, seconds in runs:
                disk = Disk(folder)
                disk.start()
                load = Load(None, rate)
                before = memory(process.pid), spent(process.pid)
                start, own = time.perf_counter(), time.process_time()
                seen = asyncio.run(load.run(port, seconds, given.connections))
                clock, own = time.perf_counter() - start, time.process_time() - own
                disk.over.set()
                row = told(title, seen, clock, disk.times)
                row["MB before and after"] = [
                    round(each) for each in (before[0], memory(process.pid))
                ]
                used = spent(process.pid) - before[1]
                row["processor us per pair"] = round(used / max(1, seen.pairs) * 1e6)
                row["of the client"] = round(own / max(1, seen.pairs) * 1e6)
                print(json.dumps(row), flush=True)
                for each in seen.errors[:3]:
                    print("  ", each)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


if __name__ == "__main__":
    main()
