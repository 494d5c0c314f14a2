"""The log as a table that ``fit_prior`` and ``backtest`` read: one row per pull with its reward, or
per record of several.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final

from priorwise.core.files import file_path
from priorwise.serve.ahead import rest
from priorwise.serve.rows import Decided, Event, Task
from priorwise.serve.stores.store import Store

if TYPE_CHECKING:
    import pyarrow as pa

LogRow = dict[str, Any]  # by column

ROWS: Final = 2_000
"""Rows that are written at a time."""
COLUMNS: Final = (
    *("task", "action", "reward", "pulls", "squares", "step", "propensity", "propensity_error"),
    *("available", "version", "time", "rewarded", "closed", "outcome"),
)


def log_rows(
    task: Task,
    decisions: list[Decided],
    events: list[Event],
    *,
    outstanding: bool = False,
    binary: bool = False,
) -> Iterator[LogRow]:
    """Rows of one task; with ``outstanding`` also those of decisions whose reward is not known."""
    settled = {each.step: each for each in events if each.step is not None}
    shared = {"task": task.name, "version": task.version, "closed": task.closed is not None}
    for row in decisions:
        if row.counts is not None:
            continue
        event = settled.get(row.step)
        known = event is not None and event.value is not None
        if not known and not outstanding:
            continue
        value = event.value if event is not None and known else None
        told = {
            **shared,
            "action": task.arms[row.arm],
            "reward": value,
            "pulls": 1,
            "squares": None if value is None else value * value,
            "step": row.step,
            "propensity": row.propensity,
            "propensity_error": row.error,
            "available": None if row.mask is None else _available(task, row.mask),
            "time": row.time,
            "rewarded": None if event is None else event.time,
            "outcome": "outstanding" if event is None else event.kind,
        }
        if row.context is not None:
            told |= {f"x{k}": x for k, x in enumerate(row.context[row.arm])}
        yield told
    for event in events:
        if event.kind == "record":
            yield {
                **shared,
                "action": task.arms[event.arm],
                "reward": event.value,
                "pulls": int(event.pulls),
                "squares": event.value if binary else _squares(event),
                "step": None,
                "propensity": None,
                "propensity_error": None,
                "available": None,
                "time": event.time,
                "rewarded": event.time,
                "outcome": "record",
            }


def tables(
    store: Store,
    *,
    closed: bool | None = None,
    outstanding: bool = False,
    dim: int = 0,
    binary: bool = False,
) -> Iterator[pa.Table]:
    """Arrow tables of the log, some rows each, tasks in the order in which they were opened."""
    rows: list[LogRow] = []
    for task, decisions, events in store.rows():
        rest()
        if closed is not None and (task.closed is not None) != closed:
            continue
        rows.extend(log_rows(task, decisions, events, outstanding=outstanding, binary=binary))
        if len(rows) >= ROWS:
            yield _table(rows, dim)
            rows = []
    yield _table(rows, dim)


def _table(rows: list[LogRow], dim: int) -> pa.Table:
    import pyarrow as pa

    text, number, whole = pa.string(), pa.float64(), pa.int64()
    kinds = {
        **dict.fromkeys(("task", "action", "available", "outcome"), text),
        **dict.fromkeys(("reward", "squares", "propensity", "propensity_error"), number),
        **dict.fromkeys(("pulls", "step", "version"), whole),
        **dict.fromkeys(("time", "rewarded"), pa.timestamp("us", tz="UTC")),
        "closed": pa.bool_(),
    }
    fields = [(name, kinds[name]) for name in COLUMNS]
    fields += [(f"x{k}", number) for k in range(dim)]
    columns = {}
    for name, kind in fields:
        rest()
        values = [row.get(name) for row in rows]
        if name in ("time", "rewarded"):
            values = [None if each is None else round(each * 1e6) for each in values]
        columns[name] = pa.array(values, kind)
    return pa.table(columns, schema=pa.schema(fields))


def write_log(path: str | os.PathLike[str], parts: Iterator[pa.Table]) -> int:
    """Write the log as Parquet, or as CSV where the name says so; the file appears when whole.
    Returns the number of rows.
    """
    target = file_path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a directory")
    temporary = target.with_name(f".{target.name}.{os.getpid()}.{get_ident()}.tmp")
    try:
        rows = _write(temporary, target.suffix.lower() == ".csv", parts)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return rows


def _write(path: Path, as_csv: bool, parts: Iterator[pa.Table]) -> int:
    import pyarrow.csv
    import pyarrow.parquet

    writer, rows = None, 0
    try:
        for part in parts:
            if writer is None:
                make = pyarrow.csv.CSVWriter if as_csv else pyarrow.parquet.ParquetWriter
                writer = make(path, part.schema)
            writer.write_table(part)
            rows += part.num_rows
    finally:
        if writer is not None:
            writer.close()
    return rows


def _squares(event: Event) -> float | None:
    """Sum of squared rewards of a record; of a single one it is known."""
    if event.squares is None and event.pulls == 1 and event.value is not None:
        return event.value * event.value
    return event.squares


def _available(task: Task, mask: str) -> str:
    """Names of the arms that were there, as a JSON list."""
    import json

    return json.dumps([task.arms[place] for place, each in enumerate(mask) if each == "1"])
