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

from priorwise.serve.errors import Unavailable
from priorwise.serve.stores import schema
from priorwise.serve.stores.link import (
    CURRENT,
    DECIDED,
    EVENT,
    SETTLED,
    TASK,
    Changes,
    Found,
    Link,
    Wanted,
)
from priorwise.serve.stores.sql import SqlStore

try:
    import psycopg
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

_TASKS: Final = f"SELECT {TASK} FROM task t WHERE t.name = ANY(%s::text[]) ORDER BY t.id FOR UPDATE"
_NAMED: Final = "FROM unnest(%s::text[], %s::{kind}[]) AS w (name, key) JOIN task t USING (name)"
_STEPS: Final = (
    f"SELECT t.name, {DECIDED}, {EVENT} {_NAMED.format(kind='bigint')} "
    f"JOIN decision d ON d.task = t.id AND d.step = w.key {SETTLED}"
)
_REQUESTS: Final = (
    f"SELECT t.name, {DECIDED} {_NAMED.format(kind='text')} "
    "JOIN decision d ON d.task = t.id AND d.request = w.key"
)
_RECORDED: Final = (
    f"SELECT t.name, {EVENT} {_NAMED.format(kind='text')} "
    "JOIN event e ON e.task = t.id AND e.request = w.key"
)
_UNITS: Final = (
    f"SELECT t.name, {DECIDED} {_NAMED.format(kind='text')} "
    "JOIN decision d ON d.task = t.id AND d.unit = w.key"
)


def _columns(kinds: str) -> str:
    return ", ".join(f"%s::{kind}[]" for kind in kinds.split())


_ADD_TASKS: Final = (
    "INSERT INTO task (name, key, version, arms, state, opened, steps, events, closed) "
    f"SELECT * FROM unnest({_columns('text int8 int8 text bytea float8 int8 int8 float8')}) "
    "ON CONFLICT (name) DO NOTHING RETURNING name, id"
)
_ADD_DECISIONS: Final = (
    "INSERT INTO decision (task, step, arm, width, seen, time, settings, pulls, mask, propensity, "
    "error, context, unit, request, counts) SELECT * FROM unnest("
    + _columns("int8 int8 int8 int8 int8 float8 int8 int8 text float8 float8 text text text text")
    + ")"
)
_ADD_EVENTS: Final = (
    "INSERT INTO event (task, number, kind, step, arm, pulls, value, squares, time, request, "
    "state) SELECT * FROM unnest("
    + _columns("int8 int8 text int8 int8 float8 float8 float8 float8 text bytea")
    + ")"
)
_SETTLE: Final = (
    f"UPDATE decision d SET settled = w.number FROM unnest({_columns('int8 int8 int8')}) "
    "AS w (number, task, step) WHERE d.task = w.task AND d.step = w.step"
)
_SAVE: Final = (
    "UPDATE task t SET state = w.state, steps = w.steps, events = w.events, closed = w.closed, "
    "decisions = t.decisions + w.decisions, rewards = t.rewards + w.rewards "
    f"FROM unnest({_columns('bytea int8 int8 float8 int8 int8 int8')}) "
    "AS w (state, steps, events, closed, decisions, rewards, id) WHERE t.id = w.id"
)
_WIDEN: Final = (
    f"UPDATE task t SET arms = w.arms FROM unnest({_columns('text int8')}) AS w (arms, id) "
    "WHERE t.id = w.id"
)


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
            known = psycopg.conninfo.conninfo_to_dict(url)
        except psycopg.ProgrammingError:
            raise ValueError(
                "store must be a URL such as postgresql://user:password@host/name"
            ) from None
        self._where = f"{known.get('host') or 'localhost'}/{known.get('dbname') or ''}"
        try:
            link = _Link(url, reading=None)
            try:
                _upgrade(link, repr(self))
            finally:
                link.close()
        except psycopg.Error as error:
            raise Unavailable(f"{self!r} cannot be opened: {_said(error)}") from error
        super().__init__()

    def _connect(self, *, reading: bool) -> Link:
        return _Link(self._url, reading=reading)

    def __repr__(self) -> str:
        return f"PostgresStore({self._where})"


