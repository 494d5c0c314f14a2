"""What is known of a fitted prior: the law of the priors that the data leave plausible."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from priorwise.core.serial import Serializable


class Uncertainty(Serializable, ABC):
    """The law of the prior's parameters given the data; each family of estimators has its own, with
    a ``family`` name.
    """

    @abstractmethod
    def draw(self, prior: Any, rng: np.random.Generator, n: int) -> list[Any]:
        """Return ``n`` plausible priors around the fitted one."""
