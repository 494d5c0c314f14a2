"""priorwise: many short decision tasks that resemble each other.

Learn the prior from past tasks, see how much is lost if it is wrong, and run the policy that earns
most in the few pulls there are.
"""

import priorwise._starting  # noqa: F401 - before all that takes time

# isort: split
from typing import TYPE_CHECKING, Any

from priorwise.core.choosing import pick
from priorwise.core.protocols import Seen
from priorwise.core.serial import Serializable
from priorwise.core.streams import Stream
from priorwise.policies.baselines import (
    BayesUCB,
    ExactKnowledgeGradient,
    Greedy,
    TopTwoThompson,
    Uniform,
)
from priorwise.policies.receding_horizon import KnowledgeGradient, RecedingHorizon
from priorwise.policies.sampling import (
    KShotThompson,
    PosteriorSampling,
    SamplingPolicy,
    ThompsonSampling,
)
from priorwise.priors import load_prior
from priorwise.priors.beta import BetaPrior
from priorwise.priors.contexts import GivenContexts, SphereContexts
from priorwise.priors.exchangeable import ExchangeableBetaPrior, ExchangeableGaussianPrior
from priorwise.priors.finite import FinitePrior
from priorwise.priors.gaussian import GaussianPrior
from priorwise.priors.linear import LinearGaussianPrior
from priorwise.simulate.results import Comparison, Estimate, Run
from priorwise.simulate.run import compare, simulate

if TYPE_CHECKING:
    from priorwise.meta.complexity.sample_complexity import SampleComplexity, sample_complexity
    from priorwise.meta.evidence.alarm import Alarm
    from priorwise.meta.evidence.mixture import MixturePrior
    from priorwise.meta.evidence.watch import Watch
    from priorwise.meta.exploration.plans import OneArmBlocks, PairedArms
    from priorwise.meta.exploration.policies import UniformThen
    from priorwise.meta.fit import PriorFit
    from priorwise.meta.learners.ada_thompson import AdaThompson
    from priorwise.meta.learners.empirical_bayes import EmpiricalBayes, Every, Geometric
    from priorwise.meta.learners.explore_then_commit import ExploreThenCommit
    from priorwise.meta.learners.hier_thompson import HierThompson
    from priorwise.meta.learners.hyper import CandidatePriors, GaussianHyperPrior
    from priorwise.meta.learners.learner import FixedPrior, MetaLearner, Play, Setting
    from priorwise.meta.learners.meta_run import MetaRun
    from priorwise.meta.learners.meta_thompson import MetaThompson
    from priorwise.meta.learners.robust import AsFitted, Drawn, Mixed, Widened
    from priorwise.meta.learners.running_mean import RunningMean
    from priorwise.meta.learners.simulate_meta import simulate_meta
    from priorwise.meta.likelihood.beta.estimator import BetaMarginalLikelihood
    from priorwise.meta.likelihood.families import log_marginal_likelihood
    from priorwise.meta.likelihood.finite.estimator import FiniteMarginalLikelihood
    from priorwise.meta.likelihood.gaussian.estimator import GaussianMarginalLikelihood
    from priorwise.meta.likelihood.linear.estimator import LinearMarginalLikelihood
    from priorwise.meta.moments.beta import BetaMoments
    from priorwise.meta.moments.finite import FiniteCounts
    from priorwise.meta.moments.gaussian import GaussianMoments
    from priorwise.meta.moments.linear import LinearMoments
    from priorwise.meta.selection.models import ModelComparison, compare_models
    from priorwise.meta.selection.policies import PolicyComparison, compare_policies
    from priorwise.meta.statistics.beta import BetaStatistics
    from priorwise.meta.statistics.finite import FiniteStatistics
    from priorwise.meta.statistics.gaussian import GaussianStatistics
    from priorwise.meta.statistics.linear import LinearStatistics
    from priorwise.sensitivity.bounds import Bound, reward_bound, trajectory_bound
    from priorwise.sensitivity.break_even import BreakEven, break_even
    from priorwise.sensitivity.comparison import kveton_comparison
    from priorwise.sensitivity.conditions import Bounded, SubGamma, SubGaussian
    from priorwise.sensitivity.distance import Distance, hellinger, kl, total_variation
    from priorwise.sensitivity.exact import exact_evaluation, exact_rewards, exact_trajectory_tv
    from priorwise.sensitivity.ladder import sensitivity_ladder
    from priorwise.sensitivity.lower_bounds import (
        lower_bound_gap,
        noiseless_instance,
        two_point_instance,
    )
    from priorwise.sensitivity.optimal import BayesOptimalPolicy, bayes_optimal
    from priorwise.sensitivity.pomdp import pomdp_reward_bound, pomdp_trajectory_bound, reward_tails
    from priorwise.sensitivity.rungs import Ladder, Rung
    from priorwise.sensitivity.tail import TailExpectation, tail_expectation

