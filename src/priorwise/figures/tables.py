"""Tidy tables, as figures read them: columns of one length, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from priorwise.core.types import IntArray

Table = dict[str, NDArray[Any]]
"""A tidy table: columns of one length, by name."""

KINDS: Final = {"text": ("UTO", "names"), "whole": ("iu", "integers"), "real": ("fiu", "numbers")}


def checked(name: str, table: Table, kinds: Mapping[str, str]) -> Table:
    """Return the columns that ``kinds`` asks for (``text``, ``whole`` or ``real``): of one length,
    not empty, finite.
    """
    if not isinstance(table, Mapping):
        raise TypeError(f"{name} must be a table (columns by name), got {type(table).__name__}")
    missing = [column for column in kinds if column not in table]
    if missing:
        raise ValueError(
            f"{name} must have the columns {', '.join(kinds)}; {', '.join(missing)} missing, got "
            f"{', '.join(table) or 'none'}"
        )
    out: Table = {}
    for column, kind in kinds.items():
        values = np.asarray(table[column])
        letters, meaning = KINDS[kind]
        if values.ndim != 1:
            raise ValueError(
                f"{name}[{column!r}] must be a vector with one entry per row, got shape "
                f"{values.shape}"
            )
        if values.size == 0:
            raise ValueError(f"{name} must not be empty: {column} has no rows")
        if values.dtype.kind not in letters:
            raise TypeError(
                f"{name}[{column!r}] must hold {meaning}, got {values.dtype}; convert it with "
                "astype"
            )
        if kind == "real" and not np.isfinite(values).all():
            raise ValueError(
                f"{name}[{column!r}] must be finite, but has NaN or infinite entries; leave those "
                "replicates out"
            )
        if kind == "whole" and values.min() < 0:
            raise ValueError(f"{name}[{column!r}] must not be negative, got {values.min()}")
        out[column] = values.astype(str) if values.dtype.kind in "TO" else values
    sizes = {column: values.size for column, values in out.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(
            f"{name} must have columns of one length, got "
            f"{', '.join(f'{key}: {size}' for key, size in sizes.items())}"
        )
    return out


def panels(name: str, tables: Table | Mapping[str, Table]) -> dict[str, Table]:
    """Tables by title of their panel; one table alone has a panel without a title."""
    if not isinstance(tables, Mapping):
        raise TypeError(
            f"{name} must be a table (columns by name) or tables by panel, got "
            f"{type(tables).__name__}"
        )
    if not tables:
        raise ValueError(
            f"{name} must not be empty; give a table (columns by name) or tables by panel"
        )
    nested = {key: value for key, value in tables.items() if isinstance(value, Mapping)}
    columns = {key: value for key, value in tables.items() if not isinstance(value, Mapping)}
    if nested and columns:
        raise TypeError(
            f"{name} must be one table or tables by panel, got both: {', '.join(nested)} beside "
            f"columns {', '.join(columns)}"
        )
    return nested or {"": columns}


def codes(values: NDArray[Any]) -> tuple[list[str], IntArray]:
    """Distinct names in the order of their first row, and the number of its name for each row.

    Rows of one name mostly follow each other, so only the first of each run is looked up.
    """
    starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    numbers: dict[str, int] = {}
    runs = np.array(
        [numbers.setdefault(str(each), len(numbers)) for each in values[starts]], dtype=np.int64
    )
    return list(numbers), np.repeat(runs, np.diff(starts, append=values.size))
