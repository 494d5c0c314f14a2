"""A store that lasts as long as the process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, final

from msgspec.structs import replace

from priorwise.core import validation
from priorwise.serve.rows import REWARDS, Decided, Event, Key, Listed, Size, Task, Version, copied
from priorwise.serve.stores.store import NOTHING, Batch, R, Wanting, Work, next_number

if TYPE_CHECKING:
    from priorwise.serve.folding import Fold


_NO_REQUESTS: Final[dict[str, Decided | Event]] = {}
_NO_UNITS: Final[dict[str, int]] = {}


@final
class _Log:
    """What happened in one task."""

    __slots__ = ("decided", "events", "requests", "settled", "units")

    def __init__(self) -> None:
        self.decided: dict[int, Decided | Batch] = {}
        self.events: list[Event] = []
        self.settled: dict[int, int] = {}  # step -> number of the event with its reward
        self.requests: dict[str, Decided | Event] = _NO_REQUESTS  # most tasks have none
        self.units: dict[str, int] = _NO_UNITS


@final
class MemoryStore:
    """Keeps everything in memory: fast, and gone with the process. It is its own session."""

    durable: bool = False

    def __init__(self) -> None:
        """Start empty."""
        self._lock = threading.RLock()
        self._tasks: dict[str, Task] = {}
        self._logs: dict[str, _Log] = {}
        self._versions: list[Version] = []
        self._accepted: list[int] = []  # numbers of priors, in the order of their acceptance
        self._settings: list[str] = []
        self._values: dict[str, str] = {}
        self._keys: dict[str, Key] = {}
        self.task = self._tasks.get

    def use(self, fold: Callable[[int], Fold]) -> None:
        """States are kept as they are."""

    @property
    def version(self) -> int:
        """Number of the prior that new tasks start with; 0 if there is none."""
        return self._accepted[-1] if self._accepted else 0

    def run(self, work: Work[R], about: Wanting = NOTHING, /) -> R:
        """Return ``work(session)``."""
        with self._lock:
            return work(self)

    def submit(self, work: Work[R], about: Wanting = NOTHING, /) -> Future[R]:
        """Return the same as a future that is done."""
        future = Future[R]()
        try:
            future.set_result(self.run(work))
        except Exception as error:
            future.set_exception(error)
        return future

    def look(self, work: Work[R], /) -> R:
        """Return ``work(session)``, which writes nothing."""
        return self.run(work)

    # -- tasks

    def add_task(self, task: Task) -> None:
        """Keep a new task."""
        self._tasks[task.name] = task
        self._logs[task.name] = _Log()

    def save(self, task: Task) -> None:
        """Keep what has changed of a task: it is the same value."""

    def decided(self, task: str, step: int) -> Decided | None:
        """Return a decision; one that was made together with others becomes a row now."""
        decided = self._logs[task].decided
        row = decided.get(step)
        if row is not None and not isinstance(row, Decided):
            row = decided[step] = row.row(task, step)
        return row

    def by_request(self, task: str, request: str) -> Decided | Event | None:
        """Return what a request of this id did before."""
        return self._logs[task].requests.get(request)

    def by_unit(self, task: str, unit: str) -> Decided | None:
        """Return the first decision for a unit."""
        step = self._logs[task].units.get(unit)
        return None if step is None else self.decided(task, step)

    def add_decided(self, task: Task, row: Decided) -> None:
        """Log a decision."""
        log = self._logs[task.name]
        log.decided[row.step] = row
        task.decisions += 1
        if row.request is not None:
            log.requests = {} if log.requests is _NO_REQUESTS else log.requests
            log.requests[row.request] = row
        if row.unit is not None:
            log.units = {} if log.units is _NO_UNITS else log.units
            log.units[row.unit] = row.step

    def add_batch(self, tasks: Sequence[Task], batch: Batch) -> None:
        """Log one decision about each of several tasks."""
        logs = self._logs
        for task in tasks:
            logs[task.name].decided[task.steps] = batch
            task.decisions += 1

    def settled(self, task: str, step: int) -> Event | None:
        """Return the event that holds the reward of a decision."""
        log = self._logs[task]
        number = log.settled.get(step)
        return None if number is None else log.events[number - 1]

    def add_event(self, task: Task, event: Event) -> None:
        """Log an event."""
        log = self._logs[task.name]
        log.events.append(event)
        task.rewards += event.kind in REWARDS
        if event.step is not None:
            log.settled[event.step] = event.number
        if event.request is not None:
            log.requests = {} if log.requests is _NO_REQUESTS else log.requests
            log.requests[event.request] = event

    def events(self, task: str) -> list[Event]:
        """All events of a task, in order."""
        return list(self._logs[task].events)

    def decisions(self, task: str) -> list[Decided]:
        """All decisions of a task, in order."""
        rows = (self.decided(task, step) for step in list(self._logs[task].decided))
        return [row for row in rows if row is not None]

    def of_unit(self, unit: str) -> list[tuple[Task, list[int]]]:
        """Tasks and steps of the decisions about a unit."""
        steps = {
            name: [row.step for row in self.decisions(name) if row.unit == unit]
            for name in self._logs
        }
        return [(self._tasks[name], numbers) for name, numbers in steps.items() if numbers]

    def erase(self, unit: str) -> None:
        """Forget who a unit is, and what it brought along."""
        for name, log in self._logs.items():
            for row in self.decisions(name):
                if row.unit == unit:
                    log.requests.pop(row.request or "", None)
                    log.decided[row.step] = replace(row, unit=None, request=None, context=None)
            log.units.pop(unit, None)

    def replace_event(self, task: str, event: Event) -> None:
        """Put another event in the place of the one with its number."""
        self._logs[task].events[event.number - 1] = event

    # -- looking over tasks

    def names(self, *, closed: bool | None = None) -> list[str]:
        """Names of the tasks, in the order in which they were opened."""
        with self._lock:
            return [
                task.name
                for task in self._tasks.values()
                if closed is None or (task.closed is not None) == closed
            ]

    def tasks(
        self, *, closed: bool | None = None, most: int = 100, after: str | None = None
    ) -> list[Listed]:
        """List tasks, the newest first, from the one that follows the task ``after``."""
        most = validation.count("most", most)
        with self._lock:
            names = self.names(closed=closed)
            if after is not None:
                order = {name: place for place, name in enumerate(self._tasks)}
                names = [name for name in names if order[name] < order.get(after, -1)]
            tasks = [self._tasks[name] for name in names[::-1][:most]]
            return [Listed(*(getattr(task, name) for name in Listed._fields)) for task in tasks]

    def size(self) -> Size:
        """Count tasks, decisions and rewards."""
        with self._lock:
            tasks = list(self._tasks.values())
            closed = sum(task.closed is not None for task in tasks)
            decisions, rewards = sum(t.decisions for t in tasks), sum(t.rewards for t in tasks)
            return Size(len(tasks) - closed, closed, decisions, rewards)

    def outstanding(self, before: float, most: int) -> list[tuple[str, int]]:
        """Tasks and steps of decisions made before a time whose rewards are not known."""
        with self._lock:
            waiting = (
                (name, row.step)
                for name, log in self._logs.items()
                for row in self.decisions(name)
                if row.counts is None and row.time < before and row.step not in log.settled
            )
            return [pair for pair, _ in zip(waiting, range(most), strict=False)]

    def rows(self) -> Iterator[tuple[Task, list[Decided], list[Event]]]:
        """Every task with its log."""
        for name in self.names():
            with self._lock:
                row = copied(self._tasks[name]), self.decisions(name), self.events(name)
            yield row

    # -- priors and settings

    def versions(self) -> list[Version]:
        """Every prior, the first one first."""
        with self._lock:
            return list(self._versions)

    def put_version(self, version: Version) -> int:
        """Add a prior, or change the status of one; return its number."""
        with self._lock:
            priors = {each.number: each.prior for each in self._versions}
            number = version.number
            if priors.get(number, version.prior) != version.prior:
                number = next_number(number, priors)
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
        with self._lock:
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
        with self._lock:
            return sorted(self._keys.values())

    def put_key(self, key: Key) -> None:
        """Add a key, or put it in the place of the one with its name."""
        with self._lock:
            self._keys[key.name] = key

    def close(self) -> None:
        """Nothing is held open."""
