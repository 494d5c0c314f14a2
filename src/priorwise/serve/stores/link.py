"""A connection to a database, as the two of them share it, and what is read and written at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, final

TASK: Final = (
    "t.id, t.name, t.key, t.version, t.arms, t.state, t.opened, t.steps, t.events, t.closed"
)
DECIDED: Final = (
    "d.step, d.arm, d.width, d.seen, d.time, d.settings, d.pulls, d.mask, d.propensity, d.error, "
    "d.context, d.unit, d.request, d.counts"
)
EVENT: Final = (
    "e.number, e.kind, e.step, e.arm, e.pulls, e.value, e.squares, e.time, e.request, e.state"
)
WIDTH: Final = 14  # columns of a decision
SETTLED: Final = "LEFT JOIN event e ON e.task = d.task AND e.number = d.settled"

ONE_TASK: Final = f"SELECT {TASK} FROM task t WHERE t.name = ?"
ONE_DECIDED: Final = (
    f"SELECT {DECIDED}, {EVENT} FROM decision d {SETTLED} WHERE d.task = ? AND d.step = ?"
)
BY_REQUEST: Final = f"SELECT {DECIDED} FROM decision d WHERE d.task = ? AND d.request = ?"
EVENT_BY_REQUEST: Final = f"SELECT {EVENT} FROM event e WHERE e.task = ? AND e.request = ?"
BY_UNIT: Final = f"SELECT {DECIDED} FROM decision d WHERE d.task = ? AND d.unit = ?"
# the prior that was accepted last: acceptances are counted, because clocks step back
CURRENT: Final = (
    "SELECT number FROM prior WHERE acceptance IS NOT NULL ORDER BY acceptance DESC LIMIT 1"
)


@final
class Wanted(NamedTuple):
    """What operations say that they will look up: names, and pairs that start with one."""

    tasks: list[str]
    steps: list[tuple[str, int]]
    requests: list[tuple[str, str]]
    units: list[tuple[str, str]]


@final
class Found(NamedTuple):
    """Rows of what was wanted; those of decisions and events start with the name of the task."""

    version: int
    tasks: list[Any]
    steps: list[Any]  # name, decision, event
    requests: list[Any]  # name, decision
    recorded: list[Any]  # name, event
    units: list[Any]  # name, decision


@final
class Changes(NamedTuple):
    """Rows to write, as tuples in the order of the columns."""

    decisions: list[Any]
    events: list[Any]
    settled: list[Any]  # number of the event, task, step
    tasks: list[Any]  # state, steps, events, closed, decisions more, rewards more, id
    arms: list[Any]  # arms, id


class Link(ABC):
    """A connection to a database. Statements have ``?`` for values."""

    @abstractmethod
    def query(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return the rows that a statement finds."""

    @abstractmethod
    def execute(self, statement: str, values: Sequence[Any] = ()) -> None:
        """Run a statement."""

    @abstractmethod
    def begin(self) -> None:
        """Start a transaction that writes."""

    @abstractmethod
    def begin_reading(self) -> None:
        """Start a transaction that reads what holds now, whatever others write meanwhile."""

    @abstractmethod
    def find(self, wanted: Wanted) -> Found:
        """Start a transaction, lock the wanted tasks in an order that is the same everywhere, and
        read what is wanted.
        """

    @abstractmethod
    def lock(self, table: str) -> None:
        """Let no other transaction write to a table."""

    @abstractmethod
    def add_tasks(self, rows: list[Any]) -> dict[str, int]:
        """Add tasks, which are sorted by name, and return their ids by name; those that are there
        already are missing in it.
        """

    @abstractmethod
    def write(self, changes: Changes) -> None:
        """Write rows and commit: when this returns, they are on the disk."""

    @abstractmethod
    def commit(self) -> None:
        """End a transaction: when this returns, what it wrote is on the disk."""

    @abstractmethod
    def rollback(self) -> None:
        """End a transaction without a trace."""

    @abstractmethod
    def tidy(self) -> None:
        """Remove what was erased from the files, where it may still stand."""

    errors: type[Exception]
    """What the database raises."""

    @abstractmethod
    def passing(self, error: BaseException) -> bool:
        """Whether an error is of the database as it stands now, and not of what was asked."""

    @property
    @abstractmethod
    def alive(self) -> bool:
        """Whether the connection can be used again."""

    @abstractmethod
    def close(self) -> None:
        """Let go of it."""
