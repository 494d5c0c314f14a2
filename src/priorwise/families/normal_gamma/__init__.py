"""Independent arms whose mean and variance are both unknown, with normal-gamma priors."""

from __future__ import annotations

from typing import Any

from priorwise.families.normal_gamma.exchangeable import ExchangeableNormalGammaPrior
from priorwise.families.normal_gamma.prior import NormalGammaPrior
from priorwise.families.registry import Family, LazyImport, register


def _blank(prior: NormalGammaPrior) -> NormalGammaPrior:
    """Mean 0 and precision 1, each known by one pull or two."""
    return prior.replaced(mean=[0.0] * prior.arms, pulls=1.0, shape=1.0, rate=1.0)


def _measure(prior: Any, statistics: Any) -> str:
    return "densities of real rewards"


def _models(
    *, binary: bool, squares: bool, new_arms: bool, context: int, asked: bool, **facts: Any
) -> dict[str, Any]:
    """Estimators for a log of real rewards with their squares, without features."""
    from priorwise.families.normal_gamma.likelihood.estimator import NormalGammaMarginalLikelihood

    if context or not squares or (binary and not asked):
        return {}
    words: tuple[Any, ...] = ("exchangeable",) if new_arms else ("separate", "exchangeable")
    return {word: NormalGammaMarginalLikelihood(word) for word in words}


NORMAL_GAMMA = register(
    Family(
        name="normal-gamma",
        priors=(NormalGammaPrior, ExchangeableNormalGammaPrior),
        homes={
            "normal-gamma-uncertainty": "priorwise.families.normal_gamma.likelihood.uncertainty"
        },
        statistics=LazyImport("priorwise.families.gaussian.statistics:GaussianStatistics"),
        blank=_blank,
        log_marginal=LazyImport(
            "priorwise.families.normal_gamma.likelihood.arm:log_marginal_likelihood"
        ),
        measure=_measure,
        models=_models,
        coordinates=LazyImport("priorwise.families.normal_gamma.coordinates:coordinates"),
        density=LazyImport("priorwise.families.normal_gamma.density:density"),
        pair=LazyImport("priorwise.families.normal_gamma.distance:NormalGammaPair.of"),
        posteriors=LazyImport(
            "priorwise.families.normal_gamma.posteriors:NormalGammaPosteriors.start"
        ),
        parameters=("mean", "pulls", "shape", "rate"),
        tail_conditions=LazyImport("priorwise.families.normal_gamma.tails:tail_conditions"),
        diameter=LazyImport("priorwise.families.normal_gamma.tails:diameter"),
        largest_diameter=LazyImport("priorwise.families.normal_gamma.tails:largest_diameter"),
    )
)
