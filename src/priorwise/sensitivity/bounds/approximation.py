"""What approximate posteriors add to the bounds: how far actions stand from those of the exact
posterior.

The theorem is about policies with exact posteriors. With ``pi_h`` and ``pi'_h`` the laws of action
h given a history under the exact posteriors of p and q, and ``~pi_h`` and ``~pi'_h`` the laws that
are played,

    TV(~pi_h, ~pi'_h) <= TV(~pi_h, pi_h) + TV(pi_h, pi'_h) + TV(pi'_h, ~pi'_h).

Summed over steps, with histories of real play on tasks of p, the left side bounds the distance of
the trajectories. The middle of the right side is at most ``2 n H eps``, because the proof of the
theorem lets any rule collect the histories. The two others are the term of this module. Proved in
docs/sensitivity.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from priorwise.core import argument_checks, validation
from priorwise.core.approximate import ComparableBelief, WeightedDraws, is_approximate
from priorwise.core.errors import ArgumentError
from priorwise.core.estimates import Estimate, mean_estimate
from priorwise.core.hashing import mix
from priorwise.core.protocols import StagedPolicy, monte_carlo_n, offers
from priorwise.core.seen import Seen
from priorwise.core.streams import Purpose, Streams
from priorwise.core.types import FloatArray
from priorwise.simulate.steps import environments, steps
from priorwise.theory.action_laws import tied_law
from priorwise.theory.distance import BothBeliefs, Distance, FirstDecides

BLOCK: Final = 50
HISTORIES: Final = 200
DRAWS: Final = 2048
FEWEST: Final = 100
"""Effective draws below which a posterior is not resolved."""
MOST_UNRESOLVED: Final = 0.01
EXACT: Final = Distance(0.0, "exact", 0.0, 0.0)


@final
@dataclass(frozen=True)
class Approximation:
    """How far a policy's actions stand from those of the exact posteriors, in total variation,
    summed over the steps of a task.

    ``true`` is that of the true prior, ``believed`` that of the wrong one, both at histories of
    the policy that believes the true prior. ``total`` is their sum: bounds add it to ``2 n H eps``.
    ``unresolved`` is the share of posteriors with fewer than 100 effective draws.
    """

    true: Estimate
    believed: Estimate
    total: Distance
    unresolved: float = 0.0

    @property
    def reliable(self) -> bool:
        """Whether at most 1% of posteriors are unresolved."""
        return self.unresolved <= MOST_UNRESOLVED

    @property
    def parts(self) -> str:
        """What each belief adds, in words."""
        few = f", {self.unresolved:.0%} of posteriors unresolved" if self.unresolved else ""
        return f"true prior {self.true.mean:.2g}, wrong prior {self.believed.mean:.2g}{few}"

    def __str__(self) -> str:
        """The sum and its parts."""
        if self.total.kind == "exact":
            return "0 (exact posteriors)"
        return f"{self.total.value:.4g} ± {self.total.std_error:.1g} ({self.parts})"


def known_approximation(p: Any, q: Any, policy: Any) -> Distance | None:
    """Return the exact term 0 if both posteriors are exact or the policy does not look at them,
    otherwise None.
    """
    if not is_approximate(p) and (q is None or not is_approximate(q)):
        return EXACT
    blind = policy is not None and monte_carlo_n(policy, p.arms) == 0
    return EXACT if blind else None


def approximation_of(
    p: Any,
    q: Any,
    policy: Any,
    horizon: int,
    *,
    given: float | Distance | None,
    estimate: bool,
    seed: int | None,
) -> Distance | None:
    """Return the term that a bound adds: as it is given, 0 for exact posteriors, or an estimate if
    that is wanted; None if it is not known.
    """
    if given is not None:
        return given_approximation(given)
    known = known_approximation(p, q, policy)
    if known is not None or not estimate or q is None or policy is None:
        return known
    if seed is None:
        raise ArgumentError(
            "seed",
            "must be given with estimate=True",
            cure="what an approximate posterior adds is estimated",
        )
    found = approximation_error(p, q, policy, horizon, seed=seed)
    return found.total if found is not None and found.reliable else None


def given_approximation(given: float | Distance) -> Distance:
    """Check a term that the caller knows; a number is a bound on it."""
    if isinstance(given, Distance):
        return given
    value = validation.not_negative("approximation", given)
    return Distance(value, "upper", 0.0, value)


def approximation_error(
    p: Any, q: Any, policy: Any, horizon: int, *, seed: int, histories: int = HISTORIES
) -> Approximation | None:
    """Estimate what approximate posteriors add to the bounds on a wrong prior.

    It is ``sum_h E TV(exact law of action h, law that is played)`` for the belief of ``p`` plus the
    same for that of ``q``, over histories of the policy that believes ``p``. Exact laws come from
    2,048 weighted draws. If a policy plays the largest value in k draws, the laws are those of its
    arm. For other rules on k draws the term is k times the distance of the posteriors, which bounds
    that of the arms. The noise of the weights raises a distance on average.

    Parameters
    ----------
    p, q
        The true prior and the one that is believed instead.
    policy
        The algorithm.
    horizon
        Pulls in a task.
    seed
        The same seed gives the same estimate.
    histories
        Number of histories.

    Returns
    -------
    Approximation | None
        None if the family cannot compare its approximation with the posterior, or the policy uses
        the posterior in other ways than by drawing from it.

    Examples
    --------
    >>> import priorwise as pw
    >>> p = pw.GaussianPrior([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]])
    >>> approximation_error(p, p, pw.ThompsonSampling(), 5, seed=0).total.kind
    'exact'

    """
    horizon, seed = validation.count("horizon", horizon), validation.seed(seed)
    histories = validation.count("histories", histories, least=2)
    argument_checks.fixed_prior("p", p)
    argument_checks.fixed_prior("q", q)
    argument_checks.policy("policy", policy, memory=True)
    if known_approximation(p, q, policy) is not None:
        return Approximation(Estimate(0.0, 0.0), Estimate(0.0, 0.0), EXACT)
    if not _comparable(p, policy) or not _comparable(q, policy):
        return None
    argument_checks.playing(policy, p)
    sums, few, looked = np.zeros((2, histories)), 0, 0
    for first in range(0, histories, BLOCK):
        some = np.arange(first, min(first + BLOCK, histories))
        tasks = some.astype(np.uint64)
        streams, others = Streams(seed, tasks), Streams(mix(seed + 1), tasks)
        for step in steps(
            environments(p, streams),
            BothBeliefs(p.belief(len(tasks)), q.belief(len(tasks))),
            FirstDecides(policy),
            streams,
            horizon=horizon,
            arms=p.arms,
        ):
            rule, stream = _rule(policy, step.seen), others.at(Purpose.WORLD, step.seen.step)
            for row, belief in enumerate((step.belief.p, step.belief.q)):
                if rule is None or not offers(belief, ComparableBelief):
                    continue
                drawn = belief.weighted_draws(stream, DRAWS, step.seen)
                sums[row, some] += _distance(rule, drawn, step.seen)
                few += int((drawn.effective < FEWEST).sum())
                looked += len(tasks)
    mean = mean_estimate(sums.sum(axis=0))
    true, believed = (mean_estimate(each) for each in sums)
    total = Distance(mean.mean, "estimate", mean.std_error, float(2 * horizon))
    return Approximation(true, believed, total, few / max(looked, 1))


def _comparable(prior: Any, policy: Any) -> bool:
    """Whether the exact law of a policy's action can be estimated for a prior."""
    if not is_approximate(prior):
        return True
    draws_only = {"draw", "draw_each"} >= set(getattr(policy, "uses", ["unknown"]))
    return draws_only and offers(prior.belief(1), ComparableBelief)


