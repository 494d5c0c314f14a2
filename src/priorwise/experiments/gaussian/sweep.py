"""Gaussian multi-armed bandit: 6 arms in two correlated groups, 10 pulls, 10,000 episodes."""

from __future__ import annotations

from typing import Final

import numpy as np

from priorwise.experiments import problems
from priorwise.experiments.learning import Exploring, Sweep
from priorwise.families.gaussian.moments import GaussianMoments
from priorwise.meta.learners.running_mean import RunningMean
from priorwise.policies.baselines import Uniform
from priorwise.policies.exploration import UniformThen
from priorwise.policies.sampling import ThompsonSampling

TS: Final = ThompsonSampling()
SIZES: Final = tuple(range(200, 5001, 200))
GRID: Final = tuple(range(100, 10_001, 100))

SWEEP: Final = Sweep(
    problem=problems.gaussian,
    episodes=10_000,
    sizes=SIZES,
    grid=GRID,
    test_size=5000,
    test_episodes=5000,
    oracle={"OracleTS": TS},
    misspecified={"MisTS": TS},
    meta=(
        Exploring(
            UniformThen(1, TS),
            RunningMean(np.eye(6), noise_var=1.0).exploring(None),
            GaussianMoments("no-cov", noise_var=1.0),
            {"MetaTS:no-cov": TS},
        ),
        Exploring(Uniform(), None, GaussianMoments("full", noise_var=1.0), {"MetaTS:full": TS}),
    ),
)
