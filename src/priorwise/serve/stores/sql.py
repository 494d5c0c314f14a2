"""What stores that use SQL share: group commit, and reading.

One thread per process writes. It takes all operations that wait, runs them one after the other in
one transaction in which their tasks are locked, commits, and then answers all of them: so a commit,
which waits for the disk, serves as many as came meanwhile. Statistics are summed up in the process;
nothing is kept in it from one transaction to the next, so any number of processes may share a
database.
"""

from __future__ import annotations

import json
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any, Final, final

from priorwise.core import validation
from priorwise.serve.ahead import CLIENT, Turns
from priorwise.serve.errors import Unavailable
from priorwise.serve.rows import Decided, Event, Key, Listed, Size, Task, Version
from priorwise.serve.stores.link import DECIDED, EVENT, TASK, Link, Wanted
from priorwise.serve.stores.session import (
    LARGEST,
    Raced,
    SqlSession,
    arms_of,
    decided_of,
    event_of,
    possible,
    task_of,
)
from priorwise.serve.stores.store import Pairs, R, next_number

MOST: Final = 50
"""Operations in one transaction, about as many tasks. Clients take turns, so it is also about what
an operation waits for.
"""
AGAIN: Final = 20
"""How often a transaction starts over where other processes open the same tasks."""
AT_ONCE: Final = 500
"""Tasks that are read at once where all are."""
IDLE: Final = 4
"""Connections that are kept for reading."""


@final
class _Job:
    """An operation that waits."""

    __slots__ = ("alone", "future", "wanted", "work")

    def __init__(self, work: Callable[[Any], Any], wanted: Wanted, alone: str | None) -> None:
        """``alone``: in a transaction of its own, with a ``session`` or the bare ``link``."""
        self.work, self.wanted, self.alone = work, wanted, alone
        self.future: Future[Any] = Future()


