"""Linear-quadratic control: real-valued actions, a state that moves linearly, unknown matrices."""

from typing import Any

import numpy as np

from priorwise.families.linear_quadratic.finite import FiniteLinearQuadraticPrior
from priorwise.families.linear_quadratic.hidden import FiniteLqgPrior
from priorwise.families.linear_quadratic.prior import LinearQuadraticPrior
from priorwise.families.registry import Family, LazyImport, register


def _pair(p: LinearQuadraticPrior, q: LinearQuadraticPrior) -> Any:
    """Distance of the laws of all entries of ``[A B]``."""
    from priorwise.families.normal.distance import GaussianPair

    return GaussianPair.of(p.coefficients, q.coefficients)


LINEAR_QUADRATIC = register(
    Family(
        name="linear-quadratic",
        priors=(LinearQuadraticPrior,),
        homes={"plant": "priorwise.families.linear_quadratic.plant"},
        pair=_pair,
        parameters=("transition", "control", "cov"),
    )
)


def _equal(prior: Any) -> Any:
    """All candidates equally likely."""
    return prior.replaced(probs=np.full(prior.support, 1.0 / prior.support))


FINITE_LINEAR_QUADRATIC = register(
    Family(
        name="finite-linear-quadratic",
        priors=(FiniteLinearQuadraticPrior,),
        blank=_equal,
        pair=LazyImport("priorwise.families.finite.distance:FinitePair.of"),
        posteriors=LazyImport("priorwise.families.finite.distance:FinitePosteriors.start"),
        parameters=("probs",),
    )
)

FINITE_LQG = register(
    Family(
        name="finite-lqg",
        priors=(FiniteLqgPrior,),
        homes={"hidden-plant": "priorwise.families.linear_quadratic.hidden"},
        blank=_equal,
        pair=LazyImport("priorwise.families.finite.distance:FinitePair.of"),
        posteriors=LazyImport("priorwise.families.finite.distance:FinitePosteriors.start"),
        parameters=("probs",),
    )
)
