"""What is known of a fitted mixture: a normal law of its coordinates."""

from typing import Any, ClassVar, Final, final

import numpy as np
from attrs import field, frozen
from scipy.special import softmax

from priorwise.core import validation
from priorwise.core.errors import ArgumentError
from priorwise.core.parameters import Array, Count, Covariance, arrays
from priorwise.core.types import FloatArray
from priorwise.families.registry import family_for
from priorwise.fitting.fits import Uncertainty

TOOL: Final = "a mixture's uncertainty"


@final
@frozen(eq=False, slots=False)
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

    centre: FloatArray = field(converter=arrays, validator=Array(("coordinate",)))
    covariance: FloatArray = field(
        converter=arrays, validator=Covariance(("coordinate", "coordinate"))
    )
    arms: int = field(validator=Count())

    def draw(self, prior: Any, rng: np.random.Generator, n: int) -> list[Any]:
        """``(log odds, coordinates) ~ N``."""
        parts = prior.components
        forms = [family_for(part, TOOL).coordinates(part, self.arms) for part in parts]
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
