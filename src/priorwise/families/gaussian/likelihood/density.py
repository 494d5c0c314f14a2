"""Log density of what tasks saw under a normal prior."""

from __future__ import annotations

from typing import Any

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.families.gaussian.exchangeable import ExchangeableGaussianPrior
from priorwise.families.gaussian.likelihood.data import check_unit
from priorwise.families.gaussian.prior import GaussianPrior
from priorwise.families.gaussian.statistics import GaussianStatistics
from priorwise.families.normal.likelihood.tasks import NormalTasks, Parameters


def log_marginal_likelihood(
    prior: GaussianPrior | ExchangeableGaussianPrior, statistics: Any
) -> FloatArray:
    """Log density of what each task saw under a normal prior, ``(task,)``, for held-out comparison
    of priors.

    With the squares it is the density of all rewards in their order, ``N(r; nu_a, Z Psi Z' +
    noise)`` with Z picking the pulled arms, computed as that of the mean rewards y times that of
    the rewards around them,

    ``N(y; nu_O, Psi_OO + diag(noise_var / n)) prod_a n_a^(-1/2) (2 pi noise_var_a)^(-(n_a - 1)/2)
    exp(-ss_a / 2 noise_var_a)``,

    and can be compared with that of any other family. Without squares it is the density of y alone,
    which can be compared only with other priors of the same noise. Tasks without a pull have log
    density 0.
    """
    data = GaussianStatistics.of(statistics)
    normal = prior.for_arms(data.arms) if isinstance(prior, ExchangeableGaussianPrior) else prior
    if not isinstance(normal, GaussianPrior) or normal.arms != data.arms:
        raise ValueError(
            f"prior must be a normal prior of {data.arms} arms, as the statistics have, got "
            f"{prior!r}"
        )
    check_unit(data.unit, normal.noise_var, "the prior")
    n, noise, none = data.pulls, np.array(normal.noise_var), np.empty((0, data.arms, data.arms))
    middle = float(normal.mean.mean())
    centred, safe = data.shifted(middle), np.where(n > 0.0, n, 1.0)
    tasks = NormalTasks(
        none, n.copy(), np.ones(data.tasks), centred.sums / safe, none, None, np.zeros(data.arms)
    )
    out = tasks.sums(
        Parameters(normal.mean - middle, np.array(normal.cov, order="C"), noise)
    ).values
    if centred.squares is not None:
        within = np.maximum(centred.squares - centred.sums**2 / safe, 0.0)
        more = (n - 1.0) * np.log(2.0 * np.pi * noise) + np.log(safe) + within / noise
        out -= 0.5 * np.where(n > 0.0, more, 0.0).sum(axis=1)
    return out