def _rule(policy: Any, seen: Seen) -> Any:
    """Return the policy that looks at the posterior at this step; None if none does."""
    if not isinstance(policy, StagedPolicy):
        return policy
    return None if policy.then is None or seen.step <= policy.rounds else _rule(policy.then, seen)


def _distance(policy: Any, drawn: WeightedDraws, seen: Seen) -> FloatArray:
    """Distance of the laws of the action, or a bound on it, ``(task,)``."""
    n, rule = monte_carlo_n(policy, seen.arms) or 0, getattr(policy, "rule", None)
    if rule == "max" or (rule == "sum" and n == 1):
        first, second = (
            _law_of_best(weights, drawn.values, n, seen) for weights in (drawn.exact, drawn.used)
        )
        return np.asarray(np.abs(first - second).sum(axis=1) / 2.0)
    return np.minimum(1.0, n * np.abs(drawn.exact - drawn.used).sum(axis=1) / 2.0)


def _law_of_best(weights: FloatArray, values: FloatArray, k: int, seen: Seen) -> FloatArray:
    """Law of the arm with the largest value in any of k draws from weighted ones, ``(task, arm)``.

    The best of k draws is among the first j of all in ascending order with probability ``F_j^k``.
    """
    values = seen.masked(values)
    best = tied_law(values.reshape(-1, seen.arms)).reshape(values.shape)
    order = values.max(axis=2).argsort(axis=1, kind="stable")
    below = np.take_along_axis(weights, order, axis=1).cumsum(axis=1) ** k
    chance = np.diff(below, axis=1, prepend=0.0)
    return np.einsum("td,tda->ta", chance, np.take_along_axis(best, order[:, :, None], axis=1))
