"""Tidy tables, as figures read them: columns of one length, by name."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
        got = f"{', '.join(missing)} missing, got {', '.join(table) or 'none'}"
        raise ValueError(f"{name} must have the columns {', '.join(kinds)}; {got}")
    out: Table = {}
    for column, kind in kinds.items():
        values, where = np.asarray(table[column]), f"{name}[{column!r}]"
        letters, meaning = KINDS[kind]
        if values.ndim != 1:
            one = "a vector with one entry per row"
            raise ValueError(f"{where} must be {one}, got shape {values.shape}")
        if values.size == 0:
            raise ValueError(f"{name} must not be empty: {column} has no rows")
        if values.dtype.kind not in letters:
            got = f"got {values.dtype}; convert it with astype"
            raise TypeError(f"{where} must hold {meaning}, {got}")
        if kind == "real" and not np.isfinite(values).all():
            wrong = "but has NaN or infinite entries; leave those replicates out"
            raise ValueError(f"{where} must be finite, {wrong}")
        if kind == "whole" and values.min() < 0:
            raise ValueError(f"{where} must not be negative, got {values.min()}")
        out[column] = values.astype(str) if values.dtype.kind in "TO" else values
    if len({values.size for values in out.values()}) > 1:
        sizes = ", ".join(f"{column}: {values.size}" for column, values in out.items())
        raise ValueError(f"{name} must have columns of one length, got {sizes}")
    return out


def panels(name: str, tables: Table | Mapping[str, Table]) -> dict[str, Table]:
    """Tables by title of their panel; one table alone has a panel without a title."""
    wanted = "a table (columns by name) or tables by panel"
    if not isinstance(tables, Mapping):
        raise TypeError(f"{name} must be {wanted}, got {type(tables).__name__}")
    if not tables:
        raise ValueError(f"{name} must not be empty; give {wanted}")
    nested = {key: value for key, value in tables.items() if isinstance(value, Mapping)}
    columns = {key: value for key, value in tables.items() if not isinstance(value, Mapping)}
    if nested and columns:
        both = f"{', '.join(nested)} beside columns {', '.join(columns)}"
        raise TypeError(f"{name} must be one table or tables by panel, got both: {both}")
    return nested or {"": columns}


def tidy(
    columns: Mapping[str, tuple[int, ArrayLike | None]], value: str, values: NDArray[Any]
) -> Table:
    """Put an array into a table with one row per number.

    ``columns`` has the axis that each column names, and the names along it; None numbers them.
    """
    index = [each.ravel() for each in np.indices(values.shape)]
    named = {
        column: index[axis] if names is None else np.asarray(names)[index[axis]]
        for column, (axis, names) in columns.items()
    }
    return named | {value: values.ravel()}


def codes(values: NDArray[Any]) -> tuple[list[str], IntArray]:
    """Distinct names in the order of their first row, and the number of its name for each row.

    Rows of one name mostly follow each other, so only the first of each run is looked up.
    """
    starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    numbers: dict[str, int] = {}
    runs = [numbers.setdefault(str(each), len(numbers)) for each in values[starts]]
    return list(numbers), np.repeat(
        np.array(runs, dtype=np.int64), np.diff(starts, append=values.size)
    )
