from priorwise.core.serial import load_prior as load_prior
from priorwise.families.beta.exchangeable import ExchangeableBetaPrior as ExchangeableBetaPrior
from priorwise.families.beta.likelihood.estimator import (
    BetaMarginalLikelihood as BetaMarginalLikelihood,
)
from priorwise.families.beta.moments import BetaMoments as BetaMoments
from priorwise.families.beta.prior import BetaPrior as BetaPrior
from priorwise.families.beta.statistics import BetaStatistics as BetaStatistics
from priorwise.families.featured.estimator import (
    FeaturedMarginalLikelihood as FeaturedMarginalLikelihood,
)
from priorwise.families.featured.features import TaskFeatures as TaskFeatures
from priorwise.families.featured.prior import FeaturedPrior as FeaturedPrior
from priorwise.families.featured.statistics import FeaturedStatistics as FeaturedStatistics
from priorwise.families.finite.counts import FiniteCounts as FiniteCounts
from priorwise.families.finite.likelihood.estimator import (
    FiniteMarginalLikelihood as FiniteMarginalLikelihood,
)
from priorwise.families.finite.prior import FinitePrior as FinitePrior
from priorwise.families.finite.statistics import FiniteStatistics as FiniteStatistics
from priorwise.families.finite_mdp.prior import FiniteMdpPrior as FiniteMdpPrior
from priorwise.families.finite_pomdp.plan import PomdpPlan as PomdpPlan
from priorwise.families.finite_pomdp.prior import FinitePomdpPrior as FinitePomdpPrior
from priorwise.families.finite_pomdp.problems import corridor as corridor
from priorwise.families.finite_pomdp.problems import tiger as tiger
from priorwise.families.gaussian.exchangeable import (
    ExchangeableGaussianPrior as ExchangeableGaussianPrior,
)
from priorwise.families.gaussian.likelihood.estimator import (
    GaussianMarginalLikelihood as GaussianMarginalLikelihood,
)
from priorwise.families.gaussian.moments import GaussianMoments as GaussianMoments
from priorwise.families.gaussian.prior import GaussianPrior as GaussianPrior
from priorwise.families.gaussian.statistics import GaussianStatistics as GaussianStatistics
from priorwise.families.linear.bilinear import NormalContexts as NormalContexts
from priorwise.families.linear.bilinear import bilinear as bilinear
from priorwise.families.linear.bilinear import matrix_normal as matrix_normal
from priorwise.families.linear.contexts import GivenContexts as GivenContexts
from priorwise.families.linear.contexts import SphereContexts as SphereContexts
from priorwise.families.linear.likelihood.estimator import (
    LinearMarginalLikelihood as LinearMarginalLikelihood,
)
from priorwise.families.linear.moments import LinearMoments as LinearMoments
from priorwise.families.linear.prior import LinearGaussianPrior as LinearGaussianPrior
from priorwise.families.linear.statistics import LinearStatistics as LinearStatistics
from priorwise.families.linear_quadratic.finite import (
    FiniteLinearQuadraticPrior as FiniteLinearQuadraticPrior,
)
from priorwise.families.linear_quadratic.hidden import FiniteLqgPrior as FiniteLqgPrior
from priorwise.families.linear_quadratic.hidden import HiddenPlant as HiddenPlant
from priorwise.families.linear_quadratic.plant import Plant as Plant
from priorwise.families.linear_quadratic.prior import LinearQuadraticPrior as LinearQuadraticPrior
from priorwise.families.logistic.prior import LogisticPrior as LogisticPrior
from priorwise.families.logistic.statistics import LogisticStatistics as LogisticStatistics
from priorwise.families.logit_normal.exchangeable import (
    ExchangeableLogitNormalPrior as ExchangeableLogitNormalPrior,
)
from priorwise.families.logit_normal.likelihood.estimator import (
    LogitNormalMarginalLikelihood as LogitNormalMarginalLikelihood,
)
from priorwise.families.logit_normal.prior import LogitNormalPrior as LogitNormalPrior
from priorwise.families.mixture.exchangeable import (
    ExchangeableMixturePrior as ExchangeableMixturePrior,
)
from priorwise.families.mixture.likelihood.estimator import (
    MixtureMarginalLikelihood as MixtureMarginalLikelihood,
)
from priorwise.families.mixture.prior import MixturePrior as MixturePrior
from priorwise.families.normal_gamma.exchangeable import (
    ExchangeableNormalGammaPrior as ExchangeableNormalGammaPrior,
)
from priorwise.families.normal_gamma.likelihood.estimator import (
    NormalGammaMarginalLikelihood as NormalGammaMarginalLikelihood,
)
from priorwise.families.normal_gamma.prior import NormalGammaPrior as NormalGammaPrior
from priorwise.families.particle.functions import register_function as register_function
from priorwise.families.particle.prior import ParticlePrior as ParticlePrior
from priorwise.families.registry import Family as Family
from priorwise.families.registry import LazyImport as LazyImport
from priorwise.families.registry import family_of as family_of
from priorwise.families.registry import register as register
from priorwise.families.tabular_mdp.likelihood import (
    DirichletMdpMarginalLikelihood as DirichletMdpMarginalLikelihood,
)
from priorwise.families.tabular_mdp.prior import DirichletMdpPrior as DirichletMdpPrior
from priorwise.families.tabular_mdp.rewards import BernoulliRewardPrior as BernoulliRewardPrior
from priorwise.families.tabular_mdp.rewards import NormalRewardPrior as NormalRewardPrior
from priorwise.families.tabular_mdp.riverswim import riverswim as riverswim
from priorwise.families.tabular_mdp.statistics import MdpStatistics as MdpStatistics
