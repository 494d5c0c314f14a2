"""Concentration of the moment estimator of Beta priors, with every constant worked out: the twin of
the lemmas on normal priors.

*From parameters to laws* (lemma on exponential families). Beta(alpha, beta) is an exponential
family with natural parameters (alpha, beta), whose log-partition function ``ln B(alpha, beta)`` has
the Hessian

    H = diag(psi1(alpha), psi1(beta)) - psi1(alpha + beta) 1 1',

psi1 the trigamma function. By Pinsker and Taylor ``TV <= sqrt(KL / 2) <= C |Delta|`` with ``C^2 =
lambda_max(H) / 4`` at its largest between the two. psi1 falls, so for ``|Delta| <= c`` the matrix
is below ``diag(psi1(alpha - c), psi1(beta - c)) - psi1(alpha + beta + 2 c) 1 1'``.

*From tasks to parameters* (lemma on the Beta-Binomial). Totals of n pulls lie in [0, n]; by
Hoeffding their first two moments are within ``n r`` and ``n^2 r`` of the truth, ``r = sqrt(ln(4 /
delta) / (2 N))``, but for probability delta. Both estimates rise in the first moment and fall in
the second as long as ``m2 <= n m1`` and there is over-dispersion, so two corners of this box bound
them.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import polygamma

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.core.types import FloatArray
from priorwise.families.beta.prior import BetaPrior
from priorwise.fitting.design import least_tasks


def trigamma_matrix(alpha: ArrayLike, beta: ArrayLike) -> FloatArray:
    """Fisher information of Beta laws in (alpha, beta), ``(..., 2, 2)``: the Hessian of ``ln
    B(alpha, beta)``.
    """
    checked = (_parameters("alpha", alpha), _parameters("beta", beta))
    first, second = np.broadcast_arrays(*checked)
    return _hessian(first, second, first + second)


def beta_constant(alpha: float, beta: float, radius: float = 0.0) -> float:
    """C such that ``TV(Beta(alpha, beta), Beta(alpha', beta')) <= C |Delta|_2`` for parameters
    within ``radius`` in Euclidean norm; infinite where these are not all positive.

    Examples
    --------
    >>> round(beta_constant(1.0, 1.0), 4), round(beta_constant(2.0, 8.0, radius=0.5), 4)
    (0.6413, 0.4612)

    """
    for name, value in (("alpha", alpha), ("beta", beta)):
        _parameters(name, validation.number(name, value))
    return _constant(alpha, beta, validation.not_negative("radius", radius))


@dataclass(frozen=True, eq=False)
class BetaConcentration:
    """How far the moment estimates of Beta priors may be from the truth, with probability ``1 -
    delta`` for all arms together.

    ``alpha`` and ``beta`` bound the errors of the parameters, ``(arm,)``; infinite where so few
    tasks promise nothing. ``moments`` bounds those of the first two moments of totals, ``(2,)``.
    """

    alpha: FloatArray
    beta: FloatArray
    moments: FloatArray
    prior: BetaPrior
    tasks: int
    delta: float

    @property
    def total_variation(self) -> float:
        """``sqrt(sum_a C_a^2 |Delta_a|^2)``, with C of :func:`beta_constant`; at most 1."""
        far = np.hypot(self.alpha, self.beta)
        if not np.isfinite(far).all():
            return 1.0
        parts = [
            _constant(a, b, each) * each
            for a, b, each in zip(self.prior.alpha, self.prior.beta, far.tolist(), strict=True)
        ]
        return min(1.0, math.hypot(*parts))


def beta_concentration(
    prior: BetaPrior, tasks: int, delta: float, *, pulls: int
) -> BetaConcentration:
    """Bound the errors of moment estimates after so many tasks in blocks of one arm each.

    Parameters
    ----------
    prior
        The true prior.
    tasks
        Tasks of exploration, an equal number for each arm.
    delta
        Probability with which the bounds may fail, shared by the arms.
    pulls
        Pulls n of its arm in each task, at least 2.

    Examples
    --------
    >>> found = beta_concentration(BetaPrior([2, 1], [1, 1]), 1_000_000, 0.1, pulls=10)
    >>> found.alpha.round(3), round(found.total_variation, 3)
    (array([0.282, 0.093]), 0.268)

    """
    validation.instance("prior", prior, BetaPrior)
    tasks, n = validation.count("tasks", tasks), validation.count("pulls", pulls, least=2)
    delta, each = validation.share("delta", delta), tasks // prior.arms
    near = math.sqrt(math.log(4.0 * prior.arms / delta) / (2.0 * each)) if each else math.inf
    moments = near * np.array([n, n * n], dtype=np.float64)
    total = prior.alpha + prior.beta
    mean = prior.alpha / total
    first = n * mean
    second = first * (1.0 + (n - 1) * (prior.alpha + 1.0) / (total + 1.0))
    truth = np.stack([prior.alpha, prior.beta])
    corners = [_estimates(first + s * moments[0], second - s * moments[1], n) for s in (1, -1)]
    error = np.maximum(*(np.abs(corner - truth) for corner in corners))
    return BetaConcentration(error[0], error[1], moments, prior, tasks, delta)


def beta_tasks(prior: BetaPrior, eps: float, delta: float, *, pulls: int) -> float:
    """Tasks after which the lemmas certify a total variation of at most ``eps`` with probability
    ``1 - delta``. The constants are those of a worst case: far fewer tasks do.
    """
    eps = validation.share("eps", eps)
    return least_tasks(
        lambda tasks: beta_concentration(prior, tasks, delta, pulls=pulls).total_variation, eps
    )


def _parameters(name: str, value: ArrayLike) -> FloatArray:
    """Check parameters of Beta laws, of any shape."""
    checked = validation.positive(name, validation.numbers(name, value))
    if not np.isfinite(checked).all():
        raise ArgumentError(name, "must be finite", got=value)
    return checked


def _hessian(alpha: FloatArray, beta: FloatArray, total: FloatArray) -> FloatArray:
    """``diag(psi1(alpha), psi1(beta)) - psi1(total) 1 1'``."""
    shared = polygamma(1, total)
    rows = [[polygamma(1, alpha) - shared, -shared], [-shared, polygamma(1, beta) - shared]]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def _constant(alpha: float, beta: float, radius: float) -> float:
    if radius >= min(alpha, beta):
        return math.inf
    largest = _hessian(
        np.array(alpha - radius), np.array(beta - radius), np.array(alpha + beta + 2.0 * radius)
    )
    return float(np.sqrt(np.linalg.eigvalsh(largest)[-1]) / 2.0)


def _estimates(first: FloatArray, second: FloatArray, n: int) -> FloatArray:
    """Moment estimates of (alpha, beta), ``(2, arm)``; infinite where totals of these moments are
    impossible or not over-dispersed.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = n * (second / first - first - 1.0) + first
        possible = (first > 0.0) & (first < n) & (second < n * first) & (spread > 0.0)
        alpha = (n * first - second) / spread
        beta = (n - first) * (n - second / first) / spread
    return np.where(possible, np.stack([alpha, beta]), np.inf)
