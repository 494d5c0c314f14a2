"""What a hostile client does to another one: the time of a decision, quiet and under attack.

    python -m benchmarks.attacks [--seconds 5] [--rounds 3] [--only trailers]

Each attack meets a service of its own on SQLite, on the loopback, while one client decides all the
time. A round has three windows: quiet, attacked, and a control in which a process burns as much
processor time as the attackers used and sends nothing. Attackers run at the lowest priority: those
of a real service have processors of their own. The last attack goes on until the service ends.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPConnection
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import priorwise as pw
from priorwise.serve.http import keys
from priorwise.serve.stores import opened

Times = np.ndarray[Any, Any]  # (request, 2): when it began and ended

ARMS = [str(arm) for arm in range(1000)]
BETA = pw.ExchangeableBetaPrior(2.0, 40.0)
CORRELATED = pw.ExchangeableGaussianPrior(0.0, 1.0, 0.5)
LOGIT_NORMAL = pw.ExchangeableLogitNormalPrior(-3.0, 0.5, 0.5)
PAUSE = 0.004
"""Seconds between an answer and the next decision: about 150 of them tell the p99 of a second."""
LOWEST = 19
WEAK = ["decide", "read"]
"""What the key of a hostile client may do."""
TIMES, SECONDS, REVOKED, MEMORY, STOPPED = 5.0, 2, 5.0, 600, 15.0
"""How much an attack may do: the p99 may be so many times the quiet one for so many seconds. A
revoked key may decide for so many seconds, the service may take so many megabytes, and so many
seconds to end.
"""


class Service:
    """A service in a process of its own."""

    def __init__(self, folder: Path, prior: Any, tasks: int) -> None:
        file, self.store = folder / "prior.json", str(folder / "decisions.db")
        prior.save(file)
        if tasks:
            options: dict[str, Any] = {"horizon": 200, "seed": 0, "store": self.store}
            with pw.serve.Decider(prior, pw.ThompsonSampling(), **options) as decider:
                for first in range(0, tasks, 1000):
                    decider.decide_many([f"t{first + k}" for k in range(1000)], ["a", "b", "c"])
        kept = opened(self.store)
        self.keys = {"decide": keys.add(kept, "decide", ["decide"])}
        self.keys["weak"] = keys.add(kept, "weak", WEAK)
        kept.close()
        line = [sys.executable, "-m", "priorwise", "serve", str(file), "--policy", "ts", "--quiet"]
        line += ["--horizon", "200", "--seed", "0", "--store", self.store, "--port", "0"]
        self.process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        for text in self.process.stderr:
            if "Serving on" in text:
                self.port = int(text.rsplit(":", 1)[1].split()[0])
                break

    def head(self, method: str, path: str, *lines: str, key: str | None = None) -> bytes:
        """Return the head of a request, whose key is that of a weak client by default."""
        key = self.keys["weak"] if key is None else key
        first = [f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {key}"]
        return "\r\n".join([*first, "Content-Type: application/json", *lines, "", ""]).encode()

    def asked(self, method: str, path: str, body: Any = None) -> None:
        """Send a request and read its answer."""
        content = b"" if body is None else json.dumps(body).encode()
        length = f"Content-Length: {len(content)}"
        with self.raw(self.head(method, path, length, "Connection: close") + content) as line:
            while line.recv(1 << 16):
                pass

    def raw(self, content: bytes) -> socket.socket:
        """Send bytes."""
        line = socket.create_connection(("127.0.0.1", self.port))
        line.sendall(content)
        return line

    def decided(self, seconds: float) -> tuple[list[int], Times]:
        """Decide all the time; return statuses, and when requests began and ended."""
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
            times.append((began, time.perf_counter()))
            time.sleep(PAUSE)
        line.close()
        return statuses, np.array(times)

    def memory(self) -> int:
        """Most megabytes that it ever had."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) // 1024

    def calm(self) -> None:
        """Wait until the work that an attack left behind is done."""
        for _ in range(100):
            before = used(self.process.pid)
            time.sleep(0.3)
            if used(self.process.pid) - before < 0.1:
                return

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


