"""The session of operations in a database: it reads ahead and writes everything at once."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Final, final

from priorwise.serve.rows import REWARDS, Decided, Event, Task, copied
from priorwise.serve.stores.link import (
    BY_REQUEST,
    BY_UNIT,
    CURRENT,
    DECIDED,
    EVENT,
    EVENT_BY_REQUEST,
    ONE_DECIDED,
    ONE_TASK,
    SETTLED,
    WIDTH,
    Changes,
    Found,
    Link,
    Wanted,
)

LARGEST: Final = 1 << 62
LONGEST: Final = 500


class Raced(Exception):  # noqa: N818 - nothing is wrong
    """Another process opened the same task: start over."""


@final
class SqlSession:
    """What operations read and write, one after the other, until all of it is written at once.

    :meth:`undo` takes back what the last operation did.
    """

    def __init__(self, link: Link, fold: Any, found: Found | None = None, wanted: Any = None):
        """Start with what was found of what was wanted."""
        self._link, self._fold = link, fold
        self._version: int | None = None
        self._ids: dict[str, int] = {}
        self._tasks: dict[str, Task | None] = {}
        self._mine: dict[str, Task] = {}  # of the operation that runs
        self._decided: dict[tuple[str, int], Decided | None] = {}
        self._settled: dict[tuple[str, int], Event | None] = {}
        self._requests: dict[tuple[str, str], Decided | Event | None] = {}
        self._units: dict[tuple[str, str], Decided | None] = {}
        self._undo: list[tuple[dict[Any, Any], Any, Any]] = []
        self._new: dict[str, bool] = {}
        self._saved: dict[str, bool] = {}
        self._widths: dict[str, int] = {}  # arms that a task had
        self._more: dict[str, tuple[Decided, ...]] = {}
        self._happened: dict[str, tuple[Event, ...]] = {}
        if found is not None:
            self._prefetched(found, wanted)

    def _prefetched(self, found: Found, wanted: Wanted) -> None:
        self._version = found.version
        self._tasks = dict.fromkeys(wanted.tasks)
        self._decided = dict.fromkeys(wanted.steps)
        self._settled = dict.fromkeys(wanted.steps)
        self._requests = dict.fromkeys(wanted.requests)
        self._units = dict.fromkeys(wanted.units)
        for row in found.tasks:
            self._known(row)
        for name, *row in found.steps:
            self._known_decided(name, row)
        for name, *row in found.requests:
            decided = decided_of(row)
            self._requests[name, decided.request] = decided  # type: ignore[index]
        for name, *row in found.recorded:
            event = event_of(row)
            self._requests[name, event.request] = event  # type: ignore[index]
        for name, *row in found.units:
            decided = decided_of(row)
            self._units[name, decided.unit] = decided  # type: ignore[index]

    def _known(self, row: Any) -> Task:
        task = task_of(row, self._fold)
        self._ids[task.name], self._tasks[task.name] = row[0], task
        self._widths[task.name] = len(task.arms)
        return task

    def _known_decided(self, name: str, row: Any) -> Decided:
        decided = decided_of(row[:WIDTH])
        self._decided[name, decided.step] = decided
        self._settled[name, decided.step] = (
            None if row[WIDTH] is None else event_of(row[WIDTH : WIDTH + 10])
        )
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
        for where, key, before in reversed(self._undo):
            if before is _NOTHING:
                del where[key]
            else:
                where[key] = before
        self.start()

    def _set(self, where: dict[Any, Any], key: Any, value: Any) -> None:
        self._undo.append((where, key, where.get(key, _NOTHING)))
        where[key] = value

    # -- what operations call

    @property
    def version(self) -> int:
        """Number of the prior that new tasks start with."""
        if self._version is None:
            rows = self._link.query(CURRENT)
            self._version = rows[0][0] if rows else 0
        return self._version

    def task(self, name: str) -> Task | None:
        """Return a task as it stands, as a value of this operation's own."""
        found = self._mine.get(name)
        if found is not None:
            return found
        if name in self._tasks:
            known = self._tasks[name]
        else:
            rows = self._link.query(ONE_TASK, (name,)) if possible(name) else []
            known = self._known(rows[0]) if rows else None
            self._tasks[name] = known
        if known is None:
            return None
        found = self._mine[name] = copied(known)
        return found

    def add_task(self, task: Task) -> None:
        """Keep a new task."""
        self._set(self._new, task.name, True)
        self._set(self._mine, task.name, task)
        self._set(self._tasks, task.name, task)

    def save(self, task: Task) -> None:
        """Keep what has changed of a task."""
        if task.steps >= LARGEST or task.events >= LARGEST:
            raise ValueError(f"pulls are more than a store can count, {task.steps:.3g} in all")
        self._set(self._saved, task.name, True)

    def decided(self, task: str, step: int) -> Decided | None:
        """Return a decision."""
        key = (task, step)
        if key not in self._decided:
            rows = self._of_task(ONE_DECIDED, task, step)
            if rows:
                return self._known_decided(task, rows[0])
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
            rows = self._of_task(BY_REQUEST, task, request)
            found: Any = decided_of(rows[0]) if rows else None
            if found is None:
                rows = self._of_task(EVENT_BY_REQUEST, task, request)
                found = event_of(rows[0]) if rows else None
            self._requests[key] = found
        return self._requests[key]

    def by_unit(self, task: str, unit: str) -> Decided | None:
        """Return the first decision for a unit."""
        key = (task, unit)
        if key not in self._units:
            rows = self._of_task(BY_UNIT, task, unit)
            self._units[key] = decided_of(rows[0]) if rows else None
        return self._units[key]

    def _of_task(self, statement: str, task: str, value: Any) -> list[Any]:
        """Rows of a task that the database has already."""
        if self.task(task) is None or task not in self._ids:
            return []
        return self._link.query(statement, (self._ids[task], value))

    def add_decided(self, task: Task, row: Decided) -> None:
        """Log a decision."""
        name = task.name
        self._set(self._more, name, (*self._more.get(name, ()), row))
        self._set(self._decided, (name, row.step), row)
        self._set(self._settled, (name, row.step), None)
        if row.request is not None:
            self._set(self._requests, (name, row.request), row)
        if row.unit is not None:
            self._set(self._units, (name, row.unit), row)

    def add_event(self, task: Task, event: Event) -> None:
        """Log an event."""
        name = task.name
        self._set(self._happened, name, (*self._happened.get(name, ()), event))
        if event.step is not None:
            self._set(self._settled, (name, event.step), event)
        if event.request is not None:
            self._set(self._requests, (name, event.request), event)

    def events(self, task: str) -> list[Event]:
        """All events of a task, in order."""
        rows = self._all(f"SELECT {EVENT} FROM event e WHERE e.task = ? ORDER BY e.number", task)
        return [*map(event_of, rows), *self._happened.get(task, ())]

    def decisions(self, task: str) -> list[Decided]:
        """All decisions of a task, in order."""
        rows = self._all(
            f"SELECT {DECIDED}, {EVENT} FROM decision d {SETTLED} WHERE d.task = ? ORDER BY d.step",
            task,
        )
        found = []
        for row in rows:
            key = (task, row[0])
            # what was read before stays: the reward may have come in this transaction
            found.append(self._decided.get(key) or self._known_decided(task, row))
        return [*found, *self._more.get(task, ())]

    def _all(self, statement: str, task: str) -> list[Any]:
        if self.task(task) is None or task not in self._ids:
            return []
        return self._link.query(statement, (self._ids[task],))

    # -- units: the whole store is locked, and the operation is alone in its transaction

    def of_unit(self, unit: str) -> list[tuple[Task, list[int]]]:
        """Tasks and steps of the decisions about a unit."""
        rows = self._link.query(
            "SELECT t.name, d.step FROM decision d JOIN task t ON t.id = d.task WHERE d.unit = ? "
            "ORDER BY t.id, d.step",
            (unit,),
        )
        found: dict[str, list[int]] = {}
        for name, step in rows:
            found.setdefault(name, []).append(step)
        return [(task, steps) for name, steps in found.items() if (task := self.task(name))]

    def erase(self, unit: str) -> None:
        """Forget who a unit is, and what it brought along."""
        self._link.execute(
            "UPDATE decision SET unit = NULL, request = NULL, context = NULL WHERE unit = ?",
            (unit,),
        )
        for known in (self._decided, self._settled, self._requests, self._units):
            known.clear()

    def replace_event(self, task: str, event: Event) -> None:
        """Put another event in the place of the one with its number."""
        if self.task(task) is None:
            raise KeyError(task)
        row = _event_row(event)
        self._link.execute(
            "UPDATE event SET kind = ?, step = ?, arm = ?, pulls = ?, value = ?, squares = ?, "
            "time = ?, request = ?, state = ? WHERE task = ? AND number = ?",
            (*row[1:], self._ids[task], event.number),
        )
        for known in (self._settled, self._decided, self._requests):
            known.clear()

    # -- writing

    @property
    def changed(self) -> bool:
        """Whether there is something to write."""
        return bool(self._new or self._saved or self._more or self._happened)

    def write(self) -> None:
        """Write everything and commit."""
        if self._new:
            new = sorted(self._new)
            added = self._link.add_tasks([self._task_row(name) for name in new])
            if len(added) < len(new):
                raise Raced
            self._ids.update(added)
        self._link.write(self._changes())

    def _task_row(self, name: str) -> tuple[Any, ...]:
        task = self._at(name)
        return (
            name,
            signed(task.key),
            task.version,
            json.dumps(task.arms),
            self._fold(task.version).encode(task.state),
            float(task.opened),
            0,
            0,
            None,
        )

    def _at(self, name: str) -> Task:
        task = self._tasks[name]
        assert task is not None
        return task

    def _changes(self) -> Changes:
        ids = self._ids
        decisions = [
            (ids[name], *_decided_row(row)) for name, rows in self._more.items() for row in rows
        ]
        settled: dict[tuple[int, int], int] = {}
        events = []
        for name, happened in self._happened.items():
            for event in happened:
                events.append((ids[name], *_event_row(event)))
                if event.step is not None:
                    settled[ids[name], event.step] = event.number
        tasks, arms = [], []
        for name in dict.fromkeys((*self._saved, *self._more, *self._happened)):
            task = self._at(name)
            state = self._fold(task.version).encode(task.state)
            rewards = sum(each.kind in REWARDS for each in self._happened.get(name, ()))
            closed = None if task.closed is None else float(task.closed)
            tasks.append(
                (
                    state, task.steps, task.events, closed, len(self._more.get(name, ())), rewards,
                    ids[name],
                )
            )  # fmt: skip
            if len(task.arms) != self._widths.get(name, len(task.arms)):
                arms.append((json.dumps(task.arms), ids[name]))
        return Changes(
            decisions, events, [(number, *key) for key, number in settled.items()], tasks, arms
        )


