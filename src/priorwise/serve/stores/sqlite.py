"""A store in an SQLite file: the default of a service on one machine.

The file is in WAL mode and a commit waits for the disk (``synchronous=FULL``), so what was
acknowledged survives the loss of the process and of power. Other processes may open the same file;
it must not lie on a network drive.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, final

from priorwise.core import validation
from priorwise.serve.errors import Unavailable
from priorwise.serve.stores import schema
from priorwise.serve.stores.link import (
    BY_REQUEST,
    BY_UNIT,
    CURRENT,
    EVENT_BY_REQUEST,
    ONE_DECIDED,
    ONE_TASK,
    Changes,
    Found,
    Link,
    Wanted,
)
from priorwise.serve.stores.sql import SqlStore

PATIENCE: Final = 10.0
"""Seconds to wait for another process that writes."""
PROGRAM: Final = 0x70727773
"""Says in the header of a file whose it is."""
WORDS: Final = {"id": "INTEGER PRIMARY KEY", "name": "TEXT", "clustered": "WITHOUT ROWID"}
MAGIC: Final = b"SQLite format 3\x00"

_ADD_TASK: Final = (
    "INSERT INTO task (name, key, version, arms, state, opened, steps, events, closed) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_ADD_DECISION: Final = (
    "INSERT INTO decision (task, step, arm, width, seen, time, settings, pulls, mask, propensity, "
    "error, context, unit, request, counts) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_ADD_EVENT: Final = (
    "INSERT INTO event (task, number, kind, step, arm, pulls, value, squares, time, request, "
    "state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_SETTLE: Final = "UPDATE decision SET settled = ? WHERE task = ? AND step = ?"
_SAVE: Final = (
    "UPDATE task SET state = ?, steps = ?, events = ?, closed = ?, decisions = decisions + ?, "
    "rewards = rewards + ? WHERE id = ?"
)
_WIDEN: Final = "UPDATE task SET arms = ? WHERE id = ?"


@final
class SqliteStore(SqlStore):
    """Keeps tasks and their logs in a file.

    Parameters
    ----------
    path
        The file; it is made if it is not there, for its owner's eyes only.

    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open or make the file, and bring its tables up to date."""
        self.path = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links
        if not self.path.exists():
            _make(self.path)
        _check(self.path)
        link = _Link(self.path, reading=False)
        try:
            _upgrade(link, self.path)
        finally:
            link.close()
        self._file = _identity(self.path)
        super().__init__()

    def _connect(self, *, reading: bool) -> Link:
        _check_same(self.path, self._file)  # SQLite would make an empty one
        return _Link(self.path, reading=reading, file=self._file)

    def __repr__(self) -> str:
        return f"SqliteStore({validation.shown(str(self.path), most=validation.SHOWN_PATH)})"


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what makes a file the same one, None where there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _check_same(path: Path, file: tuple[int, int] | None) -> None:
    """Raise an error where a file was deleted or replaced: what is written to a connection that
    still has the old one is lost.
    """
    now = _identity(path)
    if now != file:
        raise Unavailable(
            f"the file of the store was {'deleted' if now is None else 'replaced'} while it was in "
            "use: put it back and start again"
        )


def _make(path: Path) -> None:
    """Make a file: it appears under its name when it is whole."""
    if not path.parent.is_dir():
        raise FileNotFoundError(
            errno.ENOENT, "store: there is no such folder", os.fspath(path.parent)
        )
    handle, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", dir=path.parent)  # mode 0600
    os.close(handle)
    made = Path(name)
    try:
        link = _Link(made, reading=False)
        try:
            _upgrade(link, path)
        finally:
            link.close()  # the last one to close puts everything into the file
        with made.open("rb") as file:
            os.fsync(file.fileno())
        try:
            os.link(made, path)
        except FileExistsError:
            return  # another process was faster
        except OSError:  # no hard links there
            made.rename(path)
        _sync_folder(path.parent)
    finally:
        for each in (name, f"{name}-wal", f"{name}-shm", f"{name}-journal"):
            with suppress(OSError):
                os.unlink(each)  # noqa: PTH108


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # not every system can
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _check(path: Path) -> None:
    """Refuse what is no database of ours."""
    where = validation.shown(str(path), most=validation.SHOWN_PATH)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "store: a folder, not a file", os.fspath(path))
    with path.open("rb") as file:
        head = file.read(100)
    if not head:
        return  # as a touch leaves it
    if not head.startswith(MAGIC):
        raise ValueError(f"store: {where} is no SQLite database")
    try:
        reader = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=PATIENCE)
        try:
            ((program,),) = reader.execute("PRAGMA application_id").fetchall()
            ((tables,),) = reader.execute("SELECT count(*) FROM sqlite_master").fetchall()
        finally:
            reader.close()
    except sqlite3.OperationalError as error:
        raise Unavailable(f"store: {where} cannot be opened: {error}") from error
    except sqlite3.DatabaseError as error:
        raise ValueError(f"store: {where} is damaged: {error}") from error
    if program != PROGRAM and (program or tables):
        raise ValueError(f"store: {where} is an SQLite database of another program")


def _upgrade(link: _Link, path: Path) -> None:
    """Bring the tables up to date, in one transaction."""
    where = validation.shown(str(path), most=validation.SHOWN_PATH)
    try:
        found = link.query("PRAGMA user_version")[0][0]
        schema.check(found, f"store: {where}")
        if found == schema.NEWEST:
            return
        link.begin()
        try:
            found = link.query("PRAGMA user_version")[0][0]  # now that nobody else writes
            for statement in schema.statements(found, **WORDS):
                link.execute(statement)
            link.execute(f"PRAGMA application_id = {PROGRAM}")
            link.execute(f"PRAGMA user_version = {schema.NEWEST}")
            link.commit()
        except BaseException:
            link.rollback()
            raise
    except sqlite3.OperationalError as error:
        raise Unavailable(f"store: {where} cannot be opened: {error}") from error
    except sqlite3.DatabaseError as error:
        raise ValueError(f"store: {where} is damaged: {error}") from error


@final
class _Link(Link):
    """A connection to a file."""

    errors = sqlite3.Error

    def __init__(self, path: Path, *, reading: bool, file: tuple[int, int] | None = None) -> None:
        """Connect; ``file``: which one it has to be."""
        self._path, self._file = path, file
        self._connection = sqlite3.connect(
            path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
        )
        try:
            if reading:
                self._connection.execute("PRAGMA query_only = ON")
            else:
                mode = self._connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
                if mode != "wal":
                    raise Unavailable(
                        f"store: {validation.shown(str(path))} lies on a drive where SQLite cannot "
                        "share memory"
                    )
                self._connection.execute("PRAGMA synchronous = FULL")
                self._connection.execute("PRAGMA secure_delete = ON")
        except BaseException:
            self._connection.close()
            raise

    def query(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return the rows that a statement finds."""
        self._check()
        return self._connection.execute(statement, values).fetchall()

    def execute(self, statement: str, values: Sequence[Any] = ()) -> None:
        """Run a statement."""
        self._connection.execute(statement, values)

    def begin(self) -> None:
        """Start a transaction that writes; no other process writes until it ends."""
        self._connection.execute("BEGIN IMMEDIATE")

    def begin_reading(self) -> None:
        """Start a transaction that reads."""
        self._connection.execute("BEGIN")

    def find(self, wanted: Wanted) -> Found:
        """Lock the file and read what is wanted."""
        self.begin()
        run = self._connection.execute
        current = run(CURRENT).fetchone()
        tasks, ids = [], {}
        for name in wanted.tasks:
            row = run(ONE_TASK, (name,)).fetchone()
            if row is not None:
                tasks.append(row)
                ids[name] = row[0]

        def each(statement: str, pairs: Iterable[tuple[str, Any]]) -> list[Any]:
            found = []
            for name, value in pairs:
                if name in ids:
                    row = run(statement, (ids[name], value)).fetchone()
                    if row is not None:
                        found.append((name, *row))
            return found

        return Found(
            0 if current is None else current[0],
            tasks,
            each(ONE_DECIDED, wanted.steps),
            each(BY_REQUEST, wanted.requests),
            each(EVENT_BY_REQUEST, wanted.requests),
            each(BY_UNIT, wanted.units),
        )

    def lock(self, table: str) -> None:
        """Nobody else writes to this file now."""

    def add_tasks(self, rows: list[Any]) -> dict[str, int]:
        """Add tasks and return their ids."""
        run = self._connection.execute
        return {row[0]: int(run(_ADD_TASK, row).lastrowid or 0) for row in rows}

    def write(self, changes: Changes) -> None:
        """Write rows and commit."""
        many = self._connection.executemany
        for statement, rows in (
            (_ADD_DECISION, changes.decisions),
            (_ADD_EVENT, changes.events),
            (_SETTLE, changes.settled),
            (_SAVE, changes.tasks),
            (_WIDEN, changes.arms),
        ):
            if rows:
                many(statement, rows)
        self.commit()

    def commit(self) -> None:
        """End a transaction: it is on the disk when this returns."""
        self._check()
        self._connection.execute("COMMIT")
        self._check()  # nothing is acknowledged that went into a deleted file

    def tidy(self) -> None:
        """Put the log into the file and empty it: it has rows as they were."""
        run = self._connection.execute
        run("PRAGMA busy_timeout = 200")  # readers may need the log; then it is emptied later
        with suppress(sqlite3.Error):  # the rows are erased and committed all the same
            run("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        run(f"PRAGMA busy_timeout = {int(1000 * PATIENCE)}")

    def _check(self) -> None:
        if self._file is not None:
            _check_same(self._path, self._file)

    def rollback(self) -> None:
        """End a transaction without a trace."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def passing(self, error: BaseException) -> bool:
        """Whether the file was busy, full or could not be read."""
        return isinstance(error, (sqlite3.OperationalError, Unavailable))

    @property
    def alive(self) -> bool:
        """A file does not hang up."""
        return True

    def close(self) -> None:
        """Close."""
        self._connection.close()
