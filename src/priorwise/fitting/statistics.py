"""What is kept of a task: a small sum, which is its whole state for a conjugate family.

The same value serves a fit (many tasks), a belief (``prior.belief_given(statistics)``) and a log,
which reduces to it. Two sets of tasks join, two parts of the same tasks merge, and one more pull is
one more addend.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError, shown
from priorwise.core.serial import Serializable
from priorwise.core.trajectories import Trajectory
from priorwise.core.types import FloatArray, IntArray
from priorwise.fitting import columns as checked
from priorwise.fitting.runs import Run

Words = Sequence[str] | None
Column = FloatArray | None
"""None where it was not given."""
Join = Callable[[FloatArray, FloatArray], FloatArray]


class PerTask(Serializable):
    """A frozen dataclass whose columns all have the task axis first; the fields named in ``shared``
    hold for all tasks.

    ``a + b`` has the tasks of both, ``a.merged(b)`` adds what was seen of the same tasks,
    ``len(a)`` is the number of tasks, ``a[i:j]`` and ``a.take(index)`` are some of them.
    """

    shared: ClassVar[tuple[str, ...]] = ("names",)

    __array_ufunc__ = None  # NumPy arrays do not add themselves to the tasks, one by one

    def __len__(self) -> int:
        """Number of tasks."""
        return self.tasks

    def __eq__(self, other: object) -> bool:
        """Equal if of one class with equal numbers."""
        if type(other) is not type(self):
            return False
        theirs = vars(other)
        return all(_same(value, theirs[name]) for name, value in vars(self).items())

    def __hash__(self) -> int:
        """Hash of the size: there may be millions of entries."""
        return hash((type(self), self.tasks))

    def __repr__(self) -> str:
        """Sizes, not entries: there may be millions."""
        sizes = [name for name in ("arms", "dim", "support") if hasattr(self, name)][:1]
        width = "".join(f", {name}={getattr(self, name)}" for name in sizes)
        pulls = getattr(self, "pulls", None)
        total = "" if pulls is None else f", pulls={pulls.sum():,.15g}"
        return f"{type(self).__name__}(tasks={self.tasks:,}{width}{total})"

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return len(next(array for array in self._columns().values() if array is not None))

    @classmethod
    def of(cls, data: Any, *, steps: checked.Steps = None, **known: Any) -> Self:
        """Return statistics as they are, and those of a kept run or of played tasks, or only of the
        first ``steps`` pulls of these, or a slice of them.

        What is ``known`` of the tasks (``arms``, ``candidates``) is what :meth:`read` needs.
        """
        played = data.kept if isinstance(data, Run) else data
        if isinstance(played, Trajectory):
            return cls.read(checked.some_pulls(played, steps), **known)
        if not isinstance(data, cls):
            raise ArgumentTypeError("data", f"must be a kept Run or {cls.__name__}", got=type(data))
        data._check(**known)
        return data

    @classmethod
    def from_run(cls, run: Run, *, steps: checked.Steps = None, **known: Any) -> Self:
        """Sum up a kept run, or only its first ``steps`` pulls, or a slice of them."""
        validation.instance("run", run, Run, "a Run with keep=True")
        return cls.of(run, steps=steps, **known)

    @classmethod
    def known(cls, prior: Any) -> dict[str, Any]:
        """What a prior knows of its tasks that :meth:`read` and :meth:`empty` need."""
        return {}

    @classmethod
    def read(cls, played: Trajectory, **known: Any) -> Self:
        """Sum up played tasks."""
        raise NotImplementedError

    @classmethod
    def empty(cls, tasks: int, **known: Any) -> Self:
        """Return the statistics of tasks before their first pull."""
        raise NotImplementedError

    @classmethod
    def adopted(cls, data: Any, **known: Any) -> Any:
        """Return what these statistics make of those of another kind; as they are, where that is
        nothing.
        """
        return data

    def _check(self, **known: Any) -> None:
        """Refuse statistics that contradict what is known of the tasks."""

    def take(self, index: ArrayLike | slice) -> Self:
        """Return some of the tasks: a slice, a mask, or indices, which may repeat (for a
        bootstrap).
        """
        rows = np.atleast_1d(np.arange(self.tasks)[checked.chosen_tasks(index, self.tasks)])
        if rows.size == 0:
            none = f"index {shown(index)} leaves none of the {self.tasks} tasks"
            raise IndexError(f"{none}; statistics need at least one")
        return self._with(self._each(lambda column: column[rows]))

    def __getitem__(self, index: ArrayLike | slice) -> Self:
        """Return some of the tasks."""
        if isinstance(index, tuple):
            wrong = shown(index)
            raise IndexError(f"index has one axis, the tasks, got {wrong}; a list chooses several")
        return self.take(index)

    def __add__(self, other: Self) -> Self:
        """Join two sets of tasks."""
        if type(other) is not type(self):
            return NotImplemented
        return self._combined(other, "join", lambda mine, yours: np.concatenate([mine, yours]))

    def __radd__(self, other: Any) -> Self:
        """Let ``sum`` join many, which starts from 0."""
        if type(other) is not int or other != 0:
            return NotImplemented
        return self

    def merged(self, other: Self) -> Self:
        """Add what was seen of the same tasks, which stand in the same order in both."""
        if type(other) is not type(self):
            raise ArgumentTypeError(
                "other", f"must be {type(self).__name__} of the same tasks", got=type(other)
            )
        if self.tasks != other.tasks:
            raise ArgumentError(
                "other",
                f"must have the same {self.tasks} tasks in the same order",
                got=other.tasks,
                cure="a + b has the tasks of both",
            )
        return self._combined(other, "merge", np.add)

    def observe(self, actions: ArrayLike, rewards: ArrayLike, signal: Any = None) -> Self:
        """Return the statistics with one more pull of each task.

        Parameters
        ----------
        actions
            The arm that each task pulled, ``(task,)``; -1 for a task that pulled none.
        rewards
            Their rewards, ``(task,)``; not read for tasks without a pull.
        signal
            What the tasks showed before the pull, where the family reads it: features ``(task, arm,
            dim)``.

        """
        pulls = checked.pulls_of(actions, rewards, signal, self.tasks)
        columns = self._each(np.copy)
        self._add(columns, pulls)
        return self._with(columns)

    def _add(self, columns: dict[str, Any], pulls: checked.Pulls) -> None:
        """Add one pull to each of some tasks, in place."""
        raise NotImplementedError

    def _combined(self, other: Self, how: str, combine: Join) -> Self:
        columns: dict[str, Any] = {}
        theirs = other._columns()
        for name, mine in self._columns().items():
            yours = theirs[name]
            if (mine is None) != (yours is None):
                raise ArgumentError("other", f"must have {name} if these tasks have, and only then")
            if mine is not None and mine.shape[1:] != yours.shape[1:]:
                raise ArgumentError(
                    "other", f"must have {name} of shape {mine.shape}", got=yours.shape
                )
            columns[name] = None if mine is None else combine(mine, yours)
        both = {name: (getattr(self, name), getattr(other, name)) for name in self.shared}
        agreed = {name: self._agreed(name, *pair) for name, pair in both.items()}
        return self._with(columns, **agreed)

    def _agreed(self, name: str, mine: Any, yours: Any) -> Any:
        """Return what two sets of tasks share; one that does not say takes what the other says."""
        if mine is not None and yours is not None and not _same(mine, yours):
            raise ArgumentError(
                name, f"must agree, but are {shown(mine)} here and {shown(yours)} there"
            )
        return yours if mine is None else mine

    def _columns(self) -> dict[str, Any]:
        """Fields with a task axis; None where one was not given."""
        names = [each.name for each in fields(self) if each.name not in self.shared]  # type: ignore[arg-type]
        return {name: getattr(self, name) for name in names}

    def _each(self, change: Callable[[FloatArray], FloatArray]) -> dict[str, Column]:
        """Change each column that was given."""
        columns = self._columns().items()
        return {name: None if each is None else change(each) for name, each in columns}

    def _with(self, columns: dict[str, Any], **shared: Any) -> Self:
        """Return other columns, which need no check."""
        made = object.__new__(type(self))
        same = {name: getattr(self, name) for name in self.shared}
        made._set(**columns, **(same | shared))
        return made

    def _set(self, **values: Any) -> None:
        validation.freeze(self, **values)


@dataclass(frozen=True, eq=False, repr=False)
class PerArm(PerTask):
    """Statistics whose columns are all ``(task, arm)`` and add up over pulls; ``pulls`` is one of
    them. A family says in :meth:`addends` what a pull adds.
    """

    names: tuple[str, ...] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        n = checked.counts("pulls", self._columns()["pulls"], (None, None))
        columns = {
            name: checked.table(name, each, n.shape) for name, each in self._columns().items()
        }
        self._set(**columns | {"pulls": n, "names": validation.names(self.names, n.shape[1])})

    @classmethod
    def _made(cls, columns: dict[str, Any], **shared: Any) -> Self:
        make: Any = cls
        return make(**columns, **shared)

    @classmethod
    def addends(cls, rewards: FloatArray) -> dict[str, Any]:
        """What pulls with these rewards add to each column: numbers, or an array like the
        rewards.
        """
        raise NotImplementedError

    @classmethod
    def weights(cls) -> dict[str, tuple[float, float, float]] | None:
        """What pulls, rewards and squared rewards weigh in each column; None where a pull adds what
        is not quadratic in its reward.
        """
        try:
            at = np.arange(4.0)
            added = cls.addends(at)
        except ValueError:  # rewards are 0 or 1, and so their own squares
            at = np.arange(2.0)
            added = cls.addends(at)
        found = {}
        for name, each in added.items():
            values = np.broadcast_to(each, at.shape).astype(np.float64)
            second = np.diff(values, 2)
            if second.size and np.ptp(second):
                return None
            half = float(second[0]) / 2.0 if second.size else 0.0
            found[name] = float(values[0]), float(values[1] - values[0]) - half, half
        return found

    @classmethod
    def from_sums(
        cls,
        *,
        pulls: FloatArray,
        sums: FloatArray,
        squares: FloatArray | None = None,
        names: Words = None,
    ) -> Self:
        """Take sums of pulls, rewards and squared rewards, ``(task, arm)`` each; a column that
        needs squares is None without them.
        """
        weights = cls.weights()
        if weights is None:
            raise ArgumentTypeError(
                "data", f"must be single rewards, and not sums of them, for {cls.__name__}"
            )
        columns = {}
        for name, (one, linear, square) in weights.items():
            more = square * squares if square and squares is not None else 0.0
            lacking = square and squares is None
            columns[name] = None if lacking else one * pulls + linear * sums + more
        return cls._made(columns, names=names)

    @classmethod
    def from_counts(
        cls, tasks: IntArray, arms: IntArray, rewards: FloatArray, counts: FloatArray,
        *, shape: tuple[int, int], names: Words = None,
    ) -> Self:  # fmt: skip
        """Take how often each task saw each reward of each arm, ``(row,)`` each."""
        columns = {}
        for name, each in cls.addends(rewards).items():
            columns[name] = np.zeros(shape)
            np.add.at(columns[name], (tasks, arms), each * counts)
        return cls._made(columns, names=names)

    @property
    def arms(self) -> int:
        """Number of arms."""
        return int(self._columns()["pulls"].shape[1])

    @classmethod
    def known(cls, prior: Any) -> dict[str, Any]:
        """Arms, where their number is fixed, and their names."""
        return {name: getattr(prior, name, None) for name in ("arms", "names")}

    @classmethod
    def empty(cls, tasks: int, arms: int = 1, names: Words = None, **known: Any) -> Self:
        """Return the statistics of tasks before their first pull."""
        shape = (validation.count("tasks", tasks), validation.count("arms", arms))
        blank = {each.name: np.zeros(shape) for each in fields(cls) if each.name not in cls.shared}
        return cls._made(blank, names=names)

    @classmethod
    def from_trajectory(cls, actions: ArrayLike, rewards: ArrayLike, *, arms: int) -> Self:
        """Sum up actions and rewards ``(task, step)``."""
        chosen, earned = checked.trajectory(actions, rewards, arms)
        columns: dict[str, Any] = {}
        for name, each in cls.addends(earned).items():
            added = np.asarray(each)
            sums = checked.by_arm(chosen, added if added.ndim else None, arms)
            sums = sums if added.ndim or each == 1 else sums * added
            columns[name] = sums.astype(added.dtype, copy=False)
        made = object.__new__(cls)  # sums of checked pulls need no check
        made._set(**columns, **dict.fromkeys(cls.shared))
        return made

    def _add(self, columns: dict[str, Any], pulls: checked.Pulls) -> None:
        pulls.check(self.arms)
        for name, each in self.addends(pulls.rewards).items():
            if columns[name] is not None:
                columns[name][pulls.tasks, pulls.actions] += each

    @classmethod
    def read(
        cls, played: Trajectory, *, arms: int | None = None, names: Words = None, **known: Any
    ) -> Self:
        """Sum up played tasks; without ``arms`` there are as many as the largest action says."""
        arms = int(played.actions.max()) + 1 if arms is None else arms
        made = cls.from_trajectory(played.actions, played.rewards, arms=arms)
        return made._with(made._columns(), names=validation.names(names, arms))

    def _check(self, *, arms: int | None = None, names: Words = None, **known: Any) -> None:
        if arms is not None and self.arms != arms:
            raise ArgumentError("arms", f"must be {self.arms}, as the statistics have", got=arms)
        self._agreed("names", self.names, names)


def _same(mine: Any, yours: Any) -> bool:
    if mine is None or yours is None:
        return mine is yours
    arrays = isinstance(mine, np.ndarray) or isinstance(yours, np.ndarray)
    return mine is yours or bool(np.array_equal(mine, yours) if arrays else mine == yours)
