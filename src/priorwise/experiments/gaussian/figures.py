"""Figures of the Gaussian bandit, from its tables."""

from __future__ import annotations

from priorwise.experiments.boxes_figure import performance_boxes
from priorwise.experiments.curves_figure import learning_curves
from priorwise.experiments.work import Files, Tables


def figures(tables: Tables) -> dict[str, Files]:
    """Learning curves, and the test performance of the last half."""
    return {
        "learning_curves": learning_curves(tables["curves"], "Gaussian bandit: 6 arms, 10 pulls"),
        "test": performance_boxes(tables["test"], "Gaussian bandit: last 5,000 episodes"),
    }
