"""The likelihood of what tasks earned under a logistic prior, by Laplace's approximation."""

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.families.logistic.corrected import posterior
from priorwise.families.logistic.prior import LogisticPrior
from priorwise.families.logistic.statistics import LogisticStatistics


def log_marginal(prior: LogisticPrior, statistics: LogisticStatistics) -> FloatArray:
    """Log probability of each task's rewards given its actions, ``(task,)``: log posterior at its
    mode minus half the log determinant of the curvature, and the terms of second order.
    """
    x, r = statistics.features, statistics.rewards
    found = posterior(prior, x, r, np.zeros((statistics.tasks, prior.dim)))
    unused = x.shape[1] - statistics.pulls  # rows of zeros count as tosses of a coin
    return np.asarray(found.log_mass + unused * np.log(2.0))
