"""Gaussian multi-armed bandit: constants in ``sweep``, figures and claims from its tables."""

from __future__ import annotations

from typing import Final

from priorwise.experiments.gaussian.claims import claims
from priorwise.experiments.gaussian.figures import figures
from priorwise.experiments.gaussian.sweep import SWEEP
from priorwise.experiments.learning import LearningCurves
from priorwise.experiments.paper import PaperExperiment

EXPERIMENT: Final = PaperExperiment(
    "gaussian", "Gaussian multi-armed bandit", LearningCurves(SWEEP), figures, claims
)
