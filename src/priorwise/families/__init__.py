"""One folder per family: everything it knows about itself."""

from __future__ import annotations

import os
from typing import Any

from priorwise.core.serial import Serializable


def load_prior(source: str | os.PathLike[str]) -> Any:
    """Read a prior from a path or from JSON text, as ``prior.save`` and ``prior.to_json`` write it;
    of a saved fit, its prior.
    """
    value = Serializable.load(source)
    prior = getattr(value, "prior", value)  # a fit has one inside
    if not hasattr(prior, "belief"):
        raise ValueError(f"expected a prior or a fit, but this holds a {type(value).__name__}")
    return prior
