"""One environment variable moves every seed of a test run."""

import os
from typing import Final

import pytest

VARIABLE: Final = "PRIORWISE_TEST_SEED"


def base_seed() -> int:
    """Seed that ``PRIORWISE_TEST_SEED`` gives, 0 without it."""
    return int(os.environ.get(VARIABLE, "0"))


class Seeded:
    """Test classes whose seed the environment variable moves."""

    @pytest.fixture
    def seed(self) -> int:
        """Seed of all streams."""
        return base_seed()
