"""Figures of the discrete bandit, from its tables."""

from __future__ import annotations

import numpy as np

from priorwise.experiments import problems
from priorwise.experiments.curves_figure import learning_curves
from priorwise.experiments.first_pulls_figure import first_pull_map
from priorwise.experiments.instance_figure import instance_map
from priorwise.experiments.work import Files, Table, Tables

RECONSTRUCTED = "The paper draws the rewards without printing them; this is a reconstruction."
EXPLORED = (
    "MetaTS and MetaKG: all 400 episodes, among them the 100 of exploration, which open with any "
    "arm."
)


def figures(tables: Tables) -> dict[str, Files]:
    """The instance, learning curves, and the law of the first pull."""
    return {
        "instance": instance_map(
            tables["instance"],
            "Discrete bandit: rewards of 20 arms in 16 tasks",
            note=RECONSTRUCTED,
        ),
        "learning_curves": learning_curves(
            tables["curves"], "Discrete bandit: 20 arms, 10 pulls, 16 tasks"
        ),
        "first_pulls": first_pull_map(
            tables["first_pulls"], "Discrete bandit: first arm pulled, T₀ = 100", note=EXPLORED
        ),
    }


def instance_table() -> dict[str, Table]:
    """Rewards of every arm in every task, with the prior; given, not measured."""
    prior = problems.discrete().prior
    means, probs = prior.means, prior.probs
    task, arm = (index.ravel() for index in np.indices(means.shape))
    return {
        "instance": {"task": task, "arm": arm, "reward": means.ravel(), "probability": probs[task]}
    }
