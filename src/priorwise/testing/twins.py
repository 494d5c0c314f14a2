"""Compiled runs against NumPy runs, action for action."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from priorwise.core.protocols import Policy, Prior
from priorwise.core.runs import Run
from priorwise.core.types import BoolArray
from priorwise.policies.bayes_ucb import BayesUCB
from priorwise.policies.exact_knowledge_gradient import ExactKnowledgeGradient
from priorwise.policies.greedy import Greedy
from priorwise.policies.posterior_sampling import PosteriorSampling
from priorwise.policies.receding_horizon import KnowledgeGradient, RecedingHorizon
from priorwise.policies.thompson import KShotThompson, ThompsonSampling
from priorwise.policies.top_two import TopTwoThompson
from priorwise.policies.uniform import Uniform
from priorwise.simulate.engine import choose
from priorwise.simulate.run import simulate

TASKS: Final = 200
HORIZON: Final = 6

POLICIES: Final[dict[str, Policy]] = {
    "thompson": ThompsonSampling(),
    "k-shot": KShotThompson(3),
    "sum": PosteriorSampling(4, "sum"),
    "softmax": PosteriorSampling(2, "softmax"),
    "receding-horizon": RecedingHorizon(3, 2, "online"),
    "knowledge-gradient": KnowledgeGradient(2, 3, ties="random", when_certain="best"),
    "bayes-ucb": BayesUCB(),
    "top-two": TopTwoThompson(most_draws=20),
    "exact-knowledge-gradient": ExactKnowledgeGradient(),
    "greedy": Greedy(),
    "uniform": Uniform(),
}
"""Policies on which a prior is tried."""


def some_arms(tasks: int, arms: int, seed: int) -> BoolArray:
    """Availability by task, ``(task, arm)``: a random set of arms each, never empty."""
    rng = np.random.default_rng(seed)
    mask = rng.random((tasks, arms)) < 0.6
    mask[np.arange(tasks), rng.integers(arms, size=tasks)] = True
    return mask


def offers(prior: Prior, policy: Policy) -> bool:
    """Whether the prior's belief has all that the policy needs."""
    belief = prior.belief(1)
    return all(isinstance(belief, needed) for needed in getattr(policy, "needs", ()))


def compiled(prior: Prior, policy: Policy) -> bool:
    """Whether prior and policy offer tile functions."""
    return choose(prior, prior, policy, HORIZON, masked=False, engine="auto").engine == "compiled"


def same_run(first: Run, second: Run) -> None:
    """Assert that two kept runs did the same: equal actions, and rewards equal but for rounding."""
    np.testing.assert_array_equal(first.actions, second.actions)
    scale = 1.0 + np.abs(second.rewards).max()
    np.testing.assert_allclose(first.rewards, second.rewards, rtol=1e-9, atol=1e-12 * scale)
    assert first.resets == second.resets
    assert (first.mean_regret is None) == (second.mean_regret is None)
    if first.mean_regret is not None and second.mean_regret is not None:
        np.testing.assert_allclose(
            first.mean_regret, second.mean_regret, rtol=1e-9, atol=1e-12 * scale
        )


def twins(prior: Prior, believed: Prior, policy: Policy, *, available: Any, seed: int) -> None:
    """Assert that the compiled run is the NumPy run."""
    runs = [
        simulate(
            prior,
            policy,
            horizon=HORIZON,
            tasks=TASKS,
            seed=seed,
            believed=believed,
            available=available,
            keep=True,
            engine=engine,
        )
        for engine in ("compiled", "numpy")
    ]
    same_run(*runs)
