"""The tables of stores that use SQL, declared once: statements, migrations and the conversion of
rows are made from them.

A column or table has the number of the schema that it came with, ``since``. A store of an earlier
number gets what is new when it is opened, all in one transaction. What was ever released is never
changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, final

from priorwise.core.errors import ArgumentError

NEWEST: Final = 3
"""Number of the schema that this code reads and writes."""

Value = str | int | float | bytes | list[str] | list[str | int] | None
"""What a statement is given."""
Row = Sequence[Any]  # of any values that a database has


@final
@dataclass(frozen=True)
class Column:
    """A column: its type, and how values are written and read."""

    type: str
    write: Callable[[Any], Any] | None = None
    read: Callable[[Any], Any] | None = None
    null: bool = False
    since: int = 1
    rest: str = ""

    def declared(self, name: str) -> str:
        """Return its part of a statement."""
        return f"{name} {self.type}{'' if self.null else ' NOT NULL'}{self.rest}"


def maybe(column: Column) -> Column:
    """Return a column that may hold nothing."""
    return replace(column, null=True)


@lru_cache(maxsize=128)  # of names that may be long
def tuple_of(text: str) -> tuple[str, ...]:
    """Return the tuple that a JSON list holds."""
    return tuple(json.loads(text))


def signed(key: int) -> int:
    """Return the number with the same 64 bits that databases can keep."""
    return key - (1 << 64) if key >> 63 else key


def unsigned(key: int) -> int:
    """Return the number that was signed."""
    return key + (1 << 64) if key < 0 else key


ID: Final = Column("{id}", null=True)
INT: Final = Column("BIGINT")
COUNT: Final = Column("BIGINT", rest=" DEFAULT 0")
BITS: Final = Column("BIGINT", signed, unsigned)
REAL: Final = Column("DOUBLE PRECISION", float)
TEXT: Final = Column("TEXT")
NAME: Final = Column("{name}")
TUPLE: Final = Column("TEXT", json.dumps, tuple_of)
JSON: Final = Column("TEXT", json.dumps, json.loads)
BYTES: Final = Column("BYTEA", None, bytes)


@final
class Table:
    """A table, whose columns are declared here and nowhere else."""

    def __init__(
        self,
        name: str,
        columns: Mapping[str, Column],
        key: Sequence[str],
        *,
        clustered: bool = False,
        since: int = 1,
        rest: Sequence[str] = (),
    ) -> None:
        """``rest``: further constraints."""
        self.name, self.columns, self.key, self.since = name, dict(columns), tuple(key), since
        self.clustered, self.rest = clustered, tuple(rest)

    def create(self) -> str:
        """Return the statement that makes it."""
        parts = [column.declared(name) for name, column in self.columns.items()]
        if self.columns[self.key[0]] is not ID:
            parts.append(f"PRIMARY KEY ({', '.join(self.key)})")
        end = " {clustered}" if self.clustered else ""
        return f"CREATE TABLE {self.name} ({', '.join([*parts, *self.rest])}){end}"

    def part(self, names: Iterable[str] | None = None) -> Part:
        """Return some columns, by default all of them."""
        return Part(self, tuple(self.columns if names is None else names))


@final
class Part:
    """Columns of a table in an order: what a statement writes or reads."""

    def __init__(self, table: Table, names: tuple[str, ...]) -> None:
        """Look up once how values are converted."""
        self.table, self.names, self.width = table, names, len(names)
        columns = [table.columns[name] for name in names]
        self._get = attrgetter(*names, names[0])  # twice one: of one alone it gives no tuple
        self._write = [(at, c.write) for at, c in enumerate(columns) if c.write is not None]
        self._read = [(at, c.read) for at, c in enumerate(columns) if c.read is not None]
        self.types = [column.type for column in columns]

    def listed(self, alias: str = "") -> str:
        """Return the columns as a statement names them."""
        dot = f"{alias}." if alias else ""
        return ", ".join(f"{dot}{name}" for name in self.names)

    def written(self, row: Any) -> list[Any]:  # a row of any class with these attributes
        """Return the values of a row as the database keeps them."""
        values = list(self._get(row)[:-1])
        for at, write in self._write:
            if values[at] is not None:
                values[at] = write(values[at])
        return values

    def read(self, row: Row) -> list[Any]:
        """Return the values that a row of the database holds."""
        values = list(row)
        for at, read in self._read:
            if values[at] is not None:
                values[at] = read(values[at])
        return values


OF_TASK: Final = Column("BIGINT", rest=" REFERENCES task (id)")

TASK: Final = Table(
    "task",
    {
        "id": ID,
        "name": replace(NAME, rest=" UNIQUE"),
        "key": BITS,
        "version": INT,
        "arms": TUPLE,
        "state": BYTES,
        "opened": REAL,
        "steps": INT,
        "events": INT,
        "closed": maybe(REAL),
        "decisions": replace(COUNT, since=2),
        "rewards": replace(COUNT, since=2),
    },
    ["id"],
)
DECISION: Final = Table(
    "decision",
    {
        "task": OF_TASK,
        "step": INT,
        "arm": INT,
        "width": INT,
        "seen": INT,
        "time": REAL,
        "settings": INT,
        "pulls": INT,
        "mask": maybe(TEXT),
        "propensity": maybe(REAL),
        "error": maybe(REAL),
        "context": maybe(JSON),
        "unit": maybe(NAME),
        "request": maybe(NAME),
        "counts": maybe(TUPLE),
        "settled": maybe(INT),
    },
    ["task", "step"],
    clustered=True,
)
EVENT: Final = Table(
    "event",
    {
        "task": OF_TASK,
        "number": INT,
        "kind": TEXT,
        "step": maybe(INT),
        "arm": INT,
        "pulls": REAL,
        "value": maybe(REAL),
        "squares": maybe(REAL),
        "time": REAL,
        "request": maybe(NAME),
        "state": maybe(BYTES),
    },
    ["task", "number"],
    clustered=True,
)
PRIOR: Final = Table(
    "prior",
    {
        "number": INT,
        "prior": TEXT,
        "status": TEXT,
        "made": REAL,
        "accepted": maybe(REAL),
        "story": JSON,
        # how many priors had been accepted with this one: clocks step back
        "acceptance": replace(maybe(INT), since=3),
    },
    ["number"],
)
SETTINGS: Final = Table("settings", {"number": INT, "text": TEXT}, ["number"])
VALUE: Final = Table("value", {"name": NAME, "value": TEXT}, ["name"])
KEY: Final = Table(
    "api_key",
    {
        "name": NAME,
        "digest": TEXT,
        "scopes": TUPLE,
        "made": REAL,
        "ended": maybe(REAL),
        "rate": maybe(REAL),
    },
    ["name"],
    since=2,
)
TABLES: Final = (TASK, DECISION, EVENT, PRIOR, SETTINGS, VALUE, KEY)
INDEXES: Final = (
    "UNIQUE INDEX decision_request ON decision (task, request) WHERE request IS NOT NULL",
    "UNIQUE INDEX decision_unit ON decision (unit, task) WHERE unit IS NOT NULL",
    "INDEX decision_outstanding ON decision (time) WHERE settled IS NULL AND counts IS NULL",
    "UNIQUE INDEX event_request ON event (task, request) WHERE request IS NOT NULL",
)
FILLED: Final = {
    2: """
        UPDATE task SET
            decisions = (SELECT count(*) FROM decision d WHERE d.task = task.id),
            rewards = (
                SELECT count(*) FROM event e
                WHERE e.task = task.id AND e.kind IN ('reward', 'record')
            )
    """,
    3: """
        UPDATE prior SET acceptance = (
            SELECT count(*) FROM prior p WHERE p.status = 'accepted'
            AND (coalesce(p.accepted, 0), p.number) <= (coalesce(prior.accepted, 0), prior.number)
        ) WHERE status = 'accepted'
    """,
}
"""What fills new columns of a store that has rows already, by the number of the schema."""


def statements(before: int, **words: str) -> list[str]:
    """Return the statements that bring a schema of number ``before`` up to date; 0: none yet."""
    result = [table.create() for table in TABLES if table.since > before]
    for table in TABLES:
        for name, column in table.columns.items():
            if table.since <= before < column.since:
                result.append(f"ALTER TABLE {table.name} ADD COLUMN {column.declared(name)}")
    if not before:
        result += [f"CREATE {index}" for index in INDEXES]
    else:
        result += [FILLED[number] for number in range(before + 1, NEWEST + 1)]
    return [each.format(**words) for each in result]


def check(number: int, where: str) -> None:
    """Raise an error for a store that a later version of this package made."""
    if number > NEWEST:
        raise ArgumentError(
            "store",
            f"{where} has the schema {number} of a later version of priorwise; this one reads up "
            f"to {NEWEST}",
            cure="install the later one",
        )
