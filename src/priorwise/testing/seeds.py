"""One environment variable moves every seed of a test run."""

from __future__ import annotations

import os
from typing import Final

VARIABLE: Final = "PRIORWISE_TEST_SEED"


def base_seed() -> int:
    """Seed that ``PRIORWISE_TEST_SEED`` gives, 0 without it."""
    return int(os.environ.get(VARIABLE, "0"))