__version__ = "0.1.0"

__all__ = [
    "AdaThompson",
    "Alarm",
    "AsFitted",
    "BayesOptimalPolicy",
    "BayesUCB",
    "BetaMarginalLikelihood",
    "BetaMoments",
    "BetaPrior",
    "BetaStatistics",
    "Bound",
    "Bounded",
    "BreakEven",
    "CandidatePriors",
    "Comparison",
    "Distance",
    "Drawn",
    "EmpiricalBayes",
    "Estimate",
    "Every",
    "ExactKnowledgeGradient",
    "ExchangeableBetaPrior",
    "ExchangeableGaussianPrior",
    "ExploreThenCommit",
    "FiniteCounts",
    "FiniteMarginalLikelihood",
    "FinitePrior",
    "FiniteStatistics",
    "FixedPrior",
    "GaussianHyperPrior",
    "GaussianMarginalLikelihood",
    "GaussianMoments",
    "GaussianPrior",
    "GaussianStatistics",
    "Geometric",
    "GivenContexts",
    "Greedy",
    "HierThompson",
    "KShotThompson",
    "KnowledgeGradient",
    "Ladder",
    "LinearGaussianPrior",
    "LinearMarginalLikelihood",
    "LinearMoments",
    "LinearStatistics",
    "MetaLearner",
    "MetaRun",
    "MetaThompson",
    "Mixed",
    "MixturePrior",
    "ModelComparison",
    "OneArmBlocks",
    "PairedArms",
    "Play",
    "PolicyComparison",
    "PosteriorSampling",
    "PriorFit",
    "RecedingHorizon",
    "Run",
    "Rung",
    "RunningMean",
    "SampleComplexity",
    "SamplingPolicy",
    "Seen",
    "Serializable",
    "Setting",
    "SphereContexts",
    "Stream",
    "SubGamma",
    "SubGaussian",
    "TailExpectation",
    "ThompsonSampling",
    "TopTwoThompson",
    "Uniform",
    "UniformThen",
    "Watch",
    "Widened",
    "__version__",
    "bayes_optimal",
    "break_even",
    "compare",
    "compare_models",
    "compare_policies",
    "exact_evaluation",
    "exact_rewards",
    "exact_trajectory_tv",
    "hellinger",
    "kl",
    "kveton_comparison",
    "load_prior",
    "log_marginal_likelihood",
    "lower_bound_gap",
    "noiseless_instance",
    "pick",
    "pomdp_reward_bound",
    "pomdp_trajectory_bound",
    "reward_bound",
    "reward_tails",
    "sample_complexity",
    "sensitivity_ladder",
    "simulate",
    "simulate_meta",
    "tail_expectation",
    "total_variation",
    "trajectory_bound",
    "two_point_instance",
]

