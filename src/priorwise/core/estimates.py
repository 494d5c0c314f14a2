"""Means with their standard errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from priorwise.core.types import FloatArray


@dataclass(frozen=True)
class Estimate:
    """A mean over tasks with its standard error."""

    mean: float
    std_error: float

    def __str__(self) -> str:
        """Mean plus or minus its standard error."""
        return f"{self.mean:.4f} ± {self.std_error:.4f}"


def mean_estimate(values: FloatArray) -> Estimate:
    """Mean of independent values ``(item,)`` with its standard error, which is infinite for a
    single or an infinite value.

    NaN where both infinities are among the values.
    """
    if not np.isfinite(values).all():
        both = np.isposinf(values).any() and np.isneginf(values).any()
        return Estimate(float("nan") if both else float(values.mean()), np.inf)
    return Estimate(float(values.mean()), float(std_error(values)))


def std_error(values: FloatArray) -> FloatArray:
    """Standard error of the mean over the first axis."""
    count = len(values)
    if count < 2:
        return np.full(values.shape[1:], np.inf)
    return np.asarray(values.std(axis=0, ddof=1) / np.sqrt(count))
