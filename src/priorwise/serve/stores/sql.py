"""What stores that use SQL share: group commit, and reading.

One thread per process writes. It takes all operations that wait, runs them one after the other in
one transaction in which their tasks are locked, commits, and then answers all of them: so a commit,
which waits for the disk, serves as many as came meanwhile. Statistics are summed up in the process;
nothing is kept in it from one transaction to the next, so any number of processes may share a
database.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NoReturn, final

from priorwise.core import validation
from priorwise.core.errors import shown
from priorwise.serve.ahead import CLIENT, Turns
from priorwise.serve.errors import Unavailable
from priorwise.serve.rows import Decided, Event, Key, Listed, Size, Task, Version
from priorwise.serve.stores.link import DECIDED, EVENTS, TASKS, Link, upsert
from priorwise.serve.stores.schema import KEY, PRIOR, SETTINGS, TASK, VALUE, Value
from priorwise.serve.stores.session import (
    LARGEST,
    Raced,
    SqlSession,
    decided_of,
    event_of,
    possible,
    task_of,
)
from priorwise.serve.stores.store import NOTHING, R, Wanted, Wanting, Work, next_number

if TYPE_CHECKING:
    from priorwise.serve.folding import Fold

MOST: Final = 50
"""Operations in one transaction, about as many tasks. Clients take turns, so it is also about what
an operation waits for.
"""
AGAIN: Final = 20
"""How often a transaction starts over where other processes open the same tasks."""
AT_ONCE: Final = 100
"""Tasks that are read at once where all are."""
IDLE: Final = 4
"""Connections that are kept for reading."""


LISTED: Final = TASK.part(Listed._fields)
VERSIONS: Final = PRIOR.part(Version._fields)
KEYS: Final = KEY.part(Key._fields)


@final
class _Job:
    """An operation that waits."""

    __slots__ = ("future", "wanted", "work", "writes")

    def __init__(self, wanted: Wanted, work: Work[Any] | None, writes: Writes | None) -> None:
        """``work`` has a session; ``writes`` has the connection in a transaction of its own."""
        self.work, self.wanted, self.writes = work, wanted, writes
        self.future: Future[Any] = Future()  # whatever the operation returns

    @property
    def alone(self) -> bool:
        """Whether it needs a transaction of its own."""
        return self.writes is not None or self.wanted.whole or len(self.wanted.tasks) >= MOST


Writes = Callable[[Link], Any]


class SqlStore(ABC):
    """A store in a database. Operations of one process are written by one thread."""

    durable: bool = True

    def __init__(self) -> None:
        """Start the thread; the database is up to date already."""
        self._fold: Callable[[int], Fold] = _no_fold
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

    def use(self, fold: Callable[[int], Fold]) -> None:
        """Take note of what encodes and decodes states."""
        self._fold = fold

    # -- operations

    def run(self, work: Work[R], about: Wanting = NOTHING, /) -> R:
        """Return ``work(session)`` once what it wrote is on the disk."""
        return self.submit(work, about).result()

    def submit(self, work: Work[R], about: Wanting = NOTHING, /) -> Future[R]:
        """Return what :meth:`run` will return, without waiting for it."""
        wanted = about.wanted()
        # names that no task can have are not asked for: one of them must not harm the others
        clean = Wanted(
            [name for name in wanted.tasks if possible(name)],
            [each for each in wanted.steps if possible(each[0]) and 0 <= each[1] < LARGEST],
            [each for each in wanted.requests if possible(each[0]) and possible(each[1])],
            [each for each in wanted.units if possible(each[0]) and possible(each[1])],
            wanted.whole,
        )
        return self._submitted(_Job(clean, work, None))

    def _submitted(self, job: _Job) -> Future[Any]:
        self._check_process()
        if threading.current_thread() is self._thread:
            raise RuntimeError("an operation must not start another one")
        with self._lock:
            if self._closed:
                raise Unavailable("the store is closed")
            self._waiting.put(CLIENT.get(), job)
            self._changed.notify()
        return job.future

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise Unavailable("the store was opened by another process: open it again in this one")

    def _write(self, writes: Callable[[Link], R]) -> R:
        """Return ``writes(link)``, in a transaction of its own."""
        return self._submitted(_Job(NOTHING, None, writes)).result()

    def _serve(self) -> None:
        """Serve operations until the store is closed."""
        while batch := self._batch():
            together: list[_Job] = []
            for each in batch:
                if not each.future.set_running_or_notify_cancel():
                    continue
                if each.alone:
                    self._commit(together)
                    self._commit([each])
                    together = []
                else:
                    together.append(each)
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
                if len(job.wanted.tasks) > 1:
                    break  # a decision about one task waits for at most one job about many
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
        first, answers = jobs[0], []
        if first.writes is not None:
            link.begin()
            answer = _tried(first.writes, link, link)
            link.commit() if answer[0] else link.rollback()
            return [answer]
        if first.wanted.whole:
            link.begin()
            link.lock(TASK)
            session = SqlSession(link, self._fold)
        else:
            session = SqlSession(link, self._fold, _joined([job.wanted for job in jobs]))
        for job in jobs:
            assert job.work is not None
            session.start()
            answer = _tried(job.work, session, link)
            if answer[0] or getattr(answer[1], "kept", False):
                session.keep()
            else:
                session.undo()
            answers.append(answer)
        erased = first.wanted.whole and answers[0][0]
        if session.changed or erased:
            session.write()
        else:
            link.rollback()
        if erased:
            link.tidy()
        return answers

    # -- reading

    def look(self, work: Work[R], /) -> R:
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

    def _read(self, statement: str, values: Sequence[Value] = ()) -> list[Any]:
        with self._reading() as link:
            return link.query(statement, values)

    @contextmanager
    def _reading(self) -> Iterator[Link]:
        """Lend a connection that reads."""
        self._check_process()
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
        where, values = _WHETHER[closed], [validation.count("most", most)]
        if after is not None:
            where += " AND " if where else "WHERE "
            where += "t.id < (SELECT a.id FROM task a WHERE a.name = ?)"
            values = [after if possible(after) else "", *values]  # type: ignore[list-item]
        rows = self._read(
            f"SELECT {LISTED.listed('t')} FROM task t {where} ORDER BY t.id DESC LIMIT ?", values
        )
        return [Listed(*LISTED.read(row)) for row in rows]

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
            decisions: dict[int, list[Decided]] = {}
            events: dict[int, list[Event]] = {}
            with self._reading() as link:
                link.begin_reading()
                try:
                    rows = link.query(
                        f"SELECT {TASKS.listed()} FROM task WHERE id > ? ORDER BY id LIMIT ?",
                        (last, AT_ONCE),
                    )
                    tasks = [task_of(row, self._fold) for row in rows]
                    if not tasks:
                        return
                    between, last = (tasks[0].id, tasks[-1].id), tasks[-1].id or 0
                    where = "WHERE task BETWEEN ? AND ? ORDER BY task"
                    statement = f"SELECT task, {DECIDED.listed()} FROM decision {where}, step"
                    for task, *row in link.query(statement, between):
                        decisions.setdefault(task, []).append(decided_of(row))
                    statement = f"SELECT task, {EVENTS.listed()} FROM event {where}, number"
                    for task, *row in link.query(statement, between):
                        events.setdefault(task, []).append(event_of(row))
                finally:
                    link.rollback()
            for each in tasks:
                number = each.id or 0
                yield each, decisions.get(number, []), events.get(number, [])

    # -- priors, settings, values and keys

    def versions(self) -> list[Version]:
        """Every prior, the first one first."""
        rows = self._read(f"SELECT {VERSIONS.listed()} FROM prior ORDER BY number")
        return [Version(*VERSIONS.read(row)) for row in rows]

    def put_version(self, version: Version) -> int:
        """Add a prior, or change the status of one; return its number."""

        def work(link: Link) -> int:
            link.lock(PRIOR)
            priors = dict(link.query("SELECT number, prior FROM prior"))
            number = version.number
            if priors.get(number, version.prior) != version.prior:
                number = next_number(number, priors)
            count = None
            if version.status == "accepted":
                count = link.query("SELECT 1 + coalesce(max(acceptance), 0) FROM prior")[0][0]
            row = VERSIONS.written(version._replace(number=number))
            link.execute(upsert(PRIOR), [*row, count])
            return number

        return self._write(work)

    def settings(self) -> list[str]:
        """Every set of settings that ever decided, as JSON."""
        return [text for (text,) in self._read("SELECT text FROM settings ORDER BY number")]

    def add_settings(self, text: str) -> int:
        """Return the number of these settings, which are added if they are new."""

        def work(link: Link) -> int:
            link.lock(SETTINGS)
            texts = [row[0] for row in link.query("SELECT text FROM settings ORDER BY number")]
            if text not in texts:
                texts.append(text)
                link.execute(upsert(SETTINGS), (len(texts), text))
            return texts.index(text) + 1

        return self._write(work)

    def value(self, name: str) -> str | None:
        """Return a value that the service keeps."""
        rows = self._read("SELECT value FROM value WHERE name = ?", (name,))
        return rows[0][0] if rows else None

    def put_value(self, name: str, value: str) -> None:
        """Keep a value."""
        self._write(lambda link: link.execute(upsert(VALUE), (name, value)))

    def keys(self) -> list[Key]:
        """Every key of the service, by name."""
        rows = self._read(f"SELECT {KEYS.listed()} FROM api_key ORDER BY name")
        return [Key(*KEYS.read(row)) for row in rows]

    def put_key(self, key: Key) -> None:
        """Add a key, or put it in the place of the one with its name."""
        self._write(lambda link: link.execute(upsert(KEY), KEYS.written(key)))

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


def _joined(wanted: list[Wanted]) -> Wanted:
    """Return everything that is wanted, once."""
    return Wanted(
        list(dict.fromkeys(name for each in wanted for name in each.tasks)),
        list(dict.fromkeys(pair for each in wanted for pair in each.steps)),
        list(dict.fromkeys(pair for each in wanted for pair in each.requests)),
        list(dict.fromkeys(pair for each in wanted for pair in each.units)),
    )


def _tried(work: Callable[[Any], Any], given: object, link: Link) -> tuple[bool, Any]:
    """Call; errors of the database are raised, those of the operation returned."""
    try:
        return True, work(given)
    except link.errors:
        raise
    except Exception as error:
        return False, error


def _no_fold(version: int) -> NoReturn:
    raise RuntimeError("the store does not know how to read tasks: call use(fold) first")


def _public(error: BaseException, message: str) -> str:
    return f"{message}: {error.public}" if isinstance(error, Unavailable) else message


def _one_line(error: BaseException) -> str:
    return shown(" ".join(str(error).split()), quoted=False, most=300)
