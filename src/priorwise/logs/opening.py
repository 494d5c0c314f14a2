"""Any table as an Ibis table: a file, a frame in memory, or a table of a database."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from priorwise.core.errors import ArgumentError, ArgumentTypeError, option, shown
from priorwise.logs.checking import EngineError, fetch, first_row, reason

MISSING: Final = (
    "reading a log needs Ibis with DuckDB: pip install 'ibis-framework[duckdb]' (or the extra "
    "'logs' of priorwise)"
)
ENDINGS: Final = {
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".csv", ".tsv", ".txt"), "csv"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "arrow"),
}
TABLES: Final = ("columns", "column_names", "__arrow_c_stream__")
"""What tables in memory have, one or the other."""
LONGEST_HEAD: Final = 1 << 20
NULLS: Final = 200
"""Bytes in which a text in UTF-16 has zeros."""
TWO: Final = r"\d{1,2}"
BOM: Final = "\ufeff"
ZONE: Final = r":[0-9.]+ *(Z|z|[+-][0-9]{2}(:?[0-9]{2})?)$"
"""How a time ends that says its zone."""
ZONES: Final = (
    "must have a zone in all rows of the column {name!r} or in none, unlike {row} of {where}"
)


def open_log(
    log: Any,
    *,
    every_row: bool = False,
    encoding: str | None = None,
    texts: Iterable[str] = (),
) -> tuple[Any, str, tuple[str, ...]]:
    """Return a log as an Ibis table, what to call it in errors, and what was guessed to read it.

    Files are read by an embedded DuckDB, which streams them: they may be larger than memory. It
    finds the types of a CSV's columns from the first rows, or, slowly, from ``every_row``; those in
    ``texts`` stay as they are written. A text that is not in UTF-8 is copied to memory. A table
    that is an Ibis table already stays in its own engine.
    """
    ibis = _ibis()
    if encoding is not None and not is_text(log):
        raise ArgumentError("encoding", "is for a file of text, such as a CSV", cure="leave it out")
    if isinstance(log, ibis.Table):
        return log, "the table", ()
    if isinstance(log, (str, Path)):
        if not str(log).strip():
            raise ArgumentError("log", "has an empty path, as an unset variable of the shell is")
        return _file(ibis, Path(log), every_row, encoding, texts)
    if hasattr(log, "collect") and not hasattr(log, "__arrow_c_stream__"):
        log = log.collect()  # a lazy frame
    series = hasattr(log, "iloc") and not hasattr(log, "columns")
    if series or not any(hasattr(log, name) for name in TABLES):
        raise ArgumentTypeError(
            "log",
            "must be a path of a Parquet, CSV or Arrow file, a pandas or Polars frame, an "
            "Arrow table or an Ibis table",
            got=type(log),
        )
    return ibis.memtable(_arrow_table(log)), "the frame", ()


def is_text(log: Any) -> bool:
    """Whether a log is a file of text, whose columns have no types."""
    return isinstance(log, (str, Path)) and _kind(Path(log)) == "csv"


def one_kind_of_time(log: Any, column: str, encoding: str | None = None) -> None:
    """Refuse a column of a text file where some times say their zone and others do not: which of
    them are equal would depend on where the file is read.
    """
    encoding = encoding or guessed_encoding(Path(log), whole=False)
    table = _csv(_ibis(), Path(log), encoding, all_varchar=True)
    text = table[column].strip()
    bare = text.notnull() & (text != "") & ~text.re_search(ZONE)
    row = first_row(table, bare)
    if row is not None:
        raise ArgumentError("time", ZONES.format(row=row, where=log, name=column))


def unclear_day(log: Any, column: str, encoding: str | None = None) -> str | None:
    """Return a day of a column of a text file, if days may be read in two ways: 02/01/2024 where no
    number above 12 shows which are the months, and 02.01.24. None if they are clear.
    """
    table, _, _ = open_log(log, encoding=encoding, texts=[column])
    text = table[column].strip()
    rows = table.select(text=text).filter(text.notnull() & (text != ""))
    first = fetch(rows.limit(1))["text"]
    if not len(first) or re.match(r"\d{4}", first[0]):  # the year comes first
        return None
    short = rows.text.re_search(rf"^{TWO}[-/.]{TWO}[-/.]\d\d(\D|$)").sum()
    either = rows.text.re_search(rf"^{TWO}[-/]{TWO}[-/]\d{{4}}")
    clear = rows.text.re_search(rf"^({TWO}[-/])?(1[3-9]|[23]\d)[-/]")
    facts = fetch(rows.aggregate(short=short, either=either.sum(), clear=(either & clear).sum()))
    unclear = facts["short"][0] or (facts["either"][0] and not facts["clear"][0])
    return str(first[0]) if unclear else None


def _ibis() -> Any:
    try:
        import duckdb  # noqa: F401
        import ibis
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(MISSING, name=error.name) from None
    return ibis


def _arrow_table(log: Any) -> Any:
    import pyarrow as pa

    if hasattr(log, "iloc"):  # pandas keeps two columns of one name apart by their place only
        _once(log.columns, "the frame")
    try:
        table = pa.table(log)
    except (TypeError, ValueError) as error:  # a column of words and numbers
        raise ArgumentError(
            "log", f"is a frame that cannot be read: {_mixed(log) or error}"
        ) from error
    _once(table.column_names, "the frame")
    if hasattr(log, "iloc"):
        for name in log.columns:
            if log[name].dtype == object and pa.types.is_timestamp(table[str(name)].type):
                _one_zone(name, log[name])
    return table


def _mixed(log: Any) -> str:
    """Say which column of a pandas frame holds things of several types, and where; "" if none."""
    for name in log.columns if hasattr(log, "iloc") else ():
        first = None
        for row, each in enumerate(log[name] if log[name].dtype == object else ()):
            first = first or (None if each is None else type(each))
            if each is not None and type(each) is not first:
                return (
                    f"row {row + 1:,} of the column {name!r} has {shown(each)}, which "
                    "is of another type than the rows above; make them one type"
                )
    return ""


def _one_zone(name: Any, column: Iterable[Any]) -> None:
    """Refuse times of which some say their zone and others do not."""
    first = None
    for row, each in enumerate(column):
        if isinstance(each, datetime):
            first = each if first is None else first
            if (each.tzinfo is None) != (first.tzinfo is None):
                raise ArgumentError(
                    "time", ZONES.format(row=f"row {row + 1:,}", where="the frame", name=name)
                )


def _kind(path: Path) -> str | None:
    suffixes = [each.lower() for each in path.suffixes if each.lower() not in (".gz", ".zst")]
    return ENDINGS.get(suffixes[-1]) if suffixes else None


def _file(
    ibis: Any, path: Path, every_row: bool, encoding: str | None, texts: Iterable[str]
) -> tuple[Any, str, tuple[str, ...]]:
    kind = _kind(path)
    many = path.is_dir() or (not path.exists() and any(sign in path.name for sign in "*?["))
    if kind is None and not many:
        raise ArgumentError(
            "log",
            f"must be a file ending in {', '.join(ENDINGS)}, or a folder of Parquet files",
            got=str(path),
        )
    if not many and not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r} to read a log from")
    if not many and path.stat().st_size == 0:
        raise ArgumentError("log", f"must have rows, but the file {str(path)!r} is empty")
    if path.is_dir() and not any(path.rglob("*.parquet")):
        raise ArgumentError(
            "log", f"must have files that end in .parquet in the folder {str(path)!r}"
        )
    notes: tuple[str, ...] = ()
    try:
        if kind == "csv" and not path.is_dir():
            if encoding is None and path.is_file():
                encoding = guessed_encoding(path, whole=every_row)
                if encoding is not None:
                    notes = (
                        f"the file is not in UTF-8, and is read as {option('encoding', encoding)}",
                    )
            options: dict[str, Any] = {"sample_size": -1} if every_row else {}
            if types := dict.fromkeys(texts, "string"):
                options["types"] = types
            return _csv(ibis, path, encoding, **options), str(path), notes
        read = _arrow if kind == "arrow" and not path.is_dir() else _parquet
        return read(ibis, path), str(path), notes
    except FileNotFoundError:
        raise
    except UnicodeError as error:
        raise ArgumentError(
            "encoding",
            f"must be that of {str(path)!r}, which is not text in {encoding or 'UTF-8'} ({error})",
            cure=(
                "pass the encoding that it was saved in, such as "
                f"{option('encoding', 'latin-1')}, or "
                "save it as UTF-8"
            ),
        ) from error
    except _TwiceError:
        raise
    except Exception as error:  # each engine has errors of its own
        why = (_ragged(path) if kind == "csv" else "") or reason(error)
        raise EngineError("log", f"cannot be read from {str(path)!r}: {why}") from error


def _duckdb(ibis: Any) -> Any:
    """An engine that reads what is there: by default it trusts the extremes that Parquet files
    state of a column, which leave NaN out, and never looks for NaN.
    """
    engine = ibis.duckdb.connect()
    engine.con.execute("SET disabled_optimizers = 'statistics_propagation'")
    return engine


def _parquet(ibis: Any, path: Path) -> Any:
    from pyarrow import parquet

    if path.is_file():
        _once(parquet.read_schema(path).names, str(path))  # DuckDB would rename the second
    where = str(path / "**" / "*.parquet") if path.is_dir() else str(path)
    return _duckdb(ibis).read_parquet(where)


def _csv(ibis: Any, path: Path, encoding: str | None, **options: Any) -> Any:
    engine = _duckdb(ibis)
    if encoding is None:
        if path.is_file():
            options["delim"], names = _head(path)
            _once(names, str(path))
        return engine.read_csv(str(path), header=True, **options)
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "log.csv"
        with copy.open("wb") as file:
            for part in _decoded(path, encoding):
                file.write(part.removeprefix(BOM).encode())
        options["delim"], names = _head(copy)
        _once(names, str(path))
        return engine.create_table("log", engine.read_csv(str(copy), header=True, **options))


def _decoded(path: Path, encoding: str) -> Iterator[str]:
    """The text of a file, in parts."""
    import pyarrow as pa

    decoder = codecs.getincrementaldecoder(encoding)()
    with pa.input_stream(str(path), compression="detect") as file:
        while part := file.read(LONGEST_HEAD):
            yield decoder.decode(part)
        yield decoder.decode(b"", final=True)


def check_encoding(encoding: Any) -> None:
    """Check the name of an encoding of texts."""
    try:
        text = encoding is None or "".encode(encoding) is not None
    except (LookupError, TypeError):
        text = False
    if not text:
        raise ArgumentError(
            "encoding",
            "must be the name of an encoding, such as 'latin-1' or 'utf-16'",
            got=encoding,
        )


def guessed_encoding(path: Path, *, whole: bool) -> str | None:
    """The encoding of a text by its first bytes, or by all of them; None for UTF-8. What is neither
    UTF-8 nor UTF-16 is taken for the Latin-1 of Windows, if it can be.
    """
    import pyarrow as pa

    with pa.input_stream(str(path), compression="detect") as file:
        start = file.read(LONGEST_HEAD)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" in start[:NULLS]:
        return "utf-16-le" if start[1:NULLS:2].count(0) >= start[:NULLS:2].count(0) else "utf-16-be"
    for encoding in ("utf-8", "cp1252"):
        try:
            if whole:
                for _ in _decoded(path, encoding):
                    pass
            else:
                codecs.getincrementaldecoder(encoding)().decode(start)
        except UnicodeDecodeError:
            continue
        return None if encoding == "utf-8" else encoding
    return "latin-1"


def _head(path: Path) -> tuple[str, list[str]]:
    """The sign between the columns of a file of text, and their names: the sign that is often in
    the first two lines, outside quotes.
    """
    import pyarrow as pa

    with pa.input_stream(str(path), compression="detect") as file:
        start = file.read(LONGEST_HEAD).removeprefix(codecs.BOM_UTF8).splitlines()
    bare = [re.sub(rb'"[^"]*"', b"", line) for line in [*start, b"", b""][:2]]
    counts = {sign: [line.count(sign.encode()) for line in bare] for sign in ",;\t|"}
    sign = max(counts, key=lambda each: (min(counts[each]), counts[each][0]))
    names = start[0].decode("utf-8") if start else ""
    return sign, next(csv.reader([names], delimiter=sign), [])


def _ragged(path: Path) -> str:
    """Name the first line of a text file with more or fewer fields than its head; "" if none."""
    import pyarrow as pa

    try:
        sign, _ = _head(path)
        with pa.input_stream(str(path), compression="detect") as file:
            lines = csv.reader(io.TextIOWrapper(file, "utf-8-sig", newline=""), delimiter=sign)
            fields = len(next(lines))
            for row in lines:
                if row and len(row) != fields:
                    line = f"line {lines.line_num:,} has {len(row)} fields"
                    return f"{line}, and the head of the file has {fields}"
    except (OSError, UnicodeError, csv.Error):
        return ""
    return ""


def _arrow(ibis: Any, path: Path) -> Any:
    from pyarrow import feather

    table = feather.read_table(str(path))
    _once(table.column_names, str(path))
    return ibis.memtable(table)


class _TwiceError(ArgumentError):
    """Two columns have one name."""


def _once(names: Iterable[Any], where: str) -> None:
    """Refuse two columns of one name, also where only the case differs, which engines overlook."""
    twice = [name for name, count in Counter(str(n).lower() for n in names).items() if count > 1]
    if twice:
        raise _TwiceError(
            "log", f"has the column {shown(twice[0])} more than once in {where}", cure="rename one"
        )
