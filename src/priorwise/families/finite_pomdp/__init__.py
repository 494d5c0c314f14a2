"""Finitely many possible POMDPs."""

from __future__ import annotations

import numpy as np

from priorwise.families.finite_pomdp.prior import FinitePomdpPrior
from priorwise.families.registry import Family, LazyImport, register


def _blank(prior: FinitePomdpPrior) -> FinitePomdpPrior:
    """All possible POMDPs equally likely."""
    return prior.replaced(probs=np.full(prior.support, 1.0 / prior.support))


FINITE_POMDP = register(
    Family(
        name="finite-pomdp",
        priors=(FinitePomdpPrior,),
        blank=_blank,
        pair=LazyImport("priorwise.families.finite.distance:FinitePair.of"),
        posteriors=LazyImport("priorwise.families.finite.distance:FinitePosteriors.start"),
        parameters=("probs",),
    )
)
