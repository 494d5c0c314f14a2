"""Gaussian multi-armed bandit: 6 arms in two correlated groups, 10 pulls, 10,000 episodes."""

from typing import Final

import numpy as np

from priorwise.experiments import problems
from priorwise.experiments.experiment import Claim, Files, Tables
from priorwise.experiments.judging import above, equals, last, overtakes, rewards, share, within
from priorwise.experiments.learning import Exploring, LearningCurves, Sweep
from priorwise.families.gaussian.moments import GaussianMoments
from priorwise.families.gaussian.running_mean import RunningMean
from priorwise.figures.boxes import performance_boxes
from priorwise.figures.envelope import envelope
from priorwise.figures.learning import learning_curves
from priorwise.policies.thompson import ThompsonSampling
from priorwise.policies.uniform import Uniform
from priorwise.policies.uniform_then import UniformThen

TS: Final = ThompsonSampling()
ORACLE, WRONG, FULL, NO_COV = "OracleTS", "MisTS", "MetaTS:full", "MetaTS:no-cov"

SWEEP: Final = Sweep(
    problem=problems.gaussian,
    episodes=10_000,
    sizes=tuple(range(200, 5001, 200)),
    grid=tuple(range(100, 10_001, 100)),
    test_size=5000,
    test_episodes=5000,
    oracle={ORACLE: TS},
    misspecified={WRONG: TS},
    meta=(
        Exploring(
            UniformThen(1, TS),
            RunningMean(np.eye(6), noise_var=1.0).exploring(None),
            GaussianMoments("no-cov", noise_var=1.0),
            {NO_COV: TS},
        ),
        Exploring(Uniform(), None, GaussianMoments("full", noise_var=1.0), {FULL: TS}),
    ),
)


def figures(tables: Tables) -> dict[str, Files]:
    """Learning curves, and the test performance of the last half."""
    return {
        "learning_curves": learning_curves(tables["curves"], "Gaussian bandit: 6 arms, 10 pulls"),
        "test": performance_boxes(tables["test"], "Gaussian bandit: last 5,000 episodes"),
    }


def claims(tables: Tables) -> list[Claim]:
    """What the paper says of the Gaussian bandit, and the values known of it."""
    curves, test = tables["curves"], tables["test"]
    best = envelope(curves)
    oracle, wrong, full, no_cov = (rewards(test, each) for each in (ORACLE, WRONG, FULL, NO_COV))
    ratio = wrong.mean() / oracle.mean()
    return [
        equals("OracleTS earns", last(curves, ORACLE), 5.380, 0.002),
        equals("MisTS earns", last(curves, WRONG), 3.479, 0.002),
        equals("MetaTS:no-cov with T0 = 5,000 earns", no_cov, 3.88, 0.04),
        overtakes("Learning the mean beats the misspecified prior soon", best, NO_COV, WRONG, 1000),
        overtakes(
            "Learning mean and covariance beats the misspecified prior soon",
            best,
            FULL,
            WRONG,
            2500,
        ),
        overtakes(
            "Learning the covariance takes more tasks, and then pays", best, FULL, NO_COV, 5000
        ),
        within("With T0 = 5,000, MetaTS:full tests as well as OracleTS", oracle, full, 0.03),
        equals("With T0 = 5,000, MetaTS:full exceeds OracleTS by", full - oracle, 0.024, 0.012),
        above("Without the covariance, a learned prior stays far below", full, no_cov, 1.0),
        share(
            "The misspecified prior earns less than two thirds of the true one",
            ratio,
            0.5,
            2 / 3,
            source="ours",
        ),
    ]


EXPERIMENT: Final = LearningCurves(
    "gaussian", "Gaussian multi-armed bandit", SWEEP, figures, claims
)
