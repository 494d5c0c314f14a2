"""The theory, measured: ladder, estimators, lower bound."""

from __future__ import annotations

from typing import Final

from priorwise.experiments.theory.experiment import Theory

EXPERIMENT: Final = Theory()
