"""priorwise: many short decision tasks that resemble each other.

Learn the prior from past tasks, see how much is lost if it is wrong, and run the policy that earns most in the few pulls there are.
"""

from priorwise.core.choosing import pick
from priorwise.core.protocols import Seen
from priorwise.core.serial import Serializable
from priorwise.core.streams import Stream
from priorwise.policies.baselines import BayesUCB, ExactKnowledgeGradient, Greedy, TopTwoThompson, Uniform
from priorwise.policies.receding_horizon import KnowledgeGradient, RecedingHorizon
from priorwise.policies.sampling import KShotThompson, PosteriorSampling, SamplingPolicy, ThompsonSampling
from priorwise.priors import load_prior
from priorwise.priors.beta import BetaPrior
from priorwise.priors.contexts import GivenContexts, SphereContexts
from priorwise.priors.exchangeable import ExchangeableBetaPrior, ExchangeableGaussianPrior
from priorwise.priors.finite import FinitePrior
from priorwise.priors.gaussian import GaussianPrior
from priorwise.priors.linear import LinearGaussianPrior
from priorwise.sensitivity.bounds import Bound, reward_bound, trajectory_bound
from priorwise.sensitivity.break_even import BreakEven, break_even
from priorwise.sensitivity.comparison import kveton_comparison
from priorwise.sensitivity.conditions import Bounded, SubGamma, SubGaussian
from priorwise.sensitivity.distance import Distance, hellinger, kl, total_variation
from priorwise.sensitivity.exact import exact_evaluation, exact_rewards, exact_trajectory_tv
from priorwise.sensitivity.ladder import sensitivity_ladder
from priorwise.sensitivity.lower_bounds import lower_bound_gap, noiseless_instance, two_point_instance
from priorwise.sensitivity.optimal import BayesOptimalPolicy, bayes_optimal
from priorwise.sensitivity.pomdp import pomdp_reward_bound, pomdp_trajectory_bound, reward_tails
from priorwise.sensitivity.rungs import Ladder, Rung
from priorwise.sensitivity.tail import TailExpectation, tail_expectation
from priorwise.simulate.results import Comparison, Estimate, Run
from priorwise.simulate.run import compare, simulate

__version__ = "0.1.0"

__all__ = [
    "BayesOptimalPolicy",
    "BayesUCB",
    "BetaPrior",
    "Bound",
    "Bounded",
    "BreakEven",
    "Comparison",
    "Distance",
    "Estimate",
    "ExactKnowledgeGradient",
    "ExchangeableBetaPrior",
    "ExchangeableGaussianPrior",
    "FinitePrior",
    "GaussianPrior",
    "GivenContexts",
    "Greedy",
    "KShotThompson",
    "KnowledgeGradient",
    "Ladder",
    "LinearGaussianPrior",
    "PosteriorSampling",
    "RecedingHorizon",
    "Run",
    "Rung",
    "SamplingPolicy",
    "Seen",
    "Serializable",
    "SphereContexts",
    "Stream",
    "SubGamma",
    "SubGaussian",
    "TailExpectation",
    "ThompsonSampling",
    "TopTwoThompson",
    "Uniform",
    "__version__",
    "bayes_optimal",
    "break_even",
    "compare",
    "exact_evaluation",
    "exact_rewards",
    "exact_trajectory_tv",
    "hellinger",
    "kl",
    "kveton_comparison",
    "load_prior",
    "lower_bound_gap",
    "noiseless_instance",
    "pick",
    "pomdp_reward_bound",
    "pomdp_trajectory_bound",
    "reward_bound",
    "reward_tails",
    "sensitivity_ladder",
    "simulate",
    "tail_expectation",
    "total_variation",
    "trajectory_bound",
    "two_point_instance",
]
