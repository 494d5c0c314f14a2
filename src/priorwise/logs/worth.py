"""What a prior is worth, in pulls of an arm."""

from typing import Any, Final

import numpy as np

from priorwise.core.protocols import NoisyEnvironment, for_arms
from priorwise.core.streams import Streams
from priorwise.core.types import FloatArray
from priorwise.simulate.steps import environments

DRAWS: Final = 20_000
"""Environments that tell what a prior is worth."""
EXACT: Final = 1e-14
"""Spread of a mean, as a share of its size, that is rounding only."""


def worth(prior: Any) -> FloatArray | None:
    """``E[Var(r | mu)] / Var(mu)`` of each arm: pulls after which the prior and the mean of the
    rewards tell as much (for a Beta law alpha + beta, for a normal one noise over variance);
    infinite where an arm's mean does not vary between tasks.
    """
    whole = for_arms(prior, 1)
    streams = Streams(0, np.arange(DRAWS, dtype=np.uint64))
    environment = environments(whole, streams)
    if not isinstance(environment, NoisyEnvironment):
        return None
    noise, means = environment.reward_variances(), environment.values(None)
    if noise is None:
        return None
    variances = means.var(axis=0)
    known = variances <= (EXACT * np.abs(means).max(axis=0)) ** 2  # a mean that does not vary
    return np.where(known, np.inf, noise.mean(axis=0) / np.where(known, 1.0, variances))


def in_words(values: FloatArray) -> str:
    """The fewest and the most pulls."""
    ends = (values.min(), values.max())
    low, high = ("infinitely many" if np.isinf(each) else f"{each:.3g}" for each in ends)
    return low if low == high else f"{low} to {high}"
