"""Log density of tasks with normal-gamma arms, as the family's part ``density``."""

from collections.abc import Callable
from typing import Any

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.families.normal_gamma.prior import NormalGammaPrior


def density(prior: NormalGammaPrior) -> Callable[[Any], FloatArray]:
    """Log density of the arms' means and precisions in environments, ``(task,)``."""
    from scipy.special import gammaln

    a, b, k = prior.shape, prior.rate, prior.pulls
    constant = a * np.log(b) - gammaln(a) + 0.5 * np.log(k / (2.0 * np.pi))

    def log_density(environment: Any) -> FloatArray:
        precision = environment.noise_std**-2.0
        apart = 0.5 * k * (environment.means - prior.mean) ** 2
        logs = constant + (a - 0.5) * np.log(precision) - (b + apart) * precision
        return np.asarray(logs.sum(axis=1))

    return log_density
