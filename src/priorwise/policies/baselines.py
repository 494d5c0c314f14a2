"""Baselines. Those that read the posterior exactly have no Monte-Carlo constant: posteriors however
close may differ in choice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from priorwise.core import doors, sizes, validation
from priorwise.core.choosing import level, pick, ties
from priorwise.core.protocols import (
    Belief,
    LookaheadBelief,
    MeanBelief,
    QuantileBelief,
    Seen,
    SizedMeanBelief,
    offers,
)
from priorwise.core.streams import Stream
from priorwise.core.tiles import FamilyTiles, PolicyTiles, Tile
from priorwise.core.types import FloatArray, IntArray
from priorwise.policies.receding_horizon import Alpha, alpha_at, check_alpha


def mean_sizes(belief: Any, seen: Seen) -> FloatArray:
    """Sizes of the numbers that the posterior means are sums of, ``(task, arm)`` or ``(1,
    arm)``.
    """
    return belief.mean_size(seen) if offers(belief, SizedMeanBelief) else np.abs(belief.mean(seen))


def _plain_tiles(act: Tile, family: FamilyTiles, masked: bool, uses: set[str]) -> PolicyTiles:
    return PolicyTiles(np.zeros(1), np.array([family.arms, 0, 0, masked]), act, frozenset(uses))


@final
@dataclass(frozen=True)
class Uniform:
    """Play any available arm."""

    looks_ahead: ClassVar[bool] = False

    def act(self, belief: Belief, seen: Seen, rng: Stream) -> IntArray:
        """``a ~ Uniform``."""
        doors.acting(self, belief, seen, rng)
        return pick(seen.masked(np.zeros((rng.tasks, seen.arms))), rng.uniform())

    def monte_carlo_n(self, arms: int) -> int:
        """Return 0: the posterior is not looked at."""
        validation.count("arms", arms)
        return 0

    def tiles(self, family: FamilyTiles, horizon: int, masked: bool) -> PolicyTiles:
        """Tile function for the compiled loop."""
        from priorwise.kernels import policies as kernels

        return _plain_tiles(kernels.uniform, family, masked, set())


@final
@dataclass(frozen=True)
class Greedy:
    """Play the arm with the largest posterior mean."""

    needs: ClassVar[tuple[type, ...]] = (MeanBelief,)
    looks_ahead: ClassVar[bool] = False

    def act(self, belief: MeanBelief, seen: Seen, rng: Stream) -> IntArray:
        """``argmax_a E[mu_a]``."""
        doors.acting(self, belief, seen, rng)
        return pick(self.scores(belief, seen), rng.uniform())

    def monte_carlo_n(self, arms: int) -> None:
        """Return None: the posterior mean, not a number of draws, decides."""
        validation.count("arms", arms)

    def scores(self, belief: MeanBelief, seen: Seen) -> FloatArray:
        """Posterior means."""
        return level(seen.masked(belief.mean(seen)), mean_sizes(belief, seen))

    def tiles(self, family: FamilyTiles, horizon: int, masked: bool) -> PolicyTiles:
        """Tile function for the compiled loop."""
        from priorwise.kernels import policies as kernels

        return _plain_tiles(kernels.greedy, family, masked, {"mean", "mean_size"})


@final
@dataclass(frozen=True)
class BayesUCB:
    """Play the arm with the largest posterior quantile at level 1 - 1/(h + 1), h = 1, 2, ...
    (Kaufmann, Cappe, Garivier 2012).

    The first pull compares medians; the level rises with the steps.
    """

    needs: ClassVar[tuple[type, ...]] = (QuantileBelief,)

    def act(self, belief: QuantileBelief, seen: Seen, rng: Stream) -> IntArray:
        """``argmax_a Q(1 - 1/(h + 1); mu_a)``."""
        doors.acting(self, belief, seen, rng)
        return pick(self.scores(belief, seen), rng.uniform())

    def monte_carlo_n(self, arms: int) -> None:
        """Return None: the posterior quantile, not a number of draws, decides."""
        validation.count("arms", arms)

    def scores(self, belief: QuantileBelief, seen: Seen) -> FloatArray:
        """Posterior quantiles."""
        return seen.masked(belief.quantile(1.0 - 1.0 / (seen.step + 1), seen))


@final
@dataclass(frozen=True)
class TopTwoThompson:
    """Play the best arm of a posterior draw, or with probability 1 - share that of a draw which
    disagrees (Russo 2016).

    Parameters
    ----------
    share
        Probability of playing the first draw's best arm.
    most_draws
        How many draws to try; if all agree on the best arm, it is played.

    """

    share: float = 0.5
    most_draws: int = 256

    def __post_init__(self) -> None:
        """Check the parameters."""
        if not 0.0 < validation.number("share", self.share) <= 1.0:
            raise ValueError(f"share must lie in (0, 1], got {self.share:g}")
        sizes.check_draws("most_draws", validation.count("most_draws", self.most_draws))

    def monte_carlo_n(self, arms: int) -> int:
        """Return ``1 + (1 - share) most_draws``, rounded up: one draw, and with probability 1 -
        share at most so many more.
        """
        validation.count("arms", arms)
        return math.ceil(1.0 + (1.0 - self.share) * self.most_draws)

    def draws_per_pull(self, arms: int) -> int:
        """Posterior draws of one pull at most, for the estimate of work."""
        return self.most_draws + 1

    @property
    def drawn_at_once(self) -> int:
        """Posterior draws of one request, for the estimate of memory."""
        return max(8, self.most_draws // 2)

    @property
    def slow_because(self) -> str:
        """Why a run may take long."""
        return f"draws up to {self.most_draws:,} times per pull until another arm is best"

    def act(self, belief: Belief, seen: Seen, rng: Stream) -> IntArray:
        """Draw until the best arm differs from the first draw's."""
        doors.acting(self, belief, seen, rng)
        stay = rng.uniform() < self.share
        first = self._best(belief, seen, rng, 1)[:, 0]
        second = first.copy()
        tried = 0
        while tried < self.most_draws and (searching := ~stay & (second == first)).any():
            draws = min(max(8, tried), self.most_draws - tried)
            best = self._best(belief, seen, rng, draws)
            differs = best != first[:, None]
            found = differs.any(axis=1) & searching
            second[found] = best[found, differs[found].argmax(axis=1)]
            tried += draws
        return np.where(stay, first, second)

    @staticmethod
    def _best(belief: Belief, seen: Seen, rng: Stream, draws: int) -> IntArray:
        """Best arm of each draw, ``(task, draw)``."""
        values: FloatArray = seen.masked(belief.sample(rng, draws, seen))
        flat = values.reshape(-1, values.shape[2])
        return pick(flat, rng.uniform(draws).reshape(-1)).reshape(values.shape[:2])


