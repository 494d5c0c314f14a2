"""Discrete bandit: 16 noiseless tasks over 20 arms, 10 pulls, 400 episodes; Thompson sampling and
the knowledge gradient.
"""

from __future__ import annotations

from typing import Final

from priorwise.experiments import problems
from priorwise.experiments.learning import Exploring, Sweep
from priorwise.families.finite.counts import FiniteCounts
from priorwise.policies.baselines import Uniform
from priorwise.policies.receding_horizon import KnowledgeGradient
from priorwise.policies.sampling import ThompsonSampling

TS: Final = ThompsonSampling()
KG: Final = KnowledgeGradient(10, 10, ties="random", when_certain="best")
SIZES: Final = tuple(range(25, 201, 25))
GRID: Final = tuple(range(4, 401, 4))

SWEEP: Final = Sweep(
    problem=problems.discrete,
    episodes=400,
    sizes=SIZES,
    grid=GRID,
    test_size=200,
    test_episodes=200,
    oracle={"OracleTS": TS, "OracleKG": KG},
    misspecified={"MisTS": TS, "MisKG": KG},
    meta=(
        Exploring(
            Uniform(),
            None,
            FiniteCounts(problems.discrete().misspecified, smoothing=0.0),
            {"MetaTS": TS, "MetaKG": KG},
        ),
    ),
    first_pull_size=100,
    pulls_of=("OracleTS", "OracleKG", "MisTS", "MisKG", "MetaTS"),
)
