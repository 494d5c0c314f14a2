"""Gaussian linear contextual bandit: 6 arms, 6 features on the sphere, 20 pulls, 2,000 episodes."""

from typing import Final

from priorwise.experiments import problems
from priorwise.experiments.experiment import Claim, Files, Tables
from priorwise.experiments.judging import equals, last, overtakes, rewards, share, within
from priorwise.experiments.learning import Exploring, LearningCurves, Sweep
from priorwise.families.linear.contexts import SphereContexts
from priorwise.families.linear.moments import LinearMoments
from priorwise.figures.boxes import performance_boxes
from priorwise.figures.envelope import envelope
from priorwise.figures.learning import learning_curves
from priorwise.policies.thompson import ThompsonSampling
from priorwise.policies.uniform import Uniform

TS: Final = ThompsonSampling()
FULL: Final = "MetaTS:full"
MOMENTS: Final = LinearMoments(contexts=SphereContexts(arms=6), noise_var=1.0)

SWEEP: Final = Sweep(
    problem=problems.linear,
    episodes=2000,
    sizes=tuple(range(100, 1001, 100)),
    grid=tuple(range(20, 2001, 20)),
    test_size=1000,
    test_episodes=1000,
    oracle={"OracleTS": TS},
    misspecified={"MisTS": TS},
    meta=(Exploring(Uniform(), None, MOMENTS, {FULL: TS}),),
)


def figures(tables: Tables) -> dict[str, Files]:
    """Learning curves, and the test performance of the last half."""
    title = "Linear contextual bandit: 6 arms, 6 features, 20 pulls"
    return {
        "learning_curves": learning_curves(tables["curves"], title),
        "test": performance_boxes(tables["test"], "Linear contextual bandit: last 1,000 episodes"),
    }


def claims(tables: Tables) -> list[Claim]:
    """What the paper says of the linear contextual bandit, and the values known of it."""
    curves, test = tables["curves"], tables["test"]
    best = envelope(curves)
    oracle, wrong, meta = (rewards(test, name) for name in ("OracleTS", "MisTS", FULL))
    near, short = 0.005 * oracle.mean(), oracle - meta
    ratio = wrong.mean() / oracle.mean()
    return [
        equals("OracleTS earns", last(curves, "OracleTS"), 24.857, 0.012),
        equals("MisTS earns", last(curves, "MisTS"), 12.403, 0.013),
        overtakes("Learning the prior beats the misspecified one soon", best, FULL, "MisTS", 500),
        within("With T0 = 1,000, MetaTS:full tests within 0.5 % of OracleTS", oracle, meta, near),
        equals("With T0 = 1,000, MetaTS:full is short of OracleTS by", short, 0.087, 0.01),
        share("The misspecified prior earns half of the true one", ratio, 0.48, 0.52, "ours"),
    ]


EXPERIMENT: Final = LearningCurves(
    "linear", "Gaussian linear contextual bandit", SWEEP, figures, claims
)
