"""A store in PostgreSQL, which any number of processes share.

Tables lie in a schema of their own, ``priorwise``. An operation holds the rows of its tasks, locked
in the order of their ids, and tasks are opened in the order of their names after all locks are
held: so no two processes wait for each other. READ COMMITTED is enough as everything that is read
to be changed is locked first.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any, Final, final

from priorwise.core.errors import ArgumentError
from priorwise.serve.errors import Unavailable
from priorwise.serve.stores import schema
from priorwise.serve.stores.link import NEW, Cursor, Link
from priorwise.serve.stores.schema import TASK, Row, Table, Value
from priorwise.serve.stores.sql import SqlStore

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
except ModuleNotFoundError as _error:
    if _error.name != "psycopg":
        raise
    raise ModuleNotFoundError(
        "a store in PostgreSQL needs psycopg, which is not installed; "
        "pip install 'priorwise[serve]'",
        name="psycopg",
    ) from None

WORDS: Final = {
    "id": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "name": 'TEXT COLLATE "C"',
    "clustered": "",
}
UPGRADING: Final = 0x7072696F72776973
"""Number of the lock that one process holds while it brings the tables up to date."""
# a plan that WRITING discourages costs 1e10 by the planner's count, and the server compiles what
# costs so much, which takes longer than any statement here
SETTINGS: Final = """
SET search_path TO priorwise;
SET jit = off;
SET lock_timeout = '10s';
SET statement_timeout = '60s';
SET idle_in_transaction_session_timeout = '60s';
SET client_min_messages = warning
"""
READING: Final = """
SET idle_in_transaction_session_timeout = '10min';
SET default_transaction_read_only = on
"""
# everything is found by its key, whatever the planner knows of tables that have just grown
WRITING: Final = """
SET enable_seqscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET default_transaction_isolation = 'read committed'
"""


@final
class PostgresStore(SqlStore):
    """Keeps tasks and their logs in PostgreSQL.

    Parameters
    ----------
    url
        Of the database: ``postgresql://user:password@host/name``. The user must be allowed to make
        a schema in it, or own one that is called ``priorwise``.

    """

    def __init__(self, url: str) -> None:
        """Connect, and make the tables or bring them up to date."""
        self._url = url
        try:
            parts = conninfo_to_dict(url)
        except psycopg.ProgrammingError:
            raise ArgumentError(
                "store", "must be a URL such as postgresql://user:password@host/name"
            ) from None
        self._where = f"{parts.get('host') or 'localhost'}/{parts.get('dbname') or ''}"
        try:
            link = _Link(url, reading=None)
            try:
                _upgrade(link, repr(self))
            finally:
                link.close()
        except psycopg.Error as error:
            raise Unavailable(f"{self!r} cannot be opened: {_one_line(error)}") from error
        super().__init__()

    def _connect(self, *, reading: bool) -> Link:
        return _Link(self._url, reading=reading)

    def __repr__(self) -> str:
        return f"PostgresStore({self._where})"


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]


def _upgrade(link: _Link, where: str) -> None:
    """Make the tables or bring them up to date, in one transaction."""
    encoding = link.query("SHOW server_encoding")[0][0]
    if encoding != "UTF8":
        raise ArgumentError(
            "store", f"{where} keeps text as {encoding}", cure="make a database with encoding UTF8"
        )
    link.execute("SET statement_timeout = 0")  # a step may have to go through a large table
    link.execute("BEGIN")
    try:
        link.execute("SELECT pg_advisory_xact_lock(?)", (UPGRADING,))
        if not link.query("SELECT 1 FROM pg_namespace WHERE nspname = 'priorwise'"):
            link.execute("CREATE SCHEMA priorwise")
        found = 0
        if link.query("SELECT to_regclass('priorwise.about')")[0][0] is not None:
            found = link.query("SELECT version FROM priorwise.about")[0][0]
        schema.check(found, where)
        if found < schema.NEWEST:
            if not found:
                link.execute("CREATE TABLE priorwise.about (version BIGINT NOT NULL)")
                link.execute("INSERT INTO priorwise.about VALUES (0)")
            for statement in schema.statements(found, **WORDS):
                link.execute(statement)
            link.execute("UPDATE priorwise.about SET version = ?", (schema.NEWEST,))
        link.commit()
    except BaseException:
        link.rollback()
        raise


@final
class _Link(Link):
    """A connection to a server."""

    errors = psycopg.Error
    names = "unnest(?::text[]) AS w (value)"
    pairs = "unnest(?::text[], ?::{type}[]) AS w (name, key)"
    join = "JOIN"
    locking = " FOR UPDATE OF t"

    def __init__(self, url: str, *, reading: bool | None) -> None:
        """Connect."""
        given = {
            "connect_timeout": 10, "application_name": "priorwise", **conninfo_to_dict(url),
            "client_encoding": "utf8",
        }  # fmt: skip
        self._connection = psycopg.connect(autocommit=True, **given)
        try:
            self._connection.execute(SETTINGS)
            if reading is not None:
                self._connection.execute(READING if reading else WRITING)
            if not reading and self.query("SHOW synchronous_commit") == [("off",)]:
                self._connection.execute("SET synchronous_commit = on")
        except BaseException:
            self._connection.close()
            raise

    def execute(self, statement: str, values: Sequence[Value] = ()) -> Cursor:
        """Run a statement."""
        return self._connection.execute(_marked(statement).encode(), values or None)

    def list_of(self, names: Sequence[str]) -> list[Value]:
        """Return an array."""
        return [list(names)]

    def list_of_pairs(self, pairs: Sequence[tuple[str, str | int]]) -> list[Value]:
        """Return two arrays."""
        return [[name for name, _ in pairs], [key for _, key in pairs]]

    def together(self) -> AbstractContextManager[object]:
        """Send statements without waiting for each, where the library can."""
        return self._connection.pipeline() if psycopg.Pipeline.is_supported() else nullcontext()

    def begin(self) -> None:
        """Start a transaction that writes."""
        self.execute("BEGIN")

    def begin_reading(self) -> None:
        """Start a transaction that reads what holds now."""
        self.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def lock(self, table: Table) -> None:
        """Let no other transaction write to a table, nor hold a row of it."""
        self.execute(f"LOCK TABLE {table.name} IN EXCLUSIVE MODE")

    def add_tasks(self, rows: list[Row]) -> dict[str, int]:
        """Add tasks, which are sorted by name; return the ids of those that were new."""
        statement = f"{_insert(TASK, NEW.names)} ON CONFLICT (name) DO NOTHING RETURNING name, id"
        return dict(self.query(statement, _turned(rows)))

    def insert(self, table: Table, names: tuple[str, ...], rows: list[Row]) -> None:
        """Add rows."""
        self.execute(_insert(table, names), _turned(rows))

    def update(self, table: Table, names: tuple[str, ...], rows: list[Row]) -> None:
        """Set columns of rows; the key of each comes last."""
        self.execute(_update(table, names), _turned(rows))

    def check_committed(self, cursor: Any) -> None:  # of psycopg
        """Raise an error where a transaction that failed before ended with a quiet rollback."""
        if cursor.statusmessage != "COMMIT":
            raise Unavailable(f"the server answered {cursor.statusmessage} to COMMIT")

    def rollback(self) -> None:
        """End a transaction without a trace."""
        self._connection.rollback()

    def tidy(self) -> None:
        """The server keeps its files to itself."""

    def passing(self, error: BaseException) -> bool:
        """Whether the server was busy or went away."""
        return not self.alive or isinstance(
            error, (psycopg.OperationalError, psycopg.InterfaceError, Unavailable)
        )

    @property
    def alive(self) -> bool:
        """Whether the connection stands."""
        return not (self._connection.closed or self._connection.broken)

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


def _turned(rows: list[Row]) -> list[list[Any]]:
    """Columns of rows."""
    return [list(column) for column in zip(*rows, strict=True)]


@lru_cache(maxsize=256)
def _marked(statement: str) -> str:
    """Return a statement with the marks of this library."""
    return statement.replace("?", "%s")


def _arrays(table: Table, names: tuple[str, ...]) -> str:
    """Return one array for each column, as a table."""
    types = (table.columns[name].type.format(name="TEXT", id="BIGINT") for name in names)
    return f"unnest({', '.join(f'?::{each}[]' for each in types)})"


@lru_cache
def _insert(table: Table, names: tuple[str, ...]) -> str:
    columns = ", ".join(names)
    return f"INSERT INTO {table.name} ({columns}) SELECT * FROM {_arrays(table, names)}"


@lru_cache
def _update(table: Table, names: tuple[str, ...]) -> str:
    every, new = (*names, *table.key), ", ".join(f"{name} = w.{name}" for name in names)
    key = " AND ".join(f"x.{name} = w.{name}" for name in table.key)
    return (
        f"UPDATE {table.name} x SET {new} FROM {_arrays(table, every)} AS w ({', '.join(every)}) "
        f"WHERE {key}"
    )
