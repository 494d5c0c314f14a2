"""Tabular Markov decision processes with Dirichlet transitions."""

from __future__ import annotations

from typing import Any

from priorwise.families.registry import Family, LazyImport, register
from priorwise.families.tabular_mdp.prior import DirichletMdpPrior


def _blank(prior: DirichletMdpPrior) -> DirichletMdpPrior:
    """Dirichlet(1) on the possible moves; rewards Beta(1, 1), or normal with the noise's
    variance.
    """
    return prior.replaced(
        transitions=prior.possible.astype(float), rewards=prior.reward_model.vague()
    )


def _measure(prior: Any, statistics: Any) -> str:
    return f"states, with rewards under {prior.reward_law}"


TABULAR_MDP = register(
    Family(
        name="tabular-mdp",
        priors=(DirichletMdpPrior,),
        homes={
            "mdp-statistics": "priorwise.families.tabular_mdp.statistics",
            "dirichlet-mdp-uncertainty": "priorwise.families.tabular_mdp.uncertainty",
            "bernoulli-reward-prior": "priorwise.families.tabular_mdp.rewards",
            "normal-reward-prior": "priorwise.families.tabular_mdp.rewards",
        },
        statistics=LazyImport("priorwise.families.tabular_mdp.statistics:MdpStatistics"),
        blank=_blank,
        log_marginal=LazyImport("priorwise.families.tabular_mdp.evidence:log_marginal"),
        measure=_measure,
        pair=LazyImport("priorwise.families.tabular_mdp.distance:MdpPair.of"),
        posteriors=LazyImport("priorwise.families.tabular_mdp.posteriors:MdpPosteriors.start"),
        parameters=("transitions",),
    )
)
