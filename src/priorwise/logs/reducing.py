"""One Ibis expression reduces a log to a small sum for each task and arm, on any engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import Any, Final, Literal, final

import numpy as np
from numpy.typing import NDArray

from priorwise.core import validation
from priorwise.core.types import FloatArray, IntArray
from priorwise.logs.columns import Columns
from priorwise.logs.opening import open_log

Arms = Literal["auto", "same", "new"]
MOST_ARMS: Final = 500
"""Arms of a prior that tells them apart."""
FEW: Final = 3
"""Tasks per arm below which arms are taken for new ones in every task."""


@final
@dataclass(frozen=True, eq=False)
class Log:
    """What a log says of its tasks: sums for each task and arm that the task pulled, one row each.

    ``task`` and ``arm`` are places in ``tasks`` and ``arms``. Rows are sorted by task, then arm.
    With context columns ``gram`` and ``moments`` are sums over the pulls of a row of products of
    features, ``(row, dim, dim)``, and of features with rewards, ``(row, dim)``.
    """

    columns: Columns
    tasks: NDArray[Any]  # (task,)
    arms: NDArray[Any]  # (arm,)
    task: IntArray  # (row,)
    arm: IntArray  # (row,)
    pulls: FloatArray  # (row,)
    sums: FloatArray  # (row,)
    squares: FloatArray | None  # (row,)
    gram: FloatArray | None
    moments: FloatArray | None
    not_binary: str | None  # where a reward is not 0 or 1; None: all are
    rows: int  # of the log
    dropped: int  # rows without a reward
    said: tuple[str, ...]
    source: Any = field(repr=False)  # rows with a reward, as an Ibis table

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arms."""
        return tuple(str(each) for each in self.arms)

    @property
    def new_arms(self) -> bool:
        """Whether arms are new in every task, as far as the log tells: most of them occur in one
        task, or too few tasks share one.
        """
        per_arm = np.bincount(self.arm, minlength=len(self.arms))
        widest = int(np.bincount(self.task).max())
        return len(self.arms) > widest and bool(
            np.mean(per_arm == 1) > 0.5 or np.median(per_arm) < FEW
        )

    def places(self, arms: Arms) -> tuple[IntArray, int, tuple[str, ...] | None]:
        """Return the arm of each row, how many there are, and their names; where arms are new in
        every task they are numbered within each and have no names.
        """
        if self.new_arms if arms == "auto" else arms == "new":
            starts = np.searchsorted(self.task, np.arange(len(self.tasks)))
            place = np.arange(len(self.task)) - starts[self.task]
            return place, int(place.max()) + 1, None
        if len(self.arms) > MOST_ARMS:
            raise ValueError(
                f"action: {self.columns.action!r} has {len(self.arms):,} values, too many for a "
                "prior that tells arms apart; pass arms='new' for one that does not"
            )
        return self.arm, len(self.arms), self.names

    def grid(self, values: FloatArray, arms: Arms) -> FloatArray:
        """Return a column of rows as a table, ``(task, arm)``; 0 where a task did not pull."""
        place, width, _ = self.places(arms)
        made = np.zeros((len(self.tasks), width))
        made[self.task, place] = values
        return made

    def statistics(self, kind: Any, arms: Arms) -> Any:
        """Return statistics of a class, from the sums or, where these do not tell all, from how
        often each reward came.
        """
        if self.gram is not None and self.moments is not None:
            starts = np.searchsorted(self.task, np.arange(len(self.tasks)))
            return kind(
                **{
                    name: np.add.reduceat(getattr(self, name), starts)
                    for name in ("gram", "moments", "squares", "pulls")
                }
            )
        place, width, names = self.places(arms)
        if kind.weights() is not None:
            squares = None if self.squares is None else self.grid(self.squares, arms)
            sums = {name: self.grid(getattr(self, name), arms) for name in ("pulls", "sums")}
            return kind.from_sums(**sums, squares=squares, names=names)
        if self.columns.summed:
            raise ValueError(
                f"pulls: {kind.__name__} reads single rewards, so that the log needs one row per "
                "pull"
            )
        table = self.source.group_by(["task", "action", "reward"]).aggregate(
            count=self.source.count()
        )
        found = _fetch(table)
        row_of = {pair: row for row, pair in enumerate(zip(self.task, self.arm, strict=True))}
        pairs = zip(
            np.searchsorted(self.tasks, found["task"]),
            np.searchsorted(self.arms, found["action"]),
            strict=True,
        )
        rows = np.array([row_of[pair] for pair in pairs])
        return kind.from_counts(
            self.task[rows], place[rows], found["reward"], found["count"].astype(np.float64),
            shape=(len(self.tasks), width), names=names,
        )  # fmt: skip


