"""A made-up log of headline tests with a known truth: what examples and tests read.

Each test shows 2 to 6 headlines of one story. Clicks are Bernoulli with log odds ``m + s + h``: the
story s moves all headlines of a test together, and each headline has an h of its own.
"""

from typing import Final

import numpy as np

from priorwise.core import validation

TESTS: Final = 5_000
MEAN: Final = -4.0
"""Log odds of a click: about 1.9 %."""
SPREAD: Final = 0.45
"""Standard deviation of the log odds."""
CORRELATION: Final = 0.9
"""Of the log odds of two headlines of one test."""


def headline_log(*, seed: int, tests: int = TESTS, correlation: float = CORRELATION) -> str:
    """Return a log as CSV: ``test, headline, impressions, clicks``, one row for each headline.

    Impressions are shared evenly between the headlines of a test, 400 to 8,000 in all.
    """
    rng = np.random.default_rng(validation.seed(seed))
    lines = ["test,headline,impressions,clicks"]
    for test in range(validation.count("tests", tests)):
        headlines = int(rng.integers(2, 7))
        story = rng.normal(0.0, SPREAD * np.sqrt(correlation))
        own = rng.normal(0.0, SPREAD * np.sqrt(1.0 - correlation), headlines)
        shown = int(np.exp(rng.uniform(np.log(400), np.log(8_000)))) // headlines
        clicks = rng.binomial(shown, 1.0 / (1.0 + np.exp(-(MEAN + story + own))))
        lines += [
            f"t{test:05d},t{test:05d}-{letter},{shown},{count}"
            for letter, count in zip("abcdef", clicks, strict=False)
        ]
    return "\n".join(lines) + "\n"
