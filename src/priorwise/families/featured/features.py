"""Features of tasks: which columns they are, and the numbers that a regression reads of them.

A number stands for itself, minus the average of the log; words stand for columns of 0 and 1, one
for each word but the most common, which is the reference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from priorwise.core import validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError, shown
from priorwise.core.serial import Serializable
from priorwise.core.types import FloatArray

MOST_WORDS: Final = 50
"""Different words that a feature may have."""
MISSING: Final = ("na", "n/a", "nan", "null", "none")
"""Words that stand for a missing number, among numbers that are written as text."""
COLLINEAR: Final = 1e-7
"""Share of a feature's spread: an unexplained part below it is rounding."""
HALF: Final = 0.5
"""Spread of a number that is 0 or 1, at most; for rare words more than they have, so that little is
made of the few tasks with one.
"""
SMALLEST: Final = 1e-40
"""Spread of a feature whose effect, and the square of it, still are numbers."""
SHOWN: Final = 8


@final
@dataclass(frozen=True, eq=False, init=False)
class TaskFeatures(Serializable):
    """Columns of features of tasks.

    Parameters
    ----------
    names
        Names of the features.
    words
        Of each feature, the words it may be, the reference first; None for a number.
    centre, scale
        What is subtracted from each number that is read, and its spread in the log, ``(number,)``;
        0 and 1/2 for words.

    """

    family: ClassVar[str] = "task-features"

    names: tuple[str, ...]
    words: tuple[tuple[str, ...] | None, ...]
    centre: FloatArray
    scale: FloatArray

    def __init__(
        self,
        names: Sequence[str],
        words: Sequence[Sequence[str] | None],
        centre: ArrayLike,
        scale: ArrayLike,
    ) -> None:
        """Check and freeze."""
        called = tuple(validation.text("a name in names", each) for each in _list("names", names))
        known = tuple(
            None if each is None else tuple(_list("words of a feature", each))
            for each in _list("words", words)
        )
        if not called or len(set(called)) < len(called) or len(known) != len(called):
            raise ArgumentError(
                "names", "must differ, and words must have an entry for each of them"
            )
        if any(each is not None and len(set(each)) < max(len(each), 2) for each in known):
            raise ArgumentError(
                "words", "of a feature must be None, or two or more different words"
            )
        size = sum(1 if each is None else len(each) - 1 for each in known)
        middle, spread = validation.vector("centre", centre), validation.vector("scale", scale)
        if middle.size != size or spread.size != size:
            raise ArgumentError(
                "centre", f"and scale must have {size} numbers each, as the features do"
            )
        validation.positive("scale", spread)
        validation.freeze(self, names=called, words=known, centre=middle, scale=spread)

    @classmethod
    def of(cls, columns: Mapping[str, NDArray[Any]], tasks: Any) -> TaskFeatures:
        """Learn which words and numbers tasks have; ``columns`` are ``(task,)`` each, of text or
        numbers. Raise an error for features without an effect: constant ones, those that follow
        from others, and as many as the tasks.
        """
        known: list[tuple[str, ...] | None] = []
        centre: list[float] = []
        scale: list[float] = []
        for name, values in columns.items():
            own = _words(name, values, tasks)
            known.append(own)
            if own is None:
                numbers = values.astype(np.float64)
                middle = float(numbers.mean())
                centre.append(middle)
                scale.append(float(np.sqrt(np.mean((numbers - middle) ** 2))))
                if np.ptp(numbers) == 0.0:
                    _constant(name, f"{numbers[0]:g}")
                if scale[-1] < SMALLEST:
                    raise ArgumentError(
                        "task_features",
                        f"must differ by {SMALLEST:g} or more between tasks in the column {name!r}",
                        cure="write it in another unit",
                    )
            else:
                if len(own) == 1:
                    _constant(name, repr(own[0]))
                centre += [0.0] * (len(own) - 1)
                scale += [HALF] * (len(own) - 1)
        made = cls(tuple(columns), known, centre, scale)
        made._check_rank(made.rows(columns)[0])
        return made

    def _check_rank(self, x: FloatArray) -> None:
        labels, tasks = self.labels, len(x)
        if len(labels) + 1 >= tasks:
            raise ArgumentError(
                "task_features",
                f"are too many to identify their effects: {len(labels)} (words count once for each "
                f"but one) for {tasks:,} tasks",
                cure="leave some out",
            )
        z = np.hstack([np.ones((tasks, 1)), self.standard(x)])
        own = np.abs(np.diag(np.linalg.qr(z, mode="r")))
        for place in np.flatnonzero(own < COLLINEAR * np.linalg.norm(z, axis=0)):
            weights = np.linalg.lstsq(z[:, :place], z[:, place])[0][1:]
            others = [labels[i] for i in np.flatnonzero(np.abs(weights) > 1e-6)]
            names = " and ".join(map(repr, others[:SHOWN])) or "others"
            raise ArgumentError(
                "task_features",
                f"must not follow from others, but {labels[place - 1]!r} follows from {names}",
                cure="leave one out",
            )

    @property
    def labels(self) -> tuple[str, ...]:
        """What each number that is read stands for."""
        found: list[str] = []
        for name, own in zip(self.names, self.words, strict=True):
            found += [name] if own is None else [f"{name}={word}" for word in own[1:]]
        return tuple(found)

    def standard(self, x: FloatArray) -> FloatArray:
        """Numbers in units of their spread, around the average."""
        return (x - self.centre) / self.scale

    def rows(self, given: Any) -> tuple[FloatArray, bool]:
        """Read features by name, of one task or of many, from a mapping or a frame: ``(task,
        number)``, and whether they are of one.
        """
        columns = _columns(given, self.names)
        single = all(np.ndim(each) == 0 for each in columns.values())
        tasks = max((np.size(each) for each in columns.values()), default=1)
        parts = []
        for (name, each), own in zip(columns.items(), self.words, strict=True):
            values = np.asarray(each)
            if values.ndim > 1 or values.size not in (1, tasks) or not values.size:
                raise ArgumentError(
                    f"features[{name!r}]",
                    f"must be one value or one for each of {tasks:,} tasks",
                    got=values.shape,
                )
            read = _numbers(name, values) if own is None else _places(name, values, own)
            parts.append(np.broadcast_to(read, (tasks, read.shape[1])))
        return np.hstack(parts), single

    @property
    def at_base(self) -> str:
        """Which tasks the base prior is of, in words."""
        numbers, found = iter(self.centre), []
        for name, own in zip(self.names, self.words, strict=True):
            taken = [next(numbers) for _ in range(1 if own is None else len(own) - 1)]
            found.append(f"{name} = {taken[0]:.4g}" if own is None else f"{name} = {own[0]!r}")
        return ", ".join(found)


