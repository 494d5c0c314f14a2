"""Simulated exploration for estimators: runs, seeds of replicates, and the moment estimator that
suits a prior.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from priorwise.core.episodes import joined
from priorwise.core.fits import Estimator
from priorwise.core.protocols import Policy
from priorwise.core.runs import Run
from priorwise.core.streams import mix
from priorwise.families.beta.moments import BetaMoments
from priorwise.families.beta.prior import BetaPrior
from priorwise.families.finite.counts import FiniteCounts
from priorwise.families.finite.prior import FinitePrior
from priorwise.families.gaussian.moments import GaussianMoments
from priorwise.families.gaussian.prior import GaussianPrior
from priorwise.families.linear.moments import LinearMoments
from priorwise.families.linear.prior import LinearGaussianPrior
from priorwise.meta.exploration import Exploration, segments
from priorwise.simulate.run import simulate


def default_estimator(prior: Any) -> Estimator:
    """Moment estimator of a prior's family, knowing all but the law of tasks."""
    if isinstance(prior, GaussianPrior):
        return GaussianMoments("full", noise_var=prior.noise_var, arms=prior.arms)
    if isinstance(prior, BetaPrior):
        return BetaMoments(arms=prior.arms)
    if isinstance(prior, FinitePrior):
        return FiniteCounts(prior)
    if isinstance(prior, LinearGaussianPrior):
        if np.ptp(prior.noise_var) > 0.0:
            raise ValueError(
                "prior has a noise_var that differs between arms, which LinearMoments does not "
                "take: pass estimator=..."
            )
        return LinearMoments(prior.contexts, float(prior.noise_var[0]))
    raise TypeError(f"no moment estimator is known for {type(prior).__name__}: pass estimator=...")


def explored(
    prior: Any, exploration: Policy | Exploration, episodes: int, horizon: int, *, seed: int
) -> Run:
    """Kept run of an exploration; of one with several segments only the trajectory, tasks and
    horizon describe the whole.
    """
    runs = [
        simulate(
            prior,
            policy,
            horizon=horizon,
            tasks=number,
            seed=seed if i == 0 else mix(seed + i),
            keep=True,
        )
        for i, (policy, number) in enumerate(segments(exploration, episodes, seed=seed))
    ]
    if len(runs) == 1:
        return runs[0]
    whole = joined([run.trajectory for run in runs if run.trajectory is not None])
    return replace(runs[0], trajectory=whole, tasks=episodes)


def replicate_seed(seed: int, replicate: int) -> int:
    """Seed of one replicate."""
    return mix(mix(seed) ^ replicate)
