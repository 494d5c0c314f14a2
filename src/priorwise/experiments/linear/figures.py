"""Figures of the linear contextual bandit, from its tables."""

from __future__ import annotations

from priorwise.experiments.boxes_figure import performance_boxes
from priorwise.experiments.curves_figure import learning_curves
from priorwise.experiments.work import Files, Tables


def figures(tables: Tables) -> dict[str, Files]:
    """Learning curves, and the test performance of the last half."""
    return {
        "learning_curves": learning_curves(
            tables["curves"], "Linear contextual bandit: 6 arms, 6 features, 20 pulls"
        ),
        "test": performance_boxes(tables["test"], "Linear contextual bandit: last 1,000 episodes"),
    }
