"""What is known of a fitted mixture: a normal law of its coordinates."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.core.types import FloatArray
from priorwise.families.registry import ask
from priorwise.fitting.fits import Uncertainty

TOOL: Final = "a mixture's uncertainty"


@final
@dataclass(frozen=True, eq=False, init=False)
class MixtureUncertainty(Uncertainty):
    """Normal law of the log odds of the probabilities, against the last component's, and of the
    coordinates of each component.

    Parameters
    ----------
    centre, covariance
        Mean and covariance, of all coordinates.
    arms
        Arms of the tasks that the mixture was learned from.

    """

    family: ClassVar[str] = "mixture-uncertainty"

    centre: FloatArray
    covariance: FloatArray
    arms: int

    def __init__(self, centre: ArrayLike, covariance: ArrayLike, arms: int) -> None:
        """Check and freeze the law."""
        centre = validation.vector("centre", centre)
        covariance = validation.covariance("covariance", covariance, centre.size)
        arms = validation.count("arms", arms)
        validation.freeze(self, centre=centre, covariance=covariance, arms=arms)

    def draw(self, prior: Any, rng: np.random.Generator, n: int) -> list[Any]:
        """``(log odds, coordinates) ~ N``."""
        parts = prior.components
        forms = [ask(part, "coordinates", TOOL)(part, self.arms) for part in parts]
        sizes = [len(parts) - 1, *(each.x.size for each in forms)]
        if sum(sizes) != self.centre.size:
            raise ArgumentError(
                "centre", f"must have {sum(sizes)} numbers, but has {self.centre.size}"
            )
        root = validation.square_root(self.covariance)
        drawn = []
        for z in self.centre + rng.standard_normal((n, self.centre.size)) @ root.T:
            odds, *own = np.split(z, np.cumsum(sizes)[:-1])
            made = [form.make(x) for form, x in zip(forms, own, strict=True)]
            drawn.append(type(prior)(made, softmax(np.append(odds, 0.0))))
        return drawn
