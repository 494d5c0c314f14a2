"""What is at stake where trajectories diverge: the tails that turn probabilities into rewards.

Where actions do not influence later signals, these are the tails of the diameter (main theorem). In
a problem with a state two runs of one task may meet different states, and the tails of the average
reward under both priors take their place (theorem on Bayesian POMDPs).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

from priorwise.core.protocols import Policy
from priorwise.sensitivity.bounds.pomdp import reward_limits, reward_tails
from priorwise.sensitivity.exact.evaluation import exact_reward_tails
from priorwise.sensitivity.exact.histories import TooManyHistories
from priorwise.sensitivity.tails.diameter import DRAWS, diameter_law
from priorwise.theory.diameters import DiameterLaw
from priorwise.theory.influence import has_state

TASKS: Final = 20_000
"""Tasks simulated for the tails of the average reward."""


@final
@dataclass(frozen=True, eq=False)
class Stakes:
    """A law whose tail expectation a divergence of given probability may cost per pull, and what
    that costs any two policies, in words.
    """

    law: DiameterLaw
    any_two: str


def stakes_of(
    p: Any, q: Any, policy: Policy, horizon: int, *, seed: int, tasks: int, most: int | None
) -> Stakes:
    """Return the stakes of a problem; ``most`` histories of a finite one are enumerated."""
    if not has_state(p):
        contextual = hasattr(p, "contexts")  # there a draw costs as much as a task
        draws = max(DRAWS // horizon, DRAWS // 10) if contextual else DRAWS
        return Stakes(diameter_law(p, horizon, seed=seed, draws=draws), "H E[diam]")
    limits = reward_limits(p)
    centre = 0.0 if limits is None else (limits[0] + limits[1]) / 2.0
    words = "H (E|X| + E|X'|), X average rewards"
    if centre:
        words += f" minus {centre:g}"
    if most is not None:
        try:
            exact = exact_reward_tails(p, q, policy, horizon, centre=centre, most=most)
            return Stakes(exact, words)
        except TooManyHistories:
            pass
    tails = reward_tails(
        p, q, policy, horizon=horizon, tasks=min(tasks, TASKS), seed=seed, centre=centre
    )
    return Stakes(tails, words)