def read_log(
    log: Any,
    *,
    task: str | None = None,
    action: str | None = None,
    reward: str | None = None,
    pulls: str | None = None,
    squares: str | None = None,
    context: Sequence[str] | str | None = None,
    missing: Literal["refuse", "drop"] = "refuse",
) -> Log:
    """Reduce a log to its sums, in one pass of its engine.

    Parameters
    ----------
    log
        Path of a Parquet, CSV or Arrow file or of a folder of Parquet files, a pandas or Polars
        frame, an Arrow table, or an Ibis table of any engine.
    task, action, reward
        Columns; guessed from common names if not given, which the result says aloud.
    pulls
        Column of the number of pulls that a row sums up; ``reward`` is their sum then.
    squares
        Column of the sum of squared rewards of such a row, from which the noise is estimated.
    context
        Columns of features of the pulled arm, for a log with one row per pull.
    missing
        What to do with rows without a reward, such as those whose reward has not come yet: refuse,
        or leave them out, which the result counts. They are never taken for zeros.

    """
    if missing not in ("refuse", "drop"):
        raise ValueError(f"missing must be 'refuse' or 'drop', got {validation.shown(missing)}")
    table, where = open_log(log)
    columns = Columns.of(
        table.columns, where, task=task, action=action, reward=reward, pulls=pulls,
        squares=squares, context=context,
    )  # fmt: skip
    if columns.context and columns.summed:
        raise ValueError(
            "context: features need one row per pull, but pulls= says that rows are sums"
        )
    numbers = _numeric(table, columns, where)
    rows, dropped, not_binary = _checked(numbers, columns, where, missing)
    source = numbers.filter(~_unknown(numbers.reward))
    found = _fetch(_reduced(source, columns))
    tasks, task_of = _places(found["task"])
    arms, arm_of = _places(found["action"])
    order = np.lexsort([arm_of, task_of])
    sums = {name: np.asarray(found[name], np.float64)[order] for name in found if name[0] == "_"}
    dim = len(columns.context)
    gram = moments = None
    if dim:
        gram, moments = np.empty((len(order), dim, dim)), np.empty((len(order), dim))
        for i, j in combinations_with_replacement(range(dim), 2):
            gram[:, i, j] = gram[:, j, i] = sums[f"_x{i}_{j}"]
        for i in range(dim):
            moments[:, i] = sums[f"_xr{i}"]
    return Log(
        columns, tasks, arms, task_of[order], arm_of[order],
        sums["_pulls"], sums["_sums"], sums.get("_squares"), gram, moments, not_binary, rows,
        dropped,
        columns.said, source,
    )  # fmt: skip


def _numeric(table: Any, columns: Columns, where: str) -> Any:
    """Columns by role, numbers as doubles; refuse columns that are not numbers."""
    wanted = {"reward": columns.reward, "pulls": columns.pulls, "squares": columns.squares}
    wanted |= {f"x{i}": name for i, name in enumerate(columns.context)}
    picked = {"task": table[columns.task], "action": table[columns.action]}
    for role, name in wanted.items():
        if name is None:
            continue
        column = table[name]
        if not (column.type().is_numeric() or column.type().is_boolean()):
            raise ValueError(
                f"{'context' if role[0] == 'x' else role}: the column {name!r} of {where} has "
                f"{column.type()} and not numbers; a word or an empty text in one row makes a "
                "whole column text"
            )
        picked[role] = column.cast("float64")
    return table.select(**picked)


