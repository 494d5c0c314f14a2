"""Log density of tasks with Beta means, as the family's part ``density``."""

from collections.abc import Callable
from typing import Any

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.families.beta.prior import BetaPrior
from priorwise.families.normal.density import inside


def density(prior: BetaPrior) -> Callable[[Any], FloatArray]:
    """Log density of the arms' success probabilities in environments, ``(task,)``."""
    from scipy.special import betaln

    a, b = prior.alpha, prior.beta
    constant = float(betaln(a, b).sum())

    def log_density(environment: Any) -> FloatArray:
        rates = inside(environment.means)
        logs = (a - 1.0) * np.log(rates) + (b - 1.0) * np.log1p(-rates)
        return np.asarray(logs.sum(axis=1) - constant)

    return log_density
