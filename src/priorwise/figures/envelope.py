"""From replicates to curves: the mean at each episode, and for algorithms that explore first the
best exploration length there.

With ``m(c, e)`` the mean over replicates of configuration ``c`` (an exploration length ``T0``) at
episode ``e``, the upper envelope is ``max_c m(c, e)``, chosen anew at each ``e``; its standard
error is that of the chosen configuration. The choice is made on the same replicates that are shown,
so an envelope flatters its algorithm a little where configurations are close.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from priorwise.core.errors import ArgumentError
from priorwise.core.types import FloatArray, IntArray
from priorwise.figures.tables import Table, checked, codes

_WHOLE: Final = dict.fromkeys(("t0", "replicate", "episode"), "whole")
CURVES: Final = {"algorithm": "text", **_WHOLE, "average": "real"}


def envelope(curves: Table) -> Table:
    """Mean and standard error over replicates, by algorithm and episode, of the best exploration
    length at that episode.

    ``curves`` has the columns ``algorithm``, ``t0``, ``replicate``, ``episode``, ``average``, in
    rows of any order. A configuration counts at every episode, also while it explores. Among equals
    the shortest exploration wins.

    Returns the columns ``algorithm``, ``episode``, ``mean``, ``std_error`` (NaN with one replicate)
    and ``t0``: algorithms in the order of their first row, episodes ascending.
    """
    table = checked("curves", curves, CURVES)
    names, algorithm = codes(table["algorithm"])
    lengths, length = np.unique(table["t0"], return_inverse=True)
    episodes, episode = np.unique(table["episode"], return_inverse=True)
    shape = (len(names), episodes.size, lengths.size)
    cells = np.ravel_multi_index((algorithm, episode, length), shape)
    cell, mean, std_error = _by_cell(cells, table)
    where = np.unravel_index(cell, shape)
    _complete(names, lengths, episodes, where)

    # Cells ascend by algorithm, episode, length: within a point the first of the largest means is
    # the one to keep.
    point = where[0] * episodes.size + where[1]
    order = np.lexsort((where[2], -mean, point))
    best = order[np.flatnonzero(np.diff(point[order], prepend=-1))]
    return {
        "algorithm": np.array(names)[where[0][best]],
        "episode": episodes[where[1][best]],
        "mean": mean[best],
        "std_error": std_error[best],
        "t0": lengths[where[2][best]],
    }


def _by_cell(cell: IntArray, table: Table) -> tuple[IntArray, FloatArray, FloatArray]:
    """Distinct cells, ascending, with mean and standard error over their replicates.

    Replicates are summed in their order, so neither rounding nor ties depend on the order of the
    rows.
    """
    order = np.lexsort((table["replicate"], cell))
    cell = cell[order]
    replicate = table["replicate"][order]
    average = table["average"][order].astype(np.float64)
    twice = np.flatnonzero((cell[1:] == cell[:-1]) & (replicate[1:] == replicate[:-1]))
    if twice.size:
        keys = ("algorithm", "t0", "replicate", "episode")
        row = _named({column: table[column][order[twice[0]]] for column in keys})
        raise ArgumentError(
            "curves",
            f"must have one row for each replicate, but has two with {row}",
            cure="number replicates across blocks",
        )
    starts = np.flatnonzero(np.diff(cell, prepend=-1))
    counts = np.diff(starts, append=cell.size)
    mean = np.add.reduceat(average, starts) / counts
    squares = np.add.reduceat((average - np.repeat(mean, counts)) ** 2, starts)
    with np.errstate(invalid="ignore"):
        return cell[starts], mean, np.sqrt(squares / (counts - 1) / counts)  # s / sqrt(n)


def _complete(
    names: Sequence[str], lengths: IntArray, episodes: IntArray, where: tuple[IntArray, ...]
) -> None:
    """Every configuration must be there at every episode of its algorithm: a maximum over a
    changing set is no envelope.
    """
    present = np.zeros((len(names), episodes.size, lengths.size), dtype=np.bool_)
    present[where] = True
    wanted = present.any(axis=2, keepdims=True) & present.any(axis=1, keepdims=True)
    gaps = np.argwhere(wanted & ~present)
    if gaps.size:
        algorithm, episode, length = gaps[0]
        row = {"algorithm": names[algorithm], "t0": lengths[length], "episode": episodes[episode]}
        raise ArgumentError(
            "curves",
            "must have every configuration at every episode of its algorithm, but has no row "
            f"with {_named(row)}",
        )


def _named(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{column} {value}" for column, value in row.items())
