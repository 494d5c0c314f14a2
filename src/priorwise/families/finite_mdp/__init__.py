"""Finitely many possible Markov decision processes."""

from __future__ import annotations

from typing import Any

import numpy as np

from priorwise.families.finite_mdp.prior import FiniteMdpPrior
from priorwise.families.registry import Family, LazyImport, register


def _blank(prior: FiniteMdpPrior) -> FiniteMdpPrior:
    """All possible MDPs equally likely."""
    return prior.replaced(probs=np.full(prior.support, 1.0 / prior.support))


def _measure(prior: FiniteMdpPrior, statistics: Any) -> str:
    return f"states, with rewards under {prior.reward_law}"


FINITE_MDP = register(
    Family(
        name="finite-mdp",
        priors=(FiniteMdpPrior,),
        statistics=LazyImport("priorwise.families.tabular_mdp.statistics:MdpStatistics"),
        blank=_blank,
        log_marginal=LazyImport("priorwise.families.finite_mdp.evidence:log_marginal_likelihood"),
        measure=_measure,
        pair=LazyImport("priorwise.families.finite.distance:FinitePair.of"),
        posteriors=LazyImport("priorwise.families.finite.distance:FinitePosteriors.start"),
        parameters=("probs",),
    )
)
