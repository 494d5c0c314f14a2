"""What a simulation returns: numbers with their standard errors, and trajectories when kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from priorwise.core.types import FloatArray, IntArray
from priorwise.kernels.loop import Columns
from priorwise.kernels.tally import tally, tally_steps


class Tally:
    """Running means and variances of several rows over tasks, merged in the order of the tasks."""

    def __init__(self, rows: int) -> None:
        """Start empty."""
        self.count = 0
        self.mean = np.zeros(rows)
        self.square = np.zeros(rows)

    def add(self, columns: FloatArray) -> None:
        """Merge ``(row, task)``."""
        tally(np.ascontiguousarray(columns), float(self.count), self.mean, self.square)
        self.count += columns.shape[1]

    @property
    def std_error(self) -> FloatArray:
        """Standard error of each mean; infinite after a single task, which tells nothing of the spread."""
        if self.count < 2:
            return np.full(self.mean.shape, np.inf)
        return np.asarray(np.sqrt(self.square / (self.count - 1) / self.count))


class StepTally:
    """Tallies of each step and of the total over the steps."""

    def __init__(self, horizon: int) -> None:
        """Start empty."""
        self.steps = Tally(horizon)
        self.total = Tally(1)

    def add(self, columns: FloatArray) -> FloatArray:
        """Merge ``(step, task)``; returns the totals ``(task,)``."""
        earned = np.empty((1, columns.shape[1]))
        steps, total = self.steps, self.total
        tally_steps(np.ascontiguousarray(columns), float(steps.count), steps.mean, steps.square, earned, total.mean, total.square)
        steps.count = total.count = steps.count + columns.shape[1]
        return earned[0]


@dataclass(frozen=True)
class Estimate:
    """A mean over tasks with its standard error."""

    mean: float
    std_error: float

    def __str__(self) -> str:
        """Mean plus or minus its standard error."""
        return f"{self.mean:.4f} ± {self.std_error:.4f}"


@dataclass(frozen=True, eq=False)
class StepCurves:
    """Means over tasks at each step, ``(step,)``, with their standard errors; regret is None where there is no best arm."""

    reward: FloatArray
    reward_std_error: FloatArray
    regret: FloatArray | None
    regret_std_error: FloatArray | None


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What every task did, as columns with the task axis first."""

    actions: IntArray  # (task, step)
    rewards: FloatArray  # (task, step)
    log: FloatArray | None  # (task, step, entry): features of the chosen arm, or what else the environment logs


@dataclass(frozen=True, eq=False)
class Run:
    """Result of a simulation.

    ``mean_reward`` is the mean over tasks of a task's total reward, ``std_error`` its standard error (infinite for one task).
    ``regret`` is the mean total gap to the best available arm in hindsight, None where the problem has no best arm. ``by_step``
    holds the curves.
    """

    mean_reward: float
    std_error: float
    regret: float | None
    regret_std_error: float | None
    by_step: StepCurves
    tasks: int
    horizon: int
    seed: int
    engine: str
    resets: int
    """Tasks whose belief met a trajectory that its prior deems impossible, and started again from that prior."""
    trajectory: Trajectory | None = field(default=None, repr=False)

    @property
    def rewards(self) -> FloatArray:
        """Rewards, ``(task, step)``; needs ``keep=True``."""
        return self._kept.rewards

    @property
    def actions(self) -> IntArray:
        """Actions, ``(task, step)``; needs ``keep=True``."""
        return self._kept.actions

    @property
    def _kept(self) -> Trajectory:
        if self.trajectory is None:
            raise ValueError("trajectories were not kept: call simulate(..., keep=True)")
        return self.trajectory

    def __str__(self) -> str:
        """Reward and regret in one line."""
        regret = "" if self.regret is None else f", regret {self.regret:.4f} ± {self.regret_std_error:.4f}"
        return f"reward {self.mean_reward:.4f} ± {self.std_error:.4f}{regret} over {self.tasks:,} tasks of {self.horizon} pulls"


