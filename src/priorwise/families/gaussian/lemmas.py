"""Concentration of the moment estimators of a normal prior: right-hand sides of the paper's lemmas,
with every constant worked out.

The proofs show that a sum over T tasks is (v, c)-subexponential, ``ln E exp(s X) <= v s^2 / 2`` for
``|s| <= 1 / c``, in every direction of a net, and leave the constants open. With ``X <= sqrt(2 v L)
+ 2 c L`` but for probability ``exp(-L)`` (Bernstein), nets of ``5^A`` and ``9^A`` points, ``v = 4 T
d2 / A, c = 2 d_inf`` for the mean and ``v = 200 T d / A^2, c = 10 sqrt(2 d)`` for the covariance,

    |P^-1/2 (nu^ - nu)|      <=  sqrt(32 d2 A L / T) + 8 d_inf A L / T,
    |P^-1/2 (P^ - P) P^-1/2| <=  40 sqrt(d) (sqrt(A^2 M / T) + sqrt(2) A^2 M / T)

with ``L = ln(5^A / delta)`` and ``M = ln(2 9^A / delta)``, each with probability ``1 - delta``. Up
to their constants these are the printed rates.
"""

import math
from dataclasses import dataclass

from priorwise.core import validation
from priorwise.families.gaussian.prior import GaussianPrior
from priorwise.families.gaussian.rates import GaussianConstants, gaussian_constants
from priorwise.fitting.design import least_tasks

CLOSE = 2.0 / 3.0
"""Error of the covariance up to which the lemma "Gaussian KL-divergence" holds."""


@dataclass(frozen=True)
class GaussianConcentration:
    """How far moment estimates may be from a normal prior, in units of its covariance P.

    ``mean`` bounds ``|P^-1/2 (nu^ - nu)|`` of the mean of one uniform pull per task, ``cov`` bounds
    ``|P^-1/2 (P^ - P) P^-1/2|`` (spectral norm) of the covariance from two, each with probability
    ``1 - delta``. ``mean_rate`` and ``cov_rate`` are the lemmas as printed, for C = 1.
    """

    mean: float
    cov: float
    mean_rate: float
    cov_rate: float
    constants: GaussianConstants
    arms: int
    tasks: int
    delta: float

    @property
    def known_cov(self) -> float:
        """Total variation from the true prior where only the mean is estimated: by Pinsker at most
        ``mean / 2``, with probability ``1 - delta``.
        """
        return min(1.0, self.mean / 2.0)

    @property
    def total_variation(self) -> float:
        """Total variation where both are: ``sqrt((A cov^2 + mean^2) / 4)`` if ``cov <= 2/3``, with
        probability ``1 - 2 delta``; otherwise 1.
        """
        if not self.cov <= CLOSE:
            return 1.0
        return min(1.0, math.sqrt((self.arms * self.cov**2 + self.mean**2) / 4.0))


def gaussian_concentration(
    prior: GaussianPrior, tasks: int, delta: float, *, difference: bool = False
) -> GaussianConcentration:
    """Right-hand sides of the lemmas "Gaussian mean estimation" and "Gaussian covariance
    estimation" for a prior, a number of tasks and a probability of missing them.

    Parameters
    ----------
    prior
        The true prior; its constants are those of
        :func:`~priorwise.families.gaussian.rates.gaussian_constants`.
    tasks
        Tasks of exploration.
    delta
        Probability with which each bound may fail.
    difference
        For the estimator of differences, which does not know the mean: it reads a pair of tasks as
        one of the estimator that does, so half as many count for the covariance.

    Examples
    --------
    >>> prior = GaussianPrior([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]])
    >>> found = gaussian_concentration(prior, tasks=100_000, delta=0.1)
    >>> round(found.mean, 3), round(found.mean_rate, 3), round(found.known_cov, 3)
    (0.085, 0.013, 0.043)

    """
    constants, a = gaussian_constants(prior), prior.arms
    tasks, delta = validation.count("tasks", tasks), validation.share("delta", delta)
    pairs = tasks / 2.0 if validation.flag("difference", difference) else float(tasks)
    level = a * (a * math.log(5.0) - math.log(delta))
    mean = math.sqrt(32.0 * constants.d2 * level / tasks) + 8.0 * constants.d_inf * level / tasks
    rate = (a**2 - a * math.log(delta)) / tasks
    printed = math.sqrt(constants.d2 * rate) + constants.d_inf * rate
    level = a**2 * (a * math.log(9.0) + math.log(2.0 / delta)) / pairs
    root = math.sqrt(constants.d)
    cov = 40.0 * root * (math.sqrt(level) + math.sqrt(2.0) * level)
    rate = (a**3 - a**2 * math.log(delta)) / pairs
    cov_rate = root * (math.sqrt(rate) + rate)
    return GaussianConcentration(mean, cov, printed, cov_rate, constants, a, tasks, delta)


def gaussian_tasks(
    prior: GaussianPrior, eps: float, delta: float, *, known_cov: bool = False
) -> float:
    """Tasks after which the lemmas certify a total variation of at most ``eps`` with probability
    ``1 - delta``; infinite for a singular covariance.

    Only the mean is estimated with ``known_cov``, otherwise the mean and, from differences of two
    tasks, the covariance. The constants are those of a worst case: far fewer tasks do.
    """
    eps, delta = validation.share("eps", eps), validation.share("delta", delta)
    known_cov = validation.flag("known_cov", known_cov)

    def certified(tasks: int) -> float:
        if known_cov:
            return gaussian_concentration(prior, tasks, delta).known_cov
        return gaussian_concentration(prior, tasks, delta / 2.0, difference=True).total_variation

    return least_tasks(certified, eps)