def _said(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]


def _upgrade(link: _Link, where: str) -> None:
    """Make the tables or bring them up to date, in one transaction."""
    encoding = link.query("SHOW server_encoding")[0][0]
    if encoding != "UTF8":
        raise ValueError(f"{where} keeps text as {encoding}: make a database with encoding UTF8")
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

    def __init__(self, url: str, *, reading: bool | None) -> None:
        """Connect."""
        usual: dict[str, Any] = {"connect_timeout": 10, "application_name": "priorwise"}
        given = {**usual, **psycopg.conninfo.conninfo_to_dict(url), "client_encoding": "utf8"}
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

    def _together(self) -> AbstractContextManager[Any]:
        """Send statements without waiting for each, where the library can."""
        return self._connection.pipeline() if psycopg.Pipeline.is_supported() else nullcontext()

    def query(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return the rows that a statement finds."""
        found = self._connection.execute(_marked(statement), values or None)
        return found.fetchall()

    def execute(self, statement: str, values: Sequence[Any] = ()) -> None:
        """Run a statement."""
        self._connection.execute(_marked(statement), values or None)

    def begin(self) -> None:
        """Start a transaction that writes."""
        self._connection.execute("BEGIN")

    def begin_reading(self) -> None:
        """Start a transaction that reads what holds now."""
        self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def find(self, wanted: Wanted) -> Found:
        """Lock tasks, then read what is wanted: one round trip."""
        run = self._connection.execute
        asked: list[Any] = []
        with self._together():
            run("BEGIN")
            tasks = run(_TASKS, (wanted.tasks,))
            # statements after the lock see what others committed before it was granted
            current = run(CURRENT)
            for statement, pairs in (
                (_STEPS, wanted.steps),
                (_REQUESTS, wanted.requests),
                (_RECORDED, wanted.requests),
                (_UNITS, wanted.units),
            ):
                columns = ([name for name, _ in pairs], [key for _, key in pairs])
                asked.append(run(statement, columns) if pairs else None)
        version = current.fetchone()
        steps, requests, recorded, units = (
            [] if each is None else each.fetchall() for each in asked
        )
        found = 0 if version is None else version[0]
        return Found(found, tasks.fetchall(), steps, requests, recorded, units)

    def lock(self, table: str) -> None:
        """Let no other transaction write to a table, nor hold a row of it."""
        statements = {
            "task": "LOCK TABLE task IN EXCLUSIVE MODE",
            "prior": "LOCK TABLE prior IN EXCLUSIVE MODE",
            "settings": "LOCK TABLE settings IN EXCLUSIVE MODE",
        }
        self._connection.execute(statements[table])

    def add_tasks(self, rows: list[Any]) -> dict[str, int]:
        """Add tasks, which are sorted by name; return the ids of those that were new."""
        found = self._connection.execute(_ADD_TASKS, _turned(rows))
        return {name: number for name, number in found.fetchall()}  # noqa: C416 - typed so

    def write(self, changes: Changes) -> None:
        """Write rows and commit: one round trip."""
        run = self._connection.execute
        with self._together():
            for statement, rows in (
                (_ADD_DECISIONS, changes.decisions),
                (_ADD_EVENTS, changes.events),
                (_SETTLE, changes.settled),
                (_SAVE, changes.tasks),
                (_WIDEN, changes.arms),
            ):
                if rows:
                    run(statement, _turned(rows))
            done = run("COMMIT")
        _check_committed(done)

    def commit(self) -> None:
        """End a transaction: it is on the disk when this returns."""
        _check_committed(self._connection.execute("COMMIT"))

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


def _check_committed(cursor: Any) -> None:
    """A transaction that failed before ends with a quiet rollback."""
    if cursor.statusmessage != "COMMIT":
        raise Unavailable(f"the server answered {cursor.statusmessage} to COMMIT")


def _turned(rows: list[Any]) -> list[list[Any]]:
    """Columns of rows."""
    return [list(column) for column in zip(*rows, strict=True)]


@lru_cache(maxsize=256)
def _marked(statement: str) -> str:
    """Return a statement with the marks of this library."""
    return statement.replace("?", "%s")
