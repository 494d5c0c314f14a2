"""How uncertain the mean of a fitted normal prior is, and the prior widened by it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from priorwise.core.fits import PriorFit
from priorwise.core.types import FloatArray
from priorwise.families.normal.hyper import messages

BLOCK: Final = 1024
"""Tasks, or groups of them, whose matrices are held at once."""


def widened(fit: PriorFit, how: Any, rng: np.random.Generator) -> Any:
    """``N(m + raised sqrt(diag V), S + widened V)`` with V of :func:`mean_covariance`; weights of
    features are never raised.
    """
    prior, v = fit.with_arms(), mean_covariance(fit)
    raised = how.raised * np.sqrt(np.diag(v)) if getattr(prior, "contexts", None) is None else 0.0
    return prior.replaced(mean=prior.mean + raised, cov=prior.cov + how.widened * v)


def mean_covariance(fit: PriorFit) -> FloatArray:
    """Covariance of the fitted mean of a normal prior given its fitted covariance, with the noise
    as one observation of it.
    """
    prior, data = fit.with_arms(), fit.statistics
    noise = float(np.mean(prior.noise_var))
    rows, weights = _rows(data)
    precision = np.eye(len(prior.mean)) / noise
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        p = (
            block / noise
            if block.ndim == 3
            else np.eye(prior.arms) * (block / prior.noise_var)[:, None, :]
        )
        j, _ = messages(p, np.zeros(p.shape[:2]), prior.cov)
        precision += np.einsum("t,tij->ij", weights[start : start + BLOCK], j)
    return np.asarray(np.linalg.inv(precision), dtype=np.float64)


def _rows(data: Any) -> tuple[FloatArray, FloatArray]:
    """Gram matrices, or pulls, and how many tasks have each."""
    if hasattr(data, "gram"):
        return data.gram, np.ones(data.tasks)
    if not hasattr(data, "pulls"):
        raise ValueError(
            "the fit holds no statistics of normal rewards: an estimator of your own must return "
            "PriorFit(..., statistics=data), and a fit read from JSON has lost them (fit again)"
        )
    if isinstance(data.tasks, np.ndarray):  # groups of tasks
        return data.pulls, data.tasks
    rows, tasks = np.unique(data.pulls, axis=0, return_counts=True)
    return rows, tasks.astype(np.float64)
