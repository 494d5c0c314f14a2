"""Any table as an Ibis table: a file, a frame in memory, or a table of a database."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from priorwise.core import validation

MISSING: Final = (
    "reading a log needs Ibis with DuckDB: pip install 'ibis-framework[duckdb]' (or the extra "
    "'logs' of priorwise)"
)


def open_log(log: Any) -> tuple[Any, str]:
    """Return a log as an Ibis table, and what to call it in errors.

    Files are read by an embedded DuckDB, which streams them: they may be larger than memory. A
    table that is an Ibis table already stays in its own engine.
    """
    ibis = _ibis()
    if isinstance(log, ibis.Table):
        return log, "the table"
    if isinstance(log, (str, Path)):
        return _file(ibis, Path(log)), str(log)
    if not any(hasattr(log, name) for name in ("columns", "column_names")):
        raise TypeError(
            "log must be a path of a Parquet, CSV or Arrow file, a pandas or Polars frame, an "
            f"Arrow table or an Ibis table, got {type(log).__name__}"
        )
    names: Any = getattr(log, "column_names", None)
    _once(log.columns if names is None else names, "the frame")
    import pyarrow as pa

    try:
        return ibis.memtable(pa.table(log)), "the frame"
    except (TypeError, ValueError) as error:  # a column of words and numbers
        raise ValueError(f"log: the frame cannot be read: {error}") from error


def _ibis() -> Any:
    try:
        import duckdb  # noqa: F401
        import ibis
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(MISSING, name=error.name) from None
    return ibis


def _file(ibis: Any, path: Path) -> Any:
    suffixes = [each.lower() for each in path.suffixes if each.lower() not in (".gz", ".zst")]
    kind = suffixes[-1] if suffixes else ""
    readers: dict[str, Callable[[Any, Path], Any]] = {
        **dict.fromkeys((".parquet", ".pq"), _parquet),
        **dict.fromkeys((".csv", ".tsv", ".txt"), _csv),
        **dict.fromkeys((".arrow", ".feather", ".ipc"), _arrow),
    }
    many = path.is_dir() or any(sign in path.name for sign in "*?[")
    if kind not in readers and not many:
        raise ValueError(
            f"log must be a file ending in {', '.join(readers)}, or a folder of Parquet files, got "
            f"{validation.shown(str(path))}"
        )
    if not many and not path.is_file():
        raise FileNotFoundError(f"log: there is no file {str(path)!r}")
    if not many and path.stat().st_size == 0:
        raise ValueError(f"log: the file {str(path)!r} is empty")
    try:
        return _parquet(ibis, path) if many else readers[kind](ibis, path)
    except (OSError, ValueError):
        raise
    except Exception as error:  # each engine has errors of its own
        reason = str(error).strip().splitlines()[0]
        raise ValueError(f"log: {str(path)!r} cannot be read: {reason}") from error


def _parquet(ibis: Any, path: Path) -> Any:
    where = str(path / "**" / "*.parquet") if path.is_dir() else str(path)
    return ibis.duckdb.connect().read_parquet(where)


def _csv(ibis: Any, path: Path) -> Any:
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
        head = file.readline()
    try:
        delimiter = csv.Sniffer().sniff(head, ",;\t|").delimiter
    except csv.Error:
        delimiter = ","
    _once(next(csv.reader([head], delimiter=delimiter)), str(path))
    return ibis.duckdb.connect().read_csv(str(path), header=True, delim=delimiter)


def _arrow(ibis: Any, path: Path) -> Any:
    from pyarrow import feather

    table = feather.read_table(str(path))
    _once(table.column_names, str(path))
    return ibis.memtable(table)


def _once(names: Iterable[Any], where: str) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(
            f"log: {where} has the column {validation.shown(twice[0])} more than once; rename one"
        )
