"""What is kept of a task in an MDP: how often each move was made, and what each pair of state and
action earned.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.core.trajectories import Trajectory
from priorwise.core.types import FloatArray
from priorwise.families.tabular_mdp.environment import LastMove
from priorwise.fitting.columns import Pulls, Steps, counts, table, trajectory, zero_where_unpulled
from priorwise.fitting.statistics import PerTask


@final
@dataclass(frozen=True, eq=False, repr=False)
class MdpStatistics(PerTask):
    """Moves, and rewards of each pair of state and action, in each task.

    Parameters
    ----------
    moves
        How often each move was seen, ``(task, state, action, next state)``. Resets are no moves.
    pulls
        How often each action was played in each state, ``(task, state, action)``; at least as often
        as moves were seen.
    sums, squares
        Sums of the rewards and of their squares, ``(task, state, action)``.
    names
        Names of the actions.

    """

    family: ClassVar[str] = "mdp-statistics"

    moves: FloatArray
    pulls: FloatArray
    sums: FloatArray
    squares: FloatArray
    names: tuple[str, ...] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        """Check and freeze the columns."""
        moves = counts("moves", self.moves, (None, None, None, None))
        if moves.shape[1] != moves.shape[3]:
            raise ArgumentError(
                "moves",
                "must be (task, state, action, next state) with as many next states as states",
                got=moves.shape,
            )
        pulls = counts("pulls", self.pulls, moves.shape[:3])
        seen = moves.sum(axis=3)
        if (seen > pulls).any():
            task, state, action = np.argwhere(seen > pulls)[0]
            raise ArgumentError(
                "moves",
                f"must not exceed pulls, but task {task} has {seen[task, state, action]:g} "
                f"moves and {pulls[task, state, action]:g} pulls of action {action} in state "
                f"{state}",
            )
        sums, squares = (
            table(name, getattr(self, name), pulls.shape) for name in ("sums", "squares")
        )
        for name, value in (("sums", sums), ("squares", squares)):
            zero_where_unpulled(name, value.reshape(len(value), -1), pulls.reshape(len(value), -1))
        self._set(
            moves=moves,
            pulls=pulls,
            sums=sums,
            squares=squares,
            names=validation.names(self.names, moves.shape[2]),
        )

    @property
    def states(self) -> int:
        """Number of states."""
        return int(self.moves.shape[1])

    @property
    def arms(self) -> int:
        """Number of actions."""
        return int(self.moves.shape[2])

    @classmethod
    def known(cls, prior: Any) -> dict[str, Any]:
        """States, actions and their names, when a reset comes and whether it shows the last
        move.
        """
        names = ("states", "arms", "names", "round_steps", "last_move")
        return {name: getattr(prior, name) for name in names}

    @classmethod
    def of(cls, data: Any, *, steps: Steps = None, **known: Any) -> Self:
        """As for all statistics; ``steps`` are the first so many, as what follows a step belongs to
        it.
        """
        if isinstance(steps, slice):
            raise ArgumentError(
                "steps",
                "must be a number, of the first steps",
                cure="where a step led is seen at the next",
            )
        return super().of(data, steps=steps, **known)

    @classmethod
    def read(
        cls,
        played: Trajectory,
        *,
        states: int = 1,
        arms: int = 1,
        round_steps: int | None = None,
        last_move: LastMove = "hidden",
        names: Any = None,
        **known: Any,
    ) -> Self:
        """Sum up played tasks, whose log holds the states.

        Where the last step of a task led is not in the log, unless it ended a round, which is no
        move.
        """
        actions, rewards = trajectory(played.actions, played.rewards, arms)
        shows = round_steps is not None and last_move == "shown"
        if played.log is None or played.log.shape != (*actions.shape, 1 + shows):
            raise ArgumentError("run", "must show states, as a log of an MDP does")
        at = played.log[:, :, 0].astype(np.int64)
        if at.min() < 0 or at.max() >= states:
            raise ArgumentError(
                "logged", f"states must be 0..{states - 1}", got=(at.min(), at.max())
            )
        tasks, horizon = actions.shape
        pairs = (np.arange(tasks)[:, None] * states + at) * arms + actions  # (task, step)

        def summed(places: Any, weights: Any, size: int) -> FloatArray:
            flat = None if weights is None else weights.ravel()
            return np.bincount(places.ravel(), flat, minlength=size).astype(np.float64)

        after = at[:, 1:]
        ends = np.arange(1, horizon) % (horizon if round_steps is None else round_steps) == 0
        moved = ~ends
        if shows:
            arrived = played.log[:, 1:, 1].astype(np.int64)
            after, moved = np.where(ends, arrived, after), np.ones_like(ends)
        size, shape = tasks * states * arms, (tasks, states, arms)
        return cls(
            summed((pairs[:, :-1] * states + after)[:, moved], None, size * states).reshape(
                *shape, states
            ),
            summed(pairs, None, size).reshape(shape),
            summed(pairs, rewards, size).reshape(shape),
            summed(pairs, rewards**2, size).reshape(shape),
            names=names,
        )

    @classmethod
    def empty(
        cls, tasks: int, *, states: int = 1, arms: int = 1, names: Any = None, **known: Any
    ) -> Self:
        """Return the statistics of tasks before their first step."""
        pairs = np.zeros((validation.count("tasks", tasks), states, arms))
        return cls(np.zeros((*pairs.shape, states)), pairs, pairs, pairs, names=names)

    def observe(self, actions: ArrayLike, rewards: ArrayLike, signal: Any = None) -> Self:
        """Return the statistics with one more step of each task.

        Parameters
        ----------
        actions, rewards
            What each task played and earned, ``(task,)``; action -1 for none.
        signal
            The states in which they played, ``(task,)``; or these and where they led, ``(task,
            2)``, with -1 where that is not known or was a reset.

        """
        return super().observe(actions, rewards, signal)

    def _add(self, columns: dict[str, Any], pulls: Pulls) -> None:
        pulls.check(self.arms)
        seen = np.asarray(pulls.signal)
        if seen.ndim not in (1, 2) or len(seen) != self.tasks or seen.dtype.kind not in "iu":
            raise ArgumentError(
                "signal",
                "must be the state of each task, integers (task,), or the state and the next "
                "one, (task, 2)",
                got=pulls.signal,
            )
        pairs = np.full((self.tasks, 2), -1, dtype=np.int64)
        pairs[:, : seen.reshape(self.tasks, -1).shape[1]] = seen.reshape(self.tasks, -1)
        state, after = pairs[pulls.tasks].T
        if state.size and (state.min() < 0 or max(state.max(), after.max()) >= self.states):
            raise ArgumentError("signal", f"must be states 0..{self.states - 1}", got=pairs.max())
        place = pulls.tasks, state, pulls.actions
        columns["pulls"][place] += 1.0
        columns["sums"][place] += pulls.rewards
        columns["squares"][place] += pulls.rewards**2
        moved = after >= 0
        columns["moves"][(*(each[moved] for each in place), after[moved])] += 1.0

    def _check(
        self,
        *,
        states: int | None = None,
        arms: int | None = None,
        names: Any = None,
        **known: Any,
    ) -> None:
        for name, mine, asked in (("states", self.states, states), ("arms", self.arms, arms)):
            if asked is not None and mine != asked:
                raise ArgumentError(name, f"must be that of the statistics, {mine}", got=asked)
        self._agreed("names", self.names, names)
