"""What a simulation returns: numbers with their standard errors, and trajectories when kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
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
        missing = np.full(self.reward.size, np.nan)
        names = {"reward_std_error": "std_error"}  # as in every table
        curves = {
            names.get(name, name): missing if values is None else values
            for name, values in vars(self).items()
        }
        return {"step": np.arange(1, self.reward.size + 1), **curves}


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


def trajectory_of(blocks: Sequence[Block]) -> Trajectory:
    """Return what the tasks of kept blocks did, one block after the other."""
    kept = [block.columns for block in blocks if block.columns is not None]
    actions = _joined([each.actions.swapaxes(0, 1) for each in kept])
    logs = [each.log.transpose(2, 0, 1) for each in kept if each.log is not None]
    return Trajectory(
        actions=actions.astype(np.int64) if actions.dtype.kind == "i" else actions,
        rewards=_joined([each.rewards.T for each in kept]),
        log=_joined(logs) if logs else None,
    )


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
        for step, (actions, rewards) in enumerate(
            zip(played.actions.swapaxes(0, 1), played.rewards.T, strict=True), start=1
        ):
            seen = Seen(step, self.horizon, believed.arms, actions=real)
            belief = belief.update(seen, actions, rewards, None)
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

    def figure(self, title: str = "", label: str = "") -> Picture:
        """Draw the learning curves, pull by pull."""
        from priorwise.figures.curves import Curve, learning_curves

        label = validation.text("label", label)
        return learning_curves(
            [Curve(label, self, label)],
            validation.text("title", title) or f"{self}, seed {self.seed}",
        )

    def __str__(self) -> str:
        """Reward and regret in one line."""
        regret = (
            ""
            if self.mean_regret is None
            else f", regret {self.mean_regret:.4f} ± {self.regret_std_error:.4f}"
        )
        return (
            f"reward {self.mean_reward:.4f} ± {self.std_error:.4f}{regret} over {self.tasks:,} "
            f"tasks of {self.horizon} pulls"
        )


def numbers_of(run: Run) -> dict[str, Any]:
    """What a table says of a run, under the names that every table uses; NaN where there is no
    regret.
    """
    return {
        "reward": run.mean_reward,
        "std_error": run.std_error,
        "regret": np.nan if run.mean_regret is None else run.mean_regret,
        "regret_std_error": np.nan if run.regret_std_error is None else run.regret_std_error,
        "tasks": run.tasks,
        "horizon": run.horizon,
        "seed": run.seed,
        "engine": run.engine,
        "resets": run.resets,
    }


def title_of(run: Run) -> str:
    """Say what ran, for the title of a figure."""
    return (
        f"{run.tasks:,} tasks of {run.horizon:,} pull{'s' if run.horizon > 1 else ''}, seed "
        f"{run.seed}"
    )


def joined(parts: Sequence[Trajectory]) -> Trajectory:
    """Return the tasks of several trajectories, one after the other."""
    logs = [each.log for each in parts if each.log is not None]
    return Trajectory(
        np.concatenate([each.actions for each in parts]),
        np.concatenate([each.rewards for each in parts]),
        np.concatenate(logs) if logs else None,
    )


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
