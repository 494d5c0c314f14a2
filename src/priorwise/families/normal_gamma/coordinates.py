"""Coordinates of normal-gamma priors: means, and logarithms of pulls, shape and rate."""

from typing import Any, Final

import numpy as np

from priorwise.core.types import FloatArray
from priorwise.families.normal_gamma.exchangeable import ExchangeableNormalGammaPrior
from priorwise.families.normal_gamma.prior import NormalGammaPrior
from priorwise.fitting.coordinates import Coordinates

NAMES: Final = ("mean", "pulls", "shape", "rate")
FAR: Final = 3.0
"""A long way for logarithms: a factor of 20."""
MOST: Final = 1e6
"""Pulls and shapes, or one over them, beyond which laws are the same to six digits."""


def coordinates(prior: NormalGammaPrior | ExchangeableNormalGammaPrior, arms: int) -> Coordinates:
    """All means, then the logarithms of the others; one of each for exchangeable arms."""
    mean, pulls, shape, rate = (np.atleast_1d(getattr(prior, name)) for name in NAMES)

    def made(x: FloatArray) -> Any:
        mean, *logs = x.reshape(4, -1)
        pulls, shape = (np.clip(np.exp(each), 1.0 / MOST, MOST) for each in logs[:2])
        laws = mean, pulls, shape, np.exp(np.clip(logs[2], -300.0, 300.0))
        if isinstance(prior, ExchangeableNormalGammaPrior):
            return ExchangeableNormalGammaPrior(*(float(each[0]) for each in laws))
        return prior.replaced(**dict(zip(NAMES, laws, strict=True)))

    x = np.concatenate([mean, np.log(pulls), np.log(shape), np.log(rate)])
    width = np.full(x.shape, FAR)
    width[: len(mean)] = 10.0 * np.sqrt(rate / (shape * pulls))
    return Coordinates(x, width, made, NAMES)
