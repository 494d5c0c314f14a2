"""The law of a policy's action given its belief: exact where the family allows it, counted from
repeated decisions otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, final

import numpy as np

from priorwise.core.protocols import Belief, Policy, ScoredPolicy, Seen
from priorwise.core.streams import Stream
from priorwise.core.types import FloatArray
from priorwise.families.beta.argmax import beta_argmax
from priorwise.families.beta.prior import BetaBelief
from priorwise.families.gaussian.prior import GaussianBelief
from priorwise.families.linear.prior import LinearBelief
from priorwise.families.normal.argmax import RANK, line_argmax, normal_argmax
from priorwise.families.normal.distance import covariance_rank
from priorwise.policies.posterior_sampling import PosteriorSampling
from priorwise.policies.thompson import KShotThompson, ThompsonSampling
from priorwise.policies.uniform import Uniform
from priorwise.sensitivity.exact.enumeration import tied_law
from priorwise.sensitivity.exact.finite_actions import finite_action_law

MOST_ARMS: Final = 30
MOST_ARMS_LOW: Final = 100
"""Arms up to which the law of normal values is integrated: in general, and where they move in few
directions only.
"""

Source = Literal["exact", "quadrature"]


@final
@dataclass(frozen=True, eq=False)
class ActionLaw:
    """Probability of each arm, ``(task, arm)``, and whether it is exact or by quadrature."""

    probs: FloatArray
    source: Source


def action_law(policy: Policy, belief: Belief, seen: Seen) -> ActionLaw | None:
    """Return the law of the action, ``(task, arm)``, or None where it has to be sampled.

    * finite posteriors: by enumeration of the draws
    * Beta posteriors: Thompson sampling and its k-shot form, by quadrature to rounding
    * normal posteriors (bandits and linear contextual bandits): Thompson sampling, and the largest
      sum of k draws, whose mean is itself normal with a k-th of the covariance; by lattice
      quadrature, for up to 30 arms, or 100 that move in few directions; a law is within about 0.01
      in total variation (0.03 with ten arms or more), and the error is nearly the same for nearby
      posteriors
    * uniform play and the largest of known scores (greedy, Bayes-UCB, exact knowledge gradient),
      for any belief
    """
    enumerated = finite_action_law(policy, belief, seen)
    if enumerated is not None:
        return ActionLaw(enumerated, "exact")
    if isinstance(policy, Uniform):
        tasks = len(_leading(belief))
        return ActionLaw(tied_law(seen.masked(np.zeros((tasks, seen.arms)))), "exact")
    if isinstance(policy, ScoredPolicy):
        return ActionLaw(tied_law(policy.scores(belief, seen)), "exact")
    if isinstance(belief, BetaBelief) and (k := _largest_of(policy)):
        return ActionLaw(beta_argmax(belief.a, belief.b, k, seen.mask), "quadrature")
    if isinstance(belief, (GaussianBelief, LinearBelief)) and (k := _mean_of(policy)):
        return _normal_law(belief, seen, k)
    return None


def _normal_law(belief: GaussianBelief | LinearBelief, seen: Seen, k: int) -> ActionLaw | None:
    """Law of the largest of jointly normal values; None where sampling is cheaper."""
    cov = belief.covariance()
    if isinstance(belief, LinearBelief):
        cov = np.einsum("tai,tij,tbj->tab", seen.signal, cov, seen.signal)
    rank = covariance_rank(belief.prior.cov)
    low = rank <= RANK + 1 and rank < seen.arms - 1
    if seen.arms > (MOST_ARMS_LOW if low else MOST_ARMS):
        return None
    argmax = line_argmax if low else normal_argmax
    return ActionLaw(argmax(belief.mean(seen), cov / k, seen.mask), "quadrature")


def _leading(belief: Any) -> FloatArray:
    """Any array of the belief: its first axis is that of the tasks."""
    return next(value for value in vars(belief).values() if isinstance(value, np.ndarray))


def _largest_of(policy: Policy) -> int:
    """K if the policy plays the arm with the largest of k independent draws, 0 otherwise."""
    if isinstance(policy, ThompsonSampling):
        return 1
    if isinstance(policy, KShotThompson):
        return policy.k
    if isinstance(policy, PosteriorSampling) and (
        policy.rule == "max" or (policy.rule == "sum" and policy.k == 1)
    ):
        return policy.k
    return 0


def _mean_of(policy: Policy) -> int:
    """K if the policy plays the arm with the largest mean of k draws, 0 otherwise."""
    if isinstance(policy, PosteriorSampling) and policy.rule == "sum":
        return policy.k
    return 1 if _largest_of(policy) == 1 else 0


@final
@dataclass(frozen=True, eq=False)
class SampledDistance:
    """Total variation of two action laws from decisions repeated with common random numbers,
    ``(task,)`` each.

    The distance of two sampled frequencies is too large on average. ``value`` takes the jackknife's
    first correction; ``low <= TV <= high`` hold on average: ``high`` is the distance of the
    frequencies, ``low`` applies the signs that one half of the decisions shows to the frequencies
    of the other.
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def nought(cls, tasks: int) -> SampledDistance:
        """Start of a sum."""
        return cls(np.zeros(tasks), np.zeros(tasks), np.zeros(tasks))

    @classmethod
    def known(cls, p: ActionLaw, q: ActionLaw) -> SampledDistance:
        """``sum |p - q| / 2`` of two known laws: nothing is left to bound."""
        apart = np.abs(p.probs - q.probs).sum(axis=1) / 2.0
        return cls(apart, apart, apart)

    def __add__(self, other: SampledDistance) -> SampledDistance:
        """Add up over steps."""
        return SampledDistance(
            self.value + other.value, self.low + other.low, self.high + other.high
        )


def sampled_distance(
    policy: Policy, p: Belief, q: Belief, seen: Seen, streams: tuple[Stream, Stream], draws: int
) -> SampledDistance:
    """Let both beliefs decide ``draws`` times; the two streams are equal, one for each belief."""
    tasks = streams[0].tasks
    halves = np.zeros((2, tasks, seen.arms))
    rows = np.arange(tasks)
    for index in range(draws):
        for belief, stream, sign in zip((p, q), streams, (1.0, -1.0), strict=True):
            halves[index % 2, rows, policy.act(belief, seen, stream)] += sign
    halves /= draws / 2
    whole = halves.mean(axis=0)
    high = np.abs(whole).sum(axis=1) / 2.0
    half = np.abs(halves).sum(axis=2).mean(axis=0) / 2.0
    crossed = (np.sign(halves[0]) * halves[1] + np.sign(halves[1]) * halves[0]).sum(axis=1) / 4.0
    return SampledDistance(2.0 * high - half, crossed, high)