def _list(name: str, value: Any) -> Sequence[Any]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ArgumentTypeError(name, "must be a list", got=value)
    return value


def _columns(given: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return the features by name, from a mapping or a frame."""
    wanted = ", ".join(map(repr, names))
    if not isinstance(given, Mapping) and not hasattr(given, "columns"):
        raise ArgumentTypeError(
            "features",
            f"must map {wanted} to their values, or be a frame with these columns",
            got=given,
        )
    there = list(given if isinstance(given, Mapping) else given.columns)
    lacking = [name for name in names if name not in there]
    if lacking:
        raise ArgumentError(
            "features",
            f"must have all that the prior depends on, {wanted}, but {lacking[0]!r} is missing",
        )
    odd = [name for name in there if name not in names]
    if odd and isinstance(given, Mapping):
        raise ArgumentError(
            "features", f"must be {wanted}, on which the prior depends, without {shown(odd[0])}"
        )
    return {name: given[name] for name in names}


def _numbers(name: str, values: NDArray[Any]) -> FloatArray:
    try:
        read = values.astype(np.float64).reshape(-1, 1)
    except (TypeError, ValueError):
        read = np.array([[np.nan]])
    if not np.isfinite(read).all():
        raise ArgumentError(
            f"features[{name!r}]",
            "must be a finite number",
            got=values.ravel()[int(np.argmin(np.isfinite(read)))],
        )
    return read


def _places(name: str, values: NDArray[Any], words: tuple[str, ...]) -> FloatArray:
    found = np.zeros((values.size, len(words)))
    for row, each in enumerate(values.ravel().tolist()):
        if each not in words:
            known = ", ".join(map(repr, words[:SHOWN])) + (", ..." if len(words) > SHOWN else "")
            raise ArgumentError(
                f"features[{name!r}]",
                f"must be one of the words that tasks of the log have, {known}",
                got=each,
            )
        found[row, words.index(each)] = 1.0
    return found[:, 1:]


def _words(name: str, values: NDArray[Any], tasks: Any) -> tuple[str, ...] | None:
    """Words of a feature, the most common first; None for numbers, also where they are text."""
    if np.issubdtype(values.dtype, np.number):
        return None
    words, counts = np.unique(values.astype(str), return_counts=True)
    numbers = [_is_number(each) for each in words]
    if all(numbers):
        return None
    absent = [each.strip().lower() in MISSING for each in words]
    if any(numbers) and all(a or b for a, b in zip(numbers, absent, strict=True)):
        word = words[absent.index(True)]
        row = int(np.argmax(values.astype(str) == word))
        raise ArgumentError(
            "task_features",
            f"must be numbers in the column {name!r}, also in {shown(str(tasks[row]))}",
            got=str(word),
        )
    if len(words) > MOST_WORDS:
        raise ArgumentError(
            "task_features",
            f"has {len(words):,} different words in the column {name!r}, of at most {MOST_WORDS}",
            cure="gather the rare ones, or leave it out",
        )
    order = np.argsort(-counts, kind="stable")
    return tuple(str(each) for each in words[order])


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _constant(name: str, value: str) -> None:
    raise ArgumentError(
        "task_features",
        f"has no effect to learn: the column {name!r} is {value} in every task",
        cure="leave it out",
    )