def repeated(work: Callable[[], Any], clients: int = 8) -> None:
    """Let several clients do the same over and over."""

    def client() -> None:
        while True:
            try:
                work()
            except OSError:
                time.sleep(0.01)

    for _ in range(clients):
        threading.Thread(target=client, daemon=True).start()
    signal.pause()


def log_ins(service: Service) -> None:
    head = b"POST /watch/login HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nkey="
    lines = [service.raw(head) for _ in range(1100)]
    signal.pause()
    del lines


def trailers(service: Service) -> None:
    head = service.head("POST", "/v1/decide", "Transfer-Encoding: chunked")

    def endless() -> None:
        with service.raw(head + b"1\r\n{\r\n0\r\nX: ") as line:
            while True:
                line.sendall(b"a" * (1 << 16))

    repeated(endless)


def wrong_keys(service: Service) -> None:
    lines: list[socket.socket] = []

    def one() -> None:
        lines.append(service.raw(service.head("GET", "/v1/tasks", key=os.urandom(8).hex())))
        if len(lines) > 500:
            lines.pop(0).close()

    repeated(one)


def allocations(service: Service) -> None:
    body = {"task": "x", "pulls": 1_000_000, "available": ARMS}
    repeated(lambda: service.asked("POST", "/v1/allocate", body))


def decisions(service: Service) -> None:
    def one() -> None:
        service.asked("POST", "/v1/decide", {"task": os.urandom(6).hex(), "available": ARMS})

    repeated(one)


def many(service: Service) -> None:
    def one() -> None:
        tasks = [os.urandom(6).hex() for _ in range(1000)]
        body = {"tasks": tasks, "available": ARMS[:32], "requests": tasks}
        service.asked("POST", "/v1/decide_many", body)

    repeated(one)


def summaries(service: Service) -> None:
    for arms in range(102, 180):
        service.asked("POST", "/v1/decide", {"task": f"x{arms}", "available": ARMS[:arms]})
    tasks = itertools.cycle(range(102, 180))
    repeated(lambda: service.asked("GET", f"/v1/tasks/x{next(tasks)}"), 78)


def exports(service: Service) -> None:
    repeated(lambda: service.asked("GET", "/v1/log"), 16)


def connections(service: Service) -> None:
    lines: list[socket.socket] = []
    with suppress(OSError):  # the service has ended
        while True:
            lines.append(service.raw(b""))
            if len(lines) > 6000:
                lines.pop(0).close()
    signal.pause()


def pages(service: Service) -> None:
    form = f"key={service.keys['weak']}".encode()
    head = "POST /watch/login HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: "
    kind = "\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\n"
    with service.raw(f"{head}{len(form)}{kind}".encode() + form) as line:
        cookie = line.recv(1 << 16).partition(b"set-cookie: ")[2].partition(b";")[0]

    def one() -> None:
        path = b"GET /watch/overview.part?part=tasks&q=" + os.urandom(3).hex().encode()
        rest = b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nCookie: " + cookie + b"\r\n\r\n"
        with service.raw(path + rest) as line:
            while line.recv(1 << 16):
                pass

    repeated(one, 40)


def nothing(service: Service) -> None:
    signal.pause()


def burn(share: float) -> None:
    """Use so large a share of a processor."""
    while True:
        began = time.perf_counter()
        while time.perf_counter() - began < 0.01 * share:
            pass
        time.sleep(0.01 * (1.0 - share))


class Attack(NamedTuple):
    """An attack, with the prior of the service and the tasks that it has before."""

    words: str
    run: Callable[[Service], None]
    prior: Any = BETA
    tasks: int = 0


ATTACKS = [
    Attack("no attack", nothing),
    Attack("1,100 log-ins without a body", log_ins),
    Attack("endless trailers on 8 sockets", trailers),
    Attack("6,000 connections that say nothing", connections),
    Attack("wrong keys from 8 clients, as many as they can send", wrong_keys),
    Attack("allocate 1,000 arms, 1,000,000 pulls, 8 clients", allocations),
    Attack("decide among 1,000 correlated arms, 8 clients", decisions, CORRELATED),
    Attack("decide among 1,000 logit-normal arms, 8 clients", decisions, LOGIT_NORMAL),
    Attack("decide about 1,000 tasks with 32 arms at once, 8 clients", many),
    Attack("78 summaries of 102 to 179 arms, over and over", summaries),
    Attack("16 exports of 100,000 tasks, over and over", exports, tasks=100_000),
    Attack("40 readers of the page that search 100,000 tasks", pages, tasks=100_000),
]


