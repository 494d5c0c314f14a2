"""A tidy table in few rows: means over replicates with their standard errors."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from priorwise.core.estimates import digits_of, std_error
from priorwise.core.types import FloatArray
from priorwise.figures.tables import Table

MOST_ROWS: Final = 30
MOST_COLUMNS: Final = 10
REPLICATE: Final = "replicate"


@final
@dataclass(frozen=True)
class Headline:
    """Rows of text to be shown."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[bool, ...]  # which columns hold numbers, to be set to the right
    replicates: int | None  # over how many the means are; None if the table is shown as it is


def headline(table: Table) -> Headline | None:
    """Show a table that is short, or short once replicates are averaged; None for the others.

    Columns of floats and of yes or no are what was measured, the other columns say of what.
    """
    size = len(next(iter(table.values())))
    if not size or len(table) > MOST_COLUMNS:
        return None
    if REPLICATE in table:
        replicates = len(np.unique(table[REPLICATE]))
        return _averaged(table, replicates) if size <= MOST_ROWS * replicates else None
    if size > MOST_ROWS:
        return None
    rows = tuple(tuple(map(plain, row)) for row in zip(*table.values(), strict=True))
    numbers = tuple(values.dtype.kind in "iuf" for values in table.values())
    return Headline(tuple(table), rows, numbers, None)


def _averaged(table: Table, replicates: int) -> Headline | None:
    measured = [name for name, values in table.items() if values.dtype.kind in "fb"]
    keys = [name for name in table if name not in (*measured, REPLICATE)]
    groups: dict[tuple[Any, ...], list[int]] = {}
    columns = [table[name].tolist() for name in keys]
    for index in range(len(table[REPLICATE])):
        groups.setdefault(tuple(column[index] for column in columns), []).append(index)
    if not measured or len(groups) > MOST_ROWS:
        return None
    rows = tuple(
        (*map(_of, keys, key), *(mean_text(by_replicate(table, name, index)) for name in measured))
        for key, index in groups.items()
    )
    numbers = [table[name].dtype.kind in "iu" for name in keys] + [True] * len(measured)
    return Headline((*keys, *measured), rows, tuple(numbers), replicates)


def _of(name: str, value: Any) -> str:
    return "–" if name == "t0" and value == 0 else plain(value)  # no exploration


def by_replicate(table: Table, column: str, rows: Sequence[int]) -> FloatArray:
    """Mean of a column over the rows of each replicate: replicates are independent, rows of one
    need not be.
    """
    _, place, count = np.unique(table[REPLICATE][rows], return_inverse=True, return_counts=True)
    return np.asarray(np.bincount(place, weights=table[column][rows].astype(np.float64)) / count)


def mean_text(values: FloatArray) -> str:
    """Mean ± standard error, with two digits of the latter."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return plain(mean)
    error = float(std_error(values))
    if not math.isfinite(error) or error <= 0.0:
        return f"{plain(mean)} ± {plain(error)}"
    digits = min(digits_of(error), 8)
    return f"{mean:,.{digits}f} ± {error:,.{digits}f}"


def plain(value: Any) -> str:
    """Return one cell as text."""
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        return f"{value:.5g}"
    return f"{value:,}" if isinstance(value, (int, np.integer)) else str(value)
