"""Episodes one after the other, and as the kept run that estimators read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from priorwise.core.runs import Run, StepCurves, Trajectory


def joined(parts: Sequence[Trajectory]) -> Trajectory:
    """Episodes one after the other."""
    logs = [each.log for each in parts if each.log is not None]
    return Trajectory(
        np.concatenate([each.actions for each in parts]),
        np.concatenate([each.rewards for each in parts]),
        np.concatenate(logs) if logs else None,
    )


def as_run(played: Trajectory) -> Run:
    """Return episodes as a kept run, which is what estimators read."""
    tasks, horizon = played.rewards.shape
    columns = np.column_stack([played.rewards, played.rewards.sum(axis=1)])
    mean = columns.mean(axis=0)
    error = (
        columns.std(axis=0, ddof=1) / np.sqrt(tasks) if tasks > 1 else np.full(horizon + 1, np.inf)
    )
    curves = StepCurves(mean[:-1], error[:-1], None, None)
    return Run(
        float(mean[-1]), float(error[-1]), None, None, curves, tasks, horizon, 0, "meta", 0, played
    )
