"""Numbers that may be NaN or infinite, in results and in JSON, which has no numbers for them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from priorwise.core import validation


def errors(name: str, value: Any) -> dict[str, Any]:
    """Arrays or floats by parameter, of numbers that are not negative; in JSON, None stands for NaN
    and "inf" for an infinity.
    """
    if not isinstance(value, Mapping):
        raise TypeError(
            f"{name} must be arrays by name, such as {{'mean': [0.1, 0.2]}}, got "
            f"{validation.shown(value)}"
        )
    out = {}
    for key, each in value.items():
        label = f"{name}[{validation.shown(key)}]"
        validation.word(f"a name in {name}", key)
        array = validation.numbers(label, unwritten(label, each))
        if (array < 0.0).any():
            raise ValueError(f"{label} must not be negative, got {np.nanmin(array):g}")
        array.setflags(write=False)
        out[key] = array if array.ndim else float(array)
    return out


def unwritten(name: str, value: Any) -> Any:
    """Read NaN and infinities as JSON has them."""
    if isinstance(value, (list, tuple)):
        return [unwritten(name, each) for each in value]
    return (
        math.nan
        if value is None
        else number(name, value)
        if isinstance(value, (str, bool))
        else value
    )


def number(name: str, value: Any) -> float:
    """Return a number, infinite or NaN ones included, which JSON has as words."""
    if isinstance(value, str) and value in ("inf", "-inf", "nan"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} must be a number, got {validation.shown(value)}")
    return float(value)


def written(value: Any, nan: str | None) -> Any:
    """Replace what standard JSON has no number for: infinities become "inf" and "-inf", NaN what is
    given for it.
    """
    if isinstance(value, list):
        return [written(each, nan) for each in value]
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return nan if math.isnan(value) else str(value)