def _checked(table: Any, columns: Columns, where: str, missing: str) -> tuple[int, int, str | None]:
    """Count rows and those without a reward, refuse impossible ones by their number, and say why
    rewards are not 0 or 1; None if they are.
    """
    reward, lost = table.reward, _unknown(table.reward)
    bad = [
        ("task", columns.task, table.task.isnull(), "no task"),
        ("action", columns.action, table.action.isnull(), "no action"),
    ]
    if missing == "refuse":
        words = "no finite reward (missing='drop' leaves rows without one out)"
        bad.append(("reward", columns.reward, lost, words))
    else:
        bad.append(("reward", columns.reward, reward.isinf(), "an infinite reward"))
    if columns.summed:
        n = table.pulls
        wrong = _unknown(n) | (n < 0) | (n % 1.0 != 0)
        bad.append(("pulls", str(columns.pulls), wrong, "pulls that are no whole number from 0 on"))
        none = (n == 0) & (reward != 0)
        bad.append(("reward", columns.reward, none, "a reward without a pull"))
    for i, name in enumerate(columns.context):
        bad.append(("context", name, _unknown(table[f"x{i}"]), "no finite number"))
    # sums of 0s and 1s are whole numbers from 0 to the number of pulls
    most = table.pulls if columns.summed else 1.0
    odd = (reward < 0) | (reward > most) | (reward % 1.0 != 0)
    tests = {f"bad{i}": test.sum() for i, (*_, test, _) in enumerate(bad)}
    facts = _fetch(table.aggregate(rows=table.count(), lost=lost.sum(), odd=odd.sum(), **tests))
    # sums over no rows are null
    count = {name: int(np.nan_to_num(values[0])) for name, values in facts.items()}
    if not count["rows"]:
        raise ValueError(f"log: {where} has no rows")
    for i, (role, name, test, words) in enumerate(bad):
        if count[f"bad{i}"]:
            place = _first(table, test, count[f"bad{i}"])
            raise ValueError(f"{role}: {place} of {where} has {words} in the column {name!r}")
    if count["lost"] == count["rows"]:
        raise ValueError(f"reward: no row of {where} has a reward in the column {columns.reward!r}")
    why = None
    if count["odd"]:
        place = _first(table, odd, count["odd"])
        limit = f"between 0 and {columns.pulls!r}" if columns.summed else "0 or 1"
        why = f"{place} of {where} has a value in {columns.reward!r} that is not {limit}"
    return count["rows"], count["lost"], why


def _unknown(column: Any) -> Any:
    return column.isnull() | column.isnan() | column.isinf()


def _first(table: Any, test: Any, count: int) -> str:
    """Name the first row that fails a test; rows count from 1, after the head of a file."""
    import ibis

    rows = table.mutate(_row=ibis.row_number(), _bad=test)
    (row,) = _fetch(rows.filter(rows._bad).aggregate(row=rows._row.min()))["row"]
    more = f" (and {count - 1:,} more)" if count > 1 else ""
    return f"row {int(row) + 1:,}{more}"


def _reduced(table: Any, columns: Columns) -> Any:
    """The expression: sums for each task and arm."""
    reward = table.reward
    sums = {"_pulls": table.count(), "_sums": reward.sum(), "_squares": (reward * reward).sum()}
    if columns.summed:
        sums = {"_pulls": table.pulls.sum(), "_sums": reward.sum()}
        if columns.squares is not None:
            sums["_squares"] = table.squares.sum()
    features = [table[f"x{i}"] for i in range(len(columns.context))]
    for i, j in combinations_with_replacement(range(len(features)), 2):
        sums[f"_x{i}_{j}"] = (features[i] * features[j]).sum()
    for i, x in enumerate(features):
        sums[f"_xr{i}"] = (x * reward).sum()
    return table.group_by(["task", "action"]).aggregate(**sums)


def _fetch(expression: Any) -> dict[str, NDArray[Any]]:
    """Run an expression on the engine of its table; columns by name."""
    table = expression.to_pyarrow()
    return {name: table[name].to_numpy() for name in table.column_names}


def _places(values: NDArray[Any]) -> tuple[NDArray[Any], IntArray]:
    """Distinct values in order, and the place of each among them."""
    distinct, place = np.unique(values, return_inverse=True)
    return distinct, place.reshape(-1)
