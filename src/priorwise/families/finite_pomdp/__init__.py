"""Finitely many possible POMDPs."""

from __future__ import annotations

import numpy as np

from priorwise.families.finite_pomdp.prior import FinitePomdpPrior
from priorwise.families.registry import Family, Later, register


def _blank(prior: FinitePomdpPrior) -> FinitePomdpPrior:
    """All possible POMDPs equally likely."""
    return prior.replaced(probs=np.full(prior.support, 1.0 / prior.support))


FINITE_POMDP = register(
    Family(
        name="finite-pomdp",
        priors=(FinitePomdpPrior,),
        blank=_blank,
        pair=Later("priorwise.families.finite.distance:FinitePair.of"),
        posteriors=Later("priorwise.families.finite.distance:FinitePosteriors.start"),
        parameters=("probs",),
    )
)
