"""What a simulation returns: numbers with their standard errors, and trajectories when kept."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from priorwise.core import validation
from priorwise.core.estimates import std_error
from priorwise.core.frames import Table, Tabular
from priorwise.core.types import FloatArray, IntArray

if TYPE_CHECKING:
    from priorwise.figures.style import Picture


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


def _joined(parts: Sequence[Any]) -> Any:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class Run(Tabular):
    """Result of a simulation.

    ``mean_reward`` is the mean over tasks of a task's total reward, ``std_error`` its standard
    error (infinite for one task). ``mean_regret`` is the mean total gap to the best available arm
    in hindsight, None where the problem has no best arm: expected rewards are not known, or actions
    influence later signals. ``by_step`` holds the curves.
    """

    mean_reward: float
    std_error: float
    mean_regret: float | None
    regret_std_error: float | None
    by_step: StepCurves
    tasks: int
    horizon: int
    seed: int
    engine: str
    resets: int
    """Tasks whose belief met a trajectory that its prior deems impossible, and started again from
    that prior.
    """
    trajectory: Trajectory | None = field(default=None, repr=False)
    rough: int = 0
    """Tasks whose belief only approximates the posterior and was, before the last pull, too rough
    to rely on.
    """
    warnings: tuple[str, ...] = ()

    @property
    def rewards(self) -> FloatArray:
        """Rewards, ``(task, step)``; needs ``keep=True``."""
        return self.kept.rewards

    @property
    def actions(self) -> IntArray:
        """Actions, ``(task, step)``; needs ``keep=True``."""
        return self.kept.actions

    def belief(self, believed: Any) -> Any:
        """Return the belief about each task after its last pull, of who believed this prior at the
        first; needs ``keep=True``.

        A run does not keep beliefs: this one is computed from what was played, pull by pull, or
        where tasks show signals by the prior's ``belief_given`` from their statistics.
        """
        from priorwise.core import doors
        from priorwise.core.family import offers
        from priorwise.core.protocols import Seen

        doors.prior("believed", believed)
        played = self.kept
        if played.log is not None or hasattr(believed, "for_arms"):
            if offers(believed, "statistics") and hasattr(believed, "belief_given"):
                return believed.belief_given(played)
            raise TypeError(
                f"{type(believed).__name__} has no belief_given(statistics), and pulls with "
                "signals cannot be played again: take step.learned() of priorwise.simulate.steps"
            )
        belief, real = believed.belief(self.tasks), getattr(believed, "actions", None)
        for at in range(self.horizon):
            seen = Seen(at + 1, self.horizon, believed.arms, actions=real)
            belief = belief.update(seen, played.actions[:, at], played.rewards[:, at], None)
        return belief

    @property
    def kept(self) -> Trajectory:
        """What every task did; needs ``keep=True``."""
        if self.trajectory is None:
            raise ValueError("trajectories were not kept: call simulate(..., keep=True)")
        return self.trajectory

    def table(self) -> Table:
        """Columns by name, one row; ``by_step.table()`` has one row for each step."""
        return {name: [value] for name, value in numbers_of(self).items()}

    def figure(self, title: str = "", label: str = "") -> "Picture":
        """Draw the learning curves, pull by pull."""
        from priorwise.figures.curves import Curve, learning_curves

        label = validation.text("label", label)
        title = validation.text("title", title) or f"{self._line}, seed {self.seed}"
        return learning_curves([Curve(label, self, label)], title)

    def __str__(self) -> str:
        """Reward and regret in one line, then warnings if there are any."""
        return "\n".join([self._line, *(f"  warning: {each}" for each in self.warnings)])

    @property
    def _line(self) -> str:
        earned = f"reward {self.mean_reward:.4f} ± {self.std_error:.4f}"
        if self.mean_regret is not None:
            earned += f", regret {self.mean_regret:.4f} ± {self.regret_std_error:.4f}"
        return f"{earned} over {self.tasks:,} tasks of {self.horizon} pulls"


def numbers_of(run: Run) -> dict[str, Any]:
    """What a table says of a run, under the names that every table uses; NaN where there is no
    regret.
    """
    same = {name: getattr(run, name) for name in ("tasks", "horizon", "seed", "engine", "resets")}
    return {
        "reward": run.mean_reward,
        "std_error": run.std_error,
        "regret": np.nan if run.mean_regret is None else run.mean_regret,
        "regret_std_error": np.nan if run.regret_std_error is None else run.regret_std_error,
        **same,
    }


def joined(parts: Sequence[Trajectory]) -> Trajectory:
    """Return the tasks of several trajectories, one after the other."""
    logs = [each.log for each in parts if each.log is not None]
    actions, rewards = [each.actions for each in parts], [each.rewards for each in parts]
    return Trajectory(_joined(actions), _joined(rewards), _joined(logs) if logs else None)


def as_run(played: Trajectory) -> Run:
    """Return tasks as a kept run, which is what estimators read."""
    tasks, horizon = played.rewards.shape
    columns = np.column_stack([played.rewards, played.rewards.sum(axis=1)])
    mean = columns.mean(axis=0)
    error = std_error(columns)
    curves = StepCurves(mean[:-1], error[:-1], None, None)
    return Run(
        float(mean[-1]), float(error[-1]), None, None, curves, tasks, horizon, 0, "meta", 0, played
    )