class SqlStore(ABC):
    """A store in a database. Operations of one process are written by one thread."""

    durable: Final = True

    def __init__(self) -> None:
        """Start the thread; the database is up to date already."""
        self._fold: Any = _no_fold
        self._waiting: Turns[_Job] = Turns()
        self._free: list[Link] = []  # for reading
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)  # what waits, or that it is closed
        self._closed = False
        self._process = os.getpid()
        self._writer: Link | None = None
        self._thread = threading.Thread(
            target=self._serve, name=f"{type(self).__name__} writer", daemon=True
        )
        self._thread.start()

    @abstractmethod
    def _connect(self, *, reading: bool) -> Link:
        """Open a connection."""

    @abstractmethod
    def __repr__(self) -> str:
        """Say where, without a password."""

    def use(self, operations: Any) -> None:
        """Take note of the operations, which encode and decode states."""
        self._fold = operations.fold

    # -- operations

    def run(
        self,
        work: Callable[[Any], R],
        *,
        tasks: Iterable[str] = (),
        steps: Pairs = (),
        requests: Pairs = (),
        units: Pairs = (),
        whole: bool = False,
    ) -> R:
        """Return ``work(session)`` once what it wrote is on the disk."""
        return self.submit(
            work, tasks=tasks, steps=steps, requests=requests, units=units, whole=whole
        ).result()

    def submit(
        self,
        work: Callable[[Any], R],
        *,
        tasks: Iterable[str] = (),
        steps: Pairs = (),
        requests: Pairs = (),
        units: Pairs = (),
        whole: bool = False,
    ) -> Future[R]:
        """Return what :meth:`run` will return, without waiting for it."""
        # names that no task can have are not asked for: one of them must not harm the others
        wanted = Wanted(
            [name for name in tasks if possible(name)],
            [(name, step) for name, step in steps if possible(name) and 0 <= step < LARGEST],
            [each for each in requests if possible(each[0]) and possible(each[1])],
            [each for each in units if possible(each[0]) and possible(each[1])],
        )
        return self._submitted(_Job(work, wanted, "session" if whole else None))

    def _submitted(self, job: _Job) -> Future[Any]:
        if self._process != os.getpid():
            raise Unavailable("the store was opened by another process: open it again in this one")
        if threading.current_thread() is self._thread:
            raise RuntimeError("an operation must not start another one")
        with self._lock:
            if self._closed:
                raise Unavailable("the store is closed")
            self._waiting.put(CLIENT.get(), job)
            self._changed.notify()
        return job.future

    def _write(self, work: Callable[[Link], R]) -> R:
        """Return ``work(link)``, which writes in a transaction of its own."""
        return self._submitted(_Job(work, Wanted([], [], [], []), "link")).result()

    def _serve(self) -> None:
        """Serve operations until the store is closed."""
        while batch := self._batch():
            together: list[_Job] = []
            for each in batch:
                if not each.future.set_running_or_notify_cancel():
                    continue
                if each.alone is None and len(each.wanted.tasks) < MOST:
                    together.append(each)
                else:
                    self._commit(together)
                    self._commit([each])
                    together = []
            self._commit(together)
        if self._writer is not None:
            self._writer.close()

    def _batch(self) -> list[_Job]:
        """Wait for operations; return none once the store is closed and all are done."""
        batch, size = [], 0
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            while self._waiting and size < MOST:
                _, job = self._waiting.take()
                batch.append(job)
                size += max(1, len(job.wanted.tasks))
        return sorted(batch, key=lambda job: len(job.wanted.tasks) >= MOST)  # large ones come last

    def _commit(self, jobs: list[_Job]) -> None:
        """Run operations in one transaction and answer them."""
        if not jobs:
            return
        link = None
        for _ in range(AGAIN):
            try:
                link = self._writing()
                answers = self._transaction(link, jobs)
            except Raced:
                self._rolled_back(link)
                continue
            except Exception as error:
                self._rolled_back(link)
                if len(jobs) > 1 and link is not None and not link.passing(error):
                    for each in jobs:  # one of them is to blame: the others must not suffer
                        self._commit([each])
                else:
                    self._failed(jobs, error)
                return
            for job, (done, value) in zip(jobs, answers, strict=True):
                if done:
                    job.future.set_result(value)
                else:
                    job.future.set_exception(value)
            return
        self._failed(jobs, Raced("other processes open the same tasks"))

    def _failed(self, jobs: list[_Job], error: Exception) -> None:
        for job in jobs:
            public = _public(error, "the store did not take it")
            failed = Unavailable(f"{self!r} did not take it: {_one_line(error)}", public)
            failed.__cause__ = error
            job.future.set_exception(failed)

    def _writing(self) -> Link:
        if self._writer is None:
            self._writer = self._connect(reading=False)
        return self._writer

    def _rolled_back(self, link: Link | None) -> None:
        """Take back what a transaction did; a connection that is lost is opened again later."""
        if link is None:
            return
        try:
            link.rollback()
            lost = not link.alive
        except Exception:
            lost = True
        if lost:
            with suppress(Exception):
                link.close()
            self._writer = None

    def _transaction(self, link: Link, jobs: list[_Job]) -> list[tuple[bool, Any]]:
        """Run operations and write what they did; return for each whether it was done, and what it
        returned or raised.
        """
        first = jobs[0]
        if first.alone == "link":
            link.begin()
            answer = _tried(first.work, link, link)
            link.commit() if answer[0] else link.rollback()
            return [answer]
        if first.alone == "session":
            link.begin()
            link.lock("task")
            session = SqlSession(link, self._fold)
            answer = _tried(first.work, session, link)
            if answer[0]:
                session.keep()
                session.write()
                link.tidy()
            else:
                link.rollback()
            return [answer]
        wanted = _joined([job.wanted for job in jobs])
        session = SqlSession(link, self._fold, link.find(wanted), wanted)
        answers = []
        for job in jobs:
            session.start()
            answer = _tried(job.work, session, link)
            if answer[0] or getattr(answer[1], "kept", False):
                session.keep()
            else:
                session.undo()
            answers.append(answer)
        if session.changed:
            session.write()
        else:
            link.rollback()
        return answers

    # -- reading

    def look(self, work: Callable[[Any], R]) -> R:
        """Return ``work(session)``, which reads and writes nothing, without holding up others."""
        with self._reading() as link:
            link.begin_reading()
            try:
                session = SqlSession(link, self._fold)
                result = work(session)
                if session.changed:
                    raise RuntimeError("what looks at a store must not write")
                return result
            finally:
                link.rollback()

    def _read(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._reading() as link:
            return link.query(statement, values)

    @contextmanager
    def _reading(self) -> Iterator[Link]:
        """Lend a connection that reads."""
        if self._process != os.getpid():
            raise Unavailable("the store was opened by another process: open it again in this one")
        with self._lock:
            if self._closed:
                raise Unavailable("the store is closed")
            link = self._free.pop() if self._free else None
        try:
            if link is None:
                link = self._connect(reading=True)
            yield link
        except Exception as error:
            if link is None or isinstance(error, (link.errors, Unavailable)):
                if link is not None:
                    with suppress(Exception):
                        link.close()
                    link = None
                public = _public(error, "the store did not answer")
                message = f"{self!r} did not answer: {_one_line(error)}"
                raise Unavailable(message, public) from error
            raise
        finally:
            if link is not None:
                with self._lock:
                    keep = not self._closed and len(self._free) < IDLE
                    if keep:
                        self._free.append(link)
                if not keep:
                    link.close()

    def names(self, *, closed: bool | None = None) -> list[str]:
        """Names of the tasks, in the order in which they were opened."""
        rows = self._read(f"SELECT t.name FROM task t {_WHETHER[closed]} ORDER BY t.id")
        return [name for (name,) in rows]

    def tasks(
        self, *, closed: bool | None = None, most: int = 100, after: str | None = None
    ) -> list[Listed]:
        """List tasks, the newest first, from the one that follows the task ``after``."""
        columns = "t.name, t.version, t.arms, t.steps, t.events, t.opened, t.closed"
        where, values = _WHETHER[closed], [validation.count("most", most)]
        if after is not None:
            where += " AND " if where else "WHERE "
            where += "t.id < (SELECT a.id FROM task a WHERE a.name = ?)"
            values = [after if possible(after) else "", *values]  # type: ignore[list-item]
        rows = self._read(
            f"SELECT {columns} FROM task t {where} ORDER BY t.id DESC LIMIT ?", values
        )
        return [Listed(name, version, arms_of(arms), *rest) for name, version, arms, *rest in rows]

    def size(self) -> Size:
        """Count tasks, decisions and rewards."""
        ((every, closed, decisions, rewards),) = self._read(
            "SELECT count(*), count(closed), coalesce(sum(decisions), 0), "
            "coalesce(sum(rewards), 0) FROM task"
        )
        return Size(every - closed, closed, int(decisions), int(rewards))

    def outstanding(self, before: float, most: int) -> list[tuple[str, int]]:
        """Tasks and steps of decisions made before a time whose rewards are not known, the oldest
        first.
        """
        rows = self._read(
            "SELECT t.name, d.step FROM decision d JOIN task t ON t.id = d.task "
            "WHERE d.settled IS NULL AND d.counts IS NULL AND d.time < ? "
            "ORDER BY d.time, d.task, d.step LIMIT ?",
            (float(before), most),
        )
        return [(name, step) for name, step in rows]

    def rows(self) -> Iterator[tuple[Task, list[Decided], list[Event]]]:
        """Every task with its log."""
        last = -1
        while True:
            with self._reading() as link:
                link.begin_reading()
                try:
                    found = link.query(
                        f"SELECT {TASK} FROM task t WHERE t.id > ? ORDER BY t.id LIMIT ?",
                        (last, AT_ONCE),
                    )
                    if not found:
                        return
                    between = (found[0][0], found[-1][0])
                    decisions = _grouped(link, f"d.task, {DECIDED}", "decision d", "step", between)
                    events = _grouped(link, f"e.task, {EVENT}", "event e", "number", between)
                finally:
                    link.rollback()
            last = found[-1][0]
            for row in found:
                yield (
                    task_of(row, self._fold),
                    [decided_of(each) for each in decisions.get(row[0], ())],
                    [event_of(each) for each in events.get(row[0], ())],
                )

    # -- priors, settings, values and keys

    def versions(self) -> list[Version]:
        """Every prior, the first one first."""
        rows = self._read(
            "SELECT number, prior, status, made, accepted, story FROM prior ORDER BY number"
        )
        return [Version._make((*row[:5], json.loads(row[5]))) for row in rows]

    def put_version(self, version: Version) -> int:
        """Add a prior, or change the status of one; return its number."""
        story = json.dumps(version.story)

        def work(link: Link) -> int:
            link.lock("prior")
            known = dict(link.query("SELECT number, prior FROM prior"))
            number = version.number
            if number in known and known[number] != version.prior:
                number = next_number(number, known)
            count = None
            if version.status == "accepted":
                count = link.query("SELECT 1 + coalesce(max(acceptance), 0) FROM prior")[0][0]
            link.execute(
                "INSERT INTO prior (number, prior, status, made, accepted, story, acceptance) "
                "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (number) DO UPDATE SET "
                "status = excluded.status, accepted = excluded.accepted, story = excluded.story, "
                "acceptance = excluded.acceptance",
                (number, *version[1:5], story, count),
            )
            return number

        return self._write(work)

    def settings(self) -> list[str]:
        """Every set of settings that ever decided, as JSON."""
        return [text for (text,) in self._read("SELECT text FROM settings ORDER BY number")]

    def add_settings(self, text: str) -> int:
        """Return the number of these settings, which are added if they are new."""

        def work(link: Link) -> int:
            link.lock("settings")
            known = [each for (each,) in link.query("SELECT text FROM settings ORDER BY number")]
            if text not in known:
                known.append(text)
                link.execute(
                    "INSERT INTO settings (number, text) VALUES (?, ?)", (len(known), text)
                )
            return known.index(text) + 1

        return self._write(work)

    def value(self, name: str) -> str | None:
        """Return a value that the service keeps."""
        rows = self._read("SELECT value FROM value WHERE name = ?", (name,))
        return rows[0][0] if rows else None

    def put_value(self, name: str, value: str) -> None:
        """Keep a value."""
        self._write(
            lambda link: link.execute(
                "INSERT INTO value (name, value) VALUES (?, ?) "
                "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (name, value),
            )
        )

    def keys(self) -> list[Key]:
        """Every key of the service, by name."""
        rows = self._read(
            "SELECT name, digest, scopes, made, ended, rate FROM api_key ORDER BY name"
        )
        return [Key(name, digest, tuple(json.loads(s)), *rest) for name, digest, s, *rest in rows]

    def put_key(self, key: Key) -> None:
        """Add a key, or put it in the place of the one with its name."""
        name, digest, scopes, made, *rest = key
        values = (name, digest, json.dumps(scopes), made, *rest)
        self._write(
            lambda link: link.execute(
                "INSERT INTO api_key (name, digest, scopes, made, ended, rate) "
                "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET "
                "digest = excluded.digest, scopes = excluded.scopes, made = excluded.made, "
                "ended = excluded.ended, rate = excluded.rate",
                values,
            )
        )

    def close(self) -> None:
        """Finish what waits, and let go of the database."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            free, self._free = self._free, []
            self._changed.notify()
        if self._process == os.getpid():
            self._thread.join()
            for link in free:
                link.close()


_WHETHER: Final = {
    None: "",
    True: "WHERE t.closed IS NOT NULL",
    False: "WHERE t.closed IS NULL",
}


def _joined(each: list[Wanted]) -> Wanted:
    """Everything that is wanted, once."""
    return Wanted(
        list(dict.fromkeys(name for one in each for name in one.tasks)),
        list(dict.fromkeys(pair for one in each for pair in one.steps)),
        list(dict.fromkeys(pair for one in each for pair in one.requests)),
        list(dict.fromkeys(pair for one in each for pair in one.units)),
    )


def _tried(work: Callable[[Any], Any], given: Any, link: Link) -> tuple[bool, Any]:
    """Call; errors of the database are raised, those of the operation returned."""
    try:
        return True, work(given)
    except link.errors:
        raise
    except Exception as error:
        return False, error


def _no_fold(version: int) -> Any:
    raise RuntimeError("the store does not know how to read tasks: call use(operations) first")


def _grouped(
    link: Link, columns: str, table: str, order: str, between: tuple[int, int]
) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    rows = link.query(
        f"SELECT {columns} FROM {table} WHERE task BETWEEN ? AND ? ORDER BY task, {order}", between
    )
    for task, *row in rows:
        found.setdefault(task, []).append(row)
    return found


def _public(error: BaseException, message: str) -> str:
    return f"{message}: {error.public}" if isinstance(error, Unavailable) else message


def _one_line(error: BaseException) -> str:
    return validation.shown(" ".join(str(error).split()), quoted=False, most=300)
