"""What is known of a prior with features: a normal law of the effects, and given them that of the
base.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from attrs import field, frozen
from numpy.typing import ArrayLike

from priorwise.core import validation
from priorwise.core.errors import ArgumentError, ArgumentTypeError
from priorwise.core.parameters import (
    Array,
    Checked,
    Covariance,
    arrays,
)
from priorwise.core.types import FloatArray
from priorwise.families.featured.prior import FeaturedPrior
from priorwise.fitting.fits import Uncertainty, named


def check_law(name: str, law: Any) -> None:
    """Check for the uncertainty of a base's fit."""
    if not isinstance(law, Uncertainty) or not hasattr(law, "moved"):
        raise ArgumentTypeError(name, "must be that of a base's fit", got=law)


@final
@frozen(eq=False, slots=False)
class FeaturedUncertainty(Uncertainty):
    """Effects ``b ~ N(fitted, covariance)``, row by row, and a base whose law moves by ``slope``
    times what b is off.

    Parameters
    ----------
    law
        Plausible bases, given the fitted effects.
    covariance
        Of the effects, ``(effect, effect)``.
    slope
        How the centre of the law moves with them, ``(coordinate, effect)``; its first coordinates
        are the mean.

    """

    family: ClassVar[str] = "featured-uncertainty"

    law: Any = field(validator=Checked(check_law))
    covariance: FloatArray = field(converter=arrays, validator=Covariance(("move", "move")))
    slope: FloatArray = field(converter=arrays, validator=Array(("coordinate", "move")))

    def draw(self, prior: FeaturedPrior, rng: np.random.Generator, n: int) -> list[Any]:
        """Draw the effects, then a base."""
        fitted = prior.slopes
        if fitted.size != len(self.covariance):
            raise ArgumentError(
                "covariance", f"must be of {fitted.size} effects, is {len(self.covariance)}"
            )
        off = rng.standard_normal((n, fitted.size)) @ validation.square_root(self.covariance).T
        names, drawn = getattr(prior.base, "names", None), []
        for each in off:
            (base,) = self.law.moved(self.slope @ each).draw(prior.base, rng, 1)
            base = base if names is None else named(base, names)
            moved = np.moveaxis(fitted + each.reshape(fitted.shape), -1, 0)
            drawn.append(prior.replaced(base=base, effects=list(moved)))
        return drawn

    def mean_error(self, error: FloatArray, at: FloatArray) -> dict[str, FloatArray]:
        """Standard error of the mean at features ``at``, minus the centre, given that at the
        centre.
        """
        moves = self.slope[: error.size]
        there = moves + np.kron(np.eye(error.size), at)
        more = [np.einsum("ai,ij,aj->a", each, self.covariance, each) for each in (there, moves)]
        square = error.reshape(-1) ** 2 + more[0] - more[1]
        return {"mean": np.sqrt(np.maximum(square, 0.0)).reshape(error.shape)}


@final
@dataclass(frozen=True, eq=False, init=False)
class AtFeatures(Uncertainty):
    """Plausible priors of tasks with features ``x`` ``(number,)``, as they are read."""

    family: ClassVar[str] = "uncertainty-at-features"

    around: FeaturedPrior
    law: Any
    x: FloatArray

    def __init__(self, around: FeaturedPrior, law: Any, x: ArrayLike) -> None:
        """Check and freeze the law."""
        if not isinstance(around, FeaturedPrior) or not isinstance(law, FeaturedUncertainty):
            raise ArgumentTypeError("around", "must be a FeaturedPrior, and law its uncertainty")
        row = validation.vector("x", x)
        if row.size != len(around.features.labels):
            raise ArgumentError(
                "x", f"must have {len(around.features.labels)} numbers", got=row.size
            )
        validation.freeze(self, around=around, law=law, x=row)

    def draw(self, prior: Any, rng: np.random.Generator, n: int) -> list[Any]:
        """Draw priors with effects, and take what they say of these features."""
        return [each.of_rows(self.x[None])[0] for each in self.law.draw(self.around, rng, n)]
