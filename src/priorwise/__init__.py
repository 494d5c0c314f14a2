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
from priorwise.sensitivity.distance import Distance, hellinger, kl, total_variation
from priorwise.simulate.results import Comparison, Estimate, Run
from priorwise.simulate.run import compare, simulate

__version__ = "0.1.0"

__all__ = [
    "BayesUCB",
    "BetaPrior",
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
    "LinearGaussianPrior",
    "PosteriorSampling",
    "RecedingHorizon",
    "Run",
    "SamplingPolicy",
    "Seen",
    "Serializable",
    "SphereContexts",
    "Stream",
    "ThompsonSampling",
    "TopTwoThompson",
    "Uniform",
    "__version__",
    "compare",
    "hellinger",
    "kl",
    "load_prior",
    "pick",
    "simulate",
    "total_variation",
]
