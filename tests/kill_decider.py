"""Processes that decide and take rewards until they are killed, and the check of what they left.

Run as a program it imports everything once, and then starts a process for each line that it reads:
``{"store": ..., "log": ..., ...}`` starts one and answers its number, ``{"wait": number}`` waits
for its end. Each process writes to its log what it sends, and what was acknowledged.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

import priorwise as pw
from priorwise.core.seen import Seen
from priorwise.core.streams import Stream
from priorwise.serve import Conflict, Decider
from priorwise.serve.choosing import task_key

HORIZON = 10_000


def prior() -> Any:
    return pw.GaussianPrior([0.0, 0.2, 0.1], 0.5 * np.eye(3) + 0.2, 0.8, names=list("xyz"))


def decider(store: Any, seed: int) -> Decider:
    return Decider(
        prior(), pw.ThompsonSampling(), horizon=HORIZON, seed=seed, store=store, propensities=False
    )


# -- processes


def load(store: str, log: str, seed: int, name: str, tasks: int, threads: int, pulls: int) -> None:
    """Decide and take rewards in some threads, until a signal or so many pulls of each."""
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    over, parent = threading.Event(), os.getppid()
    signal.signal(signal.SIGTERM, lambda *_: over.set())

    def note(kind: str, *what: Any) -> None:
        os.write(out, (json.dumps([kind, *what]) + "\n").encode())

    def reward(token: str, value: float) -> None:
        note("sent", token, value)
        try:
            note("acknowledged", token, value, one.reward(token, value))
        except Conflict:
            note("refused", token, value)

    def play(thread: int) -> None:
        rng = np.random.default_rng([seed, thread, *name.encode()])
        late: list[tuple[str, float]] = []
        for pull in range(pulls):
            if over.is_set() or os.getppid() != parent:  # told to stop, or left alone
                return
            task, request = f"task {rng.integers(tasks)}", f"{name} {thread} {pull}"
            made = one.decide(task, request=request)
            note("decided", task, made.step, made.arm, request)
            late.append((made.token, float(rng.normal())))
            if rng.random() < 0.3:
                again = one.decide(task, request=request)
                note("decided", task, again.step, again.arm, request)
            while late and rng.random() < 0.8:
                token, value = late.pop(int(rng.integers(len(late))))
                reward(token, value)
                if rng.random() < 0.3:
                    reward(token, value if rng.random() < 0.5 else value + 1.0)

    def kept(thread: int) -> None:
        try:
            play(thread)
        except BaseException as error:
            note("error", repr(error))
            raise

    try:
        one = decider(store, seed)
        note("opened")
        running = [threading.Thread(target=kept, args=(each,)) for each in range(threads)]
        for each in running:
            each.start()
        for each in running:
            each.join()
        one.close()
    except BaseException as error:
        note("error", repr(error))
        raise


def main() -> None:
    with_one = decider(None, 0)  # loads what is compiled
    with_one.reward(with_one.decide("a").token, 1.0)
    for line in sys.stdin:
        asked = json.loads(line)
        if "wait" in asked:
            print(os.waitstatus_to_exitcode(os.waitpid(asked["wait"], 0)[1]), flush=True)
            continue
        child = os.fork()
        if child == 0:
            status = 1
            try:
                load(**asked)
                status = 0
            finally:
                os._exit(status)
        print(child, flush=True)


class Nursery:
    """Starts processes, and waits for them."""

    def __init__(self, folder: Path) -> None:
        self._program = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._folder, self._alive, self.started = folder, set[int](), 0

    def start(self, store: Any, *, pulls: int = 1_000_000, **options: Any) -> int:
        self.started += 1
        name = f"process {self.started}"
        log = str(self._folder / f"{name}.log")
        asked = {"store": str(store), "log": log, "name": name, "pulls": pulls, **options}
        child = self._ask(asked)
        self._alive.add(child)
        return child

    def acknowledged(self) -> None:
        """Wait until the process that was started last has had an acknowledgement."""
        log = self._folder / f"process {self.started}.log"
        for _ in range(6000):
            text = log.read_text() if log.exists() else ""
            if '["acknowledged"' in text or '["error"' in text:
                return
            time.sleep(0.01)
        raise AssertionError("nothing was acknowledged within a minute")

    def kill(self, child: int) -> None:
        os.kill(child, signal.SIGKILL)
        self.wait(child)

    def stop(self, child: int) -> None:
        os.kill(child, signal.SIGTERM)
        assert self.wait(child) == 0

    def wait(self, child: int) -> int:
        status = self._ask({"wait": child})
        self._alive.discard(child)
        return status

    def _ask(self, what: dict[str, Any]) -> int:
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._program.stdin.write(json.dumps(what) + "\n")
        self._program.stdin.flush()
        return int(self._program.stdout.readline())

    def close(self) -> None:
        for child in list(self._alive):
            self.kill(child)
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._program.stdin.close()
        self._program.wait()
        self._program.stdout.close()

    def logs(self) -> list[list[Any]]:
        """What all processes noted; a line that a kill cut off does not count."""
        found = []
        for path in sorted(self._folder.glob("*.log")):
            lines = path.read_text().split("\n")[:-1]
            found += [json.loads(line) for line in lines]
        return found


# -- the check


class Left:
    """What a database holds, read without the package."""

    def __init__(self, query: Any) -> None:
        self.tasks = {
            name: (number, steps, events, state)
            for number, name, steps, events, state in query(
                "SELECT id, name, steps, events, state FROM task"
            )
        }
        self.decisions: dict[str, list[Any]] = defaultdict(list)
        self.events: dict[str, list[Any]] = defaultdict(list)
        names = {number: name for name, (number, *_) in self.tasks.items()}
        for task, *row in query(
            "SELECT task, step, arm, request, settled FROM decision ORDER BY task, step"
        ):
            self.decisions[names[task]].append(row)
        for task, *row in query(
            "SELECT task, number, kind, step, arm, value FROM event ORDER BY task, number"
        ):
            self.events[names[task]].append(row)


def left_in(store: Any) -> Left:
    """Read a copy of a file, or a database on a server."""
    if isinstance(store, Path):
        copy = store.with_name("copy.db")
        for end in ("", "-wal"):
            copy.with_name(copy.name + end).unlink(missing_ok=True)
            source = store.with_name(store.name + end)
            if source.exists():
                shutil.copy(source, copy.with_name(copy.name + end))
        with closing(sqlite3.connect(copy)) as connection:
            return Left(lambda text: connection.execute(text).fetchall())
    import psycopg

    with psycopg.connect(store, autocommit=True) as there:
        there.execute("SET search_path TO priorwise")
        return Left(lambda text: there.execute(text).fetchall())


def by_hand(events: list[Any]) -> Any:
    """Pulls, sums and squares of each arm, in the order of the events."""
    sums = np.zeros((3, 3))
    for _, _, _, arm, value in events:
        sums[:, arm] += (1.0, value, value * value)
    return sums


def next_arm(name: str, steps: int, sums: Any, seed: int) -> str:
    """The next decision, by the plain policy on statistics summed up by hand."""
    known = prior()
    statistics = pw.GaussianStatistics(
        pulls=sums[0][None], sums=sums[1][None], squares=sums[2][None]
    )
    key = np.array([task_key(seed, name)], dtype=np.uint64)
    act = pw.ThompsonSampling().act
    arm = act(
        known.belief_given(statistics), Seen(steps + 1, HORIZON, 3, None, None),
        Stream(key, steps + 1),
    )  # fmt: skip
    return "xyz"[int(arm[0])]


def check(store: Any, logs: list[list[Any]], seed: int) -> int:
    """Check that all that was acknowledged is there, and once; return how many rewards were."""
    assert [each for each in logs if each[0] == "error"] == []
    if isinstance(store, Path) and not store.exists():
        assert not logs, "a store that was opened is there"
        return 0
    left = left_in(store)
    made = {(name, row[0]): row for name, rows in left.decisions.items() for row in rows}
    for _, task, step, arm, request in (each for each in logs if each[0] == "decided"):
        assert made[task, step][1:3] == ["xyz".index(arm), request], "an acknowledged decision"
    rewarded: dict[tuple[str, int], float] = {}
    for name, (_, steps, events, state) in left.tasks.items():
        assert [row[0] for row in left.decisions[name]] == list(range(1, steps + 1))
        happened = left.events[name]
        assert [row[0] for row in happened] == list(range(1, events + 1))
        assert {row[1] for row in happened} <= {"reward"}
        for number, _, step, arm, value in happened:
            assert (name, step) not in rewarded, "counted twice"
            rewarded[name, step] = value
            assert made[name, step][1] == arm
            assert made[name, step][3] == number
        assert by_hand(happened).tobytes() == bytes(state), "statistics are the sum of the log"
    sent: dict[Any, set[float]] = defaultdict(set)
    counted: dict[Any, int] = defaultdict(int)
    acknowledged = set()
    for kind, token, *what in (each for each in logs if each[0] != "opened"):
        step, _, task = str(token).split(".", 2) if kind != "decided" else ("0", "", "")
        where = (task, int(step))
        if kind == "sent":
            sent[where].add(what[0])
        elif kind == "acknowledged":
            assert rewarded[where] == what[0], "an acknowledged reward"
            counted[where] += what[1] == "counted"
            acknowledged.add(where)
        elif kind == "refused":
            assert rewarded[where] != what[0]
    assert all(each <= 1 for each in counted.values())
    for where, value in rewarded.items():
        assert value in sent[where], "nobody sent it"
    fresh = decider(store, seed)
    try:
        for name, (_, steps, _, _) in left.tasks.items():
            assert fresh.replay(name) == []
            wanted = next_arm(name, steps, by_hand(left.events[name]), seed)
            choice = fresh.decide(name, request=f"fresh {steps}")
            assert (choice.step, choice.arm) == (steps + 1, wanted)
    finally:
        fresh.close()
    return len(acknowledged)


if __name__ == "__main__":
    main()
