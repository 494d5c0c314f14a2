"""What is kept of a task with Bernoulli rewards in features: every pull, since no sum of fixed size
is enough.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.core.trajectories import Trajectory
from priorwise.core.types import FloatArray
from priorwise.fitting.columns import Pulls, counts, table
from priorwise.fitting.statistics import PerTask

LARGEST: Final = 100.0
"""Features may be of this size: log odds are their sums with weights."""


@final
@dataclass(frozen=True, eq=False, init=False, repr=False)
class LogisticStatistics(PerTask):
    """Features and rewards of every pull of each task.

    Tasks may have had different numbers of pulls: those with fewer are filled up with zeros, which
    say nothing. ``a.merged(b)`` puts the pulls of b behind those of a.

    Parameters
    ----------
    features
        Features of the pulled arms, ``(task, row, dim)``.
    rewards
        Their rewards, from 0 to 1, ``(task, row)``.
    pulls
        Number of pulls, ``(task,)``: the first so many rows count, all others are zeros. None: all
        rows.
    names
        Names of the arms.

    Examples
    --------
    >>> LogisticStatistics([[[1.0, 0.5], [0.2, -1.0]]], [[1.0, 0.0]])
    LogisticStatistics(tasks=1, dim=2, pulls=2)

    """

    family: ClassVar[str] = "logistic-statistics"

    features: FloatArray
    rewards: FloatArray
    pulls: FloatArray
    names: tuple[str, ...] | None

    def __init__(
        self,
        features: ArrayLike,
        rewards: ArrayLike,
        pulls: ArrayLike | None = None,
        *,
        names: Any = None,
    ) -> None:
        """Check and freeze the arrays."""
        x = table("features", features, (None, None, None))
        check_features("features", x)
        r = table("rewards", rewards, x.shape[:2])
        if not (r.min() >= 0.0 and r.max() <= 1.0):
            wrong = r.min() if r.min() < 0.0 else r.max()
            raise ArgumentError("rewards", "must lie between 0 and 1", got=wrong)
        if pulls is None:
            pulls = np.full(len(x), x.shape[1])
        n = counts("pulls", pulls, (len(x),))
        if n.max() > x.shape[1]:
            raise ArgumentError(
                "pulls", f"must not exceed the {x.shape[1]} rows of features", got=n.max()
            )
        unused = np.arange(x.shape[1]) >= n[:, None]
        for name, each in (("features", x.any(axis=2)), ("rewards", r != 0.0)):
            if (each & unused).any():
                task = int((each & unused).any(axis=1).argmax())
                raise ArgumentError(
                    name,
                    f"must be 0 in rows that are no pulls, but task {task} has some beyond its "
                    f"{n[task]:g} pulls",
                )
        arms = len(names) if isinstance(names, (list, tuple)) else 1
        words = validation.names(names, arms)
        self._set(**_trimmed({"features": x, "rewards": r, "pulls": n}), names=words)

    @property
    def dim(self) -> int:
        """Number of features."""
        return self.features.shape[2]

    @classmethod
    def known(cls, prior: Any) -> dict[str, Any]:
        """Features, and names of the arms."""
        return {"dim": prior.dim, "names": prior.names}

    @classmethod
    def read(cls, played: Trajectory, *, names: Any = None, **known: Any) -> Self:
        """Keep what was played."""
        if played.log is None:
            raise ArgumentError("run", "must show features, as a contextual bandit does")
        return cls(played.log, played.rewards, names=names)

    @classmethod
    def empty(cls, tasks: int, dim: int = 1, names: Any = None, **known: Any) -> Self:
        """Return the statistics of tasks before their first pull."""
        tasks, dim = validation.count("tasks", tasks), validation.count("dim", dim)
        return cls(np.zeros((tasks, 1, dim)), np.zeros((tasks, 1)), np.zeros(tasks), names=names)

    def _add(self, columns: dict[str, Any], pulls: Pulls) -> None:
        rows, actions, rewards, signal = pulls
        shown = validation.matrix("signal", signal, (self.tasks, None, self.dim))
        check_features("signal", shown)
        pulls.check(shown.shape[1])
        if rewards.size and not (rewards.min() >= 0.0 and rewards.max() <= 1.0):
            raise ArgumentError("rewards", "must lie between 0 and 1")
        at = columns["pulls"][rows].astype(np.int64)
        columns.update(widened(columns, int(at.max(initial=-1)) + 1))
        columns["features"][rows, at] = shown[rows, actions]
        columns["rewards"][rows, at] = rewards
        columns["pulls"][rows] += 1.0

    def _combined(self, other: Any, how: str, combine: Any) -> Self:
        if self.dim != other.dim:
            raise ArgumentError("other", f"must have {self.dim} features", got=other.dim)
        mine, yours = self._columns(), other._columns()
        if how != "merge":
            width = max(self.rewards.shape[1], other.rewards.shape[1])
            both = {
                name: combine(each, widened(yours, width)[name])
                for name, each in widened(mine, width).items()
            }
            return self._with(both, names=self._agreed("names", self.names, other.names))
        total = (self.pulls + other.pulls).astype(np.int64)
        rows = widened(self._each(np.copy), int(total.max()))
        task, row = np.nonzero(np.arange(other.rewards.shape[1]) < other.pulls[:, None])
        at = self.pulls.astype(np.int64)[task] + row
        rows["features"][task, at] = other.features[task, row]
        rows["rewards"][task, at] = other.rewards[task, row]
        rows["pulls"] = total.astype(np.float64)
        return self._with(rows, names=self._agreed("names", self.names, other.names))

    def take(self, index: ArrayLike | slice) -> Self:
        """Return some of the tasks, with no more rows than the longest of them has."""
        some = super().take(index)
        return some._with(_trimmed(some._columns()))


def check_features(name: str, x: FloatArray) -> None:
    """Raise an error for features with which log odds would leave all bounds."""
    if x.size and max(x.max(), -x.min()) > LARGEST:
        raise ArgumentError(
            name,
            f"must not exceed {LARGEST:g} in size",
            got=x.ravel()[np.abs(x).argmax()],
            cure="scale features to about 1",
        )


def widened(columns: dict[str, Any], width: int) -> dict[str, Any]:
    """Return columns with at least so many rows, filled up with zeros."""
    more = width - columns["rewards"].shape[1]
    if more <= 0:
        return columns
    return {
        **columns,
        "features": np.pad(columns["features"], ((0, 0), (0, more), (0, 0))),
        "rewards": np.pad(columns["rewards"], ((0, 0), (0, more))),
    }


def _trimmed(columns: dict[str, Any]) -> dict[str, Any]:
    """Leave out rows that no task has, but for one."""
    width = max(int(columns["pulls"].max()), 1)
    cut = {name: columns[name][:, :width] for name in ("features", "rewards")}
    return {**columns, **cut}
