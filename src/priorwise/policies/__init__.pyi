from priorwise.policies.bayes_ucb import BayesUCB as BayesUCB
from priorwise.policies.certainty_equivalence import CertaintyEquivalence as CertaintyEquivalence
from priorwise.policies.environment_sampling import EnvironmentSampling as EnvironmentSampling
from priorwise.policies.exact_knowledge_gradient import (
    ExactKnowledgeGradient as ExactKnowledgeGradient,
)
from priorwise.policies.greedy import Greedy as Greedy
from priorwise.policies.posterior_sampling import PosteriorSampling as PosteriorSampling
from priorwise.policies.posterior_sampling import SamplingPolicy as SamplingPolicy
from priorwise.policies.receding_horizon import KnowledgeGradient as KnowledgeGradient
from priorwise.policies.receding_horizon import RecedingHorizon as RecedingHorizon
from priorwise.policies.round_sampling import RoundSampling as RoundSampling
from priorwise.policies.thompson import KShotThompson as KShotThompson
from priorwise.policies.thompson import ThompsonSampling as ThompsonSampling
from priorwise.policies.top_two import TopTwoThompson as TopTwoThompson
from priorwise.policies.uniform import Uniform as Uniform
from priorwise.policies.uniform_then import UniformThen as UniformThen