# What a simulation does without is imported when first used: bounds and ladders, estimators,
# optimisers, process pools.
_LATER = {
    "priorwise.sensitivity.bounds": (
        "Bound",
        "reward_bound",
        "trajectory_bound",
    ),
    "priorwise.sensitivity.break_even": (
        "BreakEven",
        "break_even",
    ),
    "priorwise.sensitivity.comparison": ("kveton_comparison",),
    "priorwise.sensitivity.conditions": (
        "Bounded",
        "SubGamma",
        "SubGaussian",
    ),
    "priorwise.sensitivity.distance": (
        "Distance",
        "hellinger",
        "kl",
        "total_variation",
    ),
    "priorwise.sensitivity.exact": (
        "exact_evaluation",
        "exact_rewards",
        "exact_trajectory_tv",
    ),
    "priorwise.sensitivity.ladder": ("sensitivity_ladder",),
    "priorwise.sensitivity.lower_bounds": (
        "lower_bound_gap",
        "noiseless_instance",
        "two_point_instance",
    ),
    "priorwise.sensitivity.optimal": (
        "BayesOptimalPolicy",
        "bayes_optimal",
    ),
    "priorwise.sensitivity.pomdp": (
        "pomdp_reward_bound",
        "pomdp_trajectory_bound",
        "reward_tails",
    ),
    "priorwise.sensitivity.rungs": (
        "Ladder",
        "Rung",
    ),
    "priorwise.sensitivity.tail": (
        "TailExpectation",
        "tail_expectation",
    ),
    "priorwise.meta.complexity.sample_complexity": (
        "SampleComplexity",
        "sample_complexity",
    ),
    "priorwise.meta.evidence.alarm": ("Alarm",),
    "priorwise.meta.evidence.mixture": ("MixturePrior",),
    "priorwise.meta.evidence.watch": ("Watch",),
    "priorwise.meta.exploration.plans": (
        "OneArmBlocks",
        "PairedArms",
    ),
    "priorwise.meta.exploration.policies": ("UniformThen",),
    "priorwise.meta.fit": ("PriorFit",),
    "priorwise.meta.learners.ada_thompson": ("AdaThompson",),
    "priorwise.meta.learners.empirical_bayes": (
        "EmpiricalBayes",
        "Every",
        "Geometric",
    ),
    "priorwise.meta.learners.explore_then_commit": ("ExploreThenCommit",),
    "priorwise.meta.learners.hier_thompson": ("HierThompson",),
    "priorwise.meta.learners.hyper": (
        "CandidatePriors",
        "GaussianHyperPrior",
    ),
    "priorwise.meta.learners.learner": (
        "FixedPrior",
        "MetaLearner",
        "Play",
        "Setting",
    ),
    "priorwise.meta.learners.meta_run": ("MetaRun",),
    "priorwise.meta.learners.meta_thompson": ("MetaThompson",),
    "priorwise.meta.learners.robust": (
        "AsFitted",
        "Drawn",
        "Mixed",
        "Widened",
    ),
    "priorwise.meta.learners.running_mean": ("RunningMean",),
    "priorwise.meta.learners.simulate_meta": ("simulate_meta",),
    "priorwise.meta.likelihood.beta.estimator": ("BetaMarginalLikelihood",),
    "priorwise.meta.likelihood.families": ("log_marginal_likelihood",),
    "priorwise.meta.likelihood.finite.estimator": ("FiniteMarginalLikelihood",),
    "priorwise.meta.likelihood.gaussian.estimator": ("GaussianMarginalLikelihood",),
    "priorwise.meta.likelihood.linear.estimator": ("LinearMarginalLikelihood",),
    "priorwise.meta.moments.beta": ("BetaMoments",),
    "priorwise.meta.moments.finite": ("FiniteCounts",),
    "priorwise.meta.moments.gaussian": ("GaussianMoments",),
    "priorwise.meta.moments.linear": ("LinearMoments",),
    "priorwise.meta.selection.models": (
        "ModelComparison",
        "compare_models",
    ),
    "priorwise.meta.selection.policies": (
        "PolicyComparison",
        "compare_policies",
    ),
    "priorwise.meta.statistics.beta": ("BetaStatistics",),
    "priorwise.meta.statistics.finite": ("FiniteStatistics",),
    "priorwise.meta.statistics.gaussian": ("GaussianStatistics",),
    "priorwise.meta.statistics.linear": ("LinearStatistics",),
}
_HOMES = {name: module for module, names in _LATER.items() for name in names}

# Fits and their laws of plausible priors, which JSON files name.
Serializable.found_in(
    {
        "prior-fit": "priorwise.meta.fit",
        "beta-moment-uncertainty": "priorwise.meta.moments.beta",
        "beta-uncertainty": "priorwise.meta.likelihood.beta.uncertainty",
        "dirichlet-uncertainty": "priorwise.meta.moments.finite",
        "gaussian-uncertainty": "priorwise.meta.likelihood.gaussian.law",
        "linear-uncertainty": "priorwise.meta.likelihood.linear.certainty",
        "moment-uncertainty": "priorwise.meta.moments.totals",
        "simplex-uncertainty": "priorwise.meta.likelihood.finite.estimator",
    }
)


def __getattr__(name: str) -> Any:
    """Import a name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted(__all__)
