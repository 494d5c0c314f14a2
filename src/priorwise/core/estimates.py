"""Means with their standard errors, and how they are written."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from priorwise.core.types import FloatArray

ROUNDING: Final = 1e-14  # standard errors up to this share of the mean are rounding
SHOWN: Final = 8  # rows and columns of a parameter that are printed
TINY: Final = 1e-6  # smaller numbers are written with a power of ten


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
    single or an infinite value, and 0 if the values differ by rounding alone.

    NaN where both infinities are among the values.
    """
    if not np.isfinite(values).all():
        both = np.isposinf(values).any() and np.isneginf(values).any()
        return Estimate(float("nan") if both else float(values.mean()), np.inf)
    mean, error = float(values.mean()), float(std_error(values))
    return Estimate(mean, error if error > ROUNDING * abs(mean) else 0.0)


def std_error(values: FloatArray) -> FloatArray:
    """Standard error of the mean over the first axis."""
    count = len(values)
    if count < 2:
        return np.full(values.shape[1:], np.inf)
    return np.asarray(values.std(axis=0, ddof=1) / np.sqrt(count))


def written(value: FloatArray, error: FloatArray) -> list[str]:
    """A number, a vector or a matrix with its standard errors, in lines."""
    if value.ndim == 0:
        return [plus_minus(float(value), float(error))]
    if value.ndim == 1:
        pairs = zip(value[:SHOWN].tolist(), error[:SHOWN].tolist(), strict=True)
        shown = ", ".join(plus_minus(*pair) for pair in pairs)
        return [shown + (f", ... ({value.size} in all)" if value.size > SHOWN else "")]
    flat, known = value.reshape(len(value), -1), error[np.isfinite(error) & (error > 0.0)]
    digits = digits_of(float(known.min())) if known.size else 4
    cells = [[f"{each:.{digits}f}" for each in row[:SHOWN]] for row in flat[:SHOWN]]
    width = max(len(cell) for row in cells for cell in row)
    more = "  ..." if flat.shape[1] > SHOWN else ""
    lines = ["  ".join(f"{cell:>{width}}" for cell in row) + more for row in cells]
    if len(flat) > SHOWN:
        lines.append(f"... ({len(flat)} rows)")
    if not known.size:
        return [*lines, "(no standard errors)"]
    return [*lines, f"(standard errors {known.min():.2g} to {known.max():.2g})"]


def plus_minus(value: float, error: float) -> str:
    """Write a number to two digits of its standard error."""
    if not math.isfinite(error) or error <= 0.0:
        return f"{value:.4g}" + (" ± inf" if math.isinf(error) else "")
    if max(abs(value), error) < TINY:
        return f"{value:.3g} ± {error:.2g}"
    digits = digits_of(error)
    return f"{value:.{digits}f} ± {error:.{digits}f}"


def percent(share: float, digits: int = 1, *, sign: bool = False) -> str:
    """Write a share as ``3.5 %``."""
    return f"{100.0 * share:{'+' if sign else ''}.{digits}f} %"


def digits_of(error: float) -> int:
    """Decimals that show two digits of a standard error."""
    return min(max(1 - math.floor(math.log10(error)), 0), 12)
