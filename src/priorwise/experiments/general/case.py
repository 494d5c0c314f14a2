"""What a case is: tasks of one prior, played by a policy that believes wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from priorwise.core.protocols import Policy
from priorwise.sensitivity.bounds.bandits import reward_bound


@dataclass(frozen=True)
class Limit:
    """Distance of the wrong prior, what it may change of the reward, and what any prior may."""

    tv: float
    reward: float
    trivial: float


def bandit_limit(true: Any, believed: Any, policy: Policy, horizon: int, seed: int) -> Limit:
    """Theorem on bandits, with the certified distance of the priors."""
    bound = reward_bound(true, believed, policy, horizon)
    return Limit(bound.tv.upper, bound.value, bound.trivial)


@dataclass(frozen=True)
class Case:
    """A problem and wrong priors for it, one for each misspecification of a grid.

    Parameters
    ----------
    title
        Of the figure.
    axis
        What the misspecification is, as the horizontal axis says it.
    true
        Makes the prior that tasks are drawn from, and that the oracle believes.
    wrong
        Makes the prior at a misspecification.
    vague
        Makes a prior that knows next to nothing.
    grid
        Misspecifications, positive and ascending.
    named
        One of the grid that loses for sure, and what to call it.
    policy, horizon, tasks
        Who plays, for how many steps, and how many tasks in a replicate.
    note
        What the figure says of the problem.
    limit
        ``(true, believed, policy, horizon, seed)`` to the theorem's bound.

    """

    title: str
    axis: str
    true: Callable[[], Any]
    wrong: Callable[[float], Any]
    vague: Callable[[], Any]
    grid: tuple[float, ...]
    named: tuple[float, str]
    policy: Policy
    horizon: int
    tasks: int
    note: str
    limit: Callable[[Any, Any, Policy, int, int], Limit] = bandit_limit
