"""The law of a task's diameter ``diam(mu) = max_a mu_a - min_a mu_a`` under a prior, and its tail
expectations.

In a contextual problem the variable is the average over steps of the diameter at that step's
contexts.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from priorwise.core import argument_checks, sizes, validation
from priorwise.core.errors import ArgumentTypeError, MissingCapability
from priorwise.core.protocols import ValuedEnvironment, offers
from priorwise.core.rewards import BanditEnvironment
from priorwise.core.seen import Seen
from priorwise.core.streams import Purpose, Stream, Streams
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.registry import family_for, has_part
from priorwise.simulate.steps import steps
from priorwise.theory.conditions import ConditionedPrior, TailCondition
from priorwise.theory.diameters import DiameterLaw, FiniteLaw, SampleLaw
from priorwise.theory.influence import refuse_influence

DRAWS: Final = 200_000
ENTRIES: Final = 1 << 22
"""Numbers drawn at a time."""


def check_prior(prior: Any) -> None:
    """Raise an error for what has no diameter."""
    argument_checks.role("prior", prior, "a prior")
    if hasattr(prior, "for_arms"):
        raise ArgumentTypeError(
            "prior",
            "must have a fixed number of arms",
            got=type(prior),
            cure="pass prior.for_arms(n)",
        )
    argument_checks.role("prior", prior, "a prior", "arms")


def conditions_of(prior: Any) -> tuple[TailCondition, ...]:
    """Return the conditions that hold for a prior; none for a stranger that states none.

    In a contextual problem they hold given any contexts. They bound the tail of one step's
    diameter, and so that of the average over steps: tail expectations are subadditive, and all
    steps have the same law.
    """
    check_prior(prior)
    if isinstance(prior, ConditionedPrior):
        return tuple(prior.tail_conditions())
    if not has_part(prior, "tail_conditions"):
        return ()
    return tuple(family_for(prior, "tail_expectation").tail_conditions(prior))


def largest_diameter(prior: Any) -> float | None:
    """Return the essential supremum of the diameter, where it is known."""
    if not has_part(prior, "largest_diameter"):
        return None
    return family_for(prior, "tail_expectation").largest_diameter(prior)


def exact_law(prior: Any) -> DiameterLaw | None:
    """Return the law of the diameter where its tail expectations can be computed."""
    check_prior(prior)
    if prior.arms == 1:
        return FiniteLaw(np.zeros(1), np.ones(1))
    if not has_part(prior, "diameter"):
        return None
    return family_for(prior, "tail_expectation").diameter(prior)


def diameter_law(prior: Any, horizon: int, *, seed: int, draws: int = DRAWS) -> DiameterLaw:
    """Return the law of ``(1/H) sum_h diam_h`` under a prior: exact where it is known, otherwise
    from draws of environments.

    One law answers at many levels. Exact for finite priors, one arm, two jointly normal arms, and
    independent arms (Beta, or normal with one covariance between all) of at most 8 distinct laws.

    Parameters
    ----------
    prior
        Any prior whose environments have ``values(signal)`` and show contexts that do not depend on
        the actions.
    horizon
        Steps over which contexts are averaged; does not matter without contexts.
    seed, draws
        Environments that an estimate draws.

    """
    horizon, draws = validation.count("horizon", horizon), validation.count("draws", draws)
    check_prior(prior)
    refuse_influence(prior, "the law of the diameter", "reward_tails and pomdp_reward_bound")
    return exact_law(prior) or sample_law(prior, horizon, seed=validation.seed(seed), draws=draws)


def sample_law(prior: Any, horizon: int, *, seed: int, draws: int) -> SampleLaw:
    """Draw environments, and contexts at each step as a simulation would."""
    sizes.check_memory("draws", draws, 32.0 * sizes.as_float(draws), "lower draws")
    if hasattr(prior, "contexts"):
        size = f"{sizes.amount(draws)} of {sizes.amount(horizon)} pulls"
        sizes.check_work(
            "draws", size, float(draws) * sizes.as_float(horizon), "lower draws or horizon"
        )
    values = np.empty(draws)
    numbers = int(prior.arms) * int(getattr(prior, "dim", 1))  # that a task's environment may take
    block = max(1, min(draws, ENTRIES // max(numbers, 1)))
    for start in range(0, draws, block):
        tasks = np.arange(start, min(start + block, draws), dtype=np.uint64)
        values[start : start + len(tasks)] = _diameters(prior, horizon, Streams(seed, tasks))
    return SampleLaw.of(values, conditions_of(prior), largest_diameter(prior))


def _diameters(prior: Any, horizon: int, streams: Streams) -> FloatArray:
    environment: Any = prior.sample(streams.at(Purpose.ENVIRONMENT, 0), streams.tasks)
    if isinstance(environment, BanditEnvironment):
        return np.ptp(environment.means, axis=1)
    if not offers(environment, ValuedEnvironment):
        raise MissingCapability(
            "prior",
            f"must have environments with values(signal), unlike {type(environment).__name__}",
            cure="add it, or tail_conditions() to the prior, or use pomdp_reward_bound",
        )
    total = np.zeros(streams.tasks)
    for step in steps(environment, None, _FirstArm(), streams, horizon=horizon, arms=prior.arms):
        total += np.ptp(np.asarray(step.values), axis=1)
    return total / horizon


class _FirstArm:
    """Contexts do not depend on what is played."""

    def act(self, belief: None, seen: Seen, rng: Stream) -> IntArray:
        return np.zeros(rng.tasks, dtype=np.int64)

    def monte_carlo_n(self, arms: int) -> int:
        return 0