_NOTHING: Final = object()


def possible(name: Any) -> bool:
    """Whether a task, unit or request can be called so."""
    if type(name) is not str or not 0 < len(name) <= LONGEST or "\x00" in name:
        return False
    if not name.isascii():
        try:
            name.encode()
        except UnicodeEncodeError:
            return False
    return True


def signed(key: int) -> int:
    """Return the number with the same 64 bits that databases can keep."""
    return key - (1 << 64) if key >> 63 else key


@lru_cache(maxsize=128)  # of names that may be long
def arms_of(text: str) -> tuple[str, ...]:
    """Names of arms."""
    return tuple(json.loads(text))


def task_of(row: Any, fold: Any) -> Task:
    """Return the task of a row."""
    _, name, key, version, arms, state, opened, steps, events, closed = row
    known = fold(version).decode(bytes(state))
    key = key + (1 << 64) if key < 0 else key
    return Task(name, key, version, arms_of(arms), known, opened, steps, events, closed)


def decided_of(row: Any) -> Decided:
    """Return the decision of a row."""
    context, unit, request, counts = row[10:WIDTH]
    counted = None if counts is None else tuple(json.loads(counts))
    known = None if context is None else json.loads(context)
    return Decided._make((*row[:10], known, unit, request, counted))


def event_of(row: Any) -> Event:
    """Return the event of a row."""
    state = row[9]
    return Event._make((*row[:9], None if state is None else bytes(state)))


def _decided_row(row: Decided) -> tuple[Any, ...]:
    context, counts = row.context, row.counts
    return (
        row.step,
        row.arm,
        row.width,
        row.seen,
        float(row.time),
        row.settings,
        row.pulls,
        row.mask,
        None if row.propensity is None else float(row.propensity),
        None if row.error is None else float(row.error),
        None if context is None else json.dumps(context),
        row.unit,
        row.request,
        None if counts is None else json.dumps(counts),
    )


def _event_row(event: Event) -> tuple[Any, ...]:
    return (
        event.number,
        event.kind,
        event.step,
        event.arm,
        float(event.pulls),
        None if event.value is None else float(event.value),
        None if event.squares is None else float(event.squares),
        float(event.time),
        event.request,
        event.state,
    )
