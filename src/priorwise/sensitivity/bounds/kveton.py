"""The bound next to that of Kveton et al. (2021), for Thompson sampling with independent normal
arms of known variance.

For priors ``N(m, s^2 I)`` and ``N(m', s^2 I)`` their guarantee is, up to a constant and for small
``e``,

    (|m|_inf + s sqrt(log(H / e))) H^2 e    with    e = A |m - m'|_inf / s,

and that of the theorem has the same shape with ``eps = TV <= |m - m'|_2 / s`` in place of ``e``. As
``|m - m'|_2`` is at most ``sqrt(A) |m - m'|_inf``, ``e`` is larger by a factor of ``sqrt(A)`` at
least. (The theorem has ``diam(m)`` for ``|m|_inf``; it is at most ``2 |m|_inf``.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from priorwise.core import validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.families.registry import family_for
from priorwise.policies.thompson import ThompsonSampling
from priorwise.sensitivity.bounds.bandits import Bound, reward_bound
from priorwise.sensitivity.distance.measures import total_variation


@dataclass(frozen=True)
class KvetonComparison:
    """Two guarantees for one pair of priors.

    ``theirs`` and ``ours`` are the two rates above with 1 for their unnamed constant, so that they
    compare with each other only; ``bound`` is the full bound of the theorem for Thompson sampling,
    with all its constants.
    """

    epsilon_theirs: float  # A |m - m'|_inf / s
    epsilon: float  # total variation, exact
    epsilon_upper: float  # |m - m'|_2 / s
    theirs: float
    ours: float
    bound: Bound

    @property
    def ratio(self) -> float:
        """How many times larger their distance is; at least sqrt(A), 1 if priors are equal."""
        return self.epsilon_theirs / self.epsilon if self.epsilon > 0.0 else 1.0

    def __str__(self) -> str:
        """Both distances and both rates."""
        distance = f"distance {self.epsilon:.4g} against {self.epsilon_theirs:.4g}"
        rate = f"rate {self.ours:.4g} against {self.theirs:.4g}"
        return f"{distance} ({self.ratio:.3g} times), {rate}; bound {self.bound.value:.4g}"


def kveton_comparison(p: Any, q: Any, horizon: int) -> KvetonComparison:
    """Compare the theorem's bound with that of Kveton et al. (2021) for Thompson sampling.

    Parameters
    ----------
    p, q
        Normal priors with one covariance ``s^2 I`` and the same reward noise: the true one and the
        one believed.
    horizon
        Pulls in a task.

    """
    horizon = validation.count("horizon", horizon)
    for name, prior in (("p", p), ("q", q)):
        known = family_for(prior, "kveton_comparison", name).parameters
        if not {"mean", "cov"} <= {*known} or hasattr(prior, "contexts"):
            raise ArgumentTypeError(
                name,
                "must be a GaussianPrior",
                got=type(prior),
                cure="the comparison is for arms with a joint normal prior (mean and cov)",
            )
    variance = float(p.cov[0, 0])
    for name, prior in (("p", p), ("q", q)):
        off = np.abs(prior.cov - variance * np.eye(prior.arms)).max()
        if variance <= 0.0 or off > 1e-12 * variance:
            raise ArgumentError(
                f"{name}.cov",
                "must be the same positive multiple of the identity in both priors",
                cure="the comparison needs it",
            )
    distance = total_variation(p, q)
    gap, std = q.mean - p.mean, math.sqrt(variance)
    theirs = p.arms * float(np.abs(gap).max()) / std
    size = float(np.abs(p.mean).max())

    def rate(eps: float) -> float:
        if eps == 0.0:
            return 0.0
        spread = std * math.sqrt(max(math.log(horizon) - math.log(eps), 0.0))
        return (size + spread) * horizon**2 * eps

    return KvetonComparison(
        epsilon_theirs=theirs,
        epsilon=distance.value,
        epsilon_upper=float(np.linalg.norm(gap)) / std,
        theirs=rate(theirs),
        ours=rate(distance.value),
        bound=reward_bound(p, q, ThompsonSampling(), horizon, tv=distance),
    )
