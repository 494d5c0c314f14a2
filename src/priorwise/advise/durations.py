"""About how long a policy takes for a task, so that simulations last about a minute.

These are nominal costs of a quiet processor. Nothing reads a clock: the same call simulates the
same tasks on every machine.
"""

from typing import Any, Final

from priorwise.core.lookahead import RepeatedLookaheadBelief
from priorwise.core.protocols import LookaheadBelief
from priorwise.core.sizes import draws_per_pull
from priorwise.policies.bayes_ucb import BayesUCB
from priorwise.policies.uniform_then import UniformThen
from priorwise.simulate.engine import choose

MICROSECONDS: Final = {"draw": 0.2, "mean": 0.2, "look": 3.0, "repeated": 10.0}
"""What a pull or a decision of one task takes, by what its policy asks of a belief. A prior may say
otherwise by an attribute ``microseconds``.
"""
NUMPY: Final = 60.0
"""How many times as much it takes in NumPy."""
LEAST, MOST = 64, 4_096
"""Tasks that are simulated at least, the width of a compiled tile, and at most."""


def seconds_of_task(
    prior: Any, believed: Any, policy: Any, horizon: int, batch: int, *, masked: bool
) -> float:
    """Return about how long one processor takes for a task."""
    costs = {**MICROSECONDS, **getattr(believed, "microseconds", {})}
    engine = choose(prior, believed, policy, horizon, masked=masked, engine="auto").engine
    decisions, asks, often = horizon, "draw", 1
    if isinstance(policy, UniformThen):
        decisions, policy = decisions - policy.rounds, policy.then
    if hasattr(policy, "scores"):  # these decide once a batch
        decisions = -(-decisions // batch)
        needs = getattr(policy, "needs", ())
        looks = {LookaheadBelief: "look", RepeatedLookaheadBelief: "repeated"}
        own = "draw" if isinstance(policy, BayesUCB) else "mean"
        asks = next((looks[each] for each in needs if each in looks), own)
    else:
        often = draws_per_pull(policy, believed.arms)
    once = horizon * costs["draw"] + decisions * often * costs[asks]
    return 1e-6 * once * (NUMPY if engine == "numpy" else 1.0)


def tasks_within(seconds: float, each: float, most: int = MOST) -> int:
    """Return how many tasks fit into so many seconds if each takes ``each``, in whole tiles."""
    return int(min(max(seconds / each // LEAST * LEAST, LEAST), most))