class RunBuilder:
    """Gathers blocks of tasks, in order, into a :class:`Run`."""

    def __init__(self, tasks: int, horizon: int, seed: int, engine: str, *, keep: bool) -> None:
        """Start empty."""
        self._tasks, self._horizon, self._seed, self._engine, self._keep = tasks, horizon, seed, engine, keep
        self._rewards = StepTally(horizon)
        self._regrets: StepTally | None = None
        self._resets = 0
        self._blocks: list[Columns] = []

    def add(self, block: Columns) -> FloatArray:
        """Merge a block; returns the tasks' total rewards."""
        earned = self._rewards.add(block.rewards)
        if block.regrets is not None:
            self._regrets = self._regrets or StepTally(self._horizon)
            self._regrets.add(block.regrets)
        self._resets += int((block.resets > 0).sum())
        if self._keep:
            self._blocks.append(block)
        return earned

    def build(self) -> Run:
        """Finish."""
        reward, regret = self._rewards, self._regrets
        return Run(
            mean_reward=float(reward.total.mean[0]),
            std_error=float(reward.total.std_error[0]),
            regret=None if regret is None else float(regret.total.mean[0]),
            regret_std_error=None if regret is None else float(regret.total.std_error[0]),
            by_step=StepCurves(
                reward.steps.mean,
                reward.steps.std_error,
                None if regret is None else regret.steps.mean,
                None if regret is None else regret.steps.std_error,
            ),
            tasks=self._tasks,
            horizon=self._horizon,
            seed=self._seed,
            engine=self._engine,
            resets=self._resets,
            trajectory=self._trajectory() if self._keep else None,
        )

    def _trajectory(self) -> Trajectory:
        logs = [block.log.transpose(2, 0, 1) for block in self._blocks if block.log is not None]
        return Trajectory(
            actions=np.concatenate([block.actions.T for block in self._blocks]).astype(np.int64),
            rewards=np.concatenate([block.rewards.T for block in self._blocks]),
            log=np.concatenate(logs) if logs else None,
        )


@dataclass(frozen=True, eq=False)
class Comparison:
    """Runs of several policies on the same tasks with the same noise, and their paired differences."""

    runs: dict[str, Run]
    _differences: dict[tuple[str, str], Estimate]

    def difference(self, first: str, second: str) -> Estimate:
        """Mean over tasks of the reward of ``first`` minus that of ``second``, with the standard error of the paired difference."""
        for name in (first, second):
            if name not in self.runs:
                raise KeyError(f"no policy {name!r} in this comparison; there are {', '.join(self.runs)}")
        if first == second:
            return Estimate(0.0, 0.0)
        if (first, second) in self._differences:
            return self._differences[first, second]
        other = self._differences[second, first]
        return Estimate(-other.mean, other.std_error)

    @property
    def best(self) -> str:
        """Name of the policy with the largest mean reward."""
        return max(self.runs, key=lambda name: self.runs[name].mean_reward)

    def __str__(self) -> str:
        """Return a table: each policy's reward, and its difference from the best."""
        width = max(len(name) for name in self.runs)
        lines = [f"{'':{width}}  {'reward':>18}  {'minus ' + self.best:>22}"]
        for name, run in sorted(self.runs.items(), key=lambda item: -item[1].mean_reward):
            gap = "" if name == self.best else str(self.difference(name, self.best))
            lines.append(f"{name:{width}}  {Estimate(run.mean_reward, run.std_error)!s:>18}  {gap:>22}".rstrip())
        return "\n".join(lines)


class PairTally:
    """Paired differences of total rewards between all pairs of policies."""

    def __init__(self, names: list[str]) -> None:
        """Start empty."""
        self._pairs = list(combinations(names, 2))
        self._tally = Tally(len(self._pairs))

    def add(self, earned: dict[str, FloatArray]) -> None:
        """Merge a block of tasks."""
        if self._pairs:
            self._tally.add(np.stack([earned[a] - earned[b] for a, b in self._pairs]))

    def build(self) -> dict[tuple[str, str], Estimate]:
        """Return the differences, first minus second."""
        means, errors = self._tally.mean, self._tally.std_error
        return {pair: Estimate(float(m), float(e)) for pair, m, e in zip(self._pairs, means, errors, strict=True)}
