"""priorwise: many short decision tasks that resemble each other.

Learn the prior from past tasks, see how much is lost if it is wrong, and run the policy that earns
most in the few pulls there are.
"""

import priorwise._starting  # noqa: F401 - before all that takes time

# isort: split
from typing import TYPE_CHECKING, Any

from priorwise.core.choosing import pick
from priorwise.core.estimates import Estimate
from priorwise.core.protocols import Seen
from priorwise.core.runs import Run
from priorwise.core.serial import Serializable
from priorwise.core.streams import Stream
from priorwise.families import load_prior
from priorwise.families.beta.exchangeable import ExchangeableBetaPrior
from priorwise.families.beta.prior import BetaPrior
from priorwise.families.finite.prior import FinitePrior
from priorwise.families.gaussian.exchangeable import ExchangeableGaussianPrior
from priorwise.families.gaussian.prior import GaussianPrior
from priorwise.families.linear.contexts import GivenContexts, SphereContexts
from priorwise.families.linear.prior import LinearGaussianPrior
from priorwise.policies.bayes_ucb import BayesUCB
from priorwise.policies.exact_knowledge_gradient import ExactKnowledgeGradient
from priorwise.policies.greedy import Greedy
from priorwise.policies.posterior_sampling import PosteriorSampling, SamplingPolicy
from priorwise.policies.receding_horizon import KnowledgeGradient, RecedingHorizon
from priorwise.policies.thompson import KShotThompson, ThompsonSampling
from priorwise.policies.top_two import TopTwoThompson
from priorwise.policies.uniform import Uniform
from priorwise.simulate.results import Comparison
from priorwise.simulate.run import compare, simulate

if TYPE_CHECKING:
    from priorwise.core.conditions import Bounded, SubGamma, SubGaussian
    from priorwise.core.distance import Distance
    from priorwise.core.fits import PriorFit
    from priorwise.families.beta.likelihood.estimator import BetaMarginalLikelihood
    from priorwise.families.beta.moments import BetaMoments
    from priorwise.families.beta.statistics import BetaStatistics
    from priorwise.families.finite.counts import FiniteCounts
    from priorwise.families.finite.likelihood.estimator import FiniteMarginalLikelihood
    from priorwise.families.finite.statistics import FiniteStatistics
    from priorwise.families.gaussian.likelihood.estimator import GaussianMarginalLikelihood
    from priorwise.families.gaussian.moments import GaussianMoments
    from priorwise.families.gaussian.statistics import GaussianStatistics
    from priorwise.families.linear.likelihood.estimator import LinearMarginalLikelihood
    from priorwise.families.linear.moments import LinearMoments
    from priorwise.families.linear.statistics import LinearStatistics
    from priorwise.meta.complexity.sample_complexity import SampleComplexity, sample_complexity
    from priorwise.meta.evidence.alarm import Alarm
    from priorwise.meta.evidence.mixture import MixturePrior
    from priorwise.meta.evidence.watch import Watch
    from priorwise.meta.exploration import OneArmBlocks, PairedArms
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
    from priorwise.meta.marginals import log_marginal_likelihood
    from priorwise.meta.selection.models import ModelComparison, compare_models
    from priorwise.meta.selection.policies import PolicyComparison, compare_policies
    from priorwise.policies.uniform_then import UniformThen
    from priorwise.sensitivity.bounds.bandits import Bound, reward_bound, trajectory_bound
    from priorwise.sensitivity.bounds.kveton import kveton_comparison
    from priorwise.sensitivity.bounds.lower import (
        lower_bound_gap,
        noiseless_instance,
        two_point_instance,
    )
    from priorwise.sensitivity.bounds.pomdp import (
        pomdp_reward_bound,
        pomdp_trajectory_bound,
        reward_tails,
    )
    from priorwise.sensitivity.break_even import BreakEven, break_even
    from priorwise.sensitivity.distance.measures import hellinger, kl, total_variation
    from priorwise.sensitivity.exact.bayes_optimal import BayesOptimalPolicy, bayes_optimal
    from priorwise.sensitivity.exact.evaluation import (
        exact_evaluation,
        exact_rewards,
        exact_trajectory_tv,
    )
    from priorwise.sensitivity.ladder.ladder import sensitivity_ladder
    from priorwise.sensitivity.ladder.rungs import Ladder, Rung
    from priorwise.sensitivity.tails.expectation import TailExpectation, tail_expectation

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
    "priorwise.sensitivity.bounds.bandits": (
        "Bound",
        "reward_bound",
        "trajectory_bound",
    ),
    "priorwise.sensitivity.break_even": (
        "BreakEven",
        "break_even",
    ),
    "priorwise.sensitivity.bounds.kveton": ("kveton_comparison",),
    "priorwise.core.conditions": (
        "Bounded",
        "SubGamma",
        "SubGaussian",
    ),
    "priorwise.core.distance": ("Distance",),
    "priorwise.sensitivity.distance.measures": (
        "hellinger",
        "kl",
        "total_variation",
    ),
    "priorwise.sensitivity.exact.evaluation": (
        "exact_evaluation",
        "exact_rewards",
        "exact_trajectory_tv",
    ),
    "priorwise.sensitivity.ladder.ladder": ("sensitivity_ladder",),
    "priorwise.sensitivity.bounds.lower": (
        "lower_bound_gap",
        "noiseless_instance",
        "two_point_instance",
    ),
    "priorwise.sensitivity.exact.bayes_optimal": (
        "BayesOptimalPolicy",
        "bayes_optimal",
    ),
    "priorwise.sensitivity.bounds.pomdp": (
        "pomdp_reward_bound",
        "pomdp_trajectory_bound",
        "reward_tails",
    ),
    "priorwise.sensitivity.ladder.rungs": (
        "Ladder",
        "Rung",
    ),
    "priorwise.sensitivity.tails.expectation": (
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
    "priorwise.meta.exploration": (
        "OneArmBlocks",
        "PairedArms",
    ),
    "priorwise.policies.uniform_then": ("UniformThen",),
    "priorwise.core.fits": ("PriorFit",),
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
    "priorwise.families.beta.likelihood.estimator": ("BetaMarginalLikelihood",),
    "priorwise.meta.marginals": ("log_marginal_likelihood",),
    "priorwise.families.finite.likelihood.estimator": ("FiniteMarginalLikelihood",),
    "priorwise.families.gaussian.likelihood.estimator": ("GaussianMarginalLikelihood",),
    "priorwise.families.linear.likelihood.estimator": ("LinearMarginalLikelihood",),
    "priorwise.families.beta.moments": ("BetaMoments",),
    "priorwise.families.finite.counts": ("FiniteCounts",),
    "priorwise.families.gaussian.moments": ("GaussianMoments",),
    "priorwise.families.linear.moments": ("LinearMoments",),
    "priorwise.meta.selection.models": (
        "ModelComparison",
        "compare_models",
    ),
    "priorwise.meta.selection.policies": (
        "PolicyComparison",
        "compare_policies",
    ),
    "priorwise.families.beta.statistics": ("BetaStatistics",),
    "priorwise.families.finite.statistics": ("FiniteStatistics",),
    "priorwise.families.gaussian.statistics": ("GaussianStatistics",),
    "priorwise.families.linear.statistics": ("LinearStatistics",),
}
_HOMES = {name: module for module, names in _LATER.items() for name in names}

# Fits, which JSON files name.
Serializable.found_in({"prior-fit": "priorwise.core.fits"})


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
