"""Shared by all tests. ``PRIORWISE_TEST_SEED=n`` shifts every seed, to sweep the statistical tests over fresh numbers."""

from __future__ import annotations

import pytest
from hypothesis import settings

from priorwise.testing import base_seed

settings.register_profile("priorwise", deadline=None, derandomize=True)
settings.load_profile("priorwise")


@pytest.fixture
def seed() -> int:
    return base_seed()
