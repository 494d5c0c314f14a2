"""Beyond the paper: empirical Bayes and better policies on the paper's problems."""

from __future__ import annotations

from typing import Final

from priorwise.experiments.ours.experiment import Ours

EXPERIMENT: Final = Ours()
