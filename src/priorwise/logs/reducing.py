"""One Ibis expression reduces a log to a small sum for each task and arm, on any engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement
from typing import Any, Final, Unpack, final

import numpy as np
from numpy.typing import NDArray

from priorwise.core.errors import ArgumentError, option, shown
from priorwise.core.sizes import check_memory
from priorwise.core.types import BoolArray, FloatArray, IntArray
from priorwise.logs.checking import EngineError, checked, fetch, fetch_table, unknown
from priorwise.logs.columns import ROLES, Columns
from priorwise.logs.features import constant_in_tasks, ends_of
from priorwise.logs.guessing import parsed_times, with_guessed_time, without_time
from priorwise.logs.opening import check_encoding, is_text, one_kind_of_time, open_log, unclear_day
from priorwise.logs.options import Arms, RowsRead, complete, takes
from priorwise.logs.spreadsheets import with_clicks, without_totals
from priorwise.logs.times import Period, as_asked, positive_or_none
from priorwise.logs.written import clearly_points, numbers_of

MOST_ARMS: Final = 500
"""Arms of a prior that tells them apart."""
LOST: Final = 1e-13
"""Share of the squares below which what is left of them within arms is mostly rounding."""
SOMETIMES: Final = ("squares", "gram", "moments")
"""Sums that a log may lack."""
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
    odd: Callable[[], str] | None = field(repr=False)  # see not_binary
    rows: int  # of the log
    dropped: int  # rows without a reward
    said: tuple[str, ...]
    # rows with a reward, as an Ibis table; also those of other tasks where this is a part of a log
    source: Any = field(repr=False)
    left: tuple[str, ...] = ()  # which rows were left out by their time
    zeros: float = 0.0  # share of rewards that are 0, if none is negative
    features: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # of tasks, (task,) each

    @property
    def not_binary(self) -> str | None:
        """Where a reward is not 0 or 1, which takes a pass to find; None if all are."""
        return None if self.odd is None else self.odd()

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
            raise ArgumentError(
                "action",
                f"{self.columns.action!r} has {len(self.arms):,} values, too many for a prior "
                "that tells arms apart",
                cure=f"pass {option('arms', 'new')} for one that does not",
            )
        return self.arm, len(self.arms), self.names

    def part(self, tasks: BoolArray) -> Log:
        """Return the log of some tasks, True for those wanted; arms keep their places."""
        of = tasks[self.task]
        sums = {name: getattr(self, name) for name in ("arm", "pulls", "sums", *SOMETIMES)}
        kept: Any = {name: None if each is None else each[of] for name, each in sums.items()}
        chosen = self.tasks[tasks]
        rows = int(of.sum() if self.columns.summed else self.pulls[of].sum())
        kept["features"] = {name: each[tasks] for name, each in self.features.items()}
        place = np.cumsum(tasks) - 1
        return replace(self, tasks=chosen, task=place[self.task[of]], rows=rows, **kept)

    def rows_of(self, tasks: NDArray[Any], arms: NDArray[Any]) -> IntArray:
        """Return the row of each pair of a task and an arm; -1 for those of other tasks."""
        task = np.minimum(np.searchsorted(self.tasks, tasks), len(self.tasks) - 1)
        place = task * len(self.arms) + np.searchsorted(self.arms, arms)
        row = np.searchsorted(self.task * len(self.arms) + self.arm, place)
        return np.where(self.tasks[task] == tasks, row, -1)

    def grid(self, values: FloatArray, arms: Arms) -> FloatArray:
        """Return a column of rows as a table, ``(task, arm)``; 0 where a task did not pull."""
        place, width, _ = self.places(arms)
        self._check_size(width)
        made = np.zeros((len(self.tasks), width))
        made[self.task, place] = values
        return made

    def _check_size(self, width: int) -> None:
        tasks, rows = len(self.tasks), np.bincount(self.task)
        widest = f"the task {shown(str(self.tasks[rows.argmax()]))} has {rows.max():,}"
        check_memory(
            "action",
            f"{width:,} arms for each of {tasks:,} tasks ({widest})",
            8.0 * 8.0 * tasks * width,
            "leave out the tasks with the most arms",
        )

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
            raise ArgumentError(
                "pulls",
                f"must be left out, as {kind.__name__} reads single rewards: give one row per pull",
            )
        table = self.source.group_by(["task", "action", "reward"]).aggregate(
            count=self.source.count()
        )
        found = fetch(table)
        rows = self.rows_of(found["task"], found["action"])
        here = rows >= 0
        rows, found = rows[here], {name: each[here] for name, each in found.items()}
        return kind.from_counts(
            self.task[rows], place[rows], found["reward"], found["count"].astype(np.float64),
            shape=(len(self.tasks), width), names=names,
        )  # fmt: skip

    def _check_rounding(self, squares: FloatArray) -> None:
        n = np.maximum(self.pulls, 1.0)
        within, total = float((squares - self.sums**2 / n).sum()), float(squares.sum())
        if np.any(self.pulls > 1) and 0.0 < abs(within) < LOST * total:
            raise ArgumentError(
                "reward",
                f"has values in {self.columns.reward!r} that differ by rounding within an arm",
                cure=(
                    f"they are near {np.sqrt(total / self.pulls.sum()):.3g} in size: "
                    "subtract a number near their mean first"
                ),
            )

    def check_squares(self, kind: Any) -> None:
        """Refuse sums that do not tell the noise, which statistics of a class read from squares."""
        if self.gram is not None or not any(w[2] for w in (kind.weights() or {}).values()):
            return
        if self.squares is not None:
            self._check_rounding(self.squares)
            return
        reward, pulls = self.columns.reward, self.columns.pulls
        guess = "".join(f" ({each})" for each in self.said if each.endswith(option("pulls")))
        clicks = "" if self.odd is None else f" Clicks they are not: {self.not_binary}."
        raise ArgumentError(
            "squares",
            f"are missing: real rewards in {reward!r}, summed over {pulls!r}{guess}, do not tell "
            "how "
            "much single rewards vary",
            cure=f"name a column of sums of squared rewards, or give one row per pull.{clicks}",
        )

    def check_repeats(self) -> None:
        """Refuse pulls that do not tell the noise, as no task has two of one arm."""
        if self.gram is None and not self.columns.summed and self.pulls.max() <= 1.0:
            raise ArgumentError(
                "reward",
                f"must have two rows of one arm in a task to tell how {self.columns.reward!r} "
                "varies",
                cure=(
                    f"pass {option('pulls', ...)}, which counts pulls, or "
                    f"{option('noise_var', ...)}"
                ),
            )


@takes(RowsRead)
def read_log(log: Any, **reading: Unpack[RowsRead]) -> Log:
    """Reduce a log to its sums, in one pass of its engine.

    Parameters
    ----------
    log
        Path of a Parquet, CSV or Arrow file or of a folder of Parquet files, a pandas or Polars
        frame, an Arrow table, or an Ibis table of any engine.
    task, action, reward
        Columns; guessed from common names, or from words in names, if not given, which the result
        says aloud. An unclear guess raises an error with all arguments to pass.
    pulls
        Column of the number of pulls that a row sums up; ``reward`` is their sum then.
    squares
        Column of the sum of squared rewards of such a row, from which the noise is estimated.
    rate
        Column of the reward per pull of a row, such as a click rate, in place of ``reward``: clicks
        are this rate times ``pulls``, which must come out whole up to the digits that it is written
        with.
    context
        Columns of features of the pulled arm, for a log with one row per pull.
    time
        Column of when a row was: days, times or numbers. By default the one column of days or times
        that is named as such is taken, which the result says aloud. ``"none"`` takes none.
    propensity
        Column of how likely the action of a row was when it was chosen.
    task_features
        Columns of features of a task, numbers or words, which are the same in all its rows.
    since, until
        First and last time of the rows that count, as the column ``time`` has them; a text such as
        ``"2024-01-31"`` is read as a day.
    window
        How long a reward may take to come, in days, or in the unit of ``time`` where that has
        numbers. Rows younger than that at ``until``, or at the last time of the log, are left out
        and counted, with a reward or without: those without one are no zeros, and to keep the
        others alone would favour what is rewarded soon.
    reward_as
        ``"converted"`` takes of each reward only whether it is above 0, ``"value"`` only rows with
        a reward other than 0: two fits for a value per conversion.
    missing
        What to do with rows without a reward, such as those whose reward has not come yet: refuse,
        or leave them out, which the result counts. They are never taken for zeros.
    encoding
        How a file of text is encoded, such as ``"latin-1"``; guessed from its bytes if not given.
    decimal
        The decimal sign of numbers that are written as text, ``"."`` or ``","``; the other one then
        separates thousands. By default all numbers of a column decide.

    """
    how = complete(reading, RowsRead, "read_log")
    check_encoding(how["encoding"])
    if how["decimal"] not in (None, ".", ","):
        raise ArgumentError("decimal", "must be '.' or ','", got=how["decimal"])
    try:
        return _read(log, False, how)
    except EngineError:
        if not is_text(log):
            raise
    # a later row of a file of text is not of the type that the first ones have
    return _read(log, True, how)


def _read(log: Any, every_row: bool, how: dict[str, Any]) -> Log:
    encoding, decimal, missing = how["encoding"], how["decimal"], how["missing"]
    period = Period(how["since"], how["until"], positive_or_none("window", how["window"]))
    opening: Any = {"every_row": every_row, "encoding": encoding}
    table, where, notes = open_log(log, **opening)
    timeless = without_time(how["time"], table.columns)
    asked = {name: how[name] for name in ROLES}
    columns = Columns.of(table.columns, where, **asked | ({"time": None} if timeless else {}))
    if columns.time is not None:
        table = parsed_times(table, columns.time)
    elif not timeless:
        has_order = log is not table  # rows of a database have none
        table, columns = with_guessed_time(table, columns)
        columns = replace(columns, ordered=columns.time is None and has_order)
    dated = columns.time is not None and table[columns.time].type().is_temporal()
    if dated and is_text(log) and (day := unclear_day(log, str(columns.time), encoding)):
        twice = f"the days in {columns.time!r}, such as {day}, can be read in two ways"
        if how["time"] is not None:
            raise ArgumentError("time", f"is unclear: {twice}", cure="write them as 2024-01-31")
        said = f"{twice}, and are not taken for {option('time')}; write them as 2024-01-31"
        columns = replace(columns, time=None, ordered=True, said=(*columns.said[:-1], said))
    if columns.context and columns.summed:
        raise ArgumentError("context", f"needs one row per pull, without {option('pulls')}")
    if columns.context and columns.task_features:
        raise ArgumentError("task_features", f"must be left out with {option('context')}")
    for name in filter(None, (columns.task, columns.action, columns.time)):
        kind = table[name].type()
        if is_text(log) and kind.is_timestamp() and kind.timezone is not None:
            one_kind_of_time(log, name, encoding)
    fractions = [name for name in columns.numbers if table[name].type().is_floating()]
    if is_text(log) and fractions:  # their points may separate thousands
        written, _, _ = open_log(log, **opening, texts=fractions)
        unclear = set(fractions)
        if decimal is None:
            unclear -= clearly_points(written, fractions)
        if unclear:
            table, _, _ = open_log(log, **opening, texts=sorted(unclear))
    numbers, texts, read = numbers_of(table, columns, where, decimal)
    numbers, without = without_totals(numbers, columns, where)
    numbers, given = with_clicks(numbers, columns, where)
    notes = (*notes, *columns.said, *read, *without, *given)
    numbers, left = period.cut(numbers, columns, where)
    numbers = as_asked(numbers, how["reward_as"], columns)
    rows, dropped, odd, zeros = checked(numbers, texts, columns, where, missing)
    source = numbers.filter(~unknown(numbers.reward))
    found = fetch_table(reduced(source, columns))
    tasks, task_of = places_in(found["task"])
    arms, arm_of = places_in(found["action"])
    order = np.lexsort([arm_of, task_of])
    sums: Any = {
        name: None if each is None else each[order]
        for name, each in sums_of(found, columns).items()
    }
    return Log(
        columns, tasks, arms, task_of[order], arm_of[order], **sums, odd=odd, rows=rows,
        dropped=dropped, said=notes, source=source, left=left, zeros=zeros,
        features=constant_in_tasks(found, columns.task_features, tasks, task_of),
    )  # fmt: skip


def sums_of(found: Any, columns: Columns) -> dict[str, FloatArray | None]:
    """The sums of a reduced table by their names in a log."""
    names = [name for name in found.column_names if name[0] == "_"]
    sums = {name: np.asarray(found[name].to_numpy(), np.float64) for name in names}
    dim = len(columns.context)
    gram = moments = None
    if dim:
        gram, moments = np.empty((len(found), dim, dim)), np.empty((len(found), dim))
        for i, j in combinations_with_replacement(range(dim), 2):
            gram[:, i, j] = gram[:, j, i] = sums[f"_x{i}_{j}"]
        for i in range(dim):
            moments[:, i] = sums[f"_xr{i}"]
    known = {name: sums.get(f"_{name}") for name in ("pulls", "sums", "squares")}
    return {**known, "gram": gram, "moments": moments}


def reduced(table: Any, columns: Columns) -> Any:
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
    sums |= ends_of(table, len(columns.task_features))
    return table.group_by(["task", "action"]).aggregate(**sums)


def places_in(values: Any) -> tuple[NDArray[Any], IntArray]:
    """Distinct values of an Arrow column in order, and the place of each among them."""
    import pyarrow as pa

    try:  # sorting the distinct values alone is many times faster where they are words
        coded = values.combine_chunks().dictionary_encode()
    except pa.ArrowNotImplementedError:
        distinct, place = np.unique(values.to_numpy(), return_inverse=True)
        return distinct, place.reshape(-1)
    distinct, place = np.unique(
        coded.dictionary.to_numpy(zero_copy_only=False), return_inverse=True
    )
    return distinct, place.reshape(-1)[coded.indices.to_numpy()]
