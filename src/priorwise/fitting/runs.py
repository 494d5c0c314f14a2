"""What a simulation returns: numbers with their standard errors, and trajectories when kept."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from priorwise.core import validation
from priorwise.core.errors import ArgumentError, MissingCapability
from priorwise.core.estimates import std_error
from priorwise.core.frames import Table, Tabular
from priorwise.core.trajectories import StepCurves, Trajectory
from priorwise.core.types import FloatArray, IntArray
from priorwise.figures.style import Picture


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
        from priorwise.core import argument_checks
        from priorwise.core.seen import Seen

        argument_checks.prior("believed", believed)
        played = self.kept
        if played.log is not None or hasattr(believed, "for_arms"):
            if hasattr(believed, "belief_given"):
                return believed.belief_given(played)
            raise MissingCapability(
                "believed",
                "must have belief_given(statistics), as pulls with signals cannot be played again",
                got=type(believed),
                cure="take step.learned() of priorwise.simulate.steps",
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
            raise ArgumentError("run", "kept no trajectories", cure="call simulate(..., keep=True)")
        return self.trajectory

    def table(self) -> Table:
        """Columns by name, one row; ``by_step.table()`` has one row for each step."""
        return {name: [value] for name, value in numbers_of(self).items()}

    def figure(self, title: str = "", label: str = "") -> Picture:
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
