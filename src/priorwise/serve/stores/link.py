"""A connection to a database, as the two of them share it, and what is read and written at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Final, NamedTuple, Protocol, final

from priorwise.serve.rows import Decided, Event, Task
from priorwise.serve.stores.schema import DECISION, EVENT, TASK, Row, Table, Value
from priorwise.serve.stores.store import Wanted

TASKS: Final = TASK.part(name for name in Task.__struct_fields__ if name != "places")
NEW: Final = TASK.part(name for name in TASK.columns if name != "id")
SAVED: Final = TASK.part(["state", "steps", "events", "closed", "decisions", "rewards"])
WIDENED: Final = TASK.part(["arms"])
DECIDED: Final = DECISION.part(Decided.__struct_fields__)
EVENTS: Final = EVENT.part(Event.__struct_fields__)
SETTLED: Final = "LEFT JOIN event e ON e.task = d.task AND e.number = d.settled"
DECIDED_SETTLED: Final = f"{DECIDED.listed('d')}, {EVENTS.listed('e')}"
# the prior that was accepted last: acceptances are counted, because clocks step back
CURRENT: Final = (
    "SELECT number FROM prior WHERE acceptance IS NOT NULL ORDER BY acceptance DESC LIMIT 1"
)


class Found(NamedTuple):
    """Rows of what was wanted; those of decisions and events start with the name of the task."""

    version: int
    tasks: list[Row]
    steps: list[Row]  # name, decision, event
    requests: list[Row]  # name, decision
    recorded: list[Row]  # name, event
    units: list[Row]  # name, decision


@final
@dataclass
class Changes:
    """Rows to write: values in the order of the columns that are named here."""

    decisions: list[Row] = field(default_factory=list)  # task, and those of DECIDED
    events: list[Row] = field(default_factory=list)  # task, and those of EVENTS
    settled: list[Row] = field(default_factory=list)  # settled, task, step
    tasks: list[Row] = field(default_factory=list)  # those of SAVED, id
    arms: list[Row] = field(default_factory=list)  # those of WIDENED, id


class Cursor(Protocol):
    """What a statement returns."""

    def fetchall(self) -> list[Any]:  # any values that a database has
        """Return the rows."""
        ...


class Link(ABC):
    """A connection to a database. Statements have ``?`` for values."""

    errors: ClassVar[type[Exception]]
    """What the database raises."""
    names: ClassVar[str]
    """Stands for a list of names in a statement, as ``w.value``."""
    pairs: ClassVar[str]
    """Stands for a list of pairs in a statement, as ``w.name`` and ``w.key`` of a ``{type}``."""
    join: ClassVar[str]
    """Joins tables in the order in which they are written."""
    locking: ClassVar[str]
    """Ends a statement whose tasks stay locked."""

    @abstractmethod
    def execute(self, statement: str, values: Sequence[Value] = ()) -> Cursor:
        """Run a statement."""
        ...

    @abstractmethod
    def list_of(self, names: Sequence[str]) -> list[Value]:
        """Return the values that stand for a list of names."""
        ...

    @abstractmethod
    def list_of_pairs(self, pairs: Sequence[tuple[str, str | int]]) -> list[Value]:
        """Return the values that stand for a list of pairs."""
        ...

    @abstractmethod
    def together(self) -> AbstractContextManager[object]:
        """Send statements without waiting for each, where the library can."""
        ...

    @abstractmethod
    def begin(self) -> None:
        """Start a transaction that writes."""

    @abstractmethod
    def begin_reading(self) -> None:
        """Start a transaction that reads what holds now, whatever others write meanwhile."""

    @abstractmethod
    def lock(self, table: Table) -> None:
        """Let no other transaction write to a table."""

    @abstractmethod
    def add_tasks(self, rows: list[Row]) -> dict[str, int]:
        """Add tasks, which are sorted by name, and return their ids by name; those that are there
        already are missing in it.
        """
        ...

    @abstractmethod
    def insert(self, table: Table, names: tuple[str, ...], rows: list[Row]) -> None:
        """Add rows."""

    @abstractmethod
    def update(self, table: Table, names: tuple[str, ...], rows: list[Row]) -> None:
        """Set columns of rows; the key of each comes last."""

    @abstractmethod
    def check_committed(self, cursor: Cursor) -> None:
        """Raise an error where a transaction did not end well."""

    @abstractmethod
    def rollback(self) -> None:
        """End a transaction without a trace."""

    @abstractmethod
    def tidy(self) -> None:
        """Remove what was erased from the files, where it may still stand."""

    @abstractmethod
    def passing(self, error: BaseException) -> bool:
        """Whether an error is of the database as it stands now, and not of what was asked."""
        ...

    @property
    @abstractmethod
    def alive(self) -> bool:
        """Whether the connection can be used again."""
        ...

    @abstractmethod
    def close(self) -> None:
        """Let go of it."""

    # -- what all have

    def query(self, statement: str, values: Sequence[Value] = ()) -> list[Any]:
        """Return the rows that a statement finds."""
        return self.execute(statement, values).fetchall()

    def commit(self) -> None:
        """End a transaction: when this returns, what it wrote is on the disk."""
        self.check_committed(self.execute("COMMIT"))

    def find(self, wanted: Wanted) -> Found:
        """Start a transaction, lock the wanted tasks in an order that is the same everywhere, and
        read what is wanted.
        """
        lists: list[Sequence[tuple[str, str | int]]] = [
            wanted.steps, wanted.requests, wanted.requests, wanted.units
        ]  # fmt: skip
        with self.together():
            self.begin()
            tasks = self.execute(_tasks(type(self)), self.list_of(wanted.tasks))
            # statements after the lock see what others committed before it was granted
            current = self.execute(CURRENT)
            cursors = [
                self.execute(statement, self.list_of_pairs(pairs)) if pairs else None
                for statement, pairs in zip(_lookups(type(self)), lists, strict=True)
            ]
        version = current.fetchall()
        return Found(
            version[0][0] if version else 0,
            tasks.fetchall(),
            *([] if cursor is None else cursor.fetchall() for cursor in cursors),
        )

    def write(self, changes: Changes) -> None:
        """Write rows and commit: when this returns, they are on the disk."""
        with self.together():
            if changes.decisions:
                self.insert(DECISION, ("task", *DECIDED.names), changes.decisions)
            if changes.events:
                self.insert(EVENT, ("task", *EVENTS.names), changes.events)
            if changes.settled:
                self.update(DECISION, ("settled",), changes.settled)
            if changes.tasks:
                self.update(TASK, SAVED.names, changes.tasks)
            if changes.arms:
                self.update(TASK, WIDENED.names, changes.arms)
            cursor = self.execute("COMMIT")
        self.check_committed(cursor)


@lru_cache
def _tasks(link: type[Link]) -> str:
    return (
        f"SELECT {TASKS.listed('t')} FROM {link.names} {link.join} task t ON t.name = w.value "
        f"ORDER BY t.id{link.locking}"
    )


@lru_cache
def _lookups(link: type[Link]) -> tuple[str, ...]:
    """Return what finds decisions and events by their step, request or unit."""

    def statement(columns: str, table: str, key: str, kind: str, more: str = "") -> str:
        pairs, alias = link.pairs.format(type=kind), table[0]
        return (
            f"SELECT t.name, {columns} FROM {pairs} {link.join} task t ON t.name = w.name "
            f"{link.join} {table} {alias} ON {alias}.task = t.id AND {alias}.{key} = w.key {more}"
        )

    return (
        statement(DECIDED_SETTLED, "decision", "step", "BIGINT", SETTLED),
        statement(DECIDED.listed("d"), "decision", "request", "TEXT"),
        statement(EVENTS.listed("e"), "event", "request", "TEXT"),
        statement(DECIDED.listed("d"), "decision", "unit", "TEXT"),
    )


@lru_cache
def upsert(table: Table) -> str:
    """Return the statement that adds a row, or replaces the one with its key."""
    names = tuple(table.columns)
    rest = ", ".join(f"{name} = excluded.{name}" for name in names if name not in table.key)
    return (
        f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))}) "
        f"ON CONFLICT ({', '.join(table.key)}) DO UPDATE SET {rest}"
    )
