"""Compiled runs against NumPy runs, action for action."""

from typing import Any, Final

import numpy as np

from priorwise import policies
from priorwise.core.protocols import MemoryPolicy, Policy, Prior
from priorwise.core.types import BoolArray
from priorwise.fitting.runs import Run
from priorwise.simulate.engine import choose
from priorwise.simulate.run import simulate

TASKS: Final = 200
HORIZON: Final = 6

POLICIES: Final[dict[str, Policy]] = {
    "thompson": policies.ThompsonSampling(),
    "k-shot": policies.KShotThompson(3),
    "sum": policies.PosteriorSampling(4, "sum"),
    "softmax": policies.PosteriorSampling(2, "softmax"),
    "receding-horizon": policies.RecedingHorizon(3, 2, "online"),
    "knowledge-gradient": policies.KnowledgeGradient(2, 3, ties="random", when_certain="best"),
    "bayes-ucb": policies.BayesUCB(),
    "top-two": policies.TopTwoThompson(most_draws=20),
    "exact-knowledge-gradient": policies.ExactKnowledgeGradient(),
    "greedy": policies.Greedy(),
    "uniform": policies.Uniform(),
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


def kept_run(
    prior: Prior, policy: Policy | MemoryPolicy, seed: int, *, tasks: int = TASKS, **options: Any
) -> Run:
    """Simulate a few tasks, and keep what they did."""
    return simulate(prior, policy, horizon=HORIZON, tasks=tasks, seed=seed, keep=True, **options)


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


def twins(
    prior: Prior, believed: Prior, policy: Policy, *, available: BoolArray | None, seed: int
) -> None:
    """Assert that the compiled run is the NumPy run."""
    compiled_run, numpy_run = (
        kept_run(prior, policy, seed, believed=believed, available=available, engine=engine)
        for engine in ("compiled", "numpy")
    )
    same_run(compiled_run, numpy_run)
