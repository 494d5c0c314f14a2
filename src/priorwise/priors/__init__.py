"""P_theta and its belief, one conjugate family a file."""

from __future__ import annotations

import os
from typing import Any

from priorwise.core.serial import Serializable


def load_prior(source: str | os.PathLike[str]) -> Any:
    """Read a prior from a path or from JSON text, as ``prior.save`` and ``prior.to_json`` write it."""
    value = Serializable.load(source)
    if not hasattr(value, "belief"):
        raise ValueError(f"expected a prior, but this holds a {type(value).__name__}")
    return value
