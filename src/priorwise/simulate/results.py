"""From blocks of tasks to runs, and several policies on the same tasks side by side."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from priorwise.core import validation
from priorwise.core.errors import ArgumentError, shown
from priorwise.core.estimates import Estimate
from priorwise.core.frames import Table, Tabular, frame
from priorwise.core.trajectories import Block, StepCurves, trajectory_of
from priorwise.core.types import FloatArray
from priorwise.figures.curves import Curve, learning_curves
from priorwise.figures.style import Picture
from priorwise.fitting.runs import Run, numbers_of
from priorwise.simulate import tally

if TYPE_CHECKING:
    from pandas import DataFrame


ROUGH: Final = 0.01
"""Share of the tasks whose belief may be rough without a warning."""


class Tally:
    """Running means and variances of several rows over tasks, merged in the order of the tasks.

    In the arithmetic of the engine that ran them: compiled blocks are large.
    """

    def __init__(self, rows: int, engine: str) -> None:
        self._merge: Any = tally
        if engine == "compiled":
            from priorwise.kernels import tally as compiled

            self._merge = compiled
        self.count = 0
        self.mean = np.zeros(rows)
        self.square = np.zeros(rows)

    def add(self, columns: FloatArray) -> None:
        """Merge ``(row, task)``."""
        count = float(self.count)
        self._merge.tally(np.ascontiguousarray(columns), count, self.mean, self.square)
        self.count += columns.shape[1]

    def add_tiles(self, means: FloatArray, squares: FloatArray, tasks: int) -> None:
        """Merge reports ``(tile, row)`` on so many tasks."""
        count = float(self.count)
        self._merge.merge_tiles(means, squares, tasks, count, self.mean, self.square)
        self.count += tasks

    @property
    def std_error(self) -> FloatArray:
        """Standard error of each mean; infinite after a single task, which says nothing about the
        spread.
        """
        if self.count < 2:
            return np.full(self.mean.shape, np.inf)
        return np.asarray(np.sqrt(self.square / (self.count - 1) / self.count))


@dataclass
class RunBuilder:
    """Gathers blocks of tasks, in order, into a :class:`Run`."""

    tasks: int
    horizon: int
    seed: int
    engine: str
    keep: bool
    _tally: Tally | None = None
    _resets: int = 0
    _rough: int = 0
    _rough_because: str = ""
    _kept: list[Block] = field(default_factory=list)

    def add(self, block: Block) -> None:
        """Merge a block."""
        self._tally = self._tally or Tally(block.means.shape[1], self.engine)
        self._tally.add_tiles(block.means, block.squares, len(block.totals))
        self._resets += int((block.resets > 0).sum())
        self._rough += block.rough
        self._rough_because = self._rough_because or block.rough_because
        if self.keep:
            self._kept.append(block)

    def build(self) -> Run:
        """Finish."""
        if self._tally is None:
            raise ArgumentError("tasks", "must be at least 1")
        mean, error, steps = self._tally.mean, self._tally.std_error, self.horizon
        by_step = StepCurves(
            mean[:steps], error[:steps], *_curves(mean[steps + 1 :], error[steps + 1 :], steps)
        )
        warnings: tuple[str, ...] = ()
        if self._rough > ROUGH * self.tasks:
            warnings = (f"in {self._rough:,} of {self.tasks:,} tasks {self._rough_because}",)
        total, total_error = by_step.cumulative_regret, by_step.cumulative_regret_std_error
        return Run(
            mean_reward=float(mean[steps]),
            std_error=float(error[steps]),
            mean_regret=None if total is None else float(total[-1]),
            regret_std_error=None if total_error is None else float(total_error[-1]),
            by_step=by_step,
            tasks=self.tasks,
            horizon=self.horizon,
            seed=self.seed,
            engine=self.engine,
            resets=self._resets,
            trajectory=trajectory_of(self._kept) if self.keep else None,
            rough=self._rough,
            warnings=warnings,
        )


def _curves(mean: FloatArray, error: FloatArray, steps: int) -> Iterator[FloatArray]:
    """Mean and standard error of one curve after the other."""
    for first in range(0, mean.size, steps):
        yield mean[first : first + steps]
        yield error[first : first + steps]


@dataclass(frozen=True, eq=False)
class Comparison(Tabular):
    """Runs of several policies on the same tasks with the same noise, and their paired
    differences.
    """

    runs: dict[str, Run]
    _differences: dict[tuple[str, str], Estimate]
    _expected: dict[tuple[str, str], Estimate] | None = None

    def difference(self, first: str, second: str) -> Estimate:
        """Mean over tasks of the reward of ``first`` minus that of ``second``, with the standard
        error of the paired difference.
        """
        return self._paired(self._differences, first, second)

    def expected_difference(self, first: str, second: str) -> Estimate:
        """Return the same without the noise of single rewards: the mean difference of the expected
        rewards of what both played, which is that of their regrets with the sign changed.

        It is :meth:`difference` if the problem has no best arm.
        """
        pairs = self._differences if self._expected is None else self._expected
        return self._paired(pairs, first, second)

    def _paired(self, pairs: dict[tuple[str, str], Estimate], first: str, second: str) -> Estimate:
        for name in (first, second):
            if not isinstance(name, str) or name not in self.runs:
                wrong, known = shown(name), ", ".join(self.runs)
                raise KeyError(f"no policy {wrong} in this comparison; there are {known}")
        if first == second:
            return Estimate(0.0, 0.0)
        if (first, second) in pairs:
            return pairs[first, second]
        other = pairs[second, first]
        return Estimate(-other.mean, other.std_error)

    @property
    def best(self) -> str:
        """Name of the policy with the largest mean reward."""
        return max(self.runs, key=lambda name: self.runs[name].mean_reward)

    def table(self) -> Table:
        """Columns by name, one row for each policy, in the order they were given.

        ``minus_best`` is the paired difference from the policy that earned most.
        """
        rows = []
        for name, run in self.runs.items():
            gap = self.difference(name, self.best)
            difference = {"minus_best": gap.mean, "minus_best_std_error": gap.std_error}
            rows.append({"policy": name} | numbers_of(run) | difference)
        return {name: [row[name] for row in rows] for name in rows[0]}

    def table_by_step(self) -> Table:
        """Columns by name, one row for each policy and step."""
        curves = [run.by_step.table() for run in self.runs.values()]
        steps = len(curves[0]["step"])
        columns = {name: np.concatenate([each[name] for each in curves]) for name in curves[0]}
        return {"policy": [name for name in self.runs for _ in range(steps)], **columns}

    def to_frame(self, *, by_step: bool = False) -> "DataFrame":
        """Return a pandas DataFrame with one row for each policy, or for each policy and step."""
        return frame(self.table_by_step() if validation.flag("by_step", by_step) else self.table())

    def figure(self, title: str = "", note: str = "") -> Picture:
        """Draw the learning curves of all policies: what each pull earns, and the cumulative
        regret.
        """
        curves = [Curve(name, run, name) for name, run in self.runs.items()]
        run = next(iter(self.runs.values()))
        pulls = f"{run.horizon:,} pull{'s' if run.horizon > 1 else ''}"
        played = f"{run.tasks:,} tasks of {pulls}, seed {run.seed}"
        title = validation.text("title", title) or played
        return learning_curves(curves, title, validation.text("note", note))

    def __str__(self) -> str:
        """Return a table: each policy's reward, and its difference from the best; then warnings."""
        width = max(len(name) for name in self.runs)
        lines = [f"{'':{width}}  {'reward':>18}  {'minus ' + self.best:>22}"]
        for name, run in sorted(self.runs.items(), key=lambda item: -item[1].mean_reward):
            gap = "" if name == self.best else str(self.difference(name, self.best))
            earned = Estimate(run.mean_reward, run.std_error)
            lines.append(f"{name:{width}}  {earned!s:>18}  {gap:>22}".rstrip())
        for name, run in self.runs.items():
            lines += [f"  warning, {name}: {each}" for each in run.warnings]
        return "\n".join(lines)


