"""Simulated logs like a real one of headline tests: a few new arms in each test, clicks of 1 to
2 %, headlines of one test alike, tails lighter than normal, and a level that falls along the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from priorwise.core.types import FloatArray, IntArray

MEAN, SPREAD, CORRELATION = -4.0, 0.5, 0.89
"""Of the log odds of a click at the beginning of a log."""
PER_DAY = 5
"""Tests that begin on a day."""


@dataclass(frozen=True)
class HeadlineLog:
    """A log of tests, and the true click rates of their headlines."""

    task: IntArray  # (row,)
    pulls: IntArray  # (row,)
    clicks: IntArray  # (row,)
    rates: FloatArray  # (row,)
    level: FloatArray  # (task,): the mean rate of headlines when the test began

    def frame(self, *, dates: bool = True) -> pd.DataFrame:
        """One row for each headline; ``dates`` adds when the test was created."""
        names = np.char.add("t", np.char.zfill(self.task.astype(str), 5))
        first = np.searchsorted(self.task, self.task)
        arms = np.char.add(np.char.add(names, "-"), (np.arange(len(first)) - first).astype(str))
        columns: dict[str, Any] = {"test": names, "headline": arms}
        columns |= {"impressions": self.pulls, "clicks": self.clicks}
        if dates:
            day = pd.Timestamp("2020-01-01") + pd.to_timedelta(self.task // PER_DAY, unit="D")
            columns["created_at"] = day
        return pd.DataFrame(columns)


def headline_log(
    *, seed: int, tests: int = 3_800, fall: float = 1.0 / 3.0, pulls: float = 2_500.0
) -> HeadlineLog:
    """Draw a log of tests with 2 to 8 headlines, whose odds fall by the share ``fall``.

    The log odds of a headline are ``m_t + s + h`` with a normal s that its test shares, and h of
    its own that is uniform: it has lighter tails than a normal one.
    """
    rng = np.random.default_rng(seed)
    arms = rng.integers(2, 9, tests)
    task = np.repeat(np.arange(tests), arms)
    level = MEAN + np.log(1.0 - fall * np.arange(tests) / tests)
    test = rng.normal(0.0, SPREAD * np.sqrt(CORRELATION), tests)
    wide = SPREAD * np.sqrt(3.0 * (1.0 - CORRELATION))
    own = rng.uniform(-wide, wide, task.size)
    rates = 1.0 / (1.0 + np.exp(-(level[task] + test[task] + own)))
    shown = np.exp(rng.normal(np.log(pulls), 0.4, tests)).astype(np.int64)[task]
    return HeadlineLog(task, shown, rng.binomial(shown, rates), rates, _mean_rates(level, wide))


def _mean_rates(level: FloatArray, wide: float) -> FloatArray:
    """Mean over the laws of s and h, by quadrature."""
    z, weight = np.polynomial.hermite_e.hermegauss(40)
    x, even = np.polynomial.legendre.leggauss(20)
    added = SPREAD * np.sqrt(CORRELATION) * z[:, None] + wide * x
    mass = (weight / weight.sum())[:, None] * (even / 2.0)
    rates = 1.0 / (1.0 + np.exp(-(level[:, None, None] + added)))
    found: FloatArray = (rates * mass).sum(axis=(1, 2))
    return found
