"""Tidy tables, as figures read them: columns of one length, by name."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.types import IntArray

Table = dict[str, NDArray[Any]]
"""A tidy table: columns of one length, by name."""

KINDS: Final = {"text": ("UTO", "names"), "whole": ("iu", "integers"), "real": ("fiu", "numbers")}


def checked(name: str, table: Table, kinds: Mapping[str, str]) -> Table:
    """Return the columns that ``kinds`` asks for (``text``, ``whole`` or ``real``): of one length,
    not empty, finite.
    """
    if not isinstance(table, Mapping):
        raise ArgumentTypeError(name, "must be a table (columns by name)", got=type(table))
    missing = [column for column in kinds if column not in table]
    if missing:
        raise ArgumentError(
            name,
            f"must have the columns {', '.join(kinds)}",
            got=", ".join(table) or "none",
            cure=f"{', '.join(missing)} missing",
        )
    out: Table = {}
    for column, kind in kinds.items():
        values, where = np.asarray(table[column]), f"{name}[{column!r}]"
        letters, meaning = KINDS[kind]
        if values.ndim != 1:
            raise ArgumentError(where, "must be a vector with one entry per row", got=values.shape)
        if values.size == 0:
            raise ArgumentError(name, "must not be empty", cure=f"{column} has no rows")
        if values.dtype.kind not in letters:
            raise ArgumentTypeError(
                where, f"must hold {meaning}", got=values.dtype, cure="convert it with astype"
            )
        if kind == "real" and not np.isfinite(values).all():
            raise ArgumentError(
                where,
                "must be finite, but has NaN or infinite entries",
                cure="leave those replicates out",
            )
        if kind == "whole" and values.min() < 0:
            raise ArgumentError(where, "must not be negative", got=values.min())
        out[column] = values.astype(str) if values.dtype.kind in "TO" else values
    if len({values.size for values in out.values()}) > 1:
        raise ArgumentError(
            name,
            "must have columns of one length",
            got=", ".join((f"{column}: {values.size}" for column, values in out.items())),
        )
    return out


def panels(name: str, tables: Table | Mapping[str, Table]) -> dict[str, Table]:
    """Tables by title of their panel; one table alone has a panel without a title."""
    wanted = "a table (columns by name) or tables by panel"
    if not isinstance(tables, Mapping):
        raise ArgumentTypeError(name, f"must be {wanted}", got=type(tables))
    if not tables:
        raise ArgumentError(name, "must not be empty", cure=f"give {wanted}")
    nested = {key: value for key, value in tables.items() if isinstance(value, Mapping)}
    columns = {key: value for key, value in tables.items() if not isinstance(value, Mapping)}
    if nested and columns:
        raise ArgumentTypeError(name, "must be one table or tables by panel", got="both")
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
