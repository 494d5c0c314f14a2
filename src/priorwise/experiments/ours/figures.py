"""Figures of the learners that never stop learning, from the tables."""

from __future__ import annotations

import numpy as np

from priorwise.experiments.curves_figure import learning_curves
from priorwise.experiments.work import Files, Table, Tables

TITLES = {
    "gaussian": "Gaussian bandit, first 1,000 episodes",
    "linear": "Linear contextual bandit, first 300 episodes",
    "discrete": "Discrete bandit, 400 episodes",
}


def figures(tables: Tables) -> dict[str, Files]:
    """Learning curves of each problem; ours are dashed and starred."""
    curves, out = tables["curves"], {}
    for problem, title in TITLES.items():
        chosen = curves["problem"] == problem
        if chosen.any():
            table: Table = {name: column[chosen] for name, column in curves.items()}
            ours = sorted(set(np.unique(table["algorithm"][table["ours"]]).tolist()))
            out[problem] = learning_curves(table, title, ours=ours)
    return out
