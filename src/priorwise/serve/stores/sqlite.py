"""A store in an SQLite file: the default of a service on one machine.

The file is in WAL mode and a commit waits for the disk (``synchronous=FULL``), so what was
acknowledged survives the loss of the process and of power. Other processes may open the same file;
it must not lie on a network drive.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, final

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.serve.errors import Unavailable
from priorwise.serve.stores import schema
from priorwise.serve.stores.link import NEW, Cursor, Link
from priorwise.serve.stores.schema import TASK, Row, Table, Value
from priorwise.serve.stores.sql import SqlStore

PATIENCE: Final = 10.0
"""Seconds to wait for another process that writes."""
PROGRAM: Final = 0x70727773
"""Says in the header of a file whose it is."""
WORDS: Final = {"id": "INTEGER PRIMARY KEY", "name": "TEXT", "clustered": "WITHOUT ROWID"}
MAGIC: Final = b"SQLite format 3\x00"


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
        raise ArgumentError("store", f"{where} is no SQLite database")
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
        raise ArgumentError("store", f"{where} is damaged: {error}") from error
    if program != PROGRAM and (program or tables):
        raise ArgumentError("store", f"{where} is an SQLite database of another program")


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
        raise ArgumentError("store", f"{where} is damaged: {error}") from error


@final
class _Link(Link):
    """A connection to a file."""

    errors = sqlite3.Error
    names = "json_each(?) AS w"
    pairs = (
        "(SELECT json_extract(value, '$[0]') AS name, json_extract(value, '$[1]') AS key "
        "FROM json_each(?)) AS w"
    )
    join = "CROSS JOIN"  # which the planner leaves in this order
    locking = ""

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

    def query(self, statement: str, values: Sequence[Value] = ()) -> list[Any]:
        """Return the rows that a statement finds."""
        self._check()
        return super().query(statement, values)

    def execute(self, statement: str, values: Sequence[Value] = ()) -> Cursor:
        """Run a statement."""
        return self._connection.execute(statement, values)

    def list_of(self, names: Sequence[str]) -> list[Value]:
        """Return the names as JSON."""
        return [json.dumps(names)]

    def list_of_pairs(self, pairs: Sequence[tuple[str, str | int]]) -> list[Value]:
        """Return the pairs as JSON."""
        return [json.dumps(pairs)]

    def together(self) -> AbstractContextManager[object]:
        """Nothing is sent anywhere."""
        return nullcontext()

    def begin(self) -> None:
        """Start a transaction that writes; no other process writes until it ends."""
        self.execute("BEGIN IMMEDIATE")

    def begin_reading(self) -> None:
        """Start a transaction that reads."""
        self.execute("BEGIN")

    def lock(self, table: Table) -> None:
        """Nobody else writes to this file now."""

    def add_tasks(self, rows: list[Row]) -> dict[str, int]:
        """Add tasks and return their ids."""
        statement, run = _insert(TASK, NEW.names), self._connection.execute
        return {row[0]: int(run(statement, row).lastrowid or 0) for row in rows}

    def insert(self, table: Table, names: tuple[str, ...], rows: list[Row]) -> None:
        """Add rows."""
        self._connection.executemany(_insert(table, names), rows)

    def update(self, table: Table, names: tuple[str, ...], rows: list[Row]) -> None:
        """Set columns of rows; the key of each comes last."""
        self._connection.executemany(_update(table, names), rows)

    def check_committed(self, cursor: Cursor) -> None:
        """Acknowledge nothing that went into a deleted file."""
        self._check()

    def tidy(self) -> None:
        """Put the log into the file and empty it: it has rows as they were."""
        run = self._connection.execute
        run("PRAGMA busy_timeout = 200")  # readers may need the log; then it is emptied later
        with suppress(sqlite3.Error):  # the rows are erased and committed all the same
            run("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        run(f"PRAGMA busy_timeout = {int(1000 * PATIENCE)}")

    def _check(self) -> None:
        """Raise an error where the file is another one."""
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


@lru_cache
def _insert(table: Table, names: tuple[str, ...]) -> str:
    marks = ", ".join("?" * len(names))
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({marks})"


@lru_cache
def _update(table: Table, names: tuple[str, ...]) -> str:
    new = ", ".join(f"{name} = ?" for name in names)
    key = " AND ".join(f"{name} = ?" for name in table.key)
    return f"UPDATE {table.name} SET {new} WHERE {key}"