@final
@dataclass(frozen=True)
class ExactKnowledgeGradient:
    """Receding horizon with k1, k2 -> infinity: ``(1 - alpha) E[mu_a] + alpha E[max_a' E[mu_a'
    given r_a]]``, computed exactly.

    Parameters
    ----------
    alpha
        As in :class:`~priorwise.policies.receding_horizon.RecedingHorizon`. ``"online"`` is the
        online knowledge gradient of Ryzhov, Powell and Frazier (2012): this pull's mean plus what
        it teaches, times the pulls left.

    """

    needs: ClassVar[tuple[type, ...]] = (LookaheadBelief,)

    alpha: Alpha = "online"

    def __post_init__(self) -> None:
        """Check the parameter."""
        check_alpha(self.alpha)

    def act(self, belief: LookaheadBelief, seen: Seen, rng: Stream) -> IntArray:
        """Play the arm with the largest value; where the look-ahead ties, the one with the largest
        posterior mean.
        """
        doors.acting(self, belief, seen, rng)
        return pick(self.scores(belief, seen), rng.uniform())

    def monte_carlo_n(self, arms: int) -> None:
        """Return None: the posterior mean and look-ahead, not a number of draws, decides."""
        validation.count("arms", arms)

    def scores(self, belief: LookaheadBelief, seen: Seen) -> FloatArray:
        """Posterior means of the arms with the largest value, -inf for the others."""
        alpha = alpha_at(self.alpha, seen.step, seen.horizon)
        now = seen.masked(belief.mean(seen))
        size = np.broadcast_to(mean_sizes(belief, seen), now.shape)
        if alpha == 0.0:
            return level(now, size)
        ahead = belief.best_after(seen)
        # of what the best mean is a sum of
        largest = np.maximum(seen.masked(size).max(axis=1, keepdims=True), np.abs(ahead))
        total = level(
            seen.masked((1.0 - alpha) * belief.mean(seen) + alpha * ahead),
            (1.0 - alpha) * size + alpha * largest,
        )
        return level(np.where(ties(total), now, -np.inf), size)
