"""A store that lasts as long as the process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, final

from priorwise.core import validation
from priorwise.serve.rows import REWARDS, Decided, Event, Key, Listed, Size, Task, Version, copied
from priorwise.serve.stores.store import R, next_number


@final
class _Log:
    """What happened in one task."""

    __slots__ = ("decided", "events", "requests", "settled", "units")

    def __init__(self) -> None:
        self.decided: dict[int, Any] = {}  # Decided, or the batch that it is of
        self.events: list[Event] = []
        self.settled: dict[int, int] = {}  # step -> number of the event with its reward
        self.requests: dict[str, Any] | None = None
        self.units: dict[str, int] | None = None


@final
class MemoryStore:
    """Keeps everything in memory: fast, and gone with the process. It is its own session."""

    durable = False

    def __init__(self) -> None:
        """Start empty."""
        self.lock = threading.RLock()
        self._tasks: dict[str, Task] = {}
        self._logs: dict[str, _Log] = {}
        self._versions: list[Version] = []
        self._accepted: list[int] = []  # numbers of priors, in the order of their acceptance
        self._settings: list[str] = []
        self._values: dict[str, str] = {}
        self._keys: dict[str, Key] = {}
        self.task = self._tasks.get

    def session(self, **wanted: Any) -> MemoryStore:
        """Return itself, for use in a ``with`` statement."""
        return self

    def use(self, operations: Any) -> None:
        """States are kept as they are."""

    @property
    def version(self) -> int:
        """Number of the prior that new tasks start with; 0 if there is none."""
        return self._accepted[-1] if self._accepted else 0

    def run(self, work: Callable[[Any], R], **wanted: Any) -> R:
        """Return ``work(session)``."""
        with self.lock:
            return work(self)

    def look(self, work: Callable[[Any], R]) -> R:
        """Return ``work(session)``, which writes nothing."""
        return self.run(work)

    @contextmanager
    def all_or_none(self, names: list[str]) -> Iterator[None]:
        """Take decisions about tasks back where a later one is refused."""
        kept: dict[str, Any] = {}
        for name in names:
            task = self._tasks.get(name)
            kept[name] = task and (task.arms, task.places, task.state, task.steps)
        try:
            yield
        except BaseException:
            for name, was in kept.items():
                if was is None:
                    self._tasks.pop(name, None)
                    self._logs.pop(name, None)
                    continue
                task, log = self._tasks[name], self._logs[name]
                for step in range(was[3] + 1, task.steps + 1):
                    row = log.decided.pop(step)
                    if log.requests and type(row) is Decided and row.request is not None:
                        del log.requests[row.request]
                task.arms, task.places, task.state, task.steps = was
            raise

    def __enter__(self) -> MemoryStore:
        self.lock.acquire()
        return self

    def __exit__(self, *error: Any) -> None:
        self.lock.release()

    # -- tasks

    def add_task(self, task: Task) -> None:
        """Keep a new task."""
        self._tasks[task.name] = task
        task.log = self._logs[task.name] = _Log()

    def save(self, task: Task) -> None:
        """Keep what has changed of a task: it is the same value."""

    def decided(self, task: str, step: int) -> Decided | None:
        """Return a decision."""
        return self._row(task, self._logs[task], step)

    def by_request(self, task: str, request: str) -> Decided | Event | None:
        """Return what a request of this id did before."""
        requests = self._logs[task].requests
        return None if requests is None else requests.get(request)

    def by_unit(self, task: str, unit: str) -> Decided | None:
        """Return the first decision for a unit."""
        log = self._logs[task]
        none = log.units is None or unit not in log.units
        return None if none else self._row(task, log, log.units[unit])  # type: ignore[index]

    def add_decided(self, task: Task, row: Decided) -> None:
        """Log a decision."""
        log = self._logs[task.name]
        log.decided[row.step] = row
        if row.request is not None:
            log.requests = log.requests or {}
            log.requests[row.request] = row
        if row.unit is not None:
            log.units = log.units or {}
            log.units[row.unit] = row.step

    def settled(self, task: str, step: int) -> Event | None:
        """Return the event that holds the reward of a decision."""
        log = self._logs[task]
        number = log.settled.get(step)
        return None if number is None else log.events[number - 1]

    def add_event(self, task: Task, event: Event) -> None:
        """Log an event."""
        log = self._logs[task.name]
        log.events.append(event)
        if event.step is not None:
            log.settled[event.step] = event.number
        if event.request is not None:
            log.requests = log.requests or {}
            log.requests[event.request] = event

    def events(self, task: str) -> list[Event]:
        """All events of a task, in order."""
        return list(self._logs[task].events)

    def decisions(self, task: str) -> list[Decided]:
        """All decisions of a task, in order."""
        log = self._logs[task]
        return [self._row(task, log, step) for step in log.decided]  # type: ignore[misc]

    @staticmethod
    def _row(task: str, log: _Log, step: int) -> Decided | None:
        """Return a decision; one that was made together with others becomes a row now."""
        row = log.decided.get(step)
        if row is not None and type(row) is not Decided:
            row = log.decided[step] = row.row(task, step)
        return row

    def of_unit(self, unit: str) -> list[tuple[Task, list[int]]]:
        """Tasks and steps of the decisions about a unit."""
        found = []
        for name in self._logs:
            steps = [each.step for each in self.decisions(name) if each.unit == unit]
            if steps:
                found.append((self._tasks[name], steps))
        return found

    def erase(self, unit: str) -> None:
        """Forget who a unit is, and what it brought along."""
        for name, log in self._logs.items():
            steps = [each.step for each in self.decisions(name) if each.unit == unit]
            for step in steps:
                row = log.decided[step]
                if row.request is not None and log.requests is not None:
                    log.requests.pop(row.request, None)
                log.decided[step] = row._replace(unit=None, request=None, context=None)
            if log.units is not None:
                log.units.pop(unit, None)

    def replace_event(self, task: str, event: Event) -> None:
        """Put another event in the place of the one with its number."""
        self._logs[task].events[event.number - 1] = event

    # -- looking over tasks

    def names(self, *, closed: bool | None = None) -> list[str]:
        """Names of the tasks, in the order in which they were opened."""
        with self.lock:
            return [
                each.name
                for each in self._tasks.values()
                if closed is None or (each.closed is not None) == closed
            ]

    def tasks(
        self, *, closed: bool | None = None, most: int = 100, after: str | None = None
    ) -> list[Listed]:
        """List tasks, the newest first, from the one that follows the task ``after``."""
        names = self.names(closed=closed)[::-1]
        if after is not None:
            order = {name: place for place, name in enumerate(self.names())}
            start = order.get(after, -1)
            names = [name for name in names if order[name] < start]
        with self.lock:
            found = [self._tasks[name] for name in names[: validation.count("most", most)]]
            return [
                Listed(t.name, t.version, t.arms, t.steps, t.events, t.opened, t.closed)
                for t in found
            ]

    def size(self) -> Size:
        """Count tasks, decisions and rewards."""
        with self.lock:
            closed = sum(each.closed is not None for each in self._tasks.values())
            decisions = sum(len(each.decided) for each in self._logs.values())
            rewards = sum(
                each.kind in REWARDS for log in self._logs.values() for each in log.events
            )
            return Size(len(self._tasks) - closed, closed, decisions, rewards)

    def outstanding(self, before: float, most: int) -> list[tuple[str, int]]:
        """Tasks and steps of decisions made before a time whose rewards are not known."""
        with self.lock:
            found = []
            for name, log in self._logs.items():
                for row in self.decisions(name):
                    late = row.counts is None and row.time < before
                    if late and row.step not in log.settled:
                        found.append((name, row.step))
                        if len(found) == most:
                            return found
            return found

    def rows(self) -> Iterator[tuple[Task, list[Decided], list[Event]]]:
        """Every task with its log."""
        for name in self.names():
            with self.lock:
                row = copied(self._tasks[name]), self.decisions(name), self.events(name)
            yield row

    # -- priors and settings

    def versions(self) -> list[Version]:
        """Every prior, the first one first."""
        with self.lock:
            return list(self._versions)

    def put_version(self, version: Version) -> int:
        """Add a prior, or change the status of one; return its number."""
        with self.lock:
            known = {each.number: each.prior for each in self._versions}
            number = version.number
            if number in known and known[number] != version.prior:
                number = next_number(number, known)
            self._versions[number - 1 : number] = [version._replace(number=number)]
            self._accepted = [each for each in self._accepted if each != number]
            if version.status == "accepted":
                self._accepted.append(number)
            return number

    def settings(self) -> list[str]:
        """Every set of settings that ever decided, as JSON."""
        return list(self._settings)

    def add_settings(self, text: str) -> int:
        """Return the number of these settings, which are added if they are new."""
        with self.lock:
            if text not in self._settings:
                self._settings.append(text)
            return self._settings.index(text) + 1

    def value(self, name: str) -> str | None:
        """Return a value that the service keeps."""
        return self._values.get(name)

    def put_value(self, name: str, value: str) -> None:
        """Keep a value."""
        self._values[name] = value

    def keys(self) -> list[Key]:
        """Every key of the service, by name."""
        with self.lock:
            return sorted(self._keys.values())

    def put_key(self, key: Key) -> None:
        """Add a key, or put it in the place of the one with its name."""
        with self.lock:
            self._keys[key.name] = key

    def close(self) -> None:
        """Nothing is held open."""


def some(names: Iterable[str]) -> list[str]:
    """Sort and drop repeats: the order in which tasks are locked."""
    return sorted(set(names))
