"""What tasks did, pull by pull: curves of means, and trajectories when kept."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from priorwise.core.frames import Table, Tabular
from priorwise.core.types import FloatArray, IntArray

Entry = TypeVar("Entry", bound=np.generic)


@dataclass(frozen=True, eq=False)
class StepCurves(Tabular):
    """Means over tasks at each step, ``(step,)``, with their standard errors.

    ``expected_reward`` is the expected reward of the chosen arm, ``reward`` what it earned: the
    same on average, but with the noise of the rewards. It is None where arms have no expected
    rewards. ``regret`` and ``cumulative_regret`` (up to and with each step) are None where there is
    no best arm.
    """

    reward: FloatArray
    reward_std_error: FloatArray
    expected_reward: FloatArray | None = None
    expected_reward_std_error: FloatArray | None = None
    regret: FloatArray | None = None
    regret_std_error: FloatArray | None = None
    cumulative_regret: FloatArray | None = None
    cumulative_regret_std_error: FloatArray | None = None

    def table(self) -> Table:
        """Columns by name, one row for each step; NaN for what the problem does not have."""
        table: Table = {"step": np.arange(1, self.reward.size + 1)}
        for name, values in vars(self).items():
            column = "std_error" if name == "reward_std_error" else name  # as in every table
            table[column] = np.full(self.reward.size, np.nan) if values is None else values
        return table


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What every task did, as columns with the task axis first."""

    actions: IntArray  # (task, step); real ones are floats, perhaps (task, step, size)
    rewards: FloatArray  # (task, step)
    # (task, step, entry): features of the chosen arm, or what else the environment logs
    log: FloatArray | None


@dataclass(frozen=True, eq=False)
class Columns:
    """What every task of a block did, step first as the loops write it."""

    actions: NDArray[Any]  # (step, task), integers; real ones are floats, perhaps (step, task, k)
    rewards: FloatArray  # (step, task)
    log: FloatArray | None  # (step, entry, task)


@dataclass(frozen=True, eq=False)
class Block:
    """A block of tasks that ran at once: reports on its tiles, and its columns if they are kept.

    Rows of a report: the reward of each step, then the total reward; where actions have values,
    that of the chosen one at each step; where there is a best one, the regret of each step, then
    the regret up to each step.
    """

    means: FloatArray  # (tile, row)
    squares: FloatArray  # (tile, row), sums of squared deviations
    totals: FloatArray  # (task,), total rewards
    resets: IntArray  # (task,)
    columns: Columns | None
    rough: int = 0  # tasks whose belief is too rough to rely on
    rough_because: str = ""
    regrets: FloatArray | None = None  # (task,), total regrets where an action is the best


def trajectory_of(blocks: Sequence[Block]) -> Trajectory:
    """Return what the tasks of kept blocks did, one block after the other."""
    parts = []
    for columns in (block.columns for block in blocks if block.columns is not None):
        log = None if columns.log is None else columns.log.transpose(2, 0, 1)
        parts.append(Trajectory(columns.actions.swapaxes(0, 1), columns.rewards.T, log))
    whole = joined(parts)
    integers = whole.actions.dtype.kind == "i"
    return replace(whole, actions=whole.actions.astype(np.int64)) if integers else whole


def _joined(parts: Sequence[NDArray[Entry]]) -> NDArray[Entry]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def joined(parts: Sequence[Trajectory]) -> Trajectory:
    """Return the tasks of several trajectories, one after the other."""
    logs = [each.log for each in parts if each.log is not None]
    actions, rewards = [each.actions for each in parts], [each.rewards for each in parts]
    return Trajectory(_joined(actions), _joined(rewards), _joined(logs) if logs else None)
