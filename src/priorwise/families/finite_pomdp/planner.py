"""Which plan a prior makes for its candidates, and plans that are kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, final

from priorwise.core import sizes
from priorwise.core.errors import ArgumentError
from priorwise.families.finite_pomdp.planning import MOST_BELIEFS, Policy, exact_plan, qmdp_plan

if TYPE_CHECKING:
    from priorwise.families.finite_pomdp.prior import FinitePomdpPrior

Planner = Literal["auto", "exact", "qmdp"]

KEPT_PLANS: Final = 64
"""Plans that are kept, for candidates and a number of steps."""


@final
@dataclass(frozen=True)
class Alike:
    """Priors with the same candidates and planner are equal here."""

    what: tuple[Any, ...]
    prior: FinitePomdpPrior = field(compare=False, repr=False)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.what)


@lru_cache(maxsize=KEPT_PLANS)
def planned(alike: Alike, steps: int) -> list[Policy]:
    """Plan every candidate of a prior."""
    prior = alike.prior
    sizes.check_memory(
        "horizon",
        f"{sizes.amount(steps)} planned steps",
        16.0 * prior.rewards.size * sizes.as_float(steps),
        "lower the horizon, or set round_steps",
    )
    found, left = [], MOST_BELIEFS
    for model in prior.models if prior.planner != "qmdp" else ():
        plan = exact_plan(model, steps, left)
        if plan is None:
            break
        left -= plan.beliefs
        found.append(plan)
    if len(found) == prior.support:
        return found
    if prior.planner == "exact":
        raise ArgumentError(
            "planner",
            f"cannot be 'exact' for rounds this long: plans of {steps} steps for "
            f"{prior.support} candidates reach more than {MOST_BELIEFS:,} beliefs",
            cure="take 'qmdp' or 'auto', or lower the horizon or round_steps",
        )
    return [qmdp_plan(model, steps) for model in prior.models]
