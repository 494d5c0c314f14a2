"""What is kept of a task: all of its pulls, as no smaller sum serves every law of rewards."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.core.trajectories import Trajectory
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.particle.belief import ParticleBelief
from priorwise.families.particle.prior import ParticlePrior
from priorwise.fitting.columns import Pulls, pulls_of, trajectory
from priorwise.fitting.statistics import PerTask

ENTRIES: Final = 1 << 22  # weights at a time


@final
@dataclass(frozen=True, eq=False, repr=False)
class ParticleStatistics(PerTask):
    """The pulls of each task, in their order.

    Parameters
    ----------
    actions
        Arms, ``(task, step)``; -1 after the last pull of a task.
    rewards
        Their rewards, ``(task, step)``; 0 where there is no pull.
    arms
        Number of arms.
    shown
        Features before each pull, ``(task, step, arm, dim)``; None without contexts.
    names
        Names of the arms.

    """

    family: ClassVar[str] = "particle-statistics"
    shared: ClassVar[tuple[str, ...]] = ("arms", "names")

    actions: IntArray
    rewards: FloatArray
    arms: int
    shown: FloatArray | None = None
    names: tuple[str, ...] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        """Check and freeze the columns; pulls come first."""
        arms = validation.count("arms", self.arms)
        chosen = validation.numbers("actions", self.actions)
        if chosen.ndim != 2 or len(chosen) == 0:
            raise ArgumentError(
                "actions", "must be (task, step) of at least one task", got=chosen.shape
            )
        actions = chosen.astype(np.int64)
        if not np.array_equal(actions, chosen) or actions.min(initial=0) < -1:
            raise ArgumentError("actions", "must be arms, or -1 for none")
        if actions.max(initial=-1) >= arms:
            raise ArgumentError("actions", f"must be arms 0..{arms - 1}", got=actions.max())
        rewards = validation.numbers("rewards", self.rewards)
        if rewards.shape != actions.shape or not np.isfinite(rewards).all():
            raise ArgumentError(
                "rewards",
                f"must be finite, of the shape {actions.shape} of actions",
                got=rewards.shape,
            )
        shown = None if self.shown is None else validation.numbers("shown", self.shown)
        if shown is not None and (shown.ndim != 4 or shown.shape[:3] != (*actions.shape, arms)):
            raise ArgumentError(
                "shown",
                f"must be (task, step, arm, dim), {(*actions.shape, arms)} and a dim",
                got=shown.shape,
            )
        columns = _packed({"actions": actions, "rewards": rewards, "shown": shown})
        self._set(arms=arms, names=validation.names(self.names, arms), **columns)

    @property
    def pulls(self) -> IntArray:
        """Number of pulls of each task, ``(task,)``."""
        return np.asarray((self.actions >= 0).sum(axis=1))

    @classmethod
    def known(cls, prior: Any) -> dict[str, Any]:
        """Arms, their names, and the number of features."""
        return {name: getattr(prior, name) for name in ("arms", "names", "dim")}

    @classmethod
    def read(
        cls, played: Trajectory, *, arms: int = 1, dim: int = 0, names: Any = None, **known: Any
    ) -> Self:
        """Take all pulls of played tasks, whose log holds the features where there are some."""
        actions, rewards = trajectory(played.actions, played.rewards, arms)
        shown = None
        if dim:
            if played.log is None or played.log.shape[2] != arms * dim:
                raise ArgumentError("log", f"must hold {arms} x {dim} features of each pull")
            shown = played.log.reshape(*actions.shape, arms, dim)
        return cls(actions, rewards, arms, shown, names=names)

    @classmethod
    def empty(
        cls, tasks: int, *, arms: int = 1, dim: int = 0, names: Any = None, **known: Any
    ) -> Self:
        """Return the statistics of tasks before their first pull."""
        shape = (validation.count("tasks", tasks), 0)
        shown = np.zeros((*shape, arms, dim)) if dim else None
        return cls(np.zeros(shape, dtype=np.int64), np.zeros(shape), arms, shown, names=names)

    def observe(self, actions: ArrayLike, rewards: ArrayLike, signal: Any = None) -> Self:
        """Return the statistics with one more pull of each task; -1 for a task without."""
        pulls = pulls_of(actions, rewards, signal, self.tasks)
        return self._with(_packed(_beside(self._columns(), self._one(pulls))))

    def _one(self, pulls: Pulls) -> dict[str, Any]:
        """Columns of one pull."""
        pulls.check(self.arms)
        actions, rewards, shown = np.full((self.tasks, 1), -1), np.zeros((self.tasks, 1)), None
        actions[pulls.tasks, 0], rewards[pulls.tasks, 0] = pulls.actions, pulls.rewards
        if self.shown is not None:
            what = f"features {(self.tasks, *self.shown.shape[2:])}"
            wanted = (self.tasks, *self.shown.shape[2:])
            shown = validation.shaped("signal", pulls.signal, wanted, "fiu", what)[:, None]
        return {"actions": actions, "rewards": rewards, "shown": shown}

    def _combined(self, other: Any, how: str, combine: Any) -> Self:
        """Join tasks, or put the pulls of the same tasks one after the other."""
        mine, yours = self._columns(), other._columns()
        if (self.shown is None) != (other.shown is None):
            raise ArgumentError(
                "other", "must have features (shown) if these tasks have, and only then"
            )
        both = {name: (getattr(self, name), getattr(other, name)) for name in self.shared}
        agreed = {name: self._agreed(name, *pair) for name, pair in both.items()}
        if how == "merge":
            return self._with(_packed(_beside(mine, yours)), **agreed)
        steps = max(self.actions.shape[1], other.actions.shape[1])
        first, second = (_padded(each, steps) for each in (mine, yours))
        joined = {
            name: None if each is None else np.concatenate([each, second[name]])
            for name, each in first.items()
        }
        return self._with(_packed(joined), **agreed)

    def belief_from(self, start: Callable[[int], ParticleBelief]) -> ParticleBelief:
        """Return a belief that is shown all pulls, one after the other."""
        belief = start(self.tasks)
        for step in range(self.actions.shape[1]):
            there = self.actions[:, step] >= 0
            rows = np.flatnonzero(there)
            shown = None if self.shown is None else self.shown[rows, step]
            pulls = self.actions[rows, step], self.rewards[rows, step], shown
            if len(rows) == self.tasks:
                belief = belief._given(*pulls)
                continue
            order = np.argsort(np.concatenate([rows, np.flatnonzero(~there)]))
            belief = belief.take(rows)._given(*pulls).join(belief.take(~there)).take(order)
        return belief


def log_marginal(prior: ParticlePrior, statistics: ParticleStatistics) -> FloatArray:
    """Log density of each task's rewards given its actions, ``(task,)``, as particles estimate it:
    the product over pulls of the mean weight that each gave.
    """
    size = max(1, ENTRIES // prior.particles)
    parts = (statistics.take(slice(at, at + size)) for at in range(0, statistics.tasks, size))
    return np.concatenate([prior.belief_given(part).log_evidence() for part in parts])


def _packed(columns: dict[str, Any]) -> dict[str, Any]:
    """Move pulls to the front, in their order, and cut off steps that no task has."""
    none = columns["actions"] < 0
    steps = int((~none).sum(axis=1).max(initial=0))
    order = np.argsort(none, axis=1, kind="stable")[:, :steps]
    rows = np.arange(len(order))[:, None]
    out: dict[str, Any] = {
        name: None if each is None else each[rows, order] for name, each in columns.items()
    }
    blank = out["actions"] < 0
    for name in ("rewards", "shown"):
        if out[name] is not None and blank.any():
            out[name][blank] = 0.0
    return out


def _beside(mine: dict[str, Any], yours: dict[str, Any]) -> dict[str, Any]:
    """Put steps one after the other."""
    return {
        name: None if each is None else np.concatenate([each, yours[name]], axis=1)
        for name, each in mine.items()
    }


def _padded(columns: dict[str, Any], steps: int) -> dict[str, Any]:
    """Add steps without a pull."""
    blank = {"actions": -1, "rewards": 0.0, "shown": 0.0}
    out: dict[str, Any] = {}
    for name, each in columns.items():
        out[name] = None
        if each is not None:
            more = [(0, 0), (0, steps - each.shape[1]), *[(0, 0)] * (each.ndim - 2)]
            out[name] = np.pad(each, more, constant_values=blank[name])
    return out
