"""Shared by all tests. ``PRIORWISE_TEST_SEED=n`` shifts every seed, to sweep the statistical tests
over fresh numbers.
"""

from __future__ import annotations

import signal
from typing import Any

import pytest
from hypothesis import settings
from matplotlib.figure import Figure

from priorwise.testing import base_seed

settings.register_profile("priorwise", deadline=None, derandomize=True)
settings.load_profile("priorwise")

# A shell starts what it runs in the background with interruptions ignored, and processes inherit
# that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def seed() -> int:
    return base_seed()


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Figures in the order in which they are rendered, to see what they show."""
    figures: list[Figure] = []
    savefig = Figure.savefig

    def keep(figure: Figure, *arguments: Any, **options: Any) -> None:
        if figure not in figures:
            figures.append(figure)
        savefig(figure, *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", keep)
    return figures
