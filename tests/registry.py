"""Every family and every policy of the package, in the forms that differ: what the contracts run
over.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import particle_models

import priorwise as pw
from priorwise.core.types import FloatArray
from priorwise.families.mixture.statistics import MixtureStatistics
from priorwise.families.particle.statistics import ParticleStatistics
from priorwise.testing import base_seed

BLOCK = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
RANK_ONE = np.outer([1.0, 2.0, -1.0], [1.0, 2.0, -1.0])
FEATURES = np.random.default_rng(base_seed()).normal(size=(5, 3, 2))
SPHERE = pw.SphereContexts(arms=4)
BERNOULLI_TASKS = [[0.9, 0.1, 0.5], [0.2, 0.8, 0.5], [0.3, 0.3, 0.9], [0.0, 1.0, 0.4]]
NORMAL_TASKS = [[1.0, 0.0, -1.0], [0.0, 1.0, 0.5], [2.0, -1.0, 0.0]]
PLAIN_TASKS = [[1.0, 0.0, 0.3], [0.0, 1.0, 0.3], [0.3, 0.0, 1.0], [0.2, 0.6, 0.3]]
SKEW = [0.4, 0.3, 0.2, 0.1]

# name: (prior, a misspecified prior of the same arms)
PRIORS = {
    "gaussian": (
        pw.GaussianPrior([0.5, 0.0, 0.1], BLOCK),
        pw.GaussianPrior(np.zeros(3), np.eye(3)),
    ),
    "gaussian-singular": (
        pw.GaussianPrior([0.0, 0.1, 0.2], RANK_ONE, 0.5),
        pw.GaussianPrior(np.zeros(3), RANK_ONE + BLOCK, 2.0),
    ),
    "gaussian-noise-per-arm": (
        pw.GaussianPrior([0.0, 0.2, -0.2], BLOCK, [0.1, 1.0, 4.0]),
        pw.GaussianPrior([1.0, 0.0, 0.0], BLOCK, [1.0, 1.0, 1.0]),
    ),
    "gaussian-one-arm": (
        pw.GaussianPrior([0.5], [[2.0]], 0.7),
        pw.GaussianPrior([-0.5], [[1.0]], 0.7),
    ),
    "beta": (pw.BetaPrior([1.0, 2.0, 3.0], [1.0, 3.0, 1.5]), pw.BetaPrior([1.0, 1.0, 1.0], 1.0)),
    "beta-below-one": (
        pw.BetaPrior([0.3, 0.5, 0.9], [0.4, 2.0, 0.9]),
        pw.BetaPrior([2.0, 0.2, 1.0], [0.2, 2.0, 1.0]),
    ),
    "finite": (
        pw.FinitePrior(PLAIN_TASKS, SKEW),
        pw.FinitePrior(PLAIN_TASKS, [0.0, 0.5, 0.25, 0.25]),
    ),
    "finite-bernoulli": (
        pw.FinitePrior(BERNOULLI_TASKS, SKEW, noise="bernoulli"),
        pw.FinitePrior(BERNOULLI_TASKS, [0.25] * 4, noise="bernoulli"),
    ),
    "finite-gaussian": (
        pw.FinitePrior(NORMAL_TASKS, [0.5, 0.3, 0.2], noise="gaussian", noise_var=[1.0, 0.5, 2.0]),
        pw.FinitePrior(NORMAL_TASKS, [0.0, 0.5, 0.5], noise="gaussian", noise_var=1.0),
    ),
    "linear-sphere": (
        pw.LinearGaussianPrior(np.ones(3), BLOCK, 0.5, contexts=SPHERE),
        pw.LinearGaussianPrior(np.zeros(3), np.eye(3), 1.0, contexts=SPHERE),
    ),
    "linear-pool": (
        pw.LinearGaussianPrior(
            [0.5, -0.5], [[1.0, 0.3], [0.3, 0.5]], [1.0, 0.5, 2.0], contexts=FEATURES
        ),
        pw.LinearGaussianPrior([0.0, 0.0], np.eye(2), contexts=FEATURES),
    ),
    "linear-singular": (
        pw.LinearGaussianPrior([0.5, -0.5], [[1.0, 1.0], [1.0, 1.0]], contexts=FEATURES[0]),
        pw.LinearGaussianPrior([0.0, 0.0], np.eye(2), contexts=FEATURES[0]),
    ),
    "exchangeable-gaussian": (
        pw.ExchangeableGaussianPrior(0.1, 1.0, 0.9, 0.5).for_arms(3),
        pw.ExchangeableGaussianPrior(0.0, 2.0, 0.0, 0.5).for_arms(3),
    ),
    "normal-gamma": (
        pw.NormalGammaPrior([0.5, 0.0, 0.1], [1.0, 2.0, 0.5], [3.0, 0.8, 1.2], [2.0, 1.0, 1.0]),
        pw.NormalGammaPrior([0.0, 0.0, 0.2], 1.0, 1.0, 1.0),
    ),
    "exchangeable-normal-gamma": (
        pw.families.ExchangeableNormalGammaPrior(0.1, 0.5, 2.0, 1.0).for_arms(3),
        pw.families.ExchangeableNormalGammaPrior(0.0, 2.0, 5.0, 9.0).for_arms(3),
    ),
    "logit-normal": (
        pw.LogitNormalPrior([-1.0, 0.0, 0.5], BLOCK),
        pw.LogitNormalPrior(np.zeros(3), 2.0 * np.eye(3)),
    ),
    "exchangeable-logit-normal": (
        pw.ExchangeableLogitNormalPrior(-1.5, 0.8, 0.7).for_arms(3),
        pw.ExchangeableLogitNormalPrior(0.0, 2.0, 0.0).for_arms(3),
    ),
    "exchangeable-beta": (
        pw.ExchangeableBetaPrior(0.8, 1.6).for_arms(3),
        pw.ExchangeableBetaPrior(1.0, 1.0).for_arms(3),
    ),
}

MOVES = np.array(
    [
        [[2.0, 1.0, 0.5], [1.0, 0.0, 3.0]],
        [[0.0, 1.0, 0.0], [1.0, 1.0, 2.0]],
        [[1.5, 0.0, 0.7], [0.5, 0.5, 2.0]],
    ]
)
ANY_MOVES = np.array([[[1.0, 0.3, 1.0]] * 2] * 3)
EARNED = [[0.1, 0.4], [0.9, 0.0], [0.2, 0.7]]
SUCCESSES = pw.families.BernoulliRewardPrior([[1.0, 0.5], [2.0, 3.0], [0.7, 1.0]], 1.5)
NORMALS = pw.families.NormalRewardPrior(EARNED, [[1.0, 0.5], [0.3, 2.0], [1.0, 1.0]], 0.5)

# problems with a state: no exact means, so that fewer policies run
STATE_PRIORS = {
    "mdp": (
        pw.DirichletMdpPrior(MOVES, EARNED, round_steps=4, start=[0.5, 0.0, 0.5]),
        pw.DirichletMdpPrior(ANY_MOVES, EARNED, round_steps=4, start=[0.5, 0.0, 0.5]),
    ),
    "mdp-one-round": (
        pw.DirichletMdpPrior(MOVES, EARNED, start=2),
        pw.DirichletMdpPrior(3.0 * MOVES, EARNED, start=2),
    ),
    "mdp-bernoulli": (
        pw.DirichletMdpPrior(MOVES, SUCCESSES, round_steps=3),
        pw.DirichletMdpPrior(ANY_MOVES, SUCCESSES, round_steps=3),
    ),
    "mdp-normal": (
        pw.DirichletMdpPrior(MOVES, NORMALS, round_steps=3),
        pw.DirichletMdpPrior(ANY_MOVES, NORMALS, round_steps=3),
    ),
}

OWN_CONTEXTS = pw.MixturePrior(
    [
        pw.LinearGaussianPrior(
            [1 / 3], [[v]], 0.7, pw.families.NormalContexts([[1.0], [-0.5]], [[v]])
        )
        for v in (0.1 + 0.2, 1e-9)
    ],
    [0.3, 0.7],
)
CART = pw.families.Plant([[1 / 3]], [[0.1 + 0.2]], 1e-7, start=[5e-324], limit=1e9 / 7)
NOISY_CART = pw.families.HiddenPlant(
    [[1 / 3]], [[0.1 + 0.2]], [[1e-7]], 0.1, [1e-9], start=[5e-324], limit=1e9 / 7
)
OF_TASKS = pw.families.TaskFeatures(["n", "of"], [None, ["a", "b"]], [1 / 3, 0.0], [0.1 + 0.2, 0.5])
VALUES = {
    "plant": CART,
    "linear-quadratic": pw.LinearQuadraticPrior([[1 / 3]], [[-0.0]], 1e-9 * np.eye(2), CART),
    "finite-linear-quadratic": pw.families.FiniteLinearQuadraticPrior(
        [[[1 / 3]], [[2.0]]], [[[0.1 + 0.2]], [[-1.0]]], [0.3, 0.7], CART
    ),
    "hidden-plant": NOISY_CART,
    "finite-lqg": pw.families.FiniteLqgPrior(
        [[[1 / 3]], [[2.0]]], [[[0.1 + 0.2]], [[-1.0]]], [0.3, 0.7], NOISY_CART
    ),
    "task-features": OF_TASKS,
    "featured": pw.families.FeaturedPrior(
        pw.GaussianPrior([1 / 3, 0.1], np.eye(2)), [[0.1 + 0.2, -0.0], [1e-9, 1 / 7]], OF_TASKS
    ),
    "featured-statistics": pw.families.FeaturedStatistics(
        pw.BetaStatistics([[1, 0], [3, 2]], [[2, 0], [3, 5]]),
        [[1 / 3, 0.0], [5e-324, 1.0]],
        OF_TASKS,
    ),
    **{name: prior for name, (prior, _) in (PRIORS | STATE_PRIORS).items()},
    "exchangeable-gaussian-any-arms": pw.ExchangeableGaussianPrior(0.1, 1 / 3, -0.2, 1e-7),
    "exchangeable-normal-gamma-any-arms": pw.families.ExchangeableNormalGammaPrior(
        0.1 + 0.2, 1 / 3, 1e11 / 7, 1e-7
    ),
    "named-normal-gamma": pw.NormalGammaPrior([0.1, 0.2], 1.0, 2.0, 1 / 3, names=["a", "b"]),
    "exchangeable-beta-any-arms": pw.ExchangeableBetaPrior(1 / 3, 1e11 / 7),
    "exchangeable-logit-normal-any-arms": pw.ExchangeableLogitNormalPrior(0.1 + 0.2, 1 / 3, -0.2),
    "named-logit-normal": pw.LogitNormalPrior([1 / 3, -4.0], np.eye(2), names=["a", "b"]),
    "logistic": pw.LogisticPrior([1 / 3, -4.0], np.eye(2), FEATURES, names=["a", "b", "c"]),
    "logistic-statistics": pw.families.LogisticStatistics(
        [[[0.1 + 0.2, -1.0], [1 / 3, 5e-324]], [[2.0, 1.0], [0.0, 0.0]]],
        [[1.0, 0.0], [0.3, 0.0]],
        [2, 1],
        names=["a", "b"],
    ),
    "awkward-floats": pw.GaussianPrior(
        [0.1 + 0.2, -0.0, 5e-324], np.diag([1 / 3, 1e-300, 1e99]), [1e-99, np.pi, 2**-52]
    ),
    "mixture": pw.MixturePrior(
        [pw.BetaPrior([1, 2], 3.0), pw.BetaPrior([0.1, 7], 1.0)], [0.3, 0.7]
    ),
    "exchangeable-mixture": pw.families.ExchangeableMixturePrior(
        [pw.ExchangeableBetaPrior(1 / 3, 2.0), pw.ExchangeableBetaPrior(0.1 + 0.2, 1e9 / 7)],
        [0.3, 0.7],
    ),
    "named-gaussian": pw.GaussianPrior([0.1, 0.2], np.eye(2), names=["red", "grün"]),
    "named-beta": pw.BetaPrior([0.1, 0.2], 1.0, names=("red", "green")),
    "named-finite": pw.FinitePrior(PLAIN_TASKS, SKEW, names=["a", "b", "c"]),
    "named-linear": pw.LinearGaussianPrior([0.1], [[1.0]], contexts=SPHERE, names=list("abcd")),
    "gaussian-statistics": pw.GaussianStatistics(
        [[2, 0], [1, 3]],
        [[0.1 + 0.2, 0.0], [1 / 3, -1e-9]],
        [[1.0, 0.0], [1.0, np.pi]],
        names=["a", "b"],
    ),
    "gaussian-estimates": pw.GaussianStatistics.from_estimates(
        [[28.0, np.nan], [1 / 3, 8.0]], [[15.0, 1.0], [3.0, 7.0]], noise_var=0.3
    ),
    "beta-statistics": pw.BetaStatistics([[1, 0], [3, 2]], [[2, 0], [3, 5]], names=["x", "y"]),
    "finite-statistics": pw.FiniteStatistics(
        [[-np.inf, -1 / 3, 0.0]], candidates=pw.FinitePrior(NORMAL_TASKS, [0.5, 0.3, 0.2])
    ),
    "linear-statistics": pw.LinearStatistics([[[2.0]]], [[1 / 3]], [7.0], [2], names=["u", "v"]),
    "linear-statistics-by-noise": pw.LinearStatistics(
        [[[2.0]]], [[1 / 3]], [7.0], [2], log_noise=[0.1], noise_var=[0.5, 1 / 3]
    ),
    "mixture-statistics": MixtureStatistics((pw.BetaStatistics([[1]], [[2]]),)),
    "own-contexts": OWN_CONTEXTS,
    "own-contexts-statistics": MixtureStatistics(
        (pw.LinearStatistics([[[2.0]]], [[1 / 3]], [7.0], [2]),) * 2,
        laws=[each.contexts for each in OWN_CONTEXTS.components],
        log_contexts=[[-np.inf, 0.1 + 0.2]],
    ),
    "normal-contexts": pw.families.NormalContexts([[1 / 3], [0.1]], [[0.1 + 0.2]], [-1e-9]),
    "bernoulli-rewards": SUCCESSES,
    "normal-rewards": NORMALS,
    "mdp-statistics": pw.families.MdpStatistics(
        [[[[2.0], [0.0]]]], [[[3.0, 0.0]]], [[[1 / 3, 0.0]]], [[[0.1, 0.0]]], names=["l", "r"]
    ),
    "finite-mdp": pw.families.FiniteMdpPrior(
        [[[[1 / 3, 2 / 3], [1, 0]], [[0, 1], [0.1, 0.9]]]],
        [[0.1 + 0.2, -1.0], [5e-324, np.pi]],
        [1.0],
        start=[0.7, 0.3],
        round_steps=3,
        names=["stay", "go"],
    ),
    "finite-pomdp": pw.FinitePomdpPrior(
        [[[1 / 3, 2 / 3]] * 2, [[0, 1], [0.1, 0.9]]],
        [[[1.0]] * 2] * 2,
        [[0.1 + 0.2, -1.0], [5e-324, np.pi]],
        [0.7, 0.3],
        start=[[0.7, 0.3], [1 / 3, 2 / 3]],
        round_steps=3,
        planner="qmdp",
        names=["stay", "go"],
        observation_names=["dark"],
    ),
    "particle": particle_models.times(particles=32, names=["fast", "slow"]),
    "particle-of-draws": particle_models.given(),
    "particle-with-contexts": particle_models.logistic(particles=16, impossible="reset"),
    "particle-statistics": ParticleStatistics(
        [[1, 0], [0, -1]], [[1 / 3, -1e-9], [0.1 + 0.2, 0.0]], 2, names=["a", "b"]
    ),
    "named-mdp": pw.families.riverswim(1 / 3, states=3),
    "sphere-contexts": SPHERE,
    "given-contexts": pw.GivenContexts(FEATURES),
}


def _share_of_wins(values: FloatArray, seen: pw.core.Seen) -> FloatArray:
    """How often each arm is best among the draws; those that tie share the win."""
    wins = values == values.max(axis=2, keepdims=True)
    return (wins / wins.sum(axis=2, keepdims=True)).mean(axis=1)


def _best_in_both(drawn: Any, seen: pw.core.Seen) -> FloatArray:
    """Play the best arm of either draw, at random."""
    values = seen.masked(drawn.values(seen))
    best = values == values.max(axis=2, keepdims=True)
    return (best / best.sum(axis=2, keepdims=True)).mean(axis=1)


SAMPLING_POLICIES = {
    "thompson": pw.ThompsonSampling(),
    "one-shot": pw.KShotThompson(1),
    "k-shot": pw.KShotThompson(5),
    "max": pw.PosteriorSampling(3, "max"),
    "sum": pw.PosteriorSampling(8, "sum"),
    "softmax": pw.PosteriorSampling(2, "softmax"),
    "own-rule": pw.PosteriorSampling(3, _share_of_wins),
}

POLICIES = {
    "receding-horizon": pw.RecedingHorizon(3, 2, 0.5),
    "receding-horizon-online": pw.RecedingHorizon(2, 4, "online"),
    "receding-horizon-own-alpha": pw.RecedingHorizon(
        2, 2, lambda step, horizon: 1.0 - step / horizon
    ),
    "receding-horizon-none": pw.RecedingHorizon(2, 2, 0.0),
    "knowledge-gradient": pw.KnowledgeGradient(2, 3),
    "knowledge-gradient-of-the-paper": pw.KnowledgeGradient(
        2, 3, ties="random", when_certain="best"
    ),
    "environments": pw.policies.EnvironmentSampling(2, _best_in_both),
    "uniform": pw.Uniform(),
    "greedy": pw.Greedy(),
    "bayes-ucb": pw.BayesUCB(),
    "top-two": pw.TopTwoThompson(),
    "exact-knowledge-gradient": pw.ExactKnowledgeGradient(),
    "exact-knowledge-gradient-only": pw.ExactKnowledgeGradient(alpha=1.0),
    "uniform-then": pw.UniformThen(2, pw.ThompsonSampling()),
}

COMPILED = {*SAMPLING_POLICIES, *POLICIES} - {"own-rule", "environments"}
"""Policies that must run compiled with every prior above; all others run in NumPy."""

COMPILED_WITH_A_STATE = {*SAMPLING_POLICIES, "uniform", "uniform-then"} - {"own-rule"}
"""Those that must with every prior over problems with a state, but for normal rewards."""
