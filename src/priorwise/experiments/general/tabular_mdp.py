"""Rivers like RiverSwim whose currents are unknown; wrong priors mistake how often a stroke to the
right succeeds.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from priorwise.core.protocols import Policy
from priorwise.experiments.general.case import Case, Limit
from priorwise.families.tabular_mdp.prior import DirichletMdpPrior
from priorwise.families.tabular_mdp.riverswim import RIGHT, riverswim
from priorwise.policies.thompson import ThompsonSampling
from priorwise.sensitivity.bounds.pomdp import pomdp_reward_bound

ROUND_STEPS: Final = 20
ROUNDS: Final = 2


def believed(factor: float) -> DirichletMdpPrior:
    """Return the prior under which moving up is ``factor`` times as likely, at the cost of staying
    where one is; each row is worth as many moves as before.
    """
    true = riverswim(round_steps=ROUND_STEPS)
    alpha = true.transitions.copy()
    for state in range(true.states - 1):
        up, here = alpha[state, RIGHT, state + 1], alpha[state, RIGHT, state]
        moved = min(factor * up, 0.99 * (up + here)) - up
        alpha[state, RIGHT, state + 1] += moved
        alpha[state, RIGHT, state] -= moved
    return true.replaced(transitions=alpha)


def vague() -> DirichletMdpPrior:
    """Every move is possible, Dirichlet(1)."""
    true = believed(1.0)
    return true.replaced(transitions=np.ones(true.transitions.shape))


def limit(true: Any, believed: Any, policy: Policy, horizon: int, seed: int) -> Limit:
    """Theorem on general decision problems, with the certified distance of the priors."""
    bound = pomdp_reward_bound((true, believed), policy, horizon)
    return Limit(bound.tv.upper, bound.value, bound.trivial)


CASE: Final = Case(
    title="Tabular MDP",
    axis="chance to move up believed, as a multiple of the true one",
    true=lambda: believed(1.0),
    wrong=believed,
    vague=vague,
    grid=(0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 0.95, 0.99, 0.999, 0.9999, 1.001, 1.1, 1.5),
    named=(0.1, "a river thought ten times as hard to climb"),
    policy=ThompsonSampling(),
    horizon=ROUNDS * ROUND_STEPS,
    tasks=200,
    note=f"Rivers around RiverSwim, {ROUNDS} rounds of {ROUND_STEPS} steps, Thompson sampling.",
    limit=limit,
)
