"""The session of operations in a database: it reads ahead and writes everything at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

from priorwise.core.errors import ArgumentError
from priorwise.serve.rows import REWARDS, Decided, Event, Task, copied
from priorwise.serve.stores.link import (
    CURRENT,
    DECIDED,
    DECIDED_SETTLED,
    EVENTS,
    NEW,
    SAVED,
    SETTLED,
    TASKS,
    WIDENED,
    Changes,
    Found,
    Link,
)
from priorwise.serve.stores.schema import EVENT, Part, Row
from priorwise.serve.stores.store import Batch, Wanted

if TYPE_CHECKING:
    from priorwise.serve.folding import Fold

K = TypeVar("K")
V = TypeVar("V")

LARGEST: Final = 1 << 62
LONGEST: Final = 500


class Raced(Exception):  # noqa: N818 - nothing is wrong
    """Another process opened the same task: start over."""


@final
class SqlSession:
    """What operations read and write, one after the other, until all of it is written at once.

    :meth:`undo` takes back what the last operation did.
    """

    def __init__(
        self, link: Link, fold: Callable[[int], Fold], wanted: Wanted | None = None
    ) -> None:
        """Find what is wanted, in a transaction that starts with it."""
        self._link, self._fold = link, fold
        self._version: int | None = None
        self._tasks: dict[str, Task | None] = {}
        self._widths: dict[str, int] = {}  # arms that a task has in the database
        self._mine: dict[str, Task] = {}  # of the operation that runs
        self._decided: dict[tuple[str, int], Decided | None] = {}
        self._settled: dict[tuple[str, int], Event | None] = {}
        self._requests: dict[tuple[str, str], Decided | Event | None] = {}
        self._units: dict[tuple[str, str], Decided | None] = {}
        self._undo: list[Callable[[], object]] = []
        self._saved: dict[str, bool] = {}
        self._more: dict[str, tuple[Decided, ...]] = {}
        self._happened: dict[str, tuple[Event, ...]] = {}
        if wanted is not None:
            self._read(link.find(wanted), wanted)

    def _read(self, found: Found, wanted: Wanted) -> None:
        self._version = found.version
        self._tasks = dict.fromkeys(wanted.tasks)
        self._decided = dict.fromkeys(wanted.steps)
        self._settled = dict.fromkeys(wanted.steps)
        self._requests = dict.fromkeys(wanted.requests)
        self._units = dict.fromkeys(wanted.units)
        for row in found.tasks:
            self._know(row)
        for name, *row in found.steps:
            self._know_decided(name, row)
        for name, *row in found.requests:
            decided = decided_of(row)
            self._requests[name, decided.request or ""] = decided
        for name, *row in found.recorded:
            event = event_of(row)
            self._requests[name, event.request or ""] = event
        for name, *row in found.units:
            decided = decided_of(row)
            self._units[name, decided.unit or ""] = decided

    def _know(self, row: Row) -> Task:
        task = self._tasks[row[0]] = task_of(row, self._fold)
        self._widths[task.name] = len(task.arms)
        return task

    def _know_decided(self, name: str, row: Row) -> Decided:
        decided, last = decided_of(row[: DECIDED.width]), row[DECIDED.width :]
        self._decided[name, decided.step] = decided
        self._settled[name, decided.step] = None if last[0] is None else event_of(last)
        return decided

    # -- one operation

    def start(self) -> None:
        """Start the next operation."""
        self._undo.clear()
        self._mine.clear()

    def keep(self) -> None:
        """Keep what the operation did."""
        self._tasks.update(self._mine)

    def undo(self) -> None:
        """Take back what the operation did."""
        for take_back in reversed(self._undo):
            take_back()
        self.start()

    def _set(self, where: dict[K, V], key: K, value: V) -> None:
        known = key in where
        before = partial(where.__setitem__, key, where[key]) if known else partial(where.pop, key)
        self._undo.append(before)
        where[key] = value

    # -- what operations call

    @property
    def version(self) -> int:
        """Number of the prior that new tasks start with."""
        if self._version is None:
            rows = self._link.query(CURRENT)
            self._version = int(rows[0][0]) if rows else 0
        return self._version

    def task(self, name: str, /) -> Task | None:
        """Return a task as it stands, as a value of this operation's own."""
        mine = self._mine.get(name)
        if mine is not None:
            return mine
        if name not in self._tasks:
            statement = f"SELECT {TASKS.listed()} FROM task WHERE name = ?"
            rows = self._link.query(statement, (name,)) if possible(name) else []
            self._tasks[name] = self._know(rows[0]) if rows else None
        task = self._tasks[name]
        if task is None:
            return None
        mine = self._mine[name] = copied(task)
        return mine

    def add_task(self, task: Task) -> None:
        """Keep a new task."""
        self._set(self._mine, task.name, task)
        self._set(self._tasks, task.name, task)

    def save(self, task: Task) -> None:
        """Keep what has changed of a task."""
        if task.steps >= LARGEST or task.events >= LARGEST:
            raise ArgumentError(
                "pulls", f"are more than a store can count, {task.steps:.3g} in all"
            )
        self._set(self._saved, task.name, True)

    def decided(self, task: str, step: int) -> Decided | None:
        """Return a decision."""
        key = (task, step)
        if key not in self._decided:
            where = f"decision d {SETTLED} WHERE d.task = ? AND d.step = ?"
            rows = self._of_task(DECIDED_SETTLED, where, task, step)
            if rows:
                return self._know_decided(task, rows[0])
            self._decided[key] = self._settled[key] = None
        return self._decided[key]

    def settled(self, task: str, step: int) -> Event | None:
        """Return the event that holds the reward of a decision."""
        if (task, step) not in self._settled:
            self.decided(task, step)
        return self._settled[task, step]

    def by_request(self, task: str, request: str) -> Decided | Event | None:
        """Return what a request of this id did before."""
        key = (task, request)
        if key not in self._requests:
            where = "WHERE task = ? AND request = ?"
            decided = self._of_task(DECIDED.listed(), f"decision {where}", task, request)
            events = self._of_task(EVENTS.listed(), f"event {where}", task, request)
            self._requests[key] = (
                decided_of(decided[0]) if decided else event_of(events[0]) if events else None
            )
        return self._requests[key]

    def by_unit(self, task: str, unit: str) -> Decided | None:
        """Return the first decision for a unit."""
        key = (task, unit)
        if key not in self._units:
            where = "decision WHERE task = ? AND unit = ?"
            rows = self._of_task(DECIDED.listed(), where, task, unit)
            self._units[key] = decided_of(rows[0]) if rows else None
        return self._units[key]

    def _of_task(self, columns: str, where: str, name: str, *values: str | int) -> list[Row]:
        """Rows of a task that the database has already."""
        task = self.task(name)
        if task is None or task.id is None:
            return []
        return self._link.query(f"SELECT {columns} FROM {where}", (task.id, *values))

    def add_decided(self, task: Task, row: Decided) -> None:
        """Log a decision."""
        name = task.name
        task.decisions += 1
        self._set(self._more, name, (*self._more.get(name, ()), row))
        self._set(self._decided, (name, row.step), row)
        self._set(self._settled, (name, row.step), None)
        if row.request is not None:
            self._set(self._requests, (name, row.request), row)
        if row.unit is not None:
            self._set(self._units, (name, row.unit), row)

    def add_batch(self, tasks: Sequence[Task], batch: Batch) -> None:
        """Log one decision about each of several tasks."""
        for task in tasks:
            self.add_decided(task, batch.row(task.name, task.steps))
            self.save(task)

    def add_event(self, task: Task, event: Event) -> None:
        """Log an event."""
        name = task.name
        task.rewards += event.kind in REWARDS
        self._set(self._happened, name, (*self._happened.get(name, ()), event))
        if event.step is not None:
            self._set(self._settled, (name, event.step), event)
        if event.request is not None:
            self._set(self._requests, (name, event.request), event)

    def events(self, task: str) -> list[Event]:
        """All events of a task, in order."""
        rows = self._of_task(EVENTS.listed(), "event WHERE task = ? ORDER BY number", task)
        return [*map(event_of, rows), *self._happened.get(task, ())]

    def decisions(self, task: str) -> list[Decided]:
        """All decisions of a task, in order."""
        where = f"decision d {SETTLED} WHERE d.task = ? ORDER BY d.step"
        # what was read before stays: the reward may have come in this transaction
        rows = [
            self._decided.get((task, row[0])) or self._know_decided(task, row)
            for row in self._of_task(DECIDED_SETTLED, where, task)
        ]
        return [*rows, *self._more.get(task, ())]

    # -- units: the whole store is locked, and the operation is alone in its transaction

    def of_unit(self, unit: str) -> list[tuple[Task, list[int]]]:
        """Tasks and steps of the decisions about a unit."""
        rows = self._link.query(
            "SELECT t.name, d.step FROM decision d JOIN task t ON t.id = d.task WHERE d.unit = ? "
            "ORDER BY t.id, d.step",
            (unit,),
        )
        steps: dict[str, list[int]] = {}
        for name, step in rows:
            steps.setdefault(name, []).append(step)
        return [(task, numbers) for name, numbers in steps.items() if (task := self.task(name))]

    def erase(self, unit: str) -> None:
        """Forget who a unit is, and what it brought along."""
        self._link.execute(
            "UPDATE decision SET unit = NULL, request = NULL, context = NULL WHERE unit = ?",
            (unit,),
        )
        self._forget()

    def replace_event(self, task: str, event: Event) -> None:
        """Put another event in the place of the one with its number."""
        row = self.task(task)
        if row is None:
            raise KeyError(task)
        values = [*EVENTS.written(event)[1:], row.id, event.number]
        self._link.update(EVENT, EVENTS.names[1:], [values])
        self._forget()

    def _forget(self) -> None:
        for cache in (self._decided, self._settled, self._requests, self._units):
            cache.clear()

    # -- writing

    @property
    def changed(self) -> bool:
        """Whether there is something to write."""
        return bool(self._saved or self._more or self._happened)

    def write(self) -> None:
        """Write everything and commit."""
        names = dict.fromkeys((*self._saved, *self._more, *self._happened))
        tasks = [task for name in names if (task := self._tasks[name]) is not None]
        new = {task.name: task for task in tasks if task.id is None}
        changes = Changes()
        for task in tasks:
            if task.id is not None:
                changes.tasks.append([*self._written(SAVED, task), task.id])
                if len(task.arms) != self._widths[task.name]:
                    changes.arms.append([*WIDENED.written(task), task.id])
        if new:
            ids = self._link.add_tasks([self._written(NEW, new[name]) for name in sorted(new)])
            if len(ids) < len(new):
                raise Raced
            for name, number in ids.items():
                new[name].id = number
        for task in tasks:
            last: dict[int, int] = {}
            for row in self._more.get(task.name, ()):
                changes.decisions.append([task.id, *DECIDED.written(row)])
            for event in self._happened.get(task.name, ()):
                changes.events.append([task.id, *EVENTS.written(event)])
                if event.step is not None:
                    last[event.step] = event.number
            changes.settled += [[number, task.id, step] for step, number in last.items()]
        self._link.write(changes)

    def _written(self, part: Part, task: Task) -> list[Any]:
        """Return the values of a task, with the bytes of its state."""
        values = part.written(task)
        values[part.names.index("state")] = self._fold(task.version).encode(task.state)
        return values


def possible(name: str) -> bool:
    """Whether a task, a unit or a request may be called so, and databases take it."""
    if len(name) > LONGEST or "\x00" in name:
        return False
    if not name.isascii():
        try:
            name.encode()
        except UnicodeEncodeError:
            return False
    return True


_STATE: Final = TASKS.names.index("state")
_VERSION: Final = TASKS.names.index("version")


def task_of(row: Row, fold: Callable[[int], Fold]) -> Task:
    """Return the task of a row."""
    values = TASKS.read(row)
    values[_STATE] = fold(values[_VERSION]).decode(values[_STATE])
    return Task(*values)


def decided_of(row: Row) -> Decided:
    """Return the decision of a row."""
    return Decided(*DECIDED.read(row))


def event_of(row: Row) -> Event:
    """Return the event of a row."""
    return Event(*EVENTS.read(row))
