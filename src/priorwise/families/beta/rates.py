"""How many tasks the theory asks for to learn Beta priors by moments."""

from __future__ import annotations

from typing import Any

import numpy as np

from priorwise.core.design import Design, Rate
from priorwise.families.beta.moments import BetaMoments
from priorwise.families.beta.prior import BetaPrior


def rate(
    prior: BetaPrior,
    eps: float,
    delta: float,
    *,
    known_mean: bool = False,
    known_cov: bool = False,
) -> Rate:
    """Rate of the theorem on Beta priors."""
    if known_mean or known_cov:
        raise ValueError(
            "known_mean and known_cov are about a GaussianPrior; a BetaPrior has no such rate"
        )
    a = prior.arms
    return Rate(a**2 * np.log(a / delta) / eps**2, "A^2 log(A / delta) / eps^2")


def covered(prior: BetaPrior, estimator: Any, design: Design) -> dict[str, bool] | None:
    """Nothing is taken for known where the estimator reads two pulls or more of one arm per task;
    None otherwise.
    """
    if not isinstance(estimator, BetaMoments):
        return None
    read = min(design.horizon, estimator.steps or design.horizon)
    return {} if 2 <= read <= design.one_arm else None