class PairTally:
    """Paired differences of total rewards, and of regrets, between all pairs of policies."""

    def __init__(self, engines: dict[str, str]) -> None:
        """Start empty, for policies that run on these engines."""
        self._pairs = list(combinations(engines, 2))
        engine = "numpy" if set(engines.values()) == {"numpy"} else "compiled"
        self._rewards, self._regrets = (Tally(len(self._pairs), engine) for _ in range(2))
        self._has_best = True

    def add(self, blocks: dict[str, Block]) -> None:
        """Merge a block of tasks."""
        if not self._pairs:
            return
        totals = {name: block.totals for name, block in blocks.items()}
        self._rewards.add(np.stack([totals[a] - totals[b] for a, b in self._pairs]))
        lost = {name: each.regrets for name, each in blocks.items() if each.regrets is not None}
        self._has_best &= len(lost) == len(blocks)
        if self._has_best:
            self._regrets.add(np.stack([lost[b] - lost[a] for a, b in self._pairs]))

    def build(self, runs: dict[str, Run]) -> Comparison:
        """Return the runs with their differences, first minus second."""
        expected = self._estimates(self._regrets) if self._has_best else None
        return Comparison(runs, self._estimates(self._rewards), expected)

    def _estimates(self, tally: Tally) -> dict[tuple[str, str], Estimate]:
        estimates = map(Estimate, tally.mean.tolist(), tally.std_error.tolist())
        return dict(zip(self._pairs, estimates, strict=True))
