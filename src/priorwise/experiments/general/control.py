"""A cart whose mass and friction are unknown; wrong priors mistake how strongly a push acts."""

from typing import Any, Final

import numpy as np

from priorwise.core.protocols import Policy
from priorwise.experiments.general.case import Case, Limit
from priorwise.families.linear_quadratic.plant import Plant
from priorwise.families.linear_quadratic.prior import LinearQuadraticPrior
from priorwise.policies.thompson import ThompsonSampling
from priorwise.sensitivity.bounds.pomdp import pomdp_reward_bound, reward_tails

PLANT: Final = Plant(
    state_cost=np.diag([1.0, 0.1]), action_cost=[[1.0]], noise_var=[0.01, 0.04], start=[1.0, 0.0],
    limit=5.0,
)  # fmt: skip
TRANSITION: Final = np.array([[1.0, 0.3], [0.0, 1.0]])  # place and speed
CONTROL: Final = np.array([[0.0], [0.5]])
VARIANCE: Final = 0.01


def believed(factor: float) -> LinearQuadraticPrior:
    """Return the prior under which a push moves the cart ``factor`` times as much."""
    return LinearQuadraticPrior(TRANSITION, factor * CONTROL, VARIANCE * np.eye(3), PLANT)


def vague() -> LinearQuadraticPrior:
    """Nothing moves by itself, and a push may move it either way."""
    return LinearQuadraticPrior(np.eye(2), np.zeros((2, 1)), 0.05 * np.eye(3), PLANT)


def limit(true: Any, believed: Any, policy: Policy, horizon: int, seed: int) -> Limit:
    """Theorem on general decision problems, with tails from simulated runs."""
    tails = reward_tails(true, believed, policy, horizon=horizon, tasks=2_000, seed=seed)
    bound = pomdp_reward_bound((true, believed), policy, horizon, tails=tails, estimate=True)
    return Limit(bound.tv.upper, bound.value, bound.trivial)


CASE: Final = Case(
    title="Linear-quadratic control",
    axis="strength of a push believed, as a multiple of the true one",
    true=lambda: believed(1.0),
    wrong=believed,
    vague=vague,
    grid=(0.25, 0.5, 0.8, 0.95, 0.99, 0.999, 0.9999, 1.001, 1.05, 1.25, 2.0, 4.0),
    named=(0.25, "a push thought a quarter as strong"),
    policy=ThompsonSampling(),
    horizon=10,
    tasks=100,
    note="A cart, 10 steps, Thompson sampling; states are cut at length 5.",
    limit=limit,
)
