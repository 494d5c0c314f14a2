"""Independent Bernoulli arms with Beta priors: mu_a ~ Beta(alpha_a, beta_a), r ~
Bernoulli(mu_a).
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self, final

import numpy as np
from attrs import field, frozen

from priorwise.core import argument_checks
from priorwise.core.parameters import Array, Names, arrays, words
from priorwise.core.protocols import Imagined
from priorwise.core.rewards import BanditEnvironment, BernoulliRewards
from priorwise.core.seen import Seen, Signal
from priorwise.core.separable import SeparableTasks
from priorwise.core.serial import Serializable
from priorwise.core.streams import Stream
from priorwise.core.tiles import FamilyTiles
from priorwise.core.types import FloatArray, IntArray
from priorwise.families.registry import seen_by
from priorwise.theory.action_laws import ActionLaw
from priorwise.theory.enumeration import Outcome, Outcomes

RANGE: Final = (1e-6, 1e12)
"""Of the parameters; beyond them the mean of an arm is known to 6 digits."""


@final
@frozen(eq=False, slots=False)
class BetaPrior(Serializable):
    """Independent Beta priors over the arms' success probabilities, with rewards 0 or 1.

    Parameters
    ----------
    alpha
        Successes of each arm before the first pull, ``(arm,)``, or one for all arms.
    beta
        Failures of each arm before the first pull, ``(arm,)``, or one for all arms.
    names
        Names of the arms.

    Examples
    --------
    >>> BetaPrior(alpha=[1, 2, 2], beta=8).arms
    3

    """

    family: ClassVar[str] = "beta"

    alpha: FloatArray = field(converter=arrays, validator=Array(("arm",), *RANGE, spread=1))
    beta: FloatArray = field(converter=arrays, validator=Array(("arm",), *RANGE, spread=1))
    names: tuple[str, ...] | None = field(
        default=None, kw_only=True, repr=False, converter=words, validator=Names()
    )

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.alpha.size

    @property
    def mean(self) -> FloatArray:
        """Mean of each arm's success probability, ``(arm,)``."""
        return np.asarray(self.alpha / (self.alpha + self.beta))

    @property
    def concentration(self) -> FloatArray:
        """``alpha + beta``: how many pulls the prior is worth, ``(arm,)``."""
        return np.asarray(self.alpha + self.beta)

    @property
    def reward_law(self) -> BernoulliRewards:
        """How rewards scatter around their means."""
        return BernoulliRewards()

    def sample(self, rng: Stream, tasks: int) -> BanditEnvironment:
        """``mu_a ~ Beta(alpha_a, beta_a)``."""
        shape = (argument_checks.batch(rng, tasks), self.arms)
        means = rng.beta(np.broadcast_to(self.alpha, shape), np.broadcast_to(self.beta, shape))
        return BanditEnvironment(means[:, 0], self.reward_law)

    def belief(self, tasks: int) -> "BetaBelief":
        """Start at the prior."""
        shape = (argument_checks.tasks_of(tasks), self.arms)
        return BetaBelief(np.broadcast_to(self.alpha, shape), np.broadcast_to(self.beta, shape))

    def belief_given(self, statistics: Any) -> "BetaBelief":
        """Return the belief about tasks of which all that was seen is in their statistics.

        It equals that of one update per pull, but for rounding; tasks may have had different
        numbers of pulls.
        """
        seen = seen_by(self, statistics)
        return BetaBelief(self.alpha + seen.successes, self.beta + (seen.pulls - seen.successes))

    def tiles(self, horizon: int, uses: frozenset[str]) -> FamilyTiles:
        """Tile functions for the compiled loop."""
        from priorwise.families.beta import tiles as kernels
        from priorwise.families.beta import tiles_exact as exact
        from priorwise.families.beta import tiles_repeated as repeated
        from priorwise.kernels.bandit import bandit_tiles
        from priorwise.kernels.special import kept_rows

        inverse = exact.inverse_address() if "quantile" in uses else None
        address = np.array([inverse or 0]).view(np.float64)
        p, n = kernels.At.pack(arms=self.arms, alpha=self.alpha, beta=self.beta, inverse=address)
        pairs = self.arms * horizon * (horizon + 1) * (horizon + 2) // 6  # with their levels
        kept = kept_rows(2 * pairs) if "quantile" in uses else 0
        return bandit_tiles(
            p,
            n,
            kernels,
            exact,
            repeated,
            belief_rows=kernels.ROWS_PER_ARM * self.arms + kept,
            scratch_rows=max(kernels.scratch_rows(self.arms), repeated.ROWS_PER_ARM * self.arms),
            quantile=exact.quantile if inverse else None,
        )


