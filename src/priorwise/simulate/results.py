"""What a simulation returns: numbers with their standard errors, and trajectories when kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from priorwise.core.types import FloatArray, IntArray
from priorwise.kernels.loop import Block, Columns
from priorwise.kernels.tally import merge_tiles, tally


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

    def add_tiles(self, means: FloatArray, squares: FloatArray, tasks: int) -> None:
        """Merge reports ``(tile, row)`` on so many tasks."""
        merge_tiles(means, squares, tasks, float(self.count), self.mean, self.square)
        self.count += tasks

    @property
    def std_error(self) -> FloatArray:
        """Standard error of each mean; infinite after a single task, which tells nothing of the spread."""
        if self.count < 2:
            return np.full(self.mean.shape, np.inf)
        return np.asarray(np.sqrt(self.square / (self.count - 1) / self.count))


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
        self._tally: Tally | None = None
        self._resets = 0
        self._columns: list[Columns] = []

    def add(self, block: Block) -> FloatArray:
        """Merge a block; returns the tasks' total rewards."""
        self._tally = self._tally or Tally(block.means.shape[1])
        self._tally.add_tiles(block.means, block.squares, len(block.totals))
        self._resets += int((block.resets > 0).sum())
        if block.columns is not None:
            self._columns.append(block.columns)
        return block.totals

    def build(self) -> Run:
        """Finish."""
        if self._tally is None:
            raise ValueError("no task was run")
        mean, error, steps = self._tally.mean, self._tally.std_error, self._horizon
        regret, regret_error = mean[steps + 1 :], error[steps + 1 :]  # empty where there is no best arm
        return Run(
            mean_reward=float(mean[steps]),
            std_error=float(error[steps]),
            regret=float(regret[-1]) if regret.size else None,
            regret_std_error=float(regret_error[-1]) if regret.size else None,
            by_step=StepCurves(
                mean[:steps],
                error[:steps],
                regret[:-1] if regret.size else None,
                regret_error[:-1] if regret.size else None,
            ),
            tasks=self._tasks,
            horizon=self._horizon,
            seed=self._seed,
            engine=self._engine,
            resets=self._resets,
            trajectory=self._trajectory() if self._keep else None,
        )

    def _trajectory(self) -> Trajectory:
        logs = [block.log.transpose(2, 0, 1) for block in self._columns if block.log is not None]
        return Trajectory(
            actions=np.concatenate([block.actions.T for block in self._columns]).astype(np.int64),
            rewards=np.concatenate([block.rewards.T for block in self._columns]),
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
