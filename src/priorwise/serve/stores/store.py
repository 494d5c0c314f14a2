"""What a store has to keep: ``priorwise.testing.StoreContract`` tests it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from priorwise.serve.errors import Conflict
from priorwise.serve.rows import Decided, Event, Key, Listed, Size, Task, Version

if TYPE_CHECKING:
    from priorwise.serve.folding import Fold

R = TypeVar("R")


class Wanted(NamedTuple):
    """What an operation will look up: ``tasks`` are locked for it; the others name decisions by
    their task. With ``whole`` all of the store is locked.
    """

    tasks: Sequence[str] = ()
    steps: Sequence[tuple[str, int]] = ()
    requests: Sequence[tuple[str, str]] = ()
    units: Sequence[tuple[str, str]] = ()
    whole: bool = False

    def wanted(self) -> Wanted:
        """Return itself: requests say what they want only when they are asked."""
        return self


NOTHING: Final = Wanted()


class Wanting(Protocol):
    """What an operation is about."""

    def wanted(self) -> Wanted:
        """Return what it will look up."""
        ...


class Batch(Protocol):
    """Decisions that were made together."""

    def row(self, name: str, step: int) -> Decided:
        """Return the decision about one task."""
        ...


class Session(Protocol):
    """What an operation reads and writes. All of it is kept, or nothing: an operation writes once
    nothing can go wrong with it any more.

    A task is a value of the operation's own until it is saved. Nothing that is read here changes
    until the operation is done.
    """

    @property
    def version(self) -> int:
        """Number of the prior that new tasks start with: the one accepted last, whatever the times
        say; 0 if there is none.
        """
        ...

    def task(self, name: str, /) -> Task | None:
        """Return a task as it stands."""
        ...

    def add_task(self, task: Task) -> None:
        """Keep a new task."""

    def save(self, task: Task) -> None:
        """Keep what has changed of a task: its arms, state, steps, events and whether it is
        closed.
        """

    def decided(self, task: str, step: int) -> Decided | None:
        """Return a decision."""
        ...

    def by_request(self, task: str, request: str) -> Decided | Event | None:
        """Return what a request of this id did before."""
        ...

    def by_unit(self, task: str, unit: str) -> Decided | None:
        """Return the first decision about a unit."""
        ...

    def add_decided(self, task: Task, row: Decided) -> None:
        """Log a decision."""

    def add_batch(self, tasks: Sequence[Task], batch: Batch) -> None:
        """Log one decision about each of several tasks."""

    def settled(self, task: str, step: int) -> Event | None:
        """Return the event that holds the reward of a decision: the last one of its step."""
        ...

    def add_event(self, task: Task, event: Event) -> None:
        """Log an event."""

    def events(self, task: str) -> list[Event]:
        """All events of a task, in the order of their numbers."""
        ...

    def decisions(self, task: str) -> list[Decided]:
        """All decisions of a task, in the order of their steps."""
        ...

    def of_unit(self, unit: str) -> list[tuple[Task, list[int]]]:
        """Tasks and steps of the decisions about a unit; needs ``whole``."""
        ...

    def erase(self, unit: str) -> None:
        """Forget the unit, request and context of the decisions about a unit; needs ``whole``."""

    def replace_event(self, task: str, event: Event) -> None:
        """Put another event in the place of the one with its number; needs ``whole``."""


Work = Callable[[Session], R]


class Store(Protocol):
    """Where tasks and their logs are kept.

    Methods may be called from several threads. What the store cannot do now raises
    ``Unavailable``.
    """

    durable: bool
    """Whether what was acknowledged survives the end of the process."""

    def use(self, fold: Callable[[int], Fold]) -> None:
        """Take note of what encodes and decodes states of tasks under a version of the prior."""

    def run(self, work: Work[R], about: Wanting = NOTHING, /) -> R:
        """Return ``work(session)`` once what it wrote is kept for good.

        No other operation, of this process or another, sees or changes the tasks that are wanted
        meanwhile. What ``work`` raises is raised here, and then nothing that it did is kept, except
        with errors that say ``kept``. It may be called again if the store has to start over: it
        must do nothing but read and write the session.
        """
        ...

    def submit(self, work: Work[R], about: Wanting = NOTHING, /) -> Future[R]:
        """Return what :meth:`run` will return, without waiting for the disk."""
        ...

    def look(self, work: Work[R], /) -> R:
        """Return ``work(session)``, which reads and writes nothing, without holding up others."""
        ...

    def names(self, *, closed: bool | None = None) -> list[str]:
        """Names of the tasks, in the order in which they were opened."""
        ...

    def tasks(
        self, *, closed: bool | None = None, most: int = 100, after: str | None = None
    ) -> list[Listed]:
        """List tasks, the newest first, from the one that follows the task ``after``."""
        ...

    def size(self) -> Size:
        """Count."""
        ...

    def outstanding(self, before: float, most: int) -> list[tuple[str, int]]:
        """Tasks and steps of decisions made before a time whose rewards are not known."""
        ...

    def rows(self) -> Iterator[tuple[Task, list[Decided], list[Event]]]:
        """Every task with its log."""
        ...

    def versions(self) -> list[Version]:
        """Every prior, the first one first."""
        ...

    def put_version(self, version: Version) -> int:
        """Change the status of a prior, or add one, and return its number: that of ``version``, or
        the next one where another prior has taken it.
        """
        ...

    def settings(self) -> list[str]:
        """Every set of settings that ever decided, as JSON."""
        ...

    def add_settings(self, text: str) -> int:
        """Return the number of these settings, which are added if they are new."""
        ...

    def value(self, name: str) -> str | None:
        """Return a value that the service keeps."""
        ...

    def put_value(self, name: str, value: str) -> None:
        """Keep a value."""

    def keys(self) -> list[Key]:
        """Every key of the service, by name."""
        ...

    def put_key(self, key: Key) -> None:
        """Add a key, or put it in the place of the one with its name."""

    def close(self) -> None:
        """Finish what was begun, and let go of everything."""


def next_number(number: int, taken: Iterable[int]) -> int:
    """Return the number of a new prior where its own is taken. The first one never moves: two
    processes that start on an empty store must mean the same one.
    """
    if number == 1:
        raise Conflict("another process has started this store with another prior")
    return max(taken) + 1
