"""Gaussian linear contextual bandit: constants in ``sweep``, figures and claims from its tables."""

from __future__ import annotations

from typing import Final

from priorwise.experiments.learning import LearningCurves
from priorwise.experiments.linear.claims import claims
from priorwise.experiments.linear.figures import figures
from priorwise.experiments.linear.sweep import SWEEP
from priorwise.experiments.paper import PaperExperiment

EXPERIMENT: Final = PaperExperiment(
    "linear", "Gaussian linear contextual bandit", LearningCurves(SWEEP), figures, claims
)