def p99(times: Times) -> float:
    """Return the quantile in milliseconds."""
    return 1e3 * float(np.quantile(times[:, 1] - times[:, 0], 0.99))


def raised(times: Times, limit: float) -> int:
    """Return how many seconds in a row have a p99 over a limit. A request counts for all the
    seconds through which it lasts.
    """
    most = count = 0
    for second in np.arange(times[0, 0], times[-1, 1]):
        within = times[(times[:, 0] < second + 1.0) & (times[:, 1] > second)]
        count = count + 1 if p99(within) > limit else 0
        most = max(most, count)
    return most


def used(process: int) -> float:
    """Return the seconds of processors that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def beside(work: Callable[[Any], None], given: object) -> BaseProcess:
    """Run something at the lowest priority, in another process."""

    def run() -> None:
        os.nice(LOWEST)
        work(given)

    process = get_context("fork").Process(target=run, daemon=True)
    process.start()
    return process


def ended(process: BaseProcess) -> None:
    """End such a process."""
    process.kill()
    process.join()


def attacked(attack: Attack, seconds: float, rounds: int) -> str:
    """Run an attack and say what another client saw."""
    quiet, control, busy = list[Times](), list[Times](), list[Times]()
    statuses, share = list[int](), 0.0
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder), attack.prior, attack.tasks)
        service.decided(1.0)
        for left in reversed(range(rounds)):
            service.calm()
            quiet.append(service.decided(seconds)[1])
            if busy:
                burning = beside(burn, share)
                control.append(service.decided(seconds)[1])
                ended(burning)
            hostile = beside(attack.run, service)
            answers, times = service.decided(seconds)
            share = min(1.0, used(hostile.pid or 0) / seconds)
            statuses += answers
            busy.append(times)
            if left:
                ended(hostile)
        kept = opened(service.store)
        keys.revoke(kept, "decide")
        kept.close()
        began = time.perf_counter()
        while 401 not in service.decided(0.1)[0] and time.perf_counter() - began < 60.0:
            pass
        revoked, memory = time.perf_counter() - began, service.memory()
        stopped = service.stopped()
        ended(hostile)
    calm = np.concatenate(quiet)
    bad = sum(status != 200 for status in statuses)
    over, alone = ([raised(each, TIMES * p99(calm)) for each in some] for some in (busy, control))
    wrong = {
        "p99": max(over) > SECONDS,
        "answers": bad > 0,
        "revoked key": revoked > REVOKED,
        "memory": memory > MEMORY,
        "end": stopped > STOPPED,
    }
    verdict = ", ".join(name for name, failed in wrong.items() if failed)
    return (
        f"{attack.words}: p99 {p99(calm):.1f} ms quiet (of {len(calm)}), "
        f"{p99(np.concatenate(control)):.1f} ms with {share:.0%} of a processor burnt, "
        f"{p99(np.concatenate(busy)):.1f} ms attacked (of {len(statuses)}); seconds over {TIMES:g} "
        f"times the quiet one: {listed(over)} attacked, {listed(alone)} burnt; {bad} not answered; "
        f"revoked key dead after {revoked:.1f} s; {memory} MB; ended in {stopped:.1f} s: "
        + (f"FAILS in {verdict}" if verdict else "within the limits")
    )


def listed(numbers: list[int]) -> str:
    """Write the numbers of all rounds."""
    return ", ".join(map(str, numbers))


def main() -> None:
    """Run all attacks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="of each window")
    parser.add_argument("--rounds", type=int, default=3, help="at least 2")
    parser.add_argument("--only", default="", help="words of the attacks to run")
    given = parser.parse_args()
    gc.disable()  # which the client would wait for
    for attack in ATTACKS:
        if given.only in attack.words:
            print(attacked(attack, given.seconds, max(2, given.rounds)), flush=True)


if __name__ == "__main__":
    main()