@final
@dataclass(frozen=True, eq=False)
class BetaBelief(SeparableTasks):
    """Posterior Beta(a, b) of each arm of each task."""

    a: FloatArray  # (task, arm)
    b: FloatArray  # (task, arm)

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return self.a.shape[0]

    @property
    def arms(self) -> int:
        """Number of arms."""
        return self.a.shape[1]

    def sample(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """``mu_a ~ Beta(a, b)``, ``(task, draw, arm)``."""
        return rng.beta(self.a, self.b, argument_checks.drawing(self, rng, draws))

    def sample_mean(self, rng: Stream, draws: int, seen: Seen) -> FloatArray:
        """Mean of ``draws`` draws."""
        return self.sample(rng, draws, seen).mean(axis=1)

    def mean(self, seen: Seen) -> FloatArray:
        """Posterior means."""
        return self.a / (self.a + self.b)

    def quantile(self, level: float | FloatArray, seen: Seen) -> FloatArray:
        """Posterior quantiles of the means."""
        from scipy.special import betaincinv

        return np.asarray(betaincinv(self.a, self.b, argument_checks.level(level)))

    def argmax_law(self, draws: int, rule: str, seen: Seen) -> ActionLaw | None:
        """Law of the largest of some draws, by quadrature; None for the mean of several."""
        from priorwise.families.beta.argmax import beta_argmax

        if rule == "mean" and draws > 1:
            return None
        return ActionLaw(beta_argmax(self.a, self.b, draws, seen.mask), "quadrature", 1e-9)

    def extremes(self, seen: Seen) -> tuple[FloatArray, FloatArray]:
        """``E[max]`` and ``E[min]``, by quadrature."""
        from priorwise.families.beta.argmax import beta_extremes

        return beta_extremes(self.a, self.b, seen.mask)

    def outcomes(self, seen: Seen) -> Outcomes:
        """Success and failure of each arm, with their probabilities ``(task,)``."""
        total = self.a + self.b
        laws = zip((self.a / total).T, (self.b / total).T, strict=True)
        return [[Outcome(1.0, None, up), Outcome(0.0, None, down)] for up, down in laws]

    def key(self) -> IntArray:
        """Bits of the parameters: alpha + 1 + ... + 1 is the same in any order."""
        return np.concatenate([self.a, self.b], axis=1).view(np.int64)

    def update(self, seen: Seen, actions: IntArray, rewards: FloatArray, after: Signal) -> Self:
        """Condition on ``r ~ Bernoulli(mu_a)``; a reward between 0 and 1 counts as that share of a
        success.
        """
        return self._given(*argument_checks.played(self, seen, actions, rewards, low=0.0, high=1.0))

    def _given(self, actions: IntArray, rewards: FloatArray) -> Self:
        chosen = np.arange(self.a.shape[1]) == actions[:, None]
        success = rewards[:, None]
        return type(self)(self.a + chosen * success, self.b + chosen * (1.0 - success))

    def log_predictive(self, seen: Seen, actions: IntArray, rewards: FloatArray) -> FloatArray:
        """``r log m_a + (1 - r) log(1 - m_a)`` at the posterior mean m, ``(task,)``."""
        mean = self.mean(seen)[np.arange(len(actions)), actions]
        return np.asarray(rewards * np.log(mean) + (1.0 - rewards) * np.log1p(-mean))

    def imagine(self, rng: Stream, actions: IntArray, seen: Seen) -> Imagined:
        """Draw ``mu_a`` and its reward; the other means of the drawn environment are never looked
        at.
        """
        rows = np.arange(len(actions))
        value = rng.beta(self.a[rows, actions][:, None], self.b[rows, actions][:, None])[:, 0, 0]
        reward = (rng.uniform() < value).astype(np.float64)
        return Imagined(value, self._given(actions, reward), seen)

    def best_after_pulls(self, seen: Seen, pulls: int) -> FloatArray:
        """Average the best posterior mean over the successes of several pulls, which are
        beta-binomial; see :mod:`priorwise.families.beta.repeated`.
        """
        from priorwise.families.beta.repeated import expected_best

        masked = seen.masked(self.mean(seen))
        own = np.eye(self.arms, dtype=bool)
        others = np.where(own, -np.inf, masked[:, None, :]).max(axis=2)
        best = expected_best(self.a, self.b, others, pulls)
        return np.where(np.isfinite(masked), best, -np.inf)

    def best_after(self, seen: Seen) -> FloatArray:
        """Average the best posterior mean over the two rewards an arm may show, exactly."""
        total = self.a + self.b
        mean = self.a / total
        arms = mean.shape[1]
        masked = seen.masked(mean)
        # best of the rest, by pulled arm
        others = np.where(np.eye(arms, dtype=bool), -np.inf, masked[:, None, :]).max(axis=2)
        success = np.maximum(others, seen.masked((self.a + 1.0) / (total + 1.0)))
        failure = np.maximum(others, seen.masked(self.a / (total + 1.0)))
        return np.where(np.isfinite(masked), mean * success + (1.0 - mean) * failure, -np.inf)
