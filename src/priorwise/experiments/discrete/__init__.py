"""Discrete bandit with identifying arms: constants in ``sweep``, figures and claims from its
tables.
"""

from __future__ import annotations

from typing import Final

from priorwise.experiments.discrete.claims import claims
from priorwise.experiments.discrete.figures import figures, instance_table
from priorwise.experiments.discrete.sweep import SWEEP
from priorwise.experiments.learning import LearningCurves
from priorwise.experiments.paper import PaperExperiment

EXPERIMENT: Final = PaperExperiment(
    "discrete",
    "Discrete bandit with identifying arms",
    LearningCurves(SWEEP),
    figures,
    claims,
    instance_table,
)
