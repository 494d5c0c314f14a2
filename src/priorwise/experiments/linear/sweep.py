"""Gaussian linear contextual bandit: 6 arms with 6 features on the sphere, 20 pulls, 2,000
episodes.
"""

from __future__ import annotations

from typing import Final

from priorwise.experiments import problems
from priorwise.experiments.learning import Exploring, Sweep
from priorwise.families.linear.contexts import SphereContexts
from priorwise.families.linear.moments import LinearMoments
from priorwise.policies.baselines import Uniform
from priorwise.policies.sampling import ThompsonSampling

TS: Final = ThompsonSampling()
SIZES: Final = tuple(range(100, 1001, 100))
GRID: Final = tuple(range(20, 2001, 20))

SWEEP: Final = Sweep(
    problem=problems.linear,
    episodes=2000,
    sizes=SIZES,
    grid=GRID,
    test_size=1000,
    test_episodes=1000,
    oracle={"OracleTS": TS},
    misspecified={"MisTS": TS},
    meta=(
        Exploring(
            Uniform(),
            None,
            LinearMoments(contexts=SphereContexts(arms=6), noise_var=1.0),
            {"MetaTS:full": TS},
        ),
    ),
)
